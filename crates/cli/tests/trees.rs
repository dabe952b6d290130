//! The output of `uaskit list` and `why` for each recorded machine of `crates/inspect/tests/trees`, compared with the
//! file beside it.
//!
//! After an intended change, `UASKIT_UPDATE=1 cargo test -p uaskit --test trees` writes the files again; review the diff.

use std::path::Path;
use std::process::Command;

const TREES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees");

/// The recorded machines, and their drives.
const MACHINES: &[(&str, &[&str])] = &[
    ("board", &["1-1", "2-1"]),
    ("guest", &["2-4", "2-8.2", "3-1", "3-2", "3-3", "5-1"]),
    ("hub-and-box", &["1-3.4", "2-1.2"]),
    ("kept-out", &["1-2.4", "2-3"]),
    ("laptop", &["1-1.3", "2-2", "3-1"]),
    ("two-drives", &["4-1", "4-2"]),
    ("two-plugs", &["2-3"]),
];

/// The output of a command for a machine, below a line with the command.
fn output_of(machine: &str, words: &[&str]) -> String {
    let tree = format!("{TREES}/{machine}.tree");
    let output = Command::new(env!("CARGO_BIN_EXE_uaskit"))
        .args(words)
        .args(["--from", &tree])
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    format!("$ uaskit {} --from {machine}.tree\n{text}\n", words.join(" "))
}

#[test]
fn list_and_why_print_the_expected_text_for_each_machine() {
    let updates = std::env::var_os("UASKIT_UPDATE").is_some();
    for (machine, ports) in MACHINES {
        let each = ports.iter().map(|port| output_of(machine, &["why", port]));
        let text: String =
            [output_of(machine, &["list"]), output_of(machine, &["why"])].into_iter().chain(each).collect();
        let file = format!("{TREES}/{machine}.txt");
        if updates {
            std::fs::write(&file, &text).expect("written");
        }
        let known = std::fs::read_to_string(&file).expect("it is beside its tree");
        let other = text.lines().zip(known.lines()).find(|(now, before)| now != before);
        assert!(text == known, "{machine}: (now, before) at the first line that differs: {other:#?}");
    }
}

#[test]
fn every_machine_is_asked() {
    let trees = Path::new(TREES).read_dir().expect("trees").filter_map(|entry| {
        let name = entry.expect("a name").file_name().into_string().expect("text");
        name.strip_suffix(".tree").map(str::to_owned)
    });
    let mut trees: Vec<String> = trees.collect();
    trees.sort();
    assert_eq!(trees, MACHINES.iter().map(|(machine, _)| *machine).collect::<Vec<_>>());
}
