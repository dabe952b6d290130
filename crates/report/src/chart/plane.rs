//! The plane of a chart: two axes, a grid, and where on the picture a value is.
//!
//! The name of the upright axis stands above it, where it needs not be turned to be read.

use super::axis::{Span, fine};
use super::canvas::{Canvas, FINE, Ink};
use crate::drawing::rounded;
use crate::escape::clean;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{IntoFont, TextStyle};
use std::convert::Infallible;
use svg::node::element::{Group, Text};
use svg::{Document, Node};

/// A rendered chart on one scale.
pub(crate) struct Drawn {
    /// `linear` or `log`.
    pub(crate) scale: &'static str,
    /// The SVG.
    pub(crate) svg: svg::Document,
    /// Positions of marks that are drawn for the other scale only, in order: `10,20.5 30,18`.
    pub(crate) places: Option<String>,
}

/// Error of plotters when it draws a chart.
pub(crate) type Fault = DrawingAreaErrorKind<Infallible>;

pub(super) type Chart<'a, 'c> = ChartContext<'a, Canvas<'c>, Cartesian2d<Span, Span>>;

/// Where things are.
pub(super) struct Plane<'n> {
    pub(super) size: (f64, f64),
    /// Room at the left, at the right, and below.
    pub(super) margins: (f64, f64, f64),
    /// Names of the axes: across, upright.
    pub(super) names: (&'n str, &'n str),
    /// Whether the grid has lines across, and upright ones.
    pub(super) grid: (bool, bool),
}

/// Room above the grid: the name of the upright axis is there.
pub(super) const ABOVE: f64 = 26.0;

/// Room below the grid: labels, and under them the name of the axis, which do not touch where a small screen makes text larger.
pub(super) const BELOW: f64 = 48.0;

/// Text of ticks, in units of the picture.
const TICK: f64 = 11.0;

impl Plane<'_> {
    /// The width between the margins, and the height.
    pub(super) fn inner(&self) -> (f64, f64) {
        let (left, right, below) = self.margins;
        (self.size.0 - left - right, self.size.1 - ABOVE - below)
    }

    /// Draws grid and axes, then calls `series`; what that returns is laid over it.
    pub(super) fn draw(
        &self,
        x: Span,
        y: Span,
        series: impl FnOnce(&mut Chart<'_, '_>) -> Result<Group, Fault>,
    ) -> Result<Document, Fault> {
        let mut below = Group::new();
        let (left, right, under) = self.margins;
        let above = {
            let (across, upright) = (x.clone(), y.clone());
            let area = Canvas { size: self.size, group: &mut below }.into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin_top(fine(ABOVE))
                .margin_right(fine(right))
                .x_label_area_size(fine(under))
                .y_label_area_size(fine(left))
                .build_cartesian_2d(x, y)?;
            let style = TextStyle::from(("sans-serif", TICK * FINE).into_font()).color(&Ink::Tick);
            let label_x = |value: &f64| across.label(*value);
            let label_y = |value: &f64| upright.label(*value);
            let mut mesh = chart.configure_mesh();
            mesh.bold_line_style(Ink::Grid).light_line_style(Ink::Grid).axis_style(Ink::Axis);
            mesh.x_labels(64).y_labels(64).x_label_formatter(&label_x).y_label_formatter(&label_y);
            mesh.x_label_style(style.clone().pos(Pos::new(HPos::Center, VPos::Top)));
            mesh.y_label_style(style.pos(Pos::new(HPos::Right, VPos::Center)));
            mesh.set_all_tick_mark_size(0);
            if !self.grid.0 {
                mesh.disable_y_mesh();
            }
            if !self.grid.1 {
                mesh.disable_x_mesh();
            }
            mesh.draw()?;
            series(&mut chart)?
        };
        let (width, height) = self.size;
        let mut document = Document::new().set("viewBox", (0.0, 0.0, width, height));
        document = document.set("class", "chart").add(below).add(above);
        let (across, upright) = self.names;
        document.append(text(upright, left.min(8.0), 13.0, "name axis-name"));
        let end = text(across, width - right, height - 4.0, "name axis-name");
        document.append(end.set("text-anchor", "end"));
        Ok(document)
    }
}

/// Text whose baseline begins at a place.
pub(super) fn text(content: &str, x: f64, y: f64, class: &str) -> Text {
    Text::new(clean(content)).set("x", rounded(x)).set("y", rounded(y)).set("class", class)
}

/// Where a value is, in units of the picture.
pub(super) fn at(chart: &Chart<'_, '_>, x: f64, y: f64) -> (f64, f64) {
    let (x, y) = chart.backend_coord(&(x, y));
    (f64::from(x) / FINE, f64::from(y) / FINE)
}

/// A picture with the name of its scale.
pub(super) const fn on(scale: super::Scale, svg: Document) -> Drawn {
    let scale = if matches!(scale, super::Scale::Log) { "log" } else { "linear" };
    Drawn { scale, svg, places: None }
}
