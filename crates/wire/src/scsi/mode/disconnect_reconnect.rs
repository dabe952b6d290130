//! Disconnect-reconnect mode page, 02h (SPC-5). Which fields count is for the transport to say; UAS uses
//! none of them.

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// How a connection is used.
///
/// ```text
///  2      buffer full ratio           8..10  connect time limit
///  3      buffer empty ratio         10..12  maximum burst size
///  4..6   bus inactivity limit       12      EMDP (7), fair arbitration (6:4), DIMM (3), DTDC (2:0)
///  6..8   disconnect time limit      14..16  first burst size
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisconnectReconnectPage {
    /// BUFFER FULL RATIO, in 1/256.
    pub buffer_full_ratio: u8,
    /// BUFFER EMPTY RATIO, in 1/256.
    pub buffer_empty_ratio: u8,
    /// BUS INACTIVITY LIMIT, in units of the transport.
    pub bus_inactivity_limit: u16,
    /// DISCONNECT TIME LIMIT, in units of the transport.
    pub disconnect_time_limit: u16,
    /// CONNECT TIME LIMIT, in units of the transport.
    pub connect_time_limit: u16,
    /// MAXIMUM BURST SIZE, in 512 bytes; 0: no limit.
    pub maximum_burst_size: u16,
    /// Data may go out of order.
    #[doc(alias = "EMDP")]
    pub modify_data_pointers: bool,
    /// FAIR ARBITRATION, three bits.
    pub fair_arbitration: u8,
    /// Disconnect at once after the command.
    #[doc(alias = "DIMM")]
    pub disconnect_immediate: bool,
    /// Data transfer disconnect control, three bits.
    #[doc(alias = "DTDC")]
    pub data_transfer_disconnect: u8,
    /// FIRST BURST SIZE, in 512 bytes.
    pub first_burst_size: u16,
}

impl DisconnectReconnectPage {
    /// Bytes with the header.
    pub const LEN: usize = 16;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::DisconnectReconnect, None, bytes)?;
        Ok(Self {
            buffer_full_ratio: page[2],
            buffer_empty_ratio: page[3],
            bus_inactivity_limit: be16::<4, _>(page),
            disconnect_time_limit: be16::<6, _>(page),
            connect_time_limit: be16::<8, _>(page),
            maximum_burst_size: be16::<10, _>(page),
            modify_data_pointers: bit::<7>(page[12]),
            fair_arbitration: bits::<6, 4>(page[12]),
            disconnect_immediate: bit::<3>(page[12]),
            data_transfer_disconnect: bits::<2, 0>(page[12]),
            first_burst_size: be16::<14, _>(page),
        })
    }

    /// The sixteen bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 16] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::DisconnectReconnect, None, saveable);
        out[2] = self.buffer_full_ratio;
        out[3] = self.buffer_empty_ratio;
        out[4..6].copy_from_slice(&self.bus_inactivity_limit.to_be_bytes());
        out[6..8].copy_from_slice(&self.disconnect_time_limit.to_be_bytes());
        out[8..10].copy_from_slice(&self.connect_time_limit.to_be_bytes());
        out[10..12].copy_from_slice(&self.maximum_burst_size.to_be_bytes());
        out[12] = set_bit::<7>(self.modify_data_pointers)
            | set_bits::<6, 4>(self.fair_arbitration)
            | set_bit::<3>(self.disconnect_immediate)
            | set_bits::<2, 0>(self.data_transfer_disconnect);
        out[14..].copy_from_slice(&self.first_burst_size.to_be_bytes());
        out
    }
}

impl fmt::Display for DisconnectReconnectPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bursts of {} x 512 bytes at most", self.maximum_burst_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes =
            [0x02, 0x0e, 0x80, 0x40, 0x00, 0x0a, 0x00, 0x0b, 0x00, 0x0c, 0x01, 0x00, 0xb9, 0, 0x00, 0x20];
        let page = DisconnectReconnectPage {
            buffer_full_ratio: 0x80,
            buffer_empty_ratio: 0x40,
            bus_inactivity_limit: 10,
            disconnect_time_limit: 11,
            connect_time_limit: 12,
            maximum_burst_size: 256,
            modify_data_pointers: true,
            fair_arbitration: 3,
            disconnect_immediate: true,
            data_transfer_disconnect: 1,
            first_burst_size: 32,
        };
        assert_eq!(DisconnectReconnectPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(false), bytes);
    }
}
