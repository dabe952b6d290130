//! Names that say nothing: process, do, manager, helper, util, misc, common anywhere in the name of a type, a
//! function, a module or a file; `data` and `info` when they stand alone.
//!
//! Names of tests are sentences and are left alone, and so are the functions of somebody else's trait.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};
use proc_macro2::Ident;
use syn::{
    ImplItemFn, Item, ItemImpl, TraitItemFn,
    visit::{self, Visit},
};

const EMPTY_WORDS: &[&str] =
    &["process", "do", "manager", "helper", "helpers", "util", "utils", "misc", "common"];
const EMPTY_ALONE: &[&str] = &["data", "info"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut walk = Names { source, findings: Vec::new() };
    let file = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    // A module in a separate file is reported once, at the file.
    walk.name(file, 1);
    walk.visit_file(&source.syntax);
    walk.findings
}

struct Names<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Names<'_> {
    fn ident(&mut self, ident: &Ident) {
        self.name(&ident.to_string(), ident.span().start().line);
    }

    fn name(&mut self, name: &str, line: usize) {
        if self.source.is_test_line(line) {
            return;
        }
        if let Some(word) = empty_word(name) {
            let advice = format!("`{name}`: \"{word}\" says nothing; name what it is or what comes of it");
            self.findings.push(Finding::new(&self.source.path, line, Rule::Name, advice).about(name));
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Enum(item) => self.ident(&item.ident),
            Item::Fn(item) => self.ident(&item.sig.ident),
            Item::Mod(item) if item.content.is_some() => self.ident(&item.ident),
            Item::Struct(item) => self.ident(&item.ident),
            Item::Trait(item) => self.ident(&item.ident),
            Item::Type(item) => self.ident(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.ident(&item.sig.ident);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.ident(&item.sig.ident);
        visit::visit_trait_item_fn(self, item);
    }
}

/// The word of a name that says nothing, if there is one.
fn empty_word(name: &str) -> Option<String> {
    let words = words(name);
    if let [alone] = &words[..]
        && EMPTY_ALONE.contains(&alone.as_str())
    {
        return Some(alone.clone());
    }
    words.into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str()))
}

/// The words of `snake_case` and `CamelCase`, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    #[test]
    fn a_name_is_taken_apart_into_words() {
        assert_eq!(words("TaskManager"), ["task", "manager"]);
        assert_eq!(words("do_read_10"), ["do", "read", "10"]);
    }

    #[test]
    fn empty_words_are_found_in_types_functions_and_files() {
        let text = "struct TaskManager;\nfn do_read() {}\nimpl A { fn process(&self) {} }\n";
        let lines: Vec<String> = findings_of(check, "crates/bus/src/utils.rs", text);
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn data_and_info_may_not_be_alone() {
        assert_eq!(
            findings_of(check, "a.rs", "fn data() {}\nfn data_phase() {}\nstruct InterfaceInfo;").len(),
            1
        );
    }

    #[test]
    fn a_word_that_merely_contains_one_is_fine() {
        assert_eq!(
            findings_of(check, "a.rs", "fn domain() {}\nstruct Processor;\nfn management() {}"),
            [""; 0]
        );
    }

    #[test]
    fn tests_and_foreign_traits_are_left_alone() {
        let text = "impl A for B { fn process(&self) {} }\n#[cfg(test)]\nmod tests { fn both_do_it() {} }\n";
        assert_eq!(findings_of(check, "a.rs", text), [""; 0]);
    }
}
