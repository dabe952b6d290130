//! A configuration of a comparison: parts on which some transport runs, and one run of a job on
//! them.
//!
//! Always true: the parts are in the catalogue, and some transport runs on them.

use crate::error::StudyError;
use crate::measure::{MeasureError, Stretch};
use crate::parts::{Activation, Carried, Catalogue, PartKind};
use crate::setups::{Assembly, DriveName};
use crate::trial::{self, Terms, Trial, TrialError, TrialObservers};
use units::Duration;
use workload::Job;

/// A configuration of the comparison.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Name of the setup's variant, or of the driver that replaces its own.
    pub name: String,
    /// The parts.
    pub assembly: Assembly,
    /// The active transport and the reasons for it.
    pub activation: Activation,
}

/// Results of a job on each configuration.
pub struct Row {
    /// The job.
    pub job: Job,
    /// One result per configuration.
    pub trials: Vec<Trial>,
}

/// Configurations to compare, and what they are simulated with.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The configurations.
    pub columns: &'a [Configuration],
    /// Parts by name.
    pub catalogue: &'a Catalogue,
    /// How long to measure, with which seed.
    pub terms: &'a Terms,
}

impl Configuration {
    /// Returns the transport in one word, as in `uaskit bench`.
    pub const fn transport(&self) -> &'static str {
        match self.activation.transport {
            Carried::Bot => "bot",
            Carried::Turbo => "turbo",
            Carried::Uas(_) => "uas",
            Carried::Sata => "sata",
        }
    }

    /// Whether the configuration uses a part.
    pub fn uses(&self, kind: PartKind, name: &str, catalogue: &Catalogue) -> bool {
        let assembly = &self.assembly;
        match kind {
            PartKind::Host => assembly.host == name,
            PartKind::Driver => self.activation.driver == name,
            PartKind::Controller | PartKind::Sata => assembly.controller == name,
            PartKind::Hub => assembly.hubs.iter().any(|hub| hub == name),
            PartKind::Bridge => assembly.bridge.as_deref() == Some(name),
            PartKind::Link => assembly.link.as_deref() == Some(name),
            PartKind::Ssd | PartKind::Hdd => assembly.drive.as_str() == name,
            PartKind::Power => catalogue.host(&assembly.host).is_some_and(|host| host.power == name),
        }
    }
}

/// Replaces parts by kind; an empty hub name removes the hub. None if the drive does not exist.
pub fn replaced(
    column: &Configuration,
    parts: &[(PartKind, &str)],
    catalogue: &Catalogue,
) -> Option<(String, Assembly)> {
    let mut assembly = column.assembly.clone();
    for &(kind, name) in parts {
        let is_usb = assembly.bridge.is_some();
        match kind {
            PartKind::Host => assembly.host = name.into(),
            PartKind::Ssd | PartKind::Hdd => assembly.drive = DriveName::find(name, catalogue)?,
            PartKind::Driver if is_usb => assembly.driver = name.into(),
            PartKind::Controller if is_usb => assembly.controller = name.into(),
            PartKind::Bridge if is_usb => assembly.bridge = Some(name.into()),
            PartKind::Link if is_usb => assembly.link = Some(name.into()),
            PartKind::Hub if is_usb => {
                assembly.hubs =
                    Some(name).filter(|name| !name.is_empty()).map(str::to_owned).into_iter().collect();
            }
            // Native SATA has none of these.
            _ => {}
        }
    }
    Some((column.name.clone(), assembly))
}

/// Runs a job on a configuration.
pub fn one(
    column: &Configuration,
    job: &Job,
    catalogue: &Catalogue,
    terms: &Terms,
    watch: TrialObservers,
) -> Result<Trial, StudyError> {
    let span = job.span_bytes.unwrap_or(trial::DATA_SET_BYTES);
    let job = Job { span_bytes: Some(span), ..job.clone() };
    match trial::run_observed(&column.assembly, catalogue, &job, terms, watch) {
        Ok(trial) => Ok(trial),
        Err(TrialError::Measure(MeasureError::Job(error))) => {
            Err(StudyError::usage(format!("{} does not fit this drive", job.label)).because(error))
        }
        Err(error) => {
            let what = format!("{}: {}: simulation failed", column.name, job.label);
            Err(StudyError::new(what).because(error))
        }
    }
}

/// Pairs of indexes of configurations on BOT and UAS that differ only in the driver.
pub fn pairs(columns: &[Configuration]) -> impl Iterator<Item = (usize, usize)> {
    let is_bot = |column: &Configuration| column.activation.transport == Carried::Bot;
    let is_uas = |column: &Configuration| matches!(column.activation.transport, Carried::Uas(_));
    let pairs = (0..columns.len()).flat_map(|bot| (0..columns.len()).map(move |uas| (bot, uas)));
    pairs.filter(move |&(bot, uas)| {
        let [one, other] = [bot, uas].map(|place| &columns[place].assembly);
        let same_driver = Assembly { driver: other.driver.clone(), ..one.clone() } == *other;
        same_driver && is_bot(&columns[bot]) && is_uas(&columns[uas])
    })
}

/// The same terms for a limited number of requests.
pub fn short(terms: &Terms, requests: u32) -> Terms {
    let stretch = Stretch {
        warm_up: Duration::ZERO,
        span: Duration::ZERO,
        requests,
        bytes: u64::MAX,
        rounds: 0,
        caches: 0,
    };
    Terms { stretch, ..*terms }
}
