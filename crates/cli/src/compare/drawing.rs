//! Diagrams as SVG: what all of them share.
//!
//! They say what they show to who cannot see them (`title`, `desc`), and are readable on light and on dark ground. Text is escaped by
//! the library that makes the elements.

use crate::failure::Failure;
use std::path::Path;
use svg::Document;
use svg::node::element::{Description, Rectangle, Style, Text, Title};

const STYLE: &str = "
  :root { color-scheme: light dark }
  text { font: 13px system-ui, sans-serif; fill: #222 }
  .ground { fill: #fff }
  .head { font-weight: 600 }
  .small { font-size: 11px; fill: #555 }
  .rule { stroke: #ccc; stroke-width: 1; fill: none }
  .path { stroke: #2f6fb7; stroke-width: 2; fill: none }
  .first { fill: #2f6fb7 } .second { fill: #d9822b } .other { fill: #c4c4c4 }
  .on { fill: #fff; font-weight: 600; text-anchor: middle }
  .arrow { fill: #2f6fb7 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .ground { fill: #16181c }
    .small { fill: #aaa }
    .rule { stroke: #444 }
    .path { stroke: #6aa9e9 }
    .first { fill: #6aa9e9 } .second { fill: #f0a65a } .other { fill: #555 }
    .on { fill: #111 }
    .arrow { fill: #6aa9e9 }
  }
";

/// An empty one of a size, that says what it shows.
pub(super) fn document((width, height): (f64, f64), title: &str, description: &str) -> Document {
    Document::new()
        .set("viewBox", (0.0, 0.0, width, height))
        .set("width", width)
        .set("height", height)
        .set("role", "img")
        .set("aria-labelledby", "title desc")
        .add(Title::new(title).set("id", "title"))
        .add(Description::new().set("id", "desc").add(svg::node::Text::new(description)))
        .add(Style::new(STYLE))
        .add(Rectangle::new().set("class", "ground").set("width", width).set("height", height))
}

/// A line of text whose baseline begins at a place.
pub(super) fn text(content: impl Into<String>, (x, y): (f64, f64), class: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y)).set("class", class)
}

/// To a hundredth, so that files are short and the same on every machine.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Writes it into a file; an older one of that name is replaced.
pub(super) fn write(document: &Document, file: &Path) -> Result<(), Failure> {
    std::fs::write(file, format!("{document}\n"))
        .map_err(|error| Failure::new(format!("{} cannot be written", file.display())).because(error))
}
