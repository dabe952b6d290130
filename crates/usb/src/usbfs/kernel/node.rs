//! A device node, `/dev/bus/usb/BBB/DDD`, and what is asked of it at once: everything but URBs.
//!
//! Each function is one ioctl, which waits until the device has answered or the kernel's time is
//! over.

use super::layout::{
    self, CLAIM_EXCEPT_DRIVER, CLAIM_IF_DRIVER, Control, DRIVER_NAME_BYTES, DisconnectClaim, Forwarded,
    GetDriver, Number, Plain, SetInterface, Streams, StreamsHead,
};
use crate::host_bus::Readiness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::ffi::c_void;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;
use wire::usb::SetupPacket;

/// Drivers are called this when a program has claimed an interface.
pub(in crate::usbfs) const USBFS: &str = "usbfs";

/// An open device.
pub(in crate::usbfs) struct Node {
    fd: OwnedFd,
}

/// Capabilities of the kernel (USBDEVFS_GET_CAPABILITIES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::usbfs) struct Capabilities {
    /// URBs can be reported to go on from the one before (USBDEVFS_CAP_BULK_CONTINUATION).
    pub(in crate::usbfs) continuation: bool,
    /// An URB may be longer than 16 KiB (USBDEVFS_CAP_NO_PACKET_SIZE_LIM).
    pub(in crate::usbfs) any_length: bool,
    /// The memory of an URB need not be in one piece (USBDEVFS_CAP_BULK_SCATTER_GATHER).
    pub(in crate::usbfs) scatter_gather: bool,
    /// Memory that the controller itself writes to can be mapped (USBDEVFS_CAP_MMAP).
    pub(in crate::usbfs) mapping: bool,
}

/// One ioctl.
struct Call<T> {
    number: Number<T>,
    argument: *mut T,
}

// SAFETY: the argument is handed on as it is and the kernel's answer is taken as the number that it
// is. That the pointer is good for this ioctl is the contract of [`Node::call`], which alone makes
// such a value.
unsafe impl<T> Ioctl for Call<T> {
    type Output = u32;

    /// The kernel may write to the argument.
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.number.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<u32> {
        u32::try_from(output).map_err(|_| Errno::INVAL)
    }
}

impl Node {
    pub(in crate::usbfs) fn open(path: &str) -> Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { fd })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// One ioctl on the device.
    ///
    /// # Safety
    /// `argument` must point to what usbfs reads and writes for this number, and so must the
    /// pointers in it, for as long as the kernel uses them.
    pub(super) unsafe fn call<T>(&self, number: Number<T>, argument: *mut T) -> Result<u32> {
        // SAFETY: as the caller promises.
        unsafe { rustix::ioctl::ioctl(&self.fd, Call { number, argument }) }
    }

    /// One ioctl whose argument is numbers alone.
    fn call_plain<T: Plain>(&self, number: Number<T>, argument: &mut T) -> Result<u32> {
        // SAFETY: the number's own type, as long as the kernel takes it to be, borrowed for the
        // whole call; whatever the kernel writes into it is a value of it.
        unsafe { self.call(number, ptr::from_mut(argument)) }
    }

    pub(in crate::usbfs) fn capabilities(&self) -> Result<Capabilities> {
        let mut bits = 0_u32;
        self.call_plain(layout::GET_CAPABILITIES, &mut bits)?;
        Ok(Capabilities {
            continuation: bits & CAP_BULK_CONTINUATION != 0,
            any_length: bits & CAP_NO_PACKET_SIZE_LIMIT != 0,
            scatter_gather: bits & CAP_BULK_SCATTER_GATHER != 0,
            mapping: bits & CAP_MMAP != 0,
        })
    }

    /// The driver of an interface, if it has one.
    pub(in crate::usbfs) fn driver(&self, interface: u8) -> Result<Option<String>> {
        let mut answer = GetDriver { interface: interface.into(), driver: [0; DRIVER_NAME_BYTES] };
        match self.call_plain(layout::GET_DRIVER, &mut answer) {
            Ok(_) => {
                let name = answer.driver.split(|&byte| byte == 0).next().unwrap_or_default();
                Ok(Some(String::from_utf8_lossy(name).into_owned()))
            }
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Takes an interface from the driver that it must have, or from none.
    pub(in crate::usbfs) fn claim(&self, interface: u8, driver: Option<&str>) -> Result<()> {
        // Without a driver, the one that must not be there is another program's.
        let (flags, name) = match driver {
            Some(name) => (CLAIM_IF_DRIVER, name),
            None => (CLAIM_EXCEPT_DRIVER, USBFS),
        };
        let mut argument =
            DisconnectClaim { interface: interface.into(), flags, driver: [0; DRIVER_NAME_BYTES] };
        // The last byte stays the end of the name.
        for (place, byte) in argument.driver[..DRIVER_NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        self.call_plain(layout::DISCONNECT_CLAIM, &mut argument).map(drop)
    }

    /// Gives an interface up. It has no driver then.
    pub(in crate::usbfs) fn release(&self, interface: u8) -> Result<()> {
        self.call_plain(layout::RELEASE_INTERFACE, &mut u32::from(interface)).map(drop)
    }

    /// Lets the kernel find a driver for an interface that has none; whether it found one.
    pub(in crate::usbfs) fn connect(&self, interface: u8) -> Result<bool> {
        let mut argument = Forwarded {
            interface: interface.into(),
            code: i32::try_from(layout::CONNECT.opcode).map_err(|_| Errno::INVAL)?,
            argument: ptr::null_mut(),
        };
        // SAFETY: the type is that of the opcode; USBDEVFS_CONNECT reads no argument.
        let found = unsafe { self.call(layout::FORWARD, ptr::from_mut(&mut argument)) }?;
        Ok(found > 0)
    }

    pub(in crate::usbfs) fn select_alternate(&self, interface: u8, alternate: u8) -> Result<()> {
        let mut argument = SetInterface { interface: interface.into(), alternate: alternate.into() };
        self.call_plain(layout::SET_INTERFACE, &mut argument).map(drop)
    }

    /// A control transfer; `bytes` is its data stage. Gives back how many bytes were moved.
    pub(in crate::usbfs) fn control(
        &self,
        setup: SetupPacket,
        bytes: &mut [u8],
        timeout: Duration,
    ) -> Result<usize> {
        let [request_type, request, ..] = setup.encode();
        let mut argument = Control {
            request_type,
            request,
            value: setup.value,
            index: setup.index,
            length: u16::try_from(bytes.len()).map_err(|_| Errno::INVAL)?,
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            bytes: bytes.as_mut_ptr().cast(),
        };
        // SAFETY: the type is that of the opcode; it points to `length` bytes that are borrowed for
        // as long as the call lasts, and the kernel keeps nothing of them.
        let moved = unsafe { self.call(layout::CONTROL, ptr::from_mut(&mut argument)) }?;
        Ok(moved as usize)
    }

    /// Allocates streams on three endpoints; how many there are.
    pub(in crate::usbfs) fn allocate_streams(&self, endpoints: [u8; 3], wanted: u16) -> Result<u16> {
        let mut argument = streams(endpoints, wanted);
        // SAFETY: the kernel reads the head and as many addresses as it counts, which are there.
        let granted = unsafe { self.call(layout::ALLOCATE_STREAMS, ptr::from_mut(&mut argument).cast()) }?;
        Ok(u16::try_from(granted).unwrap_or(u16::MAX))
    }

    pub(in crate::usbfs) fn free_streams(&self, endpoints: [u8; 3]) -> Result<()> {
        let mut argument = streams(endpoints, 0);
        // SAFETY: as above.
        unsafe { self.call(layout::FREE_STREAMS, ptr::from_mut(&mut argument).cast()) }.map(drop)
    }

    /// CLEAR FEATURE (ENDPOINT_HALT), and what the controller needs with it.
    pub(in crate::usbfs) fn clear_halt(&self, endpoint: u8) -> Result<()> {
        self.call_plain(layout::CLEAR_HALT, &mut u32::from(endpoint)).map(drop)
    }

    /// Resets the port. Interfaces that are claimed are claimed no longer.
    pub(in crate::usbfs) fn reset(&self) -> Result<()> {
        self.call_plain(layout::RESET, &mut ()).map(drop)
    }

    /// Waits until an URB can be reaped, for so long at most.
    pub(in crate::usbfs) fn wait(&self, limit: Option<Duration>) -> Result<Readiness> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut [PollFd::new(&self.fd, PollFlags::OUT)], limit.as_ref()) {
            Ok(0) => Ok(Readiness::TimeOver),
            Err(Errno::INTR) => Ok(Readiness::Interrupted),
            Ok(_) => Ok(Readiness::Ready),
            Err(errno) => Err(errno),
        }
    }
}

fn streams(endpoints: [u8; 3], wanted: u16) -> Streams {
    let [first, second, third] = endpoints;
    let head = StreamsHead { streams: wanted.into(), endpoints: 3 };
    Streams { head, endpoints: [first, second, third, 0] }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fd.fmt(f)
    }
}

const CAP_BULK_CONTINUATION: u32 = 0x02;
const CAP_NO_PACKET_SIZE_LIMIT: u32 = 0x04;
const CAP_BULK_SCATTER_GATHER: u32 = 0x08;
const CAP_MMAP: u32 = 0x20;
