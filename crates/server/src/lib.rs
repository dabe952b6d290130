//! Puts a virtual drive where real hosts find it.
//!
//! [`drive`] joins a [`target::Device`] with its media and the transfers of a host; [`medium`] stores blocks;
//! [`usbredir`] turns the bytes of a client (QEMU) into transfers and back; [`net`] has the sockets. One thread runs
//! one drive: it waits for the socket and for the media, moves what there is to move, and never blocks in between.
//!
//! Left out: an async runtime (see docs/decisions).

pub mod drive;
pub mod medium;
pub mod net;
pub mod usbredir;
