//! Saved runs in one file: `--save`, `uaskit history`, `uaskit diff`.
//!
//! A [`Run`] is one invocation of `uaskit bench` or `uaskit compare`: time, version, command line,
//! [`Setup`], and a [`ResultRow`] for each job on each transport, with the rates of its rounds.
//! [`Store`] keeps runs in an SQLite file; [`schema`] defines and migrates its tables. [`diff()`]
//! compares two runs as better, worse, same or unclear. Left out: measurement and display.
//!
//! Always true: a run is saved completely or not at all, and is durable once [`Store::save`] has
//! returned; a file that is foreign, newer than this program, or damaged is an error and stays
//! unchanged; reading never writes.

mod default_path;
mod diff;
mod error;
mod run;
pub mod schema;
mod statistics;
mod store;

pub use default_path::default_path;
pub use diff::{Change, Diff, Note, Ratio, UnmatchedRow, Verdict, diff};
pub use error::StoreError;
pub use run::{Figures, ResultRow, Run, RunKind, Setup};
pub use store::{Filter, RunId, Saved, Selector, Store, Summary};
