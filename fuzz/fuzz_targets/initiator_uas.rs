//! Our disk over UAS, with and without streams, and a device that completes each transfer as the script says.
#![no_main]

use fuzz::scripted_device::{Action, play, uas_endpoints};
use initiator::{Timeouts, Uas, UasConfig};

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (kind, actions) = script;
    let config = UasConfig {
        interface: 0,
        alternate: 1,
        endpoints: uas_endpoints(),
        streams: (kind & 0x80 == 0).then_some(2 + 2 * u16::from(kind >> 4 & 3)),
        depth: Some(6),
        timeouts: Timeouts::default(),
    };
    play(Uas::new(config).expect("two streams are enough"), kind, actions);
});
