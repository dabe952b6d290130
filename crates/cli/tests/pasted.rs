//! `uaskit why --from` and `list --from` of reports: text, several files, archives, folders, stdin.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const UASKIT: &str = env!("CARGO_BIN_EXE_uaskit");

const DMESG: &str = "\
[    1.2] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[    1.3] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.09
[    1.3] usb 2-1: New USB device strings: Mfr=1, Product=2, SerialNumber=3
[    1.3] usb 2-1: SerialNumber: SECRET123
[    1.4] scsi host0: uas
[    1.5] sd 0:0:0:0: [sda] Attached SCSI disk
[  500.0] sd 0:0:0:0: [sda] tag#26 uas_eh_abort_handler 0 uas-tag 8 inflight: CMD
[  500.0] sd 0:0:0:0: [sda] tag#26 CDB: opcode=0x85 85 06 20 00 00 00 00 00 00 00 00 00 00 00 e5 00
[  500.1] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd
";

fn run(words: &[&str], input: &str) -> Output {
    let mut program = Command::new(UASKIT)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // A program that does not read its input may be gone.
    let _ = program.stdin.take().expect("piped").write_all(input.as_bytes());
    program.wait_with_output().expect("it ends")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_log_from_stdin_is_answered_with_its_cause_first() {
    let output = run(&["why", "--from", "-"], DMESG);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = text(&output);
    let second = text.lines().nth(1).expect("two lines");
    assert!(second.contains("CHECK POWER MODE") && second.contains("It uses UAS with streams"), "{text}");
    assert!(text.contains("stdin line 8: ") && text.contains("\nWhat to do\n1. Stop the program"), "{text}");
    assert!(text.contains("unknown: the descriptors; `sudo lsusb -v -d 152d:0578` shows it"), "{text}");
    assert!(!text.contains("SECRET123"), "{text}");
}

#[test]
fn a_drive_may_follow_the_files() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = place.path().join("dmesg.txt");
    std::fs::write(&file, DMESG).expect("written");
    let file = file.to_str().expect("text");
    let after = run(&["why", "--from", file, "2-1"], "");
    let before = run(&["why", "2-1", "--from", file], "");
    assert_eq!(after.status.code(), Some(0), "{}", String::from_utf8_lossy(&after.stderr));
    assert_eq!(text(&after), text(&before));
    let folder = place.path().to_str().expect("text");
    assert_eq!(text(&run(&["why", "--from", folder], "")), text(&before));
}

#[test]
fn a_packed_log_is_the_same_log() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = place.path().join("dmesg.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(DMESG.as_bytes()).expect("in memory");
    std::fs::write(&file, gzip.finish().expect("in memory")).expect("written");
    let output = run(&["list", "--from", file.to_str().expect("text")], "");
    assert!(text(&output).contains("UAS, streams"), "{}", text(&output));
}

#[test]
fn what_does_not_decide_is_unknown() {
    let output = run(&["why", "--from", "-"], "Bus 002 Device 002: ID 152d:0578 JMicron Technology Corp.\n");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("lsusb -t"), "{stderr}");
    assert!(!text(&output).contains("good     none"), "{}", text(&output));
    let output = run(&["why", "--from", "-"], "my drive is slow, please help\n");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(text(&output).contains("The report contains no known format"), "{}", text(&output));
}

#[test]
fn an_answer_can_be_pasted() {
    let output = run(&["why", "--from", "-", "--markdown"], DMESG);
    let text = text(&output);
    assert!(text.starts_with("**2-1: 152d:0578") && text.trim_end().ends_with("```"), "{text}");
}

#[test]
fn a_drive_that_is_gone_can_be_named() {
    let gone = format!("{DMESG}[  501.0] usb 2-1: USB disconnect, device number 2\n");
    for name in ["2-1", "sda", "152d:0578"] {
        let output = run(&["why", name, "--from", "-"], &gone);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text(&output).contains("was here as /dev/sda on UAS"), "{}", text(&output));
    }
    let list = text(&run(&["list", "--from", "-"], &gone));
    assert!(list.contains("2-1: 152d:0578 was here"), "{list}");
}

#[test]
fn other_systems_are_answered_without_linuxs_rules() {
    let windows = "USB\\VID_152D&PID_0578\\123\nService : UASPStor\nDevice Bus Speed : 0x03 (Super-Speed)\n";
    let output = run(&["why", "--from", "-"], windows);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).contains("On Windows, 152d:0578 (JMicron JMS578) uses UAS"), "{}", text(&output));
}
