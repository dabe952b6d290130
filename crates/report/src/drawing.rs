//! Diagrams that are no charts, as SVG: what all of them share, in files of their own and in pages.
//!
//! They say what they show to who cannot see them (`title`, `desc`), and are readable on light and on dark ground. Text is escaped by
//! the library that makes the elements.

use crate::escape::clean;
use svg::node::element::{Description, Rectangle, Style, Text, Title};
use svg::{Document, Node};

const STYLE: &str = include_str!("drawing.css");

/// A drawing, and what is shown in it.
#[derive(Clone, Debug)]
pub struct Drawing {
    size: (f64, f64),
    title: String,
    description: String,
    body: svg::node::element::Group,
}

impl Drawing {
    /// An empty one of a size, that says what it shows.
    pub fn new(size: (f64, f64), title: impl Into<String>, description: impl Into<String>) -> Self {
        let body = svg::node::element::Group::new();
        Self { size, title: title.into(), description: description.into(), body }
    }

    /// With one more element.
    #[must_use]
    pub fn with(mut self, element: impl Into<Box<dyn Node>>) -> Self {
        self.body.append(element);
        self
    }

    /// What it shows, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// As a file of its own.
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

    /// As a part of a page, which has its title and its style. It says how wide it is, below which its words would be too small.
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

/// A line of text whose baseline begins at a place.
pub fn text(content: impl Into<String>, (x, y): (f64, f64), class: &str) -> Text {
    Text::new(clean(&content.into())).set("x", rounded(x)).set("y", rounded(y)).set("class", class)
}

/// To a hundredth, so that files are short and the same on every machine.
pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_says_what_it_shows_and_escapes_it() {
        let drawing = Drawing::new((100.0, 50.0), "1 < 2", "a & b").with(text("<x>", (1.0, 2.345), "small"));
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
