//! Storms: random hosts against the whole device, with a medium that answers when and in what order it likes.
//!
//! Two kinds of host. An *orderly* one keeps the rules of its transport, and a model says what it may find: every
//! command ends once, every transfer completes once, data end before their status, and what is read is what was
//! written last. A *wild* one keeps none, and the device must only stay whole: at the end of the storm a port reset
//! brings it to rest, and it works as before.
//!
//! `PROPTEST_CASES=100000 cargo test -p uaskit-device storms` makes longer weather; a failure prints its seed.

mod blocks;
mod bot_host;
mod uas_host;
mod wild_host;
