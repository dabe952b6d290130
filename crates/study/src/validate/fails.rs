//! Failed claims as sentences: published statement, simulated values, and expectation.
//!
//! A claim is a comparison of formulas; here measurements are named, and the sides are given by
//! value.

use crate::page::each_once;
use crate::published::{Decision, Row, Verdict};
use report::mean;

/// The number of failed claims, and a sentence for each.
pub(super) fn sentences(rows: &[Row<'_>]) -> Vec<String> {
    let is_judged = |row: &&Row<'_>| matches!(row.verdict, Verdict::Holds | Verdict::Fails);
    let judged = rows.iter().filter(is_judged).count();
    if judged == 0 {
        return Vec::new();
    }
    let failing: Vec<&Row<'_>> = rows.iter().filter(|row| row.verdict == Verdict::Fails).collect();
    let first = match failing.as_slice() {
        [] if judged == 1 => "The only decidable claim holds.".into(),
        [one] if judged == 1 => format!("The only decidable claim fails: {}.", one.decision.id),
        [] => format!("All {judged} decidable claims and shapes hold."),
        [one] => format!("1 of {judged} decidable claims and shapes fails: {}.", one.decision.id),
        many => {
            let ids: Vec<&str> = many.iter().map(|row| row.decision.id.as_str()).collect();
            format!("{} of {judged} decidable claims and shapes fail: {}.", many.len(), ids.join(", "))
        }
    };
    [first].into_iter().chain(failing.into_iter().map(sentence)).collect()
}

fn sentence(row: &Row<'_>) -> String {
    let decision = row.decision;
    let (name, published) = match &decision.figure {
        Some(figure) => {
            let block = figure.block_bytes.parse().map_or_else(
                |_| figure.block_bytes.clone(),
                |bytes: u64| format!("blocks of {}", workload::short_bytes(bytes)),
            );
            let words = [&figure.driver, &figure.transport, &figure.workload, &figure.way, &block];
            let words: Vec<&str> =
                words.into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
            let published = format!(" Published: {} ({}).", figure.value, figure.source);
            (words.join(", "), published)
        }
        None => (decision.title.clone(), String::new()),
    };
    let simulated = in_words(&row.reason).unwrap_or_else(|| row.reason.clone());
    let known = known(decision);
    format!("{} fails, {name}.{published} Simulated: {simulated}.{known}", decision.id)
}

/// The note on a row as another sentence, if any.
pub(super) fn known(decision: &Decision) -> String {
    match decision.note.trim_end_matches('.') {
        "" => String::new(),
        note => format!(" Note: {note}."),
    }
}

/// Describes a failed comparison `A > B: 1.5 and 2.5` in words.
fn in_words(reason: &str) -> Option<String> {
    let (claim, values) = reason.rsplit_once(": ")?;
    let (left, right) = values.split_once(" and ")?;
    let [left, right] = [left, right].map(|value| value.parse::<f64>().map(mean));
    let signs = [
        (" >= ", "at least"),
        (" <= ", "at most"),
        (" > ", "more than"),
        (" < ", "less than"),
        (" = ", "exactly"),
    ];
    let (sign, words) = signs.into_iter().find(|(sign, _)| claim.contains(sign))?;
    let (one, other) = claim.split_once(sign)?;
    let unit = if [one, other].iter().any(|side| side.contains(" / ")) || !one.contains("mbps(") {
        ""
    } else {
        " MB/s"
    };
    let from = |side: &str| {
        let names = measurements(side);
        if names.is_empty() { String::new() } else { format!(" ({})", names.join("; ")) }
    };
    Some(format!(
        "{}{unit}{}, where {words} {}{unit}{} is expected",
        left.ok()?,
        from(one),
        right.ok()?,
        from(other)
    ))
}

/// The measurements of a formula, without duplicates: `a75-fnet, 4K sequential read at QD8`.
fn measurements(formula: &str) -> Vec<String> {
    let measurement = |begun: &str| {
        let (name, _) = begun.split_once(')')?;
        let (name, depth) = name.rsplit_once(" qd")?;
        let (setup, rest) = name.split_once('/')?;
        let (variant, job) = rest.split_once(' ')?;
        Some(format!("{variant} of {setup}, {job} at QD{depth}"))
    };
    each_once(formula.split('(').skip(1).filter_map(measurement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Decided;

    const REASON: &str = "mbps(hardware-fr/a75-fnet 4K sequential read qd8) > much * max(mbps(hardware-fr/intel-win7-bot 4K sequential read \
                          qd8), mbps(hardware-fr/asm1042-mcci 4K sequential read qd8)): 82.178 and 156.319";

    #[test]
    fn a_failed_comparison_is_described_by_its_values() {
        let expected = "82.2 MB/s (a75-fnet of hardware-fr, 4K sequential read at QD8), where more than 156 MB/s \
                     (intel-win7-bot of hardware-fr, 4K sequential read at QD8; asm1042-mcci of hardware-fr, 4K sequential read at QD8) \
                     is expected";
        assert_eq!(in_words(REASON).as_deref(), Some(expected));
        assert_eq!(
            in_words("order(toms/uasp) = 3241: 1234 and 3241").as_deref(),
            Some("1234, where exactly 3241 is expected")
        );
        assert_eq!(in_words("it was not measured"), None);
    }

    #[test]
    fn failed_claims_are_named_with_the_published_value() {
        let mut decided = Decided::built_in().expect("the rows of the program");
        decided.keep("P065");
        let row =
            |verdict| Row { decision: &decided.decisions[0], verdict, reason: REASON.into(), margin: None };
        let said = sentences(&[row(Verdict::Fails), row(Verdict::Holds)]);
        assert_eq!(said[0], "1 of 2 decidable claims and shapes fails: P065.");
        let begins = "P065 fails, Fnet XFast USB, Turbo, IOMeter, compressible data, read/write, blocks of 4K. Published: far above others";
        assert!(
            said[1].starts_with(begins) && said[1].contains("Simulated: 82.2 MB/s (a75-fnet"),
            "{}",
            said[1]
        );
        assert_eq!(sentences(&[row(Verdict::Holds)]), ["The only decidable claim holds."]);
        assert!(sentences(&[row(Verdict::Undecided)]).is_empty());
    }
}
