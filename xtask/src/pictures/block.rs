//! Blocks of a page that show what a command prints.
//!
//! A block marked `text` whose first line begins with `$ ` holds commands and, below each, lines that it prints. A line of `…` alone stands
//! for lines that are left out: what is before it are the first lines, what is behind it begins at the first line that is alike but for its
//! digits. Where no ellipsis ends it, all is shown. Always true: a page that is redrawn twice is the same as redrawn once.

use anyhow::{Context, Result, bail};

/// A line for what is left out.
const LEFT_OUT: &str = "…";

/// The page with each block as it should be. `print` says what a command prints, or nothing of one that is left as it is.
pub(super) fn redrawn(page: &str, mut print: impl FnMut(&str) -> Result<Option<String>>) -> Result<String> {
    let mut out = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        if line != "```text" || !lines.peek().is_some_and(|first| first.starts_with("$ ")) {
            continue;
        }
        let mut block = Vec::new();
        loop {
            match lines.next().context("a block of the page does not end")? {
                "```" => break,
                line => block.push(line),
            }
        }
        for part in block.chunk_by(|_, next| !next.starts_with("$ ")) {
            let (command, shown) = part.split_first().context("a block is empty")?;
            let command = command.strip_prefix("$ ").unwrap_or(command);
            out.push(format!("$ {command}"));
            match print(command)? {
                None => out.extend(shown.iter().map(|line| (*line).to_owned())),
                Some(printed) => {
                    out.extend(woven(shown, &printed).with_context(|| format!("`{command}`"))?);
                }
            }
        }
        out.push("```".to_owned());
    }
    Ok(out.join("\n") + "\n")
}

/// Returns the printed lines, with those left out that `shown` leaves out.
fn woven(shown: &[&str], printed: &str) -> Result<Vec<String>> {
    // Lines between commands are empty, and no part of what is printed.
    let below = shown.iter().rev().take_while(|line| line.is_empty()).count();
    let (shown, below) = shown.split_at(shown.len() - below);
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    let pieces: Vec<&[&str]> = shown.split(|line| line.trim() == LEFT_OUT).collect();
    for (nth, piece) in pieces.iter().enumerate() {
        let is_last = nth + 1 == pieces.len();
        if let Some(first) = piece.first().filter(|_| nth > 0) {
            let alike = printed[at..].iter().position(|line| without_digits(line) == without_digits(first));
            let Some(next) = alike else {
                bail!("it prints no line like\n    {first}\nany more: mend the page by hand")
            };
            at += next;
        }
        let end =
            if is_last && !piece.is_empty() { printed.len() } else { (at + piece.len()).min(printed.len()) };
        out.extend(printed[at..end].iter().map(|line| (*line).to_owned()));
        at = end;
        if !is_last && at < printed.len() {
            let indent = printed[at].len() - printed[at].trim_start().len();
            out.push(format!("{}{LEFT_OUT}", " ".repeat(indent)));
        }
    }
    out.extend(below.iter().map(|line| (*line).to_owned()));
    Ok(out)
}

fn without_digits(line: &str) -> String {
    line.chars().filter(|sign| !sign.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(block: &str) -> String {
        format!("# A page\n\n```text\n{block}\n```\n\nmore\n")
    }

    fn prints(text: &str) -> impl FnMut(&str) -> Result<Option<String>> {
        move |_| Ok(Some(text.to_owned()))
    }

    #[test]
    fn what_was_shown_is_shown_again() {
        let after = redrawn(&page("$ a\n1 MB\nx\n…"), prints("2 MB\ny\nz\nend\n")).expect("a page");
        assert_eq!(after, page("$ a\n2 MB\ny\n…"));
        assert_eq!(redrawn(&after, prints("2 MB\ny\nz\nend\n")).expect("a page"), after);
    }

    #[test]
    fn what_is_left_out_in_the_middle_stays_out() {
        let after =
            redrawn(&page("$ a\nhead\n  …\ntotal 1\nend"), prints("HEAD\nb\nc\ntotal 25\nEND\nmore\n"));
        assert_eq!(after.expect("a page"), page("$ a\nHEAD\n…\ntotal 25\nEND\nmore"));
        let lost = redrawn(&page("$ a\nhead\n…\ntotal 1"), prints("HEAD\nsum 1\n")).expect_err("lost");
        assert!(format!("{lost:#}").contains("no line like\n    total 1"), "{lost:#}");
    }

    #[test]
    fn several_commands_are_each_redrawn_or_left() {
        let print = |line: &str| Ok((line == "exact").then(|| "new\n".to_owned()));
        let after = redrawn(&page("$ measured\nold\n\n$ exact\nold\n\n$ measured\nold"), print);
        assert_eq!(after.expect("a page"), page("$ measured\nold\n\n$ exact\nnew\n\n$ measured\nold"));
    }

    #[test]
    fn other_blocks_are_let_be() {
        let other = "```text\nno command\n```\n\n    $ indented\n\n```console\n$ b\nold\n```\n";
        assert_eq!(redrawn(other, prints("new")).expect("a page"), other);
        assert!(redrawn("```text\n$ a\n", prints("new")).is_err());
    }
}
