//! What was called, so that it can be called again.
//!
//! The program goes by its name, wherever it was: a folder of this machine is of no use on another.

use std::path::Path;

/// The words of this call.
pub(crate) fn words() -> Vec<String> {
    let name = std::iter::once("uaskit".to_owned());
    name.chain(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())).collect()
}

/// Words as one line for a shell.
pub(crate) fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The line that makes a folder.
pub(crate) fn making(folder: &Path) -> String {
    line(&["mkdir".into(), "-p".into(), folder.display().to_string()])
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
    fn the_program_goes_by_its_name() {
        assert_eq!(words()[0], "uaskit");
    }
}
