//! One interface of a device, claimed from the kernel driver, and the bus to it.
//!
//! Allocate buffers, submit transfers, then [`quiesce`](UsbInterface::quiesce); buffers can be
//! reallocated afterwards without the kernel driver being involved.
//!
//! Always true: however a [`UsbInterface`] ends (normally, by an error, a panic), the interface is
//! released at alternate setting 0, its streams are freed, and its driver is bound again. A killed
//! process leaves the interface without a driver;
//! [`give_back_command`](inspect::diagnose::give_back_command) repairs that.

use super::error::UsbfsError;
use super::kernel::{Device, Memory, Node, USBFS, status_of_errno};
use super::pieces::{Action, Pieces, Rules};
use crate::host_bus::{
    BufferBlock, BufferId, BufferMemory, BufferSpan, HardwareBus, HostBus, ObservedBus, Readiness,
    TransferRequest, answer,
};
use bus::{Completion, EndpointAddress, TransferId};
use initiator::{BusAnswer, BusRequest, RequestId};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wire::usb::SetupPacket;

/// Maximum that usbfs accounts for an URB besides its data.
const URB_BYTES_MAX: u64 = 1024;

/// Timeout of a control transfer.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the kernel may take to report a disconnect after no driver could be bound.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// An interface to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceName {
    /// The device's bus number.
    pub bus: u16,
    /// The device's number on the bus.
    pub device: u16,
    /// bInterfaceNumber.
    pub number: u8,
    /// The name in sysfs: `2-1:1.0`.
    pub name: String,
    /// The driver found bound. The interface is claimed from this one only.
    pub driver: Option<String>,
}

/// A claimed interface.
#[derive(Debug)]
pub struct UsbInterface {
    device: Device,
    interface: InterfaceName,
    /// The interface is claimed, as far as known.
    is_claimed: bool,
    /// The driver is not reattached yet.
    is_owed: bool,
    /// Endpoints with streams.
    streams: Option<[EndpointAddress; 3]>,
    /// Maximum that usbfs accounts for buffers and URBs.
    memory_bytes: u64,
    pieces: Pieces,
    completions: VecDeque<Completion>,
    is_gone: bool,
    /// Why transfers were rejected, if the device is not the cause.
    fault: Option<UsbfsError>,
}

impl InterfaceName {
    /// Returns the path of the device's node.
    pub fn node(&self) -> String {
        format!("/dev/bus/usb/{:03}/{:03}", self.bus, self.device)
    }
}

impl UsbInterface {
    /// Claims an interface, without buffers.
    ///
    /// # Errors
    ///
    /// Why it cannot be claimed. It is unchanged then.
    pub fn open(interface: InterfaceName) -> Result<Self, UsbfsError> {
        let path = interface.node();
        let node = Node::open(&path).map_err(|errno| unopened(path, errno))?;
        let device = Device::new(node).map_err(|errno| UsbfsError::of("query usbfs capabilities", errno))?;
        let mut bus = Self {
            pieces: Pieces::new(Rules::of(device.capabilities(), true)),
            device,
            interface,
            is_claimed: false,
            is_owed: false,
            streams: None,
            memory_bytes: 0,
            completions: VecDeque::new(),
            is_gone: false,
            fault: None,
        };
        bus.claim()?;
        Ok(bus)
    }

    /// Allocates `urbs_max` URBs and buffers in place of the earlier ones; returns the first buffer
    /// of each block. Buffers have successive ids. No transfer may be in flight.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn allocate<const BLOCKS: usize>(
        &mut self,
        urbs_max: u16,
        blocks: [BufferBlock; BLOCKS],
    ) -> Result<[BufferId; BLOCKS], UsbfsError> {
        let memory_bytes = footprint_bytes(urbs_max, &blocks);
        let failed = |errno| UsbfsError::of("map memory", errno).wanting(memory_bytes);
        self.device.renew(urbs_max).map_err(failed)?;
        let mut firsts = [BufferId::default(); BLOCKS];
        for (first, BufferBlock { count, bytes }) in firsts.iter_mut().zip(blocks) {
            *first = self.device.add_buffers(count, bytes).map_err(failed)?;
        }
        let is_mapped = self.device.memory_ref().refusal().is_none();
        self.pieces = Pieces::new(Rules::of(self.device.capabilities(), is_mapped));
        self.memory_bytes = memory_bytes;
        Ok(firsts)
    }

    /// Ends all transfers, frees streams and buffers; the interface stays claimed for another
    /// transport.
    ///
    /// # Errors
    ///
    /// If it is no longer claimed, or something could not be freed. It must be closed then.
    pub fn quiesce(&mut self) -> Result<(), UsbfsError> {
        self.end_all();
        if self.is_gone || !self.is_claimed {
            return Err(UsbfsError::Disconnected);
        }
        if let Some(endpoints) = self.streams.take() {
            let freed = self.device.node().free_streams(endpoints.map(u8::from));
            freed.map_err(|errno| self.failed("free streams", errno))?;
        }
        self.device.renew(0).map_err(|errno| self.failed("end all transfers", errno))?;
        self.completions.clear();
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Returns the name of the interface.
    pub const fn interface(&self) -> &InterfaceName {
        &self.interface
    }

    /// Returns the error number of mapping usbfs memory, if transfers are copied because of it.
    pub const fn copies_because(&self) -> Option<Errno> {
        self.device.memory_ref().refusal()
    }

    /// Returns the error if less memory could be mapped than needed.
    pub(crate) fn lacks_memory(&self) -> Option<UsbfsError> {
        let error = UsbfsError::of("map memory", self.copies_because()?).wanting(self.memory_bytes);
        matches!(error, UsbfsError::Memory { .. }).then_some(error)
    }

    /// Returns the number of transfers in flight.
    pub fn in_flight(&self) -> usize {
        self.pieces.len()
    }

    fn reattach(&mut self) -> Result<(), UsbfsError> {
        self.release();
        if !std::mem::take(&mut self.is_owed) {
            return Ok(());
        }
        let node = self.device.node();
        // Busy if a late driver or the user claimed it first.
        let refusal = match node.connect(self.interface.number) {
            Ok(true) | Err(Errno::BUSY | Errno::NODEV) => return Ok(()),
            // No driver binds to a drive that is being unplugged, which the kernel reports a moment
            // later.
            Ok(false) if goes_away(node, self.interface.number) => return Ok(()),
            Ok(false) => None,
            Err(errno) => Some(errno),
        };
        Err(UsbfsError::NotReattached { interface: self.interface.name.clone(), errno: refusal })
    }

    /// Claims the interface from the driver found earlier, or from none, as after a reset.
    fn claim(&mut self) -> Result<(), UsbfsError> {
        let node = self.device.node();
        let number = self.interface.number;
        let seen = self.interface.driver.as_deref().filter(|driver| *driver != USBFS);
        let holder = node.driver(number).map_err(|errno| UsbfsError::of("query the bound driver", errno))?;
        let claimed = match holder.as_deref() {
            None => node.claim(number, None),
            Some(holder) if Some(holder) == seen => {
                // Also if the claim fails: the driver may have been unbound by then.
                self.is_owed = true;
                node.claim(number, Some(holder))
            }
            Some(_) => Err(Errno::BUSY),
        };
        match claimed {
            Ok(()) => {
                self.is_claimed = true;
                Ok(())
            }
            Err(Errno::BUSY) => {
                let interface = self.interface.name.clone();
                Err(UsbfsError::Busy { interface, holder: node.driver(number).ok().flatten() })
            }
            Err(errno) => Err(UsbfsError::of("claim the interface", errno)),
        }
    }

    /// Ends all transfers.
    fn end_all(&mut self) {
        self.pieces.cancel_all();
        self.settle();
        // Discarded URBs have ended when that call is over. An error leaves nothing to be done
        // about them.
        let _ = self.reap();
    }

    /// Ends all transfers and releases the interface. The kernel selects alternate setting 0 again.
    fn release(&mut self) {
        self.end_all();
        if !std::mem::take(&mut self.is_claimed) {
            return;
        }
        let node = self.device.node();
        if let Some(endpoints) = self.streams.take() {
            // Unbinding frees those that are left.
            let _ = node.free_streams(endpoints.map(u8::from));
        }
        // It fails if the device is gone, and then there is nothing to be released.
        let _ = node.release(self.interface.number);
        let _ = self.reap();
    }

    /// Carries out the actions of the URB queue until there are none.
    fn settle(&mut self) {
        while let Some(action) = self.pieces.poll() {
            match action {
                Action::Submit(piece) => {
                    if let Err(errno) = self.device.submit(&piece) {
                        self.note(errno);
                        self.pieces.handle(piece.ticket, status_of_errno(errno), 0);
                    }
                }
                Action::Discard { transfer } => self.device.discard(transfer),
                Action::Complete(completion) => self.completions.push_back(completion),
            }
        }
    }

    fn failed(&mut self, action: &'static str, errno: Errno) -> UsbfsError {
        self.is_gone |= errno == Errno::NODEV;
        UsbfsError::of(action, errno).wanting(self.memory_bytes)
    }

    /// Records why an URB was rejected.
    fn note(&mut self, errno: Errno) {
        match errno {
            Errno::NODEV | Errno::SHUTDOWN => self.is_gone = true,
            // A chain that has ended early.
            Errno::REMOTEIO => {}
            errno => self.fault = Some(UsbfsError::of("submit a transfer", errno).wanting(self.memory_bytes)),
        }
    }
}

/// Returns whether the device of a node is gone, or goes within [`GONE_WITHIN`].
fn goes_away(node: &Node, interface: u8) -> bool {
    let begun = Instant::now();
    loop {
        if node.driver(interface) == Err(Errno::NODEV) {
            return true;
        }
        if begun.elapsed() >= GONE_WITHIN {
            return false;
        }
        std::thread::sleep(GONE_WITHIN / 20);
    }
}

impl BufferMemory for UsbInterface {
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.device.memory().buffers().bytes(buffer)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        self.device.memory_ref().buffers_ref().copy_out(from, into)
    }

    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        self.device.memory().buffers().copy_in(into, from)
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        self.device.memory().buffers().copy_across(from, into)
    }
}

impl HostBus for UsbInterface {
    type Buffers = Self;

    fn buffers(&mut self) -> &mut Self {
        self
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        self.pieces.submit(request);
        self.settle();
        None
    }

    fn cancel(&mut self, id: TransferId) {
        self.pieces.cancel(id);
        self.settle();
    }

    fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(answer(self, request))
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl HardwareBus for UsbInterface {
    type Error = UsbfsError;

    fn is_zero_copy(&self) -> bool {
        self.copies_because().is_none()
    }

    fn reap(&mut self) -> Result<bool, UsbfsError> {
        let mut any = false;
        loop {
            match self.device.reap() {
                Ok(Some(reaped)) => {
                    self.pieces.handle(reaped.ticket, reaped.status, reaped.actual);
                    self.settle();
                    any = true;
                }
                Ok(None) => return Ok(any),
                Err(Errno::NODEV) if any => return Ok(any),
                Err(errno) => {
                    self.is_gone |= errno == Errno::NODEV;
                    return Err(UsbfsError::of("reap a transfer", errno));
                }
            }
        }
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, UsbfsError> {
        self.device.node().wait(limit).map_err(|errno| UsbfsError::of("wait", errno))
    }

    fn take_fault(&mut self) -> Option<UsbfsError> {
        self.fault.take()
    }

    fn select_alternate(&mut self, alternate: u8) -> Result<(), UsbfsError> {
        let selected = self.device.node().select_alternate(self.interface.number, alternate);
        selected.map_err(|errno| self.failed("select the alternate setting", errno))?;
        self.streams = None;
        Ok(())
    }

    fn allocate_streams(&mut self, endpoints: [EndpointAddress; 3], wanted: u16) -> Result<u16, UsbfsError> {
        let granted = self.device.node().allocate_streams(endpoints.map(u8::from), wanted);
        let granted = granted.map_err(|errno| match errno {
            // ENOSYS: the xHCI controller has no streams. EINVAL: another controller or driver
            // without streams. EINVAL is also returned for endpoints that have streams already or
            // are not bulk at SuperSpeed, which is excluded here.
            Errno::NOSYS | Errno::INVAL => UsbfsError::NoStreams,
            errno => self.failed("allocate streams", errno),
        })?;
        self.streams = Some(endpoints);
        Ok(granted)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, UsbfsError> {
        let moved = self.device.node().control(setup, bytes, CONTROL_TIMEOUT);
        moved.map_err(|errno| self.failed("perform a control transfer", errno))
    }

    /// The kernel wants no transfer of the endpoint in flight, since the controller loses its place
    /// in them. A port reset is left then, which is what Linux's own driver does.
    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), UsbfsError> {
        let has_streams = self.streams.is_some_and(|endpoints| endpoints.contains(&endpoint));
        if has_streams && self.pieces.is_busy(endpoint) {
            return Err(UsbfsError::Failed { action: "clear a halt", errno: Errno::BUSY });
        }
        self.device.node().clear_halt(endpoint.into()).map_err(|errno| self.failed("clear a halt", errno))
    }

    /// The kernel would drop the claim and bind its driver, so the interface is
    /// released before and claimed again after.
    fn reset(&mut self) -> Result<(), UsbfsError> {
        self.release();
        let reset = self.device.node().reset();
        reset.map_err(|errno| self.failed("reset the port", errno))?;
        self.claim()
    }

    fn close(mut self) -> Result<(), UsbfsError> {
        self.reattach()
    }
}

impl From<ObservedBus<Self>> for UsbInterface {
    fn from(observed: ObservedBus<Self>) -> Self {
        observed.into_inner()
    }
}

impl Drop for UsbInterface {
    fn drop(&mut self) {
        // `close` reports the error; here there is no one to report it to.
        let _ = self.reattach();
    }
}

/// Returns the maximum that usbfs accounts for these URBs and blocks.
fn footprint_bytes(urbs_max: u16, blocks: &[BufferBlock]) -> u64 {
    let of_block = |block: &BufferBlock| Memory::footprint_bytes(block.count, block.bytes);
    u64::from(urbs_max) * URB_BYTES_MAX + blocks.iter().map(of_block).sum::<u64>()
}

pub(super) fn unopened(node: String, errno: Errno) -> UsbfsError {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => UsbfsError::Permission { node },
        Errno::NOENT | Errno::NODEV | Errno::NXIO => UsbfsError::NoNode { node },
        errno => UsbfsError::of("open the device's node", errno),
    }
}
