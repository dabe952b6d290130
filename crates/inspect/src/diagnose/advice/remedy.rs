//! Remedies for causes that the log shows: for each the exact command, its cost, and how to undo it.
//!
//! Commands are those of Debian, Raspberry Pi OS and Ubuntu; systemd is assumed. Always true: a command has no placeholder.
//! Left out: what a graphical desktop offers for the same.

use super::{Advice, quirk};
use crate::diagnose::entry;
use crate::diagnose::evidence::Evidence;
use crate::diagnose::flags::Quirks;
use quirks::quirk::{Flag, Flags};

/// Restarts a host controller whose driver is a module or built in.
pub(in crate::diagnose) fn restart_controller(name: &str, driver: &str) -> Advice {
    let bus = if is_pci(name) { "pci" } else { "platform" };
    let drivers = format!("/sys/bus/{bus}/drivers/{driver}");
    Advice::new("Restart the host controller")
        .cost("every device of this controller disconnects; unmount their file systems first")
        .step("unbind its driver", format!("echo {name} | sudo tee {drivers}/unbind"))
        .step("bind it again", format!("echo {name} | sudo tee {drivers}/bind"))
        .step("if it does not come back", "reboot, or power the machine off and on")
}

fn is_pci(name: &str) -> bool {
    name.split(':').count() == 3 && name.contains('.')
}

/// For faults of a controller or its driver.
pub(in crate::diagnose) fn newer_kernel_or_firmware() -> Advice {
    Advice::new("Update the kernel and the controller's firmware")
        .step(
            "the kernel",
            "install the newest kernel of the distribution; stream handling has been fixed repeatedly",
        )
        .step("on a Raspberry Pi 4 (VL805)", "sudo rpi-eeprom-update -a")
}

/// For a board whose supply is too weak.
pub(in crate::diagnose) fn better_supply() -> Advice {
    Advice::new("Replace the board's power supply")
        .step("Raspberry Pi 5", "5.1 V, 5 A USB-C; with less, USB ports share 600 mA")
        .step("Raspberry Pi 4 and older", "5.1 V, 3 A (Pi 4) or 2.5 A (Pi 3), with a short thick cable")
        .step("check it under load", "vcgencmd get_throttled")
        .caution("throttled=0x0 is good; bit 0 means too low now, bit 16 since boot")
}

/// Takes the drive's current off the board.
pub(in crate::diagnose) fn powered_hub() -> Advice {
    Advice::new("Power the drive externally")
        .step("between board and drive", "a hub with its own power supply, or the enclosure's own adapter")
}

/// For a drive that reports its own errors. Nothing here touches its settings.
pub(in crate::diagnose) fn failing_drive(node: Option<&str>) -> Vec<Advice> {
    let disk = node.map_or_else(|| "the drive".to_owned(), |node| format!("/dev/{node}"));
    let smart = Advice::new("Look at its SMART data").step(
        "reallocated, pending and uncorrectable sectors",
        match node {
            Some(node) => format!("sudo smartctl -a /dev/{node}"),
            None => "run smartctl -a on it".to_owned(),
        },
    );
    let replace = Advice::new(format!("Replace {disk}"))
        .step("cable, port and UAS are not the cause", "leave USB settings as they are");
    vec![back_up(node), smart, replace]
}

/// For failures of which it is unknown whether the bridge or the drive behind it is at fault.
pub(in crate::diagnose) fn bridge_or_drive(node: Option<&str>) -> Vec<Advice> {
    vec![back_up(node), reseat(), super::more_power(), drive_firmware()]
}

fn back_up(node: Option<&str>) -> Advice {
    Advice::new("Back up its data first")
        .cost("each read stresses a failing drive: copy once, to another drive")
        .step(
            "to an image, with a map that lets it resume",
            match node {
                Some(node) => format!("sudo ddrescue -d /dev/{node} drive.img drive.map"),
                None => "use ddrescue with a map file".to_owned(),
            },
        )
}

/// Stops what sends SMART and power-mode polls.
pub(in crate::diagnose) fn stop_poller() -> Advice {
    Advice::new("Stop the program that polls the drive")
        .cost("no SMART monitoring of this drive")
        .step("smartd", "sudo systemctl disable --now smartd smartmontools")
        .step("hd-idle", "sudo systemctl disable --now hd-idle")
        .step("udisks, which polls SMART every 10 minutes", "sudo systemctl mask --now udisks2")
        .back("the services", "sudo systemctl enable --now smartd; sudo systemctl unmask --now udisks2")
}

/// Has the kernel answer ATA PASS-THROUGH itself.
pub(in crate::diagnose) fn block_ata(evidence: &Evidence<'_>) -> Advice {
    letter(evidence, 't', "Block ATA PASS-THROUGH and stay on UAS")
        .cost("smartctl and hdparm get no answer from this drive")
}

/// Adds one letter to the drive's quirks.
pub(in crate::diagnose) fn letter(evidence: &Evidence<'_>, letter: char, purpose: &str) -> Advice {
    let flag = Flag::of_letter(letter);
    let letters = |quirks: &Quirks| {
        let flags = quirks.of_driver(evidence.driver());
        flag.map_or(flags, |flag| flags.union(Flags::of(&[flag]))).letters()
    };
    quirk(evidence, purpose, letters)
}

/// Sends the drive no TRIM.
pub(in crate::diagnose) fn stop_trim(evidence: &Evidence<'_>) -> Advice {
    const FILE: &str = "/etc/udev/rules.d/71-uaskit-no-trim.rules";
    let id = evidence.device.id;
    let rule = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"scsi_disk\", ATTRS{{idVendor}}==\"{:04x}\", \
         ATTRS{{idProduct}}==\"{:04x}\", ATTR{{provisioning_mode}}=\"disabled\"",
        id.vendor, id.product
    );
    let advice = Advice::new("Send the drive no TRIM; it may stay on UAS")
        .cost("the SSD does not learn which blocks are free; writes may become slower")
        .step("stop the weekly trim", "sudo systemctl disable --now fstrim.timer")
        .step("in /etc/fstab", "remove the mount option discard");
    let advice = match evidence.device.disks().next() {
        Some(disk) if !disk.address.is_empty() => advice.step(
            "until it is unplugged",
            format!("echo disabled | sudo tee /sys/class/scsi_disk/{}/provisioning_mode", disk.address),
        ),
        _ => advice,
    };
    if evidence.device.id == quirks::DeviceId::new(0, 0) {
        return advice.back("the timer", "sudo systemctl enable --now fstrim.timer");
    }
    advice
        .step(format!("permanently, in {FILE}"), rule)
        .back("timer and rule", format!("sudo systemctl enable --now fstrim.timer; sudo rm {FILE}"))
}

/// For what hangs until its power is cut.
pub(in crate::diagnose) fn power_cycle() -> Advice {
    Advice::new("Cut the drive's power once").step(
        "a reset does not restart its firmware",
        "unplug cable and power supply, wait 10 s, plug them in",
    )
}

/// For a bridge that lost the drive behind it.
pub(in crate::diagnose) fn reseat() -> Advice {
    Advice::new("Check the drive inside the enclosure")
        .step("its SATA or M.2 contacts", "take it out, put it back, or try it in another enclosure")
        .step("then its SMART data", "smartctl -a, in another enclosure if this one blocks it")
}

/// For a card reader or a disc drive.
pub(in crate::diagnose) fn insert_medium() -> Advice {
    Advice::new("Insert a medium").step("the unit has none", "put the card or disc in, or try another one")
}

/// For addresses that the drive does not have.
pub(in crate::diagnose) fn compare_capacity() -> Advice {
    Advice::new("Compare the capacity with the partition table")
        .step("what the drive reports, and what is on it", "lsblk -b; sudo fdisk -l")
        .caution("an enclosure that reports another capacity than the one before it makes such errors, and so do counterfeit drives")
}

/// For a drive that has fewer blocks than its partition table or file system.
pub(in crate::diagnose) fn full_size(is_above_2_tib: bool) -> Advice {
    let where_to = if is_above_2_tib {
        "an enclosure, adapter or board whose bridge supports more than 2 TiB"
    } else {
        "the enclosure, adapter or port that it was partitioned with"
    };
    Advice::new("Use the drive where it has its full size, and copy its data from there")
        .step(where_to, "lsblk -b -o NAME,SIZE,LOG-SEC,MODEL")
        .caution("until then do not repair, format or partition it: each writes by the wrong size")
}

/// For a drive that was faster before.
pub(in crate::diagnose) fn faster_link() -> Advice {
    Advice::new("Get the faster link back")
        .step(
            "first",
            "unplug it, and push the plug in fully; SuperSpeed uses contacts that are behind the others",
        )
        .step("then in this order", "another USB 3 cable (short), another USB 3 port, no hub")
}

/// Keeps the kernel from writing with FUA: with a write-through cache it needs none.
pub(in crate::diagnose) fn no_fua(address: &str) -> Advice {
    let advice = Advice::new("Write without FUA")
        .cost("the kernel no longer flushes the drive's cache: a power cut may lose the latest writes");
    let place = format!("/sys/class/scsi_disk/{address}/cache_type");
    match address {
        "" => advice.step("in /sys/class/scsi_disk, in cache_type", "temporary write through"),
        _ => advice
            .step("until it is unplugged", format!("echo temporary write through | sudo tee {place}"))
            .back("until it is unplugged", format!("echo temporary write back | sudo tee {place}")),
    }
}

/// For a drive that does not flush its cache: what is at risk, and how to use it.
pub(in crate::diagnose) fn without_flush(address: &str, node: Option<&str>) -> Vec<Advice> {
    let place = match address {
        "" => "/sys/class/scsi_disk/*/cache_type".to_owned(),
        _ => format!("/sys/class/scsi_disk/{address}/cache_type"),
    };
    let look = Advice::new("Find out whether the drive has a write cache")
        .step("with `write through` there is none, and nothing is at risk", format!("cat {place}"));
    let power_off = Advice::new("Power the drive off before it is unplugged").step(
        "it writes its cache when it stops",
        match node {
            Some(node) => format!("sync; udisksctl power-off -b /dev/{node}"),
            None => "unmount it, then use the desktop's Eject".to_owned(),
        },
    );
    let no_flush = Advice::new("Send no flush, if fsync or the file system fails because of it").cost(
        "with a write cache that loses its contents, a power cut loses the latest writes, as it does now",
    );
    let no_flush = match address {
        "" => no_flush.step("in /sys/class/scsi_disk, in cache_type", "temporary write through"),
        _ => no_flush
            .step("until it is unplugged", format!("echo temporary write through | sudo tee {place}"))
            .back("until it is unplugged", format!("echo temporary write back | sudo tee {place}")),
    };
    vec![look, power_off, no_flush]
}

/// For a hub or dock that disconnected.
pub(in crate::diagnose) fn hub_power() -> Advice {
    Advice::new("If no one unplugged it, check the hub or dock")
        .step("its power supply and its cable to the machine", "another cable, another port, its own supply")
}

/// For a device that becomes another one.
pub(in crate::diagnose) fn keep_mode() -> Advice {
    Advice::new("Nothing is to be done, unless the files of its first mode are needed")
        .step("then, in /etc/usb_modeswitch.conf, and plug it in again", "DisableSwitching=1")
        .back("in /etc/usb_modeswitch.conf", "DisableSwitching=0")
}

/// For a hub that does not answer its driver.
pub(in crate::diagnose) fn failing_hub() -> Advice {
    Advice::new("Use the drive without that hub, or give the hub power").step(
        "in this order",
        "a port of the machine itself, the hub's own power supply, another cable to the hub, another hub",
    )
}

/// For a log that begins too late.
pub(in crate::diagnose) fn longer_log() -> Advice {
    Advice::new("Look at the earlier kernel log")
        .step("up to the first error", "sudo journalctl -k -b; sudo dmesg")
}

/// For a controller that went with its dock or card.
pub(in crate::diagnose) fn dock_link() -> Advice {
    Advice::new("If no one unplugged it, check the dock")
        .step("its cable and its power supply", "a cable made for Thunderbolt or USB4, its own adapter")
        .step("its firmware", "sudo fwupdmgr refresh; sudo fwupdmgr update")
}

/// For a log that fits the devices of the machine badly.
pub(in crate::diagnose) fn log_of_another_machine() -> Advice {
    Advice::new("If the log is of another machine, read it as a report")
        .step("in place of --log FILE", "uaskit why --from FILE")
}

/// For a drive that disconnected without an error.
pub(in crate::diagnose) fn if_not_unplugged() -> Advice {
    Advice::new("If no one unplugged it, check cable, port and power")
        .step("in this order", "another cable (short), another port, no hub, its own power supply")
}

/// For devices at several ports that were lost at once.
pub(in crate::diagnose) fn what_they_share() -> Advice {
    Advice::new("Check what these devices share")
        .step("in this order", "the hub or dock, its power supply, the controller card and its slot")
}

/// For a drive of which a text has SCSI addresses alone.
pub(in crate::diagnose) fn find_port() -> Advice {
    Advice::new("Find out which USB drive it is")
        .step("port, driver and ids of every drive", "lsusb -t; lsusb")
        .step("its path, which has the port", "ls -l /sys/block")
}

/// For firmware that hangs.
pub(in crate::diagnose) fn drive_firmware() -> Advice {
    Advice::new("Update the firmware of enclosure and drive")
        .step("the makers' pages", "bridges and SSDs that hang on a flush are mostly fixed by firmware")
}

/// For a device whose answers break its protocol.
pub(in crate::diagnose) fn faulty_firmware(evidence: &Evidence<'_>) -> Vec<Advice> {
    let port = evidence.device.port.as_str();
    let is_port = port.starts_with(|first: char| first.is_ascii_digit());
    let check =
        if is_port { format!("sudo uaskit check {port}") } else { "run uaskit check on it".to_owned() };
    vec![
        Advice::new("Update the device's firmware, or return it")
            .step("the maker's page", "no setting of the host repairs a malformed answer")
            .caution("do not store data on it that exist nowhere else"),
        Advice::new("Find the answers that are wrong").step("each with its clause, for the maker", check),
    ]
}

/// For drives that sleep.
pub(in crate::diagnose) fn no_spin_down() -> Advice {
    Advice::new("Do not let the drive spin down")
        .cost("the drive runs all the time")
        .step("hd-idle", "sudo systemctl disable --now hd-idle")
        .back("the service", "sudo systemctl enable --now hd-idle")
}

/// Advises what is cheap to try and most often right for signal errors.
pub(in crate::diagnose) fn cable_and_port() -> Advice {
    Advice::new("Check cable, port and power")
        .step("in this order", "another cable (short), another port, no hub, its own power supply")
}

/// Keeps a device from runtime suspend.
pub(in crate::diagnose) fn no_autosuspend(evidence: &Evidence<'_>) -> Advice {
    let place = evidence.device.attribute("power/control");
    Advice::new("Rule out runtime suspend")
        .cost("the port draws more power")
        .step("until it is unplugged", format!("echo on | sudo tee {place}"))
        .back("until it is unplugged", format!("echo auto | sudo tee {place}"))
}

/// Keeps a device out of U1 and U2.
pub(in crate::diagnose) fn no_link_power(evidence: &Evidence<'_>) -> Advice {
    let id = evidence.device.id;
    Advice::new("Disable link power management for it")
        .cost("the link draws more power when idle")
        .step("on the kernel command line", format!("usbcore.quirks={id}:k"))
        .step(
            "until it is unplugged",
            format!("echo 0 | sudo tee {}", evidence.device.attribute("power/usb3_hardware_lpm_u1")),
        )
        .back("on the kernel command line", "remove the parameter")
}

/// The setting in the form that the kernel reads.
pub(in crate::diagnose) fn right_setting(evidence: &Evidence<'_>) -> Advice {
    let (id, settings) = (evidence.device.id, &evidence.inventory.quirks);
    let purpose = "Write the setting in the form that the kernel reads";
    let meant = |line: &str| line.split_once('=').map(|(_, value)| value.trim_matches('"').to_owned());
    let of_places = settings.places.iter().map(|place| place.value.clone());
    let of_mistakes = settings.mistakes.iter().filter_map(|mistake| meant(&mistake.line));
    // The kernel takes the first entry of a device; of several parameters the last counts, so its entries come first.
    let mut all: Vec<String> = Vec::new();
    let values: Vec<String> = of_mistakes.chain(of_places).collect();
    for value in values.iter().rev() {
        for (entry, other) in entry::printable(value) {
            if all.iter().all(|known| entry::letters_of(known, other).is_none()) {
                all.push(entry.to_owned());
            }
        }
    }
    if all.is_empty() {
        return Advice::new(purpose).step(
            "to keep this drive off UAS, on the kernel command line",
            format!("usb-storage.quirks={id}:u"),
        );
    }
    let value = all.join(",");
    if settings.places.last().is_some_and(|place| place.value == value) {
        let mut advice = Advice::new("Remove what has no effect");
        for mistake in &settings.mistakes {
            advice = advice.step(super::place(&mistake.path), "remove that word or line");
        }
        return advice;
    }
    Advice::new(purpose)
        .step("on the kernel command line, as the only such word", format!("usb-storage.quirks={value}"))
}

/// Finds an entry of the user that a report does not have.
pub(in crate::diagnose) fn find_entry(evidence: &Evidence<'_>) -> Advice {
    Advice::new("Find the entry, and remove it to have UAS used")
        .wish()
        .step(
            "where it may be",
            "grep -rs quirks /proc/cmdline /etc/modprobe.d /usr/lib/modprobe.d /sys/module/usb_storage/parameters/quirks",
        )
        .step("the entry of this drive begins with", evidence.device.id.to_string())
        .caution("such an entry is mostly there because UAS failed on this drive: have a backup")
}
