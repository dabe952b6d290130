//! A point of a sweep as a line of JSON: parameters and results.
//!
//! A point that cannot be simulated has a reason in place of figures. Always true: a line contains
//! no line break, and equal points give equal bytes.

use crate::parts::{Activation, Catalogue};
use crate::setups::{Assembly, DriveName};
use crate::trial::{self, Terms, Trial};
use serde_json::{Value, json};
use workload::Job;

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Index over the whole grid, from 0.
    pub number: usize,
    /// Name of the setup's variant.
    pub variant: String,
    /// The parts.
    pub assembly: Assembly,
    /// The active transport and the reasons for it.
    pub activation: Activation,
    /// The job.
    pub job: Job,
    /// The random seed.
    pub seed: u64,
}

impl Point {
    /// Runs the point.
    pub fn line(&self, catalogue: &Catalogue, terms: &Terms) -> String {
        let span = self.job.span_bytes.unwrap_or(trial::DATA_SET_BYTES);
        let job = Job { span_bytes: Some(span), ..self.job.clone() };
        let terms = Terms { seed: self.seed, ..*terms };
        let mut record = self.asked();
        match trial::run(&self.assembly, catalogue, &job, &terms) {
            Ok(trial) => figures(&mut record, &trial),
            Err(error) => record["reason"] = json!(error.to_string()),
        }
        record.to_string()
    }

    fn asked(&self) -> Value {
        let (assembly, share) = (&self.assembly, self.job.specs.first());
        let kind = match assembly.drive {
            DriveName::Ssd(_) => "ssd",
            DriveName::Hdd(_) => "hdd",
        };
        json!({
            "point": self.number,
            "variant": self.variant,
            "host": assembly.host,
            "asked_driver": assembly.driver,
            "driver": self.activation.driver,
            "transport": self.activation.transport.to_string(),
            "controller": assembly.controller,
            "hubs": assembly.hubs.join("+"),
            "bridge": assembly.bridge,
            "speed": self.activation.link_name(),
            "drive": assembly.drive.as_str(),
            "drive_kind": kind,
            "block_bytes": share.map(|share| share.bytes),
            "read_percent": share.map(|share| share.read_percent),
            "random_percent": share.map(|share| share.random_percent),
            "depth": self.job.depth,
            "seed": self.seed,
        })
    }
}

fn figures(record: &mut Value, Trial { measured, events, digest, spent, .. }: &Trial) {
    let Value::Object(record) = record else { return };
    let us = |time: units::Duration| time.as_ps() as f64 / 1e6;
    let all = [
        ("mb_per_s", json!(measured.megabytes_per_second())),
        ("requests_per_s", json!(measured.iops())),
        ("latency_mean_us", json!(us(measured.mean))),
        ("latency_max_us", json!(us(measured.longest))),
        ("requests", json!(measured.requests)),
        ("elapsed_us", json!(us(measured.elapsed))),
        ("power_mean_w", json!(spent.mean_watts())),
        ("power_peak_w", json!(spent.peak_watts())),
        ("power_peak_window_us", json!(us(spent.window))),
        ("energy_j_per_gb", json!(spent.joules_per_gigabyte(measured.bytes))),
        ("events", json!(events)),
        ("digest", json!(format!("{digest:016x}"))),
    ];
    record.extend(all.map(|(name, value)| (name.to_owned(), value)));
}
