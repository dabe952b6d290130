//! Histories of invented logs.

use super::*;

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

const TWO_DRIVES: &str = "\
[    1.0] xhci_hcd 0000:00:14.0: new USB bus registered, assigned bus number 2
[    1.1] usb 2-1: new SuperSpeed Plus Gen 2x1 USB device number 2 using xhci_hcd
[    1.2] usb 2-1: New USB device found, idVendor=0bda, idProduct=9210, bcdDevice=20.01
[    1.2] usb 2-1: New USB device strings: Mfr=1, Product=2, SerialNumber=3
[    1.2] usb 2-1: Product: Box
[    1.3] scsi host4: uas
[    1.4] scsi 4:0:0:0: Direct-Access     Realtek  RTL9210 NVME     1.00 PQ: 0 ANSI: 6
[    1.5] sd 4:0:0:0: [sdb] 500118192 512-byte logical blocks: (256 GB/238 GiB)
[    2.0] usb 1-3: new high-speed USB device number 5 using xhci_hcd
[    2.1] usb 1-3: New USB device found, idVendor=0781, idProduct=5567, bcdDevice= 1.00
[    2.2] usb-storage 1-3:1.0: USB Mass Storage device detected
[    2.3] scsi host5: usb-storage 1-3:1.0
[    9.0] sd 4:0:0:0: [sdb] tag#3 uas_eh_abort_handler 0 uas-tag 4 inflight: CMD IN
[    9.1] sd 4:0:0:0: [sdb] tag#3 CDB: opcode=0x28 28 00 00 00 00 00 00 00 08 00
[   10.0] I/O error, dev sdb, sector 0
[   11.0] usb 2-1: USB disconnect, device number 2
[   15.5] usb 2-1: new SuperSpeed Plus Gen 2x1 USB device number 3 using xhci_hcd
";

#[test]
fn lines_belong_to_the_session_that_had_the_host() {
    let lines = lines(TWO_DRIVES);
    let history = History::of(&lines);
    let [first, second, third] = history.sessions.as_slice() else { panic!("{history:#?}") };
    assert_eq!((first.port.as_str(), first.number, first.driver), ("2-1", Some(2), Some("uas")));
    assert_eq!(first.speed, Some(crate::inventory::LinkSpeed::Super { mbps: 10_000 }));
    assert_eq!((first.id, first.revision), (Some(DeviceId::new(0x0bda, 0x9210)), Some(0x2001)));
    let unit = &first.units[0];
    assert_eq!((unit.node.as_deref(), unit.model.as_deref()), (Some("sdb"), Some("RTL9210 NVME")));
    assert_eq!((second.driver, second.hosts.as_slice()), (Some("usb-storage"), [5].as_slice()));
    assert_eq!((third.number, third.seconds_after(first)), (Some(3), Some(4)));
    assert_eq!(history.entries[14].session, Some(0));
    assert_eq!(history.commands[0].0, Some(0));
    assert_eq!(history.controller_of(2), Some("0000:00:14.0"));
}

#[test]
fn a_port_below_a_hub_is_named_by_its_hubs_line() {
    assert_eq!(port_of_hub_line("usb usb2-port1").as_deref(), Some("2-1"));
    assert_eq!(port_of_hub_line("usb 4-2-port1").as_deref(), Some("4-2.1"));
    assert_eq!(port_of_hub_line("usb 4-2"), None);
    assert_eq!(port_of("usb usb2-port1"), None);
    assert_eq!(port_of("usb 4-2.1"), Some("4-2.1"));
}

proptest::proptest! {
    #[test]
    fn any_lines_make_a_history(text in "(?s).{0,400}") {
        let lines = lines(&text);
        let history = History::of(&lines);
        proptest::prop_assert_eq!(history.entries.len(), lines.len());
    }
}
