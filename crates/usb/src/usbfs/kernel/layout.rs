//! Arguments of usbfs's ioctls, as `include/uapi/linux/usbdevice_fs.h` lays them out.
//!
//! The number of an ioctl says how long its argument is; each layout is compared with it when this
//! is compiled. Left out: isochronous packets, signals, what root hubs answer.

use linux_raw_sys::ioctl as number;
use rustix::ffi::c_void;
use rustix::ioctl::{Opcode, opcode};
use std::marker::PhantomData;
use std::ptr;

/// The letter of usbfs's ioctls.
const GROUP: u8 = b'U';

/// The kernel's room for the name of a driver, its end included.
pub(super) const DRIVER_NAME_BYTES: usize = 256;

/// The kind of a [`Urb`] for a bulk endpoint (USBDEVFS_URB_TYPE_BULK).
pub(super) const KIND_BULK: u8 = 3;

/// USBDEVFS_URB_SHORT_NOT_OK: an In transfer that ends early stops those that go on from it.
pub(super) const FLAG_SHORT_NOT_OK: u32 = 0x01;

/// USBDEVFS_URB_BULK_CONTINUATION: goes on from the URB before it.
pub(super) const FLAG_CONTINUATION: u32 = 0x04;

/// USBDEVFS_DISCONNECT_CLAIM_IF_DRIVER: only if it is the driver that was named.
pub(super) const CLAIM_IF_DRIVER: u32 = 0x01;

/// USBDEVFS_DISCONNECT_CLAIM_EXCEPT_DRIVER: only if it is not.
pub(super) const CLAIM_EXCEPT_DRIVER: u32 = 0x02;

/// `struct usbdevfs_urb`, without isochronous packets.
#[repr(C)]
pub(super) struct Urb {
    pub(super) kind: u8,
    pub(super) endpoint: u8,
    /// A negated error number, or 0.
    pub(super) status: i32,
    pub(super) flags: u32,
    pub(super) buffer: *mut c_void,
    pub(super) buffer_length: i32,
    pub(super) actual_length: i32,
    pub(super) start_frame: i32,
    /// 0 on an endpoint without streams.
    pub(super) stream_id: u32,
    pub(super) error_count: i32,
    pub(super) signal: u32,
    pub(super) context: *mut c_void,
}

impl Urb {
    /// An URB that no one has.
    pub(super) const EMPTY: Self = Self {
        kind: KIND_BULK,
        endpoint: 0,
        status: 0,
        flags: 0,
        buffer: ptr::null_mut(),
        buffer_length: 0,
        actual_length: 0,
        start_frame: 0,
        stream_id: 0,
        error_count: 0,
        signal: 0,
        context: ptr::null_mut(),
    };
}

/// `struct usbdevfs_ctrltransfer`.
#[repr(C)]
pub(super) struct Control {
    pub(super) request_type: u8,
    pub(super) request: u8,
    pub(super) value: u16,
    pub(super) index: u16,
    pub(super) length: u16,
    pub(super) timeout_ms: u32,
    pub(super) bytes: *mut c_void,
}

/// `struct usbdevfs_setinterface`.
#[repr(C)]
pub(super) struct SetInterface {
    pub(super) interface: u32,
    pub(super) alternate: u32,
}

/// `struct usbdevfs_getdriver`.
#[repr(C)]
pub(super) struct GetDriver {
    pub(super) interface: u32,
    pub(super) driver: [u8; DRIVER_NAME_BYTES],
}

/// `struct usbdevfs_disconnect_claim`.
#[repr(C)]
pub(super) struct DisconnectClaim {
    pub(super) interface: u32,
    pub(super) flags: u32,
    pub(super) driver: [u8; DRIVER_NAME_BYTES],
}

/// `struct usbdevfs_ioctl`: an ioctl for the driver of an interface.
#[repr(C)]
pub(super) struct Forwarded {
    pub(super) interface: i32,
    pub(super) code: i32,
    pub(super) argument: *mut c_void,
}

/// `struct usbdevfs_streams`: endpoint addresses follow, three of them here. The kernel reads as
/// many as are counted.
#[repr(C)]
pub(super) struct Streams {
    pub(super) head: StreamsHead,
    pub(super) endpoints: [u8; 4],
}

/// Part of [`Streams`] before the addresses; the number of the ioctl counts no more.
#[repr(C)]
pub(super) struct StreamsHead {
    pub(super) streams: u32,
    pub(super) endpoints: u32,
}

/// The number of an ioctl, and what it points to.
pub(super) struct Number<T> {
    pub(super) opcode: Opcode,
    argument: PhantomData<fn(T)>,
}

impl<T> Number<T> {
    /// A number that the kernel's headers and the length of `T` agree about.
    const fn agreed(kernel: u32, ours: Opcode) -> Self {
        assert!(kernel as Opcode == ours, "the layout has another length than the kernel's");
        Self { opcode: ours, argument: PhantomData }
    }
}

macro_rules! ioctls {
    ($($name:ident = $number:ident: $direction:ident<$argument:ty>, $serial:literal;)*) => {$(
        pub(super) const $name: Number<$argument> =
            Number::agreed(number::$number, opcode::$direction::<$argument>(GROUP, $serial));
    )*};
}

ioctls! {
    CONTROL = USBDEVFS_CONTROL: read_write<Control>, 0;
    SET_INTERFACE = USBDEVFS_SETINTERFACE: read<SetInterface>, 4;
    GET_DRIVER = USBDEVFS_GETDRIVER: write<GetDriver>, 8;
    SUBMIT_URB = USBDEVFS_SUBMITURB: read<Urb>, 10;
    REAP_URB_NO_DELAY = USBDEVFS_REAPURBNDELAY: write<*mut c_void>, 13;
    RELEASE_INTERFACE = USBDEVFS_RELEASEINTERFACE: read<u32>, 16;
    FORWARD = USBDEVFS_IOCTL: read_write<Forwarded>, 18;
    CLEAR_HALT = USBDEVFS_CLEAR_HALT: read<u32>, 21;
    GET_CAPABILITIES = USBDEVFS_GET_CAPABILITIES: read<u32>, 26;
    DISCONNECT_CLAIM = USBDEVFS_DISCONNECT_CLAIM: read<DisconnectClaim>, 27;
    ALLOCATE_STREAMS = USBDEVFS_ALLOC_STREAMS: read<StreamsHead>, 28;
    FREE_STREAMS = USBDEVFS_FREE_STREAMS: read<StreamsHead>, 29;
}

/// Points to the [`Urb`] itself, by its address alone.
pub(super) const DISCARD_URB: Number<Urb> =
    Number::agreed(number::USBDEVFS_DISCARDURB, opcode::none(GROUP, 11));

/// Points to nothing.
pub(super) const RESET: Number<()> = Number::agreed(number::USBDEVFS_RESET, opcode::none(GROUP, 20));

/// Number that [`Forwarded`] carries, to let the kernel find a driver.
pub(super) const CONNECT: Number<()> = Number::agreed(number::USBDEVFS_CONNECT, opcode::none(GROUP, 23));

/// An argument that holds numbers alone, of which any value is good to write and to read.
///
/// # Safety
/// There must be no pointers and no values that are not allowed in it.
pub(super) unsafe trait Plain {}

// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for u32 {}
// SAFETY: nothing at all.
unsafe impl Plain for () {}
// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for SetInterface {}
// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for GetDriver {}
// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for DisconnectClaim {}
