//! Diagrams as SVG, in separate files and in pages.
//!
//! They carry `title` and `desc` for screen readers and are readable in light and dark mode. The
//! SVG library escapes text.

use crate::escape::clean;
use svg::node::element::{Description, Rectangle, Style, Text, Title};
use svg::{Document, Node};

const STYLE: &str = include_str!("drawing.css");

/// A drawing with a description.
#[derive(Clone, Debug)]
pub struct Drawing {
    size: (f64, f64),
    title: String,
    description: String,
    body: svg::node::element::Group,
}

impl Drawing {
    /// Creates an empty drawing of a size.
    pub fn new(width: f64, height: f64, title: impl Into<String>, description: impl Into<String>) -> Self {
        let body = svg::node::element::Group::new();
        let size = (width, height);
        Self { size, title: title.into(), description: description.into(), body }
    }

    /// Adds an element.
    #[must_use]
    pub fn with(mut self, element: impl Into<Box<dyn Node>>) -> Self {
        self.body.append(element);
        self
    }

    /// Returns the description.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Renders a separate file.
    pub fn document(&self) -> Document {
        let (width, height) = self.size;
        self.empty("title desc")
            .set("width", width)
            .set("height", height)
            .add(Title::new(clean(&self.title)).set("id", "title"))
            .add(Description::new().set("id", "desc").add(svg::node::Text::new(clean(&self.description))))
            .add(Style::new(STYLE))
            .add(Rectangle::new().set("class", "ground").set("width", width).set("height", height))
            .add(self.body.clone())
    }

    /// Renders a part of a page, which supplies title and style, with a minimum width for legible
    /// text.
    pub(crate) fn within(&self, labels: &str) -> Document {
        let wide = format!("--w:{}px", self.size.0);
        self.empty(labels).set("class", "drawing").set("style", wide).add(self.body.clone())
    }

    fn empty(&self, labels: &str) -> Document {
        let (width, height) = self.size;
        let document = Document::new().set("viewBox", (0.0, 0.0, width, height));
        document.set("role", "img").set("aria-labelledby", labels)
    }
}

/// A line of text whose baseline starts here.
pub fn text(content: impl Into<String>, x: f64, y: f64, class: &str) -> Text {
    Text::new(clean(&content.into())).set("x", rounded(x)).set("y", rounded(y)).set("class", class)
}

/// Rounds to a hundredth, so that files are short and identical on every machine.
pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separate_file_has_a_description_and_escapes_it() {
        let drawing = Drawing::new(100.0, 50.0, "1 < 2", "a & b").with(text("<x>", 1.0, 2.345, "small"));
        let file = drawing.document().to_string();
        for part in [
            "1 &lt; 2",
            "a &amp; b",
            "&lt;x&gt;",
            "y=\"2.35\"",
            "prefers-color-scheme: dark",
            "<title id=\"title\"",
        ] {
            assert!(file.contains(part), "{part}: {file}");
        }
        let within = drawing.within("one two").to_string();
        assert!(
            !within.contains("<style")
                && within.contains("style=\"--w:100px\"")
                && within.contains("aria-labelledby=\"one two\""),
            "{within}"
        );
    }
}
