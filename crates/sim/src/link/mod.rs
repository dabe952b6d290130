//! What lies between a host controller and a device.
//!
//! [`superspeed`] is the dual-simplex link of USB 3: two lanes that know nothing of each other but the acknowledgements
//! that one carries for the other. [`streams`] is the agreement of both ends on which stream of a pipe moves.

pub mod streams;
pub mod superspeed;
