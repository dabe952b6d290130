//! Text files that are read whole: parts, setups, records and runs that are continued.

use crate::failure::Failure;
use crate::sanitize::shown;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a text file of at most `bytes_max`, which is to be a `what`.
pub(crate) fn read(file: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    let unreadable = |error| Failure::unreadable(file, &error);
    let mut text = String::new();
    let reader = File::open(file).map_err(unreadable)?;
    reader.take(bytes_max + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > bytes_max {
        let limit = bytes_max / (1 << 20);
        return Err(Failure::new(format!("{} is not a {what}: it is longer than {limit} MiB", shown(file))));
    }
    Ok(text)
}
