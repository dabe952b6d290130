//! Exports a virtual drive to real hosts.
//!
//! [`usbredir`] turns the bytes of a client (QEMU) into transfers of a [`drive::Drive`] and back; [`net`] has the
//! sockets. [`vfio_user`] gives a hypervisor a whole USB controller with drives at its ports. One thread runs one drive: it waits for the socket and for the media, moves what there is to move, and never
//! blocks in between.
//!
//! Left out: an async runtime (see docs/decisions).

pub mod net;
pub mod usbredir;
pub mod vfio_user;
