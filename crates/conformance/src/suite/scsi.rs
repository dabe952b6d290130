//! Commands over whichever transport there is (SPC-4, SBC-3).
//!
//! Only logical unit 0 is tested. Left out: commands that write.

use super::state;
use crate::exchange::ScsiAnswer;
use crate::probe::{Probe, hex};
use crate::test::{Group, Run, Test, Verdict};
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::inquiry::StandardInquiry;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// EVPD of INQUIRY.
const VITAL_PRODUCT_DATA: u8 = 0x01;

/// SERVICE ACTION IN (16): READ CAPACITY (16).
pub(crate) const READ_CAPACITY_16: u8 = 0x10;

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "scsi-ready",
        group: Group::Scsi,
        title: "The drive gets ready over each transport: TEST UNIT READY ends with GOOD",
        clause: "SPC-4 clause 6.47",
        means: "No host can use the drive over that transport, if it has a medium.",
        run: Run::Alone(state::ready),
    },
    Test {
        id: "scsi-unit-attention",
        group: Group::Scsi,
        title: "The first command after a port reset reports it by a unit attention, once",
        clause: "SAM-5 clause 5.14",
        means: "A host does not notice that the drive was reset, or its medium changed, and works with data of before.",
        run: Run::Scsi(state::unit_attention),
    },
    Test {
        id: "scsi-temperature",
        group: Group::Scsi,
        title: "The temperature that the drive reports is below its reference temperature",
        clause: "SPC-4 clause 7.3.20",
        means: "The drive is too hot: it slows down, and may lose data.",
        run: Run::Scsi(state::temperature),
    },
    Test {
        id: "scsi-inquiry",
        group: Group::Scsi,
        title: "INQUIRY returns 36 bytes or more, as many as ADDITIONAL LENGTH says",
        clause: "SPC-4 clause 6.4.2",
        means: "Hosts that ask for more than 36 bytes take rubbish for the drive's properties.",
        run: Run::Scsi(inquiry),
    },
    Test {
        id: "scsi-vpd-pages",
        group: Group::Scsi,
        title: "Each vital product data page that is listed exists, and the list is in order",
        clause: "SPC-4 clause 7.8",
        means: "Hosts read limits, TRIM and serial number there; some old drives hang at such a request.",
        run: Run::Scsi(vpd_pages),
    },
    Test {
        id: "scsi-vpd-unknown",
        group: Group::Scsi,
        title: "A vital product data page that is not listed is refused: INVALID FIELD IN CDB",
        clause: "SPC-4 clause 6.4.1",
        means: "Hosts take other data for a page that does not exist.",
        run: Run::Scsi(vpd_unknown),
    },
    Test {
        id: "scsi-unknown-opcode",
        group: Group::Scsi,
        title: "An operation code that does not exist is refused: INVALID COMMAND OPERATION CODE",
        clause: "SPC-4 clause 4.3.1",
        means: "Hosts try optional commands this way; a drive that hangs is reset each time.",
        run: Run::Scsi(unknown_opcode),
    },
    Test {
        id: "scsi-sense-after-good",
        group: Group::Scsi,
        title: "REQUEST SENSE after a command that succeeded reports no error",
        clause: "SPC-4 clause 6.39",
        means: "Hosts report an error that is none, or one twice.",
        run: Run::Scsi(sense_after_good),
    },
    Test {
        id: "scsi-capacity",
        group: Group::Scsi,
        title: "READ CAPACITY (10) and (16) agree",
        clause: "SBC-3 clauses 5.15, 5.16",
        means: "The drive has another size on another host; a file system may be cut.",
        run: Run::Scsi(capacity),
    },
    Test {
        id: "scsi-last-block",
        group: Group::Scsi,
        title: "The last block can be read; the one behind it is refused: LBA OUT OF RANGE",
        clause: "SBC-3 clause 4.5",
        means: "The drive announces more than it has, or hosts that look behind the end make it hang.",
        run: Run::Scsi(last_block),
    },
    Test {
        id: "scsi-mode-sense",
        group: Group::Scsi,
        title: "MODE SENSE (6) and (10) of all pages return as many bytes as they announce",
        clause: "SPC-4 clauses 6.11, 6.12, 7.5",
        means: "The host assumes no write cache, and data in it may be lost at power loss.",
        run: Run::Scsi(mode_sense),
    },
    Test {
        id: "scsi-report-luns",
        group: Group::Scsi,
        title: "REPORT LUNS lists LUN 0",
        clause: "SPC-4 clause 6.33",
        means: "Hosts that scan by this list do not see the drive.",
        run: Run::Scsi(report_luns),
    },
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

/// Data that a command returned, without what it should not have sent. More than announced is padding, which hosts ignore.
enum Returned<'a> {
    /// As many bytes as announced.
    Exact(&'a [u8]),
    /// So many bytes more.
    Padded(&'a [u8], usize),
}

impl<'a> Returned<'a> {
    /// The data, of which `announced` bytes exist and at most `asked` were asked for.
    fn of(data: &'a [u8], announced: usize, asked: u8) -> Result<Self, Verdict> {
        let expected = announced.min(asked.into());
        match data.split_at_checked(expected) {
            None => Err(Verdict::Fail(format!("{announced} bytes are announced, {} come", data.len()))),
            Some((valid, [])) => Ok(Self::Exact(valid)),
            Some((valid, rest)) => Ok(Self::Padded(valid, rest.len())),
        }
    }

    const fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Exact(bytes) | Self::Padded(bytes, _) => bytes,
        }
    }

    /// Pass, or a warning for padding.
    fn verdict(&self) -> Verdict {
        match self {
            Self::Exact(_) => Verdict::Pass,
            Self::Padded(valid, more) => {
                Verdict::Warning(format!("the device pads {} bytes with {more} more", valid.len()))
            }
        }
    }
}

fn inquiry(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const ENOUGH: u8 = 252;
    let short = probe.scsi(0, &inquiry_of(None, 36), 36)?;
    let long = probe.scsi(0, &inquiry_of(None, ENOUGH), ENOUGH.into())?;
    if !short.is_good() || !long.is_good() || StandardInquiry::decode(&long.data).is_err() {
        return Ok(Verdict::Fail(format!("{}; {}", short.describe(), long.describe())));
    }
    if short.data.len() != 36 {
        return Ok(Verdict::Fail(format!("asked for 36 bytes, {} come", short.data.len())));
    }
    let [of_short, of_long] = [&short, &long].map(|answer| usize::from(answer.data[4]) + 5);
    if of_short != of_long {
        return Ok(Verdict::Fail(format!(
            "ADDITIONAL LENGTH follows the length asked for: {of_short} bytes of 36, {of_long} of {ENOUGH}"
        )));
    }
    if !long.data.starts_with(&short.data) {
        return Ok(Verdict::Fail("the first 36 bytes change with the length asked for".into()));
    }
    Ok(Returned::of(&long.data, of_long, ENOUGH).map_or_else(|verdict| verdict, |data| data.verdict()))
}

fn vpd_pages(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    let list = match vpd_page(probe, 0)? {
        Ok((list, _)) => list,
        Err(verdict) => return Ok(verdict),
    };
    let pages = list.get(4..).unwrap_or_default();
    if !pages.is_sorted() || !pages.contains(&0) {
        return Ok(Verdict::Fail(format!("the list of pages is {}", hex(&list))));
    }
    let mut worst = Verdict::Pass;
    for page in pages {
        match vpd_page(probe, *page)? {
            Ok((_, Verdict::Pass)) => {}
            Ok((_, verdict)) => worst = verdict,
            Err(verdict) => return Ok(verdict),
        }
    }
    Ok(worst)
}

/// A page without padding, and the verdict on its length; or why it is not one.
fn vpd_page(probe: &mut Probe<'_>, page: u8) -> Result<Result<(Vec<u8>, Verdict), Verdict>, String> {
    const ENOUGH: u8 = 252;
    let answer = probe.scsi(0, &inquiry_of(Some(page), ENOUGH), ENOUGH.into())?;
    let length = length_at(&answer.data, 2);
    let Some(length) = length.filter(|_| answer.is_good() && answer.data.get(1) == Some(&page)) else {
        return Ok(Err(Verdict::Fail(format!("page {page:02X}h: {}", answer.describe()))));
    };
    let returned = Returned::of(&answer.data, length + 4, ENOUGH);
    Ok(returned.map(|data| (data.bytes().to_vec(), data.verdict())))
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
    let mut worst = Verdict::Pass;
    for (name, answer, announced) in [("(6)", &short, of_short), ("(10)", &long, of_long)] {
        if !answer.is_good() {
            continue;
        }
        match Returned::of(&answer.data, announced.unwrap_or(usize::MAX), ENOUGH).map(|data| data.verdict()) {
            Ok(Verdict::Pass) => {}
            Ok(Verdict::Warning(words)) => worst = Verdict::Warning(format!("MODE SENSE {name}: {words}")),
            Ok(verdict) | Err(verdict) => return Ok(verdict),
        }
    }
    Ok(worst)
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
