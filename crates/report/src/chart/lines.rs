//! Series over an axis: marks with intervals and lines, curves, or steps.
//!
//! Names are placed at line ends and moved apart. Left out: lines across missing values.

use super::axis::{Span, with_unit};
use super::plane::{ABOVE, BELOW, Chart, Drawn, Fault, Plane, at, on, text};
use super::{Axis, Entry, EntryKind, Ink, Look, Mark, Scale, look, sign};
use crate::drawing::rounded;
use crate::number::{mean, number};
use crate::table::{Cell, Table};
use plotters::element::{PathElement, Polygon};
use plotters::series::{AreaSeries, LineSeries};
use svg::Node;
use svg::node::element::{Group, Path};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// 95 % interval, if known.
    pub interval: Option<[f64; 2]>,
}

/// A named series of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name.
    pub name: String,
    /// Colour and marks, the same throughout a page.
    pub look: Look,
    /// Values, along the axis.
    pub points: Vec<Point>,
    /// Dashed: another state of the series of the same colour.
    pub is_dashed: bool,
}

/// A reference level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Position of the reference line.
    pub value: f64,
    /// Range that counts as the same: from, to.
    pub zone: [f64; 2],
}

/// How values are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Marks with lines between them.
    #[default]
    Marks,
    /// A curve, with marks only under the pointer.
    Curve,
    /// Steps: each value holds until the next.
    Steps,
}

/// Series over an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
    /// How values are joined.
    pub shape: Shape,
    /// Reference level, if any.
    pub level: Option<Level>,
}

/// Maximum characters of a name at a line end; the legend has the full name.
const NAME_SIGNS: usize = 18;

/// Marks along a curve.
const SIGNS: usize = 4;

const SIZE: (f64, f64) = (480.0, 300.0);

/// Minimum distance between the baselines of names.
const APART: f64 = 14.0;

/// Approximate width of a character of a name.
const SIGN: f64 = 7.2;

/// Start of the vertical axis's name.
const TITLE: f64 = 8.0;

impl Point {
    /// A value without interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// Adds an interval.
    #[must_use]
    pub const fn within(self, interval: [f64; 2]) -> Self {
        Self { interval: Some(interval), ..self }
    }

    /// Formats the value with its relative interval.
    fn in_words(&self, axis: &Axis) -> String {
        let text = self.value_in(axis);
        match axis.other(self.y) {
            Some(other) => format!("{text}, {other}"),
            None => text,
        }
    }

    fn value_in(&self, axis: &Axis) -> String {
        let unit = axis.unit();
        let Some(ends) = self.interval else { return with_unit(&axis.in_words(self.y), unit) };
        // Ends that are equal with three digits have four.
        let is_narrow = mean(ends[0]) == mean(ends[1]);
        let [value, low, high] =
            [self.y, ends[0], ends[1]].map(|value| if is_narrow { number(value) } else { mean(value) });
        with_unit(&format!("{value} ({low} to {high})"), unit)
    }
}

impl Series {
    /// Creates a series.
    pub fn new(name: impl Into<String>, look: impl Into<Look>, points: Vec<Point>) -> Self {
        Self { name: name.into(), look: look.into(), points, is_dashed: false }
    }

    /// Makes the line dashed.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self { is_dashed: true, ..self }
    }
}

impl Lines {
    /// Creates marks with lines.
    pub const fn new(x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self { x, y, series, shape: Shape::Marks, level: None }
    }

    /// Sets how values are joined.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Adds a reference level.
    #[must_use]
    pub fn against(self, level: Level) -> Self {
        Self { level: Some(level), ..self }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let looks = self.looks();
        self.series.iter().zip(looks).enumerate().map(|(nth, (series, look))| {
            let drawn = EntryKind::Line(self.dash(nth, look));
            Entry { name: &series.name, look, drawn }
        })
    }

    fn looks(&self) -> Vec<Look> {
        look::apart(self.series.iter().map(|series| (series.look, series.is_dashed)))
    }

    /// A row per position, a column per series.
    pub(crate) fn table(&self) -> Table {
        let has_interval = |series: &Series| series.points.iter().any(|point| point.interval.is_some());
        let mut head = vec![self.x.name.clone()];
        for series in &self.series {
            head.push(format!("{}, {}", series.name, self.y.name));
            if has_interval(series) {
                head.extend(["from", "to"].map(|end| format!("{} {end}", series.name)));
            }
        }
        let mut places: Vec<f64> = self.points().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut table = Table::new(head);
        for place in places {
            let mut row = vec![Cell::Text(self.x.in_words(place))];
            for series in &self.series {
                let point = series.points.iter().find(|point| point.x == place);
                row.push(point.map_or(Cell::Empty, |point| Cell::Mean(point.y)));
                if has_interval(series) {
                    let ends = point.and_then(|point| point.interval);
                    row.extend([0, 1].map(|end| ends.map_or(Cell::Empty, |ends| Cell::Mean(ends[end]))));
                }
            }
            table = table.row(row);
        }
        table
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Renders the chart on its own scale, and on the other if every value is positive.
    pub(crate) fn draw(&self) -> Result<Vec<Drawn>, Fault> {
        let other = match self.y.scale {
            Scale::Linear => Scale::Log,
            Scale::Log | Scale::Nines => Scale::Linear,
        };
        let has_other = self.points().all(|point| other.takes(point.y)) && self.points().next().is_some();
        let mut drawn = vec![on(self.y.scale, self.drawn(self.y.scale, None)?)];
        // Marks are equal on both scales; where all of them exist on both, they are written once.
        let all_twice = self.points().all(|point| self.y.scale.takes(point.y));
        if has_other {
            let mut places = all_twice.then(String::new);
            let svg = self.drawn(other, places.as_mut())?;
            drawn.push(Drawn { places, ..on(other, svg) });
        }
        Ok(drawn)
    }

    /// Renders with marks, or with their positions only.
    fn drawn(&self, scale: Scale, places: Option<&mut String>) -> Result<svg::Document, Fault> {
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let right = match self.shape {
            Shape::Steps => 16.0,
            Shape::Marks | Shape::Curve => longest.min(NAME_SIGNS) as f64 * 9.0 + 12.0,
        };
        let xs: Vec<f64> = self.points().map(|point| point.x).collect();
        let ends = |point: &Point| {
            [Some(point.y), point.interval.map(|ends| ends[0]), point.interval.map(|ends| ends[1])]
        };
        let level = self.level.iter().flat_map(|level| [level.value, level.zone[0], level.zone[1]]);
        let ys: Vec<f64> = self.points().flat_map(ends).flatten().chain(level).collect();
        let mut plane = Plane {
            size: SIZE,
            margins: (0.0, right, BELOW),
            names: (&self.x.name, &self.y.name),
            grid: (true, false),
        };
        let y = Span::of(&self.y, scale, &ys, plane.inner().1, false);
        plane.margins.0 = y.width();
        let x = Span::of(&self.x, self.x.scale, &xs, plane.inner().0, true);
        let across = x.ends();
        plane.draw(x, y, |chart| self.over(chart, scale, across, places))
    }

    /// Draws lines, intervals, marks and names.
    fn over(
        &self,
        chart: &mut Chart<'_, '_>,
        scale: Scale,
        across: [f64; 2],
        mut places: Option<&mut String>,
    ) -> Result<Group, Fault> {
        self.draw_level(chart, scale, across)?;
        let mut over = Group::new();
        let mut names = Vec::new();
        for (nth, (series, look)) in self.series.iter().zip(self.looks()).enumerate() {
            let shown: Vec<Point> = series
                .points
                .iter()
                .copied()
                .filter(|point| self.x.scale.takes(point.x) && scale.takes(point.y))
                .collect();
            if (self.shape, scale) == (Shape::Steps, Scale::Linear) {
                let ink = Ink::Area(look.hue, super::key(nth));
                chart.draw_series(AreaSeries::new(self.joined(&shown), 0.0, ink))?;
            }
            let ink = Ink::Line(look.hue, super::key(nth), self.dash(nth, look));
            chart.draw_series(LineSeries::new(self.joined(&shown), ink))?;
            if let Some(path) = whiskers(chart, &shown) {
                over.append(path.set("class", format!("whisker s{} k{nth}", look.hue)));
            }
            for point in &shown {
                let mark = self.mark(chart, nth, look, point);
                match &mut places {
                    Some(places) => {
                        places.push_str(&format!("{},{} ", rounded(mark.at.0), rounded(mark.at.1)))
                    }
                    None => over.append(mark.element()),
                }
            }
            for point in self.signed(&shown, nth) {
                let (x, y) = at(chart, point.x, point.y);
                over.append(sign(x, y, look, nth, "sign"));
            }
            // Names of histograms are on top, all others at the end.
            let most = shown.iter().max_by(|one, other| one.y.total_cmp(&other.y));
            let named = if self.shape == Shape::Steps { most } else { shown.last() };
            names.extend(named.map(|point| (at(chart, point.x, point.y), nth, series)));
        }
        if self.shape == Shape::Steps {
            let title_end = TITLE + self.y.name.chars().count() as f64 * SIGN;
            for ((x, y), nth, series) in heaped(names, title_end) {
                let class = format!("name label s{} k{nth}", series.look.hue);
                over.append(text(&series.name, x, y - 5.0, &class).set("text-anchor", "middle"));
            }
            return Ok(over);
        }
        let ends = names.iter().map(|((x, _), ..)| *x).fold(0.0, f64::max);
        for ((_, y), nth, series) in apart(names) {
            let class = format!("name label s{} k{nth}", series.look.hue);
            over.append(text(&cut(&series.name), ends + 8.0, y + 4.0, &class));
        }
        Ok(over)
    }

    /// Draws the reference level below the series.
    fn draw_level(
        &self,
        chart: &mut Chart<'_, '_>,
        scale: Scale,
        [left, right]: [f64; 2],
    ) -> Result<(), Fault> {
        let Some(Level { value, zone: [low, high] }) = self.level else { return Ok(()) };
        if [value, low, high].into_iter().all(|value| scale.takes(value)) {
            let corners = [(left, low), (left, high), (right, high), (right, low)];
            chart.draw_series([Polygon::new(corners, Ink::Zone)])?;
            chart.draw_series([PathElement::new([(left, value), (right, value)], Ink::Guide)])?;
        }
        Ok(())
    }

    /// Where marks identify a line that has none at its points: at a maximum, and along a curve between its points.
    fn signed<'a>(&self, shown: &'a [Point], nth: usize) -> Vec<&'a Point> {
        if self.series.len() < 2 || self.shape == Shape::Marks {
            return Vec::new();
        }
        if self.shape == Shape::Steps {
            return shown.iter().max_by(|one, other| one.y.total_cmp(&other.y)).into_iter().collect();
        }
        let step = (shown.len() / SIGNS).max(1);
        let first = step * (nth % self.series.len()) / self.series.len();
        shown.iter().skip(first).step_by(step).collect()
    }

    fn joined(&self, points: &[Point]) -> Vec<(f64, f64)> {
        let mut joined: Vec<(f64, f64)> = Vec::new();
        for point in points {
            if let (Shape::Steps, Some((_, before))) = (self.shape, joined.last()) {
                joined.push((point.x, *before));
            }
            joined.push((point.x, point.y));
        }
        joined
    }

    fn mark(&self, chart: &Chart<'_, '_>, nth: usize, look: Look, point: &Point) -> Mark<'_> {
        Mark {
            at: at(chart, point.x, point.y),
            key: nth,
            look,
            name: None,
            place: self.x.place(point.x),
            value: point.in_words(&self.y),
            is_quiet: self.shape != Shape::Marks,
        }
    }
}

impl Lines {
    /// The class of the line of a series: it marks another state where there is one, else the round.
    fn dash(&self, nth: usize, look: Look) -> &'static str {
        match self.series.iter().any(|series| series.is_dashed) {
            true if self.series[nth].is_dashed => "dashed",
            true => "",
            false => look::DASHES[look.dash()],
        }
    }
}

/// Truncates a name for a line end.
fn cut(name: &str) -> String {
    match name.chars().count() {
        0..=NAME_SIGNS => name.to_owned(),
        _ => name.chars().take(NAME_SIGNS - 1).chain(['…']).collect(),
    }
}

/// Intervals of points as one path.
fn whiskers(chart: &Chart<'_, '_>, points: &[Point]) -> Option<Path> {
    let line = |point: &Point| {
        let [low, high] = point.interval?.map(|end| at(chart, point.x, end));
        Some(format!("M{},{}V{}", rounded(low.0), rounded(low.1), rounded(high.1)))
    };
    let lines: String = points.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| Path::new().set("d", lines))
}

/// The same with names of hills that are close to each other one above the other, and right of the axis's title where they would lie on
/// it. There are none if not all have room, as with [`apart`].
fn heaped(names: Vec<Named<'_>>, title_end: f64) -> Vec<Named<'_>> {
    const NEAR: f64 = 44.0;
    let mut placed: Vec<Named<'_>> = Vec::new();
    for ((mut x, mut y), nth, series) in names {
        let half = series.name.chars().count() as f64 * SIGN / 2.0;
        if y < ABOVE + 5.0 {
            x = x.max(title_end + half);
        }
        while placed.iter().any(|((other, at), ..)| (other - x).abs() < NEAR && (at - y).abs() < APART - 1.0)
        {
            y -= APART;
        }
        placed.push(((x, y), nth, series));
    }
    // A line more than the picture has is in the gap above it.
    if placed.iter().any(|((_, y), ..)| *y < 5.0) { Vec::new() } else { placed }
}

type Named<'a> = ((f64, f64), usize, &'a Series);

/// The same with heights that do not touch, and stay between top and bottom. There are none if not all have room: the list of series
/// beside the chart has them all.
fn apart(mut names: Vec<Named<'_>>) -> Vec<Named<'_>> {
    let (top, bottom) = (ABOVE, SIZE.1 - BELOW);
    if names.len() as f64 * APART > bottom - top + APART {
        return Vec::new();
    }
    names.sort_by(|((_, one), ..), ((_, other), ..)| one.total_cmp(other));
    let mut least = top;
    for ((_, y), ..) in &mut names {
        *y = y.max(least);
        least = *y + APART;
    }
    let mut most = bottom;
    for ((_, y), ..) in names.iter_mut().rev() {
        *y = y.min(most);
        most = *y - APART;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        let bot = vec![Point::new(1.0, 35.0), Point::new(2.0, 35.5)];
        let uas = vec![Point::new(1.0, 34.0), Point::new(2.0, 67.0).within([66.0, 68.0])];
        let x = Axis::log("depth").labelled([1.0, 2.0].map(|depth: f64| (depth, depth.to_string())));
        Lines::new(x, Axis::linear("MB/s"), vec![Series::new("bot", 0, bot), Series::new("u<as", 1, uas)])
    }

    #[test]
    fn the_reference_value_is_visible_on_each_scale() {
        let level = Level { value: 10.0, zone: [9.0, 11.0] };
        for Drawn { svg, .. } in lines().against(level).draw().expect("drawn") {
            let svg = svg.to_string();
            assert_eq!(
                (svg.matches("class=\"guide\"").count(), svg.matches("class=\"zone\"").count()),
                (1, 1)
            );
            // The line is above the axis across, which is at 252.
            let line = svg.split("class=\"guide\" d=\"M").nth(1).expect("it is a path");
            let y: f64 = line.split([',', 'L']).nth(1).and_then(|y| y.parse().ok()).expect("a number");
            assert!(y > 26.0 && y < 252.0, "{y}");
        }
    }

    #[test]
    fn another_state_of_the_same_has_its_colour_and_an_interrupted_line() {
        let mut lines = lines();
        lines.series[1] = lines.series[1].clone().dashed();
        let svg = lines.draw().expect("drawn")[0].svg.to_string();
        assert!(svg.contains("class=\"line s0 k0\"") && svg.contains("class=\"line dashed s1 k1\""), "{svg}");
    }

    #[test]
    fn each_value_has_a_mark_on_each_scale() {
        let drawn = lines().draw().expect("drawn");
        assert_eq!(drawn.iter().map(|drawn| drawn.scale).collect::<Vec<_>>(), ["linear", "log"]);
        for Drawn { svg, places, scale } in drawn {
            let svg = svg.to_string();
            let count = places.map(|places| places.split_whitespace().count());
            // Marks are written once: of the other scale there are their places.
            let wanted = if scale == "linear" { (4, None) } else { (0, Some(4)) };
            assert_eq!((svg.matches("class=\"mark").count(), count), wanted, "{svg}");
            assert_eq!(svg.matches("class=\"whisker").count(), 1, "{svg}");
            let has_words = svg.contains("data-v=\"67 (66 to 68) MB/s\"");
            assert!(
                has_words == (scale == "linear") && svg.contains("u&lt;as") && !svg.contains("u<as"),
                "{svg}"
            );
        }
    }

    #[test]
    fn nothing_above_zero_has_no_logarithm() {
        let mut lines = lines();
        lines.series[0].points[0].y = 0.0;
        assert_eq!(lines.draw().expect("drawn").len(), 1);
    }

    #[test]
    fn the_table_has_what_the_chart_has() {
        let table = lines().table();
        assert_eq!(table.head, ["depth", "bot, MB/s", "u<as, MB/s", "u<as from", "u<as to"]);
        let second = [Cell::text("2")].into_iter().chain([35.5, 67.0, 66.0, 68.0].map(Cell::Mean));
        assert_eq!(table.rows[1], second.collect::<Vec<_>>());
    }

    #[test]
    fn names_that_are_close_are_moved_apart() {
        let series = Series::default();
        let names = [100.0, 101.0, 250.0, 251.0].map(|y| ((0.0, y), 0, &series));
        let heights: Vec<f64> = apart(names.to_vec()).into_iter().map(|((_, y), ..)| y).collect();
        assert!(heights.windows(2).all(|two| two[1] - two[0] >= APART), "{heights:?}");
        assert!(heights.iter().all(|y| *y <= SIZE.1 - BELOW), "{heights:?}");
        let many: Vec<Named<'_>> = (0..24).map(|_| ((0.0, 100.0), 0, &series)).collect();
        assert!(apart(many[..15].to_vec()).iter().all(|((_, y), ..)| *y >= ABOVE));
        assert!(apart(many).is_empty(), "they would lie on the list above the chart");
    }

    #[test]
    fn a_long_name_is_cut_beside_its_line_and_whole_in_the_list() {
        let mut lines = lines();
        lines.series[0].name = "asm1042-win8-asmedia-bot".into();
        let svg = lines.draw().expect("drawn")[0].svg.to_string();
        assert!(svg.contains("asm1042-win8-asme…") && !svg.contains("asmedia-bot"), "{svg}");
        assert_eq!(lines.entries().next().map(|entry| entry.name), Some("asm1042-win8-asmedia-bot"));
    }

    #[test]
    fn names_of_many_peaks_do_not_overlap_the_legend() {
        let series = Series::default();
        let hills = |count: usize| heaped(vec![((300.0, 50.0), 0, &series); count], 100.0);
        assert_eq!((hills(3).len(), hills(9).len()), (3, 0));
        // One at the left that is as high as the picture stands beside the title of the axis, a lower one above its hill.
        let places = [ABOVE, 90.0].map(|y| heaped(vec![((60.0, y), 0, &series)], 100.0)[0].0);
        assert_eq!(places, [(100.0, ABOVE), (60.0, 90.0)]);
    }

    #[test]
    fn a_curve_has_marks_between_its_points() {
        let points: Vec<Point> = (0..20).map(|x| Point::new(f64::from(x), 5.0)).collect();
        let series = |name: &str| Series::new(name, 0, points.clone());
        let lines = Lines::new(Axis::linear("x"), Axis::linear("y"), vec![series("a"), series("b")]);
        let lines = lines.shaped(Shape::Curve);
        let at = |nth| lines.signed(&points, nth).iter().map(|point| point.x).collect::<Vec<_>>();
        assert_eq!((at(0), at(1)), (vec![0.0, 5.0, 10.0, 15.0], vec![2.0, 7.0, 12.0, 17.0]));
        let svg = lines.draw().expect("drawn")[0].svg.to_string();
        assert_eq!(svg.matches("class=\"sign s0 k").count(), 8, "{svg}");
        assert!(svg.contains("class=\"line s0 k0\"") && svg.contains("class=\"line d1 s0 k1\""), "{svg}");
    }

    #[test]
    fn a_chart_of_nothing_is_drawn() {
        let empty = Lines::new(Axis::log("depth"), Axis::linear("MB/s"), Vec::new());
        assert_eq!(empty.draw().expect("drawn").len(), 1);
    }

    #[test]
    fn numbers_that_are_none_do_no_harm() {
        let points = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300].map(|y| Point::new(y, y)).to_vec();
        let lines = Lines::new(Axis::log("x"), Axis::log("y"), vec![Series::new("a", 0, points)]);
        assert!(lines.draw().is_ok());
    }
}
