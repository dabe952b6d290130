//! Excerpts as reports have them: without the lines that name a port, of a dock that was removed, of drives probed at once.

use super::*;

fn gone(text: &str) -> Vec<crate::diagnose::Absent> {
    absent(&documents(&[("dmesg.txt", text)]))
}

#[test]
fn a_disk_that_fails_with_the_disconnect_of_one_port_is_at_that_port() {
    let old = "\
[  300.100000] usb 1-3: USB disconnect, device number 7
[  300.110000] sd 5:0:0:0: [sdc] Unhandled error code
[  300.110010] sd 5:0:0:0: [sdc]
[  300.110020] Result: hostbyte=0x01 driverbyte=0x00
[  300.110030] end_request: I/O error, dev sdc, sector 2048
";
    let all = gone(old);
    assert_eq!(all.len(), 1, "{all:#?}");
    // The block that fails after the disconnect fails because of it.
    assert_eq!((all[0].place.as_str(), all[0].kind), ("1-3", AbsentKind::Unplugged), "{all:#?}");
    assert!(all[0].because.contains("/dev/sdc"), "{all:#?}");
    let syslog = "\
Sep  7 01:02:03 kernel: usb 2-1: USB disconnect, address 7
Sep  7 01:02:03 kernel: scsi 5:0:0:0: rejecting I/O to dead device
";
    let all = gone(syslog);
    assert_eq!(all.iter().map(|one| one.place.as_str()).collect::<Vec<_>>(), ["2-1"], "{all:#?}");
    // Of two ports at once none is guessed.
    let two = old.replace("Unhandled", "x") + "[  300.120000] usb 1-4: USB disconnect, device number 8\n";
    assert!(gone(&two).iter().all(|one| !one.because.contains("1-3 as")), "{two}");
}

#[test]
fn a_command_of_uas_that_fails_before_a_disconnect_names_port_and_driver() {
    let all = gone(
        "\
[  61.100000] sd 2:0:0:0: tag#29 data cmplt err -71 uas-tag 1 inflight:
[  61.100010] sd 2:0:0:0: tag#29 CDB: opcode=0x1a 1a 00 08 00 04 00
[  61.100100] usb 1-2: USB disconnect, device number 14
",
    );
    assert_eq!(all[0].place, "1-2", "{all:#?}");
    assert!(all[0].because.contains("on UAS") && all[0].because.contains("MODE SENSE(6)"), "{all:#?}");
}

#[test]
fn devices_at_several_ports_that_are_lost_at_once_point_at_what_they_share() {
    let text = "\
Mar  5 10:01:02 host kernel: usb 1-2: USB disconnect, device number 3
Mar  5 10:01:02 host kernel: usb 6-1: cmd cmplt err -71
Mar  5 10:01:02 host kernel: usb 3-1: USB disconnect, device number 2
Mar  5 10:01:03 host kernel: usb 6-1: USB disconnect, device number 3
Mar  5 10:01:03 host kernel: sd 11:0:0:0: [sdm] tag#0 uas_zap_pending 0 uas-tag 1 inflight: CMD
";
    let together = "; devices at 1-2 and 3-1 disconnected within the same second";
    let first = |text: &str| gone(text).into_iter().find(|one| one.place == "6-1").expect("the drive");
    let drive = first(text);
    assert!(drive.because.ends_with(together), "{drive:#?}");
    assert_eq!(drive.advice[0].purpose, "Check what these devices share", "{drive:#?}");
    // Behind one root port that is a hub, and a minute later it is chance.
    for other in
        [text.replace("1-2:", "6-1.2:").replace("3-1:", "6-1.1:"), text.replace("10:01:02", "10:00:01")]
    {
        let drive = first(&other);
        assert!(!drive.because.contains("within the same second"), "{drive:#?}");
    }
    let many: String = (1..8)
        .map(|port| format!("Mar  5 10:01:03 host kernel: usb 2-{port}: USB disconnect, device number 9\n"))
        .collect();
    let drive = first(&format!("{text}{many}"));
    assert!(drive.because.contains("1-2, 2-1, 2-2, 2-3 and 5 other ports disconnected"), "{drive:#?}");
}

#[test]
fn a_dock_that_is_removed_is_no_controller_that_died() {
    let all = gone(
        "\
[  +0.050594] xhci_hcd 0000:0c:00.0: remove, state 1
[  +0.000017] usb usb4: USB disconnect, device number 1
[  +0.000004] usb 4-1: USB disconnect, device number 2
[  +0.000159] xhci_hcd 0000:0c:00.0: xHCI host controller not responding, assume dead
[  +0.061540] xhci_hcd 0000:0c:00.0: USB bus 4 deregistered
[  +0.156924] xhci_hcd 0000:0c:00.0: Host halt failed, -19
",
    );
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].because.contains("was removed") && all[0].because.contains("4-1"), "{all:#?}");
    assert!(all[0].causes.is_empty() && !all[0].advice.iter().any(|one| one.purpose.contains("Restart")));
}

#[test]
fn ports_of_a_dead_controller_are_not_reported_again() {
    let all = gone(
        "\
[ 10.0] xhci_hcd 0000:01:00.0: xHCI host controller not responding, assume dead
[ 10.0] xhci_hcd 0000:01:00.0: HC died; cleaning up
[ 10.1] usb 1-1: USB disconnect, device number 2
[ 10.2] sd 2:0:0:0: [sda] tag#4 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD
",
    );
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].because.contains("died"), "{all:#?}");
}

#[test]
fn a_disk_without_capacity_is_reported_with_the_answer_to_read_capacity() {
    let all = gone(
        "\
[ 41.0] scsi host0: uas
[ 41.4] scsi 0:0:0:0: Direct-Access     Example  Bridge           1.00 PQ: 0 ANSI: 6
[ 47.0] sd 0:0:0:0: [sda] Read Capacity(16) failed: Result: hostbyte=0x00 driverbyte=0x08
[ 47.0] sd 0:0:0:0: [sda] Sense Key : 0xb [current]
[ 47.0] sd 0:0:0:0: [sda] ASC=0x0 ASCQ=0x0
[ 57.0] sd 0:0:0:0: [sda] 0 512-byte logical blocks: (0 B/0 B)
",
    );
    let first = &all[0];
    assert!(first.because.contains("no capacity") && first.because.contains("ABORTED COMMAND"), "{all:#?}");
    assert!(first.because.contains("it is on UAS"), "{all:#?}");
    let card = "\
[ 47.0] sd 0:0:0:0: [sda] Read Capacity(16) failed: Result: hostbyte=0x00 driverbyte=0x08
[ 47.0] sd 0:0:0:0: [sda] Sense Key : Not Ready [current]
[ 47.0] sd 0:0:0:0: [sda] Add. Sense: Medium not present
[ 57.0] sd 0:0:0:0: [sda] 0 512-byte logical blocks: (0 B/0 B)
";
    assert_eq!(gone(card)[0].causes, [CauseKind::NoMedium]);
}

#[test]
fn trim_that_was_refused_is_named_with_what_refused_it() {
    let all = gone(
        "\
sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s
sd 0:0:0:0: [sda] tag#0 Sense Key : Illegal Request [current]
sd 0:0:0:0: [sda] tag#0 Add. Sense: Invalid command operation code
sd 0:0:0:0: [sda] tag#0 CDB: Write same(16) 93 08 00 00 00 00 00 00 00 22 00 00 00 06 00 00
",
    );
    assert!(all[0].because.starts_with("the drive refused TRIM; no data is lost"), "{all:#?}");
    assert!(all[0].advice[0].purpose.contains("no TRIM"), "{all:#?}");
}

const TWO_AT_ONCE: &str = "\
[ 1.0] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[ 1.0] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[ 1.1] usb 2-2: new SuperSpeed USB device number 3 using xhci_hcd
[ 1.1] usb 2-2: New USB device found, idVendor=174c, idProduct=55aa, bcdDevice= 1.00
[ 1.2] scsi host1: uas
[ 1.2] scsi host0: uas
[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk
[ 1.3] sd 1:0:0:0: [sdb] Attached SCSI disk
[ 90.0] sd 0:0:0:0: [sda] tag#1 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD IN
[ 90.0] sd 0:0:0:0: [sda] tag#1 CDB: Read(10) 28 00 00 00 00 00 00 00 08 00
";

#[test]
fn of_drives_probed_at_once_no_host_is_guessed() {
    let inventory = documents(&[("dmesg.txt", TWO_AT_ONCE)]);
    for port in ["2-1", "2-2"] {
        let diagnosis = one(&inventory, port);
        assert_eq!(diagnosis.transport, Transport::Uas { streams: true }, "{port}");
        assert!(diagnosis.causes.is_empty(), "{port}: {:#?}", diagnosis.causes);
    }
    let all = absent(&inventory);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].because.contains("one of the ports 2-1, 2-2"), "{all:#?}");
}

#[test]
fn a_reset_distinguishes_drives_probed_at_once() {
    let reset = "\
[ 90.1] scsi host0: uas_eh_device_reset_handler start
[ 90.2] usb 2-2: reset SuperSpeed USB device number 3 using xhci_hcd
[ 90.3] scsi host0: uas_eh_device_reset_handler success
";
    let inventory = documents(&[("dmesg.txt", &format!("{TWO_AT_ONCE}{reset}"))]);
    assert!(absent(&inventory).is_empty());
    assert_eq!(inventory.find("sda")[0].port, "2-2");
    assert_eq!(inventory.find("sdb")[0].port, "2-1");
    assert_eq!(one(&inventory, "2-2").causes[0].kind, CauseKind::Transport);
}

#[test]
fn lines_of_a_plug_alone_are_no_proof_that_a_drive_works() {
    let health = |text: &str| {
        let diagnosis = one(&documents(&[("dmesg.txt", text)]), "2-1");
        let checks = diagnosis.checks.iter();
        checks.filter(|check| check.kind == CheckKind::Resets).map(|check| check.health).collect::<Vec<_>>()
    };
    assert_eq!(health(DMESG), [Health::Unknown]);
    let later = format!("{DMESG}[  900.000000] EXT4-fs (sda1): mounted filesystem\n[ 901.0] eth0: link up\n");
    assert_eq!(health(&later), [Health::Good]);
    let without_times: String =
        DMESG.lines().map(|line| format!("{}\n", line.split_once("] ").expect("a time").1)).collect();
    assert_eq!(health(&without_times), [Health::Unknown]);
}

#[test]
fn a_transfer_that_failed_names_uas_as_the_driver() {
    let inventory = documents(&[(
        "dmesg.txt",
        "\
[ 590.2] usb 4-1: cmd cmplt err -71
[ 595.4] scsi host0: uas_pre_reset: timed out
[ 595.4] sd 0:0:0:0: [sda] tag#16 uas_zap_pending 0 uas-tag 1 inflight: CMD
[ 595.4] sd 0:0:0:0: [sda] tag#16 CDB: opcode=0x28 28 00 00 01 06 51 00 00 20 00
",
    )]);
    let diagnosis = one(&inventory, "4-1");
    assert!(matches!(diagnosis.transport, Transport::Uas { .. }), "{:?}", diagnosis.transport);
    assert!(diagnosis.causes[0].because.contains("READ(10)"), "{:#?}", diagnosis.causes);
    assert!(absent(&inventory).is_empty());
}

#[test]
fn speeds_of_lsusb_are_held_against_the_link() {
    let text = "\
Bus 002 Device 002: ID 152d:0583 Example Bridge
Negotiated speed: SuperSpeed (5Gbps)
Device Descriptor:
  bcdUSB               3.20
  bMaxPacketSize0         9
  idVendor           0x152d
  idProduct          0x0583
  Configuration Descriptor:
    bNumInterfaces          1
    bmAttributes         0x80
    MaxPower              896mA
    Interface Descriptor:
      bInterfaceNumber        0
      bNumEndpoints           0
      bInterfaceClass         8 Mass Storage
      bInterfaceSubClass      6 SCSI
      bInterfaceProtocol     80 Bulk-Only
Binary Object Store Descriptor:
  bNumDeviceCaps          2
  SuperSpeed USB Device Capability:
    bDevCapabilityType      3
    wSpeedsSupported   0x000e
  SuperSpeedPlus USB Device Capability:
    bDevCapabilityType     10
    bmAttributes         0x00000001
    bmSublinkSpeedAttr[0]   0x000a4030
    bmSublinkSpeedAttr[1]   0x000a40b0
";
    let link = |text: &str| {
        let inventory = documents(&[("lsusb-v.txt", text)]);
        let device = inventory.storage().next().expect("a drive").clone();
        let diagnosis = diagnose(&inventory, &device).remove(0);
        let mut checks = diagnosis.checks.into_iter();
        let check = checks.find(|check| check.kind == CheckKind::Link).expect("it is always there");
        (check.health, check.because)
    };
    let (health, because) = link(text);
    assert_eq!(health, Health::Concern, "{because}");
    assert!(because.contains("10 Gb/s") && because.contains("5 Gb/s"), "{because}");
    let by_usb_2 = text
        .replace("Negotiated speed: SuperSpeed (5Gbps)\n", "")
        .replace("3.20", "2.10")
        .replace("bMaxPacketSize0         9", "bMaxPacketSize0        64");
    let (health, because) = link(&by_usb_2);
    assert_eq!(health, Health::Concern, "{because}");
    assert!(because.contains("480 Mb/s"), "{because}");
}

#[test]
fn drives_on_a_raspberry_pi_share_what_its_ports_give() {
    let lsusb = |number: u8| {
        format!(
            "\
Bus 002 Device 00{number}: ID 152d:0583 Example Bridge
Negotiated speed: SuperSpeed (5Gbps)
Device Descriptor:
  bcdUSB               3.00
  bMaxPacketSize0         9
  idVendor           0x152d
  idProduct          0x0583
  Configuration Descriptor:
    bNumInterfaces          1
    bmAttributes         0x80
    MaxPower              896mA
    Interface Descriptor:
      bInterfaceNumber        0
      bNumEndpoints           0
      bInterfaceClass         8 Mass Storage
      bInterfaceSubClass      6 SCSI
      bInterfaceProtocol     80 Bulk-Only

"
        )
    };
    let power = |more: &str, drives: &str| {
        let inventory = documents(&[("report.txt", &format!("{drives}{more}\n"))]);
        let device = inventory.storage().next().expect("a drive").clone();
        let diagnosis = diagnose(&inventory, &device).remove(0);
        let check = diagnosis.checks.into_iter().find(|check| check.kind == CheckKind::Power);
        let check = check.expect("it is always there");
        (check.health, check.because)
    };
    let two = lsusb(2) + &lsusb(3);
    for model in [
        "Raspberry Pi 4 Model B Rev 1.4",
        "[    0.000000] Machine model: Raspberry Pi 4 Model B Rev 1.4",
        "/proc/device-tree/model:Raspberry Pi 4 Model B Rev 1.4",
    ] {
        let (health, because) = power(model, &two);
        assert_eq!(health, Health::Concern, "{model}: {because}");
        assert!(because.contains("1792 mA") && because.contains("1200 mA"), "{because}");
        assert_ne!(power(model, &lsusb(2)).0, Health::Concern, "{model}");
    }
    let (health, because) = power("Raspberry Pi 5 Model B Rev 1.0", &lsusb(2));
    assert!(health == Health::Concern && because.contains("600 mA"), "{because}");
    for low in ["throttled=0x50000", "/sys/class/hwmon/hwmon1/in0_lcrit_alarm:1"] {
        let (health, because) = power(low, &lsusb(2));
        assert!(health == Health::Concern && because.contains("supply voltage"), "{low}: {because}");
    }
}

#[test]
fn a_host_that_appears_is_not_that_of_another_device_that_is_reset() {
    let inventory = documents(&[(
        "dmesg.txt",
        "\
[ 7.4] usb 6-1: reset SuperSpeed USB device number 2 using xhci-hcd
[ 8.3] scsi 0:0:0:0: Direct-Access     Example  Disk             1.00 PQ: 0 ANSI: 2
[ 8.5] sd 0:0:0:0: [sda] Attached SCSI disk
",
    )]);
    assert!(inventory.storage().all(|device| device.port != "6-1"), "{:#?}", inventory.devices);
}

#[test]
fn a_kernel_that_announces_no_ids_still_says_which_driver_has_a_drive() {
    let inventory = documents(&[(
        "logread.txt",
        "\
Tue Jul 14 23:24:42 2026 kern.info kernel: [  159.2] usb 1-2: new high-speed USB device number 3 using xhci-mtk
Tue Jul 14 23:24:42 2026 kern.info kernel: [  159.3] scsi host0: uas
Tue Jul 14 23:24:44 2026 kern.notice kernel: [  161.5] sd 0:0:0:0: [sda] 500118192 512-byte logical blocks: (256 GB/238 GiB)
",
    )]);
    let diagnosis = one(&inventory, "1-2");
    assert_eq!(diagnosis.transport, Transport::Uas { streams: false });
    assert_eq!(inventory.find("sda")[0].port, "1-2");
}

#[test]
fn a_disk_that_was_gone_before_the_excerpt_is_no_failure_of_the_transport() {
    let all = gone(
        "\
[81413.6] sd 0:0:0:0: [sda] tag#2 UNKNOWN(0x2003) Result: hostbyte=0x01 driverbyte=DRIVER_OK cmd_age=0s
[81413.6] sd 0:0:0:0: [sda] tag#2 CDB: opcode=0x2a 2a 00 01 fc 28 e8 00 04 00 00
[81413.6] I/O error, dev sda, sector 33302760 op 0x1:(WRITE) flags 0x4000 phys_seg 128 prio class 2
",
    );
    assert!(all[0].because.starts_with("the disk was gone already"), "{all:#?}");
    assert!(all[0].advice[0].purpose.contains("earlier kernel log"), "{all:#?}");
}

#[test]
fn the_only_disk_in_errors_is_that_of_the_only_port_that_was_reset() {
    let all = gone(
        "\
usb 1-1.3: reset high-speed USB device number 5 using dwc_otg
I/O error, dev sda, sector 100665344 op 0x0:(READ) flags 0x83700 phys_seg 1 prio class 2
",
    );
    assert!(all.is_empty(), "{all:#?}");
    let inventory = documents(&[(
        "dmesg.txt",
        "usb 1-1.3: reset high-speed USB device number 5 using dwc_otg\nI/O error, dev sda, sector 100665344 op 0x0:(READ) flags 0x83700 phys_seg 1 prio class 2\n",
    )]);
    assert!(one(&inventory, "1-1.3").causes[0].because.contains("reset the drive once, and one block"));
}

#[test]
fn a_device_that_no_text_names_as_a_drive_is_reported_where_its_link_fails() {
    let all = gone(
        "\
[ 1.0] usb 2-3: new SuperSpeed Plus Gen 2x1 USB device number 2 using xhci_hcd
[ 1.0] usb 2-3: New USB device found, idVendor=2d01, idProduct=d709, bcdDevice=f0.01
[ 1.1] usb 2-3: Enable of device-initiated U1 failed.
[ 1.2] usb 2-3: Enable of device-initiated U2 failed.
",
    );
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].because.contains("2d01:d709") && all[0].because.contains("U1 or U2"), "{all:#?}");
}

#[test]
fn a_user_s_entry_that_the_text_lacks_makes_no_verdict() {
    // Linux's table ignores UAS for this bridge; `uas` has it, so an entry of the user's says otherwise.
    let tree = "\
T:  Bus=02 Lev=01 Prnt=01 Port=00 Cnt=01 Dev#=  2 Spd=5000 MxCh= 0
P:  Vendor=357d ProdID=7788 Rev= 1.00
C:* #Ifs= 1 Cfg#= 1 Atr=c0 MxPwr=  0mA
I:* If#= 0 Alt= 1 #EPs= 4 Cls=08(stor.) Sub=06 Prot=62 Driver=uas
";
    let inventory = documents(&[("usb-devices.txt", tree)]);
    assert_eq!(one(&inventory, "2-1").decision, Decision::AllMet);
    // Without a driver and without the entries in force it is open what has the drive.
    let without = tree.replace(" Driver=uas", "");
    let inventory = documents(&[("usb-devices.txt", &without)]);
    assert_eq!(one(&inventory, "2-1").decision, Decision::NotShown);
}

#[test]
fn a_drive_whose_reset_failed_is_to_be_power_cycled_and_its_cable_looked_at() {
    let all = gone(
        "\
[ 10.0] usb 1-1.2: reset high-speed USB device number 7 using dwc_otg
[ 10.1] usb 1-1.2: device firmware changed
[ 10.1] usb 1-1.2: USB disconnect, device number 7
[ 10.2] sd 0:0:0:0: Device offlined - not ready after error recovery
[ 10.3] end_request: I/O error, dev sda, sector 1044921936
",
    );
    assert_eq!((all[0].place.as_str(), all[0].kind), ("1-1.2", AbsentKind::Dropped), "{all:#?}");
    let purposes: Vec<&str> = all[0].advice.iter().map(|one| one.purpose.as_str()).collect();
    assert_eq!(purposes, ["Cut the drive's power once", "Check cable, port and power"]);
}

#[test]
fn resets_of_a_drive_that_was_at_the_port_before_are_no_cause() {
    let text = "\
[    1.20] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[    1.30] usb 2-1: New USB device found, idVendor=151d, idProduct=1156, bcdDevice= 2.09
[    1.40] scsi host0: uas
[  120.30] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd
[  160.30] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd
Bus 002 Device 002: ID 152d:0578 JMicron Technology Corp.
";
    let inventory = documents(&[("report.txt", text)]);
    for device in inventory.storage() {
        for diagnosis in crate::diagnose::diagnose(&inventory, device) {
            let causes = &diagnosis.causes;
            assert!(causes.iter().all(|cause| !cause.readings.is_empty()), "{causes:#?}");
        }
    }
}

/// Returns the kind and reason of a drive's first cause, and the purpose of its first advice.
fn first_cause(text: &str) -> (crate::diagnose::CauseKind, String, String) {
    let inventory = documents(&[("report.txt", text)]);
    let device = inventory.storage().next().expect("a drive");
    let diagnosis = diagnose(&inventory, device).remove(0);
    let cause = diagnosis.causes.first().unwrap_or_else(|| panic!("{diagnosis:#?}"));
    (cause.kind, cause.because.clone(), cause.advice.first().map_or(String::new(), |one| one.purpose.clone()))
}

const PLUGGED: &str = "\
[   12.1] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[   12.2] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[   12.3] scsi host0: uas
[   12.9] sd 0:0:0:0: [sda] Attached SCSI disk
";

#[test]
fn a_board_that_reports_a_low_supply_explains_resets() {
    let resets = "[  500.0] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n\
                  [  600.0] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n";
    let (kind, because, purpose) = first_cause(&format!("throttled=0x50005\n{PLUGGED}{resets}"));
    assert_eq!(kind, crate::diagnose::CauseKind::Undervoltage, "{because}");
    assert!(because.contains("too low now") && purpose.contains("power supply"), "{because}: {purpose}");
    let (kind, because, _) = first_cause(&format!("throttled=0x50000\n{PLUGGED}{resets}"));
    assert!(
        kind == crate::diagnose::CauseKind::Undervoltage && because.contains("does not show"),
        "{because}"
    );
    let (kind, because, _) = first_cause(&format!("throttled=0x0\n{PLUGGED}{resets}"));
    assert_eq!(kind, crate::diagnose::CauseKind::Transport, "{because}");
}

#[test]
fn a_controller_that_was_started_again_is_not_restarted() {
    let died = "[  100.0] xhci_hcd 0000:00:14.0: xHCI host controller not responding, assume dead\n\
                [  100.1] xhci_hcd 0000:00:14.0: HC died; cleaning up\n\
                [  100.2] usb 2-1: USB disconnect, device number 2\n";
    let back = "[  105.0] xhci_hcd 0000:00:14.0: new USB bus registered, assigned bus number 2\n";
    let again = PLUGGED.replace("[   12", "[  112");
    let (_, because, purpose) = first_cause(&format!("{PLUGGED}{died}{back}{again}"));
    assert!(because.contains("started again") && !purpose.contains("Restart"), "{because}: {purpose}");
}

#[test]
fn a_value_below_its_cat_command_is_that_attribute() {
    let text = format!("$ cat /sys/module/usb_storage/parameters/quirks\n152d:0578:t\n{PLUGGED}");
    let inventory = documents(&[("report.txt", &text)]);
    assert_eq!(inventory.quirks.in_force.as_deref(), Some("152d:0578:t"));
    let text = format!("$ cat /sys/module/usb_storage/parameters/quirks\n\n{PLUGGED}");
    assert_eq!(documents(&[("report.txt", &text)]).quirks.in_force, None);
}

#[test]
fn what_a_text_lacks_is_not_called_empty() {
    let inventory = documents(&[("lsusb.txt", "Bus 002 Device 002: ID 152d:0578 JMicron\n")]);
    let device = inventory.storage().next().expect("a drive");
    let diagnosis = diagnose(&inventory, device).remove(0);
    let of_rules = diagnosis.judgements.iter().flat_map(|one| &one.readings);
    let readings: Vec<_> = of_rules.chain(diagnosis.checks.iter().flat_map(|one| &one.readings)).collect();
    assert!(
        readings.iter().all(|one| !["empty", "does not exist"].contains(&one.found.as_str())),
        "{readings:#?}"
    );
    // Without its speed no one knows whether it needs streams.
    let streams = diagnosis.judgement(crate::diagnose::Rule::Streams).expect("it is judged");
    assert_ne!(streams.verdict, crate::diagnose::Verdict::Met, "{streams:#?}");
}

#[test]
fn utf_16_without_a_mark_and_a_zero_in_a_text_are_read() {
    let wide: Vec<u8> = "[ 1.0] usb 2-1: x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(crate::text::decode(&wide), "[ 1.0] usb 2-1: x\n");
    let model = b"$ cat /proc/device-tree/model\nRaspberry Pi 5 Model B Rev 1.0\0\n";
    for bytes in [wide.as_slice(), model] {
        assert_eq!(crate::archive::documents("x", bytes).expect("a text").len(), 1);
    }
    assert!(
        crate::archive::documents("x", &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0])
            .expect("it is skipped")
            .is_empty()
    );
}

#[test]
fn a_controller_that_was_unbound_after_its_death_died() {
    let died = "\
[13769.62] xhci_hcd 0000:0f:00.0: HC died; cleaning up
[13863.68] xhci_hcd 0000:0f:00.0: remove, state 4
[13863.69] xhci_hcd 0000:0f:00.0: USB bus 4 deregistered
";
    let all = gone(died);
    assert!(all.len() == 1 && all[0].because.contains("died"), "{all:#?}");
    let back = "[13864.33] xhci_hcd 0000:0f:00.0: new USB bus registered, assigned bus number 3\n";
    let all = gone(&format!("{died}{back}"));
    assert!(all.len() == 1 && all[0].because.contains("started again"), "{all:#?}");
}

#[test]
fn commands_hold_nothing_that_a_shell_would_run() {
    let forged = "[   10.0] xhci_hcd $(reboot): HC died; cleaning up\n";
    assert!(gone(forged).is_empty());
    let real = "[   10.0] xhci-pci-renesas 0000:03:00.0: HC died; cleaning up\n";
    let line = &gone(real)[0].advice[0].steps[0].line;
    assert_eq!(line, "echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers/xhci-pci-renesas/unbind");
}

#[test]
fn a_tree_line_that_a_mail_broke_has_its_driver() {
    let text = "\
/:  Bus 002.Port 001: Dev 001, Class=root_hub, Driver=xhci_hcd/6p, 5000M
     |__ Port 001: Dev 002, If 0, Class=Hub, Driver=hub/4p, 5000M
         |__ Port 003: Dev 005, If 0, Class=Vendor Specific Class,
Driver=r8152, 5000M
         |__ Port 004: Dev 004, If 0, Class=Mass Storage,
Driver=usb-storage, 5000M
";
    let inventory = documents(&[("lsusb-t.txt", text)]);
    let drives: Vec<_> = inventory.storage().map(|device| device.port.as_str()).collect();
    assert_eq!(drives, ["2-1.4"]);
    let device = inventory.storage().next().expect("a drive");
    assert_eq!(device.interfaces[0].driver.as_deref(), Some("usb-storage"));
}
