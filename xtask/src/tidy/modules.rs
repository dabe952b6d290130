//! The modules of one crate: which file defines a name that another file imports.
//!
//! Names are resolved as the compiler does, as far as items go: through `use` declarations, re-exports and globs, from
//! `crate`, `self`, `super` and the names in scope. What a macro defines is not seen, nor is `#[path]`. Tests are left
//! out. A re-export is not a use: a file that only passes a name on does not depend on where it is defined.

use super::source::Source;
use std::collections::{BTreeMap, HashMap, HashSet};
use syn::{
    Item, ItemUse, UseTree, Visibility,
    spanned::Spanned,
    visit::{self, Visit},
};

/// Re-exports that are followed from one name to the next.
const HOPS_MAX: usize = 16;

/// A name in the scope of a module.
#[derive(Debug)]
enum Named {
    Defined,
    Module(usize),
    Imported(Vec<String>),
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolved {
    /// An item that is defined in this file.
    File(usize),
    Module(usize),
}

/// A name that a `use` declaration brings into scope.
struct Import {
    /// The module that the declaration stands in.
    module: usize,
    path: Vec<String>,
    /// The name in scope; absent for a glob.
    name: Option<String>,
    reexport: bool,
}

struct Module {
    /// The root of its crate: `lib.rs` or `main.rs`.
    root: usize,
    parent: Option<usize>,
    file: usize,
    names: HashMap<String, Named>,
    globs: Vec<Vec<String>>,
}

/// The files of a crate, and what they import of each other.
pub(crate) struct Modules<'a> {
    sources: Vec<&'a Source>,
    modules: Vec<Module>,
    imports: Vec<Import>,
    /// The module that a file is, by the file's number.
    of_file: Vec<usize>,
}

impl<'a> Modules<'a> {
    /// Reads the shipped files of one crate.
    pub(crate) fn of_crate(sources: &'a [Source]) -> Self {
        let shipped = |source: &&Source| !source.test && source.path.contains("/src/");
        let mut sources: Vec<&Source> = sources.iter().filter(shipped).collect();
        // A parent comes before its children, so that it has a number when they are read.
        sources.sort_by_key(|source| (module_path(&source.path).len(), &source.path));
        let mut modules = Self { sources, modules: Vec::new(), imports: Vec::new(), of_file: Vec::new() };
        let mut by_path = HashMap::new();
        for file in 0..modules.sources.len() {
            modules.add_file(file, &mut by_path);
        }
        modules
    }

    fn add_file(&mut self, file: usize, by_path: &mut HashMap<Vec<String>, usize>) {
        let source = self.sources[file];
        let path = module_path(&source.path);
        let parent = path.split_last().and_then(|(_, above)| by_path.get(above).copied());
        let id = self.add_module(file, parent);
        by_path.insert(path.clone(), id);
        self.of_file.push(id);
        if let (Some(parent), Some(name)) = (parent, path.last()) {
            self.modules[parent].names.insert(name.clone(), Named::Module(id));
        }
        Reader { modules: self, source, module: id }.visit_file(&source.syntax);
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        let id = self.modules.len();
        let root = parent.map_or(id, |parent| self.modules[parent].root);
        self.modules.push(Module { root, parent, file, names: HashMap::new(), globs: Vec::new() });
        id
    }

    pub(crate) fn source(&self, file: usize) -> &'a Source {
        self.sources[file]
    }

    pub(crate) fn files(&self) -> usize {
        self.sources.len()
    }

    /// The file that defines a type named in `file`, if the crate does.
    pub(crate) fn definition(&self, file: usize, path: &[String]) -> Option<usize> {
        match self.resolve(self.of_file[file], path, HOPS_MAX)? {
            Resolved::File(file) => Some(file),
            Resolved::Module(_) => None,
        }
    }

    /// Returns the other files that each file uses, each with one of the used names.
    pub(crate) fn uses(&self) -> Vec<BTreeMap<usize, String>> {
        let mut uses = vec![BTreeMap::new(); self.sources.len()];
        let bodies: Vec<Body> = self.sources.iter().map(|source| Body::of(source)).collect();
        for import in &self.imports {
            let file = self.modules[import.module].file;
            for (target, name) in self.targets(import, &bodies[file]) {
                uses[file].entry(target).or_insert(name);
            }
        }
        for (file, body) in bodies.iter().enumerate() {
            for path in &body.paths {
                if let Some(Resolved::File(target)) = self.resolve(self.of_file[file], path, HOPS_MAX) {
                    uses[file].entry(target).or_insert_with(|| path.join("::"));
                }
            }
        }
        for (file, uses) in uses.iter_mut().enumerate() {
            uses.remove(&file);
        }
        uses
    }

    /// The files that an import makes its own file depend on.
    fn targets(&self, import: &Import, body: &Body) -> Vec<(usize, String)> {
        if let Some(name) = &import.name {
            if import.reexport && !body.names.contains(name) {
                return Vec::new();
            }
            return match self.resolve(import.module, &import.path, HOPS_MAX) {
                Some(Resolved::File(file)) => vec![(file, name.clone())],
                _ => Vec::new(),
            };
        }
        match self.resolve(import.module, &import.path, HOPS_MAX) {
            Some(Resolved::File(file)) => vec![(file, import.path.join("::"))],
            Some(Resolved::Module(module)) => {
                let unknown = |name: &&String| !self.modules[import.module].names.contains_key(*name);
                let used = body.names.iter().filter(unknown);
                let file = |name: &String| match self.lookup(module, name, HOPS_MAX)? {
                    Resolved::File(file) => Some((file, name.clone())),
                    Resolved::Module(_) => None,
                };
                used.filter_map(file).collect()
            }
            None => Vec::new(),
        }
    }

    fn resolve(&self, from: usize, path: &[String], hops: usize) -> Option<Resolved> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut place = match first.as_str() {
            "crate" => Resolved::Module(self.modules[from].root),
            "self" => Resolved::Module(from),
            "super" => Resolved::Module(self.modules[from].parent?),
            name => self.lookup(from, name, hops)?,
        };
        while let (Resolved::Module(module), Some((name, after))) = (place, rest.split_first()) {
            place = match name.as_str() {
                "super" => Resolved::Module(self.modules[module].parent?),
                "self" => place,
                name => self.lookup(module, name, hops)?,
            };
            rest = after;
        }
        Some(place)
    }

    fn lookup(&self, module: usize, name: &str, hops: usize) -> Option<Resolved> {
        let hops = hops.checked_sub(1)?;
        match self.modules[module].names.get(name) {
            Some(Named::Defined) => Some(Resolved::File(self.modules[module].file)),
            Some(Named::Module(module)) => Some(Resolved::Module(*module)),
            // `use self::name` and `use name` of a crate of that name lead nowhere else.
            Some(Named::Imported(path)) if path.len() == 1 && path[0] == name => None,
            Some(Named::Imported(path)) => self.resolve(module, path, hops),
            None => {
                self.modules[module].globs.iter().find_map(|glob| match self.resolve(module, glob, hops)? {
                    Resolved::Module(other) if other != module => self.lookup(other, name, hops),
                    _ => None,
                })
            }
        }
    }
}

/// The module path of a file below `src/`; a program beside a library is a tree apart.
fn module_path(path: &str) -> Vec<String> {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let parts = inside.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut parts: Vec<String> = parts.collect();
    match parts.last().map(String::as_str) {
        Some("lib" | "mod") => drop(parts.pop()),
        Some("main") => parts = Vec::new(),
        _ => {}
    }
    parts
}

/// Collects the names that a file defines and imports.
struct Reader<'m, 'a> {
    modules: &'m mut Modules<'a>,
    source: &'a Source,
    module: usize,
}

impl Reader<'_, '_> {
    fn define(&mut self, name: &syn::Ident) {
        self.modules.modules[self.module].names.insert(name.to_string(), Named::Defined);
    }

    fn import(&mut self, tree: &UseTree, path: &[String], reexport: bool) {
        let module = self.module;
        let (path, name) = match tree {
            UseTree::Path(inner) => {
                let path = [path, &[inner.ident.to_string()]].concat();
                return self.import(&inner.tree, &path, reexport);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path, reexport));
            }
            UseTree::Glob(_) => {
                self.modules.modules[module].globs.push(path.to_vec());
                (path.to_vec(), None)
            }
            UseTree::Name(name) if name.ident == "self" => (path.to_vec(), path.last().cloned()),
            UseTree::Name(name) => ([path, &[name.ident.to_string()]].concat(), Some(name.ident.to_string())),
            UseTree::Rename(name) => {
                ([path, &[name.ident.to_string()]].concat(), Some(name.rename.to_string()))
            }
        };
        if let Some(name) = &name {
            let names = &mut self.modules.modules[module].names;
            names.entry(name.clone()).or_insert_with(|| Named::Imported(path.clone()));
        }
        self.modules.imports.push(Import { module, path, name, reexport });
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if self.source.is_test_line(item.span().start().line) {
            return;
        }
        match item {
            Item::Const(item) => self.define(&item.ident),
            Item::Enum(item) => self.define(&item.ident),
            Item::Fn(item) => self.define(&item.sig.ident),
            Item::Static(item) => self.define(&item.ident),
            Item::Struct(item) => self.define(&item.ident),
            Item::Trait(item) => self.define(&item.ident),
            Item::Type(item) => self.define(&item.ident),
            Item::Union(item) => self.define(&item.ident),
            Item::Macro(item) => item.ident.iter().for_each(|ident| self.define(ident)),
            Item::Mod(item) if item.content.is_some() => {
                let above = self.module;
                let file = self.modules.modules[above].file;
                self.module = self.modules.add_module(file, Some(above));
                let named = Named::Module(self.module);
                self.modules.modules[above].names.insert(item.ident.to_string(), named);
                visit::visit_item_mod(self, item);
                self.module = above;
                return;
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let reexport = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], reexport);
    }
}

/// The names and paths in the code of a file, outside of its `use` declarations and tests.
struct Body {
    names: HashSet<String>,
    /// Paths of two segments and more.
    paths: Vec<Vec<String>>,
}

impl Body {
    fn of(source: &Source) -> Self {
        let mut body = Self { names: HashSet::new(), paths: Vec::new() };
        let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let tokens: Vec<&str> = source.tokens.iter().map(|token| token.text.as_str()).collect();
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at] == "use" {
                at += tokens[at..].iter().position(|token| *token == ";").unwrap_or(1);
            }
            let mut path = Vec::new();
            while tokens.get(at).is_some_and(|token| is_name(token)) {
                path.push(tokens[at].to_owned());
                at += 1;
                let goes_on = tokens.get(at..at + 2) == Some(&[":", ":"])
                    && tokens.get(at + 2).is_some_and(|token| is_name(token));
                if !goes_on {
                    break;
                }
                at += 2;
            }
            let shipped =
                source.tokens.get(at.saturating_sub(1)).is_some_and(|t| !source.is_test_line(t.line));
            if !path.is_empty() && shipped {
                body.names.extend(path.first().cloned());
                if path.len() > 1 {
                    body.paths.push(path.clone());
                }
            }
            at += usize::from(path.is_empty());
        }
        body.paths.sort();
        body.paths.dedup();
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The uses of a crate of these files, as "from to".
    fn uses(files: &[[&str; 2]]) -> Vec<String> {
        let parse = |[path, text]: &[&str; 2]| {
            Source::parse(&format!("crates/bus/src/{path}"), text).expect("parses")
        };
        let sources: Vec<Source> = files.iter().map(parse).collect();
        let modules = Modules::of_crate(&sources);
        let name = |file: usize| modules.source(file).path.trim_start_matches("crates/bus/src/");
        let uses = modules.uses();
        let lines =
            (0..).zip(&uses).flat_map(|(from, to)| to.keys().map(move |to| (from, *to)).collect::<Vec<_>>());
        lines.map(|(from, to)| format!("{} {}", name(from), name(to))).collect()
    }

    #[test]
    fn an_import_leads_to_the_file_that_defines_the_item() {
        let files = [
            ["lib.rs", "mod a; mod b; pub use a::A;"],
            ["a.rs", "pub struct A;"],
            ["b.rs", "use crate::A; use super::a::A as C;"],
        ];
        assert_eq!(uses(&files), ["b.rs a.rs"]);
    }

    #[test]
    fn a_reexport_is_not_a_use_unless_the_name_is_used() {
        let lib = "mod a; pub use a::A;";
        assert_eq!(uses(&[["lib.rs", lib], ["a.rs", "pub struct A;"]]), [""; 0]);
        let lib = format!("{lib} fn f(a: A) {{}}");
        assert_eq!(uses(&[["lib.rs", &lib], ["a.rs", "pub struct A;"]]), ["lib.rs a.rs"]);
    }

    #[test]
    fn a_path_in_code_is_a_use_even_in_a_macro() {
        let files = [
            ["lib.rs", "mod a; mod b;"],
            ["a.rs", "pub fn f() {}"],
            ["b.rs", "use crate::a; fn g() { assert!(a::f()); }"],
        ];
        assert_eq!(uses(&files), ["b.rs a.rs"]);
    }

    #[test]
    fn a_glob_leads_to_what_is_used_of_it() {
        let files = [
            ["lib.rs", "mod a; mod b; mod c;"],
            ["a.rs", "pub use crate::c::*; pub struct A;"],
            ["b.rs", "use crate::a::*; fn f(c: C) {}"],
            ["c.rs", "pub struct C;"],
        ];
        assert_eq!(uses(&files), ["b.rs c.rs"]);
    }

    #[test]
    fn a_child_sees_what_its_parent_imports() {
        let files = [
            ["lib.rs", "mod a; mod b;"],
            ["a/mod.rs", "mod d; use crate::b::B;"],
            ["a/d.rs", "use super::B; fn f(b: B) {}"],
            ["b.rs", "pub struct B;"],
        ];
        assert_eq!(uses(&files), ["a/mod.rs b.rs", "a/d.rs b.rs"]);
    }

    #[test]
    fn tests_and_other_crates_are_left_out() {
        let files = [
            ["lib.rs", "mod a; mod b; use std::fmt; use wire::a::A;"],
            ["a.rs", "pub struct A;"],
            ["b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"],
        ];
        assert_eq!(uses(&files), [""; 0]);
    }
}
