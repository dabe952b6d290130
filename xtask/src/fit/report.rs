//! Results of a fit, as text.

use comfy_table::{CellAlignment, Table, presets};
use study::parts::Catalogue;
use study::published::fit::{Fitted, LeftOut};
use study::published::{Decided, Row, Statistics, Verdict};

/// Each number: what the files hold, what was found, and whether its rows say so if that was looked for.
pub(super) fn numbers(
    decided: &Decided,
    catalogue: &Catalogue,
    fitted: &Fitted,
    identified: Option<&[bool]>,
) -> Table {
    let mut table = table(&["number", "prior", "file", "found", "unit", "within", "rows", ""], &[1, 2, 3]);
    let stages = decided.plan.stages.iter();
    let rows = stages.flat_map(|stage| stage.numbers.iter().map(|_| stage.rows.join(" ")));
    let numbers = decided.plan.numbers().zip(&fitted.values).zip(rows).enumerate();
    for (index, ((number, found), rows)) in numbers {
        let mut held: Vec<String> = Vec::new();
        for place in &number.places {
            let value = place.find(catalogue).map_or("-".to_owned(), |known| known.value.to_string());
            if !held.contains(&value) {
                held.push(value);
            }
        }
        let name = match number.places.len() {
            1 => number.name(),
            several => format!("{}, in {several} places", number.name()),
        };
        let is_loose = identified.and_then(|identified| identified.get(index)) == Some(&false);
        let note = if is_loose { "not identified by its rows" } else { "" };
        table.add_row([
            name,
            number.prior_value().to_string(),
            held.join(", "),
            found.to_string(),
            number.unit.clone(),
            format!("{} to {}", number.grid.least, number.grid.most()),
            rows,
            note.into(),
        ]);
    }
    table
}

/// Rows that numbers were fitted on, or that come out otherwise: with the files' numbers, and with those that were found.
pub(super) fn rows(before: &[Row<'_>], after: &[Row<'_>]) -> Table {
    let mut table = table(&["row", "fitted on", "with the files", "as found", "what"], &[2, 3]);
    for (before, after) in before.iter().zip(after) {
        let fits = matches!(before.decision.role, study::published::Role::Fit(_));
        let verdicts = [before, after].map(|row| verdict(&row.verdict));
        if fits || verdicts[0] != verdicts[1] {
            let [old, new] = verdicts;
            let fits = if fits { "yes" } else { "" };
            table.add_row([&before.decision.id, fits, &old, &new, &before.decision.title]);
        }
    }
    table
}

/// How good all rows are, with the files' numbers and with those that were found.
pub(super) fn summary(before: &[Row<'_>], after: &[Row<'_>]) -> Table {
    let mut table = table(&["", "with the files", "as found"], &[1, 2]);
    let [old, new] = [before, after].map(|rows| {
        let statistics = Statistics::of(rows);
        let held = rows.iter().filter(|row| row.decision.is_shape() && row.verdict == Verdict::Holds).count();
        let worst = statistics.error_worst.as_ref();
        [
            statistics.error_median.map_or("-".into(), percent),
            worst.map_or("-".into(), |(error, id)| format!("{} of {id}", percent(*error))),
            (statistics.fit.fails + statistics.check.fails).to_string(),
            held.to_string(),
        ]
    });
    let names = ["|error|, median", "|error|, worst", "claims that fail", "shapes that hold"];
    for ((name, old), new) in names.into_iter().zip(old).zip(new) {
        table.add_row([name, &old, &new]);
    }
    table
}

/// Each article, with numbers that were fitted on all rows, and without its own.
pub(super) fn left_out(all: &[LeftOut]) -> String {
    let columns = [
        "article",
        "figures",
        "median, all",
        "left out",
        "worst, all",
        "left out",
        "claims hold, all",
        "left out",
    ];
    let mut table = table(&columns, &[1, 2, 3, 4, 5, 6, 7]);
    let mut unseen = String::new();
    for one in all {
        let [with_all, without] = one.errors();
        let ([hold, hold_without], claims) = one.claims();
        let last = |errors: &[f64]| errors.last().copied().map_or("-".into(), percent);
        table.add_row([
            one.source.clone(),
            with_all.len().to_string(),
            median(&with_all),
            median(&without),
            last(&with_all),
            last(&without),
            format!("{hold} of {claims}"),
            format!("{hold_without} of {claims}"),
        ]);
        if !one.unseen.is_empty() {
            let numbers = one.unseen.join(", ");
            unseen += &format!("\nWithout {} these stay at their priors: {numbers}", one.source);
        }
    }
    format!("{table}{unseen}")
}

fn median(sorted: &[f64]) -> String {
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => "-".into(),
        Some(upper) if sorted.len() % 2 == 1 => percent(*upper),
        Some(upper) => percent(f64::midpoint(sorted[middle - 1], *upper)),
    }
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Figure { error, .. } => format!("{:+.1} %", error * 100.0),
        other => other.name().to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn table(columns: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns);
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
