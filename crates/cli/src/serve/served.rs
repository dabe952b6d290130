//! Starts the server of either export; its events become lines.
//!
//! Left out: how a line is printed, which is `report`'s.

use super::report;
use crate::args::{DoorbellsArgument, DriveArguments, FaultArgument, ServeArguments};
use crate::failure::Failure;
use drive::Drive;
use serde_json::{Value, json};
use server::net::{Address, Config, Event, Server};
use server::usbredir::Limits;
use server::vfio_user::{self, Function, PLANNED_FAULTS_MAX, PlannedFault};
use std::fmt::Display;
use std::path::Path;

/// Payload of the client that may wait for the device before the client is read no further.
const PAYLOAD_BYTES_SOFT: usize = 8 << 20;

/// Something that `serve` prints.
#[derive(Debug)]
pub(super) struct Line {
    /// A line for people; of an event a sentence without its first capital and its full stop.
    pub(super) text: String,
    /// Its name for programs.
    pub(super) name: &'static str,
    pub(super) fields: Value,
}

/// Serves a drive over usbredir.
pub(super) fn usbredir(
    address: Address,
    allow_remote: bool,
    drive: Drive,
    mut on_event: impl FnMut(Line) + Send + 'static,
) -> Result<Server, Failure> {
    let config = Config {
        address,
        allow_remote,
        version: concat!("uaskit ", env!("CARGO_PKG_VERSION")).into(),
        limits: Limits { payload_bytes_soft: PAYLOAD_BYTES_SOFT, ..Limits::default() },
    };
    let on_event = move |event| line_of(&event).into_iter().for_each(&mut on_event);
    Server::start(config, drive, on_event).map_err(super::unbound)
}

/// Serves a controller with drives over vfio-user.
pub(super) fn vfio_user(
    path: &Path,
    drives: Vec<Drive>,
    doorbells: DoorbellsArgument,
    faults: &[PlannedFault],
    mut on_event: impl FnMut(Line) + Send + 'static,
) -> Result<Server, Failure> {
    let mut function = Function::new(drives).map_err(|_| {
        Failure::usage("too many drives: the controller has 15 ports of USB 2.0 and 15 of USB 3")
    })?;
    if !faults.iter().all(|fault| function.plan_fault(*fault)) {
        return Err(Failure::usage(format!(
            "too many faults: {} (maximum {PLANNED_FAULTS_MAX})",
            faults.len()
        )));
    }
    if doorbells == DoorbellsArgument::Mapped {
        function = function
            .with_mapped_doorbells()
            .map_err(|error| Failure::new("cannot create memory for doorbells").because(error))?;
    }
    let on_event = move |event| line_of(&event).into_iter().for_each(&mut on_event);
    vfio_user::serve(path, function, on_event).map_err(super::unbound)
}

/// `None` for what is printed elsewhere: the address with QEMU's arguments, the end when the signal arrived.
fn line_of<F: Display>(event: &Event<F>) -> Option<Line> {
    let text = event.to_string();
    let (name, fields) = match event {
        Event::Listening(_) | Event::Stopping => return None,
        Event::Connected { .. } => ("connected", None),
        Event::Greeted(_) => ("greeted", None),
        // The name is stable.
        Event::Rejected { .. } => ("turned_away", None),
        Event::Transport(transport) => {
            ("transport", Some(json!({ "transport": report::describe(*transport) })))
        }
        Event::PortTransport { port, transport } => {
            ("transport", Some(json!({ "port": port, "transport": report::describe(*transport) })))
        }
        Event::Disconnected(_) => ("disconnected", None),
        Event::AcceptFailed(_) => ("accept_failed", None),
    };
    let fields = fields.unwrap_or_else(|| json!({ "message": text }));
    Some(Line { text, name, fields })
}

/// Checks the faults that a drive is described with: those of the controller are not of one drive.
pub(super) fn check_faults(faults: &[FaultArgument]) -> Result<(), Failure> {
    match of_controller(faults).next() {
        None => Ok(()),
        Some(fault) => {
            Err(Failure::usage(format!("{fault} is a fault of the controller, which all drives share"))
                .try_this(format!("Name it outside of the drive's description: --fault {fault}")))
        }
    }
}

fn of_controller(faults: &[FaultArgument]) -> impl Iterator<Item = PlannedFault> {
    faults.iter().filter_map(|fault| match fault {
        FaultArgument::Controller(fault) => Some(*fault),
        FaultArgument::Drive(_) => None,
    })
}

/// The faults of the controller. Those of drives are planned with the drives.
pub(super) fn controller_faults(arguments: &ServeArguments) -> Result<Vec<PlannedFault>, Failure> {
    arguments.drives.iter().try_for_each(|drive| check_faults(&drive.faults))?;
    let faults = &arguments.drive.faults;
    let planned: Vec<PlannedFault> = of_controller(faults).collect();
    if let (Some(fault), None) = (planned.first(), &arguments.vfio_user) {
        return Err(Failure::usage(format!(
            "{fault} is a fault of the controller, which usbredir does not have"
        ))
        .try_this("Export with --vfio-user unix:PATH."));
    }
    let of_drive = faults.iter().find(|fault| matches!(fault, FaultArgument::Drive(_)));
    match of_drive.filter(|_| !arguments.drives.is_empty()) {
        Some(fault) => {
            Err(Failure::usage(format!("{fault} is a fault of one drive, and --drive describes several"))
                .try_this(format!("Name it with the drive: --drive image=PATH,fault={fault}")))
        }
        None => Ok(planned),
    }
}

/// The drives that the arguments describe: those of `--drive`, or the one of the other options.
pub(super) fn descriptions<'a>(
    one: &'a DriveArguments,
    several: &'a [DriveArguments],
) -> Result<Vec<&'a DriveArguments>, Failure> {
    let has_one = one.image.is_some() || one.ram.is_some() || one.optical || one.floppy;
    match (has_one, several) {
        (true, []) => Ok(vec![one]),
        (_, [_, ..]) => Ok(several.iter().collect()),
        (false, []) => Err(Failure::usage("no drive is described")
            .try_this("Name an image, --ram SIZE, --optical, or --drive image=PATH with --vfio-user.")),
    }
}
