//! A page: what came out on top, sections of figures, and at the bottom what one must know to believe it.
//!
//! Everything is in the file, style and script as well, and a policy keeps the browser from loading anything else. Always true: a figure has
//! a heading, a text, a picture that refers to both, and a table; one page makes one file, byte for byte.

use crate::chart::{Bars, Drawn, Entry, Lines, Scatter};
use crate::drawing::Drawing;
use crate::escape::{clean, escape};
use crate::table::{Cell, Table};
use crate::timeline::Timeline;
use crate::{PAGE_BYTES_MAX, number};
use std::fmt;
use std::fmt::Write;
use svg::Document;
use svg::node::element::{Description, Title};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    lead: String,
    findings: Vec<String>,
    sections: Vec<Section>,
    facts: Vec<Fact>,
}

/// A group of figures.
#[derive(Clone, Debug, Default)]
pub struct Section {
    title: String,
    lead: String,
    figures: Vec<Figure>,
}

/// A picture with its text and table.
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    text: String,
    picture: Picture,
    table: Option<Table>,
}

/// The content of a figure.
#[derive(Clone, Debug)]
pub enum Picture {
    /// Series over an axis.
    Lines(Lines),
    /// Bars.
    Bars(Bars),
    /// Dots against a line.
    Scatter(Scatter),
    /// Commands over time.
    Timeline(Timeline),
    /// A diagram; its table must be given.
    Drawing(Box<Drawing>),
    /// Only the table.
    None,
}

/// A fact about setup or method.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A name and its value: `seed`, `1`.
    Pair(String, String),
    /// A collapsed table with its caption.
    Table(String, Table),
    /// Preformatted lines to type or to parse.
    Lines(String, String),
}

/// A limit that a page exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageLimitError {
    /// The page is longer than [`PAGE_BYTES_MAX`].
    Bytes(usize),
    /// More figures than [`FIGURES_MAX`].
    Figures(usize),
    /// More values in a chart than [`VALUES_MAX`].
    Values {
        /// The figure.
        figure: String,
        /// Number of values.
        values: usize,
    },
    /// The drawing library failed.
    Drawing {
        /// The figure.
        figure: String,
        /// Its message.
        why: String,
    },
}

/// Maximum figures of a page.
pub const FIGURES_MAX: usize = 64;

/// Findings that a reader sees first; a page folds the others away.
pub const FINDINGS_SHOWN: usize = 5;

/// Maximum values of a chart.
pub const VALUES_MAX: usize = 2000;

const STYLE: &str = include_str!("style.css");
/// Style of pictures; included when one is saved.
const INK: &str = include_str!("chart.css");
/// Style of drawings.
const DRAWING: &str = include_str!("drawing.css");
const SCRIPT: &str = include_str!("script.js");

/// The level of detail, reduced until the page is small enough.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Draw charts on a linear and a logarithmic scale where possible.
    has_both_scales: bool,
    /// Maximum characters per timeline.
    timeline: usize,
}

/// Maximum characters of a timeline without commands.
const LEFT_OUT_BYTES: usize = 1000;

impl Page {
    /// Creates an empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the text below the title.
    #[must_use]
    pub fn lead(self, lead: impl Into<String>) -> Self {
        Self { lead: lead.into(), ..self }
    }

    /// Adds findings, the most important first; after [`FINDINGS_SHOWN`] of them the others are folded away.
    #[must_use]
    pub fn findings(self, findings: Vec<String>) -> Self {
        Self { findings, ..self }
    }

    /// Adds a section, unless it has no figures.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        if !section.figures.is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Renders the page.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded.
    pub fn html(&self) -> Result<String, PageLimitError> {
        let figures = self.sections.iter().map(|section| section.figures.len()).sum();
        if figures > FIGURES_MAX {
            return Err(PageLimitError::Figures(figures));
        }
        let pictures =
            || self.sections.iter().flat_map(|section| &section.figures).map(|figure| &figure.picture);
        let timelines = pictures().filter(|picture| matches!(picture, Picture::Timeline(_))).count();
        let mut least = 0;
        for has_both_scales in [true, false] {
            let html = self.within(Detail { has_both_scales, timeline: PAGE_BYTES_MAX })?;
            if html.len() <= PAGE_BYTES_MAX {
                return Ok(html);
            }
            // The timeline can be reduced, and reports it.
            let rest =
                self.within(Detail { has_both_scales, timeline: 0 })?.len() + LEFT_OUT_BYTES * timelines;
            match PAGE_BYTES_MAX.checked_sub(rest) {
                Some(room) if timelines > 0 => {
                    return self.within(Detail { has_both_scales, timeline: room / timelines });
                }
                _ => least = rest,
            }
        }
        Err(PageLimitError::Bytes(least))
    }

    /// Renders the page with this level of detail.
    fn within(&self, detail: Detail) -> Result<String, PageLimitError> {
        let mut body = String::new();
        if !self.findings.is_empty() {
            let list = |findings: &[String]| {
                let items = findings.iter().map(|finding| format!("<li>{}</li>", escape(finding)));
                format!("<ul>{}</ul>", items.collect::<String>())
            };
            let (first, others) = self.findings.split_at(FINDINGS_SHOWN.min(self.findings.len()));
            body += &format!("<section class=\"findings\"><h2>Findings</h2>{}", list(first));
            if !others.is_empty() {
                let plural = if others.len() == 1 { "" } else { "s" };
                let summary = format!("{} more finding{plural}", others.len());
                body += &format!("<details><summary>{summary}</summary>{}</details>", list(others));
            }
            body += "</section>";
        }
        let mut number = 0;
        for section in &self.sections {
            body += &format!("<section><h2>{}</h2>", escape(&section.title));
            if !section.lead.is_empty() {
                body += &format!("<p>{}</p>", escape(&section.lead));
            }
            body += "<div class=\"figures\">";
            for figure in &section.figures {
                number += 1;
                body += &figure.html(number, detail)?;
            }
            body += "</div></section>";
        }
        body += &self.bottom(detail);
        Ok(self.around(&body))
    }

    fn around(&self, body: &str) -> String {
        let (title, lead) = (escape(&self.title), escape(&self.lead));
        let lead = if lead.is_empty() { lead } else { format!("<p class=\"lead\">{lead}</p>") };
        // The policy makes the browser block any fetch, whatever a text contains.
        let policy =
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n\
             <style>\n{STYLE}</style><style class=\"ink\">\n{INK}.drawing {{\n{DRAWING}}}\n</style></head>\n<body><header><h1>{title}</h1>{lead}</header>\n<main>{body}</main>\n\
             <div id=\"tip\" hidden></div><p id=\"said\" role=\"status\"></p>\n<script>\n{SCRIPT}</script></body></html>\n"
        )
    }

    /// Renders facts: pairs first, then collapsed tables.
    fn bottom(&self, detail: Detail) -> String {
        if self.facts.is_empty() && detail.has_both_scales {
            return String::new();
        }
        let (mut pairs, mut more) = (String::new(), String::new());
        if !detail.has_both_scales {
            let most = number(PAGE_BYTES_MAX as f64);
            let _ = write!(
                pairs,
                "<div><dt>scales</dt><dd>one per chart: with both scales the page would exceed {most} bytes</dd></div>"
            );
        }
        for fact in &self.facts {
            match fact {
                Fact::Pair(name, value) => {
                    let _ = write!(pairs, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
                }
                Fact::Table(caption, table) => {
                    more += &folded(&escape(caption), &table.html(caption));
                }
                Fact::Lines(name, lines) => {
                    let _ =
                        write!(more, "<h3>{}</h3><pre tabindex=\"0\">{}</pre>", escape(name), escape(lines));
                }
            }
        }
        format!("<section class=\"facts\"><h2>Setup and method</h2><dl>{pairs}</dl>{more}</section>")
    }
}

/// A collapsed table in a scrollable box.
fn folded(summary: &str, table: &str) -> String {
    let open = "<div class=\"scroll\" role=\"region\" tabindex=\"0\"";
    format!("<details><summary>{summary}</summary>{open} aria-label=\"{summary}\">{table}</div></details>")
}

impl Section {
    /// Creates an empty section.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the text below the heading.
    #[must_use]
    pub fn lead(self, lead: impl Into<String>) -> Self {
        Self { lead: lead.into(), ..self }
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }
}

impl Figure {
    /// Creates a figure from a picture and a text that summarises it.
    pub fn new(title: impl Into<String>, text: impl Into<String>, picture: Picture) -> Self {
        Self { title: title.into(), text: text.into(), picture, table: None }
    }

    /// Replaces the table by a more detailed one.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        Self { table: Some(table), ..self }
    }

    fn html(&self, number: usize, detail: Detail) -> Result<String, PageLimitError> {
        let picture = self.picture(number, detail)?;
        let table = self.table.clone().unwrap_or_else(|| self.picture.table());
        let (title, text) = (escape(&self.title), escape(&self.text));
        let kind = self.picture.kind();
        let table = match &self.picture {
            Picture::None => format!(
                "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\">{}</div>",
                table.html(&self.title)
            ),
            _ => folded("Table", &table.html(&self.title)),
        };
        Ok(format!(
            "<figure class=\"{kind}\" id=\"f{number}\" aria-labelledby=\"f{number}t\"><figcaption>\
             <h3 id=\"f{number}t\">{title}</h3><p id=\"f{number}d\">{text}</p></figcaption>{}{picture}{table}</figure>\n",
            self.picture.legend(),
        ))
    }

    fn picture(&self, number: usize, detail: Detail) -> Result<String, PageLimitError> {
        let values = self.picture.values();
        if values > VALUES_MAX {
            return Err(PageLimitError::Values { figure: self.title.clone(), values });
        }
        let drawn = match &self.picture {
            Picture::Lines(lines) => lines.draw(),
            Picture::Bars(bars) => bars.draw(),
            Picture::Scatter(scatter) => scatter.draw(),
            Picture::Timeline(timeline) => return Ok(canvas(timeline, &self.title, detail.timeline)),
            Picture::Drawing(drawing) => {
                let svg = named(drawing.within(&format!("f{number}t")), &self.title, drawing.description());
                // A wide picture scrolls by itself, by keyboard as well.
                let open = "<div class=\"plot\" role=\"region\" tabindex=\"0\"";
                return Ok(format!("{open} aria-label=\"{}\">{svg}</div>", escape(&self.title)));
            }
            Picture::None => return Ok(String::new()),
        };
        let fault = |fault: crate::chart::Fault| PageLimitError::Drawing {
            figure: self.title.clone(),
            why: fault.to_string(),
        };
        let mut out = String::from(
            "<div class=\"plot\" role=\"group\" tabindex=\"0\" aria-label=\"Values, by arrow keys\">",
        );
        let scales = if detail.has_both_scales { 2 } else { 1 };
        for (nth, Drawn { scale, svg, places }) in drawn.map_err(fault)?.into_iter().take(scales).enumerate()
        {
            let svg = svg.set("role", "img").set("aria-labelledby", format!("f{number}t f{number}d"));
            let hidden = if nth > 0 { " hidden" } else { "" };
            let svg = named(svg, &self.title, &self.text);
            let places =
                places.map_or_else(String::new, |places| format!(" data-places=\"{}\"", places.trim_end()));
            let _ = write!(out, "<div data-scale=\"{scale}\"{hidden}{places}>{svg}</div>");
        }
        Ok(out + "</div>")
    }
}

/// Adds title and description that stay with a saved picture.
fn named(svg: Document, title: &str, description: &str) -> Document {
    let description = Description::new().add(svg::node::Text::new(clean(description)));
    svg.add(Title::new(clean(title))).add(description)
}

/// The canvas that the script draws on, and the static picture without it.
fn canvas(timeline: &Timeline, title: &str, room: usize) -> String {
    let embedded = timeline.embedded(room);
    let names = |names: Vec<&str>| names.iter().map(|name| escape(name)).collect::<Vec<_>>().join("\n");
    let lanes = names(timeline.lanes.iter().map(String::as_str).collect());
    let panels = names(timeline.panels.iter().map(|panel| panel.name.as_str()).collect());
    let note = escape(&embedded.note(timeline));
    format!(
        "<p>{note}</p><div class=\"plot\"><canvas role=\"img\" tabindex=\"0\" data-lanes=\"{lanes}\" data-panels=\"{panels}\" \
         aria-label=\"{}. Arrow keys move, plus and minus zoom, Home shows all.\">The table below has the first commands.</canvas>\
         <script type=\"application/json\">{}</script><noscript><style>canvas{{display:none}}</style>{}</noscript></div>",
        escape(title),
        embedded.json,
        timeline.still()
    )
}

impl Picture {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Lines(_) => "lines",
            Self::Bars(_) => "bars",
            Self::Scatter(_) => "scatter",
            Self::Timeline(_) => "timeline wide",
            Self::Drawing(_) => "diagram wide",
            Self::None => "words wide",
        }
    }

    fn values(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.series.iter().map(|series| series.points.len()).sum(),
            Self::Bars(bars) => bars.groups.iter().map(|group| group.values.len()).sum(),
            Self::Scatter(scatter) => scatter.swarms.iter().map(|swarm| swarm.dots.len()).sum(),
            Self::Timeline(_) | Self::Drawing(_) | Self::None => 0,
        }
    }

    fn table(&self) -> Table {
        match self {
            Self::Lines(lines) => lines.table(),
            Self::Bars(bars) => bars.table(),
            Self::Scatter(scatter) => scatter.table(),
            Self::Timeline(timeline) => timeline.table(),
            Self::Drawing(drawing) => Table::new(["what is shown"]).row([Cell::text(drawing.description())]),
            Self::None => Table::default(),
        }
    }

    /// The legend, whose entries toggle series.
    fn legend(&self) -> String {
        let entries: Vec<Entry<'_>> = match self {
            Self::Lines(lines) => lines.entries().collect(),
            Self::Bars(bars) => bars.entries().collect(),
            Self::Scatter(scatter) => scatter.entries().collect(),
            Self::Timeline(_) | Self::Drawing(_) | Self::None => return String::new(),
        };
        let mut out = String::from("<ul class=\"legend\">");
        for (nth, entry) in entries.iter().enumerate() {
            let (sample, name) = (entry.sample(), escape(entry.name));
            let _ = write!(
                out,
                "<li><button type=\"button\" aria-pressed=\"true\" data-k=\"{nth}\">{sample}{name}</button></li>"
            );
        }
        out + "</ul>"
    }
}

impl Fact {
    /// Creates a name-value fact.
    pub fn pair(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Pair(name.into(), value.into())
    }
}

impl fmt::Display for PageLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: usize| number(count as f64);
        match self {
            Self::Bytes(bytes) => {
                write!(f, "the page would have {} bytes (maximum {})", of(*bytes), of(PAGE_BYTES_MAX))
            }
            Self::Figures(figures) => write!(f, "{figures} figures (maximum {FIGURES_MAX} per page)"),
            Self::Values { figure, values } => {
                write!(f, "{figure}: {} values (maximum {} per chart)", of(*values), of(VALUES_MAX))
            }
            Self::Drawing { figure, why } => write!(f, "{figure}: {why}"),
        }
    }
}

impl std::error::Error for PageLimitError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Bar, Command, Dot, DotSeries, Group, Panel, Point, Series};

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&";

    fn every_kind(name: &str) -> Vec<Figure> {
        let axis = || Axis::linear(name);
        let points =
            (1..=5).map(|x| Point::new(f64::from(x), f64::from(x * x)).within([1.0, 30.0])).collect();
        let group = Group { label: name.into(), values: vec![Some(1.0)] };
        let bars = Bars {
            across: name.into(),
            value: axis(),
            series: vec![(name.into(), 0.into())],
            groups: vec![group],
            is_stacked: false,
        };
        let dot = Dot { name: name.into(), source: name.into(), x: 1.0, y: 2.0 };
        let scatter = Scatter {
            x: axis(),
            y: axis(),
            swarms: vec![DotSeries { name: name.into(), look: 0.into(), dots: vec![dot] }],
            zones: vec![0.1],
        };
        let command = Command { began_ns: 0, ended_ns: 90_000, bars: Vec::new() };
        let panel = Panel { name: name.into(), hue: 0, commands: vec![command] };
        let timeline = Timeline { lanes: vec![name.into()], panels: vec![panel] };
        let drawing =
            Drawing::new(100.0, 100.0, name, name).with(crate::drawing::text(name, 0.0, 0.0, "small"));
        [
            Picture::Lines(Lines::new(axis(), axis(), vec![Series::new(name, 0, points)])),
            Picture::Bars(bars),
            Picture::Scatter(scatter),
            Picture::Timeline(timeline),
            Picture::Drawing(Box::new(drawing)),
            Picture::None,
        ]
        .map(|picture| Figure::new(name, name, picture))
        .to_vec()
    }

    fn page(name: &str) -> Page {
        let section = every_kind(name).into_iter().fold(Section::new(name).lead(name), Section::figure);
        let table = || Table::new([name]).row([Cell::text(name)]);
        Page::new(name)
            .lead(name)
            .findings(vec![name.into()])
            .section(section)
            .fact(Fact::pair(name, name))
            .fact(Fact::Table(name.into(), table()))
            .fact(Fact::Lines(name.into(), name.into()))
    }

    #[test]
    fn five_findings_stand_on_top_and_the_others_are_folded() {
        let findings = |count: usize| (0..count).map(|nth| format!("finding {nth}")).collect::<Vec<_>>();
        let html = |count| Page::new("page").findings(findings(count)).html().expect("it is small");
        assert!(html(5).contains("finding 4") && !html(5).contains("more finding"));
        let six = html(6);
        assert!(six.contains("<li>finding 4</li></ul><details><summary>1 more finding</summary>"), "{six}");
        assert!(html(17).contains("<summary>12 more findings</summary><ul><li>finding 5</li>"));
    }

    #[test]
    fn hostile_text_is_escaped() {
        let html = page(HOSTILE).html().expect("fits");
        assert!(!html.contains("<img") && !html.contains("onerror=alert(1)>\""), "{html}");
        // Those that end the script of the page and the numbers of the timeline.
        assert_eq!(html.matches("</script>").count(), 2);
        assert!(html.contains("&lt;/script&gt;&lt;img src=x"), "{html}");
    }

    #[test]
    fn each_figure_has_a_text_and_a_table() {
        let html = page("a name").html().expect("fits");
        let figures: Vec<&str> = html.split("<figure ").skip(1).collect();
        assert_eq!(figures.len(), 6);
        for figure in figures {
            let (figure, _) = figure.split_once("</figure>").expect("it ends");
            for part in ["<h3 id=", "<p id=\"f", "<table><caption>a name</caption>"] {
                assert!(figure.contains(part), "{part}: {figure}");
            }
        }
    }

    #[test]
    fn the_page_is_self_contained() {
        let html = page("a name").html().expect("fits");
        let namespace = "http://www.w3.org/2000/svg";
        let others = html.replace(namespace, "");
        for word in [
            "http:",
            "https:",
            "//cdn",
            "src=",
            "href=",
            "url(",
            "@import",
            "import(",
            "fetch(",
            "XMLHttpRequest",
        ] {
            assert!(!others.contains(word), "{word}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn exceeded_limits_are_errors() {
        let long = "x".repeat(PAGE_BYTES_MAX);
        assert!(
            matches!(Page::new(long).html(), Err(PageLimitError::Bytes(bytes)) if bytes > PAGE_BYTES_MAX)
        );
        let points = (0..=VALUES_MAX).map(|x| Point::new(x as f64, 1.0)).collect();
        let lines = Lines::new(Axis::linear("x"), Axis::linear("y"), vec![Series::new("s", 0, points)]);
        let figure = Figure::new("much", "", Picture::Lines(lines));
        let page = |figures| {
            (0..figures)
                .fold(Page::new("p"), |page, _| page.section(Section::new("s").figure(figure.clone())))
        };
        assert_eq!(
            page(1).html(),
            Err(PageLimitError::Values { figure: "much".into(), values: VALUES_MAX + 1 })
        );
        assert_eq!(page(FIGURES_MAX + 1).html(), Err(PageLimitError::Figures(FIGURES_MAX + 1)));
    }

    #[test]
    fn colours_are_distinct() {
        for hue in 0..crate::HUES + crate::PARTS_HUES {
            let class = format!(".s{hue} {{ --c: var(");
            let variable = INK.split(&class).nth(1).and_then(|rest| rest.split(')').next());
            let variable = variable.unwrap_or_else(|| panic!("{hue} has no colour"));
            assert_eq!(
                STYLE.matches(&format!("{variable}: #")).count(),
                2,
                "{variable} on light and on dark ground"
            );
        }
    }

    #[test]
    fn a_page_of_many_values_has_one_scale() {
        let points = |series: u32| (1..=120).map(move |x| Point::new(f64::from(x), f64::from(x + series)));
        let series = |nth: u32| Series::new(format!("way {nth}"), 0, points(nth).collect());
        let lines = Lines::new(Axis::linear("x"), Axis::linear("MB/s"), (0..15).map(series).collect());
        let page = |figures| {
            let figure = Figure::new("much", "", Picture::Lines(lines.clone()));
            (0..figures)
                .fold(Page::new("p"), |page, _| page.section(Section::new("s").figure(figure.clone())))
        };
        let scales =
            |html: &str| ["linear", "log"].map(|of| html.matches(&format!("data-scale=\"{of}\"")).count());
        let few = page(1).html().expect("fits");
        assert!(scales(&few) == [1, 1] && !few.contains("<dt>scales</dt>"));
        let many = page(5).html().expect("fits with one scale");
        assert!(scales(&many) == [5, 0] && many.contains("<dt>scales</dt>"), "{:?}", scales(&many));
        assert!(many.len() <= PAGE_BYTES_MAX && matches!(page(12).html(), Err(PageLimitError::Bytes(_))));
    }

    #[test]
    fn a_timeline_uses_the_remaining_bytes() {
        let command = |nth: u64| Command {
            began_ns: nth * 1_237_911,
            ended_ns: nth * 1_237_911 + 7_919 * (nth % 97),
            bars: vec![Bar {
                lane: 0,
                from_ns: nth * 1_237_911 + 31 * (nth % 89),
                to_ns: nth * 1_237_911 + 7_919 * (nth % 97),
            }],
        };
        let panel = Panel { name: "uas".into(), hue: 0, commands: (0..100_000).map(command).collect() };
        let timeline = Timeline { lanes: vec!["command".into()], panels: vec![panel] };
        let figure = Figure::new("pipes", "", Picture::Timeline(timeline));
        let page =
            |words: usize| Page::new("x".repeat(words)).section(Section::new("s").figure(figure.clone()));
        let alone = page(1).html().expect("it has room");
        assert!(!alone.contains("commands are shown"), "all are drawn");
        // The title is in the page twice.
        let full = page((PAGE_BYTES_MAX - 200_000) / 2).html().expect("less of the timeline");
        assert!(full.len() <= PAGE_BYTES_MAX && full.contains("commands are shown"), "{} bytes", full.len());
        assert!(page(PAGE_BYTES_MAX / 2).html().is_err());
    }

    #[test]
    fn output_is_deterministic() {
        assert_eq!(page("a name").html(), page("a name").html());
    }

    #[test]
    fn the_script_is_short() {
        assert!(SCRIPT.lines().count() <= 300, "{}", SCRIPT.lines().count());
    }
}
