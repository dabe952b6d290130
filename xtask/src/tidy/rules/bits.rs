//! Bit arithmetic lives in `wire`: a shift or a mask by a literal elsewhere in a shipped crate takes a field apart,
//! and is found.
//!
//! Left alone: a size written as a shift of two literals (`64 << 20`), and a set of small numbers (`1 << index`).

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};
use syn::{
    BinOp, Expr, ExprBinary, Lit,
    spanned::Spanned,
    visit::{self, Visit},
};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_library() || source.member() == "wire" {
        return Vec::new();
    }
    let mut walk = Masks { source, findings: Vec::new() };
    walk.visit_file(&source.syntax);
    walk.findings
}

struct Masks<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Masks<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let literals = [&binary.left, &binary.right].map(|side| is_number(side));
        let offends = match binary.op {
            BinOp::Shl(_) | BinOp::Shr(_) | BinOp::ShlAssign(_) | BinOp::ShrAssign(_) => {
                literals == [false, true]
            }
            BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitAndAssign(_) | BinOp::BitOrAssign(_) => {
                literals != [false; 2]
            }
            _ => false,
        };
        let line = binary.span().start().line;
        if offends && !self.source.is_test_line(line) {
            let advice = "bits are taken apart in `wire`; give the field a name and a type there";
            self.findings.push(Finding::new(&self.source.path, line, Rule::Bits, advice));
        }
        visit::visit_expr_binary(self, binary);
    }
}

fn is_number(side: &Expr) -> bool {
    matches!(side, Expr::Lit(literal) if matches!(literal.lit, Lit::Int(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    const TARGET: &str = "crates/device/src/a.rs";

    #[test]
    fn a_mask_and_a_shift_are_found() {
        assert_eq!(findings_of(check, TARGET, "fn a(b: u8) -> u8 {\n    b & 0x0f\n}").len(), 1);
        assert_eq!(findings_of(check, TARGET, "fn a(b: u8) -> u8 { b >> 4 }").len(), 1);
        assert_eq!(findings_of(check, TARGET, "fn a(mut b: u8) { b |= 0x80; }").len(), 1);
    }

    #[test]
    fn wire_tests_and_tools_are_left_alone() {
        let text = "fn a(b: u8) -> u8 { b & 0x0f }";
        assert_eq!(findings_of(check, "crates/wire/src/a.rs", text), [""; 0]);
        assert_eq!(findings_of(check, "xtask/src/a.rs", text), [""; 0]);
        assert_eq!(findings_of(check, TARGET, &format!("#[cfg(test)]\nmod tests {{ {text} }}")), [""; 0]);
    }

    #[test]
    fn a_size_and_a_set_are_left_alone() {
        assert_eq!(findings_of(check, TARGET, "const SIZE: u64 = 64 << 20;"), [""; 0]);
        assert_eq!(findings_of(check, TARGET, "fn a(b: u8, c: u8) -> bool { b & 1 << c != 0 }"), [""; 0]);
    }

    #[test]
    fn choices_of_booleans_are_fine() {
        assert_eq!(findings_of(check, TARGET, "fn a(b: bool, c: bool) -> bool { b | c }"), [""; 0]);
    }
}
