//! Our disk over BOT, and a device that ends each transfer as it likes.
#![no_main]

use fuzz::scripted_device::{Action, bot_config, play};
use initiator::Bot;

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (kind, actions) = script;
    play(Bot::new(bot_config()), kind, actions);
});
