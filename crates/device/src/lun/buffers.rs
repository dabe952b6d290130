//! The buffers of WRITE BUFFER and READ BUFFER (SPC-5 clauses 6.19 and 6.50): memory for testing the way to a unit.
//!
//! The unit does not interpret their content. A power cycle empties both; the echo buffer, which belongs to an I_T
//! nexus, is also emptied when the nexus is lost.

use alloc::vec::Vec;

/// Bytes of the data buffer.
pub const DATA_BUFFER_BYTES: u32 = 4096;
/// Bytes of the echo buffer. Its size has 13 bits.
pub const ECHO_BUFFER_BYTES: u32 = 4096;

/// The buffers; without memory until they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    written: Vec<u8>,
    echo: Option<Vec<u8>>,
}

/// Bytes past the end of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastEnd;

impl Buffers {
    /// Puts `bytes` into the data buffer from `offset` on.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), PastEnd> {
        let start = offset as usize;
        let end =
            start.checked_add(bytes.len()).filter(|&end| end <= DATA_BUFFER_BYTES as usize).ok_or(PastEnd)?;
        if self.written.len() < end {
            self.written.resize(end, 0);
        }
        self.written[start..end].copy_from_slice(bytes);
        Ok(())
    }

    /// Up to `len` bytes of the data buffer from `offset` on, fewer where it ends.
    pub fn read(&self, offset: u32, len: u32) -> Result<impl Iterator<Item = u8> + '_, PastEnd> {
        let rest = DATA_BUFFER_BYTES.checked_sub(offset).ok_or(PastEnd)?;
        let bytes = self.written.iter().copied().chain(core::iter::repeat(0));
        Ok(bytes.skip(offset as usize).take(rest.min(len) as usize))
    }

    /// Replaces what the echo buffer gives back.
    pub fn set_echo(&mut self, bytes: &[u8]) -> Result<(), PastEnd> {
        if bytes.len() > ECHO_BUFFER_BYTES as usize {
            return Err(PastEnd);
        }
        self.echo = Some(Vec::from(bytes));
        Ok(())
    }

    /// Returns the bytes last written to the echo buffer.
    pub fn echo(&self) -> Option<&[u8]> {
        self.echo.as_deref()
    }

    /// Empties the echo buffer.
    pub fn forget_echo(&mut self) {
        self.echo = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_reads_as_zero_up_to_the_end() {
        let mut buffers = Buffers::default();
        assert_eq!(buffers.write(2, &[1, 2]), Ok(()));
        let bytes: Vec<u8> = buffers.read(1, 5).unwrap().collect();
        assert_eq!(bytes, [0, 1, 2, 0, 0]);
        assert_eq!(buffers.read(4094, 10).unwrap().count(), 2);
        assert_eq!(buffers.read(4096, 10).unwrap().count(), 0);
        assert!(buffers.read(4097, 1).is_err());
    }

    #[test]
    fn nothing_is_written_past_the_end() {
        let mut buffers = Buffers::default();
        assert_eq!(buffers.write(4095, &[1, 2]), Err(PastEnd));
        assert_eq!(buffers.write(u32::MAX, &[1]), Err(PastEnd));
        assert_eq!(buffers.set_echo(&[0; 4097]), Err(PastEnd));
        assert_eq!(buffers, Buffers::default());
    }
}
