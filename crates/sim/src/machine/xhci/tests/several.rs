//! Several drives: shared and separate resources.

use super::*;
use bus::Speed;
use initiator::Outcome;
use wire::xhci::RouteString;

/// A hub with drives of both transports, one of them behind another hub, and a drive at a root
/// port.
pub(super) fn mixed() -> Setup {
    let far = Hub::new(4).with(2, drive(Drive::uas()));
    let near = Hub::new(4).with(1, drive(Drive::uas())).with(3, far).with(4, drive(Drive::bot()));
    Setup::new(Host::chipset()).with(1, near).with(2, drive(Drive::bot()))
}

#[test]
fn drives_keep_separate_data() {
    let mut machine = mixed().power_on().unwrap();
    for number in 0..4 {
        fixture::first(&mut machine, number);
        for lba in 0..8 {
            let seed = lba + 50 * number as u32;
            fixture::ask(&mut machine, number, &command(1, true, 5 * lba, 3), pattern(seed, 3));
        }
    }
    for number in 0..4 {
        for lba in 0..8 {
            let seed = lba + 50 * number as u32;
            let read = fixture::ask(&mut machine, number, &command(2, false, 5 * lba, 3), room(3));
            assert!(read == pattern(seed, 3), "drive {number}, block {}", 5 * lba);
        }
    }
    assert_no_errors(&machine);
}

#[test]
fn several_drives_are_deterministic() {
    let digest = || {
        let mut machine = mixed().power_on().unwrap();
        (0..4).map(|number| fixture::write_and_read(&mut machine, number)).collect::<Vec<_>>()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn slot_contexts_have_the_route_to_each_drive() {
    let machine = mixed().power_on().unwrap();
    let ways: Vec<_> = machine
        .devices
        .iter()
        .map(|host_device| (host_device.way.port, host_device.way.route.bits()))
        .collect();
    // Drives first, in the order of the description; then hubs. The first port of SuperSpeed is the
    // controller's third.
    assert_eq!(ways, [(3, 0x1), (3, 0x23), (3, 0x4), (4, 0), (3, 0), (3, 0x3)]);
}

#[test]
fn commands_complete_when_the_hub_above_is_detached() {
    let mut machine = mixed().power_on().unwrap();
    (0..4).for_each(|number| fixture::first(&mut machine, number));
    for number in [0, 1, 3] {
        machine.submit(number, &command(0, false, 0, 4), room(4)).unwrap();
    }
    for _ in 0..40 {
        machine.step();
    }
    machine.unplug(0);
    let mut ended: Vec<_> =
        (0..3).map(|_| machine.run().unwrap().expect("each command ends").drive).collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 3]);
    while (0..3).any(|number| machine.devices[number].device.is_some()) && machine.step() {}
    for number in 0..3 {
        assert_eq!(machine.submit(number, &command(1, false, 0, 1), Vec::new()), Err(Refusal::Gone));
    }
    assert_works(&mut machine, 3);
}

/// Returns the latency of a read of 4 KiB by itself behind so many hubs.
fn latency(of: Drive, hubs: u8, delay: u64) -> u64 {
    let mut host = Host::chipset();
    // No interrupt moderation.
    host.config.moderation_250ns = 0;
    let hub = |node| Hub::new(1).delay(Duration::from_ns(delay)).with(1, node).into();
    let node = (0..hubs).fold(Node::from(drive(of)), |node, _| hub(node));
    let mut machine = Setup::new(host).with(1, node).power_on().unwrap();
    fixture::first(&mut machine, 0);
    // A timestamp may be in the way of one, and not of all.
    let reads = (0..4).map(|_| {
        let before = machine.now();
        fixture::ask(&mut machine, 0, &command(0, false, 0, 1), room(1));
        (machine.now() - before).as_ns()
    });
    reads.min().unwrap()
}

/// Clock compensation may be in the way, which takes 4 ns at a time.
fn assert_near(found_ns: u64, expected_ns: u64) {
    assert!(found_ns.abs_diff(expected_ns) <= 8, "{found_ns} ns, not {expected_ns}");
}

#[test]
fn each_tier_costs_a_read_its_crossings_by_hand() {
    // What a hub adds to a crossing: the header's 40 ns once more, its delay, and 5 ns of cable.
    let crossings = |count: u64, delay: u64| count * (40 + delay + 5);
    for delay in [0, 100, 400] {
        // UAS: the command; ERDY, ACK, data, ACK; for the status ERDY, ACK, data. All else crosses
        // while the drive works.
        let [one, rest @ ..] = [1, 2, 3, 4, 5].map(|hubs| latency(Drive::uas(), hubs, delay));
        for (tiers, latency) in (1..).zip(rest) {
            assert_near(latency - one, crossings(8 * tiers, delay));
        }
    }
    // BOT: the command; ERDY, ACK, data; for the status ACK and data, since a host asks for it when
    // it has all.
    let [none, rest @ ..] = [0, 1, 2, 3, 4, 5].map(|hubs| latency(Drive::bot(), hubs, 0));
    for (tiers, latency) in (1..).zip(rest) {
        assert_near(latency - none, crossings(6 * tiers, 0));
    }
}

#[test]
fn a_violation_at_another_drive_is_reported() {
    use crate::check::{Invariant, ViolationSubject};
    use crate::fault::Faults;
    let mut machine = mixed().power_on().unwrap().with_faults([Faults::default()]);
    assert_eq!(machine.audit(), Ok(()));
    let subject = ViolationSubject::Machine("a test");
    machine.drives[2].injector.ledger.report_violation(Invariant::BytesReported, Instant::ZERO, subject);
    assert_eq!(machine.audit().map_err(|violation| violation.invariant), Err(Invariant::BytesReported));
}

#[test]
fn violations_without_faults_are_reported() {
    use crate::check::{Invariant, Ledger};
    // More than the drive has ever sent, and than it was ever sent.
    for book in [Ledger::take, Ledger::give] {
        let mut machine = mixed().power_on().unwrap();
        assert_eq!(machine.audit(), Ok(()));
        (0..1000).for_each(|_| book(&mut machine.drives[2].injector.ledger, u16::MAX));
        assert_eq!(machine.audit().map_err(|violation| violation.invariant), Err(Invariant::Conservation));
    }
}

pub(super) const fn spot(root: u8, route: u32) -> PortPath {
    PortPath { root, route: RouteString::from_bits(route) }
}

/// A machine with a read in flight on each drive, after so many events.
fn busy(events: usize) -> XhciMachine {
    busy_in(&mixed(), events)
}

/// Like `busy`, with another setup.
pub(super) fn busy_in(setup: &Setup, events: usize) -> XhciMachine {
    let mut machine = setup.power_on().unwrap();
    let drives = machine.drives();
    (0..drives).for_each(|number| fixture::first(&mut machine, number));
    for number in 0..drives {
        machine.submit(number, &command(0, false, 0, 40), room(40)).unwrap();
    }
    for _ in 0..events {
        machine.step();
    }
    machine
}

/// Completes one command per drive; returns the drives whose command failed.
pub(super) fn failed(machine: &mut XhciMachine) -> Vec<usize> {
    let ended: Vec<_> =
        (0..machine.drives()).map(|_| machine.run().unwrap().expect("each command ends")).collect();
    let is_bad = |finished: &&FinishedCommand| !matches!(finished.outcome, Outcome::Answered(_));
    let mut failed: Vec<_> = ended.iter().filter(is_bad).map(|finished| finished.drive).collect();
    failed.sort_unstable();
    failed
}

fn assert_all_work(machine: &mut XhciMachine, drives: impl IntoIterator<Item = usize>) {
    for number in drives {
        fixture::first(machine, number);
        assert_works(machine, number);
    }
    assert_eq!(machine.system.memory.faults(), 0);
}

#[test]
fn detaching_a_hub_affects_only_devices_behind_it() {
    for events in (0..600).step_by(97) {
        let mut machine = busy(events);
        // The hub at port 3 of the hub at the first root port.
        machine.unplug_at(spot(1, 0x3)).unwrap();
        assert_eq!(failed(&mut machine), [1], "{events}");
        assert_eq!(machine.submit(1, &command(1, false, 0, 1), Vec::new()), Err(Refusal::Gone));
        assert_all_work(&mut machine, [0, 2, 3]);
        machine.plug_again(spot(1, 0x3)).unwrap();
        assert_all_work(&mut machine, 0..4);
    }
}

#[test]
fn devices_behind_a_root_port_come_back_with_it() {
    for events in (0..600).step_by(97) {
        let mut machine = busy(events);
        machine.unplug_at(spot(1, 0)).unwrap();
        assert_eq!(failed(&mut machine), [0, 1, 2], "{events}");
        assert_all_work(&mut machine, [3]);
        machine.plug_again(spot(1, 0)).unwrap();
        assert_all_work(&mut machine, 0..4);
    }
}

#[test]
fn devices_behind_a_reset_hub_come_back() {
    for (at, gone) in [(spot(1, 0), &[0, 1, 2][..]), (spot(1, 0x3), &[1])] {
        for events in (0..600).step_by(97) {
            let mut machine = busy(events);
            machine.reset_hub(at).unwrap();
            assert_eq!(failed(&mut machine), gone, "{at}, {events}");
            assert_all_work(&mut machine, 0..4);
        }
    }
}

#[test]
fn data_survives_a_hub_reset() {
    let mut machine = mixed().power_on().unwrap();
    fixture::first(&mut machine, 1);
    fixture::ask(&mut machine, 1, &command(1, true, 7, 3), pattern(5, 3));
    machine.reset_hub(spot(1, 0x3)).unwrap();
    fixture::first(&mut machine, 1);
    assert!(fixture::ask(&mut machine, 1, &command(2, false, 7, 3), room(3)) == pattern(5, 3));
}

#[test]
fn a_hub_that_stalls_during_enumeration_is_reset_and_retried() {
    let unpowered = || mixed().occupied(|_, drive| DriveParts::of(drive, Speed::Super)).unwrap();
    for hub in 0..2 {
        for after in 0..14 {
            let mut machine = unpowered();
            machine.hubs[hub].device.stall(&[after]);
            assert_eq!(machine.come_up(), Ok(()), "hub {hub}, request {after}");
            assert_all_work(&mut machine, 0..4);
            assert!(!machine.hubs[hub].device.will_stall(), "it was asked as often");
        }
        // As often as Linux tries it is not enough.
        let mut machine = unpowered();
        machine.hubs[hub].device.stall(&[0; 40]);
        assert_eq!(machine.come_up(), Err(PowerOnError::Refused("an address")), "hub {hub}");
    }
}

#[test]
fn resetting_a_missing_hub_fails() {
    let mut machine = mixed().power_on().unwrap();
    assert_eq!(machine.reset_hub(spot(1, 0x1)), Err(HotPlugError::NoHub(spot(1, 0x1))));
    assert_eq!(machine.reset_hub(spot(1, 0x7)), Err(HotPlugError::NothingThere(spot(1, 0x7))));
    assert_eq!(machine.unplug_at(spot(3, 0)), Err(HotPlugError::NothingThere(spot(3, 0))));
}
