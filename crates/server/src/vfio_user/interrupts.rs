//! Eventfds that a client has set for the vectors of the function.
//!
//! Masks and tables are the client's; here is only whom to signal. Always true: signaling does not wait, since a
//! descriptor is made non-blocking when it comes.

use super::config_space::MSIX_VECTORS;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, write};
use std::os::fd::OwnedFd;
use wire::vfio_user::Interrupt;

/// The vectors of each type, and their eventfds.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    msi: [Option<OwnedFd>; 1],
    msix: [Option<OwnedFd>; MSIX_VECTORS as usize],
}

impl Interrupts {
    /// How many vectors a type has.
    pub(super) const fn count(kind: Interrupt) -> u32 {
        match kind {
            Interrupt::Msi => 1,
            Interrupt::MsiX => MSIX_VECTORS,
            _ => 0,
        }
    }

    fn vectors(&mut self, kind: Interrupt) -> &mut [Option<OwnedFd>] {
        match kind {
            Interrupt::Msi => &mut self.msi,
            Interrupt::MsiX => &mut self.msix,
            _ => &mut [],
        }
    }

    /// Sets the eventfds of the vectors from `start` on; without descriptors they get none.
    pub(super) fn set(
        &mut self,
        kind: Interrupt,
        start: u32,
        count: u32,
        fds: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        if !fds.is_empty() && fds.len() != count as usize {
            return Err(Errno::INVAL);
        }
        let end = start.checked_add(count).filter(|end| *end <= Self::count(kind)).ok_or(Errno::INVAL)?;
        for fd in &fds {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let mut fds = fds.into_iter();
        for vector in &mut self.vectors(kind)[start as usize..end as usize] {
            *vector = fds.next();
        }
        Ok(())
    }

    /// Disables all vectors of a type.
    pub(super) fn disable(&mut self, kind: Interrupt) {
        self.vectors(kind).fill_with(|| None);
    }

    /// Signals the interrupter. It has no effect if the guest has enabled neither type.
    pub(super) fn signal(&self) {
        if let Some(fd) = self.msix.iter().chain(&self.msi).flatten().next() {
            // A counter that is full has not been looked at: one more says no more.
            let _ = write(fd, &1u64.to_ne_bytes());
        }
    }

    /// Signals vectors of a type, as a test by the client.
    pub(super) fn trigger(&mut self, kind: Interrupt, start: u32, count: u32) {
        let vectors = self.vectors(kind).iter().skip(start as usize).take(count as usize);
        for fd in vectors.flatten() {
            let _ = write(fd, &1u64.to_ne_bytes());
        }
    }
}
