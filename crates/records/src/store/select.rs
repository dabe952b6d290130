//! Selects runs.

use super::{RunId, Store};
use crate::error::StoreError;
use rusqlite::OptionalExtension;
use std::convert::Infallible;
use std::str::FromStr;

/// Which runs to list. Words match anywhere, ignoring case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Match in the name of the setup.
    pub setup: Option<String>,
    /// Match in the drive.
    pub drive: Option<String>,
    /// Match in the label.
    pub label: Option<String>,
    /// List the newest runs; [`Filter::LIMIT_MAX`] at most.
    pub limit: u32,
}

impl Filter {
    /// Maximum of listed runs.
    pub const LIMIT_MAX: u32 = 10_000;
}

/// Selects one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Counted back from the last: `last`, `last~1`.
    Last(u32),
    /// A number, or a label; the newest of several with that label.
    Named(String),
}

impl FromStr for Selector {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let back = match text.strip_prefix("last") {
            Some("") => Some(0),
            Some(back) => back.strip_prefix('~').and_then(|back| back.parse().ok()),
            None => None,
        };
        Ok(back.map_or_else(|| Self::Named(text.to_owned()), Self::Last))
    }
}

impl Store {
    /// Finds the selected run; none if it does not exist.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn find(&self, selector: &Selector) -> Result<Option<RunId>, StoreError> {
        let one = |sql: &str, value: &dyn rusqlite::ToSql| {
            let found = self.connection.query_row(sql, [value], |row| row.get(0).map(RunId));
            found.optional().map_err(StoreError::of(&self.path))
        };
        match selector {
            Selector::Last(back) => one("SELECT id FROM run ORDER BY id DESC LIMIT 1 OFFSET ?1", back),
            Selector::Named(name) => {
                let by_number = match name.parse::<i64>() {
                    Ok(number) => one("SELECT id FROM run WHERE id = ?1", &number)?,
                    Err(_) => None,
                };
                match by_number {
                    Some(id) => Ok(Some(id)),
                    None => one("SELECT id FROM run WHERE label = ?1 ORDER BY id DESC LIMIT 1", name),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_counts_backwards_and_everything_else_is_a_name() {
        let of = |text: &str| text.parse::<Selector>().expect("anything is one");
        assert_eq!(of("last"), Selector::Last(0));
        assert_eq!(of("last~2"), Selector::Last(2));
        for name in ["lasting", "last~", "last~x", "12", "before"] {
            assert_eq!(of(name), Selector::Named(name.into()));
        }
    }
}
