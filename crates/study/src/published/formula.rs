//! Formulas over measurements and facts, as decisions are written in them.
//!
//! ```text
//! claim   = formula ("<" | "<=" | "=" | ">=" | ">") formula
//! formula = product { ("+" | "-") product }
//! product = atom { ("*" | "/") atom }
//! atom    = number | name | metric "(" measurement ")" | function "(" formula { "," formula } ")" | fact "(" words ")"
//!         | "(" formula ")" | "-" atom
//! ```
//!
//! A measurement of several depths has several values, which `min`, `max`, `mean` and `spread` make one of; `spread` is what the
//! largest has above the smallest. A name is a number with a name, such as what is called flat. Equal is what differs by less than
//! a millionth.
//!
//! Always true: a formula that was read is of a bounded depth, and its value is a number or the reason why it has none.

use super::measurement::{Measurement, Outcome};
use std::fmt;

/// Something with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number.
    Number(f64),
    /// A number with a name.
    Name(String),
    /// The value of a metric in measurements.
    Measured(Metric, Vec<Measurement>),
    /// A fact known without a run: its name, and its subject.
    Fact(String, String),
    /// One value of several.
    Of(Function, Vec<Formula>),
    /// Two, joined.
    Joined(Box<Formula>, Operator, Box<Formula>),
}

/// The metric of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// `mbps`: payload, in 10⁶ bytes a second.
    Megabytes,
    /// `iops`: requests a second.
    Requests,
    /// `latency`: mean, in microseconds.
    Latency,
    /// `watts`: at peak.
    Watts,
    /// `units`: bytes of information units of a command.
    Units,
    /// `ready`: READY units of a command.
    Ready,
    /// `order`: in which four requests were served.
    Order,
}

/// One value of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The least.
    Min,
    /// The largest.
    Max,
    /// Their mean.
    Mean,
    /// The difference of the largest and the smallest, as a share of the smallest.
    Spread,
}

/// How two are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Sum.
    Plus,
    /// Difference.
    Minus,
    /// Product.
    Times,
    /// Quotient.
    Over,
}

/// Two formulas, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// As it is written.
    pub text: String,
    /// The left side.
    pub left: Formula,
    /// How they are compared.
    pub comparison: Comparison,
    /// The right side.
    pub right: Formula,
}

/// How two are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// Why words are no formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// From which byte on.
    pub at: usize,
    /// The error.
    pub what: String,
}

/// The values that a formula is evaluated with.
pub(super) trait Values {
    /// A number with a name.
    fn named(&self, name: &str) -> Result<f64, String>;
    /// Returns a fact that is known without a run.
    fn fact(&self, fact: &str, of: &str) -> Result<f64, String>;
    /// Returns the outcome of a run.
    fn outcome(&self, measurement: &Measurement) -> Result<Outcome, String>;
}

/// Facts that a formula may ask for; what each means is up to [`Values::fact`].
const FACTS: [&str; 5] = ["fact", "part", "depth", "uas", "command_bytes"];

/// Formulas within formulas at most.
const DEPTH_MAX: usize = 32;

/// Equal numbers differ by less than this share.
const EQUAL: f64 = 1e-6;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// See [`FormulaError`].
    pub fn read(text: &str) -> Result<Self, FormulaError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let formula = parser.formula()?;
        parser.end()?;
        Ok(formula)
    }

    /// Its measurements, added to others.
    pub(super) fn measurements(&self, into: &mut Vec<Measurement>) {
        match self {
            Self::Number(_) | Self::Name(_) | Self::Fact(..) => {}
            Self::Measured(_, measurements) => into.extend(measurements.iter().cloned()),
            Self::Of(_, formulas) => formulas.iter().for_each(|formula| formula.measurements(into)),
            Self::Joined(left, _, right) => {
                left.measurements(into);
                right.measurements(into);
            }
        }
    }

    /// Whether it says by how much one thing has more than another, or what several such have in the mean.
    pub(super) fn is_difference(&self) -> bool {
        match self {
            Self::Joined(_, operator, _) => *operator == Operator::Minus,
            Self::Of(_, formulas) => formulas.iter().all(Self::is_difference),
            Self::Number(_) | Self::Name(_) | Self::Measured(..) | Self::Fact(..) => false,
        }
    }

    /// Its value.
    pub(super) fn value(&self, values: &impl Values) -> Result<f64, String> {
        let all = self.values(values)?;
        match all.as_slice() {
            [one] if one.is_finite() => Ok(*one),
            [_] => Err("the value is not a number".into()),
            _ => Err(format!("{} values, expected one", all.len())),
        }
    }

    fn values(&self, values: &impl Values) -> Result<Vec<f64>, String> {
        match self {
            Self::Number(number) => Ok(vec![*number]),
            Self::Name(name) => Ok(vec![values.named(name)?]),
            Self::Fact(fact, of) => Ok(vec![values.fact(fact, of)?]),
            Self::Measured(metric, measurements) => {
                let of = |one| metric.of(&values.outcome(one)?, one);
                measurements.iter().map(of).collect()
            }
            Self::Of(function, formulas) => {
                let all =
                    formulas.iter().map(|formula| formula.values(values)).collect::<Result<Vec<_>, _>>()?;
                Ok(vec![function.of(&all.concat())])
            }
            Self::Joined(left, operator, right) => {
                Ok(vec![operator.of(left.value(values)?, right.value(values)?)])
            }
        }
    }
}

impl Metric {
    const ALL: [(&'static str, Self); 7] = [
        ("mbps", Self::Megabytes),
        ("iops", Self::Requests),
        ("latency", Self::Latency),
        ("watts", Self::Watts),
        ("units", Self::Units),
        ("ready", Self::Ready),
        ("order", Self::Order),
    ];

    fn of(self, outcome: &Outcome, measurement: &Measurement) -> Result<f64, String> {
        let value = match self {
            Self::Megabytes => Some(outcome.bytes_per_second / 1e6),
            Self::Requests => Some(outcome.requests_per_second),
            Self::Latency => Some(outcome.latency_ns / 1e3),
            Self::Watts => outcome.watts_peak,
            Self::Units => outcome.unit_bytes,
            Self::Ready => outcome.ready_units,
            Self::Order => outcome.order.map(f64::from),
        };
        value.ok_or_else(|| format!("the run of {measurement} has no such value"))
    }
}

impl Function {
    const ALL: [(&'static str, Self); 4] =
        [("min", Self::Min), ("max", Self::Max), ("mean", Self::Mean), ("spread", Self::Spread)];

    fn of(self, values: &[f64]) -> f64 {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            Self::Min => least,
            Self::Max => largest,
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Spread => largest / least - 1.0,
        }
    }
}

impl Operator {
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Over => left / right,
        }
    }
}

impl Claim {
    /// Reads a claim.
    ///
    /// # Errors
    /// See [`FormulaError`].
    pub fn read(text: &str) -> Result<Self, FormulaError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let left = parser.formula()?;
        let comparison = parser.comparison()?;
        let right = parser.formula()?;
        parser.end()?;
        Ok(Self { text: text.into(), left, comparison, right })
    }

    /// Both sides, and whether it holds.
    pub(super) fn judge(&self, values: &impl Values) -> Result<(f64, f64, bool), String> {
        let (left, right) = (self.left.value(values)?, self.right.value(values)?);
        Ok((left, right, self.comparison.holds(left, right)))
    }

    /// How far apart its sides are, as a share of the larger; none where they are to be equal, or follow from facts alone.
    pub(super) fn margin(&self, left: f64, right: f64) -> Option<f64> {
        let mut measured = Vec::new();
        [&self.left, &self.right].into_iter().for_each(|side| side.measurements(&mut measured));
        let larger = left.abs().max(right.abs());
        let share = if larger > 0.0 { (left - right).abs() / larger } else { 0.0 };
        (self.comparison != Comparison::Equal && !measured.is_empty()).then_some(share)
    }
}

impl Comparison {
    /// Longer signs before those that begin them.
    const ALL: [(&'static str, Self); 5] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Less),
        (">", Self::More),
        ("=", Self::Equal),
    ];

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Equal => (left - right).abs() <= EQUAL * left.abs().max(right.abs()),
            Self::AtLeast => left >= right,
            Self::More => left > right,
        }
    }
}

impl<'a> Parser<'a> {
    fn formula(&mut self) -> Result<Formula, FormulaError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("more than {DEPTH_MAX} formulas are within each other")));
        }
        let mut left = self.product()?;
        loop {
            let operator = match self.sign(&["+", "-"]) {
                Some("+") => Operator::Plus,
                Some(_) => Operator::Minus,
                None => break,
            };
            left = Formula::Joined(Box::new(left), operator, Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Formula, FormulaError> {
        let mut left = self.atom()?;
        loop {
            let operator = match self.sign(&["*", "/"]) {
                Some("*") => Operator::Times,
                Some(_) => Operator::Over,
                None => return Ok(left),
            };
            left = Formula::Joined(Box::new(left), operator, Box::new(self.atom()?));
        }
    }

    fn atom(&mut self) -> Result<Formula, FormulaError> {
        if self.sign(&["("]).is_some() {
            let formula = self.formula()?;
            self.expect(")")?;
            return Ok(formula);
        }
        if self.sign(&["-"]).is_some() {
            let zero = Box::new(Formula::Number(0.0));
            // One level is one digit of depth, so that a row of signs has an end.
            self.depth += 1;
            let within = self.depth <= DEPTH_MAX;
            let atom = if within { self.atom()? } else { return Err(self.error("too many signs".into())) };
            self.depth -= 1;
            return Ok(Formula::Joined(zero, Operator::Minus, Box::new(atom)));
        }
        let digits = self.word(|sign| sign.is_ascii_digit() || sign == '.');
        if !digits.is_empty() {
            let number = digits.parse().map_err(|_| self.error(format!("`{digits}` is not a number")))?;
            return Ok(Formula::Number(number));
        }
        let name = self.word(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        match name {
            "" => Err(self.error("expected a formula".into())),
            name if self.sign(&["("]).is_none() => Ok(Formula::Name(name.into())),
            name => self.called(name),
        }
    }

    /// Parses the content of the parenthesis after a name.
    fn called(&mut self, name: &'a str) -> Result<Formula, FormulaError> {
        let known = |(word, _): &&(&str, Function)| *word == name;
        if let Some((_, function)) = Function::ALL.iter().find(known) {
            let mut formulas = vec![self.formula()?];
            while self.sign(&[","]).is_some() {
                formulas.push(self.formula()?);
            }
            self.expect(")")?;
            return Ok(Formula::Of(*function, formulas));
        }
        let words = self.word(|sign| sign != ')').trim();
        self.expect(")")?;
        if let Some((_, metric)) = Metric::ALL.iter().find(|(word, _)| *word == name) {
            let measurements = Measurement::all(words).map_err(|error| self.error(error.to_string()))?;
            return Ok(Formula::Measured(*metric, measurements));
        }
        if FACTS.contains(&name) {
            return Ok(Formula::Fact(name.into(), words.into()));
        }
        Err(self.error(format!("`{name}` is neither a metric nor a function nor a fact")))
    }

    fn comparison(&mut self) -> Result<Comparison, FormulaError> {
        let signs = Comparison::ALL.map(|(sign, _)| sign);
        let sign = self.sign(&signs).ok_or_else(|| self.error("expected a comparison".into()))?;
        let found = Comparison::ALL.into_iter().find(|(known, _)| *known == sign);
        found.map(|(_, comparison)| comparison).ok_or_else(|| self.error("expected a comparison".into()))
    }

    fn end(&mut self) -> Result<(), FormulaError> {
        self.skip();
        if self.at == self.text.len() { Ok(()) } else { Err(self.error("expected the end".into())) }
    }

    fn expect(&mut self, sign: &str) -> Result<(), FormulaError> {
        self.sign(&[sign]).map(drop).ok_or_else(|| self.error(format!("expected `{sign}`")))
    }

    /// The first of these signs that is next.
    fn sign<'s>(&mut self, signs: &[&'s str]) -> Option<&'s str> {
        self.skip();
        let rest = self.text.get(self.at..)?;
        let sign = signs.iter().find(|sign| rest.starts_with(**sign))?;
        self.at += sign.len();
        Some(sign)
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.skip();
        let rest = self.text.get(self.at..).unwrap_or("");
        let end = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    fn skip(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or("");
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, what: String) -> FormulaError {
        FormulaError { at: self.at, what }
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for FormulaError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests a second are a thousand times the depth; there is one name and one fact.
    struct Made;

    impl Values for Made {
        fn named(&self, name: &str) -> Result<f64, String> {
            if name == "flat" { Ok(0.05) } else { Err(format!("there is no `{name}`")) }
        }

        fn fact(&self, fact: &str, of: &str) -> Result<f64, String> {
            Ok((fact.len() * 100 + of.len()) as f64)
        }

        fn outcome(&self, measurement: &Measurement) -> Result<Outcome, String> {
            if measurement.variant == "none" {
                return Err("it does not run".into());
            }
            let requests_per_second = f64::from(measurement.depth) * 1000.0;
            Ok(Outcome { requests_per_second, ..Outcome::default() })
        }
    }

    fn value(text: &str) -> Result<f64, String> {
        Formula::read(text).map_err(|error| error.to_string())?.value(&Made)
    }

    #[test]
    fn products_are_before_sums_and_parentheses_before_both() {
        assert_eq!(value("1 + 2 * 3 - 8 / 4"), Ok(5.0));
        assert_eq!(value("(1 + 2) * 3"), Ok(9.0));
        assert_eq!(value("10 - 2 - 3"), Ok(5.0));
        assert_eq!(value("-2 * -(1 + 2)"), Ok(6.0));
    }

    #[test]
    fn measurements_facts_and_names_have_values() {
        assert_eq!(value("iops(a/b 4K random read qd8) / iops(a/b 4K random read qd1)"), Ok(8.0));
        assert_eq!(value("part(abc)"), Ok(403.0));
        assert_eq!(value("2 * flat"), Ok(0.1));
        assert_eq!(value("round"), Err("there is no `round`".into()));
    }

    #[test]
    fn one_is_made_of_several() {
        assert_eq!(value("max(iops(a/b 4K random read qd1,4,2), 3000)"), Ok(4000.0));
        assert_eq!(value("min(2, 1, 3)"), Ok(1.0));
        assert_eq!(value("mean(iops(a/b 4K random read qd1,3))"), Ok(2000.0));
        assert_eq!(value("spread(iops(a/b 4K random read qd4,5))"), Ok(0.25));
        assert!(value("iops(a/b 4K random read qd1,2) + 1").unwrap_err().contains("expected one"));
    }

    #[test]
    fn a_failed_run_has_a_reason() {
        assert_eq!(value("iops(a/none 4K random read qd1)"), Err("it does not run".into()));
        assert!(value("watts(a/b 4K random read qd1)").unwrap_err().ends_with("has no such value"));
        assert_eq!(value("1 / 0"), Err("the value is not a number".into()));
    }

    #[test]
    fn claims_hold_or_do_not() {
        let holds = |text| Claim::read(text).expect("a claim").judge(&Made).expect("numbers").2;
        assert!(holds("1 < 2") && holds("2 <= 2") && holds("0.1 + 0.2 = 0.3") && holds("3 >= 2"));
        assert!(!holds("2 < 2") && !holds("1 = 2") && !holds("1 > 1"));
    }

    #[test]
    fn syntax_errors_have_their_position() {
        let error = |text| Formula::read(text).unwrap_err().to_string();
        assert_eq!(error("1 +"), "at byte 3: expected a formula");
        assert_eq!(error("(1 + 2"), "at byte 6: expected `)`");
        assert_eq!(error("1 2"), "at byte 2: expected the end");
        assert!(
            error("speed(a/b 4K random read qd1)")
                .ends_with("`speed` is neither a metric nor a function nor a fact")
        );
        assert!(error("mbps(a 4K random read qd1)").contains("expected `setup/variant`"));
        assert!(error("1.2.3").ends_with("`1.2.3` is not a number"));
        assert_eq!(Claim::read("1").unwrap_err().to_string(), "at byte 1: expected a comparison");
    }

    #[test]
    fn no_text_is_too_deep() {
        assert!(Formula::read(&"(".repeat(100_000)).is_err());
        assert!(Formula::read(&"-".repeat(100_000)).is_err());
        assert!(Formula::read(&"min(".repeat(100_000)).is_err());
    }
}
