//! Host core time per command, against sums by hand.

use sim::engine::LatencyStage;
use sim::link::superspeed::Rate;
use sim::machine::xhci::{DriverConfig, Host, HostCosts};
use uaskit_study::ceiling::{self, Drives, Figures, Load, LoadObservers, Protocol};
use units::Duration;

const fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

const COSTS: HostCosts = HostCosts {
    command: us(5),
    transfer: us(2),
    completion: us(3),
    finish: us(4),
    interrupt: us(10),
    wake: Duration::ZERO,
    idle_after: Duration::ZERO,
    pack: Duration::ZERO,
    copied_byte_ps: 0,
};
/// Interrupts take so long that a fast drive has done everything meanwhile.
const LONG: HostCosts = HostCosts { interrupt: us(40), ..COSTS };
/// More of everything, each by another amount.
const MORE: HostCosts = HostCosts {
    command: us(5 + 1),
    transfer: us(2 + 10),
    completion: us(3 + 100),
    finish: us(4 + 1_000),
    interrupt: us(40 + 10_000),
    ..LONG
};

/// A host that gets events without interrupt moderation.
fn host(costs: HostCosts) -> Host {
    let host = Host::chipset().costing(costs);
    Host { config: DriverConfig { moderation_250ns: 0, ..host.config }, ..host }
}

fn measure(costs: HostCosts, protocol: Protocol, depth: u16) -> Figures {
    measure_with(costs, protocol, (depth, us(60)))
}

/// Measures 4 KiB reads at this depth from a drive with this latency.
fn measure_with(costs: HostCosts, protocol: Protocol, (depth, latency): (u16, Duration)) -> Figures {
    let load = Load {
        host: Some(host(costs)),
        connection: Rate::Gen1.into(),
        writes: false,
        bytes: 4096,
        drives: Drives { count: 1, hubs: 0 },
        depth,
        commands: 64,
        latency,
        at_once: 32,
        seed: 1,
    };
    ceiling::measure(&load, protocol, LoadObservers { explain: true, ..LoadObservers::default() })
        .expect("it runs")
        .total
}

/// How much longer a command takes with more than with less, in microseconds to the tenth.
fn longer(protocol: Protocol) -> f64 {
    let mean = |costs| measure_with(costs, protocol, (1, us(1))).mean.as_ns() as f64;
    let [more, less] = [MORE, LONG].map(mean);
    ((more - less) / 100.0).round() / 10.0
}

#[test]
fn a_command_over_bot_costs_three_transfers_with_an_interrupt_each() {
    assert_eq!(longer(Protocol::Bot), f64::from(1 + 3 * (10 + 100 + 10_000) + 1_000));
}

#[test]
fn a_command_over_uas_costs_three_transfers_and_one_interrupt() {
    // The COMMAND IU's interrupt is taken when data and status are there as well.
    assert_eq!(longer(Protocol::Uas), f64::from(1 + 3 * 10 + 10_000 + 3 * 100 + 1_000));
}

#[test]
fn many_commands_over_uas_take_turns_at_the_core() {
    let figures = measure(COSTS, Protocol::Uas, 16);
    let period = figures.elapsed.as_ns() as f64 / figures.commands as f64;
    let alone = 1e3 * f64::from(5 + 3 * (2 + 3) + 4);
    // Interrupts are shared: they come more rarely than commands end.
    assert!((alone..alone + 10_000.0).contains(&period), "{period}");
}

#[test]
fn the_time_of_a_command_includes_that_of_the_driver() {
    let figures = measure(COSTS, Protocol::Bot, 1);
    let shares = figures.explained.unwrap().shares;
    assert_eq!(shares.total().as_ps() / figures.commands, figures.mean.as_ps());
    // The drive reads while the completion of the command wrapper and the transfer of data cost.
    let driver = shares.of(LatencyStage::Driver).as_ns() as f64 / figures.commands as f64;
    let seen = f64::from(1000 * (5 + 2 + 10 + 3 + 2 + 10 + 3 + 4));
    assert!((driver - seen).abs() < 1_500.0, "{driver}");
    let free = measure(HostCosts::FREE, Protocol::Bot, 1);
    assert_eq!(free.explained.unwrap().shares.of(LatencyStage::Driver), Duration::ZERO);
    // Rings, descriptors and events, three times, and next to nothing is left.
    let of = |stage| free.explained.unwrap().shares.of(stage).as_ns() / free.commands;
    assert!((1_000..10_000).contains(&of(LatencyStage::Controller)), "{}", of(LatencyStage::Controller));
    assert!(of(LatencyStage::Waiting) < 500, "{}", of(LatencyStage::Waiting));
}

#[test]
fn a_core_that_sleeps_while_the_drive_works_wakes_up_for_what_comes() {
    let sleepy = |idle_after| HostCosts { wake: us(22), idle_after, ..COSTS };
    let mean = |costs| measure(costs, Protocol::Bot, 1).mean.as_ns() as f64 / 1e3;
    let awake = mean(COSTS);
    assert_eq!(mean(sleepy(us(500))), awake);
    // Once for a command: the other phases are short.
    assert!((mean(sleepy(us(30))) - awake - 22.0).abs() < 0.1);
}
