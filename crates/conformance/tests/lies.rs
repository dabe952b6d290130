//! The honest drive passes the tests that write, and each lie about blocks is found by the test that its row names.

use bus::Speed;
use device::Transports;
use drive::medium::Lie;
use std::collections::BTreeSet;
use uaskit_conformance::{CheckPlan, Scorecard, Test, TestedDevice, Verdict, check, lying_drive, suite};
use units::{ByteCount, Lba};

const SMALL: ByteCount = ByteCount(4 << 20);

fn run(
    announced: ByteCount,
    lies: &[Lie],
    transports: Transports,
    speed: Speed,
    tests: &[Test],
) -> Scorecard {
    let mut bus = lying_drive(speed, transports, announced, lies).expect("a drive");
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

#[test]
fn the_documented_table_has_each_lie_with_its_tests() {
    const DOCUMENT: &str = include_str!("../../../docs/CONFORMANCE.md");
    for (lie, found_by) in LIES {
        let row = DOCUMENT.lines().find(|line| line.starts_with(&format!("| `{}", lie.name())));
        let row = row.unwrap_or_else(|| panic!("{lie} is not in the table"));
        assert!(found_by.iter().all(|test| row.contains(test)), "{lie}: {row}");
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
    let mut bus = lying_drive(Speed::Super, Transports::Dual, SMALL, &[]).expect("a drive");
    let device = TestedDevice::read(&mut bus, Speed::Super).expect("descriptors");
    let mut events = 0;
    let scorecard = check(&mut bus, &device, CheckPlan::of(&suite::whole()[1..]), |_| {
        events += 1;
        events < 3
    });
    let words = scorecard.outcomes[0].verdict.words().expect("words");
    assert!(words.starts_with("interrupted after "), "{words}");
}
