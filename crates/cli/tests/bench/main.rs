//! Benchmarks by the program itself: in memory and on files; what is refused, what is printed.

mod captures;
mod ended;
mod jobs;
#[path = "../place/terminal.rs"]
mod place_terminal;
mod terminal;

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const UASKIT: &str = env!("CARGO_BIN_EXE_uaskit");

/// Short runs: what they bring does not matter here.
const SHORT: [[&str; 2]; 2] = [["--seconds", "0.05"], ["--rounds", "1"]];

/// A directory of a test's own, which goes when this is dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("uaskit-bench-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory can be made");
        fs::write(&path, bytes).expect("a file can be written");
        path.display().to_string()
    }

    /// A file of 4 MiB.
    fn image(&self) -> String {
        self.write("image", vec![7; 4 << 20])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(UASKIT);
    let unless_given = SHORT.into_iter().filter(|[flag, _]| !arguments.contains(flag)).flatten();
    command.arg("bench").args(arguments).args(unless_given).stdin(Stdio::null());
    command.output().expect("the program runs")
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// Ends with this exit code and says this; all that it says.
#[track_caller]
fn fails(arguments: &[&str], code: i32, says: &str) -> String {
    let output = bench(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), text.contains(says)),
        (Some(code), true),
        "{says:?} is not in {text:?}"
    );
    text
}

#[test]
fn a_virtual_drive_is_measured_with_plain_flags() {
    let record = json(&["--virtual", "--size", "16M", "--rw", "randread", "--bs", "4k", "--depth", "32"]);
    assert!(record["iops"].as_f64().expect("one workload ran") > 100.0, "{record}");
    let row = &record["rows"][0];
    assert_eq!(
        (&row["transport"], &row["depth"], &row["job"]),
        (&"uas".into(), &32.into(), &"4K random read".into())
    );
    assert_eq!((&record["errors"], &record["interrupted"]), (&0.into(), &false.into()));
    assert_eq!(
        (&record["target"]["kind"], &record["target"]["bytes"]),
        (&"virtual".into(), &(16 << 20).into())
    );
    assert!(record["machine"]["kernel"].is_string() && record["command_line"][1] == "bench");
}

#[test]
fn transports_are_held_against_the_first() {
    let record = json(&[
        "--virtual",
        "--size",
        "16M",
        "--rw",
        "read",
        "--bs",
        "64K",
        "--transport",
        "all",
        "--rounds",
        "2",
    ]);
    let rows = record["rows"].as_array().expect("rows");
    let transports: Vec<&Value> = rows.iter().map(|row| &row["transport"]).collect();
    assert_eq!(transports, ["bot", "turbo", "uas"]);
    assert!(rows[0]["ratio_to_first"].is_null());
    for field in ["iops", "iops_of", "mb_per_s"] {
        assert!(record.get(field).is_none(), "{field} of one transport alone stands for three: {record}");
    }
    assert!(rows[2]["ratio_to_first"]["interval"][0].as_f64().expect("two rounds") > 0.0);
}

#[test]
fn what_a_named_workload_asks_for_in_pieces_of_a_block_is_left_out() {
    let blocks = ["--virtual", "--size", "16M", "--block-size", "4096"];
    let record = json(&[&blocks[..], &["--workload", "atto", "--seconds", "0.01"]].concat());
    let rows = record["rows"].as_array().expect("rows");
    assert_eq!((&record["target"]["block_bytes"], rows.len()), (&4096.into(), 24));
    assert_eq!(rows[0]["job"], "4K sequential write");
    let notes = record["target"]["notes"].to_string();
    assert!(
        notes.contains("atto: jobs of 512, 1K and 2K were skipped, since the drive has blocks of 4096 bytes"),
        "{notes}"
    );
    // What somebody has chosen is refused.
    let place = Place::new();
    let job = place.write("a.fio", "[one]\nrw=randread\nbs=512\n");
    let why = "512 bytes is not a positive multiple of the block size of 4096";
    fails(&[&blocks[..], &["--rw", "read", "--bs", "512"]].concat(), 2, why);
    fails(&[&blocks[..], &["--fio", &job]].concat(), 2, why);
    fails(&["--virtual", "--size", "1M", "--block-size", "1024"], 2, "possible values: 512, 4096");
    fails(&["--virtual", "--size", "512", "--block-size", "4096"], 2, "Choose a multiple of 4096");
}

#[test]
fn every_named_workload_runs_in_memory() {
    for (name, _) in workload::NAMES.iter().copied() {
        let record = json(&["--virtual", "--size", "64M", "--workload", name, "--seconds", "0.01"]);
        let rows = record["rows"].as_array().expect("rows");
        assert!(rows.iter().all(|row| row["rounds"] == 1), "{name}");
        assert_eq!((&record["workloads"][0], &record["errors"]), (&name.into(), &0.into()));
    }
}

#[test]
fn a_file_is_read_without_confirmation_and_is_not_changed() {
    let place = Place::new();
    let image = place.image();
    let record = json(&[&image, "--workload", "iometer-4k-read", "--depth", "1,4"]);
    assert_eq!(record["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(record["rows"][0]["transport"], "kernel");
    assert!(fs::read(&image).expect("it is there") == vec![7; 4 << 20]);
}

#[test]
fn a_logical_unit_is_of_a_port_alone() {
    let place = Place::new();
    fails(&[&place.image(), "--rw", "read", "--lun", "1"], 2, "--lun needs a USB port or id");
    fails(&["--virtual", "--rw", "read", "--lun", "1"], 2, "cannot be combined with");
    fails(&["2-1", "--rw", "read", "--lun", "256"], 2, "use a whole number from 0 to 255");
}

#[test]
fn nothing_is_written_unless_the_very_device_is_named() {
    let place = Place::new();
    let (image, other) = (place.image(), place.write("other", "x"));
    fails(&[&image, "--rw", "write"], 3, "To overwrite it, add --write=");
    fails(&[&image, "--rw", "randrw", "--write", &other, "--yes"], 3, "but the target is");
    fails(&[&image, "--workload", "dd", "--write", &image], 3, "stdin is not a terminal");
    assert!(fs::read(&image).expect("it is there") == vec![7; 4 << 20]);
    let wrote = json(&[
        &image,
        "--rw",
        "write",
        "--bs",
        "64k",
        "--write",
        &image,
        "--yes",
        "--zero-data",
        "--seconds",
        "0.2",
    ]);
    assert!(wrote["iops"].as_f64() > Some(0.0));
    assert!(fs::read(&image).expect("it is there")[..65_536].iter().all(|byte| *byte == 0));
}

/// Both ends of a terminal: who types, and who asks.
fn terminal() -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let owner = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&owner).and_then(|()| unlockpt(&owner)).expect("it can be opened");
    let name = ptsname(&owner, Vec::new()).expect("it has a name").into_string().expect("of letters");
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name).expect("it is there");
    (fs::File::from(owner), terminal)
}

/// Its owner sits at a terminal, and has typed this.
fn asked(answer: &str, arguments: &[&str]) -> Output {
    let (mut owner, terminal) = terminal();
    owner.write_all(answer.as_bytes()).expect("typed");
    let mut command = Command::new(UASKIT);
    command.arg("bench").args(arguments).args(SHORT.into_iter().flatten()).stdin(terminal);
    command.output().expect("the program runs")
}

/// Does something while the question waits, and answers yes: the text on standard error after it, and the exit code.
fn asked_meanwhile(happens: impl FnOnce(), arguments: &[&str]) -> (String, Option<i32>) {
    let (mut owner, terminal) = terminal();
    let mut command = Command::new(UASKIT);
    command.arg("bench").args(arguments).args(SHORT.into_iter().flatten()).stdin(terminal);
    let mut asking = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut errors = asking.stderr.take().expect("it is a pipe");
    let (mut stderr, mut byte) = (Vec::new(), [0]);
    while !stderr.ends_with(b"continue: ") && errors.read(&mut byte).expect("it is read") > 0 {
        stderr.push(byte[0]);
    }
    happens();
    owner.write_all(b"yes\n").expect("typed");
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("text");
    (rest, asking.wait().expect("it ends").code())
}

#[test]
fn who_is_asked_and_does_not_say_yes_loses_nothing() {
    let place = Place::new();
    let image = place.image();
    let arguments = [&image, "--rw", "write", "--bs", "64k", "--zero-data", "--write", &image];
    // The last is the end of what a terminal has: nothing is no.
    for answer in ["no\n", "\n", "y\n", "YES\n", "yes please\n", "\u{4}"] {
        let output = asked(answer, &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{answer:?}: {stderr}");
        assert!(stderr.contains("Everything on the file "), "{answer:?}: {stderr}");
        assert!(
            stderr.contains("Type yes to continue: ") && stderr.contains("you did not confirm"),
            "{stderr}"
        );
        assert!(fs::read(&image).expect("it is there") == vec![7; 4 << 20], "{answer:?}");
    }
    let output = asked("no\n", &[&arguments[..], &["--size", "1M"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("The first 1 MiB of the file "), "{stderr}");
    let output = asked("yes\n", &arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("Type yes to continue: "), "{stderr}");
    assert!(fs::read(&image).expect("it is there")[..65_536].iter().all(|byte| *byte == 0));
}

#[test]
fn what_takes_the_place_of_the_file_that_was_asked_about_is_not_overwritten() {
    let place = Place::new();
    let image = place.image();
    let (stderr, code) = asked_meanwhile(
        || {
            place.write("other.img", vec![9; 4 << 20]);
            fs::rename(place.0.join("other.img"), &image).expect("it is renamed");
        },
        &[&image, "--rw", "write", "--bs", "64k", "--zero-data", "--write", &image],
    );
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.contains("refusing to overwrite ")
            && stderr.contains(": the device has changed since you confirmed: it was file (inode "),
        "{stderr}"
    );
    assert!(fs::read(&image).expect("it is there") == vec![9; 4 << 20]);
}

#[test]
fn what_the_system_uses_is_refused() {
    let place = Place::new();
    let image = place.image();
    place.write("machine/proc/swaps", format!("Filename\tType\n{image} file 1 2 3\n"));
    let machine = place.0.join("machine").display().to_string();
    let arguments = [&image, "--rw", "write", "--write", &image, "--yes", "--machine", &machine];
    fails(&arguments, 3, "is swapped to; swapoff it first");
    fs::remove_dir_all(place.0.join("machine")).expect("it was made");
    place.write("machine/sys/block/loop9/loop/backing_file", &image);
    fails(&arguments, 3, "loop9 is made of it");
    // The same file under another name.
    let link = place.0.join("link.img").display().to_string();
    fs::hard_link(&image, &link).expect("a link");
    fails(
        &[&link, "--rw", "write", "--write", &link, "--yes", "--machine", &machine],
        3,
        "loop9 is made of it",
    );
}

#[test]
fn nothing_is_written_on_the_word_of_another_machine() {
    let place = Place::new();
    let image = place.image();
    place.write("machine/proc/cmdline", "");
    let machine = place.0.join("machine").display().to_string();
    let arguments = [&image, "--rw", "write", "--write", &image, "--yes", "--machine", &machine];
    fails(&arguments, 3, "--machine names the files of another machine");
    assert!(fs::read(&image).expect("it is there") == vec![7; 4 << 20]);
}

/// A machine with drives at ports, in its files.
const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");

#[test]
fn no_confirmation_is_requested_for_an_impossible_run() {
    let place = Place::new();
    let image = place.image();
    let machine = place.0.join("machine");
    fs::create_dir_all(&machine).expect("a directory can be made");
    // Under a name that no disk of this machine has.
    inspect::tree::expand(&GUEST.replace("sdc", "sdzzc"), &machine).expect("it is a tree");
    let machine = machine.display().to_string();
    // The drive at port 3-3 has 16 MiB.
    for (target, much, why) in [
        (image.as_str(), ["--size", "1G"], ": it has 4 MiB"),
        (&image, ["--bs", "1000"], "multiples of"),
        ("3-3", ["--size", "1G"], "--size 1 GiB is larger than 3-3: it has 16 MiB"),
        ("3-3", ["--bs", "1000"], "multiples of"),
    ] {
        let write = ["--rw", "write", "--write", target, "--yes", "--machine", &machine];
        let stderr = fails(&[&[target], &write[..], &much].concat(), 2, why);
        assert!(!stderr.contains("will be overwritten"), "{stderr}");
        // What fits comes as far as the question.
        let stderr =
            fails(&[&[target], &write[..]].concat(), 3, "--machine names the files of another machine");
        assert!(stderr.contains("will be overwritten"), "{stderr}");
    }
    let capture = place.0.join("capture").display().to_string();
    let stderr = fails(
        &[&image, "--rw", "write", "--write", &image, "--yes", "--capture", &capture],
        2,
        "cannot capture the transfers of",
    );
    assert!(!stderr.contains("will be overwritten"), "{stderr}");
    let nowhere = ["99-9", "--rw", "write", "--write", "99-9", "--yes", "--machine", &machine];
    fails(&nowhere, 1, "nothing is plugged into port 99-9");
}

#[test]
fn at_a_port_the_kernel_reports_the_block_size() {
    let place = Place::new();
    let machine = place.0.join("machine");
    fs::create_dir_all(&machine).expect("a directory can be made");
    let (line, more) = ("queue/rotational = 0", "queue/logical_block_size = 4096");
    let disk = GUEST.lines().find(|text| text.contains("/3-3/") && text.ends_with(line)).expect("it has one");
    let tree = GUEST.replace(disk, &format!("{disk}\n{}", disk.replace(line, more)));
    inspect::tree::expand(&tree.replace("sdc", "sdzzc"), &machine).expect("it is a tree");
    let write = ["3-3", "--write", "3-3", "--yes", "--machine", &machine.display().to_string()];
    fails(&[&write[..], &["--rw", "write", "--bs", "512"]].concat(), 2, "the block size of 4096");
    // It comes as far as the question.
    let stderr =
        fails(&[&write[..], &["-w", "atto"]].concat(), 3, "--machine names the files of another machine");
    assert!(stderr.contains("will be overwritten"), "{stderr}");
}

#[test]
fn a_job_that_cannot_run_is_refused_before_anything_runs() {
    let arguments = [
        "--virtual",
        "--size",
        "1M",
        "--workload",
        "iometer-4k-read",
        "--workload",
        "iometer-2m",
        "--depth",
        "1",
    ];
    fails(&arguments, 2, "the used part of 1048576 bytes is smaller than one access of 2097152");
    let output = bench(&arguments);
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    // That a transport is not offered is none.
    let offered =
        bench(&["--virtual", "--size", "16M", "--speed", "full", "--transport", "all", "--rw", "read"]);
    assert_eq!(offered.status.code(), Some(0), "{}", String::from_utf8_lossy(&offered.stderr));
}

#[test]
fn what_was_written_is_read_back() {
    let place = Place::new();
    let image = place.image();
    let record = json(&[
        &image, "--rw", "randrw", "--bs", "8k", "--depth", "4", "--verify", "--write", &image, "--yes",
    ]);
    let findings = &record["rows"][0]["verify"];
    assert!(findings["checked"].as_u64() > Some(0) && findings["wrong"] == 0, "{findings}");
    assert_eq!((&findings["to_read_back"], &findings["not_read_back"]), (&findings["read_back"], &0.into()));
    fails(&[&image, "--rw", "read", "--verify"], 2, "--verify needs a workload that writes");
}

#[test]
fn what_is_read_back_is_not_read_from_the_page_cache() {
    let arguments = ["file.img", "--rw", "randwrite", "--write=file.img", "--verify", "--cached"];
    fails(&arguments, 2, "--verify cannot be combined with --cached");
    // Sysfs does not support O_DIRECT, and rejects writes to this file.
    let file = "/sys/kernel/uevent_seqnum";
    let arguments = [file, "--rw", "randwrite", "--bs", "512", "--size", "4K", "--verify", "--write", file];
    fails(&[&arguments[..], &["--yes"]].concat(), 2, "its file system does not support O_DIRECT");
}

#[test]
fn csv_has_a_line_for_each_row() {
    let output = bench(&["--virtual", "--size", "16M", "--rw", "read", "--depth", "1,2", "--csv"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("uas,4K sequential read,2,")), "{text}");
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let place = Place::new();
    let image = place.image();
    fails(&[&image, "--transport", "uas"], 2, "--transport does not apply to");
    fails(&["--virtual", "--workload", "bonnie"], 2, "iometer-4k-read");
    fails(
        &["--virtual", "--rw", "read", "--bs", "32M"],
        2,
        "--bs 32M is out of range: 1 byte to 16 MiB are possible",
    );
    fails(&["--virtual", "--rw", "read", "--workload", "dd"], 2, "cannot be combined with");
    let job = place.write("a.fio", "[one]\nrw=randread\n");
    for source in [["--workload", "dd"], ["--fio", &job], ["--icf", &job]] {
        for flag in [["--bs", "64k"], ["--mix", "3"], ["--align", "1M"]] {
            fails(&["--virtual", source[0], source[1], flag[0], flag[1]], 2, " needs --rw: ");
        }
    }
    fails(&["--virtual", "--bs", "64k"], 2, "--rw");
    fails(
        &["--virtual", "--rw", "randread", "--mix", "3"],
        2,
        "Use --rw rw or --rw randrw, or leave --mix out.",
    );
    fails(&[&image, "--speed", "high", "--rw", "read"], 2, "--speed needs --virtual: ");
    for steady in ["nan", "inf", "0", "-3", "101"] {
        fails(&["--virtual", "--rw", "read", &format!("--steady={steady}")], 2, "is not a percentage");
    }
    fails(&["--virtual", "--rw", "read", "--seconds", "0"], 2, "is not longer than 0");
    fails(&[&image, "--rw", "read", "--size", "99T"], 2, "it has 4 MiB");
    let refusal = fails(&[], 2, "TARGET is missing");
    assert!(refusal.contains("uaskit bench --virtual") && refusal.contains("174c:55aa"), "{refusal}");
    fails(&["dead:beef"], 1, "no USB device has the id dead:beef");
    for empty in ["", " "] {
        fails(&[empty, "--rw", "read"], 2, "TARGET is empty");
        let stderr = fails(&[&image, "--rw", "write", "--write", empty, "--yes"], 3, "--write is empty");
        assert!(stderr.contains(&format!("use --write={image}")), "{stderr}");
    }
    fails(&["/nowhere/image"], 1, "Create a file: truncate -s 1G FILE");
    fails(
        &[&image, "--rw", "read", "--bs", "5000"],
        2,
        "5000 bytes is not a positive multiple of the block size of 512",
    );
    fails(&[&image, "--rw", "read", "--bs", "8M"], 2, "is smaller than one access of 8388608");
}

#[test]
fn sizes_that_cannot_be_are_refused_with_what_to_do() {
    let place = Place::new();
    let image = place.image();
    for target in [&image[..], "--virtual"] {
        fails(&[target, "--rw", "read", "--size", "0"], 2, "Choose a multiple of 512");
        fails(&[target, "--rw", "read", "--size", "1000"], 2, "Choose a multiple of 512");
        fails(&[target, "--rw", "read", "--bs", "511"], 2, "alignments and offsets that are multiples of");
        fails(&[target, "--rw", "read", "--align", "3"], 2, "alignments and offsets that are multiples of");
        let deep = [target, "--rw", "read", "--bs", "16M", "--depth", "1,256"];
        fails(&deep, 2, "256 requests of 16 MiB need 4 GiB of buffers (maximum 1 GiB)");
    }
    fails(&["--virtual", "--rw", "randrw", "--depth", "-1"], 2, "'-1' is not a queue depth");
    for [flag, value] in [["--mix", "-1"], ["--rounds", "-1"]] {
        fails(&["--virtual", "--rw", "randrw", flag, value], 2, "use a whole number from ");
    }
    fails(&["--virtual", "--rw", "read", "--seconds", "-1"], 2, "is not a time up to a day");
    fails(&["--virtual", "--rw", "read", "--bs", "-1"], 2, "is not a size");
    let capture = place.0.join("drive.pcapng").display().to_string();
    fails(&["--virtual", "--capture", &capture, "--capture-size", "1"], 2, "the minimum is 64 KiB");
    assert!(!place.0.join("drive.pcapng").exists());
}

#[test]
fn what_is_stamped_is_no_other_data() {
    let place = Place::new();
    let image = place.image();
    for data in ["--zero-data", "--random-data"] {
        fails(&["--virtual", "--rw", "write", "--verify", data], 2, "cannot be combined with");
    }
    let job = place.write("a.fio", "[one]\nrw=write\nzero_buffers\n");
    fails(&["--virtual", "--fio", &job, "--verify"], 2, "--verify writes a stamp into every block");
    // A part is verified, which may be more than there is.
    let arguments = [&image, "--rw", "write", "--verify", "--write", &image, "--yes"];
    assert_eq!(json(&arguments)["rows"][0]["verify"]["wrong"], 0);
}

/// As of `uaskit … 2>&1 | head`: messages change neither the figures nor the exit code.
#[test]
fn closed_standard_error_changes_nothing() {
    let place = Place::new();
    let file = |name: &str| place.0.join(name).display().to_string();
    let (image, capture, page) = (place.image(), file("a.pcapng"), file("a.html"));
    let quick = ["--seconds", "0.02", "--rounds", "1"];
    let read = ["--virtual", "--size", "16M", "--rw", "randread", "--capture", &capture, "--report", &page];
    for (arguments, code) in
        [(&read[..], 0), (&[&image, "--rw", "write"], 3), (&["/nowhere", "--rw", "read"], 1)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(UASKIT);
        command.arg("bench").args(arguments).args(quick).stdout(Stdio::null()).stderr(writer);
        assert_eq!(command.status().unwrap().code(), Some(code), "{arguments:?}");
    }
    assert!(fs::metadata(&capture).unwrap().len() > 0 && fs::metadata(&page).unwrap().len() > 0);
}
