//! GET EVENT STATUS NOTIFICATION data: a header, and an event of one class (MMC-6 clause 6.7).
//!
//! ```text
//! header  0..2  event data length (bytes that follow)      2  NEA (7), notification class (2:0)
//!         3     classes that the drive supports, a bit each
//! media   0     event code (3:0)      1  media present (1), tray open (0)
//!         2     start slot            3  end slot
//! ```

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

code! {
    /// NOTIFICATION CLASS, three bits.
    pub enum EventClass: u8 {
        /// None.
        None = 0x00 => "none",
        /// A feature changed.
        OperationalChange = 0x01 => "operational change",
        /// A power condition changed.
        PowerManagement = 0x02 => "power management",
        /// A button was pressed.
        ExternalRequest = 0x03 => "external request",
        /// A medium came or goes.
        Media = 0x04 => "media",
        /// Another host uses the drive.
        MultipleHost = 0x05 => "multiple host",
        /// The drive is busy.
        DeviceBusy = 0x06 => "device busy",
    }
}

impl EventClass {
    /// The bit of this class in a request and among the supported classes.
    pub fn mask(self) -> u8 {
        1 << (u8::from(self) & 7)
    }
}

code! {
    /// MEDIA EVENT CODE, four bits.
    pub enum MediaEventCode: u8 {
        /// Nothing happened.
        NoChange = 0x00 => "no change",
        /// Someone asks for the medium, by the button.
        EjectRequest = 0x01 => "eject request",
        /// There is another medium.
        NewMedia = 0x02 => "new media",
        /// The medium is gone.
        MediaRemoval = 0x03 => "media removal",
        /// There is another medium, which is to be loaded.
        MediaChanged = 0x04 => "media changed",
    }
}

/// Event header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// EVENT DATA LENGTH: bytes that follow the field.
    pub data_length: u16,
    /// No event of the classes that were asked for is available: none of them is supported.
    #[doc(alias = "NEA")]
    pub no_event_available: bool,
    /// The class of the event that follows.
    pub class: EventClass,
    /// A bit for each class that the drive supports.
    pub supported_classes: u8,
}

/// Media event descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaEvent {
    /// The event.
    pub code: MediaEventCode,
    /// A medium is in the drive.
    pub media_present: bool,
    /// The tray is open.
    pub tray_open: bool,
    /// First slot of a changer.
    pub start_slot: u8,
    /// Last slot of a changer.
    pub end_slot: u8,
}

impl EventHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            data_length: be16::<0, _>(whole),
            no_event_available: bit::<7>(whole[2]),
            class: bits::<2, 0>(whole[2]).into(),
            supported_classes: whole[3],
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.data_length.to_be_bytes();
        let class = set_bits::<2, 0>(self.class.into());
        [high, low, set_bit::<7>(self.no_event_available) | class, self.supported_classes]
    }
}

impl fmt::Display for EventHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {}, supported {:#04x}", self.class, self.supported_classes)
    }
}

impl MediaEvent {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            code: bits::<3, 0>(whole[0]).into(),
            media_present: bit::<1>(whole[1]),
            tray_open: bit::<0>(whole[1]),
            start_slot: whole[2],
            end_slot: whole[3],
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let status = set_bit::<1>(self.media_present) | set_bit::<0>(self.tray_open);
        [set_bits::<3, 0>(self.code.into()), status, self.start_slot, self.end_slot]
    }
}

impl fmt::Display for MediaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, media present {}, tray open {}", self.code, self.media_present, self.tray_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_medium_is_eight_bytes() {
        let header = EventHeader {
            data_length: 6,
            no_event_available: false,
            class: EventClass::Media,
            supported_classes: 0x10,
        };
        assert_eq!(header.encode(), [0, 6, 0x04, 0x10]);
        assert_eq!(EventHeader::decode(&[0, 6, 0x04, 0x10]), Ok(header));
        let event = MediaEvent {
            code: MediaEventCode::NewMedia,
            media_present: true,
            tray_open: false,
            start_slot: 0,
            end_slot: 0,
        };
        assert_eq!(event.encode(), [2, 2, 0, 0]);
        assert_eq!(MediaEvent::decode(&[2, 2, 0, 0]), Ok(event));
    }

    #[test]
    fn classes_are_bits() {
        assert_eq!(EventClass::Media.mask(), 0x10);
        assert_eq!(EventClass::None.mask(), 0x01);
        assert_eq!(EventClass::DeviceBusy.mask(), 0x40);
        assert_eq!(EventClass::Unknown(200).mask(), 1);
    }

    #[test]
    fn unknown_codes_survive_and_truncated_bytes_do_not() {
        assert_eq!(MediaEvent::decode(&[0x0f, 1, 2, 3]).unwrap().code, MediaEventCode::Unknown(15));
        assert!(EventHeader::decode(&[0, 0, 0x87, 0]).unwrap().no_event_available);
        for got in 0..4 {
            assert_eq!(MediaEvent::decode(&[0; 4][..got]), Err(DecodeError::Truncated { needed: 4, got }));
            assert_eq!(EventHeader::decode(&[0; 4][..got]), Err(DecodeError::Truncated { needed: 4, got }));
        }
    }
}
