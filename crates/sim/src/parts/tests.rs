use super::*;
use crate::drive::solid::{Contents, Solid};
use crate::drive::{Mechanism, disk::Disk};
use units::Duration;

const DISK: &str = include_str!("../../parts/hdd/disk-7200.toml");

/// What is said of a text of a hard disk.
fn told(text: &str) -> String {
    let mut catalogue = Catalogue { entries: BTreeMap::new() };
    match catalogue.add(Kind::Hdd, "mine", "hdd/mine.toml", text) {
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
fn all_parts_can_be_built() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    assert_eq!(catalogue.entries().count(), BUILT_IN.len());
    for entry in catalogue.entries() {
        let sectors = match &entry.make {
            Make::Hdd(part) => Disk::new(part.clone()).sectors(),
            Make::Ssd(part) => Solid::new(part.clone(), Contents::FRESH).sectors(),
        };
        assert!(sectors > 100_000_000, "{}: {sectors}", entry.name);
        assert!(entry.constants.len() > 12, "{}", entry.name);
    }
}

#[test]
fn numbers_are_told_with_unit_and_origin() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let disk = catalogue.find(Kind::Hdd, "disk-7200").expect("a part");
    let speed = disk.constants.iter().find(|constant| constant.place == "platters.speed").expect("a number");
    assert_eq!((speed.value, speed.unit.as_str()), (7200.0, "rpm"));
    let Make::Hdd(part) = &disk.make else { panic!("a disk") };
    assert_eq!(part.rotation, Duration::from_ps(8_333_333_333));
}

#[test]
fn a_unit_that_cannot_be_is_told_with_those_that_can() {
    let (text, line) = with("unit = \"rpm\"", "unit = \"us\"");
    assert_eq!(told(&text), format!("hdd/mine.toml, line {line}: the unit is `rpm` here, not `us`"));
}

#[test]
fn a_number_without_a_source_is_refused() {
    let (text, line) = with(
        "speed = { value = 7200, unit = \"rpm\", source =",
        "speed = { value = 7200, unit = \"rpm\", sauce =",
    );
    let told = told(&text);
    assert!(told.starts_with(&format!("hdd/mine.toml, line {line}: unknown field `sauce`")), "{told}");
    let start = DISK.find("speed = {").expect("a number");
    let end = start + DISK[start..].find('}').expect("its end");
    let bare = format!("{}speed = {{ value = 7200, unit = \"rpm\" }}{}", &DISK[..start], &DISK[end + 1..]);
    assert!(
        self::told(&bare).contains("a number needs either `source` or `fitted`"),
        "{}",
        self::told(&bare)
    );
}

#[test]
fn a_word_that_is_not_known_is_told_with_those_that_are() {
    let (text, line) = with("surfaces = ", "sides = ");
    let told = told(&text);
    assert!(
        told.starts_with(&format!("hdd/mine.toml, line {line}: unknown field `sides`, expected one of")),
        "{told}"
    );
    assert!(told.contains("`surfaces`"), "{told}");
}

#[test]
fn what_is_missing_is_named() {
    let line = DISK.lines().find(|line| line.starts_with("average")).expect("a number");
    assert!(told(&DISK.replace(line, "")).contains("missing field `average`"));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let (text, _) = with("value = 7200", "value = -7200");
    assert!(told(&text).contains("-7200 rpm cannot be"), "{}", told(&text));
    let (text, _) = with("value = 7200", "value = 0");
    assert!(told(&text).contains("0 rpm cannot be"), "{}", told(&text));
    let (text, _) = with("value = 7200", "value = nan");
    assert!(told(&text).contains("NaN rpm cannot be"), "{}", told(&text));
    let line = DISK.lines().find(|line| line.starts_with("surfaces")).expect("a number");
    let text = DISK.replace(line, "surfaces = { value = 65, unit = \"surfaces\", source = \"a test\" }");
    let expected = "hdd/mine.toml: `platters.surfaces` is 65 in its smallest unit, and 1 to 64 was expected";
    assert_eq!(told(&text), expected);
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let told = told("title = \"x\"\n[platters\n");
    assert!(told.starts_with("hdd/mine.toml, line 2: "), "{told}");
}

#[test]
fn a_part_takes_the_place_of_one_of_its_name() {
    let mut catalogue = Catalogue::built_in().expect("parts that come with the project");
    let (text, _) = with("title = \"", "title = \"Mine: ");
    catalogue.add(Kind::Hdd, "disk-7200", "mine", &text).expect("a part");
    let title = |name| catalogue.find(Kind::Hdd, name).map(|entry| entry.title.starts_with("Mine: "));
    assert_eq!((title("disk-7200"), title("disk-5400")), (Some(true), Some(false)));
    assert_eq!(catalogue.entries().count(), BUILT_IN.len());
}
