//! A public type carries its role in its name: `Kind` alone, `Place`, `Step` and their like are not `pub`.
//!
//! Looked at are items of shipped crates that are `pub` without restriction, and names that a `pub use` gives.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};
use proc_macro2::Ident;
use syn::{
    Item, UseTree, Visibility,
    visit::{self, Visit},
};

const BARE_NAMES: &[&str] = &[
    "Kind",
    "Place",
    "Step",
    "Order",
    "Way",
    "Turn",
    "Ended",
    "Finished",
    "Piece",
    concat!("To", "ld"),
    concat!("Ke", "pt"),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut walk = PublicNames { source, findings: Vec::new() };
    if source.is_library() {
        walk.visit_file(&source.syntax);
    }
    walk.findings
}

struct PublicNames<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl PublicNames<'_> {
    fn item(&mut self, visibility: &Visibility, ident: &Ident) {
        let (name, line) = (ident.to_string(), ident.span().start().line);
        let is_public = matches!(visibility, Visibility::Public(_)) && !self.source.is_test_line(line);
        if is_public && BARE_NAMES.contains(&name.as_str()) {
            let advice = format!("`{name}` says too little outside of its module; qualify it by its role");
            self.findings.push(Finding::new(&self.source.path, line, Rule::PublicName, advice).about(name));
        }
    }

    fn reexport(&mut self, visibility: &Visibility, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.reexport(visibility, &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.reexport(visibility, tree)),
            // The name is that of an item, which is found where it is defined.
            UseTree::Name(_) | UseTree::Glob(_) => {}
            UseTree::Rename(name) => self.item(visibility, &name.rename),
        }
    }
}

impl<'ast> Visit<'ast> for PublicNames<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Enum(item) => self.item(&item.vis, &item.ident),
            Item::Struct(item) => self.item(&item.vis, &item.ident),
            Item::Trait(item) => self.item(&item.vis, &item.ident),
            Item::Type(item) => self.item(&item.vis, &item.ident),
            Item::Union(item) => self.item(&item.vis, &item.ident),
            Item::Use(item) => self.reexport(&item.vis, &item.tree),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    const BUS: &str = "crates/bus/src/a.rs";

    #[test]
    fn a_bare_public_name_is_found() {
        assert_eq!(
            findings_of(check, BUS, "pub enum Kind {}\npub struct Step;\npub type Way = u8;").len(),
            3
        );
        assert_eq!(
            findings_of(check, BUS, "mod b { pub trait Turn {} }\npub use b::{Reset as Order};").len(),
            2
        );
    }

    #[test]
    fn a_qualified_or_private_name_is_fine() {
        assert_eq!(
            findings_of(check, BUS, "pub enum TransferKind {}\nenum Kind {}\npub(crate) struct Step;"),
            [""; 0]
        );
        assert_eq!(findings_of(check, BUS, "#[cfg(test)]\nmod tests { pub enum Kind {} }"), [""; 0]);
        assert_eq!(findings_of(check, "xtask/src/a.rs", "pub enum Kind {}"), [""; 0]);
    }
}
