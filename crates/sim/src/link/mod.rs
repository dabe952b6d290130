//! What lies between a host controller and a device.
//!
//! [`superspeed`] is the dual-simplex link of USB 3: two lanes that know nothing of each other but the acknowledgements
//! that one carries for the other. [`bulk`] is what both ends of a bulk endpoint say to each other over it, and [`streams`]
//! their agreement on which stream of a pipe moves. [`high_speed`] is the bus of USB 2.0.

pub mod bulk;
pub mod high_speed;
pub mod streams;
pub mod superspeed;
