//! The usbredir protocol 0.7 (usb-redirection-protocol.md and usbredirproto.h of the SPICE project).
//!
//! A *USB host* owns a device (here: the virtual drive), a *USB guest* uses it (a virtual machine). A packet
//! is a [`Header`], then a header of its type, then for some types a payload. All fields are little-endian.
//! Everything but the payload is decoded and encoded here; the payload stays the caller's, so that a session
//! places it straight in the buffer where it belongs. Its length is [`Header::payload_len`].
//!
//! Some layouts depend on what both sides offered in their hellos; those take the negotiated
//! [`Capabilities`] as an argument. A hello itself always travels with [`Capabilities::NONE`].
//!
//! Left out: the order of packets, which is the session's; the meaning of payloads other than capability
//! words ([`Capabilities::decode`]) and filter rules ([`Filter`]).
//!
//! Always true: an endpoint is a USB endpoint address (bit 7 set for IN), and no length here passes
//! [`PACKET_LEN_MAX`].

mod bulk_streams;
mod capabilities;
mod codes;
mod configuration;
mod device;
mod endpoint_info;
mod filter;
mod header;
mod hello;
mod interface_info;
mod packet;
mod receiving;
mod transfer;

pub use bulk_streams::{AllocBulkStreams, BulkStreamsStatus, EndpointSet, FreeBulkStreams};
pub use capabilities::{Capabilities, Capability};
pub use codes::{EndpointType, PacketType, Side, Speed, Status};
pub use configuration::{
    AltSettingStatus, ConfigurationStatus, GetAltSetting, SetAltSetting, SetConfiguration,
};
pub use device::DeviceConnect;
pub use endpoint_info::{EndpointEntry, EndpointInfo};
pub use filter::{Filter, FilterRule, FilterRules};
pub use header::Header;
pub use hello::Hello;
pub use interface_info::{InterfaceEntry, InterfaceInfo};
pub use packet::Packet;
pub use receiving::{
    BulkReceivingStatus, InterruptReceivingStatus, IsoStreamStatus, StartBulkReceiving,
    StartInterruptReceiving, StartIsoStream, StopBulkReceiving, StopInterruptReceiving, StopIsoStream,
};
pub use transfer::{BufferedBulkPacket, BulkPacket, ControlPacket, InterruptPacket, IsoPacket};

/// The longest bulk transfer, in bytes: what the reference parser accepts.
pub const BULK_TRANSFER_LEN_MAX: u32 = 128 << 20;
/// The largest value of a header's length field: what the reference parser accepts.
pub const PACKET_LEN_MAX: u32 = BULK_TRANSFER_LEN_MAX + 1024;

/// Endpoints that fit in a table or a set: 16 OUT, then 16 IN.
pub(crate) const ENDPOINT_COUNT: usize = 32;

/// The place of an endpoint address in a table or a set: OUT 0..=15, then IN 16..=31.
///
/// Address bits 6:4 are reserved in USB and do not count.
pub const fn endpoint_index(address: u8) -> usize {
    ((address & 0x80) >> 3 | address & 0x0f) as usize
}

/// The endpoint address at a place in a table or a set; places past 31 wrap around.
pub const fn endpoint_address(index: usize) -> u8 {
    let index = index as u8 & 0x1f;
    (index & 0x10) << 3 | index & 0x0f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_endpoints_follow_the_out_endpoints() {
        for (address, index) in [(0x00, 0), (0x04, 4), (0x0f, 15), (0x80, 16), (0x81, 17), (0x8f, 31)] {
            assert_eq!(endpoint_index(address), index);
            assert_eq!(endpoint_address(index), address);
        }
    }

    #[test]
    fn no_address_leaves_the_table() {
        for address in 0..=u8::MAX {
            assert!(endpoint_index(address) < 32);
        }
    }
}
