//! What is said to the driver, and what it says: transfers and completions in the words of `bus`, requests and answers.
//!
//! A request is answered once, by its id. Left out: what descriptors mean and which requests a device needs to be
//! configured; that is said by control transfers, which are transfers like the others.

use alloc::vec::Vec;
use bus::{Completion, EndpointAddress, Pipe, TransferId};
use core::fmt;
use units::Instant;
use wire::usb::{EndpointDescriptor, SetupPacket, SuperSpeedCompanion};
use wire::xhci::{CompletionCode, PortPower, PortStatus, RouteString};

use crate::Quirks;

/// A device that has a slot. The generation makes the id of a device that went useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    pub(crate) slot: u8,
    pub(crate) generation: u32,
}

impl DeviceId {
    /// The controller's name for it.
    pub const fn slot(self) -> u8 {
        self.slot
    }
}

/// A transfer of a bulk endpoint. Its direction is the endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Comes back in its completion; of those under way on a pipe, no two are the same.
    pub id: TransferId,
    /// Whose.
    pub device: DeviceId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bus address of the buffer, which is the controller's until the completion.
    pub buffer: u64,
    /// Bytes to send, or room; [`crate::limit::TRANSFER_BYTES_MAX`] at most.
    pub length: u32,
}

/// A transfer of the control endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTransfer {
    /// Comes back in its completion.
    pub id: TransferId,
    /// Whose.
    pub device: DeviceId,
    /// The request; says length and direction of the data. SET_ADDRESS is the controller's own and must not be sent.
    pub setup: SetupPacket,
    /// Bus address of the data.
    pub buffer: u64,
}

/// Names a request to the one who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The root port, from 1.
    pub root_port: u8,
    /// The hubs on the way.
    pub route: RouteString,
    /// The speed id of its port; of a port of a hub the usual one ([`wire::xhci::LinkSpeed::usual`]).
    pub speed_id: u8,
    /// Behind a high-speed hub: the one that translates for it.
    pub translator: Option<Translator>,
    /// Bytes of a packet of the control endpoint, as far as known: 8 or 64, 512 at SuperSpeed.
    pub control_packet: u16,
}

/// The hub that translates for a device of full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translator {
    /// The hub.
    pub hub: DeviceId,
    /// The port of the hub.
    pub port: u8,
    /// The hub has a translator for each port, and they are on.
    pub multiple: bool,
}

/// What a hub is to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubShape {
    /// Its ports.
    pub ports: u8,
    /// Think time of a high-speed hub: 0 to 3 for 8, 16, 24, 32 full-speed bit times.
    pub think_time: u8,
    /// A translator for each port, and they are on.
    pub multiple_translators: bool,
}

/// An endpoint as its descriptors say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointPlan {
    /// The descriptor.
    pub descriptor: EndpointDescriptor,
    /// At SuperSpeed, its companion.
    pub companion: Option<SuperSpeedCompanion>,
}

/// Something that takes the controller one or more commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reset a root port. Answered with [`Answer::Port`] when it is enabled.
    ResetPort {
        /// From 1.
        port: u8,
    },
    /// When the link of a root port of USB 3 goes to sleep.
    SetLinkPower {
        /// From 1.
        port: u8,
        /// Its time-outs.
        power: PortPower,
    },
    /// A slot and an address for a device whose port was reset. Answered with [`Answer::Attached`].
    Attach(Location),
    /// The packet size of the control endpoint is another than was thought.
    SetControlPacket(DeviceId, u16),
    /// What the links on the way to a device take to wake up at most, in microseconds (Max Exit Latency, xHCI 1.2 clause
    /// 4.23.5.2).
    SetExitLatency(DeviceId, u16),
    /// Endpoints come and go. Nothing may be under way on those that go.
    Configure {
        /// Whose.
        device: DeviceId,
        /// Endpoints that come.
        add: Vec<EndpointPlan>,
        /// Endpoints that go.
        drop: Vec<EndpointAddress>,
    },
    /// Streams on bulk endpoints that have none. Answered with [`Answer::Streams`].
    AllocateStreams {
        /// Whose.
        device: DeviceId,
        /// Which.
        endpoints: Vec<EndpointAddress>,
        /// How many are wanted.
        wanted: u16,
    },
    /// No streams any more.
    FreeStreams(DeviceId, Vec<EndpointAddress>),
    /// The data toggle or sequence number begins anew, as it does at the device after CLEAR FEATURE (ENDPOINT_HALT). After a
    /// transfer that ended as stalled, as babble or as an error nothing moves at its endpoint until this is asked for, with
    /// streams as well. Otherwise nothing may be under way there.
    ResetToggle(DeviceId, EndpointAddress),
    /// The device is a hub.
    DescribeHub(DeviceId, HubShape),
    /// The device's port was reset: it gets its address again, its endpoints but 0 are gone, and every transfer ends as
    /// cancelled.
    Readdress(DeviceId),
    /// The device is gone or given up: every transfer ends as disconnected.
    Detach(DeviceId),
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// The port was reset; so it is.
    Port(PortStatus),
    /// The device has a slot and an address.
    Attached(DeviceId),
    /// Streams 1 to this many are there.
    Streams(u16),
    /// The controller refused.
    Failed(CompletionCode),
    /// It did not come about in time.
    TimedOut,
    /// There is no memory for it, or no slot.
    NoMemory,
    /// The device or the controller is gone.
    Gone,
}

/// Why something was not taken on. Nothing comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The ring is full, or too much waits; completions make room.
    Full,
    /// A request of the device is under way, or transfers are; for a transfer: its endpoint is being made anew.
    Busy,
    /// The device is gone, or the controller is not running.
    Gone,
    /// There is no such port, endpoint or stream.
    NoSuchPipe,
    /// It is longer than [`crate::limit::TRANSFER_BYTES_MAX`], or the control transfer is SET_ADDRESS.
    NotAllowed,
    /// The controller or the endpoint has no streams.
    NoStreams,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The controller runs.
    Running,
    /// A transfer ended. Its buffer is the caller's again.
    Completed(DeviceId, Completion),
    /// A request was answered.
    Answered(RequestId, Answer),
    /// A root port changed; so it is now.
    PortChanged {
        /// From 1.
        port: u8,
        /// Its state.
        status: PortStatus,
    },
    /// The root port that leads to the device is empty or was so meanwhile, or an endpoint of it cannot be brought to work. Its transfers
    /// have ended, its id is void.
    Gone(DeviceId),
    /// The controller is of no use until it is started again. Everything under way has ended.
    Died(Death),
}

/// Why a controller is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It cannot be what it says ([`crate::Unusable`]).
    Unusable(crate::Unusable),
    /// There is no memory.
    NoMemory,
    /// Firmware does not hand it over, or it does not halt, get ready, or end its reset.
    NotInTime(DeadlineReason),
    /// It says that its memory failed it.
    HostSystemError,
    /// It says that it is broken.
    ControllerError,
    /// Its registers read as all ones: it was pulled out.
    Removed,
    /// Its command ring cannot be stopped.
    CommandsStuck,
}

/// When [`crate::Controller::handle_timeout`] has something to see to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// What is waited for.
    pub reason: DeadlineReason,
}

/// What is waited for with a limit.
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

/// How the driver goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the controller does otherwise.
    pub quirks: Quirks,
    /// The least time between interrupts, in units of 250 ns.
    pub moderation_250ns: u16,
    /// Bulk transfers end with an event data TRB, which tells the bytes moved, instead of an event of their last TRB.
    pub event_data: bool,
    /// TRBs of a segment of the event ring: 256 to 4096. A controller that has no room for an event should wait for it;
    /// QEMU's drops the event, and with it a completion.
    pub event_ring_trbs: u16,
    /// Segments of a transfer ring.
    pub ring_segments: u16,
    /// TRBs of a segment, the link counted: 3 to 4096.
    pub ring_trbs: u16,
    /// Segments of a stream's ring.
    pub stream_ring_segments: u16,
    /// TRBs of a segment of it, the link counted.
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

/// What went otherwise than it should. A controller without trouble counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events of a type that is not known, or of one that is not asked for.
    pub unknown_events: u32,
    /// Events that name no slot, endpoint, command or place of ours.
    pub stray_events: u32,
    /// Events for a TD that had ended.
    pub late_events: u32,
    /// Times that events were lost for want of room.
    pub rings_full: u32,
    /// Transaction errors that were tried again.
    pub soft_retries: u32,
    /// Stop Endpoints that found the endpoint stopped, halted or still running.
    pub stop_races: u32,
    /// Commands that were given up.
    pub command_timeouts: u32,
    /// Endpoints that could not be brought to work again.
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
            Self::Full => "there is no room",
            Self::Busy => "something of the device is under way",
            Self::Gone => "the device is gone",
            Self::NoSuchPipe => "there is no such port, endpoint or stream",
            Self::NotAllowed => "it is too long, or nobody may send it",
            Self::NoStreams => "there are no streams",
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
            Self::TimedOut => f.write_str("not in time"),
            Self::NoMemory => f.write_str("there is no memory for it, or no slot"),
            Self::Gone => f.write_str("the device or the controller is gone"),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(unusable) => unusable.fmt(f),
            Self::NoMemory => f.write_str("there is no memory for it"),
            Self::NotInTime(reason) => write!(f, "waited in vain for {reason}"),
            Self::HostSystemError => f.write_str("its memory failed it"),
            Self::ControllerError => f.write_str("it says that it is broken"),
            Self::Removed => f.write_str("it was pulled out"),
            Self::CommandsStuck => f.write_str("its command ring cannot be stopped"),
        }
    }
}
