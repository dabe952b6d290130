//! What programs read: each field that is printed with `--json` is in `docs/JSON.md`, and what that promises is printed.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/JSON.md");

/// A guest of QEMU with six drives.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/tests/trees/guest.tree");

/// A field of the page.
struct Row {
    /// Its way from the top, name by name.
    field: Vec<String>,
    /// The section that tells what is in it.
    link: Option<String>,
    /// It is never null and never absent.
    is_always: bool,
}

/// The tables of the page, by the names of their sections as links have them.
type Page = BTreeMap<String, Vec<Row>>;

fn page() -> Page {
    let (mut page, mut section) = (Page::new(), String::new());
    for line in PAGE.lines() {
        if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            section = title.replace(' ', "-");
        }
        let Some(cells) = line.strip_prefix("| `") else { continue };
        let cells: Vec<&str> = cells.split(" |").collect();
        let [field, what, absent, ""] = cells[..] else { panic!("a row of three cells: {line}") };
        let field = field.strip_suffix('`').expect("the field alone is in the first cell");
        let link =
            what.split_once("(#").and_then(|(_, rest)| rest.split_once(')')).map(|(link, _)| link.to_owned());
        let row = Row { field: named(field), link, is_always: absent.is_empty() };
        let rows = page.entry(section.clone()).or_default();
        assert!(rows.iter().all(|other| other.field != row.field), "twice in {section}: {field}");
        rows.push(row);
    }
    page
}

fn named(field: &str) -> Vec<String> {
    field.split('.').map(str::to_owned).collect()
}

/// The ways to everything in a value that has nothing in it: names, with `[]` behind that of a list.
fn ways(value: &Value, way: &[String], all: &mut BTreeSet<Vec<String>>) {
    let into_list = || match way.split_last() {
        Some((last, before)) => [before, &[format!("{last}[]")]].concat(),
        None => Vec::new(),
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields
                .iter()
                .for_each(|(name, field)| ways(field, &[way, std::slice::from_ref(name)].concat(), all));
        }
        Value::Array(list) if !list.is_empty() => list.iter().for_each(|one| ways(one, &into_list(), all)),
        _ => drop(all.insert(way.to_vec())),
    }
}

/// Finds a way in a section and those that it leads to; the rows that were met on it.
fn find(page: &Page, section: &str, way: &[String]) -> Option<Vec<(String, Vec<String>)>> {
    let rows = page.get(section).unwrap_or_else(|| panic!("no section {section}"));
    rows.iter().find_map(|row| {
        let met = (section.to_owned(), row.field.clone());
        let (head, rest) = way.split_at_checked(row.field.len())?;
        let is_list = |name: &str| name.ends_with("[]");
        let is_same = |(at, (pattern, name)): (usize, (&String, &String))| {
            // A list that has nothing in it, or has plain values.
            let is_last = at + 1 == way.len();
            let plain = |name: &str| name.trim_end_matches("[]").to_owned();
            pattern == "*"
                || pattern == name
                || is_last && plain(pattern) == plain(name) && (is_list(pattern) || !is_list(name))
        };
        if !row.field.iter().zip(head).enumerate().all(is_same) {
            return None;
        }
        match &row.link {
            _ if rest.is_empty() => Some(vec![met]),
            Some(link) => Some([vec![met], find(page, link, rest)?].concat()),
            None => None,
        }
    })
}

/// What the program prints.
fn printed(arguments: &str) -> Value {
    let output = Command::new(UASKIT).args(arguments.split(' ')).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {told}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

#[test]
fn every_field_that_is_printed_is_on_the_page_and_every_promise_is_kept() {
    let (page, place) = (page(), Place::new());
    let (record, capture) = (place.file("record.json"), place.file("capture.pcapng"));
    let bench = "bench --virtual --quiet --json --rw randrw --seconds 0.02";
    let measured = printed(&format!("{bench} --rounds 1 --depth 4 --capture {capture}"));
    std::fs::write(&record, measured.to_string()).expect("a record");
    let compare = "compare --json --seconds 0.002 --block 4K --depth 2";
    let outputs = [
        ("bench", measured),
        ("bench", printed(&format!("{bench} --rounds 2 --verify --transport all"))),
        ("compare", printed(&format!("{compare} --explain"))),
        ("compare", printed(&format!("{compare} --setup geerling"))),
        ("compare---raw", printed("compare --raw --json --explain --commands 100 --depth 2")),
        (
            "compare---raw",
            printed(&format!("compare --raw --json --commands 100 --depth 2 --capture {capture}")),
        ),
        ("compare---raw", printed("compare --raw --json --power-states --commands 100 --depth 1")),
        ("compare---against", printed(&format!("compare --against {record} --json --seconds 0.002"))),
        ("parts", printed("compare --list-parts --json")),
        ("list", printed(&format!("list --all --json --from {GUEST}"))),
        ("why", printed(&format!("why --json --from {GUEST}"))),
        ("why---simulate", printed("why --simulate geerling --json")),
    ];
    let (mut met, mut strange) = (BTreeSet::new(), Vec::new());
    for (section, output) in &outputs {
        let mut all = BTreeSet::new();
        ways(output, &[], &mut all);
        assert!(all.len() > 5, "{section}: {output}");
        for way in all {
            match find(&page, section, &way) {
                Some(rows) => met.extend(rows),
                None => strange.push(format!("{section}: {}", way.join("."))),
            }
        }
    }
    assert!(strange.is_empty(), "printed and not in docs/JSON.md: {strange:#?}");
    let promised = page.iter().flat_map(|(section, rows)| {
        rows.iter().filter(|row| row.is_always).map(|row| (section.clone(), row.field.clone()))
    });
    let missing: Vec<String> = promised
        .filter(|row| !met.contains(row))
        .map(|(section, field)| format!("{section}: {}", field.join(".")))
        .collect();
    assert!(missing.is_empty(), "promised and not printed: {missing:#?}");
}

#[test]
fn a_field_that_is_not_on_the_page_is_found() {
    let page = page();
    let found = |section, way: &str| find(&page, section, &named(way)).is_some();
    assert!(found("bench", "rows[].troubles.retries") && found("bench", "rows[].error_kinds"));
    assert!(
        found("compare", "rows[].results.uasp.iops") && found("why", "drives[].device.interfaces[].name")
    );
    for way in ["rows[].nothing", "rows[].troubles.nothing", "rows", "iops.value", "rows.iops", "nothing"] {
        assert!(!found("bench", way), "{way}");
    }
}
