//! TRBs of transfer rings (xHCI 1.2 clauses 6.4.1 and 6.4.4).

use super::{TRB_BYTES, TrbType, control, encoded, field, flag, foreign, type_in, words};
use crate::DecodeError;
use crate::usb::{Direction, SetupPacket};
use crate::xhci::{bit, place, pointer, wide};
use core::fmt;

register_bits! {
    /// Flags in the control dword of the TRBs of transfer rings. Not every type has every one.
    pub struct TrbFlags: u16 {
        /// The next TRB is wanted before this one is given up (ENT).
        EVALUATE_NEXT = 0x0002 => "evaluate next",
        /// An event if a packet is short (ISP).
        INTERRUPT_ON_SHORT = 0x0004 => "interrupt on short",
        /// The buffer is not cached (NS).
        NO_SNOOP = 0x0008 => "no snoop",
        /// The next TRB is of the same TD (CH).
        CHAIN = 0x0010 => "chain",
        /// An event when it is done (IOC).
        INTERRUPT_ON_COMPLETION = 0x0020 => "interrupt on completion",
        /// The data are in the parameter itself (IDT).
        IMMEDIATE_DATA = 0x0040 => "immediate",
        /// The event raises no interrupt (BEI).
        BLOCK_EVENT_INTERRUPT = 0x0200 => "block event interrupt",
    }
}

impl TrbFlags {
    const ALL: u16 = 0x027e;
    /// Bit 1 of a link TRB is another's.
    const OF_LINK: u16 = 0x0030;

    fn of(word: u32, mask: u16) -> Self {
        Self::from(word as u16 & mask)
    }

    fn bits(self, mask: u16) -> u32 {
        u32::from(u16::from(self) & mask)
    }
}

/// Whether a control transfer has a data stage, and which way it goes (TRT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferKind {
    /// No data stage.
    NoData,
    /// A data stage in this direction.
    Data(Direction),
}

/// One TRB of a transfer ring.
///
/// ```text
///          normal, data stage     setup stage            link                event data
///   0..8   Data Buffer Pointer    the setup packet       Segment (63:4)      Event Data
///   8..12  Transfer Length 16:0,  Transfer Length (8),   -                   -
///          TD Size 21:17,
///          all: Interrupter Target 31:22
///  12..16  C, ENT, ISP, NS, CH,   C, IOC, IDT (1),       C, TC (1), CH, IOC  C, ENT, CH, IOC, BEI
///          IOC, IDT, BEI, DIR 16  TRT 17:16
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferTrb {
    /// Data of a bulk or interrupt endpoint (6.4.1.1).
    Normal {
        /// The buffer's bus address, or up to eight bytes if they are immediate.
        buffer: u64,
        /// Bytes, up to 65,536.
        length: u32,
        /// Packets of the TD after this TRB, 31 if more.
        td_size: u8,
        /// Where its events go.
        interrupter: u16,
        /// More.
        flags: TrbFlags,
    },
    /// The setup packet of a control transfer (6.4.1.2.1).
    SetupStage {
        /// The packet; it is always immediate.
        setup: SetupPacket,
        /// Transfer type: the direction of the data stage, if there is one.
        kind: TransferKind,
        /// Where its events go.
        interrupter: u16,
        /// More; always immediate.
        flags: TrbFlags,
    },
    /// Data of a control transfer (6.4.1.2.2); more of them in Normal TRBs that follow.
    DataStage {
        /// The buffer's bus address.
        buffer: u64,
        /// Bytes, up to 65,536.
        length: u32,
        /// Packets of the TD after this TRB, 31 if more.
        td_size: u8,
        /// Which way.
        direction: Direction,
        /// Where its events go.
        interrupter: u16,
        /// More.
        flags: TrbFlags,
    },
    /// The end of a control transfer (6.4.1.2.3).
    StatusStage {
        /// Which way: against the data, In if there are none.
        direction: Direction,
        /// Where its events go.
        interrupter: u16,
        /// More.
        flags: TrbFlags,
    },
    /// The ring goes on elsewhere (6.4.4.1); on the command ring as well.
    Link {
        /// Where; a multiple of 16.
        segment: u64,
        /// The cycle bit means the opposite from there on (TC).
        toggle_cycle: bool,
        /// Where its events go.
        interrupter: u16,
        /// Only CHAIN and INTERRUPT_ON_COMPLETION.
        flags: TrbFlags,
    },
    /// An event that carries a value of the driver's, and the bytes moved since the last one (6.4.4.2).
    EventData {
        /// The value.
        token: u64,
        /// Where the event goes.
        interrupter: u16,
        /// More.
        flags: TrbFlags,
    },
    /// Nothing (6.4.1.4).
    NoOp {
        /// Where its events go.
        interrupter: u16,
        /// More.
        flags: TrbFlags,
    },
}

impl TransferTrb {
    /// The most bytes that one TRB can move.
    pub const LENGTH_MAX: u32 = 65_536;
    /// The most packets that TD Size can say; it says this of more as well.
    pub const TD_SIZE_MAX: u8 = 31;

    /// Decodes a TRB and its cycle bit; bytes past it are ignored. A type of another family is an error.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<(Self, bool), DecodeError> {
        let [p0, p1, status, word] = words(bytes)?;
        let (length, td_size) = (field(status, 0, 17), field(status, 17, 5) as u8);
        let interrupter = field(status, 22, 10) as u16;
        let flags = TrbFlags::of(word, TrbFlags::ALL);
        let direction = if flag(word, 16) { Direction::In } else { Direction::Out };
        let buffer = wide(p0, p1);
        let trb = match type_in(word) {
            TrbType::Normal => Self::Normal { buffer, length, td_size, interrupter, flags },
            TrbType::SetupStage => {
                let kind = TransferKind::from_bits(field(word, 16, 2))?;
                Self::SetupStage { setup: buffer.to_le_bytes().into(), kind, interrupter, flags }
            }
            TrbType::DataStage => Self::DataStage { buffer, length, td_size, direction, interrupter, flags },
            TrbType::StatusStage => Self::StatusStage { direction, interrupter, flags },
            TrbType::Link => {
                let [low, high] = pointer(buffer, 4);
                let flags = TrbFlags::of(word, TrbFlags::OF_LINK);
                Self::Link { segment: wide(low, high), toggle_cycle: flag(word, 1), interrupter, flags }
            }
            TrbType::EventData => Self::EventData { token: buffer, interrupter, flags },
            TrbType::NoOp => Self::NoOp { interrupter, flags },
            other => return Err(foreign(other)),
        };
        Ok((trb, flag(word, 0)))
    }

    /// The whole TRB with this cycle bit.
    #[inline]
    pub fn encode(&self, cycle: bool) -> [u8; TRB_BYTES] {
        let target = place(self.interrupter().into(), 22, 10);
        let word = control(self.trb_type(), cycle) | self.flags().bits(TrbFlags::ALL);
        let sized = |length: u32, td_size: u8| place(length, 0, 17) | place(td_size.into(), 17, 5) | target;
        let towards = |direction| bit(direction == Direction::In, 16);
        encoded(match *self {
            Self::Normal { buffer, length, td_size, .. } => {
                let [low, high] = pointer(buffer, 0);
                [low, high, sized(length, td_size), word]
            }
            Self::SetupStage { setup, kind, .. } => {
                let [low, high] = pointer(u64::from_le_bytes(setup.encode()), 0);
                let immediate = TrbFlags::IMMEDIATE_DATA.bits(TrbFlags::ALL);
                [low, high, sized(SetupPacket::LEN as u32, 0), word | immediate | kind.bits() << 16]
            }
            Self::DataStage { buffer, length, td_size, direction, .. } => {
                let [low, high] = pointer(buffer, 0);
                [low, high, sized(length, td_size), word | towards(direction)]
            }
            Self::StatusStage { direction, .. } => [0, 0, target, word | towards(direction)],
            Self::Link { segment, toggle_cycle, flags, .. } => {
                let [low, high] = pointer(segment, 4);
                let word = control(TrbType::Link, cycle) | flags.bits(TrbFlags::OF_LINK);
                [low, high, target, word | bit(toggle_cycle, 1)]
            }
            Self::EventData { token, .. } => {
                let [low, high] = pointer(token, 0);
                [low, high, target, word]
            }
            Self::NoOp { .. } => [0, 0, target, word],
        })
    }

    /// Its type.
    pub const fn trb_type(&self) -> TrbType {
        match self {
            Self::Normal { .. } => TrbType::Normal,
            Self::SetupStage { .. } => TrbType::SetupStage,
            Self::DataStage { .. } => TrbType::DataStage,
            Self::StatusStage { .. } => TrbType::StatusStage,
            Self::Link { .. } => TrbType::Link,
            Self::EventData { .. } => TrbType::EventData,
            Self::NoOp { .. } => TrbType::NoOp,
        }
    }

    /// Its flags.
    pub const fn flags(&self) -> TrbFlags {
        match *self {
            Self::Normal { flags, .. }
            | Self::SetupStage { flags, .. }
            | Self::DataStage { flags, .. }
            | Self::StatusStage { flags, .. }
            | Self::Link { flags, .. }
            | Self::EventData { flags, .. }
            | Self::NoOp { flags, .. } => flags,
        }
    }

    /// Bytes that it moves.
    pub const fn length(&self) -> u32 {
        match *self {
            Self::Normal { length, .. } | Self::DataStage { length, .. } => length,
            _ => 0,
        }
    }

    /// The interrupter to which its events go.
    pub const fn interrupter(&self) -> u16 {
        match *self {
            Self::Normal { interrupter, .. }
            | Self::SetupStage { interrupter, .. }
            | Self::DataStage { interrupter, .. }
            | Self::StatusStage { interrupter, .. }
            | Self::Link { interrupter, .. }
            | Self::EventData { interrupter, .. }
            | Self::NoOp { interrupter, .. } => interrupter,
        }
    }
}

impl TransferKind {
    fn from_bits(bits: u32) -> Result<Self, DecodeError> {
        match bits {
            0 => Ok(Self::NoData),
            2 => Ok(Self::Data(Direction::Out)),
            3 => Ok(Self::Data(Direction::In)),
            _ => Err(DecodeError::Invalid { field: "Transfer Type", value: bits.into() }),
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::NoData => 0,
            Self::Data(Direction::Out) => 2,
            Self::Data(Direction::In) => 3,
        }
    }
}

impl fmt::Display for TransferTrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trb_type())?;
        match self {
            Self::Normal { buffer, length, .. } | Self::DataStage { buffer, length, .. } => {
                write!(f, " {length} bytes at {buffer:#x}")?;
            }
            Self::SetupStage { setup, .. } => write!(f, " {setup}")?,
            Self::StatusStage { direction, .. } => write!(f, " {direction}")?,
            Self::Link { segment, .. } => write!(f, " to {segment:#x}")?,
            Self::EventData { token, .. } => write!(f, " {token:#x}")?,
            Self::NoOp { .. } => {}
        }
        write!(f, " ({})", self.flags())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const CHAIN: TrbFlags = TrbFlags::CHAIN;
    const IOC: TrbFlags = TrbFlags::INTERRUPT_ON_COMPLETION;

    fn both_ways(trb: TransferTrb, cycle: bool, bytes: [u8; 16]) {
        assert_eq!(trb.encode(cycle), bytes);
        assert_eq!(TransferTrb::decode(&bytes), Ok((trb, cycle)));
    }

    #[test]
    fn a_normal_trb_both_ways() {
        let trb = TransferTrb::Normal {
            buffer: 0x1_2345_6789,
            length: 65_536,
            td_size: 31,
            interrupter: 1,
            flags: CHAIN.with(TrbFlags::INTERRUPT_ON_SHORT),
        };
        let bytes = [0x89, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x00, 0x00, 0x7f, 0x00, 0x15, 0x04, 0, 0];
        both_ways(trb, true, bytes);
        assert_eq!(trb.to_string(), "normal 65536 bytes at 0x123456789 (interrupt on short chain)");
    }

    #[test]
    fn the_three_stages_of_get_descriptor_both_ways() {
        let packet = [0x80, 0x06, 0x00, 0x01, 0x00, 0x00, 0x12, 0x00];
        let setup = TransferTrb::SetupStage {
            setup: packet.into(),
            kind: TransferKind::Data(Direction::In),
            interrupter: 0,
            flags: TrbFlags::IMMEDIATE_DATA,
        };
        let bytes = [0x80, 0x06, 0x00, 0x01, 0, 0, 0x12, 0, 8, 0, 0, 0, 0x41, 0x08, 0x03, 0x00];
        both_ways(setup, true, bytes);
        let stage = TransferTrb::DataStage {
            buffer: 0x1000,
            length: 18,
            td_size: 0,
            direction: Direction::In,
            interrupter: 0,
            flags: TrbFlags::INTERRUPT_ON_SHORT,
        };
        both_ways(stage, true, [0, 0x10, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0x05, 0x0c, 0x01, 0]);
        let status = TransferTrb::StatusStage { direction: Direction::Out, interrupter: 0, flags: IOC };
        both_ways(status, false, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0x10, 0, 0]);
    }

    #[test]
    fn a_link_both_ways() {
        let link = TransferTrb::Link { segment: 0x2000, toggle_cycle: true, interrupter: 0, flags: CHAIN };
        both_ways(link, true, [0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x13, 0x18, 0, 0]);
        assert_eq!(link.to_string(), "link to 0x2000 (chain)");
    }

    #[test]
    fn event_data_and_no_op_both_ways() {
        let event = TransferTrb::EventData { token: 0x1122_3344_5566_7788, interrupter: 2, flags: IOC };
        let bytes = [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 0, 0x80, 0, 0x21, 0x1c, 0, 0];
        both_ways(event, true, bytes);
        let no_op = TransferTrb::NoOp { interrupter: 0, flags: TrbFlags::EMPTY };
        both_ways(no_op, false, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x20, 0, 0]);
    }

    #[test]
    fn the_reserved_transfer_type_and_other_families_are_errors() {
        let mut bytes = [0; 16];
        [bytes[13], bytes[14]] = [0x08, 0x01];
        let error = DecodeError::Invalid { field: "Transfer Type", value: 1 };
        assert_eq!(TransferTrb::decode(&bytes), Err(error));
        bytes[13] = 0x80;
        let error = DecodeError::Invalid { field: "TRB Type", value: 32 };
        assert_eq!(TransferTrb::decode(&bytes), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got: len };
            assert_eq!(TransferTrb::decode(&[0x04; 16][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 16]) {
            if let Ok((trb, cycle)) = TransferTrb::decode(&bytes) {
                let _ = trb.to_string();
                let again = TransferTrb::decode(&trb.encode(cycle)).unwrap();
                let TransferTrb::SetupStage { .. } = trb else {
                    prop_assert_eq!(again, (trb, cycle));
                    return Ok(());
                };
                prop_assert!(again.0.flags().has(TrbFlags::IMMEDIATE_DATA));
            }
        }
    }
}
