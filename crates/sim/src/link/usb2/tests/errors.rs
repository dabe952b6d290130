//! Packets that are lost, damaged, refused or too long, and cancelled transfers: the time that they
//! cost, and that no packet is taken twice.

use super::*;

#[test]
fn an_in_packet_whose_ack_was_lost_comes_again_and_is_not_taken_twice() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 600);
    wire.fates = vec![Fate::Arrives, Fate::Arrives, Fate::Lost];
    wire.run();
    assert_eq!(
        wire.said,
        [
            "-> IN 1",
            "<- DATA0 512 bytes",
            "-> ACK, lost",
            "-> IN 1",
            "<- DATA0 512 bytes",
            "-> ACK",
            "-> IN 1",
            "<- DATA1 88 bytes",
            "-> ACK",
        ]
    );
    assert_eq!(wire.ended(Side::Host), [(1, 600, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 600, End::Full)]);
}

#[test]
fn an_out_packet_whose_handshake_was_lost_is_sent_again_and_not_taken_twice() {
    let mut wire = Wire::high(&[OUT]);
    wire.both(OUT, 1, 31);
    wire.fates = vec![Fate::Arrives, Fate::Arrives, Fate::Lost];
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> OUT 2",
            "   633   1466 -> DATA0 31 bytes",
            "  1466   1750 <- NYET, lost",
            // 736 bit times, 1.533 us.
            "  3283   3600 -> OUT 2",
            "  3600   4433 -> DATA0 31 bytes",
            // The device has no room any more, but it knows the packet.
            "  4433   4716 <- ACK",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 31, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 31, End::Full)]);
}

#[test]
fn damaged_data_is_not_acknowledged_and_comes_again() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 100);
    wire.fates = vec![Fate::Arrives, Fate::Damaged];
    wire.run();
    assert_eq!(
        wire.said,
        ["-> IN 1", "<- DATA0 100 bytes, damaged", "-> IN 1", "<- DATA0 100 bytes", "-> ACK"]
    );
    assert_eq!(wire.ended(Side::Host), [(1, 100, End::Full)]);
}

#[test]
fn what_is_not_answered_three_times_fails_and_halts_the_host_s_end() {
    let mut wire = Wire::high(&[OUT]);
    wire.both(OUT, 1, 512);
    wire.host(OUT, 2, 512);
    // Token and data, three times.
    wire.fates = vec![Fate::Lost; 6];
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
    assert_eq!(wire.said.len(), 6);
    assert_eq!(wire.link_pair.host.poll_halt(), Some(OUT));
    // A reset, and the next one goes where the first did not.
    wire.link_pair.host.reset(OUT);
    wire.link_pair.device.clear_halt(OUT);
    wire.link_pair.host.resume(OUT);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed), (2, 512, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 512, End::Full)]);
}

#[test]
fn an_answer_between_two_failures_resets_the_error_count() {
    let mut wire = Wire::high(&[OUT]);
    wire.host(OUT, 1, 512);
    let (lost, nak) = ([Fate::Lost; 4], [Fate::Arrives; 3]);
    // Twice nothing, NAK, and PING twice without an answer.
    wire.fates = [&lost[..], &nak, &[Fate::Lost; 2]].concat();
    wire.run_until(us(60));
    wire.device(OUT, 1, 512);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full)]);
}

#[test]
fn a_stall_halts_until_both_ends_are_made_new_and_then_data0_comes() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 512);
    wire.host(IN, 2, 512);
    wire.until_ended(Side::Device, 1);
    wire.link_pair.device.halt(IN);
    wire.run();
    assert_eq!(wire.said[3..], ["-> IN 1", "<- STALL"]);
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full), (2, 0, End::Stalled)]);
    assert_eq!(wire.link_pair.host.poll_halt(), Some(IN));
    wire.link_pair.host.reset(IN);
    wire.link_pair.device.clear_halt(IN);
    wire.link_pair.host.resume(IN);
    wire.both(IN, 3, 10);
    wire.run();
    assert_eq!(wire.said[5..], ["-> IN 1", "<- DATA0 10 bytes", "-> ACK"]);
}

#[test]
fn a_transfer_of_whole_packets_that_is_short_ends_with_an_empty_one() {
    let mut wire = Wire::high(&[IN]);
    wire.host(IN, 1, 4096);
    wire.device(IN, 1, 1024);
    wire.device(IN, 2, 0);
    wire.run();
    assert_eq!(wire.said.iter().filter(|said| said.contains("DATA")).count(), 3);
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Short)]);
}

#[test]
fn a_packet_larger_than_the_host_buffer_halts_it_and_is_not_acknowledged() {
    let mut wire = Wire::high(&[IN]);
    wire.host(IN, 1, 100);
    wire.device(IN, 1, 101);
    wire.run();
    assert_eq!(wire.said, ["-> IN 1", "<- DATA0 101 bytes"]);
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Overflow)]);
    assert!(wire.link_pair.host.is_halted(IN));
}

#[test]
fn a_transfer_is_cancelled_between_two_packets() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 4096);
    wire.run_until(us(15));
    wire.link_pair.host.stop(IN);
    assert!(!wire.link_pair.host.is_quiet(IN), "the second packet is in flight");
    let taken = wire.link_pair.host.withdraw(Pipe::plain(IN), TransferId(1));
    assert_eq!(taken, Err(crate::link::bulk::NotWithdrawn::InFlight));
    wire.run();
    assert!(wire.link_pair.host.is_quiet(IN));
    assert_eq!(wire.link_pair.host.withdraw(Pipe::plain(IN), TransferId(1)), Ok(1024));
    // The device cancels what it has left, and both go on with the next packet number.
    assert!(wire.link_pair.device.withdraw(Pipe::plain(IN), TransferId(1)));
    wire.link_pair.host.resume(IN);
    wire.both(IN, 2, 3);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(2, 3, End::Full)]);
}

#[test]
fn an_endpoint_that_the_device_does_not_have_is_not_answered() {
    let endpoint = Endpoint::bulk(IN, 512, 1, 0);
    let host = HostPort::new(Rate::High, &[endpoint], Pacing::default());
    let mut wire = Wire::high(&[]);
    wire.link_pair = LinkPair::on_bus(Bus::new(Rate::High, 0), host, DevicePort::new(Rate::High, &[]));
    wire.host(IN, 1, 512);
    wire.run();
    assert_eq!(wire.said, ["-> IN 1"; 3]);
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
}
