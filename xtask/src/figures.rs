//! `cargo xtask figures OLD NEW`: whether two builds of the program simulate the same figures.
//!
//! For a change that only moves code. Both programs compare every setup, the raw link and a sweep,
//! and validate; every number in their JSON has to be equal, bit for bit. Digests are left out, since
//! they cover names, and so is text.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two programs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program before the change
    old: PathBuf,
    /// The program after it
    new: PathBuf,
}

/// A sweep that both builds know.
const SWEEP: &str = "bridge=jms580|asm1153,depth=1..4,block=4K";

/// How many differences of a command are printed.
const SHOWN: usize = 5;

/// Compares; whether all figures are equal.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let setups = ["geerling", "hardware-fr", "myce", "renesas", "toms"];
    let setups = setups.iter().map(|setup| vec!["compare", "--setup", setup, "--json"]);
    let others = [vec!["compare", "--raw", "--json"], vec!["validate", "--json"]];
    let (mut all, mut different) = (0, 0);
    for arguments in setups.chain(others) {
        let [old, new] = [&options.old, &options.new].map(|program| json(program, &arguments));
        let (old, new) = (figures(&old?), figures(&new?));
        all += old.len();
        different += report(&arguments.join(" "), &old, &new);
    }
    let [old, new] = [&options.old, &options.new].map(|program| sweep(program));
    let (old, new) = (figures(&old?), figures(&new?));
    all += old.len();
    different += report(&format!("compare --sweep {SWEEP}"), &old, &new);
    println!("{all} figures, {different} different");
    Ok(different == 0)
}

fn output(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let shown = || format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().with_context(shown)?;
    // `validate` ends with another status if a figure is outside its bounds.
    ensure!(!output.stdout.is_empty() || output.status.success(), "{} failed", shown());
    Ok(output.stdout)
}

fn json(program: &Path, arguments: &[&str]) -> Result<Value> {
    serde_json::from_slice(&output(program, arguments)?).context("read the JSON of a program")
}

/// Runs the sweep; its records as one value.
fn sweep(program: &Path) -> Result<Value> {
    let folder = tempfile::tempdir().context("make a folder")?;
    let records = folder.path().join("records.jsonl");
    let out = records.to_str().context("a folder whose name is text")?;
    output(program, &["compare", "--sweep", SWEEP, "--out", out])?;
    let text = std::fs::read_to_string(&records).context("read the records")?;
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    Ok(Value::Array(lines.context("read a record")?))
}

/// All numbers of a value by their path, digests left out.
fn figures(value: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    collect(value, String::new(), &mut all);
    all
}

fn collect(value: &Value, path: String, all: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => drop(all.insert(path, number.as_f64().unwrap_or(f64::NAN))),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{path}[{index}]"), all);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| name.as_str() != "digest") {
                collect(field, format!("{path}.{name}"), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Prints what differs; how many figures that are.
fn report(command: &str, old: &BTreeMap<String, f64>, new: &BTreeMap<String, f64>) -> usize {
    let bits = |figures: &BTreeMap<String, f64>, path: &str| figures.get(path).map(|figure| figure.to_bits());
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let different: Vec<&String> =
        paths.into_iter().filter(|path| bits(old, path) != bits(new, path)).collect();
    println!("{command}: {} figures, {} different", old.len(), different.len());
    for path in different.iter().take(SHOWN) {
        println!("  {path}: {:?}, then {:?}", old.get(*path), new.get(*path));
    }
    different.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_that_differs_is_found_and_a_digest_is_not() {
        let old = figures(&json!({ "rows": [{ "iops": 1.5, "digest": 1, "name": "a" }] }));
        let new = figures(&json!({ "rows": [{ "iops": 1.5, "digest": 2, "name": "b" }] }));
        assert_eq!((old.len(), report("", &old, &new)), (1, 0));
        let other = figures(&json!({ "rows": [{ "iops": 1.500_000_000_000_000_2 }, { "iops": 2 }] }));
        assert_eq!(report("", &old, &other), 2);
    }
}
