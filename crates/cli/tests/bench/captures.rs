//! Captures of what is measured.

use super::{Place, UASKIT, bench, fails};
use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn a_capture_has_what_was_measured_and_counts_drops() {
    let place = Place::new();
    let file = place.write("drive.pcapng", "");
    for transport in ["uas", "bot"] {
        let arguments = [
            "--virtual",
            "--size",
            "16M",
            "--rw",
            "randread",
            "--depth",
            "1",
            "--transport",
            transport,
            "--seconds",
            "0.02",
        ];
        let output = bench(&[&arguments[..], &["--json", "--capture", &file, "--snap", "64"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains("captured: ") && stderr.contains(" in 1 file, "), "{stderr}");
        let record: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        assert!(stderr.contains(" 0 events dropped"), "{stderr}");
        let decoded =
            Command::new(UASKIT).args(["decode", &file, "--json"]).output().expect("the program runs");
        let text = String::from_utf8_lossy(&decoded.stdout).into_owned();
        let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let reads = objects.filter(|object| object["kind"] == "command" && object["opcode"] == 0x28);
        let reads: Vec<Value> = reads.filter(|read| read["bytes"] == 4096).collect();
        let measured = record["rows"][0]["ios"].as_u64().expect("it was measured");
        // Those of the warm-up are there as well.
        assert!(reads.len() as u64 >= measured, "{} of {measured}", reads.len());
        assert!(reads.iter().all(|read| read["stream"].is_null() == (transport == "bot")), "{transport}");
    }
}

#[test]
fn a_capture_cuts_blocks_by_default_and_announces_it() {
    let place = Place::new();
    let file = place.write("drive.pcapng", "");
    let run = [
        "--virtual",
        "--size",
        "16M",
        "--rw",
        "randread",
        "--bs",
        "64k",
        "--depth",
        "1",
        "--seconds",
        "0.02",
    ];
    let captured = |more: &[&str]| {
        let output =
            bench(&[&run[..], &["--rounds", "1", "--warm-up", "0", "--capture", &file], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        let records =
            stderr.split("captured: ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let bytes = fs::metadata(&file).expect("it is there").len();
        (stderr, bytes / records.expect("records are counted"))
    };
    let (stderr, each) = captured(&[]);
    assert!(
        stderr.starts_with(&format!("capturing to {file}: the first 1024 bytes of each transfer")),
        "{stderr}"
    );
    assert!(each < 1024, "{each} bytes a record");
    let (stderr, each) = captured(&["--snap", "0"]);
    assert!(stderr.contains("all bytes of each transfer (--snap N"), "{stderr}");
    assert!(each > 4096, "{each} bytes a record");
}

#[test]
fn what_the_kernel_carries_cannot_be_captured() {
    let place = Place::new();
    let (image, file) = (place.image(), place.0.join("drive.pcapng"));
    fails(&[&image, "--capture", &file.display().to_string()], 2, "the kernel's driver submits them");
    assert!(!file.exists());
}
