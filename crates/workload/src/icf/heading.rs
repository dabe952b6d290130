//! The headings that IOMeter 1.1.0 and 2006.07.27 write: their sections, how many lines of values
//! follow, and what these mean to a workload.
//!
//! A file with an unknown heading is rejected: otherwise what it requests would be missing from the
//! measurement unnoticed. As in IOMeter, case and the amount of white space do not matter.

/// A section of the file.
#[derive(Debug)]
pub(super) struct Section {
    /// The start of its first line; the rest is a rule of `=`.
    pub(super) name: &'static str,
    /// Its last line.
    pub(super) end: &'static str,
    headings: &'static [Heading],
}

/// A heading and its values.
#[derive(Debug)]
pub(super) struct Heading {
    name: &'static str,
    /// Meaning of the lines below it.
    pub(super) meaning: Meaning,
    /// How many lines follow.
    pub(super) values: Values,
    /// A second line of the heading, which names columns.
    columns: Option<&'static str>,
}

/// Number of value lines of a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// None: it opens or closes something.
    None,
    /// A name or an address, which can be empty.
    AtMostOne,
    One,
    Any,
}

/// Meaning of a heading's values for a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing: what IOMeter shows and records, names and addresses of its parts, what it does for workers that are
    /// not in the file, and cycles of types of test that are refused.
    PassedOver,
    RunTime,
    RampUp,
    DepthCycle,
    TestType,
    SpecificationName,
    Accesses,
    Worker,
    WorkerType,
    Outstanding {
        /// Whether two columns about the random seed follow.
        seed: bool,
    },
    Disk {
        /// Whether the column of the data pattern follows.
        pattern: bool,
    },
    Assigned,
    Target,
    TargetType,
}

impl Section {
    /// Finds the section that begins with this line.
    pub(super) fn begun_by(comment: &str) -> Option<&'static Self> {
        let name = comment.trim_end_matches('=');
        SECTIONS.iter().find(|section| is_same(section.name, name))
    }

    /// Whether it ends with this line.
    pub(super) fn is_ended_by(&self, comment: &str) -> bool {
        is_same(self.end, comment)
    }

    /// Finds the heading of this line.
    pub(super) fn heading(&self, comment: &str) -> Option<&'static Heading> {
        self.headings.iter().find(|heading| is_same(heading.name, comment))
    }
}

impl Heading {
    /// Whether this line continues the heading.
    pub(super) fn goes_on_with(&self, comment: &str) -> bool {
        self.columns.is_some_and(|columns| is_same(columns, comment))
    }

    const fn with_columns(self, columns: &'static str) -> Self {
        Self { columns: Some(columns), ..self }
    }
}

/// Word by word, where `#` is any digit.
fn is_same(known: &str, seen: &str) -> bool {
    let is_same_word = |(known, seen): (&str, &str)| {
        known.eq_ignore_ascii_case(seen)
            || known == "#" && seen.len() == 1 && seen.bytes().all(|digit| digit.is_ascii_digit())
    };
    known.split_whitespace().count() == seen.split_whitespace().count()
        && known.split_whitespace().zip(seen.split_whitespace()).all(is_same_word)
}

const fn heading(name: &'static str, values: Values, meaning: Meaning) -> Heading {
    Heading { name, meaning, values, columns: None }
}

const SECTIONS: &[Section] = &[
    Section { name: "TEST SETUP", end: "END test setup", headings: TEST_SETUP },
    Section { name: "RESULTS DISPLAY", end: "END results display", headings: RESULTS_DISPLAY },
    Section {
        name: "ACCESS SPECIFICATIONS",
        end: "END access specifications",
        headings: ACCESS_SPECIFICATIONS,
    },
    Section { name: "MANAGER LIST", end: "END manager list", headings: MANAGER_LIST },
];

const TEST_SETUP: &[Heading] = &[
    heading("Test Description", Values::AtMostOne, Meaning::PassedOver),
    heading("Run Time", Values::One, Meaning::RunTime).with_columns("hours minutes seconds"),
    heading("Ramp Up Time (s)", Values::One, Meaning::RampUp),
    heading("Default Disk Workers to Spawn", Values::One, Meaning::PassedOver),
    heading("Default Network Workers to Spawn", Values::One, Meaning::PassedOver),
    heading("Record Results", Values::One, Meaning::PassedOver),
    heading("Worker Cycling", Values::One, Meaning::PassedOver).with_columns("start step step type"),
    heading("Disk Cycling", Values::One, Meaning::PassedOver).with_columns("start step step type"),
    heading("Queue Depth Cycling", Values::One, Meaning::DepthCycle).with_columns("start end step step type"),
    heading("Test Type", Values::One, Meaning::TestType),
];

const RESULTS_DISPLAY: &[Heading] = &[
    heading("Update Frequency,Update Type", Values::One, Meaning::PassedOver),
    heading("Record Last Update Results,Update Frequency,Update Type", Values::One, Meaning::PassedOver),
    heading("Bar chart # statistic", Values::One, Meaning::PassedOver),
    heading("Bar chart # manager ID, manager name", Values::One, Meaning::PassedOver),
    heading("Bar chart # worker ID, worker name", Values::One, Meaning::PassedOver),
];

const ACCESS_SPECIFICATIONS: &[Heading] = &[
    heading("Access specification name,default assignment", Values::One, Meaning::SpecificationName),
    heading("size,% of size,% reads,% random,delay,burst,align,reply", Values::Any, Meaning::Accesses),
];

const MANAGER_LIST: &[Heading] = &[
    heading("Manager ID, manager name", Values::One, Meaning::PassedOver),
    heading("Manager network address", Values::AtMostOne, Meaning::PassedOver),
    heading("Worker", Values::AtMostOne, Meaning::Worker),
    heading("Worker type", Values::One, Meaning::WorkerType),
    heading("Default target settings for worker", Values::None, Meaning::PassedOver),
    heading(
        "Number of outstanding IOs,test connection rate,transactions per connection",
        Values::One,
        Meaning::Outstanding { seed: false },
    ),
    heading(
        "Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value",
        Values::One,
        Meaning::Outstanding { seed: true },
    ),
    heading("Disk maximum size,starting sector", Values::One, Meaning::Disk { pattern: false }),
    heading("Disk maximum size,starting sector,Data pattern", Values::One, Meaning::Disk { pattern: true }),
    heading("End default target settings for worker", Values::None, Meaning::PassedOver),
    heading("Assigned access specs", Values::Any, Meaning::Assigned),
    heading("End assigned access specs", Values::None, Meaning::PassedOver),
    heading("Target assignments", Values::None, Meaning::PassedOver),
    heading("Target", Values::AtMostOne, Meaning::Target),
    heading("Target type", Values::One, Meaning::TargetType),
    heading("End target", Values::None, Meaning::PassedOver),
    heading("End target assignments", Values::None, Meaning::PassedOver),
    heading("End worker", Values::None, Meaning::PassedOver),
    heading("End manager", Values::None, Meaning::PassedOver),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_known_by_its_words() {
        assert!(is_same("Run Time", "run  TIME "));
        assert!(is_same("Bar chart # statistic", "Bar chart 6 statistic"));
        for other in ["Run", "Run Time s", "RunTime", ""] {
            assert!(!is_same("Run Time", other), "{other}");
        }
        assert!(!is_same("Bar chart # statistic", "Bar chart 16 statistic"));
        assert!(!is_same("Bar chart # statistic", "Bar chart x statistic"));
    }

    #[test]
    fn a_section_begins_with_its_name_and_a_rule() {
        let begun = |comment| Section::begun_by(comment).map(|section| section.name);
        assert_eq!(begun("TEST SETUP ===="), Some("TEST SETUP"));
        assert_eq!(begun("Manager List"), Some("MANAGER LIST"));
        assert_eq!(begun("TEST SETUP of mine ===="), None);
    }

    #[test]
    fn no_section_has_a_heading_twice() {
        for section in SECTIONS {
            for heading in section.headings {
                let same = section.headings.iter().filter(|other| is_same(other.name, heading.name)).count();
                assert_eq!(same, 1, "{}", heading.name);
            }
        }
    }
}
