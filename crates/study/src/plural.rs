//! Counts and lists in words.

/// Formats a count with a plural in s: `1 command`, `2 commands`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Formats a length likewise.
pub fn counted_len(number: usize, what: &str) -> String {
    counted(number as u64, what)
}

/// Lists names: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "run")), ["0 runs", "1 run", "2 runs"]);
    }

    #[test]
    fn the_last_of_several_names_comes_after_an_and() {
        let names = ["a", "b", "c"];
        assert_eq!([0, 1, 2, 3].map(|count| listed(&names[..count])), ["", "a", "a and b", "a, b and c"]);
    }
}
