//! Files of earlier schemas, from the first on: read as they are, and led on when they are written to.

use rusqlite::Connection;
use std::fs;
use std::path::PathBuf;
use uaskit_records::{Figures, Filter, ResultRow, RunId, RunKind, Store, schema};

/// A file of the first schema, written without any code of ours.
fn first() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("runs.sqlite");
    let script = include_str!("first.sql");
    Connection::open(&file).and_then(|file| file.execute_batch(script)).expect("the script is SQL");
    (folder, file)
}

/// Checks that both runs of the script are there, as they are read today.
fn has_both_runs(store: &Store) {
    let one = store.run(RunId(1)).expect("it can be read").expect("it is there").run;
    assert_eq!((one.label.as_deref(), one.kind, one.seed), (Some("before"), RunKind::Measured, u64::MAX));
    assert_eq!(
        (one.began_unix_s, one.interrupted, one.record.as_str()),
        (1_700_000_000, false, "{\"rows\":[]}")
    );
    assert_eq!(one.command_line, ["uaskit", "bench", "2-1"]);
    assert_eq!(one.setup.facts.get("firmware").map(String::as_str), Some("1.0"));
    let figures = Figures {
        iops: 1000.0,
        iops_interval: Some([990.0, 1010.0]),
        iops_of_rounds: vec![995.0, 1005.0],
        mb_per_s: 4.096,
        mean_us: 900.5,
        p50_us: Some(850.0),
        p99_us: Some(2000.0),
        p999_us: Some(3000.0),
        max_us: Some(4000.0),
        percentiles_us: Vec::new(),
        ios: 3000,
        errors: 1,
        digest: None,
    };
    let row = |transport: &str, figures| ResultRow {
        transport: transport.into(),
        job: "4K random read".into(),
        depth: 32,
        figures,
    };
    assert_eq!(one.results, [row("uas", Ok(figures)), row("bot", Err("it was refused".into()))]);
    let two = store.run(RunId(2)).expect("it can be read").expect("it is there").run;
    let figures = two.results[0].figures.as_ref().expect("it has figures");
    assert_eq!(
        (two.kind, two.interrupted, figures.digest.as_deref()),
        (RunKind::Simulated, true, Some("00000000000000ff"))
    );
}

#[test]
fn a_file_of_the_first_schema_is_read_and_stays_as_it_is() {
    let (_folder, file) = first();
    let before = fs::read(&file).expect("it is there");
    has_both_runs(&Store::to_read(&file).expect("it is one of ours"));
    assert!(fs::read(&file).expect("it is there") == before);
}

#[test]
fn a_file_of_the_first_schema_is_led_on_when_it_is_written_to() {
    let (_folder, file) = first();
    let mut store = Store::to_write(&file).expect("it is one of ours");
    has_both_runs(&store);
    let mut run = store.run(RunId(1)).expect("it can be read").expect("it is there").run;
    let percentiles = vec![[50.0, 1.5], [100.0, 2.5]];
    run.results[0].figures.as_mut().expect("it has figures").percentiles_us.clone_from(&percentiles);
    assert_eq!(store.save(&run).expect("it can be written"), RunId(3));
    let store = Store::to_read(&file).expect("it is one of ours");
    has_both_runs(&store);
    assert_eq!(store.run(RunId(3)).expect("it can be read").expect("it is there").run, run);
    let schema: u32 = Connection::open(&file)
        .and_then(|file| file.pragma_query_value(None, "user_version", |row| row.get(0)))
        .expect("it can be read");
    assert_eq!(schema, schema::NEWEST);
}

#[test]
fn notes_of_earlier_runs_are_found_in_their_records() {
    for (record, notes) in [
        (
            r#"{"target":{"notes":["requests go through the page cache"]}}"#,
            vec!["requests go through the page cache"],
        ),
        (r#"{"target":{"notes":"none"}}"#, vec![]),
        ("no JSON", vec![]),
    ] {
        let (_folder, file) = first();
        let earlier = Connection::open(&file).expect("it is there");
        earlier.execute("UPDATE run SET record = ?1 WHERE id = 1", [record]).expect("SQL");
        drop(earlier);
        let store = Store::to_read(&file).expect("it is one of ours");
        assert_eq!(store.run(RunId(1)).expect("it can be read").expect("it is there").run.notes, notes);
        assert!(store.run(RunId(2)).expect("it can be read").expect("it is there").run.notes.is_empty());
    }
}

#[test]
fn several_may_lead_a_file_on_at_once() {
    let (_folder, file) = first();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::to_write(&file).expect("one leads it on, the others find it so"));
        }
    });
    let store = Store::to_read(&file).expect("it is one of ours");
    assert_eq!(store.runs(&Filter { limit: 10, ..Filter::default() }).expect("it can be read").len(), 2);
}

#[test]
fn a_first_schema_with_another_table_is_not_led_on() {
    let (_folder, file) = first();
    Connection::open(&file).and_then(|file| file.execute_batch("CREATE TABLE theirs (a)")).expect("SQL");
    let before = fs::read(&file).expect("it is there");
    let error = Store::to_write(&file).map(|_| ()).expect_err("it is not as we left it");
    assert!(error.to_string().contains("its tables do not match schema 1"), "{error}");
    assert!(fs::read(&file).expect("it is there") == before);
}
