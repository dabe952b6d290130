//! Sizes that the kernel compares: a request, a partition, a partition table or a file system beyond the end of its disk
//! (Linux: block/blk-core.c, block/partitions/core.c, block/partitions/efi.c, fs/ext4/super.c).
//!
//! Always true: only what needs more than there is becomes a value; a table that ends before its disk does is none, since images are
//! written to larger disks. Left out: file systems other than ext2 to ext4.

use super::line::LogLine;

/// A thing that is larger than the disk or partition that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtentKind {
    /// A request, in sectors of 512 bytes.
    Request,
    /// A partition, in sectors of 512 bytes; the line does not have the size of the disk.
    Partition,
    /// The GPT, in logical blocks of the disk; the line does not name the disk.
    Table,
    /// A file system, in its own blocks.
    FileSystem,
}

/// More blocks than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent<'a> {
    pub(crate) kind: ExtentKind,
    /// The disk or partition.
    pub(crate) node: Option<&'a str>,
    /// Blocks that are needed.
    pub(crate) wanted: u64,
    /// Blocks that there are.
    pub(crate) limit: Option<u64>,
}

impl<'a> Extent<'a> {
    /// Reads a line, if it is of that kind.
    pub(crate) fn of(line: LogLine<'a>) -> Option<Self> {
        let extent = request(line).or_else(|| partition(line)).or_else(|| table(line));
        let extent = extent.or_else(|| file_system(line))?;
        extent.limit.is_none_or(|limit| extent.wanted > limit).then_some(extent)
    }

    /// The disk, without the number of its partition.
    pub(crate) fn disk(&self) -> Option<&'a str> {
        self.node.map(|node| node.trim_end_matches(|sign: char| sign.is_ascii_digit()))
    }
}

/// `sdb1: rw=0, want=976771128, limit=976771119`, or since Linux 5.12 `sector=…, nr_sectors = 8 limit=…`.
fn request(line: LogLine<'_>) -> Option<Extent<'_>> {
    let text = line.text.strip_prefix("rw=")?;
    let wanted = match field(text, "want=") {
        Some(wanted) => wanted,
        None => field(text, "sector=")?.checked_add(field(text, "nr_sectors = ")?)?,
    };
    let limit = Some(field(text, "limit=")?);
    Some(Extent { kind: ExtentKind::Request, node: node(line.source), wanted, limit })
}

/// `sdb: p1 size 976771120 extends beyond EOD, truncated`, `sdb: p2 start 976773168 is beyond EOD, truncated`.
fn partition(line: LogLine<'_>) -> Option<Extent<'_>> {
    let (name, rest) = line.text.split_once(' ')?;
    let is_name = name.strip_prefix('p').is_some_and(|number| number.parse::<u32>().is_ok());
    let is_beyond = rest.contains("beyond EOD") && is_name;
    let wanted = field(rest, "size ").or_else(|| field(rest, "start ")).filter(|_| is_beyond)?;
    Some(Extent { kind: ExtentKind::Partition, node: node(line.source), wanted, limit: None })
}

/// `GPT:5860533167 != 732566645`: where the table says that the last block is, and where it is.
fn table(line: LogLine<'_>) -> Option<Extent<'_>> {
    let (wanted, limit) =
        line.text.strip_prefix("GPT:").filter(|_| line.source.is_empty())?.split_once(" != ")?;
    let blocks = |last: &str| last.trim().parse::<u64>().ok()?.checked_add(1);
    Some(Extent { kind: ExtentKind::Table, node: None, wanted: blocks(wanted)?, limit: Some(blocks(limit)?) })
}

/// `EXT4-fs (sdb1): bad geometry: block count 122096390 exceeds size of device (122096389 blocks)`.
fn file_system(line: LogLine<'_>) -> Option<Extent<'_>> {
    let text = line.text.strip_prefix("bad geometry: ")?;
    let (_, name) = line.source.split_once('(')?;
    let limit = Some(field(text, "size of device (")?);
    Some(Extent {
        kind: ExtentKind::FileSystem,
        node: node(name.strip_suffix(')')?),
        wanted: field(text, "block count ")?,
        limit,
    })
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

/// A disk or partition; the second line of a message is indented.
fn node(source: &str) -> Option<&str> {
    const BYTES_MAX: usize = 12;
    let name = source.trim_start();
    let is_name = name.bytes().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit());
    (is_name && !name.is_empty() && name.len() <= BYTES_MAX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_all_forms() {
        let extent = |kind, node, wanted, limit| Some(Extent { kind, node, wanted, limit });
        for (line, expected) in [
            (
                "sdb1: rw=0, want=976771128, limit=976771119",
                extent(ExtentKind::Request, Some("sdb1"), 976_771_128, Some(976_771_119)),
            ),
            (
                "               sdc: rw=2049, sector=100, nr_sectors = 8 limit=104",
                extent(ExtentKind::Request, Some("sdc"), 108, Some(104)),
            ),
            (
                "sdb: p1 size 500 extends beyond EOD, truncated",
                extent(ExtentKind::Partition, Some("sdb"), 500, None),
            ),
            (
                "[    3.4] GPT:5860533167 != 732566645",
                extent(ExtentKind::Table, None, 5_860_533_168, Some(732_566_646)),
            ),
            (
                "EXT4-fs (sdb1): bad geometry: block count 90 exceeds size of device (80 blocks)",
                extent(ExtentKind::FileSystem, Some("sdb1"), 90, Some(80)),
            ),
            ("GPT:100 != 200", None),
            ("sdb1: rw=0, want=1, limit=2", None),
            ("usb 2-1: Product: GPT:9 != 1", None),
            ("GPT:99999999999999999999 != 1", None),
        ] {
            assert_eq!(Extent::of(LogLine::of(line)), expected, "{line}");
        }
    }
}
