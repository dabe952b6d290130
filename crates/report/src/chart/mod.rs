//! Charts: series over an axis, bars, and dots held against each other, as SVG.
//!
//! A chart has one or two pictures: where all of its values are above zero it is drawn on a linear and on a logarithmic scale, of which one is
//! shown. Each mark carries its series, its place and its value in words, for the script that shows them; and each kind of
//! chart makes the table that says the same. Always true: a series is told by its name beside it and by the shape of its marks, and not
//! by its colour alone.

mod axis;
mod bars;
mod canvas;
mod lines;
mod look;
mod plane;
mod scatter;

pub use axis::{Axis, Scale};
pub use bars::{Bars, Group};
pub use lines::{Level, Lines, Point, Series, Shape};
pub use look::Look;
pub use scatter::{Dot, DotSeries, Scatter};

pub(crate) use plane::Fault;

use crate::escape::clean;
use canvas::Ink;
use std::fmt::Write;
use svg::node::element::Path;

/// A picture of a chart, on one scale.
pub(crate) struct Drawn {
    /// `linear` or `log`.
    pub(crate) scale: &'static str,
    /// The SVG.
    pub(crate) svg: svg::Document,
    /// Places of marks that are in the picture of the other scale and not in this one, in their order: `10,20.5 30,18`.
    pub(crate) places: Option<String>,
}

/// A series in the list beside a chart.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) look: Look,
    pub(crate) drawn: EntryKind,
}

/// What a series is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A line with marks, interrupted as this class says.
    Line(&'static str),
    /// A bar.
    Bar,
    /// Marks alone.
    Marks,
}

impl Entry<'_> {
    /// A sample of it, as SVG.
    pub(crate) fn sample(&self) -> String {
        let Look { hue, .. } = self.look;
        let mut out = format!("<svg class=\"key s{hue}\" viewBox=\"0 0 24 12\" aria-hidden=\"true\">");
        match self.drawn {
            EntryKind::Line(dash) => {
                let _ = write!(out, "<path class=\"line {dash}\" d=\"M0,6H24\"/>");
            }
            EntryKind::Bar => {
                out += "<path class=\"block\" d=\"M0,1H13V11H0Z\"/>";
                if let Some(stripes) = self.look.stripes() {
                    let _ = write!(out, "<path class=\"stripes {stripes}\" d=\"M0,6H13\"/>");
                }
            }
            EntryKind::Marks => {}
        }
        let x = if self.drawn == EntryKind::Bar { 19 } else { 12 };
        let _ = write!(out, "<path class=\"sign\" d=\"M{x},6{}\"/></svg>", self.look.shape());
        out
    }
}

/// What a mark says when it is pointed at.
struct Mark<'a> {
    /// Its place, in units of the picture.
    at: (f64, f64),
    /// Its series: place and colour.
    key: usize,
    look: Look,
    /// Its own name, if it is not that of its series.
    name: Option<&'a str>,
    /// Where, in words: `depth 4`.
    place: String,
    /// How much, in words.
    value: String,
    /// Seen only when it is pointed at.
    is_quiet: bool,
}

impl Mark<'_> {
    /// Its shape, which depends on its series.
    fn element(&self) -> Path {
        let (x, y) = (crate::drawing::rounded(self.at.0), crate::drawing::rounded(self.at.1));
        // There are many quiet ones, and few are ever seen.
        let shape = if self.is_quiet { "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0Z" } else { self.look.shape() };
        let quiet = if self.is_quiet { " quiet" } else { "" };
        let path = Path::new().set("d", format!("M{x},{y}{shape}"));
        let path = path.set("class", format!("mark s{} k{}{quiet}", self.look.hue, self.key));
        told(path, self)
    }
}

/// With what it says, for the script: a name of its own if it has one, where, and how much.
fn told(path: Path, mark: &Mark<'_>) -> Path {
    let path = path.set("data-p", clean(&mark.place)).set("data-v", clean(&mark.value));
    match mark.name {
        Some(name) => path.set("data-n", clean(name)),
        None => path,
    }
}

/// Places of a series among its fellows that an ink can carry.
fn key(nth: usize) -> u8 {
    u8::try_from(nth).unwrap_or(u8::MAX)
}

/// A mark that says nothing: it tells whose a line or a bar is.
fn sign((x, y): (f64, f64), look: Look, key: usize, class: &str) -> Path {
    let (x, y) = (crate::drawing::rounded(x), crate::drawing::rounded(y));
    let path = Path::new().set("d", format!("M{x},{y}{}", look.shape()));
    path.set("class", format!("{class} s{} k{key}", look.hue))
}
