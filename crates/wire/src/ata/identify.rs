//! IDENTIFY DEVICE (ACS-4 clause 7.13.6): 256 words about a disk.
//!
//! The fields here are what a disk on USB is asked for and a host looks at. Written words beyond them are
//! those of a plain disk that has nothing special: LBA and DMA, power management, fixed medium, all transfer
//! modes. Left out: security, power levels, streaming, cylinders past the customary 16383/16/63, and words
//! that a reader here has no field for.

use super::block::Block;
use super::{AtaText, LBA_MASK};
use crate::DecodeError;
use core::fmt;

/// Identity and capabilities of a disk.
///
/// ```text
///  10..20  serial       60..62    LBA28 sectors       100..104  LBA48 sectors     168  form factor
///  23..27  firmware     69        after TRIM          105       TRIM blocks       169  TRIM
///  27..47  model        75..78    queue depth, SATA   106       sector layout     209  alignment
///                       80..82    versions            108..112  world wide name   217  rotation rate
///                       82..88    features            117..119  sector size       255  checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifyDevice {
    /// Serial number.
    pub serial: AtaText<20>,
    /// Firmware revision.
    pub firmware: AtaText<8>,
    /// Model number.
    pub model: AtaText<40>,
    /// Logical sectors that can be addressed: up to 2^28 - 1, or 2^48 - 1 with `lba48`.
    pub sectors: u64,
    /// Whether the 48-bit address feature set is there.
    pub lba48: bool,
    /// How long sectors are and how they lie on the medium.
    pub sector: SectorLayout,
    /// The Serial ATA link, `None` for a parallel one.
    pub sata: Option<SataLink>,
    /// How fast the medium turns.
    pub rotation: RotationRate,
    /// How big the case is.
    pub form_factor: FormFactor,
    /// DATA SET MANAGEMENT with TRIM.
    pub trim: Option<Trim>,
    /// SMART.
    pub smart: Feature,
    /// SMART error logs.
    pub smart_error_log: bool,
    /// SMART self-tests.
    pub smart_self_test: bool,
    /// Volatile write cache.
    pub write_cache: Feature,
    /// Read look-ahead.
    pub look_ahead: Feature,
    /// FLUSH CACHE.
    pub flush_cache: bool,
    /// FLUSH CACHE EXT.
    pub flush_cache_ext: bool,
    /// WRITE DMA FUA EXT.
    pub fua: bool,
    /// READ LOG EXT and its like.
    pub general_purpose_logging: bool,
    /// World wide name: NAA 5 in the upper four bits.
    pub wwn: Option<u64>,
    /// A bit for each major version: 8 ATA8-ACS, 9 ACS-2, 10 ACS-3, 11 ACS-4; 0 if not reported.
    pub major_version: u16,
    /// Which document exactly; 0 if not reported.
    pub minor_version: u16,
}

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Not there.
    Absent,
    /// There, and off.
    Off,
    /// There, and on.
    On,
}

/// Sectors, logical and physical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorLayout {
    /// Bytes in a logical sector: even, 512 at least.
    pub bytes: u32,
    /// 2^n logical sectors are in a physical one, 0..=15.
    pub per_physical_exponent: u8,
    /// Logical sectors from the begin of a physical sector to LBA 0, 14 bits.
    pub first_offset: u16,
}

/// A Serial ATA link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SataLink {
    /// The fastest that the device can.
    pub fastest: SataSpeed,
    /// Negotiated speed, if the device reports it.
    pub current: Option<SataSpeed>,
    /// Commands that native queueing holds, 1..=32, if there is queueing.
    pub queue_depth: Option<u8>,
}

/// Speed of a Serial ATA link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SataSpeed {
    /// 1.5 Gbit/s.
    Gen1 = 1,
    /// 3 Gbit/s.
    Gen2 = 2,
    /// 6 Gbit/s.
    Gen3 = 3,
}

/// TRIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Data that reads of trimmed sectors return.
    pub reads_as: AfterTrim,
    /// Blocks of 512 bytes in one command; 0 if not reported.
    pub blocks_max: u16,
}

/// Data that reads of trimmed sectors return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTrim {
    /// Anything; may differ at each read.
    Indeterminate,
    /// Anything, always the same (DRAT).
    Deterministic,
    /// Zeroes (RZAT).
    Zeroes,
}

/// Nominal rotation rate, word 217.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationRate {
    /// The device does not say.
    NotReported,
    /// It does not turn.
    NonRotating,
    /// Turns in a minute, 0401h..=FFFEh.
    Rpm(u16),
    /// A reserved value.
    Reserved(u16),
}

impl From<u16> for RotationRate {
    fn from(word: u16) -> Self {
        match word {
            0x0000 => Self::NotReported,
            0x0001 => Self::NonRotating,
            0x0401..=0xfffe => Self::Rpm(word),
            _ => Self::Reserved(word),
        }
    }
}

impl From<RotationRate> for u16 {
    fn from(rate: RotationRate) -> u16 {
        match rate {
            RotationRate::NotReported => 0x0000,
            RotationRate::NonRotating => 0x0001,
            RotationRate::Rpm(word) | RotationRate::Reserved(word) => word,
        }
    }
}

code! {
    /// Nominal form factor, word 168 bits 3:0.
    pub enum FormFactor: u8 {
        /// The device does not say.
        NotReported = 0x0 => "not reported",
        /// 5.25 inches.
        Inch5_25 = 0x1 => "5.25 inch",
        /// 3.5 inches.
        Inch3_5 = 0x2 => "3.5 inch",
        /// 2.5 inches.
        Inch2_5 = 0x3 => "2.5 inch",
        /// 1.8 inches.
        Inch1_8 = 0x4 => "1.8 inch",
        /// Less than that.
        Smaller = 0x5 => "less than 1.8 inch",
        /// mSATA.
        MSata = 0x6 => "mSATA",
        /// M.2.
        M2 = 0x7 => "M.2",
        /// MicroSSD.
        MicroSsd = 0x8 => "MicroSSD",
        /// CFast.
        CFast = 0x9 => "CFast",
    }
}

impl Default for IdentifyDevice {
    /// An ACS-4 disk on a 6 Gbit/s link without sectors, names and optional features.
    fn default() -> Self {
        Self {
            serial: AtaText::new(""),
            firmware: AtaText::new(""),
            model: AtaText::new(""),
            sectors: 0,
            lba48: true,
            sector: SectorLayout { bytes: 512, per_physical_exponent: 0, first_offset: 0 },
            sata: Some(SataLink { fastest: SataSpeed::Gen3, current: None, queue_depth: None }),
            rotation: RotationRate::NotReported,
            form_factor: FormFactor::NotReported,
            trim: None,
            smart: Feature::Absent,
            smart_error_log: false,
            smart_self_test: false,
            write_cache: Feature::Absent,
            look_ahead: Feature::Absent,
            flush_cache: true,
            flush_cache_ext: true,
            fua: false,
            general_purpose_logging: false,
            wwn: None,
            major_version: 0x0ff0,
            minor_version: 0,
        }
    }
}

/// A word whose bits 15:14 must be 01b for the rest to count.
const VALID: u16 = 0x4000;
/// The last LBA count that 28 bits can say.
const LBA28_MAX: u64 = 0x0fff_ffff;

impl IdentifyDevice {
    /// Bytes on the wire.
    pub const LEN: usize = 512;

    /// Decodes the words; bytes past [`Self::LEN`] are ignored. The checksum counts if there is one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode(bytes)?;
        let checksum = block.word::<255>();
        if checksum & 0x00ff == 0xa5 && block.sum() != 0 {
            return Err(DecodeError::Invalid { field: "checksum", value: checksum.into() });
        }
        let configuration = block.word::<0>();
        if configuration & 0x8000 != 0 {
            return Err(DecodeError::Invalid { field: "general configuration", value: configuration.into() });
        }
        let [supported_82, supported_83] = match valid(block.word::<83>()) {
            0 => [0, 0],
            word => [block.word::<82>(), word],
        };
        let supported_84 = valid(block.word::<84>());
        let [enabled_85, enabled_87] = match valid(block.word::<87>()) {
            0 => [0, 0],
            word => [block.word::<85>(), word],
        };
        let feature = |bit| match (supported_82 & bit != 0, enabled_85 & bit != 0) {
            (false, _) => Feature::Absent,
            (true, false) => Feature::Off,
            (true, true) => Feature::On,
        };
        let lba48 = supported_83 & LBA48 != 0;
        Ok(Self {
            serial: AtaText::decode(block.bytes::<20, 20>()),
            firmware: AtaText::decode(block.bytes::<46, 8>()),
            model: AtaText::decode(block.bytes::<54, 40>()),
            sectors: match lba48 {
                true => u64::from_le_bytes(block.bytes::<200, 8>()) & LBA_MASK,
                false => u64::from(u32::from_le_bytes(block.bytes::<120, 4>())) & LBA28_MAX,
            },
            lba48,
            sector: decode_sector(&block)?,
            sata: decode_sata(&block),
            rotation: block.word::<217>().into(),
            form_factor: (block.word::<168>() as u8 & 0x0f).into(),
            trim: decode_trim(&block),
            smart: feature(SMART),
            smart_error_log: supported_84 & SMART_ERROR_LOG != 0,
            smart_self_test: supported_84 & SMART_SELF_TEST != 0,
            write_cache: feature(WRITE_CACHE),
            look_ahead: feature(LOOK_AHEAD),
            flush_cache: supported_83 & FLUSH_CACHE != 0,
            flush_cache_ext: supported_83 & FLUSH_CACHE_EXT != 0,
            fua: supported_84 & FUA != 0,
            general_purpose_logging: supported_84 & GENERAL_PURPOSE_LOGGING != 0,
            wwn: (enabled_87 & WWN != 0).then(|| decode_wwn(&block)),
            major_version: reported(block.word::<80>()),
            minor_version: reported(block.word::<81>()),
        })
    }

    /// The bytes of all words, with the checksum.
    ///
    /// Values past what a field's words can say are cut to it; see the fields.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        self.encode_plain_disk(&mut block);
        block.put::<20, 20>(self.serial.encode());
        block.put::<46, 8>(self.firmware.encode());
        block.put::<54, 40>(self.model.encode());
        self.encode_capacity(&mut block);
        self.encode_features(&mut block);
        if let Some(link) = self.sata {
            encode_sata(link, &mut block);
        }
        if let Some(trim) = self.trim {
            block.set_word::<69>(match trim.reads_as {
                AfterTrim::Indeterminate => 0,
                AfterTrim::Deterministic => DRAT,
                AfterTrim::Zeroes => DRAT | RZAT,
            });
            block.set_word::<105>(trim.blocks_max);
            block.set_word::<169>(0x0001);
        }
        block.set_word::<80>(self.major_version);
        block.set_word::<81>(self.minor_version);
        block.set_word::<168>(u16::from(u8::from(self.form_factor)) & 0x0f);
        block.set_word::<217>(self.rotation.into());
        block.set_word::<255>(0x00a5);
        block.summed()
    }

    /// Words that say what every disk says.
    fn encode_plain_disk(&self, block: &mut Block) {
        block.set_word::<0>(0x0040); // ATA, fixed
        block.set_word::<2>(0xc837); // complete without spin-up
        block.set_word::<47>(0x8001); // one sector in a PIO block
        block.set_word::<49>(0x2f00); // standard timers, IORDY, LBA, DMA
        block.set_word::<50>(VALID);
        block.set_word::<53>(0x0006); // words 64 to 70 and 88 count
        block.set_word::<63>(0x0007); // multiword DMA modes 0 to 2
        block.set_word::<64>(0x0003); // PIO modes 3 and 4
        block.set_word::<65>(120); // cycle times in ns
        block.set_word::<66>(120);
        block.set_word::<67>(120);
        block.set_word::<68>(120);
        block.set_word::<88>(0x407f); // Ultra DMA modes 0 to 6, 6 selected
    }

    fn encode_capacity(&self, block: &mut Block) {
        let lba28 = self.sectors.min(LBA28_MAX);
        let cylinders = (lba28 / (16 * 63)).min(16383);
        block.set_word::<1>(cylinders as u16);
        block.set_word::<3>(16);
        block.set_word::<6>(63);
        block.put::<120, 4>((lba28 as u32).to_le_bytes());
        if self.lba48 {
            block.put::<200, 8>(self.sectors.min(LBA_MASK).to_le_bytes());
        }
        let SectorLayout { bytes, per_physical_exponent: exponent, first_offset } = self.sector;
        let exponent = u16::from(exponent & 0x0f);
        let (several, long) = (u16::from(exponent != 0) << 13, u16::from(bytes != 512) << 12);
        block.set_word::<106>(VALID | several | long | exponent);
        if bytes != 512 {
            block.put::<234, 4>((bytes / 2).to_le_bytes());
        }
        block.set_word::<209>(VALID | first_offset & 0x3fff);
    }

    fn encode_features(&self, block: &mut Block) {
        let when = |set, bits| if set { bits } else { 0 };
        let switched = [(self.smart, SMART), (self.write_cache, WRITE_CACHE), (self.look_ahead, LOOK_AHEAD)];
        let (mut supported, mut enabled) = (POWER_MANAGEMENT, POWER_MANAGEMENT);
        for (feature, bit) in switched {
            supported |= when(feature != Feature::Absent, bit);
            enabled |= when(feature == Feature::On, bit);
        }
        let commands = when(self.lba48, LBA48)
            | when(self.flush_cache, FLUSH_CACHE)
            | when(self.flush_cache_ext, FLUSH_CACHE_EXT);
        let logs = when(self.smart_error_log, SMART_ERROR_LOG)
            | when(self.smart_self_test, SMART_SELF_TEST)
            | when(self.general_purpose_logging, GENERAL_PURPOSE_LOGGING)
            | when(self.fua, FUA)
            | when(self.wwn.is_some(), WWN);
        block.set_word::<82>(supported);
        block.set_word::<83>(VALID | commands);
        block.set_word::<84>(VALID | logs);
        block.set_word::<85>(enabled);
        block.set_word::<86>(commands);
        block.set_word::<87>(VALID | logs);
        if let Some(wwn) = self.wwn {
            let [a, b, c, d, e, f, g, h] = wwn.to_be_bytes();
            block.put::<216, 8>([b, a, d, c, f, e, h, g]);
        }
    }
}

/// Words 82 and 85.
const SMART: u16 = 0x0001;
const POWER_MANAGEMENT: u16 = 0x0008;
const WRITE_CACHE: u16 = 0x0020;
const LOOK_AHEAD: u16 = 0x0040;
/// Words 83 and 86.
const LBA48: u16 = 0x0400;
const FLUSH_CACHE: u16 = 0x1000;
const FLUSH_CACHE_EXT: u16 = 0x2000;
/// Words 84 and 87.
const SMART_ERROR_LOG: u16 = 0x0001;
const SMART_SELF_TEST: u16 = 0x0002;
const GENERAL_PURPOSE_LOGGING: u16 = 0x0020;
const FUA: u16 = 0x0040;
const WWN: u16 = 0x0100;
/// Word 69.
const RZAT: u16 = 0x0020;
const DRAT: u16 = 0x4000;
/// Word 76.
const NATIVE_QUEUEING: u16 = 0x0100;

/// The word if its bits 15:14 are 01b, otherwise 0.
const fn valid(word: u16) -> u16 {
    if word & 0xc000 == VALID { word } else { 0 }
}

/// FFFFh means not reported, as 0 does.
const fn reported(word: u16) -> u16 {
    if word == 0xffff { 0 } else { word }
}

fn decode_sector(block: &Block) -> Result<SectorLayout, DecodeError> {
    let layout = valid(block.word::<106>());
    let bytes = match layout & 0x1000 {
        0 => 512,
        _ => {
            let words = u32::from_le_bytes(block.bytes::<234, 4>());
            let wrong = DecodeError::Invalid { field: "logical sector size", value: words.into() };
            words.checked_mul(2).filter(|&bytes| bytes >= 512).ok_or(wrong)?
        }
    };
    let per_physical_exponent = if layout & 0x2000 == 0 { 0 } else { layout as u8 & 0x0f };
    Ok(SectorLayout { bytes, per_physical_exponent, first_offset: valid(block.word::<209>()) & 0x3fff })
}

fn decode_sata(block: &Block) -> Option<SataLink> {
    let capabilities = reported(block.word::<76>());
    let fastest = match capabilities & 0x000e {
        0 => return None,
        bits if bits & 0x0008 != 0 => SataSpeed::Gen3,
        bits if bits & 0x0004 != 0 => SataSpeed::Gen2,
        _ => SataSpeed::Gen1,
    };
    let current = match reported(block.word::<77>()) >> 1 & 0x07 {
        1 => Some(SataSpeed::Gen1),
        2 => Some(SataSpeed::Gen2),
        3 => Some(SataSpeed::Gen3),
        _ => None,
    };
    let queueing = capabilities & NATIVE_QUEUEING != 0;
    let queue_depth = queueing.then_some((block.word::<75>() as u8 & 0x1f) + 1);
    Some(SataLink { fastest, current, queue_depth })
}

fn encode_sata(link: SataLink, block: &mut Block) {
    let mut capabilities = match link.fastest {
        SataSpeed::Gen1 => 0x0002,
        SataSpeed::Gen2 => 0x0006,
        SataSpeed::Gen3 => 0x000e,
    };
    if let Some(depth) = link.queue_depth {
        capabilities |= NATIVE_QUEUEING;
        block.set_word::<75>(u16::from(depth.clamp(1, 32) - 1));
    }
    block.set_word::<76>(capabilities);
    block.set_word::<77>(link.current.map_or(0, |speed| (speed as u16) << 1));
    block.set_word::<222>(0x107f); // serial transport, up to SATA 3.1
}

fn decode_trim(block: &Block) -> Option<Trim> {
    let support = block.word::<69>();
    let reads_as = match (support & DRAT != 0, support & RZAT != 0) {
        (false, _) => AfterTrim::Indeterminate,
        (true, false) => AfterTrim::Deterministic,
        (true, true) => AfterTrim::Zeroes,
    };
    let supported = block.word::<169>() & 0x0001 != 0;
    supported.then(|| Trim { reads_as, blocks_max: block.word::<105>() })
}

fn decode_wwn(block: &Block) -> u64 {
    let [b, a, d, c, f, e, h, g] = block.bytes::<216, 8>();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

impl fmt::Display for IdentifyDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, serial, firmware, sectors, sector, .. } = self;
        write!(
            f,
            "{model}, serial {serial}, firmware {firmware}, {sectors} sectors of {} bytes",
            sector.bytes
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn drive() -> IdentifyDevice {
        IdentifyDevice {
            serial: AtaText::new("S1"),
            firmware: AtaText::new("1.02"),
            model: AtaText::new("Virtual SSD"),
            sectors: 0x0001_2345_6789,
            sector: SectorLayout { bytes: 512, per_physical_exponent: 3, first_offset: 1 },
            sata: Some(SataLink {
                fastest: SataSpeed::Gen3,
                current: Some(SataSpeed::Gen2),
                queue_depth: Some(32),
            }),
            rotation: RotationRate::NonRotating,
            form_factor: FormFactor::Inch2_5,
            trim: Some(Trim { reads_as: AfterTrim::Zeroes, blocks_max: 8 }),
            smart: Feature::On,
            smart_error_log: true,
            smart_self_test: true,
            write_cache: Feature::Off,
            look_ahead: Feature::On,
            fua: true,
            general_purpose_logging: true,
            wwn: Some(0x5001_2345_6789_abcd),
            ..IdentifyDevice::default()
        }
    }

    fn word(bytes: &[u8; 512], index: usize) -> u16 {
        u16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]])
    }

    fn summed(mut bytes: [u8; 512]) -> [u8; 512] {
        bytes[511] = bytes[..511].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        bytes
    }

    #[test]
    fn words_are_where_the_standard_has_them() {
        let bytes = drive().encode();
        let words = [
            (0, 0x0040),
            (10, 0x5331), // "S1"
            (23, 0x312e), // "1."
            (27, 0x5669), // "Vi"
            (60, 0xffff), // more than 28 bits can say
            (61, 0x0fff),
            (69, 0x4020),
            (75, 31),
            (76, 0x010e),
            (77, 0x0004),
            (80, 0x0ff0),
            (82, 0x0069),
            (83, 0x7400),
            (84, 0x4163),
            (85, 0x0049),
            (86, 0x3400),
            (87, 0x4163),
            (100, 0x6789),
            (101, 0x2345),
            (102, 0x0001),
            (103, 0),
            (105, 8),
            (106, 0x6003),
            (108, 0x5001),
            (109, 0x2345),
            (110, 0x6789),
            (111, 0xabcd),
            (117, 0),
            (168, 3),
            (169, 1),
            (209, 0x4001),
            (217, 1),
            (222, 0x107f),
        ];
        for (index, value) in words {
            assert_eq!(word(&bytes, index), value, "word {index}");
        }
        assert_eq!(bytes[510], 0xa5);
        assert_eq!(bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
    }

    #[test]
    fn the_fields_come_back() {
        assert_eq!(IdentifyDevice::decode(&drive().encode()), Ok(drive()));
        let shown = "Virtual SSD, serial S1, firmware 1.02, 4886718345 sectors of 512 bytes";
        assert_eq!(drive().to_string(), shown);
    }

    #[test]
    fn long_sectors_are_counted_in_words() {
        let sector = SectorLayout { bytes: 4096, per_physical_exponent: 0, first_offset: 0 };
        let bytes = IdentifyDevice { sector, ..drive() }.encode();
        assert_eq!((word(&bytes, 106), word(&bytes, 117), word(&bytes, 118)), (0x5000, 2048, 0));
        assert_eq!(IdentifyDevice::decode(&bytes).unwrap().sector, sector);
    }

    #[test]
    fn a_sector_shorter_than_512_bytes_is_refused() {
        let sector = SectorLayout { bytes: 4096, per_physical_exponent: 0, first_offset: 0 };
        let mut bytes = IdentifyDevice { sector, ..drive() }.encode();
        bytes[234..238].copy_from_slice(&[255, 0, 0, 0]);
        let error = DecodeError::Invalid { field: "logical sector size", value: 255 };
        assert_eq!(IdentifyDevice::decode(&summed(bytes)), Err(error));
        bytes[234..238].copy_from_slice(&[0, 0, 0, 0x80]);
        assert!(IdentifyDevice::decode(&summed(bytes)).is_err());
    }

    #[test]
    fn without_lba48_there_are_28_bits() {
        let small = IdentifyDevice { sectors: 0x0123_4567, lba48: false, ..drive() };
        let bytes = small.encode();
        assert_eq!((word(&bytes, 60), word(&bytes, 61), word(&bytes, 100)), (0x4567, 0x0123, 0));
        assert_eq!(IdentifyDevice::decode(&bytes), Ok(small));
    }

    #[test]
    fn a_wrong_checksum_is_reported_and_a_missing_one_is_not() {
        let mut bytes = drive().encode();
        bytes[100] ^= 1;
        let error = DecodeError::Invalid { field: "checksum", value: word(&bytes, 255).into() };
        assert_eq!(IdentifyDevice::decode(&bytes), Err(error));
        bytes[510..].copy_from_slice(&[0, 0]);
        assert_eq!(IdentifyDevice::decode(&bytes), Ok(drive()));
    }

    #[test]
    fn a_packet_device_is_no_disk() {
        let mut bytes = [0; 512];
        bytes[1] = 0x85;
        let error = DecodeError::Invalid { field: "general configuration", value: 0x8500 };
        assert_eq!(IdentifyDevice::decode(&bytes), Err(error));
    }

    #[test]
    fn words_that_are_not_valid_do_not_count() {
        let mut bytes = drive().encode();
        for index in [83, 84, 87, 106, 209] {
            bytes[2 * index + 1] |= 0xc0; // 11b, as of a bus without a device
        }
        let drive = IdentifyDevice::decode(&summed(bytes)).unwrap();
        assert_eq!((drive.smart, drive.lba48, drive.fua, drive.wwn), (Feature::Absent, false, false, None));
        assert_eq!(drive.sector, SectorLayout { bytes: 512, per_physical_exponent: 0, first_offset: 0 });
    }

    #[test]
    fn a_parallel_link_says_nothing_about_sata() {
        let parallel = IdentifyDevice { sata: None, ..drive() };
        let bytes = parallel.encode();
        assert_eq!((word(&bytes, 75), word(&bytes, 76), word(&bytes, 222)), (0, 0, 0));
        assert_eq!(IdentifyDevice::decode(&bytes), Ok(parallel));
    }

    #[test]
    fn every_rotation_rate_survives() {
        for word in [0, 1, 2, 0x400, 0x401, 7200, 0xfffe, 0xffff] {
            assert_eq!(u16::from(RotationRate::from(word)), word);
        }
        assert_eq!(RotationRate::from(7200), RotationRate::Rpm(7200));
        assert_eq!(RotationRate::from(0x400), RotationRate::Reserved(0x400));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let bytes = drive().encode();
        for got in 0..512 {
            let error = IdentifyDevice::decode(&bytes[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 512, got });
        }
    }

    proptest! {
        /// A value decoded from any bytes encodes to bytes that decode to the same value.
        #[test]
        fn decode_undoes_encode(bytes in prop::collection::vec(any::<u8>(), 512)) {
            if let Ok(drive) = IdentifyDevice::decode(&bytes) {
                prop_assert_eq!(IdentifyDevice::decode(&drive.encode()).unwrap(), drive);
            }
        }
    }
}
