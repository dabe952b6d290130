//! Words with values: those of the kernel's command line and of `options` of modprobe's files, which the kernel takes
//! apart in the same way (`next_arg` in lib/cmdline.c).
//!
//! White space parts words, except within quotes. Quotes around a word or around its value are left out, others stay.

/// A word with a value, or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    /// As it is written.
    pub(super) text: &'a str,
    /// The part before `=`.
    pub(super) name: &'a str,
    /// The part after it.
    pub(super) value: Option<&'a str>,
    /// Where in the line the value begins.
    pub(super) value_at: usize,
}

/// The words of a line.
pub(super) fn arguments(line: &str) -> impl Iterator<Item = Argument<'_>> {
    let mut rest = line.trim_start();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = line.len() - rest.len();
        let mut is_quoted = false;
        let ends = |letter: char| {
            is_quoted ^= letter == '"';
            letter.is_ascii_whitespace() && !is_quoted
        };
        let end = rest.find(ends).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(Argument::of(text, at))
    })
}

impl<'a> Argument<'a> {
    fn of(text: &'a str, at: usize) -> Self {
        let (word, lead) = text.strip_prefix('"').map_or((text, 0), |word| (word, 1));
        // One that begins with `=` has no name before it.
        let Some((equals, _)) = word.char_indices().skip(1).find(|(_, letter)| *letter == '=') else {
            return Self { text, name: word, value: None, value_at: at + text.len() };
        };
        let (name, rest) = word.split_at(equals);
        let value = rest.strip_prefix('=').unwrap_or(rest);
        let (value, quote) = value.strip_prefix('"').map_or((value, 0), |value| (value, 1));
        let value = value.strip_suffix('"').filter(|_| lead + quote > 0).unwrap_or(value);
        Self { text, name, value: Some(value), value_at: at + lead + equals + 1 + quote }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Vec<(&str, Option<&str>)> {
        arguments(line).map(|argument| (argument.name, argument.value)).collect()
    }

    #[test]
    fn quotes_around_a_word_or_its_value_are_left_out() {
        assert_eq!(
            parsed(r#"a=1 b="2 3" "c=4 5" d"#),
            [("a", Some("1")), ("b", Some("2 3")), ("c", Some("4 5")), ("d", None)]
        );
        assert_eq!(parsed(r#"  e=6"7  f=" g="""#), [("e", Some("6\"7  f=\"")), ("g", Some(""))]);
        assert_eq!(parsed(r#"h="" i=" "j="k""#), [("h", Some("")), ("i", Some(" \"j=\"k"))]);
        assert_eq!(parsed("=l m="), [("=l", None), ("m", Some(""))]);
        assert_eq!(parsed(""), []);
    }

    #[test]
    fn a_value_is_where_it_says() {
        for line in [r#" a b="x y"  "c=x y" d=xy"#, r#"é="x y""#] {
            for argument in arguments(line) {
                let Some(value) = argument.value else { continue };
                assert_eq!(line.get(argument.value_at..argument.value_at + value.len()), Some(value));
            }
        }
    }
}
