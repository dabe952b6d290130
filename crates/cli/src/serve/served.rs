//! Starts the server of either export; its events become lines.
//!
//! Left out: how a line is printed, which is `report`'s.

use super::report;
use crate::args::DriveArguments;
use crate::failure::Failure;
use drive::Drive;
use serde_json::{Value, json};
use server::net::{Address, Config, Event, Server};
use server::usbredir::Limits;
use server::vfio_user::{self, Function};
use std::fmt::Display;
use std::path::Path;

/// Payload of the client that may wait for the device before the client is read no further.
const PAYLOAD_BYTES_SOFT: usize = 8 << 20;

/// An event, as it is printed.
#[derive(Debug)]
pub(super) struct Line {
    /// A sentence without its first capital and its full stop.
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
    mut on_event: impl FnMut(Line) + Send + 'static,
) -> Result<Server, Failure> {
    let function = Function::new(drives).map_err(|_| {
        Failure::usage("too many drives: the controller has 15 ports of USB 2.0 and 15 of USB 3")
    })?;
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

/// The drives that the arguments describe: those of `--drive`, or the one of the other options.
pub(super) fn descriptions<'a>(
    one: &'a DriveArguments,
    several: &'a [DriveArguments],
) -> Result<Vec<&'a DriveArguments>, Failure> {
    let has_one = one.image.is_some() || one.ram.is_some();
    match (has_one, several) {
        (true, []) => Ok(vec![one]),
        (false, [_, ..]) => Ok(several.iter().collect()),
        (false, []) => Err(Failure::usage("no drive is described")
            .try_this("Name an image, --ram SIZE, or --drive image=PATH with --vfio-user.")),
        (true, [_, ..]) => Err(Failure::usage("IMAGE and --ram describe one drive, --drive several")
            .try_this("Name each image in its own --drive: --drive image=PATH.")),
    }
}
