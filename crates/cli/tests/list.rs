//! `uaskit list` and `why` of another machine: what is one, and what is none.

mod place;

use place::{Place, UASKIT};
use std::process::{Command, Output};

fn from(command: &str, machine: &str) -> Output {
    Command::new(UASKIT).args([command, "--from", machine]).output().expect("the program runs")
}

#[test]
fn what_is_no_machine_is_not_taken_for_one_without_usb() {
    let place = Place::new();
    let machine = place.file("machine");
    std::fs::create_dir_all(&machine).expect("a folder");
    for command in ["list", "why"] {
        let output = from(command, &machine);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("is no machine") && told.contains("uaskit list --record"), "{told}");
    }
    std::fs::create_dir_all(format!("{machine}/sys/bus/usb/devices")).expect("a folder");
    let output = from("list", &machine);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"There is no USB"), "{}", String::from_utf8_lossy(&output.stdout));
}
