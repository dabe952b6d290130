//! The honest drive passes the tests of data, and each of them finds a drive that breaks its rule.

mod liar;

use bus::Speed;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig, Transports};
use drive::Drive;
use drive::medium::{Lie as MediumLie, Medium, RamMedium, VolatileRam};
use liar::{HONEST, Liar, Lie, alter_cdb, alter_csw};
use std::collections::BTreeSet;
use uaskit_conformance::{
    CheckPlan, DeviceBus, DriverBus, Outcome, Scorecard, TestedDevice, Verdict, VirtualBus,
    VirtualDriveConfig, WriteLimits, check, suite,
};
use units::{BlockSize, ByteCount};
use wire::bot::{Cbw, CswStatus};
use wire::scsi::opcode::OperationCode;

const SMALL: ByteCount = ByteCount(4 << 20);

/// Offset of the CDB in a CBW.
const CDB_AT: usize = 15;

/// An operation code that does not exist.
const UNKNOWN: u8 = 0x1f;

fn drive(speed: Speed, transports: Transports, lies: &[MediumLie]) -> VirtualBus {
    let honest = VirtualDriveConfig::new(speed, transports);
    let config = VirtualDriveConfig { announced: SMALL, lies: lies.to_vec(), ..honest };
    config.plug().expect("some megabytes of memory")
}

fn run(bus: &mut dyn DeviceBus, speed: Speed, plan: CheckPlan<'_>) -> Scorecard {
    let device = TestedDevice::read(bus, speed).expect("descriptors");
    check(bus, &device, plan, |_| true)
}

fn words(outcome: &Outcome) -> String {
    format!("{} {:?}", outcome.test.id, outcome.verdict)
}

#[test]
fn an_honest_drive_passes_at_any_speed_over_any_transport() {
    let tests = suite::writing();
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        for transports in [Transports::Dual, Transports::BotOnly, Transports::UasOnly] {
            let scorecard = run(&mut drive(speed, transports, &[]), speed, CheckPlan::of(&tests));
            for outcome in &scorecard.outcomes {
                let id = outcome.test.id;
                let is_absent = id == "data-bot" && transports == Transports::UasOnly
                    || id == "data-uas" && transports == Transports::BotOnly;
                let expected = match id {
                    "data-rate" => "note",
                    _ if is_absent => "not tested",
                    _ => "pass",
                };
                let found = outcome.verdict.name();
                assert_eq!(found, expected, "{speed} {transports:?}: {}", words(outcome));
            }
        }
    }
}

#[test]
fn a_drive_with_blocks_of_4096_bytes_passes() {
    let ram = RamMedium::new(ByteCount(16 << 20), BlockSize::B4096).expect("memory");
    let medium: Box<dyn Medium + Send> = Box::new(VolatileRam::new(ram));
    let unit = LogicalUnit::new(LogicalUnitConfig::new(BlockSize::B4096, medium.capacity()));
    let device = Device::new(DeviceConfig::new(Speed::Super), vec![unit]);
    let mut bus = DriverBus::plug(Drive::new(device, vec![medium]));
    let tests = suite::writing();
    let scorecard = run(&mut bus, Speed::Super, CheckPlan::of(&tests));
    let verdicts: Vec<String> = scorecard.outcomes.iter().map(words).collect();
    assert_eq!(scorecard.count(None, "pass"), tests.len() - 1, "{}", verdicts.join("\n"));
}

/// The CDB of a CBW with this operation code.
fn cdb_of(bytes: &mut [u8], code: OperationCode) -> Option<&mut [u8]> {
    let is_meant = Cbw::decode(bytes).is_ok() && bytes[CDB_AT] == code.into();
    is_meant.then_some(&mut bytes[CDB_AT..])
}

const LIES: &[Lie] = &[
    Lie {
        name: "writes of odd sizes begin at multiples of 8",
        found_by: &["data-sizes"],
        sent: |bytes| {
            if let Some(cdb) = cdb_of(bytes, OperationCode::Write10)
                && cdb[8] % 8 != 0
            {
                cdb[5] &= 0xf8;
            }
        },
        ..HONEST
    },
    Lie {
        name: "no blocks are one block",
        found_by: &["data-zero-length"],
        sent: |bytes| {
            if let Some(cdb) = cdb_of(bytes, OperationCode::Read10)
                && cdb[7..9] == [0, 0]
            {
                cdb[8] = 1;
            }
        },
        ..HONEST
    },
    Lie {
        name: "no FUA",
        found_by: &["data-fua", "data-power-loss"],
        sent: |bytes| alter_cdb(bytes, &[OperationCode::Write10.into(), 8], &[UNKNOWN, 0]),
        ..HONEST
    },
    Lie {
        name: "no flush",
        found_by: &["data-flush"],
        sent: |bytes| alter_cdb(bytes, &[OperationCode::SynchronizeCache10.into()], &[UNKNOWN]),
        ..HONEST
    },
    Lie {
        name: "announces no write cache",
        found_by: &["data-power-loss"],
        received: |cdb, bytes| {
            /// The header of the Caching page.
            const PAGE: [u8; 2] = [0x08, 0x12];
            let is_sensed = cdb.first() == Some(&OperationCode::ModeSense6.into());
            if is_sensed && let Some(at) = bytes.windows(2).position(|two| two == PAGE) {
                bytes[at + 2] &= 0xfb;
            }
        },
        ..HONEST
    },
    Lie {
        name: "UNMAP of one block more",
        found_by: &["data-unmap"],
        sent: |bytes| {
            // The parameter list: one descriptor.
            if bytes.len() == 24 && bytes[..4] == [0, 22, 0, 16] {
                let count = u32::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) + 1;
                bytes[16..20].copy_from_slice(&count.to_be_bytes());
            }
        },
        ..HONEST
    },
    Lie {
        name: "UNMAP and WRITE SAME never fail",
        found_by: &["data-unmap-end"],
        received: |cdb, bytes| {
            let codes =
                [OperationCode::Unmap, OperationCode::WriteSame10, OperationCode::WriteSame16].map(u8::from);
            if cdb.first().is_some_and(|code| codes.contains(code)) {
                alter_csw(bytes, |csw| csw.status = CswStatus::Passed);
            }
        },
        ..HONEST
    },
    Lie {
        name: "WRITE SAME writes one block",
        found_by: &["data-write-same-10", "data-write-same-16", "data-write-same-unmap"],
        sent: |bytes| {
            if let Some(cdb) = cdb_of(bytes, OperationCode::WriteSame10) {
                cdb[7..9].copy_from_slice(&[0, 1]);
            }
            if let Some(cdb) = cdb_of(bytes, OperationCode::WriteSame16) {
                cdb[10..14].copy_from_slice(&[0, 0, 0, 1]);
            }
        },
        ..HONEST
    },
];

/// The tests that complain.
fn complaining(scorecard: &Scorecard) -> BTreeSet<&'static str> {
    let bad = scorecard.outcomes.iter().filter(|outcome| !outcome.verdict.is_harmless());
    bad.map(|outcome| outcome.test.id).collect()
}

#[test]
fn each_lie_is_found_and_each_test_finds_one() {
    let tests = suite::writing();
    let mut finding = BTreeSet::new();
    for lie in LIES {
        let drive = drive(Speed::Super, Transports::Dual, &[]);
        let mut liar = Liar { drive, lie: *lie, cdb: Vec::new() };
        let scorecard = run(&mut liar, Speed::Super, CheckPlan::of(&tests));
        let found = complaining(&scorecard);
        for expected in lie.found_by {
            let outcomes: Vec<String> = scorecard.outcomes.iter().map(words).collect();
            assert!(
                found.contains(expected),
                "{}: {expected} does not find it\n{}",
                lie.name,
                outcomes.join("\n")
            );
        }
        finding.extend(found);
    }
    for lie in [MediumLie::Wrap(ByteCount(1 << 20)), MediumLie::CapacityOffByOne] {
        let mut drive = drive(Speed::Super, Transports::Dual, &[lie]);
        finding.extend(complaining(&run(&mut drive, Speed::Super, CheckPlan::of(&tests))));
    }
    let blind: Vec<&str> = tests.iter().map(|test| test.id).filter(|id| !finding.contains(id)).collect();
    // It only measures.
    assert_eq!(blind, ["data-rate"]);
}

#[test]
fn no_block_beyond_the_area_is_written() {
    let tests = suite::writing();
    let limited = |bytes| WriteLimits { bytes: ByteCount(bytes), ..WriteLimits::default() };
    let plan = CheckPlan { tests: &tests, writes: limited(1 << 20), store: None };
    // A drive that loses what is written past the area is as good as an honest one, as far as is written.
    let mut drive = drive(Speed::Super, Transports::Dual, &[MediumLie::Drop(ByteCount(1 << 20))]);
    let scorecard = run(&mut drive, Speed::Super, plan);
    assert!(complaining(&scorecard).is_empty(), "{:?}", complaining(&scorecard));
    let plan = CheckPlan { tests: &tests, writes: limited(4096), store: None };
    let scorecard = run(&mut drive, Speed::Super, plan);
    let words = scorecard.outcomes.iter().find(|outcome| outcome.test.id == "data-sizes");
    assert_eq!(
        words.map(|outcome| outcome.verdict.clone()),
        Some(Verdict::NotTested("it overwrites 512 KiB; there are, or --size allows, less".into()))
    );
}

/// The verdict on power losses.
fn after_power_losses(lies: &[MediumLie], seed: u64, cycles: u32) -> Verdict {
    let all = suite::writing();
    let tests: Vec<_> = all.into_iter().filter(|test| test.id == "data-power-loss").collect();
    let writes = WriteLimits { power_cycles: cycles, seed, ..WriteLimits::default() };
    let plan = CheckPlan { tests: &tests, writes, store: None };
    let transports = if seed.is_multiple_of(2) { Transports::BotOnly } else { Transports::UasOnly };
    let scorecard = run(&mut drive(Speed::Super, transports, lies), Speed::Super, plan);
    scorecard.outcomes[0].verdict.clone()
}

#[test]
fn a_thousand_power_losses_of_an_honest_drive_are_no_fault() {
    for seed in [1, 1_000_000] {
        println!("seed {seed}");
        assert_eq!(after_power_losses(&[], seed, 1000), Verdict::Pass);
    }
}

#[test]
fn each_lie_about_the_cache_is_found_within_fifty_power_losses() {
    for (lie, expected) in [
        (MediumLie::IgnoreFlush, "flushed, holds"),
        (MediumLie::IgnoreFua, "written with FUA, holds"),
        (MediumLie::TornWrites, "not flushed, is torn"),
    ] {
        for seed in 1..=20 {
            println!("{lie}: seed {seed}");
            let verdict = after_power_losses(&[lie], seed, 50);
            assert!(
                matches!(&verdict, Verdict::Fail(words) if words.contains(expected)),
                "{lie}: seed {seed}: {verdict:?}"
            );
        }
    }
}
