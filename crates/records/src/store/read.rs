//! Queries runs: a list of summaries, or one run with all rows.
//!
//! A value of the wrong type is reported as damage. Always true: nothing is written; results are
//! within the limits of what can be saved.

use super::write::{RESULTS_MAX, ROUNDS_MAX};
use super::{Filter, RunId, Store};
use crate::error::StoreError;
use crate::run::{Figures, ResultRow, Run, RunKind, Setup};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A run in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Its number.
    pub run: RunId,
    /// Start in local time: `2026-01-31 09:05`.
    pub began: String,
    /// Start in seconds since 1970.
    pub began_unix_s: u64,
    /// The user's label.
    pub label: Option<String>,
    /// Measured or simulated.
    pub kind: RunKind,
    /// The setup's name.
    pub setup: String,
    /// The drive.
    pub drive: String,
    /// The transports of its rows, each once.
    pub transports: Vec<String>,
    /// Number of rows.
    pub rows: u64,
    /// Megabytes (10⁶ bytes) per second of the fastest row.
    pub mb_per_s_max: Option<f64>,
    /// Interrupted early.
    pub interrupted: bool,
}

/// A saved run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saved {
    /// Its number.
    pub id: RunId,
    /// Start in local time.
    pub began: String,
    /// The run.
    #[serde(flatten)]
    pub run: Run,
}

const BEGAN: &str = "strftime('%Y-%m-%d %H:%M', began_unix_s, 'unixepoch', 'localtime')";

impl Store {
    /// Lists runs, the newest first.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<Summary>, StoreError> {
        let Filter { setup, drive, label, limit } = filter;
        let limit = (*limit).min(Filter::LIMIT_MAX);
        let has = |column: &str, place: u8| {
            format!("(?{place} IS NULL OR instr(lower({column}), lower(?{place})) > 0)")
        };
        let sql = format!(
            "SELECT run.id, {BEGAN}, began_unix_s, label, kind, setup.name, drive, interrupted,
                    (SELECT json_group_array(DISTINCT transport) FROM result WHERE run = run.id) AS transports,
                    (SELECT count(*) FROM result WHERE run = run.id),
                    (SELECT max(mb_per_s) FROM result WHERE run = run.id)
             FROM run JOIN setup ON setup.id = run.setup
             WHERE {} AND {} AND {} ORDER BY run.id DESC LIMIT ?4",
            has("setup.name", 1),
            has("drive", 2),
            has("coalesce(label, '')", 3),
        );
        let list = || -> Result<Vec<Summary>> {
            let mut list = self.connection.prepare(&sql)?;
            list.query_map(params![setup, drive, label, limit], summary)?.collect()
        };
        list().map_err(StoreError::of(&self.path))
    }

    /// Returns a run; none if it does not exist.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn run(&self, id: RunId) -> Result<Option<Saved>, StoreError> {
        let run = || -> Result<Option<Saved>> {
            let found = self.connection.query_row(
                &format!(
                    "SELECT {BEGAN}, label, kind, began_unix_s, version, command_line, seed, interrupted, record,
                            setup.name, drive, facts, notes
                     FROM run JOIN setup ON setup.id = run.setup WHERE run.id = ?1"
                ),
                [id.0],
                |row| saved(id, row),
            );
            let Some(mut saved) = found.optional()? else { return Ok(None) };
            saved.run.results = results(&self.connection, id)?;
            Ok(Some(saved))
        };
        run().map_err(StoreError::of(&self.path))
    }
}

fn summary(row: &Row<'_>) -> Result<Summary> {
    Ok(Summary {
        run: RunId(row.get(0)?),
        began: row.get(1)?,
        began_unix_s: unsigned(row, 2)?,
        label: row.get(3)?,
        kind: kind(row, 4)?,
        setup: row.get(5)?,
        drive: row.get(6)?,
        interrupted: row.get(7)?,
        transports: json(row, 8)?,
        rows: unsigned(row, 9)?,
        mb_per_s_max: row.get(10)?,
    })
}

fn saved(id: RunId, row: &Row<'_>) -> Result<Saved> {
    let run = Run {
        label: row.get(1)?,
        kind: kind(row, 2)?,
        began_unix_s: unsigned(row, 3)?,
        version: row.get(4)?,
        command_line: json(row, 5)?,
        seed: unsigned(row, 6)?,
        interrupted: row.get(7)?,
        record: row.get(8)?,
        setup: Setup { name: row.get(9)?, drive: row.get(10)?, facts: json(row, 11)? },
        results: Vec::new(),
        notes: json(row, 12)?,
    };
    Ok(Saved { id, began: row.get(0)?, run })
}

fn results(connection: &Connection, id: RunId) -> Result<Vec<ResultRow>> {
    let mut results = connection.prepare(
        "SELECT id, transport, job, depth, error, iops, iops_low, iops_high, mb_per_s, mean_us, p50_us, p99_us, p999_us,
                max_us, ios, errors, digest, percentiles_us
         FROM result WHERE run = ?1 ORDER BY id LIMIT ?2",
    )?;
    let results = results.query_map(params![id.0, RESULTS_MAX as i64], |row| result(connection, row))?;
    results.collect()
}

fn result(connection: &Connection, row: &Row<'_>) -> Result<ResultRow> {
    let figures = match row.get::<_, Option<String>>(4)? {
        Some(error) => Err(error),
        None => Ok(figures(connection, row)?),
    };
    Ok(ResultRow { transport: row.get(1)?, job: row.get(2)?, depth: row.get(3)?, figures })
}

fn figures(connection: &Connection, row: &Row<'_>) -> Result<Figures> {
    let interval = row.get::<_, Option<f64>>(6)?.zip(row.get(7)?);
    let mut rounds =
        connection.prepare("SELECT iops FROM round WHERE result = ?1 ORDER BY number LIMIT ?2")?;
    let rounds = rounds.query_map(params![row.get::<_, i64>(0)?, ROUNDS_MAX as i64], |round| round.get(0))?;
    Ok(Figures {
        iops: row.get(5)?,
        iops_interval: interval.map(|(low, high)| [low, high]),
        iops_of_rounds: rounds.collect::<Result<_>>()?,
        mb_per_s: row.get(8)?,
        mean_us: row.get(9)?,
        p50_us: row.get(10)?,
        p99_us: row.get(11)?,
        p999_us: row.get(12)?,
        max_us: row.get(13)?,
        ios: unsigned(row, 14)?,
        errors: unsigned(row, 15)?,
        digest: row.get(16)?,
        percentiles_us: match row.get::<_, Option<String>>(17)? {
            Some(_) => json(row, 17)?,
            None => Vec::new(),
        },
    })
}

/// Reads an unsigned 64-bit value, which SQLite stores as signed.
fn unsigned(row: &Row<'_>, at: usize) -> Result<u64> {
    row.get(at).map(i64::cast_unsigned)
}

fn kind(row: &Row<'_>, at: usize) -> Result<RunKind> {
    let word: String = row.get(at)?;
    RunKind::of_word(&word).ok_or_else(|| wrong(at, format!("`{word}` is not a kind of run")))
}

fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|error| wrong(at, error.to_string()))
}

/// A value of the wrong type.
fn wrong(column: usize, why: String) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, why.into())
}
