//! Each outside dependency has a reason: a comment on the line above it, where its version is given.
//!
//! A dependency that is inherited (`name.workspace = true`) or ours (`path = …`) needs none.

use crate::tidy::finding::{Finding, Rule};

/// Dependencies of a manifest without a reason.
pub(crate) fn of_manifest(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line.trim_end_matches(']').ends_with("dependencies");
        } else if in_dependencies
            && let Some((name, rest)) = line.split_once('=')
            && !line.starts_with([' ', '#'])
        {
            let inherited = name.contains(".workspace") || rest.contains("workspace = true");
            if !inherited && !rest.contains("path = ") && !previous.starts_with('#') {
                let name = name.trim();
                let advice = format!("say in a comment above it what {name} is for and why this crate");
                findings.push(Finding::new(path, index + 1, Rule::Reason, advice).about(name));
            }
        }
        previous = line;
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        of_manifest("Cargo.toml", text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_dependency_without_a_comment_is_found() {
        assert_eq!(found("[dependencies]\n# JSON.\nserde_json = \"1\"\nmio = \"1\"\n"), [4]);
        assert_eq!(found("[workspace.dependencies]\nmio = { version = \"1\" }\n"), [2]);
    }

    #[test]
    fn ours_and_inherited_need_no_reason() {
        let manifest = "[dev-dependencies]\nwire.workspace = true\nbus = { path = \"../bus\" }\n";
        assert_eq!(found(manifest), [0; 0]);
    }

    #[test]
    fn other_tables_are_left_alone() {
        assert_eq!(found("[package]\nname = \"uaskit\"\n[lints]\nworkspace = true\n"), [0; 0]);
    }
}
