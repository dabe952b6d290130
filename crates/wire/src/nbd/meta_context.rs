//! SET_META_CONTEXT: the choice of metadata contexts, and the ids that they get (proto.md, "Metadata querying").

use super::detail::string;
use crate::{DecodeError, Legible, NoRoom, Reader, Writer};
use core::fmt;

/// Data of the option that chooses one context of an export.
///
/// ```text
///  0..4  length of the export's name    name    4 bytes: number of queries, 1    4 bytes: length    query
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetMetaContext<'a> {
    /// Name of the export.
    pub export: &'a [u8],
    /// Name of the context.
    pub query: &'a [u8],
}

impl<'a> SetMetaContext<'a> {
    /// Decodes the data of the option.
    ///
    /// Errors: strings that are too long or cut off, or another number of queries than one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let export = string(&mut reader)?;
        let count = reader.be32()?;
        if count != 1 {
            return Err(DecodeError::Invalid { field: "number of queries", value: count.into() });
        }
        Ok(Self { export, query: string(&mut reader)? })
    }

    /// Writes the data of the option. Returns how many bytes it has.
    ///
    /// Errors: too little room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(self.export.len() as u32)?;
        writer.put(self.export)?;
        writer.be32(1)?;
        writer.be32(self.query.len() as u32)?;
        writer.put(self.query)?;
        Ok(writer.written())
    }
}

impl fmt::Display for SetMetaContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context \"{}\" of export \"{}\"", Legible(self.query), Legible(self.export))
    }
}

/// Data of a META_CONTEXT reply: a context that was chosen.
///
/// ```text
///  0..4  id    4..  name
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaContext<'a> {
    /// Names the context in block status chunks.
    pub id: u32,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> MetaContext<'a> {
    /// Decodes the data of the reply.
    ///
    /// Errors: fewer than four bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self { id: reader.be32()?, name: reader.rest() })
    }

    /// Writes the data of the reply. Returns how many bytes it has.
    ///
    /// Errors: too little room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(self.id)?;
        writer.put(self.name)?;
        Ok(writer.written())
    }
}

impl fmt::Display for MetaContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {}: \"{}\"", self.id, Legible(self.name))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::nbd::BASE_ALLOCATION;
    use std::string::ToString;

    #[test]
    fn a_context_is_chosen_and_gets_an_id() {
        let set = SetMetaContext { export: b"a", query: BASE_ALLOCATION.as_bytes() };
        let mut out = [0; 64];
        let len = set.encode(&mut out).unwrap();
        assert_eq!(out[..len], *b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation");
        assert_eq!(SetMetaContext::decode(&out[..len]), Ok(set));
        assert_eq!(set.to_string(), "context \"base:allocation\" of export \"a\"");
        for len in 0..len {
            assert!(SetMetaContext::decode(&out[..len]).is_err(), "{len}");
        }
        let context = MetaContext::decode(b"\0\0\0\x01base:allocation").unwrap();
        assert_eq!((context.id, context.name), (1, BASE_ALLOCATION.as_bytes()));
        assert_eq!(context.to_string(), "context 1: \"base:allocation\"");
        assert!(MetaContext::decode(&[0; 3]).is_err());
    }
}
