//! A world in virtual time, in which both ends of a USB meet packet by packet.
//!
//! [`engine`] keeps time: what happens next, in one order, on any machine the same. [`link`] is what lies between a host
//! controller and a device, to the symbol. [`xhci`] is a host controller that carries out what its driver wrote into memory.
//! [`world`] joins the initiator and the target over the link; [`stack`] is what a host's class driver makes of an
//! application's requests. [`power`] accounts for what parts draw. [`fault`] says what goes wrong in a world, [`check`] what must
//! hold all the same. Parts by name, experiments and random worlds are in crate `study`.
//!
//! Always true: nothing here reads a clock, starts a thread, or takes an order from a hash; the same seed gives the same
//! digest.

pub mod bridge;
pub mod check;
pub mod components;
pub mod drive;
pub mod engine;
pub mod fault;
mod few;
pub mod hub;
pub mod link;
pub mod native;
pub mod power;
pub mod sata;
mod sorted;
mod spares;
pub mod stack;
pub mod world;
pub mod xhc;
