//! `uaskit compare --raw`, as a user calls it.

use serde_json::Value;
use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uaskit"));
    command.arg("compare").args(arguments).output().expect("uaskit starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = compare(&[arguments, &["--json", "--commands", "300"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn bot_is_flat_and_uas_is_not() {
    let record = json(&["--raw", "--depth", "1,4"]);
    let iops = |row: usize, transport: &str| record["rows"][row][transport]["iops"].as_f64().unwrap();
    assert!((iops(1, "bot") / iops(0, "bot") - 1.0).abs() < 1e-6);
    assert!(iops(1, "uas") > 3.9 * iops(0, "uas"));
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    let print =
        |seed| compare(&["--raw", "--depth", "8", "--commands", "300", "--json", "--seed", seed]).stdout;
    assert_eq!(print("7"), print("7"));
    assert_ne!(print("7"), print("8"));
}

#[test]
fn a_table_has_a_row_for_each_depth() {
    let output = compare(&["--raw", "--depth", "1,2,30", "--commands", "50", "--write", "--link", "gen2x2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Random writes of 4 KiB, 20 Gb/s"), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.starts_with("│") && !line.contains("depth")).count(),
        3,
        "{text}"
    );
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for wrong in
        [&["--raw", "--block", "1000"][..], &["--raw", "--block", "5G"], &["--raw", "--depth", "31"], &[]]
    {
        let output = compare(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!output.stderr.is_empty());
    }
}
