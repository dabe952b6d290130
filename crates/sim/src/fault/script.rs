//! Fault scripts as text: `status-lost@3,unplug@120,slow@7/2`, or `none`. A fault without a drive
//! number belongs to the first drive.

use super::FaultKind;
use std::fmt;
use std::str::FromStr;

/// A fault at an opportunity of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptedFault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Number of the opportunity of the drive, from 0.
    pub nth: u32,
    /// Number of the drive from 0; from 1 in text.
    pub drive: u8,
}

/// A list of faults in order of occurrence or of the text. The order has no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultScript(Vec<ScriptedFault>);

/// A malformed fault script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultScriptError {
    /// The malformed part.
    pub part: String,
}

impl FaultScript {
    /// The empty script.
    pub(super) const EMPTY: Self = Self(Vec::new());

    /// Returns the faults.
    pub fn faults(&self) -> &[ScriptedFault] {
        &self.0
    }

    /// Returns the number of faults.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the script is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of faults of a kind.
    pub fn count(&self, kind: FaultKind) -> usize {
        self.0.iter().filter(|strike| strike.kind == kind).count()
    }

    /// Returns whether any fault from `first` on is visible above the link.
    pub fn is_felt(&self, first: usize, is_on_bus: bool) -> bool {
        self.0.iter().skip(first).any(|strike| strike.kind.is_felt(is_on_bus))
    }

    /// Returns whether the script contains a fault.
    pub fn contains(&self, strike: ScriptedFault) -> bool {
        self.0.contains(&strike)
    }

    /// Appends a fault.
    pub fn push(&mut self, strike: ScriptedFault) {
        self.0.push(strike);
    }

    /// Returns the faults that are not in `others`.
    #[must_use]
    pub fn unless_in(&self, others: &Self) -> Self {
        self.0.iter().filter(|strike| !others.contains(**strike)).copied().collect()
    }

    /// Returns the script without the faults `start..end`.
    #[must_use]
    pub fn without(&self, start: usize, end: usize) -> Self {
        let rest = self.0.iter().enumerate().filter(|(at, _)| !(start..end).contains(at));
        rest.map(|(_, strike)| *strike).collect()
    }
}

impl FromIterator<ScriptedFault> for FaultScript {
    fn from_iter<I: IntoIterator<Item = ScriptedFault>>(strikes: I) -> Self {
        Self(strikes.into_iter().collect())
    }
}

impl fmt::Display for ScriptedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind, self.nth)?;
        match self.drive {
            0 => Ok(()),
            drive => write!(f, "/{}", u16::from(drive) + 1),
        }
    }
}

impl fmt::Display for FaultScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return f.write_str(NONE) };
        first.fmt(f)?;
        others.iter().try_for_each(|strike| write!(f, ",{strike}"))
    }
}

impl FromStr for FaultScript {
    type Err = FaultScriptError;

    fn from_str(text: &str) -> Result<Self, FaultScriptError> {
        if text == NONE {
            return Ok(Self::EMPTY);
        }
        let strike = |part: &str| {
            let (name, place) = part.split_once('@')?;
            let (nth, drive) = place.split_once('/').unwrap_or((place, "1"));
            let drive = drive.parse::<u8>().ok()?.checked_sub(1)?;
            Some(ScriptedFault { kind: FaultKind::of_name(name)?, nth: nth.parse().ok()?, drive })
        };
        text.split(',')
            .map(|part| strike(part).ok_or_else(|| FaultScriptError { part: part.into() }))
            .collect()
    }
}

impl fmt::Display for FaultScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid fault `{}`: expected KIND@NUMBER or KIND@NUMBER/DRIVE, such as {}@3",
            self.part,
            FaultKind::StatusLost
        )
    }
}

impl std::error::Error for FaultScriptError {}

/// Text of the empty script.
const NONE: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_round_trips_as_text() {
        let text = "status-lost@3,medium-error@17/2,unplug@0";
        let script: FaultScript = text.parse().unwrap();
        assert_eq!(script.faults()[1], ScriptedFault { kind: FaultKind::MediumError, nth: 17, drive: 1 });
        assert_eq!("slow@3/1".parse::<FaultScript>().unwrap().to_string(), "slow@3");
        assert_eq!(script.to_string(), text);
        assert_eq!("none".parse(), Ok(FaultScript::default()));
        assert_eq!(FaultScript::default().to_string(), "none");
    }

    #[test]
    fn an_invalid_script_is_reported_by_its_part() {
        for (text, part) in [
            ("", ""),
            ("slow", "slow"),
            ("slow@1,hot@2", "hot@2"),
            ("slow@-1", "slow@-1"),
            ("slow@1/0", "slow@1/0"),
        ] {
            assert_eq!(text.parse::<FaultScript>(), Err(FaultScriptError { part: part.into() }));
        }
    }

    #[test]
    fn unless_in_keeps_the_order() {
        let of = |text: &str| text.parse::<FaultScript>().unwrap();
        let script = of("slow@9,slow@1,slow@1/2,unplug@1");
        assert_eq!(script.unless_in(&of("slow@1,slow@7")).to_string(), "slow@9,slow@1/2,unplug@1");
        assert!(script.unless_in(&script).is_empty());
    }

    #[test]
    fn ranges_can_be_removed() {
        let script: FaultScript = "slow@0,slow@1,slow@2".parse().unwrap();
        assert_eq!(script.without(1, 2).to_string(), "slow@0,slow@2");
        assert!(script.without(0, 3).is_empty());
    }
}
