//! The flags of a quirk, and their letters (Linux's kernel-parameters.txt, `usb-storage.quirks`).
//!
//! Left out: flags that neither a user nor a row of [`table`](super::table) sets. Always true: a letter has one flag,
//! and a flag has one letter or none.

use super::history::NO_SAME_IS_REPLACED;
use super::{KernelVersion, Versions};
use alloc::string::String;
use core::fmt;

/// One thing that Linux does otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described in one place, for users: `Flag::meaning`")]
pub enum Flag {
    SaneSense,
    BadSense,
    FixCapacity,
    NoReadDiscInfo,
    NoReadCapacity16,
    NoReportOpcodes,
    MaxSectors240,
    CapacityHeuristics,
    IgnoreDevice,
    NoReportLuns,
    NoSame,
    NotLockable,
    MaxSectors64,
    InitialRead10,
    CapacityOk,
    WriteCache,
    IgnoreResidue,
    SingleLun,
    NoAta1x,
    IgnoreUas,
    NoWriteProtectDetect,
    AlwaysSync,
    /// This and the following have no letter, so no user can set them or take them away.
    BrokenFua,
    NeedsCapacity16,
    GoSlow,
    FixInquiry,
    ScmMultTarg,
    BulkIgnoreTag,
    Bulk32,
    NeedOverride,
    MaxSectorsMin,
    SenseAfterSync,
}

/// A set of flags.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u32);

/// Flag, how Linux names it, what it means.
type Row = (Flag, Sign, &'static str);

/// How Linux names a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// By a letter in `usb-storage.quirks`.
    Letter(char),
    /// By `US_FL_` and this name in its source alone: a user can neither set nor remove it.
    Name(&'static str),
}
use Sign::{Letter, Name};

const ROWS: [Row; 32] = [
    (Flag::SaneSense, Letter('a'), "sense data may be longer than 18 bytes"),
    (Flag::BadSense, Letter('b'), "sense data is never longer than 18 bytes"),
    (Flag::FixCapacity, Letter('c'), "the reported capacity is one block too large"),
    (Flag::NoReadDiscInfo, Letter('d'), "no READ DISC INFORMATION"),
    (Flag::NoReadCapacity16, Letter('e'), "no READ CAPACITY (16)"),
    (Flag::NoReportOpcodes, Letter('f'), "no REPORT SUPPORTED OPERATION CODES"),
    (Flag::MaxSectors240, Letter('g'), "no more than 240 sectors at once"),
    (Flag::CapacityHeuristics, Letter('h'), "the reported capacity may be one block too large"),
    (Flag::IgnoreDevice, Letter('i'), "usb-storage leaves the device alone"),
    (Flag::NoReportLuns, Letter('j'), "no REPORT LUNS"),
    (Flag::NoSame, Letter('k'), "no WRITE SAME"),
    (Flag::NotLockable, Letter('l'), "the medium is not locked"),
    (Flag::MaxSectors64, Letter('m'), "no more than 64 sectors at once"),
    (Flag::InitialRead10, Letter('n'), "READ (10) comes first"),
    (Flag::CapacityOk, Letter('o'), "the reported capacity is right"),
    (Flag::WriteCache, Letter('p'), "the write cache is on"),
    (Flag::IgnoreResidue, Letter('r'), "the reported residue is wrong"),
    (Flag::SingleLun, Letter('s'), "one logical unit only"),
    (Flag::NoAta1x, Letter('t'), "no ATA PASS-THROUGH"),
    (Flag::IgnoreUas, Letter('u'), "UAS is not used"),
    (Flag::NoWriteProtectDetect, Letter('w'), "write protection is not queried"),
    (Flag::AlwaysSync, Letter('y'), "caches are flushed although none is reported"),
    (Flag::BrokenFua, Name("BROKEN_FUA"), "the FUA bit is not used"),
    (Flag::NeedsCapacity16, Name("NEEDS_CAP16"), "READ CAPACITY (16) comes first"),
    (Flag::GoSlow, Name("GO_SLOW"), "a pause before each data phase"),
    (Flag::FixInquiry, Name("FIX_INQUIRY"), "the driver answers INQUIRY"),
    (Flag::ScmMultTarg, Name("SCM_MULT_TARG"), "several SCSI targets"),
    (Flag::BulkIgnoreTag, Name("BULK_IGNORE_TAG"), "the tag of a CSW is not compared"),
    (Flag::Bulk32, Name("BULK32"), "a CBW of 32 bytes"),
    (Flag::NeedOverride, Name("NEED_OVERRIDE"), "the row is needed although it changes nothing"),
    (Flag::MaxSectorsMin, Name("MAX_SECTORS_MIN"), "no more than one page at once"),
    (Flag::SenseAfterSync, Name("SENSE_AFTER_SYNC"), "REQUEST SENSE follows SYNCHRONIZE CACHE"),
];

impl Flag {
    /// The letter by which a user names it.
    pub fn letter(self) -> Option<char> {
        match self.row().1 {
            Letter(letter) => Some(letter),
            Name(_) => None,
        }
    }

    /// Returns the meaning of the flag, in words.
    pub fn meaning(self) -> &'static str {
        self.row().2
    }

    /// The flag of a letter; Linux takes either case and passes over what it does not know.
    pub fn of_letter(letter: char) -> Option<Self> {
        let letter = letter.to_ascii_lowercase();
        ROWS.iter().find(|row| row.1 == Letter(letter)).map(|row| row.0)
    }

    /// Every flag, in the order of letters.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    /// Whether a user's entry takes it away by not naming it: every flag with a letter, and `k` where the kernel has it in its mask.
    pub fn is_replaced(self, kernel: Option<KernelVersion>) -> bool {
        let mask = Versions { since: Some(&NO_SAME_IS_REPLACED), before: None };
        self.letter().is_some() && (self != Self::NoSame || mask.contain(kernel))
    }

    fn row(self) -> Row {
        ROWS[self as usize]
    }
}

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);

    /// These flags.
    pub const fn of(flags: &[Flag]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < flags.len() {
            set |= 1 << flags[at] as u32;
            at += 1;
        }
        Self(set)
    }

    /// Whether the flag is set.
    pub const fn contains(self, flag: Flag) -> bool {
        let bit = 1 << flag as u32;
        self.0 & bit == bit
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without a flag.
    #[must_use]
    pub const fn without(self, flag: Flag) -> Self {
        let bit: u32 = 1 << flag as u32;
        Self(self.0 & !bit)
    }

    /// The flags that are set.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::all().filter(move |flag| self.contains(*flag))
    }

    /// The letters of the flags that have one.
    pub fn letters(self) -> String {
        self.iter().filter_map(Flag::letter).collect()
    }

    /// Returns the flags after a user's entry replaces them; `None` is the newest kernel: it replaces every letter.
    #[must_use]
    pub fn replaced_by(self, entry: Self, kernel: Option<KernelVersion>) -> Self {
        self.iter().filter(|flag| flag.is_replaced(kernel)).fold(self, Self::without).union(entry)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for Flags {
    /// `u (UAS is not used), NEEDS_CAP16 (READ CAPACITY (16) comes first; no letter)`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("none");
        }
        for (index, flag) in self.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match flag.row().1 {
                Letter(letter) => write!(f, "{comma}{letter} ({})", flag.meaning())?,
                Name(name) => write!(f, "{comma}{name} ({}; no letter)", flag.meaning())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_in_its_own_row() {
        for (index, flag) in Flag::all().enumerate() {
            assert_eq!(flag as usize, index);
        }
    }

    #[test]
    fn the_letters_are_those_of_the_kernel() {
        let letters: String = Flag::all().filter_map(Flag::letter).collect();
        assert_eq!(letters, "abcdefghijklmnoprstuwy");
        assert_eq!(Flag::of_letter('U'), Some(Flag::IgnoreUas));
        assert_eq!(Flag::of_letter('q'), None);
    }

    #[test]
    fn an_entry_replaces_what_has_a_letter_and_k_in_newer_kernels_alone() {
        let built_in = Flags::of(&[Flag::IgnoreUas, Flag::NoReportOpcodes, Flag::BrokenFua, Flag::NoSame]);
        let left = |kernel| built_in.replaced_by(Flags::of(&[Flag::NoAta1x]), kernel);
        let [old, new] = [177, 178].map(|patch| Some(KernelVersion::with_patch(6, 1, patch)));
        assert_eq!(left(old), Flags::of(&[Flag::NoSame, Flag::NoAta1x, Flag::BrokenFua]));
        assert_eq!(left(old).letters(), "kt");
        assert_eq!([left(new), left(None)].map(Flags::letters), ["t", "t"]);
    }
}
