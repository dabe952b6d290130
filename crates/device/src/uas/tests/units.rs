//! Information units that are not what they should be, or longer than usual.

use super::assert_goes_on;
use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{SIMPLE, TEST_UNIT_READY, check, command_iu, response};
use alloc::vec::Vec;
use bus::{Speed, TransferStatus};

#[test]
fn an_iu_of_an_unknown_kind_is_invalid() {
    for speed in [Speed::Super, Speed::High] {
        let mut host = HostFixture::uas(speed);
        let status = host.want_status(1);
        host.send_iu(&[0x77, 0, 0, 1]);
        assert_eq!(host.bytes_of(status), response(1, 0x02));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_short_command_iu_is_invalid_at_every_length() {
    let iu = command_iu(1, SIMPLE, 0, &TEST_UNIT_READY);
    for length in 4..32 {
        let mut host = HostFixture::uas(Speed::Super);
        let status = host.want_status(1);
        host.send_iu(&iu[..length]);
        assert_eq!(host.bytes_of(status), response(1, 0x02));
        assert_goes_on(&mut host);
    }
}

#[test]
fn an_iu_without_a_tag_is_not_answered() {
    for length in 0..4 {
        let mut host = HostFixture::uas(Speed::High);
        let status = host.want_status(1);
        host.send_iu(&[0x01, 0, 0][..length.min(3)]);
        assert!(host.is_pending(status));
        host.cancel(status);
        assert_goes_on(&mut host);
    }
}

#[test]
fn an_invalid_iu_ends_the_data_of_its_tag() {
    let mut host = HostFixture::uas(Speed::Super);
    let (status, data) = (host.want_status(1), host.want_data(1, 512));
    host.send_iu(&[0x01, 0, 0, 1]);
    assert_eq!(host.account_of(data), (TransferStatus::Short, 0));
    assert_eq!(host.bytes_of(status), response(1, 0x02));
    assert_goes_on(&mut host);
}

#[test]
fn additional_cdb_bytes_are_part_of_the_command() {
    let mut host = HostFixture::uas(Speed::Super);
    // READ(32): operation code 7Fh, service action 9, protection information, block 3, one block.
    let mut cdb: Vec<u8> = alloc::vec![0x7f, 0, 0, 0, 0, 0, 0, 24, 0, 9, 0, 0, 0, 0, 0, 0];
    cdb.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let mut iu = command_iu(1, SIMPLE, 0, &cdb[..16]);
    iu[6] = 16;
    iu.extend(&cdb[16..]);
    let (status, data) = (host.want_status(1), host.want_data(1, 512));
    host.send_iu(&iu);
    // The unit does not have it, and says so of the operation code or the service action, not of the length.
    assert_eq!(host.bytes_of(status)[..7], [0x03, 0, 0, 1, 0, 0, 0x02]);
    assert_eq!(host.account_of(data), (TransferStatus::Short, 0));
    assert_goes_on(&mut host);
}

#[test]
fn missing_additional_cdb_bytes_are_invalid() {
    let mut host = HostFixture::uas(Speed::Super);
    let mut iu = command_iu(1, SIMPLE, 0, &TEST_UNIT_READY);
    iu[6] = 16;
    let status = host.want_status(1);
    host.send_iu(&iu);
    assert_eq!(host.bytes_of(status), response(1, 0x02));
    assert_goes_on(&mut host);
}

#[test]
fn the_longest_cdb_is_refused_by_its_operation_code() {
    let mut host = HostFixture::uas(Speed::Super);
    let mut iu = command_iu(1, SIMPLE, 0, &[0xc0]);
    iu[6] = 252;
    iu.resize(32 + 252, 0xff);
    let status = host.want_status(1);
    host.send_iu(&iu);
    assert_eq!(host.bytes_of(status), check(1, 0x05, (0x20, 0x00)));
    assert_goes_on(&mut host);
}
