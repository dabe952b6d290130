//! Crates depend one way: units, wire, bus, then the machines, then what drives them, then the program.
//!
//! The order is a list of layers. A crate may use any crate of an earlier layer and none of its layer: so the initiator
//! and the device never see each other, nor do the drivers. Development dependencies count as well. Names that the
//! plan has and the tree has not yet are in the list, so that a new crate finds its place waiting.

use crate::tidy::finding::{Finding, Rule};
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::path::Path;

/// Folder names below `crates/` (or at the top), the bottom layer first.
const LAYERS: &[&[&str]] = &[
    &["units", "atomic-file"],
    &["wire", "workload"],
    &["bus"],
    &["device", "initiator", "quirks", "xhci-driver", "xhci-controller"],
    &["drive", "inspect", "capture"],
    &["sim", "host", "usb", "decode"],
    &["server", "report", "records"],
    &["bench", "study", "conformance"],
    &["cli"],
    &["interop", "examples"],
    &["xtask", "fuzz"],
];

/// Fixtures of tests: any crate may have them as a development dependency, none otherwise.
const TESTKIT: &str = "testkit";

/// Every arrow that runs back or sideways.
pub(crate) fn arrows(root: &Path) -> Result<Vec<Finding>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("ask cargo for the crates of the workspace")?;
    Ok(metadata.workspace_packages().into_iter().flat_map(|package| of_package(&metadata, package)).collect())
}

fn of_package(metadata: &Metadata, package: &Package) -> Vec<Finding> {
    let root = &metadata.workspace_root;
    let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path).to_string();
    let text = std::fs::read_to_string(&package.manifest_path).unwrap_or_default();
    let Some(from) = package.manifest_path.parent().and_then(|folder| folder.file_name()) else {
        return Vec::new();
    };
    if from == TESTKIT {
        return Vec::new();
    }
    if layer(from).is_none() {
        let advice =
            format!("crate {from} has no place in the order; add it to the layers of the arrow rule");
        return vec![Finding::new(&manifest, 1, Rule::Arrow, advice).about(from)];
    }
    let local = package.dependencies.iter().filter_map(|dependency| {
        let folder = dependency.path.as_ref()?.file_name()?;
        let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
        let is_fixture = folder == TESTKIT && dependency.kind == DependencyKind::Development;
        (!is_fixture).then_some((folder, key))
    });
    local
        .filter_map(|(to, key)| Some((to, key, fault(from, to)?)))
        .map(|(to, key, advice)| Finding::new(&manifest, line_of(&text, key), Rule::Arrow, advice).about(to))
        .collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn fault(from: &str, to: &str) -> Option<String> {
    match (layer(from)?, layer(to)) {
        (_, None) if to == TESTKIT => {
            Some("testkit has fixtures of tests; make it a development dependency".into())
        }
        (_, None) => Some(format!("crate {to} has no place in the order")),
        (from_layer, Some(to_layer)) if to_layer < from_layer => None,
        (from_layer, Some(to_layer)) => {
            let way = if to_layer == from_layer { "sideways" } else { "back" };
            Some(format!("the arrow {from} → {to} runs {way}; move the shared part below both"))
        }
    }
}

/// The line of a manifest on which a dependency begins; 1 if it cannot be found.
fn line_of(manifest: &str, key: &str) -> usize {
    let begins = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.', '=']));
    manifest.lines().position(begins).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_down_is_fine() {
        assert_eq!(fault("device", "wire"), None);
        assert_eq!(fault("xtask", "interop"), None);
    }

    #[test]
    fn an_arrow_up_or_sideways_is_found() {
        assert!(fault("wire", "device").is_some_and(|advice| advice.contains("wire → device runs back")));
        assert!(fault("usb", "sim").is_some_and(|advice| advice.contains("runs sideways")));
    }

    #[test]
    fn fixtures_are_no_normal_dependency() {
        assert!(fault("cli", "testkit").is_some_and(|advice| advice.contains("development dependency")));
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert!(fault("device", "shared").is_some());
        assert_eq!(layer("shared"), None);
    }

    #[test]
    fn a_dependency_is_found_in_its_manifest() {
        let manifest = "[dependencies]\nwire-more = \"1\"\nwire.workspace = true\n";
        assert_eq!(line_of(manifest, "wire"), 3);
        assert_eq!(line_of(manifest, "bus"), 1);
    }
}
