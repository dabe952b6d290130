//! Linux's tables, typed a second time from unusual_uas.h, unusual_devs.h and xhci-pci.c, not from ours.
//!
//! A line is a row: id, first and last bcdDevice, the flags by their letters, and after `+` those that have none. Behind
//! that, the first version of Linux with it, or the first without it.

use super::*;
use crate::diagnose::rules::streams::BROKEN_STREAMS;

/// unusual_uas.h.
const OF_UAS: &str = "\
054c:087d 0000-9999 f since 5.9
059f:105f 0000-9999 fk since 5.7
059f:1061 0000-9999 u since 5.14 before 5.15
059f:1061 0000-9999 fk since 5.15
0781:55e8 0000-9999 u since 6.16
090c:2000 0000-9999 u since 6.0
0984:0301 0128-0128 u
0b05:1932 0000-9999 u since 6.0
0bc2:331a 0000-9999 j
0bda:9210 0000-9999 u since 6.0 before 6.2
125f:a94a 0160-0160 t since 6.15
13fd:3940 0000-9999 rt before 6.19
13fd:3940 0000-0309 rt since 6.19
152d:0539 0000-9999 f
152d:0567 0000-9999 f+BROKEN_FUA
152d:0578 0000-9999 +BROKEN_FUA
152d:0583 0000-9999 f since 6.3
154b:f009 0000-9999 ft since 7.1
154b:f00b 0000-9999 t since 5.11
154b:f00d 0000-9999 t since 5.9
17ef:3899 0000-9999 u since 6.0
2109:0711 0000-9999 t
2537:1068 0000-9999 u
357d:7788 0000-9999 fu
4971:1012 0000-9999 u
4971:8017 0000-9999 f
4971:8024 0000-9999 y
";

/// unusual_devs.h: disks, and bridges to disks.
const OF_USB_STORAGE: &str = "\
03f0:070c 0000-0000 a
04c5:2028 0001-0001 l
04ce:0002 0000-026c c
0525:a4a5 0000-9999 o
059f:0651 0000-0000 w
05e3:0702 0000-ffff mr+GO_SLOW
05e3:0723 9451-9451 a
067b:2317 0001-0001 l
067b:2507 0001-0100 c+GO_SLOW
067b:3507 0001-0101 c+GO_SLOW
07ab:fccd 0000-9999 c
0840:0082 0001-0001 c
0840:0084 0001-0001 c
0840:0085 0001-0001 c
090c:3350 0000-ffff b
0bc2:2300 0000-9999 p
0bc2:3010 0000-0000 a
0bc2:3332 0000-9999 w
0d49:7310 0000-9999 a
0dc4:0073 0000-0000 c
1058:0704 0000-9999 a
1058:070a 0000-9999 p
14cd:6600 0201-0201 r
152d:0567 0114-0117 +BROKEN_FUA
152d:0578 0000-9999 +BROKEN_FUA
152d:2329 0100-0100 ar
152d:2566 0114-0114 +BROKEN_FUA
152d:2567 0117-0117 +BROKEN_FUA
152d:9561 0000-9999 f
1652:6600 0201-0201 r
174c:55aa 0100-0100 +NEEDS_CAP16
1e68:001b 0000-0000 ar
2109:0715 9999-9999 u since 5.17 before 7.1
2109:0715 0000-9999 u since 7.1
2ca3:0031 0000-9999 t
357d:7788 0114-0114 u+BROKEN_FUA
4971:8024 0000-9999 y
ed06:4500 0001-0001 h
";

/// A row as the lists above have it.
fn row_text(row: &TableRow) -> String {
    let name = |flag: Flag| match flag {
        Flag::BrokenFua => Some("+BROKEN_FUA"),
        Flag::NeedsCapacity16 => Some("+NEEDS_CAP16"),
        Flag::GoSlow => Some("+GO_SLOW"),
        _ => None,
    };
    let letterless: String = row.flags.iter().filter_map(name).collect();
    let (first, last) = row.revisions;
    let mut line = format!("{} {first:04x}-{last:04x} {}{letterless}", row.id, row.flags.letters());
    if let Some(since) = row.versions.since {
        line += &format!(" since {since}");
    }
    if let Some(before) = row.versions.before {
        line += &format!(" before {before}");
    }
    line
}

#[test]
fn the_tables_are_those_of_linux() {
    for (table, golden) in [(UAS, OF_UAS), (STORAGE, OF_USB_STORAGE)] {
        let ours: Vec<String> = table.iter().map(row_text).collect();
        assert_eq!(ours, golden.lines().collect::<Vec<_>>());
    }
}

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

/// A line of the lists above, taken apart.
struct Row {
    ids: (u16, u16),
    revisions: (u16, u16),
    flags: &'static str,
    /// A kernel that has it.
    kernel: String,
    /// Whether a later one does not.
    goes: bool,
}

fn rows(golden: &'static str) -> impl Iterator<Item = Row> {
    let number = |digits: &str| u16::from_str_radix(digits, 16).expect("digits");
    let pair = move |text: &str, mark| {
        let (one, other) = text.split_once(mark).expect("two numbers");
        (number(one), number(other))
    };
    golden.lines().map(move |line| {
        let words: Vec<&str> = line.split(' ').collect();
        let kernel = match words[3..] {
            ["since", version, ..] => format!("{version}.0"),
            _ => "6.1.0".to_owned(),
        };
        let goes = words.contains(&"before");
        Row { ids: pair(words[0], ':'), revisions: pair(words[1], '-'), flags: words[2], kernel, goes }
    })
}

impl Row {
    fn ignores_uas(&self) -> bool {
        self.flags.contains('u')
    }

    /// The drive with these ids and a revision, as the kernel would have it.
    fn diagnosed(&self, revision: u16) -> Diagnosis {
        let driver = if self.ignores_uas() { "usb-storage" } else { "uas" };
        let lines =
            ids(self.ids.0, self.ids.1) + &at("bcdDevice", &format!("{revision:04x}")) + &bound(driver);
        diagnosed("3-3", &(lines + &kernel(&self.kernel)))
    }
}

#[test]
fn every_row_of_uas_is_found_and_obeyed() {
    for row in rows(OF_UAS) {
        for revision in [row.revisions.0, row.revisions.1] {
            let diagnosis = row.diagnosed(revision);
            let name = format!("{:04x}:{:04x} {revision:04x}", row.ids.0, row.ids.1);
            let decision = match (row.ignores_uas(), row.goes) {
                (true, false) => Decision::Decided(Rule::NotIgnored),
                // A stable branch may have dropped it.
                (true, true) => Decision::Supposed(Rule::NotIgnored),
                (false, _) => Decision::AllMet,
            };
            assert_eq!(diagnosis.decision, decision, "{name}");
            let smart = check_of(&diagnosis, CheckKind::Smart).health;
            // All of Seagate's are kept from ATA PASS-THROUGH by a rule in the code.
            let is_blocked = row.flags.contains('t') || row.ids.0 == 0x0bc2;
            assert_eq!(smart == Health::Concern, is_blocked, "{name}: {smart:?}");
        }
        // Beyond the last revision there is no row.
        let beyond = row.diagnosed(row.revisions.1 + 1);
        assert_eq!(beyond.quirks.built_in.row, None, "{:04x}:{:04x}", row.ids.0, row.ids.1);
    }
}

#[test]
fn every_row_of_usb_storage_counts_once_it_has_the_drive() {
    for row in rows(OF_USB_STORAGE) {
        let diagnosis = row.diagnosed(row.revisions.0);
        let name = format!("{:04x}:{:04x}", row.ids.0, row.ids.1);
        let letters = row.flags.split('+').next().unwrap_or_default();
        assert_eq!(diagnosis.quirks.storage().letters(), letters, "{name}");
        let off_uas = diagnosis.advice.iter().find(|advice| advice.purpose.starts_with("Keep it off UAS"));
        let line = off_uas.map(|advice| advice.steps[0].line.clone());
        if row.ignores_uas() {
            assert_eq!(line, None, "{name}");
            continue;
        }
        // Its line keeps what usb-storage knows, and nothing that uas alone does.
        let mut letters: Vec<char> = letters.chars().chain(['u']).collect();
        letters.sort_unstable();
        let letters: String = letters.into_iter().collect();
        assert_eq!(line, Some(format!("usb-storage.quirks={name}:{letters}")), "{name}");
    }
}
