//! One interface of a device, taken from the kernel's driver, and the bus to it.
//!
//! A door is furnished with memory, used, and laid to [rest](Door::rest); then it may be furnished anew, and the kernel's driver sees
//! nothing of that.
//!
//! Always true: whatever ends a [`Door`] (a normal end, an error, a panic), the interface is released at its first
//! setting, its streams are freed, and the driver that it was taken from is bound again. A process that is killed with
//! no chance to do so leaves the interface without a driver; [`give_back_command`](inspect::diagnose::give_back_command) mends that.

use super::error::UsbfsError;
use super::kernel::{Device, Memory, Node, USBFS, status_of_errno};
use super::pieces::{Action, Pieces, Rules};
use crate::door::{BusDoor, CellBlock, CellId, Order, Readiness, Watched};
use bus::{Completion, EndpointAddress, TransferId};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::ByteRange;
use wire::usb::SetupPacket;

/// What usbfs counts for an URB besides its data, at most.
const URB_BYTES_MAX: u64 = 1024;

/// How long a control transfer may take.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the kernel may take to tell that a drive is gone of which it has found no driver to get along with.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// An interface to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceName {
    /// The number of the device's bus.
    pub bus: u16,
    /// The device's number on it.
    pub device: u16,
    /// bInterfaceNumber.
    pub number: u8,
    /// As sysfs names it: `2-1:1.0`.
    pub name: String,
    /// The driver that was seen to have it. It is taken from this one and from no other.
    pub driver: Option<String>,
}

/// A claimed interface.
#[derive(Debug)]
pub struct Door {
    device: Device,
    interface: InterfaceName,
    /// The interface is ours, as far as is known.
    is_claimed: bool,
    /// The interface is not given back yet.
    is_owed: bool,
    /// Endpoints with streams.
    streams: Option<[EndpointAddress; 3]>,
    /// What usbfs counts for memory and URBs, at most.
    memory_bytes: u64,
    pieces: Pieces,
    completions: VecDeque<Completion>,
    is_gone: bool,
    /// Why transfers were not taken, if it is not the device's fault.
    fault: Option<UsbfsError>,
}

impl InterfaceName {
    /// The device's node.
    pub fn node(&self) -> String {
        format!("/dev/bus/usb/{:03}/{:03}", self.bus, self.device)
    }
}

impl Door {
    /// Takes an interface. There is no memory yet.
    ///
    /// # Errors
    /// Why it cannot be had. Then it is as it was.
    pub fn open(interface: InterfaceName) -> Result<Self, UsbfsError> {
        let path = interface.node();
        let node = Node::open(&path).map_err(|errno| unopened(path, errno))?;
        let device = Device::new(node).map_err(|errno| UsbfsError::of("ask what usbfs can", errno))?;
        let mut door = Self {
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
        door.claim()?;
        Ok(door)
    }

    /// Makes room for so many URBs and for memory, in place of what there was; the first cell of each block comes back.
    /// Cells have successive names. Nothing may be under way.
    ///
    /// # Errors
    /// If there is no room for so much.
    pub fn furnish<const BLOCKS: usize>(
        &mut self,
        urbs_max: u16,
        blocks: [CellBlock; BLOCKS],
    ) -> Result<[CellId; BLOCKS], UsbfsError> {
        let memory_bytes = footprint_bytes(urbs_max, &blocks);
        let failed = |errno| UsbfsError::of("map memory", errno).wanting(memory_bytes);
        self.device.renew(urbs_max).map_err(failed)?;
        let mut firsts = [CellId::default(); BLOCKS];
        for (first, CellBlock { count, bytes }) in firsts.iter_mut().zip(blocks) {
            *first = self.device.add_cells(count, bytes).map_err(failed)?;
        }
        let is_mapped = self.device.memory_ref().refusal().is_none();
        self.pieces = Pieces::new(Rules::of(self.device.capabilities(), is_mapped));
        self.memory_bytes = memory_bytes;
        Ok(firsts)
    }

    /// Ends everything that is under way, frees streams, and lets memory go; the interface stays ours, for another transport.
    ///
    /// # Errors
    /// If it is not ours any more, or something of before is left. It is to be given back then.
    pub fn rest(&mut self) -> Result<(), UsbfsError> {
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

    /// Which interface it is.
    pub const fn interface(&self) -> &InterfaceName {
        &self.interface
    }

    /// Why transfers are copied between the kernel and us, if they are: an error number of mapping usbfs's memory.
    pub const fn copies_because(&self) -> Option<Errno> {
        self.device.memory_ref().refusal()
    }

    /// Why less memory could be mapped than is wanted, if so.
    pub(crate) fn lacks_memory(&self) -> Option<UsbfsError> {
        let error = UsbfsError::of("map memory", self.copies_because()?).wanting(self.memory_bytes);
        matches!(error, UsbfsError::Memory { .. }).then_some(error)
    }

    /// Transfers under way.
    pub fn in_flight(&self) -> usize {
        self.pieces.len()
    }

    fn give_back(&mut self) -> Result<(), UsbfsError> {
        self.release();
        if !std::mem::take(&mut self.is_owed) {
            return Ok(());
        }
        let node = self.device.node();
        // It is busy if somebody was quicker: a driver that came late, or the user.
        let refusal = match node.connect(self.interface.number) {
            Ok(true) | Err(Errno::BUSY | Errno::NODEV) => return Ok(()),
            // No driver gets along with a drive that is being pulled out, which the kernel tells a moment later.
            Ok(false) if goes_away(node, self.interface.number) => return Ok(()),
            Ok(false) => None,
            Err(errno) => Some(errno),
        };
        Err(UsbfsError::NotGivenBack { interface: self.interface.name.clone(), errno: refusal })
    }

    /// Claims the interface from the driver that was seen, or from none, as after a reset.
    fn claim(&mut self) -> Result<(), UsbfsError> {
        let node = self.device.node();
        let number = self.interface.number;
        let seen = self.interface.driver.as_deref().filter(|driver| *driver != USBFS);
        let holder = node.driver(number).map_err(|errno| UsbfsError::of("ask for the driver", errno))?;
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

    /// Ends everything that is under way.
    fn end_all(&mut self) {
        self.pieces.cancel_all();
        self.settle();
        // Discarded URBs have ended when that call is over. An error leaves nothing to be done about them.
        let _ = self.reap();
    }

    /// Ends everything that is under way, and gives the interface up. The kernel chooses its first setting again.
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

    /// Carries out what the pieces want, until they want nothing.
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

    /// Why an URB was not taken.
    fn note(&mut self, errno: Errno) {
        match errno {
            Errno::NODEV | Errno::SHUTDOWN => self.is_gone = true,
            // A chain that has ended early.
            Errno::REMOTEIO => {}
            errno => self.fault = Some(UsbfsError::of("submit a transfer", errno).wanting(self.memory_bytes)),
        }
    }
}

/// Whether the device of a node is gone, or goes within [`GONE_WITHIN`].
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

impl BusDoor for Door {
    type Error = UsbfsError;

    fn bytes(&mut self, cell: CellId) -> Option<&mut [u8]> {
        self.device.memory().cells().bytes(cell)
    }

    fn copy_out(&self, cell: CellId, range: ByteRange, into: &mut [u8]) -> usize {
        self.device.memory_ref().cells_ref().copy_out(cell, range, into)
    }

    fn copy_in(&mut self, cell: CellId, range: ByteRange, from: &[u8]) -> usize {
        self.device.memory().cells().copy_in(cell, range, from)
    }

    fn copy_across(&mut self, from: (CellId, ByteRange), to: (CellId, ByteRange)) -> usize {
        self.device.memory().cells().copy_across(from, to)
    }

    fn is_zero_copy(&self) -> bool {
        self.copies_because().is_none()
    }

    fn submit(&mut self, order: Order) {
        self.pieces.submit(order);
        self.settle();
    }

    fn cancel(&mut self, id: TransferId) {
        self.pieces.cancel(id);
        self.settle();
    }

    fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
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

    fn is_gone(&self) -> bool {
        self.is_gone
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
            // xHCI's driver says the first of a controller without, the core the other of a bus whose controller or driver is
            // without. It says the same of endpoints that have streams already or are not bulk at SuperSpeed: ours are neither, since
            // the rules asked and the alternate setting was selected just now.
            Errno::NOSYS | Errno::INVAL => UsbfsError::NoStreams,
            errno => self.failed("allocate streams", errno),
        })?;
        self.streams = Some(endpoints);
        Ok(granted)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, UsbfsError> {
        let moved = self.device.node().control(setup, bytes, CONTROL_TIMEOUT);
        moved.map_err(|errno| self.failed("ask the device", errno))
    }

    /// The kernel wants no transfer of the endpoint under way, since the controller loses its place in them. A port
    /// reset is left then, which is what Linux's own driver does.
    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), UsbfsError> {
        let has_streams = self.streams.is_some_and(|endpoints| endpoints.contains(&endpoint));
        if has_streams && self.pieces.is_busy(endpoint) {
            return Err(UsbfsError::Failed { action: "clear a halt", errno: Errno::BUSY });
        }
        self.device.node().clear_halt(endpoint.into()).map_err(|errno| self.failed("clear a halt", errno))
    }

    /// The kernel would take the claim away and bind a driver of its own, so the interface is released before and
    /// claimed again after.
    fn reset(&mut self) -> Result<(), UsbfsError> {
        self.release();
        let reset = self.device.node().reset();
        reset.map_err(|errno| self.failed("reset the port", errno))?;
        self.claim()
    }

    fn close(mut self) -> Result<(), UsbfsError> {
        self.give_back()
    }
}

impl From<Watched<Self>> for Door {
    fn from(watched: Watched<Self>) -> Self {
        watched.into_door()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Nobody is left to be told; `close` tells.
        let _ = self.give_back();
    }
}

/// What usbfs counts for so many URBs and these blocks, at most.
fn footprint_bytes(urbs_max: u16, blocks: &[CellBlock]) -> u64 {
    let of_block = |block: &CellBlock| Memory::footprint_bytes(block.count, block.bytes);
    u64::from(urbs_max) * URB_BYTES_MAX + blocks.iter().map(of_block).sum::<u64>()
}

pub(super) fn unopened(node: String, errno: Errno) -> UsbfsError {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => UsbfsError::Permission { node },
        Errno::NOENT | Errno::NODEV | Errno::NXIO => UsbfsError::NoNode { node },
        errno => UsbfsError::of("open the device's node", errno),
    }
}
