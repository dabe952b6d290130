//! Situations: a recorded machine with a few lines changed, and what is to be said of it.
//!
//! [`situations`] is the list; one test judges each, another one sees to it that together they have every rule with
//! every verdict, every rule in Linux's code, every controller without streams and every check. [`golden`] has Linux's
//! tables once more, which ours are held against.

mod advice;
mod built_in;
mod causes;
mod checks;
mod configured;
mod forbidden;
mod golden;
mod lines;
mod names;
mod situations;
mod unconfigured;

use super::*;
use crate::inventory::Scope;
use crate::tree::Tree;
use lines::*;
use quirks::quirk::table::{STORAGE, TableRow, UAS};
use quirks::quirk::{CodedRule, Flag};
use situations::{Situation, situations};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A guest of QEMU with six drives, recorded by `uaskit list --record`.
const GUEST: &str = include_str!("../../tests/trees/guest.tree");

/// The guest's drive on `port`, with lines changed.
fn diagnosed(port: &str, lines: &str) -> Diagnosis {
    let record = format!("{GUEST}{lines}").parse().expect("a record");
    let inventory = Inventory::read(&Tree::of(record), Scope::Whole { log: None });
    let device = inventory.devices.iter().find(|device| device.port == port).expect("it is plugged in");
    let mut diagnoses = diagnose(&inventory, device);
    assert_eq!(diagnoses.len(), 1);
    diagnoses.remove(0)
}

fn check_of(diagnosis: &Diagnosis, kind: CheckKind) -> &Check {
    diagnosis.checks.iter().find(|check| check.kind == kind).expect("it was looked at")
}

/// The steps of the advice whose purpose begins so.
fn steps_of<'a>(diagnosis: &'a Diagnosis, purpose: &str) -> Vec<(&'a str, &'a str)> {
    let of_rules = diagnosis.judgements.iter().flat_map(|judgement| &judgement.advice);
    let advice = of_rules.chain(&diagnosis.advice).find(|advice| advice.purpose.starts_with(purpose));
    let steps = advice.iter().flat_map(|advice| &advice.steps);
    steps.map(|step| (step.place.as_str(), step.line.as_str())).collect()
}

/// Every situation with its diagnosis: making the files takes longer than looking at them.
static DIAGNOSED: LazyLock<Vec<(Situation, Diagnosis)>> = LazyLock::new(|| {
    let diagnosed = |one: Situation| {
        let diagnosis = diagnosed(one.port, &one.lines);
        (one, diagnosis)
    };
    situations().into_iter().map(diagnosed).collect()
});

#[test]
fn each_situation_is_explained() {
    assert!(DIAGNOSED.len() >= 25, "{}", DIAGNOSED.len());
    for (Situation { name, expected, decision, .. }, diagnosis) in &*DIAGNOSED {
        assert_eq!(
            (diagnosis.expected, diagnosis.decision),
            (*expected, *decision),
            "{name}: {diagnosis:#?}"
        );
    }
}

#[test]
fn together_they_have_every_rule_with_every_verdict() {
    let mut seen = BTreeSet::new();
    let mut coded = Vec::new();
    for (_, diagnosis) in &*DIAGNOSED {
        coded.extend(diagnosis.quirks.built_in.coded);
        seen.extend(diagnosis.judgements.iter().map(|one| (one.rule.name(), format!("{:?}", one.verdict))));
    }
    assert!(seen.contains(&(Rule::Configured.name(), "Refused".into())));
    for rule in Rule::ALL {
        for verdict in [Verdict::Met, Verdict::Refused] {
            assert!(seen.contains(&(rule.name(), format!("{verdict:?}"))), "no {rule:?} is {verdict:?}");
        }
    }
    let unknown = [
        Rule::Built,
        Rule::AlternateSetting,
        Rule::NotIgnored,
        Rule::ScatterGather,
        Rule::Streams,
        Rule::Loaded,
    ];
    for rule in unknown {
        assert!(seen.contains(&(rule.name(), "Unknown".into())), "no {rule:?} is unknown");
    }
    assert!(CodedRule::ALL.iter().all(|rule| coded.contains(rule)), "{coded:?}");
}

#[test]
fn every_verdict_has_its_evidence() {
    for (Situation { name, .. }, diagnosis) in &*DIAGNOSED {
        for judgement in &diagnosis.judgements {
            let is_owed = matches!(judgement.verdict, Verdict::Met | Verdict::Refused);
            assert!(!is_owed || !judgement.readings.is_empty(), "{name}: {judgement:#?}");
            // A drive that is on UAS needs no advice for that.
            let is_on_uas = matches!(diagnosis.transport, crate::inventory::Transport::Uas { .. });
            let is_owed = judgement.verdict == Verdict::Refused && !is_on_uas;
            assert_eq!(!judgement.advice.is_empty(), is_owed, "{name}: {judgement:#?}");
        }
    }
}

#[test]
fn flags_that_the_user_replaces_are_gone() {
    let diagnosis = diagnosed("3-3", &(ids(0x0bc2, 0x331a) + &quirks("0bc2:331a:g")));
    assert_eq!(diagnosis.quirks.built_in.uas(), Flags::of(&[Flag::NoReportLuns, Flag::NoAta1x]));
    assert_eq!(diagnosis.quirks.uas(), Flags::of(&[Flag::MaxSectors240]));
    assert_eq!(check_of(&diagnosis, CheckKind::Smart).health, Health::Good);
}

#[test]
fn a_log_that_only_root_can_read_names_root() {
    let mut inventory =
        Inventory::read(&Tree::of(GUEST.parse().expect("a record")), Scope::Whole { log: None });
    inventory.log = Some(Err(crate::tree::Unread::Refused));
    for controller in &mut inventory.controllers {
        controller.stream_arrays = Err(crate::tree::Unread::Refused);
    }
    let device = inventory.find("5-1")[0];
    let diagnosis = &diagnose(&inventory, device)[0];
    assert!(check_of(diagnosis, CheckKind::Resets).root_adds.is_some());
    assert!(diagnosis.judgement(Rule::Streams).is_some_and(|streams| streams.root_adds.is_some()));
    assert_eq!(diagnosis.decision, Decision::Supposed(Rule::Streams));
}

mod anything {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any descriptors, any quirks, any words in the log.
        #[test]
        fn any_drive_is_diagnosed(blob: Vec<u8>, value in "[^\n]{0,200}", words in "[^\n]{0,200}") {
            let digits: String = blob.iter().map(|byte| format!("{byte:02x}")).collect();
            let value = value.replace('\\', "");
            let lines = format!("{DRIVE}/descriptors : {digits}\n{PARAMETER} = {value}\n/dev/kmsg = usb 3-3: {}\n", words.replace('\\', ""));
            let diagnosis = diagnosed("3-3", &lines);
            prop_assert_eq!(diagnosis.judgements.len(), Rule::ALL.len());
        }
    }
}

#[test]
fn the_rule_that_decides_names_a_drive_of_uas_alone() {
    let because = |port, lines: &str| {
        let diagnosis = diagnosed(port, lines);
        diagnosis.judgement(Rule::Loaded).map(|loaded| (loaded.verdict, loaded.because.clone()))
    };
    let alone = "the drive supports UAS only, and there is no module uas: no other driver can bind to it";
    assert_eq!(because("3-1", &(uas_absent() + UAS_ALONE)), Some((Verdict::Refused, alone.into())));
    let left = "there is no module uas: usb-storage leaves the drive to it, and no driver takes it";
    assert_eq!(because("3-3", &(uas_absent() + &unbound())), Some((Verdict::Refused, left.into())));
    let loadable = "the module uas is installed but not loaded: usb-storage leaves the drive to it, and no driver takes it";
    assert_eq!(because("3-3", &(uas_loadable() + &unbound())), Some((Verdict::Refused, loadable.into())));
    let other = "there is no module uas: usb-storage leaves the drive to it, and usbip-host has it";
    assert_eq!(
        because("3-3", &(uas_absent() + &bound("usbip-host"))),
        Some((Verdict::Refused, other.into()))
    );
    // A drive without UAS is not left to it.
    assert_eq!(because("3-2", &uas_absent()).map(|one| one.0), Some(Verdict::NotAsked));
}

#[test]
fn a_drive_on_usb_storage_is_not_left_to_uas() {
    let judged = |lines: String| {
        let diagnosis = diagnosed("3-3", &(lines + &bound("usb-storage")));
        let loaded = diagnosis.judgement(Rule::Loaded).expect("judged");
        assert!(loaded.readings.iter().any(|reading| reading.found == "→ usb-storage"), "{loaded:#?}");
        let advice: Vec<&str> = loaded.advice.iter().map(|advice| advice.purpose.as_ref()).collect();
        (diagnosis.decision, loaded.because.clone(), advice.join(", "))
    };
    let because = "there is no module uas, but usb-storage has the drive nevertheless, as in a kernel built without UAS";
    let kernel = "Use a kernel with UAS".to_owned();
    assert_eq!(judged(uas_absent()), (Decision::Supposed(Rule::Built), because.into(), kernel));
    // Where the configuration says that the kernel has UAS, that is no explanation.
    let built = uas_absent() + "/boot/config-6.1.0-56-amd64 = CONFIG_USB_UAS=m\n";
    let because =
        "uas is a module of this kernel that is not installed, but usb-storage has the drive nevertheless"
            .to_owned();
    assert_eq!(judged(built), (Decision::Unexplained, because, "Get the driver".into()));
    let because =
        "the module uas is installed but not loaded, but usb-storage has the drive nevertheless".to_owned();
    assert_eq!(judged(uas_loadable()), (Decision::Unexplained, because, "Load the driver".into()));
}

#[test]
fn stream_arrays_are_reported_in_contexts() {
    let judged = |lines: String| {
        let diagnosis = diagnosed("3-3", &(lines + &bound("usb-storage")));
        let judgement = diagnosis.judgement(Rule::Streams).expect("judged").clone();
        let seen = judgement.readings.iter().find(|reading| reading.place == REGISTERS);
        (judgement.verdict, seen.map(|reading| reading.found.clone()).unwrap_or_default())
    };
    let of = |size: u8| judged(format!("{REGISTERS} = HCCPARAMS1 = 0x0008{size:x}001\n"));
    assert_eq!(of(0), (Verdict::Refused, "MaxPSASize 0: no streams".into()));
    assert_eq!(of(1), (Verdict::Met, "MaxPSASize 1: arrays of 4 contexts".into()));
    assert_eq!(of(2), (Verdict::Met, "MaxPSASize 2: arrays of 8 contexts".into()));
    assert_eq!(of(3), (Verdict::Met, "MaxPSASize 3: arrays of 16 contexts".into()));
    assert_eq!(of(15), (Verdict::Met, "MaxPSASize 15: arrays of 65536 contexts".into()));
    // MediaTek's before 1.0 has broken streams with four contexts, and those of 16 work.
    let mediatek = |size| judged(mediatek_of("CAPLENGTH = 0x00960020\\n", size)).0;
    let verdicts = [0, 1, 2, 3].map(mediatek);
    assert_eq!(verdicts, [Verdict::Refused, Verdict::Refused, Verdict::Met, Verdict::Met]);
}

#[test]
fn a_controller_of_tegra_is_an_xhci_by_its_registers() {
    let judged = |lines: &str, unread: Option<crate::tree::Unread>| {
        let drive = DRIVE.replace("pci0000:00/0000:00:02.0", "platform/3610000.xhci");
        let bound = format!("{drive}/3-3:1.0/driver -> ../../../../../../bus/usb/drivers/usb-storage\n");
        let unbound = format!("{}/3-1:1.0/driver -\n", drive.replace("3-3", "3-1"));
        let record = (on_tegra() + &bound + &unbound + lines).parse().expect("a record");
        let mut inventory = Inventory::read(&Tree::of(record), Scope::Whole { log: None });
        if let Some(unread) = unread {
            inventory.controllers[1].stream_arrays = Err(unread);
        }
        let diagnosis = diagnose(&inventory, inventory.find("3-3")[0]).remove(0);
        let streams = diagnosis.judgement(Rule::Streams).expect("judged").clone();
        let lists = diagnosis.judgement(Rule::ScatterGather).expect("judged").verdict;
        (lists, streams.verdict, streams.root_adds.is_some(), diagnosis.decision)
    };
    let registers = "/sys/kernel/debug/usb/xhci/3610000.xhci/reg-cap";
    let (met, refused) = (Verdict::Met, Verdict::Refused);
    let none = format!("{registers} = HCCPARAMS1 = 0x00080001\n");
    assert_eq!(judged(&none, None), (met, refused, false, Decision::Decided(Rule::Streams)));
    assert_eq!(judged("", None), (met, met, false, Decision::Unexplained));
    let unread = Some(crate::tree::Unread::Refused);
    assert_eq!(
        judged("", unread),
        (met, Verdict::Unknown, true, Decision::Supposed(Rule::Streams)),
        "the rule names what root could read"
    );
    // An unknown driver.
    let other = "/sys/devices/platform/3610000.xhci/driver -> ../../../bus/platform/drivers/newest-usb\n";
    assert_eq!(
        judged(&(other.to_owned() + &none), None),
        (met, refused, false, Decision::Decided(Rule::Streams))
    );
}

#[test]
fn a_table_size_shows_an_unknown_controller() {
    const PLACE: &str = "/sys/bus/usb/devices/3-3:1.0/host3/scsi_host/host3/sg_tablesize";
    let judged = |driver: &str, table: &str| {
        let lines = controller("dwc2") + &high_speed() + &bound(driver) + table;
        let diagnosis = diagnosed("3-3", &lines);
        let judgement = diagnosis.judgement(Rule::ScatterGather).expect("judged").clone();
        let seen = judgement.readings.iter().find(|reading| reading.place == PLACE);
        (judgement.verdict, seen.map(|reading| reading.found.clone()))
    };
    for entries in ["65535", "32", "127"] {
        assert_eq!(judged("usb-storage", &table_size(entries)), (Verdict::Met, Some(entries.to_owned())));
    }
    // What usb-storage has where the controller takes no lists is no evidence for either.
    assert_eq!(judged("usb-storage", &table_size("128")), (Verdict::Unknown, Some("128".to_owned())));
    assert_eq!(
        judged("usb-storage", &format!("{DRIVE}/3-3:1.0/host3/scsi_host/host3/sg_tablesize -\n")).0,
        Verdict::Unknown
    );
    // A SCSI host of another driver has its own reasons.
    assert_eq!(judged("other", &table_size("32")), (Verdict::Unknown, None));
}

#[test]
fn a_row_is_reported_with_its_versions() {
    let judged = |lines: String| {
        let diagnosis = diagnosed("3-3", &lines);
        let judgement = diagnosis.judgement(Rule::NotIgnored).expect("judged");
        let table = judgement.readings.iter().find(|reading| reading.place.starts_with("Linux"));
        (judgement.verdict, table.map(|reading| reading.place.clone()))
    };
    let since = |verdict| (verdict, Some("Linux since 6.16, unusual_uas.h".to_owned()));
    assert_eq!(judged(ids(0x0781, 0x55e8)), since(Verdict::Met));
    let new = ids(0x0781, 0x55e8) + &kernel("6.16.3-arch1-1") + &bound("usb-storage");
    assert_eq!(judged(new), since(Verdict::Refused));
    let vl817 = ids(0x2109, 0x0715) + &at("bcdDevice", "9999");
    let of_storage = Some("Linux since 5.17 before 7.1, unusual_devs.h".to_owned());
    assert_eq!(judged(vl817.clone() + &bound("usb-storage")), (Verdict::Refused, of_storage.clone()));
    assert_eq!(judged(vl817 + &bound("uas")), (Verdict::Met, of_storage));
    // One that says nothing of UAS is evidence all the same.
    let jms583 = (Verdict::Met, Some("Linux since 6.3, unusual_uas.h".to_owned()));
    assert_eq!(judged(ids(0x152d, 0x0583)), jms583);
    // One that went, and the rule that came in its place.
    let row = Some("Linux since 6.0 before 6.2, unusual_uas.h".to_owned());
    assert_eq!(judged(ids(0x0bda, 0x9210)), (Verdict::Met, row.clone()));
    assert_eq!(judged(ids(0x0bda, 0x9210) + &bound("usb-storage")), (Verdict::Unknown, row));
    let md202 = ids(0x0bda, 0x9210) + &at("manufacturer", "HIKSEMI") + &at("product", "MD202");
    let rule = Some("Linux since 6.2, uas-detect.h".to_owned());
    assert_eq!(judged(md202 + &kernel("6.2.0") + &bound("usb-storage")), (Verdict::Refused, rule));
    let all = (Verdict::Refused, Some("Linux 7.3, unusual_uas.h".to_owned()));
    assert_eq!(judged(ids(0x2537, 0x1068) + &bound("usb-storage")), all);
}
