//! Answers that no disk may give, which the kernel prints where it reads them (`sd_done` and `sd_read_capacity` of Linux's sd.c).
//!
//! USB protects each packet by a CRC and sends it again, so that a cable loses packets and does not change an answer: what is
//! malformed was sent so. Left out: answers that many drives lack and the kernel does without, as the caching page.

use super::line::LogLine;

/// A malformed answer, as the kernel read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MalformedAnswer {
    /// A read or write that moved a part of a block.
    PartOfBlock {
        /// Bytes that were not moved, by the residue or the length of the transfer.
        residue: u64,
        /// Bytes of a block.
        block: u64,
    },
    /// READ CAPACITY with blocks of this many bytes, which Linux does not support.
    BlockLength(u64),
}

impl MalformedAnswer {
    /// Reads a line, if it is of that kind.
    pub(crate) fn of(line: LogLine<'_>) -> Option<Self> {
        let text = line.of_command();
        if let Some(rest) = text.strip_prefix("Unaligned partial completion (resid=") {
            let (residue, rest) = rest.split_once(", sector_sz=")?;
            let block = rest.split_once(')')?.0.parse().ok()?;
            return Some(Self::PartOfBlock { residue: residue.parse().ok()?, block });
        }
        if text.starts_with("Sector size 0 reported") {
            return Some(Self::BlockLength(0));
        }
        let bytes = text.strip_prefix("Unsupported sector size ")?.trim_end().trim_end_matches('.');
        Some(Self::BlockLength(bytes.parse().ok()?))
    }

    /// The answer in words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::PartOfBlock { residue, block } => format!(
                "the device moved a part of a block: {residue} bytes of a transfer were missing, and blocks have {block}"
            ),
            Self::BlockLength(bytes) => {
                format!("the device answered READ CAPACITY with blocks of {bytes} bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_answers_are_read_and_others_are_not() {
        let of = |text| MalformedAnswer::of(LogLine::of(text));
        let part = "[  1.0] sd 1:0:0:0: [sdb] Unaligned partial completion (resid=218, sector_sz=512)";
        assert_eq!(of(part), Some(MalformedAnswer::PartOfBlock { residue: 218, block: 512 }));
        let tagged = "[  1.0] sd 1:0:0:0: [sdb] tag#0 Unaligned partial completion (resid=1, sector_sz=4096)";
        assert_eq!(of(tagged), Some(MalformedAnswer::PartOfBlock { residue: 1, block: 4096 }));
        let length = "[  1.0] sd 2:0:0:0: [sdb] Unsupported sector size 263520264.";
        assert_eq!(of(length), Some(MalformedAnswer::BlockLength(263_520_264)));
        let zero = "[  1.0] sd 2:0:0:0: [sdb] Sector size 0 reported, assuming 512.";
        assert_eq!(of(zero), Some(MalformedAnswer::BlockLength(0)));
        for other in [
            "[  1.0] sd 1:0:0:0: [sdb] Unaligned partial completion (resid=, sector_sz=512)",
            "[  1.0] sd 1:0:0:0: [sdb] Unaligned partial completion (resid=99999999999999999999, sector_sz=512)",
            "[  1.0] sd 2:0:0:0: [sdb] Unsupported sector size .",
            "[  1.0] sd 2:0:0:0: [sdb] 4096-byte physical blocks",
            "[  1.0] usb 1-1: Product: Unsupported sector size 7.",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
