//! `uaskit serve` as a user meets it: what it prints, what it refuses and how, what Ctrl-C does.

mod place;

use place::{Place, UASKIT};
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A drive that is served until the test has ended.
struct Served(Child);

impl Served {
    fn start(arguments: &[&str], stdout: impl Into<Stdio>) -> Self {
        let child = Command::new(UASKIT)
            .arg("serve")
            .args(arguments)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self(child)
    }

    fn interrupt(&self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::INT).expect("it is there and ours");
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.0.wait().expect("it is ours").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines up to the one that says so, which is the last of them.
fn lines_up_to(reader: &mut BufReader<PipeReader>, words: &str) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains(words)) {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line is text") > 0, "no {words:?} in {lines:?}");
        lines.push(line);
    }
    lines
}

fn run(arguments: &[&str]) -> Output {
    Command::new(UASKIT).args(arguments).output().expect("the program runs")
}

/// That the drive is refused, with that exit code and in these words.
#[track_caller]
fn refused(arguments: &[&str], code: i32, words: &str) {
    let output = run(&[&["serve"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(words), "{words:?} after {arguments:?}, not {text:?}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
}

#[test]
fn arguments_that_make_no_sense_are_a_usage_error() {
    let place = Place::new();
    let address = place.unix("drive.sock");
    let serve =
        |more: &[&str], words| refused(&[&["--ram", "1M", "--usbredir", &address], more].concat(), 2, words);
    serve(&["--streams", "1"], "one stream cannot be told");
    serve(&["--streams", "33"], "it can be 2, 4, 8, 16, 32, 64, 128 or 256");
    serve(&["--block-size", "1024"], "[possible values: 512, 4096]");
    serve(&["--speed", "hyper"], "[possible values: super, high, full]");
    serve(&["--usb-id", "12"], "write VID:PID in hexadecimal");
    serve(&["--vendor", "nine char"], "9 characters where 8 are the most");
    serve(&["--serial", ""], "has to have a serial number");
    serve(&["--size", "1M"], "cannot be used with");
    serve(&["--temperature", "255"], "255 is not in 0..=254");
    serve(&["--control", "tcp:127.0.0.1:1"], "is no address for orders");
    refused(&["--ram", "511", "--usbredir", &address], 2, "less than one block of 512 bytes; make it larger");
    refused(&["--ram", "1X", "--usbredir", &address], 2, "write bytes, or a number with K, M, G or T");
    refused(&["--ram", "1M", "--usbredir", "drive.sock"], 2, "write unix:PATH or tcp:HOST:PORT");
    refused(&["--ram", "1M"], 2, "--usbredir <ADDRESS>");
    refused(&["--usbredir", &address], 2, "<IMAGE>");
    assert!(!fs::exists(place.file("drive.sock")).unwrap());
}

#[test]
fn what_cannot_be_served_says_why_and_what_to_do() {
    let place = Place::new();
    let address = place.unix("drive.sock");
    let serve = |image: &[&str], words| refused(&[image, &["--usbredir", &address]].concat(), 1, words);
    let (empty, good) = (place.file("empty.img"), place.file("good.img"));
    fs::write(&empty, "").unwrap();
    fs::write(&good, [0; 4096]).unwrap();
    std::os::unix::fs::symlink(place.file("loop"), place.file("loop")).unwrap();
    serve(
        &[&place.file("none.img")],
        "there is no such image; check the path, or create it\n  To create it, add --size SIZE.",
    );
    serve(&[&good, "--lun", &place.file("none.img")], "Create it first: truncate --size 1G PATH.");
    serve(&[&good, "--lun", &good], "another server has it open");
    serve(&[&empty], "it has 0 B, less than one block of 512 bytes; make it larger");
    serve(&[&place.file("loop")], "Too many levels of symbolic links");
    serve(&["/"], "it is a directory; name an image file in it");
    serve(&["/dev/null"], "neither a regular file nor a block device");
    serve(&[&good, "--size", "1M"], "it exists and is not overwritten; choose another name, or remove it");
    serve(
        &[&place.file("no/where.img"), "--size", "1M"],
        "its directory does not exist; choose another place",
    );
    serve(&["--ram", "1024T"], "ask for a smaller one, or use an image file");
    refused(&["--ram", "1M", "--usbredir", "tcp:0.0.0.0:0"], 1, "The flag for that is --allow-remote.");
    refused(
        &["--ram", "1M", "--usbredir", &format!("unix:{good}")],
        1,
        "there is something that is no socket",
    );
    assert_eq!(fs::read(&good).unwrap(), [0; 4096]);
}

#[test]
fn what_is_served_is_introduced_in_words() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let address = place.unix("drive,1.sock");
    let _served =
        Served::start(&["--ram", "64M", "--usbredir", &address, "--serial", "S1", "--read-only"], writer);
    let lines = lines_up_to(&mut BufReader::new(reader), "-device usb-redir");
    assert_eq!(lines[0], "LUN 0: 64 MiB in blocks of 512, read-only, memory, gone when the process ends\n");
    assert_eq!(lines[1], "Serial S1, super speed\n");
    assert_eq!(lines[3], "  -device qemu-xhci,id=xhci \\\n");
    let path = place.file("drive,,1.sock");
    assert_eq!(lines[4], format!("  -chardev 'socket,id=uaskit,path={path}' \\\n"));
}

#[test]
fn with_json_every_line_is_an_object_with_its_event() {
    let place = Place::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut served =
        Served::start(&["--ram", "1M", "--usbredir", &place.unix("drive.sock"), "--json"], writer);
    let mut first = BufReader::new(reader.try_clone().unwrap());
    let mut lines = lines_up_to(&mut first, "\"listening\"");
    served.interrupt();
    assert_eq!(served.exit_code(), Some(0));
    let mut rest = String::from_utf8(first.buffer().to_vec()).unwrap();
    reader.read_to_string(&mut rest).unwrap();
    lines.extend(rest.lines().map(str::to_owned));
    let events = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    let expected = ["unit", "device", "listening", "stopping", "ended"];
    assert!(events.eq(expected), "{lines:?}");
}

#[test]
fn ctrl_c_flushes_and_says_so() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let address = place.unix("drive.sock");
    let mut served = Served::start(&[&place.file("new.img"), "--size", "1M", "--usbredir", &address], writer);
    let mut reader = BufReader::new(reader);
    lines_up_to(&mut reader, "-device usb-redir");
    served.interrupt();
    let lines = lines_up_to(&mut reader, "Everything is written. 0 reads, 0 writes.");
    assert_eq!(lines[0], "Writing everything down; Ctrl-C again leaves at once.\n");
    assert_eq!(served.exit_code(), Some(0));
    assert!(!fs::exists(place.file("drive.sock")).unwrap());
    assert_eq!(fs::metadata(place.file("new.img")).unwrap().len(), 1 << 20);
}

/// Nobody reads what it prints, so that the first Ctrl-C gets nowhere.
#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let place = Place::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let size = fcntl_getpipe_size(&writer).unwrap();
    let address = place.unix("drive.sock");
    let mut served =
        Served::start(&["--ram", "1M", "--usbredir", &address, "--json"], writer.try_clone().unwrap());
    let mut lines = BufReader::new(reader.try_clone().unwrap());
    lines_up_to(&mut lines, "\"listening\"");
    writer.write_all(&vec![b'x'; size]).unwrap();
    // Signals of a kind that come before the first is taken are one, so a third may be needed.
    let deadline = Instant::now() + Duration::from_secs(10);
    while served.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it does not leave");
        served.interrupt();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(served.exit_code(), Some(130));
}

#[test]
fn an_image_has_the_same_serial_number_every_time() {
    let place = Place::new();
    let serial = |image: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        let image = place.file(image);
        if !fs::exists(&image).unwrap() {
            fs::write(&image, [0; 4096]).unwrap();
        }
        let _served = Served::start(&[&image, "--usbredir", &place.unix("drive.sock")], writer);
        lines_up_to(&mut BufReader::new(reader), "Serial")[1].clone()
    };
    let first = serial("first.img");
    assert_eq!(serial("first.img"), first);
    assert_ne!(serial("second.img"), first);
}

#[test]
fn completions_and_man_pages_know_the_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("usbredir"), "{shell}");
        // elvish and powershell complete options alone.
        if matches!(shell, "bash" | "fish" | "zsh") {
            for name in ["hardware-fr", "jms580", "vertex3-240", "workstation"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }
    let place = Place::new();
    assert!(run(&["man", &place.file("")]).status.success());
    let page = fs::read_to_string(place.file("uaskit-serve.1")).unwrap();
    assert!(page.contains("\\-\\-usbredir"), "{page}");
    assert_eq!(run(&["man", &place.file("missing")]).status.code(), Some(1));
}
