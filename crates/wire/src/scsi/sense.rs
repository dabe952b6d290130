//! Sense data: why a command did not end GOOD, or what else there is to say (SPC-4 clause 4.5, SPC-5).
//!
//! One value, [`Sense`], and the two formats it is written in. Fixed format (70h, 71h) has 18 bytes and
//! 32-bit fields; descriptor format (72h, 73h) has 8 bytes and a list of typed descriptors. Both are
//! decoded as far as they go: a host may have room for fewer bytes than there are, and devices count badly.
//!
//! Left out: the field replaceable unit code, forwarded sense, the overflow bit, vendor descriptors and the
//! fixed-format packing of ATA registers when decoding (it is indistinguishable from an information field).

mod additional;

pub use additional::AdditionalSense;

use crate::ata::ResultRegisters;
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// Sense data: the report of a device about a command, or about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The class of the condition.
    pub key: SenseKey,
    /// The condition.
    pub additional: AdditionalSense,
    /// Deferred error of an earlier command that has already ended (response code 71h or 73h).
    pub deferred: bool,
    /// The INFORMATION field, if valid: for a medium error or a miscompare, the LBA or the offset.
    pub information: Option<u64>,
    /// The COMMAND-SPECIFIC INFORMATION field. Fixed format has no valid bit: its zero decodes as `None`.
    pub command_specific: Option<u64>,
    /// The three SENSE KEY SPECIFIC bytes, if valid.
    pub key_specific: Option<KeySpecific>,
    /// A filemark or setmark was read (tape).
    pub filemark: bool,
    /// End of medium (tape, printer).
    pub eom: bool,
    /// The length asked for is not the block's (READ LONG, tape).
    pub ili: bool,
    /// The registers of an ATA command passed through (SAT-4).
    pub ata_return: Option<AtaStatusReturn>,
}

/// The three bytes whose meaning the sense key chooses (SPC-4 clause 4.5.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySpecific {
    /// ILLEGAL REQUEST: the field at fault.
    FieldPointer {
        /// In the CDB, else in the parameter list.
        in_cdb: bool,
        /// Its first byte, from 0.
        byte: u16,
        /// Its leftmost bit 0..=7, where that is known.
        bit: Option<u8>,
    },
    /// NO SENSE and NOT READY: how far an operation is, in 1/65536.
    Progress(u16),
    /// RECOVERED ERROR, MEDIUM ERROR, HARDWARE ERROR: how often the device tried.
    ActualRetryCount(u16),
    /// UNIT ATTENTION: whether conditions were lost because too many waited.
    UnitAttentionOverflow(bool),
    /// Any other key: the bytes as they are, without the valid bit.
    Other([u8; 3]),
}

/// ATA registers after a command (SAT-4, ATA Status Return sense data descriptor).
///
/// ```text
///  0      type (09h)                    6, 8, 10  LBA (31:24), (39:32), (47:40)
///  1      length (0Ch)                  7, 9, 11  LBA (7:0), (15:8), (23:16)
///  2      EXTEND (0)                   12         DEVICE
///  3      ERROR                        13         STATUS
///  4..6   COUNT
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaStatusReturn {
    /// The command had 48-bit registers: the upper halves are valid.
    pub extend: bool,
    /// ERROR register.
    pub error: u8,
    /// COUNT register, both halves.
    pub count: u16,
    /// LBA registers: 48 bits.
    pub lba: u64,
    /// DEVICE register.
    pub device: u8,
    /// STATUS register.
    pub status: u8,
}

/// How sense data is laid out. A host chooses: D_SENSE in the Control mode page, DESC in REQUEST SENSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenseFormat {
    /// Response codes 70h and 71h.
    #[default]
    Fixed,
    /// Response codes 72h and 73h.
    Descriptor,
}

/// The class of a condition: four bits, all assigned but one (SPC-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the standard's and say it all")]
pub enum SenseKey {
    #[default]
    NoSense = 0x0,
    RecoveredError = 0x1,
    NotReady = 0x2,
    MediumError = 0x3,
    HardwareError = 0x4,
    IllegalRequest = 0x5,
    UnitAttention = 0x6,
    DataProtect = 0x7,
    BlankCheck = 0x8,
    VendorSpecific = 0x9,
    CopyAborted = 0xa,
    AbortedCommand = 0xb,
    Reserved = 0xc,
    VolumeOverflow = 0xd,
    Miscompare = 0xe,
    Completed = 0xf,
}

impl Sense {
    /// Bytes of fixed format.
    pub const FIXED_LEN: usize = 18;
    /// Bytes of descriptor format with every descriptor that this type writes.
    pub const DESCRIPTOR_LEN_MAX: usize = 8 + 12 + 12 + 8 + 4 + AtaStatusReturn::LEN;

    /// Sense data that says no more than the condition.
    pub const fn new(key: SenseKey, additional: AdditionalSense) -> Self {
        Self {
            key,
            additional,
            deferred: false,
            information: None,
            command_specific: None,
            key_specific: None,
            filemark: false,
            eom: false,
            ili: false,
            ata_return: None,
        }
    }

    /// Nothing to say.
    pub const NONE: Self = Self::new(SenseKey::NoSense, AdditionalSense::NO_ADDITIONAL_SENSE_INFORMATION);

    /// ILLEGAL REQUEST: the host asked for what the unit does not do.
    pub const fn illegal_request(additional: AdditionalSense) -> Self {
        Self::new(SenseKey::IllegalRequest, additional)
    }

    /// ILLEGAL REQUEST, INVALID FIELD IN CDB, with a pointer to the field.
    pub const fn invalid_field_in_cdb(byte: u16, bit: Option<u8>) -> Self {
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB)
            .with_key_specific(KeySpecific::FieldPointer { in_cdb: true, byte, bit })
    }

    /// ILLEGAL REQUEST, INVALID FIELD IN PARAMETER LIST, with a pointer to the field.
    pub const fn invalid_field_in_parameter_list(byte: u16, bit: Option<u8>) -> Self {
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST)
            .with_key_specific(KeySpecific::FieldPointer { in_cdb: false, byte, bit })
    }

    /// UNIT ATTENTION: something happened that every host must learn of.
    pub const fn unit_attention(additional: AdditionalSense) -> Self {
        Self::new(SenseKey::UnitAttention, additional)
    }

    /// NOT READY: the unit cannot get at the medium.
    pub const fn not_ready(additional: AdditionalSense) -> Self {
        Self::new(SenseKey::NotReady, additional)
    }

    /// MEDIUM ERROR at a block.
    pub const fn medium_error(additional: AdditionalSense, lba: u64) -> Self {
        Self::new(SenseKey::MediumError, additional).with_information(lba)
    }

    /// The same with an INFORMATION field.
    pub const fn with_information(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// The same with a COMMAND-SPECIFIC INFORMATION field.
    pub const fn with_command_specific(self, command_specific: u64) -> Self {
        Self { command_specific: Some(command_specific), ..self }
    }

    /// The same with SENSE KEY SPECIFIC bytes. The variant must be the one of the key.
    pub const fn with_key_specific(self, key_specific: KeySpecific) -> Self {
        Self { key_specific: Some(key_specific), ..self }
    }

    /// The same with ATA registers.
    pub const fn with_ata_return(self, ata_return: AtaStatusReturn) -> Self {
        Self { ata_return: Some(ata_return), ..self }
    }

    /// Writes the sense data, all of it, and says how many bytes that took.
    ///
    /// Fixed format has no room for information or command-specific fields past 32 bits: they are left out
    /// and VALID stays clear. ATA registers take the place of both fields (SAT-4).
    pub fn encode(&self, format: SenseFormat, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match format {
            SenseFormat::Fixed => writer.put(&self.fixed())?,
            SenseFormat::Descriptor => self.put_descriptors(&mut writer)?,
        }
        Ok(writer.written())
    }

    fn fixed(&self) -> [u8; Self::FIXED_LEN] {
        let mut valid = false;
        let mut information = [0; 4];
        let mut command_specific = self.command_specific.map_or([0; 4], |v| narrow(v).unwrap_or([0; 4]));
        if let Some(value) = self.information.and_then(narrow) {
            (valid, information) = (true, value);
        }
        if let Some(registers) = self.ata_return {
            valid = true;
            (information, command_specific) = registers.fixed();
        }
        let response_code = 0x70 | u8::from(self.deferred) | u8::from(valid) << 7;
        let [i0, i1, i2, i3] = information;
        let [c0, c1, c2, c3] = command_specific;
        let [s0, s1, s2] = self.key_specific.map_or([0; 3], KeySpecific::encode);
        let flags = self.flags() | u8::from(self.key);
        let AdditionalSense { asc, ascq } = self.additional;
        [response_code, 0, flags, i0, i1, i2, i3, 10, c0, c1, c2, c3, asc, ascq, 0, s0, s1, s2]
    }

    fn put_descriptors(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let start = writer.written();
        let AdditionalSense { asc, ascq } = self.additional;
        writer.put(&[0x72 | u8::from(self.deferred), self.key.into(), asc, ascq, 0, 0, 0, 0])?;
        if let Some(information) = self.information {
            writer.put(&[DescriptorType::Information.into(), 10, 0x80, 0])?;
            writer.be64(information)?;
        }
        if let Some(command_specific) = self.command_specific {
            writer.put(&[DescriptorType::CommandSpecific.into(), 10, 0, 0])?;
            writer.be64(command_specific)?;
        }
        if let Some(key_specific) = self.key_specific {
            let [s0, s1, s2] = key_specific.encode();
            writer.put(&[DescriptorType::SenseKeySpecific.into(), 6, 0, 0, s0, s1, s2, 0])?;
        }
        if self.filemark || self.eom {
            writer.put(&[DescriptorType::StreamCommands.into(), 2, 0, self.flags()])?;
        } else if self.ili {
            writer.put(&[DescriptorType::BlockCommands.into(), 2, 0, self.flags()])?;
        }
        if let Some(registers) = self.ata_return {
            writer.put(&registers.encode())?;
        }
        let additional_len = writer.written() - start - 8;
        writer.patch(start + 7, &[additional_len as u8])
    }

    /// FILEMARK, EOM and ILI where both formats have them: bits 7 to 5.
    fn flags(&self) -> u8 {
        u8::from(self.filemark) << 7 | u8::from(self.eom) << 6 | u8::from(self.ili) << 5
    }

    /// Decodes either format. Bytes cut off, by `bytes` or by the additional sense length, count as zero.
    ///
    /// At least the response code and the sense key must be there; unknown descriptors are skipped.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let response_code = Reader::new(bytes).u8()? & 0x7f;
        let mut sense = match response_code {
            0x70 | 0x71 => Self::decode_fixed(bytes)?,
            0x72 | 0x73 => Self::decode_descriptors(bytes)?,
            other => return Err(DecodeError::Invalid { field: "RESPONSE CODE", value: other.into() }),
        };
        sense.deferred = response_code & 1 != 0;
        Ok(sense)
    }

    fn decode_fixed(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some([response_code, _, flags]) = bytes.first_chunk::<3>() else {
            return Err(DecodeError::Truncated { needed: 3, got: bytes.len() });
        };
        let there = bytes.get(7).map_or(bytes.len(), |len| bytes.len().min(8 + usize::from(*len)));
        let mut whole = [0; Self::FIXED_LEN];
        for (place, byte) in whole.iter_mut().zip(bytes.iter().take(there)) {
            *place = *byte;
        }
        let key = SenseKey::from_bits(*flags);
        let mut sense = Self::new(key, AdditionalSense { asc: whole[12], ascq: whole[13] });
        // The field is whole or it is not there: half an LBA is another LBA.
        if response_code & 0x80 != 0 && there >= 7 {
            sense.information = Some(u32::from_be_bytes([whole[3], whole[4], whole[5], whole[6]]).into());
        }
        let command_specific = u32::from_be_bytes([whole[8], whole[9], whole[10], whole[11]]);
        if command_specific != 0 && there >= 12 {
            sense.command_specific = Some(command_specific.into());
        }
        if there >= Self::FIXED_LEN {
            sense.key_specific = KeySpecific::decode(key, [whole[15], whole[16], whole[17]]);
        }
        sense.set_flags(*flags);
        Ok(sense)
    }

    fn decode_descriptors(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some([_, key]) = bytes.first_chunk::<2>() else {
            return Err(DecodeError::Truncated { needed: 2, got: bytes.len() });
        };
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let key = SenseKey::from_bits(*key);
        let mut sense = Self::new(key, AdditionalSense { asc: byte(2), ascq: byte(3) });
        let mut list = bytes.get(8..).unwrap_or(&[]);
        list = list.get(..usize::from(byte(7))).unwrap_or(list);
        while let Some(([kind, len], rest)) = list.split_first_chunk::<2>() {
            // A descriptor cut off in its middle ends the list.
            let Some((body, next)) = rest.split_at_checked((*len).into()) else { break };
            sense.take_descriptor(DescriptorType::from(*kind), body);
            list = next;
        }
        Ok(sense)
    }

    /// `body` is what follows the descriptor's two-byte header.
    fn take_descriptor(&mut self, kind: DescriptorType, body: &[u8]) {
        let field = || Some(u64::from_be_bytes(*body.get(2..)?.first_chunk::<8>()?));
        match (kind, body) {
            (DescriptorType::Information, [valid, ..]) if valid & 0x80 != 0 => self.information = field(),
            (DescriptorType::CommandSpecific, _) => self.command_specific = field(),
            (DescriptorType::SenseKeySpecific, [_, _, s0, s1, s2, ..]) => {
                self.key_specific = KeySpecific::decode(self.key, [*s0, *s1, *s2]);
            }
            (DescriptorType::StreamCommands, [_, flags, ..]) => self.set_flags(*flags),
            (DescriptorType::BlockCommands, [_, flags, ..]) => self.ili = flags & 0x20 != 0,
            (DescriptorType::AtaStatusReturn, _) => {
                self.ata_return = body.first_chunk::<12>().map(AtaStatusReturn::from_body);
            }
            _ => {}
        }
    }

    fn set_flags(&mut self, flags: u8) {
        self.filemark = flags & 0x80 != 0;
        self.eom = flags & 0x40 != 0;
        self.ili = flags & 0x20 != 0;
    }
}

impl KeySpecific {
    /// The bytes with the valid bit (SKSV) set.
    fn encode(self) -> [u8; 3] {
        let [first, second, third] = match self {
            Self::FieldPointer { in_cdb, byte, bit } => {
                let [high, low] = byte.to_be_bytes();
                [u8::from(in_cdb) << 6 | bit.map_or(0, |bit| 0x08 | bit & 0x07), high, low]
            }
            Self::Progress(value) | Self::ActualRetryCount(value) => {
                let [high, low] = value.to_be_bytes();
                [0, high, low]
            }
            Self::UnitAttentionOverflow(overflow) => [u8::from(overflow), 0, 0],
            Self::Other(bytes) => bytes,
        };
        [first | 0x80, second, third]
    }

    fn decode(key: SenseKey, bytes: [u8; 3]) -> Option<Self> {
        let [first, second, third] = bytes;
        let value = u16::from_be_bytes([second, third]);
        (first & 0x80 != 0).then_some(match key {
            SenseKey::IllegalRequest => Self::FieldPointer {
                in_cdb: first & 0x40 != 0,
                byte: value,
                bit: (first & 0x08 != 0).then_some(first & 0x07),
            },
            SenseKey::NoSense | SenseKey::NotReady => Self::Progress(value),
            SenseKey::RecoveredError | SenseKey::MediumError | SenseKey::HardwareError => {
                Self::ActualRetryCount(value)
            }
            SenseKey::UnitAttention => Self::UnitAttentionOverflow(first & 0x01 != 0),
            _ => Self::Other([first & 0x7f, second, third]),
        })
    }
}

impl AtaStatusReturn {
    /// Bytes of the descriptor.
    pub const LEN: usize = 14;

    /// The registers of a command that has ended; `extend` if it had 48-bit registers.
    pub fn of(registers: &ResultRegisters, extend: bool) -> Self {
        let ResultRegisters { status, error, count, lba, device } = *registers;
        Self { extend, error: error.into(), count, lba, device, status: status.into() }
    }

    /// The descriptor, header and all.
    pub fn encode(&self) -> [u8; 14] {
        let [_, _, l5, l4, l3, l2, l1, l0] = self.lba.to_be_bytes();
        let [c1, c0] = self.count.to_be_bytes();
        let kind = DescriptorType::AtaStatusReturn.into();
        let extend = u8::from(self.extend);
        [kind, 12, extend, self.error, c1, c0, l3, l0, l4, l1, l5, l2, self.device, self.status]
    }

    fn from_body(body: &[u8; 12]) -> Self {
        let [extend, error, c1, c0, l3, l0, l4, l1, l5, l2, device, status] = *body;
        Self {
            extend: extend & 1 != 0,
            error,
            count: u16::from_be_bytes([c1, c0]),
            lba: u64::from_be_bytes([0, 0, l5, l4, l3, l2, l1, l0]),
            device,
            status,
        }
    }

    /// The registers packed into the information and command-specific fields of fixed format.
    fn fixed(&self) -> ([u8; 4], [u8; 4]) {
        let [_, _, l5, l4, l3, l2, l1, l0] = self.lba.to_be_bytes();
        let [count_upper, count] = self.count.to_be_bytes();
        let count_upper_nonzero = u8::from(count_upper != 0) << 6;
        let lba_upper_nonzero = u8::from([l5, l4, l3] != [0; 3]) << 5;
        let flags = u8::from(self.extend) << 7 | count_upper_nonzero | lba_upper_nonzero;
        ([self.error, self.status, self.device, count], [flags, l0, l1, l2])
    }
}

impl SenseKey {
    /// The key in bits 3:0; the upper bits are other fields'.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0x0f {
            0x0 => Self::NoSense,
            0x1 => Self::RecoveredError,
            0x2 => Self::NotReady,
            0x3 => Self::MediumError,
            0x4 => Self::HardwareError,
            0x5 => Self::IllegalRequest,
            0x6 => Self::UnitAttention,
            0x7 => Self::DataProtect,
            0x8 => Self::BlankCheck,
            0x9 => Self::VendorSpecific,
            0xa => Self::CopyAborted,
            0xb => Self::AbortedCommand,
            0xc => Self::Reserved,
            0xd => Self::VolumeOverflow,
            0xe => Self::Miscompare,
            _ => Self::Completed,
        }
    }
}

impl From<SenseKey> for u8 {
    fn from(key: SenseKey) -> u8 {
        key as u8
    }
}

code! {
    /// Type of a sense data descriptor (SPC-4 clause 4.5.2).
    pub enum DescriptorType: u8 {
        /// INFORMATION.
        Information = 0x00 => "information",
        /// COMMAND-SPECIFIC INFORMATION.
        CommandSpecific = 0x01 => "command specific",
        /// SENSE KEY SPECIFIC.
        SenseKeySpecific = 0x02 => "sense key specific",
        /// FILEMARK, EOM, ILI.
        StreamCommands = 0x04 => "stream commands",
        /// ILI.
        BlockCommands = 0x05 => "block commands",
        /// ATA registers.
        AtaStatusReturn = 0x09 => "ATA status return",
    }
}

/// The field in 32 bits, if it fits.
fn narrow(value: u64) -> Option<[u8; 4]> {
    u32::try_from(value).ok().map(u32::to_be_bytes)
}

impl fmt::Display for SenseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSense => "NO SENSE",
            Self::RecoveredError => "RECOVERED ERROR",
            Self::NotReady => "NOT READY",
            Self::MediumError => "MEDIUM ERROR",
            Self::HardwareError => "HARDWARE ERROR",
            Self::IllegalRequest => "ILLEGAL REQUEST",
            Self::UnitAttention => "UNIT ATTENTION",
            Self::DataProtect => "DATA PROTECT",
            Self::BlankCheck => "BLANK CHECK",
            Self::VendorSpecific => "VENDOR SPECIFIC",
            Self::CopyAborted => "COPY ABORTED",
            Self::AbortedCommand => "ABORTED COMMAND",
            Self::Reserved => "RESERVED (0xc)",
            Self::VolumeOverflow => "VOLUME OVERFLOW",
            Self::Miscompare => "MISCOMPARE",
            Self::Completed => "COMPLETED",
        })
    }
}

impl fmt::Display for KeySpecific {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldPointer { in_cdb, byte, bit } => {
                write!(f, "{} byte {byte}", if *in_cdb { "CDB" } else { "parameter" })?;
                bit.map_or(Ok(()), |bit| write!(f, " bit {bit}"))
            }
            Self::Progress(parts) => write!(f, "progress {} %", u32::from(*parts) * 100 / 65536),
            Self::ActualRetryCount(count) => write!(f, "{count} retries"),
            Self::UnitAttentionOverflow(true) => f.write_str("unit attentions were lost"),
            Self::UnitAttentionOverflow(false) => f.write_str("no unit attention was lost"),
            Self::Other(bytes) => write!(f, "key specific {bytes:02x?}"),
        }
    }
}

impl fmt::Display for AtaStatusReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, count, lba, device, status, .. } = self;
        write!(f, "ATA status {status:#04x} error {error:#04x} count {count} lba {lba} device {device:#04x}")
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.key, self.additional)?;
        if let Some(information) = self.information {
            write!(f, ", information {information}")?;
        }
        if let Some(command_specific) = self.command_specific {
            write!(f, ", command specific {command_specific}")?;
        }
        if let Some(key_specific) = self.key_specific {
            write!(f, ", {key_specific}")?;
        }
        if let Some(registers) = self.ata_return {
            write!(f, ", {registers}")?;
        }
        let marks =
            [(self.deferred, "deferred"), (self.filemark, "filemark"), (self.eom, "EOM"), (self.ili, "ILI")];
        marks.iter().filter(|(set, _)| *set).try_for_each(|(_, name)| write!(f, ", {name}"))
    }
}

#[cfg(test)]
mod tests;
