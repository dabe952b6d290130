//! A log parameter and the walk over a page (SPC-5, log parameter structure).
//!
//! ```text
//!  0..2   parameter code
//!  2      DU (7), TSD (5), ETC (4), TMC (3:2), format and linking (1:0)
//!  3      parameter length
//!  4..    value
//! ```

use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::{DecodeError, Reader};
use core::fmt;

/// The control byte of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterControl {
    /// The drive does not update the value.
    #[doc(alias = "DU")]
    pub disable_update: bool,
    /// The drive does not save the value by itself.
    #[doc(alias = "TSD")]
    pub target_save_disable: bool,
    /// The value is compared with its threshold.
    #[doc(alias = "ETC")]
    pub threshold_comparison: bool,
    /// TMC, two bits: how it is compared.
    #[doc(alias = "TMC")]
    pub threshold_criterion: u8,
    /// FORMAT AND LINKING: what the value is.
    pub format: ParameterFormat,
}

/// FORMAT AND LINKING, two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterFormat {
    /// 00b: a counter that stops at its end.
    BoundedCounter,
    /// 01b: ASCII.
    Ascii,
    /// 10b: a counter that may or may not stop.
    Counter,
    /// 11b: a list of binary fields.
    BinaryList,
}

impl ParameterControl {
    /// A counter: the byte 00h.
    pub const COUNTER: Self = Self::new(ParameterFormat::BoundedCounter);
    /// A list of ASCII fields: the byte 01h.
    pub const ASCII: Self = Self::new(ParameterFormat::Ascii);
    /// A list of binary fields: the byte 03h.
    pub const BINARY_LIST: Self = Self::new(ParameterFormat::BinaryList);

    const fn new(format: ParameterFormat) -> Self {
        Self {
            disable_update: false,
            target_save_disable: false,
            threshold_comparison: false,
            threshold_criterion: 0,
            format,
        }
    }

    /// From the byte on the wire; the obsolete bit 6 is lost.
    pub const fn from_byte(byte: u8) -> Self {
        Self {
            disable_update: bit::<7>(byte),
            target_save_disable: bit::<5>(byte),
            threshold_comparison: bit::<4>(byte),
            threshold_criterion: bits::<3, 2>(byte),
            format: match bits::<1, 0>(byte) {
                0 => ParameterFormat::BoundedCounter,
                1 => ParameterFormat::Ascii,
                2 => ParameterFormat::Counter,
                _ => ParameterFormat::BinaryList,
            },
        }
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        set_bit::<7>(self.disable_update)
            | set_bit::<5>(self.target_save_disable)
            | set_bit::<4>(self.threshold_comparison)
            | set_bits::<3, 2>(self.threshold_criterion)
            | self.format as u8
    }
}

/// One parameter of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogParameter<'a> {
    /// PARAMETER CODE.
    pub code: u16,
    /// How it is saved and updated.
    pub control: ParameterControl,
    /// The value.
    pub value: &'a [u8],
}

impl LogParameter<'_> {
    /// The value read as a big-endian counter of any length.
    pub fn counter(&self) -> u64 {
        super::counter(self.value)
    }
}

impl fmt::Display for LogParameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parameter {:#06x}, {} bytes", self.code, self.value.len())
    }
}

/// The parameters of a page; one that is cut short ends it with an error.
#[derive(Clone, Debug)]
pub struct LogParameters<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> LogParameters<'a> {
    /// The parameters in `bytes`, which start with one.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), failed: false }
    }

    fn read(&mut self) -> Result<LogParameter<'a>, DecodeError> {
        let code = self.reader.be16()?;
        let control = ParameterControl::from_byte(self.reader.u8()?);
        let length = self.reader.u8()?;
        Ok(LogParameter { code, control, value: self.reader.slice(length.into())? })
    }
}

impl<'a> Iterator for LogParameters<'a> {
    type Item = Result<LogParameter<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.rest().is_empty() {
            return None;
        }
        let parameter = self.read();
        self.failed = parameter.is_err();
        Some(parameter)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_control_byte_both_ways() {
        let control = ParameterControl {
            disable_update: true,
            target_save_disable: true,
            threshold_comparison: true,
            threshold_criterion: 2,
            format: ParameterFormat::BinaryList,
        };
        assert_eq!(ParameterControl::from_byte(0xbb), control);
        assert_eq!(control.byte(), 0xbb);
        for byte in 0..=u8::MAX {
            assert_eq!(ParameterControl::from_byte(byte).byte(), byte & 0xbf);
        }
    }

    #[test]
    fn parameters_follow_each_other_until_one_is_cut() {
        let bytes = [0x00, 0x01, 0x03, 0x02, 0xaa, 0xbb, 0x80, 0x00, 0x00, 0x04, 0x01];
        let found: Vec<_> = LogParameters::new(&bytes).collect();
        let first = LogParameter { code: 1, control: ParameterControl::BINARY_LIST, value: &[0xaa, 0xbb] };
        assert_eq!(found, [Ok(first), Err(DecodeError::Truncated { needed: 14, got: 11 })]);
        assert_eq!(first.counter(), 0xaabb);
    }

    proptest! {
        #[test]
        fn any_page_ends(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let values: usize = LogParameters::new(&bytes).flatten().map(|p| p.value.len() + 4).sum();
            prop_assert!(values <= bytes.len());
        }
    }
}
