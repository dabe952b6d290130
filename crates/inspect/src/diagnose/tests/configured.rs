//! Judgements of a driver that is not there, by the kernel's configuration.

use super::lines::*;
use super::*;
use crate::inventory::Transport;
use crate::tree::Unread;

const PACKED: &str = "/proc/config.gz";
const BESIDE: &str = "/boot/config-6.1.0-56-amd64";

/// A drive on port 3-3, which speaks both, without a driver on a machine without `uas`, unless a line says otherwise.
fn forsaken(lines: &str) -> Diagnosis {
    diagnosed("3-3", &(uas_absent() + &unbound() + lines))
}

/// Returns the decision, the reason, and the first advice.
fn judged(diagnosis: &Diagnosis, rule: Rule) -> (Decision, String, String) {
    let judgement = diagnosis.judgement(rule).expect("judged");
    let purpose = judgement.advice.first().map(|advice| advice.purpose.clone());
    (diagnosis.decision, judgement.because.clone(), purpose.unwrap_or_default())
}

fn readings(diagnosis: &Diagnosis, rule: Rule) -> Vec<(&str, &str)> {
    let judgement = diagnosis.judgement(rule).expect("judged");
    judgement.readings.iter().map(|reading| (reading.place.as_str(), reading.found.as_str())).collect()
}

#[test]
fn a_kernel_without_uas_needs_another_kernel() {
    let lines = format!("{PACKED} = CONFIG_USB_STORAGE=m\\n# CONFIG_USB_UAS is not set\n");
    let diagnosis = diagnosed("3-3", &(uas_absent() + &bound("usb-storage") + &lines));
    assert_eq!((diagnosis.expected, diagnosis.agrees()), (Expected::UsbStorage, true));
    assert_eq!(
        judged(&diagnosis, Rule::Built),
        (
            Decision::Decided(Rule::Built),
            "this kernel is built without CONFIG_USB_UAS, so usb-storage binds to every drive that supports BOT"
                .into(),
            "Use a kernel with UAS".into(),
        )
    );
    assert_eq!(
        readings(&diagnosis, Rule::Built),
        [(PACKED, "CONFIG_USB_UAS is not set"), (PACKED, "CONFIG_USB_STORAGE=m")]
    );
    let advice = &diagnosis.judgement(Rule::Built).expect("judged").advice;
    assert!(advice.iter().all(|advice| !advice.steps.iter().any(|step| step.line.contains("modprobe"))));
}

#[test]
fn a_module_that_is_not_installed_is_to_be_installed() {
    for place in [PACKED, BESIDE] {
        let diagnosis = forsaken(&format!("{place} = CONFIG_USB_STORAGE=m\\nCONFIG_USB_UAS=m\n"));
        assert_eq!(diagnosis.expected, Expected::NoDriver);
        assert_eq!(
            judged(&diagnosis, Rule::Loaded),
            (
                Decision::Decided(Rule::Loaded),
                "uas is a module of this kernel that is not installed: usb-storage leaves the drive to it, and no driver \
                 takes it"
                    .into(),
                "Get the driver".into(),
            )
        );
        let found = readings(&diagnosis, Rule::Loaded);
        assert!(
            found.contains(&(INDEX, "does not list uas")) && found.contains(&(place, "CONFIG_USB_UAS=m"))
        );
        let advice = &diagnosis.judgement(Rule::Loaded).expect("judged").advice[0];
        assert!(advice.steps[0].line.contains("linux-modules-extra-6.1.0-56-amd64"), "{advice:#?}");
    }
}

#[test]
fn what_is_built_in_and_not_there_is_no_missing_module() {
    let index_gone = format!("{INDEX} -\n");
    for more in ["", &index_gone] {
        let diagnosis = forsaken(&format!("{PACKED} = CONFIG_USB_STORAGE=y\\nCONFIG_USB_UAS=y\n{more}"));
        let (decision, because, purpose) = judged(&diagnosis, Rule::Loaded);
        assert_eq!(decision, Decision::Decided(Rule::Loaded));
        assert!(because.starts_with("uas is built into this kernel and has not started"), "{because}");
        assert_eq!(purpose, "Let the kernel start its built-in driver");
    }
}

#[test]
fn without_an_index_a_module_is_not_said_to_be_missing() {
    let diagnosis = forsaken(&format!("{PACKED} = CONFIG_USB_UAS=m\n{INDEX} -\n"));
    assert_eq!(diagnosis.decision, Decision::Supposed(Rule::Loaded));
    assert!(readings(&diagnosis, Rule::Loaded).contains(&(PACKED, "CONFIG_USB_UAS=m")));
}

#[test]
fn a_kernel_without_usb_storage_drives_nothing() {
    // It asks for USB_STORAGE, so that UAS is not mentioned.
    let gone = USB_STORAGE_GONE;
    let lines = format!("{gone}{PACKED} = CONFIG_USB=m\\n# CONFIG_USB_STORAGE is not set\n");
    // One that speaks UAS as well, and one that speaks Bulk-Only alone.
    for diagnosis in [forsaken(&lines), diagnosed("3-2", &(uas_absent() + BOT_ALONE + &lines))] {
        assert_eq!((diagnosis.expected, diagnosis.agrees()), (Expected::NoDriver, true));
        assert_eq!(
            judged(&diagnosis, Rule::Built),
            (
                Decision::Decided(Rule::Built),
                "this kernel is built without CONFIG_USB_STORAGE and UAS, so it supports no USB drive".into(),
                "Use a kernel with usb-storage and UAS".into(),
            )
        );
        assert!(diagnosis.speaks_bot && diagnosis.transport == Transport::None);
    }
    // A driver that is registered is there, whatever a file says.
    let lines = format!("{PACKED} = # CONFIG_USB_STORAGE is not set\n");
    assert_eq!(diagnosed("3-3", &(uas_absent() + &lines)).expected, Expected::UsbStorage);
}

#[test]
fn usb_storage_that_is_not_there_is_loaded_installed_or_started() {
    let first = |lines: &str| {
        let diagnosis = diagnosed("3-2", &format!("{USB_STORAGE_GONE}{BOT_ALONE}{lines}"));
        assert_eq!(diagnosis.decision, Decision::NotTaken);
        diagnosis.advice[0].purpose.clone()
    };
    let index = format!("{INDEX} = kernel/drivers/usb/core/usbcore.ko.xz:\n");
    let listed = format!("{INDEX} = kernel/drivers/usb/storage/usb-storage.ko.xz:\n");
    assert_eq!(first(&listed), "Load the driver");
    assert_eq!(first(&index), "Get the driver");
    let built_in = format!("{index}{PACKED} = CONFIG_USB_STORAGE=y\n");
    assert_eq!(first(&built_in), "Let the kernel start its built-in driver");
}

#[test]
fn places_without_a_configuration_are_reported() {
    let diagnosis = forsaken(&format!("{PACKED} : 1f8b0800\n"));
    assert_eq!(
        readings(&diagnosis, Rule::Built),
        [
            (PACKED, "no configuration that can be read"),
            (BESIDE, "does not exist"),
            ("/lib/modules/6.1.0-56-amd64/config", "does not exist"),
        ]
    );
    // As without a configuration at all.
    let (decision, because, purpose) = judged(&diagnosis, Rule::Loaded);
    assert_eq!((decision, purpose.as_str()), (Decision::Decided(Rule::Loaded), "Get the driver"));
    assert!(because.starts_with("there is no module uas: "), "{because}");
}

#[test]
fn a_configuration_that_only_root_can_read_names_root() {
    let record = format!("{GUEST}{}", uas_absent() + &unbound()).parse().expect("a record");
    let mut inventory = Inventory::read(&Tree::of(record), Scope::Whole { log: None });
    inventory.drivers.config_unread[1].1 = Unread::Refused;
    let diagnosis = &diagnose(&inventory, inventory.find("3-3")[0])[0];
    assert!(readings(diagnosis, Rule::Built).contains(&(BESIDE, "for root only")));
    let built = diagnosis.judgement(Rule::Built).expect("judged");
    assert_eq!(built.root_adds.as_deref(), Some("the kernel's configuration shows whether it has UAS"));
}

#[test]
fn without_a_release_rows_are_those_of_the_configurations_version() {
    let judged = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(ids(0x0781, 0x55e8) + &bound("usb-storage") + lines));
        let found = readings(&diagnosis, Rule::NotIgnored);
        let kernel = found.iter().find(|(place, _)| place.starts_with("/proc/") && *place != PARAMETER);
        (diagnosis.decision, kernel.map(|(place, found)| format!("{place}: {found}")))
    };
    // The row came with 6.16 and 6.1.142.
    let of =
        |version: &str| format!("{PACKED} = # Linux/x86 {version} Kernel Configuration\\nCONFIG_USB_UAS=m\n");
    let without = "/proc/sys/kernel/osrelease -\n";
    let decided = Decision::Decided(Rule::NotIgnored);
    assert_eq!(
        judged(&format!("{without}{}", of("6.1.159"))),
        (decided, Some("/proc/config.gz: 6.1.159".into()))
    );
    assert_eq!(
        judged(&format!("{without}{}", of("6.6.80"))),
        (Decision::Supposed(Rule::NotIgnored), Some("/proc/config.gz: 6.6.80".into()))
    );
    assert_eq!(
        judged(&format!("{without}{}", of("6.18.44"))),
        (decided, Some("/proc/config.gz: 6.18.44".into()))
    );
    // The release is asked first, and counts for a row as well.
    let release = Some("/proc/sys/kernel/osrelease: 6.18.44-fc".into());
    assert_eq!(judged(&(kernel("6.18.44-fc") + &of("6.1.159"))), (decided, release));
    assert_eq!(judged(without), (decided, None));
}

#[test]
fn the_patch_level_behind_a_packages_number_decides_whether_a_row_is_there() {
    let judged = |more: &str, driver: &str| {
        let lines = ids(0x0781, 0x55e8) + &bound(driver) + &kernel("6.1.0-25-amd64") + more;
        let diagnosis = diagnosed("3-3", &lines);
        let verdict = diagnosis.judgement(Rule::NotIgnored).expect("judged").verdict;
        let found: Vec<String> = readings(&diagnosis, Rule::NotIgnored)
            .into_iter()
            .map(|(place, found)| format!("{place}: {found}"))
            .collect();
        (verdict, found.join("\n"))
    };
    let debian = |version: &str| {
        format!("/proc/version = Linux version 6.1.0-25-amd64 (gcc) #1 SMP Debian {version}-1 (2024-08-26)\n")
    };
    // Without it, neither is certain.
    assert_eq!(judged("", "usb-storage").0, Verdict::Unknown);
    let (verdict, found) = judged(&debian("6.1.106"), "uas");
    assert_eq!(verdict, Verdict::Met);
    assert!(found.contains("Linux 6.1.106 has no such row, 6.1.142 has it"), "{found}");
    let (verdict, found) = judged(&debian("6.1.147"), "usb-storage");
    assert_eq!(verdict, Verdict::Refused);
    assert!(found.contains("/proc/version: Linux version 6.1.0-25-amd64"), "{found}");
    // A file of another kernel's is none of this one's.
    assert_eq!(judged(&debian("6.12.40"), "usb-storage").0, Verdict::Unknown);
    let ubuntu = "/proc/version_signature = Ubuntu 6.1.0-1029.30-oem 6.1.60\n";
    assert_eq!(judged(ubuntu, "uas").0, Verdict::Met);
}
