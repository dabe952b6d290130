//! Doubtful results: reversed comparisons, and claims that hold by little.
//!
//! Left out: failed claims. Always true: only rows that runs decide are mentioned.

use super::fails;
use crate::plural::counted_len;
use crate::published::{Row, Verdict};
use report::number;

/// Reversed comparisons, a sentence each.
pub fn turned(rows: &[Row<'_>]) -> Vec<String> {
    let sentence = |row: &Row<'_>| {
        let Verdict::Figure { published, simulated, .. } = row.verdict else { return None };
        let (decision, simulated) = (row.decision, number((simulated * 100.0).round() / 100.0));
        Some(format!(
            "{} is reversed: {}, published {published}, simulated {simulated}.{}",
            decision.id,
            decision.title,
            fails::known(decision)
        ))
    };
    rows.iter().filter(|row| row.is_turned()).filter_map(sentence).collect()
}

/// Lists claims that hold by little, if any, in one sentence.
pub fn by_little(rows: &[Row<'_>]) -> Option<String> {
    let little =
        |row: &Row<'_>| row.holds_by_little().map(|margin| format!("{} {}", row.decision.id, by(margin)));
    let all: Vec<String> = rows.iter().filter_map(little).collect();
    (!all.is_empty()).then(|| {
        let verb = if all.len() == 1 { "holds" } else { "hold" };
        let count = counted_len(all.len(), "claim");
        format!("{count} {verb} by less than 1 %, too little to see in a chart: {}.", all.join(", "))
    })
}

/// `by 0.2 %`.
pub fn by(margin: f64) -> String {
    let percent = margin * 100.0;
    if percent < 0.05 { "by less than 0.1 %".into() } else { format!("by {percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{Decided, Published};

    fn decided(id: &str) -> Decided {
        let mut decided = Decided::built_in().expect("the rows of the program");
        decided.keep(id);
        decided
    }

    #[test]
    fn a_reversed_figure_is_listed_with_its_note() {
        let decided = decided("P086");
        let published = Published { least: 0.92, largest: 0.92 };
        let row = |simulated| Row {
            decision: &decided.decisions[0],
            verdict: Verdict::Figure { published, simulated, error: 0.0 },
            reason: String::new(),
            margin: None,
        };
        let [said] = &turned(&[row(1.036), row(0.99)])[..] else { panic!("one is turned round") };
        assert!(said.starts_with("P086 is reversed: "), "{said}");
        assert!(said.contains("published 0.92, simulated 1.04. Note: "), "{said}");
        assert!(row(1.036).is_turned() && !row(0.99).is_turned() && !row(1.0).is_turned());
    }

    #[test]
    fn narrow_claims_are_listed_with_their_margin() {
        let decided = decided("Q6");
        let row = |verdict, margin| Row {
            decision: &decided.decisions[0],
            verdict,
            reason: String::new(),
            margin: Some(margin),
        };
        assert_eq!(
            by_little(&[row(Verdict::Holds, 0.0016), row(Verdict::Holds, 0.5), row(Verdict::Holds, 0.0001)])
                .as_deref(),
            Some(
                "2 claims hold by less than 1 %, too little to see in a chart: Q6 by 0.2 %, Q6 by less than 0.1 %."
            )
        );
        assert_eq!(by_little(&[row(Verdict::Holds, 0.01), row(Verdict::Fails, 0.001)]), None);
    }
}
