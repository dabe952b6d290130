//! The answers of a device that keeps to the standard, so that a script need not find them: any
//! transport, one unit.

use super::scripted_bus::Offered;
use bus::{Direction, TransferStatus};
use wire::bot::{Cbw, Csw, CswStatus};
use wire::scsi::Status;
use wire::uas::{CommandIu, ReadyIu, ResponseCode, ResponseIu, SenseIu, TaskManagementIu};

/// Commands that are remembered.
const TASKS_MAX: usize = 64;

/// A unit that has heard of commands.
#[derive(Default)]
pub(super) struct Unit {
    tasks: Vec<Task>,
    /// Task management functions to be answered.
    functions: Vec<u16>,
    /// The next status and its sense data, instead of GOOD.
    pub(super) check: Option<(u8, [u8; 18])>,
    /// The next data in.
    pub(super) reply: Option<Vec<u8>>,
    /// Sense data for REQUEST SENSE.
    sense: [u8; 18],
}

struct Task {
    tag: u32,
    cdb: [u8; 16],
    is_bot: bool,
    asked: u32,
    moved: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    Ready,
    Moved,
}

/// The end of a transfer.
pub(super) type End = (TransferStatus, u32, Vec<u8>);

impl Unit {
    /// How this transfer ends; nothing if it is a message's and there is nothing to say.
    pub(super) fn serve(&mut self, transfer: &Offered) -> Option<End> {
        match (transfer.is_message, transfer.pipe.endpoint.direction()) {
            (true, Direction::Out) => {
                self.hear(&transfer.sent);
                Some((TransferStatus::Done, transfer.length, Vec::new()))
            }
            (true, Direction::In) => {
                let bytes = self.say(transfer)?;
                Some(ended(bytes, transfer.length))
            }
            (false, Direction::Out) => {
                self.task_of(transfer)?.move_all(transfer.length);
                Some((TransferStatus::Done, transfer.length, Vec::new()))
            }
            (false, Direction::In) => {
                let (reply, sense) = (self.reply.take(), self.sense);
                let task = self.task_of(transfer)?;
                let bytes = reply.or_else(|| answer(&task.cdb, &sense));
                let bytes = bytes.unwrap_or_else(|| vec![0x5a; transfer.length as usize]);
                task.move_all((bytes.len() as u32).min(transfer.length));
                Some(ended(bytes, transfer.length))
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let task = |tag, cdb, is_bot, asked| Task { tag, cdb, is_bot, asked, moved: 0, stage: Stage::Fresh };
        if let Ok(cbw) = Cbw::decode(bytes) {
            self.tasks.retain(|task| !task.is_bot);
            self.tasks.push(task(cbw.tag, cbw.command, true, cbw.transfer_len));
        } else if let Ok(iu) = CommandIu::decode(bytes) {
            self.tasks.retain(|task| task.tag != iu.tag.into());
            self.tasks.push(task(iu.tag.into(), *iu.cdb, false, 0));
        } else if let Ok(iu) = TaskManagementIu::decode(bytes) {
            self.functions.push(iu.tag);
        }
        let extra = self.tasks.len().saturating_sub(TASKS_MAX);
        self.tasks.drain(..extra);
    }

    /// The command whose data a transfer moves.
    fn task_of(&mut self, transfer: &Offered) -> Option<&mut Task> {
        let (stream, direction) = (transfer.pipe.stream, transfer.pipe.endpoint.direction());
        self.tasks.iter_mut().find(|task| match stream {
            Some(stream) => task.tag == u32::from(stream.get()),
            None => task.is_bot || (task.stage == Stage::Ready && direction_of(&task.cdb) == Some(direction)),
        })
    }

    fn say(&mut self, transfer: &Offered) -> Option<Vec<u8>> {
        let stream = transfer.pipe.stream.map(|stream| stream.get());
        let is_meant = |tag: u16| stream.is_none_or(|stream| stream == tag);
        if let Some(at) = self.functions.iter().position(|&tag| is_meant(tag)) {
            let tag = self.functions.swap_remove(at);
            return Some(ResponseIu::new(tag, ResponseCode::TaskManagementComplete).encode().to_vec());
        }
        let can_say = |task: &Task| is_meant(task.tag as u16) && task.stage != Stage::Ready;
        let at = self.tasks.iter().position(|task| task.is_bot || can_say(task))?;
        let task = &mut self.tasks[at];
        if let (false, None, Stage::Fresh, Some(direction)) =
            (task.is_bot, stream, task.stage, direction_of(&task.cdb))
        {
            task.stage = Stage::Ready;
            return Some(ReadyIu { direction, tag: task.tag as u16 }.encode().to_vec());
        }
        let task = self.tasks.remove(at);
        let (status, sense) = self.check.take().map_or((0, None), |(status, sense)| (status, Some(sense)));
        if task.is_bot {
            self.sense = sense.unwrap_or(self.sense);
            let status = CswStatus::from(u8::from(sense.is_some()));
            let residue = task.asked.saturating_sub(task.moved);
            return Some(Csw { tag: task.tag, residue, status }.encode().to_vec());
        }
        let sense = sense.as_ref().map_or(&[][..], |sense| sense);
        let iu = SenseIu { tag: task.tag as u16, status_qualifier: 0, status: Status::from(status), sense };
        let mut out = vec![0; SenseIu::LEN + sense.len()];
        iu.encode(&mut out).expect("there is room");
        Some(out)
    }
}

impl Task {
    const fn move_all(&mut self, bytes: u32) {
        self.moved += bytes;
        self.stage = Stage::Moved;
    }
}

fn ended(mut bytes: Vec<u8>, room: u32) -> End {
    bytes.truncate(room as usize);
    let actual = bytes.len() as u32;
    (if actual == room { TransferStatus::Done } else { TransferStatus::Short }, actual, bytes)
}

/// Which way a command's data go.
fn direction_of(cdb: &[u8; 16]) -> Option<Direction> {
    match cdb[0] {
        0x00 | 0x1b | 0x35 | 0x91 => None,
        0x2a | 0x8a | 0x41 | 0x42 | 0x93 => Some(Direction::Out),
        _ => Some(Direction::In),
    }
}

/// The answer to a question about the unit.
fn answer(cdb: &[u8; 16], sense: &[u8; 18]) -> Option<Vec<u8>> {
    Some(match (cdb[0], cdb[1], cdb[2]) {
        (0x03, ..) => sense.to_vec(),
        (0x12, 1, page) => vital_product_data(page),
        (0x12, ..) => [&[0, 0, 6, 2, 31, 0, 0, 2][..], b"UASKIT  HOSTILE DEVICE  0001"].concat(),
        (0x1a, ..) => [&[23, 0, 0x10, 0, 8, 18, 4][..], &[0; 17]].concat(),
        (0x25, ..) => vec![0, 0, 0xff, 0xff, 0, 0, 2, 0],
        (0x4d, ..) => vec![0x0d, 0, 0, 12, 0, 0, 3, 2, 0, 30, 0, 1, 3, 2, 0, 60],
        (0x5a, ..) => [&[0, 26, 0, 0x10, 0, 0, 0, 0, 8, 18, 4][..], &[0; 17]].concat(),
        (0x9e, ..) => [&[0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 2, 0, 0, 0, 0xc0][..], &[0; 17]].concat(),
        (0xa0, ..) => [&[0, 0, 0, 8][..], &[0; 12]].concat(),
        _ => return None,
    })
}

fn vital_product_data(page: u8) -> Vec<u8> {
    let body: &[u8] = match page {
        0x00 => &[0x00, 0x0d, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2],
        0x80 => b"0001",
        0x83 => &[1, 3, 0, 8, 0x50, 1, 2, 3, 4, 5, 6, 7],
        0xb0 => &[
            0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0,
            0, //
            0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        0xb2 => &[0, 0xe4, 2, 0],
        _ => &[0; 60],
    };
    [&[0, page, 0, body.len() as u8][..], body].concat()
}
