//! The list of situations.

use super::lines::*;
use crate::diagnose::rules::streams::BROKEN_STREAMS;
use crate::diagnose::{Decision, Expected, Rule};

pub(super) struct Situation {
    pub(super) name: &'static str,
    pub(super) port: &'static str,
    pub(super) lines: String,
    pub(super) expected: Expected,
    pub(super) decision: Decision,
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

pub(super) fn situations() -> Vec<Situation> {
    use Decision::Decided;
    let mut all = vec![
        on_uas("UAS with streams", String::new()),
        situation("UAS without streams", "2-4", String::new(), Expected::Uas, Decision::AllMet),
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
        on_bot("MediaTek's xHCI 0.96", mediatek("CAPLENGTH = 0x00960020\\n"), Rule::Streams),
        on_bot("a pipe without descriptor", without_status_pipe(), Rule::Pipes),
        on_bot("a row of the table", ids(0x357d, 0x7788), Rule::NotIgnored),
        on_bot("a row of usb-storage's table alone", vl817("9999"), Rule::NotIgnored),
        on_uas("the same where uas was asked first", vl817("9999")),
        on_uas("the same, and the user says nothing of u", vl817("9999") + &quirks("2109:0715:")),
        on_uas("another revision of it", vl817("0843")),
        on_uas("another revision than the row's", ids(0x0984, 0x0301) + &at("bcdDevice", "0129")),
        on_bot("ASMedia below super speed", asmedia(0x55aa, 4) + &high_speed(), Rule::NotIgnored),
        on_bot("ASMedia with 32 streams", asmedia(0x5106, 5), Rule::NotIgnored),
        on_uas("ASMedia with 16 streams", asmedia(0x55aa, 4)),
        on_uas("ASMedia without power from the bus", ids(0x174c, 0x55aa)),
        on_uas("Seagate", ids(0x0bc2, 0xab38)),
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
    all.extend(log_situations());
    all.extend(driver_situations());
    all.extend(unclear_situations());
    all.extend(situations_of_registers());
    all.extend(row_situations());
    all.extend(rtl9210_situations());
    all.extend(stray_situations());
    all.extend(unconfigured_situations());
    all.extend(BROKEN_STREAMS.iter().map(|(vendor, device, name)| {
        let pci = format!("{CONTROLLER}/vendor = 0x{vendor:04x}\n{CONTROLLER}/device = 0x{device:04x}\n");
        on_bot(name, pci, Rule::Streams)
    }));
    all
}

/// Two drives at one port, one after another: what the kernel said of the first says nothing of the second.
fn log_situations() -> Vec<Situation> {
    const NO_STREAMS: &str = "usb 3-3: USB controller 0000:00:02.0 does not support streams, which are required by the UAS driver.";
    const OF_ANOTHER: &str = "usb 3-3: USB controller 0000:00:09.0 does not support streams, which are required by the UAS driver.";
    const NO_LISTS: &str =
        "usb 3-3: The driver for the USB controller xhci-hcd does not support scatter-gather which is";
    const IGNORED: &str = "usb 3-3: UAS is ignored for this device, using usb-storage instead";
    const BLACKLISTED: &str = "usb 3-3: UAS is blacklisted for this device, using usb-storage instead";
    let stray = |name, lines: &[&str]| {
        let lines = log_of(lines) + &bound("usb-storage");
        situation(name, "3-3", lines, Expected::Uas, Decision::Unexplained)
    };
    vec![
        on_bot("no streams, says the log", log_of(&[PLUGGED_IN, NO_STREAMS]), Rule::Streams),
        on_bot("the same where it begins later", log_of(&[NO_STREAMS]), Rule::Streams),
        on_uas("the same, and uas has it", log_of(&[NO_STREAMS])),
        on_uas("no scatter-gather, and uas has it", log_of(&[NO_LISTS])),
        stray("no streams for the drive before", &[ANOTHER, NO_STREAMS, UNPLUGGED, PLUGGED_IN]),
        stray("no scatter-gather for the drive before", &[ANOTHER, NO_LISTS, UNPLUGGED, PLUGGED_IN]),
        stray("no streams of another controller", &[OF_ANOTHER]),
        on_bot("ignored, says the log alone", log_of(&[PLUGGED_IN, IGNORED]), Rule::NotIgnored),
        on_bot("the same in the words of older kernels", log(BLACKLISTED), Rule::NotIgnored),
        on_bot(
            "the same, and an entry has come since",
            log(IGNORED) + &quirks("1209:0001:"),
            Rule::NotIgnored,
        ),
        on_uas("the same, and uas has it", log(IGNORED)),
        stray("the drive before was ignored", &[ANOTHER, IGNORED, UNPLUGGED, PLUGGED_IN]),
    ]
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
        situation(
            "UAS alone, and the module is absent",
            "3-1",
            uas_absent() + UAS_ALONE,
            Expected::NoDriver,
            Decided(Rule::Loaded),
        ),
        situation(
            "BOT alone, which needs no module of UAS",
            "3-2",
            uas_absent(),
            Expected::UsbStorage,
            Decided(Rule::AlternateSetting),
        ),
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

/// Situations that cannot be explained, or not for certain.
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
            controller("musb-hdrc") + &table_size("128"),
            "usb-storage",
            Expected::Uas,
            Supposed(Rule::ScatterGather),
        ),
        other(
            "MediaTek's xHCI of a version not known",
            mediatek(""),
            "usb-storage",
            Expected::Uas,
            Supposed(Rule::Streams),
        ),
        other(
            "a kernel not known",
            "/sys/bus/usb/drivers/uas -\n".into(),
            "usb-storage",
            Expected::Uas,
            Supposed(Rule::Built),
        ),
        other("bound by hand", String::new(), "usb-storage", Expected::Uas, Decision::Unexplained),
        situation(
            "its descriptors cannot be read",
            "3-3",
            format!("{DRIVE}/descriptors -\n") + &unbound(),
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

/// Controllers whose registers have streams that Linux uses: nothing explains a drive on usb-storage there.
fn situations_of_registers() -> Vec<Situation> {
    let entries = |size: u8| format!("{REGISTERS} = HCCPARAMS1 = 0x0008{size:x}001\n");
    let of = |name, lines: String| {
        situation(name, "3-3", lines + &bound("usb-storage"), Expected::Uas, Decision::Unexplained)
    };
    vec![
        of("four entries, says debugfs", entries(1)),
        of("eight entries, says debugfs", entries(2)),
        of("sixteen entries, says debugfs", entries(3)),
        of("MediaTek's xHCI 0.96 with sixteen entries", mediatek_of("CAPLENGTH = 0x00960020\\n", 3)),
        of("MediaTek's xHCI 1.10", mediatek("CAPLENGTH = 0x01100020\\n")),
    ]
}

/// A bridge with a row in usb-storage's own table, of this revision.
fn vl817(revision: &str) -> String {
    ids(0x2109, 0x0715) + &at("bcdDevice", revision)
}

/// Rows of quirks that this kernel, 6.1, may lack, and one that it has.
fn row_situations() -> Vec<Situation> {
    let other = |name, lines, driver, expected, decision| {
        let lines: String = lines;
        situation(name, "3-3", lines + &bound(driver), expected, decision)
    };
    vec![
        other(
            "a row that came after this kernel, which has not taken it over",
            ids(0x0781, 0x55e8),
            "uas",
            Expected::Uas,
            Decision::AllMet,
        ),
        other(
            "a row that came after this kernel, which may have taken it over",
            ids(0x0781, 0x55e8),
            "usb-storage",
            Expected::Uas,
            Decision::Supposed(Rule::NotIgnored),
        ),
        other(
            "a row that came after this kernel, which has taken it over",
            ids(0x0781, 0x55e8) + &log("usb 3-3: UAS is ignored for this device, using usb-storage instead"),
            "usb-storage",
            Expected::UsbStorage,
            Decision::Decided(Rule::NotIgnored),
        ),
        other(
            "a row of usb-storage alone that came later, which may have been taken over",
            vl817("0843"),
            "usb-storage",
            Expected::Uas,
            Decision::Supposed(Rule::NotIgnored),
        ),
        other(
            "the same, which the kernel says that it has",
            vl817("0843") + &log("usb 3-3: UAS is ignored for this device, using usb-storage instead"),
            "usb-storage",
            Expected::UsbStorage,
            Decision::Decided(Rule::NotIgnored),
        ),
        other(
            "a row of this kernel, which does otherwise",
            ids(0x357d, 0x7788),
            "uas",
            Expected::UsbStorage,
            Decision::Unexplained,
        ),
    ]
}

/// A Realtek bridge that many use: a row of 6.0 was for all of them, a rule of 6.2 is for one, and stable branches have followed in their
/// own time.
fn rtl9210_situations() -> Vec<Situation> {
    use Decision::Supposed;
    let realtek = |release| ids(0x0bda, 0x9210) + &kernel(release);
    let md202 = |release| realtek(release) + &at("manufacturer", "HIKSEMI") + &at("product", "MD202");
    let said = log("usb 3-3: UAS is ignored for this device, using usb-storage instead");
    let supposed = |name, lines: String| {
        let lines = lines + &bound("usb-storage");
        situation(name, "3-3", lines, Expected::Uas, Supposed(Rule::NotIgnored))
    };
    vec![
        on_bot("HIKSEMI MD202", md202("6.2.0"), Rule::NotIgnored),
        on_bot("HIKSEMI MD202 by the row or by the rule", md202("6.1.0-56-amd64"), Rule::NotIgnored),
        supposed("HIKSEMI MD202 in an older kernel", md202("5.10.0-18-amd64")),
        on_uas("the same, which has neither row nor rule", md202("5.10.0-18-amd64")),
        on_uas("Realtek of others", realtek("6.2.0") + &at("manufacturer", "HIKSEMI")),
        on_uas("Realtek of others, and the row has gone", realtek("6.1.0-56-amd64")),
        supposed("Realtek of others, and the row may be there", realtek("6.1.0-56-amd64")),
        supposed("Realtek of others in an older kernel", realtek("5.10.0-18-amd64")),
        on_bot(
            "Realtek of others, which the kernel says that it ignores",
            realtek("6.0.0") + &said,
            Rule::NotIgnored,
        ),
        on_bot("the same in an older kernel", realtek("5.10.0") + &said, Rule::NotIgnored),
        on_uas("the same, and the user says nothing of u", realtek("6.0.0") + &quirks("0bda:9210:")),
    ]
}

/// Another driver has the drive, or none although one should.
fn stray_situations() -> Vec<Situation> {
    let taken = |name, lines| situation(name, "3-3", lines, Expected::Uas, Decision::TakenAway);
    let forsaken = |name, port, lines| situation(name, port, lines, Expected::UsbStorage, Decision::NotTaken);
    let left =
        |name, port, lines, rule| situation(name, port, lines, Expected::NoDriver, Decision::LeftAlone(rule));
    let bot_unbound = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-2/3-2:1.0/driver -\n";
    vec![
        taken("claimed by a program", bound("usbfs")),
        taken("taken by another driver", bound("ums-realtek")),
        taken("exported by USB/IP", at_device("usbip-host") + &unbound()),
        forsaken("BOT alone, and no driver", "3-2", bot_unbound.into()),
        left(
            "BOT alone, and the user says i",
            "3-2",
            quirks("46f4:0001:i") + bot_unbound,
            Rule::AlternateSetting,
        ),
        left("the user says i and u", "3-3", quirks("1209:0001:iu") + &unbound(), Rule::NotIgnored),
        on_uas("the user says i, which uas does not mind", quirks("1209:0001:i")),
        forsaken("ignored by uas, and no driver", "3-3", ids(0x357d, 0x7788) + &unbound()),
    ]
}

/// The kernel has set no configuration: there is no interface for a driver to have.
fn unconfigured_situations() -> Vec<Situation> {
    let of = |name, lines: String| {
        let lines = unconfigured() + &lines;
        situation(name, "3-3", lines, Expected::NoDriver, Decision::Decided(Rule::Configured))
    };
    let line = |words| log_of(&[PLUGGED_IN, words]);
    vec![
        of("not authorized", at("authorized", "0") + &line("usb 3-3: Device is not authorized for usage")),
        of("it wants more than there is", at("authorized", "1") + &max_power(113)),
        of(
            "the kernel says that there is too little",
            line("usb 3-3: rejected 1 configuration due to insufficient available bus power"),
        ),
        of("its configuration could not be set", line("usb 3-3: can't set config #1, error -32")),
        of("authorized again by hand", at("authorized", "1")),
        of(
            "not configured, by a kernel without UAS",
            "/boot/config-6.1.0-56-amd64 = # CONFIG_USB_UAS is not set\n/sys/bus/usb/drivers/uas -\n".into(),
        ),
    ]
}
