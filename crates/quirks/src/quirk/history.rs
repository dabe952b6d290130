//! When Linux took changes of its tables and rules: the mainline version and the first release of each stable branch.
//!
//! Mainline versions are those of the pull requests, releases of stable branches those of their change logs and reviews. A branch that is not listed
//! may have a change or not. Branches before [`OLDEST`] were not looked at.

use super::KernelVersion;
use core::fmt;

/// A change of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The mainline commit; `None` where it was not found.
    pub commit: Option<&'static str>,
    /// The first mainline version with it.
    pub mainline: KernelVersion,
    /// The first release with it of each stable branch where it is known: major, minor, patch.
    pub stable: &'static [[u16; 3]],
    /// Releases of other branches that have it, of which the first is not known.
    pub seen: &'static [[u16; 3]],
}

/// Whether a kernel has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Present,
    /// It does not.
    Absent,
    /// Its patch level is not known, or nothing is known of its branch.
    Unknown,
}

/// The versions that have something. Without dates it is older than [`OLDEST`] and still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Change that introduced it.
    pub since: Option<&'static Change>,
    /// Change that removed it.
    pub before: Option<&'static Change>,
}

/// The oldest version whose tables were looked at.
pub const OLDEST: KernelVersion = KernelVersion::new(5, 2);

impl Change {
    const fn new(commit: &'static str, mainline: KernelVersion, stable: &'static [[u16; 3]]) -> Self {
        Self { commit: Some(commit), mainline, stable, seen: &[] }
    }

    /// A change whose commit was not found.
    const fn unnamed(mainline: KernelVersion, stable: &'static [[u16; 3]]) -> Self {
        Self { commit: None, mainline, stable, seen: &[] }
    }

    const fn seen(self, seen: &'static [[u16; 3]]) -> Self {
        Self { seen, ..self }
    }

    /// Whether a kernel has it.
    pub fn presence(&self, kernel: KernelVersion) -> Presence {
        let is_seen = |release: KernelVersion| {
            kernel.patch.is_some_and(|patch| release.patch.is_some_and(|seen| patch >= seen))
        };
        if kernel.is_since(self.mainline) || release_of(self.seen, kernel).is_some_and(is_seen) {
            return Presence::Present;
        }
        match (self.release_in(kernel), kernel.patch) {
            (Some(first), Some(patch)) if first.patch.is_some_and(|first| patch < first) => Presence::Absent,
            (Some(_), Some(_)) => Presence::Present,
            _ => Presence::Unknown,
        }
    }

    /// The first release with it of a kernel's branch.
    pub fn release_in(&self, kernel: KernelVersion) -> Option<KernelVersion> {
        release_of(self.stable, kernel)
    }
}

/// The release of a kernel's branch.
fn release_of(releases: &[[u16; 3]], kernel: KernelVersion) -> Option<KernelVersion> {
    let mut releases =
        releases.iter().map(|&[major, minor, patch]| KernelVersion::with_patch(major, minor, patch));
    releases.find(|release| release.is_of_branch(kernel))
}

impl Versions {
    /// Whether a kernel has it; `None` is the newest of all.
    pub fn presence(self, kernel: Option<KernelVersion>) -> Presence {
        let Some(kernel) = kernel else {
            return if self.before.is_none() { Presence::Present } else { Presence::Absent };
        };
        let old = if kernel.is_since(OLDEST) { Presence::Present } else { Presence::Unknown };
        let since = self.since.map_or(old, |change| change.presence(kernel));
        let before = self.before.map_or(Presence::Absent, |change| change.presence(kernel));
        match (since, before) {
            (Presence::Absent, _) | (_, Presence::Present) => Presence::Absent,
            (Presence::Present, Presence::Absent) => Presence::Present,
            _ => Presence::Unknown,
        }
    }

    /// Whether it counts in a kernel: it is there for certain or older than [`OLDEST`], and not removed for certain.
    pub fn contain(self, kernel: Option<KernelVersion>) -> bool {
        let Some(kernel) = kernel else { return self.before.is_none() };
        self.since.is_none_or(|change| change.presence(kernel) == Presence::Present)
            && self.before.is_none_or(|change| change.presence(kernel) != Presence::Present)
    }
}

impl fmt::Display for Change {
    /// The mainline version.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mainline.fmt(f)
    }
}

impl fmt::Display for Versions {
    /// `Linux since 6.16`; where nothing is known, `Linux`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Linux")?;
        if let Some(since) = self.since {
            write!(f, " since {}", since.mainline)?;
        }
        self.before.map_or(Ok(()), |before| write!(f, " before {}", before.mainline))
    }
}

const fn version(major: u16, minor: u16) -> KernelVersion {
    KernelVersion::new(major, minor)
}

/// JMS566 ignores UAS.
pub(super) static JMS566_IGNORED: Change =
    Change::new("bc3bdb12bbb3", version(5, 5), &[[4, 4, 213], [4, 9, 213], [4, 19, 101], [5, 4, 17]]);
pub(super) static LACIE_2BIG: Change =
    Change::new("9f04db234af6", version(5, 7), &[[4, 9, 224], [4, 14, 181], [5, 4, 41], [5, 6, 13]]);
/// The same row with no WRITE SAME.
pub(super) static LACIE_2BIG_NO_SAME: Change = Change::new("8010622", version(5, 11), &[[5, 10, 2]]);
pub(super) static SONY_PSZ: Change =
    Change::new("20934c0", version(5, 9), &[[4, 4, 235], [4, 14, 196], [4, 19, 143], [5, 4, 62]]);
pub(super) static PNY_PRO_ELITE: Change =
    Change::new("9a469bc9f32d", version(5, 9), &[[4, 4, 235], [4, 14, 196], [5, 4, 62]]);
pub(super) static PNY_PORTABLE: Change = Change::unnamed(version(5, 11), &[[4, 4, 251], [5, 10, 7]]);
pub(super) static LACIE_RUGGED_IGNORED: Change =
    Change::new("6abf2fe6b4bf", version(5, 14), &[[4, 4, 277], [4, 14, 241], [4, 19, 199], [5, 10, 54]]);
/// UAS again, without two commands.
pub(super) static LACIE_RUGGED_UAS: Change =
    Change::new("ce1c42b4dacf", version(5, 15), &[[4, 14, 249], [5, 4, 150], [5, 10, 70], [5, 14, 9]]);
pub(super) static ASUS: Change = Change::new("c61feaee68b9", version(6, 0), &[]).seen(&[[5, 10, 262]]);
pub(super) static HIKSEMI_DISK: Change =
    Change::unnamed(version(6, 0), &[[4, 14, 296], [4, 19, 261], [5, 19, 14]]).seen(&[[5, 10, 262]]);
pub(super) static HIKSEMI_RTL9210: Change =
    Change::new("e00b488e813f", version(6, 0), &[[4, 19, 261], [5, 19, 14]]);
pub(super) static THINKPLUS: Change =
    Change::new("0fb9703a3ead", version(6, 0), &[[4, 19, 261], [5, 10, 147], [5, 19, 14]]);
/// A rule by strings in place of the row of every RTL9210.
pub(super) static HIKSEMI_BY_NAMES: Change =
    Change::new("dbd24ec17b85", version(6, 2), &[[4, 19, 271], [5, 4, 230], [5, 10, 165], [6, 1, 8]]);
pub(super) static JMS583: Change =
    Change::new("a37eb61b6ec0", version(6, 3), &[[5, 10, 177], [5, 15, 105], [6, 2, 9]]).seen(&[[6, 1, 176]]);
pub(super) static ADATA_CH94: Change = Change::new(
    "9ab75eee1a05",
    version(6, 15),
    &[[5, 4, 293], [5, 10, 237], [5, 15, 181], [6, 1, 136], [6, 6, 89], [6, 12, 26], [6, 14, 5]],
);
pub(super) static SANDISK_IGNORED: Change = Change::new(
    "a541acceedf4",
    version(6, 16),
    &[[5, 4, 295], [5, 10, 239], [5, 15, 186], [6, 1, 142], [6, 12, 33], [6, 15, 2]],
);
/// Revisions after 3.09 are free of the row.
pub(super) static INITIO_NARROWED: Change = Change::new(
    "0831269b5f71",
    version(6, 19),
    &[[5, 10, 248], [5, 15, 198], [6, 1, 160], [6, 6, 120], [6, 12, 64], [6, 18, 3]],
);
pub(super) static PNY_ELITE: Change =
    Change::new("b53ebb811e00", version(7, 1), &[[5, 10, 259], [6, 1, 176], [6, 12, 93]]);
pub(super) static VL817: Change = Change::new(
    "5b67b3150372",
    version(5, 17),
    &[[4, 4, 302], [4, 9, 300], [5, 4, 176], [5, 10, 96], [5, 16, 5]],
);
/// Every revision in place of 9999 alone.
pub(super) static VL817_WIDENED: Change = Change::new(
    "609865ab3d5d",
    version(7, 1),
    &[[5, 10, 258], [5, 15, 209], [6, 1, 175], [6, 6, 136], [6, 12, 83], [6, 18, 24], [6, 19, 14], [7, 0, 1]],
);
/// Revision 1.17 as well.
pub(super) static JMS567_REVISION: Change = Change::unnamed(version(5, 3), &[[5, 2, 12]]);
/// Force unit access alone; UAS is ignored two versions later.
pub(super) static JMS566: Change = Change::unnamed(version(5, 7), &[[5, 6, 8]]);
pub(super) static JMS566_STORAGE_IGNORED: Change = Change::unnamed(version(5, 9), &[]);
pub(super) static KINDLE: Change = Change::unnamed(version(5, 12), &[[5, 10, 26]]);
pub(super) static SCANLOGIC: Change = Change::unnamed(version(5, 15), &[[5, 10, 70], [5, 14, 9]]);
pub(super) static IODD: Change = Change::unnamed(version(5, 16), &[[5, 10, 79]]);
pub(super) static NXP: Change = Change::unnamed(version(6, 0), &[[5, 10, 142], [5, 19, 8]]);
pub(super) static KINGSTON: Change = Change::unnamed(version(6, 7), &[[6, 1, 70], [6, 6, 9]]);
pub(super) static JIELI: Change = Change::unnamed(version(6, 12), &[[5, 10, 227], [6, 1, 113], [6, 11, 4]]);
pub(super) static NOKIA_208: Change =
    Change::unnamed(version(6, 13), &[[5, 10, 234], [6, 1, 125], [6, 12, 10]]);
/// Of Novatek's camera and of Realtek's driver discs.
pub(super) static CAMERA_AND_DISCS: Change =
    Change::unnamed(version(6, 17), &[[5, 10, 241], [6, 1, 149], [6, 12, 44]]);
pub(super) static LONGMAI: Change = Change::unnamed(version(7, 3), &[[6, 1, 183], [6, 12, 101]]);
/// A user's entry without the letter k takes that flag away.
pub(super) static NO_SAME_IS_REPLACED: Change =
    Change::unnamed(version(7, 3), &[[5, 10, 261], [6, 1, 178], [6, 12, 96]]);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn of(release: &str) -> Option<KernelVersion> {
        Some(KernelVersion::of_release(release).unwrap())
    }

    #[test]
    fn a_stable_branch_has_a_change_since_its_own_release() {
        let versions = Versions { since: Some(&SANDISK_IGNORED), before: None };
        let presence = |release| versions.presence(of(release));
        assert_eq!(
            ["6.1.141", "6.1.142", "6.1.143"].map(presence),
            [Presence::Absent, Presence::Present, Presence::Present]
        );
        assert_eq!(["6.16.0", "6.16-rc1", "7.0"].map(presence), [Presence::Present; 3]);
        // A package's number hides the level; of 6.6 and of 4.19 nothing is known.
        assert_eq!(["6.1.0-25-amd64", "6.6.94", "4.19.325"].map(presence), [Presence::Unknown; 3]);
        assert_eq!(versions.presence(None), Presence::Present);
    }

    #[test]
    fn what_was_removed_is_absent_since_the_removal() {
        let versions = Versions { since: Some(&HIKSEMI_RTL9210), before: Some(&HIKSEMI_BY_NAMES) };
        let presence = |release| versions.presence(of(release));
        assert_eq!(presence("4.19.260"), Presence::Absent);
        assert_eq!(["4.19.261", "4.19.270"].map(presence), [Presence::Present; 2]);
        assert_eq!(["4.19.271", "6.2", "7.3.4"].map(presence), [Presence::Absent; 3]);
        assert_eq!(presence("5.15.80"), Presence::Unknown);
        assert_eq!(versions.presence(None), Presence::Absent);
        assert_eq!(versions.to_string(), "Linux since 6.0 before 6.2");
    }

    #[test]
    fn without_dates_it_counts_everywhere_and_is_certain_since_the_oldest_version() {
        let versions = Versions::default();
        assert_eq!(
            (versions.presence(of("5.2")), versions.presence(of("4.19.3"))),
            (Presence::Present, Presence::Unknown)
        );
        assert!(versions.contain(of("4.4.1")) && versions.contain(None));
        assert_eq!(versions.to_string(), "Linux");
    }

    #[test]
    fn what_counts_is_certain_to_be_there_and_may_be_removed() {
        let counts = |release| {
            Versions { since: Some(&HIKSEMI_RTL9210), before: Some(&HIKSEMI_BY_NAMES) }.contain(of(release))
        };
        assert_eq!(
            ["5.15.80", "5.19.13", "5.19.14", "6.1.0-25-amd64", "6.1.7", "6.1.8"].map(counts),
            [false, false, true, true, true, false]
        );
    }
}
