//! Public crates package together, in one run of Cargo; the others refuse to be published.
//!
//! Cargo resolves the dependencies of each package among the packages of the run and the registry, so a public crate that needs
//! an internal one fails here. Verifying builds every package from its own files, which takes minutes: a long run does.

use super::step::{self, Outcome};
use anyhow::Result;
use cargo_metadata::{Metadata, MetadataCommand, Package};
use std::process::Command;

/// Crates that follow semantic versioning, each with a README that is its front page.
const PUBLIC: [&str; 14] = [
    "uaskit-atomic-file",
    "uaskit-bus",
    "uaskit-capture",
    "uaskit-decode",
    "uaskit-device",
    "uaskit-drive",
    "uaskit-initiator",
    "uaskit-inspect",
    "uaskit-quirks",
    "uaskit-units",
    "uaskit-usb",
    "uaskit-wire",
    "uaskit-xhci-controller",
    "uaskit-xhci-driver",
];

/// Packages the public crates, and compares them with those that may be published.
pub(super) fn checked(verify: bool) -> Result<Outcome> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let faults = faults(&metadata);
    let mut outcome =
        Outcome::of_check(faults.is_empty(), "public crates", "cargo xtask test", faults.join("\n"));
    let mut command = Command::new(env!("CARGO"));
    command.args(["package", "--quiet", "--offline", "--allow-dirty"]);
    command.args(if verify { None } else { Some("--no-verify") });
    command.args(PUBLIC.iter().flat_map(|name| ["--package", name]));
    outcome += step::check(command)?;
    Ok(outcome)
}

/// Crates whose manifest does not fit their tier.
fn faults(metadata: &Metadata) -> Vec<String> {
    metadata.workspace_packages().into_iter().filter_map(fault).collect()
}

fn fault(package: &Package) -> Option<String> {
    let (name, is_public) = (&package.name, PUBLIC.contains(&package.name.as_str()));
    let may_be_published = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
    match (is_public, may_be_published) {
        (true, false) => Some(format!("{name} is public; remove `publish = false` from its manifest")),
        (false, true) => Some(format!("{name} is internal; add `publish = false` to its manifest")),
        (true, true) if package.readme.is_none() => Some(format!("{name} is public and has no README")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest as `cargo metadata` describes it.
    fn package(name: &str, publish: &str, readme: &str) -> Package {
        let text = format!(
            r#"{{"name": "{name}", "version": "0.1.0", "id": "{name}", "dependencies": [], "targets": [],
                "features": {{}}, "manifest_path": "/Cargo.toml", "publish": {publish}, "readme": {readme}}}"#
        );
        serde_json::from_str(&text).expect("a package")
    }

    #[test]
    fn an_internal_crate_refuses_to_be_published() {
        assert_eq!(fault(&package("uaskit-sim", "[]", "null")), None);
        let advice = fault(&package("uaskit-sim", "null", "null")).expect("a fault");
        assert!(advice.contains("add `publish = false`"), "{advice}");
    }

    #[test]
    fn a_public_crate_may_be_published_and_has_a_readme() {
        assert_eq!(fault(&package("uaskit-wire", "null", "\"README.md\"")), None);
        assert!(fault(&package("uaskit-wire", "[]", "\"README.md\"")).is_some());
        assert!(fault(&package("uaskit-wire", "null", "null")).is_some());
    }
}
