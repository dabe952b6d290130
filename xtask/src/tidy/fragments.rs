//! The fragments of a file that the word list applies to: prose and names, each with its line.
//!
//! A Rust file gives comments, rustdoc and string literals as prose and identifiers as names; adjoining line comments
//! are one fragment, so that a phrase is found across a line break. Markdown gives its paragraphs, TOML and shell
//! scripts their comments, TOML its string values as well.
//!
//! Left out: quotations in Markdown (lines that begin with `>`), byte strings, character literals and lifetimes.
//! A fragment is never empty.

/// Kind of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentKind {
    /// Text that people read.
    Prose,
    /// An identifier, or the name of a file.
    Name,
}

/// A stretch of text that is matched as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) kind: FragmentKind,
    /// The line that the text begins on; counts from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Fragment {
    fn new(kind: FragmentKind, line: usize, text: &str) -> Self {
        Self { kind, line, text: text.to_owned() }
    }
}

/// The fragments of a file by its extension, its name included; none for a kind that is not prose or code.
pub(crate) fn of_file(path: &str, text: &str) -> Vec<Fragment> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let mut fragments = match file.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "rs" => of_rust(text),
        "md" => of_markdown(text),
        "toml" => of_toml(text),
        "sh" | "yml" | "yaml" => of_comments(text),
        _ if text.starts_with("#!") => of_comments(text),
        _ => return Vec::new(),
    };
    if let Some(stem) = file.strip_suffix(".rs") {
        let folder = path.rsplit('/').nth(1).unwrap_or(stem);
        let name = if matches!(stem, "mod" | "lib" | "main") { folder } else { stem };
        fragments.push(Fragment::new(FragmentKind::Name, 1, name));
    }
    fragments
}

/// The paragraphs of a Markdown text.
fn of_markdown(text: &str) -> Vec<Fragment> {
    let mut blocks = Blocks::default();
    for (line, number) in text.lines().zip(1..) {
        let inner = line.trim_start();
        let prose = (!inner.is_empty() && !inner.starts_with('>')).then_some(line);
        blocks.line(number, prose);
    }
    blocks.close()
}

/// Comments that begin with `#` at the start of a line or after a space.
fn of_comments(text: &str) -> Vec<Fragment> {
    let mut blocks = Blocks::default();
    for (line, number) in text.lines().zip(1..) {
        let comment = line.trim_start().strip_prefix('#').or_else(|| Some(line.split_once(" # ")?.1));
        blocks.line(number, comment);
    }
    blocks.close()
}

/// Comments and string values of a TOML file.
fn of_toml(text: &str) -> Vec<Fragment> {
    let mut fragments = of_comments(text);
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with('#')) {
        // Every second part between quotation marks is inside them.
        for value in line.split('"').skip(1).step_by(2).filter(|value| value.contains(' ')) {
            fragments.push(Fragment::new(FragmentKind::Prose, number, value));
        }
    }
    fragments
}

/// Joins adjoining lines of prose; an empty line, or one of something else, ends the fragment.
#[derive(Default)]
struct Blocks {
    done: Vec<Fragment>,
    open: Option<Fragment>,
}

impl Blocks {
    fn line(&mut self, number: usize, prose: Option<&str>) {
        match (prose.filter(|prose| !prose.trim().is_empty()), &mut self.open) {
            (Some(prose), Some(open)) => {
                open.text.push('\n');
                open.text.push_str(prose);
            }
            (Some(prose), None) => self.open = Some(Fragment::new(FragmentKind::Prose, number, prose)),
            (None, _) => self.done.extend(self.open.take()),
        }
    }

    fn close(mut self) -> Vec<Fragment> {
        self.done.extend(self.open);
        self.done
    }
}

fn of_rust(text: &str) -> Vec<Fragment> {
    let mut lexer = Lexer { rest: text, line: 1, fragments: Vec::new(), comment_end: None };
    while !lexer.rest.is_empty() {
        lexer.token();
    }
    lexer.fragments
}

/// Reads a Rust file far enough to separate comments, strings, identifiers and the rest.
struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    fragments: Vec<Fragment>,
    /// The last line of the comment that is the last fragment, if it is one.
    comment_end: Option<usize>,
}

impl Lexer<'_> {
    fn token(&mut self) {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else { return };
        if rest.starts_with("//") {
            self.line_comment();
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
            self.take(end, Some(FragmentKind::Prose));
        } else if first == '"' {
            self.string("", 1);
        } else if first == '\'' {
            self.take(quoted_char_len(rest), None);
        } else if first.is_alphabetic() || first == '_' {
            self.word();
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.take(end, None);
        } else {
            self.take(first.len_utf8(), None);
        }
    }

    /// An identifier, or the prefix of a string.
    fn word(&mut self) {
        let rest = self.rest;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
        let quoted = after[hashes..].starts_with('"');
        match word {
            "b" | "c" | "br" | "cr" | "r" if quoted && (hashes == 0 || word != "b" && word != "c") => {
                self.take(end, None);
                self.string(word, hashes + 1);
            }
            "b" if after.starts_with('\'') => self.take(1 + quoted_char_len(after), None),
            _ => self.take(end, Some(FragmentKind::Name)),
        }
    }

    /// A string behind its prefix; `open_len` counts hashes and the opening mark.
    fn string(&mut self, prefix: &str, open_len: usize) {
        let (raw, is_text) = (prefix.contains('r'), !prefix.starts_with(['b', 'c']));
        let hashes = &self.rest[..open_len - 1];
        let inner = &self.rest[open_len..];
        let close = format!("\"{hashes}");
        let mut len = 0;
        while len < inner.len() && !inner[len..].starts_with(&close) {
            let step = inner[len..].chars().next().map_or(1, char::len_utf8);
            let escaped = !raw && inner[len..].starts_with('\\');
            let next = if escaped { inner[len + 1..].chars().next().map_or(0, char::len_utf8) } else { 0 };
            len += step + next;
        }
        let len = len.min(inner.len());
        self.take(open_len, None);
        self.take(len, is_text.then_some(FragmentKind::Prose));
        self.take(close.len().min(self.rest.len()), None);
    }

    /// A comment to the end of its line, which continues the one on the line above.
    fn line_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let text = self.rest[..end].trim_start_matches('/').trim_start_matches('!');
        let continues = self.comment_end == Some(self.line - 1) && !text.trim().is_empty();
        match self.fragments.last_mut() {
            Some(fragment) if continues => {
                fragment.text.push('\n');
                fragment.text.push_str(text);
                self.comment_end = Some(self.line);
            }
            _ if text.trim().is_empty() => self.comment_end = None,
            _ => {
                self.fragments.push(Fragment::new(FragmentKind::Prose, self.line, text));
                self.comment_end = Some(self.line);
            }
        }
        self.rest = &self.rest[end..];
    }

    /// Steps over `len` bytes, which are a fragment if `kind` says so.
    fn take(&mut self, len: usize, kind: Option<FragmentKind>) {
        let (text, rest) = self.rest.split_at(len);
        if let Some(kind) = kind.filter(|_| !text.trim().is_empty()) {
            self.fragments.push(Fragment::new(kind, self.line, text));
            self.comment_end = None;
        }
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
    }
}

/// The length of a character literal, or of the mark alone where a lifetime begins.
fn quoted_char_len(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => letters.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(path: &str, text: &str) -> Vec<(usize, String)> {
        let prose = of_file(path, text).into_iter().filter(|fragment| fragment.kind == FragmentKind::Prose);
        prose.map(|fragment| (fragment.line, fragment.text.trim().to_owned())).collect()
    }

    fn names(text: &str) -> Vec<String> {
        let names = of_rust(text).into_iter().filter(|fragment| fragment.kind == FragmentKind::Name);
        names.map(|fragment| fragment.text).collect()
    }

    fn line(number: usize, text: &str) -> (usize, String) {
        (number, text.to_owned())
    }

    #[test]
    fn adjoining_comments_are_one_fragment() {
        let text = "//! A\n//! b.\n\n/// C.\nfn d() {} // E.\n// F.\n";
        assert_eq!(prose("a.rs", text), [line(1, "A\n b."), line(4, "C."), line(5, "E.\n F.")]);
    }

    #[test]
    fn an_empty_comment_line_ends_a_fragment() {
        assert_eq!(prose("a.rs", "/// A\n///\n/// b\n"), [line(1, "A"), line(3, "b")]);
    }

    #[test]
    fn strings_are_prose_and_bytes_are_not() {
        let text =
            "f(\"a \\\" b\", r#\"c \" d\"#, b\"e\", '\"', b'\"', '\\'', \"g\\\\\");\nh(\"i\n j\", \"k\")";
        let found: Vec<String> = prose("a.rs", text).into_iter().map(|(_, text)| text).collect();
        assert_eq!(found, ["a \\\" b", "c \" d", "g\\\\", "i\n j", "k"]);
        assert_eq!(prose("a.rs", text)[4].0, 3);
    }

    #[test]
    fn identifiers_are_names_and_numbers_are_not() {
        assert_eq!(names("fn a<'b>(c: &'b u8) { 0xff_u8; 1e3 }"), ["fn", "a", "b", "c", "b", "u8"]);
        assert_eq!(names("'x'; '\\u{41}'; r"), ["r"]);
    }

    #[test]
    fn a_file_gives_its_name() {
        let name = |path: &str| of_file(path, "").pop().expect("a name").text;
        assert_eq!(name("crates/bus/src/line.rs"), "line");
        assert_eq!(name("crates/bus/src/line/mod.rs"), "line");
    }

    #[test]
    fn a_quotation_in_markdown_is_left_out() {
        assert_eq!(prose("a.md", "A\nb\n> quoted\nc\n\nd\n"), [line(1, "A\nb"), line(4, "c"), line(6, "d")]);
    }

    #[test]
    fn toml_gives_comments_and_texts() {
        let text = "# A\n# b\nkey = \"a text\" # c\nword = \"single\"\n";
        assert_eq!(prose("a.toml", text), [line(1, "A\n b\nc"), line(3, "a text")]);
        assert_eq!(prose("a.sh", "#!/bin/sh\necho a # b\n").len(), 1);
        assert_eq!(prose("a.hex", "# A\n"), []);
    }
}
