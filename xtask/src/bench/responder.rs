//! A drive that does nothing, as fast as it can: what QEMU and the guest allow at best.
//!
//! It stands between QEMU and a real drive. A READ or a WRITE it answers at once, with zeroes, and touches no
//! medium; everything else (descriptors, streams, INQUIRY, MODE SENSE) goes to the real drive, and that drive's
//! answers come back unchanged. A host sends the transfers of a command before the command itself, so those are
//! kept until it is known whose they are.
//!
//! Left out: transfers without a stream, which are the real drive's. One connection, then it is over.

use super::link::{self, Link};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use wire::scsi::Status as ScsiStatus;
use wire::scsi::opcode::OperationCode;
use wire::uas::{CommandPipeIu, SenseIu};
use wire::usbredir::{BulkPacket, Capabilities, Header, Hello, Packet, PacketType, Side, Status};

/// Listens, and relays in a separate thread between the client that connects and the drive at `drive`.
pub(super) fn start(listen: &Path, drive: &Path) -> Result<()> {
    let listener = UnixListener::bind(listen).with_context(|| format!("listen on {}", listen.display()))?;
    let drive = UnixStream::connect(drive).with_context(|| format!("connect to {}", drive.display()))?;
    thread::spawn(move || {
        // QEMU leaves with the guest, and the drive is killed: an end by error is the usual one.
        let outcome = listener.accept().context("accept").and_then(|(guest, _)| stand_between(guest, drive));
        outcome.err()
    });
    Ok(())
}

fn stand_between(guest: UnixStream, drive: UnixStream) -> Result<()> {
    let to_guest = Arc::new(Mutex::new(guest.try_clone()?));
    let drive_again = drive.try_clone()?;
    let mut guest = Link::new(guest, Capabilities::NONE);
    let mut drive = Link::new(drive, Capabilities::NONE);

    let (hello, guest_body) = guest.wait()?;
    drive.forward(hello, &guest_body)?;
    drive.flush()?;
    let (hello, drive_body) = drive.wait()?;
    guest.forward(hello, &drive_body)?;
    guest.flush()?;
    let offers = [guest_body, drive_body].map(|body| body.get(Hello::LEN..).map(Capabilities::decode));
    let [Some(guest_offer), Some(drive_offer)] = offers else { return Ok(()) };
    let capabilities = guest_offer.intersection(drive_offer);
    guest.capabilities = capabilities;
    // From here on the drive's link only reads; another one, on the same socket, writes.
    drive.capabilities = capabilities;
    let mut to_drive = Link::new(drive_again, capabilities);

    let shared = Arc::clone(&to_guest);
    thread::spawn(move || pass_on(drive, &shared).err());
    let mut answers = Answers { stream: to_guest, queued: Vec::new(), capabilities };
    let mut waiting = Waiting::new();
    loop {
        while let Some((header, body)) = guest.next()? {
            take(header, body, &mut waiting, &mut answers, &mut to_drive)?;
        }
        answers.flush()?;
        to_drive.flush()?;
        guest.fill()?;
    }
}

/// Gives the guest what the drive says, packet by packet.
fn pass_on(mut drive: Link, guest: &Mutex<UnixStream>) -> Result<()> {
    let capabilities = drive.capabilities;
    let mut out = Vec::new();
    loop {
        while let Some((header, body)) = drive.next()? {
            link::put_received(&mut out, header, body, capabilities)?;
        }
        guest.lock().unwrap_or_else(PoisonError::into_inner).write_all(&out)?;
        out.clear();
        drive.fill()?;
    }
}

/// By stream: what the guest has sent for a command that has not come yet, with its packet's body.
type Waiting = HashMap<u32, Vec<(Header, Vec<u8>)>>;

/// Keeps a packet of the guest, answers it, or lets the drive have it.
fn take(
    header: Header,
    body: &[u8],
    waiting: &mut Waiting,
    answers: &mut Answers,
    drive: &mut Link,
) -> Result<()> {
    let stream = match header.kind {
        PacketType::BulkPacket => {
            let bulk = BulkPacket::decode(body, drive.capabilities)?;
            if bulk.stream_id != 0 {
                // So long a payload is that of a WRITE, and is never read.
                let len =
                    if body.len() > LONG_BYTES { BulkPacket::len(drive.capabilities) } else { body.len() };
                waiting.entry(bulk.stream_id).or_default().push((header, body[..len].to_vec()));
                return Ok(());
            }
            match CommandPipeIu::decode(&body[BulkPacket::len(drive.capabilities)..]) {
                Ok(CommandPipeIu::Command(iu)) if moves_blocks(iu.cdb[0]) => {
                    answers.queue(header, bulk, &[])?;
                    let transfers = waiting.remove(&iu.tag.into()).unwrap_or_default();
                    return answers.complete(iu.tag, &transfers);
                }
                Ok(iu) => Some(iu.tag().into()),
                Err(_) => None,
            }
        }
        // All waiting transfers of the command go to the drive, which then cancels this one.
        PacketType::CancelDataPacket => {
            let mut all = waiting.iter();
            all.find(|(_, transfers)| transfers.iter().any(|(transfer, _)| transfer.id == header.id))
                .map(|(&id, _)| id)
        }
        _ => None,
    };
    for (header, body) in stream.and_then(|stream| waiting.remove(&stream)).unwrap_or_default() {
        drive.forward(header, &body)?;
    }
    drive.forward(header, body)
}

/// Longer than anything but the data of a WRITE, and worth a separate write.
const LONG_BYTES: usize = 64 << 10;

fn moves_blocks(opcode: u8) -> bool {
    use OperationCode::{Read10, Read16, Write10, Write16};
    matches!(OperationCode::from(opcode), Read10 | Read16 | Write10 | Write16)
}

/// Answers that go to the guest without the drive.
struct Answers {
    stream: Arc<Mutex<UnixStream>>,
    queued: Vec<u8>,
    capabilities: Capabilities,
}

impl Answers {
    /// Completes the status and data transfers of a command, which Linux sends in this order.
    fn complete(&mut self, tag: u16, transfers: &[(Header, Vec<u8>)]) -> Result<()> {
        /// As much as any command of Linux asks for.
        static ZEROES: [u8; 4 << 20] = [0; 4 << 20];
        let [(status_header, status), moved @ ..] = transfers else {
            bail!("command {tag} without a status transfer");
        };
        for (header, body) in moved {
            let bulk = BulkPacket::decode(body, self.capabilities)?;
            let payload = ZEROES.get(..bulk.payload_len(Side::UsbHost) as usize);
            self.queue(*header, bulk, payload.context("a command for more than 4 MiB")?)?;
        }
        let mut sense = [0; SenseIu::LEN];
        SenseIu { tag, status_qualifier: 0, status: ScsiStatus::Good, sense: &[] }.encode(&mut sense)?;
        let bulk = BulkPacket::decode(status, self.capabilities)?;
        self.queue(*status_header, BulkPacket { length: SenseIu::LEN as u32, ..bulk }, &sense)
    }

    fn queue(&mut self, header: Header, bulk: BulkPacket, payload: &[u8]) -> Result<()> {
        let capabilities = self.capabilities;
        let bulk = Packet::from(BulkPacket { status: Status::Success, ..bulk });
        if payload.len() <= LONG_BYTES {
            return link::put(&mut self.queued, bulk, header.id, payload, capabilities);
        }
        link::put_headers(&mut self.queued, bulk, header.id, payload.len(), capabilities)?;
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&self.queued)?;
        stream.write_all(payload)?;
        self.queued.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(&self.queued)?;
        self.queued.clear();
        Ok(())
    }
}
