//! What a controller wants of others, and what they answer.

use crate::link::bulk::{Endpoint, Transfer};
use bus::Pipe;
use wire::usb::{EndpointAddress, SetupPacket};
use wire::xhci::{PortPower, RouteString};

/// The way to a device: what the slot context says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePath {
    /// The root port, from 1.
    pub port: u8,
    /// The ports of the hubs on the way.
    pub route: RouteString,
}

/// Something that a controller wants done, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The driver is to look at events.
    Interrupt,
    /// Something at the host's end of the endpoints of a device.
    Link(DevicePath, LinkAct),
    /// A control transfer with a device. Answered by [`super::Controller::handle_control`].
    Control(DevicePath, ControlRequest),
    /// Nothing crosses the link of a root port any more.
    PortDown(u8),
    /// The device at a root port was reset.
    PortReset(u8),
    /// The device at a root port can be talked to.
    PortUp(u8),
    /// The link of a root port of USB 3 goes to sleep so from now on.
    PortPower(u8, PortPower),
}

/// Something at the host's end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkAct {
    /// There is an endpoint, in the place of what was there before. It runs.
    Install(Endpoint),
    /// There is none any more, and what it had is cancelled.
    Remove(EndpointAddress),
    /// An endpoint is to move something.
    Queue(Pipe, Transfer),
    /// An endpoint is to come to rest at the next packet. Answered by
    /// [`super::Controller::handle_quiet`].
    Stop(EndpointAddress),
    /// What an endpoint at rest has not moved is cancelled.
    Clear(EndpointAddress),
    /// Sequence numbers start again, and a halt is over.
    Reset(EndpointAddress),
    /// A halt is over, and sequence numbers stay (Transfer State Preserve, xHCI 1.2 clause
    /// 4.6.8.1).
    Retry(EndpointAddress),
    /// An endpoint may go on.
    Resume(EndpointAddress),
}

/// A control transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRequest {
    /// Comes back with the answer.
    pub slot: u8,
    /// Comes back with the answer.
    pub number: u32,
    /// The request.
    pub setup: SetupPacket,
    /// Its data, where they go to the device.
    pub data_out: Vec<u8>,
}

/// What came of a control transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAnswer {
    /// It was done. What came, where data go to the host.
    Done(Vec<u8>),
    /// The device answered with a stall.
    Stalled,
    /// The device did not answer.
    Silent,
}
