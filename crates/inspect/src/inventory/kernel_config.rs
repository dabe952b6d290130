//! The options of a kernel, as far as its configuration is shown: `/proc/config.gz`, which is that of the running kernel,
//! or a file that distributions put beside the kernel or its modules.
//!
//! An option whose own conditions are not met is not mentioned at all, so that what counts is a configuration as a whole:
//! one that is cut short, damaged or too long is none, and neither is a text without a line of a configuration.

use crate::tree::{Tree, Unread};

/// The configuration of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The file.
    pub path: String,
    /// CONFIG_USB_UAS.
    pub uas: ConfigChoice,
    /// CONFIG_USB_STORAGE; `None` in a part of a configuration that does not mention it.
    pub usb_storage: Option<ConfigChoice>,
    /// The version of Linux in its heading, such as `6.1.159`.
    pub version: Option<String>,
}

/// The choice of a kernel's configuration for an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigChoice {
    /// `=y`
    BuiltIn,
    /// `=m`
    Module,
    /// Not set.
    Off,
}

/// The options that are looked for. The last is in every configuration that has USB, and in most that have not: it distinguishes one
/// that does not mention the others from what is none.
const OPTIONS: [&str; 3] = [UAS, USB_STORAGE, "CONFIG_USB"];
const UAS: &str = "CONFIG_USB_UAS";
const USB_STORAGE: &str = "CONFIG_USB_STORAGE";

impl KernelConfig {
    /// The first that can be read; else every place, and why nothing came of it.
    pub(super) fn read(tree: &Tree, release: Option<&str>) -> Result<Self, Vec<(String, Unread)>> {
        let files = release
            .map(|release| [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]);
        let mut unread = Vec::new();
        for path in ["/proc/config.gz".to_owned()].into_iter().chain(files.into_iter().flatten()) {
            let lines = tree.whole_lines(&path, |line| version(line).is_some() || choice(line).is_some());
            match lines.and_then(|lines| Self::of(&path, &lines).ok_or(Unread::Failed)) {
                Ok(config) => return Ok(config),
                Err(why) => unread.push((path, why)),
            }
        }
        Err(unread)
    }

    fn of(path: &str, lines: &[String]) -> Option<Self> {
        if lines.is_empty() {
            return None;
        }
        let of = |option| {
            lines.iter().filter_map(|line| choice(line)).find(|one| one.0 == option).map(|one| one.1)
        };
        // Where UAS is mentioned, USB_STORAGE is set: it asks for it.
        let (uas, usb_storage) = match (of(UAS), of(USB_STORAGE)) {
            (Some(uas), usb_storage) => (uas, usb_storage),
            (None, usb_storage) => (ConfigChoice::Off, Some(usb_storage.unwrap_or(ConfigChoice::Off))),
        };
        let version = lines.iter().find_map(|line| version(line)).map(str::to_owned);
        Some(Self { path: path.to_owned(), uas, usb_storage, version })
    }
}

impl ConfigChoice {
    /// An option with this choice, as a configuration has it.
    pub fn of_option(self, option: &str) -> String {
        match self {
            Self::BuiltIn => format!("{option}=y"),
            Self::Module => format!("{option}=m"),
            Self::Off => format!("{option} is not set"),
        }
    }
}

/// One of [`OPTIONS`] and its choice, if that is what a line says.
fn choice(line: &str) -> Option<(&'static str, ConfigChoice)> {
    OPTIONS.into_iter().find_map(|option| {
        let choice = match line.strip_prefix(option) {
            Some("=y") => ConfigChoice::BuiltIn,
            Some("=m") => ConfigChoice::Module,
            Some("=n") => ConfigChoice::Off,
            Some(_) => return None,
            None => {
                let rest = line.strip_prefix("# ")?.strip_prefix(option)?;
                (rest == " is not set").then_some(ConfigChoice::Off)?
            }
        };
        Some((option, choice))
    })
}

/// The version in the heading: `# Linux/x86 6.1.159 Kernel Configuration`.
fn version(line: &str) -> Option<&str> {
    let (_architecture, rest) = line.strip_prefix("# Linux/")?.split_once(' ')?;
    rest.strip_suffix(" Kernel Configuration").filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConfigChoice::{BuiltIn, Module, Off};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fmt::Write as _;
    use std::io::Write as _;

    const PACKED: &str = "/proc/config.gz";
    const BESIDE_THE_KERNEL: &str = "/boot/config-6.1.0";
    const BESIDE_MODULES: &str = "/lib/modules/6.1.0/config";

    const HEADING: &str =
        "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.159 Kernel Configuration\n#\n";

    /// A tree with these files.
    fn tree(files: &[(&str, &[u8])]) -> Tree {
        let mut record = String::new();
        for (path, bytes) in files {
            let digits = bytes.iter().fold(String::new(), |mut digits, byte| {
                write!(digits, "{byte:02x}").expect("into memory");
                digits
            });
            writeln!(record, "{path} : {digits}").expect("into memory");
        }
        Tree::of(record.parse().expect("a record"))
    }

    fn read(files: &[(&str, &[u8])]) -> Result<KernelConfig, Vec<(String, Unread)>> {
        KernelConfig::read(&tree(files), Some("6.1.0"))
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("into memory");
        encoder.finish().expect("into memory")
    }

    /// Where all three are looked for, and what became of the first two.
    fn unread(packed: Unread, beside_the_kernel: Unread) -> Vec<(String, Unread)> {
        vec![
            (PACKED.into(), packed),
            (BESIDE_THE_KERNEL.into(), beside_the_kernel),
            (BESIDE_MODULES.into(), Unread::Absent),
        ]
    }

    #[test]
    fn an_option_is_built_in_a_module_not_set_or_not_mentioned() {
        let cases = [
            ("CONFIG_USB_STORAGE=y\nCONFIG_USB_UAS=y\n", BuiltIn, Some(BuiltIn)),
            ("CONFIG_USB_STORAGE=y\nCONFIG_USB_UAS=m\n", Module, Some(BuiltIn)),
            ("CONFIG_USB_STORAGE=m\n# CONFIG_USB_UAS is not set\n", Off, Some(Module)),
            ("CONFIG_USB=y\n# CONFIG_USB_STORAGE is not set\n", Off, Some(Off)),
            ("# CONFIG_USB is not set\n", Off, Some(Off)),
            // Other options that begin or end alike.
            (
                "CONFIG_USB_UAS_X=y\n# CONFIG_USB_UAS=m is not set\nCONFIG_USB_STORAGE_REALTEK=m\n",
                Off,
                Some(Off),
            ),
            // A part of one.
            ("CONFIG_USB_UAS=m\n", Module, None),
            ("CONFIG_USB_UAS=n\n", Off, None),
        ];
        for (options, uas, usb_storage) in cases {
            let text = format!("{HEADING}CONFIG_X86=y\n{options}CONFIG_LAST=y\n");
            for (path, bytes) in [
                (PACKED, packed(&text)),
                (BESIDE_THE_KERNEL, text.clone().into_bytes()),
                (BESIDE_MODULES, text.into_bytes()),
            ] {
                let version = Some("6.1.159".to_owned());
                let expected = KernelConfig { path: path.into(), uas, usb_storage, version };
                assert_eq!(read(&[(path, &bytes)]), Ok(expected), "{options}");
            }
        }
    }

    #[test]
    fn that_of_the_running_kernel_comes_first() {
        let (off, module) = (packed("# CONFIG_USB_UAS is not set\n"), b"CONFIG_USB_UAS=m\n");
        let both = [(PACKED, off.as_slice()), (BESIDE_THE_KERNEL, module)];
        assert_eq!(read(&both).map(|config| (config.path, config.uas)), Ok((PACKED.into(), Off)));
        // Without a release it is the only one that is known to be of this kernel.
        let found = KernelConfig::read(&tree(&both), None).map(|config| config.uas);
        assert_eq!(found, Ok(Off));
        assert_eq!(KernelConfig::read(&tree(&both[1..]), None), Err(vec![(PACKED.into(), Unread::Absent)]));
    }

    #[test]
    fn what_is_no_configuration_is_not_taken_for_one_that_mentions_nothing() {
        let whole = packed(&format!("{HEADING}CONFIG_USB_UAS=m\n"));
        let huge = packed(&format!("{HEADING}{}CONFIG_USB_UAS=m\n", "#\n".repeat(3 << 20)));
        let endless = format!("{HEADING}{}", "CONFIG_USB=y\n".repeat(1000));
        let cases: [&[u8]; 8] = [
            b"",
            b"\n",
            b"\x7fELF\x02\x01\x01\0\0",
            b"not found\n",
            &packed("nothing of the kind\n"),
            &whole[..whole.len() - 9],
            &huge,
            endless.as_bytes(),
        ];
        for bytes in cases {
            let failed = unread(Unread::Failed, Unread::Absent);
            assert_eq!(read(&[(PACKED, bytes)]), Err(failed), "{}", bytes.len());
            // The next place is looked at.
            let found = read(&[(PACKED, bytes), (BESIDE_THE_KERNEL, b"CONFIG_USB_UAS=y\n")]);
            assert_eq!(found.map(|config| config.uas), Ok(BuiltIn), "{}", bytes.len());
        }
        let failed = unread(Unread::Absent, Unread::Failed);
        assert_eq!(read(&[(BESIDE_THE_KERNEL, b"?")]), Err(failed));
        assert_eq!(read(&[]), Err(unread(Unread::Absent, Unread::Absent)));
    }

    #[test]
    fn a_directory_in_its_place_is_reported() {
        let record = format!("{PACKED} /\n").parse().expect("a record");
        let failed = unread(Unread::Failed, Unread::Absent);
        assert_eq!(KernelConfig::read(&Tree::of(record), Some("6.1.0")), Err(failed));
    }

    #[test]
    fn of_a_packed_one_the_lines_that_count_are_recorded_as_text() {
        let text = format!("{HEADING}CONFIG_X86=y\nCONFIG_USB_STORAGE=m\n# CONFIG_USB_UAS is not set\n");
        let tree = tree(&[(PACKED, &packed(&text))]).recording();
        let first = KernelConfig::read(&tree, None);
        let record = tree.record().expect("it records").to_string();
        let line = "/proc/config.gz = # Linux/x86 6.1.159 Kernel Configuration\\nCONFIG_USB_STORAGE=m\\n# CONFIG_USB_UAS is not set";
        assert!(record.lines().any(|one| one == line), "{record}");
        let again = KernelConfig::read(&Tree::of(record.parse().expect("a record")), None);
        assert_eq!((first.clone().map(|config| config.uas), again), (Ok(Off), first));
    }
}
