//! The `impl` blocks of one type have at most 600 lines together, in all files of its crate.
//!
//! Inherent blocks and those of traits count from `impl` to the closing brace, without tests. Two types of one name
//! in different files are two types. Types of other crates are left out.

use crate::tidy::{
    finding::{Finding, Rule},
    modules::Modules,
};
use std::collections::BTreeMap;
use syn::{Item, Type, spanned::Spanned};

const IMPL_LINES_MAX: usize = 600;

/// Every type of the crate with too many lines.
pub(crate) fn impl_lines(modules: &Modules) -> Vec<Finding> {
    let mut lines: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for file in 0..modules.files() {
        let source = modules.source(file);
        for item in &source.syntax.items {
            let Item::Impl(item) = item else { continue };
            let (first, last) =
                (item.impl_token.span().start().line, item.brace_token.span.close().end().line);
            let Some(path) = path_of(&item.self_ty).filter(|_| !source.is_test_line(first)) else { continue };
            if let (Some(definition), Some(name)) = (modules.definition(file, &path), path.last()) {
                *lines.entry((definition, name.clone())).or_default() += last + 1 - first;
            }
        }
    }
    let long = lines.into_iter().filter(|(_, lines)| *lines > IMPL_LINES_MAX);
    let finding = |((file, name), lines): ((usize, String), usize)| {
        let advice = format!(
            "{name} has {lines} lines of `impl` in all files, {IMPL_LINES_MAX} at most; move a concern into a type"
        );
        Finding::new(&modules.source(file).path, 1, Rule::ImplLines, advice).about(name).amount(lines)
    };
    long.map(finding).collect()
}

fn path_of(self_type: &Type) -> Option<Vec<String>> {
    match self_type {
        Type::Path(path) if path.qself.is_none() => {
            Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect())
        }
        Type::Reference(reference) => path_of(&reference.elem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Source;

    fn block(lines: usize) -> String {
        format!("impl A {{\n{}}}\n", "    const B: u8 = 1;\n".repeat(lines - 2))
    }

    fn found(files: &[(&str, String)]) -> Vec<String> {
        let parse = |(path, text): &(&str, String)| {
            Source::parse(&format!("crates/bus/src/{path}"), text).expect("parses")
        };
        let sources: Vec<Source> = files.iter().map(parse).collect();
        let findings = impl_lines(&Modules::of_crate(&sources));
        findings.into_iter().map(|finding| format!("{} {}", finding.subject, finding.amount)).collect()
    }

    #[test]
    fn the_blocks_of_a_type_are_summed_up_over_files() {
        let lib = |lines| ("lib.rs", format!("mod b;\nstruct A;\n{}", block(lines)));
        let other = ("b.rs", format!("use super::A;\n{}", block(300).replace("impl A", "impl Copy for A")));
        assert_eq!(found(&[lib(301), other.clone()]), ["A 601"]);
        assert_eq!(found(&[lib(300), other]), [""; 0]);
    }

    #[test]
    fn types_of_one_name_are_apart_and_tests_do_not_count() {
        let module = |path| (path, format!("struct A;\n{}", block(400)));
        assert_eq!(found(&[("lib.rs", "mod a; mod b;".into()), module("a.rs"), module("b.rs")]), [""; 0]);
        let tests = format!("struct A;\n{}#[cfg(test)]\nmod tests {{\n{}}}\n", block(400), block(400));
        assert_eq!(found(&[("lib.rs", tests)]), [""; 0]);
    }
}
