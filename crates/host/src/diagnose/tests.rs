//! Situations: a recorded machine with a few lines changed, and what is to be said of it.
//!
//! [`situations`] is the list; one test judges each, another one sees to it that together they have every rule with
//! every verdict, every rule in Linux's code, every controller without streams and every check.

use super::rules::BROKEN_STREAMS;
use super::*;
use crate::inventory::Scope;
use crate::tree::Tree;
use initiator::probe::quirk::table::{STORAGE, TableRow, UAS};
use initiator::probe::quirk::{CodedRule, Flag};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A guest of QEMU with six drives, recorded by `uaskit list --record`.
const GUEST: &str = include_str!("../../tests/trees/guest.tree");

/// A drive with UAS and BOT at super speed, which most situations change.
const DRIVE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3";
const CONTROLLER: &str = "/sys/devices/pci0000:00/0000:00:02.0";
const REGISTERS: &str = "/sys/kernel/debug/usb/xhci/0000:00:02.0/reg-cap";
const PARAMETER: &str = crate::inventory::PARAMETER;
const INDEX: &str = "/lib/modules/6.1.0-56-amd64/modules.dep";

struct Situation {
    name: &'static str,
    port: &'static str,
    lines: String,
    expected: Expected,
    decision: Decision,
}

fn situation(
    name: &'static str,
    port: &'static str,
    lines: String,
    expected: Expected,
    decision: Decision,
) -> Situation {
    Situation { name, port, lines, expected, decision }
}

/// The drive on port 3-3, changed, as `usb-storage` has it because of that rule.
fn on_bot(name: &'static str, lines: String, rule: Rule) -> Situation {
    situation(name, "3-3", lines + &bound("usb-storage"), Expected::UsbStorage, Decision::Decided(rule))
}

/// The same, as `uas` has it.
fn on_uas(name: &'static str, lines: String) -> Situation {
    situation(name, "3-3", lines, Expected::Uas, Decision::AllMet)
}

/// The same, without a driver.
fn alone(name: &'static str, lines: String, decision: Decision) -> Situation {
    situation(name, "3-3", lines + &unbound(), Expected::NoDriver, decision)
}

fn bound(driver: &str) -> String {
    format!("{DRIVE}/3-3:1.0/driver -> ../../../../../../bus/usb/drivers/{driver}\n")
}

/// A driver has the device as a whole.
fn at_device(driver: &str) -> String {
    format!("{DRIVE}/driver -> ../../../../../bus/usb/drivers/{driver}\n")
}

fn unbound() -> String {
    format!("{DRIVE}/3-3:1.0/driver -\n")
}

fn at(name: &str, value: &str) -> String {
    format!("{DRIVE}/{name} = {value}\n")
}

fn ids(vendor: u16, product: u16) -> String {
    at("idVendor", &format!("{vendor:04x}")) + &at("idProduct", &format!("{product:04x}"))
}

fn quirks(value: &str) -> String {
    format!("{PARAMETER} = {value}\n")
}

fn log(line: &str) -> String {
    format!("/dev/kmsg = {line}\n")
}

/// The drive's descriptors with changes.
fn descriptors(change: impl Fn(&mut Vec<u8>)) -> String {
    let prefix = format!("{DRIVE}/descriptors : ");
    let digits = GUEST.lines().find_map(|line| line.strip_prefix(&prefix)).expect("recorded");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    let mut bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    change(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{digits}\n")
}

/// bMaxPower of the configuration, whose descriptor follows that of the device.
fn max_power(value: u8) -> String {
    descriptors(|bytes| bytes[18 + 8] = value)
}

/// The device draws current, and each companion offers two to the power of `exponent` streams.
fn asmedia(product: u16, exponent: u8) -> String {
    let streams = |bytes: &mut Vec<u8>| {
        bytes[18 + 8] = 18;
        for at in 0..bytes.len() - 6 {
            // A companion with streams: 6 bytes, type 30h, bursts of 16, an exponent.
            if bytes[at..at + 3] == [0x06, 0x30, 0x0f] && bytes[at + 3] == 5 {
                bytes[at + 3] = exponent;
            }
        }
    };
    ids(0x174c, product) + &descriptors(streams)
}

/// No pipe usage descriptor says that it is the status pipe.
fn without_status_pipe() -> String {
    descriptors(|bytes| {
        let usage = bytes.windows(3).position(|three| three == [0x04, 0x24, 0x02]).expect("a pipe usage");
        bytes[usage + 2] = 0x07;
    })
}

/// Every companion says that there are no streams.
fn without_streams() -> String {
    descriptors(|bytes| {
        for at in 0..bytes.len() - 6 {
            if bytes[at..at + 2] == [0x06, 0x30] {
                bytes[at + 3] = 0;
            }
        }
    })
}

fn high_speed() -> String {
    at("speed", "480")
}

fn controller(driver: &str) -> String {
    format!("{CONTROLLER}/driver -> ../../../bus/platform/drivers/{driver}\n{REGISTERS} -\n/dev/kmsg -\n")
}

fn uas_absent() -> String {
    format!("/sys/bus/usb/drivers/uas -\n{INDEX} = kernel/drivers/usb/storage/usb-storage.ko.xz:\n")
}

fn uas_loadable() -> String {
    format!("/sys/bus/usb/drivers/uas -\n{INDEX} = kernel/drivers/usb/storage/uas.ko.xz: usb-storage\n")
}

fn situations() -> Vec<Situation> {
    use Decision::Decided;
    let mut all = vec![
        on_uas("UAS with streams", String::new()),
        situation("UAS in turns", "2-4", String::new(), Expected::Uas, Decision::AllMet),
        situation("a drive that is UAS alone", "3-1", String::new(), Expected::Uas, Decision::AllMet),
        situation("BOT alone", "3-2", String::new(), Expected::UsbStorage, Decided(Rule::AlternateSetting)),
        situation(
            "behind a hub",
            "2-8.2",
            String::new(),
            Expected::UsbStorage,
            Decided(Rule::AlternateSetting),
        ),
        situation("UAS alone, no streams", "5-1", String::new(), Expected::NoDriver, Decided(Rule::Streams)),
        situation(
            "the same without a log",
            "5-1",
            "/dev/kmsg -\n".into(),
            Expected::NoDriver,
            Decided(Rule::Streams),
        ),
        on_bot("no streams, says debugfs", format!("{REGISTERS} = HCCPARAMS1 = 0x00080001\n"), Rule::Streams),
        on_bot("vhci_hcd at super speed", controller("vhci_hcd"), Rule::Streams),
        on_uas("vhci_hcd at high speed", controller("vhci_hcd") + &high_speed()),
        on_bot("dummy_hcd at super speed", controller("dummy_hcd"), Rule::Streams),
        on_bot("a pipe is not told", without_status_pipe(), Rule::Pipes),
        on_bot("a row of the table", ids(0x357d, 0x7788), Rule::NotIgnored),
        on_uas("another revision than the row's", ids(0x0984, 0x0301) + &at("bcdDevice", "0129")),
        on_bot("ASMedia below super speed", asmedia(0x55aa, 4) + &high_speed(), Rule::NotIgnored),
        on_bot("ASMedia with 32 streams", asmedia(0x5106, 5), Rule::NotIgnored),
        on_uas("ASMedia with 16 streams", asmedia(0x55aa, 4)),
        on_uas("ASMedia without power from the bus", ids(0x174c, 0x55aa)),
        on_uas("Seagate", ids(0x0bc2, 0xab38)),
        on_bot(
            "HIKSEMI MD202",
            ids(0x0bda, 0x9210) + &at("manufacturer", "HIKSEMI") + &at("product", "MD202"),
            Rule::NotIgnored,
        ),
        on_uas("Realtek of others", ids(0x0bda, 0x9210) + &at("manufacturer", "HIKSEMI")),
        on_bot("the user says u", quirks("1209:0001:u"), Rule::NotIgnored),
        on_uas("the user says nothing of u", ids(0x357d, 0x7788) + &quirks("357d:7788:f")),
        on_uas("an empty entry", ids(0x174c, 0x55aa) + &max_power(18) + &quirks("1:2:u,174c:55aa:")),
        on_bot(
            "no scatter-gather",
            log(
                "usb 3-3: The driver for the USB controller xhci_hcd does not support scatter-gather which is",
            ),
            Rule::ScatterGather,
        ),
    ];
    all.extend(driver_situations());
    all.extend(unclear_situations());
    all.extend(stray_situations());
    all.extend(BROKEN_STREAMS.iter().map(|(vendor, device, name)| {
        let pci = format!("{CONTROLLER}/vendor = 0x{vendor:04x}\n{CONTROLLER}/device = 0x{device:04x}\n");
        on_bot(name, pci, Rule::Streams)
    }));
    all
}

/// The driver is not built, not there, not loaded, or has given up.
fn driver_situations() -> Vec<Situation> {
    use Decision::Decided;
    vec![
        on_bot(
            "a kernel without UAS",
            "/boot/config-6.1.0-56-amd64 = # CONFIG_USB_UAS is not set\n/sys/bus/usb/drivers/uas -\n".into(),
            Rule::Built,
        ),
        alone("the module is absent", uas_absent(), Decided(Rule::Loaded)),
        alone("the module is not loaded", uas_loadable(), Decided(Rule::Loaded)),
        alone(
            "the module is forbidden",
            uas_loadable() + "/etc/modprobe.d/no.conf = blacklist uas\n",
            Decided(Rule::Loaded),
        ),
        alone(
            "the module of a configured kernel is absent",
            uas_absent() + "/boot/config-6.1.0-56-amd64 = CONFIG_USB_UAS=m\n",
            Decided(Rule::Loaded),
        ),
        alone("uas gave up", String::new(), Decided(Rule::Started)),
        alone("a pipe has no streams", without_streams(), Decided(Rule::Started)),
    ]
}

/// What cannot be explained, or not for certain.
fn unclear_situations() -> Vec<Situation> {
    use Decision::Supposed;
    let other = |name, lines, driver, expected, decision| {
        let lines: String = lines;
        situation(name, "3-3", lines + &bound(driver), expected, decision)
    };
    let unread = |port: &str| format!("/sys/kernel/debug/usb/xhci/{port}/reg-cap -\n/dev/kmsg -\n");
    let last =
        format!("{}/sys/devices/pci0000:00/0000:00:02.0/usb3/3-1/3-1:1.0/driver -\n", unread("0000:00:02.0"));
    vec![
        other("streams not known", last, "usb-storage", Expected::Uas, Supposed(Rule::Streams)),
        other(
            "a controller not known",
            controller("musb-hdrc"),
            "usb-storage",
            Expected::Uas,
            Supposed(Rule::ScatterGather),
        ),
        other(
            "a kernel not known",
            "/sys/bus/usb/drivers/uas -\n".into(),
            "usb-storage",
            Expected::Uas,
            Supposed(Rule::Built),
        ),
        other(
            "a row that this kernel lacks",
            ids(0x0781, 0x55e8),
            "uas",
            Expected::UsbStorage,
            Decision::Unexplained,
        ),
        other("bound by hand", String::new(), "usb-storage", Expected::Uas, Decision::Unexplained),
        situation(
            "not configured",
            "3-3",
            at("bConfigurationValue", "") + &unbound(),
            Expected::NoDriver,
            Supposed(Rule::AlternateSetting),
        ),
        situation(
            "no driver and no module known",
            "3-3",
            "/sys/bus/usb/drivers/uas -\n".to_owned() + &unbound(),
            Expected::Uas,
            Supposed(Rule::Built),
        ),
    ]
}

/// Somebody else has the drive, or nobody although somebody should.
fn stray_situations() -> Vec<Situation> {
    let taken = |name, lines| situation(name, "3-3", lines, Expected::Uas, Decision::TakenAway);
    let forsaken = |name, port, lines| situation(name, port, lines, Expected::UsbStorage, Decision::NotTaken);
    let bot_unbound = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-2/3-2:1.0/driver -\n";
    vec![
        taken("claimed by a program", bound("usbfs")),
        taken("taken by another driver", bound("ums-realtek")),
        taken("exported by USB/IP", at_device("usbip-host") + &unbound()),
        forsaken("BOT alone, and nobody has it", "3-2", bot_unbound.into()),
        forsaken("ignored by uas, and nobody has it", "3-3", ids(0x357d, 0x7788) + &unbound()),
    ]
}

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
    for rule in Rule::ALL {
        for verdict in [Verdict::Met, Verdict::Refused] {
            assert!(seen.contains(&(rule.name(), format!("{verdict:?}"))), "no {rule:?} is {verdict:?}");
        }
    }
    for rule in [Rule::Built, Rule::AlternateSetting, Rule::ScatterGather, Rule::Streams, Rule::Loaded] {
        assert!(seen.contains(&(rule.name(), "Unknown".into())), "no {rule:?} is unknown");
    }
    assert!(CodedRule::ALL.iter().all(|rule| coded.contains(rule)), "{coded:?}");
}

/// The drive with the ids of a row, as the kernel would have it.
fn diagnosed_by_row(row: &TableRow) -> Diagnosis {
    let revision = format!("{:04x}", row.revisions.0);
    let driver = if row.flags.contains(Flag::IgnoreUas) { "usb-storage" } else { "uas" };
    let lines = ids(row.id.vendor, row.id.product) + &at("bcdDevice", &revision) + &bound(driver);
    diagnosed("3-3", &lines)
}

#[test]
fn every_row_of_the_table_is_found_and_obeyed() {
    for row in UAS {
        let diagnosis = diagnosed_by_row(row);
        assert_eq!(diagnosis.quirks.built_in.row, Some(row));
        let ignored = row.flags.contains(Flag::IgnoreUas);
        let decision = if ignored { Decision::Decided(Rule::NotIgnored) } else { Decision::AllMet };
        assert_eq!(diagnosis.decision, decision, "{}", row.name);
        let blocked = diagnosis.in_force().contains(Flag::NoAta1x);
        let smart = if blocked { Health::Concern } else { Health::Good };
        assert_eq!(check_of(&diagnosis, CheckKind::Smart).health, smart, "{}", row.name);
    }
}

#[test]
fn every_row_of_usb_storage_counts_once_it_has_the_drive() {
    for row in STORAGE {
        let diagnosis = diagnosed_by_row(row);
        assert_eq!(diagnosis.quirks.built_in.storage_row, Some(row));
        assert_eq!(diagnosis.quirks.storage(), row.flags, "{}", row.name);
        // Its line keeps what usb-storage knows, and nothing that uas alone does.
        let off_uas = &diagnosis.advice.iter().find(|advice| advice.purpose.starts_with("Keep it off UAS"));
        let letters = row.flags.union(Flags::of(&[Flag::IgnoreUas])).letters();
        let line = format!("usb-storage.quirks={}:{letters}", row.id);
        assert_eq!(off_uas.map(|advice| advice.steps[0].line.as_str()), Some(line.as_str()), "{}", row.name);
    }
}

#[test]
fn every_verdict_has_its_evidence() {
    for (Situation { name, .. }, diagnosis) in &*DIAGNOSED {
        for judgement in &diagnosis.judgements {
            let is_owed = matches!(judgement.verdict, Verdict::Met | Verdict::Refused);
            assert!(!is_owed || !judgement.readings.is_empty(), "{name}: {judgement:#?}");
            let is_advised = judgement.verdict != Verdict::Refused || !judgement.advice.is_empty();
            assert!(is_advised, "{name}: {judgement:#?}");
        }
    }
}

#[test]
fn the_quirk_line_keeps_the_other_entries_and_the_other_flags() {
    let lines = ids(0x357d, 0x7788) + &quirks("1:2:u") + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    let steps: Vec<&str> = advice.steps.iter().map(|step| step.line.as_str()).collect();
    assert_eq!(
        steps[..3],
        [
            "usb-storage.quirks=1:2:u,357d:7788:f",
            "options usb-storage quirks=1:2:u,357d:7788:f",
            "echo 1:2:u,357d:7788:f | sudo tee /sys/module/usb_storage/parameters/quirks",
        ]
    );
    let back = &advice.back.last().expect("a way back").line;
    assert_eq!(back, "echo 1:2:u | sudo tee /sys/module/usb_storage/parameters/quirks");
}

#[test]
fn a_drive_that_nobody_takes_is_given_back_or_its_driver_loaded() {
    let first_step = |lines: String| {
        let diagnosis = diagnosed("3-3", &(ids(0x357d, 0x7788) + &unbound() + &lines));
        assert!(!diagnosis.agrees());
        diagnosis.advice[0].steps[0].line.clone()
    };
    assert_eq!(first_step(String::new()), "echo 3-3:1.0 | sudo tee /sys/bus/usb/drivers_probe");
    assert_eq!(first_step("/sys/bus/usb/drivers/usb-storage -\n".into()), "sudo modprobe usb-storage");
}

#[test]
fn the_users_own_entry_is_taken_back_where_it_is() {
    let lines = quirks("1209:0001:u")
        + "/proc/cmdline = quiet usb-storage.quirks=1209:0001:u\n"
        + "/etc/modprobe.d/my.conf = options usb-storage quirks=1:2:u,1209:0001:u\n"
        + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    let steps: Vec<(&str, &str)> =
        advice.steps.iter().map(|step| (step.place.as_str(), step.line.as_str())).collect();
    assert_eq!(
        steps[..3],
        [
            ("/etc/modprobe.d/my.conf", "options usb-storage quirks=1:2:u"),
            ("on the kernel command line", "take out: usb-storage.quirks=1209:0001:u"),
            ("until the next boot", "echo '' | sudo tee /sys/module/usb_storage/parameters/quirks"),
        ]
    );
}

#[test]
fn a_value_that_the_kernel_would_refuse_is_told() {
    let long = (0..10).map(|number| format!("1209:1{number:03}:u")).collect::<Vec<_>>().join(",");
    let diagnosis = diagnosed("3-3", &quirks(&long));
    let cautions = &diagnosis.advice[0].cautions;
    assert!(cautions.iter().any(|caution| caution.contains("the kernel takes 127")), "{cautions:?}");
}

#[test]
fn flags_that_the_user_replaces_are_gone() {
    let diagnosis = diagnosed("3-3", &(ids(0x0bc2, 0x331a) + &quirks("0bc2:331a:g")));
    assert_eq!(diagnosis.quirks.built_in.uas(), Flags::of(&[Flag::NoReportLuns, Flag::NoAta1x]));
    assert_eq!(diagnosis.quirks.uas(), Flags::of(&[Flag::MaxSectors240]));
    assert_eq!(check_of(&diagnosis, CheckKind::Smart).health, Health::Good);
}

#[test]
fn what_only_root_could_read_is_said_of_a_log() {
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

/// A check, the lines that bring it about, how it looks, and a word of the reason.
type CheckCase = (CheckKind, String, Health, &'static str);

fn check_cases() -> Vec<CheckCase> {
    use CheckKind::{Link, Power, Resets, Serial, Settings, Smart, Trim};
    use Health::{Concern, Good, Unknown};
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:0");
    let mode = |mode: &str| format!("{unit}/scsi_disk/3:0:0:0/provisioning_mode = {mode}\n");
    let no_pages = format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 -\n");
    let port = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-0:1.0/usb3-port3";
    // The capability descriptor of a drive that can 5 Gb/s.
    let bos = format!("{DRIVE}/bos_descriptors : 050f0f00010a1003000e00010aff07\n");
    let older = descriptors(|bytes| bytes[2..4].copy_from_slice(&[0x10, 0x02])) + &high_speed();
    let twin = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-1";
    vec![
        (Link, String::new(), Good, "5 Gb/s"),
        (Link, high_speed() + &bos, Concern, "can super speed"),
        (Link, older, Unknown, "bcdUSB 2.10"),
        (Link, high_speed() + &format!("{DRIVE}/bos_descriptors : 050f050000\n"), Good, "no faster"),
        (
            Link,
            log("usb 3-3: not running at top speed; connect to a high speed hub"),
            Concern,
            "could be faster",
        ),
        (Power, String::new(), Good, "supply of its own"),
        (Power, at("bMaxPower", "896mA"), Good, "896 mA at most"),
        (Power, at("bMaxPower", "904mA"), Concern, "gives 900 mA"),
        (Power, at("bMaxPower", "504mA") + &high_speed(), Concern, "gives 500 mA"),
        (Power, format!("{port}/over_current_count = 2\n"), Concern, "too much"),
        (Power, at("bMaxPower", ""), Unknown, "not configured"),
        (Serial, String::new(), Good, "no other drive"),
        (Serial, format!("{DRIVE}/serial -\n"), Concern, "no serial number"),
        (
            Serial,
            format!("{twin}/idVendor = 1209\n{twin}/idProduct = 0001\n{twin}/serial = SERIAL-6\n"),
            Concern,
            "3-1 has the same",
        ),
        (Trim, String::new(), Good, "unmap"),
        (Trim, mode("full"), Concern, "takes UNMAP"),
        (Trim, mode("disabled"), Concern, "has refused it"),
        (Trim, mode("full") + &no_pages + &bound("usb-storage"), Unknown, "over BOT"),
        (
            Trim,
            mode("full") + &format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 : 00b2000400000000\n"),
            Good,
            "takes none",
        ),
        (Smart, String::new(), Good, "no quirk"),
        (Smart, ids(0x0bc2, 0x0001), Concern, "blocks ATA"),
        (Smart, quirks("1209:0001:t"), Concern, "blocks ATA"),
        (Resets, String::new(), Good, "none"),
        (Resets, "/dev/kmsg -\n".into(), Unknown, "could not be read"),
        (Resets, log("usb 3-3: USB disconnect, device number 4"), Good, "disconnects: 1"),
        (Resets, log("usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd"), Concern, "resets: 1"),
        (Settings, String::new(), Good, "nobody"),
        (Settings, quirks("1209:0001:f"), Concern, "after the next boot: no entry"),
        (Settings, "/proc/cmdline = usb-storage.quirks=1209:0001:u\n".into(), Concern, "in force: no entry"),
        (
            Settings,
            quirks("1209:0001:f") + "/proc/cmdline = usb-storage.quirks=1209:0001:f\n",
            Good,
            "for the next boot, too",
        ),
        (
            Settings,
            format!("/proc/cmdline = usb-storage.quirks={}\n", "1:2:u,".repeat(30)),
            Concern,
            "refuses all of it",
        ),
    ]
}

#[test]
fn each_check_sees_what_is_wrong_and_what_is_not() {
    for (kind, lines, health, word) in check_cases() {
        let diagnosis = diagnosed("3-3", &lines);
        let check = check_of(&diagnosis, kind);
        assert_eq!(check.health, health, "{check:#?}\n{lines}");
        assert!(check.because.contains(word), "{word:?} in {:?}", check.because);
        assert!(health != Health::Concern || !check.readings.is_empty(), "{check:#?}");
    }
}

#[test]
fn units_with_the_same_serial_are_told() {
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:");
    let page = "0080000853455249414c2d36";
    let lines = format!("{unit}1/vpd_pg80 : {page}\n{unit}1/queue_depth = 30\n");
    let diagnosis = diagnosed("3-3", &lines);
    let check = check_of(&diagnosis, CheckKind::Serial);
    assert_eq!((check.health, check.because.contains("0 and 1")), (Health::Concern, true), "{check:#?}");
}

#[test]
fn a_hub_that_is_fed_by_the_bus_gives_little() {
    // QEMU's hub says that it has a supply of its own: bmAttributes E0h.
    let hub = "/sys/devices/pci0000:00/0000:00:02.0/usb2/2-8";
    let blob = "12011001090000080904aa5501010102030109021900010100a000090400000109000000070581030200ff";
    let lines = format!("{hub}/descriptors : {blob}\n{hub}/2-8.2/bMaxPower = 498mA\n");
    let diagnosis = diagnosed("2-8.2", &lines);
    let check = check_of(&diagnosis, CheckKind::Power);
    assert_eq!((check.health, check.because.contains("gives 100 mA")), (Health::Concern, true), "{check:#?}");
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
