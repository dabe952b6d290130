//! Chunks of structured replies (proto.md, "Structured reply chunk message" and "Structured reply types").

use super::reply::STRUCTURED_MAGIC;
use super::{CHUNK_LEN_MAX, ErrorCode};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

register_bits! {
    /// Flags of a chunk.
    pub struct ChunkFlags: u16 {
        /// It is the last of the reply.
        DONE = 0x01 => "done",
    }
}

code! {
    /// Content of a chunk. Those with the highest bit are errors.
    pub enum ChunkKind: u16 {
        /// Nothing.
        None = 0 => "NONE",
        /// Bytes that were read: 8 bytes of offset, then they.
        OffsetData = 1 => "OFFSET_DATA",
        /// Bytes that read as zero: a [`Hole`].
        OffsetHole = 2 => "OFFSET_HOLE",
        /// A [`BlockStatus`].
        BlockStatus = 5 => "BLOCK_STATUS",
        /// The same with 64-bit lengths, which is not asked for.
        BlockStatusExtended = 6 => "BLOCK_STATUS_EXT",
        /// A [`ChunkError`].
        Error = 0x8001 => "ERROR",
        /// A [`ChunkError`], then 8 bytes: where it happened.
        ErrorOffset = 0x8002 => "ERROR_OFFSET",
    }
}

impl ChunkKind {
    /// Whether the request has failed.
    pub fn is_error(self) -> bool {
        u16::from(self) & 0x8000 != 0
    }
}

/// Header of a chunk.
///
/// ```text
///  0..4  magic number    4..6  flags    6..8  kind    8..16  cookie    16..20  length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Whether others follow.
    pub flags: ChunkFlags,
    /// Kind of its content.
    pub kind: ChunkKind,
    /// The request's.
    pub cookie: u64,
    /// Bytes that follow.
    pub length: u32,
}

impl ChunkHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Decodes a header.
    ///
    /// Errors: another magic number; a length above [`CHUNK_LEN_MAX`], or one that its kind cannot have.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.be32()?;
        if magic != STRUCTURED_MAGIC {
            return Err(DecodeError::WrongKind { expected: STRUCTURED_MAGIC, found: magic });
        }
        let (flags, kind): (_, ChunkKind) = (reader.be16()?.into(), reader.be16()?.into());
        let (cookie, length) = (reader.be64()?, reader.be32()?);
        let is_possible = match kind {
            ChunkKind::None => length == 0,
            ChunkKind::OffsetData => length > 8,
            ChunkKind::OffsetHole => length == 12,
            ChunkKind::BlockStatus => length >= 12 && length % 8 == 4,
            ChunkKind::Error => length >= 6,
            ChunkKind::ErrorOffset => length >= 14,
            _ => true,
        };
        if !is_possible || length > CHUNK_LEN_MAX {
            return Err(DecodeError::Invalid { field: "chunk length", value: length.into() });
        }
        Ok(Self { flags, kind, cookie, length })
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3] = STRUCTURED_MAGIC.to_be_bytes();
        let [f0, f1] = u16::from(self.flags).to_be_bytes();
        let [k0, k1] = u16::from(self.kind).to_be_bytes();
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.cookie.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        [m0, m1, m2, m3, f0, f1, k0, k1, c0, c1, c2, c3, c4, c5, c6, c7, l0, l1, l2, l3]
    }

    /// Whether it is the last of its reply.
    pub const fn is_last(&self) -> bool {
        self.flags.has(ChunkFlags::DONE)
    }
}

impl fmt::Display for ChunkHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flags, kind, cookie, length } = self;
        write!(f, "NBD chunk {kind} cookie {cookie:#x}, {length} bytes, flags: {flags}")
    }
}

/// Bytes that read as zero: 8 bytes of offset, 4 of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// First byte of the export.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

impl Hole {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// Decodes a hole.
    ///
    /// Errors: a length of zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (offset, length) = (reader.be64()?, reader.be32()?);
        if length == 0 {
            return Err(DecodeError::Invalid { field: "hole length", value: 0 });
        }
        Ok(Self { offset, length })
    }

    /// The bytes of the hole.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [o0, o1, o2, o3, o4, o5, o6, o7] = self.offset.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3]
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hole at {}, {} bytes", self.offset, self.length)
    }
}

/// Why a request failed: 4 bytes of code, 2 of length, words; then for [`ChunkKind::ErrorOffset`] 8 bytes, left alone here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkError {
    /// The error.
    pub code: ErrorCode,
}

impl ChunkError {
    /// Bytes that are looked at.
    pub const LEN: usize = 4;

    /// Decodes the error. Zero, which is not allowed, is an input or output error.
    ///
    /// Errors: fewer than four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let code = Reader::new(bytes).be32()?.into();
        Ok(Self { code: if code == ErrorCode::None { ErrorCode::Io } else { code } })
    }

    /// The bytes of the error.
    pub fn encode(&self) -> [u8; Self::LEN] {
        u32::from(self.code).to_be_bytes()
    }
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed: {}", self.code)
    }
}

register_bits! {
    /// State of bytes in `base:allocation`.
    pub struct Statuses: u32 {
        /// They take no space.
        HOLE = 0x01 => "hole",
        /// They read as zero.
        ZERO = 0x02 => "zero",
    }
}

/// The first extent of a block status chunk; there may be others behind it.
///
/// ```text
///  0..4  id of the context    4..8  bytes    8..12  status
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockStatus {
    /// Which metadata context.
    pub context: u32,
    /// Bytes of the extent, from the offset of the request on.
    pub length: u32,
    /// Their state.
    pub status: Statuses,
}

impl BlockStatus {
    /// Bytes that are looked at.
    pub const LEN: usize = 12;

    /// Decodes the first extent.
    ///
    /// Errors: a length of zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (context, length, status) = (reader.be32()?, reader.be32()?, reader.be32()?.into());
        if length == 0 {
            return Err(DecodeError::Invalid { field: "extent length", value: 0 });
        }
        Ok(Self { context, length, status })
    }

    /// Writes the extent. Returns how many bytes it has.
    ///
    /// Errors: too little room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        for field in [self.context, self.length, self.status.into()] {
            writer.be32(field)?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for BlockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {}: {} bytes, {}", self.context, self.length, self.status)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn header(kind: u16, length: u32) -> [u8; 20] {
        let mut bytes = [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0];
        bytes[6..8].copy_from_slice(&kind.to_be_bytes());
        bytes[16..20].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn a_chunk_with_data() {
        let bytes = header(1, 4104);
        let chunk = ChunkHeader::decode(&bytes).unwrap();
        assert_eq!((chunk.kind, chunk.cookie, chunk.length), (ChunkKind::OffsetData, 9, 4104));
        assert!(chunk.is_last() && !chunk.kind.is_error());
        assert_eq!(chunk.encode(), bytes);
        assert_eq!(chunk.to_string(), "NBD chunk OFFSET_DATA cookie 0x9, 4104 bytes, flags: done");
        for len in 0..20 {
            assert!(ChunkHeader::decode(&bytes[..len]).is_err(), "{len}");
        }
        assert!(ChunkHeader::decode(&[0; 20]).is_err());
    }

    #[test]
    fn a_length_that_a_kind_cannot_have_is_refused() {
        let wrong = [
            (0, 1),
            (1, 8),
            (2, 11),
            (5, 4),
            (5, 13),
            (0x8001, 5),
            (0x8002, 13),
            (1, CHUNK_LEN_MAX + 1),
            (7, u32::MAX),
        ];
        for (kind, length) in wrong {
            assert!(ChunkHeader::decode(&header(kind, length)).is_err(), "{kind:#x} {length}");
        }
        for (kind, length) in
            [(0, 0), (1, CHUNK_LEN_MAX), (2, 12), (5, 12), (5, 20), (0x8001, 6), (0x8002, 14)]
        {
            assert!(ChunkHeader::decode(&header(kind, length)).is_ok(), "{kind:#x} {length}");
        }
    }

    #[test]
    fn holes_errors_and_states() {
        let hole = [0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0];
        assert_eq!(Hole::decode(&hole), Ok(Hole { offset: 4096, length: 512 }));
        assert_eq!(Hole { offset: 4096, length: 512 }.encode(), hole);
        assert!(Hole::decode(&[0; 12]).is_err() && Hole::decode(&hole[..11]).is_err());
        assert_eq!(ChunkError::decode(&[0, 0, 0, 28, 0, 0]), Ok(ChunkError { code: ErrorCode::OutOfSpace }));
        assert_eq!(ChunkError::decode(&[0; 6]), Ok(ChunkError { code: ErrorCode::Io }));
        assert!(ChunkError::decode(&[0; 3]).is_err());
        let bytes = [0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 3];
        let status = BlockStatus::decode(&bytes).unwrap();
        assert_eq!(status.to_string(), "context 1: 65536 bytes, hole zero");
        let mut out = [0; 12];
        assert_eq!(status.encode(&mut out), Ok(12));
        assert_eq!(out, bytes);
        assert!(BlockStatus::decode(&[0; 12]).is_err() && BlockStatus::decode(&bytes[..11]).is_err());
    }
}
