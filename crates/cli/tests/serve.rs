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
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there and ours");
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
    serve(&["--streams", "1"], "1 stream is not possible");
    serve(&["--fault", "hse"], "use KIND@N or KIND/N:SEED");
    serve(&["--fault", "hse@1"], "usbredir does not have");
    let several = |more: &[&str], words| {
        refused(&[&["--drive", "ram=1M", "--vfio-user", &address], more].concat(), 2, words);
    };
    several(&["--drive", "ram=1M,fault=hse@1"], "--fault hse@1");
    several(&["--fault", "lose-status/9:1"], "fault=lose-status/9:1");
    serve(&["--streams", "33"], "use 2, 4, 8, 16, 32, 64, 128 or 256");
    serve(&["--block-size", "1024"], "[possible values: 512, 4096]");
    serve(&["--speed", "hyper"], "[possible values: super, high, full]");
    serve(&["--usb-id", "12"], "write VID:PID in hexadecimal");
    serve(&["--vendor", "nine char"], "9 characters (maximum 8)");
    serve(&["--serial", ""], "needs a serial number");
    serve(&["--size", "1M"], "cannot be combined with");
    serve(&["--temperature", "255"], "use a whole number from 0 to 254");
    serve(&["--control", "tcp:127.0.0.1:1"], "invalid control address \"tcp:127.0.0.1:1\"");
    refused(
        &["--ram", "511", "--usbredir", &address],
        2,
        "it is less than one block of 512 bytes\n  Choose a larger size.",
    );
    refused(&["--ram", "1000", "--usbredir", &address], 2, "--ram 1000 is not a whole number of blocks");
    refused(&["--ram", "1X", "--usbredir", &address], 2, "write bytes, or a number with K, M, G or T");
    refused(&["--ram", "1M", "--usbredir", "drive.sock"], 2, "use unix:PATH or tcp:HOST:PORT");
    refused(&["--ram", "1M"], 2, "--usbredir <ADDRESS>");
    refused(&["--usbredir", &address], 2, "Name an image, --ram SIZE");
    assert!(!fs::exists(place.file("drive.sock")).unwrap());
}

#[test]
fn what_cannot_be_served_says_why_and_what_to_do() {
    let place = Place::new();
    let address = place.unix("drive.sock");
    let serve = |image: &[&str], words: &str| refused(&[image, &["--usbredir", &address]].concat(), 1, words);
    let (empty, good) = (place.file("empty.img"), place.file("good.img"));
    fs::write(&empty, "").unwrap();
    fs::write(&good, [0; 4096]).unwrap();
    std::os::unix::fs::symlink(place.file("loop"), place.file("loop")).unwrap();
    serve(
        &[&place.file("none.img")],
        "none.img: no such file; check the path, or create the image\n  To create it, add --size SIZE (in --drive: size=SIZE).",
    );
    let none = place.file("none.img");
    serve(&[&good, "--lun", &none], &format!("To create it: truncate --size 1G {none}"));
    refused(
        &[&good, "--usbredir", &address, "--lun", &good],
        2,
        "is named for LUN 0 and for LUN 1: two logical units cannot write to one image",
    );
    serve(&[&empty], "its size of 0 B is less than one block of 512 bytes; enlarge it");
    serve(&[&place.file("loop")], "Too many levels of symbolic links");
    serve(&["/"], "it is a directory; name an image file in it");
    serve(&["/dev/null"], "neither a regular file nor a block device");
    let create = |image: &str, code, words: &str| {
        refused(&[image, "--size", "1M", "--usbredir", &address], code, words);
    };
    create(&good, 3, "good.img: it already exists\n  To serve it as it is, leave --size out;");
    create("/", 2, "cannot create /: it is a folder");
    serve(
        &[&place.file("no/where.img"), "--size", "1M"],
        "its directory does not exist; choose another path",
    );
    serve(&["--ram", "1024T"], "choose a smaller size or use an image file");
    refused(
        &["--ram", "1M", "--usbredir", "tcp:0.0.0.0:0"],
        3,
        "without a password\n  Use a loopback address, or add --allow-remote",
    );
    refused(
        &["--ram", "1M", "--usbredir", &format!("unix:{good}")],
        1,
        "the path exists and is not a socket",
    );
    refused(
        &["--ram", "1M", "--usbredir", &address, "--control", &address],
        2,
        "--usbredir and --control name the same file",
    );
    let unbound = run(&["serve", "--ram", "1M", "--usbredir", &format!("unix:{good}")]);
    assert_eq!(String::from_utf8_lossy(&unbound.stdout), "", "what is not served is not introduced");
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
    assert_eq!(lines[0], "LUN 0: 64 MiB in blocks of 512 bytes, read-only, RAM, lost on exit\n");
    assert_eq!(lines[1], "Serial S1, super speed\n");
    assert_eq!(lines[3], "  -device qemu-xhci,id=xhci \\\n");
    let path = place.file("drive,,1.sock");
    assert_eq!(lines[4], format!("  -chardev socket,id=uaskit,path={path} \\\n"));
}

#[test]
fn a_disc_is_known_by_its_name_and_options_of_a_disk_are_refused_beside_it() {
    let place = Place::new();
    let (disc, socket) = (place.file("disc.ISO"), place.unix("drive.sock"));
    fs::File::create(&disc).unwrap().set_len(1_000_000_001).unwrap();
    let introduced = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        let _served = Served::start(&[arguments, &["--usbredir", &socket]].concat(), writer);
        lines_up_to(&mut BufReader::new(reader), "Serial").concat()
    };
    let text = introduced(&[&disc]);
    assert!(
        text.contains("LUN 0: optical drive with a DVD-ROM of 976564 KiB in blocks of 2048 bytes, "),
        "{text}"
    );
    assert!(text.contains("last block padded with zeroes (1535 bytes)"), "{text}");
    let text = introduced(&[&disc, "--disk"]);
    assert!(text.contains(" in blocks of 512 bytes, "), "{text}");
    assert!(introduced(&["--optical"]).contains("LUN 0: optical drive without a disc\n"));
    let text = introduced(&["--ram", "1M", "--lun", &disc]);
    assert!(
        text.contains("LUN 0: 1 MiB in blocks of 512 bytes, ") && text.contains("LUN 1: optical"),
        "{text}"
    );
    let beside = |option: &[&str], words: &str| {
        refused(&[&[&disc, "--usbredir", &socket], option].concat(), 2, words);
    };
    beside(&["--rotational"], "--rotational cannot be combined with");
    beside(&["--block-size", "4096"], "Add --disk to serve it as a disk");
    beside(&["--optical", "--disk"], "--optical cannot be combined with --disk");
    let cue = place.file("disc.cue");
    fs::write(&cue, "FILE").unwrap();
    refused(&[&cue, "--usbredir", &socket], 1, "it is a cue sheet");
    refused(&["--optical", "--usbredir", &socket, "--lie", "wrap=1M"], 2, "it describes a disk");
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
    let lines = lines_up_to(&mut reader, "All data flushed: 0 reads, 0 writes.");
    assert_eq!(lines[0], "Stopping: the media are flushed. Press Ctrl-C again to quit immediately.\n");
    assert_eq!(served.exit_code(), Some(0));
    assert!(!fs::exists(place.file("drive.sock")).unwrap());
    assert_eq!(fs::metadata(place.file("new.img")).unwrap().len(), 1 << 20);
}

#[test]
fn sigterm_and_sighup_end_as_ctrl_c_does() {
    for signal in [Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut served = Served::start(&["--ram", "1M", "--usbredir", &place.unix("drive.sock")], writer);
        let mut reader = BufReader::new(reader);
        lines_up_to(&mut reader, "-device usb-redir");
        served.signal(signal);
        // A terminal that goes away may cause more of these, and a supervisor one after its
        // SIGTERM.
        served.signal(Signal::HUP);
        lines_up_to(&mut reader, "All data flushed");
        assert_eq!(served.exit_code(), Some(0), "{signal:?}");
    }
}

#[test]
fn sighup_that_is_ignored_at_start_does_not_end_it() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let child = Command::new("nohup")
        .args([UASKIT, "serve", "--ram", "1M", "--usbredir", &place.unix("drive.sock")])
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn();
    let Ok(child) = child else {
        eprintln!("skipped: there is no nohup here");
        return;
    };
    let mut served = Served(child);
    let mut reader = BufReader::new(reader);
    lines_up_to(&mut reader, "-device usb-redir");
    served.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.0.try_wait().unwrap(), None, "it goes on");
    served.interrupt();
    lines_up_to(&mut reader, "All data flushed");
    assert_eq!(served.exit_code(), Some(0));
}

/// The words of QEMU's arguments, as a shell splits the lines that are printed.
fn words_of_a_shell(lines: &[String]) -> Vec<String> {
    let script = format!("printf '%s\\0' {}", lines.concat());
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
    let text = String::from_utf8(output.stdout).expect("words are text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn qemus_arguments_survive_a_shell_whatever_is_in_the_path() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash here");
        return;
    }
    for name in ["it's,a \"$HOME\" `x`.sock", "a\\b;c&d,,e", "-x\u{1b}[31m\n2"] {
        let place = Place::new();
        let (reader, writer) = std::io::pipe().unwrap();
        let path = place.file(name);
        let _served = Served::start(&["--ram", "1M", "--usbredir", &place.unix(name)], writer);
        let lines = lines_up_to(&mut BufReader::new(reader), "-device usb-redir");
        let words = words_of_a_shell(&lines[lines.len() - 3..]);
        let chardev = format!("socket,id=uaskit,path={}", path.replace(',', ",,"));
        let expected = [
            "-device",
            "qemu-xhci,id=xhci",
            "-chardev",
            &chardev,
            "-device",
            "usb-redir,chardev=uaskit,bus=xhci.0",
        ];
        assert_eq!(words, expected);
    }
}

/// Detaches a loop device when it is dropped.
struct Loop(String);

impl Loop {
    /// A loop device over an image; `None` if this system or user cannot have one.
    fn attach(image: &str) -> Option<Self> {
        let output = Command::new("losetup").args(["--show", "--find", image]).output().ok()?;
        output.status.success().then(|| Self(String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

#[test]
fn an_image_behind_a_loop_device_is_served_read_only_alone() {
    let place = Place::new();
    let (image, address) = (place.file("used.img"), place.unix("drive.sock"));
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    let Some(attached) = Loop::attach(&image) else {
        eprintln!("skipped: a loop device cannot be made here");
        return;
    };
    let device = attached.0.trim_start_matches("/dev/");
    refused(
        &[&image, "--usbredir", &address],
        3,
        &format!("refusing to serve {image} for writing: {device}"),
    );
    refused(&["--ram", "1M", "--usbredir", &address, "--lun", &image], 3, "add --read-only");
    let (reader, writer) = std::io::pipe().unwrap();
    let _served = Served::start(&[&image, "--usbredir", &address, "--read-only"], writer);
    lines_up_to(&mut BufReader::new(reader), "-device usb-redir");
}

/// Its output is a full pipe without a reader, so that the first Ctrl-C has no effect.
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
    assert_eq!(run(&["man", &place.file("missing")]).status.code(), Some(2));
}
