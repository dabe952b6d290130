//! Kinds of reports beyond a transport that fails: what a drive refuses, sizes that disagree, slots without a medium.

use super::*;
use crate::diagnose::Absent;

fn gone(text: &str) -> Vec<Absent> {
    absent(&documents(&[("dmesg.txt", text)]))
}

/// The diagnosis of the only drive in a log.
fn of(text: &str) -> Diagnosis {
    let inventory = documents(&[("dmesg.txt", text)]);
    let drives: Vec<_> = inventory.storage().collect();
    assert_eq!(drives.len(), 1, "{inventory:#?}");
    diagnose(&inventory, drives[0]).remove(0)
}

fn kinds(diagnosis: &Diagnosis) -> Vec<CauseKind> {
    diagnosis.causes.iter().map(|cause| cause.kind).collect()
}

/// A drive on BOT from its plug on.
const PLUGGED: &str = "\
[   20.100000] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[   20.120000] usb 2-1: New USB device found, idVendor=174c, idProduct=1153, bcdDevice= 1.00
[   20.120010] usb 2-1: New USB device strings: Mfr=2, Product=3, SerialNumber=1
[   20.150000] usb-storage 2-1:1.0: USB Mass Storage device detected
[   20.150010] scsi host6: usb-storage 2-1:1.0
[   21.200000] scsi 6:0:0:0: Direct-Access     ASMT     2115             0    PQ: 0 ANSI: 6
";

/// Its disk.
const DISK: &str = "\
[   21.300000] sd 6:0:0:0: [sdb] 976773168 512-byte logical blocks: (500 GB/466 GiB)
[   21.400000] sd 6:0:0:0: [sdb] Attached SCSI disk
";

/// Whether a piece of advice is about cables.
fn has_cable_talk(diagnosis: &Diagnosis) -> bool {
    diagnosis.causes.iter().flat_map(|cause| &cause.advice).any(|one| one.purpose.contains("cable"))
}

#[test]
fn a_refused_flush_is_an_answer_of_the_drive() {
    let block_layer = "\
[   90.000000] sd 6:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s
[   90.000010] sd 6:0:0:0: [sdb] tag#0 Sense Key : Illegal Request [current]
[   90.000020] sd 6:0:0:0: [sdb] tag#0 Add. Sense: Invalid command operation code
[   90.000030] sd 6:0:0:0: [sdb] tag#0 CDB: Synchronize Cache(10) 35 00 00 00 00 00 00 00 00 00
[   90.000040] critical target error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 2
";
    let at_removal = "\
[   90.000000] sd 6:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_OK driverbyte=DRIVER_OK
[   90.000010] sd 6:0:0:0: [sdb] Sense Key : Illegal Request [current]
[   90.000020] sd 6:0:0:0: [sdb] Add. Sense: Invalid command operation code
";
    for lines in [block_layer, at_removal] {
        let diagnosis = of(&format!("{PLUGGED}{DISK}{lines}"));
        assert_eq!(kinds(&diagnosis), [CauseKind::Refused], "{lines}");
        let because = &diagnosis.causes[0].because;
        assert!(because.contains("SYNCHRONIZE CACHE(10)") && because.contains("power cut"), "{because}");
        assert!(!has_cable_talk(&diagnosis), "{lines}");
        assert!(diagnosis.causes[0].advice[0].steps[0].line.contains("scsi_disk/6:0:0:0/cache_type"));
    }
}

/// Linux prints it when a driver is unbound or its module removed.
#[test]
fn a_host_error_of_a_flush_is_no_answer_of_the_drive() {
    let line = "[   90.0] sd 6:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK\n";
    let diagnosis = of(&format!("{PLUGGED}{DISK}{line}"));
    assert_eq!(kinds(&diagnosis), []);
}

#[test]
fn a_flush_that_fails_with_a_disconnect_follows_from_it() {
    let flush = "[   90.1] sd 6:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK\n";
    let all = gone(&format!("{PLUGGED}{DISK}[   90.0] usb 2-1: USB disconnect, device number 2\n{flush}"));
    assert_eq!(all[0].kind, AbsentKind::Unplugged, "{all:#?}");
    let all = gone(flush);
    assert!(all[0].because.contains("host error") && !all[0].because.contains("NO_CONNECT"), "{all:#?}");
}

#[test]
fn sizes_that_disagree_are_named_with_what_changed_them() {
    let plugged =
        |blocks: &str| format!("{PLUGGED}[   21.3] sd 6:0:0:0: [sdb] {blocks} logical blocks: (x)\n");
    for (blocks, lines, words) in [
        (
            "732566646 4096-byte",
            "[   21.45] GPT:Primary header thinks Alt. header is not at the end of the disk.\n[   21.45] GPT:5860533167 != 732566645\n",
            ["5860533168", "732566646 of 4096 bytes (3.00 TB)", "blocks of 4,096"],
        ),
        (
            "1565565872 512-byte",
            "[   21.45] GPT:5860533167 != 1565565871\n",
            ["5860533168", "1565565872 of 512 bytes (801.5 GB)", "2 TiB are cut off"],
        ),
        (
            "976773167 512-byte",
            "[   21.45] sdb: p1 size 976773000 extends beyond EOD, truncated\n",
            ["976773000 sectors (500.1 GB)", "976773167 blocks", "a few blocks more"],
        ),
        (
            "976773167 512-byte",
            "[   29.0] attempt to access beyond end of device\n[   29.0] sdb1: rw=0, want=976771128, limit=976771119\n",
            ["sector 976771128 of /dev/sdb1", "after 976771119 sectors", "a few blocks more"],
        ),
        (
            "976773167 512-byte",
            "[   29.0] EXT4-fs (sdb1): bad geometry: block count 122096390 exceeds size of device (122096389 blocks)\n",
            ["122096390 blocks", "122096389", "a few blocks more"],
        ),
    ] {
        let diagnosis = of(&format!("{}{lines}", plugged(blocks)));
        assert_eq!(kinds(&diagnosis), [CauseKind::Capacity], "{lines}");
        let because = &diagnosis.causes[0].because;
        assert!(words.iter().all(|word| because.contains(word)), "{because}");
        assert!(!has_cable_talk(&diagnosis), "{lines}");
        let first = &diagnosis.causes[0].advice[0];
        assert!(first.cautions[0].contains("do not repair"), "{first:#?}");
    }
    // An image on a larger disk is no fault.
    let image = of(&format!("{}[   21.4] GPT:239649 != 976773166\n", plugged("976773167 512-byte")));
    assert!(image.causes.is_empty(), "{image:#?}");
}

#[test]
fn an_answer_that_no_disk_may_give_is_the_firmware_s_fault() {
    let part = "\
[   90.0] sd 6:0:0:0: [sdb] Unaligned partial completion (resid=218, sector_sz=512)
[   90.0] sd 6:0:0:0: [sdb] tag#0 CDB: Read(10) 28 00 00 03 b6 a0 00 00 08 00
[   90.0] sd 6:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s
[   90.0] sd 6:0:0:0: [sdb] tag#0 CDB: Read(10) 28 00 00 03 b6 a0 00 00 08 00
[   90.0] I/O error, dev sdb, sector 243360 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2
";
    let length = "\
[   21.3] sd 6:0:0:0: [sdb] Unsupported sector size 263520264.
[   21.3] sd 6:0:0:0: [sdb] 0 512-byte logical blocks: (0 B/0 B)
[   21.4] sd 6:0:0:0: [sdb] Attached SCSI removable disk
";
    for (lines, words) in [
        (format!("{DISK}{part}"), "218 bytes of a transfer were missing, and blocks have 512"),
        (length.to_owned(), "READ CAPACITY with blocks of 263520264 bytes"),
    ] {
        let diagnosis = of(&format!("{PLUGGED}{lines}"));
        assert_eq!(kinds(&diagnosis), [CauseKind::MalformedAnswer], "{diagnosis:#?}");
        assert!(diagnosis.causes[0].because.contains(words), "{diagnosis:#?}");
        assert!(!has_cable_talk(&diagnosis), "{lines}");
        assert_eq!(diagnosis.causes[0].advice[1].steps[0].line, "sudo uaskit check 2-1");
    }
    // Without the plug the disk is reported, and its command has no port.
    let all = gone(part);
    assert!(all[0].because.contains("218 bytes"), "{all:#?}");
}

#[test]
fn a_stamp_without_its_bracket_may_begin_with_blanks() {
    let diagnosis = of(&PLUGGED.replacen('[', "", 1));
    assert_eq!(diagnosis.transport, Transport::Bot);
    let ignored = of(
        " 17.658945] usb 1-1: UAS is blacklisted for this device, using usb-storage instead\n[   17.658951] usb-storage 1-1:1.0: USB Mass Storage device detected\n",
    );
    assert!(matches!(ignored.decision, Decision::Decided(Rule::NotIgnored)), "{:?}", ignored.decision);
}

#[test]
fn sizes_without_a_plug_line_belong_to_their_disk() {
    let all = gone("[  310.1] sdc: rw=14, want=14675306560, limit=4294967296\n");
    assert_eq!((all[0].place.as_str(), all[0].kind), ("/dev/sdc", AbsentKind::WithoutPort), "{all:#?}");
    assert!(all[0].because.contains("2 TiB are cut off"), "{all:#?}");
    assert!(all[0].because.contains("does not show whether it is a USB drive"), "{all:#?}");
}

/// A card reader without the lines about its capacity.
const READER: &str = "\
[   20.100000] usb 1-2: new high-speed USB device number 4 using xhci_hcd
[   20.120000] usb 1-2: New USB device found, idVendor=058f, idProduct=6366, bcdDevice= 1.00
[   20.150000] usb-storage 1-2:1.0: USB Mass Storage device detected
[   20.150010] scsi host6: usb-storage 1-2:1.0
[   21.200000] scsi 6:0:0:0: Direct-Access     Multi    Flash Reader     1.00 PQ: 0 ANSI: 0
";

#[test]
fn an_empty_slot_is_no_fault() {
    let refused = "\
[   21.300000] sd 6:0:0:0: [sdb] Read Capacity(10) failed: Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE
[   21.300010] sd 6:0:0:0: [sdb] Sense Key : Not Ready [current]
[   21.300020] sd 6:0:0:0: [sdb] Add. Sense: Medium not present
[   40.100000] sd 6:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE
[   40.100010] sd 6:0:0:0: [sdb] tag#0 Sense Key : Not Ready [current]
[   40.100020] sd 6:0:0:0: [sdb] tag#0 Add. Sense: Medium not present
[   40.100030] sd 6:0:0:0: [sdb] tag#0 CDB: Read(10) 28 00 00 00 00 00 00 00 08 00
[   40.100040] blk_update_request: I/O error, dev sdb, sector 0
";
    let attached = "[   21.4] sd 6:0:0:0: [sdb] Attached SCSI removable disk\n";
    for lines in [format!("{refused}{attached}"), attached.to_owned()] {
        let diagnosis = of(&format!("{READER}{lines}"));
        assert_eq!(kinds(&diagnosis), [CauseKind::NoMedium], "{lines}");
        assert!(diagnosis.causes[0].because.contains("no fault"), "{lines}");
        assert!(!has_cable_talk(&diagnosis));
        let media =
            diagnosis.checks.iter().find(|check| check.kind == CheckKind::Media).expect("it is there");
        assert_eq!(media.health, Health::Unknown);
    }
    // A card that was read before and then was not there is another matter.
    let lost =
        format!("{READER}[   21.3] sd 6:0:0:0: [sdb] 60062500 512-byte logical blocks: (x)\n{refused}");
    assert_eq!(kinds(&of(&lost)), [CauseKind::Refused]);
    let unplugged = gone(&format!("{READER}{attached}[   50.0] usb 1-2: USB disconnect, device number 4\n"));
    assert_eq!(unplugged[0].kind, AbsentKind::Unplugged, "{unplugged:#?}");
}

#[test]
fn a_drive_that_was_faster_before_is_reported() {
    let later = "\
[   60.100000] usb 1-1: new high-speed USB device number 7 using xhci_hcd
[   60.120000] usb 1-1: New USB device found, idVendor=174c, idProduct=1153, bcdDevice= 1.00
[   60.120010] usb 1-1: New USB device strings: Mfr=2, Product=3, SerialNumber=1
[   60.150000] usb-storage 1-1:1.0: USB Mass Storage device detected
[   60.150010] scsi host7: usb-storage 1-1:1.0
[   61.300000] sd 7:0:0:0: [sdc] 976773168 512-byte logical blocks: (500 GB/466 GiB)
";
    let left = "[   50.000000] usb 2-1: USB disconnect, device number 2\n";
    let diagnosis = of(&format!("{PLUGGED}{DISK}{left}{later}"));
    assert_eq!(kinds(&diagnosis), [CauseKind::Slower]);
    assert_eq!(
        diagnosis.causes[0].because,
        "it is connected at 480 Mb/s, and was connected at 5 Gb/s at 2-1 before"
    );
    let link = diagnosis.checks.iter().find(|check| check.kind == CheckKind::Link).expect("it is there");
    assert_eq!(link.health, Health::Concern);
    // Without a disconnect there are two drives of that kind.
    let inventory = documents(&[("dmesg.txt", &format!("{PLUGGED}{DISK}{later}"))]);
    assert!(one(&inventory, "1-1").causes.is_empty());
}

#[test]
fn resets_as_far_apart_as_a_command_may_take_are_commands_that_timed_out() {
    let reset =
        |at: f64| format!("[ {at:.1}] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n");
    let at = |times: &[f64]| times.iter().map(|at| reset(*at)).collect::<String>();
    let spaced = of(&format!("{PLUGGED}{DISK}{}", at(&[141.3, 172.5, 203.7, 234.4])));
    assert_eq!(kinds(&spaced), [CauseKind::Transport]);
    assert!(
        spaced.causes[0].because.contains("about 30 s apart: before each a command timed out"),
        "{spaced:#?}"
    );
    let other = of(&format!("{PLUGGED}{DISK}{}", at(&[141.3, 142.5, 703.7, 834.4])));
    assert_eq!(other.causes[0].because, "the kernel reset the drive 4 times");
    let named = "\
[ 240.1] sd 6:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK
[ 240.1] sd 6:0:0:0: [sdb] tag#0 CDB: Write(10) 2a 00 00 10 00 00 00 00 08 00
";
    let named = of(&format!("{PLUGGED}{DISK}{}{named}", at(&[141.3, 172.5, 203.7, 234.4])));
    let because = &named.causes[0].because;
    assert!(because.starts_with("WRITE(10) timed out") && because.contains("30 s apart"), "{because}");
    // The error handler of uas resets after each command as well.
    let loops: String = [100, 130, 160, 191]
        .map(|at| {
            format!(
                "[ {at}.0] scsi host0: uas_eh_device_reset_handler start\n[ {at}.1] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd\n[ {at}.2] scsi host0: uas_eh_device_reset_handler success\n"
            )
        })
        .concat();
    let loops = of(&loops);
    assert!(loops.causes[0].because.contains("30 s apart"), "{loops:#?}");
    assert_eq!(loops.transport, Transport::Uas { streams: true });
}

/// A modem that shows a disc with its driver first.
const MODEM: &str = "\
[   10.100000] usb 1-2: new high-speed USB device number 5 using xhci_hcd
[   10.120000] usb 1-2: New USB device found, idVendor=12d1, idProduct=1f01, bcdDevice= 1.02
[   10.120010] usb 1-2: Product: Example Mobile
[   10.150000] usb-storage 1-2:1.0: USB Mass Storage device detected
[   10.150010] scsi host6: usb-storage 1-2:1.0
[   11.200000] scsi 6:0:0:0: CD-ROM            EXAMPLE  Mass Storage     2.31 PQ: 0 ANSI: 2
[   11.300000] sr 6:0:0:0: [sr0] scsi-1 drive
";

#[test]
fn a_device_that_comes_back_with_other_ids_has_switched() {
    let back = |at: u32, id: &str| {
        format!(
            "[   12.3] usb 1-2: USB disconnect, device number 5\n[   {at}.1] usb 1-2: new high-speed USB device number 6 using xhci_hcd\n[   {at}.2] usb 1-2: New USB device found, idVendor={id}, bcdDevice= 1.02\n[   {at}.2] usb 1-2: Product: Example Modem\n"
        )
    };
    let all = gone(&format!("{MODEM}{}", back(13, "12d1, idProduct=14db")));
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!((all[0].kind, all[0].place.as_str()), (AbsentKind::Switched, "1-2"));
    assert!(all[0].because.contains("12d1:1f01") && all[0].because.contains("12d1:14db"), "{all:#?}");
    assert!(all[0].because.contains("nothing failed") && all[0].causes.is_empty(), "{all:#?}");
    // Another maker, or much later: something else was plugged in.
    for (at, id) in [(13, "046d, idProduct=c077"), (55, "12d1, idProduct=14db")] {
        let all = gone(&format!("{MODEM}{}", back(at, id)));
        assert!(all.iter().all(|one| one.kind != AbsentKind::Switched), "{all:#?}");
    }
}

#[test]
fn a_drive_that_failed_is_answered_beside_what_came_after_it() {
    let failed = "\
[  141.300000] sd 6:0:0:0: [sdb] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE
[  141.300010] sd 6:0:0:0: [sdb] tag#3 Sense Key : Medium Error [current]
[  141.300020] sd 6:0:0:0: [sdb] tag#3 Add. Sense: Unrecovered read error
[  141.300030] sd 6:0:0:0: [sdb] tag#3 CDB: Read(10) 28 00 00 10 00 00 00 00 08 00
[  200.300000] usb 2-1: USB disconnect, device number 2
";
    let later = |id: &str, driver: &str| {
        format!(
            "[  260.10] usb 2-1: new SuperSpeed USB device number 3 using xhci_hcd\n[  260.12] usb 2-1: New USB device found, idVendor={id}, bcdDevice= 1.00\n{driver}"
        )
    };
    let storage = "\
[  260.15] usb-storage 2-1:1.0: USB Mass Storage device detected
[  260.16] scsi host6: usb-storage 2-1:1.0
[  261.30] sd 6:0:0:0: [sdb] 60062500 512-byte logical blocks: (30.8 GB/28.6 GiB)
[  700.00] usb 3-1: new full-speed USB device number 9 using xhci_hcd
";
    let drive = format!("{PLUGGED}{DISK}{failed}{}", later("0781, idProduct=5581", storage));
    let all = gone(&drive);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(
        (all[0].kind, all[0].causes.as_slice()),
        (AbsentKind::Dropped, [CauseKind::DriveFailing].as_slice())
    );
    assert_eq!(all[0].id.map(|id| id.to_string()).as_deref(), Some("174c:1153"));
    assert!(of(&drive).causes.is_empty(), "the other drive has not failed");
    let mouse = gone(&format!("{PLUGGED}{DISK}{failed}{}", later("046d, idProduct=c077", "")));
    assert_eq!(mouse[0].causes, [CauseKind::DriveFailing], "{mouse:#?}");
    // The same drive under a new number has its own errors.
    let same = format!("{PLUGGED}{DISK}{failed}{}", later("174c, idProduct=1153", storage));
    assert_eq!(kinds(&of(&same)), [CauseKind::DriveFailing]);
    // One that was merely unplugged is not reported beside the next.
    let unplugged = "[  200.3] usb 2-1: USB disconnect, device number 2\n";
    let all = gone(&format!("{PLUGGED}{DISK}{unplugged}{}", later("0781, idProduct=5581", storage)));
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_hub_that_does_not_answer_is_named() {
    let errors = "\
[  100.000000] hub 1-1:1.0: hub_ext_port_status failed (err = -71)
[  100.100000] hub 1-1:1.0: hub_port_status failed (err = -71)
[  100.200000] usb 1-1: clear tt 1 (9022) error -71
";
    let alone = gone(errors);
    assert_eq!((alone[0].place.as_str(), alone[0].kind), ("1-1", AbsentKind::Hub), "{alone:#?}");
    assert!(alone[0].because.contains("3 times (-71 EPROTO"), "{alone:#?}");
    let drive = "\
[   10.10] usb 1-1.3: new high-speed USB device number 5 using xhci_hcd
[   10.12] usb 1-1.3: New USB device found, idVendor=0781, idProduct=5567, bcdDevice= 1.00
[   10.15] usb-storage 1-1.3:1.0: USB Mass Storage device detected
[   10.16] scsi host0: usb-storage 1-1.3:1.0
[   11.30] sd 0:0:0:0: [sda] 60062500 512-byte logical blocks: (30.8 GB/28.6 GiB)
";
    let behind = gone(&format!("{drive}{errors}[  100.3] usb 1-1.3: USB disconnect, device number 5\n"));
    assert_eq!(behind.len(), 1, "{behind:#?}");
    assert_eq!(behind[0].causes.first(), Some(&CauseKind::Hub), "{behind:#?}");
    assert!(behind[0].because.contains("the hub at 1-1"), "{behind:#?}");
    // Devices behind it that are not known to be drives are not reported one by one.
    let others = "[  100.3] usb 1-1.2: USB disconnect, device number 7\n[  100.3] usb 1-1.4: USB disconnect, device number 8\n";
    let all = gone(&format!("{errors}{others}"));
    assert!(all.len() == 1 && all[0].kind == AbsentKind::Hub, "{all:#?}");
    // A root hub is its controller.
    assert!(gone("[ 1.0] hub 1-0:1.0: hub_ext_port_status failed (err = -71)\n").is_empty());
}

#[test]
fn a_port_that_cannot_be_reset_is_reported_without_its_device() {
    let all = gone(
        "[  100.0] usb usb2-port1: cannot reset (err = -110)\n[  100.4] usb usb2-port1: Cannot enable. Maybe the USB cable is bad?\n",
    );
    assert_eq!((all[0].place.as_str(), all[0].kind), ("2-1", AbsentKind::Dropped), "{all:#?}");
    assert_eq!(all[0].causes, [CauseKind::Link]);
}

#[test]
fn events_that_match_no_transfer_are_reported_without_a_drive() {
    let all = gone(
        "\
[  100.0] xhci_hcd 0000:01:00.0: WARN Event TRB for slot 2 ep 3 with no TDs queued?
[  100.1] xhci_hcd 0000:01:00.0: ERROR Transfer event TRB DMA ptr not part of current TD ep_index 4 comp_code 13
[  100.2] xhci_hcd 0000:01:00.0: ERROR unknown event type 37
",
    );
    assert_eq!((all[0].place.as_str(), all[0].kind), ("0000:01:00.0", AbsentKind::Controller), "{all:#?}");
    assert!(all[0].because.contains("3 events") && all[0].because.contains("does not show of which device"));
}

#[test]
fn what_follows_from_a_lost_drive_is_no_cause() {
    for lines in [
        "[  100.0] Buffer I/O error on dev sda1, logical block 1545, lost sync page write\n",
        "[  100.0] XFS (sda1): log I/O error -5\n[  100.1] XFS (sda1): Filesystem has been shut down due to log error (0x2).\n",
        "[  100.0] BTRFS error (device sda1): bdev /dev/sda1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0\n",
        "[  100.0] Aborting journal on device sda1-8.\n",
        "[  100.0] EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0\n",
        "[  100.0] ntfs3: sda1: failed to read volume at offset 0x1000\n",
    ] {
        let all = gone(lines);
        assert_eq!(all.len(), 1, "{lines}");
        assert_eq!(
            (all[0].place.as_str(), all[0].causes.as_slice()),
            ("/dev/sda", [CauseKind::FileSystem].as_slice())
        );
        assert!(all[0].because.contains("they follow from"), "{all:#?}");
        // With the cause in the log, that is the answer.
        let medium = "[   99.0] critical medium error, dev sda, sector 100 op 0x0:(READ)\n";
        assert_eq!(gone(&format!("{medium}{lines}"))[0].causes, [CauseKind::DriveFailing], "{lines}");
    }
    assert!(gone("[ 9.0] EXT4-fs (sda1): mounted filesystem with ordered data mode\n").is_empty());
}

#[test]
fn a_disk_that_was_taken_offline_lacks_the_earlier_log() {
    let lines = "\
[  100.00] sd 2:0:0:0: Device offlined - not ready after error recovery
[  100.01] sd 2:0:0:0: rejecting I/O to offline device
";
    let all = gone(lines);
    assert_eq!(all[0].causes, [CauseKind::Transport], "{all:#?}");
    assert!(all[0].because.contains("taken") || all[0].because.contains("took the disk offline"), "{all:#?}");
    assert!(all[0].advice[0].purpose.contains("earlier kernel log"), "{all:#?}");
    // Of iSCSI the log says so.
    let network = format!("[   99.0]  session7: session recovery timed out after 120 secs\n{lines}");
    assert!(gone(&network).is_empty(), "{:#?}", gone(&network));
}

#[test]
fn texts_of_other_systems_name_what_they_lack() {
    let missing = |name: &str, text: &str| {
        let inventory = documents(&[(name, text)]);
        let report = inventory.report.as_ref().expect("it is text");
        assert_eq!(report.foreign.len(), 1, "{report:#?}");
        report.missing(&inventory, None).into_iter().map(|one| one.what).collect::<Vec<_>>()
    };
    let pnputil = "\
Microsoft PnP Utility

Instance ID:                USB\\VID_152D&PID_0578\\0123456789
Device Description:         USB Attached SCSI (UAS) Mass Storage Device
Driver Name:                uaspstor.inf
";
    let lacks = missing("pnputil.txt", pnputil);
    assert!(
        lacks.iter().any(|what| what.contains("speed")) && lacks.contains(&"errors of the drive"),
        "{lacks:?}"
    );
    let profiler = "\
    USB 3.1 Bus:

        External USB 3.0:

          Product ID: 0x0578
          Vendor ID: 0x152d  (JMicron Technology Corp.)
          Speed: Up to 5 Gb/s
          Media:
            External:
              BSD Name: disk4
";
    assert_eq!(missing("mac.txt", profiler), ["the driver", "errors of the drive"]);
}

#[test]
fn other_descriptors_after_a_reset_are_reported_with_the_lost_command() {
    let text = "\
[ 10.0] usb 2-2: new SuperSpeed USB device number 3 using xhci_hcd
[ 10.1] usb 2-2: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[ 10.2] scsi host1: uas
[ 10.3] sd 1:0:0:0: [sda] Attached SCSI disk
[ 50.0] sd 1:0:0:0: [sda] tag#0 uas_eh_abort_handler 0 uas-tag 9 inflight: CMD OUT
[ 50.0] sd 1:0:0:0: [sda] tag#0 CDB: opcode=0x8a 8a 00 00 00 00 00 d8 35 59 c0 00 00 00 08 00 00
[ 50.1] scsi host1: uas_eh_device_reset_handler start
[ 50.2] usb 2-2: reset SuperSpeed Gen 1 USB device number 3 using xhci_hcd
[ 50.3] usb 2-2: device firmware changed
";
    let inventory = documents(&[("dmesg.txt", text)]);
    let because = &one(&inventory, "2-2").causes[0].because;
    assert!(because.contains("answered with other descriptors"), "{because}");
}

#[test]
fn a_cdb_of_an_old_kernel_follows_a_unit_without_a_disk() {
    let text = "\
[ 10.0] usb 2-1: new SuperSpeed USB device number 2 using xhci-hcd
[ 10.1] usb 2-1: New USB device found, idVendor=174c, idProduct=55aa
[ 10.2] scsi1 : uas
[ 10.3] sd 1:0:0:0: Attached scsi generic sg0 type 0
[ 41.0] sd 1:0:0:0: uas_eh_abort_handler 0 tag 3 inflight:
[ 41.0] sd 1:0:0:0: CDB:
[ 41.0] cdb[0]=0xa0: a0 00 00 00 00 00 00 00 10 00 00 00
";
    let inventory = documents(&[("dmesg.txt", text)]);
    let because = &one(&inventory, "2-1").causes[0].because;
    assert!(because.contains("REPORT LUNS"), "{because}");
}
