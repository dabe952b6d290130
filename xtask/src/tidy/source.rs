//! One Rust file: its text, its tokens with lines, its syntax, and which of its lines are tests.
//!
//! Code that is compiled for tests only is found in the tokens: an attribute `cfg` that says `test`
//! and not `not` reaches to the end of the item that it precedes. Macro bodies are tokens like the
//! rest, so rules on tokens see into them; rules on syntax do not.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::{ops::RangeInclusive, str::FromStr};

/// One token, flattened: delimiters are separate tokens.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counts from 1.
    pub(crate) line: usize,
}

/// A parsed source file.
pub(crate) struct Source {
    /// From the top of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) syntax: syn::File,
    /// The whole file is compiled for tests only.
    pub(crate) test: bool,
    test_lines: Vec<RangeInclusive<usize>>,
    /// Names of modules in separate files that are compiled for tests only.
    pub(crate) test_modules: Vec<String>,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self> {
        let stream =
            TokenStream::from_str(text).ok().with_context(|| format!("read the tokens of {path}"))?;
        let syntax = syn::parse2(stream.clone()).with_context(|| format!("parse {path}"))?;
        let mut source = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens: Vec::new(),
            syntax,
            test: path.split('/').any(|part| part == "tests" || part == "benches"),
            test_lines: Vec::new(),
            test_modules: Vec::new(),
        };
        flatten(stream.clone(), &mut source.tokens);
        source.find_tests(stream);
        Ok(source)
    }

    /// The crate's folder name below `crates/`, or the folder at the top.
    pub(crate) fn member(&self) -> &str {
        member(&self.path)
    }

    /// Whether the file is part of a shipped crate, not of its tests.
    pub(crate) fn is_library(&self) -> bool {
        self.path.starts_with("crates/") && self.path.contains("/src/") && !self.test
    }

    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test || self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// Lines that are not compiled for tests only.
    pub(crate) fn shipped_lines(&self) -> usize {
        (1..=self.text.lines().count()).filter(|line| !self.is_test_line(*line)).count()
    }

    /// Where the modules in separate files that this file declares are: the folder, with a final `/`.
    pub(crate) fn module_folder(&self) -> String {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        match file {
            "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/"),
            _ => format!("{folder}/{}/", file.trim_end_matches(".rs")),
        }
    }

    fn find_tests(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut index = 0;
        while index < trees.len() {
            match (is_punct(&trees[index], '#'), &trees[index + 1..]) {
                (true, [bang, TokenTree::Group(attribute), ..])
                    if is_punct(bang, '!') && is_cfg_test(attribute) =>
                {
                    self.test = true;
                }
                (true, [TokenTree::Group(attribute), ..]) if is_cfg_test(attribute) => {
                    index = self.take_test_item(&trees, index);
                    continue;
                }
                _ => {}
            }
            if let TokenTree::Group(group) = &trees[index] {
                self.find_tests(group.stream());
            }
            index += 1;
        }
    }

    /// Notes the item whose attributes begin at `start`; returns the index behind it.
    fn take_test_item(&mut self, trees: &[TokenTree], start: usize) -> usize {
        let ends = |tree: &TokenTree| match tree {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            tree => is_punct(tree, ';') || is_punct(tree, ','),
        };
        let length = trees[start..].iter().position(ends).map_or(trees.len() - start, |at| at + 1);
        let item = &trees[start..start + length];
        if let [.., TokenTree::Ident(keyword), TokenTree::Ident(name), end] = item
            && keyword == "mod"
            && is_punct(end, ';')
        {
            self.test_modules.push(name.to_string());
        }
        if let [first, .., last] = item {
            self.test_lines.push(first.span().start().line..=last.span().end().line);
        }
        start + length
    }
}

/// The folder name below `crates/` of the crate that a file belongs to, or the folder at the top.
pub(crate) fn member(path: &str) -> &str {
    let inside = path.strip_prefix("crates/").unwrap_or(path);
    inside.split('/').next().unwrap_or(inside)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token { text: open.into(), line: group.span_open().start().line });
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.into(), line: group.span_close().start().line });
            }
            tree => tokens.push(Token { text: tree.to_string(), line: tree.span().start().line }),
        }
    }
}

fn is_punct(tree: &TokenTree, mark: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_cfg_test(attribute: &Group) -> bool {
    let mut tokens = Vec::new();
    flatten(attribute.stream(), &mut tokens);
    let says = |word: &str| tokens.iter().any(|token| token.text == word);
    tokens.first().is_some_and(|token| token.text == "cfg") && says("test") && !says("not")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Source {
        Source::parse("crates/bus/src/x.rs", text).expect("parses")
    }

    #[test]
    fn a_test_module_reaches_from_its_attribute_to_its_brace() {
        let source = parse("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
        let tests: Vec<usize> = (1..=6).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5]);
        assert_eq!(source.shipped_lines(), 2);
    }

    #[test]
    fn what_is_compiled_without_tests_is_no_test() {
        assert!(!parse("#[cfg(not(test))]\nfn a() {}\n").is_test_line(2));
        assert!(!parse("#[cfg(unix)]\nfn a() {}\n").is_test_line(2));
    }

    #[test]
    fn a_test_item_inside_an_impl_is_found() {
        let source =
            parse("impl A {\n    #[cfg(any(test, fuzzing))]\n    fn a() {\n    }\n    fn b() {}\n}\n");
        assert!(source.is_test_line(3) && source.is_test_line(4) && !source.is_test_line(5));
    }

    #[test]
    fn a_test_module_in_a_separate_file_is_named() {
        assert_eq!(parse("#[cfg(test)]\nmod suite;\nmod real;\n").test_modules, ["suite"]);
    }

    #[test]
    fn an_inner_attribute_makes_the_file_a_test() {
        assert!(parse("#![cfg(test)]\nfn a() {}\n").test);
        assert!(Source::parse("interop/tests/a.rs", "fn a() {}").expect("parses").test);
    }

    #[test]
    fn modules_lie_beside_a_mod_file_and_below_another() {
        assert_eq!(parse("").module_folder(), "crates/bus/src/x/");
        let source = Source::parse("crates/bus/src/lib.rs", "").expect("parses");
        assert_eq!(source.module_folder(), "crates/bus/src/");
    }

    #[test]
    fn a_member_is_named_by_its_folder() {
        assert_eq!(parse("").member(), "bus");
        assert_eq!(Source::parse("xtask/src/main.rs", "").expect("parses").member(), "xtask");
    }
}
