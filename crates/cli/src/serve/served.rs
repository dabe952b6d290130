//! The server of either export, as `serve` sees it: started, asked, stopped; its events as lines.
//!
//! Left out: how a line is printed, which is `report`'s.

use super::report;
use crate::args::DriveArguments;
use crate::failure::Failure;
use drive::{Counters, Drive, FlushError};
use serde_json::{Value, json};
use server::net::{self, Address, Config, Controller, Snapshot};
use server::usbredir::Limits;
use server::vfio_user::{self, Function};
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Payload of the client that may wait for the device before the client is read no further.
const PAYLOAD_BYTES_SOFT: usize = 8 << 20;

/// The name of the event, which is stable.
const REJECTED: &str = "turned_away";

/// A server that runs.
#[derive(Debug)]
pub(super) enum Served {
    Usbredir(net::Server),
    VfioUser(vfio_user::Server),
}

/// An event, as it is printed.
#[derive(Debug)]
pub(super) struct Line {
    /// A sentence without its first capital and its full stop.
    pub(super) text: String,
    /// Its name for programs.
    pub(super) name: &'static str,
    pub(super) fields: Value,
}

/// What remains when a server has stopped.
pub(super) struct Outcome {
    pub(super) drives: Vec<Drive>,
    pub(super) flushed: Result<(), FlushError>,
    pub(super) outcome: io::Result<()>,
}

impl Outcome {
    /// What all drives have done.
    pub(super) fn counters(&self) -> Counters {
        self.drives.iter().map(Drive::counters).fold(Counters::default(), Counters::plus)
    }
}

impl Served {
    /// Serves a drive over usbredir.
    pub(super) fn usbredir(
        address: Address,
        allow_remote: bool,
        drive: Drive,
        mut on_event: impl FnMut(Line) + Send + 'static,
    ) -> Result<Self, Failure> {
        let config = Config {
            address,
            allow_remote,
            version: concat!("uaskit ", env!("CARGO_PKG_VERSION")).into(),
            limits: Limits { payload_bytes_soft: PAYLOAD_BYTES_SOFT, ..Limits::default() },
        };
        let on_event = move |event: net::Event| usbredir_line(&event).into_iter().for_each(&mut on_event);
        net::Server::start(config, drive, on_event).map(Self::Usbredir).map_err(super::unbound)
    }

    /// Serves a controller with drives over vfio-user.
    pub(super) fn vfio_user(
        path: &Path,
        drives: Vec<Drive>,
        mut on_event: impl FnMut(Line) + Send + 'static,
    ) -> Result<Self, Failure> {
        let function = Function::new(drives).map_err(|_| {
            Failure::usage("too many drives: the controller has 15 ports of USB 2.0 and 15 of USB 3")
        })?;
        let on_event =
            move |event: vfio_user::Event| vfio_user_line(&event).into_iter().for_each(&mut on_event);
        vfio_user::Server::start(path, function, on_event).map(Self::VfioUser).map_err(super::unbound)
    }

    pub(super) fn stop(&self) {
        match self {
            Self::Usbredir(server) => server.stopper().stop(),
            Self::VfioUser(server) => server.stopper().stop(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        match self {
            Self::Usbredir(server) => server.snapshot(),
            Self::VfioUser(server) => server.snapshot(),
        }
    }

    pub(super) fn controller(&self) -> Controller {
        match self {
            Self::Usbredir(server) => server.controller(),
            Self::VfioUser(server) => server.controller(),
        }
    }

    pub(super) const fn address(&self) -> &Address {
        match self {
            Self::Usbredir(server) => server.address(),
            Self::VfioUser(server) => server.address(),
        }
    }

    pub(super) fn join(self) -> Outcome {
        match self {
            Self::Usbredir(server) => {
                let net::ServerExit { drive, flushed, outcome } = server.join();
                Outcome { drives: vec![drive], flushed, outcome }
            }
            Self::VfioUser(server) => {
                let vfio_user::ServerExit { drives, flushed, outcome } = server.join();
                Outcome { drives, flushed, outcome }
            }
        }
    }
}

fn line(event: &impl Display, name: &'static str) -> Line {
    let text = event.to_string();
    let fields = json!({ "message": text });
    Line { text, name, fields }
}

/// `None` for what is printed elsewhere: the address with QEMU's arguments, the end when the signal arrived.
fn usbredir_line(event: &net::Event) -> Option<Line> {
    use net::Event;
    Some(match event {
        Event::Listening(_) | Event::Stopping => return None,
        Event::Connected { .. } => line(event, "connected"),
        Event::Greeted(_) => line(event, "greeted"),
        Event::Rejected { .. } => line(event, REJECTED),
        Event::Transport(transport) => {
            let fields = json!({ "transport": report::describe(*transport) });
            Line { fields, ..line(event, "transport") }
        }
        Event::Disconnected(_) => line(event, "disconnected"),
        Event::AcceptFailed(_) => line(event, "accept_failed"),
    })
}

fn vfio_user_line(event: &vfio_user::Event) -> Option<Line> {
    use vfio_user::Event;
    Some(match event {
        Event::Listening(_) | Event::Stopping => return None,
        Event::Connected { .. } => line(event, "connected"),
        Event::Rejected { .. } => line(event, REJECTED),
        Event::Transport { port, transport } => {
            let fields = json!({ "port": port, "transport": report::describe(*transport) });
            Line { fields, ..line(event, "transport") }
        }
        Event::Disconnected(_) => line(event, "disconnected"),
        Event::AcceptFailed(_) => line(event, "accept_failed"),
    })
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
