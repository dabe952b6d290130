//! Commands over whichever transport there is (SPC-4, SBC-3).
//!
//! Only logical unit 0 is tested. Left out: commands that write.

use super::transport::over_scsi;
use crate::exchange::ScsiAnswer;
use crate::probe::{Probe, hex};
use crate::test::{Group, Test, Verdict};
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::inquiry::StandardInquiry;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// EVPD of INQUIRY.
const VITAL_PRODUCT_DATA: u8 = 0x01;

/// SERVICE ACTION IN (16): READ CAPACITY (16).
const READ_CAPACITY_16: u8 = 0x10;

/// A row of the table.
macro_rules! test {
    ($id:literal, $title:literal, $clause:literal, $means:expr, $run:expr) => {
        Test {
            id: $id,
            group: Group::Scsi,
            title: $title,
            clause: $clause,
            means: $means,
            run: |probe| over_scsi(probe, $run),
        }
    };
}

pub(super) const TESTS: &[Test] = &[
    test!(
        "scsi-inquiry",
        "INQUIRY returns 36 bytes or more, as many as ADDITIONAL LENGTH says",
        "SPC-4 clause 6.4.2",
        "Hosts that ask for more than 36 bytes take rubbish for the drive's properties.",
        inquiry
    ),
    test!(
        "scsi-vpd-pages",
        "Each vital product data page that is listed exists, and the list is in order",
        "SPC-4 clause 7.8",
        "Hosts read limits, TRIM and serial number there; some old drives hang at such a request.",
        vpd_pages
    ),
    test!(
        "scsi-vpd-unknown",
        "A vital product data page that is not listed is refused: INVALID FIELD IN CDB",
        "SPC-4 clause 6.4.1",
        "Hosts take other data for a page that does not exist.",
        vpd_unknown
    ),
    test!(
        "scsi-unknown-opcode",
        "An operation code that does not exist is refused: INVALID COMMAND OPERATION CODE",
        "SPC-4 clause 4.3.1",
        "Hosts try optional commands this way; a drive that hangs is reset each time.",
        unknown_opcode
    ),
    test!(
        "scsi-sense-after-good",
        "REQUEST SENSE after a command that succeeded reports no error",
        "SPC-4 clause 6.39",
        "Hosts report an error that is none, or one twice.",
        sense_after_good
    ),
    test!(
        "scsi-capacity",
        "READ CAPACITY (10) and (16) agree",
        "SBC-3 clauses 5.15, 5.16",
        "The drive has another size on another host; a file system may be cut.",
        capacity
    ),
    test!(
        "scsi-last-block",
        "The last block can be read; the one behind it is refused: LBA OUT OF RANGE",
        "SBC-3 clause 4.5",
        "The drive announces more than it has, or hosts that look behind the end make it hang.",
        last_block
    ),
    test!(
        "scsi-mode-sense",
        "MODE SENSE (6) and (10) of all pages return as many bytes as they announce",
        "SPC-4 clauses 6.11, 6.12, 7.5",
        "The host assumes no write cache, and data in it may be lost at power loss.",
        mode_sense
    ),
    test!(
        "scsi-report-luns",
        "REPORT LUNS lists LUN 0",
        "SPC-4 clause 6.33",
        "Hosts that scan by this list do not see the drive.",
        report_luns
    ),
];

fn command(opcode: OperationCode) -> [u8; 10] {
    [opcode.into(), 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn inquiry_of(page: Option<u8>, bytes: u8) -> [u8; 6] {
    let evpd = if page.is_some() { VITAL_PRODUCT_DATA } else { 0 };
    [OperationCode::Inquiry.into(), evpd, page.unwrap_or(0), 0, bytes, 0]
}

/// Whether a command was refused with this sense.
fn refused(answer: &ScsiAnswer, additional: AdditionalSense) -> Verdict {
    let is_right = answer.sense.is_some_and(|sense| {
        sense.key == SenseKey::IllegalRequest && sense.additional == additional && !sense.deferred
    });
    Verdict::of(is_right && !answer.is_good(), || answer.describe())
}

fn inquiry(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const ENOUGH: u8 = 252;
    let short = probe.scsi(0, &inquiry_of(None, 36), 36)?;
    let long = probe.scsi(0, &inquiry_of(None, ENOUGH), ENOUGH.into())?;
    if !short.is_good() || !long.is_good() {
        return Ok(Verdict::Fail(format!("{}; {}", short.describe(), long.describe())));
    }
    let announced = long.data.get(4).map_or(0, |length| usize::from(*length) + 5);
    let is_right = short.data.len() == 36
        && StandardInquiry::decode(&long.data).is_ok()
        && long.data.len() == announced.min(ENOUGH.into())
        && long.data.starts_with(&short.data);
    Ok(Verdict::of(is_right, || {
        format!("asked for {ENOUGH} bytes, {} come and {announced} are announced", long.data.len())
    }))
}

fn vpd_pages(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const ENOUGH: u8 = 252;
    let list = probe.scsi(0, &inquiry_of(Some(0), ENOUGH), ENOUGH.into())?;
    let &[_, 0, high, low, ref pages @ ..] = &list.data[..] else {
        return Ok(Verdict::Fail(format!("the list of pages: {}", list.describe())));
    };
    if usize::from(u16::from_be_bytes([high, low])) != pages.len()
        || !pages.is_sorted()
        || !pages.contains(&0)
    {
        return Ok(Verdict::Fail(format!("the list of pages is {}", hex(&list.data))));
    }
    for page in pages {
        let answer = probe.scsi(0, &inquiry_of(Some(*page), ENOUGH), ENOUGH.into())?;
        if !answer.is_good() || answer.data.get(1) != Some(page) {
            return Ok(Verdict::Fail(format!("page {page:02X}h is listed: {}", answer.describe())));
        }
        let announced = length_at(&answer.data, 2).map_or(0, |length| length + 4);
        if answer.data.len() != announced.min(ENOUGH.into()) {
            return Ok(Verdict::Fail(format!(
                "page {page:02X}h announces {announced} bytes and has {}",
                answer.data.len()
            )));
        }
    }
    Ok(Verdict::Pass)
}

fn vpd_unknown(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    /// Reserved by SPC.
    const RESERVED: u8 = 0x7f;
    let answer = probe.scsi(0, &inquiry_of(Some(RESERVED), 252), 252)?;
    Ok(refused(&answer, AdditionalSense::INVALID_FIELD_IN_CDB))
}

fn unknown_opcode(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    /// Reserved for all device types.
    const RESERVED: u8 = 0x1f;
    let answer = probe.scsi(0, &[RESERVED, 0, 0, 0, 0, 0], 0)?;
    let again = probe.scsi(0, &inquiry_of(None, 36), 36)?;
    if !again.is_good() {
        return Ok(Verdict::Fail(format!("afterwards INQUIRY ends {}", again.describe())));
    }
    Ok(refused(&answer, AdditionalSense::INVALID_COMMAND_OPERATION_CODE))
}

fn sense_after_good(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    let ready = probe.scsi(0, &command(OperationCode::TestUnitReady)[..6], 0)?;
    let answer = probe.scsi(0, &[OperationCode::RequestSense.into(), 0, 0, 0, 252, 0], 252)?;
    if !ready.is_good() || !answer.is_good() {
        return Ok(Verdict::Fail(format!("{}; {}", ready.describe(), answer.describe())));
    }
    match wire::scsi::sense::Sense::decode(&answer.data) {
        Ok(sense) if sense.key == SenseKey::NoSense => Ok(Verdict::Pass),
        Ok(sense) => Ok(Verdict::Fail(format!("it reports {sense}"))),
        Err(_) => Ok(Verdict::Fail(format!("it returns {}", hex(&answer.data)))),
    }
}

/// Last LBA and block length by READ CAPACITY (10) and, if the device has that, (16).
type Capacities = (Capacity10, Option<Capacity16>);

fn capacities(probe: &mut Probe<'_>) -> Result<Result<Capacities, Verdict>, String> {
    let answer = probe.scsi(0, &command(OperationCode::ReadCapacity10), Capacity10::LEN as u32)?;
    let Ok(short) = Capacity10::decode(&answer.data) else {
        return Ok(Err(Verdict::NotTested(format!("READ CAPACITY (10): {}", answer.describe()))));
    };
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[13]) = (OperationCode::ServiceActionIn16.into(), READ_CAPACITY_16, 32);
    let answer = probe.scsi(0, &cdb, 32)?;
    Ok(Ok((short, Capacity16::decode(&answer.data).ok().filter(|_| answer.is_good()))))
}

fn capacity(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    let (short, long) = match capacities(probe)? {
        Ok(both) => both,
        Err(verdict) => return Ok(verdict),
    };
    let Some(long) = long else {
        return Ok(if short.last_lba == u32::MAX {
            Verdict::Fail("READ CAPACITY (10) refers to (16), which the device does not have".into())
        } else {
            Verdict::Note("the device does not have READ CAPACITY (16)".into())
        });
    };
    let expected = u32::try_from(long.last_lba).unwrap_or(u32::MAX);
    Ok(Verdict::of(short.last_lba == expected && short.block_length == long.block_length, || {
        format!(
            "(10): last LBA {}, {} B; (16): last LBA {}, {} B",
            short.last_lba, short.block_length, long.last_lba, long.block_length
        )
    }))
}

fn last_block(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    let (short, _) = match capacities(probe)? {
        Ok(both) => both,
        Err(verdict) => return Ok(verdict),
    };
    if short.last_lba == u32::MAX || short.block_length > crate::bus::BUFFER_BYTES {
        return Ok(Verdict::NotTested(
            "the drive has more than 2 TiB: READ (10) does not reach its end".into(),
        ));
    }
    let read = |lba: u32| {
        let [a, b, c, d] = lba.to_be_bytes();
        [OperationCode::Read10.into(), 0, a, b, c, d, 0, 0, 1, 0]
    };
    let last = probe.scsi(0, &read(short.last_lba), short.block_length)?;
    if !last.is_good() || last.data.len() != short.block_length as usize {
        return Ok(Verdict::Fail(format!("the last block: {}", last.describe())));
    }
    let behind = probe.scsi(0, &read(short.last_lba.saturating_add(1)), short.block_length)?;
    Ok(refused(&behind, AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE))
}

/// The two bytes of a length field.
fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field).into())
}

fn mode_sense(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const ALL_PAGES: u8 = 0x3f;
    const ENOUGH: u8 = 252;
    let short =
        probe.scsi(0, &[OperationCode::ModeSense6.into(), 0, ALL_PAGES, 0, ENOUGH, 0], ENOUGH.into())?;
    let mut cdb = command(OperationCode::ModeSense10);
    (cdb[2], cdb[8]) = (ALL_PAGES, ENOUGH);
    let long = probe.scsi(0, &cdb, ENOUGH.into())?;
    if !short.is_good() && !long.is_good() {
        return Ok(Verdict::Warning(format!("the device has neither: {}", short.describe())));
    }
    let of_short = short.data.first().map(|length| usize::from(*length) + 1);
    let of_long = length_at(&long.data, 0).map(|length| length + 2);
    for (name, answer, announced) in [("(6)", &short, of_short), ("(10)", &long, of_long)] {
        let announced = announced.map(|bytes| bytes.min(ENOUGH.into()));
        if answer.is_good() && announced != Some(answer.data.len()) {
            let got = answer.data.len();
            return Ok(Verdict::Fail(format!(
                "MODE SENSE {name} announces {announced:?} bytes and has {got}"
            )));
        }
    }
    Ok(Verdict::Pass)
}

fn report_luns(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const ENOUGH: u8 = 136;
    let mut cdb = [0; 12];
    (cdb[0], cdb[9]) = (OperationCode::ReportLuns.into(), ENOUGH);
    let answer = probe.scsi(0, &cdb, ENOUGH.into())?;
    if !answer.is_good() {
        return Ok(Verdict::Note(format!("the device does not have it: {}", answer.describe())));
    }
    let listed = answer.data.get(8..).unwrap_or_default();
    let is_listed = listed.as_chunks::<8>().0.contains(&[0; 8]);
    Ok(Verdict::of(is_listed, || format!("it returns {}", hex(&answer.data))))
}
