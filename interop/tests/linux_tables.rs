//! Our tables of quirks against Linux's own, extracted from Debian's packages of Linux's sources; with `--include-ignored`
//! alone, since each package is 150 MB.
//!
//! Rows are compared both ways: ours that are certain to be in that release, and those of the headers that have flags. A suite that cannot be
//! reached makes its test ignored, with the reason.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use quirks::quirk::{
    Flag, Flags, KernelVersion, Presence,
    table::{STORAGE, TableRow, UAS},
};
use uaskit_interop::{
    Result,
    debian::{self, Suite},
    trial,
};

const HEADERS: [&str; 2] = ["drivers/usb/storage/unusual_uas.h", "drivers/usb/storage/unusual_devs.h"];

fn main() -> ExitCode {
    let trials = [Suite::Bookworm, Suite::Trixie, Suite::TrixieBackports]
        .map(|suite| trial(format!("sources::{suite}"), true, move || check(suite)));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn check(suite: Suite) -> Result<()> {
    let source = debian::linux_source(suite, &HEADERS)?;
    let kernel = KernelVersion::of_release(&source.release);
    println!("{suite} has the sources of Linux {}", source.release);
    for ((name, table), text) in [("uas", UAS), ("storage", STORAGE)].into_iter().zip(&source.files) {
        let theirs = rows(text);
        let ours = |presence: Presence| -> Vec<Row> {
            table.iter().filter(|row| row.versions.presence(kernel) == presence).map(Row::of).collect()
        };
        // Of some rows it is not known since which release of a stable branch they are there.
        let (open, ours) = (ours(Presence::Unknown), ours(Presence::Present));
        assert!(theirs.len() > 20, "{name}: {} rows are too few to be all", theirs.len());
        let lacks = |rows: &[Row], others: &[Row]| -> Vec<Row> {
            rows.iter().filter(|row| !others.contains(row)).cloned().collect()
        };
        let (missing, invented) = (lacks(&lacks(&theirs, &ours), &open), lacks(&ours, &theirs));
        assert!(
            missing.is_empty() && invented.is_empty(),
            "{name}: we lack {missing:?}, we have {invented:?}"
        );
        println!("{name}: {} rows with flags are ours; not known of this release: {open:?}", theirs.len());
    }
    Ok(())
}

/// A row of a table, without its names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    id: String,
    revisions: (u16, u16),
    flags: Flags,
}

impl Row {
    fn of(row: &TableRow) -> Self {
        Self { id: row.id.to_string(), revisions: row.revisions, flags: row.flags }
    }
}

/// The rows of a header that have flags: `UNUSUAL_DEV(vendor, product, first, last, "…", "…", class, protocol, init, flags)`.
fn rows(header: &str) -> Vec<Row> {
    let text = without_comments(header);
    let starts = text.match_indices("_DEV(").filter(|(at, _)| {
        let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
        ["UNUSUAL", "COMPLIANT"].contains(&text[line..*at].trim())
    });
    let rows = starts.map(|(at, start)| row(&arguments(&text[at + start.len()..])));
    rows.filter(|row| row.flags != Flags::default()).collect()
}

fn row(arguments: &[String]) -> Row {
    let number = |at: usize| {
        let digits = arguments[at].trim_start_matches("0x");
        u16::from_str_radix(digits, 16).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    };
    let flags: Vec<Flag> = arguments
        .last()
        .into_iter()
        .flat_map(|flags| flags.split('|'))
        .filter_map(|name| name.trim().strip_prefix("US_FL_"))
        .map(flag)
        .collect();
    Row {
        id: format!("{:04x}:{:04x}", number(0), number(1)),
        revisions: (number(2), number(3)),
        flags: Flags::of(&flags),
    }
}

/// The arguments up to the parenthesis that ends them; strings may have commas.
fn arguments(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    for sign in text.chars() {
        let is_plain = !is_escaped;
        is_escaped = sign == '\\' && is_plain;
        match sign {
            '"' if is_plain => is_quoted = !is_quoted,
            ')' if !is_quoted && depth == 0 => break,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(sign);
        }
    }
    all.iter().map(|argument| argument.trim().to_owned()).collect()
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain + rest
}

/// A flag by its name in include/linux/usb_usual.h.
fn flag(name: &str) -> Flag {
    match name {
        "SANE_SENSE" => Flag::SaneSense,
        "BAD_SENSE" => Flag::BadSense,
        "FIX_CAPACITY" => Flag::FixCapacity,
        "NO_READ_DISC_INFO" => Flag::NoReadDiscInfo,
        "NO_READ_CAPACITY_16" => Flag::NoReadCapacity16,
        "NO_REPORT_OPCODES" => Flag::NoReportOpcodes,
        "MAX_SECTORS_240" => Flag::MaxSectors240,
        "CAPACITY_HEURISTICS" => Flag::CapacityHeuristics,
        "IGNORE_DEVICE" => Flag::IgnoreDevice,
        "NO_REPORT_LUNS" => Flag::NoReportLuns,
        "NO_SAME" => Flag::NoSame,
        "NOT_LOCKABLE" => Flag::NotLockable,
        "MAX_SECTORS_64" => Flag::MaxSectors64,
        "INITIAL_READ10" => Flag::InitialRead10,
        "CAPACITY_OK" => Flag::CapacityOk,
        "WRITE_CACHE" => Flag::WriteCache,
        "IGNORE_RESIDUE" => Flag::IgnoreResidue,
        "SINGLE_LUN" => Flag::SingleLun,
        "NO_ATA_1X" => Flag::NoAta1x,
        "IGNORE_UAS" => Flag::IgnoreUas,
        "NO_WP_DETECT" => Flag::NoWriteProtectDetect,
        "ALWAYS_SYNC" => Flag::AlwaysSync,
        "BROKEN_FUA" => Flag::BrokenFua,
        "NEEDS_CAP16" => Flag::NeedsCapacity16,
        "GO_SLOW" => Flag::GoSlow,
        "FIX_INQUIRY" => Flag::FixInquiry,
        "SCM_MULT_TARG" => Flag::ScmMultTarg,
        "BULK_IGNORE_TAG" => Flag::BulkIgnoreTag,
        "BULK32" => Flag::Bulk32,
        "NEED_OVERRIDE" => Flag::NeedOverride,
        "MAX_SECTORS_MIN" => Flag::MaxSectorsMin,
        "SENSE_AFTER_SYNC" => Flag::SenseAfterSync,
        other => panic!("Linux has a new flag, US_FL_{other}"),
    }
}
