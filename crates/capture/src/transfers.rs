//! Transfers of a device as in Linux's usbmon: one record when a transfer is submitted, one when it ends.
//!
//! Bytes to the device are in the first, bytes from it in the second. What usbmon has no field for, the stream, is the comment:
//! `stream 7` (docs/CAPTURE.md). Status is an error number as the kernel would give it.

use crate::pcapng::{Interface, InterfaceId, LinkType, Pcapng, Record};
use crate::{DeviceAddress, WriteError};
use bus::{Direction, Pipe, TransferId, TransferStatus};
use std::io::Write;
use units::Instant;
use wire::usb::{EndpointAddress, SetupPacket};
use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind, UsbmonPayload};

/// The transfers of one device, in a file.
#[derive(Clone, Copy, Debug)]
pub struct Transfers {
    interface: InterfaceId,
    place: DeviceAddress,
    snap: u32,
    /// All other endpoints but 0 are bulk.
    interrupt: Option<EndpointAddress>,
}

/// A bulk or interrupt transfer of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which; free again when it has ended.
    pub id: TransferId,
    /// Where.
    pub pipe: Pipe,
    /// Bytes to send, or room.
    pub length: u32,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferEnd {
    /// Its status.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
}

/// A control transfer.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    /// Which; counted together with other transfers.
    pub id: TransferId,
    /// The request.
    pub setup: SetupPacket,
    /// Its data stage, in either direction.
    pub bytes: &'a [u8],
    /// How it ended.
    pub status: TransferStatus,
}

impl Transfers {
    /// Adds an interface for a device. Of each transfer the first `snap` bytes are saved.
    ///
    /// # Errors
    /// As [`Pcapng::add_interface`].
    pub fn new<W: Write>(
        out: &mut Pcapng<W>,
        name: &str,
        description: &str,
        place: DeviceAddress,
        snap: u32,
    ) -> Result<Self, WriteError> {
        let interface = out.add_interface(&Interface { link_type: LinkType::Usbmon, name, description })?;
        Ok(Self { interface, place, snap, interrupt: None })
    }

    /// Returns the same interface, with an interrupt endpoint.
    #[must_use]
    pub const fn with_interrupt(self, endpoint: Option<EndpointAddress>) -> Self {
        Self { interrupt: endpoint, ..self }
    }

    /// Returns the same interface for another device of its bus.
    #[must_use]
    pub const fn of_device(&self, device: u8) -> Self {
        Self { place: DeviceAddress { device, ..self.place }, ..*self }
    }

    /// A transfer begins. `bytes` go to the device: none on an endpoint that comes from it.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn submitted<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        transfer: &Transfer,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let Transfer { id, pipe, length } = *transfer;
        let (endpoint, kind) = (pipe.endpoint, self.kind(pipe));
        let event = Event { id, endpoint, kind, setup: None, length, bytes };
        self.write_begin(out, at, &event, &comment(pipe))
    }

    /// A transfer has ended, with so many bytes moved; `bytes` came from the device.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn completed<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        transfer: &Transfer,
        end: TransferEnd,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let (Transfer { id, pipe, .. }, TransferEnd { status, actual }) = (*transfer, end);
        let (endpoint, kind) = (pipe.endpoint, self.kind(pipe));
        let event = Event { id, endpoint, kind, setup: None, length: actual, bytes };
        self.write_end(out, at, &event, error_number(status), &comment(pipe))
    }

    /// A control transfer, whole.
    ///
    /// # Errors
    /// As [`Pcapng::add`].
    pub fn control<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        control: &Control<'_>,
    ) -> Result<(), WriteError> {
        let Control { id, setup, bytes, status } = *control;
        let endpoint = EndpointAddress::at::<0>(Direction::Out);
        // usbmon calls endpoint 0 by the direction of the data stage; without one it goes to the device.
        let endpoint = match setup.direction {
            Direction::In if setup.length > 0 => EndpointAddress::at::<0>(Direction::In),
            _ => endpoint,
        };
        let (length, kind) = (setup.length.into(), UsbmonKind::Control);
        let event = Event { id, endpoint, kind, setup: Some(setup.encode()), length, bytes };
        self.write_begin(out, at, &event, "")?;
        let moved = bytes.len() as u32;
        let event = Event { setup: None, length: moved, ..event };
        self.write_end(out, at, &event, error_number(status), "")
    }

    fn kind(&self, pipe: Pipe) -> UsbmonKind {
        if self.interrupt == Some(pipe.endpoint) { UsbmonKind::Interrupt } else { UsbmonKind::Bulk }
    }

    fn write_begin<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        event: &Event<'_>,
        comment: &str,
    ) -> Result<(), WriteError> {
        let (bytes, payload) = match event.endpoint.direction() {
            Direction::Out => (event.bytes, UsbmonPayload::Present),
            Direction::In => (&[][..], UsbmonPayload::Later),
        };
        let event = Event { bytes, ..*event };
        let header = self.header(at, UsbmonEvent::Submit, payload, &event);
        let header = UsbmonHeader { status: UsbmonHeader::IN_PROGRESS, ..header };
        self.add(out, at, header, &event, comment)
    }

    fn write_end<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        event: &Event<'_>,
        status: i32,
        comment: &str,
    ) -> Result<(), WriteError> {
        let (bytes, payload) = match event.endpoint.direction() {
            Direction::Out => (&[][..], UsbmonPayload::Before),
            Direction::In => (event.bytes, UsbmonPayload::Present),
        };
        let event = Event { bytes, ..*event };
        let header = self.header(at, UsbmonEvent::Complete, payload, &event);
        self.add(out, at, UsbmonHeader { status, ..header }, &event, comment)
    }

    fn header(
        &self,
        at: Instant,
        event: UsbmonEvent,
        payload: UsbmonPayload,
        of: &Event<'_>,
    ) -> UsbmonHeader {
        let us = at.as_ps() / PS_PER_US;
        let is_in = of.endpoint.direction() == Direction::In;
        UsbmonHeader {
            id: of.id.0,
            event,
            kind: of.kind,
            endpoint: of.endpoint,
            device: self.place.device,
            bus: self.place.bus,
            setup: of.setup,
            payload,
            seconds: (us / US_PER_S) as i64,
            microseconds: (us % US_PER_S) as i32,
            status: 0,
            length: of.length,
            captured: (of.bytes.len() as u32).min(self.snap),
            interval: 0,
            start_frame: 0,
            flags: if is_in { UsbmonHeader::TO_HOST } else { 0 },
            descriptors: 0,
        }
    }

    fn add<W: Write>(
        &self,
        out: &mut Pcapng<W>,
        at: Instant,
        header: UsbmonHeader,
        event: &Event<'_>,
        comment: &str,
    ) -> Result<(), WriteError> {
        let body = &event.bytes[..header.captured as usize];
        // The caller may have cut them before.
        let whole = if event.bytes.is_empty() { 0 } else { event.length as usize };
        let cut = (whole.max(event.bytes.len()) - body.len()) as u32;
        out.add(self.interface, &Record { at, head: &header.encode(), body, cut, comments: &[comment] })
    }
}

/// One end of a transfer.
#[derive(Clone, Copy)]
struct Event<'a> {
    id: TransferId,
    endpoint: EndpointAddress,
    kind: UsbmonKind,
    setup: Option<[u8; 8]>,
    length: u32,
    bytes: &'a [u8],
}

/// `stream 7`, or nothing.
fn comment(pipe: Pipe) -> String {
    pipe.stream.map_or_else(String::new, |stream| format!("stream {}", stream.get()))
}

/// The error that Linux's xHCI driver gives a transfer (include/uapi/asm-generic/errno.h).
const fn error_number(status: TransferStatus) -> i32 {
    match status {
        TransferStatus::Done | TransferStatus::Short => 0,
        // EPIPE
        TransferStatus::Stall => -32,
        // ENOENT
        TransferStatus::Cancelled => -2,
        // EOVERFLOW
        TransferStatus::Babble => -75,
        // ESHUTDOWN
        TransferStatus::Disconnected => -108,
        // EPROTO
        TransferStatus::Error => -71,
    }
}

const PS_PER_US: u64 = 1_000_000;
const US_PER_S: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use bus::StreamId;

    const IN_1: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
    const OUT_2: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

    /// Returns the records that `write_into` wrote: for each its header, the bytes after it, how many there were, and
    /// its comment.
    fn written(
        snap: u32,
        write_into: impl Fn(&Transfers, &mut Pcapng<Vec<u8>>),
    ) -> Vec<(UsbmonHeader, Vec<u8>, u32, String)> {
        let mut out = Pcapng::new(Vec::new(), "memory".into(), "").unwrap();
        let transfers = Transfers::new(&mut out, "", "", DeviceAddress { bus: 2, device: 5 }, snap).unwrap();
        write_into(&transfers, &mut out);
        let file = out.finish().unwrap();
        let mut rest = &file[..];
        let mut records = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (block, after) = rest.split_at(word(4) as usize);
            if word(0) == 6 {
                let (captured, length) = (word(20) as usize, word(24));
                let options = &block[28 + captured.next_multiple_of(4)..block.len() - 4];
                let comment = options.get(..4).map_or(String::new(), |head| {
                    assert_eq!(head[..2], [1, 0]);
                    String::from_utf8(options[4..4 + usize::from(head[2])].to_vec()).unwrap()
                });
                let header = UsbmonHeader::decode(&block[28..]).unwrap();
                records.push((header, block[28 + 64..28 + captured].to_vec(), length, comment));
            }
            rest = after;
        }
        records
    }

    #[test]
    fn an_interrupt_endpoint_is_not_bulk() {
        let device = DeviceAddress { bus: 2, device: 5 };
        let mut out = Pcapng::new(Vec::new(), "memory".into(), "test").unwrap();
        let transfers = Transfers::new(&mut out, "", "", device, u32::MAX).unwrap();
        assert_eq!(transfers.kind(Pipe::plain(IN_1)), UsbmonKind::Bulk);
        let transfers = transfers.with_interrupt(Some(IN_1));
        assert_eq!(transfers.kind(Pipe::plain(IN_1)), UsbmonKind::Interrupt);
        assert_eq!(transfers.kind(Pipe::plain(OUT_2)), UsbmonKind::Bulk);
    }

    #[test]
    fn a_read_has_two_records_and_its_bytes_come_with_the_end() {
        let pipe = Pipe { endpoint: IN_1, stream: StreamId::new(7) };
        let transfer = Transfer { id: TransferId(9), pipe, length: 4 };
        let records = written(100, |transfers, out| {
            transfers.submitted(out, Instant::from_ps(1_500_000), &transfer, &[]).unwrap();
            let end = Instant::from_ps(3_000_002_000_000);
            transfers
                .completed(
                    out,
                    end,
                    &transfer,
                    TransferEnd { status: TransferStatus::Short, actual: 3 },
                    &[1, 2, 3],
                )
                .unwrap();
        });
        let [(submit, none, _, submit_comment), (complete, bytes, _, comment)] = &records[..] else {
            panic!()
        };
        assert_eq!(submit.to_string(), "submit bulk 1 IN of 2.5: 4 bytes, status -115");
        assert_eq!((submit.id, submit.payload, submit.captured), (9, UsbmonPayload::Later, 0));
        assert_eq!((submit.seconds, submit.microseconds), (0, 1));
        assert_eq!(none, &[0; 0]);
        assert_eq!(complete.to_string(), "complete bulk 1 IN of 2.5: 3 bytes, status 0");
        assert_eq!((complete.payload, complete.captured), (UsbmonPayload::Present, 3));
        assert_eq!((complete.seconds, complete.microseconds), (3, 2));
        assert_eq!(bytes, &[1, 2, 3]);
        assert_eq!([submit_comment, comment], ["stream 7"; 2]);
    }

    #[test]
    fn a_write_has_two_records_and_its_bytes_go_with_the_beginning() {
        let transfer = Transfer { id: TransferId(9), pipe: Pipe::plain(OUT_2), length: 3 };
        let records = written(2, |transfers, out| {
            transfers.submitted(out, Instant::ZERO, &transfer, &[1, 2, 3]).unwrap();
            transfers
                .completed(
                    out,
                    Instant::ZERO,
                    &transfer,
                    TransferEnd { status: TransferStatus::Done, actual: 3 },
                    &[],
                )
                .unwrap();
        });
        let [(submit, bytes, length, comment), (complete, none, _, _)] = &records[..] else { panic!() };
        assert_eq!((submit.length, submit.captured, submit.flags), (3, 2, 0));
        assert_eq!((bytes, *length), (&vec![1, 2], 64 + 3), "cut, and the cut is written");
        assert_eq!((complete.payload, complete.length, complete.captured), (UsbmonPayload::Before, 3, 0));
        assert!(none.is_empty() && comment.is_empty());
    }

    #[test]
    fn a_control_transfer_has_its_setup_packet_in_the_beginning() {
        let bytes = [0x80, 0x06, 0x00, 0x01, 0x00, 0x00, 0x12, 0x00];
        let setup = SetupPacket::decode(&bytes).unwrap();
        let control = Control { id: TransferId(1), setup, bytes: &[18, 1], status: TransferStatus::Done };
        let records = written(100, |transfers, out| transfers.control(out, Instant::ZERO, &control).unwrap());
        let [(submit, ..), (complete, answer, ..)] = &records[..] else { panic!() };
        assert_eq!(submit.to_string(), "submit control 0 IN of 2.5: 18 bytes, status -115");
        assert_eq!((submit.setup, complete.setup), (Some(bytes), None));
        assert_eq!((complete.length, &answer[..]), (2, &[18, 1][..]));
    }

    #[test]
    fn errors_are_linux_s() {
        let transfer = Transfer { id: TransferId(9), pipe: Pipe::plain(OUT_2), length: 3 };
        for (status, number) in [
            (TransferStatus::Done, 0),
            (TransferStatus::Short, 0),
            (TransferStatus::Stall, -32),
            (TransferStatus::Cancelled, -2),
            (TransferStatus::Babble, -75),
            (TransferStatus::Disconnected, -108),
            (TransferStatus::Error, -71),
        ] {
            let end = TransferEnd { status, actual: 0 };
            let records = written(0, |transfers, out| {
                transfers.completed(out, Instant::ZERO, &transfer, end, &[]).unwrap();
            });
            assert_eq!(records[0].0.status, number, "{status:?}");
        }
    }
}
