//! SANITIZE parameter list of the OVERWRITE service action (SBC-4 clause 5.30.2.2).

use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// Parameter list of SANITIZE with OVERWRITE: the pattern and how often to write it.
///
/// ```text
///  0      INVERT (7), TEST (6:5), overwrite count (4:0)
///  1      reserved
///  2..4   initialization pattern length
///  4..    initialization pattern
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverwriteList<'a> {
    /// Each pass inverts the pattern of the one before.
    pub invert: bool,
    /// TEST: the vendor's; zero is none.
    pub test: u8,
    /// Passes; zero is reserved.
    pub count: u8,
    /// The bytes that fill a block, over and over.
    pub pattern: &'a [u8],
}

impl<'a> OverwriteList<'a> {
    /// Bytes before the pattern.
    pub const HEADER_LEN: usize = 4;

    /// Decodes the list. Bytes after the pattern are not looked at.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let passes = reader.u8()?;
        reader.u8()?;
        let pattern_len = usize::from(reader.be16()?);
        Ok(Self {
            invert: bit::<7>(passes),
            test: bits::<6, 5>(passes),
            count: bits::<4, 0>(passes),
            pattern: reader.slice(pattern_len)?,
        })
    }

    /// Writes the list and says how many bytes that took.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let got = out.len();
        let mut writer = Writer::new(out);
        writer.u8(set_bit::<7>(self.invert) | set_bits::<6, 5>(self.test) | set_bits::<4, 0>(self.count))?;
        writer.u8(0)?;
        let len = self.pattern.len();
        writer.be16(u16::try_from(len).map_err(|_| NoRoom { needed: len.saturating_add(4), got })?)?;
        writer.put(self.pattern)?;
        Ok(writer.written())
    }

    /// Fills `block` with the pattern as pass `pass` writes it, counted from 0. An empty pattern leaves zeroes.
    pub fn fill(&self, pass: u32, block: &mut [u8]) {
        let flip = if self.invert && pass % 2 == 1 { 0xff } else { 0x00 };
        let pattern = self.pattern.iter().cycle().map(|byte| byte ^ flip);
        block.fill(0);
        block.iter_mut().zip(pattern).for_each(|(to, from)| *to = from);
    }
}

impl fmt::Display for OverwriteList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passes, a pattern of {} bytes", self.count, self.pattern.len())?;
        if self.invert { f.write_str(", inverted in turn") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_both_ways() {
        let list = OverwriteList { invert: true, test: 1, count: 3, pattern: &[0xa5, 0x5a] };
        let bytes = [0xa3, 0, 0, 2, 0xa5, 0x5a];
        assert_eq!(OverwriteList::decode(&bytes), Ok(list));
        let mut out = [0xff; 6];
        assert_eq!(list.encode(&mut out), Ok(6));
        assert_eq!(out, bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..6 {
            let error = OverwriteList::decode(&[0xa3, 0, 0, 2, 0xa5, 0x5a][..len]).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { got, .. } if got == len));
        }
    }

    #[test]
    fn a_pattern_is_repeated_and_every_other_pass_inverted() {
        let list = OverwriteList { invert: true, test: 0, count: 2, pattern: &[0x01, 0x02, 0x03] };
        let mut block = [0; 4];
        list.fill(0, &mut block);
        assert_eq!(block, [0x01, 0x02, 0x03, 0x01]);
        list.fill(1, &mut block);
        assert_eq!(block, [0xfe, 0xfd, 0xfc, 0xfe]);
        list.fill(2, &mut block);
        assert_eq!(block, [0x01, 0x02, 0x03, 0x01]);
    }
}
