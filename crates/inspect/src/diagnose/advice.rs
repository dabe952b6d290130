//! Advice, line by line, and how to undo it.
//!
//! A quirk is one entry of a list that may have others, and Linux takes the whole list or nothing: so every line here
//! carries the entries that are there already. Lines that last carry those that files and command line have, and the line
//! until the next boot those in force: what others were only tried with does not last, and what is written is not lost. Advice
//! changes nothing by itself.

mod remedy;

pub(super) use remedy::*;

use super::Decision;
use super::entry::{self, VALUE_BYTES_MAX};
use super::evidence::Evidence;
use super::flags::Quirks;
use crate::inventory::{
    COMMAND_LINE, ForbiddingMeans, Module, PARAMETER, QuirkSettings, SettingPlace, Transport, UnmapCommand,
    UsbDevice,
};
use quirks::quirk::{Flag, Flags};

/// Something that can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Its purpose.
    pub purpose: String,
    /// How: every step, or one of several ways.
    pub steps: Vec<Step>,
    /// How to undo it.
    pub back: Vec<Step>,
    /// Cautions to read before.
    pub cautions: Vec<String>,
    /// Its cost: speed, a function, a restart. `None` where it costs nothing but the work.
    pub cost: Option<String>,
    /// It wins something and mends nothing: last, and never for a drive with trouble.
    pub is_wish: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where, or when.
    pub place: String,
    /// The text to write or type there; empty if the place says it all.
    pub line: String,
}

impl Step {
    fn new(place: impl Into<String>, line: impl Into<String>) -> Self {
        Self { place: place.into(), line: line.into() }
    }
}

impl Advice {
    fn new(purpose: impl Into<String>) -> Self {
        Self {
            purpose: purpose.into(),
            steps: Vec::new(),
            back: Vec::new(),
            cautions: Vec::new(),
            cost: None,
            is_wish: false,
        }
    }

    /// Whether its commands need ids that a report does not have.
    pub(super) fn needs_id(&self) -> bool {
        self.steps.iter().any(|step| step.line.contains("0000:0000") || step.line.contains("\"0000\""))
    }

    fn cost(self, cost: impl Into<String>) -> Self {
        Self { cost: Some(cost.into()), ..self }
    }

    fn wish(self) -> Self {
        Self { is_wish: true, ..self }
    }

    fn step(mut self, place: impl Into<String>, line: impl Into<String>) -> Self {
        self.steps.push(Step::new(place, line));
        self
    }

    fn back(mut self, place: impl Into<String>, line: impl Into<String>) -> Self {
        self.back.push(Step::new(place, line));
        self
    }

    fn caution(mut self, caution: impl Into<String>) -> Self {
        self.cautions.push(caution.into());
        self
    }
}

/// The file of modprobe in which our line goes.
const MODPROBE_FILE: &str = "/etc/modprobe.d/uaskit.conf";

/// Its name, by which modprobe orders files.
const MODPROBE_NAME: &str = "uaskit.conf";

/// Sets the letters of a device, in all the places where one can: those that come of its quirks in force, and after the
/// next boot.
pub(super) fn quirk(evidence: &Evidence<'_>, purpose: &str, letters: impl Fn(&Quirks) -> String) -> Advice {
    let (device, settings) = (evidence.device, &evidence.inventory.quirks);
    let is_built_in = evidence.inventory.drivers.usb_storage_is_built_in;
    let lasting = entry::with(settings.at_boot(), device.id, &letters(&evidence.quirks_at_boot()));
    let before = settings.value();
    let value = entry::with(before, device.id, &letters(&evidence.quirks));
    let readable = entry::readable(before);
    let old = if readable.is_empty() { "''" } else { &readable };
    let advice =
        Advice::new(purpose).step("on the kernel command line", format!("usb-storage.quirks={lasting}"));
    let mut advice = match settings.places.iter().rfind(|place| place.path == COMMAND_LINE) {
        Some(place) => advice
            .caution(if is_built_in {
                "the kernel command line already has this parameter; replace it"
            } else {
                "the kernel command line already has this parameter, which overrides modprobe.d"
            })
            .back("on the kernel command line", line_without_placeholders(place)),
        None => advice.back("on the kernel command line", "remove the parameter"),
    };
    if !is_built_in {
        advice = in_modprobe_file(advice, settings, &lasting);
    }
    if let Some(line) = until_next_boot(evidence, &value) {
        advice = advice
            .step("or until the next boot", line)
            .back("or until the next boot", format!("echo {old} | sudo tee {PARAMETER}"));
    }
    if evidence.inventory.lacks_quirks_in_force() {
        advice = advice.caution(format!(
            "the report does not show the entries of other devices, which these lines replace: see `cat {PARAMETER}` and add them, with commas"
        ));
    }
    advice = unheard(advice, settings.unheard.iter())
        .step("in each case, then", "unplug the drive and plug it in again");
    let length = lasting.len().max(value.len());
    if length > VALUE_BYTES_MAX {
        advice = advice
            .caution(format!("the value has {length} characters and the kernel takes {VALUE_BYTES_MAX}"));
    }
    advice
}

/// The line of a place as it was, without entries that the kernel passes over.
fn line_without_placeholders(place: &SettingPlace) -> String {
    let readable = entry::readable(&place.value);
    if readable == place.value {
        place.line.clone()
    } else if readable.is_empty() {
        "remove the parameter".to_owned()
    } else {
        place.with(&readable)
    }
}

/// The line that has the kernel take another value at once; `None` where it has no `usb-storage` that could. The file is there
/// once the driver is.
fn until_next_boot(evidence: &Evidence<'_>, value: &str) -> Option<String> {
    let drivers = &evidence.inventory.drivers;
    let line = format!("echo {value} | sudo tee {PARAMETER}");
    if evidence.inventory.quirks.in_force.is_some() {
        return Some(line);
    }
    let may_be_there = matches!(drivers.usb_storage, Module::Loadable(_) | Module::Unknown)
        && !drivers.usb_storage_is_built_in
        && !drivers.is_without_usb_storage();
    let is_loaded_by_name = may_be_there && drivers.in_the_way_of("usb-storage").is_empty();
    is_loaded_by_name.then(|| format!("sudo modprobe usb-storage && {line}"))
}

/// Adds a caution for each of the lines that are not read.
fn unheard<'a>(advice: Advice, places: impl Iterator<Item = &'a SettingPlace>) -> Advice {
    places.fold(advice, |advice, place| {
        advice.caution(format!(
            "{} has such a line, `{}`, which is not read: usb-storage is built into this kernel",
            place.path, place.line
        ))
    })
}

/// The line in our file of modprobe's. Files are read in the order of their names, whatever directory they are in, and
/// the last value of a parameter counts (modprobe.d(5)).
fn in_modprobe_file(advice: Advice, settings: &QuirkSettings, value: &str) -> Advice {
    let later =
        settings.places.iter().rfind(|place| place.path != COMMAND_LINE && place.file_name() > MODPROBE_NAME);
    let advice = match later {
        Some(place) => advice.caution(format!(
            "{} is read after {MODPROBE_FILE}, and its quirks= would win: change the line there, `{}`",
            place.path, place.line
        )),
        None => advice,
    };
    let back = format!("or in {MODPROBE_FILE}, then rebuild the initramfs and reboot");
    match settings.places.iter().rfind(|place| place.path == MODPROBE_FILE) {
        Some(place) => advice
            .step(
                format!(
                    "or in {MODPROBE_FILE}, in place of the line there, then rebuild the initramfs and reboot"
                ),
                place.with(value),
            )
            .back(back, line_without_placeholders(place)),
        None => advice
            .step(
                format!("or in {MODPROBE_FILE}, then rebuild the initramfs and reboot"),
                format!("options usb-storage quirks={value}"),
            )
            .back(back, "remove the line"),
    }
}

/// Has UAS used for a drive for which it is ignored: what other flags there are stay, except the one that would have
/// `usb-storage` leave the drive alone if `uas` fails.
pub(super) fn use_uas(evidence: &Evidence<'_>) -> Advice {
    let quirks = &evidence.quirks;
    let by_user_alone = !quirks.built_in.ignores_uas();
    let letters = letters_on_uas(quirks);
    // An entry that says nothing else would keep the flags away that are built in.
    if by_user_alone && (letters.is_empty() || letters == quirks.built_in.uas().letters()) {
        return take_entry_back("Use UAS: remove the entry", evidence);
    }
    let advice = quirk(evidence, "Use UAS nevertheless", letters_on_uas).wish();
    if by_user_alone {
        return advice;
    }
    advice
        .caution(
            "Linux ignores UAS here because drives of this kind have lost their link or data: have a backup",
        )
        .caution("an entry replaces all built-in flags, so the line repeats those to keep")
}

/// The flags of `uas`, which is to have the drive, stay.
fn letters_on_uas(quirks: &Quirks) -> String {
    quirks.uas().without(Flag::IgnoreUas).without(Flag::IgnoreDevice).letters()
}

/// The same where nothing that is known here has the kernel ignore it.
pub(super) fn use_uas_unlike_kernel(evidence: &Evidence<'_>) -> Advice {
    quirk(evidence, "Use UAS nevertheless", letters_on_uas)
        .caution("a removed entry applies until the drive is unplugged; reattaching it may be enough")
        .caution("a kernel that ignores UAS has a reason: have a backup")
}

/// For what counts when a drive is plugged in.
pub(super) fn plug_in_again() -> Advice {
    Advice::new("Apply the quirks in force").step("now", "unplug the drive and plug it in again")
}

/// Has `usb-storage` take a drive that a quirk has it leave alone.
fn take_with_usb_storage(evidence: &Evidence<'_>) -> Advice {
    let quirks = &evidence.quirks;
    let letters = |quirks: &Quirks| quirks.storage().without(Flag::IgnoreDevice).letters();
    if letters(quirks) == quirks.built_in.storage().letters() {
        return take_entry_back("Let usb-storage bind: remove the entry", evidence);
    }
    quirk(evidence, "Let usb-storage bind: drop the letter i", letters)
}

/// Takes the user's own entry away, in every place that has it.
fn take_entry_back(purpose: &str, evidence: &Evidence<'_>) -> Advice {
    let (id, settings) = (evidence.device.id, &evidence.inventory.quirks);
    let mut advice = Advice::new(purpose);
    let of_id = |place: &&SettingPlace| entry::letters_of(&place.value, id).is_some();
    for place in settings.places.iter().filter(of_id) {
        let rest = entry::without(&place.value, id);
        let line = if rest.is_empty() { format!("take out: {}", place.line) } else { place.with(&rest) };
        let where_to = self::place(&place.path);
        advice = advice.step(where_to, line).back(where_to, &place.line);
    }
    advice = unheard(advice, settings.unheard.iter().filter(of_id));
    let value = settings.value();
    let rest = entry::without(value, id);
    let rest = if rest.is_empty() { "''" } else { &rest };
    if let Some(line) = until_next_boot(evidence, rest) {
        advice = advice
            .step("until the next boot", line)
            .back("until the next boot", format!("echo {value} | sudo tee {PARAMETER}"));
    }
    advice.step("in each case, then", "unplug the drive and plug it in again")
}

/// Returns advice that no rule has: how to have the other transport, where there is one, or a driver at all.
pub(super) fn otherwise(evidence: &Evidence<'_>, transport: &Transport, decision: Decision) -> Vec<Advice> {
    match transport {
        Transport::Uas { .. } if evidence.speaks_bot() => vec![keep_off_uas(evidence)],
        Transport::None if matches!(decision, Decision::LeftAlone(_)) => {
            vec![take_with_usb_storage(evidence)]
        }
        Transport::None if decision == Decision::NotTaken && evidence.usb_storage_is_there() => {
            vec![probe_again(evidence)]
        }
        Transport::None if decision == Decision::NotTaken => get_usb_storage(evidence),
        _ => Vec::new(),
    }
}

/// Has `usb-storage` registered, wherever it is.
fn get_usb_storage(evidence: &Evidence<'_>) -> Vec<Advice> {
    let drivers = &evidence.inventory.drivers;
    let is_forbidden = !drivers.in_the_way_of("usb-storage").is_empty();
    let advice = match &drivers.usb_storage {
        _ if drivers.usb_storage_is_built_in => Some(start_what_is_built_in()),
        Module::Absent(_) => Some(install_module("usb-storage", evidence)),
        _ if is_forbidden => None,
        _ => Some(load_module("usb-storage", evidence)),
    };
    let allow = is_forbidden.then(|| allow_module("usb-storage", evidence));
    advice.into_iter().chain(allow).collect()
}

/// Keeps a drive off UAS.
pub(super) fn keep_off_uas(evidence: &Evidence<'_>) -> Advice {
    let advice = quirk(evidence, "Keep it off UAS (slower: one command at a time)", letters_off_uas)
        .cost("one command at a time: random I/O at queue depth becomes several times slower");
    if evidence.is_left_alone() { advice.caution(WITHOUT_I) } else { advice }
}

/// The caution for a line that has usb-storage take what a quirk has it leave alone.
const WITHOUT_I: &str =
    "the present entry has the letter i, which makes usb-storage ignore the drive; the line drops it";

/// The flags of `usb-storage`, which is to have the drive, stay.
fn letters_off_uas(quirks: &Quirks) -> String {
    let flags = quirks.storage().without(Flag::IgnoreDevice);
    flags.union(Flags::of(&[Flag::IgnoreUas])).letters()
}

/// Lets SMART through.
pub(super) fn let_smart_through(evidence: &Evidence<'_>) -> Advice {
    let letters = |quirks: &Quirks| quirks.of_driver(evidence.driver()).without(Flag::NoAta1x).letters();
    quirk(evidence, "Allow ATA pass-through, and with it SMART", letters).wish().caution(
        "Linux blocks it because such bridges drop the link on ATA pass-through; try it on an idle drive",
    )
}

/// Undone by `rmmod`: `modprobe -r uas` would unload `usb-storage` as well, and drives that it has would be without a driver.
pub(super) fn load_module(name: &str, evidence: &Evidence<'_>) -> Advice {
    Advice::new("Load the driver")
        .step("now", format!("sudo modprobe {name}"))
        .step("if nothing happens", probe_line(evidence))
        .back("to unload it again", format!("sudo rmmod {name}"))
}

/// For a driver that the kernel has as a module, or may have, and that is not installed.
pub(super) fn install_module(name: &str, evidence: &Evidence<'_>) -> Advice {
    let release = evidence.inventory.release.as_deref().unwrap_or("$(uname -r)");
    let advice = Advice::new("Get the driver")
        .step(
            "it is in the kernel's package of modules",
            format!("linux-modules-extra-{release} (Ubuntu), linux-image-{release} (Debian)"),
        )
        .step("then", format!("sudo modprobe {name}"));
    if name != "uas" {
        return advice;
    }
    if !evidence.speaks_bot() {
        return advice.caution("this drive has no Bulk-Only setting: without uas it does not work at all");
    }
    let advice = advice
        .caution("with the letter u, usb-storage binds to the drive instead")
        .step("or, without it, on the kernel command line", keep_off_line(evidence));
    if evidence.is_left_alone() { advice.caution(WITHOUT_I) } else { advice }
}

fn keep_off_line(evidence: &Evidence<'_>) -> String {
    let letters = letters_off_uas(&evidence.quirks_at_boot());
    format!(
        "usb-storage.quirks={}",
        entry::with(evidence.inventory.quirks.at_boot(), evidence.device.id, &letters)
    )
}

/// A file, as one that can be changed.
fn place(path: &str) -> &str {
    if path == COMMAND_LINE { "on the kernel command line" } else { path }
}

/// Has a driver loaded that lines and words keep from it: all of them are named, since each of them would. A word of the kernel's own
/// counts as long as the kernel runs that was started with it.
pub(super) fn allow_module(name: &str, evidence: &Evidence<'_>) -> Advice {
    let in_the_way = evidence.inventory.drivers.in_the_way_of(name);
    let mut advice = Advice::new("Allow the driver").caution(POLICY);
    for (one, rest) in &in_the_way {
        let line = rest.clone().unwrap_or_else(|| format!("take out: {}", one.line));
        advice = advice.step(place(&one.path), line).back(place(&one.path), &one.line);
    }
    let load = format!("sudo modprobe {name}");
    let advice = if in_the_way.iter().any(|(one, _)| one.means == ForbiddingMeans::Kernel) {
        advice
            .step("then, since the kernel refuses it until the next boot", "sudo reboot")
            .step("if it is not loaded then", load)
    } else {
        advice.step("then", load)
    };
    advice.step("if nothing happens", probe_line(evidence))
}

/// The caution before a driver is allowed.
const POLICY: &str =
    "such a line is mostly policy, as hardening guides recommend: ask the administrator of this machine";

pub(super) fn probe_again(evidence: &Evidence<'_>) -> Advice {
    Advice::new("Make the kernel probe the interface again").step("now", probe_line(evidence))
}

/// The command that gives an interface without a driver back to the kernel.
pub fn give_back_command(interface: &str) -> String {
    format!("echo {interface} | sudo tee /sys/bus/usb/drivers_probe")
}

fn probe_line(evidence: &Evidence<'_>) -> String {
    give_back_command(&evidence.interface.name)
}

/// For a kernel that has no UAS, or has no `usb-storage` either: no package brings a module that it was not built for.
pub(super) fn other_kernel(is_without_usb_storage: bool) -> Advice {
    let (what, lines) = if is_without_usb_storage {
        ("Use a kernel with usb-storage and UAS", "CONFIG_USB_STORAGE=m, CONFIG_USB_UAS=m")
    } else {
        ("Use a kernel with UAS", "CONFIG_USB_UAS=m")
    };
    Advice::new(what)
        .step("another one of your distribution, or your own", "no package has the module for this one")
        .step("in its configuration", lines)
}

/// For a driver that is a part of the kernel and is not registered all the same.
pub(super) fn start_what_is_built_in() -> Advice {
    Advice::new("Let the kernel start its built-in driver")
        .step(
            "on the kernel command line",
            "take out nousb, usbcore.nousb and initcall_blacklist=, if they are there",
        )
        .step("else look in the kernel's log", "sudo dmesg | grep -i -e uas -e usbcore")
        .caution("no module is missing; do not install one")
}

pub(super) fn other_controller() -> Advice {
    Advice::new("Use another port")
        .step("a port of another xHCI controller", "the drive uses UAS with streams there")
        .step("a USB 2 port or cable", "UAS needs no streams there, at 480 Mb/s")
}

pub(super) fn without_streams(driver: &str) -> Advice {
    let advice = Advice::new("Export the drive in another way");
    if driver == "vhci_hcd" {
        return advice
            .step("USB/IP has no streams", "export it at high speed: UAS without streams, queue depth 30");
    }
    advice.step("this controller is virtual", "high speed needs no streams")
}

pub(super) fn drive_without_uas(evidence: &Evidence<'_>) -> Advice {
    let slow =
        !evidence.device.speed.is_super() && evidence.device.speed != crate::inventory::LinkSpeed::Unknown;
    let advice = Advice::new("UAS is not possible on this machine").step(
        "the enclosure does not offer it",
        "ask the vendor for other firmware; many bridges support BOT only",
    );
    if slow {
        advice.step("some bridges offer UAS at SuperSpeed only", "try a USB 3 port and cable")
    } else {
        advice
    }
}

pub(super) fn below_super_speed() -> Advice {
    Advice::new("Use UAS without streams")
        .step("a USB 2 port or cable", "UAS needs no streams there, at 480 Mb/s")
}

pub(super) fn firmware() -> Advice {
    Advice::new("The descriptors cannot be corrected on this machine")
        .step("they are in the enclosure's firmware", "ask the vendor for other firmware")
}

/// The rule that has the kernel unmap blocks of a drive by a command.
pub(super) fn unmap_rule(device: &UsbDevice, command: UnmapCommand) -> Advice {
    const FILE: &str = "/etc/udev/rules.d/70-uaskit-trim.rules";
    let rule = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"scsi_disk\", ATTRS{{idVendor}}==\"{:04x}\", \
         ATTRS{{idProduct}}==\"{:04x}\", ATTR{{provisioning_mode}}=\"{}\"",
        device.id.vendor,
        device.id.product,
        command.mode()
    );
    Advice::new(format!("Send TRIM as {command}"))
        .wish()
        .step(format!("in {FILE}"), rule)
        .step("then", "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=scsi_disk --action=change")
        .back("remove the file", format!("sudo rm {FILE}"))
        .caution(format!("check first that the drive supports {command}; otherwise the result is undefined"))
}

/// Asks a disk what it says about unmapping.
pub(super) fn ask_unmap(node: &str) -> Advice {
    Advice::new("Check whether the drive supports UNMAP")
        .wish()
        .step(
            "the maximum unmap LBA count must not be 0 (-1 means no limit)",
            format!("sudo sg_vpd --page=bl /dev/{node}"),
        )
        .step("and LBPU must be 1", format!("sudo sg_vpd --page=lbpv /dev/{node}"))
}

/// Moves the drive to where it gets what it needs.
pub(super) fn other_port(purpose: &str, what: &str, why: &str) -> Advice {
    Advice::new(purpose).step(what, why)
}

/// Moves it to where there is more.
pub(super) fn more_power() -> Advice {
    other_port(
        "Give it more power",
        "a hub with its own power supply, or the enclosure's own adapter",
        "hard disks draw 900 mA or more at spin-up, whatever bMaxPower says",
    )
}

/// Has the kernel use a device that is not authorized.
pub(super) fn authorize(device: &UsbDevice) -> Advice {
    let place = device.attribute("authorized");
    Advice::new("Authorize the device")
        .step("until it is unplugged", format!("echo 1 | sudo tee {place}"))
        .step(
            "permanently, if USBGuard is in use: allow-device with -p and the number that it lists",
            "sudo usbguard list-devices",
        )
        .back("until it is unplugged", format!("echo 0 | sudo tee {place}"))
        .caution("a policy may forbid USB drives on this machine")
}

/// Has the kernel set the configuration that the drive offers.
pub(super) fn configure(device: &UsbDevice) -> Advice {
    let value = device.described().map_or(1, |one| one.head.value);
    Advice::new("Set a configuration").step("first", "unplug the drive and plug it in again").step(
        "if nothing happens",
        format!("echo {value} | sudo tee {}", device.attribute("bConfigurationValue")),
    )
}
