//! Names of devices in the kernel's log: they are no words of the kernel's.

use super::*;
use proptest::prelude::*;

/// Messages of the kernel about drives, which a device may be named after.
const WORDS: &[&str] = &[
    "UAS is ignored for this device, using usb-storage instead",
    "UAS is blacklisted for this device, using usb-storage instead",
    "USB controller 0000:00:02.0 does not support streams, which are required by the UAS driver.",
    "The driver for the USB controller xhci_hcd does not support scatter-gather which is",
    "not running at top speed; connect to a high speed hub",
    "rejected 1 configuration due to insufficient available bus power",
    "Device is not authorized for usage",
    "over-current condition",
    "USB disconnect, device number 4",
    "new SuperSpeed USB device number 4 using xhci_hcd",
    "reset SuperSpeed USB device number 4 using xhci_hcd",
    "New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00",
    "device descriptor read/8, error -71",
    "Cannot enable. Maybe the USB cable is bad?",
    "cmd cmplt err -2",
    "[sdc] tag#1 uas_zap_pending 0 uas-tag 1",
    "I/O error, dev sdc, sector 77 op 0x0:(READ)",
    "ERROR Transfer event for unknown stream ring slot 3 ep 6",
    "suspend entry (deep)",
    "suspend exit",
];

/// Sources that may be given for them.
const SOURCES: &[&str] = &[
    "",
    "usb 3-3: ",
    "usb usb3-port3: ",
    "usb usb2-port3: ",
    "sd 3:0:0:0: ",
    "scsi host3: ",
    "xhci_hcd 0000:00:02.0: ",
    "uas 3-3:1.0: ",
    "PM: ",
];

/// Text that may be put before that, as a journal does or somebody who wants to look like one.
const BEFORE: &[&str] = &[
    "",
    " ",
    ": ",
    "kernel: ",
    "] ",
    "[   12.345678] ",
    "<6>",
    "Product: ",
    "Nov 26 09:23:06 host kernel: ",
];

fn name() -> impl Strategy<Value = String> {
    use prop::sample::select;
    let forged = (select(BEFORE), select(SOURCES), select(WORDS), ".{0,8}");
    let forged = forged.prop_map(|(before, source, words, rest)| format!("{before}{source}{words}{rest}"));
    prop_oneof![4 => forged, 1 => ".{0,60}"].prop_map(|name| name.replace(['\\', '\n', '\r', '\0'], "?"))
}

/// The log of the drive and of another one, whose strings and names these are, below what a program puts before each line.
fn log_with(names: &[String; 6], before: &str) -> String {
    log(&lines_with(names, before).join("\\n"))
}

fn lines_with(names: &[String; 6], before: &str) -> Vec<String> {
    let [maker, product, model, others_maker, others_product, others_model] = names;
    let lines = [
        "usb 3-1: new SuperSpeed USB device number 2 using xhci_hcd".to_owned(),
        format!("usb 3-1: Product: {others_product}"),
        format!("usb 3-1: Manufacturer: {others_maker}"),
        format!("scsi 1:0:0:0: Direct-Access     {others_model}  0.1  PQ: 0 ANSI: 6"),
        PLUGGED_IN.to_owned(),
        ITS_IDS.to_owned(),
        "usb 3-3: New USB device strings: Mfr=1, Product=2, SerialNumber=3".to_owned(),
        format!("usb 3-3: Product: {product}"),
        format!("usb 3-3: Manufacturer: {maker}"),
        format!("usb 3-3: SerialNumber: {maker}"),
        format!("scsi 3:0:0:0: Direct-Access     {model}  0.1  PQ: 0 ANSI: 6"),
        format!("input: {product} as /devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.1/input/input5"),
    ];
    lines.iter().map(|line| format!("{before}{line}")).collect()
}

#[test]
fn a_drive_that_is_called_like_the_kernels_word_is_not_judged_by_it() {
    let decided = |product: &str, others: &str| {
        let names = ["", product, "", "", others, ""].map(str::to_owned);
        let lines = log_with(&names, "") + &at("product", product) + &bound("usb-storage") + REGISTERS;
        diagnosed("3-3", &(lines + " = HCCPARAMS1 = 0x00080001\n")).decision
    };
    let ignored = "UAS is ignored for this device";
    assert_eq!(decided(ignored, ""), Decision::Decided(Rule::Streams));
    assert_eq!(decided("", &format!("usb 3-3: {ignored}")), Decision::Decided(Rule::Streams));
}

#[test]
fn nothing_that_the_kernel_says_counts_as_a_name() {
    let decided = |name: &dyn Fn(&str, &str) -> String| {
        let named = SOURCES.iter().flat_map(|source| WORDS.iter().map(move |words| (*source, *words)));
        let named = named.flat_map(|(source, words)| lines_with(&[(); 6].map(|()| name(source, words)), ""));
        let lines: Vec<String> = named.collect();
        ["uas", "usb-storage"].map(|driver| diagnosed("3-3", &(log(&lines.join("\\n")) + &bound(driver))))
    };
    assert_eq!(decided(&|source, words| format!("{source}{words}")), decided(&|_, _| "name".to_owned()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Names of a drive and of another one do not change the diagnosis, on whichever driver.
    #[test]
    fn no_name_changes_a_judgement(
        names in [name(), name(), name(), name(), name(), name()],
        before in prop::sample::select(&["", "[   12.345678] ", "Nov 26 09:23:06 host kernel: "][..]),
        driver in prop::sample::select(&["uas", "usb-storage", ""][..]),
    ) {
        let driver = if driver.is_empty() { unbound() } else { bound(driver) };
        let plain = std::array::from_fn(|at| format!("name {at}"));
        let said = diagnosed("3-3", &(log_with(&names, before) + &driver));
        prop_assert_eq!(said, diagnosed("3-3", &(log_with(&plain, before) + &driver)));
    }
}
