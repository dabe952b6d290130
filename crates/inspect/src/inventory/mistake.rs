//! Words and lines that were meant for `usb-storage.quirks=` and do nothing, or something else.
//!
//! The kernel passes a parameter it does not know to init or ignores it, and `usb_stor_adjust_quirks` skips an entry that it
//! cannot take apart; neither prints a line. Parameters of usb-storage are quirks, delay_use, option_zero_cd and
//! swi_tru_install (drivers/usb/storage); `uas` has none.

use super::arguments::arguments;
use super::setting::{COMMAND_LINE, modprobe_lines};
use crate::tree::Tree;

/// A setting that does not do what it was meant to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingMistake {
    /// The file.
    pub path: String,
    /// The word or line.
    pub line: String,
    /// The error, in a sentence without a full stop.
    pub because: String,
}

/// Parameters of usb-storage.
const PARAMETERS: [&str; 4] = ["quirks", "delay_use", "option_zero_cd", "swi_tru_install"];

impl SettingMistake {
    pub(super) fn read(tree: &Tree) -> Vec<Self> {
        let lines = tree.lines(COMMAND_LINE, |line| arguments(line).any(|word| is_suspect(word.name)));
        let lines = lines.unwrap_or_default();
        let mut all: Vec<Self> = Vec::new();
        let mut seen: Option<String> = None;
        for word in lines.iter().flat_map(|line| arguments(line)).filter(|word| is_suspect(word.name)) {
            let name = word.name.replace('-', "_");
            let because = of_word(&name, word.value).or_else(|| {
                let is_quirks = name == "usb_storage.quirks";
                let earlier = is_quirks.then(|| seen.replace(word.text.to_owned())).flatten()?;
                Some(format!("the parameter is given twice and the last one wins: `{earlier}` is ignored"))
            });
            if let Some(because) = because {
                all.push(Self { path: COMMAND_LINE.to_owned(), line: word.text.to_owned(), because });
            }
        }
        let is_suspect_line = |line: &str| of_line(line).is_some();
        let of_files = modprobe_lines(tree, is_suspect_line);
        all.extend(of_files.into_iter().filter_map(|(line, path)| {
            let because = of_line(&line)?;
            Some(Self { path, line, because })
        }));
        all
    }
}

/// Whether a parameter may be meant for usb-storage or uas.
fn is_suspect(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let of_storage = name.contains("stor") && (name.contains("usb") || name.contains("quirk"));
    of_storage || name.starts_with("uas.") || name == "uas" || name.contains("quirk") && name.contains("uas")
}

/// Describes the error in a parameter of the kernel command line, if any.
fn of_word(name: &str, value: Option<&str>) -> Option<String> {
    if let Some(parameter) = name.strip_prefix("usb_storage.") {
        if parameter == "quirks" {
            return of_value(value.unwrap_or_default());
        }
        if PARAMETERS.contains(&parameter) {
            return None;
        }
        return Some(format!("usb-storage has no parameter `{parameter}`; usb-storage.quirks= is meant"));
    }
    if name.starts_with("uas.") || name == "uas" {
        return Some(
            "uas has no parameters; usb-storage.quirks= is meant, which uas reads as well".to_owned(),
        );
    }
    Some("there is no such parameter; usb-storage.quirks= is meant".to_owned())
}

/// Describes the error in the entries of a value, if any.
fn of_value(value: &str) -> Option<String> {
    if value.trim().is_empty() {
        return None;
    }
    value.split(',').find_map(|entry| of_entry(entry.trim()))
}

fn of_entry(entry: &str) -> Option<String> {
    let mut parts = entry.splitn(3, ':');
    let (vendor, product) = (parts.next()?, parts.next());
    let is_number = |digits: &str| {
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        u16::from_str_radix(digits, 16).is_ok() && !digits.starts_with('+')
    };
    if !is_number(vendor) || product.is_some_and(|product| !is_number(product)) {
        return Some(format!(
            "the entry `{entry}` is skipped: its ids are not hexadecimal numbers; `lsusb` lists those of the drive"
        ));
    }
    let Some(letters) = parts.next() else {
        return Some(format!(
            "the entry `{entry}` is skipped: it has no second colon; the format is VID:PID:letters"
        ));
    };
    let unknown =
        letters.chars().find(|letter| quirks::quirk::Flag::of_letter(letter.to_ascii_lowercase()).is_none());
    unknown.map(|letter| {
        format!("the letter `{letter}` of the entry `{entry}` is not known to the kernel and is ignored")
    })
}

/// Describes the error in a line of modprobe's, if any.
fn of_line(line: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut words = line.split_whitespace();
    let verb = words.next()?;
    let module = words.next().map(|module| module.replace('-', "_"));
    if verb.replace('-', "_").starts_with("usb_storage.") {
        return Some(
            "this is the form of the kernel command line; here it is `options usb-storage quirks=`"
                .to_owned(),
        );
    }
    match (verb, module.as_deref()) {
        ("options", Some("uas")) => {
            Some("uas has no parameters; `options usb-storage quirks=` is meant".to_owned())
        }
        ("options", Some("usb_storage")) => {
            let text = line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
            arguments(&text).find_map(|argument| match argument.name {
                "quirks" => of_value(argument.value.unwrap_or_default()),
                name if PARAMETERS.contains(&name) => None,
                name => Some(format!("usb-storage has no parameter `{name}`; `quirks=` is meant")),
            })
        }
        ("options", Some(module)) if module.contains("stor") && module.contains("usb") => {
            Some(format!("there is no module `{module}`; `options usb-storage quirks=` is meant"))
        }
        ("option", Some("usb_storage" | "uas")) => {
            Some("modprobe knows no `option`; `options` is meant".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(command_line: &str) -> Vec<(String, String)> {
        let record = format!("{COMMAND_LINE} = {command_line}").parse().expect("a record");
        let all = SettingMistake::read(&Tree::of(record));
        all.into_iter().map(|one| (one.line, one.because)).collect()
    }

    #[test]
    fn words_that_do_nothing_are_found_with_what_is_meant() {
        for (word, because) in [
            ("usb-storage=152d:0578:u", "there is no such parameter; usb-storage.quirks= is meant"),
            ("usb-storage.quirk=152d:0578:u", "usb-storage has no parameter `quirk`"),
            ("usb-storage.quirks=152d:0578", "it has no second colon"),
            ("usb-storage.quirks=idVendor:idProduct:u", "its ids are not hexadecimal numbers"),
            ("uas.quirks=152d:0578:u", "uas has no parameters"),
            ("usbstorage.quirks=152d:0578:u", "there is no such parameter"),
            ("usb-storage.quirks=152d:0578:q", "the letter `q`"),
        ] {
            let found = mistakes(&format!("console=tty1 {word} root=/dev/sda2"));
            let [(line, reason)] = found.as_slice() else { panic!("{word}: {found:?}") };
            assert!(line == word && reason.contains(because), "{word}: {reason}");
        }
    }

    #[test]
    fn of_two_words_the_last_wins() {
        let found = mistakes("usb-storage.quirks=1:2:u usb-storage.quirks=3:4:u");
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("`usb-storage.quirks=1:2:u` is ignored"), "{found:?}");
    }

    #[test]
    fn right_words_are_no_mistakes() {
        assert!(
            mistakes("usb-storage.quirks=152d:0578:u usb_storage.delay_use=5 usbcore.autosuspend=-1 quiet")
                .is_empty()
        );
        assert!(mistakes("usb_storage.delay_use=0 usb-storage.quirks=152d:0578:u").is_empty());
        assert_eq!(of_line("options usb-storage quirks=152d:0578:u"), None);
        assert_eq!(of_line("blacklist uas"), None);
        assert!(of_line("options uas quirks=152d:0578:u").is_some());
        assert!(of_line("usb-storage.quirks=152d:0578:u").is_some());
    }
}
