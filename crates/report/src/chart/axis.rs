//! Axes: range, scale and ticks.
//!
//! Ticks are round numbers or given values; those whose labels would overlap are omitted. A scale
//! in nines shows quantiles: 90 %, 99 % and 99.9 % are equally spaced.

use super::canvas::{FINE, SIGN_WIDTH};
use crate::number::{mean, number, short, three_digits};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// Maps values to positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero unless a value is below.
    #[default]
    Linear,
    /// Logarithmic. Values that are not positive are not shown.
    Log,
    /// Quantiles from 0 to below 1, by their distance from 1.
    Nines,
}

/// Axis of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Name with unit: `MB/s`, `latency, µs`.
    pub name: String,
    /// The scale shown first.
    pub scale: Scale,
    /// Labelled values instead of round numbers.
    pub labels: Vec<(f64, String)>,
    /// Unit of values, if not the end of the name.
    pub unit: Option<String>,
    /// A second unit with its factor.
    pub also: Option<(String, f64)>,
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Creates a logarithmic axis.
    pub fn log(name: impl Into<String>) -> Self {
        Self { name: name.into(), scale: Scale::Log, ..Self::default() }
    }

    /// Creates an axis of quantiles in nines.
    pub fn nines(name: impl Into<String>) -> Self {
        let labels = [
            (0.0, "0"),
            (0.5, "50 %"),
            (0.9, "90 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
        ];
        let labels = labels.map(|(value, label)| (value, label.to_owned())).to_vec();
        Self { name: name.into(), scale: Scale::Nines, labels, ..Self::default() }
    }

    /// Sets labels at values.
    #[must_use]
    pub fn labelled(mut self, labels: impl IntoIterator<Item = (f64, String)>) -> Self {
        self.labels = labels.into_iter().collect();
        self
    }

    /// Sets the unit if the name does not end in it.
    #[must_use]
    pub fn counted_in(self, unit: impl Into<String>) -> Self {
        Self { unit: Some(unit.into()), ..self }
    }

    /// Shows values in a second unit as well: `MB/s (IOPS)`.
    #[must_use]
    pub fn also_in(self, other: impl Into<String>, times: f64) -> Self {
        let (other, unit) = (other.into(), self.unit().to_owned());
        let name = format!("{} ({other})", self.name);
        Self { name, unit: Some(unit), also: Some((other, times)), ..self }
    }

    /// The value in the second unit, if any.
    pub(crate) fn other(&self, value: f64) -> Option<String> {
        let (unit, times) = self.also.as_ref()?;
        Some(format!("{} {unit}", mean(value * times)))
    }

    /// Formats the value of a tick.
    fn tick(&self, value: f64) -> String {
        let Some((_, times)) = self.also else { return short(value) };
        format!("{} ({})", short(value), short(three_digits(value * times)))
    }

    /// The unit of values: as set, the part after the last comma of the name, or a name that is a
    /// unit.
    pub(crate) fn unit(&self) -> &str {
        match (&self.unit, self.name.rsplit_once(", ")) {
            (Some(unit), _) => unit,
            (None, Some((_, unit))) => unit,
            (None, None) if self.name.contains(' ') || self.name.starts_with(char::is_lowercase) => "",
            (None, None) => &self.name,
        }
    }

    /// The position in words: `latency 144 µs`, `requests in flight 4`.
    pub(crate) fn place(&self, value: f64) -> String {
        let text = self.in_words(value);
        match self.name.rsplit_once(", ") {
            Some((name, unit)) if self.labels.is_empty() => format!("{name} {text} {unit}"),
            _ => format!("{} {text}", self.name),
        }
    }

    /// Formats a value, or its label.
    pub(crate) fn in_words(&self, value: f64) -> String {
        let known = self.labels.iter().find(|(at, _)| *at == value);
        match (known, self.scale) {
            (Some((_, label)), _) => label.clone(),
            (None, Scale::Nines) => format!("{} %", number(value * 100.0)),
            (None, _) => mean(value),
        }
    }
}

impl Scale {
    /// How far along a value is, in units of the scale.
    fn far(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Nines => -(1.0 - value.clamp(0.0, 1.0 - 1e-9)).log10(),
        }
    }

    /// The value that is so far along.
    fn near(self, far: f64) -> f64 {
        match self {
            Self::Linear => far,
            Self::Log => 10_f64.powf(far),
            Self::Nines => 1.0 - 10_f64.powf(-far),
        }
    }

    /// Whether a value has a place.
    pub(super) fn takes(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Linear => true,
                Self::Log => value > 0.0,
                Self::Nines => (0.0..1.0).contains(&value),
            }
    }
}

/// An axis that is laid out.
#[derive(Clone, Debug)]
pub(super) struct Span {
    scale: Scale,
    /// Ends, in units of the scale.
    from: f64,
    to: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Span {
    /// For values, over so many units of the picture. `is_across` if it is horizontal, so that labels stand side by side.
    pub(super) fn of(axis: &Axis, scale: Scale, values: &[f64], length: f64, is_across: bool) -> Self {
        let distances =
            || values.iter().copied().filter(|value| scale.takes(*value)).map(|value| scale.far(value));
        let (mut from, mut to) = distances()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), far| (from.min(far), to.max(far)));
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        if scale == Scale::Linear && axis.labels.is_empty() {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        let room = (to - from).max(if scale == Scale::Linear { to.abs() } else { 1.0 } * 0.02);
        match (scale, axis.labels.is_empty()) {
            // Values that are labelled are apart from the ends.
            (_, false) if is_across => (from, to) = (from - room * 0.05, to + room * 0.05),
            (Scale::Linear, _) => to += room * 0.06,
            _ => {
                let beside = (room * 0.06).max((NARROW - (to - from)) / 2.0);
                (from, to) = (from - beside, to + beside);
            }
        }
        let mut span = Self { scale, from, to: to.max(from + 1e-9), ticks: Vec::new() };
        let round = || span.round(length, is_across).into_iter().map(|value| (value, axis.tick(value)));
        let ticks = if axis.labels.is_empty() { round().collect() } else { axis.labels.clone() };
        span.ticks = span.apart(ticks, length, is_across);
        span
    }

    /// From one value to another, without ticks; the first is at the top if it is upright.
    pub(super) const fn exactly([from, to]: [f64; 2]) -> Self {
        Self { scale: Scale::Linear, from, to, ticks: Vec::new() }
    }

    /// The values at its ends.
    pub(super) fn ends(&self) -> [f64; 2] {
        [self.from, self.to].map(|far| self.scale.near(far))
    }

    /// Where a value is: 0 at the beginning, 1 at the end.
    fn place(&self, value: f64) -> f64 {
        (self.scale.far(value) - self.from) / (self.to - self.from)
    }

    fn round(&self, length: f64, is_across: bool) -> Vec<f64> {
        let most = (length / if is_across { 52.0 } else { 34.0 }).max(2.0);
        match self.scale {
            Scale::Linear => multiples(self.ends(), most),
            Scale::Log | Scale::Nines => {
                let decades = self.from.floor() as i32..=self.to.ceil() as i32;
                let few: &[f64] = match self.to - self.from {
                    span if span < most / 3.0 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                let all = decades.flat_map(|decade| few.iter().map(move |of| of * 10_f64.powi(decade)));
                let within = all.filter(|value| (0.0..=1.0).contains(&self.place(*value)));
                let powers: Vec<f64> = within.take(64).collect();
                // Between powers of ten that are far apart there are other round numbers.
                if powers.len() < FEW { multiples(self.ends(), most) } else { powers }
            }
        }
    }

    /// Those whose labels do not touch.
    fn apart(&self, ticks: Vec<(f64, String)>, length: f64, is_across: bool) -> Vec<(f64, String)> {
        let mut end = f64::NEG_INFINITY;
        let mut ticks_apart = Vec::new();
        for (value, label) in ticks {
            if !self.scale.takes(value) || !(-0.001..=1.001).contains(&self.place(value)) {
                continue;
            }
            let half = if is_across { label.chars().count() as f64 * SIGN_WIDTH / 2.0 + 4.0 } else { 7.0 };
            let at = self.place(value) * length;
            if at - half >= end {
                end = at + half;
                ticks_apart.push((value, label));
            }
        }
        ticks_apart
    }

    /// The label of a tick.
    pub(super) fn label(&self, value: f64) -> String {
        self.ticks.iter().find(|(at, _)| *at == value).map_or_else(String::new, |(_, label)| label.clone())
    }

    /// Units of the picture that labels take at its side.
    pub(super) fn width(&self) -> f64 {
        let signs = self.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        signs as f64 * WIDEST + 13.0
    }
}

/// A logarithmic axis has so many decades at least: of values that are all alike one sees that they are.
const NARROW: f64 = 0.1;

/// Ticks that are too few for a scale to be read.
const FEW: usize = 3;

/// Round numbers from one value to another, so many at most.
fn multiples([from, to]: [f64; 2], most: f64) -> Vec<f64> {
    let step = round_step((to - from) / most);
    let first = (from / step).ceil() as i64;
    (first..).map(|nth| nth as f64 * step).take_while(|value| *value <= to).take(64).collect()
}

/// 1, 2 or 5 times a power of ten, at least this.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-12).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|of| of * power);
    steps.into_iter().find(|step| *step >= least * 0.999).unwrap_or(power * 10.0)
}

impl Ranged for Span {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        // What lies far outside is drawn outside, and not on the other side of where numbers end.
        let place = self.place(*value).clamp(-4.0, 5.0);
        first + (f64::from(last - first) * place).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.iter().map(|(value, _)| *value).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

/// A value with its unit, if it has one.
pub(super) fn with_unit(value: &str, unit: &str) -> String {
    if unit.is_empty() { value.to_owned() } else { format!("{value} {unit}") }
}

/// How wide a character of a label is on a small screen, where text is larger.
pub(super) const WIDEST: f64 = 8.2;

/// Units of the picture as plotters counts.
pub(super) fn fine(units: f64) -> i32 {
    (units * FINE).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(span: &Span) -> Vec<&str> {
        span.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_has_round_ticks() {
        let span = Span::of(&Axis::linear("MB/s"), Scale::Linear, &[35.0, 144.0], 200.0, false);
        assert_eq!(labels(&span), ["0", "50", "100", "150"]);
        assert_eq!(span.map(&0.0, (2000, 0)), 2000);
    }

    #[test]
    fn an_axis_of_two_units_has_both_at_each_tick() {
        let axis = Axis::linear("MB/s").also_in("IOPS", 1e6 / 4096.0);
        let span = Span::of(&axis, Scale::Linear, &[0.0, 144.0], 200.0, false);
        assert_eq!(labels(&span), ["0 (0)", "50 (12.2k)", "100 (24.4k)", "150 (36.6k)"]);
        assert_eq!((axis.name.as_str(), axis.unit()), ("MB/s (IOPS)", "MB/s"));
        assert_eq!(axis.other(102.4).as_deref(), Some("25\u{202f}000 IOPS"));
        assert_eq!(Axis::linear("MB/s").other(1.0), None);
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_of_one_two_and_five() {
        let span = Span::of(&Axis::log("µs"), Scale::Log, &[90.0, 2300.0], 240.0, false);
        assert_eq!(labels(&span), ["100", "200", "500", "1000", "2000"]);
    }

    #[test]
    fn a_logarithmic_axis_of_one_value_has_ticks_all_the_same() {
        let of = |values: &[f64]| Span::of(&Axis::log("µs"), Scale::Log, values, 240.0, false);
        assert_eq!(labels(&of(&[144.6])), ["130", "135", "140", "145", "150", "155", "160"]);
        assert_eq!(labels(&of(&[130.0, 520.0])), ["200", "300", "400", "500"]);
        assert_eq!(labels(&of(&[0.95, 1.1])), ["0.95", "1", "1.05", "1.1"]);
    }

    #[test]
    fn the_ends_of_an_axis_are_values() {
        let [low, high] = Span::of(&Axis::log("x"), Scale::Log, &[1.0, 100.0], 300.0, true).ends();
        assert!(low > 0.7 && low < 1.0 && high > 100.0 && high < 140.0, "{low} {high}");
    }

    #[test]
    fn labels_that_would_touch_are_left_out() {
        let axis = Axis::log("block")
            .labelled((9..24).map(|power| (f64::from(1 << power), format!("{} KiB", 1 << power))));
        let values: Vec<f64> = axis.labels.iter().map(|(value, _)| *value).collect();
        let span = Span::of(&axis, Scale::Log, &values, 300.0, true);
        assert!(span.ticks.len() < 8 && span.ticks.len() > 2, "{:?}", span.ticks);
    }

    #[test]
    fn quantiles_are_as_far_apart_as_their_nines() {
        let span = Span::of(&Axis::nines("share"), Scale::Nines, &[0.0, 0.999], 300.0, true);
        let at = |value: f64| span.map(&value, (0, 100_000));
        assert!((at(0.99) - at(0.9)).abs_diff(at(0.999) - at(0.99)) < 5);
    }

    #[test]
    fn a_unit_is_what_the_name_ends_in() {
        let units = ["MB/s", "latency, µs", "requests in flight", "run", "a, b, %"].map(|name| {
            let axis = Axis::linear(name);
            (axis.unit().to_owned(), axis.place(1.5))
        });
        let wanted = [
            ("MB/s", "MB/s 1.5"),
            ("µs", "latency 1.5 µs"),
            ("", "requests in flight 1.5"),
            ("", "run 1.5"),
            ("%", "a, b 1.5 %"),
        ];
        assert_eq!(units, wanted.map(|(unit, place)| (unit.to_owned(), place.to_owned())));
        assert_eq!(Axis::log("after : before").counted_in("times").unit(), "times");
    }

    #[test]
    fn one_value_is_enough_for_an_axis() {
        for scale in [Scale::Linear, Scale::Log] {
            let span = Span::of(&Axis::linear("x"), scale, &[8.0], 300.0, true);
            let at = span.map(&8.0, (0, 1000));
            assert!((1..=1000).contains(&at), "{scale:?}: {at}");
        }
        assert!(Span::of(&Axis::linear("x"), Scale::Log, &[], 300.0, true).map(&1.0, (0, 10)) >= 0);
    }
}
