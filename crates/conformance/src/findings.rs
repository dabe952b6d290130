//! Wrong blocks, counted by what they hold in place of their stamp.
//!
//! Left out: which blocks are read. Always true: each wrong block is counted once.

use crate::resume::{RepeatedBlock, WholeRun, WrongBlocks};
use crate::test::Verdict;
use workload::stamp::BlockContent;

/// Wrong blocks of a pass over blocks: the number of each kind, and the first.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    wrong: [Wrong; WRONG_KINDS.len()],
    /// Wrong blocks of the same content, one after the other, which are not counted yet.
    run: Option<SameBlocks>,
}

/// Kind of content in place of a block's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrongKind {
    Wrapped,
    Swapped,
    Stuck,
    Dropped,
    Aged,
    Damaged,
}

/// Wrong blocks of one kind.
#[derive(Debug, Default)]
struct Wrong {
    count: u64,
    /// The first, and the LBA whose data it holds, if that is another.
    first: Option<(u64, u64)>,
}

/// Blocks with the same content.
#[derive(Debug)]
struct SameBlocks {
    kind: WrongKind,
    lba: u64,
    holds: u64,
    count: u64,
    content: Vec<u8>,
}

/// All kinds, by name and in words.
const WRONG_KINDS: [(WrongKind, &str, &str); 6] = [
    (WrongKind::Wrapped, "wrapped", "hold the data of a later one"),
    (WrongKind::Swapped, "swapped", "hold the data of an earlier one"),
    (WrongKind::Stuck, "stuck", "hold one old block"),
    (WrongKind::Dropped, "dropped", "are zeros"),
    (WrongKind::Aged, "aged", "hold data from before this run"),
    (WrongKind::Damaged, "damaged", "are damaged"),
];

impl Findings {
    /// Counts a block that does not hold its stamp.
    pub(crate) fn add(&mut self, lba: u64, block: &[u8], found: BlockContent) {
        let (kind, holds) = match found {
            // Of two blocks that share a place the one that was written last remains: the later one, if they are in order.
            BlockContent::Misplaced { belongs_to } if belongs_to > lba => (WrongKind::Wrapped, belongs_to),
            BlockContent::Misplaced { belongs_to } => (WrongKind::Swapped, belongs_to),
            BlockContent::NoStamp if block.iter().all(|byte| *byte == 0) => (WrongKind::Dropped, lba),
            BlockContent::NoStamp | BlockContent::OtherSession | BlockContent::OtherGeneration { .. } => {
                (WrongKind::Aged, lba)
            }
            BlockContent::Damaged => (WrongKind::Damaged, lba),
        };
        // A stamp names its block: two blocks with the same one cannot both be theirs.
        let has_stamp = matches!(found, BlockContent::Misplaced { .. } | BlockContent::OtherSession);
        if let Some(run) = self.run.as_mut().filter(|run| has_stamp && run.content == block) {
            run.count = run.count.saturating_add(1);
            return;
        }
        self.end_run();
        if has_stamp {
            self.run = Some(SameBlocks { kind, lba, holds, count: 1, content: block.to_vec() });
        } else {
            self.count(kind, lba, holds, 1);
        }
    }

    /// Counts the blocks of the same content that came last.
    fn end_run(&mut self) {
        let Some(SameBlocks { kind, lba, holds, count, .. }) = self.run.take() else { return };
        self.count(if count > 1 { WrongKind::Stuck } else { kind }, lba, holds, count);
    }

    fn count(&mut self, kind: WrongKind, lba: u64, holds: u64, count: u64) {
        let wrong = &mut self.wrong[kind as usize];
        wrong.count = wrong.count.saturating_add(count);
        if wrong.first.is_none_or(|(first, _)| lba < first) {
            wrong.first = Some((lba, holds));
        }
    }

    /// Returns the last wrong blocks, if they have the same content and are not counted yet.
    pub(crate) fn repeated(&self) -> Option<RepeatedBlock> {
        let SameBlocks { kind, lba, holds, count, content } = self.run.as_ref()?;
        let (_, name, _) = WRONG_KINDS.iter().find(|(known, ..)| known == kind)?;
        let wrong = WrongBlocks { kind: (*name).to_owned(), count: *count, first: *lba, holds: *holds };
        Some(RepeatedBlock { wrong, content: content.clone() })
    }

    /// Returns the wrong blocks that were counted.
    pub(crate) fn counted(&self) -> Vec<WrongBlocks> {
        let of = |(kind, name, _): &(WrongKind, &str, &str)| {
            let wrong = &self.wrong[*kind as usize];
            let (first, holds) = wrong.first?;
            Some(WrongBlocks { kind: (*name).to_owned(), count: wrong.count, first, holds })
        };
        WRONG_KINDS.iter().filter_map(of).collect()
    }

    /// Keeps in a run how far the reads have come, and what they found.
    pub(crate) fn keep_in(&self, run: &mut WholeRun, read: u64) {
        run.read = read;
        run.wrong = self.counted();
        run.repeated = self.repeated();
    }

    /// Goes on with what a saved run has found. `None`: a kind is not known.
    pub(crate) fn of_run(run: &WholeRun) -> Option<Self> {
        let kind_of =
            |name: &str| WRONG_KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind);
        let mut findings = Self::default();
        for WrongBlocks { kind, count, first, holds } in &run.wrong {
            findings.wrong[kind_of(kind)? as usize] = Wrong { count: *count, first: Some((*first, *holds)) };
        }
        if let Some(RepeatedBlock { wrong, content }) = &run.repeated {
            let WrongBlocks { kind, count, first: lba, holds } = wrong;
            let (kind, content) = (kind_of(kind)?, content.clone());
            findings.run = Some(SameBlocks { kind, lba: *lba, holds: *holds, count: *count, content });
        }
        Some(findings)
    }

    /// Returns whether no block is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_none() && self.wrong.iter().all(|wrong| wrong.count == 0)
    }

    /// Passes if no block is wrong, of so many that were read.
    pub(crate) fn verdict(&mut self, total: u64) -> Verdict {
        self.end_run();
        let mut parts = Vec::new();
        for (kind, _, what) in WRONG_KINDS {
            let wrong = &self.wrong[kind as usize];
            let Some((lba, holds)) = wrong.first else { continue };
            let other = if holds == lba { String::new() } else { format!(", which holds LBA {holds}") };
            parts.push(format!("{} {what} (first LBA {lba}{other})", wrong.count));
        }
        Verdict::of(parts.is_empty(), || format!("of {total} blocks {}", parts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_wrong_blocks_are_counted_with_their_first_lba() {
        let mut findings = Findings::default();
        findings.add(3, &[1; 512], BlockContent::Misplaced { belongs_to: 19 });
        findings.add(4, &[2; 512], BlockContent::Misplaced { belongs_to: 20 });
        findings.add(9, &[3; 512], BlockContent::Misplaced { belongs_to: 8 });
        findings.add(10, &[0; 512], BlockContent::NoStamp);
        findings.add(11, &[1; 512], BlockContent::NoStamp);
        findings.add(12, &[1; 512], BlockContent::Damaged);
        assert_eq!(
            findings.verdict(32).words(),
            Some(
                "of 32 blocks 2 hold the data of a later one (first LBA 3, which holds LBA 19); 1 hold the data of an \
                 earlier one (first LBA 9, which holds LBA 8); 1 are zeros (first LBA 10); 1 hold data from before this run \
                 (first LBA 11); 1 are damaged (first LBA 12)"
            )
        );
    }

    #[test]
    fn blocks_with_the_same_stamp_are_stuck_and_erased_blocks_are_not() {
        let mut findings = Findings::default();
        for lba in 4..7 {
            findings.add(lba, &[5; 512], BlockContent::Misplaced { belongs_to: 3 });
        }
        for lba in 20..22 {
            findings.add(lba, &[0xff; 512], BlockContent::NoStamp);
        }
        assert_eq!(
            findings.verdict(32).words(),
            Some(
                "of 32 blocks 3 hold one old block (first LBA 4, which holds LBA 3); 2 hold data from before this run (first \
                 LBA 20)"
            )
        );
    }
}
