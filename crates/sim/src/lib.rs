//! A world in virtual time, in which both ends of a USB meet packet by packet.
//!
//! [`engine`] keeps time: what happens next, in one order, on any machine the same. [`link`] is what lies between a host
//! controller and a device, to the symbol. [`xhci`] is a host controller that carries out what its driver wrote into memory.
//! [`world`] joins the initiator and the target over the link; [`stack`] is what a host's class driver makes of an
//! application's requests, and [`raw`] measures both transports on a plain drive. [`explain`] looks on, and says where the
//! time of each command goes. [`power`] keeps the books of what parts draw. [`parts`] is the catalogue of real ones,
//! [`setups`] join them by name, [`assembly`] powers them on and [`measure`](mod@measure) runs workloads on them. [`published`]
//! says how figures of others are decided. [`fault`] says what goes wrong in a world, [`check`] what must hold all the same, and
//! [`swarm`] makes random worlds to see whether it does.
//!
//! Always true: nothing here reads a clock, starts a thread, or takes an order from a hash; the same seed gives the same
//! digest.

pub mod assembly;
pub mod bridge;
pub mod check;
pub mod components;
pub mod drive;
pub mod engine;
pub mod explain;
pub mod fault;
mod few;
pub mod hub;
pub mod link;
pub mod measure;
pub mod native;
pub mod overhead;
pub mod parts;
pub mod power;
pub mod published;
pub mod raw;
pub mod sata;
pub mod setups;
mod sorted;
mod spares;
pub mod stack;
pub mod swarm;
pub mod trial;
pub mod world;
pub mod xhci;
