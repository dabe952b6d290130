//! Why an experiment does not run: what failed, why, and what to do.

use std::fmt;

/// An experiment that cannot run or has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyError {
    /// Whether the request itself makes no sense, rather than its run.
    pub is_usage: bool,
    /// The failure.
    pub what: String,
    /// The reason.
    pub why: Option<String>,
    /// A remedy for the user to apply.
    pub remedy: Option<String>,
}

impl StudyError {
    /// A run failed.
    pub fn new(what: impl Into<String>) -> Self {
        Self { is_usage: false, what: what.into(), why: None, remedy: None }
    }

    /// The request makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self { is_usage: true, ..Self::new(what) }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(self, why: impl fmt::Display) -> Self {
        Self { why: Some(why.to_string()), ..self }
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn try_this(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n  {remedy}"))
    }
}

impl std::error::Error for StudyError {}
