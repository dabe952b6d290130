//! Media in a loop: their descriptors, and the control requests that change them.
//!
//! The tokens of all loops are here. Left out: what a request does, which is in `control`.

use super::control::{Change, ControlRequest, DriveSet};
use super::shared::{Shared, Snapshot};
use drive::Drive;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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
    pub(crate) fn carry_out<S: DriveSet>(
        &mut self,
        shared: &Shared,
        registry: &Registry,
        drives: &mut S,
        snapshot: impl Fn(&S) -> Snapshot,
    ) -> bool {
        let mut requests = std::mem::take(&mut self.0);
        requests.extend(shared.take_requests());
        let mut has_changed = false;
        for request in requests {
            let snapshot = snapshot(drives);
            let leave = |event: BorrowedFd<'_>| {
                // It fails only if the descriptor is not registered, and then there is nothing to undo.
                let _ = registry.deregister(&mut SourceFd(&event.as_raw_fd()));
            };
            // Without its descriptor a medium is looked at whenever anything else happens.
            match request.carry_out(drives, snapshot, leave) {
                Change::None => continue,
                Change::Waits(request) => {
                    self.0.push(request);
                    continue;
                }
                Change::Attached(port) => {
                    let _ = drives.drive(port).map(|drive| register_media(registry, drive));
                }
                Change::Inserted(port, unit) => {
                    let media = drives.drive(port).map(Drive::media).unwrap_or_default();
                    let medium = media.get(usize::from(unit));
                    if let Some(event) = medium.and_then(|medium| medium.event_fd()) {
                        let mut source = SourceFd(&event.as_raw_fd());
                        let _ = registry.register(&mut source, MEDIUM, Interest::READABLE);
                    }
                }
            }
            has_changed = true;
        }
        has_changed
    }

    /// Drops them; the channel of each ends.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
