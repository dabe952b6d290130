//! The table of published rows.
//!
//! CSV with a header; fields with commas are quoted (RFC 4180). Left out: fields over several
//! lines.

/// A published row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// `P001`.
    pub id: String,
    /// Article.
    pub source: String,
    /// Host controller, as named in the article; empty if not given, like all that follow.
    pub host_controller: String,
    /// Operating system.
    pub os: String,
    /// Driver.
    pub driver: String,
    /// Transport, or two that are compared.
    pub transport: String,
    /// Bridge.
    pub bridge: String,
    /// Drive.
    pub drive: String,
    /// Workload.
    pub workload: String,
    /// Read or write.
    pub way: String,
    /// Bytes of a block.
    pub block_bytes: String,
    /// Queue depth.
    pub depth: String,
    /// Value: a number, a range, or a claim in words.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// Remarks.
    pub note: String,
}

/// Fields of a row.
const FIELDS: usize = 15;

const TABLE: &str = include_str!("../../published/figures.csv");

/// Returns all rows, in the order of the table.
///
/// # Errors
///
/// The line, from 1, that is malformed, which a test excludes.
pub fn figures() -> Result<Vec<Figure>, usize> {
    read(TABLE)
}

fn read(table: &str) -> Result<Vec<Figure>, usize> {
    let rows = table.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    rows.map(|(index, line)| row(line).ok_or(index + 1)).collect()
}

fn row(line: &str) -> Option<Figure> {
    let fields: [String; FIELDS] = fields(line)?.try_into().ok()?;
    let [id, source, host_controller, os, driver, transport, bridge, drive, rest @ ..] = fields;
    let [workload, way, block_bytes, depth, value, unit, note] = rest;
    Some(Figure {
        id,
        source,
        host_controller,
        os,
        driver,
        transport,
        bridge,
        drive,
        workload,
        way,
        block_bytes,
        depth,
        value,
        unit,
        note,
    })
}

/// The fields of a line; none if a quotation does not end.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if is_quoted && signs.peek() == Some(&'"') => {
                fields.last_mut()?.push('"');
                signs.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut()?.push(sign),
        }
    }
    (!is_quoted).then_some(fields)
}

impl Figure {
    /// Returns a title from transport, workload, block size and depth.
    pub fn title(&self) -> String {
        let depth = if self.depth.is_empty() { String::new() } else { format!("depth {}", self.depth) };
        let words = [&self.transport, &self.drive, &self.workload, &self.way, &depth];
        words.into_iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_read() {
        let figures = figures().expect("a table without faults");
        assert_eq!(figures.len(), 107);
        assert!(figures.iter().enumerate().all(|(index, row)| row.id == format!("P{:03}", index + 1)));
        let row = &figures[20];
        assert_eq!((row.workload.as_str(), row.value.as_str()), ("512K sequential, dual threaded", "414.49"));
        assert_eq!(row.source, "Myce, Beyond USB3 with UASP (2013)");
    }

    #[test]
    fn quotation_marks_keep_commas_and_themselves() {
        let expected = ["a", "b, \"c\"", "", "d"].map(String::from).to_vec();
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d"), Some(expected));
        assert_eq!(fields("a,\"b"), None);
    }

    #[test]
    fn a_malformed_line_is_reported() {
        assert_eq!(read("id,source\n\nP001,here\n"), Err(3));
    }
}
