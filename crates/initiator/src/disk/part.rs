//! Splitting of requests into commands: length, CDB, data (SBC-4).
//!
//! Pure. An extent is cut at the unit's limits, the transport's maximum or the field width of the
//! CDB, and then back to a boundary that the unit prefers. CDBs have 10 bytes while addresses fit
//! into 32 bits, else 16, and 6 only for a unit that rejected the longer ones.
//!
//! Always true: a part is at least one block and at most the rest.

use super::geometry::{Geometry, UnmapMethod};
use super::request::Operation;
use crate::CommandBlock;
use core::hint::cold_path;
use units::{BlockCount, ByteCount, ByteRange, Extent, Lba};
use wire::scsi::block::{UnmapDescriptor, UnmapList};
use wire::scsi::cdb::{CdbWidth, Read, SynchronizeCache, Unmap, Write, WriteSame};

/// Blocks of one READ or WRITE with a 10-byte CDB, and of one WRITE SAME where the unit sets no
/// limit.
const BLOCKS_MAX_TEN: u64 = 0xffff;
/// Blocks of one READ(6) or WRITE(6).
const BLOCKS_MAX_SIX: u64 = 0x100;
/// Blocks of one WRITE SAME that unmaps, and of one UNMAP, where the unit sets no limit: as Linux
/// has it.
const BLOCKS_MAX_UNMAP: u64 = 0x7f_ffff;
/// Bytes that one command with [`Memory::Parameters`](super::Memory::Parameters) sends at most: the
/// zeroes of a WRITE, where a unit has no WRITE SAME.
pub const PARAMETER_BYTES_MAX: u32 = 64 << 10;
/// The operation code of UNMAP.
const UNMAP: u8 = 0x42;
/// Those of WRITE SAME(10) and (16).
const WRITE_SAME: [u8; 2] = [0x41, 0x93];
/// Those of READ(10) and WRITE(10).
const READ_WRITE_TEN: [u8; 2] = [0x28, 0x2a];
/// The last address that a 6-byte CDB can say.
const LBA_MAX_SIX: u64 = 0x1f_ffff;

/// Runs of blocks in one UNMAP.
pub(super) const RUNS_MAX: usize = 16;
/// Bytes of the longest UNMAP parameter list.
pub const LIST_BYTES_MAX: usize = list_bytes(RUNS_MAX);

/// Limitations learnt from rejected commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LearnedQuirks {
    /// READ(10) and WRITE(10) are not there.
    pub(super) six_bytes: bool,
    /// The FUA bit is refused, whatever the mode header says.
    pub(super) no_fua: bool,
    /// SYNCHRONIZE CACHE is not there.
    pub(super) no_flush: bool,
    /// WRITE SAME does not zero by unmapping, whatever the pages say.
    pub(super) no_unmapping_same: bool,
    /// WRITE SAME is not there: zeroes are written.
    pub(super) no_same: bool,
    /// It says nothing to what it does not know: it was asked the same twice.
    pub(super) is_silent: bool,
}

/// One command's share of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) extent: Extent,
    /// Which bytes of the request's buffer, of the zeroes or of the parameter list.
    pub(super) data: ByteRange,
    pub(super) cdb: CommandBlock,
    /// Whether the FUA bit is set.
    pub(super) fua: bool,
    /// Whether it zeroes by unmapping.
    pub(super) unmaps: bool,
}

/// The facts about a part that are kept while its command is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) blocks: BlockCount,
    pub(super) data: ByteRange,
    operation_code: u8,
    pub(super) fua: bool,
    pub(super) unmaps: bool,
}

impl Part {
    /// Whether its data are an UNMAP parameter list.
    pub(super) fn sends_list(&self) -> bool {
        self.cdb.operation_code() == UNMAP
    }

    /// The same UNMAP with more runs.
    pub(super) fn of_runs(self, runs: usize) -> Self {
        Self { data: ByteRange::new(0, list_bytes(runs) as u32), cdb: unmap_block(runs), ..self }
    }

    #[inline]
    pub(super) fn share(&self) -> Share {
        let Self { extent, data, cdb, fua, unmaps } = self;
        let operation_code = cdb.operation_code();
        Share { blocks: extent.blocks, data: *data, operation_code, fua: *fua, unmaps: *unmaps }
    }
}

impl Share {
    /// Whether its data are an UNMAP parameter list.
    pub(super) const fn sends_list(&self) -> bool {
        self.operation_code == UNMAP
    }

    /// Whether it is a WRITE SAME.
    pub(super) fn is_same(&self) -> bool {
        WRITE_SAME.contains(&self.operation_code)
    }

    /// Whether it is a READ or a WRITE that six bytes could say as well; its first block is `lba`.
    pub(super) fn could_be_six(&self, lba: Lba) -> bool {
        READ_WRITE_TEN.contains(&self.operation_code) && lba.0 <= LBA_MAX_SIX
    }
}

/// Whether the unit can do such a thing at all, as far as is known.
pub(super) const fn is_supported(operation: Operation, geometry: &Geometry) -> bool {
    !matches!(operation, Operation::Unmap) || geometry.unmap.is_some()
}

/// The first part of `rest`, whose data begin at byte `offset` of the request's buffer.
#[inline(always)]
pub(super) fn first_part(
    operation: Operation,
    rest: Extent,
    offset: u32,
    geometry: &Geometry,
    rules: Rules,
) -> Part {
    let Rules { transfer_bytes_max, learned } = rules;
    let (fua, dpo, bytes_max) = match operation {
        Operation::Read { fua, dpo, .. } | Operation::Write { fua, dpo } => (fua, dpo, transfer_bytes_max),
        // Zeroes are written, from the first on.
        Operation::Zero { .. } if learned.no_same => {
            cold_path();
            (false, false, transfer_bytes_max.min(PARAMETER_BYTES_MAX))
        }
        _ => return first_unmoved(operation, rest, geometry, learned),
    };
    let blocks = moved_blocks(rest, bytes_max, geometry, learned);
    let extent = Extent { lba: rest.lba, blocks: BlockCount(blocks) };
    let has_bits = geometry.fua && !learned.six_bytes;
    let (fua, dpo) = (fua && has_bits && !learned.no_fua, dpo && has_bits);
    let (lba, blocks) = (rest.lba.0, blocks as u32);
    // No part is longer than the request, whose bytes were counted in 32 bits.
    let data = ByteRange::new(offset, blocks * geometry.block_size.bytes());
    // An encoding widens by itself where a field would not fit.
    let width = if learned.six_bytes { CdbWidth::Six } else { CdbWidth::Ten };
    let cdb = if operation.changes_blocks() {
        Write { width, lba, blocks, fua, dpo, ..Write::default() }.encode()
    } else {
        Read { width, lba, blocks, fua, dpo, ..Read::default() }.encode()
    };
    Part { extent, data, cdb: cdb.into(), fua, unmaps: false }
}

/// The first part of what does not move its blocks.
#[cold]
fn first_unmoved(operation: Operation, rest: Extent, geometry: &Geometry, learned: LearnedQuirks) -> Part {
    let blocks = unmoved_blocks(operation, rest, geometry);
    let extent = Extent { lba: rest.lba, blocks: BlockCount(blocks) };
    let block_bytes = geometry.block_size.bytes();
    let unmaps = operation == Operation::Zero { may_unmap: true } && zeroes_by_unmapping(geometry, learned);
    let data = match operation {
        Operation::Unmap if geometry.unmap == Some(UnmapMethod::Unmap) => {
            ByteRange::new(0, list_bytes(1) as u32)
        }
        Operation::Flush => ByteRange::default(),
        _ => ByteRange::new(0, block_bytes),
    };
    let cdb = unmoved_block(operation, extent, geometry, learned);
    Part { extent, data, cdb, fua: false, unmaps }
}

/// The limits of a part besides the geometry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Bytes of data in one command at most.
    pub(super) transfer_bytes_max: u32,
    pub(super) learned: LearnedQuirks,
}

/// Writes the parameter list of an UNMAP of these runs, [`RUNS_MAX`] at most; how long it is.
pub(super) fn unmap_list(runs: &[Extent], list: &mut [u8; LIST_BYTES_MAX]) -> usize {
    let mut descriptors = [UnmapDescriptor { lba: 0, blocks: 0 }; RUNS_MAX];
    for (descriptor, run) in descriptors.iter_mut().zip(runs) {
        *descriptor = UnmapDescriptor { lba: run.lba.0, blocks: run.blocks.0 as u32 };
    }
    let count = runs.len().min(RUNS_MAX);
    UnmapList::encode(&descriptors[..count], list).expect("there is room for as many descriptors")
}

/// Bytes of an UNMAP parameter list.
const fn list_bytes(runs: usize) -> usize {
    UnmapList::HEADER_LEN + runs * UnmapDescriptor::LEN
}

/// Runs and blocks that one UNMAP can have.
pub(super) fn unmap_room(geometry: &Geometry) -> (usize, u64) {
    let limits = &geometry.limits;
    let runs = usize::try_from(limits.maximum_unmap_block_descriptor_count).unwrap_or(RUNS_MAX);
    (runs.clamp(1, RUNS_MAX), or_no_limit(limits.maximum_unmap_lba_count.into()))
}

fn unmap_block(runs: usize) -> CommandBlock {
    Unmap { parameter_list_len: list_bytes(runs) as u16, ..Unmap::default() }.encode().into()
}

/// SYNCHRONIZE CACHE of all blocks.
pub(super) fn flush_block() -> CommandBlock {
    SynchronizeCache::default().encode().into()
}

fn unmoved_blocks(operation: Operation, rest: Extent, geometry: &Geometry) -> u64 {
    let limits = &geometry.limits;
    let (max, granule, aligned) = match operation {
        Operation::Unmap | Operation::Zero { may_unmap: true } => {
            let max = if geometry.unmap == Some(UnmapMethod::Unmap) && operation == Operation::Unmap {
                or_no_limit(limits.maximum_unmap_lba_count.into()).min(u32::MAX.into())
            } else {
                write_same_max(geometry, true)
            };
            let aligned = limits.unmap_granularity_alignment.unwrap_or(0);
            (max, u64::from(limits.optimal_unmap_granularity), u64::from(aligned))
        }
        Operation::Flush => return 0,
        _ => (write_same_max(geometry, false), 1, 0),
    };
    cut(rest, max, || (granule, aligned))
}

/// Blocks of a READ or a WRITE, as the unit's limits, its boundaries and the field in the CDB
/// allow.
#[inline]
fn moved_blocks(rest: Extent, bytes_max: u32, geometry: &Geometry, learned: LearnedQuirks) -> u64 {
    let limits = &geometry.limits;
    let transport = geometry.block_size.blocks_in(ByteCount(bytes_max.into())).0.max(1);
    let six = learned.six_bytes && rest.lba.0 <= LBA_MAX_SIX;
    let field = if six { BLOCKS_MAX_SIX } else { BLOCKS_MAX_TEN };
    let max = or_no_limit(limits.maximum_transfer_length.into()).min(transport).min(field);
    cut(rest, max, || {
        let granule = u64::from(limits.optimal_transfer_length_granularity).max(geometry.physical_blocks());
        (granule, u64::from(geometry.lowest_aligned_lba))
    })
}

fn write_same_max(geometry: &Geometry, unmaps: bool) -> u64 {
    let wide = unmaps && geometry.unmap == Some(UnmapMethod::WriteSame16);
    let field = if wide { BLOCKS_MAX_UNMAP } else { BLOCKS_MAX_TEN };
    or_no_limit(geometry.limits.maximum_write_same_length).min(field)
}

/// Zero is "not reported".
const fn or_no_limit(reported: u64) -> u64 {
    if reported == 0 { u64::MAX } else { reported }
}

/// Blocks from the front of `rest`: at most `max`, and where that does not reach its end, up to a
/// boundary: an address that is `aligned` more than a multiple of `granule`, which are asked for
/// only then.
#[inline]
fn cut(rest: Extent, max: u64, boundaries: impl FnOnce() -> (u64, u64)) -> u64 {
    let max = max.max(1);
    if rest.blocks.0 <= max {
        return rest.blocks.0;
    }
    let (granule, aligned) = boundaries();
    cut_at_boundary(rest.lba.0, max, granule.max(1), aligned)
}

#[cold]
fn cut_at_boundary(start: u64, max: u64, granule: u64, aligned: u64) -> u64 {
    let end = start.saturating_add(max);
    let past_boundary = (end % granule + granule - aligned % granule) % granule;
    match (end - past_boundary.min(end)).checked_sub(start) {
        None | Some(0) => max,
        Some(blocks) => blocks,
    }
}

fn unmoved_block(
    operation: Operation,
    extent: Extent,
    geometry: &Geometry,
    learned: LearnedQuirks,
) -> CommandBlock {
    let (lba, blocks) = (extent.lba.0, extent.blocks.0 as u32);
    let same = WriteSame { lba, blocks, ..WriteSame::default() };
    let wide = geometry.unmap == Some(UnmapMethod::WriteSame16);
    let unmapping =
        WriteSame { unmap: true, width: if wide { CdbWidth::Sixteen } else { CdbWidth::Ten }, ..same };
    match operation {
        Operation::Flush => flush_block(),
        Operation::Unmap if geometry.unmap == Some(UnmapMethod::Unmap) => unmap_block(1),
        Operation::Unmap => unmapping.encode().into(),
        Operation::Zero { may_unmap: true } if zeroes_by_unmapping(geometry, learned) => {
            unmapping.encode().into()
        }
        _ => same.encode().into(),
    }
}

/// Whether WRITE SAME may unmap and leave zeroes behind.
const fn zeroes_by_unmapping(geometry: &Geometry, learned: LearnedQuirks) -> bool {
    geometry.unmapped_reads_zeroes
        && !learned.no_unmapping_same
        && !learned.no_same
        && matches!(geometry.unmap, Some(UnmapMethod::WriteSame16 | UnmapMethod::WriteSame10))
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Facts;
    use super::*;
    use proptest::prelude::*;
    use wire::scsi::capacity::Capacity10;
    use wire::scsi::inquiry::StandardInquiry;

    const RULES: Rules = Rules {
        transfer_bytes_max: 1 << 20,
        learned: LearnedQuirks {
            six_bytes: false,
            no_fua: false,
            no_flush: false,
            no_unmapping_same: false,
            no_same: false,
            is_silent: false,
        },
    };
    const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };

    /// 2^32 blocks and one, of 512 bytes; the unit says nothing else.
    fn geometry() -> Geometry {
        let facts = Facts {
            inquiry: StandardInquiry::decode(&[0; 36]).ok(),
            ten: Some(Capacity10 { last_lba: u32::MAX, block_length: 512 }),
            ..Facts::default()
        };
        Geometry { capacity: BlockCount(0x1_0000_0001), ..facts.into_geometry().unwrap() }
    }

    fn bytes(operation: Operation, extent: Extent, geometry: &Geometry) -> alloc::vec::Vec<u8> {
        first_part(operation, extent, 0, geometry, RULES).cdb.as_bytes().to_vec()
    }

    #[test]
    fn addresses_choose_the_length_of_the_cdb() {
        let geometry = geometry();
        let ten = bytes(READ, Extent::new(0xffff_ffff, 8), &geometry);
        assert_eq!(ten, [0x28, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 8, 0]);
        let sixteen = bytes(READ, Extent::new(0x1_0000_0000, 1), &geometry);
        assert_eq!(sixteen, [0x88, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_unit_of_old_gets_six_bytes_while_they_say_it() {
        let rules = Rules { learned: LearnedQuirks { six_bytes: true, ..LearnedQuirks::default() }, ..RULES };
        let part = first_part(READ, Extent::new(0x10, 300), 0, &geometry(), rules);
        assert_eq!(part.cdb.as_bytes(), [0x08, 0, 0, 0x10, 0, 0]);
        assert_eq!((part.extent, part.data), (Extent::new(0x10, 256), ByteRange::new(0, 256 * 512)));
        let beyond = first_part(READ, Extent::new(0x20_0000, 1), 0, &geometry(), rules);
        assert_eq!(beyond.cdb.operation_code(), 0x28);
    }

    #[test]
    fn fua_and_dpo_are_set_where_the_unit_has_them() {
        let write = Operation::Write { fua: true, dpo: true };
        assert_eq!(bytes(write, Extent::new(1, 1), &geometry())[..2], [0x2a, 0x00]);
        let with_fua = Geometry { fua: true, ..geometry() };
        assert_eq!(bytes(write, Extent::new(1, 1), &with_fua)[..2], [0x2a, 0x18]);
        let rules = Rules { learned: LearnedQuirks { no_fua: true, ..LearnedQuirks::default() }, ..RULES };
        let refused = first_part(write, Extent::new(1, 1), 0, &with_fua, rules);
        assert_eq!((refused.cdb.as_bytes()[1], refused.fua), (0x10, false));
    }

    #[test]
    fn the_least_of_three_limits_cuts() {
        let mut geometry = geometry();
        let blocks = |geometry: &Geometry, transfer_bytes_max| {
            let rules = Rules { transfer_bytes_max, ..RULES };
            first_part(READ, Extent::new(0, 1 << 20), 0, geometry, rules).extent.blocks.0
        };
        assert_eq!(blocks(&geometry, 1 << 20), 2048);
        assert_eq!(blocks(&geometry, u32::MAX), 0xffff);
        assert_eq!(blocks(&geometry, 100), 1);
        geometry.limits.maximum_transfer_length = 1000;
        assert_eq!(blocks(&geometry, 1 << 20), 1000);
    }

    #[test]
    fn cuts_lie_on_boundaries_of_physical_blocks() {
        let geometry = Geometry { physical_block_exponent: 3, lowest_aligned_lba: 7, ..geometry() };
        let rules = Rules { transfer_bytes_max: 64 << 10, ..RULES };
        let part = first_part(READ, Extent::new(10, 1000), 0, &geometry, rules);
        assert_eq!((part.extent.lba.0 + part.extent.blocks.0) % 8, 7);
        assert_eq!(part.extent.blocks.0, 125);
        let next = first_part(READ, Extent::new(135, 1000), 125 * 512, &geometry, rules);
        assert_eq!((next.extent.blocks.0, next.data.start), (128, 64_000));
    }

    #[test]
    fn a_granule_larger_than_the_limit_does_not_stop_a_cut() {
        let geometry = Geometry { physical_block_exponent: 15, ..geometry() };
        assert_eq!(first_part(READ, Extent::new(5, 1 << 20), 0, &geometry, RULES).extent.blocks.0, 2048);
    }

    #[test]
    fn unmap_carries_one_run_within_the_limit() {
        let mut geometry = Geometry { unmap: Some(UnmapMethod::Unmap), ..geometry() };
        geometry.limits.maximum_unmap_lba_count = 1000;
        geometry.limits.optimal_unmap_granularity = 64;
        let part = first_part(Operation::Unmap, Extent::new(32, 5000), 0, &geometry, RULES);
        assert_eq!(part.extent, Extent::new(32, 992)); // up to 1024
        assert_eq!(part.cdb.as_bytes(), [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        let list = [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0x03, 0xe0, 0, 0, 0, 0];
        let mut bytes = [0; LIST_BYTES_MAX];
        let len = unmap_list(&[part.extent], &mut bytes);
        assert_eq!(bytes[..len], list);
    }

    #[test]
    fn write_same_unmaps_by_the_command_that_the_unit_names() {
        let sixteen = Geometry { unmap: Some(UnmapMethod::WriteSame16), ..geometry() };
        let part = first_part(Operation::Unmap, Extent::new(1, 0x10_0000), 0, &sixteen, RULES);
        assert_eq!(part.cdb.as_bytes(), [0x93, 0x08, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x10, 0, 0, 0, 0]);
        let ten = Geometry { unmap: Some(UnmapMethod::WriteSame10), ..geometry() };
        assert_eq!(bytes(Operation::Unmap, Extent::new(1, 2), &ten), [0x41, 0x08, 0, 0, 0, 1, 0, 0, 2, 0]);
    }

    #[test]
    fn zeroes_unmap_only_where_that_leaves_zeroes() {
        let zero = Operation::Zero { may_unmap: true };
        let unsure = Geometry { unmap: Some(UnmapMethod::WriteSame10), ..geometry() };
        assert_eq!(bytes(zero, Extent::new(1, 2), &unsure)[..2], [0x41, 0x00]);
        let sure = Geometry { unmapped_reads_zeroes: true, ..unsure };
        assert_eq!(bytes(zero, Extent::new(1, 2), &sure)[..2], [0x41, 0x08]);
    }

    #[test]
    fn zeroes_are_written_where_nothing_repeats_them() {
        let zero = Operation::Zero { may_unmap: true };
        let rules = Rules { learned: LearnedQuirks { no_same: true, ..LearnedQuirks::default() }, ..RULES };
        let part = first_part(zero, Extent::new(3, 1000), 0, &geometry(), rules);
        assert_eq!(part.cdb.as_bytes(), [0x2a, 0, 0, 0, 0, 3, 0, 0, 128, 0]);
        assert_eq!((part.extent, part.data), (Extent::new(3, 128), ByteRange::new(0, 65_536)));
        let short = first_part(
            zero,
            Extent::new(3, 1000),
            0,
            &geometry(),
            Rules { transfer_bytes_max: 1024, ..rules },
        );
        assert_eq!(short.extent.blocks.0, 2);
    }

    proptest! {
        #[test]
        fn parts_cover_a_run_without_gap_or_overlap(
            start in 0u64..1 << 33, blocks in 1u64..20_000, exponent in 0u8..8, aligned in 0u16..256,
            granularity in 0u16..300, limit in 0u32..5000, transfer in 1u32..1 << 21, six: bool,
        ) {
            let mut geometry = Geometry {
                physical_block_exponent: exponent, lowest_aligned_lba: aligned, ..geometry()
            };
            geometry.limits.maximum_transfer_length = limit;
            geometry.limits.optimal_transfer_length_granularity = granularity;
            let rules = Rules {
                transfer_bytes_max: transfer, learned: LearnedQuirks { six_bytes: six, ..LearnedQuirks::default() },
            };
            let (mut rest, mut offset, mut parts) = (Extent::new(start, blocks), 0, 0);
            while !rest.is_empty() {
                let part = first_part(READ, rest, offset, &geometry, rules);
                let count = part.extent.blocks.0;
                prop_assert!((1..=rest.blocks.0).contains(&count));
                prop_assert!(count * 512 <= u64::from(transfer.max(512)));
                prop_assert!(limit == 0 || count <= u64::from(limit));
                let read = Read::decode(part.cdb.as_bytes()).unwrap();
                prop_assert_eq!((read.lba, u64::from(read.blocks)), (rest.lba.0, count));
                prop_assert_eq!(part.data, ByteRange::new(offset, count as u32 * 512));
                offset += part.data.len;
                rest = Extent { lba: Lba(rest.lba.0 + count), blocks: BlockCount(rest.blocks.0 - count) };
                parts += 1;
            }
            prop_assert!(parts <= blocks);
        }
    }
}
