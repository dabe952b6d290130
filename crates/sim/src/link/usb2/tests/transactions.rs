//! Packet by packet, with times worked out by hand.

use super::*;

// A byte takes 16.67 ns. A token has 19 of them, data of n bytes 19 + n, a handshake 17; the start
// of frame 19.

/// READ(10) of 4 KiB: when each packet begins and ends, in nanoseconds.
const READ_4K_IN_TURNS: [&str; 41] = [
    // Bytes 19 to 38 of the microframe.
    "   316    633 -> OUT 4",
    "   633   1483 -> DATA0 32 bytes",
    // It has been taken, and there is no room for another command yet.
    "  1483   1766 <- NYET",
    // Bytes 106 to 125. READ READY is there by now.
    "  1766   2083 -> IN 3",
    "  2083   2466 <- DATA0 4 bytes",
    "  2466   2750 -> ACK",
    // The host waits for data now, and for the next status. 567 bytes each, 9.45 us.
    "  2750   3066 -> IN 1",
    "  3066  11916 <- DATA0 512 bytes",
    " 11916  12200 -> ACK",
    // No status yet: 36 bytes, 0.6 us, and not again for 10 us.
    " 12200  12516 -> IN 3",
    " 12516  12800 <- NAK",
    " 12800  13116 -> IN 1",
    " 13116  21966 <- DATA1 512 bytes",
    " 21966  22250 -> ACK",
    " 22250  22566 -> IN 1",
    " 22566  31416 <- DATA0 512 bytes",
    " 31416  31700 -> ACK",
    " 31700  32016 -> IN 3",
    " 32016  32300 <- NAK",
    " 32300  32616 -> IN 1",
    " 32616  41466 <- DATA1 512 bytes",
    " 41466  41750 -> ACK",
    " 41750  42066 -> IN 1",
    " 42066  50916 <- DATA0 512 bytes",
    " 50916  51200 -> ACK",
    " 51200  51516 -> IN 3",
    " 51516  51800 <- NAK",
    " 51800  52116 -> IN 1",
    " 52116  60966 <- DATA1 512 bytes",
    " 60966  61250 -> ACK",
    " 61250  61566 -> IN 1",
    " 61566  70416 <- DATA0 512 bytes",
    " 70416  70700 -> ACK",
    " 70700  71016 -> IN 3",
    " 71016  71300 <- NAK",
    " 71300  71616 -> IN 1",
    " 71616  80466 <- DATA1 512 bytes",
    " 80466  80750 -> ACK",
    // 10 us after the NAK. The SENSE IU of 16 bytes has waited for it.
    " 81300  81616 -> IN 3",
    " 81616  82200 <- DATA1 16 bytes",
    " 82200  82483 -> ACK",
];

#[test]
fn a_read_of_4_kib_over_uas_in_turns_packet_by_packet() {
    let mut wire = Wire::high(&[STATUS, COMMAND, IN]);
    // The drive waits for a command; the host waits for a status and sends one: COMMAND IU with
    // READ(10).
    wire.device(COMMAND, 1, 32);
    wire.host(STATUS, 1, 112);
    wire.host(COMMAND, 2, 32);
    wire.until_ended(Side::Device, 1);
    // READ READY, and the data.
    wire.device(STATUS, 2, 4);
    wire.device(IN, 3, 4096);
    wire.until_ended(Side::Host, 1);
    wire.host(STATUS, 3, 112);
    wire.host(IN, 4, 4096);
    wire.until_ended(Side::Device, 3);
    // SENSE IU, GOOD.
    wire.device(STATUS, 4, 16);
    wire.run();
    assert_script(&wire, &READ_4K_IN_TURNS);
    assert_eq!(
        wire.ended(Side::Host),
        [(2, 32, End::Full), (1, 4, End::Short), (4, 4096, End::Full), (3, 16, End::Short)]
    );
}

#[test]
fn a_device_without_buffer_space_is_polled_with_ping() {
    let mut wire = Wire::high(&[OUT]);
    wire.host(OUT, 1, 512);
    wire.run_until(us(25));
    wire.device(OUT, 1, 512);
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> OUT 2",
            "   633   9483 -> DATA0 512 bytes",
            "  9483   9766 <- NAK",
            " 19766  20083 -> PING 2",
            " 20083  20366 <- NAK",
            // 10 us later the device has got room.
            " 30366  30683 -> PING 2",
            " 30683  30966 <- ACK",
            " 30966  31283 -> OUT 2",
            " 31283  40133 -> DATA0 512 bytes",
            " 40133  40416 <- NYET",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full)]);
}

#[test]
fn an_endpoint_that_is_not_ready_says_nak_so_many_times_and_moves_then() {
    for address in [IN, OUT] {
        let mut wire = Wire::high(&[address]);
        wire.both(address, 1, 512);
        wire.link_pair.device.refuse(address, 5);
        wire.run();
        let naks = wire.said.iter().filter(|line| line.contains("NAK")).count();
        assert_eq!((naks, wire.ended(Side::Host)), (5, vec![(1, 512, End::Full)]));
        assert_eq!(wire.ended(Side::Device), [(1, 512, End::Full)]);
    }
}

#[test]
fn full_speed_repeats_data_after_nak_without_ping() {
    let mut wire = Wire::new(Rate::Full, &[OUT], 0);
    wire.host(OUT, 1, 64);
    wire.run_until(us(60));
    wire.device(OUT, 1, 64);
    wire.run();
    assert_script(
        &wire,
        &[
            // A byte takes 666.7 ns. A token and the start of frame have 5, data 69, a handshake 3.
            "  3333   6666 -> OUT 2",
            "  6666  52666 -> DATA0 64 bytes",
            " 52666  54666 <- NAK",
            " 64666  68000 -> OUT 2",
            " 68000 114000 -> DATA0 64 bytes",
            "114000 116000 <- ACK",
        ],
    );
}

#[test]
fn a_hub_delays_what_the_device_hears_and_what_it_says() {
    let mut wire = Wire::new(Rate::High, &[IN], 1);
    wire.both(IN, 1, 4);
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> IN 1",
            // Twice 38 bit times of 2.083 ns.
            "   791   1175 <- DATA0 4 bytes",
            "  1175   1458 -> ACK",
        ],
    );
}

#[test]
fn two_endpoints_share_the_bus_packet_by_packet() {
    let mut wire = Wire::high(&[IN, OUT]);
    wire.both(IN, 1, 64 << 10);
    wire.both(OUT, 2, 64 << 10);
    wire.run();
    let is_token = |said: &&String| said.contains("-> IN") || said.contains("-> OUT");
    let tokens: Vec<_> = wire.said.iter().filter(is_token).collect();
    assert_eq!(tokens, [["-> OUT 2", "-> IN 1"]; 128].concat());
}
