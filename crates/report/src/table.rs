//! Tables: a caption for screen readers, a header, and rows whose first cell names them.

use crate::escape::escape;
use crate::number::{mean, number};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number; copying gives nine digits.
    Number(f64),
    /// A mean, shown with three digits; copying gives nine.
    Mean(f64),
    /// Unknown.
    Empty,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Column names with units.
    pub head: Vec<String>,
    /// As many cells per row as columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table with a header alone.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Renders HTML with a caption.
    pub(crate) fn html(&self, caption: &str) -> String {
        let mut out = format!("<table><caption>{}</caption><thead><tr>", escape(caption));
        for (nth, name) in self.head.iter().enumerate() {
            // A header cell without a name must not be a heading.
            let is_number =
                self.rows.iter().any(|row| matches!(row.get(nth), Some(Cell::Number(_) | Cell::Mean(_))));
            let class = if is_number { " class=\"n\"" } else { "" };
            match name.as_str() {
                "" => out += "<td></td>",
                name => out += &format!("<th scope=\"col\"{class}>{}</th>", escape(name)),
            }
        }
        out += "</tr></thead><tbody>";
        for row in &self.rows {
            out += "<tr>";
            for (nth, cell) in row.iter().enumerate() {
                out += &cell.html(nth == 0);
            }
            out += "</tr>";
        }
        out + "</tbody></table>"
    }
}

impl Cell {
    /// Creates a text cell.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    fn html(&self, names_row: bool) -> String {
        let (open, close) = if names_row { ("<th scope=\"row\"", "</th>") } else { ("<td", "</td>") };
        match self {
            Self::Text(text) => format!("{open}>{}{close}", escape(text)),
            Self::Number(value) if value.is_finite() => {
                format!("{open} class=\"n\" data-v=\"{}\">{}{close}", digits(*value), number(*value))
            }
            Self::Mean(value) if value.is_finite() => {
                format!("{open} class=\"n\" data-v=\"{}\">{}{close}", digits(*value), mean(*value))
            }
            Self::Number(_) | Self::Mean(_) | Self::Empty => format!("{open} class=\"n\">–{close}"),
        }
    }
}

/// At most nine digits, more than any measurement has.
fn digits(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Number)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_to_read_and_long_to_copy() {
        let table = Table::new(["", "MB/s"]).row(["a<b".into(), Cell::Number(144.512_341_28)]);
        let html = table.html("four & more");
        assert!(html.contains("<caption>four &amp; more</caption>"), "{html}");
        assert!(html.contains("<td></td><th scope=\"col\" class=\"n\">MB/s</th>"), "{html}");
        assert!(html.contains("<th scope=\"row\">a&lt;b</th>"), "{html}");
        assert!(html.contains("data-v=\"144.512341\">144.5</td>"), "{html}");
    }

    #[test]
    fn means_are_shorter() {
        let html = Table::new(["a", "MB/s"]).row(["x".into(), Cell::Mean(144.512)]).html("c");
        assert!(html.contains("data-v=\"144.512\">145</td>") && html.contains("class=\"n\">MB/s"), "{html}");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let html = Table::new(["a", "b"]).row(["x".into(), Cell::from(None::<f64>)]).html("c");
        assert!(html.contains("<td class=\"n\">–</td>"), "{html}");
    }
}
