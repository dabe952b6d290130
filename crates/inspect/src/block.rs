//! Block devices, whatever carries them, and who of the system uses one.
//!
//! [`BlockDevice`] is what sysfs says of one. [`objections`] lists what speaks against taking it away from the system or
//! writing over it, as far as files show; [`claim`] asks the kernel, which decides in the end.

mod device;
mod in_use;
mod loops;

pub use device::BlockDevice;
pub use in_use::{Objection, claim, is_same_file, loops_on, objections, objections_to_file};
