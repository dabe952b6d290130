//! A Prime for which the device has nothing, and a proposal for which the host has nothing: packet
//! by packet, and what moves later.
//!
//! Prime says that there are buffers, and not for which stream; so a device that has nothing says
//! no more than NRDY, and asks when it has something (USB 3.2 clause 8.12.1.4). Times as in the
//! scripts above this folder's: 40 ns a header packet, 100 ns until the host answers, 200 ns until
//! the device does.

use super::*;
use units::Instant;

/// When the side that had nothing gets something.
const LATER: Instant = Instant::from_ps(5_000_000);

/// Everything is sent that there is to say, and time goes on until [`LATER`].
fn rest_until_later(wire: &mut Wire, quiet_since_ns: u64) {
    wire.run();
    assert_eq!(wire.engine.now().as_ps(), quiet_since_ns * 1_000, "{}", wire.script.join("\n"));
    wire.engine.pass(LATER);
}

#[test]
fn a_prime_for_a_read_that_the_device_has_nothing_for_is_answered_and_the_device_asks_later() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.host.queue(on(IN, 3), transfer(1, 2048)).unwrap();
    // NRDY has come at 280 and is heard 100 ns later.
    rest_until_later(&mut wire, 380);
    wire.link_pair.device.queue(on(IN, 3), transfer(1, 2048)).unwrap();
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN stream Prime expects 0, takes 1",
            // 40 + 200. Both are in Idle now.
            "  240   280 <- NRDY 1 IN stream Prime",
            // Start Stream at the device.
            " 5000  5040 <- ERDY 1 IN stream 3 for 2",
            // 5,040 + 100: the host goes along, and with this both are in Move Data.
            " 5140  5180 -> ACK 1 IN stream 3 expects 0, takes 2",
            // 5,180 + 200.
            " 5380  7492 <- DATA 1 IN stream 3 number 0, 1024 bytes",
            // The lane has carried LGOOD and LCRD twice, 32 symbols, NRDY and ERDY, 40, and 1,056
            // of data: three skips are due, 12 ns.
            " 7504  9616 <- DATA 1 IN stream 3 number 1, 1024 bytes, the last",
            " 7592  7632 -> ACK 1 IN stream 3 expects 1, takes 1",
            " 9716  9756 -> ACK 1 IN stream 3 expects 2, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 2048, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 2048, End::Full)]);
}

#[test]
fn a_prime_for_a_write_that_the_device_has_no_room_for_is_answered_and_the_device_asks_later() {
    let mut wire = Wire::new(&[streamed(OUT)]);
    wire.link_pair.host.queue(on(OUT, 3), transfer(1, 2048)).unwrap();
    // An empty data packet takes 64 ns: 64 + 200 + 40 + 100.
    rest_until_later(&mut wire, 404);
    wire.link_pair.device.queue(on(OUT, 3), transfer(1, 2048)).unwrap();
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    64 -> DATA 2 OUT stream Prime number 0, 0 bytes, the last",
            "  264   304 <- NRDY 2 OUT stream Prime",
            " 5000  5040 <- ERDY 2 OUT stream 3 for 2",
            // What was empty had no separate number.
            " 5140  7252 -> DATA 2 OUT stream 3 number 0, 1024 bytes",
            // 32 symbols of Prime, 32 of LGOOD and LCRD, 1,056: three skips.
            " 7264  9376 -> DATA 2 OUT stream 3 number 1, 1024 bytes, the last",
            " 7452  7492 <- ACK 2 OUT stream 3 expects 1, takes 1",
            " 9576  9616 <- ACK 2 OUT stream 3 expects 2, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 2048, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 2048, End::Full)]);
}

#[test]
fn a_write_takes_no_more_than_the_device_had_room_for_when_it_asked() {
    let mut wire = Wire::new(&[streamed(OUT)]);
    wire.link_pair.host.queue(on(OUT, 3), transfer(1, 2048)).unwrap();
    rest_until_later(&mut wire, 404);
    // Room for one packet, and behind that for another.
    for id in [1, 2] {
        wire.link_pair.device.queue(on(OUT, 3), transfer(id, 1024)).unwrap();
    }
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    64 -> DATA 2 OUT stream Prime number 0, 0 bytes, the last",
            "  264   304 <- NRDY 2 OUT stream Prime",
            " 5000  5040 <- ERDY 2 OUT stream 3 for 1",
            " 5140  7252 -> DATA 2 OUT stream 3 number 0, 1024 bytes",
            // 7,252 + 200, and 7,492 + 100: the host has waited to be reported of more room.
            " 7452  7492 <- ACK 2 OUT stream 3 expects 1, takes 1",
            " 7592  9704 -> DATA 2 OUT stream 3 number 1, 1024 bytes, the last",
            " 9904  9944 <- ACK 2 OUT stream 3 expects 2, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 2048, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 1024, End::Full), (2, 1024, End::Full)]);
}

#[test]
fn a_proposal_that_the_host_has_no_buffers_for_is_refused_and_made_again_after_the_next_prime() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.host.queue(on(IN, 1), transfer(1, 16)).unwrap();
    wire.link_pair.device.queue(on(IN, 2), transfer(2, 16)).unwrap();
    // The last NRDY has come at 700.
    rest_until_later(&mut wire, 800);
    wire.link_pair.host.queue(on(IN, 2), transfer(3, 16)).unwrap();
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN stream Prime expects 0, takes 1",
            "  240   280 <- NRDY 1 IN stream Prime",
            // The device is in Idle, wants stream 2, and need not wait for anything: its lane is
            // free.
            "  280   320 <- ERDY 1 IN stream 2 for 1",
            "  420   460 -> ACK 1 IN stream NoStream expects 0, takes 0",
            "  660   700 <- NRDY 1 IN stream NoStream",
            // Buffers for stream 2: the host reports of them, and what was refused may be asked for
            // again.
            " 5000  5040 -> ACK 1 IN stream Prime expects 0, takes 1",
            " 5240  5280 <- NRDY 1 IN stream Prime",
            " 5280  5320 <- ERDY 1 IN stream 2 for 1",
            " 5420  5460 -> ACK 1 IN stream 2 expects 0, takes 1",
            // 48 symbols.
            " 5660  5756 <- DATA 1 IN stream 2 number 0, 16 bytes, the last",
            " 5856  5896 -> ACK 1 IN stream 2 expects 1, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(3, 16, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(2, 16, End::Full)]);
}
