//! Saves and deletes runs, each in one transaction.
//!
//! A run that exceeds a limit or has a figure that is not a number is rejected before anything is
//! written. Left out: changing a saved run. Always true: what was written reads back unchanged.

use super::{RunId, Store};
use crate::error::StoreError;
use crate::run::{Figures, ResultRow, Run, Setup};
use crate::schema;
use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

/// Maximum rows of a run.
pub(super) const RESULTS_MAX: usize = 10_000;
/// Maximum rounds of a row.
pub(super) const ROUNDS_MAX: usize = 1_000;
/// Maximum percentiles of a row.
const PERCENTILES_MAX: usize = 1_000;
/// Maximum bytes of a text.
const TEXT_BYTES_MAX: usize = 1 << 16;
/// Maximum facts of a setup, words of a command line, and notes.
const WORDS_MAX: usize = 1_000;
/// Maximum bytes of the record.
const RECORD_BYTES_MAX: usize = 32 << 20;

impl Store {
    /// Saves a run durably.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded or the file cannot be written; then nothing of it is saved.
    pub fn save(&mut self, run: &Run) -> Result<RunId, StoreError> {
        fits(run).map_err(|why| StoreError::Unfit { why })?;
        self.change(|connection| insert(connection, run))
    }

    /// Deletes a run; returns whether it existed.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn delete(&mut self, id: RunId) -> Result<bool, StoreError> {
        self.change(|connection| {
            let deleted = connection.execute("DELETE FROM run WHERE id = ?1", [id.0])?;
            connection.execute("DELETE FROM setup WHERE id NOT IN (SELECT setup FROM run)", ())?;
            Ok(deleted > 0)
        })
    }

    /// Runs one transaction.
    fn change<T>(&mut self, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T, StoreError> {
        let of = StoreError::of(&self.path);
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate).map_err(&of)?;
        // A newer program may have migrated the file since it was opened.
        let schema = schema::of(&transaction).map_err(&of)?;
        if schema != schema::NEWEST {
            return Err(StoreError::Newer { path: self.path.clone(), schema });
        }
        let made = change(&transaction).map_err(&of)?;
        transaction.commit().map_err(&of)?;
        Ok(made)
    }
}

/// Checks limits, and that every figure is a number.
fn fits(run: &Run) -> Result<(), String> {
    let Run { label, version, command_line, setup, results, notes, record, .. } = run;
    let within = |what: &str, count: usize, most: usize| {
        if count <= most { Ok(()) } else { Err(format!("{count} {what} (maximum {most})")) }
    };
    within("results", results.len(), RESULTS_MAX)?;
    within("bytes of a record", record.len(), RECORD_BYTES_MAX)?;
    within("words of a command line", command_line.len(), WORDS_MAX)?;
    within("facts of a setup", setup.facts.len(), WORDS_MAX)?;
    within("notes", notes.len(), WORDS_MAX)?;
    let of_rows = results
        .iter()
        .flat_map(|row| [&row.transport, &row.job].into_iter().chain(row.figures.as_ref().err()));
    let of_facts = setup.facts.iter().flat_map(|(name, fact)| [name, fact]);
    let texts =
        [version, &setup.name, &setup.drive].into_iter().chain(label).chain(command_line).chain(notes);
    for text in texts.chain(of_rows).chain(of_facts) {
        within("bytes of a text", text.len(), TEXT_BYTES_MAX)?;
    }
    for figures in results.iter().filter_map(|row| row.figures.as_ref().ok()) {
        within("rounds", figures.iops_of_rounds.len(), ROUNDS_MAX)?;
        within("percentiles", figures.percentiles_us.len(), PERCENTILES_MAX)?;
        if !figures.all().all(f64::is_finite) {
            return Err("a figure is not a number".to_owned());
        }
    }
    Ok(())
}

impl Figures {
    fn all(&self) -> impl Iterator<Item = f64> {
        let single = [self.iops, self.mb_per_s, self.mean_us];
        let perhaps = [self.p50_us, self.p99_us, self.p999_us, self.max_us].into_iter().flatten();
        let interval = self.iops_interval.into_iter().flatten();
        let interval = interval.chain(self.percentiles_us.iter().flatten().copied());
        single.into_iter().chain(perhaps).chain(interval).chain(self.iops_of_rounds.iter().copied())
    }
}

fn insert(connection: &Connection, run: &Run) -> Result<RunId> {
    let setup = insert_setup(connection, &run.setup)?;
    // A list of strings always serialises.
    let [command_line, notes] =
        [&run.command_line, &run.notes].map(|list| serde_json::to_string(list).unwrap_or_default());
    connection.execute(
        "INSERT INTO run (setup, label, kind, began_unix_s, version, command_line, seed, interrupted, record, notes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            setup,
            run.label,
            run.kind.word(),
            run.began_unix_s.cast_signed(),
            run.version,
            command_line,
            run.seed.cast_signed(),
            run.interrupted,
            run.record,
            notes,
        ],
    )?;
    let id = connection.last_insert_rowid();
    run.results.iter().try_for_each(|row| insert_result(connection, id, row))?;
    Ok(RunId(id))
}

/// Finds or inserts the row of a setup.
fn insert_setup(connection: &Connection, setup: &Setup) -> Result<i64> {
    let Setup { name, drive, facts } = setup;
    let facts = serde_json::to_string(facts).unwrap_or_default();
    let known = connection.query_row(
        "SELECT id FROM setup WHERE name = ?1 AND drive = ?2 AND facts = ?3",
        params![name, drive, facts],
        |row| row.get(0),
    );
    if let Some(known) = known.optional()? {
        return Ok(known);
    }
    let new = "INSERT INTO setup (name, drive, facts) VALUES (?1, ?2, ?3)";
    connection.execute(new, params![name, drive, facts])?;
    Ok(connection.last_insert_rowid())
}

fn insert_result(connection: &Connection, run: i64, row: &ResultRow) -> Result<()> {
    let ResultRow { transport, job, depth, figures } = row;
    let (error, figures) = (figures.as_ref().err(), figures.as_ref().ok());
    let of = |take: fn(&Figures) -> f64| figures.map(take);
    let interval = figures.and_then(|figures| figures.iops_interval);
    connection.execute(
        "INSERT INTO result (run, transport, job, depth, error, iops, iops_low, iops_high, mb_per_s, mean_us,
                             p50_us, p99_us, p999_us, max_us, ios, errors, digest, percentiles_us)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            run,
            transport,
            job,
            depth,
            error,
            of(|figures| figures.iops),
            interval.map(|[low, _]| low),
            interval.map(|[_, high]| high),
            of(|figures| figures.mb_per_s),
            of(|figures| figures.mean_us),
            figures.and_then(|figures| figures.p50_us),
            figures.and_then(|figures| figures.p99_us),
            figures.and_then(|figures| figures.p999_us),
            figures.and_then(|figures| figures.max_us),
            figures.map(|figures| figures.ios.cast_signed()),
            figures.map(|figures| figures.errors.cast_signed()),
            figures.and_then(|figures| figures.digest.as_ref()),
            figures.and_then(percentiles),
        ],
    )?;
    let result = connection.last_insert_rowid();
    let mut round = connection.prepare("INSERT INTO round (result, number, iops) VALUES (?1, ?2, ?3)")?;
    for (iops, number) in figures.into_iter().flat_map(|figures| &figures.iops_of_rounds).zip(1_i64..) {
        round.execute(params![result, number, iops])?;
    }
    Ok(())
}

/// Encodes percentiles, if there are any.
fn percentiles(figures: &Figures) -> Option<String> {
    let percentiles = &figures.percentiles_us;
    (!percentiles.is_empty()).then(|| serde_json::to_string(percentiles).unwrap_or_default())
}
