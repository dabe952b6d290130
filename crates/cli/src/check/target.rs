//! The target of `uaskit check`: a drive in memory, or an interface claimed from the kernel driver.

use crate::args::CheckArguments;
use crate::bench::confirm::{Consent, WriteTarget};
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use bus::Speed;
use conformance::{
    BUFFERS, CheckEvent, DeviceBus, DriverBus, HardwareDriver, Scorecard, Test, TestedDevice, VIRTUAL_BYTES,
    lying_drive,
};
use device::Transports;
use inspect::inventory::{Inventory, Scope, UsbDevice};
use inspect::tree::Tree;
use std::ffi::OsStr;
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
    watch: &mut dyn FnMut(CheckEvent<'_>) -> bool,
) -> Result<Checked, Failure> {
    if arguments.is_virtual {
        return in_memory(arguments, tests, watch);
    }
    let Some(target) = &arguments.target else {
        return Err(Failure::usage("TARGET is missing").try_this(TARGETS));
    };
    let tree = usb::running_tree();
    let inventory = Inventory::read(&tree, Scope::Brief);
    let name = shown(target);
    let found = target.to_str().map(|name| inventory.find(name)).unwrap_or_default();
    let device = match found.as_slice() {
        [device] if device.is_storage() => *device,
        [_] => return Err(Failure::new(format!("{name} is not a USB mass-storage device")).try_this(TARGETS)),
        [] => return Err(Failure::new(format!("there is no USB device {name}")).try_this(TARGETS)),
        several => {
            return Err(Failure::usage(format!("{} devices are named {name}", several.len()))
                .try_this("Name one of their ports (see `uaskit list`)."));
        }
    };
    if let Some(named) = &arguments.whole {
        confirm(&tree, device, named.as_deref(), arguments.yes)?;
    }
    let opened = BareInterface::open(&tree, device, BUFFERS).map_err(|error| refused(&name, error))?;
    at_port(opened, device, tests, watch)
}

/// Asks the owner before everything on a drive is overwritten.
fn confirm(tree: &Tree, device: &UsbDevice, named: Option<&OsStr>, yes: bool) -> Result<(), Failure> {
    let target = WriteTarget::of_port(device, 0, tree);
    target.check_unused()?;
    let consent = Consent { option: "--whole", named, size: None, yes, is_elsewhere: false };
    target.check(consent)?;
    message!(
        "Level 3, capacity: every block is written, then read; this takes as long as the drive needs for both."
    );
    target.ask(consent)
}

fn refused(name: &str, error: AttachError) -> Failure {
    let what = format!("cannot check {name}");
    match error {
        AttachError::InUse { .. } => Failure::refused(what).because(error).try_this("Unmount it first."),
        error => Failure::new(what).because(error),
    }
}

fn at_port(
    opened: BareInterface,
    device: &UsbDevice,
    tests: &[Test],
    watch: &mut dyn FnMut(CheckEvent<'_>) -> bool,
) -> Result<Checked, Failure> {
    let BareInterface { bus, first, device: of_device, configuration } = opened;
    let speed = device.speed.on_the_bus();
    let tested = TestedDevice::of(&of_device, &configuration, speed)
        .map_err(|error| Failure::new("cannot read the descriptors").because(error))?;
    let mut bus = DriverBus::new(HardwareDriver(bus), first);
    let scorecard = conformance::check(&mut bus, &tested, tests, watch);
    let HardwareDriver(interface) = bus.into_driver();
    interface.close().map_err(|error| Failure::new(error.to_string()))?;
    Ok(Checked { name: format!("{} at port {}", device.title(), device.port), speed, scorecard })
}

fn in_memory(
    arguments: &CheckArguments,
    tests: &[Test],
    watch: &mut dyn FnMut(CheckEvent<'_>) -> bool,
) -> Result<Checked, Failure> {
    if let Some(Some(named)) = &arguments.whole {
        return Err(Failure::usage(format!(
            "--whole names {}, but the target is the virtual drive",
            shown(named)
        ))
        .try_this("Use --whole without a name: the virtual drive has no data to lose."));
    }
    let speed = arguments.speed.into();
    let size = arguments.size.unwrap_or(VIRTUAL_BYTES);
    let mut bus = lying_drive(speed, Transports::Dual, size, &arguments.lies)
        .map_err(|error| Failure::new("cannot make the virtual drive").because(error))?;
    let bus: &mut dyn DeviceBus = &mut bus;
    let tested = TestedDevice::read(bus, speed).map_err(Failure::new)?;
    let scorecard = conformance::check(bus, &tested, tests, watch);
    Ok(Checked { name: "uaskit's virtual drive".into(), speed, scorecard })
}
