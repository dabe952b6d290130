//! Files whose names are not UTF-8: they work like others, are distinguished byte for byte, and are printed as text.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A guest of QEMU with six drives.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees/guest.tree");

/// A byte of no character, one that a terminal obeys by itself, and a backslash.
const NAME: &[u8] = b"a\xff\x9bb\\c";

/// The same as text.
const SHOWN: &str = r"a\xff\x9bb\\c";

/// A file in a test's directory, by the bytes of its name.
fn path(place: &Place, name: &[u8]) -> PathBuf {
    Path::new(&place.file("")).join(OsStr::from_bytes(name))
}

/// One of 4 MiB.
fn image(place: &Place, name: &[u8]) -> PathBuf {
    let path = path(place, name);
    fs::write(&path, vec![7; 4 << 20]).expect("a file can be written");
    path
}

fn run(arguments: &[&OsStr]) -> Output {
    Command::new(UASKIT).args(arguments).stdin(Stdio::null()).output().expect("the program runs")
}

fn bench(file: &Path, more: &[&OsStr]) -> Output {
    let short = ["bench", "--seconds", "0.02", "--rounds", "1"].map(OsStr::new);
    run(&[&short[..], &[file.as_os_str()], more].concat())
}

fn words<const N: usize>(words: [&str; N]) -> [&OsStr; N] {
    words.map(OsStr::new)
}

fn with(flag: &str, file: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(file);
    word
}

/// Returns the standard error, which must be text, and checks the exit code.
#[track_caller]
fn stderr_of(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("standard error is text");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.lines().all(|line| !line.contains(char::is_control)), "{text}");
    text
}

#[track_caller]
fn json(output: &Output) -> Value {
    stderr_of(output, 0);
    let text = std::str::from_utf8(&output.stdout).expect("what is printed is text");
    assert!(text.lines().all(|line| !line.contains(char::is_control)), "{text}");
    serde_json::from_str(text).expect("it prints JSON")
}

#[test]
fn a_file_is_measured_and_its_name_is_printed_as_text() {
    let place = Place::new();
    let file = image(&place, NAME);
    let record = json(&bench(&file, &words(["--json"])));
    assert_eq!(record["target"]["name"], place.file(SHOWN));
    let line = record["command_line"].as_array().expect("words");
    assert!(line.contains(&place.file(SHOWN).into()), "{line:?}");
    let output = bench(&file, &[]);
    stderr_of(&output, 0);
    let text = String::from_utf8(output.stdout).expect("what is printed is text");
    assert!(text.starts_with(&format!("{}: a file", place.file(SHOWN))), "{text}");
    // A name that is UTF-8 is its own text, whatever a terminal would make of it.
    let record = json(&bench(&image(&place, "\u{9b}31m\\xff".as_bytes()), &words(["--json"])));
    assert_eq!(record["target"]["name"], place.file("\u{9b}31m\\xff"));
}

#[test]
fn a_missing_file_is_reported_by_its_name() {
    let place = Place::new();
    let text = stderr_of(&bench(&path(&place, NAME), &[]), 1);
    assert!(text.contains(&format!("cannot open {}: ", place.file(SHOWN))), "{text}");
    let (socket, absent) = (place.unix("socket"), path(&place, NAME));
    let served = [&words(["serve", "--usbredir", &socket])[..], &[absent.as_os_str()]].concat();
    let text = stderr_of(&run(&served), 1);
    assert!(text.contains(&format!("cannot open {}: no such file", place.file(SHOWN))), "{text}");
    let text = stderr_of(&run(&[OsStr::new("why"), OsStr::from_bytes(NAME)]), 1);
    assert!(text.contains(&format!("no USB device `{SHOWN}`")), "{text}");
}

#[test]
fn what_is_overwritten_is_named_byte_for_byte() {
    let place = Place::new();
    let file = image(&place, b"a\xff");
    let write = words(["--rw", "write", "--bs", "64k", "--zero-data", "--yes"]);
    let text = stderr_of(&bench(&file, &write), 3);
    assert!(text.contains("To overwrite it, add --write=$'") && text.contains(r"a\377'."), "{text}");
    // Names that lossy decoding turns into the same text, and the name as it is printed.
    for other in [&b"a\xfe"[..], "a\u{fffd}".as_bytes(), br"a\xff"] {
        let named = with("--write=", &image(&place, other));
        let text = stderr_of(&bench(&file, &[&write[..], &[&named]].concat()), 3);
        assert!(text.contains("but the target is"), "{text}");
    }
    assert!(fs::read(&file).expect("it is there") == vec![7; 4 << 20]);
    let link = path(&place, b"link\xfe");
    symlink(&file, &link).expect("linked");
    for named in [&file, &link] {
        fs::write(&file, vec![7; 4 << 20]).expect("a file can be written");
        let record =
            json(&bench(&file, &[&write[..], &[&with("--write=", named), OsStr::new("--json")]].concat()));
        assert_eq!(record["errors"], 0);
        assert!(fs::read(&file).expect("it is there")[..65_536].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_file_that_is_swapped_to_or_behind_a_loop_device_is_not_overwritten() {
    let place = Place::new();
    let file = image(&place, b"a\xff b");
    let canonical = file.canonicalize().expect("it is there");
    let bytes = canonical.as_os_str().as_bytes();
    let machine = path(&place, b"machine\xff");
    let write = |at: &str, text: &[u8]| {
        let at = machine.join(at);
        fs::create_dir_all(at.parent().expect("a directory")).expect("made");
        fs::write(at, text).expect("written");
    };
    let asked = || {
        let named = with("--write=", &file);
        let all = [OsStr::new("--yes"), &named, OsStr::new("--machine"), machine.as_os_str()];
        stderr_of(&bench(&file, &[&words(["--rw", "write"])[..], &all].concat()), 3)
    };
    write("proc/swaps", b"Filename\n");
    assert!(asked().contains("--machine names the files of another machine"), "free otherwise");
    let escaped: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| if *byte == b' ' { &b"\\040"[..] } else { std::slice::from_ref(byte) })
        .copied()
        .collect();
    write("proc/swaps", &[b"Filename\n", &escaped[..], b"\t\tfile\t1\t0\t-2\n"].concat());
    let text = asked();
    assert!(text.contains(r"a\xff b is swapped to; swapoff it first"), "{text}");
    write("proc/swaps", b"Filename\n");
    write("sys/block/loop7/loop/backing_file", &[bytes, b"\n"].concat());
    let text = asked();
    assert!(text.contains("loop7 is made of it; detach that first"), "{text}");
}

#[test]
fn job_files_have_any_name() {
    let place = Place::new();
    let file = image(&place, b"image\xff");
    let job = path(&place, b"job\xff.fio");
    fs::write(&job, "[reads]\nrw=randread\nbs=4k\n").expect("written");
    let record = json(&bench(&file, &[OsStr::new("--fio"), job.as_os_str(), OsStr::new("--json")]));
    assert_eq!(record["rows"].as_array().map(Vec::len), Some(1), "{record}");
    fs::write(&job, "[reads]\nrw=sideways\n").expect("written");
    for flag in ["--fio", "--icf"] {
        let text = stderr_of(&bench(&file, &[OsStr::new(flag), job.as_os_str()]), 2);
        assert!(text.contains(&format!("{}: line ", place.file(r"job\xff.fio"))), "{text}");
    }
}

#[test]
fn machines_records_logs_and_captures_have_any_name() {
    let place = Place::new();
    let record = path(&place, b"record\xff");
    fs::copy(GUEST, &record).expect("copied");
    let log = path(&place, b"log\xff");
    fs::write(&log, "usb 3-3: reset SuperSpeed USB device number 4 using xhci_hcd\n").expect("written");
    let from = [OsStr::new("--from"), record.as_os_str()];
    let output = run(&[&words(["list"])[..], &from].concat());
    stderr_of(&output, 0);
    assert!(output.stdout.windows(3).any(|text| text == b"3-3"));
    let with_log = [OsStr::new("--log"), log.as_os_str(), OsStr::new("--json")];
    let value = json(&run(&[&words(["why", "3-3"])[..], &from, &with_log].concat()));
    assert!(value.to_string().contains("reset SuperSpeed USB device number 4"), "{value}");
    assert!(value.to_string().contains(r"log\\xff"), "{value}");
    let text = stderr_of(
        &run(&[&words(["list", "--from"])[..], &[path(&place, b"none\xff").as_os_str()]].concat()),
        1,
    );
    assert!(text.contains(&place.file(r"none\xff")), "{text}");
    let mine = path(&place, b"mine\xff");
    let output = run(&[&words(["list", "--record"])[..], &[mine.as_os_str()]].concat());
    stderr_of(&output, 0);
    assert!(
        mine.is_file() && String::from_utf8(output.stdout).expect("text").contains(&place.file(r"mine\xff"))
    );
    let capture = path(&place, b"drive\xff.pcapng");
    let run_short = words([
        "bench",
        "--virtual",
        "--size",
        "1M",
        "--rw",
        "randread",
        "--seconds",
        "0.02",
        "--rounds",
        "1",
    ]);
    let sized =
        [OsStr::new("--capture"), capture.as_os_str(), OsStr::new("--capture-size"), OsStr::new("64K")];
    let text = stderr_of(&run(&[&run_short[..], &sized].concat()), 0);
    assert!(text.contains(&place.file(r"drive\xff.pcapng")), "{text}");
    assert!(capture.is_file() && path(&place, b"drive\xff.1.pcapng").is_file());
    assert!(!path(&place, "drive\u{fffd}.1.pcapng".as_bytes()).exists());
}
