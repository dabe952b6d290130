//! Comparison of transports and parts: each job on each column of a setup, what came out, and how it is shown.
//!
//! A [`Configuration`] is one variant of a setup. [`runs`] measures columns, [`findings`] puts results into sentences, [`page`] into charts.
//! [`timeline`] and [`platter`] draw single requests, and [`Point`] is one run of a sweep over parts and jobs. Left out: what
//! the command line says, files, and tables for a terminal, which are the caller's.

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
pub use column::{Configuration, Row, one, pairs, replaced, short};
pub use point::Point;
