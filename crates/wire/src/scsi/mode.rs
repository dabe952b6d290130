//! Mode parameters: what MODE SENSE returns and MODE SELECT sends (SPC-5, mode parameters; SBC-4, MMC-6).
//!
//! A list is a header ([`ModeHeader`], in the six or ten byte [`ModeForm`]), block descriptors, and pages.
//! [`ModeParameters`] splits one, [`ModeWriter`] builds one, [`ModePages`] walks its pages.
//!
//! A page type here is its content; PS, which says in MODE SENSE that a page can be saved, is an argument of
//! `encode`. Always true: a page decodes only if its PAGE LENGTH is that of SPC-5 or SBC-4, because MODE
//! SELECT has to refuse any other. Reserved bits are lost in decode; [`forbidden_change`] finds them.

use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

mod block_descriptor;
mod caching;
mod capabilities;
mod control;
mod control_extension;
mod disconnect_reconnect;
mod header;
mod informational_exceptions;
mod page_header;
mod parameters;
mod power_condition;
mod read_write_error_recovery;
mod write_parameters;

pub use block_descriptor::{LongBlockDescriptor, ShortBlockDescriptor};
pub use caching::CachingPage;
pub use capabilities::CapabilitiesPage;
pub use control::{ControlPage, QueueAlgorithm, QueueErrorManagement, TaskSetType, UnitAttentionInterlock};
pub use control_extension::ControlExtensionPage;
pub use disconnect_reconnect::DisconnectReconnectPage;
pub use header::{DeviceSpecific, ModeForm, ModeHeader};
pub use informational_exceptions::{InformationalExceptionsPage, ReportMethod};
pub use page_header::{ModePageHeader, ModePages, RawModePage};
pub use parameters::{ModeParameters, ModeWriter};
pub use power_condition::PowerConditionPage;
pub use read_write_error_recovery::ReadWriteErrorRecoveryPage;
pub use write_parameters::WriteParametersPage;

pub use super::cdb::PageControl;

use page_header::{blank, whole_of};

code! {
    /// PAGE CODE of a mode page, six bits.
    pub enum ModePageCode: u8 {
        /// Error recovery of reads and writes (SBC-4).
        ReadWriteErrorRecovery = 0x01 => "read-write error recovery",
        /// Use of the transport.
        DisconnectReconnect = 0x02 => "disconnect-reconnect",
        /// How a disc is written (MMC-6).
        WriteParameters = 0x05 => "write parameters",
        /// The cache (SBC-4).
        Caching = 0x08 => "caching",
        /// Task set, sense format, write protection; subpage 01h is the control extension.
        Control = 0x0a => "control",
        /// Idle and standby timers.
        PowerCondition = 0x1a => "power condition",
        /// How a drive warns of its failure.
        InformationalExceptions = 0x1c => "informational exceptions control",
        /// Capabilities of a drive of discs (MMC-3).
        Capabilities = 0x2a => "capabilities and mechanical status",
        /// Not a page: all of them, in MODE SENSE only.
        All = 0x3f => "all pages",
    }
}

/// SUBPAGE CODE FFh: all subpages, in MODE SENSE only.
pub const ALL_SUBPAGES: u8 = 0xff;

/// Any mode page, by code and subpage; one that is not known here keeps its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModePage<'a> {
    /// Page 01h.
    ReadWriteErrorRecovery(ReadWriteErrorRecoveryPage),
    /// Page 02h.
    DisconnectReconnect(DisconnectReconnectPage),
    /// Page 05h.
    WriteParameters(WriteParametersPage),
    /// Page 08h.
    Caching(CachingPage),
    /// Page 0Ah.
    Control(ControlPage),
    /// Page 0Ah, subpage 01h.
    ControlExtension(ControlExtensionPage),
    /// Page 1Ah.
    PowerCondition(PowerConditionPage),
    /// Page 1Ch.
    InformationalExceptions(InformationalExceptionsPage),
    /// Page 2Ah.
    Capabilities(CapabilitiesPage),
    /// Any other.
    Unknown(RawModePage<'a>),
}

impl<'a> ModePage<'a> {
    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let raw = RawModePage::decode(bytes)?;
        Ok(match (raw.header.code, raw.header.subpage) {
            (ModePageCode::ReadWriteErrorRecovery, None) => {
                Self::ReadWriteErrorRecovery(ReadWriteErrorRecoveryPage::decode(bytes)?)
            }
            (ModePageCode::DisconnectReconnect, None) => {
                Self::DisconnectReconnect(DisconnectReconnectPage::decode(bytes)?)
            }
            (ModePageCode::WriteParameters, None) => {
                Self::WriteParameters(WriteParametersPage::decode(bytes)?)
            }
            (ModePageCode::Caching, None) => Self::Caching(CachingPage::decode(bytes)?),
            (ModePageCode::Capabilities, None) => Self::Capabilities(CapabilitiesPage::decode(bytes)?),
            (ModePageCode::Control, None) => Self::Control(ControlPage::decode(bytes)?),
            (ModePageCode::Control, Some(ControlExtensionPage::SUBPAGE)) => {
                Self::ControlExtension(ControlExtensionPage::decode(bytes)?)
            }
            (ModePageCode::PowerCondition, None) => Self::PowerCondition(PowerConditionPage::decode(bytes)?),
            (ModePageCode::InformationalExceptions, None) => {
                Self::InformationalExceptions(InformationalExceptionsPage::decode(bytes)?)
            }
            _ => Self::Unknown(raw),
        })
    }

    /// Writes the page; the answer is the bytes written. An unknown page keeps the PS bit that it has.
    pub fn encode(&self, saveable: bool, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match self {
            Self::ReadWriteErrorRecovery(page) => writer.put(&page.encode(saveable))?,
            Self::DisconnectReconnect(page) => writer.put(&page.encode(saveable))?,
            Self::WriteParameters(page) => writer.put(&page.encode(saveable))?,
            Self::Caching(page) => writer.put(&page.encode(saveable))?,
            Self::Capabilities(page) => writer.put(&page.encode(saveable))?,
            Self::Control(page) => writer.put(&page.encode(saveable))?,
            Self::ControlExtension(page) => writer.put(&page.encode(saveable))?,
            Self::PowerCondition(page) => writer.put(&page.encode(saveable))?,
            Self::InformationalExceptions(page) => writer.put(&page.encode(saveable))?,
            Self::Unknown(page) => writer.put(page.bytes)?,
        }
        Ok(writer.written())
    }

    /// PAGE CODE and, if the page has one, SUBPAGE CODE.
    pub const fn code(&self) -> (ModePageCode, Option<u8>) {
        match self {
            Self::ReadWriteErrorRecovery(_) => (ModePageCode::ReadWriteErrorRecovery, None),
            Self::DisconnectReconnect(_) => (ModePageCode::DisconnectReconnect, None),
            Self::WriteParameters(_) => (ModePageCode::WriteParameters, None),
            Self::Caching(_) => (ModePageCode::Caching, None),
            Self::Capabilities(_) => (ModePageCode::Capabilities, None),
            Self::Control(_) => (ModePageCode::Control, None),
            Self::ControlExtension(_) => (ModePageCode::Control, Some(ControlExtensionPage::SUBPAGE)),
            Self::PowerCondition(_) => (ModePageCode::PowerCondition, None),
            Self::InformationalExceptions(_) => (ModePageCode::InformationalExceptions, None),
            Self::Unknown(page) => (page.header.code, page.header.subpage),
        }
    }
}

impl fmt::Display for ModePage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, subpage) = self.code();
        write!(f, "mode page {:#04x} {code}", u8::from(code))?;
        subpage.map_or(Ok(()), |subpage| write!(f, ", subpage {subpage:#04x}"))
    }
}

/// Where a MODE SELECT page would change what it may not: byte and bit, as a field pointer wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenChange {
    /// The byte, counted from the first of the page.
    pub byte: usize,
    /// The highest bit of it that differs.
    pub bit: u8,
}

/// The first bit of `proposed` that differs from `current` where `changeable` has a zero.
///
/// All three are whole pages as encoded; PS does not count. A page of another length differs at its PAGE
/// LENGTH anyway, bytes that only `proposed` has are forbidden from the first on.
pub fn forbidden_change(current: &[u8], changeable: &[u8], proposed: &[u8]) -> Option<ForbiddenChange> {
    let padding = core::iter::repeat(&0);
    let pairs = current.iter().chain(padding.clone()).zip(changeable.iter().chain(padding));
    proposed.iter().zip(pairs).enumerate().find_map(|(byte, (new, (old, mask)))| {
        let counted = if byte == 0 { 0x7f } else { 0xff };
        let differs = (new ^ old) & !mask & counted;
        (differs != 0).then(|| ForbiddenChange { byte, bit: 7 - differs.leading_zeros() as u8 })
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn an_unknown_page_survives() {
        let bytes = [0x99, 0x02, 0xaa, 0xbb];
        let page = ModePage::decode(&bytes).unwrap();
        assert_eq!(page.code(), (ModePageCode::Unknown(0x19), None));
        let mut out = [0; 4];
        assert_eq!(page.encode(false, &mut out), Ok(4));
        assert_eq!(out, bytes);
        assert_eq!(page.to_string(), "mode page 0x19 unknown (0x19)");
    }

    #[test]
    fn a_known_page_of_another_length_is_invalid() {
        let error = DecodeError::Invalid { field: "PAGE LENGTH", value: 0x0b };
        assert_eq!(ModePage::decode(&[0x0a, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(error));
    }

    #[test]
    fn a_forbidden_change_is_found_at_its_highest_bit() {
        let (current, changeable) = ([0x88, 0x02, 0x04, 0x00], [0x88, 0x02, 0x04, 0x00]);
        assert_eq!(forbidden_change(&current, &changeable, &[0x08, 0x02, 0x00, 0x00]), None);
        assert_eq!(
            forbidden_change(&current, &changeable, &[0x08, 0x02, 0x24, 0xff]),
            Some(ForbiddenChange { byte: 2, bit: 5 })
        );
        assert_eq!(
            forbidden_change(&current, &changeable, &[0x08, 0x02, 0x04, 0x00, 0x01]),
            Some(ForbiddenChange { byte: 4, bit: 0 })
        );
    }

    const LENGTHS: [(u8, u8); 8] = [
        (0x01, 0x0a),
        (0x02, 0x0e),
        (0x05, 0x32),
        (0x08, 0x12),
        (0x0a, 0x0a),
        (0x1a, 0x26),
        (0x1c, 0x0a),
        (0x2a, 0x1e),
    ];

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(page) = ModePage::decode(&bytes) {
                let mut out = [0; 60];
                let len = page.encode(false, &mut out).unwrap();
                prop_assert_eq!(ModePage::decode(&out[..len]), Ok(page));
            }
        }

        #[test]
        fn what_decodes_round_trips(
            (code, length) in prop::sample::select(&LENGTHS[..]),
            body in prop::collection::vec(any::<u8>(), 0x32),
        ) {
            let mut bytes = std::vec![code, length];
            bytes.extend(&body);
            let page = ModePage::decode(&bytes).unwrap();
            let mut out = [0; 60];
            let len = page.encode(true, &mut out).unwrap();
            prop_assert_eq!((len, out[0]), (usize::from(length) + 2, code | 0x80));
            prop_assert_eq!(ModePage::decode(&out[..len]), Ok(page));
        }
    }
}
