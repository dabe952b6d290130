//! The word list, `xtask/tidy-words.toml`: words and phrases that are not used, and what to write instead.
//!
//! A text is taken apart into words at everything that is not a letter and at the humps of camel case; a form of the
//! list matches whole words only. Inflections are forms in the list. A phrase matches words that only spaces, line
//! breaks, underscores, hyphens or humps separate.

use super::fragments::{Fragment, FragmentKind};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::HashMap;

/// Where the list is, from the top of the repository.
pub(crate) const PATH: &str = "xtask/tidy-words.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    word: Vec<Entry>,
}

/// One word with its inflections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    forms: Vec<String>,
    /// The words to use instead.
    #[serde(rename = "use")]
    replacement: String,
    #[serde(rename = "in")]
    scopes: Vec<Scope>,
    /// Phrases in which the word is meant as the field means it.
    #[serde(default, rename = "except")]
    exceptions: Vec<String>,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Prose,
    Names,
    Identifier,
}

impl Scope {
    fn covers(self, kind: FragmentKind) -> bool {
        match self {
            Self::Prose => kind == FragmentKind::Prose,
            Self::Names => kind == FragmentKind::Name,
            Self::Identifier => false,
        }
    }
}

/// A use of a word of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) line: usize,
    /// The word or phrase, in small letters.
    pub(crate) form: String,
    /// The words to use instead, and the reason.
    pub(crate) advice: String,
}

/// The list, arranged for looking up the first word of each form.
#[derive(Debug)]
pub(crate) struct WordList {
    entries: Vec<Entry>,
    /// The words of each form and its entry, by the first word.
    forms: HashMap<String, Vec<(Vec<String>, usize)>>,
    /// Entries by identifiers that are found as they are written.
    identifiers: HashMap<String, usize>,
}

impl WordList {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Entries { word: entries } = toml::from_str(text).with_context(|| format!("read {PATH}"))?;
        let mut forms: HashMap<String, Vec<(Vec<String>, usize)>> = HashMap::new();
        let mut identifiers = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            for form in &entry.forms {
                if entry.scopes == [Scope::Identifier] {
                    identifiers.insert(form.clone(), number);
                    continue;
                }
                let words: Vec<String> = words_of(form, 1).into_iter().map(|word| word.text).collect();
                let first = words.first().with_context(|| format!("{PATH}: a form without a word"))?;
                forms.entry(first.clone()).or_default().push((words.clone(), number));
            }
        }
        // The longest form of several that begin alike is the one that is meant.
        forms.values_mut().for_each(|forms| forms.sort_by_key(|(words, _)| usize::MAX - words.len()));
        Ok(Self { entries, forms, identifiers })
    }

    /// Every use of a word of the list in a fragment.
    pub(crate) fn hits(&self, fragment: &Fragment) -> Vec<Hit> {
        let is_name = fragment.kind == FragmentKind::Name;
        if let Some(&number) = self.identifiers.get(&fragment.text).filter(|_| is_name) {
            return vec![self.hit(fragment.line, fragment.text.clone(), number)];
        }
        let words = words_of(&fragment.text, fragment.line);
        let mut hits = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let found = self.form_at(&words, at, fragment.kind);
            at += found.map_or(1, |(form, number)| {
                hits.push(self.hit(words[at].line, form.join(" "), number));
                form.len()
            });
        }
        hits
    }

    fn form_at(&self, words: &[Word], at: usize, kind: FragmentKind) -> Option<(&[String], usize)> {
        let forms = self.forms.get(&words[at].text)?;
        let covered = |number: usize| self.entries[number].scopes.iter().any(|scope| scope.covers(kind));
        let meant = |form: &[String], number: usize| {
            let excepted = |phrase: &String| is_inside(words, at, form.len(), phrase);
            !self.entries[number].exceptions.iter().any(excepted)
        };
        let found = forms
            .iter()
            .find(|(form, number)| covered(*number) && matches_at(words, at, form) && meant(form, *number))?;
        Some((&found.0, found.1))
    }

    fn hit(&self, line: usize, form: String, number: usize) -> Hit {
        let Entry { replacement, reason, .. } = &self.entries[number];
        let advice = format!("\"{form}\": write {replacement} ({reason})");
        Hit { line, form, advice }
    }
}

/// A word of a text, in small letters.
struct Word {
    text: String,
    line: usize,
    /// Nothing but space, a hyphen, an underscore or a hump separates it from the word before.
    joined: bool,
}

fn words_of(text: &str, first_line: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut joined, mut inside) = (first_line, false, false);
    let mut letters = text.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if letter.is_alphabetic() {
            let next_is_small = letters.peek().is_some_and(|next| next.is_lowercase());
            let hump =
                letter.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_small);
            if !inside || hump {
                words.push(Word { text: String::new(), line, joined: joined || inside });
            }
            if let Some(word) = words.last_mut() {
                word.text.extend(letter.to_lowercase());
            }
            (inside, joined) = (true, false);
        } else {
            joined = (inside || joined) && (letter.is_whitespace() || letter == '_' || letter == '-');
            inside = false;
            line += usize::from(letter == '\n');
        }
        before = letter;
    }
    words
}

fn matches_at(words: &[Word], at: usize, form: &[String]) -> bool {
    let Some(candidate) = words.get(at..at + form.len()) else { return false };
    let alike = candidate.iter().zip(form).all(|(word, text)| word.text == *text);
    alike && candidate[1..].iter().all(|word| word.joined)
}

/// Whether the `len` words at `at` are inside a phrase.
fn is_inside(words: &[Word], at: usize, len: usize, phrase: &str) -> bool {
    let phrase: Vec<String> = words_of(phrase, 1).into_iter().map(|word| word.text).collect();
    let first = (at + len).saturating_sub(phrase.len());
    (first..=at).any(|start| start + phrase.len() >= at + len && matches_at(words, start, &phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[word]]
        forms = ["narrated", "narrate"]
        use = "report"
        in = ["prose", "names"]
        reason = "programs report"

        [[word]]
        forms = ["by coach"]
        use = "by train"
        in = ["prose", "names"]
        reason = "the term"

        [[word]]
        forms = ["peal"]
        use = "chime"
        in = ["prose", "names"]
        except = ["doorbell was peal"]
        reason = "the term"

        [[word]]
        forms = ["kept"]
        use = "saved"
        in = ["names"]
        reason = "the term"

        [[word]]
        forms = ["World"]
        use = "Machine"
        in = ["identifier"]
        reason = "the term"
    "#;

    fn hits(kind: FragmentKind, text: &str) -> Vec<String> {
        let list = WordList::parse(LIST).expect("valid");
        let fragment = Fragment { kind, line: 1, text: text.to_owned() };
        list.hits(&fragment).into_iter().map(|hit| format!("{}: {}", hit.line, hit.form)).collect()
    }

    fn in_prose(text: &str) -> Vec<String> {
        hits(FragmentKind::Prose, text)
    }

    #[test]
    fn a_word_is_found_whole_and_in_any_case() {
        assert_eq!(
            in_prose("Narrated so, `not_narrated` by NarrateTheHost"),
            ["1: narrated", "1: narrated", "1: narrate"]
        );
        assert_eq!(in_prose("narrator, unnarrated"), [""; 0]);
    }

    #[test]
    fn a_phrase_is_found_across_lines_and_not_across_a_stop() {
        assert_eq!(
            in_prose("a\nwrite by\n coach; by_coach, byCoach"),
            ["2: by coach", "3: by coach", "3: by coach"]
        );
        assert_eq!(in_prose("by. Coach, by (coach)"), [""; 0]);
    }

    #[test]
    fn an_excepted_phrase_is_left_alone() {
        assert_eq!(in_prose("the doorbell was peal twice"), [""; 0]);
        assert_eq!(in_prose("the next peal; it was peal"), ["1: peal", "1: peal"]);
    }

    #[test]
    fn an_entry_for_names_does_not_cover_prose() {
        assert_eq!(in_prose("blocks are kept"), [""; 0]);
        assert_eq!(hits(FragmentKind::Name, "kept_blocks"), ["1: kept"]);
    }

    #[test]
    fn an_identifier_is_found_as_it_is_written() {
        assert_eq!(hits(FragmentKind::Name, "World"), ["1: World"]);
        assert_eq!(hits(FragmentKind::Name, "world"), [""; 0]);
        assert_eq!(hits(FragmentKind::Name, "WorldWideName"), [""; 0]);
        assert_eq!(in_prose("World"), [""; 0]);
    }

    #[test]
    fn the_advice_names_the_replacement() {
        let list = WordList::parse(LIST).expect("valid");
        let fragment = Fragment { kind: FragmentKind::Name, line: 7, text: "narrated".into() };
        assert_eq!(list.hits(&fragment)[0].advice, "\"narrated\": write report (programs report)");
    }

    #[test]
    fn an_unknown_field_is_an_error() {
        assert!(WordList::parse(&LIST.replace("use =", "instead =")).is_err());
    }

    #[test]
    fn the_list_of_the_project_can_be_read() {
        let text = include_str!("../../tidy-words.toml");
        assert!(WordList::parse(text).expect("valid").entries.iter().all(|entry| !entry.reason.is_empty()));
    }
}
