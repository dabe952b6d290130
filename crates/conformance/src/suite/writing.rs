//! Data: whether blocks are kept as they were written (level 2). The first blocks of the drive are overwritten.
//!
//! Each block holds its LBA and the number of its write ([`workload::stamp`]). Here are the table, and tests of sizes and ends;
//! the others are in `depth`, `cache` and `unmap`. Left out: temperature, and power losses of real drives.

use super::{cache, depth, unmap};
use crate::area::{cut, fill, verify, write_area};
use crate::probe::Probe;
use crate::queue::{BlockJob, CommandQueue, StampedBlocks};
use crate::test::{Group, Run, Test, Verdict};
use wire::scsi::cdb::{Read, Write};
use wire::scsi::sense::AdditionalSense;

const LOSES: &str = "The drive loses or mixes up data; it is not fit for use.";

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "data-bot",
        group: Group::Data,
        title: "Blocks written over BOT in any order are read back",
        clause: "SBC-3 clause 4.5",
        means: LOSES,
        run: Run::Bot(|probe, _| ended(depth::out_of_order(probe, CommandQueue::One))),
    },
    Test {
        id: "data-uas",
        group: Group::Data,
        title: "Blocks written and read on all tags of UAS at once are those that were asked for",
        clause: "UAS-2 clause 4.3",
        means: "Under load data of one request end in another: files are damaged.",
        run: Run::Uas(|probe, plan, tag_max| ended(depth::over_uas(probe, plan, tag_max))),
    },
    Test {
        id: "data-sizes",
        group: Group::Data,
        title: "Writes of odd sizes at odd places change their blocks and no other",
        clause: "SBC-3 clause 4.5",
        means: "Files next to the one that is written are damaged.",
        run: Run::Scsi(|probe| Ok(ended(odd_sizes(probe)))),
    },
    Test {
        id: "data-zero-length",
        group: Group::Data,
        title: "READ and WRITE of no blocks are no error, and change nothing",
        clause: "SBC-3 clauses 5.8, 5.33",
        means: "Some old drives take 0 for 256, and overwrite as many blocks.",
        run: Run::Scsi(|probe| Ok(ended(zero_length(probe)))),
    },
    Test {
        id: "data-end",
        group: Group::Data,
        title: "A WRITE across the end is refused, LBA OUT OF RANGE, and changes nothing",
        clause: "SBC-3 clause 4.5",
        means: "The drive announces more than it has, or takes data that it cannot keep.",
        run: Run::Scsi(|probe| Ok(ended(across_the_end(probe)))),
    },
    Test {
        id: "data-fua",
        group: Group::Data,
        title: "WRITE and READ with FUA are accepted, if the drive announces it (DPOFUA)",
        clause: "SBC-3 clauses 5.33, 6.4.1",
        means: "Hosts believe that a file system's journal is on the medium, or get errors in place of it.",
        run: Run::Scsi(|probe| Ok(ended(cache::fua(probe)))),
    },
    Test {
        id: "data-flush",
        group: Group::Data,
        title: "SYNCHRONIZE CACHE is accepted by a drive with a write cache (WCE)",
        clause: "SBC-3 clauses 4.15, 5.22",
        means: "The host cannot have data written: they are lost when it is unplugged.",
        run: Run::Scsi(|probe| Ok(ended(cache::flush(probe)))),
    },
    Test {
        id: "data-unmap",
        group: Group::Data,
        title: "Blocks after UNMAP are as announced (LBPRZ), and their neighbours unharmed",
        clause: "SBC-3 clauses 4.7.4.4, 5.28, 6.5.4",
        means: "TRIM has no effect, or deletes other files.",
        run: Run::Scsi(|probe| Ok(ended(unmap::unmap(probe)))),
    },
    Test {
        id: "data-unmap-end",
        group: Group::Data,
        title: "UNMAP and WRITE SAME beyond the end are refused: LBA OUT OF RANGE",
        clause: "SBC-3 clauses 5.28, 5.42",
        means: "The drive may clear other blocks than those that were named.",
        run: Run::Scsi(|probe| Ok(ended(unmap::beyond_the_end(probe)))),
    },
    Test {
        id: "data-write-same-10",
        group: Group::Data,
        title: "WRITE SAME (10) writes its block to each of the blocks, and to no other",
        clause: "SBC-3 clause 5.42",
        means: "Hosts that clear blocks this way leave old data, or delete other files.",
        run: Run::Scsi(|probe| Ok(ended(unmap::write_same_10(probe)))),
    },
    Test {
        id: "data-write-same-16",
        group: Group::Data,
        title: "WRITE SAME (16) writes its block to each of the blocks, and to no other",
        clause: "SBC-3 clause 5.43",
        means: "Hosts that clear blocks this way leave old data, or delete other files.",
        run: Run::Scsi(|probe| Ok(ended(unmap::write_same_16(probe)))),
    },
    Test {
        id: "data-write-same-unmap",
        group: Group::Data,
        title: "Blocks after WRITE SAME with UNMAP and zeros are zeros, and their neighbours unharmed",
        clause: "SBC-3 clauses 4.7.3.4, 5.43",
        means: "Hosts that clear blocks this way read old data.",
        run: Run::Scsi(|probe| Ok(ended(unmap::write_same_unmap(probe)))),
    },
    Test {
        id: "data-rate",
        group: Group::Data,
        title: "How fast the drive writes, and from where on it is slower",
        clause: "no standard",
        means: "Large files are written at another rate than small ones.",
        run: Run::Alone(|probe| ended(depth::rate(probe))),
    },
    Test {
        id: "data-power-loss",
        group: Group::Data,
        title: "After a power loss flushed and FUA-written blocks are there, the others old or new",
        clause: "SBC-3 clauses 4.15, 5.22, 5.33",
        means: "Files and file systems are damaged when power fails, or the cable is pulled.",
        run: Run::Scsi(|probe| Ok(ended(cache::power_loss(probe)))),
    },
];

/// The verdict of a test that may end early.
fn ended(result: Result<Verdict, Verdict>) -> Verdict {
    result.unwrap_or_else(|verdict| verdict)
}

/// Writes old stamps everywhere, then new ones to blocks of odd sizes with one to three old blocks in between.
fn odd_sizes(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    const BLOCKS: u64 = 1024;
    const SIZES: [u64; 5] = [1, 7, 8, 9, 127];
    let area = write_area(probe, BLOCKS)?;
    let (old, new) = (1, 2);
    let mut run = area.run(4 * BLOCKS);
    fill(probe, &mut run, StampedBlocks { lba: 0, count: BLOCKS, generation: old })?;
    let mut expected = Vec::new();
    let mut lba = 0;
    for (round, size) in (1..).zip(SIZES.into_iter().cycle()) {
        let gap = StampedBlocks { lba, count: round % 3 + 1, generation: old };
        let count = size.min(area.blocks.at_once());
        let written = StampedBlocks { lba: gap.lba + gap.count, count, generation: new };
        if written.lba + count >= BLOCKS {
            expected.push(StampedBlocks { lba, count: BLOCKS - lba, generation: old });
            break;
        }
        fill(probe, &mut run, written)?;
        expected.extend([gap, written]);
        lba = written.lba + count;
    }
    for blocks in &expected {
        verify(probe, &mut run, *blocks)?;
    }
    // Again, with reads that begin and end elsewhere.
    for blocks in &expected {
        let jobs = cut(*blocks, 5).map(BlockJob::Read);
        run.carry_out(probe, CommandQueue::One, jobs)?;
    }
    Ok(run.verdict())
}

fn zero_length(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    const BLOCKS: u64 = 256;
    let area = write_area(probe, BLOCKS)?;
    let mut run = area.run(2 * BLOCKS);
    let all = StampedBlocks { lba: 0, count: BLOCKS, generation: 1 };
    fill(probe, &mut run, all)?;
    let (read, write) = (Read::default().encode(), Write::default().encode());
    for (name, cdb) in [("READ", &read), ("WRITE", &write)] {
        let answer = probe.scsi(0, cdb, 0)?;
        if !answer.is_good() {
            return Ok(Verdict::Fail(format!("{name} of no blocks: {}", answer.describe())));
        }
    }
    verify(probe, &mut run, all)?;
    Ok(run.verdict())
}

/// Writes two blocks, of which the second is beyond the end. The last block has its old data afterwards.
fn across_the_end(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let area = write_area(probe, 2)?;
    let bytes = area.blocks.bytes;
    let last = area.blocks.count - 1;
    let before = probe.read_blocks(last, 1, bytes)?;
    let written = area.run(2).bytes_of(StampedBlocks { lba: last, count: 2, generation: 1 });
    let cdb = Write { lba: last, blocks: 2, ..Write::default() }.encode();
    let answer = probe.scsi_out(0, &cdb, &written)?;
    let after = probe.read_blocks(last, 1, bytes)?;
    if after != before {
        probe.write_blocks(last, &before, bytes)?;
        return Ok(Verdict::Fail(format!("the last block was overwritten: {}", answer.describe())));
    }
    let is_refused = answer.is_refused(&[AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE]);
    Ok(Verdict::of(is_refused, || answer.describe()))
}
