//! Results of a fit, written into the files of parts: the value, and the rows that it was fitted on
//! in the place of a source.
//!
//! All else of a file stays as it is, comments and blanks as well. Always true: a file that holds what was found already is not
//! touched.

use super::PARTS;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use study::published::fit::Fitted;
use study::published::{ParameterPath, Plan};
use toml_edit::{Array, DocumentMut, InlineTable, Value};

/// Writes all numbers of the plan into the files.
pub(super) fn write(plan: &Plan, fitted: &Fitted) -> Result<()> {
    let mut values = fitted.values.iter();
    for stage in &plan.stages {
        for number in &stage.numbers {
            let Some(found) = values.next() else { continue };
            for place in &number.places {
                let name = format!("{PARTS}/{}/{}.toml", place.kind.folder(), place.part);
                let path = workspace::root().join(&name);
                let old = fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
                let new = with(&old, place, *found, &stage.rows).with_context(|| name.clone())?;
                if new != old {
                    fs::write(&path, new).with_context(|| format!("write {name}"))?;
                    println!("wrote {name}");
                }
            }
        }
    }
    Ok(())
}

/// The text of a file with this value, fitted on these rows.
fn with(text: &str, place: &ParameterPath, value: f64, rows: &[String]) -> Result<String> {
    let mut file: DocumentMut = text.parse()?;
    let mut item = file.as_item_mut();
    for key in place.number.split('.') {
        // Asking a table that can be changed for a key makes an empty one.
        let is_there = item.get(key).is_some_and(|item| !item.is_none());
        item = item
            .get_mut(key)
            .filter(|_| is_there)
            .with_context(|| format!("there is no `{}`", place.number))?;
    }
    let number = item.as_inline_table_mut().with_context(|| format!("`{}` is not a number", place.number))?;
    if number.get("value").and_then(plain) != Some(value) {
        put(
            number,
            "value",
            if value.fract() == 0.0 { Value::from(value as i64) } else { Value::from(value) },
        );
    }
    let held = number.get("fitted").and_then(Value::as_array);
    let is_held =
        held.is_some_and(|held| held.iter().map(Value::as_str).eq(rows.iter().map(|row| Some(&**row))));
    if !is_held {
        let rows: Array = rows.iter().map(String::as_str).collect();
        match number.get("fitted") {
            Some(_) => put(number, "fitted", Value::Array(rows)),
            None => {
                number.remove("source");
                number.insert("fitted", Value::Array(rows));
                number.fmt();
            }
        }
    }
    Ok(file.to_string())
}

/// Puts a value in the place of another, with the blanks around it.
fn put(number: &mut InlineTable, key: &str, value: Value) {
    if let Some(held) = number.get_mut(key) {
        let around = held.decor().clone();
        *held = value;
        *held.decor_mut() = around;
    }
}

fn plain(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|value| value as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# A disk.\ntitle = \"disk\"\n\n[platters]\n# Outside.\n\
        outer = { value = 2296, unit = \"sectors\", fitted = [\"P098\"] }   # edge\n\
        inner = { value = 1120, unit = \"sectors\", source = \"chosen\" }\n";

    fn written(number: &str, value: f64, rows: &[&str]) -> String {
        let place = format!("hdd/disk {number}").parse().unwrap();
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        with(FILE, &place, value, &rows).unwrap()
    }

    #[test]
    fn what_is_held_already_changes_nothing() {
        assert_eq!(written("platters.outer", 2296.0, &["P098"]), FILE);
    }

    #[test]
    fn a_value_changes_and_all_around_it_stays() {
        assert_eq!(written("platters.outer", 2304.0, &["P098"]), FILE.replace("2296", "2304"));
        assert_eq!(written("platters.outer", 12.5, &["P098"]), FILE.replace("2296", "12.5"));
    }

    #[test]
    fn rows_take_the_place_of_others_and_of_a_source() {
        let more = FILE.replace("[\"P098\"]", "[\"P098\", \"P099\"]");
        assert_eq!(written("platters.outer", 2296.0, &["P098", "P099"]), more);
        let fitted = FILE.replace("source = \"chosen\"", "fitted = [\"P098\"]").replace("1120", "1200");
        assert_eq!(written("platters.inner", 1200.0, &["P098"]), fitted);
    }

    #[test]
    fn a_missing_number_is_an_error() {
        let place = "hdd/disk platters.middle".parse().unwrap();
        let error = with(FILE, &place, 1.0, &[]).unwrap_err();
        assert_eq!(error.to_string(), "there is no `platters.middle`");
    }
}
