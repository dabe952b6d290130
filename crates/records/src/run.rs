//! A saved run.
//!
//! Units are part of the names. Unknown values are `None`: a simulated run of one seed has no
//! rounds, a measured one no digest. The complete record, as `--json` prints it, is saved as well,
//! so that nothing is lost for which there is no column.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// One call of `uaskit bench` or `uaskit compare`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The user's label.
    pub label: Option<String>,
    /// Measured or simulated.
    pub kind: RunKind,
    /// Start, in seconds since 1970.
    pub began_unix_s: u64,
    /// The version of the program.
    pub version: String,
    /// Command line.
    pub command_line: Vec<String>,
    /// Random seed for LBAs and payload.
    pub seed: u64,
    /// Interrupted early.
    pub interrupted: bool,
    /// The measured device or simulated setup.
    pub setup: Setup,
    /// A row for each job on each transport, in order.
    pub results: Vec<ResultRow>,
    /// Conditions that may distort the figures, such as a capture.
    pub notes: Vec<String>,
    /// The complete record as `--json` prints it.
    #[serde(skip)]
    pub record: String,
}

/// The source of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Measured on a drive, in rounds.
    Measured,
    /// Simulated in virtual time: exact for its seed.
    Simulated,
}

/// Properties that stay the same from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// Target or setup as named on the command line.
    pub name: String,
    /// Drive: model and serial number, or the part.
    pub drive: String,
    /// Other facts by name: firmware, USB id, link, controller, driver, machine.
    pub facts: BTreeMap<String, String>,
}

/// A job on a transport.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultRow {
    /// Transport, or configuration of a comparison.
    pub transport: String,
    /// The job.
    pub job: String,
    /// Queue depth.
    pub depth: u16,
    /// Figures or the reason for their absence; in JSON an object, of figures or with an `error`
    /// alone.
    #[serde(serialize_with = "figures_or_error")]
    pub figures: Result<Figures, String>,
}

/// The figures of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// I/Os in a second.
    pub iops: f64,
    /// Its 95 % interval.
    pub iops_interval: Option<[f64; 2]>,
    /// I/Os per second by round, or by seed if there are several.
    pub iops_of_rounds: Vec<f64>,
    /// Megabytes (10⁶ bytes) per second.
    pub mb_per_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// Median, in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, in microseconds.
    pub p999_us: Option<f64>,
    /// Maximum, in microseconds.
    pub max_us: Option<f64>,
    /// Percentiles with latencies in microseconds, ascending. None if not saved.
    pub percentiles_us: Vec<[f64; 2]>,
    /// I/Os counted.
    pub ios: u64,
    /// Failed requests.
    pub errors: u64,
    /// Digest of all events of a simulation.
    pub digest: Option<String>,
}

fn figures_or_error<S: Serializer>(figures: &Result<Figures, String>, to: S) -> Result<S::Ok, S::Error> {
    match figures {
        Ok(figures) => figures.serialize(to),
        Err(error) => BTreeMap::from([("error", error)]).serialize(to),
    }
}

impl RunKind {
    /// One word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Self::Measured, Self::Simulated].into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Run {
    /// Returns the transports of its rows, each once.
    pub fn transports(&self) -> Vec<&str> {
        let mut transports: Vec<&str> = Vec::new();
        for row in &self.results {
            if !transports.contains(&row.transport.as_str()) {
                transports.push(&row.transport);
            }
        }
        transports
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A measured run of two rows, one of which failed.
    pub(crate) fn sample() -> Run {
        let figures = Figures {
            iops: 1000.0,
            iops_interval: Some([990.0, 1010.0]),
            iops_of_rounds: vec![995.0, 1000.0, 1005.0],
            mb_per_s: 4.096,
            mean_us: 900.5,
            p50_us: Some(850.0),
            p99_us: Some(2000.0),
            p999_us: Some(3000.0),
            max_us: Some(4000.0),
            percentiles_us: vec![[50.0, 850.0], [99.0, 2000.0]],
            ios: 3000,
            errors: 0,
            digest: None,
        };
        let row = |transport: &str, figures| ResultRow {
            transport: transport.into(),
            job: "4K random read".into(),
            depth: 32,
            figures,
        };
        Run {
            label: Some("before".into()),
            kind: RunKind::Measured,
            began_unix_s: 1_700_000_000,
            version: "0.1.0".into(),
            command_line: vec!["uaskit".into(), "bench".into()],
            seed: u64::MAX,
            interrupted: false,
            setup: Setup {
                name: "2-1".into(),
                drive: "Some Drive, serial number 1".into(),
                facts: BTreeMap::from([("firmware".into(), "1.0".into())]),
            },
            results: vec![row("uas", Ok(figures)), row("bot", Err("it was refused".into()))],
            notes: vec!["requests go through the page cache".into()],
            record: "{}".into(),
        }
    }

    #[test]
    fn transports_are_listed_once() {
        let mut run = sample();
        run.results.extend(sample().results);
        assert_eq!(run.transports(), ["uas", "bot"]);
    }
}
