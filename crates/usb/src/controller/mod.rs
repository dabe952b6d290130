//! A USB host controller driven by ourselves: no kernel driver between a program and the bus.
//!
//! [`UsbHost`] takes an xHCI controller that VFIO gives us ([`crate::vfio`]), runs the driver of the crate `xhci` on it,
//! and tells which ports have a device. [`UsbHost::attach`] makes a [`HostedDevice`] of one, with its descriptors; a
//! disk among them is driven by [`Attachment::hosted`](crate::attachment::Attachment::hosted), as one over usbfs is.
//!
//! ```no_run
//! use uaskit_usb::attachment::{AttachConfig, Attachment};
//! use uaskit_usb::controller::{HostConfig, UsbHost};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = UsbHost::open(&"0000:00:14.0".parse()?, &HostConfig::default())?;
//! while let Some(change) = host.next_change(Duration::from_secs(1))? {
//!     if change.is_connected() {
//!         let device = host.attach(change.port)?;
//!         println!("port {}: {}", change.port, device.descriptor());
//!         let disk = Attachment::hosted(device, &AttachConfig::default())?;
//!         println!("{} bytes over {}", disk.geometry().bytes(), disk.transport());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A controller and all that is behind it belong to one thread; whoever waits for one device hears of all of them.
//! Always true: a wait has a limit; a device that is dropped gives its slot back; memory that transfers are in is not
//! given back before they have ended. Left out: devices behind hubs, which the driver could name and nobody here finds;
//! suspend; configurations other than the first.

mod device;
mod door;
mod error;
mod hardware;
mod inner;
mod quirks;

pub use device::HostedDevice;
pub use door::HostedDoor;
pub use error::ControllerError;

use crate::vfio::{Function, PciAddress};
use inner::Inner;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use wire::xhci::PortStatus;
use xhci_driver::{Capabilities, Config, Counters};

/// How a controller is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// What the driver is to do. Quirks that are known of the controller come on top.
    pub driver: Config,
}

/// An xHCI controller that is ours until this, and all devices, are dropped.
#[derive(Clone, Debug)]
pub struct UsbHost {
    inner: Rc<RefCell<Inner>>,
}

/// A root port, and what it has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// From 1.
    pub port: u8,
    /// Its state.
    pub status: PortStatus,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// What the driver had to bear.
    pub driver: Counters,
    /// Interrupts.
    pub interrupts: u64,
    /// Times that something had happened and no interrupt told of it.
    pub unsignalled: u64,
}

impl Default for HostConfig {
    /// Rings of two segments: the command pipe of UAS has to hold an IU for each of 254 tags, and one that crosses a
    /// boundary of 64 KiB takes two places. As many events as may be: whoever uses a disk is not always there to take them.
    fn default() -> Self {
        Self { driver: Config { ring_segments: 2, event_ring_trbs: 4096, ..Config::default() } }
    }
}

impl PortChange {
    /// Whether a device is there.
    pub const fn is_connected(self) -> bool {
        self.status.is_connected()
    }
}

impl UsbHost {
    /// Takes a controller that `vfio-pci` has, and waits until it runs.
    ///
    /// # Errors
    /// Why it cannot be had, or does not run.
    pub fn open(address: &PciAddress, config: &HostConfig) -> Result<Self, ControllerError> {
        let function = Function::open(address)?;
        let driver = Config { quirks: quirks::of(function.id(), config.driver.quirks), ..config.driver };
        let mut inner = Inner::new(function, driver);
        inner.start()?;
        Ok(Self { inner: Rc::new(RefCell::new(inner)) })
    }

    /// What the controller says of itself.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.inner.borrow().capabilities().cloned()
    }

    /// What happened so far.
    pub fn counters(&self) -> HostCounters {
        self.inner.borrow().counters()
    }

    /// The next root port to which a device came, or from which one went; at first, each that has one. `None`: the time
    /// is over.
    ///
    /// # Errors
    /// If the controller is of no use any more.
    pub fn next_change(&self, limit: Duration) -> Result<Option<PortChange>, ControllerError> {
        self.inner.borrow_mut().next_change(limit)
    }

    /// Takes what has happened, and waits until something does: an interrupt, a signal, the end of the time.
    ///
    /// # Errors
    /// If the controller is of no use any more.
    pub fn wait(&self, limit: Duration) -> Result<crate::door::Readiness, ControllerError> {
        self.inner.borrow_mut().turn(limit)
    }

    /// Resets a port with a device, gives the device an address, and reads its descriptors.
    ///
    /// # Errors
    /// If there is none, or it does not answer.
    pub fn attach(&self, port: u8) -> Result<HostedDevice, ControllerError> {
        HostedDevice::attach(&self.inner, port)
    }
}
