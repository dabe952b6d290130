//! The list of exceptions, `xtask/tidy-exceptions.toml`: a ratchet that turns one way.
//!
//! An exception names a rule, a file, perhaps a subject in it, the exact amount that is borne, and why. More than
//! the amount is reported in full. Less than the amount is a breach as well: the exception must be lowered, or go.
//! So the list can only shrink as the code gets better, and never covers a new breach by accident.

use super::finding::{Finding, Rule};
use anyhow::{Context, Result};
use serde::Deserialize;

/// Where the list is, from the top of the repository.
pub(crate) const PATH: &str = "xtask/tidy-exceptions.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exceptions {
    #[serde(default, rename = "exception")]
    entries: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// Where it begins in the list; filled in after the parser.
    #[serde(skip)]
    line: usize,
    rule: Rule,
    path: String,
    /// The function, type or crate that is meant; absent for the file as a whole.
    #[serde(default)]
    subject: String,
    amount: usize,
    reason: String,
}

impl Exceptions {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut list: Self = toml::from_str(text).with_context(|| format!("read {PATH}"))?;
        let lines = text.lines().zip(1..).filter(|(line, _)| line.trim() == "[[exception]]");
        for (entry, (_, line)) in list.entries.iter_mut().zip(lines) {
            entry.line = line;
        }
        Ok(list)
    }

    /// Takes away what is borne; adds what is wrong with the list itself.
    pub(crate) fn apply(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let mut about_the_list = Vec::new();
        for entry in &self.entries {
            let amount = findings.iter().filter(|f| entry.covers(f)).map(|f| f.amount).sum::<usize>();
            if amount <= entry.amount {
                findings.retain(|finding| !entry.covers(finding));
            }
            if let Some(advice) = entry.fault(amount) {
                about_the_list.push(Finding::new(PATH, entry.line, entry.rule, advice).about(&entry.path));
            }
        }
        findings.extend(about_the_list);
        findings
    }
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        finding.rule == self.rule && finding.path == self.path && finding.subject == self.subject
    }

    fn fault(&self, amount: usize) -> Option<String> {
        let name = format!("the exception for {} {}", self.path, self.subject);
        let name = name.trim_end();
        if self.reason.trim().is_empty() {
            Some(format!("{name} gives no reason; say why the rule is wrong there"))
        } else if amount == 0 {
            Some(format!("{name} no longer applies; delete it"))
        } else if amount < self.amount {
            Some(format!("{name} bears {} and needs {amount}; lower it", self.amount))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[exception]]
        rule = "function-length"
        path = "crates/bus/src/lib.rs"
        subject = "meet"
        amount = 80
        reason = "one table"
    "#;

    fn long_function(amount: usize) -> Vec<Finding> {
        let finding = Finding::new("crates/bus/src/lib.rs", 7, Rule::FunctionLength, "split it");
        vec![finding.about("meet").amount(amount)]
    }

    fn left(amount: usize) -> Vec<String> {
        let findings = if amount == 0 { Vec::new() } else { long_function(amount) };
        let left = Exceptions::parse(LIST).expect("valid").apply(findings);
        left.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_exact_amount_is_borne() {
        assert_eq!(left(80), [""; 0]);
    }

    #[test]
    fn one_more_is_reported() {
        assert_eq!(left(81), ["crates/bus/src/lib.rs:7: function-length: split it"]);
    }

    #[test]
    fn one_less_asks_for_a_lower_exception() {
        let [told] = &left(79)[..] else { panic!("one finding") };
        assert!(told.ends_with("crates/bus/src/lib.rs meet bears 80 and needs 79; lower it"), "{told}");
    }

    #[test]
    fn an_exception_that_no_longer_applies_is_a_breach() {
        let [told] = &left(0)[..] else { panic!("one finding") };
        assert!(told.starts_with("xtask/tidy-exceptions.toml:2: function-length: "), "{told}");
        assert!(told.ends_with("no longer applies; delete it"), "{told}");
    }

    #[test]
    fn an_exception_of_another_subject_covers_nothing() {
        let mut findings = long_function(80);
        findings[0].subject = "halt".into();
        assert_eq!(Exceptions::parse(LIST).expect("valid").apply(findings).len(), 2);
    }

    #[test]
    fn an_exception_without_a_reason_is_a_breach() {
        let list = LIST.replace("one table", " ");
        let left = Exceptions::parse(&list).expect("valid").apply(long_function(80));
        assert!(left[0].advice.contains("gives no reason"), "{left:?}");
    }

    #[test]
    fn an_unknown_rule_or_field_is_told() {
        assert!(Exceptions::parse(&LIST.replace("function-length", "lengthy")).is_err());
        assert!(Exceptions::parse(&LIST.replace("amount", "limit")).is_err());
    }
}
