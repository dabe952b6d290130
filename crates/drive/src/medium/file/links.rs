//! Files beside an image in a directory that others can write to: what they have placed at the
//! paths that we use.

use super::tests::{Scratch, open, with_each_engine};
use super::*;
use crate::medium::suite::{self, request, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use units::Extent;

/// A file that is not ours to write, and what leads to it.
fn protected(place: &Scratch, link: &str) -> PathBuf {
    let protected = place.0.join("protected");
    fs::write(&protected, "precious").unwrap();
    symlink(&protected, place.0.join(link)).unwrap();
    protected
}

#[test]
fn state_is_not_written_through_a_link_at_a_temporary_name() {
    let place = Scratch::new();
    let image = place.image(64 << 10);
    let protected = protected(&place, "image.state.new");
    let mut medium = open(&image, Engine::Threads);
    medium.save_state(b"state").unwrap();
    assert_eq!(fs::read(&protected).unwrap(), b"precious");
    assert_eq!(medium.load_state().unwrap().as_deref(), Some(&b"state"[..]));
}

#[test]
fn leftovers_at_a_temporary_name_do_not_block_saving() {
    let place = Scratch::new();
    let image = place.image(64 << 10);
    fs::create_dir(place.0.join("image.state.new")).unwrap();
    let mut medium = open(&image, Engine::Threads);
    medium.save_state(b"state").unwrap();
    drop(medium);
    let left = fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["image", "image.state", "image.state.new"]);
}

#[test]
fn a_link_in_place_of_the_state_is_neither_read_nor_written_through() {
    let place = Scratch::new();
    let image = place.image(64 << 10);
    let protected = protected(&place, "image.state");
    let mut medium = open(&image, Engine::Threads);
    let error = medium.load_state().unwrap_err();
    assert_eq!(error.to_string(), "it is a symbolic link, which is not followed here");
    medium.save_state(b"state").unwrap();
    assert_eq!(fs::read(&protected).unwrap(), b"precious");
    assert_eq!(medium.load_state().unwrap().as_deref(), Some(&b"state"[..]));
}

#[test]
fn a_fifo_in_place_of_the_state_is_not_waited_for() {
    let place = Scratch::new();
    let image = place.image(64 << 10);
    let fifo = place.0.join("image.state");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let error = open(&image, Engine::Threads).load_state().unwrap_err();
    assert_eq!(error.to_string(), "it is not a regular file");
}

#[test]
fn a_link_in_place_of_the_journal_leaves_the_medium_without_atomic_writes() {
    let place = Scratch::new();
    let image = place.image(64 << 10);
    let protected = protected(&place, "image.atomic");
    assert!(!open(&image, Engine::Threads).writes_atomically());
    assert_eq!(fs::read(&protected).unwrap(), b"precious");
}

#[test]
fn a_journal_is_not_created_through_a_link_that_comes_after_opening() {
    with_each_engine(64 << 10, |medium, path| {
        assert!(medium.writes_atomically());
        let protected = path.with_file_name("protected");
        symlink(&protected, path.with_file_name("image.atomic")).unwrap();
        let atomic = request(MediumOp::WriteAtomic { fua: true }, Extent::new(0, 1), 512);
        let finished = run(medium, Job { request: atomic, buffer: vec![1; 512] });
        assert!(finished.completion.result.is_err());
        assert!(!protected.exists());
        assert_eq!(suite::read(medium, Extent::new(0, 1)), Ok(vec![0; 512]));
        fs::remove_file(path.with_file_name("image.atomic")).unwrap();
    });
}
