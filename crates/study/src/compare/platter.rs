//! `--platter`: the order in which a disk serves four reads on one track, and the revolutions that
//! takes.
//!
//! A disk with a queue serves what passes the head first; behind BOT it has one request at a time.
//! The line is time: one turn of it is one revolution, from the end of the preceding request.

use super::Comparison;
use crate::error::StudyError;
use crate::trial::{self, Served, Service, TrialError};
use report::drawing::{Drawing, rounded, text};
use report::{Cell, Figure, Picture, Table};
use std::f64::consts::TAU;
use std::fmt::Write;
use svg::node::element::{Circle, Definitions, Group, Marker, Path as Line};

/// One route to the disk.
struct Panel {
    title: String,
    service: Service,
}

/// The order of reads on each disk of a comparison.
pub struct PlatterOrder {
    panels: Vec<Panel>,
}

/// Runs the reads on each configuration; empty if no drive has platters.
///
/// # Errors
///
/// If a run fails.
pub fn order_of_reads(comparison: Comparison<'_>) -> Result<PlatterOrder, StudyError> {
    Ok(PlatterOrder { panels: panels(comparison)? })
}

impl PlatterOrder {
    /// Whether no drive has platters.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// Returns an SVG drawing.
    pub fn drawing(&self) -> Drawing {
        picture(&self.panels)
    }

    /// The titles of its columns.
    pub fn titles(&self) -> Vec<&str> {
        self.panels.iter().map(|panel| panel.title.as_str()).collect()
    }

    /// Returns text for a terminal.
    pub fn text(&self) -> String {
        self.panels.iter().map(printed).collect()
    }
}

/// Returns a figure for a page; none if no drive has platters.
pub fn figure(comparison: Comparison<'_>) -> Result<Option<Figure>, StudyError> {
    let panels = panels(comparison)?;
    if panels.is_empty() {
        return Ok(None);
    }
    let mut table = Table::new(["", "order", "revolutions", "ms per revolution"]);
    for panel in &panels {
        let whole = turns(&panel.service).last().map_or(0.0, |last| last.1);
        let turn = panel.service.rotation.as_ps() as f64 / 1e9;
        table = table.row([
            Cell::text(&panel.title),
            Cell::text(order(&panel.service)),
            Cell::Number(whole),
            Cell::Number(turn),
        ]);
    }
    let text = "The platter turns below a fixed head, so blocks further along the arrow arrive later. With queued commands the disk serves \
                the block that arrives first; with one command at a time it must let that block pass.";
    Ok(Some(Figure::new(TITLE, text, Picture::Drawing(Box::new(picture(&panels)))).table(table)))
}

/// Configurations with platters.
fn panels(comparison: Comparison<'_>) -> Result<Vec<Panel>, StudyError> {
    let Comparison { columns, catalogue, terms } = comparison;
    let mut panels = Vec::new();
    for column in columns {
        let title = format!("{}: {}", column.name, column.activation.transport);
        match trial::platter(&column.assembly, catalogue, terms) {
            Ok(service) => panels.push(Panel { title, service }),
            Err(TrialError::NoPlatter) => {}
            Err(error) => return Err(StudyError::new(format!("{title}: simulation failed")).because(error)),
        }
    }
    Ok(panels)
}

/// When each request was served, in revolutions from the end of request 0, in order of service.
fn turns(service: &Service) -> Vec<(u16, f64)> {
    let rotation = service.rotation.as_ps().max(1) as f64;
    let begin = service.served.iter().find(|served| served.number == 0).map_or(0, |served| served.at.as_ps());
    let of = |served: &Served| {
        let place = service.places.get(usize::from(served.number).checked_sub(1)?)?;
        let place = *place as f64 / 100.0;
        // Its place is known; its end says in which turn.
        let passed = (served.at.as_ps().saturating_sub(begin)) as f64 / rotation;
        Some((served.number, place + (passed - place).round().max(0.0)))
    };
    service.served.iter().filter_map(of).collect()
}

fn order(service: &Service) -> String {
    let numbers = turns(service).into_iter().map(|(number, _)| number.to_string());
    numbers.collect::<Vec<_>>().join("-")
}

fn summary(panel: &Panel) -> String {
    let turns = turns(&panel.service).last().map_or(0.0, |last| last.1);
    format!(
        "served {} in {turns:.1} revolutions of {:.2} ms",
        order(&panel.service),
        panel.service.rotation.as_ps() as f64 / 1e9
    )
}

const TITLE: &str = "Order of service of four reads on one track";
const SIDE: f64 = 360.0;
const HEAD: f64 = 40.0;
const FOOT: f64 = 56.0;
const EDGE: f64 = 160.0;
const TRACK: f64 = 138.0;
/// Platters side by side: as many as fit a page.
const ABREAST: usize = 3;

fn picture(panels: &[Panel]) -> Drawing {
    let rows: Vec<&[Panel]> = panels.chunks(ABREAST).collect();
    let width = SIDE * panels.len().min(ABREAST) as f64;
    let height = SIDE + FOOT;
    let description: String =
        panels.iter().map(|panel| format!("{}: {}. ", panel.title, summary(panel))).collect();
    let tip = Line::new().set("d", "M0,0 L10,5 L0,10 z").set("class", "arrow");
    let arrow = Marker::new().set("id", "arrow").set("viewBox", "0 0 10 10").set("refX", 9).set("refY", 5);
    let arrow = arrow.set("markerWidth", 7).set("markerHeight", 7).set("orient", "auto").add(tip);
    let mut drawing =
        Drawing::new(width.max(460.0), HEAD + height * rows.len() as f64, TITLE, description.trim())
            .with(Definitions::new().add(arrow))
            .with(text(TITLE, 16.0, 26.0, "head"));
    for (nth, row) in rows.into_iter().enumerate() {
        for (number, panel) in row.iter().enumerate() {
            let centre =
                Centre { x: SIDE * (number as f64 + 0.5), y: HEAD + height * nth as f64 + SIDE / 2.0 };
            drawing = drawing.with(drawn(panel, centre));
        }
    }
    drawing
}

/// The centre of a platter in the drawing.
#[derive(Clone, Copy)]
struct Centre {
    x: f64,
    y: f64,
}

/// A position on the platter; the head is at the top, and larger angles pass later.
fn at(centre: Centre, radius: f64, turns: f64) -> (f64, f64) {
    let (sine, cosine) = (turns * TAU).sin_cos();
    (centre.x + radius * sine, centre.y - radius * cosine)
}

fn drawn(panel: &Panel, centre: Centre) -> Group {
    let mut group = Group::new();
    for radius in [EDGE, TRACK, 46.0, 12.0] {
        let circle = Circle::new().set("cx", centre.x).set("cy", centre.y).set("r", radius);
        group = group.add(circle.set("class", "rule"));
    }
    let turns = turns(&panel.service);
    let whole = turns.last().map_or(1.0, |last| last.1.max(0.25));
    // From the inside to the track, whatever the number of revolutions.
    let radius = |turn: f64| 52.0 + (TRACK - 18.0 - 52.0) * turn / whole;
    let mut since = 0.0;
    for &(_, turn) in &turns {
        let steps = ((turn - since) * 72.0).ceil().max(1.0) as u32;
        let points = (0..=steps).map(|step| since + (turn - since) * f64::from(step) / f64::from(steps));
        let mut line = String::new();
        for (nth, point) in points.enumerate() {
            let (x, y) = at(centre, radius(point), point);
            let _ = write!(line, "{}{},{} ", if nth == 0 { "M" } else { "L" }, rounded(x), rounded(y));
        }
        group = group
            .add(Line::new().set("d", line.trim_end()).set("class", "path").set("marker-end", "url(#arrow)"));
        since = turn;
    }
    for (number, place) in (1..).zip(&panel.service.places) {
        let (x, y) = at(centre, TRACK, *place as f64 / 100.0);
        let dot = Circle::new().set("cx", rounded(x)).set("cy", rounded(y)).set("r", 11);
        group = group.add(dot.set("class", "second")).add(text(number.to_string(), x, y + 4.5, "on"));
    }
    let head = text("head", centre.x, centre.y - EDGE - 6.0, "small").set("text-anchor", "middle");
    let bottom = centre.y + SIDE / 2.0;
    group
        .add(head)
        .add(text(&panel.title, centre.x, bottom + 12.0, "head").set("text-anchor", "middle"))
        .add(text(summary(panel), centre.x, bottom + 32.0, "").set("text-anchor", "middle"))
}

/// Columns of a turn in a terminal.
const COLUMNS: usize = 60;

fn printed(panel: &Panel) -> String {
    let mut out = format!("{}\n  {}\n", panel.title, summary(panel));
    let line = |label: &str, signs: &[(f64, u16)]| {
        let mut cells = [b'-'; COLUMNS];
        for (place, number) in signs {
            let digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            cells[((place * COLUMNS as f64) as usize).min(COLUMNS - 1)] = digit;
        }
        format!("  {label:<7} |{}|\n", String::from_utf8_lossy(&cells))
    };
    let places: Vec<_> =
        (1..).zip(&panel.service.places).map(|(number, place)| (*place as f64 / 100.0, number)).collect();
    out += &line("track", &places);
    let turns = turns(&panel.service);
    for turn in 0..=turns.last().map_or(0, |last| last.1 as u32) {
        let of_turn: Vec<_> = turns
            .iter()
            .filter(|(_, at)| *at as u32 == turn)
            .map(|(number, at)| (at.fract(), *number))
            .collect();
        out += &line(&format!("rev {}", turn + 1), &of_turn);
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Duration;

    fn panel(order: [(u16, u64); 5]) -> Panel {
        let served = order.map(|(number, us)| Served { number, at: Duration::from_us(us) });
        let service = Service {
            cylinder: 1000,
            places: vec![80, 30, 10, 50],
            rotation: Duration::from_ms(10),
            served: served.to_vec(),
        };
        Panel { title: "uasp".into(), service }
    }

    #[test]
    fn requests_of_one_revolution_are_one_line() {
        let panel = panel([(0, 20_000), (3, 21_100), (2, 23_100), (4, 25_200), (1, 28_100)]);
        assert_eq!(summary(&panel), "served 3-2-4-1 in 0.8 revolutions of 10.00 ms");
        let out = printed(&panel);
        assert_eq!(out.matches("rev 1").count() + out.matches("rev 2").count(), 1, "{out}");
        assert!(out.contains("|------3-----------2-----------4-----------------1-----------|"), "{out}");
    }

    #[test]
    fn any_number_of_platters_fits_a_page() {
        let of = |count: u64| {
            (0..count)
                .map(|_| panel([(0, 20_000), (3, 21_100), (2, 23_100), (4, 25_200), (1, 28_100)]))
                .collect::<Vec<_>>()
        };
        let size = |count| {
            let document = picture(&of(count)).document().to_string();
            let whole = document.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split('"').next());
            whole.expect("a size").to_owned()
        };
        assert_eq!([1, 3, 4, 6].map(size), ["460 456", "1080 456", "1080 872", "1080 872"]);
    }

    #[test]
    fn missed_requests_wait_for_the_next_revolution() {
        let panel = panel([(0, 20_000), (1, 28_300), (2, 33_200), (3, 41_300), (4, 45_200)]);
        assert_eq!(summary(&panel), "served 1-2-3-4 in 2.5 revolutions of 10.00 ms");
        let picture = picture(&[panel]).document().to_string();
        assert!(
            picture.contains("served 1-2-3-4") && picture.matches("url(#arrow)").count() == 4,
            "{picture}"
        );
    }
}
