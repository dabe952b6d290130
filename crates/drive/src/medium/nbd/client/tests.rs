//! Time that runs out, and servers that answer anything.

use super::*;
use crate::medium::{Geometry, suite};
use device::medium::{MediumDone, MediumOp};
use proptest::prelude::*;
use units::{BlockSize, ByteCount, Extent};
use wire::nbd::SimpleReply;

const TERMS: Terms = Terms {
    size_bytes: 1 << 20,
    flags: TransmissionFlags::SEND_FLUSH,
    block_min: 1,
    payload_max: 1 << 20,
    is_structured: true,
    allocation: Some(0),
};

fn connected(now: Instant) -> Client {
    let mut client = Client::new(TERMS, now);
    assert_eq!(client.attach(TERMS), Some(0));
    client
}

fn submit(client: &mut Client, op: MediumOp, lba: u64, now: Instant) {
    let geometry = Geometry::of(ByteCount(TERMS.size_bytes), BlockSize::B512);
    let request = suite::request(op, Extent::new(lba, 1), 512);
    let task = Task::new(crate::medium::Job { request, buffer: vec![7; 512] }, geometry, false);
    assert!(client.submit(task, now).is_none());
}

/// Sends everything. Returns the requests.
fn sent(client: &mut Client) -> Vec<Request> {
    let mut bytes = Vec::new();
    let all = client.send(0, |slices| {
        slices.iter().for_each(|slice| bytes.extend_from_slice(slice));
        Ok(Some(slices.iter().map(|slice| slice.len()).sum()))
    });
    assert!(all.expect("it is taken"));
    let mut requests = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let request = Request::decode(rest).expect("a request");
        rest = &rest[Request::LEN..];
        if request.command == Command::Write {
            rest = &rest[request.length as usize..];
        }
        requests.push(request);
    }
    requests
}

fn answer(client: &mut Client, request: &Request) {
    let reply = SimpleReply { error: wire::nbd::ErrorCode::None, cookie: request.cookie };
    assert_eq!(client.receive(0, &reply.encode()), Ok(SimpleReply::LEN));
}

fn results(client: &mut Client) -> Vec<Result<MediumDone, MediumError>> {
    std::iter::from_fn(|| client.poll()).map(|over| over.completion.result).collect()
}

#[test]
fn a_silent_server_fails_what_may_be_done_and_the_rest_in_time() {
    let begin = Instant::now();
    let mut client = connected(begin);
    submit(&mut client, MediumOp::Write { fua: false }, 1, begin);
    submit(&mut client, MediumOp::Read, 2, begin + Duration::from_secs(5));
    assert_eq!(sent(&mut client).len(), 2);
    assert_eq!(client.expire(begin), (Some(begin + COMMAND_TIMEOUT), false));
    let (next, is_silent) = client.expire(begin + COMMAND_TIMEOUT);
    assert!(is_silent && !client.is_connected());
    assert_eq!(next, Some(begin + COMMAND_TIMEOUT + Duration::from_secs(5)));
    assert_eq!(results(&mut client), [Err(MediumError::Unreachable)], "the write");
    let (next, is_silent) = client.expire(begin + COMMAND_TIMEOUT + Duration::from_secs(5));
    assert!(!is_silent && next.is_none());
    assert_eq!(results(&mut client), [Err(MediumError::Unreachable)], "the read");
}

#[test]
fn a_server_that_is_away_for_long_fails_commands_at_once() {
    let begin = Instant::now();
    let mut client = connected(begin);
    client.lose(Loss::Closed, begin);
    let later = begin + COMMAND_TIMEOUT + Duration::from_secs(1);
    let geometry = Geometry::of(ByteCount(TERMS.size_bytes), BlockSize::B512);
    let request = suite::request(MediumOp::Read, Extent::new(0, 1), 512);
    let task = Task::new(crate::medium::Job { request, buffer: vec![0; 512] }, geometry, false);
    let over = client.submit(task, later).expect("it is over");
    assert_eq!(over.completion.result, Err(MediumError::Unreachable));
}

#[test]
fn what_was_acknowledged_is_written_again_before_what_was_in_flight() {
    let now = Instant::now();
    let mut client = connected(now);
    submit(&mut client, MediumOp::Write { fua: false }, 1, now);
    let requests = sent(&mut client);
    answer(&mut client, &requests[0]);
    submit(&mut client, MediumOp::Write { fua: false }, 1, now);
    submit(&mut client, MediumOp::Read, 1, now);
    assert_eq!(sent(&mut client).len(), 2);
    client.lose(Loss::Closed, now);
    assert_eq!(client.attach(TERMS), Some(0));
    let again = sent(&mut client);
    assert_eq!(again.iter().map(|request| request.command).collect::<Vec<_>>(), [Command::Write]);
    answer(&mut client, &again[0]);
    let held = sent(&mut client);
    assert_eq!(
        held.iter().map(|request| request.command).collect::<Vec<_>>(),
        [Command::Write, Command::Read]
    );
    answer(&mut client, &held[0]);
    assert_eq!(results(&mut client), [Ok(MediumDone::Done), Ok(MediumDone::Done)]);
}

#[test]
fn changes_that_overlap_are_sent_one_after_another() {
    let now = Instant::now();
    let mut client = connected(now);
    for lba in [1, 1, 2] {
        submit(&mut client, MediumOp::Write { fua: false }, lba, now);
    }
    let first = sent(&mut client);
    assert_eq!(first.len(), 1, "the third does not overtake the second");
    answer(&mut client, &first[0]);
    assert_eq!(sent(&mut client).len(), 2);
}

#[test]
fn an_export_that_has_changed_is_not_used() {
    let now = Instant::now();
    let mut client = connected(now);
    client.lose(Loss::Closed, now);
    for terms in [
        Terms { size_bytes: 1 << 19, ..TERMS },
        Terms { flags: TransmissionFlags::EMPTY, ..TERMS },
        Terms { flags: TERMS.flags.with(TransmissionFlags::READ_ONLY), ..TERMS },
        Terms { block_min: 4096, ..TERMS },
    ] {
        assert_eq!(client.attach(terms), None, "{terms:?}");
    }
    assert_eq!(client.attach(TERMS), Some(0));
}

proptest! {
    /// Headers with the right cookies and anything else in them, in pieces of any length.
    #[test]
    fn no_reply_does_harm(
        replies in prop::collection::vec((any::<bool>(), 0u16..10, 0usize..4, any::<[u8; 24]>()), 0..12),
        cut in 1usize..64,
    ) {
        let now = Instant::now();
        let mut client = connected(now);
        let ops = [MediumOp::Read, MediumOp::Write { fua: false }, MediumOp::Status, MediumOp::Flush];
        for (lba, op) in (0..).zip(ops) {
            submit(&mut client, op, lba, now);
        }
        let requests = sent(&mut client);
        let mut bytes = Vec::new();
        for (is_simple, kind, which, noise) in replies {
            let cookie = requests[which].cookie.to_be_bytes();
            if is_simple {
                bytes.extend([&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, noise[0] & 5][..], &cookie].concat());
            } else {
                let kind = if kind > 6 { kind | 0x8000 } else { kind };
                bytes.extend([0x66, 0x8e, 0x33, 0xef, 0, noise[1] & 1]);
                bytes.extend(kind.to_be_bytes());
                bytes.extend(cookie);
                bytes.extend([0, 0, 0, noise[2] & 31]);
            }
            bytes.extend(&noise[3..]);
        }
        let mut pending = Vec::new();
        for piece in bytes.chunks(cut) {
            pending.extend_from_slice(piece);
            match client.receive(0, &pending) {
                Ok(taken) => drop(pending.drain(..taken)),
                Err(_) => break,
            }
        }
        let before = results(&mut client).len();
        client.lose(Loss::Silent, now);
        client.expire(now + 2 * COMMAND_TIMEOUT);
        prop_assert_eq!(before + results(&mut client).len(), 4, "every job ends once");
    }
}
