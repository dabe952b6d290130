use super::*;
use crate::parts::Catalogue;
use crate::setups::Setup;

struct ParameterPath {
    catalogue: Catalogue,
    setups: Vec<Setup>,
}

impl ParameterPath {
    fn new() -> Self {
        let catalogue = Catalogue::built_in().expect("parts that come with the project");
        let setups = Setup::built_in(&catalogue).expect("setups that come with the project");
        Self { catalogue, setups }
    }

    fn facts(&self) -> Facts<'_> {
        Facts { catalogue: &self.catalogue, setups: &self.setups }
    }
}

fn figure(id: &str, value: &str) -> Figure {
    Figure { id: id.into(), value: value.into(), ..Figure::default() }
}

fn read(rows: &[(&str, &str)], text: &str) -> Decided {
    let figures = rows.iter().map(|(id, value)| figure(id, value)).collect();
    Decided::read(figures, &format!("[names]\nflat = 0.05\n{text}"), Plan::default()).expect("decisions")
}

/// As many megabytes a second as the depth, times ten.
fn tens(measurement: &Measurement) -> Result<Outcome, String> {
    if measurement.variant == "turbo" {
        return Err("it does not run".into());
    }
    Ok(Outcome { bytes_per_second: f64::from(measurement.depth) * 10e6, ..Outcome::default() })
}

fn verdicts(rows: &[(&str, &str)], text: &str) -> Vec<(Verdict, String)> {
    let (place, decided) = (ParameterPath::new(), read(rows, text));
    let rows = decided.evaluate(place.facts(), tens);
    rows.into_iter().map(|row| (row.verdict, row.reason)).collect()
}

#[test]
fn every_row_has_a_decision_and_there_are_seventeen_shapes() {
    let decided = Decided::built_in().expect("decisions that come with the project");
    let shapes: Vec<_> = decided.decisions.iter().filter(|decision| decision.is_shape()).collect();
    assert_eq!(decided.decisions.len() - shapes.len(), 107);
    let ids: Vec<_> = shapes.iter().map(|shape| shape.id.clone()).collect();
    assert_eq!(ids, (1..=17).map(|number| format!("Q{number}")).collect::<Vec<_>>());
    assert!(shapes.iter().all(|shape| matches!(shape.kind, DecisionKind::Claims(_))));
}

#[test]
fn what_decisions_name_is_there() {
    let (place, decided) =
        (ParameterPath::new(), Decided::built_in().expect("decisions that come with the project"));
    assert_eq!(place.facts().unknown_in(&decided), Vec::<String>::new());
}

#[test]
fn with_every_measurement_made_only_what_has_a_reason_is_undecided() {
    let (place, decided) =
        (ParameterPath::new(), Decided::built_in().expect("decisions that come with the project"));
    let made = |_: &Measurement| {
        Ok::<_, String>(Outcome {
            bytes_per_second: 1e8,
            requests_per_second: 1e4,
            latency_ns: 1e5,
            watts_peak: Some(5.0),
            unit_bytes: Some(48.0),
            ready_units: Some(0.0),
            order: Some(1234),
        })
    };
    for row in decided.evaluate(place.facts(), made) {
        let has_reason = matches!(row.decision.kind, DecisionKind::Undecidable(_));
        // A figure of a quotient of differences may have no value when all is alike.
        assert_eq!(row.verdict == Verdict::Undecided, has_reason, "{}: {}", row.decision.id, row.reason);
    }
}

#[test]
fn facts_of_protocols_and_parts_are_decided_without_a_run() {
    let (place, decided) =
        (ParameterPath::new(), Decided::built_in().expect("decisions that come with the project"));
    let rows = decided.evaluate(place.facts(), |_| Err("nothing runs"));
    for (id, value) in [
        ("P001", 500.0),
        ("P010", 4.0),
        ("P011", 4.0),
        ("P012", 5.0),
        ("P048", 65_536.0),
        ("P095", 2_097_120.0),
    ] {
        let row = rows.iter().find(|row| row.decision.id == id).expect("a row");
        let Verdict::Figure { simulated, error, .. } = row.verdict else { panic!("{id}: {}", row.reason) };
        assert_eq!((simulated, error), (value, 0.0), "{id}");
    }
    let of = |id: &str| rows.iter().find(|row| row.decision.id == id).expect("a row").verdict;
    assert_eq!((of("P044"), of("P089")), (Verdict::Holds, Verdict::Holds));
}

#[test]
fn a_figure_has_its_error_with_its_sign() {
    let verdicts = verdicts(
        &[("P1", "50"), ("P2", "-20"), ("P3", "20..25")],
        "[P1]\nfigure = \"mbps(myce/uasp 4K random read qd4)\"\n\
         [P2]\nfigure = \"mbps(myce/uasp 4K random read qd1) - mbps(myce/uasp 4K random read qd4)\"\n\
         [P3]\nfigure = \"mbps(myce/uasp 4K random read qd2)\"\n",
    );
    let errors: Vec<_> = verdicts
        .iter()
        .map(|(verdict, _)| match verdict {
            Verdict::Figure { error, .. } => *error,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(errors, [-0.2, -0.5, 0.0]);
}

#[test]
fn a_gain_is_compared_as_the_ratio_that_it_states() {
    let formula = "mbps(myce/uasp 4K random read qd4) / mbps(myce/uasp 4K random read qd4)";
    let verdicts = verdicts(&[("P1", "0")], &format!("[P1]\nfigure = \"{formula}\"\nas = \"ratio\"\n"));
    let Verdict::Figure { published, simulated, error } = verdicts[0].0 else { panic!("a figure") };
    assert_eq!((published.least, published.largest, simulated, error), (1.0, 1.0, 1.0, 0.0));
}

#[test]
fn all_claims_must_hold_and_the_first_that_fails_is_the_reason() {
    let text = "[P1]\nclaims = [\"1 < 2\", \"spread(mbps(myce/bot 4K random read qd2,3)) <= flat\"]\n\
                [P2]\nclaims = [\"mbps(myce/bot 4K random read qd3) > mbps(myce/bot 4K random read qd2)\"]\n";
    let verdicts = verdicts(&[("P1", "flat"), ("P2", "more")], text);
    assert_eq!(verdicts[0].0, Verdict::Fails);
    assert!(verdicts[0].1.ends_with("<= flat: 0.500 and 0.050"), "{}", verdicts[0].1);
    assert_eq!(verdicts[1].0, Verdict::Holds);
    assert!(verdicts[1].1.ends_with("30.000 and 20.000"), "{}", verdicts[1].1);
}

#[test]
fn a_row_whose_run_cannot_be_made_is_undecided_with_the_reason() {
    let text = "[P1]\nfigure = \"mbps(myce/turbo 4K random read qd2)\"\n[P2]\nundecidable = \"a habit\"\n";
    let verdicts = verdicts(&[("P1", "5"), ("P2", "2")], text);
    let run = "myce/turbo 4K random read qd2: it does not run";
    assert_eq!(verdicts[0], (Verdict::Undecided, run.to_owned()));
    assert_eq!(verdicts[1], (Verdict::Undecided, "a habit".to_owned()));
}

#[test]
fn each_measurement_is_made_once() {
    let text = "[P1]\nfigure = \"mbps(myce/bot 4K random read qd2) + mbps(myce/bot 4K random read qd2)\"\n\
                [P2]\nclaims = [\"mbps(myce/bot 4K random read qd2) > 1\"]\n";
    let (place, decided) = (ParameterPath::new(), read(&[("P1", "1"), ("P2", "x")], text));
    let mut runs = Vec::new();
    let _ = decided.evaluate(place.facts(), |one| {
        runs.push(one.to_string());
        tens(one)
    });
    assert_eq!(runs, ["myce/bot 4K random read qd2"]);
}

#[test]
fn errors_have_a_median_and_a_worst() {
    let text: String = [10, 20, 40, 80]
        .map(|value| format!("[P{value}]\nfigure = \"{value} + mbps(myce/bot 4K random read qd1)\"\n"))
        .concat();
    let text = format!("{text}[Q1]\ntext = \"one\"\nclaims = [\"1 > 2\"]\n[names]\n");
    let rows = [("P10", "10"), ("P20", "20"), ("P40", "40"), ("P80", "80")];
    let plan = Plan::read(
        "[[stage]]\nname = \"a\"\nwhy = \"b\"\nrows = [\"P80\"]\n[[stage.number]]\nunit = \"KiB\"\n\
         places = [\"drivers/turbo packing.longest\", \"drivers/fnet-xfast packing.longest\"]\n\
         least = 64\nmost = 1024\nstep = 64\nprior = 64\nbecause = \"c\"\n",
    );
    let figures = rows.iter().map(|(id, value)| figure(id, value)).collect();
    let decided = Decided::read(figures, &text, plan.expect("a plan")).expect("decisions");
    let place = ParameterPath::new();
    let statistics = Statistics::of(&decided.evaluate(place.facts(), tens));
    assert_eq!(statistics.error_median, Some(0.375));
    assert_eq!(statistics.error_worst, Some((1.0, "P10".to_owned())));
    assert_eq!((statistics.fit.figures, statistics.check.figures, statistics.check.fails), (1, 3, 1));
    assert_eq!((statistics.fitted_numbers, statistics.check.all()), (1, 4));
}

#[test]
fn an_invalid_decision_is_an_error_with_its_line() {
    let error = |text: &str| {
        let error =
            Decided::read(vec![figure("P1", "5")], &format!("[names]\n{text}"), Plan::default()).unwrap_err();
        error.to_string()
    };
    assert!(error("[P2]\nundecidable = \"x\"\n").ends_with("P1 has no decision"));
    assert_eq!(
        error("[P1]\n"),
        "published/decisions.toml, line 2: expected one of `figure`, `claims` and `undecidable`"
    );
    assert!(
        error("[P1]\nfigure = \"mbps(\"\n")
            .starts_with("published/decisions.toml, line 2: `mbps(`: at byte 5")
    );
    assert!(error("[P1]\nfigures = \"1\"\n").contains("unknown field `figures`"));
    assert!(
        error("[P1]\nundecidable = \"x\"\n[Q1]\nclaims = [\"1 < 2\"]\n").contains("Q1 is not in the table")
    );
}

#[test]
fn what_files_of_parts_say_is_fitted_is_what_the_plan_fits_on_those_rows() {
    let (place, decided) =
        (ParameterPath::new(), Decided::built_in().expect("decisions that come with the project"));
    assert_eq!(decided.plan.check(&place.catalogue, &decided.decisions), Ok(()));
    assert_eq!(decided.plan.at_odds_with(&place.catalogue), Vec::<String>::new());
}

#[test]
fn an_invalid_plan_is_an_error_with_its_line() {
    let (place, decided) =
        (ParameterPath::new(), Decided::built_in().expect("decisions that come with the project"));
    let text = "[[stage]]\nname = \"a\"\nwhy = \"b\"\nrows = [\"P098\"]\n[[stage.number]]\n\
                places = [\n    \"hdd/disk-7200 platters.outer_track\",\n]\nunit = \"sectors\"\n\
                least = 1600\nmost = 3200\nstep = 8\nprior = 2000\nbecause = \"c\"\n";
    let checked = |from: &str, to: &str| {
        let plan = Plan::read(&text.replacen(from, to, 1))
            .and_then(|plan| plan.check(&place.catalogue, &decided.decisions).map(|()| plan));
        plan.map_err(|error| error.to_string())
    };
    assert!(checked("x", "x").is_ok());
    let line = |line: usize, what: &str| Err(format!("published/fit.toml, line {line}: {what}"));
    assert_eq!(checked("P098", "P999"), line(4, "no such row: `P999`"));
    assert_eq!(checked("P098", "P087"), line(4, "no run decides `P087`"));
    assert_eq!(checked("P098", "P048"), line(4, "`P048` does not depend on a run"));
    assert_eq!(checked("P098", "Q9"), line(4, "`Q9` is a shape, which checks and belongs to no article"));
    assert_eq!(checked("outer", "outest"), line(7, "no such number: `hdd/disk-7200 platters.outest_track`"));
    assert_eq!(checked("hdd/", "tapes/"), line(7, "no such kind of part: `tapes`"));
    let unit = "the unit of `hdd/disk-7200 platters.outer_track` is `sectors`, not `KiB`";
    assert_eq!(checked("\"sectors\"", "\"KiB\""), line(9, unit));
    let again = "_track\",\n    \"hdd/disk-7200 platters.outer_track\",";
    assert_eq!(checked("_track\",", again), line(8, "`hdd/disk-7200 platters.outer_track` is fitted twice"));
    let off = "expected whole steps from `least`, up to `most`";
    assert_eq!((checked("2000", "2001"), checked("2000", "4000")), (line(13, off), line(13, off)));
    assert_eq!(checked("step = 8", "step = 0"), line(12, "expected a positive step"));
    assert!(checked("because", "cause").unwrap_err().contains("unknown field `cause`"));
}

#[test]
fn the_margin_of_a_claim_is_that_of_measured_values() {
    let text = "[P1]\nclaims = [\"mbps(myce/uasp 4K random read qd4) > mbps(myce/uasp 4K random read qd1)\", \
                \"mbps(myce/uasp 4K random read qd4) >= 0.995 * mbps(myce/uasp 4K random read qd4)\"]\n\
                [P2]\nclaims = [\"mbps(myce/uasp 4K random read qd4) = mbps(myce/uasp 4K random read qd4)\"]\n\
                [P3]\nclaims = [\"command_bytes(hardware-fr/intel-win7-turbo) >= 1\"]\n\
                [P4]\nclaims = [\"mbps(myce/uasp 4K random read qd4) < mbps(myce/uasp 4K random read qd1)\"]\n";
    let (place, decided) =
        (ParameterPath::new(), read(&[("P1", ""), ("P2", ""), ("P3", ""), ("P4", "")], text));
    let rows = decided.evaluate(place.facts(), tens);
    let little = |nth: usize| rows[nth].holds_by_little();
    assert!(little(0).is_some_and(|margin| (margin - 0.005).abs() < 1e-9), "{:?}", rows[0].margin);
    assert_eq!([little(1), little(2), little(3)], [None; 3]);
    assert_eq!(rows[3].verdict, Verdict::Fails);
}

#[test]
fn a_gain_that_is_a_loss_is_turned_round() {
    let text = "[P1]\nfigure = \"mbps(myce/uasp 4K random read qd1) / mbps(myce/uasp 4K random read qd2)\"\nas = \"ratio\"\n\
                [P2]\nfigure = \"mbps(myce/uasp 4K random read qd1) - mbps(myce/uasp 4K random read qd2)\"\n\
                [P3]\nfigure = \"mbps(myce/uasp 4K random read qd1) / mbps(myce/uasp 4K random read qd2)\"\nas = \"ratio\"\n\
                [P4]\nfigure = \"mean(mbps(myce/uasp 4K random read qd2) - mbps(myce/uasp 4K random read qd1))\"\n\
                [P5]\nfigure = \"mbps(myce/uasp 4K random read qd1)\"\n";
    let values = [("P1", "20"), ("P2", "5..8"), ("P3", "-30"), ("P4", "8"), ("P5", "-3")];
    let (place, decided) = (ParameterPath::new(), read(&values, text));
    let turned: Vec<_> = decided.evaluate(place.facts(), tens).iter().map(Row::is_turned).collect();
    assert_eq!(turned, [true, true, false, false, false]);
}
