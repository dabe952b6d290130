//! Escapes foreign text for terminals and in JSON.
//!
//! A model, a serial number, a line of the kernel's log or a file name can contain terminal control sequences (ESC, DEL,
//! U+009B, which begins a sequence as ESC `[` does), bidirectional controls and invisible characters. Text output has
//! `\u{9b}` in their place. JSON (RFC 8259, clause 7) requires escapes of U+0000 to U+001F only; [`json`] escapes the
//! others as well: programs read the same value. Invariant: every command passes its JSON output through [`json`].
//! Left out: records in files, which are not for terminals.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use wire::Legible;

/// Whether a character is visible or a space.
pub(crate) fn is_printable(sign: char) -> bool {
    !sign.is_control() && !is_format(sign)
}

/// Whether a character is a common Unicode format character: without width, or a bidirectional control.
const fn is_format(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Escapes what a terminal would interpret.
pub(crate) fn escape(text: &str) -> String {
    text.chars()
        .map(|sign| if is_printable(sign) { sign.to_string() } else { sign.escape_default().to_string() })
        .collect()
}

/// Escapes a text of several lines, without the line feeds.
pub(crate) fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// The text of a file name, the same in JSON and in messages. Control characters are not escaped.
pub(crate) fn shown(name: impl AsRef<OsStr>) -> String {
    Legible(name.as_ref().as_bytes()).to_string()
}

/// Escapes JSON without a change of its value. Outside of strings there is only white space and ASCII, so that every
/// other character is in a string, where a numeric escape is allowed.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\r' | '\t' => out.push(sign),
            _ if is_printable(sign) => out.push(sign),
            _ => {
                // All characters to escape are below U+10000: one unit of UTF-16.
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
            assert_eq!(escape(&text), format!("a{of_text}b{of_text}"));
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
            assert!(printed.chars().all(|sign| sign == '\n' || is_printable(sign)));
        }
        let plain = "{\r\n\t\"ü\": [\"€ 𝄞\", \"x\\\"\\\\\\n\", 1.5e3]\n}";
        assert_eq!(json(plain), plain);
    }

    #[test]
    fn plain_text_stays_and_lines_do() {
        assert_eq!(escape("Festplatte für 4 KiB, µs\t"), "Festplatte für 4 KiB, µs\\t");
        assert_eq!(escape_lines("one\ntwo\u{9b}\n"), "one\ntwo\\u{9b}\n");
    }
}
