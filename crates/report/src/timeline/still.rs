//! The first commands of each panel as a picture that needs no script.
//!
//! It has the lanes of the one that zooms, and no values but those of its axis; the table below it has them.

use super::{Panel, SHOWN, Timeline};
use crate::drawing::{rounded, text};
use crate::number::mean;
use svg::node::element::{Group, Path};
use svg::{Document, Node};

const WIDTH: f64 = 1000.0;
/// Names of lanes have room left of this.
const LEFT: f64 = 82.0;
const HEAD: f64 = 22.0;
const LANE: f64 = 15.0;
/// A command among those in flight.
const SLOT: f64 = 6.0;
const FOOT: f64 = 22.0;
/// Parts of the axis.
const TICKS: u32 = 4;

impl Timeline {
    /// The picture.
    pub(crate) fn still(&self) -> Document {
        let firsts: Vec<(&Panel, Vec<_>)> =
            self.panels.iter().map(|panel| (panel, panel.first(SHOWN))).collect();
        let ended = firsts.iter().flat_map(|(_, first)| first.iter().map(|command| command.ended_ns)).max();
        let whole = ended.unwrap_or(0).max(1);
        let x = |ns: u64| LEFT + (WIDTH - LEFT) * ns.min(whole) as f64 / whole as f64;
        let (mut body, mut top) = (Group::new(), 0.0);
        for (panel, first) in firsts {
            let name = format!("{}, its first {}", panel.name, first.len());
            body.append(text(name, LEFT, top + HEAD - 8.0, "name"));
            let mut bar = |[from, to]: [u64; 2], y: f64, deep: f64| {
                let (left, wide) = (rounded(x(from)), rounded((x(to) - x(from)).max(0.8)));
                let path = Path::new().set("d", format!("M{left},{y}h{wide}v{deep}h-{wide}Z"));
                body.append(path.set("class", format!("block s{}", panel.hue)));
            };
            let lanes = top + HEAD + first.len() as f64 * SLOT;
            for (slot, command) in first.iter().enumerate() {
                let y = top + HEAD + slot as f64 * SLOT;
                bar([command.began_ns, command.ended_ns], y, SLOT - 1.0);
                for of_lane in command.bars.iter().filter(|bar| usize::from(bar.lane) < self.lanes.len()) {
                    let y = lanes + f64::from(of_lane.lane) * LANE + 4.0;
                    bar([of_lane.from_ns, of_lane.to_ns.max(of_lane.from_ns)], y, LANE - 6.0);
                }
            }
            for (lane, nth) in self.lanes.iter().zip(0_u32..) {
                let y = lanes + f64::from(nth) * LANE + LANE - 3.0;
                body.append(text(lane, LEFT - 8.0, y, "tick").set("text-anchor", "end"));
            }
            top = lanes + self.lanes.len() as f64 * LANE + 8.0;
        }
        for tick in 0..=TICKS {
            let ns = whole / u64::from(TICKS) * u64::from(tick);
            let (rule, label) = (format!("M{},6V{}", rounded(x(ns)), rounded(top)), mean(ns as f64 / 1e3));
            let end = if tick == TICKS { "end" } else { "middle" };
            body.append(Path::new().set("d", rule).set("class", "grid"));
            body.append(text(format!("{label} µs"), x(ns), top + 14.0, "tick").set("text-anchor", end));
        }
        Document::new().set("viewBox", (0.0, 0.0, WIDTH, top + FOOT)).set("class", "chart").add(body)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bar, Command};
    use super::*;

    #[test]
    fn the_first_commands_are_drawn_and_no_more() {
        let command = |nth: u64| Command {
            began_ns: nth * 1000,
            ended_ns: nth * 1000 + 4000,
            bars: vec![
                Bar { lane: 0, from_ns: nth * 1000, to_ns: nth * 1000 + 100 },
                Bar { lane: 9, from_ns: 0, to_ns: 1 },
            ],
        };
        let panel = Panel { name: "a < b".into(), hue: 3, commands: (0..40).rev().map(command).collect() };
        let few = Panel { name: "one".into(), hue: 1, commands: vec![command(2)] };
        let timeline = Timeline { lanes: vec!["status".into()], panels: vec![panel, few, Panel::default()] };
        let svg = timeline.still().to_string();
        // A bar for each command and one for its lane; a lane that there is not has none.
        assert_eq!([svg.matches("block s3").count(), svg.matches("block s1").count()], [2 * SHOWN, 2]);
        assert!(svg.contains("a &lt; b, its first 8") && svg.contains("11 µs"), "{svg}");
        assert!(!svg.contains("NaN") && Timeline::default().still().to_string().contains("viewBox"));
    }
}
