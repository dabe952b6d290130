//! The table on a terminal that has no room for all of it.

use super::{UASKIT, bench};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

const ARGUMENTS: [&str; 9] =
    ["--virtual", "--size", "16M", "--rw", "randread", "--transport", "all", "--rounds", "2"];

/// What it prints on a terminal of so many columns.
fn printed_on(columns: u16) -> String {
    let owner = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&owner).and_then(|()| unlockpt(&owner)).expect("it can be opened");
    let name = ptsname(&owner, Vec::new()).expect("it has a name").into_string().expect("of letters");
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name).expect("it is there");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("it takes a size");
    let mut command = Command::new(UASKIT);
    command.arg("bench").args(ARGUMENTS).args(["--seconds", "0.05", "-q"]);
    command.stdin(Stdio::null()).stdout(terminal).stderr(Stdio::null());
    assert!(command.status().expect("the program runs").success());
    drop(command);
    let (mut owner, mut bytes, mut piece) = (fs::File::from(owner), Vec::new(), [0; 4096]);
    // Where nobody has the terminal open any more there is an end, or an error.
    while let Ok(len @ 1..) = owner.read(&mut piece) {
        bytes.extend_from_slice(&piece[..len]);
    }
    String::from_utf8(bytes).expect("text").replace('\r', "")
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
        narrow.contains("\nNot shown: CPU/IO, ")
            && narrow.contains("; a wider terminal, --json and --csv have them."),
        "{narrow}"
    );
    let elsewhere = bench(&ARGUMENTS);
    for all in [printed_on(200), String::from_utf8_lossy(&elsewhere.stdout).into_owned()] {
        assert!(table(&all)[0].contains("CPU/IO") && !all.contains("Not shown"), "{all}");
    }
}
