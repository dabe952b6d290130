//! Reading part files and reporting errors.
//!
//! Each kind has a module with a struct per table of its files. Always true: an unknown key is
//! rejected, since it may be a typing error; an invalid number is reported with its line.

use super::bridge::BridgeFile;
use super::controller::ControllerFile;
use super::drive::{HddFile, SsdFile};
use super::driver::DriverFile;
use super::entry::{Entry, PartModel};
use super::fields::{FieldError, File};
use super::kind::PartKind;
use super::machine::{HostFile, PowerFile};
use super::quantity::{Constant, Written};
use super::wires::{HubFile, LinkFile, SataFile};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// An error in a text, with its line.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
}

/// The source that a part is read from.
enum Source<'a> {
    /// The text of a file.
    Text(&'a str),
    /// A modified table.
    Table(Table),
}

/// Reads the text of a part.
pub(super) fn read(kind: PartKind, name: &str, text: &str) -> Result<Entry, Fault> {
    let (title, make) = made(kind, Source::Text(text))?;
    let mut constants = Vec::new();
    collect("", &parse::<Table>(text)?, &mut constants);
    Ok(Entry { name: name.into(), title, make, constants, text: text.into() })
}

/// Returns a part with changed constants.
pub(super) fn with(entry: &Entry, values: &[(&str, f64)]) -> Result<Entry, Fault> {
    let mut constants = entry.constants.clone();
    for (place, value) in values {
        let known = constants.iter_mut().find(|constant| constant.place == *place);
        let unknown = || Fault { line: None, what: format!("no such number: `{place}`") };
        known.ok_or_else(unknown)?.value = *value;
    }
    let mut table: Table = parse(&entry.text)?;
    for constant in &constants {
        if let Some(written) = at(&mut table, &constant.place) {
            written.insert("value".into(), Value::Float(constant.value));
        }
    }
    let (_, make) = made(entry.kind(), Source::Table(table))?;
    Ok(Entry { make, constants, ..entry.clone() })
}

/// Finds the table of a number.
fn at<'a>(table: &'a mut Table, place: &str) -> Option<&'a mut Table> {
    let mut inner = table;
    for key in place.split('.') {
        inner = inner.get_mut(key)?.as_table_mut()?;
    }
    inner.contains_key("unit").then_some(inner)
}

fn made(kind: PartKind, source: Source<'_>) -> Result<(String, PartModel), Fault> {
    match kind {
        PartKind::Bridge => of::<BridgeFile>(source, PartModel::Bridge),
        PartKind::Controller => of::<ControllerFile>(source, PartModel::Controller),
        PartKind::Driver => of::<DriverFile>(source, PartModel::Driver),
        PartKind::Hdd => of::<HddFile>(source, PartModel::Hdd),
        PartKind::Host => of::<HostFile>(source, PartModel::Host),
        PartKind::Hub => of::<HubFile>(source, PartModel::Hub),
        PartKind::Link => of::<LinkFile>(source, PartModel::Link),
        PartKind::Power => of::<PowerFile>(source, PartModel::Power),
        PartKind::Sata => of::<SataFile>(source, PartModel::Sata),
        PartKind::Ssd => of::<SsdFile>(source, PartModel::Ssd),
    }
}

fn of<F: File>(source: Source<'_>, model: fn(F::Part) -> PartModel) -> Result<(String, PartModel), Fault> {
    let text = match source {
        Source::Text(text) => Some(text),
        Source::Table(_) => None,
    };
    let file: F = match source {
        Source::Text(text) => parse(text)?,
        Source::Table(table) => {
            table.try_into().map_err(|error| Fault { line: None, what: error.to_string() })?
        }
    };
    let make = file.make().map_err(|FieldError { place, what }| Fault {
        line: text.and_then(|text| line_of(text, &place)),
        what,
    })?;
    Ok((file.title().to_owned(), model(make)))
}

/// Parses TOML and reports the line of an error. Names and texts appear on terminals, so control
/// characters are rejected.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let fault = |error: toml::de::Error| {
        let line = error.span().map(|span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
        Fault { line, what: error.message().to_owned() }
    };
    // Only an escape sequence yields a control character that is not in the text itself.
    if text.contains('\\')
        && let Some(steering) = steering(&Value::Table(toml::from_str(text).map_err(fault)?))
    {
        return Err(Fault {
            line: None,
            what: format!("`{}` contains control characters", steering.escape_default()),
        });
    }
    toml::from_str(text).map_err(fault)
}

/// The first name or text with a control character.
fn steering(value: &Value) -> Option<String> {
    let has_any = |text: &str| text.chars().any(|sign| sign.is_control() && sign != '\n');
    match value {
        Value::String(text) => has_any(text).then(|| text.clone()),
        Value::Array(all) => all.iter().find_map(steering),
        Value::Table(table) => table
            .iter()
            .find_map(|(name, value)| has_any(name).then(|| name.clone()).or_else(|| steering(value))),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
    }
}

/// The line of `table.key`, from 1, by the conventions of these files: a header per table, a line
/// per key.
pub(crate) fn line_of(text: &str, place: &str) -> Option<usize> {
    let (table, key) = place.rsplit_once('.').unwrap_or(("", place));
    let mut current = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            current = header.trim();
        } else if current == table && line.split('=').next().is_some_and(|word| word.trim() == key) {
            return Some(index + 1);
        }
    }
    None
}

/// The line of a table's header, from 1.
pub(crate) fn line_of_table(text: &str, table: &str) -> Option<usize> {
    let is_header = |line: &str| {
        let name = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        name.is_some_and(|name| name.trim() == table)
    };
    text.lines().position(is_header).map(|index| index + 1)
}

/// Lists the numbers of a table and its subtables.
fn collect(place: &str, table: &Table, constants: &mut Vec<Constant>) {
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        match Value::Table(inner.clone()).try_into::<Written>() {
            Ok(written) => {
                let (value, unit) = (written.value, written.unit.clone());
                constants.extend(written.origin().ok().map(|origin| Constant { place, value, unit, origin }));
            }
            Err(_) => collect(&place, inner, constants),
        }
    }
}
