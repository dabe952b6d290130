//! Scripts between a host and a floppy drive, in literal bytes.

use crate::host_fixture::{self, HostFixture};
use crate::{ActiveTransport, Transports, Verdict, device};
use alloc::vec::Vec;
use bus::{Pipe, Speed, TransferStatus};

const BULK_IN: Pipe = Pipe::plain(device::DATA_IN);
const BULK_OUT: Pipe = Pipe::plain(device::DATA_OUT);
const INTERRUPT: Pipe = Pipe::plain(device::STATUS);

const TEST_UNIT_READY: [u8; 12] = [0; 12];
const REQUEST_SENSE: [u8; 12] = [0x03, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0];
const INQUIRY: [u8; 12] = [0x12, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0];
/// Two blocks from block 3.
const READ: [u8; 12] = [0x28, 0, 0, 0, 0, 3, 0, 0, 2, 0, 0, 0];
const READ_BEYOND: [u8; 12] = [0x28, 0, 0, 0, 0x0b, 0x40, 0, 0, 2, 0, 0, 0];
const WRITE: [u8; 12] = [0x2a, 0, 0, 0, 0, 3, 0, 0, 2, 0, 0, 0];
const WRITE_BEYOND: [u8; 12] = [0x2a, 0, 0, 0, 0x0b, 0x40, 0, 0, 2, 0, 0, 0];
const RESET: [u8; 12] = [0x1d, 0x04, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];

const GOOD: [u8; 2] = [0, 0];

fn host(transports: Transports) -> HostFixture {
    HostFixture::configured(host_fixture::config(Speed::Full, transports), 0)
}

impl HostFixture {
    /// Accept Device-Specific Command.
    fn accept(&mut self, block: &[u8]) -> Verdict {
        self.control([0x21, 0, 0, 0, 0, 0, block.len() as u8, 0], block)
    }

    /// The status block of a command.
    #[track_caller]
    fn status(&mut self) -> Vec<u8> {
        let id = self.want(INTERRUPT, 2);
        self.bytes_of(id).to_vec()
    }

    /// A command without data: its status block.
    #[track_caller]
    fn run_command(&mut self, block: &[u8]) -> Vec<u8> {
        assert_eq!(self.accept(block), Verdict::Done);
        self.status()
    }

    /// Key, code and qualifier of the last command.
    #[track_caller]
    fn sense(&mut self) -> (u8, u8, u8) {
        assert_eq!(self.accept(&REQUEST_SENSE), Verdict::Done);
        let id = self.want(BULK_IN, 18);
        let bytes = self.bytes_of(id).to_vec();
        (bytes[2] & 0x0f, bytes[12], bytes[13])
    }
}

#[test]
fn a_command_without_data_ends_with_an_interrupt() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.device.transport(), ActiveTransport::Cbi { interrupt: true });
    assert_eq!(host.run_command(&TEST_UNIT_READY), GOOD);
    host.assert_at_rest();
}

#[test]
fn data_come_before_the_interrupt() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&READ), Verdict::Done);
    let status = host.want(INTERRUPT, 2);
    assert!(host.is_pending(status));
    let data = host.want(BULK_IN, 1024);
    assert_eq!(host.bytes_of(data), [[3; 512], [4; 512]].concat());
    assert_eq!(host.bytes_of(status), GOOD);
    host.assert_at_rest();
}

#[test]
fn written_data_are_read_back() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&WRITE), Verdict::Done);
    let data = host.send(BULK_OUT, &[0xa5; 1024]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 1024));
    assert_eq!(host.status(), GOOD);
    assert_eq!(host.accept(&READ), Verdict::Done);
    let data = host.want(BULK_IN, 1024);
    assert_eq!(host.bytes_of(data), [0xa5; 1024]);
    assert_eq!(host.status(), GOOD);
    host.assert_at_rest();
}

#[test]
fn a_failed_read_ends_with_a_zero_length_packet() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&READ_BEYOND), Verdict::Done);
    let data = host.want(BULK_IN, 1024);
    assert_eq!(host.account_of(data), (TransferStatus::Short, 0));
    assert_eq!(host.status(), [0x21, 0]);
    assert_eq!(host.sense(), (5, 0x21, 0));
    assert_eq!(host.status(), GOOD);
    host.assert_at_rest();
}

#[test]
fn a_failed_write_throws_its_data_away() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&WRITE_BEYOND), Verdict::Done);
    let data = host.send(BULK_OUT, &[0xa5; 1024]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 1024));
    assert_eq!(host.status(), [0x21, 0]);
    host.assert_at_rest();
}

#[test]
fn without_an_interrupt_a_failed_data_phase_stalls() {
    let mut host = host(Transports::ControlBulk);
    assert_eq!(host.device.transport(), ActiveTransport::Cbi { interrupt: false });
    for (block, pipe) in [(READ_BEYOND, BULK_IN), (WRITE_BEYOND, BULK_OUT)] {
        assert_eq!(host.accept(&block), Verdict::Done);
        let data = if pipe == BULK_IN { host.want(pipe, 1024) } else { host.send(pipe, &[0; 1024]) };
        assert_eq!(host.account_of(data), (TransferStatus::Stall, 0));
        host.clear_halt(pipe.endpoint);
        assert_eq!(host.sense(), (5, 0x21, 0));
        host.assert_at_rest();
    }
}

#[test]
fn without_an_interrupt_data_and_commands_go_on() {
    let mut host = host(Transports::ControlBulk);
    assert_eq!(host.accept(&TEST_UNIT_READY), Verdict::Done);
    assert_eq!(host.accept(&INQUIRY), Verdict::Done);
    let data = host.want(BULK_IN, 36);
    assert_eq!(host.bytes_of(data)[..5], [0, 0x80, 0, 1, 0x1f]);
    host.assert_at_rest();
}

#[test]
fn a_command_that_ufi_does_not_have_stalls_endpoint_0() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&[0xa0; 12]), Verdict::Stall);
    assert_eq!(host.sense(), (5, 0x20, 0));
    assert_eq!(host.status(), GOOD);
    assert_eq!(host.accept(&[0; 17]), Verdict::Stall);
    assert_eq!(host.accept(&[]), Verdict::Stall);
    assert_eq!(host.control([0x21, 0, 0, 0, 0, 0, 12, 0], &[0; 11]), Verdict::Stall);
    assert_eq!(host.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]), Verdict::Stall);
    host.assert_at_rest();
}

#[test]
fn a_short_answer_ends_the_transfer() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&[0x5a, 0, 0x05, 0, 0, 0, 0, 0, 8, 0, 0, 0]), Verdict::Done);
    let data = host.want(BULK_IN, 192);
    assert_eq!(host.account_of(data), (TransferStatus::Short, 8));
    assert_eq!(host.status(), GOOD);
    host.assert_at_rest();
}

#[test]
fn verify_has_no_data_of_the_host() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.run_command(&[0x2f, 0x02, 0, 0, 0, 3, 0, 0, 2, 0, 0, 0]), [0x24, 0]);
    assert_eq!(host.sense(), (5, 0x24, 0));
    assert_eq!(host.status(), GOOD);
    assert_eq!(host.run_command(&[0x2f, 0, 0, 0, 0, 3, 0, 0, 2, 0, 0, 0]), GOOD);
    host.assert_at_rest();
}

#[test]
fn a_reset_ends_a_command_and_its_status() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&READ), Verdict::Done);
    assert_eq!(host.accept(&RESET), Verdict::Done);
    let status = host.want(INTERRUPT, 2);
    assert!(host.is_pending(status));
    assert_eq!(host.accept(&TEST_UNIT_READY), Verdict::Done);
    assert_eq!(host.bytes_of(status), GOOD);
    host.assert_at_rest();
}

#[test]
fn a_new_command_takes_the_place_of_one_whose_data_the_host_left() {
    let mut host = host(Transports::Cbi);
    assert_eq!(host.accept(&READ), Verdict::Done);
    assert_eq!(host.run_command(&TEST_UNIT_READY), GOOD);
    assert_eq!(host.accept(&WRITE), Verdict::Done);
    assert_eq!(host.accept(&READ), Verdict::Done);
    let data = host.want(BULK_IN, 1024);
    assert_eq!(host.bytes_of(data)[..1], [3]);
    assert_eq!(host.status(), GOOD);
    host.assert_at_rest();
}

#[test]
fn without_an_interrupt_a_command_waits_for_the_medium_of_the_one_before() {
    const VERIFY: [u8; 12] = [0x2f, 0, 0, 0, 0, 3, 0, 0, 2, 0, 0, 0];
    let mut host = host(Transports::ControlBulk);
    host.hold_medium();
    assert_eq!(host.accept(&VERIFY), Verdict::Done);
    assert_eq!(host.accept(&INQUIRY), Verdict::Done);
    let data = host.want(BULK_IN, 36);
    assert!(host.is_pending(data));
    host.release_medium();
    assert_eq!(host.bytes_of(data).len(), 36);
    host.assert_at_rest();
}

#[test]
fn another_unit_is_not_there() {
    let mut host = host(Transports::Cbi);
    let mut block = TEST_UNIT_READY;
    block[1] = 0xe0;
    assert_eq!(host.run_command(&block), [0x25, 0]);
    assert_eq!(host.sense(), (5, 0x25, 0));
}

#[test]
fn the_configuration_has_these_bytes() {
    const BULK: [u8; 14] = [7, 0x05, 0x81, 0x02, 64, 0, 0, 7, 0x05, 0x02, 0x02, 64, 0, 0];
    let cases: [(Transports, &[u8], &[u8]); 2] = [
        (Transports::Cbi, &[9, 4, 0, 0, 3, 8, 4, 0, 0], &[7, 5, 0x83, 3, 2, 0, 32]),
        (Transports::ControlBulk, &[9, 4, 0, 0, 2, 8, 4, 1, 0], &[]),
    ];
    for (transports, interface, interrupt) in cases {
        let mut host = host(transports);
        let Verdict::Data(bytes) = host.control([0x80, 6, 0, 2, 0, 0, 255, 0], &[]) else { panic!("STALL") };
        assert_eq!(bytes[9..], [interface, &BULK, interrupt].concat());
        assert_eq!(host.control([0x80, 6, 0, 6, 0, 0, 10, 0], &[]), Verdict::Stall);
    }
}
