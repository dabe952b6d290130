//! The schema of a file of runs, and its migrations.
//!
//! `user_version` counts the applied migrations; migration N is the script `N.sql` and never
//! changes once released. A new file runs all of them, so that there is one path to each schema and
//! a file can be verified word by word before its content is trusted. `application_id` marks our
//! files.
//!
//! Always true: a migration is one transaction, so a file has either schema.

use rusqlite::{Connection, Result};

/// The `application_id` of our files: `uask`.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"uask");

/// The schema that this program writes.
pub const NEWEST: u32 = STEPS.len() as u32;

const STEPS: [&str; 3] =
    [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// The header in the first hundred bytes of an SQLite file (SQLite's "Database File Format", 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) user_version: u32,
    pub(crate) application_id: u32,
}

impl Header {
    pub(crate) const LEN: usize = 100;

    /// Decodes the start of a file; none if it is not an SQLite file.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let is_sqlite = bytes.starts_with(b"SQLite format 3\0");
        is_sqlite.then(|| Self { user_version: word(60), application_id: word(68) })
    }
}

/// Returns the schema of a file; zero if it is empty.
pub(crate) fn of(connection: &Connection) -> Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates a file to another schema within the caller's transaction.
pub(crate) fn migrate(connection: &Connection, from: u32, to: u32) -> Result<()> {
    let steps = STEPS.get(from as usize..to as usize).unwrap_or_default();
    for step in steps {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", to)
}

/// Whether tables and indexes are exactly those of a schema.
pub(crate) fn is(connection: &Connection, schema: u32) -> Result<bool> {
    let model = Connection::open_in_memory()?;
    migrate(&model, 0, schema)?;
    Ok(shape(connection)? == shape(&model)?)
}

/// Lists the schema without the tables of ANALYZE.
fn shape(connection: &Connection) -> Result<Vec<[Option<String>; 4]>> {
    let all = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name";
    let mut all = connection.prepare(all)?;
    let shape = all.query_map((), |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    shape.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_that_of_the_format() {
        let mut bytes = [0; 100];
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        bytes[60..64].copy_from_slice(&[0, 0, 0, 7]);
        bytes[68..72].copy_from_slice(b"uask");
        let header = Header::decode(&bytes).expect("it is one");
        assert_eq!((header.user_version, header.application_id), (7, 0x7561_736b));
        assert_eq!(Header::decode(&bytes[..99]), None);
        bytes[0] = b's';
        assert_eq!(Header::decode(&bytes), None);
    }

    #[test]
    fn one_word_more_is_another_schema() {
        let file = Connection::open_in_memory().expect("memory");
        migrate(&file, 0, NEWEST).expect("it is empty");
        assert!(is(&file, NEWEST).expect("it can be read"));
        file.execute_batch("CREATE TRIGGER a AFTER INSERT ON run BEGIN DELETE FROM run; END").expect("SQL");
        assert!(!is(&file, NEWEST).expect("it can be read"));
    }
}
