//! A link that sleeps when nothing crosses: times worked out by hand, and books that agree whatever
//! crosses when.
//!
//! A header packet takes 40 ns, a link command 16 ns, the cable 5 ns. After the packet at 0, which
//! arrives at 45, the host's port asks for U1 at 50,045 (LGO_U1, there at 50,066), the device
//! agrees (LAU, there at 50,087), and the host's port confirms (LPMA, there at 50,108).

use super::*;
use crate::power::Attojoules;
use proptest::prelude::*;

/// A link over which a packet of the host has gone at 0.
fn link(sleep: Sleep) -> Link {
    let mut link = Link::new(Rate::Gen1, Duration::from_ns(5));
    link.let_sleep(sleep);
    send(&mut link, 0, Side::Host);
    link
}

/// Returns when a packet goes that a side has at a time.
fn send(link: &mut Link, at: u64, from: Side) -> Instant {
    let crossing = link.send(ns(at), from, Packet::Header, Duration::ZERO).unwrap();
    link.accept_on_arrival(crossing.arrives, from.other());
    crossing.begins
}

fn times(link: &Link, at: u64) -> [u64; 4] {
    link.meter(ns(at)).times(ns(at)).map(|time| time.as_ps() / 1_000)
}

#[test]
fn an_idle_link_is_in_u1_after_three_link_commands_and_back_after_its_exit_latency() {
    let mut link = link(Sleep::LINUX);
    assert_eq!(times(&link, 90_000), [50_108, 90_000 - 50_108, 0, 0]);
    assert_eq!(send(&mut link, 100_000, Side::Device), ns(110_000));
    assert_eq!(times(&link, 200_000)[1..], [100_000 - 50_108 + 200_000 - 160_108, 0, 10_000]);
    // LGOOD and LCRD, and LAU.
    assert_eq!(link.lane(Side::Device).traffic().commands, 3 * 8);
    assert_eq!(link.lane(Side::Host).traffic().commands, 2 * 8);
}

#[test]
fn a_link_in_u1_is_in_u2_after_its_time_without_another_word() {
    let mut link = link(Sleep::LINUX);
    let asleep = 50_108 + 40 * 256_000;
    assert_eq!(times(&link, 20_000_000), [50_108, 40 * 256_000, 20_000_000 - asleep, 0]);
    assert_eq!(send(&mut link, 20_000_000, Side::Host), ns(20_000_000 + 2_047_000));
}

#[test]
fn a_port_enters_u2_directly_if_configured() {
    let u2 = Inactivity::from_u2_timeout(1);
    let mut link = link(Sleep { u1: Inactivity::Refused, u2, ..Sleep::LINUX });
    assert_eq!(send(&mut link, 300_000, Side::Host), ns(300_000 + 2_047_000));
    assert_eq!(times(&link, 300_000)[0], 256_108);
}

#[test]
fn a_packet_that_comes_before_the_request_is_there_lets_the_device_refuse() {
    let mut link = link(Sleep::LINUX);
    // LXU goes from 50,066 to 50,082.
    assert_eq!(send(&mut link, 50_050, Side::Device), ns(50_082));
    assert_eq!(times(&link, 60_000), [60_000, 0, 0, 0]);
}

#[test]
fn a_packet_that_comes_after_the_device_has_agreed_waits_until_the_link_sleeps_and_wakes_up() {
    let mut link = link(Sleep::LINUX);
    assert_eq!(send(&mut link, 50_070, Side::Device), ns(50_108 + 10_000));
}

#[test]
fn a_device_at_work_refuses_each_time_and_answers_at_once() {
    let mut link = link(Sleep::LINUX);
    link.work(ns(100), true);
    assert_eq!(send(&mut link, 1_000_000, Side::Device), ns(1_000_000));
    assert_eq!(times(&link, 1_000_000), [1_000_000, 0, 0, 0]);
    // Asked 19 times, each 50,042 ns after the one before; LGOOD and LCRD besides.
    assert_eq!(link.lane(Side::Host).traffic().commands, 19 * 8);
    assert_eq!(link.lane(Side::Device).traffic().commands, 19 * 8 + 7 * 16 + 16);
}

#[test]
fn a_device_that_accepts_entry_into_a_low_power_state_is_slower() {
    let mut link = link(Sleep { device_refuses_at_work: false, ..Sleep::LINUX });
    link.work(ns(100), true);
    assert_eq!(send(&mut link, 100_000, Side::Device), ns(110_000));
}

#[test]
fn a_device_asks_when_it_may_and_the_port_accepts() {
    for (u1, asleep) in [(Inactivity::Accepted, true), (Inactivity::Refused, false)] {
        let device_asks_after = Duration::from_us(5);
        let mut link = link(Sleep { u1, u2: Inactivity::Refused, device_asks_after, ..Sleep::LINUX });
        assert_eq!(times(&link, 100_000), [100_000, 0, 0, 0], "U1_ENABLE is clear");
        link.let_device_ask(ns(1_000), LinkState::U1, true);
        assert_eq!(times(&link, 100_000)[0] == 5_108, asleep);
        link.let_device_ask(ns(2_000), LinkState::U1, false);
        assert_eq!(times(&link, 100_000), [100_000, 0, 0, 0]);
    }
}

#[test]
fn a_link_that_sleeps_sends_no_timestamps() {
    let mut link = link(Sleep::LINUX);
    // Asleep from 50 us on; awake at 1,012,047 us, which is 47 us before the next.
    assert_eq!(send(&mut link, 1_010_000_000, Side::Host), ns(1_012_047_000));
    assert_eq!(link.lane(Side::Host).traffic().packets, 2 * 20);
    assert_eq!(send(&mut link, 1_012_126_000, Side::Host), ns(1_012_126_000) + Duration::from_us(10));
    assert_eq!(link.lane(Side::Host).traffic().packets, 3 * 20);
}

#[test]
fn what_each_state_costs_is_its_time_and_what_it_draws() {
    let link = link(Sleep::LINUX);
    let [u0, u1, u2, exit] = link.meter(ns(150_108)).energy_by_state(ns(150_108));
    assert_eq!(u0, Attojoules(50_108_000 * 340_000));
    assert_eq!(u1, Attojoules(100_000_000 * 120_000));
    assert_eq!((u2, exit), (Attojoules(0), Attojoules(0)));
}

#[test]
fn timeouts_decode_from_the_port_registers() {
    assert_eq!(Inactivity::from_u1_timeout(0x7F), Some(Inactivity::After(Duration::from_us(127))));
    assert_eq!(Inactivity::from_u1_timeout(0x80), None);
    assert_eq!(Inactivity::from_u1_timeout(0xFF), Some(Inactivity::Accepted));
    assert_eq!(Inactivity::from_u1_timeout(0), Some(Inactivity::Refused));
    assert_eq!(Inactivity::from_u2_timeout(0xFE), Inactivity::After(Duration::from_us(65_024)));
    assert_eq!(Inactivity::from_u2_timeout(0), Inactivity::Refused);
}

proptest! {
    #[test]
    fn whatever_crosses_when_times_and_energy_add_up(
        turns in prop::collection::vec((0_u64..30_000_000, any::<bool>(), 0_u8..8), 1..40),
        timeouts in (0_u8..128, any::<u8>()),
        device_refuses_at_work in any::<bool>(),
    ) {
        let u1 = Inactivity::from_u1_timeout(timeouts.0).unwrap();
        let u2 = Inactivity::from_u2_timeout(timeouts.1);
        let mut link = link(Sleep { u1, u2, device_refuses_at_work, ..Sleep::LINUX });
        let mut now = 1_000;
        for (span, is_host, act) in turns {
            now += if act < 4 { span } else { span / 1_000 };
            match act % 4 {
                0 => link.work(ns(now), is_host),
                1 => link.let_device_ask(ns(now), LinkState::U1, is_host),
                2 => link.let_device_ask(ns(now), LinkState::U2, is_host),
                _ => {
                    let begins = send(&mut link, now, if is_host { Side::Host } else { Side::Device });
                    prop_assert!(begins >= ns(now) && begins < ns(now) + Duration::from_us(2_060));
                    now = begins.as_ps() / 1_000 + 200;
                }
            }
            prop_assert!(link.meter(ns(now)).is_consistent(ns(now)));
        }
    }
}
