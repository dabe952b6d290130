//! Texts of invented machines.

use super::*;
use crate::diagnose::{
    AbsentKind, CauseKind, CheckKind, Decision, Diagnosis, Health, Rule, Verdict, absent, diagnose,
};
use crate::inventory::{LinkSpeed, Transport};

fn documents(texts: &[(&str, &str)]) -> Inventory {
    let documents: Vec<Document> = texts.iter().map(|(name, text)| Document::new(*name, *text)).collect();
    read(&documents)
}

fn one(inventory: &Inventory, port: &str) -> Diagnosis {
    let device = inventory.devices.iter().find(|device| device.port == port).expect("it is attached");
    diagnose(inventory, device).remove(0)
}

const DMESG: &str = "\
[    1.234567] usb 2-1: new SuperSpeed Gen 1 USB device number 2 using xhci_hcd
[    1.265432] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[    1.265440] usb 2-1: New USB device strings: Mfr=1, Product=2, SerialNumber=3
[    1.265443] usb 2-1: Product: External USB 3.0
[    1.265446] usb 2-1: Manufacturer: JMicron
[    1.280000] scsi host0: uas
[    1.290000] scsi 0:0:0:0: Direct-Access     SABRENT  Disk             0204 PQ: 0 ANSI: 6
[    1.300000] sd 0:0:0:0: [sda] 976773168 512-byte logical blocks: (500 GB/466 GiB)
";

const TREE: &str = "\
/:  Bus 02.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 5000M
    |__ Port 1: Dev 2, If 0, Class=Mass Storage, Driver=uas, 5000M
    |__ Port 2: Dev 3, If 0, Class=Hub, Driver=hub/4p, 5000M
        |__ Port 3: Dev 4, If 0, Class=Mass Storage, Driver=usb-storage, 5000M
/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/1p, 480M
";

#[test]
fn dmesg_alone_says_which_driver_has_which_disk() {
    let inventory = documents(&[("dmesg.txt", DMESG)]);
    let diagnosis = one(&inventory, "2-1");
    assert_eq!(diagnosis.transport, Transport::Uas { streams: true });
    assert_eq!(diagnosis.decision, Decision::AllMet);
    let device = &inventory.find("sda")[0];
    assert_eq!((device.port.as_str(), device.speed), ("2-1", LinkSpeed::Super { mbps: 5000 }));
    assert_eq!(device.disks().next().and_then(|disk| disk.bytes), Some(500_107_862_016));
    let missing = inventory.report.as_ref().expect("it is text").missing(&inventory, Some(device));
    let what: Vec<&str> = missing.iter().map(|one| one.what).collect();
    assert!(what.contains(&"the descriptors") && what.contains(&"the host controller"), "{what:?}");
    for check in &diagnosis.checks {
        let is_judged = matches!(check.kind, CheckKind::Link | CheckKind::Resets | CheckKind::Serial);
        assert!(check.health != Health::Good || is_judged, "{check:#?}");
    }
}

#[test]
fn readings_name_file_and_line() {
    let inventory = documents(&[("dmesg.txt", DMESG), ("tree.txt", TREE)]);
    let diagnosis = one(&inventory, "2-1");
    let started = diagnosis.judgement(Rule::Started).expect("it was asked");
    assert_eq!(started.verdict, Verdict::Met);
    assert_eq!(started.readings[0].place, "tree.txt line 2");
}

#[test]
fn lsusb_trees_of_both_formats_are_read() {
    let new = TREE
        .replace("Bus 02.Port 1: Dev 1,", "Bus 002.Port 001: Dev 001,")
        .replace("Bus 01.Port 1: Dev 1,", "Bus 001.Port 001: Dev 001,")
        .replace("Port 1: Dev 2", "Port 001: Dev 002")
        .replace("Port 2: Dev 3", "Port 002: Dev 003")
        .replace("Port 3: Dev 4", "Port 003: Dev 004");
    let without_class = TREE.replace("Class=Mass Storage", "Class=");
    for text in [TREE, &new, &without_class] {
        let inventory = documents(&[("t", text), ("l", "Bus 002 Device 004: ID 174c:55aa ASMedia\n")]);
        let diagnosis = one(&inventory, "2-2.3");
        assert_eq!(diagnosis.transport, Transport::Bot, "{text}");
        assert_eq!(inventory.find("174c:55aa")[0].port, "2-2.3");
        assert!(matches!(diagnosis.decision, Decision::Supposed(_)), "{:?}", diagnosis.decision);
    }
}

#[test]
fn a_log_is_read_with_what_pasting_adds() {
    let aborted = format!(
        "{DMESG}[  120.1] sd 0:0:0:0: [sda] tag#28 uas_eh_abort_handler 0 uas-tag 10 inflight: CMD OUT\n\
         [  120.1] sd 0:0:0:0: [sda] tag#28 CDB: opcode=0x2a 2a 00 01 12 88 b8 00 00 08 00\n\
         [  120.3] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd\n"
    );
    let put = |before: &str| aborted.lines().map(|line| format!("{before}{line}\n")).collect::<String>();
    for text in [
        aborted.clone(),
        put("    "),
        put("> "),
        put("Jan  5 12:00:00 host kernel[0]: "),
        put("Jan  5 12:00:00 host kernel: "),
        put("01-05 12:00:00.000     0     0 I         : "),
        format!("Hello,\n\n```\n{aborted}```\nthanks"),
        aborted.replace('\n', "\r\n"),
    ] {
        let inventory = documents(&[("log", &text)]);
        let diagnosis = one(&inventory, "2-1");
        assert_eq!(diagnosis.causes.first().map(|cause| cause.kind), Some(CauseKind::Transport), "{text}");
    }
}

/// Buses are enumerated at the same time, and a line of a SCSI host does not name its port.
#[test]
fn a_drive_that_uas_has_left_gets_no_host_of_another_drive() {
    let log = "\
[    4.53] usb 3-1: new SuperSpeed USB device number 2 using xhci_hcd
[    4.54] usb 5-1: new SuperSpeed USB device number 2 using xhci_hcd
[    4.55] usb 3-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[    4.56] usb 5-1: New USB device found, idVendor=2109, idProduct=0716, bcdDevice= 1.00
[    4.57] usb 5-1: USB controller 0000:00:04.0 does not support streams, which are required by the UAS driver.
[    4.58] scsi host1: uas
";
    let inventory = documents(&[("dmesg.txt", log)]);
    assert_eq!(one(&inventory, "3-1").transport, Transport::Uas { streams: true });
    let left = one(&inventory, "5-1");
    assert_eq!((&left.transport, left.decision), (&Transport::Unknown, Decision::Decided(Rule::Streams)));
}

#[test]
fn a_log_that_begins_late_is_attributed_by_its_reset() {
    let text = "\
[ 9000.1] sd 4:0:0:0: [sdb] tag#28 uas_eh_abort_handler 0 uas-tag 10 inflight: CMD OUT
[ 9000.1] sd 4:0:0:0: [sdb] tag#28 CDB: opcode=0x42 42 00 00 00 00 00 00 00 18 00
[ 9000.2] scsi host4: uas_eh_device_reset_handler start
[ 9000.3] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd
[ 9000.4] scsi host4: uas_eh_device_reset_handler success
";
    let inventory = documents(&[("log", text), ("lsusb", "Bus 002 Device 002: ID 152d:0578 JMicron\n")]);
    let diagnosis = one(&inventory, "2-1");
    assert_eq!(diagnosis.transport, Transport::Uas { streams: true });
    assert_eq!(diagnosis.causes.first().map(|cause| cause.kind), Some(CauseKind::Trim), "{diagnosis:#?}");
}

#[test]
fn descriptors_are_rebuilt_from_lsusb() {
    let text = "\
Bus 002 Device 002: ID 152d:0578 JMicron Technology Corp.
Device Descriptor:
  bLength                18
  bcdUSB               3.20
  bMaxPacketSize0         9
  idVendor           0x152d JMicron
  idProduct          0x0578 JMS578
  bcdDevice            2.09
  iManufacturer           1 JMicron
  iSerial                 0
  bNumConfigurations      1
  Configuration Descriptor:
    bNumInterfaces          1
    bConfigurationValue     1
    bmAttributes         0x80
      (Bus Powered)
    MaxPower              896mA
    Interface Descriptor:
      bInterfaceNumber        0
      bAlternateSetting       0
      bNumEndpoints           0
      bInterfaceClass         8 Mass Storage
      bInterfaceSubClass      6 SCSI
      bInterfaceProtocol     80 Bulk-Only
    Interface Descriptor:
      bInterfaceNumber        0
      bAlternateSetting       1
      bNumEndpoints           4
      bInterfaceClass         8 Mass Storage
      bInterfaceSubClass      6 SCSI
      bInterfaceProtocol     98
";
    let endpoint = |address: &str, usage: &str| {
        format!(
            "      Endpoint Descriptor:\n        bEndpointAddress     {address}\n        bmAttributes            2\n        \
             wMaxPacketSize     0x0400  1x 1024 bytes\n        bInterval               0\n        bMaxBurst              15\n        \
             MaxStreams             32\n        {usage}\n"
        )
    };
    let pipes = [
        ("0x04", "Command pipe (0x01)"),
        ("0x83", "** UNRECOGNIZED:  04 24 02 00"),
        ("0x81", "Data-in pipe (0x03)"),
        ("0x02", "Data-out pipe (0x04)"),
    ];
    let whole: String =
        text.to_owned() + &pipes.iter().map(|(address, usage)| endpoint(address, usage)).collect::<String>();
    let inventory = documents(&[("v", &whole)]);
    let diagnosis = one(&inventory, "2-dev2");
    assert_eq!(diagnosis.transport, Transport::Unknown);
    assert_eq!(diagnosis.decision, Decision::NotShown);
    for rule in [Rule::AlternateSetting, Rule::Pipes] {
        assert_eq!(diagnosis.judgement(rule).map(|one| one.verdict), Some(Verdict::Met), "{rule:?}");
    }
    let short = documents(&[("v", text)]);
    assert_eq!(one(&short, "2-dev2").judgement(Rule::Pipes).map(|one| one.verdict), Some(Verdict::Unknown));
}

#[test]
fn the_usb_devices_file_is_read() {
    let text = "\
T:  Bus=02 Lev=00 Prnt=00 Port=00 Cnt=00 Dev#=  1 Spd=5000 MxCh= 4
P:  Vendor=1d6b ProdID=0003 Rev= 6.01
T:  Bus=02 Lev=01 Prnt=01 Port=00 Cnt=01 Dev#=  2 Spd=5000 MxCh= 0
D:  Ver= 3.20 Cls=00(>ifc ) Sub=00 Prot=00 MxPS= 9 #Cfgs=  1
P:  Vendor=152d ProdID=0578 Rev= 2.09
S:  Manufacturer=JMicron
S:  SerialNumber=123
C:* #Ifs= 1 Cfg#= 1 Atr=80 MxPwr=896mA
I:  If#= 0 Alt= 0 #EPs= 2 Cls=08(stor.) Sub=06 Prot=50 Driver=uas
I:* If#= 0 Alt= 1 #EPs= 4 Cls=08(stor.) Sub=06 Prot=62 Driver=uas
";
    let inventory = documents(&[("devices", text)]);
    let diagnosis = one(&inventory, "2-1");
    assert_eq!(diagnosis.transport, Transport::Uas { streams: true });
    let device = inventory.find("2-1")[0];
    assert_eq!((device.max_power_ma, device.revision), (Some(896), 0x0209));
}

#[test]
fn a_drive_that_is_gone_is_reported() {
    let text = format!("{DMESG}[   99.0] usb 2-1: USB disconnect, device number 2\n");
    let inventory = documents(&[("log", &text)]);
    assert_eq!(inventory.storage().count(), 0);
    let gone = absent(&inventory);
    assert_eq!(gone.len(), 1, "{gone:#?}");
    assert!(gone[0].because.contains("was here as /dev/sda on UAS"), "{}", gone[0].because);
    assert_eq!(gone[0].readings.last().map(|reading| reading.place.as_str()), Some("log line 9"));
}

fn gone(text: &str) -> Vec<crate::diagnose::Absent> {
    absent(&documents(&[("log", text)]))
}

#[test]
fn a_disk_whose_port_no_line_names_is_reported() {
    let aborts = "\
[ 9000.1] sd 7:0:0:0: [sdq] tag#3 uas_eh_abort_handler 0 uas-tag 4 inflight: CMD IN
[ 9000.1] sd 7:0:0:0: [sdq] tag#3 CDB: Read(10) 28 00 00 00 10 00 00 00 08 00
[ 9000.2] sd 7:0:0:0: [sdq] tag#2 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD IN
[ 9000.2] sd 7:0:0:0: [sdq] tag#2 CDB: Read(10) 28 00 00 00 18 00 00 00 08 00
";
    let all = gone(aborts);
    let [one] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!((one.kind, one.place.as_str()), (AbsentKind::WithoutPort, "/dev/sdq"));
    assert!(one.because.starts_with("2 commands were aborted, READ(10) first"), "{}", one.because);
    let lines = one.advice.iter().flat_map(|advice| &advice.steps).map(|step| step.line.as_str());
    assert!(
        lines.clone().all(|line| !line.contains("0000:0000"))
            && lines.clone().any(|line| line.contains("lsusb"))
    );
    // The disk of another controller is none of USB's.
    assert_eq!(
        gone(&format!(
            "[    1.0] scsi host7: ahci\n{}",
            aborts.replace("uas_eh_abort_handler", "FAILED Result: hostbyte=DID_ERROR")
        )),
        []
    );
    let medium = "\
sd 3:0:0:1: [sdt] tag#40 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE
sd 3:0:0:1: [sdt] tag#40 Sense Key : Medium Error [current]
sd 3:0:0:1: [sdt] tag#40 CDB: Read(10) 28 00 00 31 c9 b8 00 00 30 00
";
    assert!(gone(medium)[0].because.contains("MEDIUM ERROR at READ(10)"), "{:#?}", gone(medium));
    let trim = "[  286.4] critical target error, dev sdv, sector 3778 op 0x3:(DISCARD) flags 0x800\n";
    assert_eq!(gone(trim)[0].causes, [CauseKind::TrimRefused]);
}

#[test]
fn lines_of_old_kernels_that_are_split_belong_together() {
    let text = "\
[  133.8] sd 2:0:0:0: [sdc]
[  133.8] Result: hostbyte=0x00 driverbyte=0x08
[  133.8] sd 2:0:0:0: [sdc]
[  133.8] Sense Key : 0x5 [current]
[  133.8] sd 2:0:0:0: [sdc]
[  133.8] ASC=0x21 ASCQ=0x0
[  133.9] sd 2:0:0:0: [sdc] CDB:
[  133.9] cdb[0]=0x28: 28 00 03 b7 23 80 00 00 08 00
[  133.9] end_request: critical target error, dev sdc, sector 62333824
";
    let all = gone(text);
    assert_eq!(all[0].causes, [CauseKind::Refused], "{all:#?}");
    assert!(all[0].because.contains("ILLEGAL REQUEST (ASC=0x21 ASCQ=0x0) at READ(10)"), "{}", all[0].because);
}

#[test]
fn controllers_and_the_supply_are_reported_without_a_drive() {
    let streams = "Jun  2 14:32:30 pi kernel: xhci_hcd 0000:01:00.0: ERROR Transfer event for unknown stream ring slot 2 ep 7\n";
    let all = gone(streams);
    assert_eq!((all[0].kind, all[0].place.as_str()), (AbsentKind::Controller, "0000:01:00.0"), "{all:#?}");
    let supply =
        "[Aug28 17:07] hwmon hwmon1: Undervoltage detected!\n[ +14.1] hwmon hwmon1: Undervoltage detected!\n";
    let all = gone(supply);
    assert_eq!(all[0].kind, AbsentKind::Supply);
    assert!(all[0].because.ends_with("too low twice"), "{}", all[0].because);
    let hub = "\
[ 42.1] usb 3-1: USB disconnect, device number 17
[ 42.1] usb 3-1.4: USB disconnect, device number 18
[ 42.2] usb 3-1.4.5: USB disconnect, device number 21
";
    assert_eq!(
        (gone(hub)[0].kind, gone(hub)[0].place.as_str()),
        (AbsentKind::Hub, "3-1"),
        "{:#?}",
        gone(hub)
    );
}

#[test]
fn a_port_whose_device_was_enumerated_before_differs_from_one_that_never_was() {
    let never = "[ 1.0] usb 1-2: new high-speed USB device number 4 using xhci_hcd\n[ 1.1] usb 1-2: device descriptor read/64, error -71\n";
    assert_eq!(gone(never)[0].kind, AbsentKind::NeverEnumerated);
    let before = format!("[ 0.5] usb 1-2: USB disconnect, device number 3\n{never}");
    assert!(gone(&before)[0].because.contains("stopped answering"), "{}", gone(&before)[0].because);
    let resets = "[ 1.0] usb 1-2: reset high-speed USB device number 4 using xhci_hcd\n[ 9.0] usb 1-2: reset high-speed USB device number 4 using xhci_hcd\n";
    assert!(gone(resets)[0].because.contains("the kernel reset the drive twice"), "{:#?}", gone(resets));
    let poll = format!(
        "{resets}Sep 08 07:47:43 host udisksd[501]: Error updating SMART data: Error sending ATA command CHECK POWER MODE\n"
    );
    assert_eq!(gone(&poll)[0].causes, [CauseKind::Poll], "{:#?}", gone(&poll));
}

#[test]
fn a_device_that_keeps_its_number_was_enumerated_before() {
    let text = "\
[ 1.0] usb 4-2: device not accepting address 2, error -71
[ 2.0] usb 4-2: device not accepting address 2, error -71
";
    assert!(gone(text)[0].because.contains("stopped answering"), "{:#?}", gone(text));
}

#[test]
fn what_is_given_up_after_a_disconnect_decides_nothing() {
    let text = format!(
        "{DMESG}[ 50.0] usb 2-1: stat urb: status -71\n\
         [ 50.2] usb 2-1: USB disconnect, device number 2\n\
         [ 50.2] sd 0:0:0:0: tag#0 uas_zap_pending 0 uas-tag 1 inflight: CMD\n\
         [ 50.2] sd 0:0:0:0: tag#0 CDB: Test Unit Ready 00 00 00 00 00 00\n"
    );
    let all = gone(&text);
    assert!(all[0].because.contains("one transfer failed on the link (-71"), "{}", all[0].because);
}

#[test]
fn a_log_that_has_every_line_twice_has_one_session() {
    let text = "\
[ 1.0] usb 4-2: new SuperSpeed USB device number 20 using xhci_hcd
[ 1.1] usb 4-2: New USB device found, idVendor=0781, idProduct=5591, bcdDevice= 1.00
[ 1.2] usb-storage 4-2:1.0: USB Mass Storage device detected
[ 1.3] scsi host3: usb-storage 4-2:1.0
usb 4-2: new SuperSpeed USB device number 20 using xhci_hcd
usb 4-2: New USB device found, idVendor=0781, idProduct=5591, bcdDevice= 1.00
";
    assert_eq!(one(&documents(&[("log", text)]), "4-2").transport, Transport::Bot);
}

#[test]
fn a_host_whose_reset_failed_belongs_to_the_port_before() {
    let text = "\
usb 5-2: device not accepting address 3, error -62
scsi host6: uas_eh_device_reset_handler FAILED err -19
sd 6:0:0:0: Device offlined - not ready after error recovery
sd 6:0:0:0: [sdb] tag#4 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_TIMEOUT cmd_age=84s
sd 6:0:0:0: [sdb] tag#4 CDB: Read(16) 88 00 00 00 00 02 b8 bd cd c0 00 00 01 00 00 00
";
    let inventory = documents(&[("log", text)]);
    let diagnosis = one(&inventory, "5-2");
    let kinds: Vec<CauseKind> = diagnosis.causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::Enumeration, CauseKind::Transport]);
    assert!(diagnosis.causes[0].because.contains("after a reset"), "{}", diagnosis.causes[0].because);
}

#[test]
fn the_kernels_refusal_decides_without_descriptors() {
    for text in [
        "[  +0.02] usb 2-1: USB controller vhci_hcd.0 does not support streams, which are required by the UAS driver.\n",
        "[ 1.8] usb 2-1: new SuperSpeed USB device number 2 using xhci-hcd\n\
         [ 1.9] usb 2-1: USB controller f1.usb3 does not support streams, which are required by the UAS driver.\n\
         [ 1.9] usb-storage 2-1:1.0: USB Mass Storage device detected\n",
    ] {
        let diagnosis = one(&documents(&[("log", text)]), "2-1");
        assert_eq!(diagnosis.decision, Decision::Decided(Rule::Streams), "{text}");
    }
}

#[test]
fn a_drive_without_a_disk_names_the_command_that_was_lost() {
    let text = "\
[   12.0] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[   12.1] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[   12.2] scsi host6: uas
[   33.0] scsi 6:0:0:0: tag#0 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD IN
[   33.0] scsi 6:0:0:0: tag#0 CDB: opcode=0x12 12 00 00 00 24 00
";
    let diagnosis = one(&documents(&[("log", text)]), "2-1");
    let cause = &diagnosis.causes[0];
    assert_eq!(cause.kind, CauseKind::NoDisk);
    assert!(cause.because.starts_with("no disk appeared: INQUIRY"), "{}", cause.because);
    assert!(cause.advice.iter().any(|advice| advice.purpose.starts_with("Keep it off UAS")));
}

#[test]
fn lsusb_of_other_makes_is_read() {
    let synology = "\
|__usb2          1d6b:0003:0404 09  3.00 5000MBit/s 0mA 1IF  (Linux xhci-hcd)
  |__2-2         2109:8822:05a3 09  3.20 5000MBit/s 0mA 1IF  (Hub)
    |__2-2.1     152d:0578:0614 00  3.10 5000MBit/s 8mA 1IF  (Box)
    2-2.1:1.0      (IF) 08:06:62 4EPs (Mass Storage:SCSI:UAS) uas host6 (sda)
";
    let inventory = documents(&[("l", synology)]);
    assert_eq!(one(&inventory, "2-2.1").transport, Transport::Uas { streams: true });
    assert_eq!(inventory.find("2-2.1")[0].max_power_ma, Some(8));
    let filtered =
        "    |__ Port 2: Dev 5, If 0, Class=Mass Storage, Driver=uas, 10000M\n        ID 1e91:a4ae Maker\n";
    let inventory = documents(&[("t", filtered)]);
    assert_eq!(inventory.find("1e91:a4ae").len(), 1);
    // Numbers differ after the drive was plugged in again.
    let inventory = documents(&[
        ("t", TREE.split("    |__ Port 2").next().unwrap_or_default()),
        ("l", "Bus 002 Device 004: ID 152d:0578 JMicron\n"),
    ]);
    assert_eq!(inventory.storage().count(), 1);
    assert_eq!(inventory.find("152d:0578")[0].port, "2-1");
}

#[test]
fn a_log_of_free_bsd_is_not_judged_by_the_rules_of_linux() {
    let text = "\
umass0 on uhub0
umass0:  SCSI over Bulk-Only; quirks = 0x4000
da0 at umass-sim0 bus 0 scbus2 target 0 lun 0
da0: <Maker Box 1.00> Fixed Direct Access SPC-2 SCSI device
da0: 400.000MB/s transfers
(da0:umass-sim0:0:0:0): WRITE(10). CDB: 2a 00 00 00 26 b8 00 00 08 00
(da0:umass-sim0:0:0:0): CAM status: CCB request completed with an error
";
    let inventory = documents(&[("log", text)]);
    let drive = &inventory.report.as_ref().expect("text").foreign[0];
    assert_eq!(
        (drive.system, drive.transport, drive.speed),
        (ForeignSystem::FreeBsd, Some("BOT"), Some("5 Gb/s"))
    );
    assert_eq!(drive.name.as_deref(), Some("Maker Box 1.00"));
    assert_eq!(drive.error.as_deref(), Some("CCB request completed with an error at WRITE(10)"));
    assert_eq!((inventory.storage().count(), absent(&inventory)), (0, Vec::new()));
    let open = "umass0 at uhub0 port 3 configuration 1 interface 0 \"Maker Box\" rev 3.00/1.00 addr 2\numass0: using SCSI over Bulk-Only\n";
    let inventory = documents(&[("log", open)]);
    assert_eq!(inventory.report.as_ref().expect("text").foreign[0].system, ForeignSystem::OtherBsd);
}

#[test]
fn errors_of_zfs_count_for_the_only_drive() {
    let text = format!(
        "{DMESG}[  204.6] zio pool=tank vdev=/dev/disk/by-id/usb-Maker_Box_1-0:0-part1 error=5 type=1\n"
    );
    let diagnosis = one(&documents(&[("log", &text)]), "2-1");
    assert_eq!(
        diagnosis.causes.first().map(|cause| cause.kind),
        Some(CauseKind::Transport),
        "{diagnosis:#?}"
    );
}

#[test]
fn smartctl_that_does_not_know_a_bridge_is_no_fault_of_the_drive() {
    let text = "smartctl 7.2 2020-12-30 r5155 [x86_64-linux-6.5.0] (local build)\n\n/dev/sda: Unknown USB bridge [0x152d:0xb581 (0x4403)]\n";
    let inventory = documents(&[("s", text)]);
    assert_eq!(inventory.report.as_ref().expect("text").smart[0].health, SmartHealth::UnknownBridge);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "(?s)[ -~\n\t]{0,600}") {
        let inventory = documents(&[("x", &text)]);
        let _ = absent(&inventory);
        for device in inventory.storage() {
            let _ = diagnose(&inventory, device);
        }
    }
}

#[test]
fn a_long_log_is_read_fast() {
    const BYTES: usize = 8 << 20;
    let other = "[  100.000001] audit: type=1400 audit(1.1:2): apparmor=\"DENIED\" operation=\"open\" profile=\"x\"\n";
    let text = DMESG.to_owned() + &other.repeat(BYTES / other.len());
    let begun = std::time::Instant::now();
    let inventory = documents(&[("log", &text)]);
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(inventory.storage().count(), 1);
    println!("{:.0} MB/s", text.len() as f64 / 1e6 / seconds);
    // Far below what a release build on a quiet machine does: a limit for a mistake of order, not of degree.
    assert!(seconds < 8.0, "{seconds} s");
}
mod excerpts;
mod foreign;
mod hostile;
mod kinds;

/// `lsusb` and `lsusb -t` of a drive that usb-storage has; no descriptors.
const ON_STORAGE: &str = "\
Bus 002 Device 003: ID 152d:0578 JMicron Technology Corp. / JMicron USA Technology Corp. JMS578 SATA 6Gb/s
/:  Bus 02.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 5000M
    |__ Port 1: Dev 3, If 0, Class=Mass Storage, Driver=usb-storage, 5000M
";

#[test]
fn the_letter_u_decides_where_the_text_has_no_descriptors() {
    for settings in [
        "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet usb-storage.quirks=152d:0578:u",
        "/sys/module/usb_storage/parameters/quirks:152d:0578:u",
        "$ cat /sys/module/usb_storage/parameters/quirks\n152d:0578:u",
        "174c:55aa:,152d:0578:u",
    ] {
        let inventory = documents(&[("post", &format!("{ON_STORAGE}{settings}\n"))]);
        let diagnosis = &diagnose(&inventory, inventory.find("152d:0578")[0])[0];
        assert_eq!(diagnosis.decision, Decision::Decided(Rule::NotIgnored), "{settings}: {diagnosis:#?}");
        let because = diagnosis.judgement(Rule::NotIgnored).map(|judgement| judgement.because.as_str());
        assert_eq!(because, Some("usb-storage.quirks= has the letter u for 152d:0578"));
        let settings_check = diagnosis.checks.iter().find(|check| check.kind == CheckKind::Settings);
        let said = settings_check.map_or("", |check| check.because.as_str());
        assert!(!said.contains("usb-storage is not loaded"), "{said}");
    }
    // Without it, nothing is known.
    let inventory = documents(&[("post", &format!("{ON_STORAGE}quiet splash root=/dev/sda1\n12:34:\n"))]);
    let diagnosis = &diagnose(&inventory, inventory.find("152d:0578")[0])[0];
    assert_eq!(diagnosis.decision, Decision::Supposed(Rule::AlternateSetting));
}

#[test]
fn pnputil_names_the_file_of_the_driver_and_why_a_device_did_not_start() {
    let device = |driver: &str, status: &str| {
        format!(
            "Instance ID:                USB\\VID_152D&PID_0578\\0123\n\
             Device Description:         USB Mass Storage Device\n\
             Status:                     {status}\n\
             Driver Name:                {driver}\n"
        )
    };
    for (driver, status, transport, error) in [
        ("usbstor.inf", "Started", Some("BOT"), None),
        ("uaspstor.inf", "Started", Some("UAS"), None),
        (
            "uaspstor.inf",
            "Problem\nProblem Code:               10 (0x0A) [CM_PROB_FAILED_START]",
            Some("UAS"),
            Some("the problem CM_PROB_FAILED_START"),
        ),
    ] {
        let inventory = documents(&[("pnputil", &device(driver, status))]);
        let drive = &inventory.report.as_ref().expect("text").foreign[0];
        assert_eq!((drive.transport, drive.error.as_deref()), (transport, error), "{driver} {status}");
    }
}

#[test]
fn a_line_that_replaces_entries_which_the_text_lacks_says_so() {
    let log = "\
[    1.000000] usb 2-1: new SuperSpeed USB device number 3 using xhci_hcd
[    1.100000] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00
[    1.200000] scsi host3: uas
[  100.000000] sd 3:0:0:0: [sdb] tag#1 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD OUT
[  100.000001] sd 3:0:0:0: [sdb] tag#1 CDB: Write(10) 2a 00 00 00 10 00 00 04 00 00
[  130.000000] scsi host3: uas_eh_device_reset_handler start
[  131.000000] usb 2-1: reset SuperSpeed USB device number 3 using xhci_hcd
";
    for (settings, warns) in [("", true), ("/sys/module/usb_storage/parameters/quirks:174c:55aa:f\n", false)]
    {
        let inventory = documents(&[("post", &format!("{log}{settings}"))]);
        let diagnosis = &diagnose(&inventory, inventory.find("152d:0578")[0])[0];
        let advice = diagnosis.causes.iter().flat_map(|cause| &cause.advice);
        let replacing: Vec<_> = advice
            .filter(|one| one.steps.iter().any(|step| step.line.contains("parameters/quirks")))
            .collect();
        assert!(!replacing.is_empty(), "{settings}: {diagnosis:#?}");
        for one in replacing {
            let warned = one.cautions.iter().any(|caution| caution.contains("entries of other devices"));
            assert_eq!(warned, warns, "{settings}: {one:#?}");
        }
    }
}
