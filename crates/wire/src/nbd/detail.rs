//! GO and INFO: the choice of an export, and what the server says of it (proto.md, "`NBD_OPT_INFO` and `NBD_OPT_GO`").

use super::STRING_LEN_MAX;
use crate::{DecodeError, Legible, NoRoom, Reader, Writer};
use core::fmt;

register_bits! {
    /// Abilities of the server with an export.
    pub struct TransmissionFlags: u16 {
        /// The other flags are valid.
        HAS_FLAGS = 0x0001 => "flags",
        /// It cannot be written.
        READ_ONLY = 0x0002 => "read-only",
        /// FLUSH.
        SEND_FLUSH = 0x0004 => "FLUSH",
        /// Forced unit access.
        SEND_FUA = 0x0008 => "FUA",
        /// It is a disk that rotates.
        ROTATIONAL = 0x0010 => "rotational",
        /// TRIM.
        SEND_TRIM = 0x0020 => "TRIM",
        /// WRITE_ZEROES.
        SEND_WRITE_ZEROES = 0x0040 => "WRITE_ZEROES",
        /// Reads in one piece, if asked to.
        SEND_DF = 0x0080 => "DF",
        /// A flush of one connection covers what all of them wrote.
        CAN_MULTI_CONN = 0x0100 => "MULTI_CONN",
        /// RESIZE.
        SEND_RESIZE = 0x0200 => "RESIZE",
        /// CACHE.
        SEND_CACHE = 0x0400 => "CACHE",
        /// Zeroes only if that is fast.
        SEND_FAST_ZERO = 0x0800 => "FAST_ZERO",
        /// BLOCK_STATUS with a payload.
        BLOCK_STATUS_PAYLOAD = 0x1000 => "BLOCK_STATUS_PAYLOAD",
    }
}

/// Data of the options GO and INFO.
///
/// ```text
///  0..4  length of the name    name    2 bytes: number of questions    2 bytes for each
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Go<'a> {
    /// Name of the export; empty: the default one.
    pub name: &'a [u8],
    /// Whether block sizes are asked for.
    pub block_sizes: bool,
}

impl<'a> Go<'a> {
    /// Decodes the data of the option.
    ///
    /// Errors: a name that is too long, or less than is announced.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let name = string(&mut reader)?;
        let count = reader.be16()?;
        let mut block_sizes = false;
        for _ in 0..count {
            block_sizes |= DetailKind::from(reader.be16()?) == DetailKind::BlockSize;
        }
        Ok(Self { name, block_sizes })
    }

    /// Writes the data of the option. Returns how many bytes it has.
    ///
    /// Errors: too little room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(self.name.len() as u32)?;
        writer.put(self.name)?;
        writer.be16(self.block_sizes.into())?;
        if self.block_sizes {
            writer.be16(DetailKind::BlockSize.into())?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for Go<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "export \"{}\"", Legible(self.name))?;
        if self.block_sizes { f.write_str(", with block sizes") } else { Ok(()) }
    }
}

/// A string with its length, within the limit.
pub(super) fn string<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = reader.be32()?;
    if len as usize > STRING_LEN_MAX {
        return Err(DecodeError::Invalid { field: "string length", value: len.into() });
    }
    reader.slice(len as usize)
}

code! {
    /// A detail of an export.
    pub enum DetailKind: u16 {
        /// Size and flags.
        Export = 0 => "EXPORT",
        /// Its name, as the server calls it.
        Name = 1 => "NAME",
        /// Words about it.
        Description = 2 => "DESCRIPTION",
        /// Limits of requests.
        BlockSize = 3 => "BLOCK_SIZE",
    }
}

/// Data of an INFO reply: a detail of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportDetail {
    /// Size and flags.
    Export(ExportInfo),
    /// Limits of requests.
    BlockSizes(BlockSizes),
    /// Something that is of no concern.
    Other(DetailKind),
}

/// Size and flags of an export: 8 and 2 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Abilities of the server with it.
    pub flags: TransmissionFlags,
}

/// Limits of requests, in bytes: 4 bytes for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of this power of two.
    pub minimum: u32,
    /// Requests that are multiples of this are fast.
    pub preferred: u32,
    /// Payload of one request at most.
    pub maximum: u32,
}

impl ExportDetail {
    /// Decodes the data of an INFO reply.
    ///
    /// Errors: less than its kind has; a minimum that is not a power of two up to 64 KiB, or a maximum below it.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(match reader.be16()?.into() {
            DetailKind::Export => {
                Self::Export(ExportInfo { size_bytes: reader.be64()?, flags: reader.be16()?.into() })
            }
            DetailKind::BlockSize => {
                let sizes = BlockSizes {
                    minimum: reader.be32()?,
                    preferred: reader.be32()?,
                    maximum: reader.be32()?,
                };
                if !sizes.minimum.is_power_of_two() || sizes.minimum > 1 << 16 {
                    let value = sizes.minimum.into();
                    return Err(DecodeError::Invalid { field: "minimum block size", value });
                }
                if sizes.maximum < sizes.minimum {
                    let value = sizes.maximum.into();
                    return Err(DecodeError::Invalid { field: "maximum payload size", value });
                }
                Self::BlockSizes(sizes)
            }
            other => Self::Other(other),
        })
    }

    /// Writes the data of the reply. Returns how many bytes it has.
    ///
    /// Errors: too little room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match self {
            Self::Export(export) => {
                writer.be16(DetailKind::Export.into())?;
                writer.be64(export.size_bytes)?;
                writer.be16(export.flags.into())?;
            }
            Self::BlockSizes(sizes) => {
                writer.be16(DetailKind::BlockSize.into())?;
                for size in [sizes.minimum, sizes.preferred, sizes.maximum] {
                    writer.be32(size)?;
                }
            }
            Self::Other(kind) => writer.be16((*kind).into())?,
        }
        Ok(writer.written())
    }
}

impl fmt::Display for ExportDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export(ExportInfo { size_bytes, flags }) => write!(f, "{size_bytes} bytes, flags: {flags}"),
            Self::BlockSizes(BlockSizes { minimum, preferred, maximum }) => {
                write!(f, "block sizes: minimum {minimum}, preferred {preferred}, maximum {maximum}")
            }
            Self::Other(kind) => write!(f, "information {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_export_is_chosen_by_name() {
        let go = Go { name: b"disk", block_sizes: true };
        let mut out = [0; 32];
        let len = go.encode(&mut out).unwrap();
        assert_eq!(out[..len], *b"\0\0\0\x04disk\0\x01\0\x03");
        assert_eq!(Go::decode(&out[..len]), Ok(go));
        assert_eq!(go.to_string(), "export \"disk\", with block sizes");
        for len in 0..len {
            assert!(Go::decode(&out[..len]).is_err(), "{len}");
        }
        assert!(go.encode(&mut [0; 11]).is_err());
        assert!(Go::decode(b"\xff\xff\xff\xffdisk\0\0").is_err());
    }

    #[test]
    fn size_flags_and_block_sizes_are_reported() {
        let bytes = [0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 0x6d];
        let Ok(ExportDetail::Export(export)) = ExportDetail::decode(&bytes) else { panic!("an export") };
        assert_eq!(export.size_bytes, 1 << 30);
        assert_eq!(export.flags.to_string(), "flags FLUSH FUA TRIM WRITE_ZEROES MULTI_CONN");
        let sizes = [0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 2, 0, 0, 0];
        let decoded = ExportDetail::decode(&sizes).unwrap();
        let expected = BlockSizes { minimum: 512, preferred: 4096, maximum: 32 << 20 };
        assert_eq!(decoded, ExportDetail::BlockSizes(expected));
        let mut out = [0; 14];
        assert_eq!(decoded.encode(&mut out), Ok(14));
        assert_eq!(out, sizes);
        for len in 0..14 {
            assert!(ExportDetail::decode(&sizes[..len]).is_err(), "{len}");
        }
        assert_eq!(ExportDetail::decode(&[0, 2, b'x']), Ok(ExportDetail::Other(DetailKind::Description)));
    }

    #[test]
    fn block_sizes_that_cannot_be_are_refused() {
        for minimum in [0_u32, 3, 1 << 17] {
            let mut bytes = [0, 3, 0, 0, 0, 0, 0, 0, 0x10, 0, 2, 0, 0, 0];
            bytes[2..6].copy_from_slice(&minimum.to_be_bytes());
            assert!(ExportDetail::decode(&bytes).is_err(), "{minimum}");
        }
        assert!(ExportDetail::decode(&[0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 0, 0, 1, 0]).is_err());
    }
}
