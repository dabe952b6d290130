//! Quirks: what Linux is told to do otherwise for one device.
//!
//! They come from three places, in this order: the table of `uas` ([`table`]), rules in its code that look at more
//! than ids ([`coded`]), and the user, whose entry replaces every flag that has a letter ([`setting`]). Left out:
//! unusual_devs.h, the table of `usb-storage`, which `uas` never sees.

pub mod coded;
mod flags;
pub mod setting;
pub mod table;

pub use flags::{Flag, Flags};
