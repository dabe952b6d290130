//! Text of others, made harmless for whoever looks at it: on a terminal, and in JSON.
//!
//! A model, a serial number, a line of the kernel's log or the name of a file may hold what a terminal obeys, such as ESC, DEL or U+009B,
//! which begins a sequence as ESC and `[` do, and what turns text round or is not seen at all. Text for people has `\u{9b}` in its place.
//! JSON has escapes of its own (RFC 8259, clause 7), of which it asks for those of U+0000 to U+001F only; [`json`] adds the others, so
//! that a program reads the same and a terminal has nothing to obey. Always true: what a command prints as JSON has gone through it. Left
//! out: records in files, which are not for terminals.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use wire::Legible;

/// Whether a character is nothing but a sign to be seen, or a space.
pub(crate) fn is_harmless(sign: char) -> bool {
    !sign.is_control() && !is_unseen(sign)
}

/// Whether it has no width of its own, or turns others round (Unicode's format characters, as far as they are common).
const fn is_unseen(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text of others without what could play with a terminal.
pub(crate) fn tame(text: &str) -> String {
    text.chars()
        .map(|sign| if is_harmless(sign) { sign.to_string() } else { sign.escape_default().to_string() })
        .collect()
}

/// The same of a text of several lines, which stay.
pub(crate) fn tame_lines(text: &str) -> String {
    text.split('\n').map(tame).collect::<Vec<_>>().join("\n")
}

/// A name of a file as text, which is the same in JSON and for people; what it has of control characters is not changed.
pub(crate) fn shown(name: impl AsRef<OsStr>) -> String {
    Legible(name.as_ref().as_bytes()).to_string()
}

/// JSON that means the same, as it is printed. Where it is laid out there is white space only, so that everything else that is not harmless
/// is in a string, where it may be written by its number.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\r' | '\t' => out.push(sign),
            _ if is_harmless(sign) => out.push(sign),
            _ => {
                // Below U+10000 a character is one unit of UTF-16, and none that is not harmless is above.
                let _ = write!(out, "\\u{:04x}", u32::from(sign));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_a_terminal_obeys_is_escaped_in_text_and_in_json() {
        let signs = [
            ('\u{1b}', "\\u{1b}", "\\u001b"),
            ('\u{7f}', "\\u{7f}", "\\u007f"),
            ('\u{80}', "\\u{80}", "\\u0080"),
            ('\u{9b}', "\\u{9b}", "\\u009b"),
            ('\u{9f}', "\\u{9f}", "\\u009f"),
            ('\u{200f}', "\\u{200f}", "\\u200f"),
            ('\u{2028}', "\\u{2028}", "\\u2028"),
            ('\u{202e}', "\\u{202e}", "\\u202e"),
            ('\u{2066}', "\\u{2066}", "\\u2066"),
            ('\u{feff}', "\\u{feff}", "\\ufeff"),
        ];
        for (sign, of_text, of_json) in signs {
            let text = format!("a{sign}b{sign}");
            assert_eq!(tame(&text), format!("a{of_text}b{of_text}"));
            assert_eq!(json(&json!(text).to_string()), format!("\"a{of_json}b{of_json}\""));
        }
    }

    #[test]
    fn json_means_the_same_and_is_laid_out_as_it_was() {
        let all: String = ('\0'..=char::MAX).collect();
        let value = json!({ "a\u{9b}": [1, [], {}, null, true, 1.5], "all": all });
        for text in [value.to_string(), format!("{value:#}")] {
            let printed = json(&text);
            assert_eq!(serde_json::from_str::<Value>(&printed).ok().as_ref(), Some(&value));
            assert!(printed.chars().all(|sign| sign == '\n' || is_harmless(sign)));
        }
        let plain = "{\r\n\t\"ü\": [\"€ 𝄞\", \"x\\\"\\\\\\n\", 1.5e3]\n}";
        assert_eq!(json(plain), plain);
    }

    #[test]
    fn plain_text_stays_and_lines_do() {
        assert_eq!(tame("Festplatte für 4 KiB, µs\t"), "Festplatte für 4 KiB, µs\\t");
        assert_eq!(tame_lines("one\ntwo\u{9b}\n"), "one\ntwo\\u{9b}\n");
    }
}
