//! The actions of a device and the requests to the host meanwhile, as a script of a fuzzer's bytes.

use super::stack::Stack;
use super::unit::Unit;
use arbitrary::Arbitrary;
use bus::{Direction, TransferStatus};
use initiator::disk::{AskTemperature, Operation};
use initiator::{BusAnswer, BusRequest, Transport};
use units::Extent;

/// Actions of a script that are played.
const ACTIONS_MAX: usize = 160;
/// Transfers that a device serves in one action.
const SERVED_MAX: usize = 64;
/// Deadlines that pass while the device mends its ways.
const SETTLED_MAX: usize = 200;

/// One thing that happens.
#[derive(Arbitrary, Debug)]
pub enum Action<'a> {
    Request {
        operation: u8,
        lba: u16,
        blocks: u8,
    },
    AbortRequest(u8),
    Identify(bool),
    /// The device does what a good one would, data before statuses, so often.
    Flow(u8),
    /// It does so with this transfer.
    Serve(u8),
    /// A transfer ends with these bytes, or with its share of the bytes that there is room for.
    End {
        nth: u8,
        status: u8,
        share: u8,
        bytes: &'a [u8],
    },
    /// A transfer brings a message of the right form.
    Message {
        nth: u8,
        kind: u8,
        tag: u8,
        code: u8,
    },
    /// The content of the next status.
    Check {
        status: u8,
        key: u8,
        additional: [u8; 2],
        information: u32,
    },
    /// The next data.
    Reply(&'a [u8]),
    Answer(u8, u16),
    PassTime,
    /// The device is pulled out, if the number says so: what comes after it finds little.
    Unplug(u8),
}

/// Plays a script on a host, to its end.
pub fn play<T: Transport>(transport: T, kind: u8, actions: Vec<Action<'_>>) {
    let ask = |wants: bool| if wants { AskTemperature::ByLogOrSmart } else { AskTemperature::Not };
    let (mut stack, mut unit) = (Stack::new(transport, kind & 1 == 0, ask(kind & 2 != 0)), Unit::default());
    // Half of the scripts begin with a disk that is known.
    if kind & 4 != 0 {
        flow(&mut stack, &mut unit, SERVED_MAX);
    }
    for action in actions.into_iter().take(ACTIONS_MAX) {
        match action {
            Action::Request { operation, lba, blocks } => {
                stack.request(operation_of(operation), Extent::new(lba.into(), blocks.into()));
            }
            Action::AbortRequest(nth) => stack.abort_request(nth),
            Action::Identify(wants) => stack.identify(ask(wants)),
            Action::Flow(count) => flow(&mut stack, &mut unit, count.into()),
            Action::Serve(nth) => serve(&mut stack, &mut unit, nth),
            Action::End { nth, status, share, bytes } => {
                if let Some(transfer) = stack.nth(nth) {
                    let actual = u64::from(transfer.length) * u64::from(share) / 255;
                    stack.complete(&transfer, status_of(status), actual as u32, bytes);
                }
            }
            Action::Message { nth, kind, tag, code } => {
                if let Some(transfer) = stack.nth(nth) {
                    stack.complete(&transfer, TransferStatus::Short, 0, &message(kind, tag, code));
                }
            }
            Action::Check { status, key, additional: [code, qualifier], information } => {
                let [i0, i1, i2, i3] = information.to_be_bytes();
                let head = [if key & 0x80 == 0 { 0xf0 } else { 0xf1 }, 0, key & 0x6f, i0, i1, i2, i3, 10];
                let mut sense = [0; 18];
                sense[..8].copy_from_slice(&head);
                sense[12..14].copy_from_slice(&[code, qualifier]);
                unit.check = Some((status_byte(status), sense));
            }
            Action::Reply(bytes) => unit.reply = Some(bytes.to_vec()),
            Action::Answer(kind, streams) => stack.answer(match kind % 4 {
                0 => BusAnswer::Done,
                1 => BusAnswer::Streams(streams),
                2 => BusAnswer::Stalled,
                _ => BusAnswer::Failed,
            }),
            Action::PassTime => drop(stack.pass_time()),
            Action::Unplug(code) if code % 16 < 2 => stack.unplug(code % 2 == 0),
            Action::Unplug(_) => {}
        }
    }
    if kind & 8 != 0 {
        settle(&mut stack, &mut unit);
    }
    stack.end();
}

/// The device mends its ways, for a while.
fn settle<T: Transport>(stack: &mut Stack<T>, unit: &mut Unit) {
    for _ in 0..SETTLED_MAX {
        flow(stack, unit, SERVED_MAX);
        if stack.is_at_rest() || !stack.pass_time() {
            return;
        }
    }
}

fn serve<T: Transport>(stack: &mut Stack<T>, unit: &mut Unit, nth: u8) {
    if let Some(transfer) = stack.nth(nth)
        && let Some((status, actual, bytes)) = unit.serve(&transfer)
    {
        stack.complete(&transfer, status, actual, &bytes);
    }
}

fn flow<T: Transport>(stack: &mut Stack<T>, unit: &mut Unit, count: usize) {
    for _ in 0..count.min(SERVED_MAX) {
        if let Some(request) = stack.asked() {
            stack.answer(match request {
                BusRequest::AllocateStreams { wanted, .. } => BusAnswer::Streams(wanted),
                _ => BusAnswer::Done,
            });
            continue;
        }
        let (messages, others): (Vec<_>, Vec<_>) = stack
            .in_flight()
            .partition(|transfer| transfer.is_message && transfer.pipe.endpoint.direction() == Direction::In);
        let ended =
            others.iter().chain(&messages).find_map(|transfer| Some((transfer, unit.serve(transfer)?)));
        let Some((transfer, (status, actual, bytes))) = ended else { return };
        stack.complete(transfer, status, actual, &bytes);
    }
}

fn operation_of(code: u8) -> Operation {
    let (fua, dpo) = (code & 0x10 != 0, code & 0x20 != 0);
    match code % 8 {
        0 | 1 => Operation::Read { fua, dpo, may_be_short: code & 0x40 != 0 },
        2 | 3 => Operation::Write { fua, dpo },
        4 => Operation::Flush,
        5 => Operation::Unmap,
        6 => Operation::Zero { may_unmap: fua },
        _ => Operation::WriteSame,
    }
}

fn status_of(code: u8) -> TransferStatus {
    match code % 64 {
        0..=25 => TransferStatus::Done,
        26..=42 => TransferStatus::Short,
        43..=49 => TransferStatus::Stall,
        50..=55 => TransferStatus::Error,
        56..=59 => TransferStatus::Babble,
        60..=62 => TransferStatus::Cancelled,
        _ => TransferStatus::Disconnected,
    }
}

/// CHECK CONDITION, BUSY, RESERVATION CONFLICT, TASK SET FULL, or any status.
fn status_byte(code: u8) -> u8 {
    match code % 8 {
        0..=3 => 0x02,
        4 => 0x08,
        5 => 0x18,
        6 => 0x28,
        _ => code,
    }
}

/// Bytes that resemble a status wrapper or an information unit of the status pipe.
fn message(kind: u8, tag: u8, code: u8) -> Vec<u8> {
    match kind % 6 {
        0 => vec![b'U', b'S', b'B', b'S', tag, 0, 0, 0, code, 0, 0, 0, code % 4],
        1 => vec![6, 0, 0, tag],
        2 => vec![7, 0, 0, tag],
        3 => vec![4, 0, 0, tag, 0, 0, 0, code % 12],
        4 => vec![3, 0, 0, tag, 0, 0, code, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => vec![3, 0, 0, tag, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, code, 0x72, 3, 0x11, 0, 0, 0, 0, 0],
    }
}
