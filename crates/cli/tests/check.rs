//! `uaskit check` as a user runs it, on the virtual drive.

mod place;

use place::{Place, UASKIT};
use std::process::{Command, Output};

fn check(arguments: &[&str]) -> Output {
    Command::new(UASKIT).arg("check").args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_virtual_drive_has_no_fault_at_any_speed() {
    for speed in ["super", "high", "full"] {
        let output = check(&["--virtual", "--speed", speed]);
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{speed}: {printed}{}", text(&output.stderr));
        assert!(
            printed.starts_with(&format!("uaskit's virtual drive ({speed} speed): no fault found by 6")),
            "{printed}"
        );
        assert!(!printed.contains("FAIL") && !printed.contains("WARNING"), "{printed}");
    }
}

#[test]
fn one_test_is_run_if_one_is_named() {
    let output = check(&["--virtual", "--only", "bot-case-5", "--json"]);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&printed["passed"], &printed["tests"][0]["id"]), (&1.into(), &"bot-case-5".into()));
    let output = check(&["--virtual", "--only", "bot-case-55"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no test is named \"bot-case-55\""), "{}", text(&output.stderr));
}

#[test]
fn results_are_written_as_junit_and_no_other_file_is_replaced() {
    let place = Place::new();
    let (results, other) = (place.file("results.xml"), place.file("notes.xml"));
    for _ in 0..2 {
        let output = check(&["--virtual", "--junit", &results]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let written = std::fs::read_to_string(&results).expect("it is there");
    assert_eq!(written.matches("<testcase ").count(), 67, "{written}");
    std::fs::write(&other, "<notes/>").expect("it is written");
    let output = check(&["--virtual", "--junit", &other]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "<notes/>");
}

#[test]
fn a_target_is_needed_and_must_be_a_drive() {
    for (arguments, words) in [
        (&[][..], "TARGET is missing"),
        (&["99-9"], "there is no USB device 99-9"),
        (&["/dev/null"], "there is no USB device /dev/null"),
    ] {
        let output = check(arguments);
        let printed = text(&output.stderr);
        assert!(!output.status.success() && printed.contains(words), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_liar_is_found_by_the_tests_of_capacity_and_an_honest_drive_passes() {
    let honest = check(&["--virtual", "--size", "2M", "--whole", "--json"]);
    assert!(honest.status.success(), "{}", text(&honest.stdout));
    let printed: serde_json::Value = serde_json::from_slice(&honest.stdout).expect("JSON");
    assert_eq!((&printed["failed"], &printed["warnings"]), (&0.into(), &0.into()));
    let liar = ["--virtual", "--size", "1T", "--lie", "wrap=64M", "--whole", "--only", "whole-probe"];
    let output = check(&liar);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("blocks wrap around after 64 MiB, of 1 TiB"), "{printed}");
}

#[test]
fn data_of_an_honest_drive_are_kept_and_a_power_loss_shows_a_lie() {
    let place = Place::new();
    let results = place.file("results.xml");
    let honest = check(&["--virtual", "--size", "2M", "--write", "--whole", "--json", "--junit", &results]);
    assert!(honest.status.success(), "{}{}", text(&honest.stdout), text(&honest.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&honest.stdout).expect("JSON");
    let counts = ["failed", "warnings", "notes", "not_tested"].map(|name| printed[name].as_u64());
    assert_eq!(counts, [0, 0, 1, 0].map(Some), "{printed:#}");
    let written = std::fs::read_to_string(&results).expect("it is there");
    assert_eq!(written.matches(r#"<testcase classname="Data" "#).count(), 14, "{written}");
    for (lie, words) in [
        ("ignore-flush", "flushed, holds"),
        ("ignore-fua", "written with FUA, holds"),
        ("torn-writes", "is torn"),
    ] {
        let output = check(&["--virtual", "--lie", lie, "--write", "--only", "data-power-loss", "--steps"]);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{lie}: {printed}");
        assert!(printed.contains(words) && printed.contains("power loss, seed "), "{lie}: {printed}");
    }
}

#[test]
fn nothing_is_overwritten_without_the_option_that_names_it() {
    let output = check(&["--virtual", "--only", "whole-probe"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = check(&["--virtual", "--only", "data-bot"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    for option in ["--whole=2-1", "--write=2-1"] {
        let output = check(&["--virtual", option]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    let output = check(&["2-1", "--size", "1M"]);
    assert!(text(&output.stderr).contains("--write"), "{}", text(&output.stderr));
    let output = check(&["--virtual", "--lie", "warp=1M"]);
    assert!(text(&output.stderr).contains("Did you mean `wrap`?"), "{}", text(&output.stderr));
}
