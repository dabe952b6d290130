//! Lines that change the recorded machine.

use super::GUEST;

/// A drive with UAS and BOT at super speed, which most situations change.
pub(super) const DRIVE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3";
pub(super) const CONTROLLER: &str = "/sys/devices/pci0000:00/0000:00:02.0";
pub(super) const REGISTERS: &str = "/sys/kernel/debug/usb/xhci/0000:00:02.0/reg-cap";
pub(super) const PARAMETER: &str = crate::inventory::PARAMETER;
pub(super) const INDEX: &str = "/lib/modules/6.1.0-56-amd64/modules.dep";

pub(super) fn bound(driver: &str) -> String {
    format!("{DRIVE}/3-3:1.0/driver -> ../../../../../../bus/usb/drivers/{driver}\n")
}

/// A driver has the device as a whole.
pub(super) fn at_device(driver: &str) -> String {
    format!("{DRIVE}/driver -> ../../../../../bus/usb/drivers/{driver}\n")
}

pub(super) fn unbound() -> String {
    format!("{DRIVE}/3-3:1.0/driver -\n")
}

pub(super) fn at(name: &str, value: &str) -> String {
    format!("{DRIVE}/{name} = {value}\n")
}

pub(super) fn ids(vendor: u16, product: u16) -> String {
    at("idVendor", &format!("{vendor:04x}")) + &at("idProduct", &format!("{product:04x}"))
}

pub(super) fn quirks(value: &str) -> String {
    format!("{PARAMETER} = {value}\n")
}

pub(super) fn log(line: &str) -> String {
    format!("/dev/kmsg = {line}\n")
}

pub(super) fn log_of(lines: &[&str]) -> String {
    log(&lines.join("\\n"))
}

/// Lines of the log when the drive is plugged in, and of what was there before.
pub(super) const PLUGGED_IN: &str = "usb 3-3: new SuperSpeed USB device number 4 using xhci_hcd";
pub(super) const ITS_IDS: &str =
    "usb 3-3: New USB device found, idVendor=1209, idProduct=0001, bcdDevice= 1.00";
pub(super) const ANOTHER: &str = "usb 3-3: new SuperSpeed USB device number 2 using xhci_hcd";
pub(super) const ANOTHERS_IDS: &str =
    "usb 3-3: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00";
pub(super) const RESET_OF_2: &str = "usb 3-3: reset SuperSpeed USB device number 2 using xhci_hcd";
pub(super) const UNPLUGGED: &str = "usb 3-3: USB disconnect, device number 2";

/// The drive's descriptors with changes.
pub(super) fn descriptors(change: impl Fn(&mut Vec<u8>)) -> String {
    let prefix = format!("{DRIVE}/descriptors : ");
    let digits = GUEST.lines().find_map(|line| line.strip_prefix(&prefix)).expect("recorded");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    let mut bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    change(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{digits}\n")
}

/// bMaxPower of the configuration, whose descriptor follows that of the device.
pub(super) fn max_power(value: u8) -> String {
    descriptors(|bytes| bytes[18 + 8] = value)
}

/// The device draws current, and each companion offers two to the power of `exponent` streams.
pub(super) fn asmedia(product: u16, exponent: u8) -> String {
    let streams = |bytes: &mut Vec<u8>| {
        bytes[18 + 8] = 18;
        for at in 0..bytes.len() - 6 {
            // A companion with streams: 6 bytes, type 30h, bursts of 16, an exponent.
            if bytes[at..at + 3] == [0x06, 0x30, 0x0f] && bytes[at + 3] == 5 {
                bytes[at + 3] = exponent;
            }
        }
    };
    ids(0x174c, product) + &descriptors(streams)
}

/// No pipe usage descriptor says that it is the status pipe.
pub(super) fn without_status_pipe() -> String {
    descriptors(|bytes| {
        let usage = bytes.windows(3).position(|three| three == [0x04, 0x24, 0x02]).expect("a pipe usage");
        bytes[usage + 2] = 0x07;
    })
}

/// Every companion says that there are no streams.
pub(super) fn without_streams() -> String {
    descriptors(|bytes| {
        for at in 0..bytes.len() - 6 {
            if bytes[at..at + 2] == [0x06, 0x30] {
                bytes[at + 3] = 0;
            }
        }
    })
}

pub(super) fn high_speed() -> String {
    at("speed", "480")
}

pub(super) fn controller(driver: &str) -> String {
    format!("{CONTROLLER}/driver -> ../../../bus/platform/drivers/{driver}\n{REGISTERS} -\n/dev/kmsg -\n")
}

/// The recorded machine as one whose controller is in an NVIDIA Tegra: no PCI device, and its driver is not called xhci.
pub(super) fn on_tegra() -> String {
    let guest = GUEST.replace("pci0000:00/0000:00:02.0", "platform/3610000.xhci");
    let guest = guest.replace("0000:00:02.0", "3610000.xhci");
    let controller = "/sys/devices/platform/3610000.xhci";
    let driver = format!("{controller}/driver -> ../../../bus/platform/drivers/tegra-xusb\n");
    guest + &driver + &format!("{controller}/vendor -\n{controller}/device -\n/dev/kmsg -\n")
}

/// The drive as sysfs has it where the kernel has set no configuration: without an interface.
pub(super) fn unconfigured() -> String {
    unconfigured_at(DRIVE)
}

/// The same of a drive with that directory.
pub(super) fn unconfigured_at(drive: &str) -> String {
    let (_, port) = drive.rsplit_once('/').expect("a directory");
    let (below, link) = (format!("{drive}/{port}:1.0/"), format!("/sys/bus/usb/devices/{port}:1.0 "));
    let gone = GUEST.lines().filter(|line| line.starts_with(&below) || line.starts_with(&link));
    let gone = gone.filter_map(|line| line.split(' ').next()).map(|path| format!("{path} -\n"));
    gone.collect::<String>() + &format!("{drive}/bConfigurationValue = \n{drive}/bMaxPower = \n/dev/kmsg -\n")
}

/// Entries of a list of memory pieces, as the drive's SCSI host has them.
pub(super) fn table_size(entries: &str) -> String {
    at("3-3:1.0/host3/scsi_host/host3/sg_tablesize", entries)
}

/// The controller of one of MediaTek's chips, whose debugfs shows these registers before HCCPARAMS1; its arrays have
/// four entries at most.
pub(super) fn mediatek(registers: &str) -> String {
    mediatek_of(registers, 1)
}

/// The same with a MaxPSASize.
pub(super) fn mediatek_of(registers: &str, size: u8) -> String {
    controller("xhci-mtk") + &format!("{REGISTERS} = {registers}HCCPARAMS1 = 0x0000{size:x}001\n")
}

/// Another kernel, of the same modules.
pub(super) fn kernel(release: &str) -> String {
    format!("/proc/sys/kernel/osrelease = {release}\n")
}

/// The drive that has no Bulk-Only setting, without a driver.
pub(super) const UAS_ALONE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-1/3-1:1.0/driver -\n";

pub(super) fn uas_absent() -> String {
    format!("/sys/bus/usb/drivers/uas -\n{INDEX} = kernel/drivers/usb/storage/usb-storage.ko.xz:\n")
}

pub(super) fn uas_loadable() -> String {
    format!("/sys/bus/usb/drivers/uas -\n{INDEX} = kernel/drivers/usb/storage/uas.ko.xz: usb-storage\n")
}

/// No `usb-storage`, and so nothing that sysfs shows of a module that is loaded.
pub(super) const USB_STORAGE_GONE: &str = "\
/sys/bus/usb/drivers/usb-storage -
/sys/module/usb_storage/initstate -
/sys/module/usb_storage/parameters/quirks -
";

/// Neither driver, and both could be loaded; the drive on port 3-3 is without one.
pub(super) fn both_loadable() -> String {
    let storage = "kernel/drivers/usb/storage";
    let index = format!(
        "{INDEX} = {storage}/usb-storage.ko.xz:\\n{storage}/uas.ko.xz: {storage}/usb-storage.ko.xz\n"
    );
    format!("/sys/bus/usb/drivers/uas -\n{USB_STORAGE_GONE}{index}") + &unbound()
}

/// A kernel with both drivers, as Raspberry Pi OS has it: of neither a state is shown.
pub(super) const BOTH_BUILT_IN: &str = "\
/sys/module/usb_storage/initstate -
/proc/config.gz = CONFIG_USB_STORAGE=y\\nCONFIG_USB_UAS=y
";

/// The drive on port 3-2, which speaks Bulk-Only alone, without a driver.
pub(super) const BOT_ALONE: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-2/3-2:1.0/driver -\n";
