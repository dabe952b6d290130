//! The whole table beside `golden.txt`: each cell has a line there to be read, and one that changes
//! shows.

extern crate std;

use super::*;
use std::format;
use std::ops::RangeInclusive;
use std::string::{String, ToString};
use std::vec::Vec;

const PLACES: [EventTarget; 9] = [
    EventTarget::Inner,
    EventTarget::Last,
    EventTarget::EventData,
    EventTarget::Setup,
    EventTarget::ControlData,
    EventTarget::Status,
    EventTarget::NoOp,
    EventTarget::Finished,
    EventTarget::Nowhere,
];

/// Codes that no standard names, in the ranges of table 6-90.
const UNNAMED: [(RangeInclusive<u8>, &str); 4] = [
    (30..=30, "reserved"),
    (37..=191, "reserved"),
    (192..=223, "vendor's error"),
    (224..=255, "vendor's info"),
];
/// After which a retry makes a difference.
const MAY_RETRY: [u8; 2] = [4, 36];
/// The classes of a length: nothing is left of the TRB, or something.
const LEFT: [u32; 2] = [0, 7];

fn row(place: EventTarget, (codes, name): (RangeInclusive<u8>, &str), may_retry: bool) -> String {
    let cells_of = |code: u8| LEFT.map(|left| cell(retire(place, code.into(), left, may_retry)));
    let first = cells_of(*codes.start());
    assert!(codes.clone().all(|code| cells_of(code) == first), "{place:?}, {name}");
    let numbers = match codes.clone().count() {
        1 => codes.start().to_string(),
        _ => format!("{}-{}", codes.start(), codes.end()),
    };
    let name = if may_retry { format!("{name}, retry left") } else { name.to_string() };
    let [nothing, some] = first;
    format!("{:<11} {numbers:>7} {name:<35} | {nothing:<27} | {some}", format!("{place:?}"))
}

fn cell(Retirement { ending, recovery }: Retirement) -> String {
    let ending = match ending {
        Ending::Open => "open".to_string(),
        Ending::Note(actual) => format!("note {}", actual_of(actual)),
        Ending::ByLength(actual) => format!("ends by {}", actual_of(actual)),
        Ending::With(status, actual) => format!("{} by {}", status_of(status), actual_of(actual)),
        Ending::Oldest(status) => format!("{} of the oldest", status_of(status)),
        Ending::Dropped => "dropped".to_string(),
    };
    let recovery = match recovery {
        Recovery::Nothing => "",
        Recovery::Reset => ", reset",
        Recovery::SoftRetry => ", try again",
        Recovery::MoveDequeue => ", move",
        Recovery::Stop => ", stop",
    };
    format!("{ending}{recovery}")
}

const fn actual_of(actual: Actual) -> &'static str {
    match actual {
        Actual::Nothing => "none",
        Actual::ThisTrb => "this",
        Actual::BeforeTrb => "before",
        Actual::EventLength => "event",
        Actual::Noted => "noted",
    }
}

const fn status_of(status: TransferStatus) -> &'static str {
    match status {
        TransferStatus::Stall => "stall",
        TransferStatus::Babble => "babble",
        TransferStatus::Error => "error",
        _ => "other",
    }
}

/// A row for each place and code, in the order of the standard's table, and one more where a retry
/// makes a difference.
fn table() -> Vec<String> {
    let mut codes: Vec<(RangeInclusive<u8>, String)> = (0..=36)
        .filter(|code| *code != 30)
        .map(|code| (code..=code, CompletionCode::from(code).to_string()))
        .collect();
    codes.extend(UNNAMED.map(|(range, name)| (range, name.to_string())));
    codes.sort_by_key(|(range, _)| *range.start());
    let mut rows = Vec::new();
    for place in PLACES {
        for (range, name) in &codes {
            rows.push(row(place, (range.clone(), name), false));
            if MAY_RETRY.contains(range.start()) {
                rows.push(row(place, (range.clone(), name), true));
            }
        }
    }
    rows
}

#[test]
fn each_cell_is_as_its_line_says() {
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let golden: Vec<_> = include_str!("golden.txt").lines().filter(is_row).collect();
    let table = table();
    for (row, line) in table.iter().zip(&golden) {
        assert_eq!(row, line);
    }
    assert_eq!(table.len(), golden.len());
}

#[test]
fn a_retry_makes_a_difference_for_two_codes_alone() {
    for place in PLACES {
        for code in (0..=u8::MAX).filter(|code| !MAY_RETRY.contains(code)) {
            for left in LEFT {
                let [with, without] = [true, false].map(|retry| retire(place, code.into(), left, retry));
                assert_eq!(with, without, "{place:?}, {code}, {left}");
            }
        }
    }
}

#[test]
fn of_a_length_only_whether_it_is_zero_matters() {
    for place in PLACES {
        for code in 0..=u8::MAX {
            let [some, all] = [1, 0xff_ffff].map(|left| retire(place, code.into(), left, false));
            assert_eq!(some, all, "{place:?}, {code}");
        }
    }
}
