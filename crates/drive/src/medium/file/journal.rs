//! The journal of WRITE ATOMIC: `IMAGE.atomic`, beside the image (SBC-4 clause 4.29).
//!
//! A file promises nothing about a write that is cut off. So before the blocks of an atomic write change, a record of
//! what they hold and what they are to hold is made durable. When the new blocks are durable the record is cleared,
//! durably too: otherwise a later opening would undo writes that came after it. A record found at opening means that
//! the write was cut off; the old bytes are put back, and the image is as if the write had never begun.
//!
//! ```text
//!  0..8   "uaskAtom"; zeroes when there is no record
//!  8..16  checksum (FNV-1a, 64 bits) of all that follows
//! 16..20  version, 1
//! 20..24  L, bytes that the write replaces
//! 24..32  where in the image they start
//! 32..    L bytes as they were, then L bytes as they were to be
//! ```
//!
//! A record whose checksum is wrong was cut off itself, so the image had not been touched: it is dropped. Bytes in the
//! image that are neither the old nor the new ones are somebody else's: nothing is undone and the image is not opened.
//! A file of that name that we did not write is left alone, and the medium then has no atomic writes.
//!
//! Left out: block devices. Their nodes lie in a directory that does not survive what the journal is for.

use super::error::OpenReason;
use atomic_file::sync_directory_of;
use device::lun::limits::ATOMIC_BYTES_MAX;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{Reader, Writer};

/// Bytes of a record before the old bytes.
pub(super) const HEADER_BYTES: usize = 32;

/// Bytes of the longest record.
const RECORD_BYTES_MAX: usize = record_bytes(ATOMIC_BYTES_MAX as usize);

const MAGIC: [u8; 8] = *b"uaskAtom";
const VERSION: u32 = 1;

/// Where the part starts that the checksum covers.
const CHECKED: usize = 16;

/// Bytes of a record about `bytes` bytes of the image.
pub(super) const fn record_bytes(bytes: usize) -> usize {
    HEADER_BYTES + 2 * bytes
}

/// Makes a record of `memory`, which is [`record_bytes`] long and has the old bytes in their place.
pub(super) fn seal(memory: &mut [u8], at: u64, new: &[u8]) {
    let mut writer = Writer::new(memory);
    let bytes = new.len() as u32;
    let head = [&MAGIC[..], &[0; 8], &VERSION.to_be_bytes(), &bytes.to_be_bytes(), &at.to_be_bytes()];
    let written = head.into_iter().try_for_each(|field| writer.put(field));
    written.expect("the memory has room for the header");
    let (rest, place) = memory.split_at_mut(HEADER_BYTES + new.len());
    place.copy_from_slice(new);
    let sum = checksum([&rest[CHECKED..], place]);
    memory[8..CHECKED].copy_from_slice(&sum.to_be_bytes());
}

/// A record that was made whole.
#[derive(Debug, PartialEq, Eq)]
struct Record<'a> {
    at: u64,
    old: &'a [u8],
    new: &'a [u8],
}

impl<'a> Record<'a> {
    /// `None` if it was cleared, or cut off, or damaged.
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (magic, sum) = (reader.array().ok()?, reader.be64().ok()?);
        if magic != MAGIC || reader.be32().ok()? != VERSION {
            return None;
        }
        let len = reader.be32().ok().filter(|&len| len <= ATOMIC_BYTES_MAX)? as usize;
        let at = reader.be64().ok()?;
        let (old, new) = (reader.slice(len).ok()?, reader.slice(len).ok()?);
        let checked = bytes.get(CHECKED..record_bytes(len))?;
        (checksum([checked]) == sum).then_some(Self { at, old, new })
    }

    /// Puts back what the bytes were before, durably.
    fn undo(&self, image: &File) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut found = vec![0; self.old.len()];
        image.read_exact_at(&mut found, self.at).map_err(failed)?;
        let ours = |at: usize| found[at] == self.old[at] || found[at] == self.new[at];
        if !(0..found.len()).all(ours) {
            return Err("the image has been changed by another program since".into());
        }
        // Only what differs, because a full file system has no space for more.
        for (index, (old, found)) in self.old.chunks(GRAIN_BYTES).zip(found.chunks(GRAIN_BYTES)).enumerate() {
            if old != found {
                image.write_all_at(old, self.at + (index * GRAIN_BYTES) as u64).map_err(failed)?;
            }
        }
        image.sync_data().map_err(failed)
    }
}

/// Bytes that are put back together.
const GRAIN_BYTES: usize = 512;

/// FNV-1a with 64 bits: finds what was cut off or rotted, not what was forged.
fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Undoes an atomic write that was cut off in an earlier life of the image, if there is one.
pub(super) fn recover(path: &Path, image: &File, read_only: bool) -> Result<(), OpenReason> {
    let Some(bytes) = left_over(path).map_err(OpenReason::Io)? else { return Ok(()) };
    let record = Record::decode(&bytes);
    if read_only {
        return if record.is_some() { Err(OpenReason::Unfinished) } else { Ok(()) };
    }
    if let Some(record) = record {
        let journal = path.to_path_buf();
        record.undo(image).map_err(|why| OpenReason::NotUndone { journal, why })?;
    }
    fs::remove_file(path).and_then(|()| sync_directory_of(path)).map_err(OpenReason::Io)
}

/// Whether a journal can be made under this name. To be asked after [`recover`].
pub(super) fn is_free(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// The journal that an earlier process has left. A file that is not regular, or that we did not
/// write, is not one.
fn left_over(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match atomic_file::open_regular(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            return Ok(None);
        }
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(RECORD_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    let first = bytes.first_chunk().copied().unwrap_or_default();
    Ok((first == MAGIC || first == [0; 8]).then_some(bytes))
}

/// The journal of an image that may be changed.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    /// The journal does not exist: no atomic write has occurred yet.
    #[default]
    Absent,
    /// There is no record in the file.
    Clear(File),
    /// There is a record, and its write is not over or could not be undone.
    Recorded(File),
}

impl Journal {
    /// Makes no file yet. To be asked after [`recover`].
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// Keeps a record, durably.
    pub(super) fn keep(&self, record: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        let file = match std::mem::take(&mut *state) {
            State::Absent => self.create()?,
            State::Clear(file) => file,
            recorded @ State::Recorded(_) => {
                *state = recorded;
                return Err(io::ErrorKind::ResourceBusy.into());
            }
        };
        let written = file.write_all_at(record, 0).and_then(|()| file.sync_data());
        // A record whose fate is not known must not undo anything.
        let recorded = written.is_ok() || clear(&file).is_err();
        *state = if recorded { State::Recorded(file) } else { State::Clear(file) };
        written
    }

    /// Clears the record, durably.
    pub(super) fn clear(&self) -> io::Result<()> {
        let mut state = self.lock();
        if let State::Recorded(file) = &*state {
            clear(file)?;
        }
        *state = match std::mem::take(&mut *state) {
            State::Recorded(file) => State::Clear(file),
            other => other,
        };
        Ok(())
    }

    /// Leaves no file behind, unless there is a record in it. To be asked while the image is locked.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        if let State::Clear(_) = &*state {
            // If that fails, the next opening removes it.
            let _ = fs::remove_file(&self.path);
            *state = State::Absent;
        }
    }

    /// The file holds what the image holds, so no other user may read it.
    fn create(&self) -> io::Result<File> {
        let file = atomic_file::create_new(&self.path, 0o600)?;
        sync_directory_of(&self.path)?;
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is replaced as a whole, so a panic elsewhere does no harm here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn clear(file: &File) -> io::Result<()> {
    file.write_all_at(&[0; HEADER_BYTES], 0)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64, old: &[u8], new: &[u8]) -> Vec<u8> {
        let mut memory = vec![0xee; record_bytes(old.len())];
        memory[HEADER_BYTES..HEADER_BYTES + old.len()].copy_from_slice(old);
        seal(&mut memory, at, new);
        memory
    }

    #[test]
    fn a_record_has_its_layout() {
        let expected = [
            0x75, 0x61, 0x73, 0x6b, 0x41, 0x74, 0x6f, 0x6d, // "uaskAtom"
            0x8f, 0x42, 0xd5, 0x87, 0xe1, 0x72, 0x77, 0x75, // checksum
            0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, // version 1, 2 bytes
            0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, // at 1_0200h
            0x0a, 0x0b, 0x0c, 0x0d, // old, new
        ];
        assert_eq!(record(0x1_0200, &[0x0a, 0x0b], &[0x0c, 0x0d]), expected);
        let decoded = Record { at: 0x1_0200, old: &[0x0a, 0x0b], new: &[0x0c, 0x0d] };
        assert_eq!(Record::decode(&expected), Some(decoded));
    }

    #[test]
    fn the_checksum_is_fnv_1a() {
        // From the reference of its authors.
        assert_eq!(checksum([&b""[..]]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum([&b"foo"[..], b"bar"]), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn damage_of_any_byte_is_noticed() {
        let whole = record(512, &[1, 2, 3, 4], &[5, 6, 7, 8]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Record::decode(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn a_record_that_was_cut_off_is_noticed() {
        let whole = record(512, &[1, 2, 3, 4], &[5, 6, 7, 8]);
        for len in 0..whole.len() {
            assert_eq!(Record::decode(&whole[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_not_believed() {
        let mut bytes = record(0, &[], &[]);
        bytes[20..24].copy_from_slice(&(ATOMIC_BYTES_MAX + 1).to_be_bytes());
        bytes.resize(record_bytes(ATOMIC_BYTES_MAX as usize + 1), 0);
        let sum = checksum([&bytes[CHECKED..]]);
        bytes[8..16].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(Record::decode(&bytes), None);
    }
}
