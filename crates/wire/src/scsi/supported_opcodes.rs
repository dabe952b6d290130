//! REPORT SUPPORTED OPERATION CODES parameter data (SPC-5).
//!
//! All commands: a four-byte length, then a descriptor of 8 bytes per command, 20 with timeouts. One
//! command: four bytes, then as many bytes of usage data as its CDB has, then perhaps the timeouts.

use super::layout::{be16, be32, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// A command that is supported.
///
/// ```text
///  0      operation code          5      RWCDLP (6), MLU (5:4), CDLP (3:2), CTDP (1), SERVACTV (0)
///  2..4   service action          6..8   CDB length
///                                 8..20  timeouts, if CTDP
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandDescriptor {
    /// OPERATION CODE.
    pub opcode: u8,
    /// SERVICE ACTION, if SERVACTV says that the command has one.
    #[doc(alias = "SERVACTV")]
    pub service_action: Option<u16>,
    /// CDB LENGTH in bytes.
    pub cdb_length: u16,
    /// Timeouts, if CTDP says that they are there.
    #[doc(alias = "CTDP")]
    pub timeouts: Option<CommandTimeouts>,
}

/// Command timeouts descriptor: 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// COMMAND SPECIFIC: what it means is the command's.
    pub command_specific: u8,
    /// NOMINAL COMMAND PROCESSING TIMEOUT in seconds; 0: not reported.
    pub nominal_s: u32,
    /// RECOMMENDED COMMAND TIMEOUT in seconds; 0: not reported.
    pub recommended_s: u32,
}

impl CommandTimeouts {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let whole: [u8; 12] = reader.array()?;
        Ok(Self {
            command_specific: whole[3],
            nominal_s: be32::<4, _>(&whole),
            recommended_s: be32::<8, _>(&whole),
        })
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        writer.put(&[0x00, 0x0a, 0, self.command_specific])?;
        writer.be32(self.nominal_s)?;
        writer.be32(self.recommended_s)
    }
}

impl CommandDescriptor {
    /// Bytes without timeouts.
    pub const LEN: usize = 8;

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let head: [u8; 8] = reader.array()?;
        let timeouts = if bit::<1>(head[5]) { Some(CommandTimeouts::read(reader)?) } else { None };
        Ok(Self {
            opcode: head[0],
            service_action: bit::<0>(head[5]).then_some(be16::<2, _>(&head)),
            cdb_length: be16::<6, _>(&head),
            timeouts,
        })
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        writer.put(&[self.opcode, 0])?;
        writer.be16(self.service_action.unwrap_or(0))?;
        let flags = set_bit::<1>(self.timeouts.is_some()) | set_bit::<0>(self.service_action.is_some());
        writer.put(&[0, flags])?;
        writer.be16(self.cdb_length)?;
        self.timeouts.map_or(Ok(()), |timeouts| timeouts.put(writer))
    }
}

/// All commands: COMMAND DATA LENGTH, then the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllCommands<'a> {
    /// COMMAND DATA LENGTH: bytes of all descriptors, also of those that were cut.
    pub data_length: u32,
    descriptors: &'a [u8],
}

impl<'a> AllCommands<'a> {
    /// Decodes a list, whole or cut by the allocation length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let data_length = reader.be32()?;
        let said = usize::try_from(data_length).unwrap_or(usize::MAX);
        Ok(Self { data_length, descriptors: reader.rest().get(..said).unwrap_or(reader.rest()) })
    }

    /// The descriptors, one by one; one that is cut short ends them with an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<CommandDescriptor, DecodeError>> + 'a {
        let mut reader = Reader::new(self.descriptors);
        let mut failed = false;
        core::iter::from_fn(move || {
            if failed || reader.rest().is_empty() {
                return None;
            }
            let descriptor = CommandDescriptor::read(&mut reader);
            failed = descriptor.is_err();
            Some(descriptor)
        })
    }

    /// Writes a list of `descriptors`; the answer is the bytes written.
    pub fn encode_list(
        descriptors: impl IntoIterator<Item = CommandDescriptor>,
        out: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(0)?;
        for descriptor in descriptors {
            descriptor.put(&mut writer)?;
        }
        let total = writer.written();
        let no_room = NoRoom { needed: total, got: usize::MAX };
        let length = u32::try_from(total - 4).map_err(|_| no_room)?;
        writer.patch(0, &length.to_be_bytes())?;
        Ok(total)
    }
}

code! {
    /// SUPPORT, three bits: whether and how one command is supported.
    pub enum CommandSupport: u8 {
        /// Not available now.
        NotAvailable = 0x00 => "not available",
        /// Not supported.
        No = 0x01 => "not supported",
        /// As a standard has it.
        Standard = 0x03 => "supported",
        /// Otherwise.
        VendorSpecific = 0x05 => "supported in a vendor specific manner",
    }
}

/// One command: how it is supported, and which bits of its CDB are looked at.
///
/// ```text
///  1      CTDP (7), CDLP (4:3), SUPPORT (2:0)
///  2..4   CDB size
///  4..    CDB usage data, then the timeouts, if CTDP
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneCommand<'a> {
    /// SUPPORT.
    pub support: CommandSupport,
    /// CDB USAGE DATA: the operation code, then a one for each bit that is looked at; empty if the
    /// command is not supported.
    pub usage: &'a [u8],
    /// Timeouts, if CTDP says that they are there.
    #[doc(alias = "CTDP")]
    pub timeouts: Option<CommandTimeouts>,
}

impl<'a> OneCommand<'a> {
    /// Bytes before the usage data.
    pub const HEADER_LEN: usize = 4;

    /// Decodes the answer.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let head: [u8; 4] = reader.array()?;
        let support = CommandSupport::from(bits::<2, 0>(head[1]));
        // Without support the size is reserved.
        let sized = !matches!(support, CommandSupport::No | CommandSupport::NotAvailable);
        let usage = reader.slice(if sized { be16::<2, _>(&head).into() } else { 0 })?;
        let timeouts = if bit::<7>(head[1]) { Some(CommandTimeouts::read(&mut reader)?) } else { None };
        Ok(Self { support, usage, timeouts })
    }

    /// Writes the answer; the answer of the function is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let len = self.usage.len();
        let size = u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })?;
        let mut writer = Writer::new(out);
        let flags = set_bit::<7>(self.timeouts.is_some()) | set_bits::<2, 0>(self.support.into());
        writer.put(&[0, flags])?;
        writer.be16(size)?;
        writer.put(self.usage)?;
        self.timeouts.map_or(Ok(()), |timeouts| timeouts.put(&mut writer))?;
        Ok(writer.written())
    }
}

impl fmt::Display for CommandDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation code {:#04x}", self.opcode)?;
        self.service_action.map_or(Ok(()), |action| write!(f, ", service action {action:#04x}"))
    }
}

impl fmt::Display for OneCommand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.support, self.usage.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const TIMEOUTS: CommandTimeouts =
        CommandTimeouts { command_specific: 0, nominal_s: 1, recommended_s: 30 };
    const ALL: [u8; 32] = [
        0, 0, 0, 0x1c, // length
        0x28, 0, 0, 0, 0, 0x00, 0, 10, // READ (10)
        0x9e, 0, 0, 0x10, 0, 0x03, 0, 16, 0, 0x0a, 0, 0, 0, 0, 0, 1, 0, 0, 0, 30, // READ CAPACITY (16)
    ];

    #[test]
    fn all_commands_both_ways() {
        let expected = [
            CommandDescriptor { opcode: 0x28, service_action: None, cdb_length: 10, timeouts: None },
            CommandDescriptor {
                opcode: 0x9e,
                service_action: Some(0x10),
                cdb_length: 16,
                timeouts: Some(TIMEOUTS),
            },
        ];
        let all = AllCommands::decode(&ALL).unwrap();
        let found: Vec<_> = all.iter().map(Result::unwrap).collect();
        assert_eq!(found, expected);
        let mut out = [0xff; 32];
        assert_eq!(AllCommands::encode_list(expected, &mut out), Ok(32));
        assert_eq!(out, ALL);
    }

    #[test]
    fn a_cut_list_ends_with_an_error() {
        let cut: Vec<_> = AllCommands::decode(&ALL[..20]).unwrap().iter().collect();
        assert_eq!(cut.len(), 2);
        assert_eq!(cut[1], Err(DecodeError::Truncated { needed: 28, got: 16 }));
        let error = DecodeError::Truncated { needed: 4, got: 3 };
        assert_eq!(AllCommands::decode(&ALL[..3]), Err(error));
    }

    #[test]
    fn one_command_both_ways() {
        let bytes = [
            0x00, 0x83, 0x00, 0x06, 0x12, 0x01, 0xff, 0xff, 0xff, 0x07, 0, 0x0a, 0, 0, 0, 0, 0, 1, 0, 0, 0,
            30,
        ];
        let one = OneCommand {
            support: CommandSupport::Standard,
            usage: &[0x12, 0x01, 0xff, 0xff, 0xff, 0x07],
            timeouts: Some(TIMEOUTS),
        };
        assert_eq!(OneCommand::decode(&bytes), Ok(one));
        let mut out = [0xff; 22];
        assert_eq!(one.encode(&mut out), Ok(22));
        assert_eq!(out, bytes);
        for got in 0..22 {
            assert!(matches!(OneCommand::decode(&bytes[..got]), Err(DecodeError::Truncated { .. })));
        }
    }

    #[test]
    fn an_unsupported_command_has_no_usage() {
        let one = OneCommand { support: CommandSupport::No, usage: &[], timeouts: None };
        assert_eq!(OneCommand::decode(&[0, 0x01, 0, 6]), Ok(one));
        let mut out = [0xff; 4];
        assert_eq!(one.encode(&mut out), Ok(4));
        assert_eq!(out, [0, 0x01, 0, 0]);
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(one) = OneCommand::decode(&bytes) {
                let mut out = [0; 80];
                let len = one.encode(&mut out).unwrap();
                prop_assert_eq!(OneCommand::decode(&out[..len]), Ok(one));
            }
            let _ = AllCommands::decode(&bytes).map(|all| all.iter().count());
        }
    }
}
