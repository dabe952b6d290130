//! Causes by kind, each from an invented log of the drive on port 3-3.

use super::*;
use crate::diagnose::{AbsentKind, CauseKind, absent};

/// The start of a log: the drive is plugged in at 3-3 as number 4 and becomes sdc of SCSI host 3.
const START: [&str; 4] = [
    "[    1.0] usb 3-3: new SuperSpeed USB device number 4 using xhci_hcd",
    "[    1.1] usb 3-3: New USB device found, idVendor=1209, idProduct=0001, bcdDevice= 1.00",
    "[    1.2] scsi host3: uas",
    "[    1.3] sd 3:0:0:0: [sdc] Attached SCSI disk",
];

fn with(lines: &[&str]) -> Diagnosis {
    let all: Vec<&str> = START.iter().chain(lines).copied().collect();
    diagnosed("3-3", &log_of(&all))
}

fn first(lines: &[&str]) -> (CauseKind, String, Vec<String>) {
    let diagnosis = with(lines);
    let cause = diagnosis.causes.first().unwrap_or_else(|| panic!("{lines:#?}: {diagnosis:#?}"));
    let purposes = cause.advice.iter().map(|advice| advice.purpose.clone()).collect();
    (cause.kind, cause.because.clone(), purposes)
}

const RESET: &str = "[  500.1] usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd";

fn aborted(tag: u32, cdb: &str) -> [String; 2] {
    [
        format!("[  500.0] sd 3:0:0:0: [sdc] tag#{tag} uas_eh_abort_handler 0 uas-tag 1 inflight: CMD"),
        format!("[  500.0] sd 3:0:0:0: [sdc] tag#{tag} CDB: {cdb}"),
    ]
}

#[test]
fn the_command_that_was_aborted_first_decides() {
    use CauseKind::{Command, Poll, Transport, Trim};
    for (cdb, kind, words, purpose) in [
        (
            "opcode=0x85 85 06 20 00 00 00 00 00 00 00 00 00 00 00 e5 00",
            Poll,
            "CHECK POWER MODE",
            "Stop the program",
        ),
        ("opcode=0xe6 e6 00 00 00", Poll, "vendor-specific command E6h", "Stop the program"),
        ("Unmap/Read sub-channel 42 00 00 00 00 00 00 00 18 00", Trim, "UNMAP", "Send the drive no TRIM"),
        ("opcode=0xa3 a3 0c 00 00", Command, "REPORT SUPPORTED OPERATION CODES", "Send no REPORT SUPPORTED"),
        ("Write same(16) 93 00 00 00", Command, "WRITE SAME", "Send no WRITE SAME"),
        ("Synchronize Cache(10) 35 00 00 00", Command, "SYNCHRONIZE CACHE", "Cut the drive's power"),
        ("opcode=0x2a 2a 00 00 20 33 28 00 00 20 00", Transport, "WRITE(10)", "Check cable"),
    ] {
        let special = aborted(26, cdb);
        let write = aborted(18, "opcode=0x2a 2a 00 00 20 33 28 00 00 20 00");
        let lines: Vec<&str> = special.iter().chain(&write).map(String::as_str).chain([RESET]).collect();
        let (found, because, purposes) = first(&lines);
        assert_eq!(found, kind, "{cdb}: {because}");
        assert!(because.contains(words), "{because}");
        assert!(purposes[0].starts_with(purpose), "{purposes:?}");
        let keeps_off = purposes.iter().any(|purpose| purpose.starts_with("Keep it off UAS"));
        assert_eq!(keeps_off, kind == Transport, "{cdb}: {purposes:?}");
    }
}

#[test]
fn a_command_whose_transfer_failed_decides_as_well() {
    let (kind, because, _) = first(&[
        "[  260.3] sd 3:0:0:0: [sdc] tag#15 data cmplt err -75 uas-tag 1 inflight:",
        "[  260.3] sd 3:0:0:0: [sdc] tag#15 CDB: opcode=0xe6 (vendor) e6 02 00 01 00 00 00 0f 00 00",
        "[  293.9] sd 3:0:0:0: [sdc] tag#12 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD IN",
        "[  293.9] sd 3:0:0:0: [sdc] tag#12 CDB: Read(10) 28 00 0d 36 2f 70 00 00 40 00",
        RESET,
    ]);
    assert_eq!(kind, CauseKind::Poll, "{because}");
    assert!(because.contains("failed first was the vendor-specific command E6h"), "{because}");
}

#[test]
fn a_failure_without_sense_data_is_not_taken_for_a_failing_drive() {
    let with_sense = |additional: &str| {
        with(&[
            "[ 50.0] sd 3:0:0:0: [sdc] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_SENSE",
            "[ 50.0] sd 3:0:0:0: [sdc] tag#0 Sense Key : Hardware Error [current]",
            additional,
            "[ 50.0] sd 3:0:0:0: [sdc] tag#0 CDB: Read(10) 28 00 9a 80 14 30 00 00 08 00",
            "[ 50.0] blk_update_request: I/O error, dev sdc, sector 2592085040",
        ])
    };
    let empty = with_sense("[ 50.0] sd 3:0:0:0: [sdc] tag#0 Add. Sense: No additional sense information");
    let cause = empty.causes.first().expect("a cause");
    assert!(
        cause.kind == CauseKind::Refused && cause.because.contains("gave no reason"),
        "{:?}: {}",
        cause.kind,
        cause.because
    );
    assert!(empty.causes.iter().all(|cause| cause.kind != CauseKind::DriveFailing), "{:#?}", empty.causes);
    let reported = with_sense("[ 50.0] sd 3:0:0:0: [sdc] tag#0 Add. Sense: Logical unit failure");
    assert_eq!(reported.causes.first().expect("a cause").kind, CauseKind::DriveFailing);
}

#[test]
fn what_the_drive_refuses_is_named_by_its_sense_key() {
    let sense = |key: &str, additional: &str, cdb: &str| {
        let lines = [
            "[ 50.0] sd 3:0:0:0: [sdc] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK".to_owned(),
            format!("[ 50.0] sd 3:0:0:0: [sdc] tag#0 Sense Key : {key} [current]"),
            format!("[ 50.0] sd 3:0:0:0: [sdc] tag#0 Add. Sense: {additional}"),
            format!("[ 50.0] sd 3:0:0:0: [sdc] tag#0 CDB: {cdb}"),
        ];
        with(&lines.each_ref().map(String::as_str))
    };
    for (key, additional, cdb, words, purpose) in [
        (
            "Not Ready",
            "Medium not present",
            "Read(10) 28 00 00",
            "NOT READY (Medium not present) at READ(10)",
            "Insert a medium",
        ),
        (
            "Not Ready",
            "Logical unit is in process of becoming ready",
            "Read(10) 28 00",
            "NOT READY",
            "Cut the drive's power once",
        ),
        (
            "Aborted Command",
            "No additional sense information",
            "Write(10) 2a 00 00",
            "ABORTED COMMAND",
            "Check the drive inside",
        ),
        (
            "Illegal Request",
            "Logical block address out of range",
            "Read(10) 28 00 00",
            "ILLEGAL REQUEST",
            "Compare the capacity",
        ),
        (
            "Illegal Request",
            "Invalid field in cdb",
            "Write(10) 2a 08 00",
            "does not support FUA",
            "Write without FUA",
        ),
    ] {
        let diagnosis = sense(key, additional, cdb);
        let cause = diagnosis.causes.first().unwrap_or_else(|| panic!("{key}: {diagnosis:#?}"));
        assert!(cause.kind == CauseKind::Refused && cause.because.contains(words), "{}", cause.because);
        assert!(cause.advice[0].purpose.starts_with(purpose), "{:#?}", cause.advice);
    }
    // A drive may refuse what it does not support.
    for cdb in ["opcode=0x85 85 06 20", "Log sense 4d 00", "Mode Sense(10) 5a 00"] {
        let diagnosis = sense("Illegal Request", "Invalid command operation code", cdb);
        assert!(diagnosis.causes.is_empty(), "{cdb}: {diagnosis:#?}");
    }
}

#[test]
fn each_check_reports_its_own_cause() {
    let poll = aborted(1, "opcode=0x85 85 06 20 00 00 00 00 00 00 00 00 00 00 00 b0 00");
    let diagnosis = with(&[&poll[0], &poll[1], RESET]);
    assert_eq!(check_of(&diagnosis, CheckKind::Smart).health, Health::Concern);
    let trim = aborted(1, "opcode=0x42 42 00");
    let diagnosis = with(&[&trim[0], &trim[1], RESET]);
    assert_eq!(check_of(&diagnosis, CheckKind::Trim).health, Health::Concern);
    let is_wish = |advice: &&Advice| advice.is_wish;
    assert_eq!(diagnosis.checks.iter().flat_map(|check| &check.advice).filter(is_wish).count(), 0);
}

#[test]
fn a_supply_that_sags_before_a_reset_comes_first() {
    for sag in
        ["[  499.9] hwmon hwmon1: Undervoltage detected!", "[  499.9] Under-voltage detected! (0x00050005)"]
    {
        let (kind, because, purposes) = first(&[sag, RESET]);
        assert_eq!(kind, CauseKind::Undervoltage, "{because}");
        assert!(
            because.contains("499.9 s") && purposes[0].contains("power supply"),
            "{because} {purposes:?}"
        );
        let diagnosis = with(&[sag, RESET]);
        assert_eq!(check_of(&diagnosis, CheckKind::Power).health, Health::Concern);
    }
    let (kind, ..) = first(&["[  100.0] hwmon hwmon1: Undervoltage detected!", RESET]);
    assert_eq!(kind, CauseKind::UndervoltageAlone);
}

#[test]
fn what_the_drive_reports_of_itself_is_no_fault_of_the_cable() {
    for (key, additional) in [
        ("Medium Error [current]", "Add. Sense: Unrecovered read error"),
        ("0x4 [current]", "ASC=0x44 ASCQ=0x0"),
    ] {
        let key = format!("[  300.0] sd 3:0:0:0: [sdc] tag#3 Sense Key : {key}");
        let additional = format!("[  300.0] sd 3:0:0:0: [sdc] tag#3 {additional}");
        let (kind, because, purposes) = first(&[
            "[  300.0] sd 3:0:0:0: [sdc] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK",
            &key,
            &additional,
            "[  300.0] sd 3:0:0:0: [sdc] tag#3 CDB: Read(10) 28 00 00 00 00 00 00 00 08 00",
            "[  300.0] critical medium error, dev sdc, sector 305419896 op 0x0:(READ)",
        ]);
        assert_eq!(kind, CauseKind::DriveFailing, "{because}");
        assert!(because.contains("USB is not the cause"), "{because}");
        assert!(
            purposes.iter().all(|purpose| !purpose.contains("UAS") && !purpose.contains("cable")),
            "{purposes:?}"
        );
    }
}

#[test]
fn a_drive_that_comes_and_goes_is_no_hand() {
    let mut lines: Vec<String> = Vec::new();
    for number in 4..9 {
        let at = number * 100;
        lines.push(format!("[  {at}.0] usb 3-3: USB disconnect, device number {number}"));
        let next = number + 1;
        lines.push(format!("[  {at}.5] usb 3-3: new SuperSpeed USB device number {next} using xhci_hcd"));
        lines.push(format!(
            "[  {at}.6] usb 3-3: New USB device found, idVendor=1209, idProduct=0001, bcdDevice= 1.00"
        ));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (kind, because, _) = first(&lines);
    assert_eq!(kind, CauseKind::Flapping, "{because}");
    assert!(because.contains("5 times"), "{because}");
    assert!(with(&lines[..3]).causes.is_empty(), "one disconnect is a hand's");
}

#[test]
fn a_dead_controller_explains_the_rest() {
    let write = aborted(12, "opcode=0x2a 2a 00");
    let lines = [
        write[0].as_str(),
        &write[1],
        "[ 1672.7] xhci_hcd 0000:00:02.0: xHCI host controller not responding, assume dead",
        "[ 1672.8] xhci_hcd 0000:00:02.0: HC died; cleaning up",
    ];
    let (kind, because, purposes) = first(&lines);
    assert_eq!(kind, CauseKind::ControllerDied);
    assert!(because.contains("0000:00:02.0 died 1,672 s after boot while /dev/sdc"), "{because}");
    assert!(purposes[0].starts_with("Restart the host controller"), "{purposes:?}");
}

#[test]
fn a_controller_that_cannot_reach_memory_died() {
    let lines = [
        "[  80.1] xhci_hcd 0000:00:02.0: WARNING: Host System Error",
        "[  95.4] xhci_hcd 0000:00:02.0: xHCI host not responding to stop endpoint command",
    ];
    for lines in [&lines[..1], &lines] {
        let (kind, because, _) = first(lines);
        assert_eq!(kind, CauseKind::ControllerDied);
        assert!(because.contains("after a Host System Error"), "{because}");
    }
}

#[test]
fn events_that_fit_no_transfer_are_the_controllers() {
    for line in [
        "[  39.7] xhci_hcd 0000:00:02.0: ERROR Unknown event condition 33 for slot 2 ep 6 , HC probably busted",
        "[  39.7] xhci_hcd 0000:00:02.0: ERROR Transfer event TRB DMA ptr not part of current TD ep_index 7 comp_code 1",
    ] {
        let (kind, because, _) = first(&[line]);
        assert_eq!(kind, CauseKind::StreamEvents, "{because}");
    }
}

#[test]
fn an_error_of_uas_is_the_rule_that_decides() {
    for line in [
        "[    1.5] uas: probe of 3-3:1.0 failed with error -12",
        "[    1.5] uas 3-3:1.0: probe with driver uas failed with error -12",
    ] {
        let lines = [START[0], START[1], line];
        let diagnosis = diagnosed("3-3", &(log_of(&lines) + &unbound()));
        assert_eq!(diagnosis.decision, Decision::Decided(Rule::Started), "{line}");
        let started = diagnosis.judgement(Rule::Started).expect("it was asked");
        assert!(started.because.contains("ENOMEM"), "{}", started.because);
    }
}

#[test]
fn events_of_streams_are_known_in_old_words() {
    let (kind, because, _) = first(&[
        "[   39.7] xhci_hcd 0000:00:02.0: ERROR Transfer event for disabled endpoint or incorrect stream ring",
    ]);
    assert_eq!(kind, CauseKind::StreamEvents, "{because}");
}

#[test]
fn a_refused_discard_loses_no_block() {
    for operation in ["0x3:(DISCARD)", "0x9:(WRITE_ZEROES)"] {
        let line = format!("[  50.0] critical target error, dev sdc, sector 0 op {operation} flags 0x800");
        let diagnosis = with(&[&line]);
        let kinds: Vec<CauseKind> = diagnosis.causes.iter().map(|cause| cause.kind).collect();
        let expected: &[CauseKind] =
            if operation.contains("DISCARD") { &[CauseKind::TrimRefused] } else { &[] };
        assert_eq!(kinds, expected, "{diagnosis:#?}");
        assert_eq!(check_of(&diagnosis, CheckKind::Resets).health, Health::Good);
    }
}

fn gone(lines: &[&str]) -> Vec<super::super::Absent> {
    let text = format!("{GUEST}{}", log_of(lines));
    absent(&Inventory::read(&Tree::of(text.parse().expect("a record")), Scope::Whole { log: None }))
}

#[test]
fn ports_without_a_device_are_reported() {
    let all = gone(&[
        "[   99.7] usb 3-9: new high-speed USB device number 5 using xhci_hcd",
        "[   99.9] usb 3-9: device descriptor read/64, error -71",
        "[  100.1] usb 3-9: new high-speed USB device number 6 using xhci_hcd",
        "[  100.3] usb 3-9: device not accepting address 6, error -71",
        "[  102.2] usb usb3-port9: unable to enumerate USB device",
        "[  200.0] usb usb3-port7: over-current condition",
        "[  300.0] usb 3-6: new full-speed USB device number 7 using xhci_hcd",
        "[  300.1] usb 3-6: New USB device found, idVendor=046d, idProduct=c077, bcdDevice= 1.00",
        "[  301.0] usb 3-6: USB disconnect, device number 7",
    ]);
    let kinds: Vec<(&str, AbsentKind)> = all.iter().map(|one| (one.place.as_str(), one.kind)).collect();
    assert_eq!(kinds, [("3-9", AbsentKind::NeverEnumerated), ("3-7", AbsentKind::OverCurrent)], "{all:#?}");
    assert!(all[0].because.contains("EPROTO") && all[0].because.contains("2 attempts"), "{}", all[0].because);
}

#[test]
fn a_dropped_drive_is_named_with_its_last_command() {
    let all = gone(&[
        "[    1.0] usb 3-9: new SuperSpeed USB device number 5 using xhci_hcd",
        "[    1.1] usb 3-9: New USB device found, idVendor=0bda, idProduct=9210, bcdDevice= 1.00",
        "[    1.2] scsi host9: uas",
        "[    9.0] sd 9:0:0:0: [sdz] tag#13 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD",
        "[    9.1] sd 9:0:0:0: [sdz] tag#9 CDB: Synchronize Cache(10) 35 00 00 00 00 00 00 00 00 00",
        "[   20.0] usb 3-9: device not accepting address 5, error -62",
        "[   21.0] scsi host9: uas_eh_device_reset_handler FAILED err -19",
        "[   21.1] usb 3-9: USB disconnect, device number 5",
    ]);
    let [drive] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!(drive.kind, AbsentKind::Dropped);
    for words in ["0bda:9210", "/dev/sdz on UAS", "SYNCHRONIZE CACHE", "its reset failed"] {
        assert!(drive.because.contains(words), "{}", drive.because);
    }
}

#[test]
fn a_misspelt_parameter_is_a_concern() {
    let diagnosis = diagnosed("3-3", "/proc/cmdline = quiet uas.quirks=1209:0001:u\n");
    let settings = check_of(&diagnosis, CheckKind::Settings);
    assert_eq!(settings.health, Health::Concern);
    assert!(settings.because.contains("usb-storage.quirks= is meant"), "{}", settings.because);
}

#[test]
fn the_right_setting_has_what_was_meant_and_no_placeholder() {
    for (word, line) in [
        ("usb-storage.quirk=1209:0001:t", "usb-storage.quirks=1209:0001:t"),
        ("usb-storage.quirks=idVendor:idProduct:u", "usb-storage.quirks=1209:0001:u"),
        ("usb-storage.quirks=1209:0001", "usb-storage.quirks=1209:0001:u"),
        ("usb-storage.quirks=1:2:u usb-storage.quirks=1209:0001:u", "usb-storage.quirks=1209:0001:u,1:2:u"),
        ("uas.quirks=174c:55aa:u", "usb-storage.quirks=174c:55aa:u"),
    ] {
        let diagnosis = diagnosed("3-3", &format!("/proc/cmdline = quiet {word}\n"));
        let settings = check_of(&diagnosis, CheckKind::Settings);
        assert_eq!(settings.advice[0].steps[0].line, line, "{word}");
        let all = settings.advice.iter().chain(&diagnosis.advice);
        let lines = all.flat_map(|one| one.steps.iter().chain(&one.back)).map(|step| step.line.as_str());
        assert!(lines.clone().all(|line| !line.contains("idVendor:")), "{:?}", lines.collect::<Vec<_>>());
    }
}

#[test]
fn a_quirk_of_another_product_of_the_vendor_is_a_concern() {
    let diagnosis = diagnosed("3-3", "/proc/cmdline = quiet usb-storage.quirks=1209:0010:u\n");
    let settings = check_of(&diagnosis, CheckKind::Settings);
    assert!(settings.because.contains("1209:0010, which is not attached"), "{}", settings.because);
}
