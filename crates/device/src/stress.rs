//! Stress tests: random hosts against the whole device, with a medium that answers when and in what order it likes.
//!
//! Two kinds of host. An *orderly* one keeps the rules of its transport, and a model says what it may find: every
//! command ends once, every transfer completes once, data end before their status, and what is read is what was
//! written last. A *random* one keeps none, and the device must only stay consistent: at the end of the script a port reset
//! makes it idle, and it works as before.
//!
//! `PROPTEST_CASES=100000 cargo test -p uaskit-device stress` makes longer runs; a failure prints its seed.

mod blocks;
mod bot_host;
mod random_host;
mod uas_host;
