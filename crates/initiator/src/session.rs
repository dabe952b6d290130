//! A disk, a transport and a bus, joined.
//!
//! A [`Session`] identifies a disk and runs block requests over any [`HostBus`]: a kernel
//! interface, a controller, a network protocol, the other end of a wire in memory. It makes commands
//! of requests, transfers of commands, and carries the results back. A bus of your own implements
//! [`HostBus`]:
//!
//! - [`buffers`](HostBus::buffers): memory for transfers, named by small indices. Ordinary memory is
//!   [`HeapBuffers`]. [`SessionBuffers::blocks`] says which buffers a session needs.
//! - [`submit`](HostBus::submit) starts a transfer of a span of a buffer, and
//!   [`poll`](HostBus::poll) returns its completion: exactly one for each, also after
//!   [`cancel`](HostBus::cancel). A bus that waits for each transfer returns it from `submit`.
//!   Transfer ids are indices below [`Transport::transfers_max`](crate::Transport::transfers_max).
//! - [`request`](HostBus::request) is for error recovery: clear a halt, select an alternate setting,
//!   allocate streams, reset the port. Most are one control transfer without data,
//!   [`BusRequest::setup`]. What the bus cannot do fails.
//!
//! The caller has the clock. [`Session::settle`] carries out all that is due; call it after
//! submissions and whenever the bus may have completed something, and
//! [`handle_timeout`](Session::handle_timeout) at [`poll_timeout`](Session::poll_timeout).
//!
//! `examples/custom_bus.rs` is a whole program: its bus leads to a drive in another thread.
//!
//! Always true: an accepted request ends once; its buffer is not accessible while it is in flight;
//! requests allocate nothing in steady state.

mod buffers;
mod command_runner;
mod disk_session;

pub use buffers::{BufferBlock, BufferId, BufferMemory, BufferSpan, HeapBuffers};
pub use command_runner::{CommandBuffer, CommandRunner, FinishedCommand, MESSAGE_BYTES, RunnerBuffers};
pub use disk_session::{FinishedRequest, LOST_KEPT_MAX, Session, SessionBuffers, SessionConfig};

use crate::{BusAnswer, BusRequest, RequestId};
use bus::{Completion, Pipe, TransferId};

/// A transfer to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRequest {
    /// Returned in its completion. No other transfer in flight has it.
    pub id: TransferId,
    /// Its pipe.
    pub pipe: Pipe,
    /// The bytes to send, or where to receive.
    pub span: BufferSpan,
    /// Whether nothing else in the buffer is needed: a bus may send the memory itself, or put other
    /// memory in its place, instead of copying.
    pub is_whole: bool,
}

/// One interface of a device and the bus to it.
///
/// A bus to a device that is not there:
///
/// ```
/// use uaskit_initiator::bus::{Completion, TransferStatus};
/// use uaskit_initiator::session::{HeapBuffers, HostBus, TransferRequest};
/// use uaskit_initiator::{BusAnswer, BusRequest, RequestId};
///
/// #[derive(Default)]
/// struct Unplugged(HeapBuffers);
///
/// impl HostBus for Unplugged {
///     type Buffers = HeapBuffers;
///
///     fn buffers(&mut self) -> &mut HeapBuffers {
///         &mut self.0
///     }
///
///     fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
///         Some(Completion { id: request.id, status: TransferStatus::Disconnected, actual: 0 })
///     }
///
///     fn request(&mut self, _id: RequestId, _request: BusRequest) -> Option<BusAnswer> {
///         Some(BusAnswer::Failed)
///     }
/// }
///
/// # use uaskit_initiator::bus::{Direction, EndpointAddress};
/// # use uaskit_initiator::disk::{AskTemperature, DiskConfig};
/// # use uaskit_initiator::session::{Session, SessionBuffers, SessionConfig};
/// # use uaskit_initiator::units::Instant;
/// # use uaskit_initiator::{Bot, BotConfig, Timeouts, Transport};
/// let bot = Bot::new(BotConfig {
///     interface: 0,
///     alternate: 0,
///     bulk_in: EndpointAddress::at::<1>(Direction::In),
///     bulk_out: EndpointAddress::at::<2>(Direction::Out),
///     timeouts: Timeouts::default(),
/// });
/// let config = SessionConfig { slots: 1, slot_bytes: 4096, merged_bytes: 0, ..SessionConfig::of(&bot) };
/// let mut bus = Unplugged::default();
/// let buffers = SessionBuffers::new(bus.0.allocate(SessionBuffers::blocks(&config)), &config);
/// let mut session = Session::new(DiskConfig::new(1, 1 << 20), bot, bus, buffers);
/// session.identify(Instant::ZERO, AskTemperature::Not);
/// session.settle(Instant::ZERO);
/// assert!(session.take_identified().is_some_and(|identified| identified.is_err()));
/// ```
pub trait HostBus {
    /// The memory of transfers.
    type Buffers: BufferMemory;

    /// Returns the buffers.
    fn buffers(&mut self) -> &mut Self::Buffers;

    /// Starts a transfer. It completes once: at once, with the completion returned here, or later,
    /// with one from [`poll`](Self::poll).
    fn submit(&mut self, request: TransferRequest) -> Option<Completion>;

    /// Cancels a transfer in flight. It still completes, as cancelled or with its actual status.
    /// Not called if all transfers complete at once.
    fn cancel(&mut self, id: TransferId) {
        let _ = id;
    }

    /// Returns the next completion.
    fn poll(&mut self) -> Option<Completion> {
        None
    }

    /// Performs an operation other than a bulk transfer. `None`: it is answered later, by
    /// [`poll_answer`](Self::poll_answer), with its id; the transport waits for the latest only. A
    /// port reset ends all transfers and selects the configuration again.
    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer>;

    /// Returns the answer to a request that was not answered at once.
    fn poll_answer(&mut self) -> Option<(RequestId, BusAnswer)> {
        None
    }

    /// Returns whether the device was seen to disconnect.
    fn is_gone(&self) -> bool {
        false
    }
}
