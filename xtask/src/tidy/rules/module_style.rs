//! One module style: `name.rs` beside `name/`, no `name/mod.rs`.
//!
//! A module that several test programs share stays `tests/name/mod.rs`, since Cargo would take `tests/name.rs` for
//! one more test program; so does one of `benches/`.

use crate::tidy::finding::{Finding, Rule};

/// Returns a finding if a file is named `mod.rs` and should not be.
pub(crate) fn module_style(path: &str) -> Option<Finding> {
    let folder = path.strip_suffix("/mod.rs")?;
    let mut above = folder.rsplit('/').skip(1);
    if matches!(above.next(), Some("tests" | "benches")) && above.next() != Some("src") {
        return None;
    }
    let advice = format!("move it to {folder}.rs: a module is a file beside its folder");
    Some(Finding::new(path, 1, Rule::ModuleStyle, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mod_file_is_found() {
        let finding = module_style("crates/bus/src/line/mod.rs").expect("found");
        assert!(finding.advice.starts_with("move it to crates/bus/src/line.rs"), "{finding}");
        assert!(module_style("crates/bus/src/tests/line/mod.rs").is_some());
        assert!(module_style("crates/bus/tests/line/inner/mod.rs").is_some());
    }

    #[test]
    fn a_file_beside_its_folder_and_a_shared_test_module_are_fine() {
        assert_eq!(module_style("crates/bus/src/line.rs"), None);
        assert_eq!(module_style("crates/bus/tests/line/mod.rs"), None);
    }
}
