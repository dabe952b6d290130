//! Errors that the drive itself reports by sense data (SPC-5 clause 4.4.8): USB delivered them intact.
//!
//! MEDIUM ERROR and HARDWARE ERROR mean that the drive fails. NOT READY, ABORTED COMMAND and ILLEGAL REQUEST count at reads,
//! writes, flushes and TRIM alone: elsewhere they mean that the drive does not support what was asked, which the kernel expects.

use super::{Cause, CauseKind, Scene, name_of, times};
use crate::diagnose::advice::{self, Advice};
use crate::inventory::is_refused_discard;
use crate::log::{Entry, Extent, ExtentKind, FailedCommand, MalformedAnswer, SenseKey};
use quirks::command::{CommandClass, CommandRow, command_name};

pub(super) fn failing(scene: &Scene<'_>) -> Option<Cause> {
    let is_bad = |command: &&FailedCommand| {
        matches!(command.sense, Some(SenseKey::MediumError | SenseKey::HardwareError))
            && !command.is_without_reason()
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_bad).collect();
    let blocks: Vec<usize> =
        scene.own().filter(|(_, entry)| is_lost_block(entry)).map(|(index, _)| index).collect();
    let (because, lines) = match commands.first() {
        Some(command) => {
            (format!("{}; USB is not the cause", sentence(command, commands.len())), command.lines.clone())
        }
        None if blocks.is_empty() => return None,
        None => (
            "the drive itself reports MEDIUM ERROR: a block cannot be read or written".to_owned(),
            Vec::new(),
        ),
    };
    let lines: Vec<usize> = lines.into_iter().chain(blocks).collect();
    let cause = scene.cause(CauseKind::DriveFailing, because, &lines);
    Some(Cause { advice: advice::failing_drive(scene.node()), ..cause })
}

/// The last malformed answer, which is what the firmware does now.
pub(super) fn malformed(scene: &Scene<'_>) -> Option<Cause> {
    let found = scene.own().filter_map(|(index, entry)| Some((index, MalformedAnswer::of(entry.line)?)));
    let found: Vec<(usize, MalformedAnswer)> = found.collect();
    let (_, last) = found.last()?;
    let more = if found.len() > 1 { format!(" ({})", times(found.len())) } else { String::new() };
    let because = format!("{}{more}: its firmware is at fault, not the cable", last.words());
    let lines: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
    let cause = scene.cause(CauseKind::MalformedAnswer, because, &lines);
    Some(Cause { advice: advice::faulty_firmware(scene.evidence), ..cause })
}

/// Commands that failed without sense data: the bridge, or the drive behind it.
pub(super) fn without_reason(scene: &Scene<'_>) -> Option<Cause> {
    let failed: Vec<&FailedCommand> =
        scene.commands().filter(|command| command.is_without_reason()).collect();
    let command = *failed.first()?;
    let (name, more) = (name_of(command), in_all(failed.len()));
    let because = format!(
        "the device reported that {name} failed and gave no reason{more} (its sense data are empty, and Linux prints HARDWARE ERROR in their place): the bridge or the drive behind it"
    );
    let cause = scene.cause(CauseKind::Refused, because, &command.lines);
    Some(Cause { advice: advice::bridge_or_drive(scene.node()), ..cause })
}

/// Reads, writes and TRIM that the drive answered with another error.
pub(super) fn refused(scene: &Scene<'_>) -> Option<Cause> {
    let class = |command: &FailedCommand| CommandRow::of(&command.cdb).map(|row| row.class);
    let has_blocks = has_blocks(scene);
    let is_refusal = |command: &&FailedCommand| {
        matches!(
            command.sense,
            Some(SenseKey::NotReady | SenseKey::AbortedCommand | SenseKey::IllegalRequest)
        ) && matches!(
            class(command),
            Some(CommandClass::Transfer | CommandClass::Trim | CommandClass::WriteSame)
        ) && (has_blocks || !is_without_medium(command))
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_refusal).collect();
    let Some(command) = commands.first() else {
        return refused_flush(scene).or_else(|| refused_discard(scene)).or_else(|| without_capacity(scene));
    };
    let (kind, advice) = match (class(command), command.sense) {
        (Some(CommandClass::Trim), _) => (CauseKind::TrimRefused, vec![advice::stop_trim(scene.evidence)]),
        (Some(CommandClass::WriteSame), _) => {
            (CauseKind::Command, vec![advice::letter(scene.evidence, 'k', "Send no WRITE SAME")])
        }
        (_, key) => (CauseKind::Refused, of_transfer(scene, command, key)),
    };
    let because = match kind {
        CauseKind::TrimRefused => format!("{TRIM_REFUSED} ({})", answer(command)),
        _ if is_fua(command) => {
            format!(
                "{}: it does not support FUA, which the write asked for",
                sentence(command, commands.len())
            )
        }
        _ => sentence(command, commands.len()),
    };
    Some(Cause { advice, ..scene.cause(kind, because, &command.lines) })
}

fn of_transfer(scene: &Scene<'_>, command: &FailedCommand, key: Option<SenseKey>) -> Vec<Advice> {
    let address = scene.evidence.device.disks().map(|disk| disk.address.as_str()).next().unwrap_or_default();
    match key {
        _ if is_fua(command) => vec![advice::no_fua(address), advice::drive_firmware()],
        Some(SenseKey::NotReady) if is_without_medium(command) => vec![advice::insert_medium()],
        Some(SenseKey::NotReady) => vec![advice::power_cycle(), advice::more_power(), advice::reseat()],
        Some(SenseKey::IllegalRequest) => vec![advice::compare_capacity(), advice::power_cycle()],
        _ => vec![advice::reseat(), advice::power_cycle(), advice::drive_firmware()],
    }
}

/// Whether a write that the drive refused had the FUA bit (SBC-4 clause 5.39).
fn is_fua(command: &FailedCommand) -> bool {
    let is_write = matches!(command.cdb.first(), Some(0x2a | 0x8a | 0xaa));
    let has_bit = command.cdb.get(1).is_some_and(|byte| byte % 16 >= 8);
    let additional = command.additional.to_ascii_lowercase();
    let is_field = additional.contains("invalid field in cdb") || additional.contains("asc=0x24");
    is_write && has_bit && is_field && command.sense == Some(SenseKey::IllegalRequest)
}

/// A SYNCHRONIZE CACHE that the drive refused (SBC-4 clause 5.27).
///
/// A host error of a flush says nothing of the drive: the kernel prints one when a driver lets the drive go.
fn refused_flush(scene: &Scene<'_>) -> Option<Cause> {
    let is_refused = |command: &&FailedCommand| {
        let class = CommandRow::of(&command.cdb).map(|row| row.class);
        class == Some(CommandClass::SynchronizeCache)
            && command.sense == Some(SenseKey::IllegalRequest)
            && !scene.is_after_end(command)
    };
    let refused: Vec<&FailedCommand> = scene.commands().filter(is_refused).collect();
    let command = *refused.first()?;
    let more = if refused.len() > 1 { format!(", {}", times(refused.len())) } else { String::new() };
    let because = format!(
        "the drive refused {}{more}: it does not implement the flush; what was written is readable, but a power cut may lose what is still in its cache",
        answer(command)
    );
    let disk = scene.evidence.device.disks().next();
    let address = disk.map(|disk| disk.address.as_str()).unwrap_or_default();
    let node = disk.and_then(|disk| disk.node.as_deref());
    Some(Cause {
        advice: advice::without_flush(address, node),
        ..scene.cause(CauseKind::Refused, because, &command.lines)
    })
}

/// A DISCARD that failed, of which the block layer alone prints a line.
fn refused_discard(scene: &Scene<'_>) -> Option<Cause> {
    let is_one = |entry: &Entry<'_>| {
        is_refused_discard(entry.line)
            && entry.line.text.contains("critical target error")
            && entry.line.text.contains("(DISCARD)")
    };
    let lines: Vec<usize> = scene.own().filter(|(_, entry)| is_one(entry)).map(|(index, _)| index).collect();
    lines.first()?;
    let cause = scene.cause(CauseKind::TrimRefused, TRIM_REFUSED, &lines);
    Some(Cause { advice: vec![advice::stop_trim(scene.evidence)], ..cause })
}

const TRIM_REFUSED: &str = "the drive refused TRIM; no data is lost, and the kernel sends it no more";

/// A drive that answers READ CAPACITY with an error, so that its disk has no blocks (`read_capacity_10` of Linux's sd.c). A
/// slot without a card is none.
fn without_capacity(scene: &Scene<'_>) -> Option<Cause> {
    let is_capacity = |cdb: &[u8]| cdb.first() == Some(&0x25) || cdb.starts_with(&[0x9e, 0x10]);
    let is_refusal = |command: &&FailedCommand| {
        matches!(command.sense, Some(SenseKey::NotReady | SenseKey::AbortedCommand | SenseKey::Other))
            && is_capacity(&command.cdb)
            && !is_without_medium(command)
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_refusal).collect();
    let command = commands.last()?;
    let has_no_blocks = |entry: &Entry<'_>| {
        let text = entry.line.of_command();
        text.starts_with("0 ") && text.contains("-byte logical blocks")
    };
    let empty: Vec<usize> =
        scene.own().filter(|(_, entry)| has_no_blocks(entry)).map(|(index, _)| index).collect();
    empty.first()?;
    let because = format!("the disk has no capacity: the drive answered {}", answer(command));
    let lines: Vec<usize> = command.lines.iter().copied().take(3).chain(empty).collect();
    let mut advice = vec![advice::power_cycle(), advice::cable_and_port()];
    if scene.is_on_uas() && scene.evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(scene.evidence));
    }
    advice.push(advice::reseat());
    Some(Cause { advice, ..scene.cause(CauseKind::NoDisk, because, &lines) })
}

/// A slot without a medium: a command was answered with NOT READY (MEDIUM NOT PRESENT), or a removable disk of which the log has
/// everything got no capacity (`sd_revalidate_disk` of Linux's sd.c). It is no fault.
pub(super) fn no_medium(scene: &Scene<'_>) -> Option<Cause> {
    if has_blocks(scene) {
        return None;
    }
    let commands = scene.commands().filter(|command| is_without_medium(command));
    let answers: Vec<usize> = commands.flat_map(|command| command.lines.clone()).collect();
    let is_from_start = |at: &usize| scene.history.sessions.get(*at).is_some_and(|one| one.is_from_start);
    let is_attached = |entry: &Entry<'_>| {
        let of_session = entry.session.is_some_and(|at| is_from_start(&at));
        of_session && entry.line.of_command().starts_with("Attached SCSI removable disk")
    };
    let (lines, how) = if answers.is_empty() {
        let attached = scene.own().filter(|(_, entry)| is_attached(entry));
        (attached.map(|(index, _)| index).collect(), "the kernel attached it and found no capacity")
    } else {
        (answers, "the drive answers NOT READY, medium not present")
    };
    lines.first()?;
    let because = format!("the slot is empty, which is no fault: {how}");
    let cause = scene.cause(CauseKind::NoMedium, because, &lines);
    Some(Cause { advice: vec![advice::insert_medium()], ..cause })
}

/// Whether a disk of the drive has blocks, so that it has a medium.
fn has_blocks(scene: &Scene<'_>) -> bool {
    scene.capacities().any(|(blocks, _)| blocks > 0)
        || scene.evidence.device.disks().any(|disk| disk.bytes.is_some_and(|bytes| bytes > 0))
}

/// Whether a command was answered with NOT READY (MEDIUM NOT PRESENT), 3Ah (SPC-5 annex F).
fn is_without_medium(command: &FailedCommand) -> bool {
    let additional = command.additional.to_ascii_lowercase();
    command.sense == Some(SenseKey::NotReady)
        && ["medium not present", "asc=0x3a"].iter().any(|words| additional.contains(words))
}

/// Returns what the kernel finds beyond the end of the disk: the two sizes, and what is likely to have changed them.
pub(super) fn capacity(scene: &Scene<'_>) -> Option<Cause> {
    let is_own = |entry: &Entry<'_>, extent: &Extent<'_>| match extent.kind {
        // The line does not name the disk.
        ExtentKind::Table => scene.capacities().any(|(blocks, _)| Some(blocks) == extent.limit),
        _ => scene.is_own(entry),
    };
    let entries = scene.history.entries_at(&scene.history.of_extents);
    let found = entries.filter_map(|(index, entry)| {
        Some((index, Extent::of(entry.line).filter(|extent| is_own(entry, extent))?))
    });
    let found: Vec<(usize, Extent<'_>)> = found.collect();
    // The table is made for a whole disk, and says most.
    let (_, extent) = found.iter().min_by_key(|(_, extent)| extent.kind != ExtentKind::Table)?;
    let (blocks, bytes) = scene.capacities().last().unwrap_or((0, 0));
    // A partition is compared with the disk, in sectors.
    let sectors = blocks.saturating_mul(bytes.into()) / u64::from(SECTOR_BYTES);
    let of_disk = Extent { limit: Some(sectors).filter(|sectors| *sectors > 0), ..*extent };
    let is_partition = extent.kind == ExtentKind::Partition;
    let reason = SizeChange::of(if is_partition { &of_disk } else { extent }, bytes);
    let lines: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
    let because = format!("{}; {}", compared(extent, blocks, bytes), reason.words());
    let advice = vec![advice::full_size(reason == SizeChange::TwoTebibytes), advice::compare_capacity()];
    Some(Cause { advice, ..scene.cause(CauseKind::Capacity, because, &lines) })
}

/// The kernel's unit of requests and partitions.
const SECTOR_BYTES: u32 = 512;

/// Why a drive may have fewer blocks than it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeChange {
    /// Its blocks have 4096 bytes now and had 512.
    BlockSize,
    /// The bridge keeps 32 bits of a block number.
    TwoTebibytes,
    /// A few blocks at the end are missing.
    Reserved,
    /// Anything else.
    Unknown,
}

impl SizeChange {
    fn of(extent: &Extent<'_>, block_bytes: u32) -> Self {
        const RATIO: u64 = 8;
        const BLOCKS: u64 = 1 << 32;
        let Some(limit) = extent.limit.filter(|limit| *limit > 0) else { return Self::Unknown };
        let is_whole = extent.disk() == extent.node;
        let lost = extent.wanted.saturating_sub(limit);
        // The two sizes need not end at a common boundary.
        let is_ratio = (extent.wanted / RATIO).abs_diff(limit) <= limit / 100;
        match extent.kind {
            ExtentKind::Table if is_ratio && block_bytes == 4096 => Self::BlockSize,
            _ if is_whole
                && extent.kind != ExtentKind::FileSystem
                && (lost > 0 && lost.is_multiple_of(BLOCKS) || limit.abs_diff(BLOCKS) <= 1) =>
            {
                Self::TwoTebibytes
            }
            _ if lost <= limit / 200 => Self::Reserved,
            _ => Self::Unknown,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::BlockSize => {
                "the table was made with blocks of 512 bytes, and this enclosure's bridge has blocks of 4,096"
            }
            Self::TwoTebibytes => {
                "the bridge or its driver counts blocks with 32 bits, so that 2 TiB are cut off"
            }
            Self::Reserved => {
                "the enclosure that it was partitioned in had a few blocks more: some bridges hide the last ones"
            }
            Self::Unknown => {
                "an enclosure that reports a smaller drive, an image of a larger drive, or a counterfeit drive"
            }
        }
    }
}

/// The two sizes of an extent; `blocks` and `bytes` are those of the disk.
fn compared(extent: &Extent<'_>, blocks: u64, bytes: u32) -> String {
    let node = extent.node.map_or_else(|| "the disk".to_owned(), |node| format!("/dev/{node}"));
    let bytes = if bytes == 0 { SECTOR_BYTES } else { bytes };
    let wanted = extent.wanted;
    match (extent.kind, extent.limit) {
        (ExtentKind::Table, Some(limit)) => format!(
            "the partition table was made for a larger disk: it ends after {wanted} blocks, and the drive has {limit} of {bytes} bytes ({})",
            size(limit, bytes)
        ),
        (ExtentKind::Request, Some(limit)) => format!(
            "sector {wanted} of {node} was asked for, which ends after {limit} sectors ({})",
            size(limit, SECTOR_BYTES)
        ),
        (ExtentKind::FileSystem, Some(limit)) => {
            format!("the file system on {node} has {wanted} blocks, and {node} has space for {limit}")
        }
        _ if blocks == 0 => {
            format!("a partition of {wanted} sectors ({}) ends behind {node}", size(wanted, SECTOR_BYTES))
        }
        _ => format!(
            "a partition of {wanted} sectors ({}) ends behind {node}, which has {blocks} blocks of {bytes} bytes ({})",
            size(wanted, SECTOR_BYTES),
            size(blocks, bytes)
        ),
    }
}

/// A size in the unit that makers use.
fn size(blocks: u64, bytes: u32) -> String {
    const MEGA: u64 = 1_000_000;
    let mega = blocks.saturating_mul(bytes.into()) / MEGA;
    match mega {
        0..1_000 => format!("{mega} MB"),
        1_000..1_000_000 => format!("{}.{} GB", mega / 1_000, mega % 1_000 / 100),
        _ => format!("{}.{:02} TB", mega / MEGA, mega % MEGA / 10_000),
    }
}

/// `READ(10) with MEDIUM ERROR (Unrecovered read error)`.
fn answer(command: &FailedCommand) -> String {
    let key = command.sense.map_or("an error", SenseKey::name);
    format!("{} with {key}{}", name_of(command), additional(command))
}

/// The number of failed commands, if there are several.
fn in_all(count: usize) -> String {
    if count > 1 { format!(", {count} commands in all") } else { String::new() }
}

fn additional(command: &FailedCommand) -> String {
    match command.additional.trim() {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

fn sentence(command: &FailedCommand, count: usize) -> String {
    let key = command.sense.map_or("an error", SenseKey::name);
    let what =
        if command.cdb.is_empty() { String::new() } else { format!(" at {}", command_name(&command.cdb)) };
    format!("the drive itself reports {key}{}{what}{}", additional(command), in_all(count))
}

/// A block that could not be read or written because of the medium. `critical target error` may be a refused command.
fn is_lost_block(entry: &Entry<'_>) -> bool {
    entry.line.disk_in_error().is_some() && entry.line.text.contains("critical medium error")
}
