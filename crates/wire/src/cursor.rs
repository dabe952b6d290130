//! A place in bytes that moves: for layouts whose length depends on their content.
//!
//! Fixed layouts do not need it: `first_chunk::<LEN>()` and constant indices read better there. Neither end
//! panics; a [`Reader`] that runs dry says how much was missing, a [`Writer`] that runs full likewise.

use crate::{DecodeError, NoRoom};

/// Reads front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, taken: 0 }
    }

    /// The bytes not read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes were read so far.
    #[inline]
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(self.missing(N))?;
        self.rest = rest;
        self.taken += N;
        Ok(*head)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(self.missing(len))?;
        self.rest = rest;
        self.taken += len;
        Ok(head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next two bytes, big-endian.
    #[inline]
    pub fn be16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes, big-endian.
    #[inline]
    pub fn be32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next eight bytes, big-endian.
    #[inline]
    pub fn be64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// The next two bytes, little-endian.
    #[inline]
    pub fn le16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes, little-endian.
    #[inline]
    pub fn le32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes, little-endian.
    #[inline]
    pub fn le64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    fn missing(&self, len: usize) -> DecodeError {
        DecodeError::Truncated {
            needed: self.taken.saturating_add(len),
            got: self.taken.saturating_add(self.rest.len()),
        }
    }
}

/// Writes front to back into memory of a fixed size.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the first byte of `out`.
    #[inline]
    pub const fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// How many bytes were written.
    #[inline]
    pub const fn written(&self) -> usize {
        self.at
    }

    /// Appends `bytes`.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        let end = self.at.saturating_add(bytes.len());
        let got = self.out.len();
        let place = self.out.get_mut(self.at..end).ok_or(NoRoom { needed: end, got })?;
        place.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    /// Appends `len` zero bytes.
    #[inline]
    pub fn zeroes(&mut self, len: usize) -> Result<(), NoRoom> {
        let end = self.at.saturating_add(len);
        let got = self.out.len();
        let place = self.out.get_mut(self.at..end).ok_or(NoRoom { needed: end, got })?;
        place.fill(0);
        self.at = end;
        Ok(())
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), NoRoom> {
        self.put(&[value])
    }

    /// Appends two bytes, big-endian.
    #[inline]
    pub fn be16(&mut self, value: u16) -> Result<(), NoRoom> {
        self.put(&value.to_be_bytes())
    }

    /// Appends four bytes, big-endian.
    #[inline]
    pub fn be32(&mut self, value: u32) -> Result<(), NoRoom> {
        self.put(&value.to_be_bytes())
    }

    /// Appends eight bytes, big-endian.
    #[inline]
    pub fn be64(&mut self, value: u64) -> Result<(), NoRoom> {
        self.put(&value.to_be_bytes())
    }

    /// Appends two bytes, little-endian.
    #[inline]
    pub fn le16(&mut self, value: u16) -> Result<(), NoRoom> {
        self.put(&value.to_le_bytes())
    }

    /// Appends four bytes, little-endian.
    #[inline]
    pub fn le32(&mut self, value: u32) -> Result<(), NoRoom> {
        self.put(&value.to_le_bytes())
    }

    /// Appends eight bytes, little-endian.
    #[inline]
    pub fn le64(&mut self, value: u64) -> Result<(), NoRoom> {
        self.put(&value.to_le_bytes())
    }

    /// Overwrites bytes written earlier, at `offset`: for a length that is known only at the end.
    #[inline]
    pub fn patch(&mut self, offset: usize, bytes: &[u8]) -> Result<(), NoRoom> {
        let end = offset.saturating_add(bytes.len());
        let got = self.at;
        let place =
            self.out.get_mut(offset..end).filter(|_| end <= got).ok_or(NoRoom { needed: end, got })?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_counts_what_it_took_and_what_is_missing() {
        let mut reader = Reader::new(&[0x12, 0x34, 0x56]);
        assert_eq!(reader.be16(), Ok(0x1234));
        assert_eq!(reader.le32(), Err(DecodeError::Truncated { needed: 6, got: 3 }));
        assert_eq!(reader.u8(), Ok(0x56));
        assert_eq!(reader.taken(), 3);
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn a_writer_stops_at_the_end_and_patches_only_what_it_wrote() {
        let mut out = [0xff; 4];
        let mut writer = Writer::new(&mut out);
        assert_eq!(writer.be16(0), Ok(()));
        assert_eq!(writer.patch(1, &[1, 2]), Err(NoRoom { needed: 3, got: 2 }));
        assert_eq!(writer.patch(0, &[0xab, 0xcd]), Ok(()));
        assert_eq!(writer.be32(1), Err(NoRoom { needed: 6, got: 4 }));
        assert_eq!(writer.written(), 2);
        assert_eq!(out, [0xab, 0xcd, 0xff, 0xff]);
    }
}
