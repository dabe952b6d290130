//! Comparison of transports and parts: each job on each configuration of a setup, the results, and
//! their presentation.
//!
//! A [`Configuration`] is one variant of a setup. [`runs`] measures configurations, [`findings`]
//! summarises results in sentences, [`page`] in charts. [`timeline`] and [`platter`] draw single
//! requests, and [`Point`] is one run of a sweep. Left out: command-line arguments, files, and
//! terminal tables.

mod beyond;
mod bottleneck;
mod chart;
mod column;
pub mod findings;
pub mod page;
pub mod platter;
mod point;
pub mod runs;
pub mod timeline;
mod wire;

pub use chart::stage_look;
pub use column::{Comparison, Configuration, Row, one, pairs, replaced, short};
pub use point::Point;
