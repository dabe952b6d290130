//! The target of `uaskit check`: a drive in memory, or an interface claimed from the kernel driver.
//!
//! Left out: the tests. Always true: nothing is written to a port before its owner has confirmed.

use super::resume::ResumeFile;
use crate::args::{CheckArguments, LieArgument};
use crate::bench::confirm::{Consent, WriteTarget};
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use bus::Speed;
use conformance::{
    BUFFERS, CheckEvent, CheckPlan, DeviceBus, DriverBus, HardwareDriver, RunStore, SCATTERED_BYTES,
    Scorecard, Test, TestedDevice, VIRTUAL_BYTES, VirtualDriveConfig, WRITE_BYTES, WriteLimits,
};
use device::Transports;
use inspect::inventory::{Inventory, Scope, UsbDevice};
use inspect::tree::Tree;
use std::ffi::OsStr;
use units::ByteCount;
use usb::attachment::{AttachError, BareInterface};
use usb::host_bus::HardwareBus;

/// A drive, and the results of its tests.
pub(super) struct Checked {
    /// The drive, in words.
    pub(super) name: String,
    pub(super) speed: Speed,
    pub(super) scorecard: Scorecard,
}

const TARGETS: &str = "Name a USB port (2-1.4, see `uaskit list`) or a USB id (174c:55aa); \
                       or check uaskit's own drive in memory: uaskit check --virtual";

/// Runs tests on what the arguments name.
pub(super) fn check(
    arguments: &CheckArguments,
    tests: &[Test],
    resume: Option<&mut ResumeFile>,
    watch: &mut dyn FnMut(CheckEvent<'_>) -> bool,
) -> Result<Checked, Failure> {
    if arguments.is_virtual {
        return in_memory(arguments, tests, watch);
    }
    let tree = usb::running_tree();
    let inventory = Inventory::read(&tree, Scope::Brief);
    let device = find(&inventory, arguments.target.as_deref(), TARGETS)?;
    confirm(&tree, device, arguments)?;
    let bytes = arguments.size.unwrap_or(WRITE_BYTES);
    let writes = WriteLimits { bytes, ..WriteLimits::default() };
    let store = resume.map(|file| file as &mut dyn RunStore);
    let plan = CheckPlan { tests, writes, store };
    let scorecard =
        at_port("check", &tree, device, |bus, tested| conformance::check(bus, tested, plan, watch))?;
    let name = format!("{} at port {}", device.title(), device.port);
    Ok(Checked { name, speed: device.speed.on_the_bus(), scorecard })
}

/// Finds the drive that a port or an id names. `targets` is the advice if it names none.
pub(crate) fn find<'i>(
    inventory: &'i Inventory,
    target: Option<&OsStr>,
    targets: &'static str,
) -> Result<&'i UsbDevice, Failure> {
    let Some(target) = target else {
        return Err(Failure::usage("TARGET is missing").try_this(targets));
    };
    let name = shown(target);
    let found = target.to_str().map(|name| inventory.find(name)).unwrap_or_default();
    match found.as_slice() {
        [device] if device.is_storage() => Ok(*device),
        [_] => Err(Failure::new(format!("{name} is not a USB mass-storage device")).try_this(targets)),
        [] => Err(Failure::new(format!("there is no USB device {name}")).try_this(targets)),
        several => Err(Failure::usage(format!("{} devices are named {name}", several.len()))
            .try_this("Name one of their ports (see `uaskit list`).")),
    }
}

/// Announces what is overwritten, and asks the owner before.
fn confirm(tree: &Tree, device: &UsbDevice, arguments: &CheckArguments) -> Result<(), Failure> {
    if arguments.write.is_none() && arguments.whole.is_none() {
        return Ok(());
    }
    let target = WriteTarget::of_port(device, 0, tree);
    target.check_unused()?;
    let size = arguments.size.unwrap_or(WRITE_BYTES);
    let levels = [
        ("--write", &arguments.write, Some(size), data_announcement(size)),
        ("--whole", &arguments.whole, None, WHOLE_ANNOUNCEMENT.to_owned()),
    ];
    let mut largest = None;
    for (option, named, size, announcement) in levels {
        let Some(named) = named else { continue };
        let named = named.as_deref();
        let consent = Consent { option, named, size, yes: arguments.yes, is_elsewhere: false };
        target.check(consent)?;
        message!("{announcement}");
        largest = Some(consent);
    }
    largest.map_or(Ok(()), |consent| target.ask(consent))
}

/// Announces level 3.
const WHOLE_ANNOUNCEMENT: &str =
    "Level 3, capacity: every block is written, then read; this takes as long as the drive needs for both.";

/// Announces level 2: what it does, and how long it takes.
fn data_announcement(size: ByteCount) -> String {
    let moved = size.0.saturating_add(6 * size.min(SCATTERED_BYTES).0);
    let seconds = (moved as f64 / 100e6).ceil();
    format!(
        "Level 2, data: blocks are written in any order and read, over each transport, then {size} in order; \
         about {seconds} s at 100 MB/s."
    )
}

fn refused(verb: &str, name: &str, error: AttachError) -> Failure {
    let what = format!("cannot {verb} {name}");
    match error {
        AttachError::InUse { .. } => Failure::refused(what).because(error).try_this("Unmount it first."),
        error => Failure::new(what).because(error),
    }
}

/// Takes the drive at a port from the kernel's driver, works with it and returns it.
pub(crate) fn at_port<R>(
    verb: &str,
    tree: &Tree,
    device: &UsbDevice,
    work: impl FnOnce(&mut dyn DeviceBus, &TestedDevice) -> R,
) -> Result<R, Failure> {
    let opened = BareInterface::open(tree, device, BUFFERS)
        .map_err(|error| refused(verb, &device.port.to_string(), error))?;
    let BareInterface { bus, first, device: of_device, configuration } = opened;
    let tested = TestedDevice::of(&of_device, &configuration, device.speed.on_the_bus())
        .map_err(|error| Failure::new("cannot read the descriptors").because(error))?;
    let mut bus = DriverBus::new(HardwareDriver(bus), first);
    let result = work(&mut bus, &tested);
    let HardwareDriver(interface) = bus.into_driver();
    interface.close().map_err(|error| Failure::new(error.to_string()))?;
    Ok(result)
}

fn in_memory(
    arguments: &CheckArguments,
    tests: &[Test],
    watch: &mut dyn FnMut(CheckEvent<'_>) -> bool,
) -> Result<Checked, Failure> {
    for (option, named) in [("--write", &arguments.write), ("--whole", &arguments.whole)] {
        if let Some(Some(named)) = named {
            let named = shown(named);
            return Err(Failure::usage(format!(
                "{option} names {named}, but the target is the virtual drive"
            ))
            .try_this(format!("Use {option} without a name: the virtual drive has no data to lose.")));
        }
    }
    let speed = arguments.speed.into();
    let size = arguments.size.unwrap_or(VIRTUAL_BYTES);
    let faults = arguments.faults.iter().copied().chain(LieArgument::in_messages(&arguments.lies)).collect();
    let honest = VirtualDriveConfig::new(speed, Transports::Dual);
    let config = VirtualDriveConfig {
        announced: size,
        lies: LieArgument::about_blocks(&arguments.lies),
        faults,
        loses_attentions: arguments.lies.contains(&LieArgument::LostAttention),
        temperature_c: LieArgument::temperature(&arguments.lies).unwrap_or(honest.temperature_c),
        ..honest
    };
    let mut bus =
        config.plug().map_err(|error| Failure::new("cannot make the virtual drive").because(error))?;
    let bus: &mut dyn DeviceBus = &mut bus;
    let tested = TestedDevice::read(bus, speed).map_err(Failure::new)?;
    let scorecard = conformance::check(bus, &tested, CheckPlan::of(tests), watch);
    Ok(Checked { name: "uaskit's virtual drive".into(), speed, scorecard })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_level_2_is_that_of_what_is_moved() {
        assert_eq!(
            data_announcement(WRITE_BYTES),
            "Level 2, data: blocks are written in any order and read, over each transport, then 1 GiB in order; about 27 s at \
             100 MB/s."
        );
    }
}
