//! What a test of a transport begins with: the transport is selected, and the device is ready.
//!
//! Left out: what the tests do. Always true: what a test of BOT leaves behind is cleared before the next one.

use crate::probe::Probe;
use crate::test::Verdict;
use quirks::{BotPlan, UasPlan};

/// Runs a test over BOT.
pub(super) fn over_bot(
    probe: &mut Probe<'_>,
    run: impl FnOnce(&mut Probe<'_>, &BotPlan) -> Verdict,
) -> Verdict {
    let Some(plan) = probe.device().bot else {
        return Verdict::NotTested("the device does not offer BOT at this speed".into());
    };
    if !probe.begin_scsi() {
        return Verdict::Fail(
            "the device does not get ready over BOT: TEST UNIT READY has no GOOD status".into(),
        );
    }
    let verdict = run(probe, &plan);
    // What the test has left behind must not fail the next one.
    probe.end_all();
    if !probe.reset_recovery(&plan) && !probe.is_gone() {
        probe.reset_port();
    }
    verdict
}

/// Runs a test over UAS, with the highest tag that can be used.
pub(super) fn over_uas(
    probe: &mut Probe<'_>,
    run: impl FnOnce(&mut Probe<'_>, &UasPlan, u16) -> Verdict,
) -> Verdict {
    let Some(plan) = probe.device().uas else {
        return Verdict::NotTested("the device does not offer UAS at this speed".into());
    };
    let Some(tag_max) = probe.begin_uas(&plan) else {
        return Verdict::NotTested("UAS cannot be selected: the bus allocates no streams".into());
    };
    run(probe, &plan, tag_max)
}

/// Runs a test of commands over whichever transport there is.
pub(super) fn over_scsi(
    probe: &mut Probe<'_>,
    run: impl FnOnce(&mut Probe<'_>) -> Result<Verdict, String>,
) -> Verdict {
    if !probe.begin_scsi() {
        return Verdict::NotTested(
            "the device does not get ready: TEST UNIT READY has no GOOD status".into(),
        );
    }
    run(probe).unwrap_or_else(|why| Verdict::Fail(format!("a command has no status: {why}")))
}
