//! Texts of Windows, macOS and FreeBSD.

use super::*;

#[test]
fn texts_of_other_systems_name_the_driver() {
    let windows = "Device ID    : USB\\VID_152D&PID_0578\\0123\nService      : UASPStor\nDevice Bus Speed : 0x03 (Super-Speed)\n";
    let inventory = documents(&[("w", windows)]);
    let drive = &inventory.report.as_ref().expect("text").foreign[0];
    assert_eq!(
        (drive.system, drive.transport, drive.speed),
        (ForeignSystem::Windows, Some("UAS"), Some("5 Gb/s"))
    );
    let apple = "        External Disk:\n\n          Product ID: 0x0578\n          Vendor ID: 0x152d (JMicron)\n          Speed: Up to 5 Gb/s\n";
    let inventory = documents(&[("m", apple)]);
    let drive = &inventory.report.as_ref().expect("text").foreign[0];
    assert_eq!(
        (drive.system, drive.id.to_string(), drive.speed),
        (ForeignSystem::MacOs, "152d:0578".into(), Some("5 Gb/s"))
    );
}

#[test]
fn the_log_of_mac_os_names_drives_and_errors_without_their_serial_numbers() {
    let log = "\
Jul  2 08:15:01 mac kernel[0]: USBMSC Identifier (non-unique): 0123 AB98 0x152d 0x578 0x3202, 2
2026-07-02 08:15:03 kernel: (IOStorageFamily) disk0s2: I/O error.
2026-07-02 08:15:03 kernel: (IOStorageFamily) disk4s2: I/O error.
";
    let read = |log: &str| documents(&[("m", log)]).report.expect("text").foreign;
    let [drive] = &read(log)[..] else { panic!("one drive") };
    let facts = (drive.system, drive.id.to_string(), drive.error.as_deref());
    assert_eq!(facts, (ForeignSystem::MacOs, "152d:0578".into(), Some("I/O error of disk4s2")));
    assert!(!drive.source.text.contains("AB98"), "{}", drive.source.text);
    // Of two drives it is open which one has the disk; a line without a serial number has ids all the same.
    let other = "USBMSC Identifier (non-unique): 0x90c 0x1000 0x1100\n";
    let two = read(&format!("{other}{log}"));
    assert_eq!(two.iter().map(|drive| drive.id.to_string()).collect::<Vec<_>>(), ["090c:1000", "152d:0578"]);
    assert!(two.iter().all(|drive| drive.error.is_none()), "{two:?}");
    // Lines that are cut or wrong are no drive.
    for bad in
        ["USBMSC Identifier (non-unique): ", "USBMSC Identifier (non-unique): A 0x1 0x2", "disk4: I/O error."]
    {
        assert!(documents(&[("m", bad)]).report.is_none_or(|report| report.foreign.is_empty()), "{bad}");
    }
}

#[test]
fn a_mac_without_ids_still_names_its_disk() {
    let inventory = documents(&[(
        "usb.txt",
        "    USB 3.0 Bus:\n\n      Host Controller Driver: AppleUSBXHCIPCI\n      Capacity: 2 TB\n      BSD Name: disk4\n        disk4s1:\n          BSD Name: disk4s1\n",
    )]);
    let report = inventory.report.expect("it is text");
    assert_eq!(report.foreign.len(), 1, "{:#?}", report.foreign);
    assert_eq!(report.foreign[0].name.as_deref(), Some("/dev/disk4"));
}

#[test]
fn a_text_of_another_system_asks_for_that_system_s_command() {
    let inventory =
        documents(&[("log.txt", "Windows version: 10\nFound ID[1]: USB\\VID_8087&PID_0024\\5&1\n")]);
    let report = inventory.report.as_ref().expect("it is text");
    let commands: Vec<String> =
        report.missing(&inventory, None).into_iter().map(|missing| missing.command).collect();
    assert!(commands.len() == 1 && commands[0].starts_with("pnputil"), "{commands:?}");
}

#[test]
fn errors_of_cam_name_a_drive_whose_attachment_is_not_in_the_log() {
    for (text, name, error) in [
        (
            "kernel: (da0:umass-sim0:0:0:0): READ(10). CDB: 28 0 0 0 0 0 0 0 1 0\nkernel: (da0:umass-sim0:0:0:0): MEDIUM ERROR asc:30,2\n",
            Some("/dev/da0"),
            "MEDIUM ERROR asc:30,2 at READ(10)",
        ),
        (
            "(probe0:umass-sim0:0:0:0): INQUIRY. CDB: 12 00 00 00 24 00\n(probe0:umass-sim0:0:0:0): CAM status: CCB request completed with an error\n",
            None,
            "CCB request completed with an error at INQUIRY",
        ),
        (
            "umass1: <Example Storage, class 0/0, rev 2.00/1.02, addr 2> on usbus1\numass1:  SCSI over Bulk-Only; quirks = 0x0100\nda0 at umass-sim1 bus 1 scbus8 target 0 lun 0\nda0: Attempt to query device size failed: NOT READY, Medium not present\n",
            Some("Example Storage"),
            "NOT READY, Medium not present at READ CAPACITY",
        ),
    ] {
        let report = documents(&[("messages", text)]).report.expect("it is text");
        let [drive] = report.foreign.as_slice() else { panic!("{:#?}", report.foreign) };
        assert_eq!((drive.name.as_deref(), drive.error.as_deref()), (name, Some(error)), "{text}");
    }
}

#[test]
fn a_problem_of_windows_is_reported_in_every_language() {
    let text = "Instanz-ID:                 USB\\VID_152D&PID_0578\\0123\n\
                Status:                     Problem\n\
                Problemcode:                10 (0x0A) [CM_PROB_FAILED_START]\n\
                Treibername:                uaspstor.inf\n";
    let inventory = documents(&[("pnputil.txt", text)]);
    let report = inventory.report.as_ref().expect("a text");
    assert_eq!(report.foreign[0].error.as_deref(), Some("the problem CM_PROB_FAILED_START"));
}
