//! Every crate that is built has a licence that `deny.toml` allows, and comes from where it says.
//!
//! The same list that `cargo deny check licenses sources` holds the dependencies to, read without that program: it has
//! to be installed, this has not. Looked at is what Cargo would build on this platform, for the workspace and for the
//! fuzz targets.
//!
//! Left out: the texts of the licences, advisories, crates that stand twice in the tree. `cargo deny check` reports those.

use crate::tidy::finding::{Finding, Rule};
use anyhow::{Context, Result, bail};
use cargo_metadata::{MetadataCommand, Package};
use serde::Deserialize;
use std::path::Path;

/// The list of what is allowed.
const LIST: &str = "deny.toml";
/// Where crates may come from, as Cargo names it.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that are allowed for one crate only.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// Every crate whose licence or source is not allowed.
pub(crate) fn licences(root: &Path) -> Result<Vec<Finding>> {
    let list = std::fs::read_to_string(root.join(LIST)).with_context(|| format!("read {LIST}"))?;
    let Deny { licenses } = toml::from_str(&list).with_context(|| format!("read {LIST}"))?;
    let mut findings = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join(manifest))
            .other_options(["--filter-platform".into(), crate::fuzz::host()?])
            .exec()
            .with_context(|| format!("ask cargo for what {manifest} is built of"))?;
        let faults = metadata.packages.iter().filter_map(|package| fault(&licenses, package));
        findings.extend(
            faults.map(|(name, advice)| Finding::new(manifest, 1, Rule::Licence, advice).about(name)),
        );
    }
    Ok(findings)
}

fn fault(licenses: &Licenses, package: &Package) -> Option<(String, String)> {
    let name = package.name.to_string();
    if let Some(source) = &package.source
        && source.repr != SOURCE
    {
        let advice = format!("{name} comes from {source}; take it from crates.io");
        return Some((name, advice));
    }
    let Some(expression) = &package.license else {
        let advice = format!("{name} does not say its licence in one expression; take another crate");
        return Some((name, advice));
    };
    let advice = match licenses.allow(&name, expression) {
        Ok(true) => return None,
        Ok(false) => format!("{name} is under {expression}, which {LIST} does not allow"),
        Err(error) => format!("{name} is under {expression:?}: {error}"),
    };
    Some((name, advice))
}

impl Licenses {
    /// Whether the crate may be used under that expression (SPDX, annex D; "/" is an old way to write OR).
    fn allow(&self, name: &str, expression: &str) -> Result<bool> {
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let exception = self.exceptions.iter().find(|exception| exception.name == name);
        let list = exception.map_or(&self.allow, |exception| &exception.allow);
        let mut words = &words[..];
        let allowed = any(&mut words, list)?;
        if words.is_empty() { Ok(allowed) } else { bail!("it ends before {:?}", words.join(" ")) }
    }
}

/// `all OR all OR …`
fn any(words: &mut &[&str], list: &[String]) -> Result<bool> {
    let mut allowed = all(words, list)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all(words, list)?;
    }
    Ok(allowed)
}

/// `one AND one AND …`
fn all(words: &mut &[&str], list: &[String]) -> Result<bool> {
    let mut allowed = one(words, list)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words, list)?;
    }
    Ok(allowed)
}

/// A licence, one with an exception, or an expression in parentheses.
fn one(words: &mut &[&str], list: &[String]) -> Result<bool> {
    let (licence, rest) = match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any(words, list)?;
            let [")", rest @ ..] = *words else { bail!("a parenthesis is not closed") };
            *words = rest;
            return Ok(allowed);
        }
        [licence, "WITH", exception, rest @ ..] => (format!("{licence} WITH {exception}"), rest),
        [licence, rest @ ..] => ((*licence).to_owned(), rest),
        [] => bail!("a licence is missing"),
    };
    *words = rest;
    Ok(list.contains(&licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(name: &str, expression: &str) -> Option<bool> {
        let licenses = Licenses {
            allow: ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into(),
            exceptions: vec![Exception { name: "engine".into(), allow: vec!["NCSA".into()] }],
        };
        licenses.allow(name, expression).ok()
    }

    #[test]
    fn one_of_several_is_enough() {
        assert_eq!(allowed("any", "GPL-3.0 OR MIT"), Some(true));
        assert_eq!(allowed("any", "MIT/Apache-2.0"), Some(true));
        assert_eq!(allowed("any", "Apache-2.0 WITH LLVM-exception OR Apache-2.0"), Some(true));
        assert_eq!(allowed("any", "GPL-3.0 OR Apache-2.0"), Some(false));
    }

    #[test]
    fn of_several_at_once_all_are_needed() {
        assert_eq!(allowed("any", "(MIT OR Apache-2.0) AND Unicode-3.0"), Some(true));
        assert_eq!(allowed("any", "MIT AND GPL-3.0"), Some(false));
        assert_eq!(allowed("any", "MIT OR GPL-3.0 AND Apache-2.0"), Some(true));
    }

    #[test]
    fn an_exception_is_for_its_crate_alone() {
        assert_eq!(allowed("engine", "NCSA"), Some(true));
        assert_eq!(allowed("any", "NCSA"), Some(false));
    }

    #[test]
    fn what_is_no_expression_is_found() {
        for wrong in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0"] {
            assert_eq!(allowed("any", wrong), None, "{wrong}");
        }
    }
}
