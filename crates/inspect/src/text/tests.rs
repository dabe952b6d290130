//! Texts of invented machines.

use super::*;
use crate::diagnose::{CauseKind, CheckKind, Decision, Diagnosis, Health, Rule, Verdict, absent, diagnose};
use crate::inventory::{LinkSpeed, Transport};

fn documents(texts: &[(&str, &str)]) -> Inventory {
    let documents: Vec<Document> = texts
        .iter()
        .map(|(name, text)| Document { name: (*name).to_owned(), text: (*text).to_owned() })
        .collect();
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
    for text in [TREE, &new] {
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
