//! Many commands over time: what each did on which pipe, in numbers that a script draws.
//!
//! A hundred thousand commands are no SVG. They are embedded as integers, column by column, and the script draws what of them is in sight.
//! Columns are coded by Rice's code (Rice and Plaunt, 1971): a number is its quotient by a power of two in ones, and the rest in
//! bits; the power is that which makes the column shortest. Times are in steps of a unit that is told, as fine as there is room
//! for. Always true: commands are in the order of their beginnings, and what is left out is told.

use crate::number;
use crate::table::{Cell, Table};

/// What happened for a command on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The lane, of [`Timeline::lanes`].
    pub lane: u8,
    /// From when, in nanoseconds.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// When it began, in nanoseconds.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// What happened for it.
    pub bars: Vec<Bar>,
}

/// One way to a drive.
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
    /// One below the other, with one time.
    pub panels: Vec<Panel>,
}

/// Commands of a timeline, over all panels.
pub(crate) const COMMANDS_MAX: usize = 100_000;

/// Steps of time, in nanoseconds, of which the finest is taken that leaves room for all.
const UNITS_NS: [u64; 5] = [10, 50, 100, 500, 1000];

/// Ones of a quotient, at most; what is larger follows in 32 bits.
const ONES_MAX: u32 = 24;

/// Commands in the table.
const TOLD: usize = 8;

/// Numbers of the commands of a page, ready to be embedded.
pub(crate) struct Embedded {
    /// JSON.
    pub(crate) json: String,
    /// Commands of each panel.
    pub(crate) kept: Vec<usize>,
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
            let mut commands: Vec<&Command> = panel.commands.iter().collect();
            commands.sort_by_key(|command| command.began_ns);
            for (nth, command) in commands.into_iter().take(TOLD).enumerate() {
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
        let mut kept = self.panels.iter().map(|panel| panel.commands.len().min(share)).collect::<Vec<_>>();
        loop {
            let mut needed = 0;
            for unit_ns in UNITS_NS {
                let json = self.json(unit_ns, &kept);
                if json.len() <= room || kept.iter().all(|kept| *kept == 0) {
                    return Embedded { json, kept, unit_ns };
                }
                needed = json.len();
            }
            // So many bars to a command that nothing else helps: as many commands as there seems to be room for, and ever fewer.
            let share = 0.98 * room as f64 / needed as f64;
            kept.iter_mut().for_each(|kept| *kept = (*kept as f64 * share) as usize);
        }
    }

    fn json(&self, unit_ns: u64, kept: &[usize]) -> String {
        let panels = self.panels.iter().zip(kept).map(|(panel, kept)| {
            let columns = columns(panel, *kept, unit_ns, self.lanes.len());
            let columns: Vec<String> = columns.iter().map(|column| coded(column)).collect();
            format!("{{\"hue\":{},\"n\":{kept},\"columns\":[{}]}}", panel.hue, columns.join(","))
        });
        format!("{{\"unit\":{unit_ns},\"panels\":[{}]}}", panels.collect::<Vec<_>>().join(","))
    }
}

/// Of each command: since the beginning of the one before, how long, how many bars; of each bar: lane, since the beginning of the
/// bar before (or of the command), how long.
fn columns(panel: &Panel, kept: usize, unit_ns: u64, lanes: usize) -> [Vec<u32>; 6] {
    let mut commands: Vec<&Command> = panel.commands.iter().collect();
    commands.sort_by_key(|command| (command.began_ns, command.ended_ns));
    let steps = |ns: u64| ns / unit_ns;
    let short = |steps: u64| u32::try_from(steps).unwrap_or(u32::MAX);
    let mut columns: [Vec<u32>; 6] = Default::default();
    let mut last = 0;
    for command in commands.into_iter().take(kept) {
        let [since, lasts, count, lane, offset, length] = &mut columns;
        let began = steps(command.began_ns);
        since.push(short(began - last));
        lasts.push(short(steps(command.ended_ns).saturating_sub(began)));
        last = began;
        let mut bars: Vec<Bar> =
            command.bars.iter().copied().filter(|bar| usize::from(bar.lane) < lanes).collect();
        bars.sort_by_key(|bar| (bar.from_ns, bar.lane));
        count.push(short(bars.len() as u64));
        let mut before = began;
        for bar in bars {
            let from = steps(bar.from_ns).max(before);
            lane.push(u32::from(bar.lane));
            offset.push(short(from - before));
            length.push(short(steps(bar.to_ns).saturating_sub(from)));
            before = from;
        }
    }
    columns
}

/// A column: how many, the power, and the bits as base64.
fn coded(numbers: &[u32]) -> String {
    let bits = |power: u32| -> u64 { numbers.iter().map(|number| cost(*number, power)).sum() };
    let power = (0..24).min_by_key(|power| bits(*power)).unwrap_or(0);
    let mut out = Bits::default();
    for &number in numbers {
        let quotient = number >> power;
        if quotient < ONES_MAX {
            (0..quotient).for_each(|_| out.push(1, 1));
            out.push(0, 1);
            out.push(number, power);
        } else {
            (0..ONES_MAX).for_each(|_| out.push(1, 1));
            out.push(number, 32);
        }
    }
    format!("[{},{power},\"{}\"]", numbers.len(), out.base64())
}

fn cost(number: u32, power: u32) -> u64 {
    match number >> power {
        quotient if quotient < ONES_MAX => u64::from(quotient + 1 + power),
        _ => u64::from(ONES_MAX + 32),
    }
}

/// Bits, the highest first, six to a character.
#[derive(Default)]
struct Bits {
    text: String,
    /// Bits that are no character yet, as a number, and how many.
    rest: usize,
    held: u32,
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Bits {
    /// A number of so many bits.
    fn push(&mut self, value: u32, width: u32) {
        for place in (0..width).rev() {
            let bit = value >> place;
            self.rest = self.rest * 2 + (bit % 2) as usize;
            self.held += 1;
            if self.held == 6 {
                self.text.push(char::from(BASE64[self.rest]));
                (self.rest, self.held) = (0, 0);
            }
        }
    }

    fn base64(mut self) -> String {
        if self.held > 0 {
            self.push(0, 6 - self.held);
        }
        self.text
    }
}

impl Embedded {
    /// What is left out, if anything, and how fine times are.
    pub(crate) fn told(&self, timeline: &Timeline) -> String {
        let all = timeline.commands();
        let kept: usize = self.kept.iter().sum();
        let left_out = match kept < all {
            true => {
                format!("The first {} of {} commands are drawn. ", number(kept as f64), number(all as f64))
            }
            false => String::new(),
        };
        let step = number(self.unit_ns as f64 / 1e3);
        format!(
            "{left_out}Times are in steps of {step} µs, as fine as there is room for; what is shorter is a line."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Vec<u32> {
        let mut parts = text.trim_matches(['[', ']']).split(',');
        let [count, power] = [parts.next(), parts.next()].map(|part| part.unwrap().parse::<u32>().unwrap());
        let bits: Vec<u32> = parts
            .next()
            .unwrap()
            .trim_matches('"')
            .bytes()
            .flat_map(|sign| {
                let six = BASE64.iter().position(|known| *known == sign).unwrap() as u32;
                (0..6).rev().map(move |bit| six >> bit & 1)
            })
            .collect();
        let mut bits = bits.into_iter();
        let mut read = |width: u32| (0..width).fold(0_u32, |sum, _| sum << 1 | bits.next().unwrap());
        (0..count)
            .map(|_| {
                let mut ones = 0;
                while ones < 24 && read(1) == 1 {
                    ones += 1;
                }
                if ones == 24 { read(32) } else { ones << power | read(power) }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec(prop_oneof![0..9_u32, 0..5000_u32, any::<u32>()], 0..200)) {
            prop_assert_eq!(decoded(&coded(&numbers)), numbers);
        }
    }

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

    /// What a page with other charts has room for.
    const ROOM: usize = 1_050_000;

    fn steps(us: &str) -> String {
        format!("Times are in steps of {us} µs, as fine as there is room for; what is shorter is a line.")
    }

    #[test]
    fn a_hundred_thousand_commands_have_room() {
        let lanes = ["command", "data-out", "data-in", "status"].map(String::from).to_vec();
        let timeline = Timeline { lanes, panels: vec![many(50_000), many(50_000)] };
        let embedded = timeline.embedded(ROOM);
        assert!(embedded.json.len() <= ROOM, "{}", embedded.json.len());
        assert_eq!(embedded.kept.as_slice(), [50_000; 2].as_slice());
        assert_eq!(embedded.told(&timeline), steps("1"));
    }

    #[test]
    fn what_there_is_no_room_for_is_told() {
        let timeline = Timeline { lanes: vec!["command".into()], panels: vec![many(120_000)] };
        let told = timeline.embedded(ROOM).told(&timeline);
        assert_eq!(
            told,
            format!("The first 100\u{202f}000 of 120\u{202f}000 commands are drawn. {}", steps("0.01"))
        );
        // Of room that is short nearly all is used.
        let (room, few) = (200_000, timeline.embedded(200_000));
        assert!(few.json.len() <= room && few.json.len() > room * 9 / 10, "{} of {room}", few.json.len());
        assert!(few.told(&timeline).contains("steps of 1 µs"), "{}", few.told(&timeline));
    }

    #[test]
    fn the_table_has_the_first_commands_of_each() {
        let lanes = ["command", "data-out", "data-in", "status"].map(String::from).to_vec();
        let table = Timeline { lanes, panels: vec![many(3), many(40)] }.table();
        assert_eq!((table.rows.len(), table.head.len()), (3 + TOLD, 11));
        assert_eq!(table.rows[0][3..5], [Cell::Number(5.0), Cell::Number(5.1)]);
        assert_eq!(table.rows[0][5], Cell::Empty);
    }
}
