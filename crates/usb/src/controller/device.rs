//! A device behind a root port of a controller driven by this crate: addressed, with its
//! descriptors.
//!
//! Always true: it has a slot of the controller until it is dropped or disconnected.

use super::error::ControllerError;
use super::inner::{CONTROL_BYTES_MAX, Inner};
use bus::Speed;
use quirks::configuration::{Configuration, Endpoint, Setting};
use quirks::{Answers, Names};
use std::cell::RefCell;
use std::rc::Rc;
use wire::usb::{
    BosDescriptor, ConfigurationDescriptor, DescriptorKind, DeviceDescriptor, Recipient, SetupPacket,
    StandardRequest, StringDescriptor, TransferType,
};
use wire::xhci::{PortStatus, RouteString};
use xhci_driver::{Answer, DeviceId, EndpointPlan, Location, Request};

/// Bytes of a device descriptor that every device answers, whatever its packets.
const HEAD_BYTES: u16 = 8;

/// LANGID of US English, which every device with texts has.
const ENGLISH: u16 = 0x0409;

/// A device that has an address.
#[derive(Debug)]
pub struct HostedDevice {
    pub(super) inner: Rc<RefCell<Inner>>,
    pub(super) id: DeviceId,
    port: u8,
    speed: Speed,
    descriptor: DeviceDescriptor,
    configuration: Configuration,
    blobs: Blobs,
}

/// Descriptors as the device returned them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Blobs {
    device: Vec<u8>,
    configuration: Vec<u8>,
    object_store: Option<Vec<u8>>,
}

/// Sender of control requests to a device's endpoint 0.
struct Asker<'a> {
    inner: &'a Rc<RefCell<Inner>>,
    id: DeviceId,
}

impl HostedDevice {
    pub(super) fn attach(inner: &Rc<RefCell<Inner>>, port: u8) -> Result<Self, ControllerError> {
        if inner.borrow().is_taken(port) {
            return Err(ControllerError::Taken(port));
        }
        let status = reset_port(inner, port)?;
        let speed_id = status.speed_id();
        let speed = inner.borrow().capabilities().and_then(|found| found.speed(port, speed_id));
        let speed = speed.ok_or(ControllerError::Speed { port, speed_id })?;
        let location = Location {
            root_port: port,
            route: RouteString::ROOT,
            speed_id,
            translator: None,
            control_packet: match speed {
                // It may be 8 to 64; eight bytes come in one packet of any length.
                Speed::Full => 8,
                Speed::High => 64,
                Speed::Super => 512,
            },
        };
        let action = "address the device";
        let answer = inner.borrow_mut().ask(action, Request::Attach(location))?;
        let Answer::Attached(id) = answer else {
            return Err(ControllerError::Unanswered { action, answer });
        };
        inner.borrow_mut().welcome(id, port);
        let read = Asker { inner, id }.read_descriptors(location.control_packet);
        let (descriptor, configuration, blobs) = read.inspect_err(|_| {
            inner.borrow_mut().dismiss(id);
            inner.borrow_mut().forget(id);
        })?;
        Ok(Self { inner: inner.clone(), id, port, speed, descriptor, configuration, blobs })
    }

    /// The root port that it is behind.
    pub const fn port(&self) -> u8 {
        self.port
    }

    /// Its speed.
    pub const fn speed(&self) -> Speed {
        self.speed
    }

    /// Its device descriptor.
    pub const fn descriptor(&self) -> &DeviceDescriptor {
        &self.descriptor
    }

    /// Its first configuration.
    pub const fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Returns the device's descriptors, for a probe.
    pub fn answers(&self) -> Answers<'_> {
        Answers {
            device: &self.blobs.device,
            configuration: &self.blobs.configuration,
            bos: self.blobs.object_store.as_deref(),
            names: Names::default(),
        }
    }

    /// Whether it was seen to be gone.
    pub fn is_gone(&self) -> bool {
        self.inner.borrow().is_gone(self.id)
    }

    /// A control transfer; gives back how many bytes were moved. Waits for the device.
    ///
    /// # Errors
    /// If the device refuses or does not answer.
    pub fn control(&self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControllerError> {
        self.inner.borrow_mut().control(self.id, "perform a control transfer", setup, bytes)
    }

    /// One of its texts, in the first of its languages that is asked for: US English. `None` if it
    /// has none.
    ///
    /// # Errors
    /// If the device does not answer.
    pub fn text(&self, index: u8) -> Result<Option<String>, ControllerError> {
        if index == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 255];
        let get = SetupPacket::get_descriptor(DescriptorKind::String, index, bytes.len() as u16);
        let setup = SetupPacket { index: ENGLISH, ..get };
        match self.control(setup, &mut bytes) {
            Ok(moved) => {
                let text = bytes.get(..moved).and_then(|bytes| StringDescriptor::decode(bytes).ok());
                Ok(text.map(|text| text.chars().collect()))
            }
            Err(ControllerError::Stalled { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The setting of an interface with that number.
    pub(super) fn setting(&self, interface: u8, alternate: u8) -> Result<&Setting, ControllerError> {
        let mut settings = self.configuration.settings_of(interface);
        let found = settings.find(|setting| setting.interface.alternate == alternate);
        found.ok_or(ControllerError::NoSetting { interface, alternate })
    }

    /// Chooses the configuration, with the first setting of an interface. Endpoint 0 alone is there
    /// before.
    pub(super) fn configure(&self, interface: u8) -> Result<(), ControllerError> {
        let add = plans(self.setting(interface, 0)?);
        let change = Request::Configure { device: self.id, add, drop: Vec::new() };
        self.ask("configure endpoints", change)?;
        let value = self.configuration.head.value.into();
        let setup = SetupPacket::of_standard(Recipient::Device, StandardRequest::SetConfiguration, value);
        self.inner.borrow_mut().control(self.id, "set the configuration", setup, &mut []).map(drop)
    }

    /// Resets the port. The device has its address again afterwards, endpoint 0, and nothing else.
    pub(super) fn reset(&self) -> Result<(), ControllerError> {
        let status = reset_port(&self.inner, self.port)?;
        if !status.is_connected() {
            return Err(ControllerError::Disconnected);
        }
        self.ask("readdress the device", Request::Readdress(self.id))?;
        let mut again = [0; DeviceDescriptor::LEN];
        let setup = SetupPacket::get_descriptor(DescriptorKind::Device, 0, DeviceDescriptor::LEN as u16);
        self.control(setup, &mut again)?;
        if again[..] == self.blobs.device { Ok(()) } else { Err(ControllerError::Changed) }
    }

    pub(super) fn ask(&self, action: &'static str, request: Request) -> Result<Answer, ControllerError> {
        self.inner.borrow_mut().ask(action, request)
    }
}

impl Drop for HostedDevice {
    fn drop(&mut self) {
        let mut inner = self.inner.borrow_mut();
        inner.dismiss(self.id);
        inner.forget(self.id);
    }
}

impl Asker<'_> {
    fn read_descriptors(
        &self,
        packet: u16,
    ) -> Result<(DeviceDescriptor, Configuration, Blobs), ControllerError> {
        let head = self.descriptor(DescriptorKind::Device, HEAD_BYTES)?;
        // At SuperSpeed the byte is an exponent, and there is one length.
        if let [.., bytes @ (8 | 16 | 32 | 64)] = head[..]
            && u16::from(bytes) != packet
        {
            let request = Request::SetControlPacket(self.id, bytes.into());
            self.inner.borrow_mut().ask("set the packet size of endpoint 0", request)?;
        }
        let device = self.descriptor(DescriptorKind::Device, DeviceDescriptor::LEN as u16)?;
        let descriptor = DeviceDescriptor::decode(&device).map_err(ControllerError::Descriptors)?;
        let kind = DescriptorKind::Configuration;
        let head = self.descriptor(kind, ConfigurationDescriptor::LEN as u16)?;
        let head = ConfigurationDescriptor::decode(&head).map_err(ControllerError::Descriptors)?;
        let configuration = self.descriptor(kind, head.total_len.min(CONTROL_BYTES_MAX))?;
        let decoded = Configuration::decode(&configuration).map_err(ControllerError::Descriptors)?;
        let blobs = Blobs { device, configuration, object_store: self.object_store()? };
        Ok((descriptor, decoded, blobs))
    }

    /// The binary device object store; `None` if the device refuses, as older ones do.
    fn object_store(&self) -> Result<Option<Vec<u8>>, ControllerError> {
        let head = match self.descriptor(DescriptorKind::Bos, BosDescriptor::LEN as u16) {
            Ok(head) => head,
            Err(ControllerError::Stalled { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match BosDescriptor::decode(&head) {
            Ok(head) => self.descriptor(DescriptorKind::Bos, head.total_len.min(CONTROL_BYTES_MAX)).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn descriptor(&self, kind: DescriptorKind, length: u16) -> Result<Vec<u8>, ControllerError> {
        let mut bytes = vec![0; length.into()];
        let setup = SetupPacket::get_descriptor(kind, 0, length);
        let moved = self.inner.borrow_mut().control(self.id, "read a descriptor", setup, &mut bytes)?;
        bytes.truncate(moved);
        Ok(bytes)
    }
}

fn reset_port(inner: &Rc<RefCell<Inner>>, port: u8) -> Result<PortStatus, ControllerError> {
    let action = "reset the port";
    match inner.borrow_mut().ask(action, Request::ResetPort { port })? {
        Answer::Port(status) if status.is_enabled() => Ok(status),
        Answer::Port(status) if !status.is_connected() => Err(ControllerError::EmptyPort(port)),
        answer => Err(ControllerError::Unanswered { action, answer }),
    }
}

/// The endpoints of a setting that the driver takes.
pub(super) fn plans(setting: &Setting) -> Vec<EndpointPlan> {
    let is_bulk = |endpoint: &&Endpoint| endpoint.descriptor.attributes.transfer_type() == TransferType::Bulk;
    let plan =
        |endpoint: &Endpoint| EndpointPlan { descriptor: endpoint.descriptor, companion: endpoint.companion };
    setting.endpoints.iter().filter(is_bulk).map(plan).collect()
}
