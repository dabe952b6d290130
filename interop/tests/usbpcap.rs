//! A capture as USBPcap of Windows writes it: `uaskit decode` finds in it what tshark finds.
//!
//! Written here byte by byte, after USBPcap's "Capture format" (link type 249), since there is no Windows to take one from: what a
//! real driver stack may do besides is not seen. It is a drive on BOT that is configured, asked who it is, fails once and says why,
//! and is written and read.

use std::fs;

use uaskit_interop::{Error, Result, scratch::Scratch, tools::capture};

/// USBD_STATUS_SUCCESS, and USBD_STATUS_STALL_PID.
const SUCCESS: u32 = 0;
const STALL: u32 = 0xc000_0004;

/// Transfer types of the header.
const CONTROL: u8 = 2;
const BULK: u8 = 3;

const BULK_OUT: u8 = 0x02;
const BULK_IN: u8 = 0x81;

/// A pcap file, little-endian, in microseconds.
struct File {
    bytes: Vec<u8>,
    packets: u32,
    irp: u64,
}

impl File {
    fn new() -> Self {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(65_535_u32.to_le_bytes());
        bytes.extend(249_u32.to_le_bytes());
        Self { bytes, packets: 0, irp: 0xffff_8000_1234_0000 }
    }

    /// A packet: on its way up or down, with what comes between header and data.
    fn packet(
        &mut self,
        (is_up, status): (bool, u32),
        (endpoint, kind): (u8, u8),
        stage: &[u8],
        data: &[u8],
    ) {
        let header_len = 27 + stage.len() as u16;
        let mut packet = header_len.to_le_bytes().to_vec();
        packet.extend(self.irp.to_le_bytes());
        packet.extend(status.to_le_bytes());
        // URB_FUNCTION_CONTROL_TRANSFER, URB_FUNCTION_BULK_OR_INTERRUPT_TRANSFER.
        packet.extend([if kind == CONTROL { 8 } else { 9 }, 0, u8::from(is_up)]);
        // Bus 1, device 5.
        packet.extend([1, 0, 5, 0, endpoint, kind]);
        packet.extend((data.len() as u32).to_le_bytes());
        packet.extend(stage);
        packet.extend(data);
        self.packets += 1;
        let length = (packet.len() as u32).to_le_bytes();
        self.bytes.extend(1_700_000_000_u32.to_le_bytes());
        self.bytes.extend((self.packets * 100).to_le_bytes());
        self.bytes.extend(length);
        self.bytes.extend(length);
        self.bytes.extend(packet);
    }

    /// A control transfer: SETUP down, COMPLETE up.
    fn control(&mut self, setup: [u8; 8], answer: &[u8]) {
        self.irp += 0x40;
        let endpoint = setup[0] & 0x80;
        self.packet((false, SUCCESS), (endpoint, CONTROL), &[0], &setup);
        self.packet((true, SUCCESS), (endpoint, CONTROL), &[3], answer);
    }

    fn out(&mut self, data: &[u8]) {
        self.irp += 0x40;
        self.packet((false, SUCCESS), (BULK_OUT, BULK), &[], data);
        self.packet((true, SUCCESS), (BULK_OUT, BULK), &[], &[]);
    }

    fn r#in(&mut self, status: u32, data: &[u8]) {
        self.irp += 0x40;
        self.packet((false, SUCCESS), (BULK_IN, BULK), &[], &[]);
        self.packet((true, status), (BULK_IN, BULK), &[], data);
    }

    /// Command wrapper, data, status wrapper.
    fn command(&mut self, tag: u8, block: &[u8], data: (bool, &[u8]), (status, residue): (u8, u8)) {
        let (is_in, data) = data;
        let mut wrapper = vec![b'U', b'S', b'B', b'C', tag, 0, 0, 0];
        wrapper.extend((data.len() as u32).to_le_bytes());
        wrapper.extend([if is_in { 0x80 } else { 0 }, 0, block.len() as u8]);
        wrapper.extend(block);
        wrapper.resize(31, 0);
        self.out(&wrapper);
        match (is_in, data.len()) {
            (_, 0) => {}
            (true, _) => self.r#in(SUCCESS, data),
            (false, _) => self.out(data),
        }
        self.r#in(SUCCESS, &[b'U', b'S', b'B', b'S', tag, 0, 0, 0, residue, 0, 0, 0, status]);
    }
}

/// Descriptors of a drive on BOT at high speed.
const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 64, 0x09, 0x12, 1, 0, 0, 1, 0, 0, 0, 1];
#[rustfmt::skip]
const CONFIGURATION: [u8; 32] = [
    9, 2, 32, 0, 1, 1, 0, 0x80, 50,
    9, 4, 0, 0, 2, 8, 6, 0x50, 0,
    7, 5, BULK_IN, 2, 0, 2, 0,
    7, 5, BULK_OUT, 2, 0, 2, 0,
];

fn drive() -> File {
    let mut file = File::new();
    file.control([0x80, 6, 0, 1, 0, 0, 18, 0], &DEVICE);
    file.control([0x80, 6, 0, 2, 0, 0, 32, 0], &CONFIGURATION);
    file.control([0, 9, 1, 0, 0, 0, 0, 0], &[]);
    let mut inquiry = [0; 36];
    inquiry[4] = 31;
    file.command(1, &[0x12, 0, 0, 0, 36, 0], (true, &inquiry), (0, 0));
    file.command(2, &[0; 6], (true, &[]), (1, 0));
    let mut sense = [0; 18];
    (sense[0], sense[2], sense[7], sense[12]) = (0x70, 6, 10, 0x29);
    file.command(3, &[3, 0, 0, 0, 18, 0], (true, &sense), (0, 0));
    for tag in 4..7 {
        file.command(tag, &[0x2a, 0, 0, 0, 0, tag, 0, 0, 8, 0], (false, &[tag; 4096]), (0, 0));
        file.command(tag + 8, &[0x28, 0, 0, 0, 0, tag, 0, 0, 8, 0], (true, &[tag; 4096]), (0, 0));
    }
    // MODE SENSE(6) of a page that there is not: the data stall, the halt is cleared, the status says failed.
    let mut wrapper =
        vec![b'U', b'S', b'B', b'C', 20, 0, 0, 0, 192, 0, 0, 0, 0x80, 0, 6, 0x1a, 0, 0x3e, 0, 192, 0];
    wrapper.resize(31, 0);
    file.out(&wrapper);
    file.r#in(STALL, &[]);
    file.control([2, 1, 0, 0, BULK_IN, 0, 0, 0], &[]);
    file.r#in(SUCCESS, &[b'U', b'S', b'B', b'S', 20, 0, 0, 0, 192, 0, 0, 0, 1]);
    file
}

#[test]
fn decode_counts_what_tshark_counts_and_sees_the_stall() -> Result<()> {
    let place = Scratch::new()?;
    let path = place.path("usbpcap.pcap");
    fs::write(&path, drive().bytes).map_err(Error::io("write the capture"))?;
    let capture = capture::written(&path)?;
    assert_eq!(capture.malformed()?, [""; 0]);
    let decoded = capture.decoded()?;
    let wrapper = "usbms.dCBWSignature == 0x43425355";
    for (opcode, count) in [(0x12, 1), (0x00, 1), (0x03, 1), (0x2a, 3), (0x28, 3), (0x1a, 1)] {
        let found = decoded.commands(|one| one["transport"] == "BOT" && one["opcode"] == opcode);
        let theirs = capture.count(&format!("{wrapper} && scsi_sbc.opcode == {opcode}"))?;
        assert_eq!((found, theirs), (count, count), "{opcode:#x}");
    }
    for (status, outcome, count) in [(0, "passed", 8), (1, "failed", 2)] {
        let theirs =
            capture.count(&format!("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == {status}"))?;
        assert_eq!((decoded.commands(|one| one["outcome"] == outcome), theirs), (count, count), "{outcome}");
    }
    assert_eq!(decoded.commands(|one| one["bytes"] == 4096), 6);
    assert_eq!(decoded.faults(), ["stall-ends-data"], "and nothing else, such as a residue that lies");
    assert_eq!(capture.count("usb.usbd_status == 0xc0000004")?, 1);
    Ok(())
}
