//! `uaskit compare --raw`, and the catalogue of parts, as a user calls them.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let mut command = Command::new(UASKIT);
    command.arg("compare").args(arguments).output().expect("uaskit starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = compare(&[arguments, &["--json", "--commands", "300"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn bot_is_flat_and_uas_is_not() {
    let record = json(&["--raw", "--depth", "1,4", "--controller", "none"]);
    let iops = |row: usize, transport: &str| record["rows"][row][transport]["iops"].as_f64().unwrap();
    assert!((iops(1, "bot") / iops(0, "bot") - 1.0).abs() < 1e-6);
    assert!(iops(1, "uas") > 3.9 * iops(0, "uas"));
}

#[test]
fn interrupts_that_keep_their_distance_cost_each_transport_its_phases() {
    let record = json(&["--raw", "--depth", "1"]);
    let mean = |transport: &str| record["rows"][0][transport]["mean_ns"].as_f64().unwrap();
    // 40 us each: wrapper, data, status over BOT; command, and data with status over UAS.
    assert_eq!([mean("bot"), mean("uas")].map(f64::round), [120_000.0, 80_000.0]);
}

#[test]
fn without_a_controller_there_are_ceilings() {
    let of = |controller: &str| {
        let record = json(&["--raw", "--depth", "30", "--block", "64K", "--controller", controller]);
        assert!(record["setup"]["controller"].is_string());
        record["rows"][0]["uas"]["megabytes_per_second"].as_f64().unwrap()
    };
    let [none, chipset, card] = ["none", "chipset", "card"].map(of);
    assert!(none >= chipset && chipset > card, "{none}, {chipset}, {card}");
    assert!((390.0..411.0).contains(&card), "{card}");
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    let print =
        |seed| compare(&["--raw", "--depth", "8", "--commands", "300", "--json", "--seed", seed]).stdout;
    assert_eq!(print("7"), print("7"));
    assert_ne!(print("7"), print("8"));
}

/// Commands go to other places, and take the same time on a plain drive.
#[test]
fn another_seed_has_another_digest() {
    for more in [&[][..], &["--write"], &["--controller", "none"], &["--speed", "high"], &["--hubs", "1"]] {
        let digests = |seed| {
            let arguments = [&["--raw", "--depth", "4", "--seed", seed], more].concat();
            let row = json(&arguments)["rows"][0].take();
            ["bot", "uas"]
                .map(|transport| row[transport]["digest"].as_str().map(str::to_owned).expect("a digest"))
        };
        let (seventh, eighth) = (digests("7"), digests("8"));
        assert_eq!(seventh, digests("7"), "{more:?}");
        assert!(seventh[0] != eighth[0] && seventh[1] != eighth[1], "{more:?}: {seventh:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let print = |threads| {
        let arguments = ["--raw", "--depth", "1,4,8", "--commands", "300", "--json", "--threads", threads];
        compare(&arguments).stdout
    };
    let one = print("1");
    assert!(String::from_utf8_lossy(&one).contains("digest"));
    assert_eq!(print("2"), one);
}

#[test]
fn drives_behind_a_hub_share_what_one_has_for_itself() {
    let of = |drives: &str, hubs: &str| {
        let record = json(&["--raw", "--depth", "8", "--block", "64K", "--drives", drives, "--hubs", hubs]);
        let uas = &record["rows"][0]["uas"];
        let rate = |value: &Value| value["megabytes_per_second"].as_f64().unwrap();
        let each: Vec<_> = uas["drives"].as_array().unwrap().iter().map(rate).collect();
        (rate(uas), each)
    };
    let (alone, _) = of("1", "1");
    let (all, each) = of("3", "1");
    assert!((all / alone - 1.0).abs() < 0.05 && all < 475.0, "{all} of {alone}");
    assert!(each.iter().all(|rate| (rate / (all / 3.0) - 1.0).abs() < 0.1), "{each:?}");
    assert!(of("2", "0").0 > 1.8 * alone);
}

#[test]
fn drives_for_which_there_is_no_port_are_refused() {
    let output = compare(&["--raw", "--drives", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--hubs") && text.contains("root port 3"), "{text}");
}

#[test]
fn a_table_has_a_row_for_each_depth() {
    let output = compare(&["--raw", "--depth", "1,2,30", "--commands", "50", "--write", "--link", "gen2x2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Random writes of 4 KiB, a controller in a chipset, 20 Gb/s"), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.starts_with("│") && !line.contains("depth")).count(),
        3,
        "{text}"
    );
}

#[test]
fn at_high_speed_uas_gains_by_depth_where_commands_are_short_and_costs_the_bus_more_where_they_are_long() {
    for write in [None, Some("--write")] {
        let rates = |block: &str| {
            let arguments = ["--raw", "--speed", "high", "--depth", "8", "--block", block];
            let record = json(&[&arguments[..], write.as_slice()].concat());
            assert_eq!(record["setup"]["link"], "480 Mb/s");
            let rate = |transport| record["rows"][0][transport]["megabytes_per_second"].as_f64().unwrap();
            [rate("bot"), rate("uas")]
        };
        let ([bot_4k, uas_4k], [bot_64k, uas_64k]) = (rates("4K"), rates("64K"));
        assert!(uas_4k > 1.5 * bot_4k, "{uas_4k} of {bot_4k}");
        assert!(uas_64k < bot_64k && bot_64k < 53.248, "{uas_64k} of {bot_64k}");
    }
}

#[test]
fn where_the_time_goes_at_high_speed_adds_up_as_well() {
    for depth in ["1", "8"] {
        let record = json(&["--raw", "--depth", depth, "--explain", "--speed", "high", "--latency", "20"]);
        for transport in ["bot", "uas"] {
            let explained = &record["rows"][0][transport]["explained"];
            let stages = explained["stages_ps"].as_object().unwrap();
            let sum: u64 = stages.values().map(|share| share.as_u64().unwrap()).sum();
            assert_eq!(explained["latency_ps"].as_u64(), Some(sum));
            assert_eq!(stages["drive"].as_u64(), Some(300 * 20_000_000), "{transport} {depth}");
            // Eight packets of 567 bytes at least are 75 us of the bus.
            assert!(stages["link"].as_u64().unwrap() > 300 * 75_000_000, "{transport} {depth}");
        }
    }
}

#[test]
fn where_the_time_goes_adds_up_to_the_picosecond() {
    let record = json(&["--raw", "--depth", "4", "--explain", "--latency", "20"]);
    for transport in ["bot", "uas"] {
        let explained = &record["rows"][0][transport]["explained"];
        let stages = explained["stages_ps"].as_object().unwrap();
        let sum: u64 = stages.values().map(|share| share.as_u64().unwrap()).sum();
        assert_eq!(explained["latency_ps"].as_u64(), Some(sum));
        assert_eq!(stages["drive"].as_u64(), Some(300 * 20_000_000));
        assert_eq!(stages.len(), 8);
        let slowest = &explained["slowest"];
        let longest = slowest["latency_ps"].as_u64().unwrap();
        let stages = slowest["stages_ps"].as_object().unwrap();
        assert_eq!(stages.values().map(|share| share.as_u64().unwrap()).sum::<u64>(), longest);
        assert!(longest * 300 >= sum, "{longest} of {sum}");
    }
    let output = compare(&["--raw", "--depth", "1", "--commands", "50", "--explain"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(" link ┆ drive ┆ waiting").count(), 2, "on average, and of the slowest\n{text}");
}

#[test]
fn components_are_as_busy_as_their_lanes_and_requests_make_them() {
    let record = json(&["--raw", "--depth", "30"]);
    let uas = &record["rows"][0]["uas"]["components"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{uas:#}"));
    let device = &uas["links"][0]["device"];
    let rate = number(&device["payload_bytes"]) * 1e3 / number(&record["rows"][0]["uas"]["elapsed_ns"]);
    // Payload and what is around it, of the 500 MB/s that the symbols of a lane are.
    assert!(number(&device["busy"]) > rate / 500.0 && number(&device["busy"]) < 1.0, "{rate} {device:#}");
    assert!(number(&uas["links"][0]["host"]["busy"]) < 0.2);
    assert!(number(&uas["controller"]["interrupts"]) < number(&uas["controller"]["tds"]) / 4.0);
    let output = compare(&["--raw", "--depth", "30", "--commands", "50", "--components"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for name in ["link 1, host to device", "link 1, device to host", "controller", "medium 1"] {
        assert_eq!(text.matches(name).count(), if name == "controller" { 3 } else { 2 }, "{name}\n{text}");
    }
}

#[test]
fn links_below_hubs_carry_what_the_link_above_does_and_a_bus_is_as_busy_as_its_packets() {
    let record = json(&["--raw", "--depth", "30", "--drives", "2", "--hubs", "1"]);
    let uas = &record["rows"][0]["uas"]["components"];
    let payload = |link: &Value| link["device"]["payload_bytes"].as_f64().unwrap();
    let below = uas["links_below"].as_array().unwrap();
    assert_eq!(below.len(), 2, "{uas:#}");
    // But for what was on its way through the hub when it was counted.
    let all = below.iter().map(payload).sum::<f64>();
    assert!((all / payload(&uas["links"][0]) - 1.0).abs() < 0.01, "{uas:#}");
    let full = ["--raw", "--speed", "full", "--controller", "chipset", "--depth", "1", "--hubs", "1"];
    let record = json(&full);
    let bot = &record["rows"][0]["bot"]["components"];
    let [above, below] = ["buses", "buses_below"].map(|buses| &bot[buses][0]);
    // 12 Mb/s, of which 11 and a half at most are payload; the bus above has 480.
    let seconds = record["rows"][0]["bot"]["elapsed_ns"].as_f64().unwrap() / 1e9;
    let share = below["payload_bytes"].as_f64().unwrap() * 8.0 / seconds / 12e6;
    let busy = below["busy"].as_f64().unwrap();
    assert!(busy > share && busy < 1.0 && share > 0.5, "{share} {bot:#}");
    assert!(above["busy"].as_f64().unwrap() < busy / 4.0, "{bot:#}");
    assert_eq!(bot["bus_payload_bytes"][0], above["payload_bytes"]);
}

#[test]
fn parts_have_shares_of_the_time_for_core_bridge_cable_and_drive() {
    let asked =
        ["--driver", "linux-uas", "--bridge", "jms580", "--drive", "dramless-240", "--hub", "superspeed-4"];
    let measured = ["--block", "4K", "--depth", "8", "--seconds", "0.01"];
    let output = compare(&[&asked[..], &measured, &["--json"]].concat());
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let results = record["rows"][0]["results"].as_object().unwrap();
    let (_, result) = results.iter().next().unwrap();
    let parts = &result["components"];
    let share = |value: &Value| value.as_f64().filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
    let (bridge, store) = (&parts["bridges"][0], &parts["stores"][0]);
    for one in [
        &parts["core"]["busy"],
        &parts["links_below"][0]["device"]["busy"],
        &bridge["firmware_busy"],
        &store["cable_busy"],
        &store["drive_busy"],
    ] {
        assert!(share(one).is_some(), "{parts:#}");
    }
    // Each has been at work as long as it is billed for.
    let elapsed = result["elapsed_ns"].as_f64().unwrap();
    for (part, busy) in
        [("core", &parts["core"]["busy"]), ("bridge", &bridge["busy"]), ("drive", &store["drive_busy"])]
    {
        let billed = result["power"]["at_work_ns"][part].as_f64().unwrap() / elapsed;
        assert!((busy.as_f64().unwrap() - billed).abs() < 0.01, "{part}: {billed} {parts:#}");
    }
    let output = compare(&[&asked[..], &measured, &["--components"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    for name in
        ["link below hubs 1, device to host", "host core", "bridge 1 firmware", "SATA cable 1", "drive 1"]
    {
        assert_eq!(text.matches(name).count(), 1, "{name}\n{text}");
    }
}

#[test]
fn a_trace_ends_with_the_last_command_that_was_asked_for() {
    let output = compare(&["--raw", "--depth", "1", "--commands", "50", "--trace", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for (heading, ends) in [("BOT at QD1", 3), ("UAS at QD1", 3)] {
        let run = text.split(heading).nth(1).unwrap().split("QD").next().unwrap();
        // TEST UNIT READY comes before the two.
        assert_eq!(run.matches("command 0.0 ends").count(), ends, "{run}");
        assert!(run.contains("READ(10), 4096 bytes") && run.contains("done in 60.000 us"), "{run}");
    }
    assert!(text.contains("DATA 1 IN stream 1 number"), "{text}");
}

#[test]
fn a_capture_has_both_transports_and_says_how_much_it_has() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/both.pcapng");
    let record = json(&["--raw", "--depth", "2", "--capture", file]);
    let bytes = std::fs::read(file).unwrap();
    let interface_block = |window: &[u8]| window[..4] == [1, 0, 0, 0] && window[5..] == [0; 3];
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(
        bytes.windows(8).filter(|window| interface_block(window)).count() >= 2,
        "an interface for each run"
    );
    let records = record["capture"]["records"].as_u64().unwrap();
    // Three transfers for each command, two records for each transfer.
    assert!(records > 2 * 6 * 300 && records < 2 * 6 * 320, "{records}");
    let alone = json(&["--raw", "--depth", "2"]);
    assert_eq!(record["rows"][0], alone["rows"][0], "a capture changes nothing");
}

#[test]
fn an_older_capture_stays_until_a_newer_one_is_whole() {
    let place = Place::new();
    let (file, folder) = (PathBuf::from(place.file("good.pcapng")), place.file(""));
    let name = file.to_str().unwrap();
    let written = compare(&["--raw", "--depth", "1", "--commands", "50", "--capture", name]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let good = std::fs::read(&file).unwrap();
    for (refused, code) in [
        (&["--raw", "--depth", "8", "--commands", "1"][..], 2),
        (&["--raw", "--drives", "300"], 2),
        (&["--block", "100"], 2),
    ] {
        let output = compare(&[refused, &["--capture", name]].concat());
        assert_eq!(output.status.code(), Some(code), "{refused:?}");
        assert!(std::fs::read(&file).unwrap() == good, "{refused:?} changes it");
    }
    // Nor is anything left beside it, neither of those nor of the whole one.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let other = compare(&["--raw", "--depth", "2", "--commands", "50", "--capture", name]);
    assert!(other.status.success() && std::fs::read(&file).unwrap() != good);
}

#[test]
fn a_capture_that_cannot_be_written_names_its_file() {
    let all = [
        ("/nowhere/both.pcapng", 2, "its folder /nowhere does not exist"),
        ("/dev/full", 1, "No space left"),
    ];
    for (file, code, reason) in all {
        let output = compare(&["--raw", "--depth", "1", "--commands", "300", "--capture", file]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && text.contains(file) && text.contains(reason), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for wrong in [
        &["--raw", "--block", "1000"][..],
        &["--raw", "--block", "5G"],
        &["--raw", "--depth", "63"],
        &["--raw", "--trace", "3", "--json"],
        &["--raw", "--snap", "64"],
        &["--raw", "--capture-as", "packets"],
        &[
            "--raw",
            "--commands",
            "1",
            "--capture",
            "/dev/null",
            "--depth",
            "1,".repeat(64).trim_end_matches(','),
        ],
        &["--raw", "--controller", "asm1042"],
        &["--latency", "5"],
        &["--depth", "257"],
        &["--block", "1T"],
        &["--raw", "--power-states", "--block", "64K"],
        &["--raw", "--power-states", "--write"],
        &["--raw", "--power-states", "--drives", "2"],
        &["--depth", "1", "--commands", "5"],
    ] {
        let output = compare(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_misspelt_part_is_offered_the_one_that_was_meant() {
    for (wrong, meant) in [
        (["--bridge", "asm1153x"], "Did you mean `asm1153`?"),
        (["--drive", "disk-7201"], "Did you mean `disk-7200`?"),
        (["--setup", "geeling"], "Did you mean `geerling`?"),
        (["--workload", "workstatoin"], "Did you mean `workstation`?"),
        (["--sweep", "depht=1"], "Did you mean `depth`?"),
        (["--sweep", "bridge=jms576"], "Did you mean `jms5"),
    ] {
        let output = compare(&wrong);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(meant), "{wrong:?}: {text}");
    }
    let output = compare(&["--bridge", "zzz"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("Did you mean") && text.contains("Known bridges: "), "{text}");
}

#[test]
fn what_is_beyond_a_limit_is_refused_with_the_limit() {
    for (wrong, limit) in [
        (&["--raw", "--block", "5M"][..], "a command moves at most 4194304 bytes"),
        (&["--raw", "--block", "15M", "--controller", "none"], "a command moves at most 8388608 bytes"),
        (&["--raw", "--depth", "8", "--commands", "1"], "measure more than 8 commands"),
        (&["--raw", "--drives", "15", "--hubs", "5"], "the controller has 64 endpoints"),
        (&["--raw", "--threads", "65535"], "more threads are not faster"),
        (&["--threads", "65535"], "more threads are not faster"),
    ] {
        let output = compare(wrong);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {stderr}");
        assert!(stderr.contains(limit), "{wrong:?}: {stderr}");
    }
}

#[test]
fn parts_of_one_drive_of_several_add_up_to_its_own_mean() {
    let record = json(&["--raw", "--depth", "4", "--explain", "--drives", "2"]);
    for way in ["bot", "uas"] {
        let run = &record["rows"][0][way];
        let (explained, drive) = (&run["explained"], &run["drives"][0]);
        assert_eq!(explained["commands"], drive["commands"], "{way}");
        let mean_ps = explained["latency_ps"].as_u64().unwrap() / explained["commands"].as_u64().unwrap();
        assert_eq!((drive["mean_ns"].as_f64().unwrap() * 1e3).round() as u64, mean_ps, "{way}");
    }
}

#[test]
fn a_link_that_sleeps_costs_a_command_its_way_back_and_saves_energy() {
    // Nothing within 50 us, 10 us out of U1, 2,047 us out of U2. A controller whose interrupts wait for 40 us makes 50 us of 20.
    for (controller, costs) in [("none", [0.0, 10.0, 10.0, 2047.0]), ("chipset", [10.0, 10.0, 10.0, 2047.0])]
    {
        let record = json(&["--raw", "--depth", "1", "--power-states", "--controller", controller]);
        let pauses = record["power_states"].as_array().unwrap();
        let more = |pause: &Value| {
            let mean = |link: &str| pause[link]["mean_ns"].as_f64().unwrap();
            ((mean("asleep") - mean("awake")) / 1e3).round()
        };
        assert_eq!(pauses.iter().map(more).collect::<Vec<_>>(), costs);
        let joules = |link: &str| pauses[2][link]["joules"].as_f64().unwrap();
        assert!(joules("asleep") < joules("awake"));
    }
    let output = compare(&["--raw", "--depth", "1", "--power-states", "--speed", "high"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn parts_are_listed_with_where_their_numbers_are_from() {
    let text = String::from_utf8(compare(&["--list-parts"]).stdout).unwrap();
    assert!(text.contains("vertex3-240") && text.contains("disk-7200"), "{text}");
    let record: Value = serde_json::from_slice(&compare(&["--list-parts", "--json"]).stdout).unwrap();
    for constant in record.as_array().unwrap().iter().flat_map(|part| part["constants"].as_array().unwrap()) {
        assert!(constant["source"].is_string() || constant["fitted"].is_array(), "{constant}");
    }
}

#[test]
fn a_folder_of_parts_is_read_and_its_errors_are_reported() {
    let folder = Place::new();
    let parts = PathBuf::from(folder.file("ssd"));
    std::fs::create_dir(&parts).unwrap();
    let own = include_str!("../../study/parts/ssd/m4-256.toml");
    std::fs::write(parts.join("mine.toml"), own).unwrap();
    let run = || compare(&["--list-parts", "--parts", &folder.file("")]);
    assert!(String::from_utf8(run().stdout).unwrap().contains("mine"));
    std::fs::write(parts.join("mine.toml"), own.replace("unit = \"us\"", "unit = \"hours\"")).unwrap();
    let output = run();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.contains("mine.toml, line 6: invalid unit `hours`, expected `ps`, `ns`, `us`, `ms` or `s`"),
        "{stderr}"
    );
    std::fs::remove_dir_all(&parts).unwrap();
    std::fs::create_dir(folder.file("floppies")).unwrap();
    assert!(String::from_utf8(run().stderr).unwrap().contains("is not a folder of parts"));
}
