//! The simulated host controller: [`xhci_controller`] with the times of a [`Part`].
//!
//! The driver accesses registers and memory through [`DriverAccess`].

mod driver_access;
mod memory;
mod packet_delays;
mod part;

pub use driver_access::DriverAccess;
pub use memory::Memory;
pub(crate) use packet_delays::PacketDelays;
pub use part::Part;
