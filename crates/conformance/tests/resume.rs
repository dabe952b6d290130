//! The pass over all blocks, interrupted and continued: it finds what an uninterrupted one finds, and is continued on no other drive.

use bus::{Pipe, Speed};
use device::Transports;
use drive::medium::Lie;
use initiator::{BusAnswer, BusRequest};
use std::time::Duration;
use uaskit_conformance::{
    CheckEvent, CheckPlan, Completed, ControlFailure, DeviceBus, RunStore, Scorecard, TestedDevice, Transfer,
    Verdict, VirtualBus, VirtualDriveConfig, WholeRun, check, suite,
};
use units::{ByteCount, Lba};
use wire::usb::SetupPacket;

const SIZE: ByteCount = ByteCount(48 << 20);

/// Keeps a run in memory.
#[derive(Default)]
struct Memory {
    run: Option<WholeRun>,
    fault: Option<String>,
    saves: usize,
}

impl RunStore for Memory {
    fn saved(&self) -> Option<&WholeRun> {
        self.run.as_ref()
    }

    fn save(&mut self, run: Option<&WholeRun>) -> Result<(), String> {
        self.saves += 1;
        self.run = run.cloned();
        Ok(())
    }

    fn keep_probe_fault(&mut self, fault: Option<String>) {
        self.fault = fault;
    }

    fn probe_fault(&self) -> Option<String> {
        self.fault.clone()
    }
}

/// Runs the tests of capacity; they are interrupted when the pass has done so many blocks more.
fn run(bus: &mut dyn DeviceBus, store: &mut dyn RunStore, blocks: Option<u64>) -> Scorecard {
    let device = TestedDevice::read(bus, Speed::Super).expect("descriptors");
    let tests = suite::whole();
    let plan = CheckPlan { store: Some(store), ..CheckPlan::of(&tests) };
    let mut first = None;
    check(bus, &device, plan, |event| match (event, blocks) {
        (CheckEvent::Progress { done, .. }, Some(blocks)) => done - *first.get_or_insert(done) < blocks,
        // Nothing follows a test that was interrupted.
        (CheckEvent::Completed(outcome), _) => {
            !outcome.verdict.words().is_some_and(|words| words.starts_with("interrupted"))
        }
        _ => true,
    })
}

fn verdict(scorecard: &Scorecard, id: &str) -> Verdict {
    let outcome = scorecard.outcomes.iter().find(|outcome| outcome.test.id == id);
    outcome.expect("it was run").verdict.clone()
}

fn drive(lies: &[Lie], transports: Transports) -> VirtualBus {
    let honest = VirtualDriveConfig::new(Speed::Super, transports);
    VirtualDriveConfig { announced: SIZE, lies: lies.to_vec(), ..honest }.plug().expect("a drive")
}

#[test]
fn a_pass_that_was_interrupted_finds_what_an_uninterrupted_one_finds() {
    let lies: &[&[Lie]] = &[
        &[],
        &[Lie::Wrap(ByteCount(512 * 50_003))],
        &[Lie::Drop(ByteCount(36 << 20))],
        &[Lie::Stuck(Lba(65_534))],
        &[Lie::Wrap(ByteCount(16 << 20)), Lie::Stuck(Lba(1000))],
    ];
    for lies in lies {
        for transports in [Transports::Dual, Transports::BotOnly] {
            let whole = run(&mut drive(lies, transports), &mut Memory::default(), None);
            let mut interrupted = drive(lies, transports);
            let mut store = Memory::default();
            let mut times = 0;
            let scorecard = loop {
                let scorecard = run(&mut interrupted, &mut store, Some(21_001));
                if store.run.is_none() {
                    break scorecard;
                }
                let words = verdict(&scorecard, "whole-blocks");
                assert!(
                    words.words().is_some_and(|words| words.starts_with("interrupted after ")),
                    "{words:?}"
                );
                times += 1;
                assert!(times < 20, "it goes on");
            };
            assert!(times >= 8 && store.saves > times, "{times} times, {} saves", store.saves);
            for id in ["whole-probe", "whole-blocks", "whole-unmap"] {
                assert_eq!(verdict(&scorecard, id), verdict(&whole, id), "{lies:?} {transports:?} {id}");
            }
        }
    }
}

#[test]
fn a_run_is_continued_on_no_other_drive_and_not_without_its_data() {
    let mut first = drive(&[], Transports::Dual);
    let mut store = Memory::default();
    run(&mut first, &mut store, Some(50_000));
    let saved = store.run.clone().expect("it was interrupted");
    let refused = |bus: &mut VirtualBus, run_of: WholeRun| {
        let mut store = Memory { run: Some(run_of), ..Memory::default() };
        let words = verdict(&run(bus, &mut store, None), "whole-blocks");
        assert!(matches!(words, Verdict::NotTested(_)), "{words:?}");
        words.words().expect("words").to_owned()
    };
    let honest = VirtualDriveConfig::new(Speed::Super, Transports::Dual);
    let smaller = VirtualDriveConfig { announced: ByteCount(24 << 20), ..honest };
    let mut smaller = smaller.plug().expect("a drive");
    let words = refused(&mut smaller, saved.clone());
    assert!(
        words.contains("with 98304 blocks of 512 bytes, and this is ") && words.contains("with 49152 blocks")
    );
    let mut serial = saved.clone();
    serial.drive.serial = "OTHER".into();
    assert!(refused(&mut first, serial).contains("serial \"OTHER\""));
    let words = refused(&mut drive(&[], Transports::Dual), saved.clone());
    assert!(words.contains("none of its data is on the drive"), "{words}");
    let mut wrong = saved;
    (wrong.written, wrong.read) = (10, 20);
    assert!(refused(&mut first, wrong).contains("contradict"));
}

/// Counts the commands in flight: transfers to the host that were started and have not ended.
struct Counted {
    drive: VirtualBus,
    in_flight: usize,
    most: usize,
}

impl DeviceBus for Counted {
    fn start(&mut self, slot: u16, pipe: Pipe, transfer: Transfer<'_>) {
        self.in_flight += 1;
        self.most = self.most.max(self.in_flight);
        self.drive.start(slot, pipe, transfer);
    }

    fn cancel(&mut self, slot: u16) {
        self.drive.cancel(slot);
    }

    fn wait(&mut self, limit: Duration) -> Option<Completed> {
        let completed = self.drive.wait(limit)?;
        self.in_flight -= 1;
        Some(completed)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure> {
        self.drive.control(setup, bytes)
    }

    fn request(&mut self, request: BusRequest) -> BusAnswer {
        self.drive.request(request)
    }

    fn is_gone(&mut self) -> bool {
        self.drive.is_gone()
    }
}

#[test]
fn the_pass_keeps_many_commands_in_flight_over_uas_and_long_ones_over_bot() {
    for (transports, transfers) in [(Transports::Dual, 3 * 30), (Transports::BotOnly, 8)] {
        let mut bus = Counted { drive: drive(&[], transports), in_flight: 0, most: 0 };
        let device = TestedDevice::read(&mut bus, Speed::Super).expect("descriptors");
        let scorecard = check(&mut bus, &device, CheckPlan::of(&suite::whole()[1..2]), |_| true);
        assert_eq!(verdict(&scorecard, "whole-blocks"), Verdict::Pass);
        assert!(bus.most >= transfers, "{transports:?}: {} transfers", bus.most);
    }
}
