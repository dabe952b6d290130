//! Prints a page with a figure of every kind, to be looked at; `cargo run -p uaskit-report --example page > page.html`.
//!
//! The browser tests use it as well: with a number, the timeline has as many commands.

use uaskit_report::drawing::{Drawing, text};
use uaskit_report::{
    Axis, Bar, Bars, Command, Dot, DotSeries, Fact, Figure, Group, Lines, Look, Page, Panel, Picture, Point,
    Scatter, Section, Series, Shape, Table, Timeline,
};

const NAMES: [(&str, u8); 3] = [("uas", 0), ("bot", 1), ("sata", 5)];

fn main() -> Result<(), uaskit_report::PageLimitError> {
    let commands = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(2000);
    let throughput = Section::new("Throughput").figure(depth()).figure(blocks());
    let latency = Section::new("Latency").figure(quantiles()).figure(distribution());
    let time = Section::new("Where the time goes").figure(stages()).figure(timeline(commands));
    let trust = Section::new("How far to trust it").figure(scatter()).figure(drawing());
    let page = Page::new("A page with everything")
        .lead("Invented numbers, to see what a report looks like.")
        .findings(vec!["uas moves 4.1 times as much as bot at depth 32".into(), "a < b & \"c\"".into()])
        .section(throughput)
        .section(latency)
        .section(time)
        .section(trust)
        .fact(Fact::pair("seed", "1"))
        .fact(Fact::pair("digest", "0123456789abcdef"))
        .fact(Fact::Lines("To make it again".into(), "cargo run -p uaskit-report --example page".into()))
        .fact(Fact::Table(
            "Constants".into(),
            Table::new(["part", "value"]).row(["wire".into(), 5.0.into()]),
        ));
    print!("{}", page.html()?);
    Ok(())
}

fn series(of: impl Fn(usize) -> Vec<Point>) -> Vec<Series> {
    NAMES.iter().enumerate().map(|(nth, (name, hue))| Series::new(*name, *hue, of(nth))).collect()
}

fn depth() -> Figure {
    let depths = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let most = [144.0, 36.0, 365.0];
    let point = |nth: usize, depth: f64| {
        let y = most[nth] * depth / (depth + [2.0, 0.05, 4.0][nth]);
        Point::new(depth, y).within([y * 0.96, y * 1.04])
    };
    let x = Axis::log("requests in flight").labelled(depths.map(|depth| (depth, depth.to_string())));
    let lines =
        Lines::new(x, Axis::linear("MB/s"), series(|nth| depths.map(|depth| point(nth, depth)).to_vec()));
    Figure::new("4K random read", "uas grows with depth, bot does not.", Picture::Lines(lines))
}

fn blocks() -> Figure {
    let group = |power: u32| {
        let kib = f64::from(1_u32 << power);
        let values = [390.0, 355.0, 550.0].map(|most| Some(most * kib / (kib + 40.0)));
        Group { label: format!("{}K", 1 << power), values: values.to_vec() }
    };
    let bars = Bars {
        across: "block".into(),
        value: Axis::linear("MB/s"),
        series: NAMES.map(|(name, hue)| (name.to_owned(), hue.into())).to_vec(),
        groups: (2..12).map(group).collect(),
        is_stacked: false,
    };
    Figure::new("Sequential read by block", "Longer blocks move more.", Picture::Bars(bars))
}

fn quantiles() -> Figure {
    let shares: Vec<f64> = (0..=40).map(|nth| 1.0 - 10_f64.powf(-f64::from(nth) / 13.0)).collect();
    let of = |nth: usize| {
        let base: f64 = [220.0, 115.0, 70.0][nth];
        shares.iter().map(|share| Point::new(*share, base - base.ln() * (1.0 - share).ln() * 6.0)).collect()
    };
    let lines = Lines::new(Axis::nines("share of requests"), Axis::log("latency, µs"), series(of))
        .shaped(Shape::Curve);
    Figure::new("Latency by share", "One in a hundred takes longer.", Picture::Lines(lines))
}

fn distribution() -> Figure {
    let of = |nth: usize| {
        let middle: f64 = [220.0, 115.0, 70.0][nth];
        let bell = |x: f64| 30.0 * (-((x / middle).ln() * 6.0).powi(2)).exp();
        (0..40).map(|bin| 40.0 * 1.07_f64.powi(bin)).map(|x| Point::new(x, bell(x))).collect()
    };
    let lines =
        Lines::new(Axis::log("latency, µs"), Axis::linear("% of requests"), series(of)).shaped(Shape::Steps);
    Figure::new("Distribution", "Each has one hill.", Picture::Lines(lines))
}

fn stages() -> Figure {
    let names = ["driver", "controller", "link", "bridge", "drive", "waiting"];
    let group =
        |label: &str, values: [f64; 6]| Group { label: label.into(), values: values.map(Some).to_vec() };
    let bars = Bars {
        across: String::new(),
        value: Axis::linear("mean latency, µs"),
        series: (8_u8..).zip(names).map(|(hue, name)| (name.to_owned(), hue.into())).collect(),
        groups: vec![
            group("uas, depth 1", [30.0, 5.0, 12.0, 40.0, 60.0, 1.0]),
            group("bot, depth 1", [20.0, 4.0, 14.0, 30.0, 60.0, 3.0]),
        ],
        is_stacked: true,
    };
    Figure::new("Stages of a command", "Most is spent in the drive.", Picture::Bars(bars))
}

fn timeline(commands: u64) -> Figure {
    let panel = |(name, hue): (&str, u8), each: u64, lasts: u64| {
        let command = |nth: u64| {
            let began_ns = nth * each + nth * 7919 % (each / 3);
            let ended_ns = began_ns + lasts + nth * 104_729 % (lasts / 4);
            let bar = |lane, from: u64, length: u64| Bar { lane, from_ns: from, to_ns: from + length };
            let bars = vec![
                bar(0, began_ns + 5_000, 400),
                bar(2, ended_ns - 30_000, 9_000),
                bar(3, ended_ns - 12_000, 300),
            ];
            Command { began_ns, ended_ns, bars }
        };
        Panel { name: name.into(), hue, commands: (0..commands / 2).map(command).collect() }
    };
    let lanes = ["command", "data-out", "data-in", "status"].map(String::from).to_vec();
    let panels = vec![panel(NAMES[0], 28_000, 200_000), panel(NAMES[1], 116_000, 110_000)];
    Figure::new(
        "Commands on the pipes",
        "uas overlaps, bot does not.",
        Picture::Timeline(Timeline { lanes, panels }),
    )
}

fn scatter() -> Figure {
    let dot = |nth: i32| {
        let x = 20.0 * 1.2_f64.powi(nth);
        Dot {
            name: format!("P{nth:03}"),
            source: "An article (2013)".into(),
            x,
            y: x * (1.0 + f64::from(nth * 37 % 21 - 10) / 90.0),
        }
    };
    let swarm = |name: &str, hue: u8, range: std::ops::Range<i32>| DotSeries {
        name: name.into(),
        look: Look::from(hue),
        dots: range.map(dot).collect(),
    };
    let swarms = vec![swarm("fitted on", 1, 0..10), swarm("check", 0, 10..30)];
    let scatter =
        Scatter { x: Axis::log("published"), y: Axis::log("simulated"), swarms, zones: vec![0.2, 0.08] };
    Figure::new("Published and simulated", "All are within a fifth.", Picture::Scatter(scatter))
}

fn drawing() -> Figure {
    let drawing =
        Drawing::new(400.0, 60.0, "A drawing", "Words in a box.").with(text("Words", 20.0, 36.0, "head"));
    Figure::new("A drawing", "Words.", Picture::Drawing(Box::new(drawing)))
}
