//! BOT hosts that ask for more data than there are: what reaches them in each of the ways to end such data.

use super::*;
use bus::Speed;
use device::bot::ShortData;
use testkit::drive::drive_of;

/// A drive whose blocks hold A5h, on BOT.
fn drive_with_short_data(speed: Speed, short_data: ShortData) -> Drive {
    let medium = RamMedium::new(ByteCount(BLOCKS * 512), BlockSize::B512).expect("the size is small");
    let change = |device: &mut device::DeviceConfig| {
        (device.speed, device.bot_short_data) = (speed, short_data);
    };
    let mut drive = drive_of(Box::new(medium), |_| {}, change);
    for [recipient, request] in [[0, 5], [0, 9]] {
        let setup =
            SetupPacket::decode(&[recipient, request, 1, 0, 0, 0, 0, 0]).expect("a valid SETUP packet");
        assert_eq!(drive.control(setup, &[]), Verdict::Done);
    }
    let (data_in, data_out) = (Pipe::plain(DATA_IN), Pipe::plain(DATA_OUT));
    send(&mut drive, data_out, &cbw(0, 0, &[0; 6]));
    assert_eq!(receive(&mut drive, data_in, 13).1[12], 1, "a unit attention comes first");
    send(&mut drive, data_out, &cbw(4096, 0, &write_10(0, 8)));
    send(&mut drive, data_out, &[0xa5; 4096]);
    assert_eq!(receive(&mut drive, data_in, 13).1[12], 0);
    drive
}

fn cbw(bytes: u32, flags: u8, cdb: &[u8]) -> Vec<u8> {
    let mut cbw = b"USBC\x01\0\0\0".to_vec();
    cbw.extend(bytes.to_le_bytes());
    cbw.extend([flags, 0, cdb.len() as u8]);
    cbw.extend(cdb);
    cbw.resize(31, 0);
    cbw
}

fn send(drive: &mut Drive, pipe: Pipe, bytes: &[u8]) {
    let length = bytes.len() as u32;
    drive
        .submit(HostTransfer { id: 1, pipe, length, payload: bytes.to_vec() })
        .expect("fewer transfers than the limit");
    drive.run_once();
    assert_eq!(drive.poll().map(|completion| completion.status), Some(TransferStatus::Done));
}

#[track_caller]
fn receive(drive: &mut Drive, pipe: Pipe, length: u32) -> (TransferStatus, Vec<u8>) {
    drive
        .submit(HostTransfer { id: 2, pipe, length, payload: Vec::new() })
        .expect("fewer transfers than the limit");
    drive.run_once();
    let completion = drive.poll().expect("the transfer has ended");
    let bytes = match completion.body {
        Body::Empty => Vec::new(),
        Body::Inline(inline) => inline.as_bytes().to_vec(),
        Body::Buffer(memory) => memory[..completion.actual as usize].to_vec(),
    };
    assert_eq!(bytes.len(), completion.actual as usize);
    (completion.status, bytes)
}

/// The residue and the status of a CSW that is there at once.
#[track_caller]
fn wrapper(drive: &mut Drive) -> (u32, u8) {
    let (status, csw) = receive(drive, Pipe::plain(DATA_IN), 13);
    assert_eq!(status, TransferStatus::Done);
    (u32::from_le_bytes([csw[8], csw[9], csw[10], csw[11]]), csw[12])
}

const SPEEDS: [Speed; 3] = [Speed::Full, Speed::High, Speed::Super];

#[test]
fn padding_is_zero_whatever_the_memory_held_before() {
    let (data_in, data_out) = (Pipe::plain(DATA_IN), Pipe::plain(DATA_OUT));
    for speed in SPEEDS {
        let mut drive = drive_with_short_data(speed, ShortData::Pad);
        for (blocks, asked) in [(1, 600), (1, 4096), (3, 4096), (8, 4097), (8, 8192)] {
            // Memory that the pool gives out next.
            drive.pool().put(vec![0xee; 8192]);
            send(&mut drive, data_out, &cbw(asked, 0x80, &read_10(0, blocks)));
            let (status, bytes) = receive(&mut drive, data_in, asked);
            let (data, zeros) = bytes.split_at(usize::from(blocks) * 512);
            assert_eq!((status, bytes.len()), (TransferStatus::Done, asked as usize), "{speed}");
            assert!(data.iter().all(|&byte| byte == 0xa5) && zeros.iter().all(|&byte| byte == 0), "{speed}");
            assert_eq!(wrapper(&mut drive), (zeros.len() as u32, 0));
        }
        // The host's transfers may end at the end of the data, and within the padding.
        send(&mut drive, data_out, &cbw(6144, 0x80, &read_10(0, 8)));
        assert_eq!(receive(&mut drive, data_in, 4096), (TransferStatus::Done, vec![0xa5; 4096]));
        assert_eq!(receive(&mut drive, data_in, 1024), (TransferStatus::Done, vec![0; 1024]));
        assert_eq!(receive(&mut drive, data_in, 1024), (TransferStatus::Done, vec![0; 1024]));
        assert_eq!(wrapper(&mut drive), (2048, 0));
        // INQUIRY in place of blocks.
        send(&mut drive, data_out, &cbw(255, 0x80, &[0x12, 0, 0, 0, 36, 0]));
        let (status, bytes) = receive(&mut drive, data_in, 255);
        assert_eq!(
            (status, &bytes[8..14], &bytes[36..]),
            (TransferStatus::Done, &b"uaskit"[..], &[0; 219][..])
        );
        assert_eq!(wrapper(&mut drive), (219, 0));
    }
}

#[test]
fn a_short_packet_alone_leaves_no_halt() {
    let (data_in, data_out) = (Pipe::plain(DATA_IN), Pipe::plain(DATA_OUT));
    for speed in SPEEDS {
        let mut drive = drive_with_short_data(speed, ShortData::ShortPacket);
        for (cdb, sent) in [(&[0x12, 0, 0, 0, 36, 0][..], 36), (&read_10(0, 2), 1024), (&[0; 6], 0)] {
            send(&mut drive, data_out, &cbw(4096, 0x80, cdb));
            let (status, bytes) = receive(&mut drive, data_in, 4096);
            assert_eq!((status, bytes.len()), (TransferStatus::Short, sent));
            assert_eq!(wrapper(&mut drive), (4096 - sent as u32, 0));
        }
    }
}
