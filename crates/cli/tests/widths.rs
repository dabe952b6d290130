//! Tables on terminals of 60 and 80 columns: no line of a table is wider, and the ratio stays.

mod place;
#[path = "place/terminal.rs"]
mod terminal;

use place::{Place, UASKIT};
use std::process::Command;
use terminal::printed_on;

fn uaskit(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(UASKIT);
    command.args(arguments).env("XDG_DATA_HOME", place.file("data"));
    command
}

/// Returns the output in 60 columns; its tables must fit there and in 80.
#[track_caller]
fn narrow(place: &Place, arguments: &[&str]) -> String {
    let fits = |columns: u16| {
        let text = printed_on(columns, uaskit(place, arguments));
        let of_tables: Vec<&str> =
            text.lines().filter(|line| line.starts_with(['┌', '│', '╞', '└'])).collect();
        assert!(!of_tables.is_empty(), "{arguments:?} prints a table: {text}");
        let widest = of_tables.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{arguments:?} in {columns} columns:\n{text}");
        text
    };
    fits(80);
    fits(60)
}

#[test]
fn a_comparison_fits_and_keeps_the_ratio() {
    let place = Place::new();
    let short = ["--block", "4K", "--depth", "1,4", "--seconds", "0.002"];
    let text = narrow(&place, &[&["compare", "--explain", "--components"], &short[..]].concat());
    assert!(text.contains("uasp : bot") || text.contains("uasp :"), "{text}");
    // More ways than a line has room for.
    narrow(&place, &[&["compare", "--setup", "hardware-fr"], &short[..]].concat());
    narrow(&place, &["compare", "--list-parts"]);
    let raw = ["compare", "--raw", "--depth", "1,4", "--commands", "30", "--explain", "--components"];
    assert!(narrow(&place, &raw).contains("UAS : BOT"));
    narrow(&place, &["compare", "--sweep", "bridge=asm1051e|jms567,depth=1|4", "--seconds", "0.001"]);
}

#[test]
fn a_list_leaves_columns_out_and_cuts_no_line() {
    let place = Place::new();
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees/hub-and-box.tree");
    for columns in [60, 80] {
        let text = printed_on(columns, uaskit(&place, &["list", "--from", tree]));
        let mut lines = text.lines().filter(|line| !line.starts_with("Not shown"));
        assert!(lines.all(|line| line.chars().count() <= columns.into()), "{text}");
        for part in ["2-1.2", "/dev/sdc", "UAS", "Bridge"] {
            assert!(text.contains(part) && !text.contains('…'), "{part} in {columns} columns: {text}");
        }
        assert!(text.contains("Not shown: LINK") || columns == 80, "{text}");
    }
    let wide = printed_on(120, uaskit(&place, &["list", "--from", tree]));
    assert!(wide.contains("PORT       TRANSPORT     LINK"), "{wide}");
}

#[test]
fn what_each_transport_would_bring_fits() {
    narrow(&Place::new(), &["why", "--simulate", "geerling"]);
}

#[test]
fn runs_and_their_difference_fit_and_keep_the_ratio() {
    let place = Place::new();
    let bench =
        ["bench", "--virtual", "--size", "16M", "--rw", "randread", "--seconds", "0.05", "--rounds", "3"];
    for label in ["a label of some length", "b"] {
        let mut command = uaskit(&place, &bench);
        let output = command.args(["--quiet", "--save", "--label", label]).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
    }
    narrow(&place, &["history"]);
    narrow(&place, &["history", "last"]);
    assert!(narrow(&place, &["diff", "1", "2"]).contains(" ratio "));
}
