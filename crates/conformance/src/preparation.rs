//! Runs a test on what it needs: the transport is selected, and the device is ready.
//!
//! Left out: what the tests do. Always true: what a test of BOT leaves behind is cleared before the next one.

use crate::probe::Probe;
use crate::test::{Run, Verdict};
use quirks::{BotPlan, UasPlan};

impl Run {
    /// Prepares the device and runs the test.
    pub(crate) fn on(self, probe: &mut Probe<'_>) -> Verdict {
        match self {
            Self::Alone(run) => run(probe),
            Self::Bot(run) => over_bot(probe, run),
            Self::Uas(run) => over_uas(probe, run),
            Self::Scsi(run) => over_scsi(probe, run),
        }
    }
}

const NOT_READY: &str =
    "the device does not get ready, even after a port reset: TEST UNIT READY has no GOOD status";

/// Runs a test over BOT. A device that only a port reset brings back fails it.
fn over_bot(probe: &mut Probe<'_>, run: fn(&mut Probe<'_>, &BotPlan) -> Verdict) -> Verdict {
    let Some(plan) = probe.device().bot else {
        return Verdict::NotTested("the device does not offer BOT at this speed".into());
    };
    if !is_ready(probe) {
        return Verdict::NotTested(NOT_READY.into());
    }
    let verdict = run(probe, &plan);
    // What the test has left behind must not fail the next one.
    probe.end_all();
    if probe.is_gone() || (probe.reset_recovery(&plan) && probe.begin_scsi()) {
        return verdict;
    }
    let afterwards = if probe.reset_port() && probe.begin_scsi() {
        "afterwards only a port reset helps, reset recovery does not"
    } else {
        "afterwards the device does not work, even after a port reset"
    };
    let found = verdict.words().map_or_else(String::new, |words| format!("{words}; "));
    Verdict::Fail(found + afterwards)
}

/// Runs a test over UAS, with the highest tag that can be used.
fn over_uas(probe: &mut Probe<'_>, run: fn(&mut Probe<'_>, &UasPlan, u16) -> Verdict) -> Verdict {
    let Some(plan) = probe.device().uas else {
        return Verdict::NotTested("the device does not offer UAS at this speed".into());
    };
    let begun = probe.begin_uas(&plan);
    let begun = begun.or_else(|| probe.reset_port().then(|| probe.begin_uas(&plan)).flatten());
    let Some(tag_max) = begun else {
        return Verdict::NotTested("UAS cannot be selected, or there are no streams for it".into());
    };
    run(probe, &plan, tag_max)
}

/// Runs a test of commands over whichever transport there is.
fn over_scsi(probe: &mut Probe<'_>, run: fn(&mut Probe<'_>) -> Result<Verdict, String>) -> Verdict {
    if !is_ready(probe) {
        return Verdict::NotTested(NOT_READY.into());
    }
    run(probe).unwrap_or_else(|why| Verdict::Fail(format!("a command has no status: {why}")))
}

/// Selects the transport of commands; with a port reset if that is needed.
fn is_ready(probe: &mut Probe<'_>) -> bool {
    probe.begin_scsi() || (probe.reset_port() && probe.begin_scsi())
}
