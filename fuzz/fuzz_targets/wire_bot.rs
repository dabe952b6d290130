//! Bulk-Only Transport: wrappers and class requests.
#![no_main]

use fuzz::round_trip;
use wire::{
    bot::{Cbw, ClassRequest, Csw},
    usb::SetupPacket,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    round_trip!(bytes; Cbw; Csw);
    if let Ok(setup) = SetupPacket::decode(bytes)
        && let Ok(request) = ClassRequest::decode(&setup)
    {
        assert_eq!(ClassRequest::decode(&request.encode()), Ok(request));
    }
});
