//! Media in a loop: their descriptors, and the control requests that change them.
//!
//! The tokens of all loops are here. Left out: what a request does, which is in `control`.

use super::control::{Change, ControlRequest};
use super::shared::{Shared, Snapshot};
use drive::Drive;
use drive::medium::Medium;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::AsRawFd;

pub(crate) const LISTENER: Token = Token(0);
pub(crate) const CLIENT: Token = Token(1);
pub(crate) const WAKER: Token = Token(2);
/// The media, which need not be distinguished.
const MEDIUM: Token = Token(3);
/// A timer of the loop.
pub(crate) const ALARM: Token = Token(4);

/// Registers the descriptors of a drive's media.
pub(crate) fn register_media(registry: &Registry, drive: &Drive) -> io::Result<()> {
    for event in drive.event_fds() {
        registry.register(&mut SourceFd(&event.as_raw_fd()), MEDIUM, Interest::READABLE)?;
    }
    Ok(())
}

/// Requests that wait for commands to end.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests(Vec<ControlRequest>);

impl PendingRequests {
    /// Carries out what is pending, and what the owner has asked since. Whether there is more to do at once.
    pub(crate) fn carry_out(
        &mut self,
        shared: &Shared,
        registry: &Registry,
        drive: &mut Drive,
        snapshot: impl Fn(&Drive) -> Snapshot,
    ) -> bool {
        let mut requests = std::mem::take(&mut self.0);
        requests.extend(shared.take_requests());
        let mut has_inserted = false;
        for request in requests {
            let snapshot = snapshot(drive);
            let leave = |medium: &dyn Medium| {
                if let Some(event) = medium.event_fd() {
                    // It fails only if the descriptor is not registered, and then there is nothing to undo.
                    let _ = registry.deregister(&mut SourceFd(&event.as_raw_fd()));
                }
            };
            match request.carry_out(drive, snapshot, leave) {
                Change::None => {}
                Change::Waits(request) => self.0.push(request),
                Change::Inserted(unit) => {
                    has_inserted = true;
                    let medium = drive.media().get(usize::from(unit));
                    if let Some(event) = medium.and_then(|medium| medium.event_fd()) {
                        let mut source = SourceFd(&event.as_raw_fd());
                        // Without it the medium is looked at whenever anything else happens.
                        let _ = registry.register(&mut source, MEDIUM, Interest::READABLE);
                    }
                }
            }
        }
        has_inserted
    }

    /// Drops them; the channel of each ends.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
