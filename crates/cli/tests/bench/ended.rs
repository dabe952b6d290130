//! Results of a measurement that Ctrl-C or a similar signal ends.

use super::{Place, UASKIT};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A virtual drive is measured for ten minutes, and ended so after a while.
fn ended(signal: &str, after_ms: u64, arguments: &[&str]) -> Output {
    let child = Command::new(UASKIT)
        .args(["bench", "--virtual", "--size", "16M", "--rw", "randread", "--seconds", "600"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(after_ms));
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    output
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    is_ended_by("-INT");
}

#[test]
fn ctrl_backslash_and_a_closed_terminal_do_the_same() {
    for signal in ["-QUIT", "-HUP", "-TERM"] {
        is_ended_by(signal);
    }
}

fn is_ended_by(signal: &str) {
    let output = ended(signal, 2500, &["--warm-up", "0", "--json"]);
    let record: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!((&record["interrupted"], &record["rows"][0]["interrupted"]), (&true.into(), &true.into()));
    assert!(record["iops"].as_f64() > Some(0.0), "{record}");
}

#[test]
fn what_was_ended_within_its_warm_up_is_no_measurement() {
    let place = Place::new();
    let file = |name: &str| place.0.join(name).display().to_string();
    let (runs, page) = (file("runs.sqlite"), file("page.html"));
    let save = format!("--save={runs}");
    let arguments = ["--warm-up", "600", "--label", "before", "--report", &page, &save];
    let output = ended("-INT", 1500, &[&arguments[..], &["--json"]].concat());
    let record: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let row = &record["rows"][0];
    let why = "interrupted before anything was counted";
    assert_eq!((&record["interrupted"], &row["error"]), (&true.into(), &why.into()), "{record}");
    let absent = [&record["iops"], &record["iops_of"], &row["iops"], &row["ios"], &row["failed"]];
    assert!(absent.iter().all(|field| field.is_null()), "{record}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("nothing was measured") && !stderr.contains("saved as"), "{stderr}");
    assert!(!fs::exists(&page).expect("a folder"), "a page of nothing");
    let listed = Command::new(UASKIT).args(["history", "--file", &runs]).output().expect("the program runs");
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("before"), "{listed:?}");
    let output = ended("-INT", 1500, &["--warm-up", "600"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(&format!("4K random read, uas, depth 1: no figures: {why}")), "{stdout}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("uaskit: interrupted: nothing was measured"), "{stderr}");
}
