//! The content of a packet, as every link type is read.

use crate::event::{Address, Event, TransferKind};
use wire::DecodeError;

/// The content of a packet.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// One end of a control, bulk or interrupt transfer.
    Event(Event<'a>),
    /// An isochronous transfer begins.
    Other(Address, TransferKind),
    /// Nothing by itself.
    Nothing,
}

/// Ends of transfers of other kinds are not counted: their beginnings are.
pub(super) fn other<'a>(
    address: Address,
    kind: TransferKind,
    is_begin: bool,
) -> Result<Seen<'a>, DecodeError> {
    Ok(if is_begin { Seen::Other(address, kind) } else { Seen::Nothing })
}
