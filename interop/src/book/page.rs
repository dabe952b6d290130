//! The steps that a page of the book gives its reader.
//!
//! - In a block marked `console` a line that begins with `$ ` is for the host, one that begins with `guest# ` for the
//!   guest; one that ends in ` &` is left running. A `\` at the end of a line joins the next. The lines below a command
//!   are of what it prints: each stands for a line of that, in this order, `…` in them for anything, a line of `…` alone
//!   for any lines.
//! - A block marked `qemu` has arguments for the machine, which is booted there.
//! - Other blocks are only read.

/// Where something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Host,
    /// On the host, and left running.
    Background,
    Guest,
    /// The command is the machine's arguments.
    Machine,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) place: Place,
    pub(super) command: String,
    /// Lines that it prints, among others.
    expected: Vec<String>,
}

impl Step {
    fn new(place: Place, command: &str) -> Self {
        Self { place, command: command.into(), expected: Vec::new() }
    }

    /// Looks for the page's lines in what was printed; the first that is not there.
    pub(super) fn compare(&self, printed: &str) -> Result<(), String> {
        let mut lines = printed.lines();
        for expected in &self.expected {
            if !lines.any(|line| is_like(line.trim(), expected)) {
                return Err(expected.clone());
            }
        }
        Ok(())
    }
}

/// Whether a line is the pattern, in which `…` stands for anything and a run of spaces for any other run.
fn is_like(line: &str, pattern: &str) -> bool {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let pattern = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut pieces = pattern.split('…').map(str::trim);
    let Some(mut rest) = line.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = Some(piece);
    }
    // Without an ellipsis at its end a pattern is the whole line.
    rest.is_empty() || last == Some("")
}

/// The steps of a page, or what is wrong with it.
pub(super) fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let mut block = Vec::new();
        loop {
            let (_, line) = lines.next().ok_or(format!("the block of line {} does not end", number + 1))?;
            if line == "```" {
                break;
            }
            block.push(line);
        }
        match kind {
            "console" => {
                console(&block, &mut steps).map_err(|why| format!("block of line {}: {why}", number + 1))?
            }
            "qemu" => steps.push(Step::new(Place::Machine, &block.join(" "))),
            _ => {}
        }
    }
    Ok(steps)
}

fn console(block: &[&str], steps: &mut Vec<Step>) -> Result<(), String> {
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        let prompt = [("$ ", Place::Host), ("guest# ", Place::Guest)];
        let typed = prompt.iter().find_map(|(prompt, place)| Some((line.strip_prefix(prompt)?, *place)));
        let Some((first, place)) = typed else {
            let step = steps.last_mut().ok_or("output without a command")?;
            step.expected
                .extend((line.trim() != "…" && !line.trim().is_empty()).then(|| line.trim().to_owned()));
            continue;
        };
        let mut command = first.to_owned();
        while let Some(part) = command.strip_suffix('\\') {
            command = format!("{} {}", part.trim_end(), lines.next().ok_or("a command does not end")?.trim());
        }
        steps.push(match command.strip_suffix(" &") {
            Some(left) => Step::new(Place::Background, left),
            None => Step::new(place, &command),
        });
    }
    Ok(())
}

/// The pages that a summary links to.
pub(super) fn links(summary: &str) -> Vec<String> {
    let names = summary.lines().filter_map(|line| line.split_once("](")?.1.split_once(".md)"));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

```console
$ uaskit serve a.img \\
    --usbredir unix:a.sock &
listening on …
$ ls
a.img

guest# lsusb -t
… Driver=uas, 5000M
```

```qemu
-device usb-redir
-device b
```

```text
$ not run
```
";

    #[test]
    fn a_page_is_its_commands_in_their_order() {
        let steps = steps(PAGE).expect("a page");
        let commands: Vec<_> = steps.iter().map(|step| (step.place, step.command.as_str())).collect();
        assert_eq!(
            commands,
            [
                (Place::Background, "uaskit serve a.img --usbredir unix:a.sock"),
                (Place::Host, "ls"),
                (Place::Guest, "lsusb -t"),
                (Place::Machine, "-device usb-redir -device b"),
            ]
        );
        assert_eq!(steps[0].expected, ["listening on …"]);
    }

    #[test]
    fn lines_are_looked_for_in_their_order() {
        let step = Step { expected: vec!["b 2".into(), "c … 4".into()], ..Step::new(Place::Host, "x") };
        assert_eq!(step.compare("a\n  b   2\nother\nc is 3, not 4\n"), Ok(()));
        assert_eq!(step.compare("c is 4\nb 2\n"), Err("c … 4".into()));
        assert_eq!(step.compare("b 23\nc is 4\n"), Err("b 2".into()));
    }

    #[test]
    fn an_ellipsis_stands_for_anything_and_nothing() {
        assert!(
            is_like("uas, 5000M", "uas, 5000M…")
                && is_like("uas, 5000M, 30", "uas…")
                && is_like("x uas", "…uas")
        );
        assert!(!is_like("uas, 5000M", "uas, 480M…") && !is_like("a b", "a") && !is_like("b", "a…"));
    }

    #[test]
    fn an_unterminated_block_is_an_error() {
        assert_eq!(steps("text\n```console\n$ ls\n"), Err("the block of line 2 does not end".into()));
        assert!(steps("```console\nout\n```\n").is_err_and(|why| why.contains("output without a command")));
    }

    #[test]
    fn a_summary_names_its_pages() {
        assert_eq!(links("# Summary\n- [A](a.md)\n    - [B](part/b.md)\n- text\n"), ["a", "part/b"]);
    }
}
