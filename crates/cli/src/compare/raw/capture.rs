//! The runs of a comparison as one capture: each drive of each run is a separate device, the runs one after the other.
//!
//! BOT is on bus 1, UAS on bus 2; addresses count on from drive to drive and from run to run, since packets have no bus number. A world
//! begins when the one before has ended, a millisecond later. Left out: hubs, which move no commands.

use crate::args::CaptureKind;
use crate::failure::Failure;
use crate::output_file;
use bus::{TransferId, TransferStatus};
use capture::{
    Control, Crossed, DeviceAddress, Pcapng, Said, Transactions, Transfer, TransferEnd, Transfers, WriteError,
};
use device::Verdict;
use sim::link::bulk::Message;
use sim::link::streams::StreamField;
use sim::link::superspeed::Side;
use sim::link::usb2::{Handshake, HostRequest, Packet, Sent, Toggle};
use sim::machine::{ControlExchange, HostTransfer, Observer};
use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::rc::Rc;
use study::ceiling::Protocol;
use units::{Duration, Instant};
use wire::usb::{PacketId, StandardRequest};

/// Devices of one capture, by all runs: there are no more addresses.
pub(in crate::compare) const DEVICES_MAX: usize = 127;

/// A capture that is being written.
pub(in crate::compare) struct Capture {
    file: Rc<RefCell<Output>>,
    kind: CaptureKind,
    snap: u32,
    devices: u8,
}

/// A run that is to be looked on at.
pub(in crate::compare) struct ObservedRun<'a> {
    pub(in crate::compare) protocol: Protocol,
    /// A short name.
    pub(in crate::compare) name: &'a str,
    /// Its description, in one line.
    pub(in crate::compare) what: &'a str,
    pub(in crate::compare) drives: u8,
}

/// The output file that all runs share.
struct Output {
    out: Pcapng<BufWriter<File>>,
    file: String,
    /// The replacement that takes that name when the file is complete.
    replacement: Option<output_file::Replacement>,
    /// The first thing that went wrong; nothing is written after it.
    error: Option<WriteError>,
    /// When the latest record was.
    latest: Instant,
}

/// Looks on at one run.
struct Recorder {
    file: Rc<RefCell<Output>>,
    form: Form,
    /// The zero of this world in the file.
    begins: Duration,
    controls: u64,
    /// Whether the packets of USB 2.0 belong to a control transfer, which is recorded whole.
    is_control: bool,
}

enum Form {
    Transfers(Transfers),
    Packets(Transactions),
}

impl Capture {
    pub(in crate::compare) fn create(path: &Path, kind: CaptureKind, snap: u32) -> Result<Self, Failure> {
        let application = concat!("uaskit ", env!("CARGO_PKG_VERSION"));
        output_file::check_replaceable(path, output_file::Kind::Capture)?;
        let file = crate::sanitize::shown(path);
        let failed = |cause| failure(WriteError { file: file.clone(), cause });
        let (replacement, out) = output_file::Replacement::create(path).map_err(failed)?;
        let out = Pcapng::new(BufWriter::new(out), file.clone(), application).map_err(failure)?;
        let output = Output { out, file, replacement: Some(replacement), error: None, latest: Instant::ZERO };
        Ok(Self { file: Rc::new(RefCell::new(output)), kind, snap, devices: 0 })
    }

    /// Returns the observers of the next run, one for each drive.
    pub(in crate::compare) fn next_run(
        &mut self,
        run: &ObservedRun<'_>,
    ) -> Result<Vec<Box<dyn Observer>>, Failure> {
        let is_first = self.devices == 0;
        let latest = self.file.borrow().latest;
        let begins = if is_first { Duration::ZERO } else { latest - Instant::ZERO + BETWEEN_RUNS };
        let mut all: Vec<Box<dyn Observer>> = Vec::new();
        for number in 1..=run.drives {
            let whose = if run.drives > 1 { format!(", drive {number}") } else { String::new() };
            all.push(Box::new(self.next_drive(run, &whose, begins)?));
        }
        Ok(all)
    }

    fn next_drive(
        &mut self,
        run: &ObservedRun<'_>,
        whose: &str,
        begins: Duration,
    ) -> Result<Recorder, Failure> {
        self.devices += 1;
        let bus = match run.protocol {
            Protocol::Bot => 1,
            Protocol::Uas => 2,
        };
        let place = DeviceAddress { bus, device: self.devices };
        let (name, what) = (format!("{}{whose}", run.name), format!("{}{whose}, simulated", run.what));
        let out = &mut self.file.borrow_mut().out;
        let form = match self.kind {
            CaptureKind::Transfers => {
                Transfers::new(out, &name, &what, place, self.snap).map(Form::Transfers)
            }
            CaptureKind::Packets => Transactions::new(out, &name, &what, place).map(Form::Packets),
        };
        let (file, form) = (Rc::clone(&self.file), form.map_err(failure)?);
        Ok(Recorder { file, form, begins, controls: 0, is_control: false })
    }

    /// Ends the capture: how many records it has.
    pub(in crate::compare) fn finish(self) -> Result<u64, Failure> {
        let mut output = self.file.borrow_mut();
        let Output { out, file, replacement, error, .. } = &mut *output;
        let whole = match error.take() {
            Some(error) => Err(error),
            None => out.flush().and_then(|()| match replacement.take() {
                Some(replacement) => {
                    replacement.commit().map_err(|cause| WriteError { file: file.clone(), cause })
                }
                None => Ok(()),
            }),
        };
        whole.map(|()| out.records()).map_err(failure)
    }
}

impl Recorder {
    /// Writes, unless something went wrong before.
    fn write(
        &mut self,
        at: Instant,
        write: impl FnOnce(&mut Form, &mut Pcapng<BufWriter<File>>, Instant) -> Result<(), WriteError>,
    ) {
        let mut output = self.file.borrow_mut();
        let Output { out, error, latest, .. } = &mut *output;
        if error.is_none() {
            let at = at + self.begins;
            *latest = at.max(*latest);
            *error = write(&mut self.form, out, at).err();
        }
    }
}

/// A transaction that is incomplete at the end of the run is recorded as far as it got.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.write(Instant::ZERO, |form, out, _| match form {
            Form::Transfers(_) => Ok(()),
            Form::Packets(packets) => packets.flush(out),
        });
    }
}

impl Observer for Recorder {
    fn control(&mut self, at: Instant, exchange: &ControlExchange) {
        // An xHCI controller gives addresses itself, so that no host sees a transfer for it.
        if exchange.setup.standard() == Some(StandardRequest::SetAddress) {
            return;
        }
        self.controls += 1;
        // From the other end than a transport's own numbers.
        let id = TransferId(u64::MAX - self.controls);
        let (bytes, status) = match &exchange.answer {
            Verdict::Data(bytes) => (&bytes[..], TransferStatus::Done),
            Verdict::Done => (&[][..], TransferStatus::Done),
            Verdict::Stall => (&[][..], TransferStatus::Stall),
        };
        let control = Control { id, setup: exchange.setup, bytes, status };
        self.write(at, |form, out, at| match form {
            Form::Transfers(transfers) => transfers.control(out, at, &control),
            Form::Packets(packets) => packets.control(out, at, &control),
        });
    }

    fn submitted(&mut self, at: Instant, transfer: &HostTransfer, bytes: &[u8]) {
        let transfer = shown(transfer);
        self.write(at, |form, out, at| match form {
            Form::Transfers(transfers) => transfers.submitted(out, at, &transfer, bytes),
            Form::Packets(packets) => {
                packets.submitted(&transfer);
                Ok(())
            }
        });
    }

    fn completed(
        &mut self,
        at: Instant,
        transfer: &HostTransfer,
        status: TransferStatus,
        actual: u32,
        bytes: &[u8],
    ) {
        let transfer = shown(transfer);
        self.write(at, |form, out, at| match form {
            Form::Transfers(transfers) => {
                transfers.completed(out, at, &transfer, TransferEnd { status, actual }, bytes)
            }
            Form::Packets(packets) => packets.completed(out, at, transfer.id),
        });
    }

    fn arrived(&mut self, at: Instant, _: Side, message: &Message, bytes: &[u8]) {
        let Some(said) = said(message, bytes) else { return };
        self.write(at, |form, out, at| match form {
            Form::Transfers(_) => Ok(()),
            Form::Packets(packets) => packets.arrived(out, at, said),
        });
    }

    fn crossed(&mut self, sent: &Sent, bytes: &[u8]) {
        if let Packet::Token(ask) = sent.packet {
            self.is_control = ask.endpoint().number() == 0;
        }
        if self.is_control {
            return;
        }
        let Some(packet) = crossed(&sent.packet, bytes) else { return };
        self.write(sent.begins, |form, out, at| match form {
            Form::Transfers(_) => Ok(()),
            Form::Packets(packets) => packets.crossed(out, at, packet),
        });
    }
}

/// A packet of USB 2.0 on the bus of the drive, where there are no split transactions.
const fn crossed<'a>(packet: &Packet, payload: &'a [u8]) -> Option<Crossed<'a>> {
    Some(match packet {
        Packet::Split(_) => return None,
        Packet::Token(ask) => {
            let id = match ask {
                HostRequest::In(_) => PacketId::In,
                HostRequest::Out(..) => PacketId::Out,
                HostRequest::Ping(_) => PacketId::Ping,
                HostRequest::Setup(_) => PacketId::Setup,
            };
            Crossed::Token(id, ask.endpoint())
        }
        Packet::Data(Toggle::Data0, _) => Crossed::Data(PacketId::Data0, payload),
        Packet::Data(Toggle::Data1, _) => Crossed::Data(PacketId::Data1, payload),
        Packet::Handshake(handshake) => Crossed::Handshake(match handshake {
            Handshake::Ack => PacketId::Ack,
            Handshake::Nak => PacketId::Nak,
            Handshake::Nyet => PacketId::Nyet,
            Handshake::Stall => PacketId::Stall,
        }),
    })
}

fn shown(transfer: &HostTransfer) -> Transfer {
    let HostTransfer { id, pipe, length, .. } = *transfer;
    Transfer { id, pipe, length }
}

/// The bytes of a packet, if it is recorded.
fn said<'a>(message: &Message, payload: &'a [u8]) -> Option<Said<'a>> {
    let (endpoint, stream) = (message.endpoint(), message.stream().map(field));
    match message {
        // Control transfers are recorded whole.
        _ if endpoint.number() == 0 => None,
        Message::Data { sequence, piece: Some(_), .. } => {
            Some(Said::Data { endpoint, stream, sequence: sequence.number(), payload })
        }
        Message::Ack { expects, packets, .. } => {
            Some(Said::Ack { endpoint, expects: expects.number(), packets: *packets })
        }
        Message::Nrdy { .. } => Some(Said::NotReady { endpoint, stream }),
        // Prime and NoStream to an OUT endpoint are data packets without data; they move nothing.
        _ => None,
    }
}

/// A stream field as it is on the wire (USB 3.2 table 8-24).
const fn field(stream: StreamField) -> u16 {
    match stream {
        StreamField::Prime => 0xfffe,
        StreamField::NoStream => 0xffff,
        StreamField::Stream(stream) => stream.get(),
    }
}

fn failure(error: WriteError) -> Failure {
    Failure::new(error.to_string())
}

const BETWEEN_RUNS: Duration = Duration::from_ms(1);
