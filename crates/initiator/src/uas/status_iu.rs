//! IUs of the status pipe, as devices send them.

use wire::uas::{SenseIu, StatusIu};

/// Decodes an IU of the status pipe. Sense data shorter than their length field are accepted as
/// they are.
#[inline(always)]
pub(super) fn decode(bytes: &[u8]) -> Option<StatusIu<'_>> {
    StatusIu::decode(bytes).ok().or_else(|| decode_cut(bytes))
}

#[cold]
fn decode_cut(bytes: &[u8]) -> Option<StatusIu<'_>> {
    let (head, sense) = bytes.split_first_chunk::<{ SenseIu::LEN }>()?;
    let mut head = *head;
    head[SenseIu::LEN - 2..].fill(0);
    let SenseIu { tag, status_qualifier, status, .. } = SenseIu::decode(&head).ok()?;
    Some(StatusIu::Sense(SenseIu { tag, status_qualifier, status, sense }))
}
