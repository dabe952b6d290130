//! Numbers with units in part files.
//!
//! A number is a table of value, unit, and either its source or the published rows on which it was
//! fitted. Its field determines the quantity and the allowed units; internally everything is whole:
//! picoseconds, bytes, counts. Left out: negative numbers, which no part needs.
//!
//! Always true: a number that is not exact enough in whole units is rejected.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Value, json};
use sim::power::Microwatts;
use std::fmt;
use std::marker::PhantomData;
use units::Duration;

/// A constant of a part, as in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Key in the file: `flash.read`.
    pub place: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Origin.
    pub origin: Origin,
}

impl Constant {
    /// Returns the constant with its origin.
    pub fn to_json(&self) -> Value {
        let Self { place, value, unit, origin } = self;
        let mut record = json!({ "place": place, "value": value, "unit": unit });
        match origin {
            Origin::Source(source) => record["source"] = json!(source),
            Origin::Fitted(rows) => record["fitted"] = json!(rows),
        }
        record
    }
}

/// The origin of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A document, a measurement, or the reason for choosing it.
    Source(String),
    /// The published rows on which it was fitted.
    Fitted(Vec<String>),
}

impl Constant {
    /// Converts the value to bytes, microseconds, milliwatts, or a count, depending on its unit.
    pub fn plain(&self) -> f64 {
        let factor = |units: &[(&str, f64)], one: f64| {
            units.iter().find(|(name, _)| *name == self.unit).map(|(_, factor)| factor / one)
        };
        let time = || factor(Time::UNITS, 1e6);
        let draw = || factor(PowerDraw::UNITS, 1e3);
        // A sector is a count here, not 512 bytes.
        let count = factor(Count::UNITS, 1.0);
        let factor = count.or_else(time).or_else(draw).or_else(|| factor(Size::UNITS, 1.0));
        factor.unwrap_or(1.0) * self.value
    }
}

/// A physical quantity.
pub(super) trait Measure {
    /// Its units, with their size in internal units.
    const UNITS: &'static [(&'static str, f64)];
}

/// In picoseconds.
pub(super) enum Time {}
/// In bytes.
pub(super) enum Size {}
/// A count.
pub(super) enum Count {}
/// In thousandths.
pub(super) enum Share {}
/// In picoseconds per revolution.
pub(super) enum RotationSpeed {}
/// In picoseconds per byte.
pub(super) enum Rate {}
/// In microwatts.
pub(super) enum PowerDraw {}
/// In milliamperes.
pub(super) enum Current {}

impl Measure for Time {
    const UNITS: &'static [(&'static str, f64)] =
        &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
}

impl Measure for Size {
    const UNITS: &'static [(&'static str, f64)] = &[
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("MB", 1e6),
        ("GB", 1e9),
        ("sectors", 512.0),
    ];
}

impl Measure for Count {
    const UNITS: &'static [(&'static str, f64)] = &[
        ("channels", 1.0),
        ("commands", 1.0),
        ("cores", 1.0),
        ("dies", 1.0),
        ("entries", 1.0),
        ("packets", 1.0),
        ("pages", 1.0),
        ("planes", 1.0),
        ("ports", 1.0),
        ("sectors", 1.0),
        ("segments", 1.0),
        ("streams", 1.0),
        ("surfaces", 1.0),
        ("transfers", 1.0),
        ("zones", 1.0),
    ];
}

impl Measure for Share {
    const UNITS: &'static [(&'static str, f64)] = &[("%", 10.0), ("per mille", 1.0)];
}

impl Measure for RotationSpeed {
    // Internal values decrease as these increase: see `whole`.
    const UNITS: &'static [(&'static str, f64)] = &[("rpm", -60e12)];
}

impl Measure for Rate {
    const UNITS: &'static [(&'static str, f64)] = &[("MB/s", -1e6), ("GB/s", -1e3)];
}

impl Measure for PowerDraw {
    const UNITS: &'static [(&'static str, f64)] = &[("mW", 1e3), ("W", 1e6)];
}

impl Measure for Current {
    const UNITS: &'static [(&'static str, f64)] = &[("mA", 1.0)];
}

/// A number in whole internal units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity<M> {
    whole: u64,
    measure: PhantomData<M>,
}

impl<M> Quantity<M> {
    pub(super) const fn whole(&self) -> u64 {
        self.whole
    }
}

impl Quantity<Time> {
    pub(super) const fn duration(&self) -> Duration {
        Duration::from_ps(self.whole)
    }
}

impl Quantity<PowerDraw> {
    /// Saturates at about four kilowatts.
    pub(super) fn draw(&self) -> Microwatts {
        Microwatts(u32::try_from(self.whole).unwrap_or(u32::MAX))
    }
}

/// A number as written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected { value, unit, and source or fitted }")]
pub(super) struct Written {
    pub(super) value: f64,
    pub(super) unit: String,
    source: Option<String>,
    fitted: Option<Vec<String>>,
}

impl Written {
    pub(super) fn origin(self) -> Result<Origin, &'static str> {
        match (self.source, self.fitted) {
            (Some(source), None) if !source.trim().is_empty() => Ok(Origin::Source(source)),
            (None, Some(rows)) if !rows.is_empty() => Ok(Origin::Fitted(rows)),
            _ => Err("a number needs a non-empty `source` or `fitted`"),
        }
    }
}

impl<'de, M: Measure> Deserialize<'de> for Quantity<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let whole = whole(M::UNITS, written.value, &written.unit).map_err(D::Error::custom)?;
        written.origin().map_err(D::Error::custom)?;
        Ok(Self { whole, measure: PhantomData })
    }
}

/// Converts to whole internal units. A negative factor is divided by the value: more revolutions
/// per minute make a shorter revolution.
fn whole(units: &[(&str, f64)], value: f64, unit: &str) -> Result<u64, String> {
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let names = Names(units);
        return Err(format!("invalid unit `{unit}`, expected {names}"));
    };
    if value < 0.0 {
        return Err(format!("{value} {unit} is negative, expected a positive number"));
    }
    let exact = if *factor > 0.0 { value * factor } else { -factor / value };
    let whole = exact.round();
    let fits = whole.is_finite() && (0.0..=9e15).contains(&whole) && (whole > 0.0 || value == 0.0);
    if !fits || (whole - exact).abs() > exact * 0.01 {
        return Err(format!("{value} {unit} cannot be represented exactly enough in internal units"));
    }
    Ok(whole as u64)
}

/// `a`, `b` or `c`.
struct Names<'a>(&'a [(&'a str, f64)]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, _)) in self.0.iter().enumerate() {
            let before = match index {
                0 => "",
                _ if index + 1 == self.0.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{name}`")?;
        }
        Ok(())
    }
}
