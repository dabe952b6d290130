//! Transfer request blocks (xHCI 1.2 clause 6.4): sixteen bytes that a ring is made of.
//!
//! ```text
//!  0..8   parameter: a pointer, or data           12..16 control: cycle (0), flags (9:1), TRB Type (15:10), more
//!  8..12  status: lengths, completion code
//! ```
//!
//! Three families: what transfer rings hold, what the command ring holds, what event rings hold. The cycle bit belongs
//! to the ring, not to the block, and is handed in and out beside it.

mod command;
mod event;
mod transfer;

pub use command::{CommandTrb, StreamDequeue};
pub use event::EventTrb;
pub use transfer::{TransferKind, TransferTrb, TrbFlags};

use super::{bytes_of, dwords, field, flag};
use crate::DecodeError;

/// Bytes of a TRB.
pub const TRB_BYTES: usize = 16;

code! {
    /// TRB type (table 6-91).
    pub enum TrbType: u8 {
        /// Bulk or interrupt data.
        Normal = 0x01 => "normal",
        /// The setup packet of a control transfer.
        SetupStage = 0x02 => "setup stage",
        /// The data of a control transfer.
        DataStage = 0x03 => "data stage",
        /// The end of a control transfer.
        StatusStage = 0x04 => "status stage",
        /// Isochronous data.
        Isoch = 0x05 => "isoch",
        /// The ring goes on elsewhere.
        Link = 0x06 => "link",
        /// An event with a value of the driver's.
        EventData = 0x07 => "event data",
        /// Nothing, on a transfer ring.
        NoOp = 0x08 => "no op",
        /// A slot is wanted.
        EnableSlot = 0x09 => "enable slot",
        /// A slot is given back.
        DisableSlot = 0x0a => "disable slot",
        /// A device is given an address.
        AddressDevice = 0x0b => "address device",
        /// Endpoints come and go.
        ConfigureEndpoint = 0x0c => "configure endpoint",
        /// Some fields of a context change.
        EvaluateContext = 0x0d => "evaluate context",
        /// A halted endpoint is stopped.
        ResetEndpoint = 0x0e => "reset endpoint",
        /// A running endpoint is stopped.
        StopEndpoint = 0x0f => "stop endpoint",
        /// A stopped ring goes on elsewhere.
        SetTrDequeuePointer = 0x10 => "set TR dequeue pointer",
        /// A device was reset.
        ResetDevice = 0x11 => "reset device",
        /// Nothing, on the command ring.
        NoOpCommand = 0x17 => "no op command",
        /// A TRB of a transfer ring ended.
        TransferEvent = 0x20 => "transfer event",
        /// A command ended.
        CommandCompletion = 0x21 => "command completion",
        /// A port changed.
        PortStatusChange = 0x22 => "port status change",
        /// Bandwidth is asked back.
        BandwidthRequest = 0x23 => "bandwidth request",
        /// A guest rang a doorbell.
        DoorbellEvent = 0x24 => "doorbell",
        /// A host controller event.
        HostController = 0x25 => "host controller",
        /// A device sent a notification.
        DeviceNotification = 0x26 => "device notification",
        /// The microframe counter went round.
        MicroframeIndexWrap = 0x27 => "microframe index wrap",
    }
}

/// The cycle bit of a TRB.
pub const fn cycle_of(trb: &[u8; TRB_BYTES]) -> bool {
    let [.., control, _, _, _] = trb;
    flag(*control as u32, 0)
}

/// The type of a TRB.
pub fn trb_type_of(trb: &[u8; TRB_BYTES]) -> TrbType {
    let [.., c0, c1, c2, c3] = *trb;
    type_in(u32::from_le_bytes([c0, c1, c2, c3]))
}

fn type_in(control: u32) -> TrbType {
    TrbType::from(field(control, 10, 6) as u8)
}

/// The control dword of a type: type and cycle.
fn control(trb_type: TrbType, cycle: bool) -> u32 {
    u32::from(u8::from(trb_type)) << 10 | u32::from(cycle)
}

fn words(bytes: &[u8]) -> Result<[u32; 4], DecodeError> {
    dwords(bytes)
}

fn encoded(words: [u32; 4]) -> [u8; TRB_BYTES] {
    bytes_of(&words)
}

/// This type is not of the family asked for.
fn foreign(trb_type: TrbType) -> DecodeError {
    DecodeError::Invalid { field: "TRB Type", value: u8::from(trb_type).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_and_type_are_found_without_decoding() {
        let link = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0x18, 0, 0];
        assert!(cycle_of(&link));
        assert_eq!(trb_type_of(&link), TrbType::Link);
        let vendor = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0xc0, 0, 0];
        assert!(!cycle_of(&vendor));
        assert_eq!(trb_type_of(&vendor), TrbType::Unknown(48));
    }
}
