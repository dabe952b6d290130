//! Versions of Linux: releases as a machine prints them, and the upstream version behind a distribution's name.
//!
//! `uname -r` has the patch level of an upstream kernel (`5.4.271`), of Raspberry Pi OS (`6.12.25+rpt-rpi-v8`) and of newer Debian
//! kernels. Debian and Ubuntu name their packages `6.1.0-25-amd64` and `5.15.0-91-generic`: the third number is always 0
//! there. The upstream version is in `uname -v` (`Debian 6.1.106-3`), in `/proc/version_signature` and in the first line of the log
//! (`Ubuntu 5.15.0-91.101-generic 5.15.131`). Left out: what a vendor's kernel took over by itself.

use core::fmt;

/// A version of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second one.
    pub minor: u16,
    /// The third one, the level of a stable branch; `None` where it is not known.
    pub patch: Option<u16>,
}

impl KernelVersion {
    /// A version whose patch level is not known.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: None }
    }

    /// A release of a stable branch.
    pub const fn with_patch(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch: Some(patch) }
    }

    /// The version in a release, such as `6.1.0-56-amd64`; `None` if it begins otherwise.
    pub fn of_release(release: &str) -> Option<Self> {
        let (major, rest) = release.split_once('.')?;
        let (minor, rest) = leading_number(rest)?;
        let third = rest.strip_prefix('.').and_then(leading_number);
        let patch =
            third.filter(|&(patch, rest)| patch > 0 || !is_package_number(rest)).map(|(patch, _)| patch);
        Some(Self { major: major.parse().ok()?, minor, patch })
    }

    /// The upstream version that Debian or Ubuntu notes in `uname -v`, `/proc/version`, `/proc/version_signature` or the first line of
    /// the log; `None` where neither does.
    pub fn of_build(text: &str) -> Option<Self> {
        let words = || text.split_whitespace().map(|word| word.trim_matches(['(', ')']));
        // The package's version comes first with Ubuntu; a compiler's, which may be Debian's as well, before that of the kernel.
        let debian = words().zip(words().skip(1)).filter(|(name, _)| *name == "Debian");
        let ubuntu = words().zip(words().skip(2)).filter(|(name, _)| *name == "Ubuntu");
        let versions = debian.chain(ubuntu).filter_map(|(_, version)| Self::of_release(version));
        versions.filter(|version| version.patch.is_some()).last()
    }

    /// Whether both are of one branch: the patch level does not count.
    pub const fn is_of_branch(self, other: Self) -> bool {
        self.major == other.major && self.minor == other.minor
    }

    /// Whether the branch is that of the other version or a later one.
    pub const fn is_since(self, other: Self) -> bool {
        self.major > other.major || self.major == other.major && self.minor >= other.minor
    }
}

/// `-25-amd64` follows the number of a package, `-rc3` and the like that of a version.
fn is_package_number(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()))
}

fn leading_number(text: &str) -> Option<(u16, &str)> {
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_release_has_its_patch_level_unless_the_number_is_a_packages() {
        let version = |release| KernelVersion::of_release(release).map(|version| version.to_string());
        for (release, expected) in [
            ("5.4.271", "5.4.271"),
            ("6.12.25+rpt-rpi-v8", "6.12.25"),
            ("6.12.38+deb13-amd64", "6.12.38"),
            ("6.8.12-4-pve", "6.8.12"),
            ("6.9.0-rc3", "6.9.0"),
            ("6.9.0", "6.9.0"),
            ("6.9.0-arch1-1", "6.9.0"),
            ("6.1.0-25-amd64", "6.1"),
            ("5.15.0-91-generic", "5.15"),
            ("5.14.0-427.13.1.el9_4.x86_64", "5.14"),
            ("4.19.y-vendor", "4.19"),
            ("6.19-rc1", "6.19"),
            ("7.0", "7.0"),
        ] {
            assert_eq!(version(release), Some(expected.into()), "{release}");
        }
        for none in ["", "6", "6.", "x.1", "6.-1", "99999.1"] {
            assert_eq!(version(none), None, "{none}");
        }
        assert_eq!(version("6.1.99999"), Some("6.1".into()));
    }

    #[test]
    fn the_build_of_a_distribution_names_the_upstream_version() {
        let version = |text| KernelVersion::of_build(text).map(|version| version.to_string());
        for (text, expected) in [
            ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)", Some("6.1.106")),
            (
                "Linux box 6.1.0-25-amd64 #1 SMP Debian 6.1.106-3 (2024-08-26) x86_64 GNU/Linux",
                Some("6.1.106"),
            ),
            ("Ubuntu 5.15.0-91.101-generic 5.15.131", Some("5.15.131")),
            (
                "Linux version 5.15.0-91-generic (b@h) #101-Ubuntu SMP (Ubuntu 5.15.0-91.101-generic 5.15.131)",
                Some("5.15.131"),
            ),
            // The compiler's version is not the kernel's.
            (
                "Linux version 6.1.0-25-amd64 (gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP Debian 6.1.106-3",
                Some("6.1.106"),
            ),
            ("#101~20.04.1-Ubuntu SMP Thu Nov 16 14:22:28 UTC 2023", None),
            ("Debian", None),
            ("Ubuntu 5.15.0-91.101-generic", None),
            ("", None),
        ] {
            assert_eq!(version(text).as_deref(), expected, "{text}");
        }
    }
}
