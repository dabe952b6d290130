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
    let host_error = "\
[   90.000000] sd 6:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK
";
    for lines in [block_layer, at_removal, host_error] {
        let diagnosis = of(&format!("{PLUGGED}{DISK}{lines}"));
        assert_eq!(kinds(&diagnosis), [CauseKind::Refused], "{lines}");
        let because = &diagnosis.causes[0].because;
        assert!(because.contains("SYNCHRONIZE CACHE(10)") && because.contains("power cut"), "{because}");
        assert!(!has_cable_talk(&diagnosis), "{lines}");
        assert!(diagnosis.causes[0].advice[0].steps[0].line.contains("scsi_disk/6:0:0:0/cache_type"));
    }
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
            ["976773000 sectors (500.1 GB)", "976773167 blocks", "smaller drive"],
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
