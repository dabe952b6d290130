use super::built_in::BUILT_IN;
use super::*;
use sim::drive::solid::{Contents, Solid};
use sim::drive::{Mechanism, disk::Disk};
use units::Duration;

const DISK: &str = include_str!("../../parts/hdd/disk-7200.toml");

/// The error of a hard disk's file.
fn error_of(text: &str) -> String {
    let mut catalogue = Catalogue { entries: BTreeMap::new() };
    match catalogue.add(PartKind::Hdd, "mine", "hdd/mine.toml", text) {
        Ok(()) => "nothing".into(),
        Err(error) => error.to_string(),
    }
}

/// The same text with one line in place of another; and which line that is.
fn with(old: &str, new: &str) -> (String, usize) {
    let at = DISK.find(old).unwrap_or_else(|| panic!("`{old}` is in the file"));
    (DISK.replacen(old, new, 1), DISK[..at].matches('\n').count() + 1)
}

#[test]
fn all_drives_can_be_built() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    assert_eq!(catalogue.entries().count(), BUILT_IN.len(), "none has the place of another");
    for entry in catalogue.entries() {
        let sectors = match &entry.make {
            PartModel::Hdd(part) => Disk::new(part.clone()).sectors(),
            PartModel::Ssd(part) => Solid::new(part.clone(), Contents::FRESH).sectors(),
            _ => continue,
        };
        assert!(sectors > 100_000_000, "{}: {sectors}", entry.name);
        assert!(entry.constants.len() > 12, "{}", entry.name);
    }
}

#[test]
fn numbers_have_unit_and_origin() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let disk = catalogue.find(PartKind::Hdd, "disk-7200").expect("a part");
    let speed = disk.constants.iter().find(|constant| constant.place == "platters.speed").expect("a number");
    assert_eq!((speed.value, speed.unit.as_str()), (7200.0, "rpm"));
    let PartModel::Hdd(part) = &disk.make else { panic!("a disk") };
    assert_eq!(part.rotation, Duration::from_ps(8_333_333_333));
}

#[test]
fn an_invalid_unit_is_an_error_that_names_the_valid_ones() {
    let (text, line) = with("unit = \"rpm\"", "unit = \"us\"");
    assert_eq!(error_of(&text), format!("hdd/mine.toml, line {line}: invalid unit `us`, expected `rpm`"));
}

#[test]
fn a_number_without_a_source_is_refused() {
    let (text, line) = with(
        "speed = { value = 7200, unit = \"rpm\", source =",
        "speed = { value = 7200, unit = \"rpm\", sauce =",
    );
    let error = error_of(&text);
    assert!(error.starts_with(&format!("hdd/mine.toml, line {line}: unknown field `sauce`")), "{error}");
    let start = DISK.find("speed = {").expect("a number");
    let end = start + DISK[start..].find('}').expect("its end");
    let bare = format!("{}speed = {{ value = 7200, unit = \"rpm\" }}{}", &DISK[..start], &DISK[end + 1..]);
    assert!(
        error_of(&bare).contains("a number needs a non-empty `source` or `fitted`"),
        "{}",
        error_of(&bare)
    );
}

#[test]
fn an_unknown_field_is_an_error_that_names_the_known_ones() {
    let (text, line) = with("surfaces = ", "sides = ");
    let error = error_of(&text);
    assert!(
        error.starts_with(&format!("hdd/mine.toml, line {line}: unknown field `sides`, expected one of")),
        "{error}"
    );
    assert!(error.contains("`surfaces`"), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let line = DISK.lines().find(|line| line.starts_with("average")).expect("a number");
    assert!(error_of(&DISK.replace(line, "")).contains("missing field `average`"));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let (text, _) = with("value = 7200", "value = -7200");
    assert!(error_of(&text).contains("-7200 rpm is negative"), "{}", error_of(&text));
    let (text, _) = with("value = 7200", "value = 0");
    assert!(error_of(&text).contains("0 rpm cannot be"), "{}", error_of(&text));
    let (text, _) = with("value = 7200", "value = nan");
    assert!(error_of(&text).contains("NaN rpm cannot be"), "{}", error_of(&text));
    let line = DISK.lines().find(|line| line.starts_with("surfaces")).expect("a number");
    let text = DISK.replace(line, "surfaces = { value = 65, unit = \"surfaces\", source = \"a test\" }");
    let place = DISK[..DISK.find(line).expect("a line")].matches('\n').count() + 1;
    let expected = "`platters.surfaces` is 65 in its smallest unit, expected 1 to 64";
    assert_eq!(error_of(&text), format!("hdd/mine.toml, line {place}: {expected}"));
}

#[test]
fn an_error_of_toml_has_its_line() {
    let error = error_of("title = \"x\"\n[platters\n");
    assert!(error.starts_with("hdd/mine.toml, line 2: "), "{error}");
}

#[test]
fn a_part_takes_the_place_of_one_of_its_name() {
    let mut catalogue = Catalogue::built_in().expect("parts that come with the project");
    let (text, _) = with("title = \"", "title = \"Mine: ");
    catalogue.add(PartKind::Hdd, "disk-7200", "mine", &text).expect("a part");
    let title = |name| catalogue.find(PartKind::Hdd, name).map(|entry| entry.title.starts_with("Mine: "));
    assert_eq!((title("disk-7200"), title("disk-5400")), (Some(true), Some(false)));
    assert_eq!(catalogue.entries().count(), BUILT_IN.len());
}

#[test]
fn every_kind_has_parts_and_a_folder() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    for kind in PartKind::ALL {
        assert!(catalogue.entries().any(|entry| entry.kind() == kind), "{kind}");
        assert_eq!(PartKind::of_folder(kind.folder()), Some(kind));
    }
}

#[test]
fn parts_name_parts_that_are_there() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    for entry in catalogue.entries() {
        match &entry.make {
            PartModel::Driver(part) => {
                let fallback = part.fallback.as_ref();
                assert!(fallback.is_none_or(|name| catalogue.driver(name).is_some()), "{}", entry.name);
                let is_there = |name: &String| catalogue.controller(name).is_some();
                assert!(part.controllers.iter().all(is_there), "{}", entry.name);
            }
            PartModel::Controller(part) => {
                let only = part.streams_only.iter().flatten();
                assert!(only.into_iter().all(|name| catalogue.driver(name).is_some()), "{}", entry.name);
            }
            PartModel::Host(part) => assert!(catalogue.power(&part.power).is_some(), "{}", entry.name),
            _ => {}
        }
    }
}

#[test]
fn the_hotfix_changes_what_the_driver_takes_and_not_what_it_is_given() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let [plain, hotfix] =
        ["windows7-usbstor", "windows7-usbstor-hotfix"].map(|name| catalogue.driver(name).expect("a part"));
    assert_eq!((plain.transfer_bytes_max, hotfix.transfer_bytes_max), (65_536, 2_097_152));
    let given = [plain, hotfix].map(|part| part.command_bytes_max(bus::Speed::Super));
    assert_eq!(given, [65_536, 65_536]);
    assert_eq!(plain.costs, hotfix.costs);
}

#[test]
fn a_controller_says_which_drivers_can_use_its_streams() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let streams = |name, driver| catalogue.controller(name).expect("a part").streams_of(driver);
    assert_eq!(streams("asm1042", "mcci-uasp"), StreamsOf::Work);
    assert_eq!(streams("asm1042", "linux-uas"), StreamsOf::Broken);
    assert_eq!(streams("intel-7-series", "linux-uas"), StreamsOf::Work);
    assert_eq!(streams("a75", "linux-uas"), StreamsOf::Missing);
}

#[test]
fn a_card_in_a_slot_of_one_lane_moves_430_megabytes_a_second_at_most() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    for name in ["asm1042", "ej168", "upd720200", "upd720201", "upd720202", "vl805"] {
        let attachment = catalogue.controller(name).expect("a part").part.model.attachment;
        for byte_ps in [attachment.inward_byte_ps, attachment.outward_byte_ps] {
            assert!(1_000_000 / byte_ps <= 430, "{name}: {byte_ps} ps");
        }
    }
}

#[test]
fn a_number_that_is_tried_otherwise_is_of_that_part_alone() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let tried = catalogue.with(PartKind::Bridge, "asm1051e", "uas.command", 28.0).expect("a number of it");
    let cost = |catalogue: &Catalogue, name| catalogue.bridge(name).expect("a part").firmware.uas_command;
    assert_eq!(cost(&tried, "asm1051e"), Duration::from_us(28));
    assert_eq!(cost(&tried, "asm1053e"), cost(&catalogue, "asm1053e"));
    let none = catalogue.with(PartKind::Bridge, "asm1051e", "uas.commando", 1.0);
    assert_eq!(none.unwrap_err().to_string(), "bridges/asm1051e.toml: no such number: `uas.commando`");
    let odd = catalogue.with(PartKind::Bridge, "asm1051e", "uas.streams", 33.0);
    assert!(odd.unwrap_err().to_string().contains("expected a power of two"));
}

#[test]
fn numbers_tried_one_after_the_other_all_stay() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let tried = catalogue.with(PartKind::Bridge, "asm1051e", "uas.command", 28.0).expect("a number of it");
    let tried = tried.with(PartKind::Bridge, "asm1051e", "uas.status", 29.0).expect("a number of it");
    let costs = tried.bridge("asm1051e").expect("a part").firmware;
    assert_eq!((costs.uas_command, costs.uas_status), (Duration::from_us(28), Duration::from_us(29)));
}

#[test]
fn a_driver_that_packs_says_how() {
    let mut catalogue = Catalogue { entries: BTreeMap::new() };
    let text = include_str!("../../parts/drivers/turbo.toml");
    let start = text.find("[packing]").expect("a table");
    let end = start + text[start..].find("[interrupts]").expect("the next table");
    let bare = format!("{}{}", &text[..start], &text[end..]);
    let error = catalogue.add(PartKind::Driver, "mine", "mine.toml", &bare).unwrap_err();
    let line = text[..text.find("transport = ").expect("a key")].matches('\n').count() + 1;
    assert_eq!(error.line, Some(line));
    assert!(error.what.ends_with("needs a table `[packing]`"), "{error}");
    let short = text.replacen(
        "longest = { value = 1024, unit = \"KiB\", source = \"P093: 1",
        "longest = { value = 4, unit = \"KiB\", source = \"P093: 1",
        1,
    );
    let error = catalogue.add(PartKind::Driver, "mine", "mine.toml", &short).unwrap_err();
    assert!(error.what.contains("expected 65535 to 2097120"), "{error}");
}

#[test]
fn a_slower_host_takes_longer_for_all_but_falling_asleep() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let there = catalogue.driver("linux-uas").expect("a part").costs;
    let mut host = catalogue.host("raspberry-pi-4").expect("a part").clone();
    host.pace_per_mille = 2500;
    let here = host.costs(&there);
    assert_eq!(here.command.as_ps() * 2, there.command.as_ps() * 5);
    assert_eq!(here.idle_after, there.idle_after);
}
