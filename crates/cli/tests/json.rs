//! JSON output: each field that is printed with `--json` is in `docs/JSON.md`, and each field
//! promised there is printed.

mod place;

use capture::{Interface, LinkType, Pcapng, Record};
use place::{Place, UASKIT};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use units::Instant;

const PAGE: &str = include_str!("../../../docs/JSON.md");

/// A guest of QEMU with six drives.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../inspect/tests/trees/guest.tree");

/// A field of the page.
struct Row {
    /// Its way from the top, name by name.
    field: Vec<String>,
    /// The section that documents its fields.
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

/// Returns the JSON that the program prints.
fn printed(arguments: &str) -> Value {
    let output = Command::new(UASKIT).args(arguments.split(' ')).output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

/// Lines of JSON, each under the name that it has in a field.
fn named_lines(text: &str, field: &str) -> Value {
    let named = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let name = line[field].as_str().expect("a line has a name").to_owned();
        json!({ name: line })
    };
    text.lines().map(named).collect()
}

/// The file of a sweep.
fn swept(place: &Place) -> Value {
    let file = place.file("sweep.jsonl");
    let sweep =
        ["compare", "--sweep", "depth=1,block=4K,direction=read|write", "--seconds", "0.002", "--out", &file];
    let output = Command::new(UASKIT).args(sweep).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).expect("it was written");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let head = json!({ "head": lines.next() });
    std::iter::once(head).chain(lines.map(|line| json!({ "point": line }))).collect()
}

/// Runs that were saved, and two of them compared.
fn saved_runs(place: &Place) -> Vec<(&'static str, Value)> {
    let file = place.file("runs.db");
    let bench = format!("bench --virtual --quiet --json --rw randread --seconds 0.02 --save={file}");
    for more in ["--rounds 1", "--rounds 2 --transport all --seed 7"] {
        printed(&format!("{bench} {more}"));
    }
    let history = format!("--file {file} --json");
    vec![
        ("history", printed(&format!("history {history}"))),
        ("a-saved-run", printed(&format!("history last {history}"))),
        ("diff", printed(&format!("diff last~1 last {history}"))),
    ]
}

/// Captures: one that is whole, one with a status that is none, one with damage, one in which packets are missing.
fn decoded(place: &Place) -> Vec<(&'static str, Value)> {
    let path = place.file("whole.pcapng");
    printed(&format!(
        "bench --virtual --quiet --json --transport bot,uas --size 8M --rw randread --depth 4 --seconds 0.01 \
         --warm-up 0 --rounds 1 --capture {path}"
    ));
    let whole = std::fs::read(&path).expect("a capture");
    let status = whole.windows(4).rposition(|bytes| bytes == b"USBS").expect("a status of BOT");
    let mut broken = whole.clone();
    broken[status] = b'X';
    let middle = whole.len() / 2;
    let mut damaged = whole;
    damaged[middle..middle + 5_000].fill(0xff);
    let changed = [("broken.pcapng", broken), ("damaged.pcapng", damaged)].map(|(name, bytes)| {
        std::fs::write(place.file(name), bytes).expect("it is written");
        place.file(name)
    });
    let all = [path].into_iter().chain(changed).chain([dropped(place)]);
    all.map(|path| {
        let decode = ["decode", &path, "--json", "--stats", "--full"];
        let output = Command::new(UASKIT).args(decode).output().expect("the program runs");
        let stdout = String::from_utf8_lossy(&output.stdout);
        ("decode", named_lines(&stdout, "kind"))
    })
    .collect()
}

/// A capture that says that packets are missing.
fn dropped(place: &Place) -> String {
    let path = place.file("dropped.pcapng");
    let mut out = Pcapng::create(Path::new(&path), "").expect("a file can be made");
    let interface = Interface { link_type: LinkType::Usbmon, name: "", description: "" };
    let interface = out.add_interface(&interface).expect("it can be written");
    out.drop_before_next(7);
    let record = Record { at: Instant::ZERO, head: &[0; 64], body: &[], cut: 0, comments: &[] };
    out.add(interface, &record).expect("it can be written");
    out.finish().expect("it can be written");
    path
}

/// A drive that is served until this is dropped.
struct Served(Child);

impl Served {
    fn start(arguments: &[&str]) -> (Self, BufReader<ChildStdout>) {
        let mut child = Command::new(UASKIT);
        child.args(["serve", "--json"]).args(arguments).stdout(Stdio::piped());
        let mut child = child.spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        (Self(child), out)
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it is there and ours");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The events of `serve` from start to end, with a client and a second one that is rejected.
fn served(place: &Place) -> Value {
    let (capture, socket) = (place.file("served.pcapng"), place.unix("served.sock"));
    let (served, mut out) = Served::start(&["--ram", "1M", "--capture", &capture, "--usbredir", &socket]);
    let mut events = String::new();
    let mut up_to = |event: &str| {
        while !events.contains(&format!("\"event\":\"{event}\"")) {
            assert!(out.read_line(&mut events).expect("lines are text") > 0, "no {event} in {events}");
        }
    };
    let connect = || UnixStream::connect(place.file("served.sock")).expect("it listens");
    up_to("listening");
    let first = connect();
    up_to("connected");
    let second = connect();
    up_to("turned_away");
    drop((first, second));
    up_to("disconnected");
    served.interrupt();
    out.read_to_string(&mut events).expect("lines are text");
    named_lines(&events, "event")
}

/// Orders and their answers.
fn ordered(place: &Place) -> Vec<(&'static str, Value)> {
    let (first, second) = (place.file("first.img"), place.file("second.img"));
    for image in [&first, &second] {
        std::fs::write(image, [0; 4096]).expect("it is written");
    }
    let control = place.unix("control");
    let socket = place.unix("ordered.sock");
    let (_served, out) =
        Served::start(&[&first, "--removable", "--control", &control, "--usbredir", &socket]);
    let mut lines = out.lines();
    assert!(lines.any(|line| line.expect("lines are text").contains("\"listening\"")), "it listens");
    let orders = ["status".to_owned(), "resize".into(), "eject".into(), format!("insert {second}")];
    let answers = orders.map(|order| {
        let name = order.split(' ').next().expect("a name");
        json!({ name: printed(&format!("control {control} --json {order}")) })
    });
    vec![("control", answers.into_iter().collect())]
}

#[test]
fn every_printed_field_is_documented_and_every_documented_field_is_printed() {
    let (page, place) = (page(), Place::new());
    let (record, capture) = (place.file("record.json"), place.file("capture.pcapng"));
    let bench = "bench --virtual --quiet --json --rw randrw --seconds 0.02";
    let measured = printed(&format!("{bench} --rounds 1 --depth 4 --capture {capture}"));
    std::fs::write(&record, measured.to_string()).expect("a record");
    let compare = "compare --json --seconds 0.002 --block 4K --depth 2";
    let outputs = [
        ("bench", measured),
        ("bench", printed(&format!("{bench} --rounds 2 --verify --transport all"))),
        ("check", printed("check --virtual --speed high --json")),
        ("compare", printed(&format!("{compare} --explain"))),
        ("compare", printed(&format!("{compare} --setup geerling"))),
        ("compare---raw", printed("compare --raw --json --explain --commands 100 --depth 2")),
        (
            "compare---raw",
            printed(&format!("compare --raw --json --commands 100 --depth 2 --capture {capture}")),
        ),
        ("compare---raw", printed("compare --raw --json --commands 100 --depth 2 --drives 2 --hubs 1")),
        (
            "compare---raw",
            printed(
                "compare --raw --json --commands 50 --depth 1 --hubs 1 --speed full --controller chipset",
            ),
        ),
        ("compare---raw", printed("compare --raw --json --power-states --commands 100 --depth 1")),
        ("compare---against", printed(&format!("compare --against {record} --json --seconds 0.002"))),
        ("parts", printed("compare --list-parts --json")),
        ("list", printed(&format!("list --all --json --from {GUEST}"))),
        ("why", printed(&format!("why --json --from {GUEST}"))),
        ("why---simulate", printed("why --simulate geerling --json")),
        ("validate", printed("validate --only P022 --sensitivity --json")),
        ("validate", printed("validate --only Q3 --json")),
        ("compare---sweep", swept(&place)),
        ("serve", served(&place)),
    ];
    let outputs = outputs.into_iter().chain(saved_runs(&place)).chain(decoded(&place)).chain(ordered(&place));
    let (mut met, mut strange) = (BTreeSet::new(), Vec::new());
    for (section, output) in outputs {
        let mut all = BTreeSet::new();
        ways(&output, &[], &mut all);
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
    assert!(found("bench", "rows[].error_counters.retries") && found("bench", "rows[].error_kinds"));
    assert!(
        found("compare", "rows[].results.uasp.iops") && found("why", "drives[].device.interfaces[].name")
    );
    for way in
        ["rows[].nothing", "rows[].error_counters.nothing", "rows", "iops.value", "rows.iops", "nothing"]
    {
        assert!(!found("bench", way), "{way}");
    }
}
