//! Versions of Linux, since the tables change with them.
//!
//! What is known is the version of the main line. A stable branch or a distribution may take a change over later, so that
//! an older release may have a newer row. Left out: the third number of a release, for that reason.

use core::fmt;

/// A version of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second one.
    pub minor: u16,
}

/// The versions that have something, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The first that has it.
    pub since: Option<KernelVersion>,
    /// The first that has it no more.
    pub before: Option<KernelVersion>,
}

impl KernelVersion {
    /// A version.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The version in a release, such as `6.1.0-56-amd64`; `None` if it begins otherwise.
    pub fn of_release(release: &str) -> Option<Self> {
        let (major, rest) = release.split_once('.')?;
        let minor = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl Versions {
    /// Whether a kernel is one of them; `None` is the newest of all.
    pub fn contain(self, kernel: Option<KernelVersion>) -> bool {
        match kernel {
            None => self.before.is_none(),
            Some(kernel) => {
                self.since.is_none_or(|since| kernel >= since)
                    && self.before.is_none_or(|before| kernel < before)
            }
        }
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Versions {
    /// `Linux since 6.16`; where nothing is known, `Linux`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Linux")?;
        if let Some(since) = self.since {
            write!(f, " since {since}")?;
        }
        self.before.map_or(Ok(()), |before| write!(f, " before {before}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_release_begins_with_its_version() {
        let version = |release| KernelVersion::of_release(release).map(|version| version.to_string());
        assert_eq!(version("6.1.0-56-amd64"), Some("6.1".into()));
        assert_eq!(version("6.19-rc1"), Some("6.19".into()));
        assert_eq!(version("7.0"), Some("7.0".into()));
        for none in ["", "6", "6.", "x.1", "6.-1", "99999.1"] {
            assert_eq!(version(none), None, "{none}");
        }
    }

    #[test]
    fn versions_begin_with_the_first_and_end_before_the_last() {
        let (first, last) = (KernelVersion::new(6, 9), KernelVersion::new(6, 16));
        let some = Versions { since: Some(first), before: Some(last) };
        let within = |minor| some.contain(Some(KernelVersion::new(6, minor)));
        assert_eq!([8, 9, 15, 16].map(within), [false, true, true, false]);
        assert!(!some.contain(None) && Versions { before: None, ..some }.contain(None));
        assert!(!some.contain(Some(KernelVersion::new(7, 0))));
        assert_eq!(some.to_string(), "Linux since 6.9 before 6.16");
        assert_eq!(Versions::default().to_string(), "Linux");
    }
}
