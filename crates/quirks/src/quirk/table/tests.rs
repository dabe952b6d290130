use super::*;
use alloc::string::String;
use alloc::vec::Vec;

/// Rows of Debian's kernels, as recorded.
const RECORDED: &str = include_str!("../../../tests/data/linux_rows.txt");

fn of(release: &str) -> Option<KernelVersion> {
    Some(KernelVersion::of_release(release).unwrap())
}

/// A row in the form of the record.
fn line(table: &str, row: &TableRow) -> String {
    let (first, last) = row.revisions;
    let without_letter = row.flags.iter().filter(|flag| flag.letter().is_none());
    let mut names: Vec<&str> = without_letter.map(name_in_linux).collect();
    names.sort_unstable();
    let letters = row.flags.letters();
    let flags: Vec<&str> =
        [letters.as_str()].into_iter().filter(|text| !text.is_empty()).chain(names).collect();
    alloc::format!("{table} {} {first:04x}-{last:04x} {}", row.id, flags.join("+"))
}

fn name_in_linux(flag: Flag) -> &'static str {
    match flag {
        Flag::BrokenFua => "BROKEN_FUA",
        Flag::NeedsCapacity16 => "NEEDS_CAP16",
        Flag::GoSlow => "GO_SLOW",
        Flag::FixInquiry => "FIX_INQUIRY",
        Flag::ScmMultTarg => "SCM_MULT_TARG",
        Flag::BulkIgnoreTag => "BULK_IGNORE_TAG",
        Flag::Bulk32 => "BULK32",
        Flag::NeedOverride => "NEED_OVERRIDE",
        Flag::MaxSectorsMin => "MAX_SECTORS_MIN",
        Flag::SenseAfterSync => "SENSE_AFTER_SYNC",
        other => unreachable!("{other:?} has a letter"),
    }
}

/// The letters of the record's kernels, with their versions.
fn recorded_kernels() -> Vec<(char, Option<KernelVersion>)> {
    let heads =
        RECORDED.lines().filter_map(|line| line.strip_prefix("# ")).filter_map(|head| head.split_once(' '));
    let kernels = heads.filter(|(letter, _)| letter.len() == 1);
    kernels.map(|(letter, release)| (letter.chars().next().unwrap(), of(release))).collect()
}

#[test]
fn the_tables_are_those_of_recorded_kernels() {
    let kernels = recorded_kernels();
    assert!(kernels.len() >= 4);
    for (letter, kernel) in kernels {
        let rows = RECORDED.lines().filter(|line| !line.starts_with('#'));
        let recorded: Vec<&str> = rows
            .filter_map(|line| line.rsplit_once(' '))
            .filter_map(|(row, kernels)| kernels.contains(letter).then_some(row))
            .collect();
        let rows_of = |name, table: &'static [TableRow]| {
            let there = table.iter().filter(move |row| row.versions.presence(kernel) == Presence::Present);
            there.map(move |row| line(name, row))
        };
        let ours: Vec<String> = rows_of("uas", UAS).chain(rows_of("storage", STORAGE)).collect();
        assert_eq!(ours, recorded, "Linux {}", kernel.unwrap());
    }
}

#[test]
fn rows_are_in_order_and_one_fits_at_most() {
    let kernels = ["5.2", "5.8", "5.13", "5.14", "5.15", "6.1", "6.5", "6.15", "6.16", "6.18", "7.1", "7.3"];
    for table in [UAS, STORAGE] {
        assert!(table.is_sorted_by_key(|row| row.id));
        assert!(table.iter().all(|row| row.revisions.0 <= row.revisions.1));
        for kernel in kernels.map(of).into_iter().chain([None]) {
            let rows: Vec<&TableRow> = table.iter().filter(|row| row.versions.contain(kernel)).collect();
            let overlap = |pair: &[&TableRow]| pair[0].is_for(pair[1].id, pair[1].revisions.0);
            assert!(!rows.windows(2).any(overlap), "{kernel:?}");
        }
    }
}

#[test]
fn a_row_counts_for_its_revisions_alone() {
    let apricorn = DeviceId::new(0x0984, 0x0301);
    let ignored = Some(Flags::of(&[Flag::IgnoreUas]));
    assert_eq!(uas_row(apricorn, 0x0128, None).map(|row| row.flags), ignored);
    assert_eq!(uas_row(apricorn, 0x0127, None), None);
    assert_eq!(uas_row(apricorn, 0x0129, None), None);
    assert_eq!(uas_row(DeviceId::new(0x2109, 0x0711), 0xf001, None), None);
}

#[test]
fn a_row_counts_in_its_kernels_alone() {
    let (sandisk, initio) = (DeviceId::new(0x0781, 0x55e8), DeviceId::new(0x13fd, 0x3940));
    let has = |id, revision, kernel| uas_row(id, revision, kernel).is_some();
    let old = of("6.1.106");
    assert!(!has(sandisk, 1, old) && has(sandisk, 1, of("6.1.142")) && has(sandisk, 1, of("6.16")));
    assert!(
        has(initio, 0x0310, of("6.1.159"))
            && !has(initio, 0x0310, of("6.1.160"))
            && !has(initio, 0x0310, None)
    );
    assert!(has(initio, 0x0309, old) && has(initio, 0x0309, None));
}

#[test]
fn a_younger_row_is_missing_or_may_be_there_by_the_patch_level() {
    let sandisk = DeviceId::new(0x0781, 0x55e8);
    let newest = uas_row(sandisk, 1, None);
    let both = |release| {
        let kernel = of(release).unwrap();
        (later_row(sandisk, 1, kernel), missing_row(sandisk, 1, kernel))
    };
    assert_eq!(both("6.1.0-25-amd64"), (newest, None));
    assert_eq!(both("6.1.106"), (None, newest));
    assert_eq!(both("6.1.142"), (None, None));
    assert_eq!(both("6.16"), (None, None));
}

#[test]
fn of_a_row_that_was_changed_each_kernel_has_its_own() {
    let flags = |id: DeviceId, revision, release| {
        storage_row(id, revision, of(release)).map(|row| row.flags.letters())
    };
    let rugged = |release| flags(DeviceId::new(0x059f, 0x1061), 1, release);
    assert_eq!(
        ["5.10.53", "5.10.54", "5.10.69", "5.10.70"].map(rugged),
        [None, Some("u".into()), Some("u".into()), Some("fk".into())]
    );
    let rtl9210 = |release| flags(DeviceId::new(0x0bda, 0x9210), 1, release);
    assert_eq!(
        ["6.0", "6.1.7", "6.1.8", "6.2"].map(rtl9210),
        [Some("u".into()), Some("u".into()), None, None]
    );
    let vl817 = |revision| {
        ["6.1.174", "6.1.175"].map(|release| flags(DeviceId::new(0x2109, 0x0715), revision, release))
    };
    assert_eq!(vl817(0x9999), [Some("u".into()), Some("u".into())]);
    assert_eq!(vl817(0x0843), [None, Some("u".into())]);
    let quadra = |release| flags(DeviceId::new(0x059f, 0x105f), 1, release);
    assert_eq!(
        ["5.6.12", "5.6.13", "5.10.1", "5.10.2"].map(quadra),
        [None, Some("f".into()), Some("f".into()), Some("fk".into())]
    );
}

#[test]
fn usb_storage_looks_into_its_own_table_first() {
    let jms567 = DeviceId::new(0x152d, 0x0567);
    let flags = |row: Option<&TableRow>| row.map(|row| row.flags);
    assert_eq!(flags(storage_row(jms567, 0x0114, None)), Some(Flags::of(&[Flag::BrokenFua])));
    let of_uas = Flags::of(&[Flag::BrokenFua, Flag::NoReportOpcodes]);
    assert_eq!(flags(uas_row(jms567, 0x0114, None)), Some(of_uas));
    assert_eq!(flags(storage_row(jms567, 0x0118, None)), Some(of_uas));
}

/// Otherwise `uas` would leave a device to `usb-storage`, and `usb-storage` to `uas`. With VL817 it is the other way round.
#[test]
fn both_drivers_agree_on_what_to_ignore_but_for_vl817() {
    let ignores = |flags: Flags| flags.contains(Flag::IgnoreUas);
    for row in UAS.iter().filter(|row| row.versions.contain(None)) {
        for revision in [row.revisions.0, row.revisions.1] {
            let seen = storage_row(row.id, revision, None).expect("it looks here as well");
            assert_eq!(ignores(row.flags), ignores(seen.flags), "{}", row.name);
        }
    }
    for row in STORAGE.iter().filter(|row| ignores(row.flags) && row.versions.contain(None)) {
        let seen = uas_row(row.id, row.revisions.0, None).map(|seen| ignores(seen.flags));
        let is_vl817 = row.id == DeviceId::new(0x2109, 0x0715);
        assert_eq!(seen, if is_vl817 { None } else { Some(true) }, "{}", row.name);
    }
}
