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
mod plane;
mod scatter;

pub use axis::{Axis, Scale};
pub use bars::{Bars, Group};
pub use lines::{Level, Lines, Point, Series, Shape};
pub use scatter::{Dot, Scatter, Swarm};

pub(crate) use plane::Fault;

use crate::escape::clean;
use canvas::Ink;
use svg::Node;
use svg::node::element::{Path, Title};

/// A picture of a chart, on one scale.
pub(crate) struct Drawn {
    /// `linear` or `log`.
    pub(crate) scale: &'static str,
    /// The SVG.
    pub(crate) svg: svg::Document,
}

/// A series in the list beside a chart.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) hue: u8,
}

/// What a mark says when it is pointed at.
struct Mark<'a> {
    /// Its place, in units of the picture.
    at: (f64, f64),
    /// Its series: place and colour.
    key: usize,
    hue: u8,
    series: &'a str,
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
        let shape = match self.key % 4 {
            // There are many, and few are ever seen.
            _ if self.is_quiet => "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0Z",
            0 => "m-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z",
            1 => "m-3.2,-3.2h6.4v6.4h-6.4Z",
            2 => "m0,-4.4l4.2,7.4h-8.4Z",
            _ => "m0,-4.6l4.6,4.6l-4.6,4.6l-4.6,-4.6Z",
        };
        let quiet = if self.is_quiet { " quiet" } else { "" };
        let path = Path::new().set("d", format!("M{x},{y}{shape}"));
        let path = path.set("class", format!("mark s{} k{}{quiet}", self.hue, self.key));
        told(path, (x, y), self)
    }
}

/// With what it says, for the script, and where it is seen for a browser that shows titles without one.
fn told(mut path: Path, (x, y): (f64, f64), mark: &Mark<'_>) -> Path {
    path = path.set("data-k", mark.key).set("data-x", x).set("data-y", y);
    let (series, place, value) = (clean(mark.series), clean(&mark.place), clean(&mark.value));
    if !mark.is_quiet {
        path.append(Title::new(format!("{series}, {place}: {value}")));
    }
    path.set("data-p", place).set("data-v", value)
}

/// Places of a series among its fellows that an ink can carry.
fn key(nth: usize) -> u8 {
    u8::try_from(nth).unwrap_or(u8::MAX)
}

fn line_of(series: &Series, nth: usize) -> Ink {
    match series.is_dashed {
        true => Ink::Dashed(series.hue, key(nth)),
        false => Ink::Line(series.hue, key(nth)),
    }
}
