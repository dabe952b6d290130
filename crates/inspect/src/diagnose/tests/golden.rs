//! Every row of the tables is obeyed; the controllers are typed a second time from xhci-pci.c, not from our list.

use super::*;
use crate::diagnose::rules::streams::BROKEN_STREAMS;
use quirks::quirk::{KernelVersion, Presence};

/// The PCI ids of which xhci-pci.c sets XHCI_BROKEN_STREAMS.
#[test]
fn the_controllers_with_broken_streams_are_those_of_linux() {
    let ours: Vec<_> = BROKEN_STREAMS.iter().map(|(vendor, device, _)| (*vendor, *device)).collect();
    let (via, asmedia, etron, fresco) = (0x1106, 0x1b21, 0x1b6f, 0x1b73);
    assert_eq!(
        ours,
        [
            (via, 0x3432),
            (asmedia, 0x1042),
            (etron, 0x7023),
            (etron, 0x7052),
            (fresco, 0x1000),
            (fresco, 0x1009),
        ]
    );
}

fn ignores_uas(row: &TableRow) -> bool {
    row.flags.contains(Flag::IgnoreUas)
}

/// A kernel that has the row.
fn release_with(row: &TableRow) -> String {
    match (row.versions.since, row.versions.before) {
        (Some(since), _) => format!("{since}.0"),
        (None, Some(_)) => "5.3.0".to_owned(),
        (None, None) => "6.1.0".to_owned(),
    }
}

/// The drive of a row with a revision, as such a kernel would have it.
fn diagnosed_row(row: &TableRow, revision: u16) -> Diagnosis {
    let driver = if ignores_uas(row) { "usb-storage" } else { "uas" };
    let DeviceId { vendor, product } = row.id;
    let lines = ids(vendor, product) + &at("bcdDevice", &format!("{revision:04x}")) + &bound(driver);
    diagnosed("3-3", &(lines + &kernel(&release_with(row))))
}

#[test]
fn every_row_of_uas_is_found_and_obeyed() {
    for row in UAS {
        for revision in [row.revisions.0, row.revisions.1] {
            let diagnosis = diagnosed_row(row, revision);
            let name = format!("{} {revision:04x}", row.id);
            let kernel = KernelVersion::of_release(&release_with(row));
            let decision = match (ignores_uas(row), row.versions.presence(kernel)) {
                (true, Presence::Present) => Decision::Decided(Rule::NotIgnored),
                // A stable branch may have dropped it.
                (true, _) => Decision::Supposed(Rule::NotIgnored),
                (false, _) => Decision::AllMet,
            };
            assert_eq!(diagnosis.decision, decision, "{name}");
            let smart = check_of(&diagnosis, CheckKind::Smart).health;
            // All of Seagate's are kept from ATA PASS-THROUGH by a rule in the code.
            let is_blocked = row.flags.contains(Flag::NoAta1x) || row.id.vendor == 0x0bc2;
            assert_eq!(smart == Health::Concern, is_blocked, "{name}: {smart:?}");
        }
        // Beyond the last revision there is no row.
        let beyond = diagnosed_row(row, row.revisions.1 + 1);
        assert_eq!(beyond.quirks.built_in.row, None, "{}", row.id);
    }
}

#[test]
fn every_row_of_usb_storage_counts_once_it_has_the_drive() {
    for row in STORAGE.iter().filter(|row| !row.flags.contains(Flag::IgnoreDevice)) {
        let diagnosis = diagnosed_row(row, row.revisions.0);
        let letters = row.flags.letters();
        assert_eq!(diagnosis.quirks.storage().letters(), letters, "{}", row.id);
        let off_uas = diagnosis.advice.iter().find(|advice| advice.purpose.starts_with("Keep it off UAS"));
        let line = off_uas.map(|advice| advice.steps[0].line.clone());
        if ignores_uas(row) {
            assert_eq!(line, None, "{}", row.id);
            continue;
        }
        // Its line keeps what usb-storage knows, and nothing that uas alone does.
        let mut letters: Vec<char> = letters.chars().chain(['u']).collect();
        letters.sort_unstable();
        let letters: String = letters.into_iter().collect();
        assert_eq!(line, Some(format!("usb-storage.quirks={}:{letters}", row.id)), "{}", row.id);
    }
}
