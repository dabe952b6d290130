//! Transfers that are queued when the endpoints get another meaning: each is cancelled once, and none meets a later command.

use super::*;
use bus::Speed;
use testkit::drive::drive_of;

/// Requests of the host that give its endpoints another meaning, and leave UAS selected.
const RESELECTIONS: [&[SetupPacket]; 4] = [
    &[set_interface(0), set_interface(1)],
    &[set_interface(1)],
    &[set_configuration(1), set_interface(1)],
    &[set_configuration(0), set_configuration(1), set_interface(1)],
];

const fn set(recipient: Recipient, request: u8, value: u16) -> SetupPacket {
    let (direction, kind) = (Direction::Out, RequestKind::Standard);
    SetupPacket { direction, kind, recipient, request, value, index: 0, length: 0 }
}

const fn set_configuration(value: u16) -> SetupPacket {
    set(Recipient::Device, 9, value)
}

const fn set_interface(alternate: u16) -> SetupPacket {
    set(Recipient::Interface, 11, alternate)
}

#[track_caller]
fn carry_out(drive: &mut Drive, setups: &[SetupPacket]) {
    for setup in setups {
        assert_eq!(drive.control(*setup, &[]), Verdict::Done, "{setup}");
    }
}

fn submit(drive: &mut Drive, id: u64, pipe: Pipe, bytes: &[u8]) {
    let length = bytes.len() as u32;
    drive
        .submit(HostTransfer { id, pipe, length, payload: bytes.to_vec() })
        .expect("fewer transfers than the limit");
}

fn receive(drive: &mut Drive, id: u64, pipe: Pipe, length: u32) {
    drive
        .submit(HostTransfer { id, pipe, length, payload: Vec::new() })
        .expect("fewer transfers than the limit");
}

/// Ids and statuses of the transfers that have ended, in order.
fn ended(drive: &mut Drive) -> Vec<(u64, TransferStatus)> {
    drive.run_once();
    std::iter::from_fn(|| drive.poll()).map(|completion| (completion.id, completion.status)).collect()
}

fn at_speed(speed: Speed) -> Drive {
    let medium = RamMedium::new(ByteCount(BLOCKS * 512), BlockSize::B512).expect("the size is small");
    drive_of(Box::new(medium), |_| {}, |device| device.speed = speed)
}

#[test]
fn data_out_from_before_a_reselection_is_not_written() {
    for setups in RESELECTIONS {
        let mut drive = drive();
        submit(&mut drive, 901, on(DATA_OUT, 5), &[0xee; 512]);
        carry_out(&mut drive, setups);
        assert_eq!(ended(&mut drive), [(901, TransferStatus::Cancelled)]);
        assert_eq!((drive.outstanding(), drive.payload_bytes()), (0, 0));
        assert!(!drive.cancel(901), "it has ended");
        let (status, _) = run(&mut drive, 5, &write_10(7, 1), Some(Data::Out(&[0xaa; 512])));
        assert_eq!(SenseIu::decode(&status).unwrap().status, wire::scsi::Status::Good);
        let (_, read) = run(&mut drive, 6, &read_10(7, 1), Some(Data::In(512)));
        assert_eq!(read, [0xaa; 512]);
    }
}

#[test]
fn a_status_transfer_from_before_a_reselection_gets_no_later_status() {
    for setups in RESELECTIONS {
        let mut drive = drive();
        receive(&mut drive, 901, on(STATUS, 5), 112);
        receive(&mut drive, 902, on(DATA_IN, 5), 512);
        carry_out(&mut drive, setups);
        assert_eq!(ended(&mut drive), [902, 901].map(|id| (id, TransferStatus::Cancelled)));
        let (status, read) = run(&mut drive, 5, &read_10(7, 1), Some(Data::In(512)));
        assert_eq!((status[3], read.len()), (5, 512));
    }
}

#[test]
fn commands_in_flight_end_with_their_transfers() {
    let mut drive = drive();
    // The data of a WRITE do not come.
    queue(&mut drive, 5, &write_10(7, 1), None);
    carry_out(&mut drive, &[set_interface(1)]);
    assert_eq!(ended(&mut drive), [(22, TransferStatus::Done), (20, TransferStatus::Cancelled)]);
    assert!(drive.device().is_idle());
}

#[test]
fn at_high_speed_old_data_do_not_become_a_cbw_nor_an_old_buffer_a_csw() {
    let mut drive = at_speed(Speed::High);
    carry_out(&mut drive, &[set(Recipient::Device, 5, 1), set_configuration(1), set_interface(1)]);
    let (data_in, data_out) = (Pipe::plain(DATA_IN), Pipe::plain(DATA_OUT));
    // What looks like a CBW of TEST UNIT READY is data on the UAS data-out pipe.
    let mut cbw = b"USBC\x01\0\0\0\0\0\0\0\0\0\x06".to_vec();
    cbw.resize(31, 0);
    submit(&mut drive, 901, data_out, &cbw);
    receive(&mut drive, 902, data_in, 512);
    receive(&mut drive, 903, Pipe::plain(STATUS), 112);
    carry_out(&mut drive, &[set_interface(0)]);
    assert_eq!(ended(&mut drive), [901, 902, 903].map(|id| (id, TransferStatus::Cancelled)));
    submit(&mut drive, 1, data_out, &cbw);
    receive(&mut drive, 2, data_in, 13);
    assert_eq!(ended(&mut drive), [(1, TransferStatus::Done), (2, TransferStatus::Done)]);
}

#[test]
fn a_setting_that_the_device_refuses_cancels_nothing() {
    let mut drive = drive();
    receive(&mut drive, 901, on(DATA_IN, 5), 512);
    assert_eq!(drive.control(set_interface(2), &[]), Verdict::Stall);
    assert_eq!(drive.control(set_configuration(2), &[]), Verdict::Stall);
    assert_eq!(ended(&mut drive), []);
    assert_eq!(drive.outstanding(), 1);
}

#[test]
fn an_endpoint_whose_streams_change_loses_its_transfers_and_no_other_does() {
    let mut drive = drive();
    submit(&mut drive, 901, on(DATA_OUT, 5), &[0xee; 512]);
    receive(&mut drive, 902, on(DATA_IN, 5), 512);
    drive.cancel_at(DATA_OUT);
    assert_eq!(ended(&mut drive), [(901, TransferStatus::Cancelled)]);
    assert_eq!(drive.outstanding(), 1);
}

#[test]
fn a_bus_reset_ends_each_transfer_once() {
    let mut drive = drive();
    submit(&mut drive, 901, on(DATA_OUT, 5), &[0xee; 512]);
    drive.bus_reset();
    assert_eq!(ended(&mut drive), [(901, TransferStatus::Disconnected)]);
    assert_eq!((drive.outstanding(), drive.payload_bytes()), (0, 0));
}
