//! Drives of which the kernel has set no configuration, as sysfs has them: without an interface.

use super::*;
use crate::inventory::Transport;
use proptest::prelude::*;

const HUB: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb2/2-8";

/// A drive on BOT of 498 mA behind a hub, at full speed, and what the kernel says of it.
fn behind_a_hub(attributes: &str) -> String {
    // QEMU's hub says that it has its own power supply: bmAttributes E0h.
    let hub = format!(
        "12011001090000080904aa5501010102030109021900010100{attributes}00090400000109000000070581030200ff"
    );
    let drive = "1201000200000008f44601000000010203010902200001010480f90904000002080650000705810240000007050202400000";
    unconfigured_at(&format!("{HUB}/2-8.2"))
        + &format!(
            "{HUB}/descriptors : {hub}\n{HUB}/2-8.2/descriptors : {drive}\n{HUB}/2-8.2/authorized = 1\n"
        )
        + &log_of(&[
            "usb 2-8.2: new full-speed USB device number 4 using xhci_hcd",
            "usb 2-8.2: rejected 1 configuration due to insufficient available bus power",
            "usb 2-8.2: no configuration chosen from 1 choice",
        ])
}

/// Why it has no configuration, what was found, and the first line of what to do.
fn reported(diagnosis: &Diagnosis) -> (String, Vec<String>, String) {
    assert_eq!(
        (diagnosis.decision, &diagnosis.transport),
        (Decision::Decided(Rule::Configured), &Transport::None)
    );
    assert!(diagnosis.agrees());
    let judgement = &diagnosis.judgements[0];
    assert_eq!(diagnosis.judgements.len(), Rule::ALL.len() + 1);
    let found = judgement.readings.iter().map(|reading| reading.found.clone()).collect();
    let step = &judgement.advice[0].steps[0];
    (judgement.because.clone(), found, format!("{} {}", step.place, step.line))
}

#[test]
fn a_drive_that_wants_more_than_a_hub_gives_is_a_drive_without_power() {
    let diagnosis = diagnosed("2-8.2", &behind_a_hub("a0"));
    let (because, found, advice) = reported(&diagnosis);
    let short = "it may draw 498 mA; a bus-powered hub supplies 100 mA";
    assert_eq!(because, format!("the kernel has set no configuration, since {short}"));
    let line = "usb 2-8.2: rejected 1 configuration due to insufficient available bus power";
    assert_eq!(found, ["bMaxPower 498 mA", line, "empty"]);
    assert!(advice.starts_with("a hub with its own power supply"), "{advice}");
    let power = check_of(&diagnosis, CheckKind::Power);
    assert_eq!((power.health, power.because.as_str()), (Health::Concern, short));
    // What it speaks is known all the same.
    let uas = diagnosis.judgement(Rule::AlternateSetting).expect("judged");
    assert_eq!((uas.verdict, diagnosis.speaks_bot), (Verdict::Refused, true));
    assert_eq!(diagnosis.interface, "2-8.2:1.0");
}

#[test]
fn the_kernels_word_counts_where_the_hub_says_that_it_has_a_supply() {
    let (because, found, _) = reported(&diagnosed("2-8.2", &behind_a_hub("e0")));
    assert_eq!(because, "the kernel has set no configuration, since the port reports too little power");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_drive_that_is_not_authorized_is_let_in() {
    let line = "usb 3-3: Device is not authorized for usage";
    let lines = unconfigured() + &at("authorized", "0") + &log_of(&[PLUGGED_IN, line]);
    let diagnosis = diagnosed("3-3", &lines);
    let (because, found, advice) = reported(&diagnosis);
    assert!(because.contains("USBGuard"), "{because}");
    assert_eq!(found, ["0", line, "empty"]);
    assert_eq!(advice, "until it is unplugged echo 1 | sudo tee /sys/bus/usb/devices/3-3/authorized");
    // It could have UAS: nothing else is in its way.
    let refused = |judgement: &&Judgement| judgement.verdict == Verdict::Refused;
    assert_eq!(diagnosis.judgements.iter().filter(refused).count(), 1);
    assert_eq!(check_of(&diagnosis, CheckKind::Power).health, Health::Good);
}

#[test]
fn an_unexplained_one_is_configured_by_hand() {
    let (because, found, _) = reported(&diagnosed("3-3", &unconfigured()));
    assert!(because.contains("it was unset by hand"), "{because}");
    assert_eq!(found, ["empty"]);
    let line = "usb 3-3: can't set config #1, error -32";
    let (_, found, _) = reported(&diagnosed("3-3", &(unconfigured() + &log_of(&[PLUGGED_IN, line]))));
    assert_eq!(found, [line, "empty"]);
}

#[test]
fn the_configuration_that_is_storage_counts() {
    // One of a vendor's own class comes first.
    let two = descriptors(|bytes| {
        bytes[17] = 2;
        bytes[18 + 5] = 2;
        let other = [9, 2, 18, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 0, 0xff, 0, 0, 0];
        bytes.splice(18..18, other);
    });
    let diagnosis = diagnosed("3-3", &(unconfigured() + &two));
    assert_eq!(diagnosis.interface, "3-3:2.0");
    let advice = &diagnosis.judgements[0].advice[0];
    assert_eq!(advice.steps[1].line, "echo 2 | sudo tee /sys/bus/usb/devices/3-3/bConfigurationValue");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A device without configuration is a drive by its descriptors, or not one.
    #[test]
    fn any_descriptors_are_read_without_harm(blob: Vec<u8>, length in 0_usize..200) {
        let lines = descriptors(|bytes| {
            bytes.truncate(length);
            bytes.extend(&blob);
        });
        let record = format!("{GUEST}{}{lines}", unconfigured()).parse().expect("a record");
        let inventory = Inventory::read(&Tree::of(record), Scope::Whole { log: None });
        let device = inventory.find("3-3")[0];
        prop_assert_eq!(diagnose(&inventory, device).is_empty(), !device.is_storage());
        prop_assert!(device.interfaces.len() <= 64 && device.offered.len() <= 8);
    }
}
