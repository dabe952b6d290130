//! What was measured and simulated, kept in one file: `--save`, `uaskit history`, `uaskit diff`.
//!
//! A [`Run`] is one call of `uaskit bench` or `uaskit compare`: when, with which version, what was called, the [`Setup`], and a
//! [`ResultRow`] for each job on each transport, with the rates of its rounds. [`Store`] keeps runs in an SQLite file; [`schema`] says what is
//! in it and leads older files on. [`diff()`] holds two runs against each other and says better, worse, same, or that it cannot be told.
//! Left out: how anything is measured, and how it is shown.
//!
//! Always true: a run is there as a whole or not at all, and once [`Store::save`] has returned it is there, whatever ends the process; a file
//! that is not ours, newer than we are, or damaged is an error and stays as it is; reading never writes.

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
