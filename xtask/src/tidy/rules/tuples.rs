//! No parameter is a tuple: values that travel together are a struct, whose fields have names.
//!
//! A tuple behind a reference counts, one inside of another type (a slice, an iterator, a closure's argument) does
//! not. A method of a trait is looked at in the trait alone; tests are left out.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};
use syn::{
    FnArg, ImplItemFn, ItemFn, ItemImpl, Signature, TraitItemFn, Type,
    spanned::Spanned,
    visit::{self, Visit},
};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut walk = Functions { source, findings: Vec::new() };
    walk.visit_file(&source.syntax);
    walk.findings
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, signature: &Signature) {
        let (name, line) = (signature.ident.to_string(), signature.span().start().line);
        let is_tuple = |input: &&FnArg| matches!(input, FnArg::Typed(typed) if is_tuple(&typed.ty));
        let tuples = signature.inputs.iter().filter(is_tuple).count();
        if tuples > 0 && !self.source.is_test_line(line) {
            let advice =
                format!("fn {name} takes a tuple; pass its parts apart, or a struct that names them");
            let finding = Finding::new(&self.source.path, line, Rule::TupleParameter, advice);
            self.findings.push(finding.about(name).amount(tuples));
        }
    }
}

fn is_tuple(parameter: &Type) -> bool {
    match parameter {
        Type::Tuple(tuple) => tuple.elems.len() > 1,
        Type::Reference(reference) => is_tuple(&reference.elem),
        Type::Paren(inner) => is_tuple(&inner.elem),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    #[test]
    fn a_tuple_parameter_is_found_in_functions_methods_and_traits() {
        assert_eq!(findings_of(check, "a.rs", "fn a((b, c): (u8, u8)) {}").len(), 1);
        assert_eq!(
            findings_of(check, "a.rs", "impl A { fn a(&self, b: &(u8, u8), c: (u8, u8)) {} }").len(),
            1
        );
        assert_eq!(findings_of(check, "a.rs", "trait A { fn a(b: (u8, u8)); }").len(), 1);
    }

    #[test]
    fn other_parameters_are_fine() {
        let text = "fn a(b: (), c: &[(u8, u8)], d: impl Fn((u8, u8))) -> (u8, u8) { e.map(|(f, g)| f) }";
        assert_eq!(findings_of(check, "a.rs", text), [""; 0]);
        assert_eq!(findings_of(check, "a.rs", "impl A for B { fn a(b: (u8, u8)) {} }"), [""; 0]);
        assert_eq!(findings_of(check, "a.rs", "#[cfg(test)]\nmod tests { fn a(b: (u8, u8)) {} }"), [""; 0]);
    }
}
