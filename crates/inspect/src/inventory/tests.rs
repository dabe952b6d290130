//! The inventory of a recorded machine, and of what somebody made of it.

use super::*;
use crate::tree::expand;
use quirks::configuration::Endpoint;
use std::os::unix::fs::symlink;
use std::path::Path;
use wire::uas::PipeUsage;

/// A guest of QEMU with six drives, recorded by `uaskit list --record`.
const GUEST: &str = include_str!("../../tests/trees/guest.tree");

const DIRECTORY: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3";

/// The recorded guest, with lines added.
fn read(more: &str) -> Inventory {
    let record = format!("{GUEST}{more}").parse().expect("a record");
    Inventory::read(&Tree::of(record), Scope::Whole { log: None })
}

#[test]
fn a_record_says_what_its_files_say() {
    let place = tempfile::tempdir().expect("a temporary directory");
    expand(GUEST, place.path()).expect("a tree");
    assert_eq!(read(""), Inventory::read(&Tree::at(place.path()), Scope::Whole { log: None }));
}

fn device<'a>(inventory: &'a Inventory, port: &str) -> &'a UsbDevice {
    inventory.devices.iter().find(|device| device.port == port).expect("it is plugged in")
}

#[test]
fn devices_come_after_the_hubs_that_they_are_plugged_into() {
    let inventory = read("");
    let ports: Vec<&str> = inventory.devices.iter().map(|device| device.port.as_str()).collect();
    assert_eq!(
        ports,
        ["usb1", "usb2", "2-4", "2-8", "2-8.2", "usb3", "3-1", "3-2", "3-3", "usb4", "usb5", "5-1"]
    );
    assert_eq!(inventory.hub_of(device(&inventory, "2-8.2")).map(|hub| hub.port.as_str()), Some("2-8"));
    assert_eq!(inventory.hub_of(device(&inventory, "2-8")).map(|hub| hub.port.as_str()), Some("usb2"));
    let tiers = ["usb2", "2-8", "2-8.2"].map(|port| device(&inventory, port).tier());
    assert_eq!(tiers, [1, 2, 3]);
}

#[test]
fn a_drive_has_its_disk() {
    let inventory = read("");
    let drive = device(&inventory, "3-3");
    assert_eq!((drive.id, drive.speed), (DeviceId::new(0x1209, 0x0001), LinkSpeed::Super { mbps: 5000 }));
    assert_eq!((drive.title().as_str(), drive.max_power_ma), ("uaskit Virtual Drive", Some(0)));
    let interface = &drive.interfaces[0];
    assert_eq!(Transport::of(drive, interface), Transport::Uas { streams: true });
    let disk = &interface.disks[0];
    assert_eq!((disk.node.as_deref(), disk.queue_depth, disk.bytes), (Some("sdc"), Some(30), Some(16 << 20)));
    assert!(disk.unmap.is_some_and(|support| support.unmap && support.lba_count_max == u32::MAX));
    let attribute = "host3/scsi_host/host3/sg_tablesize".to_owned();
    assert_eq!(interface.scatter_gather, Some(TableSize { attribute, entries: 65_535 }));
}

#[test]
fn the_descriptors_give_settings_pipes_and_streams() {
    let inventory = read("");
    let drive = device(&inventory, "3-3");
    let configuration = drive.configuration.as_ref().expect("it is configured");
    let classes: Vec<_> =
        configuration.settings_of(0).map(|setting| setting.interface.class.protocol).collect();
    assert_eq!(classes, [0x50, 0x62]);
    let uas = configuration.settings_of(0).nth(1).expect("two settings");
    let streams = [PipeUsage::Command, PipeUsage::Status, PipeUsage::DataIn, PipeUsage::DataOut]
        .map(|usage| uas.endpoints.iter().find(|end| end.usage == Some(usage)).map(Endpoint::streams));
    assert_eq!(streams, [Some(0), Some(32), Some(32), Some(32)]);
}

#[test]
fn a_controller_has_both_of_its_buses() {
    let inventory = read("");
    let buses: Vec<_> = inventory.controllers.iter().map(|controller| controller.buses.clone()).collect();
    assert_eq!(buses, [vec![1], vec![2, 3], vec![4, 5]]);
    let controller = inventory.controller_of(device(&inventory, "3-3")).expect("it has one");
    assert_eq!((controller.driver.as_deref(), controller.pci), (Some("xhci_hcd"), Some((0x1b36, 0x000d))));
    let sizes: Vec<_> = inventory
        .controllers
        .iter()
        .map(|one| one.stream_arrays.as_ref().map(|arrays| arrays.max_psa_size))
        .collect();
    assert_eq!(sizes, [Err(&Unread::Absent), Ok(7), Ok(0)]);
}

#[test]
fn a_drive_is_found_by_port_disk_partition_and_id() {
    let inventory = read("");
    let found =
        |name: &str| inventory.find(name).iter().map(|device| device.port.clone()).collect::<Vec<_>>();
    for name in [
        "3-3",
        "3-3:1.0",
        "/dev/sdc",
        "sdc",
        "/dev/sdc1",
        "/dev/sg2",
        "/dev/bus/usb/003/004",
        "/sys/bus/usb/devices/3-3",
    ] {
        assert_eq!(found(name), ["3-3"], "{name}");
    }
    assert_eq!(found("46f4:0003"), ["3-1", "5-1"]);
    assert_eq!(found("/dev/sdz"), [""; 0]);
}

#[test]
fn a_maker_that_the_product_names_is_not_said_twice() {
    let inventory = read("");
    assert_eq!(device(&inventory, "3-2").title(), "QEMU USB HARDDRIVE");
}

#[test]
fn quirks_are_read_where_they_are_set() {
    let inventory = read(
        "/sys/module/usb_storage/parameters/quirks = 46f4:0003:u\n\
         /etc/modprobe.d/b.conf = # note\\noptions usb-storage delay_use=1 quirks=1:2:u\n\
         /lib/modprobe.d/b.conf = options usb_storage quirks=hidden\n\
         /proc/cmdline = quiet usb-storage.quirks=46f4:0003:u ro\n",
    );
    let said: Vec<_> =
        inventory.quirks.places.iter().map(|place| (place.path.as_str(), place.value.as_str())).collect();
    assert_eq!(said, [("/etc/modprobe.d/b.conf", "1:2:u"), ("/proc/cmdline", "46f4:0003:u")]);
    assert_eq!((inventory.quirks.value(), inventory.quirks.path()), ("46f4:0003:u", PARAMETER));
}

#[test]
fn quirks_are_read_as_modprobe_and_the_kernel_read_them() {
    let said = |lines: &str| {
        let inventory = read(&format!("/sys/module/usb_storage/parameters/quirks -\n{lines}\n"));
        let places = inventory.quirks.places.iter();
        places.map(|place| (place.value.clone(), place.with("X"))).collect::<Vec<_>>()
    };
    let of = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(value, line)| ((*value).to_owned(), (*line).to_owned())).collect::<Vec<_>>()
    };
    let file = |text: &str| said(&format!("/etc/modprobe.d/q.conf = {text}"));
    assert_eq!(
        file(r#"options usb-storage quirks="1209:0001:u""#),
        of(&[("1209:0001:u", r#"options usb-storage quirks="X""#)])
    );
    assert_eq!(
        file(r#"options usb-storage "quirks=1209:0001:u" a=1"#),
        of(&[("1209:0001:u", r#"options usb-storage "quirks=X" a=1"#)])
    );
    // The last one of a line counts, and the last line.
    assert_eq!(
        file(r"options usb-storage quirks=1:2:u quirks=1209:0001:u\noptions usb_storage quirks=3:4:f"),
        of(&[
            ("1209:0001:u", "options usb-storage quirks=1:2:u quirks=X"),
            ("3:4:f", "options usb_storage quirks=X")
        ])
    );
    // A line goes on after a backslash, and so does one that says nothing to modprobe.
    assert_eq!(
        file(r"options usb-storage \\\n  quirks=1209:0001:u\n# no \\\noptions usb-storage quirks=1:2:u"),
        of(&[("1209:0001:u", "options usb-storage   quirks=X")])
    );
    // What only looks like it.
    assert_eq!(file(r#"options "usb-storage" quirks=1:2:u\noptions usb-storage xquirks=1:2:u quirks"#), []);
    let words = |text: &str| said(&format!("/proc/cmdline = quiet {text} ro"));
    assert_eq!(
        words(r#"usb-storage.quirks="1209:0001:u""#),
        of(&[("1209:0001:u", r#"usb-storage.quirks="X""#)])
    );
    assert_eq!(
        words(r#""usb_storage.quirks=1209:0001:u""#),
        of(&[("1209:0001:u", r#""usb_storage.quirks=X""#)])
    );
    assert_eq!(words(r#"a="usb-storage.quirks=1:2:u b""#), []);
}

#[test]
fn a_driver_is_registered_loadable_absent_or_forbidden() {
    assert!(matches!(read("").drivers.uas, Module::Registered(_)));
    let gone = "/sys/bus/usb/drivers/uas -\n";
    let index = "/lib/modules/6.1.0-56-amd64/modules.dep = kernel/drivers/usb/storage/";
    assert!(matches!(read(&format!("{gone}{index}uas.ko.xz: x\n")).drivers.uas, Module::Loadable(_)));
    assert!(matches!(read(&format!("{gone}{index}usb-storage.ko:\n")).drivers.uas, Module::Absent(_)));
    assert_eq!(read(gone).drivers.uas, Module::Unknown);
}

/// A forbidding setting: where, its line, its means, which drivers, and what is to be left of it where both are wanted.
type ForbiddingText = (String, String, ForbiddingMeans, Vec<&'static str>, Option<String>);

fn forbidding(lines: &str) -> Vec<ForbiddingText> {
    let all = read(lines).drivers.forbidden.into_iter();
    all.map(|one| {
        let rest = one.without(|_| true);
        (one.path, one.line, one.means, one.drivers, rest)
    })
    .collect()
}

#[test]
fn all_lines_that_forbid_either_driver_are_found() {
    use ForbiddingMeans::{Blacklist, Command};
    let file = "/etc/modprobe.d/cis.conf";
    let line = |line: &str, means, driver| (file.to_owned(), line.to_owned(), means, vec![driver], None);
    assert_eq!(
        forbidding(&format!(
            "{file} = install usb-storage /bin/false\\nblacklist usb_storage\\nblacklist uas\\ninstall uas /bin/true\n"
        )),
        [
            line("install usb-storage /bin/false", Command, "usb-storage"),
            line("blacklist usb_storage", Blacklist, "usb-storage"),
            line("blacklist uas", Blacklist, "uas"),
            line("install uas /bin/true", Command, "uas"),
        ]
    );
}

#[test]
fn words_that_forbid_are_read_as_modprobe_and_the_kernel_read_them() {
    use ForbiddingMeans::{Blacklist, Kernel};
    let at_boot = |words: &str| {
        let found = forbidding(&format!("/proc/cmdline = quiet {words} ro\n"));
        assert!(found.iter().all(|(path, ..)| path == COMMAND_LINE), "{found:?}");
        let found = found.into_iter().map(|(_, line, means, drivers, rest)| (line, means, drivers, rest));
        found.collect::<Vec<_>>()
    };
    let word = |word: &str, means, drivers: &[&'static str], rest: Option<&str>| {
        (word.to_owned(), means, drivers.to_vec(), rest.map(str::to_owned))
    };
    let both = ["uas", "usb-storage"];
    assert_eq!(
        at_boot("modprobe.blacklist=nouveau,uas modprobe.blacklist=usb_storage"),
        [
            word("modprobe.blacklist=nouveau,uas", Blacklist, &["uas"], Some("modprobe.blacklist=nouveau")),
            word("modprobe.blacklist=usb_storage", Blacklist, &["usb-storage"], None),
        ]
    );
    assert_eq!(
        at_boot("module_blacklist=uas,nouveau,usb_storage,pcspkr"),
        [word(
            "module_blacklist=uas,nouveau,usb_storage,pcspkr",
            Kernel,
            &both,
            Some("module_blacklist=nouveau,pcspkr")
        )]
    );
    assert_eq!(at_boot("modprobe.blacklist=uas2 blacklist=uas"), []);
    // Modules have no `-` in their names, and neither of the two changes those that it is given.
    assert_eq!(at_boot("module_blacklist=usb-storage modprobe.blacklist=usb-storage"), []);
    // Of the kernel's own the last one counts; one before it would as soon as that is gone.
    assert_eq!(at_boot("module_blacklist=uas module-blacklist=nouveau"), []);
    assert_eq!(at_boot("module_blacklist=uas,usb_storage module_blacklist=uas").len(), 2);
    // The kernel leaves quotes out, modprobe does not.
    let quoted = r#"module_blacklist="nouveau,uas""#;
    assert_eq!(at_boot(quoted), [word(quoted, Kernel, &["uas"], Some(r#"module_blacklist="nouveau""#))]);
    let quoted = r#""module_blacklist=uas,nouveau""#;
    assert_eq!(at_boot(quoted), [word(quoted, Kernel, &["uas"], Some(r#""module_blacklist=nouveau""#))]);
    for words in
        [r#"modprobe.blacklist="uas""#, r#""modprobe.blacklist=uas""#, r#"a="b modprobe.blacklist=uas c""#]
    {
        assert_eq!(at_boot(words), [], "{words}");
    }
}

#[test]
fn a_built_in_driver_is_known_by_state_configuration_or_index() {
    const INDEX: &str = "/lib/modules/6.1.0-56-amd64/modules.builtin";
    const CONFIG: &str = "/proc/config.gz";
    let of = |lines: &str| {
        let drivers = read(lines).drivers;
        (drivers.uas_is_built_in, drivers.usb_storage_is_built_in)
    };
    // It was loaded: its state is shown, whatever files say.
    assert_eq!(of(""), (false, false));
    assert_eq!(of(&format!("{CONFIG} = CONFIG_USB_STORAGE=y\\nCONFIG_USB_UAS=m\n")), (false, false));
    let stateless = "/sys/module/usb_storage/initstate -\n";
    let with = |lines: &str| of(&format!("{stateless}{lines}"));
    // Its parameters are there without a state.
    assert_eq!(with(""), (false, true));
    assert_eq!(with(&format!("{PARAMETER} -\n")), (false, false));
    assert_eq!(with(&format!("{CONFIG} = CONFIG_USB_STORAGE=y\\nCONFIG_USB_UAS=y\n")), (true, true));
    assert_eq!(with(&format!("{CONFIG} = CONFIG_USB_STORAGE=y\\nCONFIG_USB_UAS=m\n")), (false, true));
    assert_eq!(with(&format!("{CONFIG} = CONFIG_USB_STORAGE=m\\nCONFIG_USB_UAS=m\n")), (false, false));
    let storage = "kernel/drivers/usb/storage/";
    assert_eq!(with(&format!("{INDEX} = {storage}usb-storage.ko\\n{storage}uas.ko\n")), (true, true));
    assert_eq!(with(&format!("{INDEX} = {storage}usb-storage.ko\n")), (false, true));
    assert_eq!(with(&format!("{INDEX} = kernel/drivers/usb/core/usbcore.ko\n")), (false, false));
    // Lines of modprobe's keep back nothing that is built in, and set nothing of it.
    let lines = "/etc/modprobe.d/q.conf = options usb-storage quirks=1:2:u\\ninstall usb-storage /bin/false\\nblacklist uas\n";
    let inventory = read(&format!("{stateless}{lines}"));
    let forbidden: Vec<_> = inventory.drivers.forbidden.iter().map(|one| one.line.as_str()).collect();
    assert_eq!(forbidden, ["blacklist uas"]);
    assert_eq!((inventory.quirks.places.len(), inventory.quirks.unheard.len()), (0, 1));
    assert_eq!(inventory.quirks.at_boot(), "");
}

#[test]
fn a_command_that_loads_nothing_forbids() {
    let forbids = |line: &str| {
        let found = forbidding(&format!("/etc/modprobe.d/no.conf = {line}\n"));
        assert!(found.iter().all(|(_, line, ..)| !line.contains('\\')), "{found:?}");
        !found.is_empty()
    };
    for line in [
        "blacklist uas",
        "blacklist usb-storage",
        "install uas /bin/true",
        "install usb-storage /bin/false",
        "install usb_storage /bin/true",
        "install uas :",
        "install uas /bin/sh -c true",
        "install uas echo no uas here; exit 1",
        "install uas \\\\\\n  /usr/bin/logger not-modprobe",
    ] {
        assert!(forbids(line), "{line}");
    }
    for line in [
        "install uas /sbin/modprobe --ignore-install uas && logger uas",
        "install uas /bin/sh -c 'modprobe -i uas'",
        "install uas x=$(/usr/sbin/modprobe -i uas);echo $x",
        "install uas insmod /lib/uas.ko",
        "install usb-storage /sbin/modprobe --ignore-install usb-storage",
        "install uas",
        "install uas2 /bin/true",
        "# install uas /bin/true",
        r#"blacklist "uas""#,
        "blacklist uas2",
    ] {
        assert!(!forbids(line), "{line}");
    }
}

#[test]
fn errors_in_the_log_are_counted_for_their_own_port() {
    let log = "usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd\\n\
               usb 3-31: reset SuperSpeed USB device number 9 using xhci_hcd\\n\
               sd 3:0:0:0: [sdc] tag#3 uas_eh_abort_handler 0 uas-tag 4 inflight: CMD\\n\
               usb 3-3: USB disconnect, device number 3\\n\
               usb usb3-port3: over-current condition\\n\
               usb 3-3: device descriptor read/8, error -71";
    let inventory = read(&format!("/dev/kmsg = {log}\n"));
    let log = inventory.log.as_ref().expect("read").as_ref().expect("read");
    let errors = log.errors(device(&inventory, "3-3"), None);
    let counts = [errors.resets, errors.disconnects, errors.aborts, errors.enumeration_errors, errors.power];
    assert_eq!(counts, [1; 5], "{errors:#?}");
}

/// Errors in a log of these lines of the drive on port 3-3, whose disk is sdc of SCSI host 3.
fn errors(lines: &str) -> PortErrors {
    let inventory = read(&format!("/dev/kmsg = {}\n", lines.replace('\n', "\\n")));
    let log = inventory.log.as_ref().expect("read").as_ref().expect("read");
    let device = device(&inventory, "3-3");
    log.errors(device, inventory.controller_of(device))
}

#[test]
fn a_bad_cable_shows_at_both_halves_of_the_port() {
    let found = errors(
        "usb usb3-port3: Cannot enable. Maybe the USB cable is bad?\n\
         usb usb2-port3: Cannot enable. Maybe the USB cable is bad?\n\
         usb usb3-port3: disabled by hub (EMI?), re-enabling...\n\
         usb usb3-port3: cannot reset (err = -110)\n\
         usb usb3-port4: Cannot enable. Maybe the USB cable is bad?\n\
         usb usb3-port31: Cannot enable. Maybe the USB cable is bad?\n\
         usb usb2-port2: disabled by hub (EMI?), re-enabling...\n\
         usb 3-3: Device not responding to setup address.",
    );
    let examples = vec![
        "usb 3-3: Device not responding to setup address.".to_owned(),
        "usb usb3-port3: cannot reset (err = -110)".to_owned(),
    ];
    assert_eq!(
        found,
        PortErrors { link_losses: 4, enumeration_errors: 1, examples, ..PortErrors::default() }
    );
}

#[test]
fn commands_that_uas_aborted_are_found_by_device_unit_and_host() {
    let found = errors(
        "usb 3-3: cmd cmplt err -2\n\
         sd 3:0:0:0: [sdc] tag#1 data cmplt err -71 uas-tag 2 inflight: CMD\n\
         sd 3:0:0:0: [sdc] tag#1 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD IN\n\
         scsi 3:0:0:0: tag#1 uas_zap_pending 0 uas-tag 1 inflight: CMD\n\
         scsi host3: uas_eh_device_reset_handler start\n\
         usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd\n\
         scsi host3: uas_eh_device_reset_handler success\n\
         scsi host3: uas_eh_device_reset_handler FAILED err -19\n\
         scsi host33: uas_eh_device_reset_handler FAILED err -19\n\
         sd 33:0:0:0: [sdq] tag#1 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD IN\n\
         usb 3-31: cmd cmplt err -2",
    );
    assert_eq!((found.aborts, found.resets), (5, 1), "{found:#?}");
}

#[test]
fn block_errors_are_found_by_the_disk() {
    let found = errors(
        "blk_update_request: I/O error, dev sdc, sector 77 op 0x0:(READ) flags 0x80700\n\
         I/O error, dev sdc, sector 78 op 0x1:(WRITE) flags 0x0\n\
         critical medium error, dev sdc, sector 79\n\
         I/O error, dev sdb, sector 80\n\
         I/O error, dev sdcc, sector 81",
    );
    assert_eq!((found.io_errors, found.examples.len()), (3, 1), "{found:#?}");
}

#[test]
fn unknown_streams_of_a_controller_count_for_drives_with_streams() {
    let lines = "xhci_hcd 0000:00:02.0: ERROR Transfer event for unknown stream ring slot 3 ep 6\n\
                 xhci_hcd 0000:00:02.0: Transfer event 4 for unknown stream ring slot 3 ep 6\n\
                 xhci_hcd 0000:00:04.0: ERROR Transfer event for unknown stream ring slot 1 ep 2";
    assert_eq!(errors(lines).unknown_streams, 2);
    let inventory = read(&format!("/dev/kmsg = {}\n", lines.replace('\n', "\\n")));
    let log = inventory.log.as_ref().expect("read").as_ref().expect("read");
    assert_eq!(log.errors(device(&inventory, "3-3"), None), PortErrors::default());
}

#[test]
fn a_machine_without_usb_has_nothing() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let inventory = Inventory::read(&Tree::at(place.path()), Scope::Whole { log: None });
    let config_unread = vec![("/proc/config.gz".to_owned(), Unread::Absent)];
    let drivers = Drivers { config_unread, ..Drivers::default() };
    assert_eq!(inventory, Inventory { drivers, log: Some(Err(Unread::Absent)), ..Inventory::default() });
}

/// Whatever is in the files, the answer is an inventory.
fn read_hostile(spoil: impl Fn(&Path)) -> Inventory {
    let place = tempfile::tempdir().expect("a temporary directory");
    expand(GUEST, place.path()).expect("a tree");
    spoil(&place.path().join(DIRECTORY.trim_start_matches('/')));
    Inventory::read(&Tree::at(place.path()), Scope::Whole { log: None })
}

#[test]
fn hostile_attributes_are_not_believed() {
    let replace = |name: &'static str, bytes: &'static [u8]| {
        move |device: &Path| std::fs::write(device.join(name), bytes).expect("written")
    };
    assert!(read_hostile(replace("idVendor", b"zz")).find("3-3").is_empty());
    assert!(read_hostile(replace("busnum", b"99999999999999999999")).find("3-3").is_empty());
    let speed = read_hostile(replace("speed", b"-1\xff\x00"));
    assert_eq!(device(&speed, "3-3").speed, LinkSpeed::Unknown);
    let blob = read_hostile(replace(
        "descriptors",
        b"\x12\x01\x00\x03\x00\x00\x00\x09\x09\x02\x00\x00\x01\x01\x00\xc0\x00\x00\x09\x04",
    ));
    assert_eq!(device(&blob, "3-3").configuration, None);
}

#[test]
fn loops_of_links_end() {
    let inventory = read_hostile(|device| {
        std::fs::remove_file(device.join("speed")).expect("removed");
        symlink("speed", device.join("speed")).expect("linked");
        std::fs::remove_dir_all(device.join("3-3:1.0/host3")).expect("removed");
        symlink("..", device.join("3-3:1.0/host3")).expect("linked");
    });
    let drive = device(&inventory, "3-3");
    assert_eq!((drive.speed, drive.disks().count()), (LinkSpeed::Unknown, 0));
}

#[test]
fn thousands_of_devices_are_read_to_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let devices = place.path().join("sys/bus/usb/devices");
    std::fs::create_dir_all(&devices).expect("made");
    for number in 0..5000 {
        std::fs::create_dir(devices.join(format!("1-{number}"))).expect("made");
    }
    let tree = Tree::at(place.path());
    assert_eq!(tree.names(DEVICES, |_| true).len(), crate::tree::NAMES_MAX);
    assert_eq!(Inventory::read(&tree, Scope::Brief).devices, []);
}

mod anything {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Each case makes 300 files.
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Any bytes in any one attribute.
        #[test]
        fn any_bytes_are_read_without_harm(line in 0_usize..GUEST.lines().count(), bytes: Vec<u8>) {
            let place = tempfile::tempdir().expect("a temporary directory");
            expand(GUEST, place.path()).expect("a tree");
            let path = GUEST.lines().nth(line).and_then(|line| line.split(' ').next()).unwrap_or_default();
            let file = place.path().join(path.trim_start_matches('/'));
            if file.is_file() {
                std::fs::write(file, bytes).expect("written");
            }
            let inventory = Inventory::read(&Tree::at(place.path()), Scope::Whole { log: None });
            prop_assert!(inventory.devices.len() <= 12);
        }
    }
}
