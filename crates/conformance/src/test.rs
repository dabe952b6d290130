//! A test: what it asks, by which clause, and what an answer means.

use crate::probe::Probe;
use quirks::{BotPlan, UasPlan};

/// The subject of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Descriptors and standard requests.
    Usb,
    /// Bulk-Only Transport.
    Bot,
    /// USB Attached SCSI.
    Uas,
    /// Commands, over whichever transport there is.
    Scsi,
    /// Whether data are kept as they were written.
    Data,
    /// Whether all blocks are there.
    Capacity,
}

impl Group {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 6] = [Self::Usb, Self::Bot, Self::Uas, Self::Scsi, Self::Data, Self::Capacity];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usb => "USB",
            Self::Bot => "Bulk-Only Transport",
            Self::Uas => "USB Attached SCSI",
            Self::Scsi => "SCSI",
            Self::Data => "Data",
            Self::Capacity => "Capacity",
        }
    }
}

/// The verdict of a test on a device's behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As required.
    Pass,
    /// Another behaviour than required, in words.
    Fail(String),
    /// Permitted, and known to cause trouble.
    Warning(String),
    /// Behaviour that the standard leaves open, as this device shows it.
    Note(String),
    /// Not tested, and why.
    NotTested(String),
}

impl Verdict {
    /// Passes if `condition` holds, else fails with these words.
    pub fn of(condition: bool, otherwise: impl FnOnce() -> String) -> Self {
        if condition { Self::Pass } else { Self::Fail(otherwise()) }
    }

    /// Returns its name, for a table.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Warning(_) => "warning",
            Self::Note(_) => "note",
            Self::NotTested(_) => "not tested",
        }
    }

    /// Returns whether there is nothing to repair.
    pub const fn is_harmless(&self) -> bool {
        !matches!(self, Self::Fail(_) | Self::Warning(_))
    }

    /// Returns what was seen, if that is more than the name.
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Fail(words) | Self::Warning(words) | Self::Note(words) | Self::NotTested(words) => {
                Some(words)
            }
        }
    }
}

/// Words of a command that failed are a failure.
impl From<String> for Verdict {
    fn from(words: String) -> Self {
        Self::Fail(words)
    }
}

/// One test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// A stable name: `bot-case-5`.
    pub id: &'static str,
    /// Its subject.
    pub group: Group,
    /// The behaviour that the device has to show.
    pub title: &'static str,
    /// The standard and the clause that require it.
    pub clause: &'static str,
    /// The meaning of a failure to the owner of the drive.
    pub means: &'static str,
    /// The function that runs it, by the transport that it needs.
    pub run: Run,
}

/// The state that a test needs before it is run.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Nothing.
    Alone(fn(&mut Probe<'_>) -> Verdict),
    /// BOT is selected and the device ready.
    Bot(fn(&mut Probe<'_>, &BotPlan) -> Verdict),
    /// UAS is selected; the highest tag that can be used is known.
    Uas(fn(&mut Probe<'_>, &UasPlan, u16) -> Verdict),
    /// Either transport is selected and the device ready. An error is a command without a status.
    Scsi(fn(&mut Probe<'_>) -> Result<Verdict, String>),
}
