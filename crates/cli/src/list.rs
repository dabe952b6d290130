//! `uaskit list`: the USB drives of a machine.
//!
//! Reads what sysfs shows without root, and the kernel's log where it may. Left out: why a drive is where it is, which `why` says.

pub(crate) mod json;
pub(crate) mod lines;

use crate::args::ListArguments;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::{self, escape, shown};
use crate::source;
use crate::stdout::{Output, terminal_columns};
use inspect::diagnose::give_back_command;
use inspect::diagnose::{Decision, Diagnoser, Diagnosis, Expected, Rule};
use inspect::inventory::{Forbidding, Interface, Inventory, Module, Scope, Transport, UsbDevice};
use inspect::tree::{Tree, Unread};
use std::path::Path;

pub(crate) fn run(arguments: &ListArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let subject = source::open(&arguments.machine.from)?;
    if let Some(file) = &arguments.record {
        output_file::check_replaceable(file, output_file::Kind::Machine)?;
        return subject.tree().map_or(Ok(()), |tree| record(&tree.recording(), file, out));
    }
    let inventory = subject.inventory(Scope::List);
    let text = if arguments.udev {
        udev_rules(&inventory)
    } else if arguments.json {
        sanitize::json(&format!("{:#}\n", json::inventory(&inventory, arguments.all)))
    } else {
        let diagnoser = Diagnoser::of(&inventory);
        lines::inventory(&inventory, arguments.all, terminal_columns())
            + &forsaken(&diagnoser, &inventory)
            + &lines::not_there(&diagnoser, &inventory)
            + &lines::exceeded_limits(&inventory)
    };
    out.print(&text)
}

/// Writes what a diagnosis reads, which is all that a list reads and more.
fn record(tree: &Tree, file: &Path, out: &mut Output<'_>) -> Result<(), Failure> {
    let inventory = Inventory::read(tree, Scope::Whole { log: None });
    let text = tree.record().unwrap_or_default().to_string();
    output_file::write(file, output_file::Kind::Machine, text.as_bytes())?;
    let mut text = format!(
        "Wrote what uaskit reads of this machine to {}. Review the file before you send it.\n",
        shown(file)
    );
    if inventory.log == Some(Err(Unread::Refused)) {
        text += "The kernel log is missing; record as root to include it.\n";
    }
    out.print(&text)
}

/// The rule that udev needs, for the drives that are attached.
fn udev_rules(inventory: &Inventory) -> String {
    let mut ids: Vec<_> = inventory.storage().map(|device| (device.id, device.title())).collect();
    ids.sort();
    ids.dedup_by_key(|(id, _)| *id);
    let mut text = "\
# /etc/udev/rules.d/70-uaskit.rules: gives the user at the console access to these drives.
# To apply it: sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=usb
"
    .to_owned();
    if ids.is_empty() {
        text += "# No USB drive is attached.\n";
    }
    for (id, title) in ids {
        text += &format!(
            "# {}\nSUBSYSTEM==\"usb\", ENV{{DEVTYPE}}==\"usb_device\", ATTR{{idVendor}}==\"{:04x}\", \
             ATTR{{idProduct}}==\"{:04x}\", TAG+=\"uaccess\"\n",
            escape(&title),
            id.vendor,
            id.product
        );
    }
    text
}

/// Interfaces of mass storage without a driver, or claimed by a program.
fn forsaken(diagnoser: &Diagnoser<'_>, inventory: &Inventory) -> String {
    let mut text = String::new();
    for (device, interface) in storage_interfaces(inventory) {
        match Transport::of(device, interface) {
            // A drive that is not configured is reported once.
            Transport::None => {
                let line = without_driver(diagnoser, inventory, device, interface);
                text += if text.ends_with(&line) { "" } else { &line };
            }
            Transport::Claimed => {
                text += &format!(
                    "\n{}: a program has claimed this interface (usbfs).\n",
                    escape(&interface.name)
                );
            }
            _ => {}
        }
    }
    text
}

/// A program that is killed while it holds an interface leaves it without a driver, though the drivers are there. Where
/// the rules leave no driver, the kernel cannot bind one again.
fn without_driver(
    diagnoser: &Diagnoser<'_>,
    inventory: &Inventory,
    device: &UsbDevice,
    interface: &Interface,
) -> String {
    let drivers = [&inventory.drivers.uas, &inventory.drivers.usb_storage];
    let (name, port) = (escape(&interface.name), escape(&device.port));
    let diagnoses = diagnoser.diagnose(device);
    let diagnosis = diagnoses.iter().find(|one| one.interface == interface.name);
    let unconfigured = diagnosis.and_then(|diagnosis| diagnosis.judgement(Rule::Configured));
    if let Some(judgement) = unconfigured {
        let because = escape(&judgement.because);
        return format!("\n{port} has no driver: {because}.\nWhat to do: uaskit why {port}\n");
    }
    if let Some(because) = diagnosis.and_then(needs_more) {
        let because = escape(&because);
        let elsewhere: String = diagnosis.into_iter().flat_map(elsewhere).collect();
        let is_loaded = diagnosis.is_none_or(|one| one.decision != Decision::Decided(Rule::Loaded));
        let in_the_way = inventory.drivers.in_the_way_of("uas").into_iter().filter(|_| !is_loaded);
        let forbidding = forbidding(in_the_way.map(|(one, _)| one));
        return format!(
            "\n{name} has no driver: {because}.\n{elsewhere}{forbidding}What to do: uaskit why {port}\n"
        );
    }
    let is_registered = drivers.iter().any(|driver| matches!(driver, Module::Registered(_)));
    let forbidding = forbidding(inventory.drivers.forbidden.iter());
    if !is_registered && !forbidding.is_empty() {
        return format!(
            "\n{name} has no driver: neither uas nor usb-storage is loaded. These lines prevent it:\n\
             {forbidding}What to do: uaskit why {port}\n"
        );
    }
    if !is_registered {
        return format!(
            "\n{name} has no driver: neither uas nor usb-storage is loaded. To load them:\n  \
             sudo modprobe uas\nMore: uaskit why {port}\n"
        );
    }
    let unknown = match diagnosis.map(|one| one.decision) {
        Some(Decision::Supposed(rule)) if rule.is_question() => {
            format!(
                "This does not help if uas has refused the drive; it is unknown whether {}.\n",
                rule.title()
            )
        }
        _ => String::new(),
    };
    format!(
        "\n{name} has no driver. If a program that had claimed it was killed, reattach the kernel driver:\n  \
         {}\n{unknown}More: uaskit why {port}\n",
        escape(&give_back_command(&interface.name))
    )
}

/// Lines that keep drivers from being loaded, with their files.
fn forbidding<'a>(lines: impl Iterator<Item = &'a Forbidding>) -> String {
    lines.map(|one| format!("  {}: {}\n", escape(&one.path), escape(&one.line))).collect()
}

/// Lines of where the drive would have a driver, if that is not here: nothing that is typed on this machine helps it.
fn elsewhere(diagnosis: &Diagnosis) -> Vec<String> {
    let Decision::Decided(rule) = diagnosis.decision else { return Vec::new() };
    let advice = diagnosis.judgement(rule).into_iter().flat_map(|judgement| &judgement.advice);
    let of_hardware = advice.filter(|advice| rule.is_question() && advice.back.is_empty());
    of_hardware
        .flat_map(|advice| &advice.steps)
        .map(|step| format!("  {}: {}\n", escape(&step.place), escape(&step.line)))
        .collect()
}

/// Why no driver that is loaded would take an interface, where that is certain: the driver that it is left to is not
/// there, a rule keeps `uas` from a drive that speaks nothing else, or a quirk has it left alone.
fn needs_more(diagnosis: &Diagnosis) -> Option<String> {
    match diagnosis.decision {
        Decision::Decided(Rule::Loaded) => {
            diagnosis.judgement(Rule::Loaded).map(|loaded| loaded.because.clone())
        }
        // What uas has refused once it refuses again, and usb-storage does not speak it.
        Decision::Decided(rule) if rule.is_question() && diagnosis.expected == Expected::NoDriver => {
            let because = &diagnosis.judgement(rule)?.because;
            Some(format!("{because}, and the drive supports UAS only"))
        }
        Decision::LeftAlone(_) => {
            Some("usb-storage.quirks= has the letter i, which makes the drivers ignore the device".to_owned())
        }
        _ => None,
    }
}

fn storage_interfaces(inventory: &Inventory) -> impl Iterator<Item = (&UsbDevice, &Interface)> {
    let of_device = |device| Interface::storage_of(device).map(move |interface| (device, interface));
    inventory.devices.iter().flat_map(of_device)
}
