//! Several processes at one file, and processes that are killed while they write.
//!
//! The children are this very test binary, with a file in their environment: they save runs and print each number once it is saved.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use uaskit_records::{Figures, Filter, ResultRow, Run, RunId, RunKind, Setup, Store};

const FILE: &str = "UASKIT_TEST_RUNS";
const COUNT: &str = "UASKIT_TEST_COUNT";

/// Large enough that it takes several pages.
fn run(label: String) -> Run {
    let figures = Figures { iops: 1.0, iops_of_rounds: vec![1.0; 20], ..Figures::default() };
    let row = |depth| ResultRow {
        transport: "uas".into(),
        job: "4K random read".into(),
        depth,
        figures: Ok(figures.clone()),
    };
    Run {
        label: Some(label),
        kind: RunKind::Measured,
        began_unix_s: 0,
        version: "0.1.0".into(),
        command_line: Vec::new(),
        seed: 1,
        interrupted: false,
        setup: Setup { name: "2-1".into(), drive: "Drive".into(), ..Setup::default() },
        results: (1..=20).map(row).collect(),
        notes: Vec::new(),
        record: "x".repeat(10_000),
    }
}

/// Not a test: what the others start.
#[test]
#[ignore = "is started by the other tests"]
fn child() {
    let (Ok(file), Ok(count)) = (std::env::var(FILE), std::env::var(COUNT)) else { return };
    let mut out = std::io::stdout();
    for _ in 0..count.parse::<u32>().expect("it is a number") {
        let mut store = Store::to_write(Path::new(&file)).expect("it can be written");
        let id = store.save(&run(std::process::id().to_string())).expect("it can be saved");
        writeln!(out, "\nsaved {id}").and_then(|()| out.flush()).expect("somebody reads it");
    }
}

fn start(file: &Path, count: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this is one"));
    command.args(["--exact", "child", "--ignored", "--nocapture"]);
    command.env(FILE, file).env(COUNT, count.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::null()).spawn().expect("it runs")
}

/// The numbers that a child printed until its end.
fn printed(child: &mut Child) -> Vec<i64> {
    let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let lines = out.lines().map_while(Result::ok);
    let ids = lines.filter_map(|line| line.strip_prefix("saved ")?.parse().ok());
    let ids = ids.collect();
    child.wait().expect("it has ended");
    ids
}

/// All numbers in a file, each of a run that is whole.
fn all(file: &Path) -> Vec<i64> {
    let store = Store::to_read(file).expect("it can be read");
    let limit = Filter::LIMIT_MAX;
    let ids: Vec<RunId> = store
        .runs(&Filter { limit, ..Filter::default() })
        .expect("it can be read")
        .iter()
        .map(|summary| summary.run)
        .collect();
    for &id in &ids {
        let saved = store.run(id).expect("it can be read").expect("it is listed").run;
        let label = saved.label.clone().expect("it has one");
        assert_eq!(saved, run(label), "run {id} is whole");
    }
    ids.into_iter().map(|id| id.0).collect()
}

#[test]
fn runs_reported_as_saved_survive_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut said_in_all = 0;
    for fresh in 0..5 {
        let file = folder.path().join(format!("{fresh}.sqlite"));
        let mut said: Vec<i64> = Vec::new();
        for kill in 0..6 {
            let mut child = start(&file, u32::MAX);
            // From before the first save to the middle of one long after it.
            std::thread::sleep(Duration::from_micros(2_000 + (fresh * 6 + kill) * 3_700));
            child.kill().expect("it runs");
            said.extend(printed(&mut child));
        }
        if !file.exists() {
            assert_eq!(said, [0; 0]);
            continue;
        }
        let there = all(&file);
        assert!(said.iter().all(|id| there.contains(id)), "{said:?} are not all in {there:?}");
        // One may have been saved and not said, in each life.
        assert!(there.len() <= said.len() + 6);
        said_in_all += said.len();
    }
    assert!(said_in_all > 30, "{said_in_all} runs were saved at all");
}

#[test]
fn processes_write_at_once_and_each_run_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    // The file does not exist: they meet while it is made as well.
    let file = folder.path().join("runs.sqlite");
    let mut children = [start(&file, 25), start(&file, 25), start(&file, 25)];
    let mut said: Vec<i64> = children.iter_mut().flat_map(printed).collect();
    said.sort_unstable();
    let mut there = all(&file);
    there.sort_unstable();
    assert_eq!(said, there);
    assert_eq!(there.len(), 75);
}
