use super::*;
use crate::measure::Stretch;
use crate::published::{Figure, Plan};
use crate::setups::Setup;
use crate::trial::{self, Terms};
use units::Duration;

/// Two bridges and a controller: what their numbers make is plain.
struct Made {
    /// Each run that was made, in words.
    runs: Vec<String>,
    stages: Vec<String>,
}

impl Made {
    const fn new() -> Self {
        Self { runs: Vec::new(), stages: Vec::new() }
    }

    /// One request at a time pays the controller's rate and what the bridge takes, two pay the rate alone.
    fn megabytes(run: &Run) -> f64 {
        match run.measurement.depth {
            1 => {
                4096.0 / (4096.0 / number(run, "controllers/ej168 memory.inward") + number(run, COMMAND_NAME))
            }
            _ => number(run, "controllers/ej168 memory.inward"),
        }
    }
}

impl Runner for Made {
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
        let outcome = |run: &Run| {
            let numbers = [number(run, "controllers/ej168 memory.inward"), number(run, COMMAND_NAME)];
            self.runs.push(format!("{} {numbers:?}", run.measurement));
            Ok(Outcome { bytes_per_second: Self::megabytes(run) * 1e6, ..Outcome::default() })
        };
        runs.iter().map(outcome).collect()
    }

    fn begin(&mut self, what: &str) {
        self.stages.push(what.to_owned());
    }
}

fn number(run: &Run, name: &str) -> f64 {
    name.parse::<ParameterPath>().unwrap().find(&run.catalogue).unwrap().value
}

/// Makes the runs, with few requests.
struct Brief;

impl Runner for Brief {
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
        let setups = Setup::built_in(&catalogue()).unwrap();
        let stretch = Stretch {
            warm_up: Duration::ZERO,
            span: Duration::from_ms(2),
            requests: 20,
            bytes: 1 << 20,
            rounds: 1,
            caches: 0,
        };
        let terms = Terms { stretch, ..Terms::USUAL };
        let make = |run: &Run| {
            let facts = Facts { catalogue: &run.catalogue, setups: &setups };
            trial::outcome(facts, &run.measurement, &terms).map_err(|error| error.to_string())
        };
        runs.iter().map(make).collect()
    }
}

fn catalogue() -> Catalogue {
    Catalogue::built_in().expect("parts that come with the project")
}

/// Two rows, of two articles.
fn decided(values: [f64; 2], plan: &str) -> Decided {
    let figure = |id: &str, source: &str, value: f64| Figure {
        id: id.into(),
        source: source.into(),
        value: value.to_string(),
        ..Figure::default()
    };
    let figures = vec![figure("P1", "one", values[0]), figure("P2", "other", values[1])];
    let text = "[P1]\nfigure = \"mbps(hardware-fr/ej168-win7-bot 4K random read qd1)\"\n\
                [P2]\nfigure = \"mbps(hardware-fr/ej168-win7-bot 4K random read qd2)\"\n[names]\n";
    Decided::read(figures, text, Plan::read(plan).expect("a plan")).expect("decisions")
}

const COMMAND_NAME: &str = "bridges/asm1051e bot.command";

const COMMAND: &str = "[[stage]]\nname = \"command\"\nwhy = \"\"\nrows = [\"P1\"]\n[[stage.number]]\n\
    places = [\"bridges/asm1051e bot.command\", \"bridges/asm1051e bot.status\"]\nunit = \"us\"\n\
    least = 1\nmost = 40\nstep = 1\nprior = 5\nbecause = \"\"\n";

const INWARD: &str = "[[stage]]\nname = \"inward\"\nwhy = \"\"\nrows = [\"P2\"]\n[[stage.number]]\n\
    places = [\"controllers/ej168 memory.inward\"]\nunit = \"MB/s\"\n\
    least = 100\nmost = 500\nstep = 5\nprior = 400\nbecause = \"\"\n";

/// The value of each row if the rate is 250 and a command takes 23.
const ROWS: [f64; 2] = [4096.0 / (4096.0 / 250.0 + 23.0), 250.0];

fn fitted(decided: &Decided, runner: &mut dyn Runner) -> (Fitted, Vec<LeftOut>) {
    let (fitted, left_out, _) = all(decided, runner);
    (fitted, left_out)
}

/// The numbers, each article left out, and which numbers rows determine.
fn all(decided: &Decided, runner: &mut dyn Runner) -> (Fitted, Vec<LeftOut>, Vec<bool>) {
    let catalogue = catalogue();
    let setups = Setup::built_in(&catalogue).unwrap();
    let facts = Facts { catalogue: &catalogue, setups: &setups };
    let mut fitting = Fitting::new(facts, decided, runner).expect("a plan that can be carried out");
    let fitted = fitting.fit();
    let left_out = fitting.leave_out(&fitted).expect("numbers that can be so");
    let identified = fitting.identified(&fitted);
    (fitted, left_out, identified)
}

#[test]
fn known_numbers_are_found_again_in_rows_made_with_them() {
    let (found, _, identified) = all(&decided(ROWS, &format!("{INWARD}{COMMAND}")), &mut Made::new());
    assert_eq!((found.values.clone(), found.settled), (vec![250.0, 23.0], true));
    assert_eq!(identified, [true, true]);
}

#[test]
fn a_number_that_another_stage_hangs_on_may_come_later() {
    let (found, _) = fitted(&decided(ROWS, &format!("{COMMAND}{INWARD}")), &mut Made::new());
    assert_eq!((found.values.clone(), found.settled), (vec![23.0, 250.0], true));
    assert!(found.passes > 2, "one finds, one finds again, one changes nothing: {}", found.passes);
}

#[test]
fn no_run_is_made_twice_and_two_fits_are_the_same() {
    let decided = decided(ROWS, &format!("{COMMAND}{INWARD}"));
    let (mut one, mut other) = (Made::new(), Made::new());
    assert_eq!(fitted(&decided, &mut one), fitted(&decided, &mut other));
    assert_eq!((&one.runs, &one.stages), (&other.runs, &other.stages));
    // All rows are made once for each of three sets of numbers, whatever a fit has asked for.
    let all_rows = 3 * 2;
    let mut once = one.runs.clone();
    once.sort();
    once.dedup();
    assert!(one.runs.len() <= once.len() + all_rows, "{:?}", one.runs);
}

#[test]
fn what_a_file_holds_has_no_say() {
    let decided = decided(ROWS, &format!("{INWARD}{COMMAND}"));
    let setups = Setup::built_in(&catalogue()).unwrap();
    let found = [12.0, 39.0].map(|held| {
        let catalogue = catalogue().with(PartKind::Bridge, "asm1051e", "bot.command", held).unwrap();
        let facts = Facts { catalogue: &catalogue, setups: &setups };
        let mut made = Made::new();
        let found = Fitting::new(facts, &decided, &mut made).unwrap().fit();
        let command = decided.plan.numbers().nth(1).unwrap();
        assert!(!command.is(23.0, &catalogue));
        let written = decided.plan.catalogue_with(&catalogue, &found.values).unwrap();
        assert!(command.is(23.0, &written), "in both places");
        found
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_number_that_no_row_depends_on_stays_at_its_prior_and_is_loose() {
    let plan = INWARD.replace("controllers/ej168 memory.inward", "controllers/ej168 memory.outward");
    let (found, _, identified) = all(&decided(ROWS, &plan), &mut Made::new());
    assert_eq!((found.values, identified), (vec![400.0], vec![false]));
}

#[test]
fn two_numbers_of_which_one_row_gives_the_sum_are_loose() {
    // The rate is one of the two, and its own row is not among those of the stage.
    let plan = COMMAND.to_owned() + &INWARD[INWARD.find("[[stage.number]]").unwrap()..];
    let (_, _, identified) = all(&decided(ROWS, &plan), &mut Made::new());
    assert_eq!(identified, [false, false]);
}

#[test]
fn an_article_that_is_left_out_is_not_seen() {
    let (_, left_out) = fitted(&decided(ROWS, &format!("{INWARD}{COMMAND}")), &mut Made::new());
    let [one, other] = left_out.as_slice() else { panic!("two articles") };
    assert_eq!((one.source.as_str(), one.values.clone()), ("one", vec![250.0, 5.0]));
    assert_eq!(one.unseen, ["bridges/asm1051e bot.command"]);
    let [with_all, without] = one.errors();
    let expected = ((4096.0 / (4096.0 / 250.0 + 5.0)) / ROWS[0] - 1.0).abs();
    assert!(with_all[0] < 1e-9 && (without[0] - expected).abs() < 1e-9, "{with_all:?} {without:?}");
    assert_eq!((other.source.as_str(), other.unseen.len(), other.claims()), ("other", 1, ([0, 0], 0)));
}

#[test]
fn a_number_of_a_bridge_is_found_again_by_real_runs() {
    let catalogue = catalogue();
    let setups = Setup::built_in(&catalogue).unwrap();
    let held = catalogue.with(PartKind::Bridge, "asm1051e", "bot.command", 30.0).unwrap();
    let held = held.with(PartKind::Bridge, "asm1051e", "bot.status", 30.0).unwrap();
    let mut decided = decided(ROWS, COMMAND);
    let rows = {
        let facts = Facts { catalogue: &held, setups: &setups };
        let mut brief = Brief;
        let rows = Fitting::new(facts, &decided, &mut brief).unwrap().rows_of_files();
        let simulated = |row: &Row<'_>| match row.verdict {
            crate::published::Verdict::Figure { simulated, .. } => simulated,
            other => panic!("{other:?}"),
        };
        [simulated(&rows[0]), simulated(&rows[1])]
    };
    decided = self::decided(rows, COMMAND);
    let facts = Facts { catalogue: &catalogue, setups: &setups };
    let mut brief = Brief;
    let found = Fitting::new(facts, &decided, &mut brief).unwrap().fit();
    assert_eq!(found.values, [30.0]);
}
