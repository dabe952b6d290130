//! Bulk-Only Transport: wrappers and class requests.

use wire::{
    bot::{Cbw, ClassRequest, Csw},
    usb::SetupPacket,
};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    round_trip!(bytes; Cbw; Csw);
    if let Ok(setup) = SetupPacket::decode(bytes)
        && let Ok(request) = ClassRequest::decode(&setup)
    {
        assert_eq!(ClassRequest::decode(&request.encode()), Ok(request));
    }
}
