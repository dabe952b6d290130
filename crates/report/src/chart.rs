//! Charts: series over an axis, bars, and scatter plots, as SVG.
//!
//! A chart with only positive values is drawn on a linear and on a logarithmic scale, one of which
//! is shown. Each mark carries its series, position and value as text for the script; each kind of
//! chart also makes an equivalent table. Always true: a series is recognisable by its name and mark
//! shape, not by colour alone.

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

pub(crate) use plane::{Drawn, Fault};

use crate::escape::clean;
use canvas::Ink;
use std::fmt::Write;
use svg::node::element::Path;

/// An entry of the legend.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) look: Look,
    pub(crate) drawn: EntryKind,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A line with marks; the dash is a class.
    Line(&'static str),
    /// A bar.
    Bar,
    /// Marks alone.
    Marks,
}

impl Entry<'_> {
    /// Renders a sample as SVG.
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

/// The tooltip of a mark.
struct Mark<'a> {
    /// Position in the picture.
    at: (f64, f64),
    /// Series: index and colour.
    key: usize,
    look: Look,
    /// A name other than that of its series.
    name: Option<&'a str>,
    /// The position in words: `depth 4`.
    place: String,
    /// The value in words.
    value: String,
    /// Visible only under the pointer.
    is_quiet: bool,
}

impl Mark<'_> {
    /// The outline, which depends on the series.
    fn element(&self) -> Path {
        let (x, y) = (crate::drawing::rounded(self.at.0), crate::drawing::rounded(self.at.1));
        // Quiet marks are many and rarely seen.
        let shape = if self.is_quiet { "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0Z" } else { self.look.shape() };
        let quiet = if self.is_quiet { " quiet" } else { "" };
        let path = Path::new().set("d", format!("M{x},{y}{shape}"));
        let path = path.set("class", format!("mark s{} k{}{quiet}", self.look.hue, self.key));
        with_tooltip(path, self)
    }
}

/// Adds the tooltip text for the script.
fn with_tooltip(path: Path, mark: &Mark<'_>) -> Path {
    let path = path.set("data-p", clean(&mark.place)).set("data-v", clean(&mark.value));
    match mark.name {
        Some(name) => path.set("data-n", clean(name)),
        None => path,
    }
}

/// The index of a series, as far as an ink can carry it.
fn key(nth: usize) -> u8 {
    u8::try_from(nth).unwrap_or(u8::MAX)
}

/// A mark without tooltip, which identifies a line or bar.
fn sign(x: f64, y: f64, look: Look, key: usize, class: &str) -> Path {
    let (x, y) = (crate::drawing::rounded(x), crate::drawing::rounded(y));
    let path = Path::new().set("d", format!("M{x},{y}{}", look.shape()));
    path.set("class", format!("{class} s{} k{key}", look.hue))
}
