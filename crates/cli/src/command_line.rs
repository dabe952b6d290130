//! The command line of this process, quoted so that it can be repeated.
//!
//! The program is `uaskit` without its path, which is different on another machine.

use crate::sanitize::{is_printable, shown};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The words of this call, as text.
pub(crate) fn words() -> Vec<String> {
    std::iter::once("uaskit".to_owned()).chain(std::env::args_os().skip(1).map(shown)).collect()
}

/// Words as one line for a shell.
pub(crate) fn line(words: &[impl AsRef<OsStr>]) -> String {
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A word for a shell: in quotation marks where it has to be, and by its bytes (`$'a\377'`, as bash, zsh and busybox read it) where it is
/// not text or has control characters.
pub(crate) fn word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    // Control characters by their bytes as well: the terminal would not print them, so that they
    // could not be copied.
    let text = word.to_str().filter(|text| text.chars().all(is_printable));
    text.map_or_else(|| by_bytes(word.as_bytes()), quoted)
}

fn by_bytes(word: &[u8]) -> String {
    let mut out = "$'".to_owned();
    for byte in word {
        match byte {
            b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Three octal digits: \x would read the characters that follow as further digits.
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "'"
}

/// The command that creates a directory.
pub(crate) fn mkdir(folder: &Path) -> String {
    line(&["mkdir".as_ref(), "-p".as_ref(), folder.as_os_str()])
}

fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./=,:+@%".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_same_words() {
        let words = ["uaskit", "bench", "--label", "it's new", "", "a*b", "--depth=1,4"].map(str::to_owned);
        let line = line(&words);
        assert_eq!(line, r"uaskit bench --label 'it'\''s new' '' 'a*b' --depth=1,4");
        let script = format!("set -- {line}; printf '%s\\n' \"$@\"");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), words.join("\n") + "\n");
    }

    #[test]
    fn a_shell_that_knows_of_bytes_reads_a_word_that_is_no_text() {
        let name = OsStr::from_bytes(b"a\xff1 it's \\x\n\xc3\xa4");
        let word = word(name);
        assert_eq!(word, r"$'a\3771 it\'s \\x\012\303\244'");
        let script = format!("printf %s {word}");
        // Not every machine has one.
        let Ok(output) = std::process::Command::new("bash").args(["-c", &script]).output() else { return };
        assert_eq!(output.stdout, name.as_bytes());
    }

    #[test]
    fn the_program_goes_by_its_name() {
        assert_eq!(words()[0], "uaskit");
    }
}
