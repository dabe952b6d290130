//! Captures of what is measured.

use super::{Place, UASKIT, bench, fails};
use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn a_capture_has_what_was_measured_and_tells_of_drops() {
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
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        assert!(told.contains("captured: ") && told.contains(" in 1 file, "), "{told}");
        let record: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        assert!(told.contains(" 0 events dropped"), "{told}");
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
fn a_capture_keeps_all_but_blocks_unless_told_and_says_so_before() {
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
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        let records =
            told.split("captured: ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let bytes = fs::metadata(&file).expect("it is there").len();
        (told, bytes / records.expect("records are counted"))
    };
    let (told, each) = captured(&[]);
    assert!(
        told.starts_with(&format!("capturing into {file}: the first 1024 bytes of each transfer are kept")),
        "{told}"
    );
    assert!(each < 1024, "{each} bytes a record");
    let (told, each) = captured(&["--snap", "0"]);
    assert!(told.contains("all bytes of each transfer are kept: it grows as fast as data move"), "{told}");
    assert!(each > 4096, "{each} bytes a record");
}

#[test]
fn what_the_kernel_carries_cannot_be_captured() {
    let place = Place::new();
    let (image, file) = (place.image(), place.0.join("drive.pcapng"));
    fails(&[&image, "--capture", &file.display().to_string()], 2, "the kernel's driver makes the transfers");
    assert!(!file.exists());
}
