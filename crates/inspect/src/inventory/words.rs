//! Words that make a line of a kernel log worth parsing, and one pass over its bytes that finds them.
//!
//! Most lines of a log are about something else, so rejection is what costs time: a bit for each pair of bytes that a word
//! begins with rejects nearly every place of a line. Always true: a line has a word exactly if it contains it; letters count as
//! they are. Left out: what the words mean, which the parser of a line decides.

/// The subject that a word shows a line to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    /// A USB drive, its port, its controller or its power.
    Drives,
    /// The machine itself and when it slept; or a line of another format that begins as those of a log do.
    Machine,
}

/// Words of one topic or both, with tables to find them.
pub(super) struct WordSet {
    has_machine: bool,
    /// A bit for each pair of bytes that a word begins with.
    pairs: [u64; PAIR_ELEMENTS],
    /// For each byte the first of [`WORDS`] that begins with it, and the one after the last.
    of_byte: [(u8, u8); 256],
}

/// Elements of a bitmap of all pairs of bytes.
const PAIR_ELEMENTS: usize = (1 << 16) / u64::BITS as usize;

/// Words of lines about drives.
pub(super) static DRIVES: WordSet = WordSet::of(false);

/// Words of lines that a report needs.
pub(super) static NEEDED: WordSet = WordSet::of(true);

impl WordSet {
    /// Builds the tables.
    const fn of(has_machine: bool) -> Self {
        let mut set = Self { has_machine, pairs: [0; PAIR_ELEMENTS], of_byte: [(0, 0); 256] };
        let mut at: u8 = 0;
        let mut last = 0;
        while (at as usize) < WORDS.len() {
            let (word, topic) = WORDS[at as usize];
            let word = word.as_bytes();
            assert!(word.len() >= 2 && word[0] >= last, "words are sorted by their first byte");
            if has_machine || matches!(topic, Topic::Drives) {
                let (element, bit) = pair_of(word[0], word[1]);
                set.pairs[element] |= bit;
            }
            if word[0] != last {
                set.of_byte[word[0] as usize].0 = at;
            }
            set.of_byte[word[0] as usize].1 = at + 1;
            last = word[0];
            at += 1;
        }
        set
    }

    /// Whether a line contains one of the words.
    pub(super) fn is_in(&self, line: &[u8]) -> bool {
        line.windows(2).enumerate().any(|(at, pair)| {
            let &[first, second] = pair else { return false };
            let (element, bit) = pair_of(first, second);
            self.pairs[element] & bit != 0 && self.begins(line.get(at..).unwrap_or_default(), first)
        })
    }

    fn begins(&self, rest: &[u8], first: u8) -> bool {
        let (from, to) = self.of_byte[usize::from(first)];
        let words = WORDS.get(usize::from(from)..usize::from(to)).unwrap_or_default();
        words.iter().any(|(word, topic)| {
            (self.has_machine || *topic == Topic::Drives) && rest.starts_with(word.as_bytes())
        })
    }
}

/// The element of a bitmap, and the bit in it.
const fn pair_of(first: u8, second: u8) -> (usize, u64) {
    let pair = u16::from_be_bytes([first, second]) as usize;
    (pair / u64::BITS as usize, 1 << (pair % u64::BITS as usize))
}

/// All words, of two bytes or more, sorted by their first byte.
const WORDS: [(&str, Topic); 51] = [
    ("ASC=", Topic::Drives),
    ("Add. Sense", Topic::Drives),
    ("Aborting journal on device sd", Topic::Drives),
    ("BTRFS", Topic::Drives),
    ("CDB:", Topic::Drives),
    ("Error sending ATA command", Topic::Drives),
    ("Error updating SMART data", Topic::Drives),
    ("EXT4-fs", Topic::Drives),
    ("FAT-fs (", Topic::Drives),
    ("GPT:", Topic::Drives),
    ("HC died", Topic::Drives),
    ("I/O error", Topic::Drives),
    ("Linux version ", Topic::Machine),
    ("PM: ", Topic::Machine),
    ("Read(", Topic::Drives),
    ("Sense Key", Topic::Drives),
    ("USB disconnect", Topic::Drives),
    ("Write(", Topic::Drives),
    ("XFS (sd", Topic::Drives),
    ("beyond end of device", Topic::Drives),
    ("beyond EOD", Topic::Drives),
    ("bad geometry: ", Topic::Drives),
    ("cdb[0]=", Topic::Drives),
    ("da0", Topic::Machine),
    ("da1", Topic::Machine),
    ("da2", Topic::Machine),
    ("da3", Topic::Machine),
    ("failed to read SMART", Topic::Drives),
    ("hub ", Topic::Drives),
    ("hcd", Topic::Drives),
    ("hostbyte=", Topic::Drives),
    ("line: ", Topic::Machine),
    ("model: ", Topic::Machine),
    ("mass", Topic::Machine),
    ("nder-voltage", Topic::Drives),
    ("new USB bus registered", Topic::Drives),
    ("ntfs3", Topic::Drives),
    ("oltage detected", Topic::Drives),
    ("oltage normalised", Topic::Drives),
    ("over-current", Topic::Drives),
    ("rpi_firmware", Topic::Drives),
    ("ror, dev sd", Topic::Drives),
    ("rw=", Topic::Drives),
    ("sd ", Topic::Drives),
    ("scsi", Topic::Drives),
    ("session recovery timed out", Topic::Drives),
    ("transfers", Topic::Machine),
    ("usb", Topic::Drives),
    ("uas", Topic::Drives),
    ("xhci", Topic::Drives),
    ("zio pool=", Topic::Drives),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in_naively(line: &str, set: &WordSet) -> bool {
        let mut words = WORDS.iter().filter(|(_, topic)| set.has_machine || *topic == Topic::Drives);
        words.any(|(word, _)| line.contains(word))
    }

    #[test]
    fn a_word_is_found_at_every_place() {
        for set in [&DRIVES, &NEEDED] {
            for (word, _) in WORDS {
                for line in [word.to_owned(), format!("x{word}x"), format!("[  1.0] uuss{word}")] {
                    assert_eq!(set.is_in(line.as_bytes()), is_in_naively(&line, set), "{line}");
                }
                let cut = &word[..word.len() - 1];
                assert_eq!(set.is_in(cut.as_bytes()), is_in_naively(cut, set), "{cut}");
            }
        }
    }

    #[test]
    fn lines_of_other_drivers_have_none() {
        for line in ["", "u", "[  1.0] audit: type=1400", "eth0: link up", "uhci", "\u{fffd}us\0b"] {
            assert!(!DRIVES.is_in(line.as_bytes()), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_line_has_a_word_exactly_if_it_contains_it(line in "[usb hcdaA=SC(]{0,40}") {
            proptest::prop_assert_eq!(DRIVES.is_in(line.as_bytes()), is_in_naively(&line, &DRIVES));
        }
    }
}
