//! Noise of pasted text, removed once: carriage returns, terminal colours, quote marks, Markdown fences, indentation.
//!
//! Indentation is removed from a block that is indented as a whole after an empty line, as Markdown has it; within a block
//! it means something (`lsusb -v`, continued lines of a journal) and stays. UTF-16, which PowerShell writes, becomes UTF-8.

use std::borrow::Cow;

/// A line of a text, with its number from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number in the file.
    pub number: usize,
    /// Its text, without what pasting adds.
    pub text: Cow<'a, str>,
}

/// Whether bytes are UTF-16: with a byte order mark, or little-endian and mostly of ASCII.
pub(crate) fn is_wide(bytes: &[u8]) -> bool {
    const BYTES_MAX: usize = 64;
    let begin = bytes.get(..BYTES_MAX.min(bytes.len()) & !1).unwrap_or_default();
    let pairs = || begin.chunks_exact(2);
    let is_plain = |pair: &[u8]| matches!(pair, [1..=255, 0]);
    bytes.starts_with(&[0xff, 0xfe])
        || bytes.starts_with(&[0xfe, 0xff])
        || begin.len() > 4 && pairs().filter(|pair| is_plain(pair)).count() * 4 > pairs().count() * 3
}

/// Text of bytes: UTF-16 is decoded, bytes that are no UTF-8 are replaced.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |from: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units = bytes.chunks_exact(2).map(|pair| match pair {
            [first, second] => from([*first, *second]),
            _ => 0,
        });
        char::decode_utf16(units).map(|sign| sign.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ if is_wide(bytes) => wide(u16::from_le_bytes, bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The lines of a text without noise. Empty lines stay, so that numbers are those of the file.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = text
        .split('\n')
        .enumerate()
        .map(|(at, line)| Line { number: at + 1, text: without_marks(line) })
        .collect();
    let mut from = 0;
    while from < lines.len() {
        let is_empty = |line: &Line<'_>| line.text.trim().is_empty();
        let len = lines.get(from..).map_or(0, |rest| rest.iter().take_while(|line| !is_empty(line)).count());
        if let Some(block) = lines.get_mut(from..from + len) {
            dedent(block);
        }
        from += len + 1;
    }
    lines
}

/// Removes what all lines of a block begin with.
fn dedent(block: &mut [Line<'_>]) {
    let indent = |line: &Line<'_>| line.text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let common = block.iter().map(indent).min().unwrap_or(0);
    if common == 0 {
        return;
    }
    for line in block {
        match &mut line.text {
            Cow::Borrowed(text) => *text = text.get(common..).unwrap_or_default(),
            Cow::Owned(text) => drop(text.drain(..common.min(text.len()))),
        }
    }
}

/// A line without carriage return, colours, quote marks, fences and its number.
fn without_marks(line: &str) -> Cow<'_, str> {
    let line = line.trim_end();
    if line.contains('\u{1b}') {
        let plain = without_escapes(line);
        return Cow::Owned(without_number(without_quotes(&plain)).to_owned());
    }
    // Bold of Markdown; `lsusb -v` has such stars before what it does not know.
    if line.contains("**") && !line.contains("** UNRECOGNIZED") {
        return Cow::Owned(without_number(without_quotes(&line.replace("**", ""))).to_owned());
    }
    Cow::Borrowed(without_number(without_quotes(line)))
}

/// Without the number that editors and `grep -n` put before a line of a log: `Line  528: `, `528:`.
fn without_number(line: &str) -> &str {
    let start = line.trim_start();
    let named = start.strip_prefix("Line ").map(str::trim_start);
    let Some((number, rest)) = named.unwrap_or(start).split_once(':') else { return line };
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    // A time has digits behind its colon.
    let is_log = rest.starts_with(|sign: char| sign == '[' || sign.is_ascii_uppercase());
    match (named, is_number) {
        (Some(_), true) => rest.strip_prefix(' ').unwrap_or(rest),
        (None, true) if is_log => rest,
        _ => line,
    }
}

fn without_quotes(line: &str) -> &str {
    let mut line = line;
    loop {
        let rest = line.trim_start();
        match rest.strip_prefix('>') {
            Some(quoted) => line = quoted.strip_prefix(' ').unwrap_or(quoted),
            None => break,
        }
    }
    let word = line.trim();
    let is_fence = word.starts_with("```") || word.starts_with("~~~");
    let tag = ["[code]", "[/code]", "<pre>", "</pre>", "<code>", "</code>", "<details>", "</details>"];
    if is_fence || tag.iter().any(|tag| word.eq_ignore_ascii_case(tag)) {
        return "";
    }
    // A line of Markdown code.
    if word.len() > 1 && word.starts_with('`') && word.ends_with('`') {
        return word.trim_matches('`');
    }
    match word.get(..6) {
        Some(head) if head.eq_ignore_ascii_case("[code]") => word.get(6..).unwrap_or_default(),
        _ => line,
    }
}

/// Without escape sequences of terminals: CSI to its final letter, OSC to its bell, and single ones.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        if sign != '\u{1b}' {
            plain.push(sign);
            continue;
        }
        match signs.next() {
            Some('[') => drop(signs.find(|sign| ('@'..='~').contains(sign))),
            Some(']') => drop(signs.find(|sign| *sign == '\u{7}')),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.text.into_owned()).collect()
    }

    #[test]
    fn what_pasting_adds_is_removed() {
        for pasted in [
            "[ 1.0] usb 2-1: x\n[ 1.1]  y",
            "    [ 1.0] usb 2-1: x\n    [ 1.1]  y",
            "> [ 1.0] usb 2-1: x\n> [ 1.1]  y",
            "> > [ 1.0] usb 2-1: x\n>> [ 1.1]  y",
            "[ 1.0] usb 2-1: x\r\n[ 1.1]  y\r",
            "\u{1b}[32m[ 1.0]\u{1b}[0m usb 2-1: x\n[ 1.1]  y\u{1b}[m",
        ] {
            assert_eq!(clean(pasted), ["[ 1.0] usb 2-1: x", "[ 1.1]  y"], "{pasted}");
        }
        for numbered in
            ["    Line  7: [ 1.0] usb 2-1: x\n    Line 12: [ 1.1] y", "7:[ 1.0] usb 2-1: x\n12:[ 1.1] y"]
        {
            assert_eq!(clean(numbered), ["[ 1.0] usb 2-1: x", "[ 1.1] y"], "{numbered}");
        }
        assert_eq!(clean("09:23:06 x")[0], "09:23:06 x");
        assert_eq!(clean("**[ 1.0] usb 2-1:** x")[0], "[ 1.0] usb 2-1: x");
        assert_eq!(clean("`[ 1.0] usb 2-1: x`\n`[ 1.1] y`"), ["[ 1.0] usb 2-1: x", "[ 1.1] y"]);
        assert_eq!(clean("text\n\n```\n    a\n      b\n```"), ["text", "", "", "a", "  b", ""]);
    }

    #[test]
    fn a_continued_line_keeps_its_indentation() {
        let lines = "Nov 26 09:23:06 host kernel: a\n                      usb 3-3: forged\n";
        assert_eq!(clean(lines)[1], "                      usb 3-3: forged");
    }

    #[test]
    fn text_of_power_shell_is_decoded() {
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("aé".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decode(&wide), "aé");
        assert_eq!(decode(b"a\xff"), "a\u{fffd}");
    }
}
