//! Transfers that the host repeats by itself: isochronous streams, interrupt polling, bulk read-ahead
//! (usbredir 0.7).
//!
//! A drive has none of these endpoints and does not offer `bulk_receiving`; the packets are here so that
//! they can be named, answered and shown. Left out: that interrupt and bulk receiving are for IN endpoints
//! only, which the receiver judges.

use super::{PacketType, Status};

fixed_layout! {
    /// Start an isochronous stream; answered by [`IsoStreamStatus`].
    pub struct StartIsoStream is PacketType::StartIsoStream => {
        /// Endpoint address.
        endpoint: u8 as u8,
        /// Packets in one transfer.
        packets_per_transfer: u8 as u8,
        /// Transfers kept in flight.
        transfers: u8 as u8,
    }
}

fixed_layout! {
    /// Stop an isochronous stream; answered by [`IsoStreamStatus`].
    pub struct StopIsoStream is PacketType::StopIsoStream => {
        /// Endpoint address.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// An isochronous stream started, stopped or failed.
    pub struct IsoStreamStatus is PacketType::IsoStreamStatus => {
        /// How the request ended, or why the stream stopped.
        status: Status as u8,
        /// Endpoint address.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// Start to poll an interrupt endpoint; answered by [`InterruptReceivingStatus`].
    pub struct StartInterruptReceiving is PacketType::StartInterruptReceiving => {
        /// Endpoint address, IN.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// Stop to poll an interrupt endpoint; answered by [`InterruptReceivingStatus`].
    pub struct StopInterruptReceiving is PacketType::StopInterruptReceiving => {
        /// Endpoint address, IN.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// Polling started, stopped or failed.
    pub struct InterruptReceivingStatus is PacketType::InterruptReceivingStatus => {
        /// How the request ended, or why polling stopped.
        status: Status as u8,
        /// Endpoint address, IN.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// Start to read ahead on a bulk endpoint; answered by [`BulkReceivingStatus`].
    pub struct StartBulkReceiving is PacketType::StartBulkReceiving => {
        /// Stream, 0 for none.
        stream_id: u32 as u32,
        /// Bytes in one transfer, a multiple of the packet size.
        bytes_per_transfer: u32 as u32,
        /// Endpoint address, IN.
        endpoint: u8 as u8,
        /// Transfers kept in flight.
        transfers: u8 as u8,
    }
}

fixed_layout! {
    /// Stop to read ahead; answered by [`BulkReceivingStatus`].
    pub struct StopBulkReceiving is PacketType::StopBulkReceiving => {
        /// Stream, 0 for none.
        stream_id: u32 as u32,
        /// Endpoint address, IN.
        endpoint: u8 as u8,
    }
}

fixed_layout! {
    /// Read-ahead started, stopped or failed.
    pub struct BulkReceivingStatus is PacketType::BulkReceivingStatus => {
        /// Stream, 0 for none.
        stream_id: u32 as u32,
        /// Endpoint address, IN.
        endpoint: u8 as u8,
        /// How the request ended, or why read-ahead stopped.
        status: Status as u8,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::DecodeError;
    use std::string::ToString;

    #[test]
    fn isochronous_streams() {
        let start = StartIsoStream::decode(&[0x81, 32, 3]).unwrap();
        assert_eq!(start, StartIsoStream { endpoint: 0x81, packets_per_transfer: 32, transfers: 3 });
        assert_eq!(start.encode(), [0x81, 32, 3]);
        assert_eq!(StopIsoStream::decode(&[0x81]), Ok(StopIsoStream { endpoint: 0x81 }));
        assert_eq!(StopIsoStream { endpoint: 0x81 }.encode(), [0x81]);
        let status = IsoStreamStatus::decode(&[4, 0x81]).unwrap();
        assert_eq!(status, IsoStreamStatus { status: Status::Stall, endpoint: 0x81 });
        assert_eq!(status.encode(), [4, 0x81]);
        assert_eq!(status.to_string(), "iso_stream_status, status stall, endpoint 129");
    }

    #[test]
    fn interrupt_polling() {
        let start = StartInterruptReceiving { endpoint: 0x83 };
        assert_eq!(StartInterruptReceiving::decode(&[0x83]), Ok(start));
        assert_eq!(start.encode(), [0x83]);
        let stop = StopInterruptReceiving { endpoint: 0x83 };
        assert_eq!(StopInterruptReceiving::decode(&[0x83]), Ok(stop));
        assert_eq!(stop.encode(), [0x83]);
        let status = InterruptReceivingStatus { status: Status::IoError, endpoint: 0x83 };
        assert_eq!(InterruptReceivingStatus::decode(&[3, 0x83]), Ok(status));
        assert_eq!(status.encode(), [3, 0x83]);
    }

    #[test]
    fn bulk_read_ahead() {
        let bytes = [5, 0, 0, 0, 0, 2, 1, 0, 0x82, 4];
        let start = StartBulkReceiving::decode(&bytes).unwrap();
        let expected =
            StartBulkReceiving { stream_id: 5, bytes_per_transfer: 0x1_0200, endpoint: 0x82, transfers: 4 };
        assert_eq!((start, start.encode()), (expected, bytes));
        let stop = StopBulkReceiving { stream_id: 5, endpoint: 0x82 };
        assert_eq!(StopBulkReceiving::decode(&[5, 0, 0, 0, 0x82]), Ok(stop));
        assert_eq!(stop.encode(), [5, 0, 0, 0, 0x82]);
        let status = BulkReceivingStatus { stream_id: 5, endpoint: 0x82, status: Status::Babble };
        assert_eq!(BulkReceivingStatus::decode(&[5, 0, 0, 0, 0x82, 6]), Ok(status));
        assert_eq!(status.encode(), [5, 0, 0, 0, 0x82, 6]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let short = |needed, got| Some(DecodeError::Truncated { needed, got }).filter(|_| got < needed);
        for got in 0..10 {
            let bytes = &[0; 10][..got];
            assert_eq!(StartIsoStream::decode(bytes).err(), short(3, got));
            assert_eq!(StopIsoStream::decode(bytes).err(), short(1, got));
            assert_eq!(IsoStreamStatus::decode(bytes).err(), short(2, got));
            assert_eq!(StartInterruptReceiving::decode(bytes).err(), short(1, got));
            assert_eq!(StopInterruptReceiving::decode(bytes).err(), short(1, got));
            assert_eq!(InterruptReceivingStatus::decode(bytes).err(), short(2, got));
            assert_eq!(StartBulkReceiving::decode(bytes).err(), short(10, got));
            assert_eq!(StopBulkReceiving::decode(bytes).err(), short(5, got));
            assert_eq!(BulkReceivingStatus::decode(bytes).err(), short(6, got));
        }
    }
}
