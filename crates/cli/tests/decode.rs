//! `uaskit decode` as a user calls it, on captures of simulated worlds.

mod place;

use capture::{Interface, LinkType, Pcapng, Record};
use place::{Place, UASKIT};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use units::Instant;

/// The exit code of a capture that is damaged.
const DAMAGED: i32 = 5;
/// Commands of each run that are measured, and how many are wanted at once.
const COMMANDS: usize = 100;
const DEPTH: usize = 7;

fn captured(place: &Place, arguments: &[&str]) -> String {
    let path = place.file("capture.pcapng");
    let mut compare = Command::new(UASKIT);
    compare.args(["compare", "--raw", "--commands", "100", "--depth", "7"]).args(arguments);
    let output = compare.arg("--capture").arg(&path).output().expect("uaskit starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

fn decode(path: &str, arguments: &[&str]) -> Output {
    Command::new(UASKIT).arg("decode").arg(path).args(arguments).output().expect("uaskit starts")
}

fn json(path: &str, arguments: &[&str]) -> Vec<Value> {
    let output = decode(path, &[&["--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects(&output)
}

fn objects(output: &Output) -> Vec<Value> {
    output.stdout.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// How many objects have these fields.
fn count(objects: &[Value], fields: &[(&str, Value)]) -> usize {
    objects.iter().filter(|object| fields.iter().all(|(name, value)| object[name] == *value)).count()
}

#[test]
fn every_simulated_command_is_printed_once() {
    let place = Place::new();
    for (write, opcode) in [(&[][..], 0x28), (&["--write"][..], 0x2a)] {
        let objects = json(&captured(&place, write), &[]);
        let of = |transport: &str, outcome: &str| {
            count(
                &objects,
                &[("transport", transport.into()), ("opcode", opcode.into()), ("outcome", outcome.into())],
            )
        };
        // Before those that are measured as many as are wanted at once; and the one that is incomplete at the end of the capture.
        assert_eq!(
            (of("BOT", "passed"), of("BOT", "incomplete at the end of the capture")),
            (COMMANDS + DEPTH, 1)
        );
        let (good, incomplete) = (of("UAS", "GOOD"), of("UAS", "incomplete at the end of the capture"));
        assert_eq!(good + incomplete, COMMANDS + 2 * DEPTH);
        assert!(incomplete <= DEPTH);
        assert_eq!(count(&objects, &[("kind", "verdict".into())]), 0);
        let moved =
            count(&objects, &[("opcode", opcode.into()), ("error", false.into()), ("bytes", 4096.into())]);
        assert!(moved >= 2 * COMMANDS, "{moved}");
    }
}

#[test]
fn packets_have_the_same_commands_as_transfers() {
    let place = Place::new();
    let ended = |arguments: &[&str]| {
        let objects = json(&captured(&place, arguments), &[]);
        assert_eq!(count(&objects, &[("kind", "verdict".into())]), 0, "{arguments:?}");
        count(&objects, &[("outcome", "GOOD".into()), ("bytes", 4096.into())])
    };
    for link in ["gen1", "high"] {
        let transfers = ended(&["--link", link]);
        let packets = ended(&["--link", link, "--capture-as", "packets"]);
        assert!(transfers >= COMMANDS, "{transfers}");
        assert!(transfers.abs_diff(packets) <= DEPTH, "{link}: {transfers}, {packets}");
    }
}

/// Two drives for each transport, whose commands overlap.
#[test]
fn drives_that_share_a_link_are_separate_devices() {
    let place = Place::new();
    for (kind, devices) in
        [("transfers", ["1.1", "1.2", "2.3", "2.4"]), ("packets", ["1.1", "2.2", "3.3", "4.4"])]
    {
        for link in [&["--hubs", "1"][..], &["--hubs", "1", "--link", "high", "--controller", "chipset"]] {
            let path = captured(&place, &[&["--drives", "2", "--capture-as", kind], link].concat());
            let objects = json(&path, &[]);
            assert_eq!(count(&objects, &[("kind", "verdict".into())]), 0);
            for (device, ended) in devices.into_iter().zip(["passed", "passed", "GOOD", "GOOD"]) {
                let of = [("device", device.into()), ("outcome", ended.into()), ("opcode", 0x28.into())];
                // They share what is measured; before it each has as many as are wanted at once.
                let reads = count(&objects, &of);
                assert!((COMMANDS / 2..=COMMANDS / 2 + 2 * DEPTH).contains(&reads), "{device}: {reads}");
            }
            let commands = count(&objects, &[("kind", "command".into())]);
            let known: usize =
                devices.iter().map(|&device| count(&objects, &[("device", device.into())])).sum();
            assert_eq!(commands, known, "there are no others");
            let begins = |device: &str| {
                let times = objects.iter().filter(|object| object["device"] == device);
                times.filter_map(|object| object["at_ns"].as_u64()).collect::<Vec<_>>()
            };
            let [one, other] = [devices[0], devices[1]].map(begins);
            assert!(one.first() < other.last() && other.first() < one.last(), "they run at a time");
        }
    }
}

#[test]
fn a_stream_is_printed_and_the_sense_data_are_spelt_out() {
    let place = Place::new();
    let text = String::from_utf8(decode(&captured(&place, &[]), &["--errors"]).stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].contains("BOT")
            && lines[1].ends_with("TEST UNIT READY → failed: UNIT ATTENTION, POWER ON OCCURRED")
    );
    assert!(
        lines[2].contains("UAS")
            && lines[2].ends_with("TEST UNIT READY → CHECK CONDITION: UNIT ATTENTION, POWER ON OCCURRED")
    );
    assert!(lines[4].starts_with("225 commands of 2 drives, 2 shown"), "{text}");
}

#[test]
fn filters_choose_what_is_shown() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let shown = |arguments: &[&str]| count(&json(&path, arguments), &[("kind", "command".into())]);
    let all = shown(&[]);
    assert_eq!(shown(&["--opcode", "28"]), all - 3);
    assert_eq!(shown(&["--opcode", "read"]), all - 3);
    assert_eq!(shown(&["--opcode", "test unit"]), 2);
    assert_eq!(shown(&["--errors"]), 2);
    assert_eq!((shown(&["--lun", "0"]), shown(&["--lun", "1"])), (all, 0));
    let slow = json(&path, &["--slower", "100us"]);
    let took = |object: &Value| object["duration_ns"].as_u64().is_none_or(|ns| ns > 100_000);
    assert!(slow.iter().filter(|object| object["kind"] == "command").all(took));
    assert_eq!(shown(&["--slower", "1s", "--errors"]), 0);
    assert_eq!(shown(&["--quiet"]), 0);
}

#[test]
fn standard_input_is_a_capture_as_well() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let mut command = Command::new(UASKIT);
    command.args(["decode", "-"]).stdin(Stdio::from(File::open(&path).expect("is there")));
    assert_eq!(command.output().expect("uaskit starts").stdout, decode(&path, &[]).stdout);
}

#[test]
fn transfers_are_shown_below_their_command() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let objects = json(&path, &["--full", "--opcode", "read"]);
    let parts: Vec<&str> =
        objects[0]["transfers"].as_array().unwrap().iter().map(|one| one["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["command", "command", "data in", "data in", "status", "status"]);
    let text = String::from_utf8(decode(&path, &["--full"]).stdout).expect("text");
    assert!(text.contains("data in   completed, 4096 bytes"), "{text}");
}

#[test]
fn numbers_add_up() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let objects = json(&path, &["--stats", "--quiet"]);
    let stats = objects.iter().find(|object| object["kind"] == "stats").expect("stats");
    let sum = |rows: &Value| {
        rows.as_array().unwrap().iter().map(|row| row["row"]["commands"].as_u64().unwrap()).sum::<u64>()
    };
    let all = stats["all"]["commands"].as_u64().unwrap();
    assert_eq!((sum(&stats["by_opcode"]), sum(&stats["by_depth"])), (all, all));
    // What lines call a command is what the numbers call it.
    let commands = json(&path, &[]);
    for row in stats["by_opcode"].as_array().expect("a list") {
        let named = [("kind", "command".into()), ("name", row["name"].clone())];
        assert_eq!(count(&commands, &named) as u64, row["row"]["commands"].as_u64().unwrap(), "{row}");
    }
    assert!(stats["span_ns"].as_u64().unwrap() > 1_000_000);
    // Filtered commands count as in flight.
    let inquiries = json(&path, &["--stats", "--quiet", "--opcode", "inquiry"]);
    let filtered = inquiries.iter().find(|object| object["kind"] == "stats").expect("stats");
    assert!(filtered["all"]["commands"].as_u64().unwrap() < all);
    for time in ["span_ns", "outside_commands_ns"] {
        assert_eq!(filtered[time], stats[time]);
    }
    let text = String::from_utf8(decode(&path, &["--stats", "--quiet"]).stdout).expect("text");
    assert!(text.contains("from the status to the next command") && !text.contains("not sure"), "{text}");
    assert_eq!(stats["is_sure"], true);
}

#[test]
fn of_a_truncated_file_the_rest_is_read() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let whole = fs::read(&path).expect("is there");
    let cut = place.file("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("is written");
    let output = decode(&cut, &["--json"]);
    assert_eq!(output.status.code(), Some(DAMAGED));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.starts_with("uaskit: at offset ") && stderr.contains("the file ends in the middle of"),
        "{stderr}"
    );
    let objects = objects(&output);
    assert_eq!(count(&objects, &[("kind", "damage".into())]), 1);
    assert!(count(&objects, &[("kind", "command".into())]) > 50);
}

/// A capture that could not keep pace has thousands of them.
#[test]
fn places_where_packets_were_dropped_are_summed_up() {
    let place = Place::new();
    let path = place.file("drops.pcapng");
    let mut out = Pcapng::create(Path::new(&path), "").expect("a file can be made");
    let interface = Interface { link_type: LinkType::Usbmon, name: "", description: "" };
    let interface = out.add_interface(&interface).expect("it can be written");
    for _ in 0..20 {
        out.drop_before_next(7);
        let record = Record { at: Instant::ZERO, head: &[0; 64], body: &[], cut: 0, comments: &[] };
        out.add(interface, &record).expect("it can be written");
    }
    out.finish().expect("it can be written");
    let output = decode(&path, &[]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{stderr}");
    assert!(
        lines[0].starts_with("uaskit: at offset ") && lines[0].contains(": 7 packets were dropped here"),
        "{stderr}"
    );
    assert_eq!(lines[3], "uaskit: events are missing at 17 more positions; 140 packets dropped in total");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("dropped by the capturing program: 140 packets, at 20 positions\n"), "{text}");
    let text = String::from_utf8(decode(&path, &["--stats"]).stdout).expect("text");
    assert!(text.contains("\npackets are missing: idle times are upper limits"), "{text}");
    let objects = json(&path, &[]);
    let end = objects.last().expect("an end");
    assert_eq!(count(&objects, &[("kind", "dropped".into())]), 3);
    assert_eq!((&end["packets_dropped"], &end["places_dropped"]), (&140.into(), &20.into()));
}

#[test]
fn of_a_damaged_file_what_can_be_read_is_read() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let mut bytes = fs::read(&path).expect("is there");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 5_000].fill(0xff);
    let damaged = place.file("damaged.pcapng");
    fs::write(&damaged, bytes).expect("is written");
    let output = decode(&damaged, &["--json"]);
    assert_eq!(output.status.code(), Some(DAMAGED));
    let objects = objects(&output);
    let damage = objects.iter().find(|object| object["kind"] == "damage").expect("is stderr");
    let (offset, lost) = (damage["offset"].as_u64().unwrap(), damage["bytes"].as_u64().unwrap());
    assert!(offset <= middle as u64 && offset + lost >= middle as u64 + 5_000);
    assert!(count(&objects, &[("kind", "command".into())]) > 190);
}

/// The traffic of a benchmark between its runs, which sets up the next transport, is no fault.
#[test]
fn a_benchmark_has_no_verdicts() {
    let place = Place::new();
    let path = place.file("bench.pcapng");
    let mut bench = Command::new(UASKIT);
    bench.args(["bench", "--virtual", "--transport", "all", "--size", "8MiB", "--rounds", "1"]);
    bench.args(["--seconds", "0.01", "--warm-up", "0", "--depth", "4", "--capture", &path]);
    let output = bench.output().expect("uaskit starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let objects = json(&path, &["--quiet"]);
    let sure = [("kind", "verdict".into()), ("sure", true.into())];
    assert_eq!(count(&objects, &sure), 0, "{objects:?}");
    // A drive in the same memory has done a command before the next one comes, which is a note and no fault.
    let (alone, notes): (Vec<&Value>, Vec<&Value>) = objects
        .iter()
        .filter(|object| object["kind"] == "note")
        .partition(|note| note["fault"] == "depth-one");
    assert!(alone.iter().all(|note| note["idle_percent"].is_u64() && note["gap_ns"].is_u64()), "{alone:?}");
    // Over BOT and Turbo the drive ends short answers to identification with a STALL (BOT 1.0 clause 6.7.2).
    assert_eq!(
        notes.iter().map(|note| &note["fault"]).collect::<Vec<_>>(),
        ["stall-ends-data", "stall-ends-data", "configured-again"]
    );
    assert_eq!((&notes[2]["by"], notes[2]["count"].as_u64()), (&"neither".into(), Some(2)));
    let text = String::from_utf8(decode(&path, &["--quiet"]).stdout).expect("text");
    assert!(
        text.contains("\nNotes\n")
            && text.contains("  1.1: reset or configured again with no command in flight: 2 times"),
        "{text}"
    );
}

/// Files that were started after so many bytes each begin with what is known of the drive.
#[test]
fn joined_files_have_no_verdicts() {
    let place = Place::new();
    let path = place.file("part.pcapng");
    let mut bench = Command::new(UASKIT);
    bench.args([
        "bench",
        "--virtual",
        "--transport",
        "uas",
        "--size",
        "8MiB",
        "--rounds",
        "1",
        "--rw",
        "randread",
    ]);
    bench.args(["--seconds", "0.05", "--warm-up", "0", "--depth", "8", "--capture", &path]);
    bench.args(["--snap", "64", "--capture-size", "256K"]);
    let output = bench.output().expect("uaskit starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let parts = ["part.pcapng", "part.1.pcapng", "part.2.pcapng"].map(|name| place.file(name));
    let alone: usize = parts.iter().map(|part| count(&json(part, &[]), &[("kind", "command".into())])).sum();
    let whole: Vec<u8> = parts.iter().flat_map(|part| fs::read(part).expect("is there")).collect();
    let joined = place.file("joined.pcapng");
    fs::write(&joined, whole).expect("is written");
    let objects = json(&joined, &[]);
    assert_eq!(count(&objects, &[("kind", "verdict".into())]), 0, "{:?}", objects.last());
    assert_eq!(count(&objects, &[("kind", "command".into())]), alone);
}

#[test]
fn what_is_no_capture_is_refused() {
    let place = Place::new();
    let file = place.file("text");
    fs::write(&file, "dear diary, this is no capture at all").expect("is written");
    let output = decode(&file, &[]);
    assert_eq!(output.status.code(), Some(1));
    let refusal = String::from_utf8_lossy(&output.stderr);
    assert!(refusal.contains("it is not a capture") && refusal.contains("Captures come from"), "{refusal}");
    let absent = decode(&place.file("nothing"), &[]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("Check the path: "));
    let folder = decode(&place.file("."), &[]);
    assert_eq!(folder.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&folder.stderr).contains("directory"));
    let empty = place.file("empty");
    fs::write(&empty, "").expect("is written");
    let output = decode(&empty, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is empty"));
    assert_eq!(decode(&file, &["--slower", "10"]).status.code(), Some(2));
}

/// A file of pcap with so many packets of this link type, each of 64 zeroes.
fn pcap(place: &Place, link_type: u8, packets: usize) -> String {
    let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, link_type, 0, 0, 0];
    let record = [&[0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0][..], &[0; 64]].concat();
    let path = place.file("file.pcap");
    fs::write(&path, [&head[..], &record.repeat(packets)].concat()).expect("is written");
    path
}

#[test]
fn a_capture_of_something_else_is_refused_by_its_name() {
    let place = Place::new();
    let output = decode(&pcap(&place, 1, 3), &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in
        ["is not a USB capture", "all 3 packets are of link type 1 (Ethernet)", "189 and 220", "249", "288"]
    {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn of_a_capture_without_packets_the_figures_are_nothing() {
    let place = Place::new();
    let path = pcap(&place, 220, 0);
    let output = decode(&path, &["--stats"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.contains("0 ns from the first command to the last; no command in flight for 0 ns (0.0 %)"),
        "{text}"
    );
    assert!(text.ends_with("0 commands of 0 drives; 0 verdicts\n"), "{text}");
    let objects = json(&path, &["--stats"]);
    assert_eq!(objects[0]["all"]["latency"]["p99_ns"], 0);
    assert_eq!(objects[1]["kind"], "end");
}

#[test]
fn of_one_command_each_percentile_is_how_long_it_took() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let arguments = ["--stats", "--opcode", "request sense"];
    let objects = json(&path, &arguments);
    let commands: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "command").collect();
    let [command] = commands[..] else { panic!("one: {commands:?}") };
    let stats = objects.iter().find(|object| object["kind"] == "stats").expect("stats");
    for figure in ["p50_ns", "p90_ns", "p99_ns", "max_ns"] {
        assert_eq!(stats["all"]["latency"][figure], command["duration_ns"], "{figure}");
    }
}

/// A reader of the output that ends early is no failure, with a damaged capture either.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let path = captured(&place, &[]);
    let mut bytes = fs::read(&path).expect("is there");
    bytes[50_000..51_000].fill(0xff);
    fs::write(&path, bytes).expect("is written");
    for pipes in ["", "2>&1"] {
        let script =
            format!("({UASKIT} decode {path} --full; echo code $? >&3) 3>{path}.code {pipes} | head -n 1");
        Command::new("sh").args(["-c", &script]).output().expect("sh starts");
        assert_eq!(fs::read_to_string(format!("{path}.code")).expect("is there"), "code 0\n", "{pipes}");
    }
}

/// REQUEST SENSE that the host cancels after 30.5 s, as usbmon's text has it; the device is on bus 1, address 5.
const NO_RESPONSE: &str = "\
ffff888100000001 1000000 S Bo:1:005:2 -115 31 = 55534243 01000000 00000000 00000615 10000000 00000000 00000000 000000
ffff888100000001 1000100 C Bo:1:005:2 0 31 >
ffff888100000002 1000110 S Bi:1:005:1 -115 13 <
ffff888100000002 1000200 C Bi:1:005:1 0 13 = 55534253 01000000 00000000 01
ffff888100000001 1000300 S Bo:1:005:2 -115 31 = 55534243 02000000 12000000 80000603 00000012 00000000 00000000 000000
ffff888100000001 31500300 C Bo:1:005:2 -104 0
";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn text_of_usbmon_is_decoded_and_a_cancelled_command_had_no_response() {
    let place = Place::new();
    let path = place.file("1u.txt");
    fs::write(&path, format!("Hello,\n\n> {}", NO_RESPONSE.replace('\n', "\n> "))).expect("is written");
    let output = decode(&path, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = text(&output);
    assert!(
        printed.contains("1.5: no response in 30.5 s, then aborted, with REQUEST SENSE: once"),
        "{printed}"
    );
    assert!(!printed.contains("quirks="), "{printed}");
}

#[test]
fn compressed_captures_are_unpacked_whatever_their_names() {
    let place = Place::new();
    let plain = place.file("plain");
    fs::write(&plain, NO_RESPONSE).expect("is written");
    let expected = text(&decode(&plain, &[]));
    for (tool, name) in [("gzip", "a.pcap"), ("xz", "b"), ("zstd", "c.txt")] {
        let Ok(output) = Command::new(tool).args(["-c", &plain]).output() else {
            println!("skipped: {tool} is not installed");
            continue;
        };
        let path = place.file(name);
        fs::write(&path, &output.stdout).expect("is written");
        assert_eq!(text(&decode(&path, &[])), expected, "{tool}");
        fs::write(&path, &output.stdout[..output.stdout.len() - 9]).expect("is written");
        let code = decode(&path, &[]).status.code();
        assert!(matches!(code, Some(1 | DAMAGED)), "{tool}: {code:?}");
    }
}

#[test]
fn one_device_is_selected_and_numbers_are_of_each_drive() {
    let place = Place::new();
    let path = place.file("two.txt");
    fs::write(&path, format!("{NO_RESPONSE}{}", NO_RESPONSE.replace(":005:", ":006:"))).expect("is written");
    let all = json(&path, &["--stats"]);
    assert_eq!(count(&all, &[("kind", "command".into())]), 4);
    let one = json(&path, &["--device", "1.6"]);
    assert_eq!(count(&one, &[("kind", "command".into()), ("device", "1.6".into())]), 2);
    assert_eq!(count(&one, &[("device", "1.5".into())]), 0);
    let of = |device: Value| {
        let stats = all.iter().find(|one| one["kind"] == "stats" && one["device"] == device);
        stats.expect("stats")["all"]["commands"].clone()
    };
    assert_eq!((of(Value::Null), of("1.5".into()), of("1.6".into())), (4.into(), 2.into(), 2.into()));
    let printed = text(&decode(&path, &["--stats", "--quiet"]));
    assert!(printed.contains("\nDrive 1.5\n") && printed.contains("\nAll 2 drives\n"), "{printed}");
    assert_eq!(decode(&path, &["--device", "1-6"]).status.code(), Some(2));
    let printed = text(&decode(&path, &["--device", "9.9"]));
    assert!(
        printed.contains("no command matches the options; the drives of this capture are 1.5, 1.6"),
        "{printed}"
    );
}

#[test]
fn a_capture_without_a_drive_lists_its_devices() {
    let place = Place::new();
    let path = place.file("mouse.txt");
    let events = "\
        f0 100 S Ci:1:002:0 s 80 06 0100 0000 0012 18 <\n\
        f0 200 C Ci:1:002:0 0 18 = 12010002 00000040 6d040ec0 00000000 0001\n\
        f0 300 S Ci:1:002:0 s 80 06 0200 0000 0022 34 <\n\
        f0 400 C Ci:1:002:0 0 34 = 09022200 010100a0 32090400 00010301 02000921 10010001 22340007 05810304\n\
        f0 500 S Ii:1:002:1 -115:8 4 <\n";
    fs::write(&path, events).expect("is written");
    let printed = text(&decode(&path, &[]));
    let line = "  1.2     046d:c00e    HID; transfers: 2 control, 1 interrupt\n";
    assert!(printed.contains("No commands of a drive. Devices in the capture:\n"), "{printed}");
    assert!(printed.contains(line), "{printed}");
    let end = json(&path, &[]).pop().expect("an end");
    assert_eq!(end["devices"][0]["interfaces"][0], "03/01/02");
}

/// Commands of a quiet drive are printed when they complete, and at Ctrl-C the rest.
#[test]
fn from_a_pipe_commands_are_printed_as_they_complete_and_ctrl_c_ends_with_verdicts() {
    for format in [&[][..], &["--json"]] {
        let mut child = Command::new(UASKIT)
            .args(["decode", "-"])
            .args(format)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("uaskit starts");
        let mut events = child.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        // Without the end of the last line, which a writer may still be writing.
        events.write_all(NO_RESPONSE.replace("00 01\n", "00 00\n").as_bytes()).expect("is written");
        events.write_all(b"ffff888100000003 315").expect("is written");
        events.flush().expect("is written");
        let mut first = String::new();
        while !first.contains("MODE SELECT") {
            assert_ne!(lines.read_line(&mut first).expect("a line"), 0, "{first}");
        }
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it runs");
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("no response in 30.5 s, then aborted"), "{first}{rest}");
        assert!(child.wait().expect("it ends").success(), "{rest}");
        drop(events);
    }
}
