//! The pages of the book work as they stand: each is followed from top to bottom, and what a finding shows comes out again.

use uaskit_interop::{Result, book};

/// Pages that answer a question each, by commands in the simulated world.
const FINDINGS: [&str; 6] = [
    "findings/depth-4",
    "findings/turbo-bridges",
    "findings/turbo-disk",
    "findings/elevator",
    "findings/windows-8",
    "findings/high-speed",
];

/// Follows a page, which must have commands.
fn works(page: &str) -> Result<()> {
    assert!(book::follow(page)? > 0, "{page}.md has no commands");
    Ok(())
}

#[test]
fn a_virtual_drive_is_put_into_a_virtual_machine() -> Result<()> {
    works("virtual-machine")
}

#[test]
fn it_is_found_out_why_an_enclosure_is_on_bot() -> Result<()> {
    works("why-bot")
}

#[test]
fn a_bug_report_is_answered() -> Result<()> {
    works("bug-report")
}

#[test]
fn a_drive_is_checked() -> Result<()> {
    works("check")
}

#[test]
fn a_drive_is_measured() -> Result<()> {
    works("measure")
}

#[test]
fn a_capture_is_read() -> Result<()> {
    works("capture")
}

#[test]
fn a_setup_is_predicted() -> Result<()> {
    works("predict")
}

#[test]
fn the_crates_are_used() -> Result<()> {
    works("libraries")
}

#[test]
fn what_is_found_is_found_again() -> Result<()> {
    FINDINGS.iter().try_for_each(|page| works(page))
}

#[test]
fn no_page_is_left_out() -> Result<()> {
    // Not followed: an introduction without commands, what needs a newer QEMU than Debian's, what needs another machine, and what needs an ISO.
    let pages = [
        "introduction",
        "virtual-machine",
        "any-vm",
        "boot-iso",
        "floppy",
        "remote-image",
        "why-bot",
        "bug-report",
        "check",
        "measure",
        "capture",
        "predict",
        "libraries",
    ];
    assert_eq!(book::pages()?, [&pages[..], &FINDINGS[..]].concat());
    Ok(())
}
