//! A validation for programs.

use super::{BARS, Validation, places, runs};
use crate::published::{Change, Count, Role, Row, Sensitivity, Verdict};
use serde_json::{Value, json};

/// Rows with id, published, simulated, error (a share, signed) or verdict, and reason.
pub fn record(validation: Validation<'_>) -> Value {
    let Validation { decided, rows, statistics, sensitivities, made, seed } = validation;
    let worst = statistics.error_worst.as_ref();
    let mut record = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "digest": runs::digest(made),
        "rows": rows.iter().map(of_row).collect::<Vec<_>>(),
        "fit": of_count(statistics.fit),
        "check": of_count(statistics.check),
        "fitted_numbers": statistics.fitted_numbers,
        "fitted_places": places(decided),
        "error_median": statistics.error_median,
        "error_median_with_facts": statistics.error_median_with_facts,
        "error_worst": worst.map(|(error, id)| json!({ "error": error, "id": id })),
        "bars": { "error_median": BARS.0, "error_worst": BARS.1 },
    });
    if !sensitivities.is_empty() {
        record["sensitivity"] = sensitivities.iter().map(of_sensitivity).collect();
    }
    record
}

fn of_row(row: &Row<'_>) -> Value {
    let decision = row.decision;
    let mut record = json!({
        "id": decision.id,
        "title": decision.title,
        "source": decision.figure.as_ref().map(|figure| &figure.source),
        "verdict": row.verdict.name(),
        "reason": row.reason,
        "note": decision.note,
        "fits": match &decision.role {
            Role::Fit(constants) => json!(constants),
            Role::Check => Value::Null,
        },
    });
    if let Verdict::Figure { published, simulated, error } = row.verdict {
        record["published"] = match published.least == published.largest {
            true => json!(published.least),
            false => json!([published.least, published.largest]),
        };
        record["simulated"] = json!(simulated);
        record["error"] = json!(error);
        record["is_turned"] = json!(row.is_turned());
    }
    if let Some(margin) = row.margin {
        record["margin"] = json!(margin);
    }
    record
}

fn of_count(Count { figures, holds, fails, undecided }: Count) -> Value {
    json!({ "figures": figures, "holds": holds, "fails": fails, "undecided": undecided })
}

fn of_sensitivity(Sensitivity { number, changes: [less, more] }: &Sensitivity) -> Value {
    json!({
        "number": number,
        "a_tenth_less": less.as_ref().map(of_change),
        "a_tenth_more": more.as_ref().map(of_change),
    })
}

fn of_change(Change { runs, error_median, error_worst, moved_most, broken }: &Change) -> Value {
    json!({
        "runs": runs,
        "error_median": error_median,
        "error_worst": error_worst.as_ref().map(|(error, id)| json!({ "error": error, "id": id })),
        "moved_most": moved_most.as_ref().map(|(share, id)| json!({ "share": share, "id": id })),
        "broken": broken,
    })
}
