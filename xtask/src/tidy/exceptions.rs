//! The list of exceptions, `xtask/tidy-exceptions.toml`: a ratchet that turns one way.
//!
//! An exception names a rule, a file, perhaps a subject in it, the exact amount that is allowed, and why. More than
//! the amount is reported in full. Less than the amount is a breach as well: the exception must be lowered, or go;
//! `cargo xtask tidy --update` does that. So the list can only shrink as the code gets better, and never covers a new
//! breach by accident. The file has one line for each exception, sorted, so that changes of it merge.

use super::finding::{Finding, Rule};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where the list is, from the top of the repository.
pub(crate) const PATH: &str = "xtask/tidy-exceptions.toml";

const HEADER: &str = "\
# What the rules do not hold for, and why. Amounts are exact, and the list only shrinks: `cargo xtask tidy --update`
# lowers and deletes what is no longer needed.
";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exceptions {
    #[serde(default, rename = "exception")]
    entries: Vec<Exception>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
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
        let lines = text.lines().zip(1..).filter(|(line, _)| line.contains("rule = "));
        for (entry, (_, line)) in list.entries.iter_mut().zip(lines) {
            entry.line = line;
        }
        Ok(list)
    }

    /// Takes away what is covered; adds what is wrong with the list itself.
    pub(crate) fn apply(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let amounts = amounts_of(&findings);
        let mut covered = BTreeMap::new();
        let mut about_the_list = Vec::new();
        for entry in &self.entries {
            let amount = amounts.get(&entry.key()).copied().unwrap_or_default();
            if amount <= entry.amount {
                covered.insert(entry.key(), ());
            }
            if let Some(advice) = entry.fault(amount) {
                about_the_list.push(Finding::new(PATH, entry.line, entry.rule, advice).about(&entry.path));
            }
        }
        let mut left: Vec<Finding> =
            findings.iter().filter(|finding| !covered.contains_key(&key(finding))).cloned().collect();
        left.extend(about_the_list);
        left
    }

    /// The list without what is no longer needed.
    pub(crate) fn lowered(&self, findings: &[Finding]) -> Self {
        let amounts = amounts_of(findings);
        let lower = |entry: &Exception| {
            let amount = amounts.get(&entry.key()).copied().filter(|amount| *amount > 0)?;
            Some(Exception { amount: amount.min(entry.amount), ..entry.clone() })
        };
        Self { entries: self.entries.iter().filter_map(lower).collect() }
    }

    /// A list that covers all findings; reasons that the present list gives stay.
    pub(crate) fn regenerated(&self, findings: &[Finding]) -> Self {
        let reasons: BTreeMap<Key, &str> =
            self.entries.iter().map(|e| (e.key(), e.reason.as_str())).collect();
        let entry = |(key, amount): (Key, usize)| {
            let (rule, path, subject) = key;
            let reason = reasons.get(&key).copied().unwrap_or(pending(rule)).to_owned();
            Exception { line: 0, rule, path: path.into(), subject: subject.into(), amount, reason }
        };
        // A commit cannot be mended, and a list of commits would never shrink.
        let listed = amounts_of(findings).into_iter().filter(|((rule, ..), _)| *rule != Rule::Commit);
        Self { entries: listed.map(entry).collect() }
    }

    /// The list as its file, sorted.
    pub(crate) fn to_toml(&self) -> String {
        let mut entries: Vec<&Exception> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.key());
        let lines: Vec<String> = entries.into_iter().map(Exception::to_toml).collect();
        format!("{HEADER}exception = [\n{}]\n", lines.concat())
    }
}

/// The fields that an exception shares with the findings that it covers.
type Key<'a> = (Rule, &'a str, &'a str);

fn key(finding: &Finding) -> Key<'_> {
    (finding.rule, &finding.path, &finding.subject)
}

fn amounts_of(findings: &[Finding]) -> BTreeMap<Key<'_>, usize> {
    let mut amounts = BTreeMap::new();
    for finding in findings {
        *amounts.entry(key(finding)).or_default() += finding.amount;
    }
    amounts
}

/// The step that will remove an exception of a rule, until a better reason is written.
fn pending(rule: Rule) -> &'static str {
    match rule {
        Rule::Word => "the prose and names of this file are not yet rewritten",
        Rule::PublicName => "goes when the names of this crate are rewritten",
        Rule::TupleParameter => "goes when the signatures of this crate are rewritten",
        Rule::ImplLines => "goes when this type is divided by concern",
        Rule::ImportCircle => "goes when the modules of this crate are put in order",
        Rule::ModuleStyle => "goes when the modules are moved beside their folders",
        Rule::DocumentSize => "goes when this document is rewritten",
        _ => "not yet mended",
    }
}

impl Exception {
    fn key(&self) -> Key<'_> {
        (self.rule, &self.path, &self.subject)
    }

    fn to_toml(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let Self { rule, path, subject, amount, reason, .. } = self;
        let subject =
            if subject.is_empty() { String::new() } else { format!(" subject = {},", quoted(subject)) };
        let (path, reason) = (quoted(path), quoted(reason));
        format!(
            "    {{ rule = \"{rule}\", path = {path},{subject} amount = {amount}, reason = {reason} }},\n"
        )
    }

    fn fault(&self, amount: usize) -> Option<String> {
        let name = format!("the exception for {} {}", self.path, self.subject);
        let name = name.trim_end();
        if self.reason.trim().is_empty() {
            Some(format!("{name} gives no reason; say why the rule is wrong there"))
        } else if amount == 0 {
            Some(format!("{name} no longer applies; delete it"))
        } else if amount < self.amount {
            Some(format!("{name} allows {} and needs {amount}; lower it", self.amount))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"exception = [
        { rule = "function-length", path = "crates/bus/src/lib.rs", subject = "meet", amount = 80, reason = "one table" },
    ]"#;

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
    fn the_exact_amount_is_allowed() {
        assert_eq!(left(80), [""; 0]);
    }

    #[test]
    fn one_more_is_reported() {
        assert_eq!(left(81), ["crates/bus/src/lib.rs:7: function-length: split it"]);
    }

    #[test]
    fn one_less_asks_for_a_lower_exception() {
        let [found] = &left(79)[..] else { panic!("one finding") };
        assert!(found.ends_with("crates/bus/src/lib.rs meet allows 80 and needs 79; lower it"), "{found}");
    }

    #[test]
    fn an_exception_that_no_longer_applies_is_a_breach() {
        let [found] = &left(0)[..] else { panic!("one finding") };
        assert!(found.starts_with("xtask/tidy-exceptions.toml:2: function-length: "), "{found}");
        assert!(found.ends_with("no longer applies; delete it"), "{found}");
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
    fn an_update_lowers_and_deletes_and_never_raises_or_adds() {
        let list = Exceptions::parse(LIST).expect("valid");
        let amounts = |amount: usize| -> Vec<usize> {
            let mut findings = long_function(amount);
            findings.push(Finding::new("crates/bus/src/new.rs", 1, Rule::Bits, "move it"));
            list.lowered(&findings).entries.iter().map(|entry| entry.amount).collect()
        };
        assert_eq!(amounts(79), [79]);
        assert_eq!(amounts(81), [80]);
        assert_eq!(amounts(0), [0; 0]);
    }

    #[test]
    fn a_regenerated_list_covers_all_and_keeps_reasons() {
        let mut findings = long_function(90);
        findings.push(Finding::new("crates/bus/src/new.rs", 1, Rule::Word, "write it"));
        findings.push(Finding::new("crates/bus/src/new.rs", 2, Rule::Word, "write it"));
        findings.push(Finding::new("commits", 1, Rule::Commit, "write it"));
        let text = Exceptions::parse(LIST).expect("valid").regenerated(&findings).to_toml();
        let list = Exceptions::parse(&text).expect("valid");
        let reasons: Vec<(usize, &str)> =
            list.entries.iter().map(|e| (e.amount, e.reason.as_str())).collect();
        assert_eq!(reasons, [(90, "one table"), (2, pending(Rule::Word))]);
        assert_eq!(list.apply(findings).len(), 1, "the commit is left");
    }

    #[test]
    fn an_unknown_rule_or_field_is_found() {
        assert!(Exceptions::parse(&LIST.replace("function-length", "lengthy")).is_err());
        assert!(Exceptions::parse(&LIST.replace("amount", "limit")).is_err());
    }
}
