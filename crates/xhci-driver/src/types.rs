//! Inputs and outputs of the driver: transfers and completions of crate `bus`, requests and
//! answers.
//!
//! A request is answered once, by its id. Left out: descriptors and the control requests that
//! configure a device, which are ordinary control transfers.

use alloc::vec::Vec;
use bus::{Completion, EndpointAddress, Pipe, TransferId};
use core::fmt;
use units::Instant;
use wire::usb::{EndpointDescriptor, SetupPacket, SuperSpeedCompanion};
use wire::xhci::{CompletionCode, PortPower, PortStatus, RouteString};

use crate::Quirks;

/// A device that has a slot. The generation invalidates the ids of disconnected devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    pub(crate) slot: u8,
    pub(crate) generation: u32,
}

impl DeviceId {
    /// Returns the slot id.
    pub const fn slot(self) -> u8 {
        self.slot
    }
}

/// A transfer of a bulk endpoint, in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Returned in its completion; unique among those in flight on a pipe.
    pub id: TransferId,
    /// The device.
    pub device: DeviceId,
    /// The pipe.
    pub pipe: Pipe,
    /// Bus address of the buffer, owned by the controller until the completion.
    pub buffer: u64,
    /// Bytes to send, or the size of the receive buffer; at most
    /// [`crate::limit::TRANSFER_BYTES_MAX`].
    pub length: u32,
}

/// A transfer of the control endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTransfer {
    /// Returned in its completion.
    pub id: TransferId,
    /// The device.
    pub device: DeviceId,
    /// The setup packet, with length and direction of the data. SET_ADDRESS must not be sent.
    pub setup: SetupPacket,
    /// Bus address of the data.
    pub buffer: u64,
}

/// Identifies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// The location of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The root port, from 1.
    pub root_port: u8,
    /// The route string.
    pub route: RouteString,
    /// The speed id of its port; for a hub port the default one ([`wire::xhci::LinkSpeed::usual`]).
    pub speed_id: u8,
    /// The transaction translator, behind a high-speed hub.
    pub translator: Option<Translator>,
    /// Maximum packet size of the control endpoint, as far as known: 8 or 64, 512 at SuperSpeed.
    pub control_packet: u16,
}

/// The transaction translator of a full-speed device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translator {
    /// The hub.
    pub hub: DeviceId,
    /// The port of the hub.
    pub port: u8,
    /// The hub has one translator per port, enabled.
    pub multiple: bool,
}

/// The properties of a hub that the controller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubShape {
    /// Number of ports.
    pub ports: u8,
    /// Think time of a high-speed hub: 0 to 3 for 8, 16, 24, 32 full-speed bit times.
    pub think_time: u8,
    /// One translator per port, enabled.
    pub multiple_translators: bool,
}

/// An endpoint as its descriptors describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointPlan {
    /// The descriptor.
    pub descriptor: EndpointDescriptor,
    /// Its companion descriptor, at SuperSpeed.
    pub companion: Option<SuperSpeedCompanion>,
}

/// An operation that takes one or more commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Resets a root port. Answered with [`Answer::Port`] when it is enabled.
    ResetPort {
        /// From 1.
        port: u8,
    },
    /// Sets the link power management timeouts of a USB 3 root port.
    SetLinkPower {
        /// From 1.
        port: u8,
        /// The timeouts.
        power: PortPower,
    },
    /// Allocates a slot and an address for a device whose port was reset. Answered with
    /// [`Answer::Attached`].
    Attach(Location),
    /// Corrects the maximum packet size of the control endpoint.
    SetControlPacket(DeviceId, u16),
    /// Sets the maximum exit latency of the links to a device, in microseconds (xHCI 1.2 clause
    /// 4.23.5.2).
    SetExitLatency(DeviceId, u16),
    /// Adds and drops endpoints. Those dropped must have no transfers in flight.
    Configure {
        /// The device.
        device: DeviceId,
        /// Endpoints to add.
        add: Vec<EndpointPlan>,
        /// Endpoints to drop.
        drop: Vec<EndpointAddress>,
    },
    /// Allocates streams on bulk endpoints without streams. Answered with [`Answer::Streams`].
    AllocateStreams {
        /// The device.
        device: DeviceId,
        /// The endpoints.
        endpoints: Vec<EndpointAddress>,
        /// Number of streams wanted.
        wanted: u16,
    },
    /// Frees streams.
    FreeStreams(DeviceId, Vec<EndpointAddress>),
    /// Resets the data toggle or sequence number, as CLEAR FEATURE (ENDPOINT_HALT) does at the
    /// device. After a transfer completed with a stall, babble or an error, nothing moves at its
    /// endpoint until this request, with streams as well. Otherwise nothing may be in flight there.
    ResetToggle(DeviceId, EndpointAddress),
    /// Declares the device as a hub.
    DescribeHub(DeviceId, HubShape),
    /// Readdresses a device after a reset of its port: its endpoints but 0 are dropped and every
    /// transfer completes as cancelled.
    Readdress(DeviceId),
    /// Releases a device that is disconnected or given up: every transfer completes as
    /// disconnected.
    Detach(DeviceId),
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success.
    Done,
    /// The port was reset; its status.
    Port(PortStatus),
    /// The device has a slot and an address.
    Attached(DeviceId),
    /// Streams 1 to this number exist.
    Streams(u16),
    /// The controller rejected it.
    Failed(CompletionCode),
    /// It timed out.
    TimedOut,
    /// Out of memory or slots.
    NoMemory,
    /// The device or the controller is gone.
    Gone,
}

/// Why an input is rejected, without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The ring or the output queue is full; completions free space.
    Full,
    /// A request of the device, or transfers, are in progress; for a transfer: its endpoint is
    /// being reconfigured.
    Busy,
    /// The device is gone, or the controller is not running.
    Gone,
    /// There is no such port, endpoint or stream.
    NoSuchPipe,
    /// It is longer than [`crate::limit::TRANSFER_BYTES_MAX`], or the control transfer is
    /// SET_ADDRESS.
    NotAllowed,
    /// The controller or the endpoint has no streams.
    NoStreams,
}

/// An output of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The controller runs.
    Running,
    /// A transfer completed. Its buffer is the caller's again.
    Completed(DeviceId, Completion),
    /// A request was answered.
    Answered(RequestId, Answer),
    /// A root port changed.
    PortChanged {
        /// From 1.
        port: u8,
        /// Its status.
        status: PortStatus,
    },
    /// The root port of the device was disconnected, or an endpoint cannot be recovered. Its
    /// transfers have completed, its id is invalid.
    Gone(DeviceId),
    /// The controller failed and must be started again. All transfers have completed.
    Died(Death),
}

/// Why a controller failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Unsupported or contradictory capabilities ([`crate::Unusable`]).
    Unusable(crate::Unusable),
    /// Out of memory.
    NoMemory,
    /// Handover, halt, readiness or reset timed out.
    NotInTime(DeadlineReason),
    /// Host system error.
    HostSystemError,
    /// Host controller error.
    ControllerError,
    /// Its registers read as all ones: it was removed.
    Removed,
    /// Its command ring cannot be stopped.
    CommandsStuck,
}

/// When [`crate::Controller::handle_timeout`] must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// The reason for it.
    pub reason: DeadlineReason,
}

/// An event that is awaited with a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineReason {
    /// Firmware hands the controller over.
    Handover,
    /// The controller halts.
    Halt,
    /// The controller ends its reset.
    Reset,
    /// A command is answered.
    Command,
    /// The command ring stops.
    CommandAbort,
    /// A port is reset.
    PortReset(u8),
    /// Late events of a stopped endpoint.
    StopSettles,
    /// There are more events than one call takes.
    MoreEvents,
}

/// Parameters of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Deviations of the controller.
    pub quirks: Quirks,
    /// Interrupt moderation interval, in units of 250 ns.
    pub moderation_250ns: u16,
    /// Bulk transfers end with an event data TRB, which reports the bytes transferred, instead of
    /// an event of their last TRB.
    pub event_data: bool,
    /// TRBs of a segment of the event ring: 256 to 4096. A controller that has no room for an event
    /// should wait for it; QEMU's drops the event, and with it a completion.
    pub event_ring_trbs: u16,
    /// Segments of a transfer ring.
    pub ring_segments: u16,
    /// TRBs of a segment, including the link: 3 to 4096.
    pub ring_trbs: u16,
    /// Segments of a stream's ring.
    pub stream_ring_segments: u16,
    /// TRBs of a segment of it, including the link.
    pub stream_ring_trbs: u16,
}

impl Default for Config {
    /// 40 µs between interrupts, rings of 255 places, of streams 127.
    fn default() -> Self {
        Self {
            quirks: Quirks::default(),
            moderation_250ns: 160,
            event_data: false,
            event_ring_trbs: 256,
            ring_segments: 1,
            ring_trbs: 256,
            stream_ring_segments: 1,
            stream_ring_trbs: 128,
        }
    }
}

/// Counts of anomalies; all zero without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events of an unknown or unexpected type.
    pub unknown_events: u32,
    /// Events for an unknown slot, endpoint, command or TRB.
    pub stray_events: u32,
    /// Events for a TD that had ended.
    pub late_events: u32,
    /// Times that events were lost because the event ring was full.
    pub rings_full: u32,
    /// Transaction errors retried.
    pub soft_retries: u32,
    /// Stop Endpoints that found the endpoint stopped, halted or still running.
    pub stop_races: u32,
    /// Commands that timed out.
    pub command_timeouts: u32,
    /// Endpoints that could not be recovered.
    pub failed_endpoints: u32,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device in slot {}", self.slot)
    }
}

impl fmt::Display for DeadlineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handover => "firmware to hand the controller over",
            Self::Halt => "the controller to halt",
            Self::Reset => "the controller's reset",
            Self::Command => "the answer to a command",
            Self::CommandAbort => "the command ring to stop",
            Self::PortReset(port) => return write!(f, "the reset of port {port}"),
            Self::StopSettles => "late events of a stopped endpoint",
            Self::MoreEvents => "more events",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "queue full",
            Self::Busy => "the device has a request or transfers in progress",
            Self::Gone => "device disconnected",
            Self::NoSuchPipe => "no such port, endpoint or stream",
            Self::NotAllowed => "transfer too long or not allowed",
            Self::NoStreams => "streams not supported",
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Port(status) => status.fmt(f),
            Self::Attached(device) => device.fmt(f),
            Self::Streams(count) => write!(f, "{count} streams"),
            Self::Failed(code) => code.fmt(f),
            Self::TimedOut => f.write_str("timed out"),
            Self::NoMemory => f.write_str("out of memory or slots"),
            Self::Gone => f.write_str("the device or the controller is gone"),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(unusable) => unusable.fmt(f),
            Self::NoMemory => f.write_str("out of memory"),
            Self::NotInTime(reason) => write!(f, "timed out waiting for {reason}"),
            Self::HostSystemError => f.write_str("host system error"),
            Self::ControllerError => f.write_str("host controller error"),
            Self::Removed => f.write_str("controller removed"),
            Self::CommandsStuck => f.write_str("the command ring cannot be stopped"),
        }
    }
}
