//! Back end of plotters: elements of SVG whose colours are classes.
//!
//! plotters gives a back end colours; here a colour is an [`Ink`], which carries what a stroke is for, and comes out as a class. A style
//! sheet says what that looks like, on light and on dark ground. Coordinates of plotters are whole, so that ten of them are a unit of
//! the picture: a curve would have corners otherwise.

use super::axis::fine;
use crate::drawing::rounded;
use crate::escape::clean;
use plotters::style::Color;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use std::convert::Infallible;
use std::fmt::Write;
use svg::Node;
use svg::node::element::{Circle, Group, Line, Path, Rectangle, Text};

/// Coordinates of plotters that are a unit of the picture.
pub(super) const FINE: f64 = 10.0;

/// How wide a character of a tick is, in units of the picture, at most.
pub(super) const SIGN_WIDTH: f64 = 6.4;

/// Between a label and its axis.
const BESIDE: f64 = 5.0;

/// How lines may be interrupted.
const LINES: [&str; 5] = ["", "dashed", "d1", "d2", "d3"];
/// The role that stands for the first of them.
const FIRST_LINE: u8 = 8;

/// Purpose of a stroke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Grid,
    Axis,
    Tick,
    /// Of a series: its colour, its place among the series, by which it is left out, and how it is interrupted: a class of a dash.
    Line(u8, u8, &'static str),
    Area(u8, u8),
    Guide,
    Zone,
}

impl Color for Ink {
    fn to_backend_color(&self) -> BackendColor {
        let rgb = match *self {
            Self::Grid => (0, 0, 0),
            Self::Axis => (1, 0, 0),
            Self::Tick => (2, 0, 0),
            Self::Line(hue, key, dash) => {
                let nth = LINES.iter().position(|class| *class == dash).unwrap_or(0);
                (FIRST_LINE + nth as u8, hue, key)
            }
            Self::Area(hue, key) => (4, hue, key),
            Self::Guide => (6, 0, 0),
            Self::Zone => (7, 0, 0),
        };
        BackendColor { alpha: 1.0, rgb }
    }
}

/// The class of a colour that was an ink.
fn class(color: BackendColor) -> String {
    let (role, hue, key) = color.rgb;
    let of_series = |what: &str| format!("{what} s{hue} k{key}");
    match role {
        0 => "grid".into(),
        1 => "axis".into(),
        2 => "tick".into(),
        4 => of_series("area"),
        6 => "guide".into(),
        7 => "zone".into(),
        line => match LINES.get(usize::from(line.saturating_sub(FIRST_LINE))) {
            Some(dash) if !dash.is_empty() => of_series(&format!("line {dash}")),
            _ => of_series("line"),
        },
    }
}

/// Elements in the order in which they are drawn.
pub(super) struct Canvas<'a> {
    pub(super) size: (f64, f64),
    pub(super) group: &'a mut Group,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

fn unit(at: i32) -> f64 {
    rounded(f64::from(at) / FINE)
}

/// `M1,2L3,4`.
pub(super) fn path(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut out = String::new();
    for (nth, (x, y)) in points.into_iter().enumerate() {
        let _ = write!(out, "{}{},{}", if nth == 0 { "M" } else { "L" }, unit(x), unit(y));
    }
    out
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        ((self.size.0 * FINE) as u32, (self.size.1 * FINE) as u32)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let dot = Rectangle::new().set("x", unit(x)).set("y", unit(y)).set("width", 1).set("height", 1);
        self.group.append(dot.set("class", class(color)));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        let line = Line::new().set("x1", unit(from.0)).set("y1", unit(from.1));
        let line = line.set("x2", unit(to.0)).set("y2", unit(to.1));
        self.group.append(line.set("class", class(style.color())));
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _: bool,
    ) -> Drawn {
        let place = Rectangle::new().set("x", unit(left)).set("y", unit(top));
        let place = place.set("width", unit(right - left)).set("height", unit(bottom - top));
        self.group.append(place.set("class", class(style.color())));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.group.append(Path::new().set("d", path(points)).set("class", class(style.color())));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        _: bool,
    ) -> Drawn {
        let circle = Circle::new().set("cx", unit(x)).set("cy", unit(y)).set("r", f64::from(radius) / FINE);
        self.group.append(circle.set("class", class(style.color())));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.group.append(Path::new().set("d", path(points) + "Z").set("class", class(style.color())));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Drawn {
        let anchor = style.anchor();
        let side = match anchor.h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let below = match anchor.v_pos {
            VPos::Top => 1.3,
            VPos::Center => 0.35,
            VPos::Bottom => 0.0,
        };
        // A label beside an axis does not touch it.
        let x = if side == "end" { x - fine(BESIDE) } else { x };
        let text = Text::new(clean(text)).set("x", unit(x)).set("y", unit(y)).set("dy", format!("{below}em"));
        self.group.append(text.set("text-anchor", side).set("class", class(style.color())));
        Ok(())
    }

    /// By the number of signs, since there are no fonts here: what a browser takes is not known.
    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok(((text.chars().count() as f64 * SIGN_WIDTH * FINE) as u32, style.size() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_comes_out_as_what_it_is_for() {
        let of = |ink: Ink| class(ink.to_backend_color());
        let classes =
            [Ink::Grid, Ink::Line(3, 1, ""), Ink::Zone, Ink::Line(1, 2, "dashed"), Ink::Line(4, 9, "d2")]
                .map(of);
        assert_eq!(classes, ["grid", "line s3 k1", "zone", "line dashed s1 k2", "line d2 s4 k9"]);
    }

    #[test]
    fn ten_coordinates_are_a_unit() {
        assert_eq!(path([(0, 15), (100, 200)]), "M0,1.5L10,20");
    }
}
