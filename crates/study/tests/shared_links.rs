//! Throughput of several drives: they share the link or bus of a hub, and have one each at root ports.

use sim::link::{superspeed, usb2};
use sim::machine::xhci::Host;
use uaskit_study::ceiling::{Drives, Load, LoadObservers, Protocol, Run, measure};
use units::Duration;

/// 64 KiB reads over UAS, so many drives behind so many hubs.
fn uas_reads(count: u8, hubs: u8) -> Run {
    let load = Load {
        host: Some(Host::chipset()),
        connection: superspeed::Rate::Gen1.into(),
        writes: false,
        bytes: 64 << 10,
        drives: Drives { count, hubs },
        depth: 8,
        commands: 300 * u32::from(count),
        latency: Duration::from_us(60),
        at_once: 32,
        seed: 1,
    };
    measure(&load, Protocol::Uas, LoadObservers::default()).expect("it runs")
}

fn rates(run: &Run) -> Vec<f64> {
    run.drives.iter().map(|drive| drive.megabytes_per_second).collect()
}

#[test]
fn two_drives_under_one_hub_share_its_link_and_one_has_it_for_itself() {
    let alone = rates(&uas_reads(1, 1));
    let [one, other] = rates(&uas_reads(2, 1))[..] else { panic!("two drives") };
    // The ceiling of 5 Gb/s is 474.9.
    assert!((430.0..475.0).contains(&alone[0]), "{alone:?}");
    assert!((one / other - 1.0).abs() < 0.02, "{one} and {other}");
    assert!((430.0..475.0).contains(&(one + other)), "{one} and {other}");
}

#[test]
fn two_drives_at_two_root_ports_do_not_share_a_link() {
    for rate in rates(&uas_reads(2, 0)) {
        assert!((430.0..475.0).contains(&rate), "{rate}");
    }
}

/// 64 KiB reads over BOT at high speed, so many drives behind so many hubs.
fn bot_reads(count: u8, hubs: u8) -> Run {
    let load = Load {
        host: Some(Host::chipset()),
        connection: usb2::Rate::High.into(),
        writes: false,
        bytes: 64 << 10,
        drives: Drives { count, hubs },
        depth: 1,
        commands: 40 * u32::from(count),
        latency: Duration::from_us(60),
        at_once: 32,
        seed: 1,
    };
    measure(&load, Protocol::Bot, LoadObservers::default()).expect("it runs")
}

#[test]
fn drives_at_one_bus_share_it_and_those_at_two_do_not() {
    let of_all = |run: &Run| run.drives.iter().map(|drive| drive.megabytes_per_second).sum::<f64>();
    let (alone, apart, together) =
        (of_all(&bot_reads(1, 0)), of_all(&bot_reads(2, 0)), of_all(&bot_reads(2, 1)));
    assert!((apart / alone - 2.0).abs() < 0.02, "{alone} and {apart}");
    // One has the bus while the other is between commands. Behind a hub 12 packets fit into a microframe: 49.152.
    assert!((48.9..49.152).contains(&together), "{alone} and {together}");
}

#[test]
fn each_hub_of_high_speed_makes_answers_later() {
    // 2 * 38 bits of 480 Mb/s for each hub and transaction: 13 packets to a microframe become 12 with one hub, or two.
    let rates = [0, 1, 5].map(|hubs| bot_reads(1, hubs).drives[0].megabytes_per_second);
    assert!(rates[0] > rates[1] && rates[1] >= rates[2] && rates[2] > 0.85 * rates[0], "{rates:?}");
}
