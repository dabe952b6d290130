//! Requests of a controller to other components, and their answers.

use alloc::vec::Vec;
use bus::Pipe;
use bus::link::{Endpoint, Transfer};
use wire::usb::{EndpointAddress, SetupPacket};
use wire::xhci::{PortPower, RouteString};

/// The path to a device, from the slot context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePath {
    /// The root port, from 1.
    pub port: u8,
    /// Route string: the hub ports in between.
    pub route: RouteString,
}

/// A request of a controller, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Interrupts the driver.
    Interrupt,
    /// Changes the host side of a device's endpoints.
    Link(DevicePath, LinkAct),
    /// Starts a control transfer. Answered by [`super::Controller::handle_control`].
    Control(DevicePath, ControlRequest),
    /// The link of a root port went down.
    PortDown(u8),
    /// The device at a root port was reset.
    PortReset(u8),
    /// The device at a root port is enabled.
    PortUp(u8),
    /// Sets the U1 and U2 timeouts of a USB 3 root port.
    PortPower(u8, PortPower),
}

/// An action on the host side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkAct {
    /// Installs an endpoint, replacing an old one. It is running.
    Install(Endpoint),
    /// Removes an endpoint and cancels its transfers.
    Remove(EndpointAddress),
    /// Queues a transfer.
    Queue(Pipe, Transfer),
    /// Stops an endpoint at the next packet. Answered by [`super::Controller::handle_quiet`].
    Stop(EndpointAddress),
    /// Cancels the transfers of a quiet endpoint.
    Clear(EndpointAddress),
    /// Resets the sequence number and clears a halt.
    Reset(EndpointAddress),
    /// Clears a halt and keeps the sequence number (Transfer State Preserve, xHCI 1.2 clause
    /// 4.6.8.1).
    Retry(EndpointAddress),
    /// Restarts an endpoint.
    Resume(EndpointAddress),
}

/// Identifies a control transfer in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlId {
    /// The slot of the device.
    pub slot: u8,
    /// The number of the transfer.
    pub number: u32,
}

/// A control transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRequest {
    /// Returned with the answer.
    pub id: ControlId,
    /// The request.
    pub setup: SetupPacket,
    /// Its data, for an OUT transfer.
    pub data_out: Vec<u8>,
}

/// The answer to a control transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAnswer {
    /// Success, with the data of an IN transfer.
    Done(Vec<u8>),
    /// The device answered with a stall.
    Stalled,
    /// The device did not answer.
    Silent,
}
