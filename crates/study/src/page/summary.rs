//! Summaries of charts as text, for screen readers and for a quick overview.

use report::{Bars, Group, Lines, Series, mean};

/// Describes where each line begins and ends.
pub fn course(lines: &Lines, unit: &str) -> String {
    let of = |series: &Series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let [from, to] = [first.y, last.y].map(mean);
        let ends = match series.points.as_slice() {
            [_] => format!("is {to}"),
            _ if from == to => format!("stays at {to}"),
            _ => format!("goes from {from} to {to}"),
        };
        Some(format!("{} {ends} {unit}", series.name))
    };
    let all: Vec<String> = lines.series.iter().filter_map(of).collect();
    format!("{}.", all.join("; "))
}

/// Describes the peaks of histograms.
pub fn describe_peaks(lines: &Lines, unit: &str) -> String {
    let of = |series: &Series| {
        let most = series.points.iter().max_by(|one, other| one.y.total_cmp(&other.y))?;
        Some(format!("{} at {} {unit}, {} %", series.name, mean(most.x), mean(most.y)))
    };
    let all: Vec<String> = lines.series.iter().filter_map(of).collect();
    format!("Peaks: {}.", all.join("; "))
}

/// Describes the range of bars: of each series the shortest and the longest, of stacked bars the
/// totals.
pub fn reach(bars: &Bars, unit: &str) -> String {
    let (groups, all) = (&bars.groups, bars.series.iter().enumerate());
    if bars.is_stacked {
        return stacked(bars, unit);
    }
    let each = all.filter_map(|(nth, (name, _))| {
        let values = groups.iter().filter_map(|group| Some((group.values.get(nth).copied()??, group)));
        Some(format!("{name} {}", ends(values, unit, |_, _| String::new())?))
    });
    format!("{}.", each.collect::<Vec<_>>().join("; "))
}

fn stacked(bars: &Bars, unit: &str) -> String {
    let parts = |group: &Group| group.values.iter().flatten().sum::<f64>();
    let whole = bars.groups.iter().map(|group| (parts(group), group));
    let most = |whole: f64, group: &Group| {
        let parts = group.values.iter().zip(&bars.series);
        let parts = parts.filter_map(|(value, (name, _))| Some(((*value)?, name)));
        let largest = parts.max_by(|one, other| one.0.total_cmp(&other.0));
        largest.filter(|_| whole > 0.0).map_or_else(String::new, |(value, name)| {
            format!(", {:.0} % of it {name}", value / whole * 100.0)
        })
    };
    ends(whole, unit, most)
        .map_or_else(String::new, |ends| format!("{}{}.", ends[..1].to_uppercase(), &ends[1..]))
}

/// Describes the least and the greatest value of groups; none without values.
fn ends<'a>(
    all: impl Iterator<Item = (f64, &'a Group)> + Clone,
    unit: &str,
    more: impl Fn(f64, &Group) -> String,
) -> Option<String> {
    let low = all.clone().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let high = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let [from, to] =
        [low, high].map(|(value, group)| (mean(value), format!("{}{}", group.label, more(value, group))));
    Some(match std::ptr::eq(low.1, high.1) {
        true => format!("is {} {unit} ({})", from.0, from.1),
        false => format!("goes from {} ({}) to {} {unit} ({})", from.0, from.1, to.0, to.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Axis, Point};

    #[test]
    fn lines_are_described_by_their_ends() {
        let points = vec![Point::new(1.0, 34.0), Point::new(32.0, 144.5)];
        let same = vec![Point::new(1.0, 35.0), Point::new(32.0, 35.0)];
        let one = vec![Point::new(1.0, 36.0)];
        let series =
            vec![Series::new("uasp", 0, points), Series::new("bot", 1, same), Series::new("sata", 5, one)];
        let lines = Lines::new(Axis::log("depth"), Axis::linear("MB/s"), series);
        let expected = "uasp goes from 34 to 145 MB/s; bot stays at 35 MB/s; sata is 36 MB/s.";
        assert_eq!(course(&lines, "MB/s"), expected);
    }

    fn bars(is_stacked: bool) -> Bars {
        let group =
            |label: &str, values: [Option<f64>; 2]| Group { label: label.into(), values: values.to_vec() };
        Bars {
            across: String::new(),
            value: Axis::linear("W"),
            series: vec![("flash".into(), 0.into()), ("link".into(), 1.into())],
            groups: vec![group("bot", [Some(3.0), Some(1.0)]), group("uas", [Some(1.5), None])],
            is_stacked,
        }
    }

    #[test]
    fn bars_are_described_by_their_ends() {
        assert_eq!(reach(&bars(false), "W"), "flash goes from 1.5 (uas) to 3 W (bot); link is 1 W (bot).");
        let whole = "Goes from 1.5 (uas, 100 % of it flash) to 4 W (bot, 75 % of it flash).";
        assert_eq!(reach(&bars(true), "W"), whole);
        assert_eq!(reach(&Bars { is_stacked: true, ..Bars::default() }, "W"), "");
    }

    #[test]
    fn histograms_are_described_by_their_peaks() {
        let points = vec![Point::new(100.0, 8.0), Point::new(120.0, 31.0), Point::new(150.0, 2.0)];
        let lines = Lines::new(Axis::log("us"), Axis::linear("%"), vec![Series::new("uas", 0, points)]);
        assert_eq!(describe_peaks(&lines, "µs"), "Peaks: uas at 120 µs, 31 %.");
    }
}
