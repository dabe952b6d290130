//! "Did you mean": the known name that is closest to one that does not exist.
//!
//! Closeness is Jaro's, by which clap suggests flags and values as well. Left out: names of files.

/// How alike two names are at least, from 0 to 1, so that one is offered for the other.
const ALIKE: f64 = 0.75;

/// Returns a hint for an unknown name: the closest of the known ones, then all. `what` is what they
/// are, in the plural.
pub(crate) fn hint<'a>(name: &str, what: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = format!("Known {what}: {}", known.join(", "));
    match nearest(name, &known) {
        Some(nearest) => format!("Did you mean `{nearest}`? {all}"),
        None => all,
    }
}

/// The known name that is most like another one, if any is.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let alike = known.iter().map(|known| (strsim::jaro(&name, &known.to_lowercase()), *known));
    let alike = alike.filter(|(alike, _)| *alike >= ALIKE);
    alike.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_offered_the_name_that_was_meant() {
        let known = ["asm1051e", "asm1153", "jms567", "jms580", "generic-bot"];
        for (slip, meant) in [("asm1135", "asm1153"), ("JMS580", "jms580"), ("generic-bt", "generic-bot")] {
            assert_eq!(nearest(slip, &known), Some(meant));
        }
        assert_eq!(
            hint("jsm567", "bridges", known),
            "Did you mean `jms567`? Known bridges: asm1051e, asm1153, jms567, jms580, generic-bot"
        );
    }

    #[test]
    fn a_name_that_is_like_none_is_offered_all() {
        assert_eq!(hint("zzz", "setups", ["myce", "toms"]), "Known setups: myce, toms");
    }
}
