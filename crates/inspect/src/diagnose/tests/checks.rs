//! The result of each check.

use super::lines::*;
use super::*;

/// A check, the lines that bring it about, how it looks, and a word of the reason.
type CheckCase = (CheckKind, String, Health, &'static str);

/// Of the cable, the port, and what comes through it.
fn link_cases() -> Vec<CheckCase> {
    use CheckKind::{Link, Power};
    use Health::{Concern, Good, Unknown};
    let port = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-0:1.0/usb3-port3";
    // The capability descriptor of a drive that can 5 Gb/s.
    let bos = format!("{DRIVE}/bos_descriptors : 050f0f00010a1003000e00010aff07\n");
    let older = descriptors(|bytes| bytes[2..4].copy_from_slice(&[0x10, 0x02])) + &high_speed();
    let plus = format!(
        "{DRIVE}/bos_descriptors : 050f230002{}{}\n",
        "0a1003000e00010aff07", "14100a00010000000011000030400a00b0400a00"
    );
    let usb_3_2 = descriptors(|bytes| bytes[2..4].copy_from_slice(&[0x20, 0x03]));
    vec![
        (Link, String::new(), Good, "5 Gb/s"),
        (Link, high_speed() + &bos, Concern, "supports SuperSpeed"),
        (Link, older, Unknown, "bcdUSB 2.10"),
        (Link, high_speed() + &format!("{DRIVE}/bos_descriptors : 050f050000\n"), Good, "no higher speed"),
        (
            Link,
            at("speed", "12") + &log("usb 3-3: not running at top speed; connect to a high speed hub"),
            Concern,
            "could be faster",
        ),
        // At high speed and above it is expected, whatever the log has of an earlier drive.
        (Link, log("usb 3-3: not running at top speed; connect to a high speed hub"), Good, "5 Gb/s"),
        (
            Link,
            at("speed", "12")
                + &format!("{DRIVE}/bos_descriptors : 050f050000\n")
                + &log_of(&[
                    "usb 3-3: not running at top speed; connect to a high speed hub",
                    UNPLUGGED,
                    PLUGGED_IN,
                ]),
            Good,
            "no higher speed",
        ),
        (Link, plus.clone(), Concern, "supports 10 Gb/s but is connected at 5 Gb/s"),
        (Link, plus + &at("speed", "10000"), Good, "10 Gb/s"),
        (Link, usb_3_2.clone(), Unknown, "bcdUSB 3.20 may be faster or not"),
        (Link, usb_3_2.clone() + &bos, Good, "5 Gb/s"),
        (Link, usb_3_2 + &at("speed", "10000"), Good, "10 Gb/s"),
        (Power, String::new(), Good, "self-powered"),
        (Power, at("bMaxPower", "896mA") + &at("speed", "10000"), Good, "at most 896 mA from the bus"),
        (Power, unconfigured() + &max_power(113) + &at("speed", "10000"), Concern, "supplies 900 mA"),
        (Power, at("bMaxPower", "896mA"), Good, "at most 896 mA from the bus"),
        (Power, unconfigured() + &max_power(113), Concern, "may draw 904 mA; the port supplies 900 mA"),
        (
            Power,
            unconfigured() + &max_power(252) + &high_speed(),
            Concern,
            "may draw 504 mA; the port supplies 500 mA",
        ),
        (Power, unconfigured() + &max_power(112), Good, "at most 896 mA from the bus"),
        // Somebody has set the configuration that the kernel had rejected.
        (Power, at("bMaxPower", "904mA") + &max_power(113), Concern, "supplies 900 mA"),
        (Power, format!("{port}/over_current_count = 2\n"), Concern, "overcurrent"),
        (Power, format!("{DRIVE}/bMaxPower -\n"), Unknown, "maximum current is not known"),
    ]
}

/// Of what is on the disk.
fn disk_cases() -> Vec<CheckCase> {
    use CheckKind::{Serial, Trim};
    use Health::{Concern, Good, Unknown};
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:0");
    let mode = |mode: &str| format!("{unit}/scsi_disk/3:0:0:0/provisioning_mode = {mode}\n");
    let no_pages = format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 -\n");
    let twin = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-1";
    vec![
        (Serial, String::new(), Good, "no other drive"),
        (Serial, format!("{DRIVE}/serial -\n"), Concern, "no serial number"),
        (
            Serial,
            format!("{twin}/idVendor = 1209\n{twin}/idProduct = 0001\n{twin}/serial = SERIAL-6\n"),
            Concern,
            "3-1 has the same",
        ),
        (Trim, String::new(), Good, "unmap"),
        (Trim, mode("full"), Concern, "supports UNMAP"),
        (Trim, mode("disabled"), Concern, "the drive refused it"),
        (Trim, mode("full") + &no_pages + &bound("usb-storage"), Unknown, "over BOT"),
        (
            Trim,
            mode("full") + &format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 : 00b2000400000000\n"),
            Good,
            "supports none",
        ),
        (
            Trim,
            mode("full") + &format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 : 00b2000400400000\n"),
            Concern,
            "supports WRITE SAME (16), but the kernel sends none",
        ),
        (
            Trim,
            mode("full") + &format!("{unit}/vpd_pgb0 -\n{unit}/vpd_pgb2 : 00b2000400200000\n"),
            Concern,
            "supports WRITE SAME (10), but the kernel sends none",
        ),
    ]
}

/// Of the kernel's log.
fn log_cases() -> Vec<CheckCase> {
    use CheckKind::Resets;
    use Health::{Concern, Good, Unknown};
    vec![
        (Resets, String::new(), Good, "none"),
        (Resets, "/dev/kmsg -\n".into(), Unknown, "could not be read"),
        (Resets, log("usb 3-3: USB disconnect, device number 4"), Good, "disconnects: 1"),
        (Resets, log("usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd"), Concern, "resets: 1"),
        (
            Resets,
            log("usb usb3-port3: Cannot enable. Maybe the USB cable is bad?"),
            Concern,
            "link losses: 1",
        ),
        (Resets, log("usb usb3-port3: disabled by hub (EMI?), re-enabling..."), Concern, "link losses: 1"),
        (Resets, log("usb usb3-port1: Cannot enable. Maybe the USB cable is bad?"), Good, "none"),
        (Resets, log("usb 3-3: cmd cmplt err -2"), Concern, "aborted commands: 1"),
        (Resets, log("I/O error, dev sdc, sector 77 op 0x0:(READ)"), Concern, "block errors: 1"),
        (Resets, log("critical medium error, dev sdc, sector 77"), Concern, "block errors: 1"),
        (Resets, log("I/O error, dev sdcc, sector 77 op 0x0:(READ)"), Good, "none"),
        (
            Resets,
            log("usb usb2-port3: Cannot enable. Maybe the USB cable is bad?"),
            Concern,
            "link losses: 1",
        ),
        (
            Resets,
            log("xhci_hcd 0000:00:02.0: ERROR Transfer event for unknown stream ring slot 3 ep 6"),
            Concern,
            "events of unknown streams: 1",
        ),
        // Another controller's, and a drive that has no streams at this speed.
        (
            Resets,
            log("xhci_hcd 0000:00:04.0: ERROR Transfer event for unknown stream ring slot 3 ep 6"),
            Good,
            "none",
        ),
        (
            Resets,
            log("xhci_hcd 0000:00:02.0: ERROR Transfer event for unknown stream ring slot 3 ep 6")
                + &high_speed(),
            Good,
            "none",
        ),
    ]
}

/// Of a log that goes back to drives that were at the port before.
fn plug_cases() -> Vec<CheckCase> {
    use CheckKind::Resets;
    use Health::{Concern, Good};
    vec![
        // Of the drive that was there before, and the same where its end is not in the log.
        (Resets, log_of(&[ANOTHER, ANOTHERS_IDS, RESET_OF_2, UNPLUGGED, PLUGGED_IN]), Good, "none"),
        (Resets, log_of(&[ANOTHER, ANOTHERS_IDS, RESET_OF_2, PLUGGED_IN]), Good, "none"),
        (Resets, log_of(&[RESET_OF_2, UNPLUGGED, PLUGGED_IN]), Good, "none"),
        // The same drive, which fell off the bus and came back.
        (
            Resets,
            log_of(&[ANOTHER, ITS_IDS, RESET_OF_2, UNPLUGGED, PLUGGED_IN]),
            Concern,
            "resets: 1, disconnects: 1",
        ),
        (
            Resets,
            log_of(&[PLUGGED_IN, "usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd"]),
            Concern,
            "resets: 1",
        ),
        // Lines before it is enumerated, in several attempts.
        (
            Resets,
            log_of(&[
                UNPLUGGED,
                "usb usb3-port3: Cannot enable. Maybe the USB cable is bad?",
                "usb 3-3: new SuperSpeed USB device number 3 using xhci_hcd",
                "usb 3-3: device descriptor read/8, error -71",
                PLUGGED_IN,
            ]),
            Concern,
            "enumeration errors: 1, link losses: 1",
        ),
        // A disk's name and a host's number have been others' before.
        (
            Resets,
            log_of(&[
                "I/O error, dev sdc, sector 77",
                "sd 3:0:0:0: [sdc] tag#1 uas_zap_pending 0",
                PLUGGED_IN,
            ]),
            Good,
            "none",
        ),
    ]
}

/// The end of a suspend resets a port once.
fn suspend_cases() -> Vec<CheckCase> {
    use CheckKind::Resets;
    use Health::{Concern, Good};
    const RESET: &str = "usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd";
    let (entry, exit) = ("PM: suspend entry (deep)", "PM: suspend exit");
    vec![
        (Resets, log_of(&[PLUGGED_IN, entry, RESET, exit]), Good, "none"),
        (Resets, log_of(&[PLUGGED_IN, entry, exit, RESET]), Good, "none"),
        (Resets, log_of(&[entry, exit, RESET, entry, RESET, exit]), Good, "none"),
        (
            Resets,
            log_of(&["PM: hibernation: hibernation entry", RESET, "PM: hibernation: hibernation exit"]),
            Good,
            "none",
        ),
        (Resets, log_of(&[entry, RESET, exit, RESET]), Concern, "resets: 1"),
        (Resets, log_of(&[entry, exit, RESET, RESET]), Concern, "resets: 1"),
        (
            Resets,
            log_of(&[entry, exit, "usb 3-3: cmd cmplt err -2", RESET]),
            Concern,
            "resets: 1, aborted commands: 1",
        ),
        (Resets, log_of(&[entry, exit]), Health::Unknown, "no line about USB"),
    ]
}

/// Of the kernel and its settings.
fn kernel_cases() -> Vec<CheckCase> {
    use CheckKind::{Settings, Smart};
    use Health::{Concern, Good, Unknown};
    vec![
        (Smart, String::new(), Good, "no quirk"),
        (Smart, ids(0x0bc2, 0x0001), Concern, "blocks ATA"),
        (Smart, quirks("1209:0001:t"), Concern, "blocks ATA"),
        (Smart, ids(0x13fd, 0x3940) + &at("bcdDevice", "0310"), Concern, "in Linux before 6.19 the flag t"),
        (Smart, ids(0x13fd, 0x3940) + &at("bcdDevice", "0310") + &kernel("6.19.0"), Good, "no quirk"),
        (Smart, ids(0x125f, 0xa94a) + &at("bcdDevice", "0160"), Unknown, "Linux since 6.15 blocks ATA"),
        (Smart, ids(0x125f, 0xa94a) + &at("bcdDevice", "0160") + &kernel("6.15.0"), Concern, "blocks ATA"),
        (Smart, ids(0x125f, 0xa94a) + &at("bcdDevice", "0160") + &quirks("125f:a94a:"), Good, "no quirk"),
        (Settings, String::new(), Good, "no quirk is set"),
        (Settings, quirks("1209:0001:f"), Concern, "after the next boot: no entry"),
        (Settings, "/proc/cmdline = usb-storage.quirks=1209:0001:u\n".into(), Concern, "in force: no entry"),
        (
            Settings,
            quirks("1209:0001:f") + "/proc/cmdline = usb-storage.quirks=1209:0001:f\n",
            Good,
            "now and after the next boot",
        ),
        (
            Settings,
            format!("/proc/cmdline = usb-storage.quirks={}\n", "1:2:u,".repeat(30)),
            Concern,
            "refuses all of it",
        ),
    ]
}

const CASES: [fn() -> Vec<CheckCase>; 6] =
    [link_cases, disk_cases, log_cases, plug_cases, suspend_cases, kernel_cases];

#[test]
fn each_check_sees_what_is_wrong_and_what_is_not() {
    for (kind, lines, health, word) in CASES.into_iter().flat_map(|cases| cases()) {
        let diagnosis = diagnosed("3-3", &lines);
        let check = check_of(&diagnosis, kind);
        assert_eq!(check.health, health, "{check:#?}\n{lines}");
        assert!(check.because.contains(word), "{word:?} in {:?}", check.because);
        assert!(health != Health::Concern || !check.readings.is_empty(), "{check:#?}");
    }
}

#[test]
fn units_with_the_same_serial_are_reported() {
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:");
    let page = "0080000853455249414c2d36";
    let lines = format!("{unit}1/vpd_pg80 : {page}\n{unit}1/queue_depth = 30\n");
    let diagnosis = diagnosed("3-3", &lines);
    let check = check_of(&diagnosis, CheckKind::Serial);
    assert_eq!((check.health, check.because.contains("0 and 1")), (Health::Concern, true), "{check:#?}");
}

#[test]
fn errors_may_be_another_drives_where_the_log_lacks_the_plug() {
    let places = |lines: &[&str]| {
        let diagnosis = diagnosed("3-3", &log_of(lines));
        let readings = &check_of(&diagnosis, CheckKind::Resets).readings;
        readings.iter().map(|reading| reading.found.clone()).collect::<Vec<_>>()
    };
    let reset = "usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd";
    assert_eq!(places(&[PLUGGED_IN, reset]), [reset]);
    assert_eq!(
        places(&[reset]),
        [reset, "the log lacks the attachment of this drive: some may belong to another drive"]
    );
}
