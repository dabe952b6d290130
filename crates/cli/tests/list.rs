//! `uaskit list` and `why` of another machine: valid and invalid records, and the output for changed ones.

mod place;

use place::{Place, UASKIT};
use serde_json::{Value, json};
use std::process::{Command, Output};

fn from(command: &str, machine: &str) -> Output {
    Command::new(UASKIT).args([command, "--from", machine]).output().expect("the program runs")
}

#[test]
fn what_is_no_machine_is_not_taken_for_one_without_usb() {
    let place = Place::new();
    let machine = place.file("machine");
    std::fs::create_dir_all(&machine).expect("a folder");
    for command in ["list", "why"] {
        let output = from(command, &machine);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("contains no text") && stderr.contains("uaskit list --record"), "{stderr}");
    }
    std::fs::create_dir_all(format!("{machine}/sys/bus/usb/devices")).expect("a folder");
    let output = from("list", &machine);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"No USB bus found"), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_blank_drive_name_is_a_usage_error() {
    for name in ["", " "] {
        let output = Command::new(UASKIT).args(["why", name, "--from", GUEST]).output();
        let output = output.expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("the name of the drive is empty"), "{stderr}");
    }
}

/// A guest of QEMU with six drives.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees/guest.tree");
/// The drive that is UAS alone, and the ones that are BOT alone and both, without a driver.
const UAS_ALONE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-1/3-1:1.0/driver -\n";
const BOT_ALONE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-2/3-2:1.0/driver -\n";
const BOTH: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/driver -\n";
const QUIRKS: &str = "/sys/module/usb_storage/parameters/quirks";
const UAS_ABSENT: &str = "/sys/bus/usb/drivers/uas -\n\
    /lib/modules/6.1.0-56-amd64/modules.dep = kernel/drivers/usb/storage/usb-storage.ko.xz:\n";

/// The output for the guest with changed lines.
fn output_of(arguments: &[&str], lines: &str) -> String {
    let output = asked(arguments, lines);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn asked(arguments: &[&str], lines: &str) -> Output {
    let place = Place::new();
    let machine = place.file("machine.tree");
    let guest = std::fs::read_to_string(GUEST).expect("the recorded guest");
    std::fs::write(&machine, guest + lines).expect("a record");
    Command::new(UASKIT).args(arguments).args(["--from", &machine]).output().expect("the program runs")
}

#[test]
fn a_uas_only_drive_without_the_module_is_reported_in_one_line() {
    let lines = UAS_ABSENT.to_owned() + UAS_ALONE;
    let line = "the drive supports UAS only, and there is no module uas: no other driver can bind to it.\n";
    for arguments in [&["why", "3-1"][..], &["why"]] {
        let text = output_of(arguments, &lines);
        assert!(text.contains(&format!("It has no driver: {line}")), "{text}");
    }
    let text = output_of(&["list"], &lines);
    assert!(text.contains(&format!("3-1:1.0 has no driver: {line}What to do: uaskit why 3-1")), "{text}");
    assert!(!text.contains("echo 3-1:1.0"), "{text}");
}

#[test]
fn a_kernel_without_uas_differs_from_one_without_its_module() {
    let config = |lines: &str| format!("{UAS_ABSENT}{BOTH}/proc/config.gz = {lines}\n");
    let not_set = config("CONFIG_USB_STORAGE=m\\n# CONFIG_USB_UAS is not set")
        + "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/driver -> ../../../../../../bus/usb/drivers/usb-storage\n";
    let text = output_of(&["why", "3-3"], &not_set);
    for line in [
        "this kernel is built without CONFIG_USB_UAS, so usb-storage binds to every drive",
        "/proc/config.gz: CONFIG_USB_UAS is not set\n",
        " Use a kernel with UAS\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("linux-modules-extra"), "{text}");
    let module = config("CONFIG_USB_STORAGE=m\\nCONFIG_USB_UAS=m");
    let text = output_of(&["why", "3-3"], &module);
    for line in [
        "It has no driver: uas is a module of this kernel that is not installed: usb-storage leaves the drive to it",
        "/proc/config.gz: CONFIG_USB_UAS=m\n",
        "linux-modules-extra-6.1.0-56-amd64 (Ubuntu)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let neither = config("# CONFIG_USB_STORAGE is not set") + "/sys/bus/usb/drivers/usb-storage -\n";
    let text = output_of(&["why", "3-3"], &neither);
    assert!(text.contains("and UAS, so it supports no USB drive.\n"), "{text}");
    let json: Value = serde_json::from_str(&output_of(&["why", "3-3", "--json"], &not_set)).expect("JSON");
    let kernel = json!({
        "release": "6.1.0-56-amd64",
        "version": "6.1",
        "config": { "place": "/proc/config.gz", "usb_uas": "n", "usb_storage": "m" },
    });
    assert_eq!(json["kernel"], kernel);
    let json: Value = serde_json::from_str(&output_of(&["why", "--json"], "")).expect("JSON");
    assert_eq!((&json["kernel"]["config"], &json["kernel"]["version"]), (&Value::Null, &json!("6.1")));
}

/// Neither driver, and an index that has both.
const BOTH_LOADABLE: &str = "/sys/bus/usb/drivers/uas -\n/sys/bus/usb/drivers/usb-storage -\n\
    /sys/module/usb_storage/initstate -\n/sys/module/usb_storage/parameters/quirks -\n\
    /lib/modules/6.1.0-56-amd64/modules.dep = kernel/drivers/usb/storage/usb-storage.ko.xz:\\n\
    kernel/drivers/usb/storage/uas.ko.xz: kernel/drivers/usb/storage/usb-storage.ko.xz\n";

#[test]
fn what_keeps_a_driver_from_being_loaded_is_named_and_no_command_that_fails() {
    let lines = format!("{BOTH_LOADABLE}{BOTH}{BOT_ALONE}");
    let about = |lines: &str, port: &str| {
        let text = output_of(&["list"], lines);
        let about = text.split("\n\n").find(|part| part.starts_with(port)).expect("it has no driver");
        about.trim_end().to_owned()
    };
    assert!(about(&lines, "3-2").contains("To load them:\n  sudo modprobe uas\n"));
    let hardened = lines
        + "/etc/modprobe.d/cis.conf = install usb-storage /bin/false\\nblacklist usb-storage\n\
           /proc/cmdline = quiet module_blacklist=usb_storage\n";
    assert_eq!(
        about(&hardened, "3-2"),
        "3-2:1.0 has no driver: neither uas nor usb-storage is loaded. These lines prevent it:\n  \
         /etc/modprobe.d/cis.conf: install usb-storage /bin/false\n  \
         /etc/modprobe.d/cis.conf: blacklist usb-storage\n  \
         /proc/cmdline: module_blacklist=usb_storage\n\
         What to do: uaskit why 3-2"
    );
    assert_eq!(
        about(&hardened, "3-3"),
        "3-3:1.0 has no driver: the module uas is installed, but usb-storage, which it needs, is forbidden: usb-storage \
         leaves the drive to it, and no driver takes it.\n  \
         /etc/modprobe.d/cis.conf: install usb-storage /bin/false\n  \
         /proc/cmdline: module_blacklist=usb_storage\n\
         What to do: uaskit why 3-3"
    );
}

#[test]
fn a_drive_of_uas_alone_that_was_refused_for_streams_is_not_offered_to_the_same_driver_again() {
    const LOG: &str = "/dev/kmsg = usb 3-1: USB controller 0000:00:02.0 does not support streams\n";
    const REGISTERS: &str = "/sys/kernel/debug/usb/xhci/0000:00:02.0/reg-cap";
    let unbound = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/driver -\n";
    let no_streams = format!("{REGISTERS} = HCCPARAMS1 = 0x00080001\n{UAS_ALONE}{unbound}");
    let text = output_of(&["list"], &no_streams);
    let about = text.split("\n\n").find(|part| part.starts_with("3-1:1.0")).expect("it has no driver");
    assert!(about.contains("MaxPSASize is 0, and the drive supports UAS only"), "{about}");
    assert!(about.contains("a USB 2 port or cable: UAS needs no streams there"), "{about}");
    assert!(about.contains("a port of another xHCI controller"), "{about}");
    assert!(!about.contains("drivers_probe"), "{about}");
    // Without root there are neither registers nor a log.
    let logged = output_of(&["list"], &format!("{REGISTERS} -\n{LOG}{UAS_ALONE}{unbound}"));
    assert!(logged.contains("the kernel logged that the controller has no streams"), "{logged}");
    let unread = format!("{REGISTERS} -\n/dev/kmsg -\n{UAS_ALONE}{unbound}");
    let text = output_of(&["list"], &unread);
    let about = text.split("\n\n").find(|part| part.starts_with("3-1:1.0")).expect("it has no driver");
    assert!(
        about.contains("drivers_probe") && about.contains("whether the controller has streams"),
        "{about}"
    );
}

#[test]
fn a_drive_ignored_by_quirk_is_reported() {
    for (port, lines, because) in [
        ("3-2", format!("{QUIRKS} = 46f4:0001:i\n{BOT_ALONE}"), "the drive does not support UAS"),
        ("3-3", format!("{QUIRKS} = 1209:0001:iu\n{BOTH}"), "has the letter u for 1209:0001"),
    ] {
        let text = output_of(&["why", port], &lines);
        let left =
            format!("{because}, and usb-storage ignores it, since usb-storage.quirks= has the letter i");
        assert!(text.contains(&left) && !text.contains("no Bulk-Only"), "{text}");
        let text = output_of(&["why", port, "--json"], &lines);
        assert!(text.contains("\"decision\": \"left-alone\""), "{text}");
        let text = output_of(&["list"], &lines);
        assert!(
            text.contains(&format!("{port}:1.0 has no driver: usb-storage.quirks= has the letter i")),
            "{text}"
        );
    }
}

#[test]
fn an_endless_file_is_rejected_in_one_line() {
    let place = Place::new();
    let zeros = place.file("zeros");
    std::fs::write(&zeros, [0; 1 << 20]).expect("a file");
    for (machine, because, code) in
        [("/dev/zero", "longer than 64 MiB", 1), (zeros.as_str(), "contains no text", 2)]
    {
        let output = from("list", machine);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(because) && stderr.len() < 1000, "{} bytes: {stderr:.1000}", stderr.len());
    }
}

#[test]
fn a_truncated_record_is_an_error() {
    let place = Place::new();
    let recorded = place.file("recorded");
    let whole =
        Command::new(UASKIT).args(["list", "--record", &recorded]).output().expect("the program runs");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    assert!(from("list", &recorded).status.success());
    let text = std::fs::read_to_string(&recorded).expect("a record");
    std::fs::write(&recorded, &text[..text.len() - 30]).expect("a record");
    for command in ["list", "why"] {
        let output = from(command, &recorded);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
        assert!(stderr.contains("it is cut short") && stderr.contains("again"), "{stderr}");
    }
}

#[test]
fn a_recorded_machine_gets_its_log_from_a_file() {
    let place = Place::new();
    let log = place.file("log");
    std::fs::write(&log, "[ 9.0] usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd\n")
        .expect("a log");
    let text = output_of(&["why", "3-3", "--log", &log], "/dev/kmsg -\n");
    assert!(text.contains("resets: 1"), "{text}");
}

/// The log may be of another machine.
#[test]
fn a_drive_of_the_log_alone_is_not_reported_as_disconnected() {
    let place = Place::new();
    let log = place.file("log");
    let lines = "\
[   36.448592] usb 9-7: new high-speed USB device number 2 using xhci_hcd
[   36.847902] usb 9-7: New USB device found, idVendor=174c, idProduct=55aa
[   36.900000] usb-storage 9-7:1.0: USB Mass Storage device detected
[   36.902701] scsi host1: usb-storage 9-7:1.0
[   38.604540] sd 1:0:0:0: [sdb] Attached SCSI disk
";
    for (end, is_seen) in [("", false), ("[   50.000000] usb 9-7: USB disconnect, device number 2\n", true)] {
        std::fs::write(&log, format!("{lines}{end}")).expect("a log");
        let text = output_of(&["why", "--log", &log], "");
        assert_eq!(text.contains("until it was disconnected"), is_seen, "{text}");
        assert_eq!(text.contains("does not show that it was disconnected"), !is_seen, "{text}");
        assert_eq!(text.contains("uaskit why --from FILE"), !is_seen, "{text}");
    }
}

#[test]
fn a_log_without_usb_lines_leaves_resets_unknown() {
    let place = Place::new();
    let log = place.file("log");
    for (log_text, has) in [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("[ 1.0] Linux version 6.1\n[ 2.0] ACPI: all is well\n", "has 2 lines, none of them about USB"),
    ] {
        std::fs::write(&log, log_text).expect("a log");
        let output = Command::new(UASKIT).args(["why", "3-3", "--from", GUEST, "--log", &log]).output();
        let output = output.expect("the program runs");
        let (text, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && stderr.contains(&format!("{log} {has}, so kernel messages")),
            "{stderr}"
        );
        assert!(text.contains("resets   unknown  the kernel log has no line about USB"), "{text}");
    }
}

#[test]
fn a_file_that_is_not_a_log_is_an_error() {
    let place = Place::new();
    let binary = place.file("binary");
    std::fs::write(&binary, b"\x7fELF\x02\x01\x01\0\0\0\nusb 3-3: reset\n").expect("a file");
    let directory = std::env::temp_dir().display().to_string();
    for log in [&directory, "/dev/zero", "/dev/full", &binary] {
        let output = Command::new(UASKIT).args(["why", "3-3", "--from", GUEST, "--log", log]).output();
        let output = output.expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
        assert!(
            stderr.contains(&format!("cannot read {log} as a kernel log: it is not a text file")),
            "{stderr}"
        );
        assert!(stderr.contains("journalctl -k > FILE"), "{stderr}");
    }
}

/// Characters that a terminal interprets: escape sequences of two kinds, bell, delete, line feed, carriage return, a
/// bidirectional override and a line separator.
const PLAYFUL: &str = "\u{1b}[2J\u{9b}31m\u{7}\u{7f}\\nusb 3-3: \rx\u{202e}y\u{2028}z";

#[track_caller]
fn expect_escaped(what: &str, text: &str) {
    let is_control = |sign: char| sign.is_control() || matches!(sign, '\u{2028}'..='\u{202e}');
    let unescaped = text.lines().find(|line| line.chars().any(is_control));
    assert_eq!(unescaped, None, "{what}");
}

/// Whether some text in a value has another in it.
fn has_text(value: &serde_json::Value, part: &str) -> bool {
    use serde_json::Value::{Array, Object, String};
    match value {
        String(text) => text.contains(part),
        Array(all) => all.iter().any(|one| has_text(one, part)),
        Object(fields) => fields.values().any(|field| has_text(field, part)),
        _ => false,
    }
}

#[test]
fn nothing_that_is_printed_plays_with_the_terminal() {
    const DRIVE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3";
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:0");
    let place = Place::new();
    let log = place.file("log");
    std::fs::write(&log, "usb 3-3: reset SuperSpeed USB device number 4 \u{1b}[2J\u{7}\r\u{9b}1m\n")
        .expect("a log");
    // Two drives of one model with the same serial number, which is therefore printed.
    let twin = DRIVE.replace("usb3/3-3", "usb2/2-4");
    let lines = format!(
        "{DRIVE}/serial = S{PLAYFUL}\n{twin}/serial = S{PLAYFUL}\n{DRIVE}/product = P{PLAYFUL}\n\
         {DRIVE}/manufacturer = M{PLAYFUL}\n{unit}/model = D{PLAYFUL}\n{unit}/vendor = V{PLAYFUL}\n\
         {unit}/vpd_pg80 : 008000041b5b074a\n{QUIRKS} = 1209:0001:Q{PLAYFUL}\n"
    );
    for arguments in [&["list"][..], &["list", "--all"], &["list", "--udev"]] {
        let text = output_of(arguments, &lines);
        expect_escaped(&format!("{arguments:?}"), &text);
        assert!(
            text.contains("P\\u{1b}[2J\\u{9b}31m\\u{7}\\u{7f}\\nusb 3-3: \\rx\\u{202e}y\\u{2028}z"),
            "{text}"
        );
    }
    for arguments in [&["why"][..], &["why", "3-3"], &["why", "3-3", "--log", &log]] {
        let text = output_of(arguments, &lines);
        expect_escaped(&format!("{arguments:?}"), &text);
        assert!(text.contains("P\\u{1b}[2J"), "{text}");
    }
    let text = output_of(&["why", "3-3", "--log", &log], &lines);
    for shown in ["1209:0001:Q\\u{1b}[2J", "S\\u{1b}[2J", "number 4 \\u{7}\\r\\u{9b}1m"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for arguments in
        [&["list", "--json"][..], &["list", "--all", "--json"], &["why", "3-3", "--log", &log, "--json"]]
    {
        let text = output_of(arguments, &lines);
        expect_escaped(&format!("{arguments:?}"), &text);
        assert!(text.contains(r"P\u001b[2J\u009b31m\u0007\u007f\nusb 3-3: \rx\u202ey\u2028z"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let meant = format!("P{}", PLAYFUL.replace("\\n", "\n"));
        assert!(has_text(&value, &meant), "{text}");
    }
    // And each file of the machine in turn, wherever it is shown.
    let guest = std::fs::read_to_string(GUEST).expect("the recorded guest");
    let name =
        |line: &str| line.split(' ').next().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
    let names: std::collections::BTreeSet<_> = guest.lines().skip(1).filter_map(name).collect();
    for file in names {
        let of_file = guest.lines().filter(|line| name(line).as_ref() == Some(&file));
        let changed = of_file.filter(|line| line.contains(" = ") || line.contains(" -> "));
        let lines: String = changed.map(|line| format!("{line}{PLAYFUL}\n")).collect();
        for arguments in [
            &["list"][..],
            &["list", "--all"],
            &["why"],
            &["why", "3-3"],
            &["why", "5-1"],
            &["why", "--json"],
        ] {
            // Without a port that is readable there may be no such drive.
            let output = asked(arguments, &lines);
            for text in [output.stdout, output.stderr] {
                expect_escaped(
                    &format!("{arguments:?} with another {file}"),
                    &String::from_utf8_lossy(&text),
                );
            }
        }
    }
}

/// The rule for the drives of the guest, one for each id, in their order.
const ACCESS_RULES: &str = r#"# /etc/udev/rules.d/70-uaskit.rules: gives the user at the console access to these drives.
# To apply it: sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=usb
# uaskit Virtual Drive
SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ATTR{idVendor}=="1209", ATTR{idProduct}=="0001", TAG+="uaccess"
# QEMU USB HARDDRIVE
SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ATTR{idVendor}=="46f4", ATTR{idProduct}=="0001", TAG+="uaccess"
# QEMU USB Attached SCSI HBA
SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ATTR{idVendor}=="46f4", ATTR{idProduct}=="0003", TAG+="uaccess"
"#;

/// The rule that has TRIM sent to the guest's drive at 3-3.
const TRIM_RULE: &str = r#"ACTION=="add|change", SUBSYSTEM=="scsi_disk", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="0001", ATTR{provisioning_mode}="unmap""#;

#[test]
fn the_rules_of_udev_are_these() {
    assert_eq!(output_of(&["list", "--udev"], ""), ACCESS_RULES);
    let unit = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/host3/target3:0:0/3:0:0:0";
    let text = output_of(&["why", "3-3"], &format!("{unit}/scsi_disk/3:0:0:0/provisioning_mode = full\n"));
    let rule = text.lines().map(str::trim).skip_while(|line| !line.ends_with("70-uaskit-trim.rules")).nth(1);
    assert_eq!(rule, Some(TRIM_RULE), "{text}");
}

#[test]
fn udev_takes_its_rules() {
    let place = Place::new();
    // Whether there is a udev here that judges rules: since systemd 254.
    let can = Command::new("udevadm").args(["verify", "--help"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no `udevadm verify` here");
        return;
    }
    for (name, rules) in
        [("70-uaskit.rules", ACCESS_RULES.to_owned()), ("70-trim.rules", format!("{TRIM_RULE}\n"))]
    {
        let file = place.file(name);
        std::fs::write(&file, rules).expect("rules");
        let output = Command::new("udevadm").args(["verify", &file]).output().expect("it runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
