//! Scripts between a host and the device over Bulk-Only Transport, at high speed unless a test says otherwise.

use crate::bot::ShortData;
use crate::bot::cases::PAD_BYTES_MAX;
use crate::host_fixture::HostFixture;
use crate::host_fixture::bot::{BULK_IN, BULK_OUT, cbw, csw};
use crate::host_fixture::uas::{FORMAT_WITH_LIST, TEST_UNIT_READY, format_list, read_10, write_10};
use crate::{DeviceConfig, Transports, Verdict};
use bus::{Speed, TransferStatus};

/// INQUIRY of 36 bytes.
const INQUIRY_36: [u8; 6] = [0x12, 0, 0, 0, 36, 0];

fn host() -> HostFixture {
    HostFixture::bot(Speed::High)
}

/// The device takes the next command as if nothing had been.
#[track_caller]
fn assert_goes_on(host: &mut HostFixture) {
    assert_eq!(host.run(&TEST_UNIT_READY), csw(0, 0));
    host.assert_at_rest();
}

#[test]
fn case_1_no_data_on_either_side() {
    let mut host = host();
    assert_eq!(host.run(&TEST_UNIT_READY), csw(0, 0));
    assert_goes_on(&mut host);
}

#[test]
fn case_2_data_that_the_host_does_not_expect() {
    let mut host = host();
    assert_eq!(host.run(&read_10(3, 1)), csw(0, 2));
    assert!(!host.is_halted(BULK_IN));
    assert_goes_on(&mut host);
}

#[test]
fn case_3_data_that_the_host_does_not_have() {
    let mut host = host();
    assert_eq!(host.run(&write_10(3, 1)), csw(0, 2));
    assert!(!host.is_halted(BULK_OUT));
    assert_goes_on(&mut host);
}

#[test]
fn case_4_the_host_expects_data_of_a_command_without() {
    let mut host = host();
    let (data, status) = host.read(512, &TEST_UNIT_READY);
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 0));
    assert_goes_on(&mut host);
}

#[test]
fn case_5_whole_packets_end_with_a_stall() {
    let mut host = host();
    let (data, status) = host.read(1024, &read_10(3, 1));
    assert_eq!((data.status, &data.bytes[..]), (TransferStatus::Stall, &[3; 512][..]));
    assert_eq!(status, csw(512, 0));
    assert_goes_on(&mut host);
}

#[test]
fn case_5_a_short_packet_is_followed_by_a_stall() {
    for speed in [Speed::High, Speed::Super] {
        let mut host = HostFixture::bot(speed);
        host.send_cbw(64, 0x80, &INQUIRY_36);
        let data = host.want(BULK_IN, 64);
        assert_eq!(host.account_of(data), (TransferStatus::Short, 36));
        assert!(host.is_halted(BULK_IN));
        let early = host.want(BULK_IN, 13);
        assert_eq!(host.account_of(early), (TransferStatus::Stall, 0));
        assert_eq!(host.take_csw(), csw(28, 0));
        assert_goes_on(&mut host);
    }
}

#[test]
fn case_5_data_that_the_host_takes_in_two_transfers_end_the_first_and_stall_the_second() {
    let mut host = host();
    host.send_cbw(1024, 0x80, &INQUIRY_36);
    let first = host.want(BULK_IN, 512);
    let second = host.want(BULK_IN, 512);
    assert_eq!(host.account_of(first), (TransferStatus::Short, 36));
    assert_eq!(host.account_of(second), (TransferStatus::Stall, 0));
    assert_eq!(host.take_csw(), csw(988, 0));
    assert_goes_on(&mut host);
}

/// A device that ends short data in this way.
fn host_with(speed: Speed, short_data: ShortData) -> HostFixture {
    let config =
        DeviceConfig { bot_short_data: short_data, ..crate::host_fixture::config(speed, Transports::Dual) };
    HostFixture::configured(config, 0)
}

#[test]
fn padding_fills_what_the_host_asked_for_and_the_residue_counts_data_alone() {
    for speed in [Speed::High, Speed::Super] {
        let mut host = host_with(speed, ShortData::Pad);
        // Within a packet; beyond one; behind whole packets; in place of data (case 4), also where a command fails.
        for (asked, cdb, sent, passed) in [
            (64, &INQUIRY_36[..], 36, 0),
            (1024, &INQUIRY_36, 36, 0),
            (1536, &read_10(3, 1), 512, 0),
            (4000, &read_10(3, 2), 1024, 0),
            (512, &TEST_UNIT_READY, 0, 0),
            (512, &[0x28, 0, 0, 0, 0x08, 0, 0, 0, 1, 0], 0, 1),
        ] {
            let (data, status) = host.read(asked, cdb);
            assert_eq!((data.status, data.bytes.len()), (TransferStatus::Done, asked as usize), "{cdb:x?}");
            assert!(data.bytes[sent..].iter().all(|&byte| byte == 0), "{cdb:x?}");
            assert_eq!(status, csw(asked - sent as u32, passed), "{cdb:x?}");
            assert!(!host.is_halted(BULK_IN));
        }
        assert_goes_on(&mut host);
    }
}

#[test]
fn padding_may_go_into_several_transfers_of_the_host() {
    let mut host = host_with(Speed::High, ShortData::Pad);
    host.send_cbw(1536, 0x80, &read_10(3, 1));
    let transfers = [0; 3].map(|_| host.want(BULK_IN, 512));
    let expected = [[3; 512], [0; 512], [0; 512]];
    for (transfer, bytes) in transfers.into_iter().zip(expected) {
        assert_eq!(host.bytes_of(transfer), bytes);
    }
    assert_eq!(host.take_csw(), csw(1024, 0));
    assert_goes_on(&mut host);
}

#[test]
fn padding_ends_where_a_host_asks_for_too_much() {
    for (speed, status) in [(Speed::High, TransferStatus::Stall), (Speed::Super, TransferStatus::Short)] {
        let mut host = host_with(speed, ShortData::Pad);
        let asked = 512 + PAD_BYTES_MAX + 1;
        let (data, wrapper) = host.read(asked, &read_10(3, 1));
        assert_eq!((data.status, data.bytes.len()), (status, 512));
        assert_eq!(wrapper, csw(PAD_BYTES_MAX + 1, 0));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_device_that_sends_a_short_packet_alone_stalls_no_data_for_the_host() {
    for speed in [Speed::High, Speed::Super] {
        let mut host = host_with(speed, ShortData::ShortPacket);
        for (asked, cdb, sent, passed) in [
            (64, &INQUIRY_36[..], 36, 0),
            (1536, &read_10(3, 1), 512, 0),
            (4096, &read_10(3, 2), 1024, 0),
            (512, &TEST_UNIT_READY, 0, 0),
            (512, &[0x28, 0, 0, 0, 0x08, 0, 0, 0, 1, 0], 0, 1),
        ] {
            let (data, status) = host.read(asked, cdb);
            assert_eq!((data.status, data.bytes.len()), (TransferStatus::Short, sent), "{cdb:x?}");
            assert_eq!(status, csw(asked - sent as u32, passed), "{cdb:x?}");
            assert!(!host.is_halted(BULK_IN));
        }
        assert_goes_on(&mut host);
    }
}

#[test]
fn phase_errors_and_data_out_stall_whatever_becomes_of_short_data() {
    for short_data in [ShortData::Pad, ShortData::ShortPacket] {
        let mut host = host_with(Speed::High, short_data);
        let (data, status) = host.read(512, &read_10(3, 2));
        assert_eq!((data.status, status), (TransferStatus::Stall, csw(512, 2)));
        let (data, status) = host.write(&[7; 1024], &write_10(3, 1));
        assert_eq!((data.status, status), (TransferStatus::Stall, csw(512, 0)));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_reset_before_the_padding_is_taken_drops_it() {
    for short_data in [ShortData::Pad, ShortData::ShortPacket] {
        let mut host = host_with(Speed::High, short_data);
        host.send_cbw(512, 0x80, &TEST_UNIT_READY);
        host.recover();
        let late = host.want(BULK_IN, 512);
        assert!(host.is_pending(late));
        host.cancel(late);
        assert_goes_on(&mut host);
    }
}

#[test]
fn case_6_the_host_gets_what_it_expects() {
    let mut host = host();
    let (data, status) = host.read(1024, &read_10(3, 2));
    assert_eq!((data.status, &data.bytes[..]), (TransferStatus::Done, &[[3; 512], [4; 512]].concat()[..]));
    assert_eq!(status, csw(0, 0));
    assert_goes_on(&mut host);
}

#[test]
fn case_7_more_data_than_the_host_expects() {
    let mut host = host();
    let (data, status) = host.read(512, &read_10(3, 2));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 2));
    assert_goes_on(&mut host);
}

#[test]
fn case_8_the_host_expects_data_of_a_write() {
    let mut host = host();
    let (data, status) = host.read(512, &write_10(3, 1));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 2));
    assert_eq!(host.medium.blocks(3, 1), [3; 512]);
    assert_goes_on(&mut host);
}

#[test]
fn case_9_the_host_has_data_for_a_command_without() {
    let mut host = host();
    let (data, status) = host.write(&[7; 512], &TEST_UNIT_READY);
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 0));
    assert_goes_on(&mut host);
}

#[test]
fn case_10_the_host_has_data_for_a_read() {
    let mut host = host();
    let (data, status) = host.write(&[7; 512], &read_10(3, 1));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 2));
    assert_goes_on(&mut host);
}

#[test]
fn case_11_the_host_has_more_data_than_the_command_takes() {
    let mut host = host();
    let (data, status) = host.write(&[7; 1024], &write_10(3, 1));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 512));
    assert_eq!(status, csw(512, 0));
    assert_eq!(host.medium.blocks(3, 2), [[7; 512], [4; 512]].concat());
    assert_goes_on(&mut host);
}

#[test]
fn case_12_the_device_takes_what_the_host_has() {
    let mut host = host();
    let (data, status) = host.write(&[7; 1024], &write_10(3, 2));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Done, 1024));
    assert_eq!(status, csw(0, 0));
    assert_eq!(host.medium.blocks(3, 2), [7; 1024]);
    assert_goes_on(&mut host);
}

#[test]
fn case_13_the_command_takes_more_data_than_the_host_has() {
    let mut host = host();
    let (data, status) = host.write(&[7; 512], &write_10(3, 2));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 2));
    assert_eq!(host.medium.blocks(3, 2), [[3; 512], [4; 512]].concat());
    assert_goes_on(&mut host);
}

#[test]
fn a_block_at_super_speed_is_a_partial_packet() {
    let mut host = HostFixture::bot(Speed::Super);
    let (data, status) = host.read(1024, &read_10(3, 1));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Short, 512));
    assert!(!host.is_halted(BULK_IN), "the host has cleared the STALL behind it");
    assert_eq!(status, csw(512, 0));
    assert_goes_on(&mut host);
}

#[test]
fn a_host_may_cut_its_data_phase_into_transfers() {
    let mut host = host();
    let first = host.begin_read(512, &read_10(3, 1));
    assert_eq!(host.bytes_of(first), [3; 512]);
    assert_eq!(host.take_csw(), csw(0, 0));
    host.send_cbw(1024, 0x80, &read_10(3, 2));
    let first = host.want(BULK_IN, 512);
    let second = host.want(BULK_IN, 512);
    assert_eq!((host.bytes_of(first), host.bytes_of(second)), (&[3; 512][..], &[4; 512][..]));
    assert_eq!(host.take_csw(), csw(0, 0));
    assert_goes_on(&mut host);
}

/// The device answers nothing, whatever is cleared, until the host does the reset recovery.
#[track_caller]
fn assert_wedged(host: &mut HostFixture) {
    for _ in 0..2 {
        assert!(host.is_halted(BULK_IN));
        assert!(host.is_halted(BULK_OUT));
        host.clear_halt(BULK_IN.endpoint);
        host.clear_halt(BULK_OUT.endpoint);
        let (status, cbw) = (host.want(BULK_IN, 13), host.send(BULK_OUT, &cbw(0, 0, &TEST_UNIT_READY)));
        assert_eq!(host.account_of(status), (TransferStatus::Stall, 0));
        assert_eq!(host.account_of(cbw), (TransferStatus::Stall, 0));
    }
    host.recover();
    assert!(!host.is_halted(BULK_IN));
    assert!(!host.is_halted(BULK_OUT));
    assert_goes_on(host);
}

#[test]
fn a_wrong_signature_wedges_until_reset_recovery() {
    let mut host = host();
    let mut wrong = cbw(0, 0, &TEST_UNIT_READY);
    wrong[0] = b'u';
    host.send(BULK_OUT, &wrong);
    assert_wedged(&mut host);
}

#[test]
fn a_wrong_length_wedges_until_reset_recovery() {
    for length in [0, 1, 30, 32, 64] {
        let mut host = host();
        let mut wrong = cbw(0, 0, &TEST_UNIT_READY);
        wrong.resize(length, 0);
        host.send(BULK_OUT, &wrong);
        assert_wedged(&mut host);
    }
}

#[test]
fn a_cbw_without_meaning_wedges_until_reset_recovery() {
    for (offset, value) in [(12, 0x01), (13, 0x10), (14, 0), (14, 17)] {
        let mut host = host();
        let mut wrong = cbw(0, 0, &TEST_UNIT_READY);
        wrong[offset] = value;
        host.send(BULK_OUT, &wrong);
        assert_wedged(&mut host);
    }
}

#[test]
fn a_mass_storage_reset_alone_leaves_the_halts() {
    let mut host = host();
    host.send(BULK_OUT, &[0; 31]);
    assert_eq!(host.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]), Verdict::Done);
    assert!(host.is_halted(BULK_IN));
    assert!(host.is_halted(BULK_OUT));
    host.clear_halt(BULK_OUT.endpoint);
    assert!(!host.is_halted(BULK_OUT));
}

#[test]
fn a_csw_waits_until_the_halt_is_cleared() {
    let mut host = host();
    let data = host.begin_read(512, &TEST_UNIT_READY);
    assert_eq!(host.account_of(data), (TransferStatus::Stall, 0));
    let early = host.want(BULK_IN, 13);
    assert_eq!(host.account_of(early), (TransferStatus::Stall, 0));
    assert_eq!(host.take_csw(), csw(512, 0));
}

#[test]
fn sense_data_is_kept_for_request_sense_once() {
    let mut host = host();
    let (data, status) = host.read(512, &[0x28, 0, 0, 0, 0x08, 0, 0, 0, 1, 0]);
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 1));
    assert_eq!(host.request_sense(), (0x05, 0x21, 0x00));
    assert_eq!(host.request_sense(), (0x00, 0x00, 0x00));
}

#[test]
fn sense_data_goes_with_the_next_command() {
    for next in [[0x12, 0, 0, 0, 36, 0], [0; 6]] {
        let mut host = host();
        assert_eq!(host.run(&[0xc0, 0, 0, 0, 0, 0]), csw(0, 1));
        host.read(36, &next);
        assert_eq!(host.request_sense(), (0x00, 0x00, 0x00));
    }
}

#[test]
fn sense_data_goes_with_the_transport() {
    let mut host = host();
    assert_eq!(host.run(&[0xc0, 0, 0, 0, 0, 0]), csw(0, 1));
    host.configure(0);
    assert_eq!(host.request_sense(), (0x00, 0x00, 0x00));
}

#[test]
fn a_phase_error_leaves_no_sense_data() {
    let mut host = host();
    assert_eq!(host.run(&read_10(3, 1)), csw(0, 2));
    assert_eq!(host.request_sense(), (0x00, 0x00, 0x00));
}

#[test]
fn a_refused_write_stalls_its_data() {
    let mut host = host();
    let (data, status) = host.write(&[7; 512], &[0x2a, 0, 0, 0, 0x08, 0, 0, 0, 1, 0]);
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 0));
    assert_eq!(status, csw(512, 1));
    assert_goes_on(&mut host);
}

#[test]
fn a_read_error_in_the_middle_stalls_the_rest() {
    let mut host = host();
    host.medium.bad = Some(12);
    let (data, status) = host.read(8192, &read_10(0, 16));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Stall, 4096));
    assert_eq!(status, csw(4096, 1));
    assert_eq!(host.request_sense(), (0x03, 0x11, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn a_write_error_in_the_middle_takes_all_data() {
    let mut host = host();
    host.medium.bad = Some(12);
    let (data, status) = host.write(&[7; 8192], &write_10(0, 16));
    assert_eq!((data.status, data.bytes.len()), (TransferStatus::Done, 8192));
    assert_eq!(status, csw(0, 1));
    assert_eq!(host.request_sense(), (0x03, 0x0c, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn a_write_that_the_host_cuts_short_is_aborted() {
    let mut host = host();
    host.send_cbw(1024, 0x00, &write_10(3, 2));
    let data = host.send(BULK_OUT, &[7; 100]);
    assert_eq!(host.account_of(data), (TransferStatus::Done, 100));
    assert_eq!(host.take_csw(), csw(924, 1));
    assert_eq!(host.medium.blocks(3, 1), [3; 512]);
    host.clear_halt(BULK_OUT.endpoint);
    assert_eq!(host.request_sense(), (0x0b, 0x4b, 0x00));
    assert_goes_on(&mut host);
}

#[test]
fn a_new_device_has_a_unit_attention_to_report() {
    let mut host = HostFixture::new(crate::host_fixture::config(Speed::High, Transports::BotOnly));
    host.configure(0);
    assert_eq!(host.run(&TEST_UNIT_READY), csw(0, 1));
    assert_eq!(host.request_sense(), (0x06, 0x29, 0x01));
    assert_goes_on(&mut host);
}

#[test]
fn a_unit_that_is_not_there_fails_its_commands() {
    let mut host = host();
    let mut wrapper = cbw(0, 0, &TEST_UNIT_READY);
    wrapper[13] = 5;
    host.send(BULK_OUT, &wrapper);
    assert_eq!(host.take_csw(), csw(0, 1));
    assert_goes_on(&mut host);
}

#[test]
fn naca_leaves_no_auto_contingent_allegiance() {
    let mut host = host();
    let (_, status) = host.read(512, &[0x28, 0, 0, 0, 0x08, 0, 0, 0, 1, 0x04]);
    assert_eq!(status, csw(512, 1));
    assert_goes_on(&mut host);
}

#[test]
fn a_reset_ends_the_command_in_flight() {
    let mut host = host();
    host.hold_medium();
    let data = host.begin_read(512, &read_10(3, 1));
    host.cancel(data);
    host.recover();
    host.release_medium();
    let late = host.want(BULK_IN, 13);
    assert!(host.is_pending(late));
    host.cancel(late);
    assert_goes_on(&mut host);
}

#[test]
fn a_write_from_before_a_reset_lands_before_the_next() {
    let mut host = host();
    host.hold_medium();
    host.send_cbw(512, 0x00, &write_10(3, 1));
    host.send(BULK_OUT, &[1; 512]);
    host.recover();
    host.send_cbw(512, 0x00, &write_10(3, 1));
    let data = host.send(BULK_OUT, &[2; 512]);
    assert!(host.is_pending(data));
    assert_eq!(host.medium.requests.len(), 1);
    host.release_medium();
    assert_eq!(host.take_csw(), csw(0, 0));
    assert_eq!(host.medium.blocks(3, 1), [2; 512]);
    host.assert_at_rest();
}

#[test]
fn a_cbw_waits_while_every_slot_drains() {
    let mut config = crate::host_fixture::config(Speed::High, Transports::Dual);
    config.limits.commands = 1;
    let mut host = HostFixture::configured(config, 0);
    host.hold_medium();
    let data = host.begin_read(512, &read_10(3, 1));
    host.cancel(data);
    host.recover();
    host.send_cbw(36, 0x80, &[0x12, 0, 0, 0, 36, 0]);
    let data = host.want(BULK_IN, 36);
    assert!(host.is_pending(data));
    host.release_medium();
    assert_eq!(host.bytes_of(data).len(), 36);
    assert_eq!(host.take_csw(), csw(0, 0));
    assert_goes_on(&mut host);
}

#[test]
fn another_interface_setting_takes_everything_back() {
    let mut host = host();
    host.send_cbw(0, 0, &TEST_UNIT_READY);
    assert_eq!(host.control([0x01, 0x0b, 1, 0, 0, 0, 0, 0], &[]), Verdict::Done);
    let csw = host.want(BULK_IN, 13);
    assert!(host.is_pending(csw), "the CSW of the earlier setting is gone");
}

#[test]
fn a_list_that_reports_its_own_length_is_no_longer_than_the_host_says() {
    for bytes in [9, 64, 65, 512, 520] {
        let mut host = host();
        let (data, status) = host.write(&format_list(bytes), &FORMAT_WITH_LIST);
        assert_eq!((data.status, data.bytes.len()), (TransferStatus::Done, bytes.into()));
        assert_eq!(status, csw(0, 0), "{bytes}");
        assert_eq!(host.medium.blocks(2047, 1), [0xa5; 512]);
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_list_that_is_cut_off_is_reported_and_not_waited_for() {
    for bytes in [7, 64, 100] {
        let mut host = host();
        let (_, status) = host.write(&format_list(200)[..bytes], &FORMAT_WITH_LIST);
        assert_eq!(status, csw(0, 1), "{bytes}");
        assert_eq!(host.request_sense(), (0x05, 0x1a, 0x00));
        assert_goes_on(&mut host);
    }
}

#[test]
fn a_reservation_conflict_is_a_failed_command_whose_sense_data_reports_it() {
    let mut host = host();
    let list = [0; 24];
    // RESERVE without a registration.
    let (_, status) = host.write(&list, &[0x5f, 0x01, 0x01, 0, 0, 0, 0, 0, 24, 0]);
    assert_eq!(status, csw(0, 1));
    assert_eq!(host.request_sense(), (0x05, 0x2c, 0x09));
    assert_eq!(host.request_sense(), (0, 0, 0));
    assert_goes_on(&mut host);
}
