//! Documents that people read from top to bottom have a size that they are read at.

use crate::tidy::finding::{Finding, Rule};

/// Documents and how many KiB each may have.
const LIMITS_KIB: &[(&str, usize)] =
    &[("README.md", 8), ("docs/ROADMAP.md", 10), ("docs/PERFORMANCE.md", 15)];

/// A document that is too long; its amount is in KiB, rounded up.
pub(crate) fn document_size(path: &str, text: &str) -> Option<Finding> {
    let (_, most) = LIMITS_KIB.iter().find(|(limited, _)| *limited == path)?;
    let size = text.len().div_ceil(1024);
    let advice =
        format!("{size} KiB, {most} KiB at most; move details to the book or to a document of the topic");
    (size > *most).then(|| Finding::new(path, 1, Rule::DocumentSize, advice).amount(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_from_its_first_byte_too_many() {
        assert_eq!(document_size("README.md", &"a".repeat(8 << 10)), None);
        let found = document_size("README.md", &"a".repeat((8 << 10) + 1)).expect("too long");
        assert_eq!(found.amount, 9);
        assert_eq!(document_size("docs/JSON.md", &"a".repeat(100 << 10)), None);
    }
}
