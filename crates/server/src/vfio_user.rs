//! A USB controller with drives on vfio-user: a PCI device for a hypervisor in another process (vfio-user.rst of QEMU).
//!
//! ```text
//!   socket ── messages, descriptors ──► Session ── registers, maps ──► Function ──► HostController ──► drives
//!      ▲ ◄── replies ──                                 │  ▲ ◄── guest memory ──┘
//!   eventfds ◄── interrupts ────────────────────────────┘
//! ```
//!
//! A [`Session`] takes messages of one client and answers them; it has no socket. The [`Function`] is the PCI function:
//! configuration space, BAR 0 with the registers of an xHCI, memory of the guest, interrupts. [`serve`] starts the
//! thread with the socket. Registers are exact: each access of a driver is a message. With mapped doorbells
//! ([`Function::with_mapped_doorbells`]) doorbells and the interrupter are in memory that the guest stores to, and the thread
//! looks for what it has stored.
//!
//! Left out: migration, legacy interrupts (INTx), and memory that cannot be mapped: a driver that places its rings there sees
//! a Host System Error.
//!
//! Always true: nothing that a client sends makes the server panic, wait for the client, read outside of what was mapped, or
//! grow; after the reply to DMA_UNMAP that memory is not accessed. The only unsafe code is in `mapping`.

mod alarm;
mod config_space;
mod connection;
mod fault;
mod function;
mod interrupts;
mod mapping;
mod memory;
mod registers;
mod serve;
mod session;
#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use function::Function;
pub use memory::MappedMemory;
pub use serve::serve;
pub use session::Session;
pub use xhci_controller::{NotAControllerFault, PLANNED_FAULTS_MAX, PlannedFault};

/// Something that has happened at the socket.
pub type Event = crate::net::Event<Fault>;
/// Why a client was disconnected.
pub type Reason = crate::net::Reason<Fault>;
