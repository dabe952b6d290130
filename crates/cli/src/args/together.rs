//! Which options go together, for all commands in one table.
//!
//! A row refuses options that contradict each other, or of which one has no effect beside the other: nothing that a user
//! asks for is ignored silently. A message names both options, the reason and what to do. Left out: what depends on the
//! target, a file or a catalogue, which is checked where that is known; and `--threads`, which allows and asks for nothing. An option
//! whose default applies is not given.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::fmt;

/// A row of the table.
struct Rule {
    command: &'static str,
    /// Applies if all of these are given.
    ///
    /// An option is `--name`; `--name=value` only with this value, `--name:text` only with a value of which an item begins
    /// so. A positional argument is its name in capitals.
    given: &'static [&'static str],
    relation: Relation,
    because: &'static str,
    /// Advice, unless it is to leave one of both out or to add what is needed.
    remedy: Option<&'static str>,
}

/// Options that are refused beside the options of a [`Rule`].
enum Relation {
    /// Any of these.
    Without(&'static [&'static str]),
    /// The absence of all of these.
    Needs(&'static [&'static str]),
}
use Relation::{Needs, Without};

const fn rule(
    command: &'static str,
    given: &'static [&'static str],
    relation: Relation,
    because: &'static str,
) -> Rule {
    Rule { command, given, relation, because, remedy: None }
}

impl Rule {
    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}

/// Options of `compare` that say what is simulated, with parts or without.
const SIMULATED: &[&str] = &[
    "--raw",
    "--setup",
    "--host",
    "--os",
    "--driver",
    "--hub",
    "--bridge",
    "--drive",
    "--transport",
    "--workload",
    "--depth",
    "--block",
    "--write",
    "--link",
    "--controller",
    "--drives",
    "--hubs",
    "--latency",
    "--at-once",
    "--commands",
    "--seconds",
    "--seed",
    "--explain",
    "--components",
    "--trace",
    "--timeline",
    "--platter",
    "--report",
    "--against",
    "--sweep",
    "--out",
    "--csv",
    "--shard",
    "--power-states",
    "--capture",
    "--save",
    "--findings",
];

const ONE_DRIVE: &[&str] = &[
    "IMAGE",
    "--ram",
    "--size",
    "--optical",
    "--floppy",
    "--disk",
    "--lun",
    "--as",
    "--speed",
    "--transport",
    "--bot-short-data",
    "--streams",
    "--block-size",
    "--read-only",
    "--removable",
    "--rotational",
    "--temperature",
    "--vendor",
    "--product",
    "--serial",
    "--usb-id",
    "--bus-power",
    "--lie",
];

/// Properties of a drive that a record has.
const RECORDED: &[&str] = &[
    "--speed",
    "--transport",
    "--streams",
    "--removable",
    "--rotational",
    "--temperature",
    "--vendor",
    "--product",
    "--serial",
    "--usb-id",
    "--bus-power",
];

const RULES: &[Rule] = &[
    rule("serve", &["--usbredir"], Without(&["--vfio-user"]), "a drive is exported over one protocol"),
    rule(
        "serve",
        &["--vfio-user"],
        Without(&["--allow-remote"]),
        "vfio-user uses a Unix socket, which is not reachable from other machines",
    ),
    rule(
        "serve",
        &["--allow-remote"],
        Without(&["--usbredir:unix:"]),
        "a Unix socket is not reachable from other machines",
    ),
    rule(
        "serve",
        &["--doorbells"],
        Needs(&["--vfio-user"]),
        "over usbredir the hypervisor emulates the controller",
    ),
    rule(
        "serve",
        &["--drive"],
        Needs(&["--vfio-user"]),
        "a controller has several ports, and usbredir exports one drive",
    ),
    rule("serve", &["--drive"], Without(ONE_DRIVE), "it describes one drive, and each --drive has its own")
        .remedy("Put it into the description, as in --drive image=PATH,speed=high."),
    rule("serve", &["IMAGE"], Without(&["--ram"]), "LUN 0 is either an image or in RAM"),
    rule(
        "serve",
        &["--ram"],
        Without(&["--size"]),
        "--ram states the size of LUN 0, and --size creates an image",
    ),
    rule("serve", &["--size"], Without(&["--read-only"]), "a new image is empty, and must be written first"),
    rule("serve", &["--optical"], Without(&["--disk"]), "LUN 0 is one of them"),
    rule("serve", &["--optical"], Without(&["--ram", "--size"]), "a disc is an image that exists"),
    rule("serve", &["--optical"], Without(&["--block-size"]), "blocks of a disc have 2048 bytes"),
    rule(
        "serve",
        &["--optical"],
        Without(&["--rotational", "--temperature", "--lie"]),
        "it describes a disk",
    ),
    rule("serve", &["--optical"], Without(&["--as"]), "records are of disks"),
    rule("serve", &["--floppy"], Without(&["--disk", "--optical"]), "LUN 0 is one of them"),
    rule("serve", &["--floppy"], Without(&["--speed"]), "a floppy drive has full speed"),
    rule("serve", &["--floppy"], Without(&["--lun"]), "a floppy drive has one unit"),
    rule("serve", &["--floppy"], Without(&["--vfio-user"]), "it is exported over usbredir alone"),
    rule("serve", &["--floppy"], Without(&["--block-size"]), "the size of the disk decides it"),
    rule("serve", &["--floppy"], Without(&["--as"]), "records are of disks"),
    rule("serve", &["--floppy"], Without(&["--streams", "--bot-short-data"]), "it has neither UAS nor BOT"),
    rule("serve", &["--disk"], Needs(&["IMAGE", "--lun"]), "it is about images"),
    rule("serve", &["--streams"], Without(&["--transport=bot"]), "BOT has no streams"),
    rule("serve", &["--streams"], Without(&["--speed=high", "--speed=full"]), "streams need SuperSpeed"),
    rule("serve", &["--bot-short-data"], Without(&["--transport=uas"]), "the drive does not offer BOT"),
    rule("serve", &["--as"], Without(RECORDED), "the record has it"),
    rule("record", &["TARGET"], Without(&["--virtual"]), "one drive is recorded"),
    rule("record", &["--speed"], Needs(&["--virtual"]), "a drive has the speed of its port"),
    rule("check", &["TARGET"], Without(&["--virtual"]), "one drive is checked"),
    rule("check", &["--speed"], Needs(&["--virtual"]), "a drive has the speed of its port"),
    rule(
        "check",
        &["--list"],
        Without(&["TARGET", "--virtual", "--junit", "--json", "--steps", "--write", "--whole"]),
        "nothing is checked",
    ),
    rule(
        "check",
        &["--size"],
        Needs(&["--virtual", "--write"]),
        "it is the size of the virtual drive, or of what is overwritten",
    ),
    rule("check", &["--lie"], Needs(&["--virtual"]), "it describes the virtual drive"),
    rule("check", &["--fault"], Needs(&["--virtual"]), "it describes the virtual drive"),
    rule("check", &["--yes"], Needs(&["--write", "--whole"]), "without it nothing is written"),
    rule("check", &["--resume"], Needs(&["--whole"]), "it saves the pass over all blocks"),
    rule("check", &["--resume"], Without(&["--virtual"]), "the virtual drive is gone when the program ends"),
    rule(
        "check",
        &["--resume"],
        Without(&["--write"]),
        "--write overwrites blocks of the run that is continued",
    ),
    rule("check", &["--virtual"], Without(&["--yes"]), "the virtual drive has no data to lose"),
    rule("serve", &["--json"], Without(&["--quiet"]), "--quiet leaves out the events that --json prints"),
    rule("serve", &["--snap"], Needs(&["--capture"]), "it limits what a capture keeps"),
    rule("serve", &["--capture-size"], Needs(&["--capture"]), "it limits the files of a capture"),
    rule(
        "bench",
        &["TARGET"],
        Without(&["--virtual"]),
        "--virtual measures a drive in memory in place of TARGET",
    ),
    rule("bench", &["--virtual"], Without(&["--lun"]), "the virtual drive has one logical unit"),
    rule("bench", &["--virtual"], Without(&["--cached"]), "the virtual drive has no page cache"),
    rule("bench", &["--virtual"], Without(&["--write", "--yes"]), "the virtual drive has no data to lose")
        .remedy("Leave it out: workloads may write to the virtual drive."),
    rule("bench", &["--speed"], Needs(&["--virtual"]), "it describes the virtual drive"),
    rule("bench", &["--block-size"], Needs(&["--virtual"]), "it describes the virtual drive"),
    rule("bench", &["--rw"], Without(&["--workload", "--icf", "--fio"]), "both say what to run"),
    rule("bench", &["--workload"], Without(&["--icf", "--fio"]), "both say what to run"),
    rule("bench", &["--icf"], Without(&["--fio"]), "both say what to run"),
    rule("bench", &["--bs"], Needs(&["--rw"]), "workloads and job files have their own lengths"),
    rule("bench", &["--align"], Needs(&["--rw"]), "workloads and job files have their own alignment"),
    rule("bench", &["--mix"], Needs(&["--rw"]), "workloads and job files have their own mix"),
    rule(
        "bench",
        &["--mix"],
        Without(&["--rw=read", "--rw=write", "--rw=randread", "--rw=randwrite"]),
        "this pattern does not mix reads and writes",
    )
    .remedy("Use --rw rw or --rw randrw, or leave --mix out."),
    rule("bench", &["--random-data"], Without(&["--zero-data"]), "blocks get one or the other"),
    rule(
        "bench",
        &["--verify"],
        Without(&["--random-data", "--zero-data"]),
        "it writes a stamp into every block",
    ),
    rule("bench", &["--verify"], Without(&["--cached"]), "it would check the page cache, not the drive"),
    rule("bench", &["--steady"], Without(&["--rounds=1"]), "one run has no confidence interval"),
    rule("bench", &["--json"], Without(&["--csv"]), "both are formats of standard output"),
    rule("bench", &["--snap"], Needs(&["--capture"]), "it limits what a capture keeps"),
    rule("bench", &["--capture-size"], Needs(&["--capture"]), "it limits the files of a capture"),
    rule("bench", &["--label"], Needs(&["--save"]), "a label is saved with a run"),
    rule("compare", &["--list-parts"], Without(SIMULATED), "--list-parts simulates nothing"),
    rule(
        "compare",
        &["--raw"],
        Without(&[
            "--setup",
            "--host",
            "--os",
            "--driver",
            "--hub",
            "--bridge",
            "--drive",
            "--transport",
            "--parts",
        ]),
        "--raw simulates link and protocols alone, without parts",
    ),
    rule("compare", &["--raw"], Without(&["--workload"]), "--raw measures random requests of one length"),
    rule("compare", &["--raw"], Without(&["--sweep"]), "a sweep is over parts"),
    rule("compare", &["--raw"], Without(&["--timeline", "--platter", "--against"]), "it needs parts"),
    rule("compare", &["--raw"], Without(&["--seconds"]), "a run with --raw lasts --commands commands"),
    rule("compare", &["--drives"], Needs(&["--raw"]), "a setup of parts has one drive"),
    rule("compare", &["--hubs"], Needs(&["--raw"]), "with parts, --hub names each hub"),
    rule("compare", &["--latency"], Needs(&["--raw"]), "with parts, the drive decides"),
    rule("compare", &["--at-once"], Needs(&["--raw"]), "with parts, the drive decides"),
    rule(
        "compare",
        &["--commands"],
        Needs(&["--raw", "--capture", "--report"]),
        "measured runs of parts last until the figure is accurate",
    )
    .remedy("Use --seconds to set their length."),
    rule("compare", &["--seconds"], Without(&["--capture"]), "a captured run lasts --commands commands")
        .remedy("Use --commands to set its length."),
    rule(
        "compare",
        &["--workload"],
        Without(&["--block", "--write"]),
        "a workload has its own lengths and directions",
    ),
    rule(
        "compare",
        &["--power-states"],
        Without(&["--link=high", "--link=full"]),
        "U1 and U2 are states of SuperSpeed links",
    ),
    rule("compare", &["--out"], Needs(&["--sweep"]), "it saves the points of a sweep"),
    rule("compare", &["--csv"], Needs(&["--sweep"]), "it is a table of the points of a sweep"),
    rule("compare", &["--csv"], Needs(&["--out"]), "the table is made from the records in that file"),
    rule("compare", &["--shard"], Needs(&["--out"]), "`uaskit merge` joins the records of the shards"),
    rule("compare", &["--out"], Without(&["--json"]), "the file has the records, as lines of JSON"),
    rule(
        "compare",
        &["--sweep"],
        Without(&["--save"]),
        "it has a setup for each point, and a saved run has one setup",
    )
    .remedy("Use --out FILE.jsonl for its records as lines of JSON, and --csv FILE.csv for a table of them."),
    rule("compare", &["--sweep"], Without(&["--workload"]), "the grid says what is measured"),
    rule(
        "compare",
        &["--sweep"],
        Without(&[
            "--trace",
            "--capture",
            "--timeline",
            "--platter",
            "--explain",
            "--components",
            "--against",
            "--report",
            "--findings",
            "--commands",
        ]),
        "a sweep prints or saves one row of figures for each point",
    )
    .remedy("Leave one of them out, or run uaskit compare without --sweep for one of the points."),
    rule("compare", &["--sweep:host="], Without(&["--host"]), "the grid names the hosts"),
    rule("compare", &["--sweep:driver="], Without(&["--driver"]), "the grid names the drivers"),
    rule("compare", &["--sweep:controller="], Without(&["--controller"]), "the grid names the controllers"),
    rule("compare", &["--sweep:hub="], Without(&["--hub"]), "the grid names the hubs"),
    rule("compare", &["--sweep:bridge="], Without(&["--bridge"]), "the grid names the bridges"),
    rule("compare", &["--sweep:speed="], Without(&["--link"]), "the grid names the links"),
    rule("compare", &["--sweep:drive="], Without(&["--drive"]), "the grid names the drives"),
    rule("compare", &["--sweep:depth="], Without(&["--depth"]), "the grid names the queue depths"),
    rule("compare", &["--sweep:block="], Without(&["--block"]), "the grid names the lengths"),
    rule("compare", &["--sweep:direction="], Without(&["--write"]), "the grid names the directions"),
    rule("compare", &["--sweep:seed="], Without(&["--seed"]), "the grid names the seeds"),
    rule(
        "compare",
        &["--timeline"],
        Without(&["--json", "--trace", "--platter", "--against", "--report", "--capture", "--save"]),
        "a timeline is the only output of its run",
    ),
    rule(
        "compare",
        &["--timeline"],
        Without(&["--explain", "--components", "--findings", "--commands", "--seconds"]),
        "a timeline draws two requests, without figures",
    ),
    rule(
        "compare",
        &["--platter"],
        Without(&["--json", "--trace", "--against", "--report", "--capture", "--save"]),
        "the drawing is the only output of its run",
    ),
    rule(
        "compare",
        &["--platter"],
        Without(&[
            "--depth",
            "--block",
            "--write",
            "--workload",
            "--explain",
            "--components",
            "--findings",
            "--commands",
            "--seconds",
            "--seed",
            "--power-states",
        ]),
        "the drawing shows four reads on one track, without figures",
    ),
    rule(
        "compare",
        &["--against"],
        Without(&["--workload", "--block", "--write", "--depth"]),
        "the record says what was measured",
    ),
    rule(
        "compare",
        &["--against"],
        Without(&["--save", "--trace", "--capture", "--explain", "--components", "--commands"]),
        "it shows measured and simulated figures side by side, and nothing else",
    ),
    rule("compare", &["--trace"], Without(&["--json"]), "both print on standard output"),
    rule(
        "compare",
        &["--report"],
        Without(&["--trace", "--capture"]),
        "runs of a page are longer than those of a trace or a capture",
    )
    .remedy("Run uaskit compare twice, once with each option."),
    rule("compare", &["--capture-as"], Needs(&["--capture"]), "it selects what a capture contains"),
    rule("compare", &["--snap"], Needs(&["--capture"]), "it limits what a capture keeps"),
    rule("compare", &["--snap"], Without(&["--capture-as=packets"]), "packets are never cut"),
    rule("compare", &["--findings"], Without(&["--json"]), "JSON has the figures, not the findings"),
    rule("compare", &["--label"], Needs(&["--save"]), "a label is saved with a run"),
    rule("decode", &["--full"], Without(&["--quiet"]), "--quiet prints no commands"),
    rule(
        "history",
        &["RUN"],
        Without(&["--setup", "--drive", "--label", "--limit", "--report"]),
        "it selects runs to list, and RUN is one run",
    ),
    rule("history", &["--export"], Needs(&["RUN"]), "one record is exported"),
    rule("history", &["--delete"], Needs(&["RUN"]), "one run is deleted"),
    rule("history", &["--export"], Without(&["--json"]), "the record is JSON already"),
    rule("history", &["--delete"], Without(&["--json", "--export"]), "a deleted run is not shown"),
    rule("history", &["--report"], Without(&["--json"]), "the page is the only output"),
    rule(
        "list",
        &["--udev"],
        Without(&["--all", "--json", "--record"]),
        "--udev prints a rule for the drives alone",
    ),
    rule(
        "list",
        &["--record"],
        Without(&["--all", "--json"]),
        "a record contains all devices, in its own format",
    ),
    rule("list", &["--record"], Without(&["--from"]), "--record records this machine"),
    rule(
        "why",
        &["--simulate"],
        Without(&["DRIVE", "--log", "--from"]),
        "it answers for a setup, not for a machine",
    ),
    rule("why", &["--simulate"], Without(&["--markdown"]), "Markdown is for reports about a machine"),
    rule("why", &["--markdown"], Without(&["--json"]), "both are formats of standard output"),
];

/// Options of one command line that do not go together.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) what: String,
    pub(crate) because: &'static str,
    pub(crate) remedy: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.because)
    }
}

/// Checks the options of a command.
///
/// # Errors
/// If a row of the table refuses them.
pub(crate) fn check(name: &str, command: &Command, matches: &ArgMatches) -> Result<(), Conflict> {
    let line = Line { command, matches };
    RULES.iter().filter(|rule| rule.command == name).find_map(|rule| rule.refuses(&line)).map_or(Ok(()), Err)
}

impl Rule {
    fn refuses(&self, line: &Line<'_>) -> Option<Conflict> {
        if !self.given.iter().all(|word| line.has(word)) {
            return None;
        }
        let given = self.given.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ");
        let (what, remedy) = match self.relation {
            Without(others) => {
                let other = shown(others.iter().find(|other| line.has(other))?);
                (format!("{given} cannot be combined with {other}"), "Leave one of them out.".to_owned())
            }
            Needs(any) if any.iter().any(|word| line.has(word)) => return None,
            Needs(any) => {
                let any = any.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" or ");
                (format!("{given} needs {any}"), format!("Add {any}, or leave {given} out."))
            }
        };
        let remedy = self.remedy.map_or(remedy, str::to_owned);
        Some(Conflict { what, because: self.because, remedy })
    }
}

/// A word of the table for people.
fn shown(word: &str) -> String {
    match word.split_once([':', '=']) {
        Some((option, text)) if word[option.len()..].starts_with(':') => format!("{option} {text}…"),
        Some((option, value)) => format!("{option} {value}"),
        None => word.to_owned(),
    }
}

/// A parsed command line.
struct Line<'a> {
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl Line<'_> {
    /// Whether a word of the table was given.
    fn has(&self, word: &str) -> bool {
        let option = word.split([':', '=']).next().unwrap_or(word);
        let Some(argument) = self.command.get_arguments().find(|argument| is_named(argument, option)) else {
            return false;
        };
        let id = argument.get_id().as_str();
        if self.matches.value_source(id) != Some(ValueSource::CommandLine) {
            return false;
        }
        let text = &word[option.len()..];
        let values = || self.matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        let allowed = argument.get_possible_values();
        let name_of = |value: &str| {
            let known = allowed.iter().find(|known| known.matches(value, false));
            known.map_or_else(|| value.to_owned(), |known| known.get_name().to_owned())
        };
        match (text.strip_prefix('='), text.strip_prefix(':')) {
            (Some(wanted), _) => values().any(|value| name_of(&value) == wanted),
            (_, Some(begin)) => {
                values().any(|value| value.split(',').any(|item| item.trim().starts_with(begin)))
            }
            _ => true,
        }
    }
}

fn is_named(argument: &Arg, option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.is_positional() && argument.get_id().as_str().eq_ignore_ascii_case(option),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Arguments;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// A value that an option accepts.
    fn sample(command: &str, argument: &Arg) -> String {
        if let Some(value) = argument.get_possible_values().first() {
            return value.get_name().to_owned();
        }
        let name = argument.get_long().unwrap_or(argument.get_id().as_str());
        match (command, name) {
            (_, "size" | "ram" | "bs" | "align" | "block" | "capture-size") => "1M",
            ("serve", "drive") => "ram=1M",
            (_, "usbredir" | "vfio-user") => "unix:drive.sock",
            (_, "lie") => "keep-after-unmap",
            (_, "fault") => "lose-status@1",
            (_, "usb-id") => "1209:0001",
            (_, "streams") => "32",
            (_, "shard") => "1/2",
            (_, "sweep") => "access=random",
            (_, "label") => "before",
            ("history", "run") => "last",
            _ => "1",
        }
        .to_owned()
    }

    /// The options of the words, as a command line that clap accepts.
    fn parse(name: &str, words: &[&str]) -> (Command, ArgMatches) {
        let mut all = Arguments::command();
        all.build();
        let command = all.find_subcommand(name).expect("a command").clone();
        let (mut positional, mut options) = (Vec::new(), Vec::new());
        let exports =
            words.iter().any(|word| ["--usbredir", "--vfio-user"].iter().any(|name| word.starts_with(name)));
        let needed: &[&str] = match name {
            "serve" if !exports => &["--usbredir=tcp:127.0.0.1:1"],
            "decode" => &["FILE"],
            _ => &[],
        };
        for word in words.iter().chain(needed) {
            let option = word.split([':', '=']).next().expect("a part");
            let known = command.get_arguments().find(|argument| is_named(argument, option));
            let argument = known.unwrap_or_else(|| panic!("{name} has no {word}"));
            let value = match &word[option.len()..] {
                "" => sample(name, argument),
                text if text.starts_with(':') => format!("{}1", &text[1..]),
                text => text[1..].to_owned(),
            };
            match (argument.is_positional(), argument.get_action().takes_values()) {
                (true, _) => positional.push(value),
                (_, true) => options.push(format!("{option}={value}")),
                (_, false) => options.push(option.to_owned()),
            }
        }
        let line = [vec!["uaskit".to_owned(), name.to_owned()], positional, options].concat();
        let matches = all.try_get_matches_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let (_, matches) = matches.subcommand().expect("a command");
        (command, matches.clone())
    }

    #[test]
    fn each_row_refuses_what_it_says_and_names_both_options() {
        for rule in RULES {
            let refusal = |more: &[&str]| {
                let words = [rule.given, more].concat();
                let (command, matches) = parse(rule.command, &words);
                let refused = rule.refuses(&Line { command: &command, matches: &matches });
                let any = check(rule.command, &command, &matches);
                assert!(refused.is_none() || any.is_err(), "{words:?}");
                refused.map(|conflict| conflict.to_string())
            };
            let given = shown(rule.given[0]);
            match rule.relation {
                Without(others) => {
                    assert_eq!(refusal(&[]), None, "{given} alone");
                    for other in others {
                        let text = refusal(&[other]).unwrap_or_else(|| panic!("{given} {other} is accepted"));
                        let both = format!("{given} cannot be combined with {}: ", shown(other));
                        assert!(text.starts_with(&both) && text.len() > both.len(), "{text}");
                    }
                }
                Needs(any) => {
                    let text = refusal(&[]).unwrap_or_else(|| panic!("{given} alone is accepted"));
                    assert!(text.starts_with(&format!("{given} needs {}", shown(any[0]))), "{text}");
                    any.iter().for_each(|needed| assert_eq!(refusal(&[needed]), None, "{given} {needed}"));
                }
            }
        }
    }

    #[test]
    fn no_pair_is_in_two_rows() {
        let mut pairs = BTreeSet::new();
        for rule in RULES {
            let (Without(others) | Needs(others)) = rule.relation;
            for other in others {
                let mut pair = [rule.given.concat(), (*other).to_owned()];
                pair.sort();
                assert!(pairs.insert((rule.command, pair)), "{} {:?} {other}", rule.command, rule.given);
            }
        }
    }

    #[test]
    fn a_default_is_not_an_option_that_was_given() {
        let (command, matches) = parse("compare", &["--list-parts"]);
        assert!(check("compare", &command, &matches).is_ok(), "--seed has a default");
        let (command, matches) = parse("bench", &["--virtual", "--rw=randread"]);
        assert!(check("bench", &command, &matches).is_ok(), "--bs has a default");
    }

    #[test]
    fn an_alias_is_the_value_that_it_stands_for() {
        let (command, matches) =
            parse("serve", &["--usbredir=tcp:[::1]:1", "--transport=uas", "--bot-short-data"]);
        let refusal = check("serve", &command, &matches).expect_err("BOT is not offered").to_string();
        assert!(
            refusal.starts_with("--bot-short-data cannot be combined with --transport uas: "),
            "{refusal}"
        );
    }
}
