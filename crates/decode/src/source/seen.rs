//! The content of a packet, as every link type is read.

use crate::event::{Address, Event};
use wire::DecodeError;

/// The content of a packet.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// One end of a control or bulk transfer.
    Event(Event<'a>),
    /// A transfer of another kind begins.
    Other(Address, TransferKind),
    /// Nothing by itself.
    Nothing,
}

/// Kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferKind {
    Control,
    Bulk,
    Interrupt,
    Isochronous,
}

/// Ends of transfers of other kinds are not counted: their beginnings are.
pub(super) fn other<'a>(
    address: Address,
    kind: TransferKind,
    is_begin: bool,
) -> Result<Seen<'a>, DecodeError> {
    Ok(if is_begin { Seen::Other(address, kind) } else { Seen::Nothing })
}
