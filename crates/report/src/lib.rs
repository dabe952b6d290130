//! Reports: one HTML file with charts, tables, and a timeline, that needs nothing but a browser.
//!
//! A [`Page`] has findings, sections of [`Figure`]s, and facts at the bottom. A figure has a picture, a text that says what is in it, and a
//! table, always: for who prints, who cannot see, and who goes on with the numbers. Charts become SVG here (scales and series by
//! plotters); colours are classes, so that a page is readable on light and on dark ground. A script of our own adds what a
//! file that is looked at can do more: values under the pointer, series left out, another scale, copies, a timeline that zooms.
//!
//! Beside pages, a [`TextTable`] prints rows on a terminal, fitted to its width.
//!
//! Left out: where numbers come from, files, clocks. Always true: what is given as text is escaped; a page names nothing outside of itself;
//! what is too much for a page is an error and never a file that grows ([`PAGE_BYTES_MAX`]).
//!
//! ```
//! use uaskit_report::{Axis, Figure, Lines, Page, Picture, Point, Section, Series};
//!
//! let points = vec![Point::new(1.0, 35.1), Point::new(2.0, 36.0).within([35.5, 36.5])];
//! let lines = Lines::new(Axis::log("commands under way"), Axis::linear("MB/s"), vec![Series::new("bot", 0, points)]);
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

/// Bytes of a page, at most.
pub const PAGE_BYTES_MAX: usize = 1_500_000;

/// Colours for things that are told apart by name, such as transports: [`Look::hue`] counts them. What comes after begins again, in another round.
pub const HUES: u8 = 8;

/// The first colour for parts of a whole, such as stages: another set, so that nobody takes a part for a transport.
pub const PARTS_HUE: u8 = 8;

/// Colours of that set.
pub const PARTS_HUES: u8 = 7;
