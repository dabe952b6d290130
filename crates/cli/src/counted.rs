//! Numbers of things in words.

/// So many of something whose plural ends in s: `1 command`, `2 commands`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The same of a length.
pub(crate) fn counted_len(number: usize, what: &str) -> String {
    counted(number as u64, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "run")), ["0 runs", "1 run", "2 runs"]);
    }
}
