//! A drive on usbredir, without sockets: bytes in, bytes out, a device in between (usbredir 0.7; the order of packets
//! is that of the reference host, usbredirhost, because that is what QEMU was written against).
//!
//! We are the *USB host* side, which owns the device; the client (QEMU) is the *USB guest* side, which uses it. A
//! [`Session`] lives as long as one connection. Bytes go in by [`Session::receive`]; what they ask for goes straight
//! to the [`Exported`] device; what comes back lies in an outgoing queue that is sent by `writev`, see
//! [`Session::slices`].
//!
//! The order that a client sees: hello; after its hello `interface_info`, `ep_info`, `device_connect`; then answers.
//! Both infos come again before the status of each `set_configuration` and `set_alt_setting`, so that the client
//! knows an endpoint (its packet size, its streams) before the guest does. SET_ADDRESS never arrives, since QEMU
//! keeps addresses to itself; the session gives the device one, after a connect and after each reset.
//!
//! Left out: isochronous and interrupt OUT endpoints, read-ahead (a drive has none; requests are refused), and filters,
//! which are not offered.
//!
//! Always true: whatever the bytes are and however they are cut, nothing panics; each bulk packet is answered once;
//! a cancel of one that is outstanding too. Queued bytes stay below [`Limits`] plus the answers to one packet. What
//! is against the protocol ends the session with a [`Fault`] that names it.

mod exported;
mod fault;
mod interrupt;
mod layout;
mod limits;
mod outgoing;
mod pace;
mod request;
mod session;
#[cfg(test)]
pub(crate) mod tests;

pub use exported::Exported;
pub use fault::Fault;
pub use limits::{HELLO_TIMEOUT, Limits};
pub use outgoing::SLICES_MAX;
pub use pace::PAUSE;
pub use session::{CONTIGUOUS_BYTES_MAX, Peer, Session};
