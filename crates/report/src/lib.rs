//! Reports: one HTML file with charts, tables and a timeline that needs nothing but a browser.
//!
//! A [`Page`] has findings, sections of [`Figure`]s, and facts at the bottom. Every figure has a
//! picture, a text that summarises it, and a table, for printing, for screen readers, and for
//! further processing. Charts become SVG (scales and series by plotters); colours are classes, so
//! that a page is readable in light and dark mode. A script adds interaction: values under the
//! pointer, hiding series, another scale, copying, a zoomable timeline.
//!
//! Beside pages, a [`TextTable`] prints rows on a terminal, fitted to its width.
//!
//! Left out: sources of numbers, files, clocks. Always true: text is escaped; a page refers to
//! nothing outside itself; a page that would be too large is an error ([`PAGE_BYTES_MAX`]).
//!
//! ```
//! use uaskit_report::{Axis, Figure, Lines, Page, Picture, Point, Section, Series};
//!
//! let points = vec![Point::new(1.0, 35.1), Point::new(2.0, 36.0).within([35.5, 36.5])];
//! let lines = Lines::new(Axis::log("commands in flight"), Axis::linear("MB/s"), vec![Series::new("bot", 0, points)]);
//! let figure = Figure::new("4K random read", "BOT gains nothing from depth.", Picture::Lines(lines));
//! let page = Page::new("Transports").section(Section::new("Throughput").figure(figure));
//! assert!(page.html()?.starts_with("<!doctype html>"));
//! # Ok::<(), uaskit_report::PageLimitError>(())
//! ```

mod chart;
pub mod drawing;
mod escape;
mod number;
mod page;
mod table;
mod text_table;
mod timeline;

pub use chart::{
    Axis, Bars, Dot, DotSeries, Group, Level, Lines, Look, Point, Scale, Scatter, Series, Shape,
};
pub use number::{mean, number, short};
pub use page::{
    FIGURES_MAX, FINDINGS_SHOWN, Fact, Figure, Page, PageLimitError, Picture, Section, VALUES_MAX,
};
pub use table::{Cell, Table};
pub use text_table::{Fitted, TextTable};
pub use timeline::{Bar, Command, Panel, Timeline};

/// Maximum bytes of a page.
pub const PAGE_BYTES_MAX: usize = 1_500_000;

/// Colours of named series, such as transports, selected by [`Look::hue`]. Further series reuse
/// them in another round.
pub const HUES: u8 = 8;

/// The first colour for parts of a whole, such as stages: a separate set, so that a part is not
/// mistaken for a transport.
pub const PARTS_HUE: u8 = 8;

/// Colours in that set.
pub const PARTS_HUES: u8 = 7;
