//! A drive on a socket: the listener, one client at a time, and the loop that moves bytes.
//!
//! [`Server::start`] binds, so that a wrong address is an error at once, and gives the drive to its
//! own thread. That thread waits for the socket and the media (`mio`); in each turn it reads once,
//! takes every packet that has come, runs the drive, and sends all answers with one `writev`.
//! Events are edge-triggered: a
//! `client` keeps its own flags, and a short read or write says that there is no more for now (epoll(7)).
//!
//! When a client is gone the drive has lost its nexus and keeps its disk; the next client may come.
//! A second one at the same time is rejected by a hello that says so. A client that has closed the
//! connection never keeps the next one out, and one that sends no hello in time is disconnected. A
//! client that closes one direction is gone: it cannot ask for anything any more.
//!
//! The owner says by a [`Controller`] what is to become of media while the drive is served (`control`).
//!
//! Left out: encryption and names for clients. A Unix socket has mode 0600 from its first moment; TCP is for loopback
//! unless the caller says otherwise.
//!
//! Always true: the loop blocks nowhere but in its wait, and in the pause that `moderation` sets; what a client may make it hold is bounded by
//! [`crate::usbredir::Limits`]; a client that does not read is not read from.

mod address;
mod allocator;
mod client;
mod control;
mod event;
mod listener;
mod media;
mod moderation;
mod receive;
mod serve;
mod server;
mod shared;
mod socket;
#[cfg(test)]
pub(crate) mod tests;

pub use address::{Address, AddressError};
pub(crate) use control::DriveSet;
pub use control::{CONTROL_REQUESTS_MAX, ControlError, Controller, DriveState, State, UnitState};
pub use event::{Event, Reason};
pub(crate) use listener::Listener;
pub use listener::{BindError, PrivateSocket};
pub(crate) use media::{ALARM, CLIENT, LISTENER, PendingRequests, register_media};
pub use server::{Config, Server, Stopper};
pub(crate) use shared::Shared;
pub use shared::{ServerExit, Snapshot};
pub(crate) use socket::Socket;
