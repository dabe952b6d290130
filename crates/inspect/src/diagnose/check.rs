//! Further checks for a user of an enclosure: is the link as fast as it could be, is there power enough, are serial
//! numbers one's own, does TRIM arrive, does SMART, how often was the link reset, do the settings agree?
//!
//! A check says good, not good, or that it could not be known, with what was read. None of them changes anything or
//! sends the drive a SCSI command.

mod link;
mod power;
mod resets;
mod serial;
mod settings;
mod smart;
mod trim;

use super::advice::Advice;
use super::cause::{Cause, CauseKind};
use super::evidence::{Evidence, Reading};
use crate::log::History;

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Cable and port against what the drive can.
    Link,
    /// bMaxPower against what the port gives.
    Power,
    /// Serial numbers that repeat.
    Serial,
    /// TRIM reaches the drive.
    Trim,
    /// ATA pass-through, and so SMART.
    Smart,
    /// Errors that the drive itself reports.
    Media,
    /// Trouble in the kernel's log.
    Resets,
    /// Settings in force against those for the next boot.
    Settings,
}

/// How it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing is wrong.
    Good,
    /// Something is, or is likely to be.
    Concern,
    /// It could not be known.
    Unknown,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject.
    pub kind: CheckKind,
    /// How it looks.
    pub health: Health,
    /// Why, in a sentence.
    pub because: String,
    /// Values that were read, and where.
    pub readings: Vec<Reading>,
    /// Facts that root could read in addition.
    pub root_adds: Option<String>,
    /// Advice on it.
    pub advice: Vec<Advice>,
}

impl CheckKind {
    /// Its name, for programs and people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Power => "power",
            Self::Serial => "serial",
            Self::Trim => "trim",
            Self::Smart => "smart",
            Self::Media => "media",
            Self::Resets => "resets",
            Self::Settings => "settings",
        }
    }

    fn says(self, health: Health, because: impl Into<String>) -> Check {
        let because = because.into();
        Check { kind: self, health, because, readings: Vec::new(), root_adds: None, advice: Vec::new() }
    }
}

impl Check {
    /// The check after a cause was found that it reports.
    fn with_cause(mut self, cause: &Cause) -> Self {
        self.because = match (self.health, self.because.is_empty(), self.kind) {
            (Health::Concern, false, _) if self.because.contains(&cause.because) => self.because,
            (Health::Concern, false, _) => format!("{}; {}", self.because, cause.because),
            _ => cause.because.clone(),
        };
        if self.health != Health::Concern {
            self.readings.clear();
        }
        // An empty slot is no fault, and shows nothing of what it holds.
        self.health = if cause.kind == CauseKind::NoMedium { Health::Unknown } else { Health::Concern };
        for reading in &cause.readings {
            if !self.readings.contains(reading) {
                self.readings.push(reading.clone());
            }
        }
        self
    }

    fn seen(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }

    fn advise(mut self, advice: Advice) -> Self {
        self.advice.push(advice);
        self
    }

    fn root_adds(mut self, what: &str) -> Self {
        self.root_adds = Some(what.to_owned());
        self
    }
}

/// Every check of one interface.
pub(super) fn all(evidence: &Evidence<'_>, history: Option<&History<'_>>, causes: &[Cause]) -> Vec<Check> {
    let mut checks = vec![link::check(evidence), power::check(evidence), serial::check(evidence)];
    checks.extend(trim::checks(evidence));
    checks.extend([
        smart::check(evidence),
        resets::check(evidence, history, causes),
        settings::check(evidence),
    ]);
    for cause in causes {
        let kind = cause.kind.check();
        let at = checks.iter().position(|check| check.kind == kind);
        let check = match at {
            Some(at) => checks.remove(at),
            None => kind.says(Health::Concern, ""),
        };
        // The log's counts stay where they are.
        let at = at.unwrap_or(checks.len().saturating_sub(1));
        checks.insert(at, check.with_cause(cause));
    }
    if causes.iter().any(|cause| cause.kind.is_serious()) {
        checks.iter_mut().for_each(|check| check.advice.retain(|advice| !advice.is_wish));
    }
    checks
}
