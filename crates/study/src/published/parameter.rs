//! Where a constant is: the kind of its part, the part, and its key.
//!
//! Left out: its value, which a catalogue has. Always true: the text of a path reads back as the same path.

use crate::parts::{Catalogue, Constant, PartKind};
use std::fmt;
use std::str::FromStr;

/// Where a number is: `drivers/turbo packing.longest`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterPath {
    /// The kind of the part.
    pub kind: PartKind,
    /// The part, by name.
    pub part: String,
    /// Its number.
    pub number: String,
}

impl ParameterPath {
    /// Finds its constant in a catalogue.
    pub fn find<'a>(&self, catalogue: &'a Catalogue) -> Option<&'a Constant> {
        let constants = &catalogue.find(self.kind, &self.part)?.constants;
        constants.iter().find(|constant| constant.place == self.number)
    }
}

impl FromStr for ParameterPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected `folder/part table.number`, not `{text}`");
        let (part, number) = text.split_once(' ').ok_or_else(expected)?;
        let (folder, part) = part.split_once('/').ok_or_else(expected)?;
        let kind = PartKind::of_folder(folder).ok_or_else(|| format!("no such kind of part: `{folder}`"))?;
        Ok(Self { kind, part: part.into(), number: number.into() })
    }
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.kind.folder(), self.part, self.number)
    }
}
