//! Compressed captures: gzip, zstd, xz and ZIP archives, known by how they begin and not by their names.
//!
//! [`Unpacked`] is a stream of what is inside, up to [`NESTING_MAX`] layers deep, and of other input the input itself. Nothing is
//! written anywhere and no member's name is used as a path. Memory is that of a decoder's window (128 MiB of zstd, 256 MiB of xz at
//! most), whatever the input's size. Left out: bzip2, LZ4, encrypted archives.
//!
//! Invariants: what comes out is bounded by [`UnpackLimits`]; damage in the compressed data ends the stream and is kept in
//! [`Unpacked::damage`], so that what was read until then can be used; an error of the input itself is an error.

mod frames;
mod zip;

use flate2::read::MultiGzDecoder;
use frames::Frames;
use lzma_rust2::XzReader;
use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read};
use std::rc::Rc;
use zip::Archive;

/// Layers of compression, such as a `.pcap.gz` in a ZIP archive.
pub const NESTING_MAX: u32 = 2;
/// Memory of an xz decoder, in KiB: the largest dictionary that `xz -9` has takes 65 MiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;
/// Bytes by which formats are known.
const MAGIC_BYTES: usize = 6;

/// How much may come out of compressed input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes in all.
    pub bytes_max: u64,
    /// Bytes for each byte of the input, once there are more than [`Self::ratio_from`].
    pub ratio_max: u64,
    /// Bytes up to which any ratio is accepted.
    pub ratio_from: u64,
}

impl Default for UnpackLimits {
    /// 1 TiB, and 1000 for each byte of the input after the first 256 MiB.
    fn default() -> Self {
        Self { bytes_max: 1 << 40, ratio_max: 1_000, ratio_from: 256 << 20 }
    }
}

/// Input, unpacked if it is compressed.
pub struct Unpacked<'a> {
    inner: Box<dyn Read + 'a>,
    damage: Rc<RefCell<Option<String>>>,
}

/// A format of compressed input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Gzip,
    Zstd,
    Xz,
    Zip,
}

/// The compressed input, whose bytes and errors count.
struct Source<R> {
    input: R,
    bytes: Rc<Cell<u64>>,
    has_failed: Rc<Cell<bool>>,
}

/// A decoder, with limits.
struct Layer<'a> {
    decoder: Box<dyn Read + 'a>,
    bytes: u64,
    source_bytes: Rc<Cell<u64>>,
    has_failed: Rc<Cell<bool>>,
    limits: UnpackLimits,
    damage: Rc<RefCell<Option<String>>>,
}

impl<'a> Unpacked<'a> {
    /// Reads how the input begins.
    ///
    /// # Errors
    /// If it cannot be read, or is a ZIP archive without a capture, or has too many layers.
    pub fn new(input: impl Read + 'a, limits: UnpackLimits) -> io::Result<Self> {
        let (bytes, has_failed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let damage = Rc::new(RefCell::new(None));
        let source = Source { input, bytes: Rc::clone(&bytes), has_failed: Rc::clone(&has_failed) };
        let mut inner: Box<dyn Read + 'a> = Box::new(source);
        for layer in 0..=NESTING_MAX {
            let (format, whole) = peek(inner)?;
            inner = whole;
            let Some(format) = format else { break };
            if layer == NESTING_MAX {
                return Err(invalid(format!(
                    "it is compressed more than {NESTING_MAX} times: unpack it first"
                )));
            }
            inner = Box::new(Layer {
                decoder: format.decoder(inner),
                bytes: 0,
                source_bytes: Rc::clone(&bytes),
                has_failed: Rc::clone(&has_failed),
                limits,
                damage: Rc::clone(&damage),
            });
        }
        Ok(Self { inner, damage })
    }

    /// Returns the error in the compressed data, after the stream has ended there.
    pub fn damage(&self) -> Option<String> {
        self.damage.borrow().clone()
    }

    /// The same for a stream that a reader has taken.
    pub fn damage_handle(&self) -> UnpackDamage {
        UnpackDamage(Rc::clone(&self.damage))
    }
}

/// Error in compressed data that are being read.
#[derive(Clone, Debug)]
pub struct UnpackDamage(Rc<RefCell<Option<String>>>);

impl UnpackDamage {
    /// Returns the error, once the stream has ended there.
    pub fn get(&self) -> Option<String> {
        self.0.borrow().clone()
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

/// Whether bytes begin as something compressed that can be unpacked.
fn is_compressed(bytes: &[u8]) -> bool {
    Format::of(bytes).is_some()
}

/// How the input begins, and the whole of it.
fn peek<'a>(mut input: Box<dyn Read + 'a>) -> io::Result<(Option<Format>, Box<dyn Read + 'a>)> {
    let mut front = Vec::with_capacity(MAGIC_BYTES);
    input.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut front)?;
    let format = Format::of(&front);
    Ok((format, Box::new(Cursor::new(front).chain(input))))
}

impl Format {
    fn of(bytes: &[u8]) -> Option<Self> {
        const MAGICS: [(&[u8], Format); 4] = [
            (b"\x1f\x8b", Format::Gzip),
            (b"\x28\xb5\x2f\xfd", Format::Zstd),
            (b"\xfd7zXZ\0", Format::Xz),
            (b"PK\x03\x04", Format::Zip),
        ];
        MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, format)| *format)
    }

    fn decoder<'a>(self, input: Box<dyn Read + 'a>) -> Box<dyn Read + 'a> {
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Zstd => Box::new(Frames::new(input)),
            Self::Xz => Box::new(XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB)),
            Self::Zip => Box::new(Archive::new(input)),
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer);
        match &read {
            Ok(bytes) => self.bytes.set(self.bytes.get() + *bytes as u64),
            Err(error) => self.has_failed.set(error.kind() != io::ErrorKind::Interrupted),
        }
        read
    }
}

impl Layer<'_> {
    /// Whether no more may come out.
    fn is_full(&self) -> bool {
        let UnpackLimits { bytes_max, ratio_max, ratio_from } = self.limits;
        let by_ratio = self.source_bytes.get().saturating_mul(ratio_max).max(ratio_from);
        self.bytes > bytes_max.min(by_ratio)
    }

    /// The stream ends here.
    fn end(&self, what: impl ToString) -> usize {
        self.damage.borrow_mut().get_or_insert_with(|| what.to_string());
        0
    }
}

impl Read for Layer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.damage.borrow().is_some() {
            return Ok(0);
        }
        match self.decoder.read(buffer) {
            Ok(read) => {
                self.bytes += read as u64;
                Ok(if self.is_full() {
                    self.end("it expands beyond the limits for compressed captures")
                } else {
                    read
                })
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted || self.has_failed.get() => Err(error),
            // Nothing was unpacked that could be used.
            Err(error) if self.bytes == 0 => Err(error),
            Err(error) => Ok(self.end(error)),
        }
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests;
