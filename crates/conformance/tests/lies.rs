//! The honest drive passes the tests that write, and each lie and each fault is found by the tests that its row names.

use bus::Speed;
use device::Transports;
use drive::FaultKind;
use drive::medium::Lie;
use std::collections::BTreeSet;
use uaskit_conformance::{
    CheckPlan, Scorecard, Test, TestedDevice, Verdict, VirtualDriveConfig, check, suite,
};
use units::{ByteCount, Lba};

const SMALL: ByteCount = ByteCount(4 << 20);

fn run(
    announced: ByteCount,
    lies: &[Lie],
    transports: Transports,
    speed: Speed,
    tests: &[Test],
) -> Scorecard {
    let honest = VirtualDriveConfig::new(speed, transports);
    judge(&VirtualDriveConfig { announced, lies: lies.to_vec(), ..honest }, tests)
}

/// Runs tests on a virtual drive.
fn judge(config: &VirtualDriveConfig, tests: &[Test]) -> Scorecard {
    let speed = config.speed;
    let mut bus = config.plug().expect("a drive");
    let device = TestedDevice::read(&mut bus, speed).expect("descriptors");
    check(&mut bus, &device, CheckPlan::of(tests), |_| true)
}

fn verdict<'a>(scorecard: &'a Scorecard, test: &str) -> &'a Verdict {
    let outcome = scorecard.outcomes.iter().find(|outcome| outcome.test.id == test);
    &outcome.unwrap_or_else(|| panic!("there is no {test}")).verdict
}

/// A lie, and the tests that must find it.
const LIES: &[(Lie, &[&str])] = &[
    (Lie::Wrap(ByteCount(1 << 20)), &["whole-probe", "whole-blocks", "data-bot", "data-uas"]),
    (Lie::Wrap(ByteCount(3 * 512 * 1023)), &["whole-blocks", "data-bot", "data-uas"]),
    (Lie::Drop(ByteCount(3 << 19)), &["whole-probe", "whole-blocks", "data-bot", "data-uas"]),
    (Lie::KeepAfterUnmap, &["whole-unmap", "data-unmap", "data-write-same-unmap"]),
    (Lie::CapacityOffByOne, &["scsi-last-block", "whole-probe", "whole-blocks", "data-end"]),
    (Lie::IgnoreFlush, &["data-power-loss"]),
    (Lie::IgnoreFua, &["data-power-loss"]),
    (Lie::TornWrites, &["data-power-loss"]),
    (Lie::Stuck(Lba(1000)), &["whole-blocks", "data-bot", "data-uas"]),
];

#[test]
fn the_honest_drive_passes_the_tests_of_capacity() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        for transports in [Transports::BotOnly, Transports::UasOnly] {
            let scorecard = run(SMALL, &[], transports, speed, &suite::whole());
            for outcome in &scorecard.outcomes {
                assert_eq!(outcome.verdict, Verdict::Pass, "{} {speed} {transports:?}", outcome.test.id);
            }
        }
    }
}

#[test]
fn each_lie_about_blocks_is_found_and_each_test_finds_one() {
    let tests = [suite::read_only(), suite::writing(), suite::whole()].concat();
    let mut finding = BTreeSet::new();
    for (lie, found_by) in LIES {
        let scorecard = run(SMALL, &[*lie], Transports::Dual, Speed::Super, &tests);
        for test in *found_by {
            let found = verdict(&scorecard, test);
            assert!(!found.is_harmless(), "{lie}: {test} does not find it: {found:?}");
            finding.insert(*test);
        }
    }
    assert_eq!(LIES.iter().map(|(lie, _)| lie.name()).collect::<BTreeSet<_>>().len(), Lie::ALL.len());
    assert!(suite::whole().iter().all(|test| finding.contains(test.id)), "a test finds nothing");
}

/// A fault of what the drive sends, at each transfer that it concerns, and tests that must find it.
const FAULTS: &[(FaultKind, &[&str])] = &[
    (FaultKind::StallStatus, &["uas-command", "scsi-ready"]),
    (FaultKind::LoseStatus, &["uas-command", "scsi-ready"]),
    (FaultKind::StallData, &["scsi-last-block", "data-bot", "data-uas"]),
    (FaultKind::LoseData, &["scsi-last-block", "data-bot", "data-uas"]),
    (FaultKind::WrongData, &["data-bot", "data-uas"]),
    (FaultKind::WrongTag, &["uas-command", "scsi-ready"]),
    (FaultKind::WrongStatus, &["bot-case-1", "uas-command", "scsi-ready"]),
    (FaultKind::WrongResidue, &["bot-case-1", "bot-case-5", "bot-case-6"]),
    (FaultKind::PhaseError, &["scsi-ready"]),
    (FaultKind::WrongResponse, &["uas-abort-task", "uas-unit-reset", "uas-tmf-lun"]),
    (FaultKind::StaleSense, &["uas-sense"]),
    (FaultKind::GarbageStatus, &["uas-command", "scsi-ready"]),
];

#[test]
fn each_fault_of_what_the_drive_sends_is_found() {
    let tests = [suite::read_only(), suite::writing()].concat();
    for (kind, found_by) in FAULTS {
        let honest = VirtualDriveConfig::new(Speed::Super, Transports::Dual);
        let scorecard = judge(&VirtualDriveConfig { faults: vec![kind.always()], ..honest }, &tests);
        for test in *found_by {
            let found = verdict(&scorecard, test);
            assert!(matches!(found, Verdict::Fail(_)), "{kind:?}: {test} does not find it: {found:?}");
        }
    }
    assert_eq!(
        FAULTS.iter().map(|(kind, _)| kind.name()).collect::<BTreeSet<_>>().len(),
        FaultKind::ALL.len()
    );
}

#[test]
fn each_fault_is_found_over_each_transport_that_has_it() {
    let tests = [suite::read_only(), suite::writing()].concat();
    for transports in [Transports::BotOnly, Transports::UasOnly] {
        for (kind, _) in FAULTS {
            let is_absent = match kind {
                // A host reads a status that was stalled again (BOT clause 6.3).
                FaultKind::StallStatus | FaultKind::WrongResponse | FaultKind::StaleSense => {
                    transports == Transports::BotOnly
                }
                FaultKind::WrongResidue | FaultKind::PhaseError => transports == Transports::UasOnly,
                _ => false,
            };
            let honest = VirtualDriveConfig::new(Speed::Super, transports);
            let scorecard = judge(&VirtualDriveConfig { faults: vec![kind.always()], ..honest }, &tests);
            assert_eq!(scorecard.count(None, "fail") == 0, is_absent, "{kind:?} {transports:?}");
        }
    }
}

#[test]
fn a_fault_that_happens_now_and_then_is_found() {
    let tests = [suite::read_only(), suite::writing()].concat();
    for (kind, _) in FAULTS.iter().filter(|(kind, _)| *kind != FaultKind::StaleSense) {
        let text = format!("{}/5:1", kind.name());
        let faults = vec![text.parse().expect("a fault")];
        let honest = VirtualDriveConfig::new(Speed::Super, Transports::Dual);
        let scorecard = judge(&VirtualDriveConfig { faults, ..honest }, &tests);
        assert!(scorecard.count(None, "fail") > 0, "{text}");
    }
}

#[test]
fn lost_unit_attentions_and_heat_are_found() {
    let tests = suite::read_only();
    let honest = || VirtualDriveConfig::new(Speed::Super, Transports::Dual);
    let lost = VirtualDriveConfig { loses_attentions: true, ..honest() };
    let hot = VirtualDriveConfig { temperature_c: 85, ..honest() };
    for (config, test, expected) in [
        (lost, "scsi-unit-attention", Verdict::Warning("no unit attention after a port reset".into())),
        (hot, "scsi-temperature", Verdict::Fail("the drive has 85 °C, and works below 70 °C".into())),
    ] {
        let scorecard = judge(&config, &tests);
        assert_eq!(verdict(&scorecard, test), &expected);
        let others = scorecard.outcomes.iter().filter(|outcome| !outcome.verdict.is_harmless());
        assert_eq!(others.count(), 1, "{test} alone finds it");
    }
}

#[test]
fn the_documented_table_has_each_lie_with_its_tests() {
    const DOCUMENT: &str = include_str!("../../../docs/CONFORMANCE.md");
    let lies = LIES.iter().map(|(lie, found_by)| (lie.name(), *found_by));
    let others = [("lost-attention", &["scsi-unit-attention"][..]), ("hot", &["scsi-temperature"])];
    for (name, found_by) in
        lies.chain(FAULTS.iter().map(|(kind, found_by)| (kind.name(), *found_by))).chain(others)
    {
        let row = DOCUMENT.lines().find(|line| line.starts_with(&format!("| `{name}")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert!(found_by.iter().all(|test| row.contains(test)), "{name}: {row}");
    }
}

#[test]
fn the_probe_decides_a_liar_of_16_tib_that_keeps_1_gib() {
    let (announced, stored) = (ByteCount(16 << 40), ByteCount(1 << 30));
    let probe = &suite::whole()[..1];
    let words = |lie| {
        let scorecard = run(announced, &[lie], Transports::Dual, Speed::Super, probe);
        scorecard.outcomes[0].verdict.words().expect("it is found").to_owned()
    };
    let wraps = words(Lie::Wrap(stored));
    assert!(wraps.ends_with("blocks wrap around after 1 GiB, of 16 TiB that are announced"), "{wraps}");
    let drops = words(Lie::Drop(stored));
    assert_eq!(
        drops,
        "writes from LBA 2097152 on are acknowledged and lost: of 16 TiB that are announced the drive keeps 1 GiB"
    );
}

#[test]
fn a_wrap_that_is_no_power_of_two_is_measured_by_the_full_pass() {
    let lie = Lie::Wrap(ByteCount(3069 * 512));
    let scorecard = run(SMALL, &[lie], Transports::Dual, Speed::Super, &suite::whole());
    let words = verdict(&scorecard, "whole-blocks").words().expect("it is found");
    // Of 8192 blocks the last 3069 remain; LBA 0 holds 6138, two rounds later.
    assert_eq!(words, "of 8192 blocks 5123 hold the data of a later one (first LBA 0, which holds LBA 6138)");
}

#[test]
fn stuck_blocks_are_named_by_the_full_pass() {
    let stuck = |lie, tests: &[Test]| {
        let scorecard = run(SMALL, &[lie], Transports::Dual, Speed::Super, tests);
        verdict(&scorecard, "whole-blocks").words().expect("it is found").to_owned()
    };
    let words = stuck(Lie::Stuck(Lba(1000)), &suite::whole());
    // The probe has written none of them: the first one holds its own stamp.
    assert_eq!(words, "of 8192 blocks 7 hold one old block (first LBA 1001, which holds LBA 1000)");
    let all = [suite::writing(), suite::whole()].concat();
    let words = stuck(Lie::Stuck(Lba(1000)), &all);
    assert_eq!(words, "of 8192 blocks 8 hold one old block (first LBA 1000)");
}

#[test]
fn a_test_that_is_interrupted_says_so_and_the_rest_is_not_run() {
    let honest = VirtualDriveConfig::new(Speed::Super, Transports::Dual);
    let mut bus = VirtualDriveConfig { announced: SMALL, ..honest }.plug().expect("a drive");
    let device = TestedDevice::read(&mut bus, Speed::Super).expect("descriptors");
    let mut events = 0;
    let scorecard = check(&mut bus, &device, CheckPlan::of(&suite::whole()[1..]), |_| {
        events += 1;
        events < 3
    });
    let words = scorecard.outcomes[0].verdict.words().expect("words");
    assert!(words.starts_with("interrupted after "), "{words}");
}
