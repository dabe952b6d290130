//! Many commands over time on the pipes, as numbers that a script draws.
//!
//! A hundred thousand commands are too many for SVG. They are embedded as integers by column, coded
//! by [`rice`], and the script draws the visible part. Times are in steps of a stated unit, as fine
//! as space permits. Always true: commands are ordered by start; omissions are stated.

mod rice;
mod still;

use crate::number;
use crate::table::{Cell, Table};
use rice::coded;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A bar of a command on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The lane, of [`Timeline::lanes`].
    pub lane: u8,
    /// Start in nanoseconds.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Start in nanoseconds.
    pub began_ns: u64,
    /// End.
    pub ended_ns: u64,
    /// Its bars.
    pub bars: Vec<Bar>,
}

/// A route to a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub hue: u8,
    /// Its commands, in any order.
    pub commands: Vec<Command>,
}

/// Commands over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Names of the lanes.
    pub lanes: Vec<String>,
    /// The panels, one below the other on one time axis.
    pub panels: Vec<Panel>,
}

/// Maximum commands over all panels.
pub(crate) const COMMANDS_MAX: usize = 100_000;

/// Units of time in nanoseconds; the finest that fits is used.
const UNITS_NS: [u64; 5] = [10, 50, 100, 500, 1000];

/// Commands in the table and in the static picture.
const SHOWN: usize = 8;

/// The encoded commands of a page.
pub(crate) struct Embedded {
    /// JSON.
    pub(crate) json: String,
    /// Commands of each panel.
    pub(crate) commands: Vec<usize>,
    /// Nanoseconds of a step.
    unit_ns: u64,
}

impl Timeline {
    /// Commands of all panels.
    pub fn commands(&self) -> usize {
        self.panels.iter().map(|panel| panel.commands.len()).sum()
    }

    /// The first commands of each panel, step by step.
    pub(crate) fn table(&self) -> Table {
        let lanes = self.lanes.iter().flat_map(|lane| [format!("{lane} from, µs"), format!("{lane} to, µs")]);
        let head = ["", "begins, µs", "ends, µs"].map(String::from).into_iter().chain(lanes);
        let mut table = Table::new(head);
        for panel in &self.panels {
            for (nth, command) in panel.first(SHOWN).into_iter().enumerate() {
                let us = |ns: u64| Cell::Number(ns as f64 / 1e3);
                let mut row = vec![
                    Cell::Text(format!("{} {}", panel.name, nth + 1)),
                    us(command.began_ns),
                    us(command.ended_ns),
                ];
                for lane in 0..self.lanes.len() {
                    let of_lane = || command.bars.iter().filter(|bar| usize::from(bar.lane) == lane);
                    let from = of_lane().map(|bar| bar.from_ns).min();
                    let to = of_lane().map(|bar| bar.to_ns).max();
                    row.extend([from, to].map(|at| at.map_or(Cell::Empty, us)));
                }
                table = table.row(row);
            }
        }
        table
    }

    /// As numbers, in the finest steps for which so many characters are enough; what there is never room for is left out at the end.
    pub(crate) fn embedded(&self, room: usize) -> Embedded {
        let share = COMMANDS_MAX / self.panels.len().max(1);
        let mut counts = self.panels.iter().map(|panel| panel.commands.len().min(share)).collect::<Vec<_>>();
        loop {
            let mut needed = 0;
            for unit_ns in UNITS_NS {
                let json = self.json(unit_ns, &counts);
                if json.len() <= room || counts.iter().all(|count| *count == 0) {
                    return Embedded { json, commands: counts, unit_ns };
                }
                needed = json.len();
            }
            // So many bars to a command that nothing else helps: as many commands as there seems to be room for, and ever fewer.
            let share = 0.98 * room as f64 / needed as f64;
            counts.iter_mut().for_each(|count| *count = (*count as f64 * share) as usize);
        }
    }

    fn json(&self, unit_ns: u64, counts: &[usize]) -> String {
        let panels = self.panels.iter().zip(counts).map(|(panel, count)| {
            format!(
                "{{\"hue\":{},\"n\":{count},{}}}",
                panel.hue,
                columns(panel, *count, unit_ns, self.lanes.len())
            )
        });
        format!("{{\"unit\":{unit_ns},\"panels\":[{}]}}", panels.collect::<Vec<_>>().join(","))
    }
}

impl Panel {
    /// So many commands, those that begin first, in that order.
    fn first(&self, count: usize) -> Vec<&Command> {
        let mut commands: Vec<&Command> = self.commands.iter().collect();
        commands.sort_by_key(|command| (command.began_ns, command.ended_ns));
        commands.truncate(count);
        commands
    }
}

/// Bars of the commands that have them on the same lanes in the same order.
#[derive(Default)]
struct Shape {
    /// Commands of the shape.
    count: usize,
    /// Of each lane in turn: since the end of the bar before (or the beginning of the command), and how long.
    bars: Vec<[Vec<i64>; 2]>,
}

/// Fields of a panel as JSON: of each command, the time since the beginning of the one before, from the end of its last bar to its
/// own, and its shape; of each shape, lanes and columns.
///
/// Events follow each other on a wire after nearly the same time, so a column of times with one cause takes few bits.
fn columns(panel: &Panel, count: usize, unit_ns: u64, lanes: usize) -> String {
    let commands = panel.first(count);
    let steps = |ns: u64| (ns / unit_ns) as i64;
    let bars: Vec<Vec<Bar>> = commands.iter().map(|command| in_turn(command, lanes)).collect();
    let mut shapes: BTreeMap<Vec<u8>, Shape> = BTreeMap::new();
    let (mut since, mut rest, mut before) = (Vec::new(), Vec::new(), 0);
    for (command, bars) in commands.iter().zip(&bars) {
        let mut at = steps(command.began_ns);
        since.push(at - before);
        before = at;
        let shape = shapes.entry(lanes_of(bars)).or_default();
        shape.count += 1;
        shape.bars.resize_with(bars.len(), Default::default);
        for (bar, [gap, length]) in bars.iter().zip(&mut shape.bars) {
            let [from, to] = [bar.from_ns, bar.to_ns.max(bar.from_ns)].map(steps);
            gap.push(from - at);
            length.push(to - from);
            at = to;
        }
        rest.push(steps(command.ended_ns.max(command.began_ns)) - at);
    }
    // The shape of most commands is the first, whose number has the fewest bits.
    let mut ranked: Vec<(&Vec<u8>, &Shape)> = shapes.iter().collect();
    ranked.sort_by_key(|(_, shape)| Reverse(shape.count));
    let places: BTreeMap<&Vec<u8>, i64> = ranked.iter().map(|(lanes, _)| *lanes).zip(0..).collect();
    let shape: Vec<i64> = bars.iter().map(|bars| places[&lanes_of(bars)]).collect();
    let shapes = ranked.iter().map(|(lanes, shape)| {
        let bars = shape.bars.iter().map(|[gap, length]| format!("[{},{}]", coded(gap), coded(length)));
        format!("{{\"lanes\":{lanes:?},\"bars\":[{}]}}", bars.collect::<Vec<_>>().join(","))
    });
    let shapes = shapes.collect::<Vec<_>>().join(",");
    let [since, rest, shape] = [since, rest, shape].map(|column| coded(&column));
    format!("\"since\":{since},\"rest\":{rest},\"shape\":{shape},\"shapes\":[{shapes}]")
}

/// Bars on lanes that there are, by their beginnings.
fn in_turn(command: &Command, lanes: usize) -> Vec<Bar> {
    let mut bars: Vec<Bar> =
        command.bars.iter().copied().filter(|bar| usize::from(bar.lane) < lanes).collect();
    bars.sort_by_key(|bar| (bar.from_ns, bar.lane));
    bars
}

fn lanes_of(bars: &[Bar]) -> Vec<u8> {
    bars.iter().map(|bar| bar.lane).collect()
}

impl Embedded {
    /// Describes what is left out, if anything, and the resolution of times.
    pub(crate) fn note(&self, timeline: &Timeline) -> String {
        let all = timeline.commands();
        let shown: usize = self.commands.iter().sum();
        let left_out = match shown < all {
            true => {
                format!("The first {} of {} commands are shown. ", number(shown as f64), number(all as f64))
            }
            false => String::new(),
        };
        let step = number(self.unit_ns as f64 / 1e3);
        format!("{left_out}Times are in steps of {step} µs; shorter bars are lines.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command each 28 us that takes about 220, as 4 KiB reads over UAS at depth 8.
    fn many(count: u64) -> Panel {
        let command = |nth: u64| {
            let began_ns = nth * 28_000 + nth * 7919 % 9000;
            let ended_ns = began_ns + 200_000 + nth * 104_729 % 40_000;
            let bar = |lane, from: u64, length: u64| Bar { lane, from_ns: from, to_ns: from + length };
            let bars = vec![
                bar(0, began_ns + 5_000, 100),
                bar(2, ended_ns - 30_000 - nth * 31 % 7000, 9_000),
                bar(3, ended_ns - 12_000, 80),
            ];
            Command { began_ns, ended_ns, bars }
        };
        Panel { name: "uas".into(), hue: 1, commands: (0..count).map(command).collect() }
    }

    /// Bytes that a page with other charts has room for.
    const ROOM: usize = 1_050_000;

    fn steps(us: &str) -> String {
        format!("Times are in steps of {us} µs; shorter bars are lines.")
    }

    #[test]
    fn a_hundred_thousand_commands_have_room() {
        let lanes = ["command", "data-out", "data-in", "status"].map(String::from).to_vec();
        let timeline = Timeline { lanes, panels: vec![many(50_000), many(50_000)] };
        let embedded = timeline.embedded(ROOM);
        assert!(embedded.json.len() <= ROOM, "{}", embedded.json.len());
        assert_eq!(embedded.commands.as_slice(), [50_000; 2].as_slice());
        assert_eq!(embedded.note(&timeline), steps("0.01"));
        // What has little room has longer steps, and the same commands.
        let coarse = timeline.embedded(ROOM / 3);
        assert!(
            coarse.json.len() <= ROOM / 3 && coarse.commands == embedded.commands,
            "{}",
            coarse.json.len()
        );
        assert_eq!(coarse.note(&timeline), steps("1"));
    }

    #[test]
    fn commands_that_do_not_fit_are_noted() {
        let timeline = Timeline { lanes: vec!["command".into()], panels: vec![many(120_000)] };
        let note = timeline.embedded(ROOM).note(&timeline);
        assert_eq!(
            note,
            format!("The first 100\u{202f}000 of 120\u{202f}000 commands are shown. {}", steps("0.01"))
        );
        // Of room that is short nearly all is used.
        let (room, few) = (200_000, timeline.embedded(200_000));
        assert!(few.json.len() <= room && few.json.len() > room * 9 / 10, "{} of {room}", few.json.len());
        assert!(few.note(&timeline).contains("steps of 1 µs"), "{}", few.note(&timeline));
    }

    #[test]
    fn the_table_has_the_first_commands_of_each() {
        let lanes = ["command", "data-out", "data-in", "status"].map(String::from).to_vec();
        let table = Timeline { lanes, panels: vec![many(3), many(40)] }.table();
        assert_eq!((table.rows.len(), table.head.len()), (3 + SHOWN, 11));
        assert_eq!(table.rows[0][3..5], [Cell::Number(5.0), Cell::Number(5.1)]);
        assert_eq!(table.rows[0][5], Cell::Empty);
    }
}
