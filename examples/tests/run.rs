//! Every example runs, and prints what its documentation promises.

use std::process::Command;

#[test]
fn the_device_answers_in_forty_lines() {
    let out = output(env!("CARGO_BIN_EXE_device_in_40_lines"), &[]);
    let expected = [
        "12 00 00 00 24 00: GOOD",
        "uaskit  Virtual Drive   ",
        "00 00 00 00 00 00: CHECK CONDITION",
        "2a 00 00 00 00 00 00 00 01 00: GOOD",
        "28 00 00 00 00 00 00 00 01 00: GOOD",
        "[a5, a5, a5, a5]",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    let source = include_str!("../device_in_40_lines.rs");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    assert!(source.lines().filter(is_code).count() <= 40);
}

#[test]
fn the_host_reads_what_it_wrote_over_its_own_bus() {
    let out = output(env!("CARGO_BIN_EXE_custom_bus"), &[]);
    let expected = [
        "uaskit Virtual Drive 1",
        "2048 blocks, 512 bytes each",
        "write: 512 bytes",
        "read: 512 bytes",
        "the first is 0xa5",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_capture_without_a_file_is_decoded() {
    let out = output(env!("CARGO_BIN_EXE_decode_pcap"), &[]);
    let expected = [
        "2.5 BOT INQUIRY allocation_len 36: 36 bytes, passed",
        "2.5 BOT READ(10) lba 2048 blocks 2: 512 bytes, passed",
        "2.5: residue-too-small, caused by Device, packets [7, 12]",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_capture_in_a_file_is_decoded() {
    // A pcap file of usbmon without packets.
    let empty = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 220, 0, 0, 0];
    let path = std::env::temp_dir().join(format!("decode_pcap-{}.pcap", std::process::id()));
    std::fs::write(&path, empty).expect("the file is written");
    let out = output(env!("CARGO_BIN_EXE_decode_pcap"), &[path.to_str().expect("text")]);
    std::fs::remove_file(&path).expect("the file is removed");
    assert_eq!(out, "");
    let missing = Command::new(env!("CARGO_BIN_EXE_decode_pcap")).arg(&path).output().expect("it starts");
    assert!(!missing.status.success());
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the example starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
