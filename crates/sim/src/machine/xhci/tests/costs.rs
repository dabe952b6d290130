//! CPU costs: sums by hand, and no job lost.

use super::*;
use initiator::Outcome;
use wire::xhci::RouteString;

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

/// A host without interrupt moderation.
fn host(costs: HostCosts) -> Host {
    let host = Host::chipset().costing(costs);
    Host { config: DriverConfig { moderation_250ns: 0, ..host.config }, ..host }
}

#[test]
fn core_time_is_the_sum_of_its_jobs() {
    let mut machine = Setup::new(host(COSTS)).with(1, drive(Drive::uas())).power_on().unwrap();
    fixture::first(&mut machine, 0);
    let (work, busy) = (machine.core().work(), machine.core().busy(machine.now()));
    (0..8).for_each(|slot| machine.submit(0, &command(slot, false, 8, 1), room(1)).unwrap());
    drain(&mut machine, 8);
    let after = machine.core().work();
    let interrupts = after.interrupts - work.interrupts;
    assert_eq!((after.commands - work.commands, after.finishes - work.finishes), (8, 8));
    assert_eq!((after.transfers - work.transfers, after.completions - work.completions), (24, 24));
    assert!((1..24).contains(&interrupts), "{interrupts}");
    let sum = us(8 * (5 + 3 * (2 + 3) + 4) + 10 * interrupts);
    assert_eq!(machine.core().busy(machine.now()).as_ps() - busy.as_ps(), sum.as_ps());
}

fn costly(of: Drive) -> XhciMachine {
    Setup::new(host(COSTS)).with(1, drive(of)).power_on().unwrap()
}

#[test]
fn reads_return_written_data_with_cpu_costs() {
    for of in [Drive::uas, Drive::bot] {
        let digest = write_and_read(costly(of()));
        assert_eq!(write_and_read(costly(of())), digest, "equal machines have equal digests");
    }
}

#[test]
fn queued_core_jobs_complete_once_after_an_abort() {
    for events in (0..400).step_by(13) {
        abort_after(costly(Drive::uas()), 8, events);
        abort_after(costly(Drive::bot()), 1, events);
    }
}

#[test]
fn queued_core_jobs_complete_once_after_a_detach() {
    let spot = PortPath { root: 1, route: RouteString::ROOT };
    for events in (0..120).step_by(9) {
        let mut machine = costly(Drive::uas());
        fixture::first(&mut machine, 0);
        for slot in 0..8 {
            machine.submit(0, &command(slot, false, u32::from(slot), 1), room(1)).unwrap();
        }
        for _ in 0..events {
            machine.step();
        }
        machine.unplug_at(spot).unwrap();
        machine.plug_again(spot).unwrap();
        assert_eq!(drain(&mut machine, 8), (0..8).collect::<Vec<_>>(), "{events}");
        assert!(machine.run().unwrap().is_none(), "nothing ends twice");
        assert!(!machine.core.works_for(0));
        machine.submit(0, &command(0, false, 0, 0), Vec::new()).unwrap();
        assert!(matches!(machine.run().unwrap().unwrap().outcome, Outcome::Answered(_)));
        assert_works(&mut machine, 0);
    }
}
