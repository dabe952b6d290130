//! Job files of fio and IOMeter, and which part of a drive a job uses.

use super::{Place, fails, json};
use serde_json::Value;
use std::fs;

#[test]
fn job_files_run_or_are_refused_with_their_line() {
    let place = Place::new();
    let text = "[global]\nbs=8k\nioengine=libaio\n[one]\nrw=randread\niodepth=4\n[two]\nstonewall\nrw=read\n";
    let job = place.write("a.fio", text);
    let record = json(&["--virtual", "--size", "16M", "--fio", &job]);
    assert_eq!(record["rows"][0]["job"], "one: 8K random read");
    assert_eq!((&record["rows"][0]["depth"], &record["rows"][1]["depth"]), (&4.into(), &1.into()));
    let is_noted = |text: &str, flags: &[&str]| {
        let (job, image) = (place.write("d.fio", text), place.image());
        let record = json(&[&[&image, "--fio", &job], flags].concat());
        record["target"]["notes"].to_string().contains("lacks direct=1")
    };
    assert!(is_noted("[one]\nrw=randread\n", &[]));
    assert!(!is_noted("[one]\nrw=randread\n", &["--cached"]));
    assert!(!is_noted("[one]\nrw=randread\ndirect=1\n", &[]));
    let odd = place.write("b.fio", "[one]\nrw=randread\nrate=1m\n");
    fails(&["--virtual", "--fio", &odd], 2, "line 3: `rate=1m`: unsupported option");
    let odd = place.write("c.fio", "[one]\nrw=randread\niodepth=32\n");
    fails(&["--virtual", "--fio", &odd], 2, "line 3: `iodepth=32`: without ioengine, fio takes psync");
    let icf = "'TEST SETUP =\n'Run Time\n\t0 0 0\n'END test setup\n'ACCESS SPECIFICATIONS =\n'Access specification name,default assignment\n\tmine,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,100,100,0,1,0,0\n'END access specifications\n";
    let icf = place.write("a.icf", icf);
    assert_eq!(json(&["--virtual", "--size", "16M", "--icf", &icf])["rows"][0]["job"], "mine");
    let odd = place.write("b.icf", "'TEST SETUP =\n'Outstanding requests\n\t64\n'END test setup\n");
    fails(
        &["--virtual", "--icf", &odd],
        2,
        "line 2: `'Outstanding requests`: unsupported heading `Outstanding requests`",
    );
}

#[test]
fn a_job_file_that_moves_its_part_once_ends_then() {
    let place = Place::new();
    let image = place.image();
    let job = place.write("a.fio", "[one]\nrw=rw\nbs=64k\nsize=1m\n[two]\nstonewall\nrw=read\nbs=64k\n");
    // Of the second the time says when.
    let arguments = [&image, "--fio", &job, "--write", &image, "--yes", "--rounds", "3"];
    let record = json(&[&arguments[..], &["--seconds", "0.5", "--warm-up", "0"]].concat());
    let ios = |row: usize| record["rows"][row]["ios"].as_u64().expect("it was measured");
    assert_eq!((ios(0), &record["rows"][0]["rounds"]), (3 * 16, &3.into()));
    assert!(ios(1) > 3 * 64, "{record}");
    let job = place.write("b.fio", "[one]\nrw=write\nbs=64k\nsize=1m\n");
    let arguments = [&image, "--fio", &job, "--write", &image, "--yes", "--verify", "--seconds", "60"];
    let record = json(&arguments);
    let row = &record["rows"][0];
    assert_eq!((&row["ios"], &row["verify"]["written"]), (&16.into(), &row["verify"]["checked"]));
    assert_eq!((&row["verify"]["wrong"], &record["errors"]), (&0.into(), &0.into()));
    // Another part is another amount.
    let page = place.0.join("a.html").display().to_string();
    let record = json(&["--virtual", "--size", "512K", "--fio", &job, "--seconds", "60", "--report", &page]);
    assert_eq!(record["rows"][0]["ios"], 8);
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains(" runs of 60 s after a warm-up of 1 s (unless the job says otherwise), "));
}

#[test]
fn a_job_file_that_goes_beyond_the_drive_is_refused_by_name() {
    let place = Place::new();
    let image = place.image();
    for line in ["size=1t", "offset=1t", "size=4m\noffset=4k"] {
        let job = place.write("a.fio", format!("[one]\nrw=randread\ntime_based\nruntime=1\n{line}\n"));
        fails(&[&image, "--fio", &job], 2, "a.fio: one: 4K random read: the job ends at ");
    }
    let job = place.write("a.fio", "[one]\nioengine=libaio\nrw=randread\nbs=16m\niodepth=256\n");
    fails(&[&image, "--fio", &job], 2, "a.fio: one: 16M random read, depth 256: too much memory");
    let job = place.write("a.fio", "[one]\nrw=randread\nsize=0\n");
    assert_eq!(json(&[&image, "--fio", &job])["errors"], 0);
}

#[test]
fn the_record_has_the_span_and_the_written_data() {
    let place = Place::new();
    let image = place.image();
    let file = fs::OpenOptions::new().write(true).open(&image).expect("it is there");
    file.set_len(300 << 20).expect("there is room for holes");
    let write = ["--write", &image, "--yes", "--seconds", "0.01", "--rounds", "1"];
    let of = |more: &[&str]| {
        let record = json(&[&[image.as_str()], more, &write[..]].concat());
        let rows = record["rows"].as_array().expect("rows").clone();
        let data = rows.into_iter().map(|row| (row["span_bytes"].as_u64(), row["written_data"].clone()));
        (data.collect::<Vec<_>>(), record["target"]["notes"].to_string())
    };
    let note =
        "256 MiB from the start of the drive, since --verify reads back every block; use --size for more";
    let (all, part) = (Some(300 << 20), Some(256 << 20));
    let (rows, notes) = of(&["--rw", "randwrite", "--verify"]);
    assert!(rows == [(part, "stamps".into())] && notes.contains(note), "{rows:?} {notes}");
    let (rows, notes) = of(&["--rw", "randwrite", "--verify", "--size", "300M"]);
    assert!(rows == [(all, "stamps".into())] && !notes.contains(note), "{rows:?} {notes}");
    assert_eq!(of(&["--rw", "randread"]).0, [(all, Value::Null)]);
    let atto = |more: &[&str]| of(&[&["--workload", "atto"], more].concat()).0[0].clone();
    assert_eq!(atto(&[]), (part, "zero".into()));
    assert_eq!(atto(&["--random-data", "--size", "300M"]), (all, "random".into()));
    // Of a drive that is smaller it is all of it, and stamps are no zeroes.
    let record = json(&["--virtual", "--size", "16M", "--workload", "atto", "--verify", "--seconds", "0.01"]);
    let row = &record["rows"][0];
    assert_eq!((&row["span_bytes"], &row["written_data"]), (&(16 << 20).into(), &"stamps".into()));
}
