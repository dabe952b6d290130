//! Experiments on simulated machines: catalogue, setups, trials, and comparison with published figures.
//!
//! The physics is in [`sim`]; this crate decides what to build of it and what to measure. [`parts`] is the catalogue of real
//! parts, [`setups`] join them by name, [`assembly`] powers them on, [`measure`](mod@measure) runs workloads on them and [`trial`] is one
//! such run with its results. [`ceiling`] measures the maximum of each transport with a fixed-latency drive. [`explain`] and [`overhead`] observe a run:
//! where the time of each command goes, and what information units cost. [`published`] decides figures that others have published
//! and fits parts to them. [`sweep`] simulates grids of parts and jobs. [`swarm`] makes random machines with faults and checks the invariants of [`sim::check`] in them.
//!
//! Always true: nothing here reads a clock or starts a thread; the same seed gives the same digest.

pub mod assembly;
pub mod ceiling;
pub mod compare;
pub mod error;
pub mod explain;
pub mod measure;
pub mod overhead;
pub mod page;
pub mod parts;
pub mod plural;
pub mod progress;
pub mod published;
pub mod setups;
pub mod swarm;
pub mod sweep;
pub mod trial;
pub mod validate;
