//! Prints the SCSI commands of a capture, and what went wrong: `decode_pcap FILE`. FILE is pcap or pcapng of usbmon, USBPcap or
//! QEMU. Without FILE it decodes a capture that it writes to memory: INQUIRY and a READ(10) that returns half of its data.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use uaskit_bus::{Direction, Pipe, TransferId, TransferStatus};
use uaskit_capture::{DeviceAddress, Item, Pcapng, Reader, Transfer, TransferEnd, Transfers};
use uaskit_decode::Decoder;
use uaskit_units::{Duration, Instant};
use uaskit_wire::bot::{Cbw, Csw, CswStatus};
use uaskit_wire::scsi::cdb;
use uaskit_wire::usb::EndpointAddress;

fn main() -> Result<(), Box<dyn Error>> {
    let (name, input): (_, Box<dyn Read>) = match std::env::args().nth(1) {
        Some(path) => {
            let file = File::open(&path).map_err(|error| format!("cannot open {path}: {error}"))?;
            (path, Box::new(BufReader::new(file)))
        }
        None => ("capture in memory".into(), Box::new(Cursor::new(written()?))),
    };
    let mut reader = Reader::new(input, name)?;
    let mut decoder = Decoder::new();
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Packet(packet) => decoder.take(&packet),
            Item::Section => decoder.begin_section(),
            Item::Damage(_) | Item::Dropped(_) => decoder.miss(),
        }
        print_commands(&mut decoder);
    }
    decoder.finish();
    print_commands(&mut decoder);
    for verdict in decoder.verdicts() {
        let (fault, side) = (verdict.fault.name(), verdict.fault.side());
        println!("{}: {fault}, caused by {side:?}, packets {:?}", verdict.address, verdict.packets);
    }
    Ok(())
}

fn print_commands(decoder: &mut Decoder) {
    while let Some(command) = decoder.poll() {
        let (address, transport) = (command.address, command.transport);
        println!("{address} {transport} {}: {} bytes, {}", command.block, command.moved, command.outcome);
    }
}

/// A capture as usbmon writes it.
fn written() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = Writer::new()?;
    let inquiry = cdb::Inquiry { allocation_len: 36, ..cdb::Inquiry::default() }.encode();
    writer.command(&inquiry, 36, &[0; 36], Csw { tag: 1, residue: 0, status: CswStatus::Passed })?;
    let read = cdb::Read { lba: 2048, blocks: 2, ..cdb::Read::default() }.encode();
    writer.command(&read, 1024, &[0; 512], Csw { tag: 2, residue: 0, status: CswStatus::Passed })?;
    Ok(writer.capture.finish()?)
}

/// Writes Bulk-Only Transport of device 5 on bus 2.
struct Writer {
    capture: Pcapng<Vec<u8>>,
    device: Transfers,
    transfers: u64,
}

impl Writer {
    fn new() -> Result<Self, Box<dyn Error>> {
        let mut capture = Pcapng::new(Vec::new(), "memory".into(), "decode_pcap")?;
        let place = DeviceAddress { bus: 2, device: 5 };
        let device = Transfers::new(&mut capture, "usbmon2", "an example", place, u32::MAX)?;
        Ok(Self { capture, device, transfers: 0 })
    }

    /// A command that requests `length` bytes and gets `data`.
    fn command(&mut self, cdb: &[u8], length: u32, data: &[u8], csw: Csw) -> Result<(), Box<dyn Error>> {
        let cbw = Cbw::new(csw.tag, length, Direction::In, 0, cdb).encode();
        self.transfer(EndpointAddress::at::<2>(Direction::Out), 31, &cbw)?;
        self.transfer(EndpointAddress::at::<1>(Direction::In), length, data)?;
        self.transfer(EndpointAddress::at::<1>(Direction::In), 13, &csw.encode())
    }

    fn transfer(&mut self, at: EndpointAddress, length: u32, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
        let time = |count: u64| Instant::ZERO + Duration::from_us(100 * count);
        let transfer = Transfer { id: TransferId(self.transfers), pipe: Pipe::plain(at), length };
        let (sent, received) = match at.direction() {
            Direction::Out => (bytes, &[][..]),
            Direction::In => (&[][..], bytes),
        };
        let ended = TransferEnd { status: TransferStatus::Done, actual: bytes.len() as u32 };
        self.device.submitted(&mut self.capture, time(2 * self.transfers), &transfer, sent)?;
        self.device.completed(&mut self.capture, time(2 * self.transfers + 1), &transfer, ended, received)?;
        self.transfers += 1;
        Ok(())
    }
}
