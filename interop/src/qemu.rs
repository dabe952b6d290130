//! The machine: what it is made of ([`Machine`]) and the running one ([`Vm`]).
//!
//! A q35 board in software emulation with a SuperSpeed controller `xhci`, a high-speed one `ehci`, a serial
//! console that goes to a log, and a virtio serial port for the guest's agent. USB disks of QEMU's own serve
//! as peers to compare with; drives of other programs come over usbredir.

mod machine;
mod qmp;
mod vm;

pub use machine::{Bus, Firmware, Machine, Redirect};
pub use qmp::Qmp;
pub use vm::Vm;
