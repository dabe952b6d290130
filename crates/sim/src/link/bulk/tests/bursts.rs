//! Bursts that end before they are as long as both endpoints' largest, since who takes the packets
//! takes no more at a time (NumP, USB 3.2 clause 8.10.2), or since another endpoint has its turn.

use super::*;
use crate::link::HostPort as Port;
use units::Instant;

/// A device with bursts of 16 packets, and a host that takes no more than so many at a time of it.
fn host_takes(packets: u8, addresses: &[EndpointAddress]) -> Wire {
    let endpoints = |burst| addresses.iter().map(|&at| plain(at, burst)).collect::<Vec<_>>();
    let mut wire = Wire::new(&endpoints(16));
    wire.link_pair.host = Port::SuperSpeed(HostPort::new(&endpoints(packets)));
    wire
}

#[test]
fn a_host_that_takes_one_packet_ends_the_burst_after_each_and_goes_on_with_its_acknowledgement() {
    let mut wire = host_takes(1, &[IN]);
    wire.both(Pipe::plain(IN), transfer(1, 3072));
    wire.run();
    // Each packet costs itself, 2,112 ns, and all that a burst hides: 100 and 40 ns of the
    // acknowledgement, 200 ns of the device. Skips are sent in the pauses.
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 1",
            "  240  2352 <- DATA 1 IN number 0, 1024 bytes",
            " 2452  2492 -> ACK 1 IN expects 1, takes 1",
            " 2692  4804 <- DATA 1 IN number 1, 1024 bytes",
            " 4904  4944 -> ACK 1 IN expects 2, takes 1",
            " 5144  7256 <- DATA 1 IN number 2, 1024 bytes, the last",
            " 7356  7396 -> ACK 1 IN expects 3, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 3072, End::Full)]);
}

#[test]
fn a_read_is_cut_after_what_the_host_takes_and_goes_on_when_another_endpoint_had_its_turn() {
    let mut wire = host_takes(2, &[IN, BULK_IN]);
    wire.both(Pipe::plain(BULK_IN), transfer(1, 4096));
    wire.both(Pipe::plain(IN), transfer(2, 2048));
    wire.run();
    assert_script(
        &wire,
        &[
            // Turns go round from endpoint 1 on, so 3 has the first.
            "    0    40 -> ACK 3 IN expects 0, takes 2",
            "  240  2352 <- DATA 3 IN number 0, 1024 bytes",
            // Three skips.
            " 2364  4476 <- DATA 3 IN number 1, 1024 bytes",
            // One of the two is still to come, and no more, since endpoint 1 waits.
            " 2452  2492 -> ACK 3 IN expects 1, takes 1",
            // The burst ends, and the device has more. Endpoints speak in their order: 1 asks
            // before 3 acknowledges.
            " 4576  4616 -> ACK 1 IN expects 0, takes 2",
            " 4616  4656 -> ACK 3 IN expects 2, takes 0",
            " 4816  6928 <- DATA 1 IN number 0, 1024 bytes",
            // 4 symbols were left after the skips for 1,066; LGOOD and LCRD three times, 48, and
            // 1,056: three skips.
            " 6940  9052 <- DATA 1 IN number 1, 1024 bytes, the last",
            " 7028  7068 -> ACK 1 IN expects 1, takes 1",
            " 9152  9192 -> ACK 1 IN expects 2, takes 0",
            // It goes on with the number at which it was cut, without ERDY.
            " 9192  9232 -> ACK 3 IN expects 2, takes 2",
            " 9432 11544 <- DATA 3 IN number 2, 1024 bytes",
            "11556 13668 <- DATA 3 IN number 3, 1024 bytes, the last",
            "11644 11684 -> ACK 3 IN expects 3, takes 1",
            "13768 13808 -> ACK 3 IN expects 4, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(2, 2048, End::Full), (1, 4096, End::Full)]);
}

#[test]
fn a_write_is_cut_after_what_the_device_takes_and_goes_on_with_its_acknowledgement() {
    let mut wire = Wire::new(&[plain(OUT, 16)]);
    wire.link_pair.host.queue(Pipe::plain(OUT), transfer(1, 4096)).unwrap();
    wire.run();
    // Room for two packets, and behind that for two more, of which the device does not speak before
    // the first two are there.
    wire.engine.pass(Instant::from_ps(6_000_000));
    for id in [1, 2] {
        wire.link_pair.device.queue(Pipe::plain(OUT), transfer(id, 2048)).unwrap();
    }
    wire.run();
    assert_script(
        &wire,
        &[
            // Nothing was sent of room: the host begins a burst of 16, which the device stops when
            // it hears of it.
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes",
            // 1,056 symbols: two skips.
            " 2120  4232 -> DATA 2 OUT number 1, 1024 bytes",
            " 2312  2352 <- NRDY 2 OUT",
            " 6000  6040 <- ERDY 2 OUT for 2",
            " 6140  8252 -> DATA 2 OUT number 0, 1024 bytes",
            " 8264 10376 -> DATA 2 OUT number 1, 1024 bytes",
            // One more, which is that on the lane. It would have been followed at 10,420: 12 ns of
            // skips, LGOOD and LCRD.
            " 8452  8492 <- ACK 2 OUT expects 1, takes 1",
            "10576 10616 <- ACK 2 OUT expects 2, takes 2",
            "10716 12828 -> DATA 2 OUT number 2, 1024 bytes",
            "12840 14952 -> DATA 2 OUT number 3, 1024 bytes, the last",
            "13028 13068 <- ACK 2 OUT expects 3, takes 1",
            "15152 15192 <- ACK 2 OUT expects 4, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 4096, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 2048, End::Full), (2, 2048, End::Full)]);
}
