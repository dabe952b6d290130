//! A function fits a screen, a file fits a sitting, five parameters are many.
//!
//! A function counts from its signature to its closing brace, without docs and attributes. A file counts without
//! what is compiled for tests only; `self` is not a parameter.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};
use syn::{
    Block, FnArg, ImplItemFn, ItemFn, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 600;
const PARAMETERS_MAX: usize = 5;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut walk = Functions { source, findings: Vec::new() };
    walk.visit_file(&source.syntax);
    let lines = source.shipped_lines();
    if lines > FILE_LINES_MAX {
        let advice = format!("{lines} lines before the tests, {FILE_LINES_MAX} at most; split it by topic");
        walk.findings.push(Finding::new(&source.path, 1, Rule::FileLength, advice).amount(lines));
    }
    walk.findings
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, signature: &Signature, block: Option<&Block>) {
        let name = signature.ident.to_string();
        let first = signature.span().start().line;
        let lines = block.map_or(0, |block| block.span().end().line + 1 - first);
        if lines > FUNCTION_LINES_MAX {
            let advice = format!("fn {name} has {lines} lines, {FUNCTION_LINES_MAX} at most; split it");
            let finding = Finding::new(&self.source.path, first, Rule::FunctionLength, advice);
            self.findings.push(finding.about(&name).amount(lines));
        }
        let parameters = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        if parameters > PARAMETERS_MAX {
            let advice =
                format!("fn {name} takes {parameters} parameters; give those that belong together a type");
            let finding = Finding::new(&self.source.path, first, Rule::Parameters, advice);
            self.findings.push(finding.about(&name).amount(parameters));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    fn function_of(lines: usize) -> String {
        format!("/// Docs.\nfn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_71_lines_is_found_and_one_of_70_is_not() {
        assert_eq!(findings_of(check, "a.rs", &function_of(70)), [""; 0]);
        let found = findings_of(check, "a.rs", &function_of(71));
        assert_eq!(found, ["2: fn long has 71 lines, 70 at most; split it"]);
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let shipped = "fn a() {}\n".repeat(600);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn b() {}\n".repeat(100));
        assert_eq!(findings_of(check, "a.rs", &format!("{shipped}{tests}")), [""; 0]);
        let found = findings_of(check, "a.rs", &format!("fn a() {{}}\n{shipped}{tests}"));
        assert_eq!(found, ["1: 601 lines before the tests, 600 at most; split it by topic"]);
    }

    #[test]
    fn the_sixth_parameter_is_found_and_self_is_none() {
        let text = "impl A { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }";
        assert_eq!(findings_of(check, "a.rs", text), [""; 0]);
        let text = "trait A { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8); }";
        assert_eq!(findings_of(check, "a.rs", text).len(), 1);
    }
}
