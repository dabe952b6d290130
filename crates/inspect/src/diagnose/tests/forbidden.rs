//! Lines and words that keep a driver from being loaded, for a drive on port 3-3 that speaks both and one on 3-2 that speaks Bulk-Only.

use super::lines::*;
use super::*;

const CIS: &str = "/etc/modprobe.d/cis.conf";
const HARDENED: &str = "/etc/modprobe.d/cis.conf = install usb-storage /bin/false\\nblacklist usb-storage\n";
const LOOK_AGAIN: &str = "sudo tee /sys/bus/usb/drivers_probe";

/// A place, and what is or goes there.
type Placed = (String, String);

/// Why `uas` is not there, what was read of that, and what is to be done.
fn loaded(lines: &str) -> (String, Vec<Placed>, Vec<Placed>) {
    let diagnosis = diagnosed("3-3", &(both_loadable() + lines));
    assert_eq!(diagnosis.decision, Decision::Decided(Rule::Loaded));
    let judgement = diagnosis.judgement(Rule::Loaded).expect("judged");
    let readings = judgement.readings.iter().map(|reading| (reading.place.clone(), reading.found.clone()));
    let because = judgement.because.split(": ").next().unwrap_or_default().to_owned();
    let steps = steps_of(&diagnosis, "").into_iter();
    let steps = steps.filter(|(_, line)| !line.contains(LOOK_AGAIN));
    let owned = |(place, line): (&str, &str)| (place.to_owned(), line.to_owned());
    (because, readings.collect(), steps.map(owned).collect())
}

fn of(pairs: &[(&str, &str)]) -> Vec<Placed> {
    pairs.iter().map(|(place, line)| ((*place).to_owned(), (*line).to_owned())).collect()
}

#[test]
fn uas_is_not_loaded_without_usb_storage() {
    let (because, readings, steps) = loaded(HARDENED);
    assert_eq!(because, "the module uas is installed, but usb-storage, which it needs, is forbidden");
    // A blacklist does not keep it from a module that needs it.
    assert!(readings.contains(&(CIS.into(), "install usb-storage /bin/false".into())), "{readings:#?}");
    assert!(!readings.contains(&(CIS.into(), "blacklist usb-storage".into())), "{readings:#?}");
    assert_eq!(
        steps,
        of(&[(CIS, "take out: install usb-storage /bin/false"), ("then", "sudo modprobe uas")])
    );
    let (because, _, steps) = loaded("/etc/modprobe.d/cis.conf = blacklist usb-storage\n");
    assert_eq!(because, "the module uas is installed but not loaded");
    assert_eq!(steps, of(&[("now", "sudo modprobe uas")]));
    // Where it is there already nothing keeps it back.
    let diagnosis = diagnosed("3-3", &(uas_loadable() + &unbound() + HARDENED));
    assert_eq!(steps_of(&diagnosis, "Load the driver")[0], ("now", "sudo modprobe uas"));
}

#[test]
fn usb_storage_is_allowed_by_every_line_that_forbids_it() {
    let diagnosis = diagnosed("3-2", &(both_loadable() + BOT_ALONE + HARDENED));
    assert_eq!(diagnosis.decision, Decision::NotTaken);
    let [advice] = diagnosis.advice.as_slice() else { panic!("{diagnosis:#?}") };
    assert!(advice.cautions[0].starts_with("such a line is mostly policy"), "{advice:#?}");
    assert_eq!(
        steps_of(&diagnosis, "Allow the driver"),
        [
            (CIS, "take out: install usb-storage /bin/false"),
            (CIS, "take out: blacklist usb-storage"),
            ("then", "sudo modprobe usb-storage"),
            ("if nothing happens", "echo 3-2:1.0 | sudo tee /sys/bus/usb/drivers_probe"),
        ]
    );
    let back: Vec<_> = advice.back.iter().map(|step| (step.place.as_str(), step.line.as_str())).collect();
    assert_eq!(back, [(CIS, "install usb-storage /bin/false"), (CIS, "blacklist usb-storage")]);
    // What forbids uas alone is no matter of it.
    let uas = "/etc/modprobe.d/no.conf = install uas /bin/false\n";
    let diagnosis = diagnosed("3-2", &(both_loadable() + BOT_ALONE + uas));
    assert_eq!(diagnosis.advice[0].purpose, "Load the driver");
    // One that is not installed is to be allowed as well.
    let absent = format!("{INDEX} = kernel/drivers/usb/core/usbcore.ko.xz:\n");
    let diagnosis = diagnosed("3-2", &(both_loadable() + BOT_ALONE + HARDENED + &absent));
    let purposes: Vec<_> = diagnosis.advice.iter().map(|advice| advice.purpose.as_str()).collect();
    assert_eq!(purposes, ["Get the driver", "Allow the driver"]);
}

#[test]
fn every_line_in_the_way_is_named() {
    let (because, readings, steps) =
        loaded("/etc/modprobe.d/cis.conf = blacklist uas\\ninstall uas /bin/false\n");
    assert_eq!(because, "the module uas is installed but forbidden");
    for line in ["blacklist uas", "install uas /bin/false"] {
        assert!(readings.contains(&(CIS.into(), line.into())), "{line}: {readings:#?}");
    }
    assert_eq!(
        steps,
        of(&[
            (CIS, "take out: blacklist uas"),
            (CIS, "take out: install uas /bin/false"),
            ("then", "sudo modprobe uas"),
        ])
    );
}

#[test]
fn what_else_a_word_forbids_stays_forbidden() {
    let place = "on the kernel command line";
    let (_, _, steps) = loaded("/proc/cmdline = quiet modprobe.blacklist=nouveau,uas ro\n");
    assert_eq!(steps, of(&[(place, "modprobe.blacklist=nouveau"), ("then", "sudo modprobe uas")]));
    // A blacklist of modprobe's may go on naming what uas needs.
    let (_, _, steps) = loaded("/proc/cmdline = modprobe.blacklist=usb_storage,uas\n");
    assert_eq!(steps[0], (place.into(), "modprobe.blacklist=usb_storage".into()));
    let diagnosis = diagnosed("3-3", &(both_loadable() + "/proc/cmdline = modprobe.blacklist=nouveau,uas\n"));
    let advice = &diagnosis.judgement(Rule::Loaded).expect("judged").advice[0];
    assert_eq!(advice.back[0].line, "modprobe.blacklist=nouveau,uas");
}

#[test]
fn what_the_kernel_refuses_it_refuses_until_a_reboot() {
    let place = "on the kernel command line";
    let reboot = [
        ("then, since the kernel refuses it until the next boot", "sudo reboot"),
        ("if it is not loaded then", "sudo modprobe uas"),
    ];
    for (word, line) in [
        ("module_blacklist=uas", "take out: module_blacklist=uas"),
        ("module_blacklist=usb_storage", "take out: module_blacklist=usb_storage"),
        ("module_blacklist=nouveau,uas,usb_storage", "module_blacklist=nouveau"),
    ] {
        let (_, readings, steps) = loaded(&format!("/proc/cmdline = quiet {word}\n"));
        assert!(readings.contains(&("/proc/cmdline".into(), word.into())), "{readings:#?}");
        assert_eq!(steps, of(&[(place, line), reboot[0], reboot[1]]), "{word}");
    }
}
