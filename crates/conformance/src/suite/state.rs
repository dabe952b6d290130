//! The state of a drive: whether it is ready, what it says of a reset, how warm it is.
//!
//! Left out: what it does with data.

use crate::exchange::ScsiAnswer;
use crate::probe::Probe;
use crate::test::Verdict;
use wire::scsi::log::{LogPageCode, TemperatureLog};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// The warmest that most drives work at where they do not say so, in degrees Celsius.
const USUAL_CELSIUS_MAX: u8 = 70;

const TEST_UNIT_READY: [u8; 6] = [0; 6];

/// TEST UNIT READY over each transport that the device offers.
pub(super) fn ready(probe: &mut Probe<'_>) -> Verdict {
    let is_ready = probe.begin_scsi() || (probe.reset_port() && probe.begin_scsi());
    if !is_ready {
        return not_ready(probe);
    }
    // With both, the other tests of commands use BOT.
    let Some(plan) = probe.device().uas.filter(|_| probe.device().bot.is_some()) else {
        return Verdict::Pass;
    };
    if probe.begin_uas(&plan).is_none() {
        return Verdict::Fail("UAS cannot be selected, or there are no streams for it".into());
    }
    Verdict::of(probe.is_ready_over_uas(&plan), || {
        "over UAS TEST UNIT READY has no GOOD status; over BOT it has".into()
    })
}

/// A drive without a medium is not at fault.
fn not_ready(probe: &mut Probe<'_>) -> Verdict {
    match probe.scsi(0, &TEST_UNIT_READY, 0) {
        Ok(answer) if has_no_medium(&answer) => Verdict::Note("the drive has no medium".into()),
        Ok(answer) => Verdict::Fail(format!("TEST UNIT READY: {}", answer.describe())),
        Err(why) => Verdict::Fail(format!("TEST UNIT READY has no status: {why}")),
    }
}

fn has_no_medium(answer: &ScsiAnswer) -> bool {
    const MEDIUM_NOT_PRESENT: u8 = 0x3a;
    answer
        .sense
        .is_some_and(|sense| sense.key == SenseKey::NotReady && sense.additional.asc == MEDIUM_NOT_PRESENT)
}

/// Compares what the first commands after a port reset report with what they should.
pub(super) fn unit_attention(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED, with all its qualifiers.
    const RESET_OCCURRED: u8 = 0x29;
    /// NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED: as drives with removable media report it.
    const MEDIUM_MAY_HAVE_CHANGED: u8 = AdditionalSense::MEDIUM_MAY_HAVE_CHANGED.asc;
    if !probe.reset_port() || !probe.select_scsi() {
        return Ok(Verdict::Fail("the device does not come back after a port reset".into()));
    }
    let first = probe.scsi(0, &TEST_UNIT_READY, 0)?;
    let Some(sense) = first.sense.filter(|sense| sense.key == SenseKey::UnitAttention) else {
        return Ok(match first.is_good() {
            true => Verdict::Warning("no unit attention after a port reset".into()),
            false => Verdict::Fail(first.describe()),
        });
    };
    if ![RESET_OCCURRED, MEDIUM_MAY_HAVE_CHANGED].contains(&sense.additional.asc) {
        return Ok(Verdict::Note(format!("after a port reset the device reports {sense}")));
    }
    let second = probe.scsi(0, &TEST_UNIT_READY, 0)?;
    let is_repeated = second.sense.is_some_and(|again| again == sense);
    Ok(Verdict::of(!is_repeated, || format!("the device reports {sense} twice")))
}

/// The Temperature log page.
pub(super) fn temperature(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    /// PC: cumulative values.
    const CUMULATIVE: u8 = 0x40;
    const ENOUGH: u8 = 64;
    let page = CUMULATIVE | u8::from(LogPageCode::Temperature);
    let cdb = [OperationCode::LogSense.into(), 0, page, 0, 0, 0, 0, 0, ENOUGH, 0];
    let answer = probe.scsi(0, &cdb, ENOUGH.into())?;
    if !answer.is_good() {
        return Ok(Verdict::NotTested("the drive does not report its temperature by LOG SENSE".into()));
    }
    let log = match TemperatureLog::decode(&answer.data) {
        Ok(log) => log,
        Err(error) => return Ok(Verdict::Fail(format!("the Temperature log page is invalid: {error}"))),
    };
    let Some(celsius) = log.celsius else {
        return Ok(Verdict::NotTested("the drive says that its temperature is not known".into()));
    };
    let limit = log.reference_celsius.unwrap_or(USUAL_CELSIUS_MAX);
    Ok(match celsius < limit {
        true => Verdict::Pass,
        false => Verdict::Fail(format!("the drive has {celsius} °C, and works below {limit} °C")),
    })
}
