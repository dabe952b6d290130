//! `--save`, `uaskit history` and `uaskit diff`, as a user calls them.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};

/// Calls the program with a data folder of the test's own.
fn uaskit(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(UASKIT);
    command.args(arguments).env("XDG_DATA_HOME", place.file("data")).stdin(Stdio::null());
    command.output().expect("uaskit starts")
}

#[track_caller]
fn succeeds(place: &Place, arguments: &[&str]) -> (String, String) {
    let output = uaskit(place, arguments);
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{arguments:?}: {err}");
    (out, err)
}

#[track_caller]
fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeeds(place, &[arguments, &["--json"]].concat()).0).expect("JSON")
}

/// Ends with this exit code and says this.
#[track_caller]
fn fails(place: &Place, arguments: &[&str], code: i32, says: &str) {
    let output = uaskit(place, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), text.contains(says)),
        (Some(code), true),
        "{says:?} is not in {text:?}"
    );
}

const BENCH: [&str; 12] = [
    "bench",
    "--virtual",
    "--size",
    "16M",
    "--rw",
    "randread",
    "--depth",
    "4",
    "--seconds",
    "0.02",
    "--rounds",
    "3",
];

fn bench(place: &Place, more: &[&str]) -> (String, String) {
    succeeds(place, &[&BENCH[..], more].concat())
}

const COMPARE: [&str; 8] = ["compare", "--transport", "uas,bot", "--block", "4K", "--depth", "1,4", "--save"];

#[test]
fn a_benchmark_is_saved_in_the_data_folder_and_the_place_is_printed() {
    let place = Place::new();
    let (out, err) = bench(&place, &["--json", "--save", "--label", "before"]);
    let file = place.file("data/uaskit/runs.sqlite");
    assert!(err.contains(&format!("saved as run 1 in {file}")), "{err}");
    let record: Value = serde_json::from_str(&out).expect("standard output has the figures alone");
    let runs = json(&place, &["history"]);
    assert_eq!(
        (&runs[0]["run"], &runs[0]["label"], &runs[0]["kind"]),
        (&1.into(), &"before".into(), &"measured".into())
    );
    let run = json(&place, &["history", "before"]);
    let rounds = run["results"][0]["figures"]["iops_of_rounds"].as_array().map(Vec::len);
    assert_eq!((rounds, &run["results"][0]["figures"]["iops"]), (Some(3), &record["rows"][0]["iops"]));
    let (exported, _) = succeeds(&place, &["history", "1", "--export"]);
    assert_eq!(serde_json::from_str::<Value>(&exported).expect("JSON"), record);
}

#[test]
fn what_was_exported_can_be_laid_beside_a_simulation() {
    let place = Place::new();
    bench(&place, &["--save"]);
    let (record, _) = succeeds(&place, &["history", "last", "--export"]);
    let file = place.file("record.json");
    fs::write(&file, record).expect("a file can be written");
    succeeds(&place, &["compare", "--transport", "uas", "--against", &file]);
}

#[test]
fn runs_are_chosen_by_drive_setup_and_label() {
    let place = Place::new();
    bench(&place, &["--save", "--label", "one"]);
    bench(&place, &["--save", "--label", "two"]);
    succeeds(&place, &COMPARE);
    let numbers = |arguments: &[&str]| -> Vec<i64> {
        let runs = json(&place, &[&["history"], arguments].concat());
        runs.as_array().expect("a list").iter().map(|run| run["run"].as_i64().expect("a number")).collect()
    };
    assert_eq!(numbers(&[]), [3, 2, 1]);
    assert_eq!(numbers(&["--drive", "virtual drive"]), [2, 1]);
    assert_eq!(numbers(&["--setup", "myce"]), [3]);
    assert_eq!(numbers(&["--label", "tw"]), [2]);
    assert_eq!(numbers(&["--limit", "1"]), [3]);
    succeeds(&place, &["history", "two", "--delete"]);
    assert_eq!(numbers(&[]), [3, 1]);
}

#[test]
fn the_same_simulation_twice_is_the_same_event_for_event() {
    let place = Place::new();
    succeeds(&place, &COMPARE);
    succeeds(&place, &COMPARE);
    let diff = json(&place, &["diff", "last~1", "last"]);
    let changes = diff["diff"]["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 4);
    assert!(changes.iter().all(|change| change["verdict"] == "same" && change["why"] == "identical events"));
}

#[test]
fn another_part_is_a_difference_and_its_effect_is_an_improvement() {
    let place = Place::new();
    succeeds(&place, &COMPARE);
    succeeds(&place, &[&COMPARE[..], &["--bridge", "jms580"]].concat());
    let (text, _) = succeeds(&place, &["diff", "1", "2", "--same", "1"]);
    assert!(text.contains("bot, bridge: asm1051e → jms580"), "{text}");
    assert!(text.contains(" better: simulated: spread over seeds"), "{text}");
}

#[test]
fn a_simulated_run_is_saved_with_its_latencies() {
    let place = Place::new();
    let (printed, _) = succeeds(&place, &[&COMPARE[..], &["--seconds", "0.01"]].concat());
    assert!(
        printed.contains("These figures are of seed 1; the saved run has means over five seeds."),
        "{printed}"
    );
    let run = json(&place, &["history", "last"]);
    let rows = run["results"].as_array().expect("a list");
    for row in rows {
        let us = |name: &str| row["figures"][name].as_f64();
        let [mean, p50, p99, max] = ["mean_us", "p50_us", "p99_us", "max_us"].map(us);
        assert!(p50 > Some(0.0) && p50 <= p99 && p99 <= max && mean <= max, "{row}");
        let percentiles = row["figures"]["percentiles_us"].as_array().expect("a list");
        assert_eq!(percentiles.last(), Some(&serde_json::json!([100.0, max])), "{row}");
    }
    // Of the thousandth part of some hundreds of requests nothing is known.
    assert_eq!((rows.len(), &rows[0]["figures"]["p999_us"]), (4, &Value::Null));
    let (text, _) = succeeds(&place, &["history", "last"]);
    assert!(!text.contains(" - "), "{text}");
}

#[test]
fn a_simulation_with_a_report_is_saved_with_its_seeds() {
    let place = Place::new();
    let page = place.file("page.html");
    let short = [&COMPARE[..], &["--seconds", "0.02", "--commands", "50", "--report", &page]].concat();
    let (printed, _) = succeeds(&place, &short);
    let run = json(&place, &["history", "1"]);
    let rate = |row: usize| run["results"][row]["figures"]["mb_per_s"].as_f64().expect("a number");
    let seeds = run["results"][0]["figures"]["iops_of_rounds"].as_array().map(Vec::len);
    assert_eq!((seeds, &run["setup"]["facts"]["seeds"]), (Some(5), &"5".into()));
    // Rows are bot and uasp at depth 1, and both at 4.
    let ratio = rate(3) / rate(2);
    let times = if ratio < 2.0 { format!("{ratio:.2}x") } else { format!("{ratio:.1}x") };
    let deep = format!("UASP is {times} as fast as BOT at QD4");
    let html = fs::read_to_string(&page).expect("it is there");
    assert!(html.contains(&deep) && html.contains("means over seeds 1 to 5"), "{deep} is not on the page");
    let json = succeeds(&place, &[&COMPARE[..7], &["--seconds", "0.02", "--json"]].concat()).0;
    let record: Value = serde_json::from_str(&json).expect("JSON");
    let first = record["rows"][1]["results"]["uasp"]["iops"].as_f64();
    assert_eq!(run["results"][3]["figures"]["iops_of_rounds"][0].as_f64(), first, "{printed}");
    succeeds(&place, &[&short[..], &["--bridge", "jms580"]].concat());
    let (text, _) = succeeds(&place, &["diff", "1", "2"]);
    assert!(text.contains("same: simulated: spread over seeds") && text.contains(" to "), "{text}");
}

#[test]
fn measured_runs_are_judged_by_their_rounds() {
    let place = Place::new();
    // Long enough that each round moves something, whatever else the machine has to do.
    let longer = [&BENCH[..9], &["0.2", "--rounds", "3", "--save"]].concat();
    succeeds(&place, &longer);
    succeeds(&place, &[&longer[..], &["--transport", "bot"]].concat());
    let diff = json(&place, &["diff", "1", "2"]);
    let change = &diff["diff"]["changes"][0];
    assert_eq!(change["transports"], serde_json::json!(["uas", "bot"]));
    let [low, high] = [0, 1].map(|end| change["ratio"]["interval"][end].as_f64().expect("three rounds"));
    let ratio = change["ratio"]["value"].as_f64().expect("a number");
    assert!(low < ratio && ratio < high, "{low} {ratio} {high}");
}

#[test]
fn a_note_of_one_run_alone_is_printed() {
    let place = Place::new();
    let page = place.file("page.html");
    bench(&place, &["--save"]);
    let measured = place.file("measured.html");
    let capture = ["--save", "--capture", &place.file("drive.pcapng"), "--snap", "64", "--report", &measured];
    bench(&place, &capture);
    let captured = "transfers were captured during the run, which slows it down";
    let (text, _) = succeeds(&place, &["diff", "1", "2", "--report", &page]);
    assert!(text.contains(&format!("\n  note on the run after: {captured}\n")), "{text}");
    assert!(
        text.contains("; a difference may come from a condition that is noted on one run only\n"),
        "{text}"
    );
    let html = fs::read_to_string(&page).expect("it is there");
    assert!(html.contains(&format!("note on the run after: {captured}")));
    let html = fs::read_to_string(&measured).expect("it is there");
    assert!(html.contains("captured") && html.contains(" records in 1 file, "), "the size of the capture");
    let diff = json(&place, &["diff", "1", "2"]);
    let notes = diff["diff"]["notes"].as_array().expect("notes");
    assert!(notes.contains(&serde_json::json!({ "text": captured, "before": false, "after": true })));
    // What the drive in memory is noted for, both are.
    let both = |note: &serde_json::Value| note["before"] == note["after"];
    assert_eq!((notes.len(), notes.iter().filter(|note| both(note)).count()), (2, 1));
    assert!(diff["after"]["notes"].as_array().expect("notes").contains(&captured.into()));
    let (text, _) = succeeds(&place, &["history", "2"]);
    assert!(text.contains(&format!("  note: {captured}\n")), "{text}");
}

#[test]
fn an_unusable_file_is_an_error_before_anything_is_measured() {
    let place = Place::new();
    let file = place.file("notes.txt");
    fs::create_dir_all(place.file("")).expect("a folder can be made");
    fs::write(&file, "not a database").expect("a file can be written");
    let save = format!("--save={file}");
    fails(&place, &[&BENCH[..], &[save.as_str()]].concat(), 1, "is not a file of uaskit runs");
    assert_eq!(fs::read(&file).expect("it is there"), b"not a database");
    fails(&place, &[&BENCH[..], &["--save=/proc/runs.sqlite"]].concat(), 1, "cannot access");
    fails(&place, &["history"], 1, "no saved runs at");
    fails(&place, &[&BENCH[..], &["--label", "x"]].concat(), 2, "--save");
}

#[test]
fn a_folder_that_is_not_there_is_made_for_the_usual_file_alone() {
    let place = Place::new();
    let (folder, file) = (place.file("new/dir"), place.file("new/dir/runs.sqlite"));
    let save = format!("--save={file}");
    let says = format!("directory {folder} does not exist\n  Create it: mkdir -p {folder}; or");
    fails(&place, &[&BENCH[..], &[save.as_str()]].concat(), 1, &says);
    assert!(!fs::exists(place.file("new")).expect("it can be looked at"), "nothing was made");
    fs::create_dir_all(&folder).expect("a folder can be made");
    bench(&place, &[&save]);
    bench(&place, &["--save"]);
    assert!(fs::exists(place.file("data/uaskit/runs.sqlite")).expect("it can be looked at"));
}

#[test]
fn link_and_protocols_alone_are_saved() {
    let place = Place::new();
    let raw = ["compare", "--raw", "--depth", "1,4", "--commands", "50", "--save"];
    let (out, err) = succeeds(&place, &[&raw[..], &["--json"]].concat());
    assert!(err.contains("saved as run 1"), "{err}");
    succeeds(&place, &[&raw[..], &["--link", "gen2"]].concat());
    let run = json(&place, &["history", "1"]);
    let names: Vec<_> = run["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (row["job"].as_str(), row["transport"].as_str(), row["depth"].as_i64()))
        .collect();
    let row = |transport, depth| (Some("4K random read"), Some(transport), Some(depth));
    assert_eq!(names, [row("bot", 1), row("uas", 1), row("bot", 4), row("uas", 4)]);
    let record: Value = serde_json::from_str(&out).expect("JSON");
    let figures = &run["results"][3]["figures"];
    assert_eq!((&figures["iops"], &figures["max_us"]), (&record["rows"][1]["uas"]["iops"], &Value::Null));
    assert_eq!(figures["digest"], record["rows"][1]["uas"]["digest"]);
    let (text, _) = succeeds(&place, &["diff", "1", "2"]);
    assert!(text.contains("link: 5 Gb/s → 10 Gb/s"), "{text}");
    assert!(text.contains("1 better, 0 worse, 3 same, 0 unclear"), "{text}");
}

#[test]
fn many_depths_are_one_finding() {
    let place = Place::new();
    let raw = ["compare", "--raw", "--depth", "1,2,4,8,16", "--commands", "50", "--save"];
    succeeds(&place, &raw);
    succeeds(&place, &[&raw[..], &["--latency", "90"]].concat());
    let file = place.file("page.html");
    let page = |command: &[&str]| {
        succeeds(&place, &[command, &["--report", &file]].concat());
        fs::read_to_string(&file).expect("a page in UTF-8")
    };
    let history = page(&["history"]);
    assert!(history.contains("4K random read, QD8") && !history.contains("uas, QD16"));
    let diff = page(&["diff", "1", "2"]);
    assert!(diff.contains("<li>4K random read, uas, QD1, 2, 4, 8: worse, IOPS ratio 0."), "{diff}");
    assert!(diff.contains("uas before") && !diff.contains("Jobs with one queue depth"));
}

#[test]
fn what_is_no_run_is_refused_with_where_it_goes_instead() {
    let place = Place::new();
    let sweep = ["compare", "--sweep", "depth=1", "--save"];
    fails(&place, &sweep, 2, "--sweep cannot be combined with --save: it has a setup for each point");
    fails(&place, &sweep, 2, "Use --out FILE.jsonl for its records");
    fails(&place, &["validate", "--save"], 2, "a validation cannot be saved as a run");
    fails(&place, &["validate", "--save=file"], 2, "Store the output of --json");
}

#[test]
fn a_run_is_not_held_against_itself() {
    let place = Place::new();
    bench(&place, &["--save", "--label", "one"]);
    fails(&place, &["diff", "1", "1"], 2, "both names select the same run: run 1");
    fails(&place, &["diff", "one", "last"], 2, "both names select the same run: run 1 (one)");
}

#[test]
fn a_missing_run_is_an_error() {
    let place = Place::new();
    bench(&place, &["--save"]);
    fails(&place, &["diff", "1", "other"], 2, "has the number or label `other`");
    fails(&place, &["history", "last~1"], 2, "has no run last~1");
}

#[test]
fn an_empty_file_of_runs_leads_to_saving_one() {
    let place = Place::new();
    let file = place.file("empty.sqlite");
    fs::write(&file, "").expect("a file can be written");
    let how = format!("To save a run: uaskit bench --virtual --save={file}");
    let (text, _) = succeeds(&place, &["history", "--file", &file]);
    assert!(text.contains("has no runs") && text.contains(&how), "{text}");
    for arguments in [&["history", "last", "--file", &file][..], &["diff", "1", "2", "--file", &file]] {
        fails(&place, arguments, 2, &how);
    }
    bench(&place, &[&format!("--save={file}")]);
    let (text, _) = succeeds(&place, &["history", "--file", &file, "--label", "none"]);
    assert!(text.contains("matches") && text.contains(&format!("uaskit history --file {file}")), "{text}");
}

#[test]
fn two_runs_and_several_make_pages_that_need_nothing_else() {
    let place = Place::new();
    succeeds(&place, &COMPARE);
    succeeds(&place, &[&COMPARE[..], &["--bridge", "jms580", "--label", "a <bridge>"]].concat());
    let (one, other) = (place.file("diff.html"), place.file("runs.html"));
    succeeds(&place, &["history", "--limit", "1", "--report", &other]);
    let alone = fs::read_to_string(&other).expect("it is there");
    assert!(alone.contains("One saved run.") && alone.contains("Throughput by queue depth"), "{alone}");
    assert!(
        alone.contains("a &lt;bridge&gt;")
            && alone.contains("queue depth 4")
            && !alone.contains("run by run")
    );
    succeeds(&place, &["diff", "1", "2", "--report", &one]);
    succeeds(&place, &["history", "--report", &other]);
    // As on a page of compare: orange is BOT, and blue is UAS, whatever a column of it is called.
    let before = fs::read_to_string(&one).expect("it is there");
    let ratios = before.split(">Ratios<").nth(1).expect("a section");
    assert!(ratios.contains("class=\"guide\"") && ratios.contains("class=\"zone\""), "no line at 1");
    assert!(ratios.contains("line s0 k1") && ratios.contains("line s1 k0"), "other colours");
    let latency = before.split(">Latency<").nth(1).expect("a section");
    assert!(
        latency.contains("line dashed s0") && latency.contains("Latency percentiles: 4K random read, QD4"),
        "{latency}"
    );
    for file in [one, other] {
        let page = fs::read_to_string(&file).expect("it is there");
        assert!(page.starts_with("<!doctype html>") && page.contains("<svg"), "{file}");
        assert!(page.contains("a &lt;bridge&gt;") && !page.contains("a <bridge>"), "{file}");
    }
}
