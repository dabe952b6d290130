//! `uaskit record`: prints what a drive says of itself, for `uaskit serve --as`.
//!
//! The kernel driver is reattached before anything is printed.

use crate::args::RecordArguments;
use crate::check::target;
use crate::failure::Failure;
use crate::sanitize;
use crate::stdout::Output;
use conformance::record::{Record, SerialNumbers, record};
use conformance::{DeviceBus, TestedDevice, VirtualDriveConfig};
use device::Transports;
use inspect::inventory::{Inventory, Scope};

pub(crate) fn run(arguments: &RecordArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let recorded = recorded(arguments)?;
    out.print(&sanitize::escape_lines(&recorded.to_toml()))
}

fn recorded(arguments: &RecordArguments) -> Result<Record, Failure> {
    let serials = if arguments.keep_serials { SerialNumbers::Original } else { SerialNumbers::Replaced };
    let made = |bus: &mut dyn DeviceBus, device: &TestedDevice| record(bus, device, serials);
    let result = if arguments.is_virtual {
        let speed = arguments.speed.into();
        let mut bus = VirtualDriveConfig::new(speed, Transports::Dual)
            .plug()
            .map_err(|error| Failure::new("cannot make the virtual drive").because(error))?;
        let device = TestedDevice::read(&mut bus, speed).map_err(Failure::new)?;
        made(&mut bus, &device)
    } else {
        let tree = usb::running_tree();
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = target::find(&inventory, arguments.target.as_deref(), TARGETS)?;
        target::at_port("record", &tree, device, made)?
    };
    result.map_err(|why| Failure::new("cannot record the drive").because(why))
}

const TARGETS: &str = "Name a USB port (2-1.4, see `uaskit list`) or a USB id (174c:55aa); \
                       or record uaskit's own drive in memory: uaskit record --virtual";
