//! Modules depend one way: no circle of more than two files that import each other's items.
//!
//! An edge leads from a file to the file that defines what it uses; `super::modules` says how that is found. Two
//! files may use each other, as a module and its child do. Each file of a larger circle is a finding, and an
//! exception covers one file, so that a circle can shrink and cannot grow.

use crate::tidy::{
    finding::{Finding, Rule},
    modules::Modules,
};
use std::collections::BTreeMap;

/// Files that may import each other.
const CIRCLE_FILES_MAX: usize = 2;
/// Edges that a finding names.
const EDGES_SHOWN: usize = 4;

/// Every file of the crate that is part of a circle.
pub(crate) fn circles(modules: &Modules) -> Vec<Finding> {
    let uses = modules.uses();
    let circle_of = circles_of(&uses);
    let mut findings = Vec::new();
    for (file, circle) in circle_of.iter().enumerate() {
        let files = circle_of.iter().filter(|other| *other == circle).count();
        if files <= CIRCLE_FILES_MAX {
            continue;
        }
        let inside: Vec<String> = uses[file]
            .iter()
            .filter(|(target, _)| circle_of[**target] == *circle)
            .map(|(target, name)| format!("{name} of {}", short(&modules.source(*target).path)))
            .collect();
        let more = inside.len().saturating_sub(EDGES_SHOWN);
        let shown = inside[..inside.len() - more].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let advice = format!(
            "import circle of {files} files; this file uses {shown}{more}; move what both sides need into a file below"
        );
        findings.push(Finding::new(&modules.source(file).path, 1, Rule::ImportCircle, advice));
    }
    findings
}

fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, inside)| inside)
}

/// For each file the lowest file of its circle: two files have the same if each leads to the other.
fn circles_of(uses: &[BTreeMap<usize, String>]) -> Vec<usize> {
    let reached: Vec<Vec<bool>> = (0..uses.len()).map(|from| reached_from(uses, from)).collect();
    let circle = |file: usize| (0..=file).find(|other| reached[file][*other] && reached[*other][file]);
    (0..uses.len()).map(|file| circle(file).unwrap_or(file)).collect()
}

/// Which files are reached from a file, itself included.
fn reached_from(uses: &[BTreeMap<usize, String>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; uses.len()];
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        if !std::mem::replace(&mut reached[file], true) {
            open.extend(uses[file].keys().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Source;

    fn files_in_circles(files: &[[&str; 2]]) -> Vec<String> {
        let parse = |[path, text]: &[&str; 2]| {
            Source::parse(&format!("crates/bus/src/{path}"), text).expect("parses")
        };
        let sources: Vec<Source> = files.iter().map(parse).collect();
        let findings = circles(&Modules::of_crate(&sources));
        findings.into_iter().map(|finding| format!("{}: {}", short(&finding.path), finding.advice)).collect()
    }

    const LIB: [&str; 2] = ["lib.rs", "mod a; mod b; mod c;"];

    #[test]
    fn three_files_that_lead_back_are_a_circle() {
        let found = files_in_circles(&[
            LIB,
            ["a.rs", "use crate::b::B; pub struct A;"],
            ["b.rs", "use crate::c::C; pub struct B;"],
            ["c.rs", "use crate::a::A; pub struct C;"],
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("a.rs: import circle of 3 files; this file uses B of b.rs;"),
            "{found:?}"
        );
    }

    #[test]
    fn two_files_may_use_each_other() {
        let found = files_in_circles(&[
            LIB,
            ["a.rs", "use crate::b::B; pub struct A;"],
            ["b.rs", "use crate::a::A; pub struct B;"],
            ["c.rs", "use crate::a::A; use crate::b::B;"],
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_list_of_rows_whose_type_is_in_the_list_is_a_circle() {
        let list = ["lib.rs", "mod a; mod b; pub struct Row; const ROWS: [Row; 2] = [a::ROW, b::ROW];"];
        let a = ["a.rs", "use crate::Row; pub const ROW: Row = Row;"];
        let b = ["b.rs", "use crate::Row; pub const ROW: Row = Row;"];
        assert_eq!(files_in_circles(&[list, a, b]).len(), 3);
    }
}
