//! `uaskit compare` and `uaskit validate` over real parts, as a user calls them.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::process::{Command, Output};

/// Recorded machines.
const TREES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees");

fn run(arguments: &[&str]) -> Output {
    Command::new(UASKIT).args(arguments).output().expect("uaskit starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rate(record: &Value, depth: usize, column: &str) -> f64 {
    let mut rows = record["rows"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["depth"] == depth).expect("a row of this depth");
    row["results"][column]["megabytes_per_second"].as_f64().expect("a figure")
}

#[test]
fn without_arguments_four_ways_to_one_drive_are_compared() {
    let output = run(&["compare"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for name in ["sata", "bot", "turbo", "uasp", "4K random read", "512K sequential write", "80 % read"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn depth_helps_uasp_and_the_cable_and_not_bot() {
    let record = json(&["compare", "--depth", "1,8"]);
    let gain = |column| rate(&record, 8, column) / rate(&record, 1, column);
    assert!((0.97..1.03).contains(&gain("bot")), "{}", gain("bot"));
    assert!(gain("uasp") > 2.5, "{}", gain("uasp"));
    assert!(gain("sata") > 2.5, "{}", gain("sata"));
    let parts = record["parts"].as_array().unwrap();
    assert!(
        parts
            .iter()
            .any(|part| part["name"] == "asm1051e" && !part["constants"].as_array().unwrap().is_empty())
    );
}

#[test]
fn figures_do_not_depend_on_threads_and_change_with_the_seed() {
    let of = |more: &[&str]| run(&[&["compare", "--depth", "1,4", "--json"], more].concat()).stdout;
    assert_eq!(of(&["--threads", "1"]), of(&["--threads", "2"]));
    assert_ne!(of(&["--seed", "1"]), of(&["--seed", "2"]));
}

#[test]
fn parts_take_the_place_of_those_of_a_setup() {
    let slow = json(&["compare", "--depth", "4", "--drive", "disk-7200", "--transport", "uas"]);
    let columns = slow["columns"].as_array().unwrap();
    assert_eq!((columns.len(), &columns[0]["drive"]), (1, &Value::from("disk-7200")));
    assert!(rate(&slow, 4, "uasp") < 3.0, "a disk has to seek");
    let linux = json(&[
        "compare",
        "--depth",
        "4",
        "--driver",
        "linux-uas",
        "--controller",
        "vl805",
        "--bridge",
        "jms580",
    ]);
    assert!(rate(&linux, 4, "linux-uas") > 20.0);
}

#[test]
fn where_the_time_of_a_command_goes_adds_up() {
    let record = json(&["compare", "--depth", "1,8", "--explain"]);
    for row in record["rows"].as_array().unwrap() {
        for column in ["sata", "bot", "uasp"] {
            let explained = &row["results"][column]["explained"];
            let stages = explained["stages_ps"].as_object().unwrap();
            let sum: u64 = stages.values().map(|stage| stage.as_u64().unwrap()).sum();
            assert_eq!(sum, explained["latency_ps"].as_u64().unwrap());
            assert_eq!(stages["bridge"].as_u64().unwrap() > 0, column != "sata");
            assert!(stages["driver"].as_u64().unwrap() > 0 && stages["drive"].as_u64().unwrap() > 0);
        }
    }
    let text = String::from_utf8(run(&["compare", "--depth", "1,8", "--explain"]).stdout).unwrap();
    assert!(text.contains("in each stage, us"), "{text}");
}

#[test]
fn hubs_share_the_bus_of_usb_2_and_translate_for_what_is_slower() {
    let rate = |speed: &str, hubs: &[&str]| {
        let asked = ["compare", "--speed", speed, "--depth", "1", "--block", "64K", "--transport", "bot"];
        let record = json(&[&asked[..], hubs].concat());
        record["rows"][0]["results"]["bot"]["megabytes_per_second"].as_f64().unwrap()
    };
    let hub = ["--hub", "superspeed-4"];
    for (speed, most) in [("high", 49.152), ("full", 1.216)] {
        let (without, behind) = (rate(speed, &[]), rate(speed, &hub));
        assert!(behind < without && behind < most && behind > 0.8 * without, "{speed}: {without}, {behind}");
    }
}

#[test]
fn at_high_speed_nothing_is_faster_than_the_bus() {
    let record = json(&["compare", "--speed", "high", "--depth", "4"]);
    for name in ["bot", "turbo", "uasp"] {
        assert!(rate(&record, 4, name) <= 53.248, "{record}");
    }
}

#[test]
fn a_driver_that_cannot_leaves_the_drive_to_another_and_says_why() {
    let arguments = ["compare", "--driver", "linux-uas", "--controller", "asm1042", "--depth", "1"];
    let text = String::from_utf8(run(&arguments).stdout).unwrap();
    assert!(text.contains("BOT, driver linux-usb-storage"), "{text}");
}

#[test]
fn a_transport_that_no_variant_runs_on_is_refused_with_the_reason() {
    let output = run(&["compare", "--driver", "linux-uas", "--transport", "uas"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("setup myce: no variant matches"), "{stderr}");
    assert!(stderr.contains("linux-uas: BOT, driver linux-usb-storage: the ASMedia chip"), "{stderr}");
}

#[test]
fn a_setup_file_is_read_and_its_errors_have_their_line() {
    let folder = Place::new();
    let file = folder.file("mine.toml");
    let text = "title = \"mine\"\nsource = \"me\"\n[all]\nhost = \"desktop-2012\"\nspeed = \"gen1\"\n\
                controller = \"intel-7-series\"\nbridge = \"jms567\"\ndrive = \"m4-256\"\n\
                [variant.a]\ndriver = \"linux-uas\"\n";
    std::fs::write(&file, text).unwrap();
    let record = json(&["compare", "--depth", "2", "--setup", &file]);
    assert!(rate(&record, 2, "a") > 5.0);
    std::fs::write(&file, text.replace("jms567", "jms999")).unwrap();
    let stderr = String::from_utf8(run(&["compare", "--setup", &file]).stderr).unwrap();
    assert!(stderr.contains("mine.toml, line 7") && stderr.contains("jms999"), "{stderr}");
}

#[test]
fn an_unknown_part_is_an_error_that_lists_the_known_ones() {
    for (wrong, known) in [
        (&["--bridge", "asm9999"][..], "asm1153"),
        (&["--drive", "floppy"], "disk-7200"),
        (&["--setup", "nowhere"], "hardware-fr"),
        (&["--workload", "nothing"], "workstation"),
        (&["--driver", "mcci"], "mcci-uasp"),
    ] {
        let output = run(&[&["compare"], wrong].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr.contains(known), "{stderr}");
    }
}

#[test]
fn published_rows_are_decided_with_their_reasons() {
    let record = json(&["validate", "--only", "Geerling"]);
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    // UAS or not, by the parts alone.
    assert_eq!(row("P089")["verdict"], "holds");
    assert_eq!(row("P088")["verdict"], "figure");
    assert!(row("P088")["error"].as_f64().unwrap().abs() < 0.2);
    assert_eq!(row("P087")["verdict"], "undecided");
    assert!(!row("P087")["reason"].as_str().unwrap().is_empty());
    let none = run(&["validate", "--only", "no such article"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn a_row_alone_has_no_empty_tables() {
    for (row, has_claims) in [("P056", false), ("P093", true)] {
        let output = run(&["validate", "--only", row]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            (stdout.contains("Claims"), stdout.contains("published")),
            (has_claims, !has_claims),
            "{stdout}"
        );
    }
}

#[test]
fn power_is_reported_by_part_and_adds_up() {
    let record = json(&["compare", "--depth", "1", "--transport", "sata,uas"]);
    for column in ["sata", "uasp"] {
        let power = &record["rows"][0]["results"][column]["power"];
        let number = |name: &str| power[name].as_f64().expect("a number");
        let parts = power["joules_by_part"].as_object().unwrap();
        let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
        assert!((sum / number("joules") - 1.0).abs() < 1e-9, "{power}");
        assert!(number("peak_watts") >= number("mean_watts") * 0.999, "{power}");
    }
    let parts = record["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["kind"] == "power" && part["name"] == "desktop-2012"));
    let text = String::from_utf8(run(&["compare", "--depth", "1", "--transport", "uas"]).stdout).unwrap();
    assert!(text.contains("J/GB") && !text.contains("peak"), "{text}");
}

#[test]
fn a_measurement_of_hardware_is_laid_beside_its_transport() {
    let folder = Place::new();
    let file = folder.file("record.json");
    let measured = Command::new(UASKIT)
        .args(["bench", "--virtual", "--size", "16M", "--rw", "randread", "--bs", "4k", "--depth", "4"])
        .args(["--seconds", "0.05", "--rounds", "1", "--json"])
        .output()
        .unwrap();
    let measured = String::from_utf8(measured.stdout).unwrap();
    std::fs::write(&file, &measured).unwrap();
    assert_no_error_of_a_virtual_drive(&file);
    let of_hardware = measured.replace("\"kind\": \"virtual\"", "\"kind\": \"block-device\"");
    assert_ne!(of_hardware, measured);
    std::fs::write(&file, of_hardware).unwrap();
    let record = json(&["compare", "--against", &file]);
    let row = &record["rows"][0];
    assert_eq!((&row["transport"], &row["depth"]), (&"uas".into(), &4.into()), "{record}");
    let beside = row["simulated"].as_array().unwrap();
    assert_eq!(beside.len(), 1, "{record}");
    let number = |value: &Value| value.as_f64().unwrap();
    let ratio = number(&beside[0]["megabytes_per_second"]) / number(&row["measured_megabytes_per_second"]);
    assert!((ratio - 1.0 - number(&beside[0]["error"])).abs() < 1e-9, "{record}");
    let of_bot =
        String::from_utf8(run(&["compare", "--against", &file, "--transport", "bot"]).stdout).unwrap();
    assert!(of_bot.contains("the setup has no such transport: uas") && !of_bot.contains("% "), "{of_bot}");
    let page = folder.file("page.html");
    let output = run(&["compare", "--against", &file, "--report", &page]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.starts_with("- The largest error is "), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    let has = ["measured and simulated", "4K random read, uas, QD4", "The largest error is ", "<svg"];
    assert!(has.iter().all(|part| html.contains(part)) && !html.contains("https:"), "{html}");
    std::fs::write(&file, "{\"rows\": 3}").unwrap();
    let output = run(&["compare", "--against", &file]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("not a record of uaskit bench"), "{stderr}");
}

/// A drive in memory has no link and no medium, so an error would say nothing about the setup.
fn assert_no_error_of_a_virtual_drive(file: &str) {
    let record = json(&["compare", "--against", file]);
    assert_eq!(record["is_virtual"], true, "{record}");
    assert!(record["rows"][0]["simulated"][0]["error"].is_null(), "{record}");
    let text = String::from_utf8(run(&["compare", "--against", file]).stdout).expect("the program runs");
    assert!(text.starts_with("- The record is of a virtual drive"), "{text}");
    assert!(!text.contains(" %"), "{text}");
}

#[test]
fn what_options_leave_out_or_keep_is_printed() {
    let with = |more: &[&'static str]| {
        let usual = ["compare", "--depth", "1", "--seconds", "0.002"];
        String::from_utf8(run(&[&usual[..], more].concat()).stdout).unwrap().replace("\n  ", " ")
    };
    let text = with(&["--os", "linux"]);
    let note = "Left out by --os linux: bot, turbo and uasp. Compared: sata.";
    assert!(text.contains(note) && !text.contains("Kept"), "{text}");
    let text = with(&["--transport", "bot,uas"]);
    assert!(
        text.contains("Left out by --transport bot,uas: sata and turbo. Compared: bot and uasp."),
        "{text}"
    );
    let text = with(&["--controller", "vl805"]);
    let unchanged = "Kept: host desktop-2012 (Desktop of 2012, four cores at 3.4 GHz); --host replaces it.";
    assert!(text.contains(unchanged) && text.contains("Unchanged: sata, which has no USB part."), "{text}");
    let text = with(&["--controller", "vl805", "--host", "raspberry-pi-4"]);
    assert!(!text.contains("Kept:"), "{text}");
    let text = with(&["--driver", "linux-uas"]);
    assert!(text.contains("Left out by --driver: sata, which uses no USB."), "{text}");
    assert!(!with(&[]).contains("Left out"));
    let record = json(&["compare", "--depth", "1", "--seconds", "0.002", "--os", "linux"]);
    assert_eq!(record["notes"], serde_json::json!([note]));
}

#[test]
fn links_sleep_with_power_states_and_the_time_is_reported() {
    let arguments = ["compare", "--setup", "geerling", "--depth", "1", "--block", "4K", "--seconds", "0.05"];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    let record = json(&with(&["--power-states"]));
    let bot =
        |record: &Value, state: &str| record["rows"][0]["results"]["bot"]["power"]["link_ns"][state].as_f64();
    assert!(bot(&record, "u1").unwrap() > 0.0 && bot(&record, "exit").unwrap() > 0.0, "{record:#}");
    let awake = json(&arguments);
    assert_eq!(bot(&awake, "u1"), Some(0.0));
    let text = String::from_utf8(run(&with(&["--power-states"])).stdout).unwrap();
    // There is no such state on a bus of USB 2.0.
    assert!(text.contains("Time that links spent in U1") && text.contains("pi3-bot U1"), "{text}");
}

#[test]
fn simulated_hardware_is_judged_by_the_same_rules() {
    let text = String::from_utf8(run(&["why", "--simulate", "geerling"]).stdout).unwrap();
    assert!(text.contains("uasp: ASMedia ASM1153") && text.contains("every rule is met"), "{text}");
    assert!(text.contains("NOT MET") && text.contains("does not support scatter-gather lists"), "{text}");
    assert!(text.contains("does the host controller support scatter-gather lists?"), "{text}");
    assert!(text.contains("uaskit compare --setup geerling;"), "{text}");
    let record = json(&["why", "--simulate", "geerling"]);
    let uasp = record["variants"].as_array().unwrap().iter().find(|of| of["variant"] == "uasp").unwrap();
    assert_eq!(uasp["transport"], "uas");
    let ways: Vec<_> = uasp["ways"].as_array().unwrap().iter().map(|way| &way["transport"]).collect();
    assert_eq!(ways, ["bot", "uas"]);
    assert!(uasp["ways"][1]["runs"][1]["megabytes_per_second"].as_f64().unwrap() > 1.0);
    assert_eq!(run(&["why", "--simulate", "nowhere"]).status.code(), Some(2));
}

#[test]
fn a_full_disk_is_reported() {
    let all =
        ["compare --list-parts", "completions bash", "man", "--help", "-h", "--version", "bench --help"];
    for arguments in all.map(|words| words.split(' ').collect::<Vec<_>>()) {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(UASKIT).args(&arguments).stdout(full).output().expect("uaskit starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && stderr.contains("No space left"),
            "{arguments:?}: {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn a_closed_pipe_on_standard_output_ends_a_command_quietly() {
    let place = Place::new();
    let (capture, guest) = (place.file("two.pcapng"), format!("{TREES}/guest.tree"));
    let short = ["compare", "--raw", "--depth", "1", "--commands", "20"];
    let captured = Command::new(UASKIT).args(short).args(["--capture", &capture]).output();
    assert!(captured.expect("uaskit starts").status.success());
    let runs = place.file("runs.db");
    let saved = Command::new(UASKIT).args(short).arg(format!("--save={runs}")).output();
    assert!(saved.expect("uaskit starts").status.success());
    for arguments in [
        &["list", "--from", &guest][..],
        &["list", "--udev", "--from", &guest],
        &["why", "--from", &guest],
        &["decode", &capture],
        &["decode", "--json", &capture],
        &["history", "--file", &runs],
        &["compare", "--list-parts"],
        &["compare", "--depth", "1", "--block", "4K", "--seconds", "0.01", "--transport", "uas"],
        &short,
        &["bench", "--virtual", "--size", "1M", "--rw", "randread", "--seconds", "0.01", "--rounds", "1"],
        &["completions", "bash"],
        &["man"],
        &["--version"],
        &["compare", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(UASKIT).args(arguments).stdout(writer).output().expect("uaskit starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{arguments:?}");
    }
}

/// Fifteen ways have nine pairs that differ in the driver alone; a reader gets a handful of sentences.
#[test]
fn of_many_columns_the_fastest_and_the_best_and_worst_pair_are_reported() {
    let short = ["--block", "4K", "--depth", "1,4", "--seconds", "0.002"];
    let output = run(&[&["compare", "--setup", "hardware-fr"], &short[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let findings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert!(output.status.success() && (3..=6).contains(&findings.len()), "{findings:?}");
    let reads = findings.iter().find(|one| one.starts_with("4K random read at QD4: SATA is fastest, "));
    let reads = reads.expect("a finding about reads");
    assert!(
        reads.contains("; over USB, ") && reads.contains(" of 9 pairs of BOT and UAS, best: "),
        "{reads}"
    );
    assert!(!text.contains(" a ASMedia") && text.contains("the streams of the ASMedia ASM1042"), "{text}");
}

#[test]
fn five_findings_come_first_and_the_others_are_asked_for() {
    let findings = |more: &[&str]| -> Vec<String> {
        let output = run(&[&["compare", "--seconds", "0.002"], more].concat());
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (before, _) = text.split_once("MB/s (10^6 bytes)").expect("the table");
        before.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect()
    };
    let (first, all) = (findings(&[]), findings(&["--findings", "all"]));
    assert!(first.len() == 6 && all.len() > 6 && first[..5] == all[..5], "{first:?} {all:?}");
    assert_eq!(first[5], format!("- {} more findings: --findings all", all.len() - 5));
    let reads = all.iter().find(|one| one.starts_with("- 4K random read: UASP is ")).expect("it is there");
    assert!(
        reads.ends_with(" and saturates at QD4, where the host core is the bottleneck")
            && first.contains(reads),
        "{reads}"
    );
    assert_eq!(findings(&["--findings", "1"]).len(), 2);
    assert_eq!(run(&["compare", "--findings", "some"]).status.code(), Some(2));
}

#[test]
fn a_title_names_the_parts_that_replace_those_of_the_setup() {
    let output = run(&[
        "compare",
        "--drive",
        "disk-7200",
        "--bridge",
        "jms580",
        "--transport",
        "bot",
        "--block",
        "4K",
        "--depth",
        "1",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("Setup myce with bridge jms580 and drive disk-7200\n"), "{text}");
    assert!(text.contains("\n    Desktop of 2012, four cores at 3.4 GHz; MCCI BOT"), "{text}");
    let output = run(&["compare", "--workload", "workstation", "--write"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--workload cannot be combined with --write: "), "{text}");
}

#[test]
fn a_folder_of_one_kind_is_not_a_folder_of_parts() {
    let refused = run(&["compare", "--list-parts", "--parts", "../study/parts/bridges"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("has no folders of parts") && stderr.contains("bridges"), "{stderr}");
}
