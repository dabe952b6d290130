//! The table on a terminal that has no room for all of it.

use super::{UASKIT, bench};
use std::process::Command;

const ARGUMENTS: [&str; 9] =
    ["--virtual", "--size", "16M", "--rw", "randread", "--transport", "all", "--rounds", "2"];

/// Returns the output of a benchmark on a terminal of so many columns.
fn printed_on(columns: u16) -> String {
    let mut command = Command::new(UASKIT);
    command.arg("bench").args(ARGUMENTS).args(["--seconds", "0.05", "-q"]);
    super::place_terminal::printed_on(columns, command)
}

/// The names of the columns, the line below them, and the rows.
fn table(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.starts_with(" job ")).take(5).collect()
}

#[test]
fn a_narrow_terminal_has_the_columns_that_it_has_room_for() {
    let narrow = printed_on(80);
    let lines = table(&narrow);
    assert!(lines.len() == 5 && lines.iter().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(
        lines[0].contains(" IOPS ") && lines[0].contains(" ratio ") && !lines[0].contains("CPU/IO"),
        "{narrow}"
    );
    assert!(
        narrow.contains("\nHidden columns: CPU/IO, ")
            && narrow.contains("; use a wider terminal, --json or --csv."),
        "{narrow}"
    );
    let narrower = printed_on(60);
    let lines = narrower.lines().skip_while(|line| !line.starts_with(" job "));
    let mut lines = lines.take_while(|line| !line.starts_with("Hidden columns"));
    assert!(lines.all(|line| line.chars().count() <= 60) && narrower.contains(" ratio "), "{narrower}");
    let elsewhere = bench(&ARGUMENTS);
    for all in [printed_on(200), String::from_utf8_lossy(&elsewhere.stdout).into_owned()] {
        assert!(table(&all)[0].contains("CPU/IO") && !all.contains("Hidden columns"), "{all}");
    }
}
