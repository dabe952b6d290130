//! Real Linux kernels, firmware and tools in QEMU, to test a drive against independent software.
//!
//! A scenario reads top-down:
//!
//! 1. [`debian`] sees to it that QEMU and the tools are there, and says what is missing and why.
//! 2. [`guest::Image`] builds, once, a kernel and an initramfs with the tools that scenarios use.
//! 3. [`drive::Drive`] serves a virtual drive from its own process; it can be stopped, killed, frozen, restarted.
//! 4. [`qemu::Machine`] puts disks and drives on USB controllers and boots; [`qemu::Vm`] is the running machine.
//! 5. [`guest::Guest`] runs commands in it; [`tools`] reads what fio, iscsi-test-cu, usbmon and tshark say.
//! 6. [`book`] follows the tutorials, on the host and in a guest, as a reader does.
//!
//! QEMU always runs in software emulation (`-accel tcg`): it works everywhere, and a drive that is fast
//! enough for it is compared with QEMU's own devices under the same emulation, never with hardware.
//! Every wait has a limit, every error carries the tail of the console, nothing outlives the test.

pub mod book;
pub mod boot_image;
pub mod debian;
pub mod disc_image;
pub mod drive;
pub mod guest;
pub mod qemu;
pub mod scratch;
pub mod supervised;
pub mod tools;

mod child;
mod error;
mod shared;
mod trial;
mod wait;

pub use error::{Error, Result};
pub use shared::Shared;
pub use trial::trial;
