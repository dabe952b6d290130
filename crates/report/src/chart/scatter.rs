//! Scatter plots of two values each against the line of equality.
//!
//! Both axes are alike, so that on logarithmic scales a distance from the line is a factor.

use super::axis::Span;
use super::plane::{BELOW, Chart, Drawn, Fault, Plane, at, on};
use super::{Axis, Entry, EntryKind, Ink, Look, Mark, Scale, look};
use crate::number;
use crate::table::{Cell, Table};
use plotters::element::{PathElement, Polygon};
use svg::Node;
use svg::node::element::Group;

/// A pair of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: String,
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
}

/// A series of dots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DotSeries {
    /// Name.
    pub name: String,
    /// Colour and marks.
    pub look: Look,
    /// The dots.
    pub dots: Vec<Dot>,
}

/// A scatter plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scatter {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The dots.
    pub swarms: Vec<DotSeries>,
    /// Relative errors, each drawn as a zone around the line.
    pub zones: Vec<f64>,
}

const SIZE: (f64, f64) = (480.0, 470.0);

impl Scatter {
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let looks = self.looks();
        self.swarms.iter().zip(looks).map(|(swarm, look)| Entry {
            name: &swarm.name,
            look,
            drawn: EntryKind::Marks,
        })
    }

    fn looks(&self) -> Vec<Look> {
        look::apart(self.swarms.iter().map(|swarm| (swarm.look, false)))
    }

    /// A row per dot.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(["", "which", &self.x.name, &self.y.name, "off, %", "source"]);
        for (swarm, dot) in self.dots() {
            let off = (dot.y / dot.x - 1.0) * 100.0;
            let cells = [dot.name.as_str().into(), swarm.name.as_str().into(), dot.x.into(), dot.y.into()];
            table = table.row(
                cells
                    .into_iter()
                    .chain([Cell::Number((off * 10.0).round() / 10.0), dot.source.as_str().into()]),
            );
        }
        table
    }

    fn dots(&self) -> impl Iterator<Item = (&DotSeries, &Dot)> {
        self.swarms.iter().flat_map(|swarm| swarm.dots.iter().map(move |dot| (swarm, dot)))
    }

    pub(crate) fn draw(&self) -> Result<Vec<Drawn>, Fault> {
        // Values that are not positive appear on the linear scale only.
        let has_logarithms = self.dots().any(|(_, dot)| dot.x > 0.0 && dot.y > 0.0);
        let scales = [has_logarithms.then_some(Scale::Log), Some(Scale::Linear)];
        scales.into_iter().flatten().map(|scale| Ok(on(scale, self.drawn(scale)?))).collect()
    }

    fn drawn(&self, scale: Scale) -> Result<svg::Document, Fault> {
        let values: Vec<f64> = self.dots().flat_map(|(_, dot)| [dot.x, dot.y]).collect();
        let mut plane = Plane {
            size: SIZE,
            margins: (0.0, 14.0, BELOW),
            names: (&self.x.name, &self.y.name),
            grid: (true, true),
        };
        let y = Span::of(&self.y, scale, &values, plane.inner().1, false);
        plane.margins.0 = y.width();
        let x = Span::of(&self.x, scale, &values, plane.inner().0, true);
        plane.draw(x, y, |chart| self.over(chart, scale))
    }

    fn over(&self, chart: &mut Chart<'_, '_>, scale: Scale) -> Result<Group, Fault> {
        let ends = self.ends(scale);
        let steps = |factor: f64| ends.map(|end| (end, end * factor));
        for zone in &self.zones {
            let [low, high] = [1.0 - zone, 1.0 + zone].map(steps);
            chart.draw_series([Polygon::new([low[0], low[1], high[1], high[0]], Ink::Zone)])?;
        }
        chart.draw_series([PathElement::new(steps(1.0), Ink::Guide)])?;
        let mut over = Group::new();
        for (key, (swarm, look)) in self.swarms.iter().zip(self.looks()).enumerate() {
            for dot in swarm.dots.iter().filter(|dot| scale.takes(dot.x) && scale.takes(dot.y)) {
                let off = (dot.y / dot.x - 1.0) * 100.0;
                let (x, y) = (number(dot.x), number(dot.y));
                let mark = Mark {
                    at: at(chart, dot.x, dot.y),
                    key,
                    look,
                    name: Some(&dot.name),
                    place: dot.source.clone(),
                    value: format!("{} {x}, {} {y}, {off:+.1} %", self.x.name, self.y.name),
                    is_quiet: false,
                };
                over.append(mark.element());
            }
        }
        Ok(over)
    }

    /// The ends of the line of equality.
    fn ends(&self, scale: Scale) -> [f64; 2] {
        let values = || self.dots().flat_map(|(_, dot)| [dot.x, dot.y]).filter(|value| scale.takes(*value));
        let least = if scale == Scale::Linear { 0.0 } else { values().fold(f64::INFINITY, f64::min) };
        let most = values().fold(f64::MIN_POSITIVE, f64::max);
        [least.min(most), most]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter() -> Scatter {
        let dot = |name: &str, x, y| Dot { name: name.into(), source: "an <article>".into(), x, y };
        let swarm = DotSeries {
            name: "check".into(),
            look: Look::from(0),
            dots: vec![dot("P1", 100.0, 110.0), dot("P2", 9000.0, 8000.0)],
        };
        Scatter {
            x: Axis::log("published"),
            y: Axis::log("simulated"),
            swarms: vec![swarm],
            zones: vec![0.2],
        }
    }

    #[test]
    fn each_dot_says_where_it_is_from_and_how_far_it_is_off() {
        let drawn = scatter().draw().expect("drawn");
        assert_eq!(drawn.iter().map(|drawn| drawn.scale).collect::<Vec<_>>(), ["log", "linear"]);
        let svg = drawn[0].svg.to_string();
        assert_eq!(svg.matches("class=\"mark").count(), 2, "{svg}");
        assert!(
            svg.contains("an &lt;article&gt;") && svg.contains("+10.0 %") && svg.contains("class=\"zone\""),
            "{svg}"
        );
    }

    #[test]
    fn the_table_has_the_source() {
        let table = scatter().table();
        assert_eq!((table.rows.len(), &table.rows[0][5]), (2, &Cell::text("an <article>")));
        assert_eq!(table.rows[0][4], Cell::Number(10.0));
    }
}
