//! Sweeps as a user runs them: killed and continued, in shards, and the script of the documentation.

mod place;

use place::{Place, UASKIT};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Short, and of several variants.
const GRID: [&str; 5] =
    ["compare", "--sweep", "bridge=asm1051e|jms567|generic-bot,depth=1..4", "--seconds", "0.005"];

fn run(arguments: &[&str]) -> Output {
    Command::new(UASKIT).args(arguments).output().expect("uaskit starts")
}

fn sweep(more: &[&str]) -> Output {
    let output = run(&[&GRID, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_has_the_same_bytes() {
    let folder = Place::new();
    let [whole, killed] = ["whole.jsonl", "killed.jsonl"].map(|name| folder.file(name));
    sweep(&["--out", &whole]);
    let bytes = fs::read(&whole).unwrap();
    let mut kills = 0;
    for lines in [1, 4, 9] {
        let mut child = Command::new(UASKIT)
            .args(GRID)
            .args(["--threads", "1", "--out", &killed])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("uaskit starts");
        let begun = Instant::now();
        let has = || fs::read(&killed).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count());
        while has() < lines && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        kills += usize::from(!child.wait().unwrap().success());
        assert!(bytes.starts_with(&fs::read(&killed).unwrap()), "what was left is a beginning");
    }
    assert!(kills > 0, "it was too quick to be killed");
    // In the middle of a line as well.
    let left = fs::read(&killed).unwrap();
    fs::write(&killed, &left[..left.len().min(bytes.len() - 1) - 7]).unwrap();
    sweep(&["--out", &killed]);
    assert_eq!(fs::read(&killed).unwrap(), bytes);
    // One that is complete stays as it is.
    sweep(&["--out", &killed]);
    assert_eq!(fs::read(&killed).unwrap(), bytes);
}

/// Runs a command and sends it SIGINT when it has had time to start: its exit code, and what it said.
fn interrupted(arguments: &[&str], is_time: impl Fn() -> bool) -> (Option<i32>, String) {
    let mut command = Command::new(UASKIT);
    let child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("uaskit starts");
    let begun = Instant::now();
    while !is_time() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("the child runs")).expect("the child runs");
    kill_process(pid, Signal::INT).expect("the child runs");
    let output = child.wait_with_output().expect("the child runs");
    (output.status.code(), stderr_of(&output))
}

#[test]
fn a_sweep_that_is_interrupted_says_how_many_points_are_saved() {
    let folder = Place::new();
    let file = folder.file("grid.jsonl");
    let lines = || fs::read(&file).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count());
    let grid = ["compare", "--sweep", "seed=1..1000", "--threads", "1", "--seconds", "20ms", "--out", &file];
    let (code, words) = interrupted(&grid, || lines() > 2);
    let saved = lines() - 1;
    assert_eq!(code, Some(130), "{words}");
    let expected = format!("interrupted: {saved} of ");
    assert!(words.contains(&expected) && words.contains("run the same command again to continue"), "{words}");
    assert!(words.contains(&format!("points are saved in {file};")), "{words}");
}

#[test]
fn what_saves_nothing_says_so_when_it_is_interrupted() {
    let begun = Instant::now();
    let has_begun = || begun.elapsed() > Duration::from_secs(2);
    let sweep = ["compare", "--sweep", "seed=1..1000", "--threads", "1"];
    let (code, words) = interrupted(&sweep, has_begun);
    assert!(
        code == Some(130) && words.contains("nothing is saved; add --out FILE.jsonl"),
        "{code:?} {words}"
    );
    for command in [&["compare", "--threads", "1", "--seconds", "3600"][..], &["validate", "--threads", "1"]]
    {
        let begun = Instant::now();
        let (code, words) = interrupted(command, || begun.elapsed() > Duration::from_secs(2));
        assert!(
            code == Some(130) && words.contains("interrupted: nothing is saved; run the same command again"),
            "{code:?} {words}"
        );
    }
}

#[test]
fn wherever_a_file_was_cut_off_it_is_continued_to_the_same_bytes() {
    let folder = Place::new();
    let [whole, cut] = ["whole.jsonl", "cut.jsonl"].map(|name| folder.file(name));
    let grid = ["compare", "--sweep", "depth=1|2", "--seconds", "0.001", "--transport", "bot", "--out"];
    assert!(run(&[&grid[..], &[&whole]].concat()).status.success());
    let bytes = fs::read(&whole).unwrap();
    let head = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    for end in [0, 1, head, head + 1, head + 2, bytes.len() - 1, bytes.len()] {
        fs::write(&cut, &bytes[..end]).unwrap();
        let output = run(&[&grid[..], &[&cut]].concat());
        assert!(output.status.success(), "{end}: {}", stderr_of(&output));
        assert_eq!(fs::read(&cut).unwrap(), bytes, "{end}");
    }
}

#[test]
fn three_shards_are_the_whole() {
    let folder = Place::new();
    let whole = folder.file("whole.jsonl");
    sweep(&["--out", &whole]);
    let shards = ["1/3", "2/3", "3/3"].map(|shard| (shard, folder.file(&shard.replace('/', "of"))));
    for (shard, file) in &shards {
        sweep(&["--out", file, "--shard", shard]);
    }
    let [(_, one), (_, two), (_, three)] = &shards;
    let merged = folder.file("merged.jsonl");
    assert!(run(&["merge", three, one, two, one, "-o", &merged]).status.success());
    assert_eq!(fs::read(&merged).unwrap(), fs::read(&whole).unwrap());
    let output = run(&["merge", one, three, "-o", &folder.file("none")]);
    assert!(
        !output.status.success() && stderr_of(&output).contains("points are missing"),
        "{}",
        stderr_of(&output)
    );
    assert!(!Path::new(&folder.file("none")).exists());
    let table = folder.file("all.csv");
    assert!(run(&["merge", &merged, "-o", &table]).status.success());
    let text = fs::read_to_string(&table).unwrap();
    assert_eq!(text.lines().count(), fs::read_to_string(&whole).unwrap().lines().count());
    assert!(text.starts_with("point,variant,host,") && text.contains(",mb_per_s,"), "{text}");
}

#[test]
fn what_is_of_another_sweep_is_not_touched() {
    let folder = Place::new();
    let [file, other] = ["grid.jsonl", "notes.txt"].map(|name| folder.file(name));
    let bot = ["--transport", "bot", "--out"];
    let first = ["compare", "--sweep", "depth=1", "--seconds", "0.001"];
    assert!(run(&[&first[..], &bot, &[&file]].concat()).status.success());
    let bytes = fs::read(&file).unwrap();
    fs::write(&other, "my notes").unwrap();
    let next = ["compare", "--sweep", "depth=2", "--seconds", "0.001"];
    for target in [&file, &other] {
        let output = run(&[&next[..], &bot, &[target]].concat());
        assert!(
            !output.status.success() && stderr_of(&output).contains("belongs to another sweep"),
            "{}",
            stderr_of(&output)
        );
    }
    assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (bytes, b"my notes".to_vec()));
}

#[test]
fn lines_do_not_depend_on_threads() {
    let lines = |threads| sweep(&["--json", "--threads", threads]).stdout;
    let one = lines("1");
    assert!(String::from_utf8_lossy(&one).lines().count() > 6);
    assert_eq!(lines("2"), one);
}

#[test]
fn the_script_of_the_documentation_works() {
    let docs = include_str!("../../../docs/SWEEPS.md");
    let (_, rest) = docs.split_once("<!-- A test runs this. -->\n```sh\n").expect("the script is there");
    let (script, _) = rest.split_once("```").expect("it ends");
    let folder = Place::new();
    let path = Path::new(UASKIT).parent().expect("it is in a folder").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let directory = Path::new(&folder.file("x")).parent().expect("a folder").to_owned();
    let mut shell = Command::new("sh");
    let output = shell.args(["-euc", script]).env("PATH", path).current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", stderr_of(&output));
    let merged = fs::read_to_string(folder.file("grid.jsonl")).unwrap();
    assert!(merged.lines().count() > 6 && merged.contains("\"shard\":\"1/1\""), "{merged}");
    let table = fs::read_to_string(folder.file("grid.csv")).unwrap();
    assert_eq!(table.lines().count(), merged.lines().count());
}

#[test]
fn what_is_no_grid_is_a_usage_error() {
    for (grid, word) in
        [("bridge=asm9999", "asm1153"), ("size=1", "a sweep has no axis `size`"), ("depth=257", "1 to 256")]
    {
        let output = run(&["compare", "--sweep", grid]);
        assert_eq!(output.status.code(), Some(2), "{grid}");
        assert!(stderr_of(&output).contains(word), "{grid}: {}", stderr_of(&output));
    }
    assert_eq!(
        run(&["compare", "--sweep", "depth=1", "--shard", "3/2", "--out", "x"]).status.code(),
        Some(2)
    );
}
