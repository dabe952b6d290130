//! `uaskit check`: whether a USB drive follows the standards that it claims.
//!
//! A [`DeviceBus`] carries transfers and control requests to a device without a transport in between, so that a test can
//! send what no correct host would. A [`Probe`] records each step on it. A [`Test`] of the [`suite`] has a clause, says
//! what its failure means to an owner, and returns a [`Verdict`] of what the device did. [`check`] runs the tests and
//! recovers the device after each.
//!
//! Buses: [`drive::loopback`] (a drive in memory) and any [`usb::host_bus::HardwareBus`].
//!
//! Always true: nothing is written to the medium by the tests of level 1; a step that gets no answer ends by its time limit; a test never passes
//! without the answer that it asks for. Where a standard leaves the answer open, the verdict is a note.

mod area;
mod blocks;
mod bus;
mod device;
mod exchange;
mod findings;
mod hardware;
mod limits;
mod preparation;
mod probe;
mod properties;
mod queue;
pub mod record;
mod resume;
mod scorecard;
pub mod suite;
mod test;
mod virtual_drive;

pub use bus::{BUFFERS, Completed, ControlFailure, DeviceBus, Driver, DriverBus, SLOTS, Transfer};
pub use device::TestedDevice;
pub use exchange::{AnnouncedData, BotExchange, ScsiAnswer};
pub use hardware::HardwareDriver;
pub use limits::{POWER_CYCLES, SCATTERED_BYTES, WRITE_BYTES, WriteLimits};
pub use probe::{BusStep, Probe};
pub use resume::{DriveIdentity, RepeatedBlock, RunStore, WholeRun, WrongBlocks};
pub use scorecard::{CheckEvent, CheckPlan, Outcome, Scorecard, check};
pub use test::{Group, Run, Test, Verdict};
pub use virtual_drive::{VIRTUAL_BYTES, VirtualBus, VirtualDriveConfig, VirtualDriveError, recorded_drive};
