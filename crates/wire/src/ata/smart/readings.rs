//! SMART READ DATA and SMART READ THRESHOLDS (ATA8-ACS clause 7.53.6; the attribute tables are SFF-8035i's).

use super::SelfTestStatus;
use crate::DecodeError;
use crate::ata::LBA_MASK;
use crate::ata::block::Block;
use core::fmt;

/// SMART data: readings of the device's health.
///
/// ```text
///    0..2    revision                           368..370  SMART capability
///    2..362  30 attributes of 12 bytes          370       error logging (0)
///  362       off-line status                    372       short self-test, minutes
///  363       self-test status                   373       extended self-test, minutes; FFh: see 375
///  364..366  off-line routine, seconds          374       conveyance self-test, minutes
///  367       off-line capability                375..377  extended self-test, minutes
///                                               511       checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmartReadings {
    /// Revision of the structure, 16 in most drives.
    pub revision: u16,
    /// The attributes; unused places have id 0.
    pub attributes: [Attribute; Attribute::COUNT],
    /// How the last off-line routine ended.
    pub offline_status: OfflineStatus,
    /// Whether the device starts off-line routines by itself.
    pub automatic_offline: bool,
    /// How the last self-test ended, or how far this one is.
    pub self_test: SelfTestStatus,
    /// Seconds that an off-line routine takes.
    pub offline_seconds: u16,
    /// Off-line routines and self-tests that the device supports.
    pub offline_capabilities: OfflineCapabilities,
    /// When readings are saved.
    pub capabilities: SmartCapabilities,
    /// Whether errors are logged.
    pub error_logging: bool,
    /// Minutes to wait for a short self-test.
    pub short_test_minutes: u8,
    /// Minutes to wait for an extended self-test.
    pub extended_test_minutes: u16,
    /// Minutes to wait for a conveyance self-test.
    pub conveyance_test_minutes: u8,
}

/// One reading.
///
/// ```text
///  0  id      1..3  flags      3  value      4  worst      5..11  raw      11  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Which; 0 for an unused place. The meaning of ids is custom, not standard.
    pub id: u8,
    /// Its kind.
    pub flags: AttributeFlags,
    /// Normalised, 1..=253; lower is worse.
    pub value: u8,
    /// The lowest value so far.
    pub worst: u8,
    /// 48 bits of the vendor's.
    pub raw: u64,
}

register_bits! {
    /// Kind of an attribute. Bits past the second are custom.
    pub struct AttributeFlags: u16 {
        /// Below its threshold the device is about to fail; otherwise it is merely old.
        PRE_FAILURE = 0x0001 => "pre-failure",
        /// Updated in normal operation, not only off-line.
        ONLINE = 0x0002 => "online",
        /// Is about performance.
        PERFORMANCE = 0x0004 => "performance",
        /// Is about an error rate.
        ERROR_RATE = 0x0008 => "error rate",
        /// Counts events.
        EVENT_COUNT = 0x0010 => "event count",
        /// Preserved across power cycles.
        SELF_PRESERVING = 0x0020 => "self-preserving",
    }
}

register_bits! {
    /// Off-line routines and self-tests, byte 367.
    pub struct OfflineCapabilities: u8 {
        /// SMART EXECUTE OFF-LINE IMMEDIATE.
        IMMEDIATE = 0x01 => "immediate",
        /// The device can start routines by itself.
        AUTOMATIC = 0x02 => "automatic",
        /// A new command aborts a routine, otherwise it is suspended.
        ABORTED_BY_COMMAND = 0x04 => "aborted by command",
        /// A routine reads the whole medium.
        READ_SCAN = 0x08 => "read scan",
        /// Short and extended self-tests.
        SELF_TEST = 0x10 => "self-test",
        /// Conveyance self-test.
        CONVEYANCE = 0x20 => "conveyance",
        /// Selective self-test.
        SELECTIVE = 0x40 => "selective",
    }
}

register_bits! {
    /// When readings are saved, bytes 368..370.
    pub struct SmartCapabilities: u16 {
        /// Before a power mode that stops the medium.
        SAVES_BEFORE_STANDBY = 0x0001 => "saves before standby",
        /// SMART ENABLE/DISABLE ATTRIBUTE AUTOSAVE.
        AUTOSAVE = 0x0002 => "autosave",
    }
}

code! {
    /// How the last off-line routine ended, byte 362 bits 6:0.
    pub enum OfflineStatus: u8 {
        /// There was none.
        NeverStarted = 0x00 => "never started",
        /// To its end.
        Completed = 0x02 => "completed",
        /// Not yet.
        InProgress = 0x03 => "in progress",
        /// A command came.
        SuspendedByHost = 0x04 => "suspended by the host",
        /// A command came.
        AbortedByHost = 0x05 => "aborted by the host",
        /// A fatal error came.
        AbortedByDevice = 0x06 => "aborted by the device",
    }
}

impl Attribute {
    /// Places in the table.
    pub const COUNT: usize = 30;
    /// An unused place.
    pub const UNUSED: Self = Self { id: 0, flags: AttributeFlags::EMPTY, value: 0, worst: 0, raw: 0 };

    /// A table with the first 30 of these, the rest unused.
    pub fn table(attributes: &[Self]) -> [Self; Self::COUNT] {
        let mut table = [Self::UNUSED; Self::COUNT];
        for (place, attribute) in table.iter_mut().zip(attributes) {
            *place = *attribute;
        }
        table
    }

    fn decode([id, f0, f1, value, worst, r0, r1, r2, r3, r4, r5, _]: [u8; 12]) -> Self {
        let flags = u16::from_le_bytes([f0, f1]).into();
        Self { id, flags, value, worst, raw: u64::from_le_bytes([r0, r1, r2, r3, r4, r5, 0, 0]) }
    }

    fn encode(&self) -> [u8; 12] {
        let [f0, f1] = u16::from(self.flags).to_le_bytes();
        let [r0, r1, r2, r3, r4, r5, ..] = (self.raw & LBA_MASK).to_le_bytes();
        [self.id, f0, f1, self.value, self.worst, r0, r1, r2, r3, r4, r5, 0]
    }
}

impl SmartReadings {
    /// Bytes on the wire.
    pub const LEN: usize = 512;

    /// The attributes that are there.
    pub fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.id != 0)
    }

    /// Decodes a block; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let mut attributes = [Attribute::UNUSED; Attribute::COUNT];
        for (place, entry) in attributes.iter_mut().zip(block.bytes::<2, 360>().as_chunks::<12>().0) {
            *place = Attribute::decode(*entry);
        }
        Ok(Self {
            revision: block.le16::<0>(),
            attributes,
            offline_status: (block.u8::<362>() & 0x7f).into(),
            automatic_offline: block.u8::<362>() & 0x80 != 0,
            self_test: block.u8::<363>().into(),
            offline_seconds: block.le16::<364>(),
            offline_capabilities: block.u8::<367>().into(),
            capabilities: block.le16::<368>().into(),
            error_logging: block.u8::<370>() & 0x01 != 0,
            short_test_minutes: block.u8::<372>(),
            extended_test_minutes: match block.u8::<373>() {
                0xff => block.le16::<375>(),
                minutes => minutes.into(),
            },
            conveyance_test_minutes: block.u8::<374>(),
        })
    }

    /// The bytes of the block.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 360];
        for (place, attribute) in table.as_chunks_mut::<12>().0.iter_mut().zip(&self.attributes) {
            *place = attribute.encode();
        }
        let automatic = if self.automatic_offline { 0x80 } else { 0 };
        block.put::<0, 2>(self.revision.to_le_bytes());
        block.put::<2, 360>(table);
        block.put::<362, 1>([u8::from(self.offline_status) & 0x7f | automatic]);
        block.put::<363, 1>([self.self_test.into()]);
        block.put::<364, 2>(self.offline_seconds.to_le_bytes());
        block.put::<367, 1>([self.offline_capabilities.into()]);
        block.put::<368, 2>(u16::from(self.capabilities).to_le_bytes());
        block.put::<370, 1>([self.error_logging.into()]);
        block.put::<372, 1>([self.short_test_minutes]);
        match u8::try_from(self.extended_test_minutes) {
            Ok(minutes) if minutes != 0xff => block.put::<373, 1>([minutes]),
            _ => {
                block.put::<373, 1>([0xff]);
                block.put::<375, 2>(self.extended_test_minutes.to_le_bytes());
            }
        }
        block.put::<374, 1>([self.conveyance_test_minutes]);
        block.summed()
    }
}

/// Below which value of an attribute the device is about to fail, or old (obsolete, and still read).
///
/// ```text
///  0..2  revision      2..362  30 thresholds of 12 bytes: id, threshold, reserved      511  checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmartThresholds {
    /// Revision of the structure.
    pub revision: u16,
    /// In the order of the attributes; unused places have id 0.
    pub thresholds: [AttributeThreshold; Attribute::COUNT],
}

/// The limit of one attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeThreshold {
    /// Which attribute; 0 for an unused place.
    pub id: u8,
    /// A value at or below it is a failure; 0 never is.
    pub threshold: u8,
}

impl SmartThresholds {
    /// Bytes on the wire.
    pub const LEN: usize = 512;

    /// The threshold of an attribute.
    pub fn threshold(&self, id: u8) -> Option<u8> {
        self.thresholds.iter().find(|entry| entry.id == id && id != 0).map(|entry| entry.threshold)
    }

    /// Decodes a block; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let mut thresholds = [AttributeThreshold::default(); Attribute::COUNT];
        for (place, entry) in thresholds.iter_mut().zip(block.bytes::<2, 360>().as_chunks::<12>().0) {
            let [id, threshold, ..] = *entry;
            *place = AttributeThreshold { id, threshold };
        }
        Ok(Self { revision: block.le16::<0>(), thresholds })
    }

    /// The bytes of the block.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 360];
        for (place, entry) in table.as_chunks_mut::<12>().0.iter_mut().zip(&self.thresholds) {
            *place = [entry.id, entry.threshold, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        }
        block.put::<0, 2>(self.revision.to_le_bytes());
        block.put::<2, 360>(table);
        block.summed()
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, value, worst, raw, .. } = self;
        write!(f, "attribute {id}: value {value} worst {worst} raw {raw}")
    }
}

impl fmt::Display for SmartReadings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SMART readings, {} attributes, self-test {}", self.attributes().count(), self.self_test)
    }
}

impl fmt::Display for SmartThresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.thresholds.iter().filter(|entry| entry.id != 0).count();
        write!(f, "SMART thresholds of {count} attributes")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::ata::SelfTestOutcome;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Power-on hours in place 0, temperature in place 29.
    fn block() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..14].copy_from_slice(&[16, 0, 9, 0x32, 0, 100, 99, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0]);
        bytes[350..361].copy_from_slice(&[194, 0x22, 0, 64, 50, 36, 0, 0, 0, 0, 0]);
        bytes[362..371].copy_from_slice(&[0x82, 0xf4, 0x2c, 0x01, 0, 0x5b, 0x03, 0x00, 0x01]);
        bytes[372..377].copy_from_slice(&[2, 0xff, 5, 0x58, 0x02]);
        bytes[511] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let readings = SmartReadings::decode(&block()).unwrap();
        let hours = readings.attributes().next().unwrap();
        assert_eq!((hours.id, hours.value, hours.worst, hours.raw), (9, 100, 99, 0x1122_3344_5566));
        assert!(hours.flags.has(AttributeFlags::SELF_PRESERVING));
        assert_eq!(readings.attributes[29].id, 194);
        assert_eq!(readings.offline_status, OfflineStatus::Completed);
        assert!(readings.automatic_offline);
        assert_eq!(readings.self_test.outcome, SelfTestOutcome::InProgress);
        assert_eq!(readings.self_test.remaining_tenths, 4);
        assert_eq!(readings.offline_seconds, 300);
        assert!(readings.offline_capabilities.has(OfflineCapabilities::SELECTIVE));
        assert!(readings.capabilities.has(SmartCapabilities::AUTOSAVE));
        assert!(readings.error_logging);
        assert_eq!((readings.short_test_minutes, readings.conveyance_test_minutes), (2, 5));
        assert_eq!(readings.extended_test_minutes, 600);
        assert_eq!(readings.encode(), block());
        assert_eq!(hours.to_string(), "attribute 9: value 100 worst 99 raw 18838586676582");
        assert_eq!(readings.to_string(), "SMART readings, 2 attributes, self-test in progress, 40 % left");
    }

    #[test]
    fn an_extended_test_of_four_hours_needs_one_byte() {
        let mut readings = SmartReadings::decode(&block()).unwrap();
        readings.extended_test_minutes = 254;
        assert_eq!(readings.encode()[373..377], [254, 5, 0, 0]);
        readings.extended_test_minutes = 255;
        assert_eq!(readings.encode()[373..377], [255, 5, 255, 0]);
    }

    #[test]
    fn thresholds_both_ways() {
        let mut bytes = [0; 512];
        bytes[..4].copy_from_slice(&[16, 0, 5, 36]);
        bytes[350..352].copy_from_slice(&[194, 1]);
        bytes[511] = 4; // 256 - (16 + 5 + 36 + 194 + 1)
        let thresholds = SmartThresholds::decode(&bytes).unwrap();
        assert_eq!(thresholds.threshold(5), Some(36));
        assert_eq!(thresholds.threshold(194), Some(1));
        assert_eq!((thresholds.threshold(9), thresholds.threshold(0)), (None, None));
        assert_eq!(thresholds.encode(), bytes);
        assert_eq!(thresholds.to_string(), "SMART thresholds of 2 attributes");
    }

    #[test]
    fn a_wrong_checksum_is_an_error() {
        let mut bytes = block();
        bytes[5] ^= 1;
        let error = DecodeError::Invalid { field: "checksum", value: bytes[511].into() };
        assert_eq!(SmartReadings::decode(&bytes), Err(error));
        assert_eq!(SmartThresholds::decode(&bytes), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = DecodeError::Truncated { needed: 512, got };
            assert_eq!(SmartReadings::decode(&block()[..got]), Err(error));
            assert_eq!(SmartThresholds::decode(&block()[..got]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(mut bytes in prop::collection::vec(any::<u8>(), 512)) {
            bytes[511] = bytes[..511].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
            let readings = SmartReadings::decode(&bytes).unwrap();
            prop_assert_eq!(SmartReadings::decode(&readings.encode()).unwrap(), readings);
            let thresholds = SmartThresholds::decode(&bytes).unwrap();
            prop_assert_eq!(SmartThresholds::decode(&thresholds.encode()).unwrap(), thresholds);
        }
    }
}
