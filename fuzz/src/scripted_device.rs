//! A scripted device for our host: a session on a bus where the script has the other end of each
//! transfer, of each request to the bus, and of time.
//!
//! Invariants that hold whatever the device does: nothing panics; each request and each identify
//! sequence ends once, with its buffer not in use; transfers in flight do not share bytes of a
//! buffer, and have a limit; whatever waits has a deadline; and when the device falls silent,
//! everything ends in finite time.

mod script;
mod scripted_bus;
mod stack;
mod unit;

pub use script::{Action, play};
pub use stack::Stack;

use bus::{Direction, EndpointAddress};
use initiator::{BotConfig, Timeouts, UasEndpoints};

/// Bulk-Only endpoints.
pub fn bot_config() -> BotConfig {
    let (bulk_in, bulk_out) =
        (EndpointAddress::at::<1>(Direction::In), EndpointAddress::at::<2>(Direction::Out));
    BotConfig { interface: 0, alternate: 0, bulk_in, bulk_out, timeouts: Timeouts::default() }
}

/// The pipes of USB Attached SCSI.
pub fn uas_endpoints() -> UasEndpoints {
    UasEndpoints {
        command: EndpointAddress::at::<4>(Direction::Out),
        status: EndpointAddress::at::<3>(Direction::In),
        data_in: EndpointAddress::at::<1>(Direction::In),
        data_out: EndpointAddress::at::<2>(Direction::Out),
    }
}
