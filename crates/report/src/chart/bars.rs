//! Horizontal bars: grouped or stacked.
//!
//! Labels are text, which fits beside horizontal bars; so charts grow downwards.

use super::axis::{Span, WIDEST, with_unit};
use super::plane::{ABOVE, BELOW, Chart, Drawn, Fault, Plane, at, on, text};
use super::{Axis, Entry, EntryKind, Look, Mark, Scale, look, sign, with_tooltip};
use crate::drawing::rounded;
use crate::number::{mean, short};
use crate::table::{Cell, Table};
use svg::Node;
use svg::node::element::{Group as Element, Path};

/// A group of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Label.
    pub label: String,
    /// One value per series, in their order.
    pub values: Vec<Option<f64>>,
}

/// A bar chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Property that distinguishes the groups: `block`.
    pub across: String,
    /// The value axis.
    pub value: Axis,
    /// Names and looks of the series, in the order of the bars.
    pub series: Vec<(String, Look)>,
    /// The groups, from the top.
    pub groups: Vec<Group>,
    /// Stack the bars of a group.
    pub is_stacked: bool,
}

const WIDTH: f64 = 480.0;
const THICK: f64 = 11.0;
const BETWEEN: f64 = 9.0;

/// Maximum characters of a label line.
const LABEL_SIGNS: usize = 27;
/// Maximum lines of a label; longer ones end in an ellipsis.
const LABEL_LINES: usize = 2;
const LINE: f64 = 13.0;

impl Bars {
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let looks = self.looks();
        self.series.iter().zip(looks).map(|((name, _), look)| Entry { name, look, drawn: EntryKind::Bar })
    }

    fn looks(&self) -> Vec<Look> {
        look::apart(self.series.iter().map(|(_, look)| (*look, false)))
    }

    /// A row per group, a column per series.
    pub(crate) fn table(&self) -> Table {
        let names = self.series.iter().map(|(name, _)| format!("{name}, {}", self.value.name));
        let mut table = Table::new([self.across.clone()].into_iter().chain(names));
        for Group { label, values } in &self.groups {
            table = table.row(
                [Cell::text(label)]
                    .into_iter()
                    .chain(values.iter().map(|value| value.map_or(Cell::Empty, Cell::Mean))),
            );
        }
        table
    }

    pub(crate) fn draw(&self) -> Result<Vec<Drawn>, Fault> {
        let labels: Vec<Vec<String>> = self.groups.iter().map(|group| broken(&group.label)).collect();
        let lines = labels.iter().map(Vec::len).max().unwrap_or(1);
        let tall = self.bars_tall().max(lines as f64 * LINE) + BETWEEN;
        let height = ABOVE + BELOW + tall * self.groups.len().max(1) as f64;
        let label_signs = labels.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        let left = label_signs as f64 * WIDEST + 10.0;
        let plane = Plane {
            size: (WIDTH, height),
            margins: (left, 56.0, BELOW),
            names: (&self.value.name, &self.across),
            grid: (false, true),
        };
        let sums = self.groups.iter().map(|group| {
            let values = group.values.iter().flatten().filter(|value| value.is_finite());
            if self.is_stacked { values.sum() } else { values.copied().fold(0.0, f64::max) }
        });
        let x = Span::of(&self.value, Scale::Linear, &sums.collect::<Vec<f64>>(), plane.inner().0, true);
        // A group is one unit of this axis, which has no ticks.
        let ends = [0.0, self.groups.len().max(1) as f64];
        let y = Span::exactly(ends);
        let svg = plane.draw(x, y, |chart| Ok(self.over(chart, &labels, tall)))?;
        Ok(vec![on(Scale::Linear, svg)])
    }

    /// Height of the bars of a group.
    fn bars_tall(&self) -> f64 {
        THICK * if self.is_stacked { 1.6 } else { self.series.len().max(1) as f64 }
    }

    fn over(&self, chart: &Chart<'_, '_>, labels: &[Vec<String>], tall: f64) -> Element {
        let mut over = Element::new();
        let (zero, _) = at(chart, 0.0, 0.0);
        let (bars_tall, looks) = (self.bars_tall(), self.looks());
        for (nth, (group, label)) in self.groups.iter().zip(labels).enumerate() {
            let middle = ABOVE + tall * (nth as f64 + 0.5);
            let top = middle - bars_tall / 2.0;
            for (line, words) in label.iter().enumerate() {
                let below = (line as f64 - (label.len() - 1) as f64 / 2.0) * LINE;
                let words = text(words, zero - 7.0, middle + below + 4.0, "tick");
                over.append(words.set("text-anchor", "end"));
            }
            let mut sum = 0.0;
            for (key, value) in group.values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) else { continue };
                let (from, y, thick) = match self.is_stacked {
                    true => (sum, top, bars_tall),
                    false => (0.0, top + THICK * key as f64, THICK - 1.0),
                };
                sum += value;
                let ends = [from, from + value].map(|value| at(chart, value, 0.0).0);
                let look = looks.get(key).copied().unwrap_or_default();
                let [left, right] = ends;
                let outline = Outline { left, right, y, thick };
                over.append(self.bar(group, look, key, value, outline));
                if let Some(stripes) = look.stripes() {
                    let (from, across) = (rounded(ends[0]), rounded(y + thick / 2.0));
                    let path = Path::new().set("d", format!("M{from},{across}H{}", rounded(ends[1])));
                    over.append(path.set("class", format!("stripes {stripes} k{key}")));
                }
                self.sign(&mut over, look, key, value, outline);
            }
            if self.is_stacked {
                let end = at(chart, sum, 0.0).0;
                over.append(text(&short_figure(sum), end + 5.0, middle + 4.0, "value"));
            }
        }
        over
    }

    /// The mark of its series at a bar, in black as well, and how much it is; within a part, where that has room.
    fn sign(&self, over: &mut Element, look: Look, key: usize, value: f64, outline: Outline) {
        let Outline { left, right, y, thick } = outline;
        let middle = y + thick / 2.0;
        if self.is_stacked {
            if right - left >= THICK {
                over.append(sign((left + right) / 2.0, middle, look, key, "sign inside"));
            }
            return;
        }
        let is_alone = self.series.len() < 2;
        if !is_alone {
            over.append(sign(right + 7.0, middle, look, key, "sign"));
        }
        let x = right + if is_alone { 4.0 } else { 14.0 };
        over.append(text(&short_figure(value), x, y + thick - 1.5, &format!("value k{key}")));
    }

    fn bar(&self, group: &Group, look: Look, key: usize, value: f64, outline: Outline) -> Path {
        let Outline { left, right, y, thick } = outline;
        let width = (right - left).max(0.6);
        let (left, y, wide, thick) = (rounded(left), rounded(y), rounded(width), rounded(thick));
        let path = Path::new().set("d", format!("M{left},{y}h{wide}v{thick}h-{wide}Z"));
        let mark = Mark {
            at: (left + wide / 2.0, y + thick / 2.0),
            key,
            look,
            name: None,
            place: group.label.clone(),
            value: with_unit(&mean(value), self.value.unit()),
            is_quiet: false,
        };
        with_tooltip(path.set("class", format!("mark bar s{} k{key}", look.hue)), &mark)
    }
}

/// The outline of a bar, in units of the picture.
#[derive(Clone, Copy)]
struct Outline {
    left: f64,
    right: f64,
    /// The upper edge.
    y: f64,
    thick: f64,
}

/// A label in lines, broken after a comma if it has one, else between words.
fn broken(label: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = label;
    while let Some((end, _)) = rest.char_indices().nth(LABEL_SIGNS) {
        // A separator may stand just behind what has room.
        let room = &rest[..end + rest[end..].chars().next().map_or(0, char::len_utf8)];
        let place = room.rfind(", ").map(|at| at + 1).or_else(|| room.rfind(' '));
        let Some(at) = place.filter(|_| lines.len() + 1 < LABEL_LINES) else {
            lines.push(rest.chars().take(LABEL_SIGNS - 1).chain(['…']).collect());
            return lines;
        };
        lines.push(rest[..at].to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// Three digits beside a bar.
fn short_figure(value: f64) -> String {
    let decimals = match value {
        _ if value.fract() == 0.0 => 0,
        _ if value >= 100.0 => 0,
        _ if value >= 10.0 => 1,
        _ => 2,
    };
    if value >= 10_000.0 { short((value / 100.0).round() * 100.0) } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(is_stacked: bool) -> Bars {
        let group =
            |label: &str, values: [f64; 2]| Group { label: label.into(), values: values.map(Some).to_vec() };
        Bars {
            across: "block".into(),
            value: Axis::linear("MB/s"),
            series: vec![("bot".into(), 0.into()), ("uas".into(), 1.into())],
            groups: vec![group("4K", [35.0, 144.0]), group("<64K>", [200.0, 390.0])],
            is_stacked,
        }
    }

    #[test]
    fn each_value_is_a_bar_with_its_words() {
        for is_stacked in [false, true] {
            let drawn = bars(is_stacked).draw().expect("drawn");
            let svg = drawn[0].svg.to_string();
            assert_eq!((drawn.len(), svg.matches("class=\"mark bar").count()), (1, 4), "{svg}");
            assert!(svg.contains("data-v=\"144 MB/s\"") && svg.contains("&lt;64K&gt;"), "{svg}");
        }
    }

    #[test]
    fn parts_begin_where_others_end() {
        let svg = bars(true).draw().expect("drawn")[0].svg.to_string();
        assert!(svg.contains("\n590\n</text>"), "the sum is beside the bar: {svg}");
    }

    #[test]
    fn bars_of_one_colour_differ_by_stripes_and_each_has_its_mark() {
        let mut bars = bars(false);
        bars.series[1].1 = 0.into();
        let svg = bars.draw().expect("drawn")[0].svg.to_string();
        assert_eq!(
            (svg.matches("class=\"sign s0").count(), svg.matches("class=\"stripes d1 k1").count()),
            (4, 2),
            "{svg}"
        );
        let samples: Vec<String> = bars.entries().map(|entry| entry.sample()).collect();
        assert!(
            !samples[0].contains("stripes") && samples[1].contains("class=\"stripes d1\""),
            "{samples:?}"
        );
    }

    #[test]
    fn what_is_missing_is_no_bar() {
        let mut bars = bars(false);
        bars.groups[0].values[1] = None;
        assert_eq!(bars.draw().expect("drawn")[0].svg.to_string().matches("class=\"mark bar").count(), 3);
        assert_eq!(bars.table().rows[0][2], Cell::Empty);
    }

    #[test]
    fn a_long_label_is_broken_and_one_that_is_longer_cut() {
        assert_eq!(broken("4K"), ["4K"]);
        assert_eq!(broken("8K 80 % random, 80 % read, 64 deep"), ["8K 80 % random, 80 % read,", "64 deep"]);
        assert_eq!(broken("4K random read, bot, depth 1"), ["4K random read, bot,", "depth 1"]);
        assert_eq!(broken(&"x".repeat(40)), [format!("{}…", "x".repeat(26))]);
        assert_eq!(
            broken(&"nine more ".repeat(9)),
            ["nine more nine more nine", "more nine more nine more n…"]
        );
    }

    #[test]
    fn lines_of_labels_have_their_room() {
        let mut bars = bars(true);
        let low = bars.draw().expect("drawn")[0].svg.to_string();
        bars.groups[0].label = "8K 80 % random, 80 % read, 64 deep".into();
        let high = bars.draw().expect("drawn")[0].svg.to_string();
        let height = |svg: &str| {
            svg.split("viewBox=\"0 0 480 ")
                .nth(1)
                .and_then(|rest| rest.split('"').next()?.parse::<f64>().ok())
        };
        assert!(height(&low) < height(&high), "{low}\n{high}");
    }
}
