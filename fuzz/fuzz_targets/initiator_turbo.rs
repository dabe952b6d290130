//! Our disk over BOT with large transfers, and a device that ends each transfer as it likes.
#![no_main]

use fuzz::scripted_device::{Action, bot_config, play};
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use units::Duration;

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (kind, actions) = script;
    let wait = Duration::from_us(100);
    let look_ahead = match kind >> 6 {
        0 => LookAhead::Never,
        1 => LookAhead::Always(wait),
        _ => LookAhead::AfterNeighbour(wait),
    };
    let config = TurboConfig { look_ahead, transfer_bytes_max: 8 << 10, requests_max: 8, bot: bot_config() };
    play(Turbo::new(config), kind, actions);
});
