//! The descriptors that a device tells (USB 3.2 clause 9.6, USB 2.0 clause 9.6, UAS-2 clause 5.2).

use super::DeviceConfig;
use wire::usb::DescriptorKind;

/// Every descriptor of a device, encoded once.
#[derive(Debug)]
pub struct Descriptors;

impl Descriptors {
    /// The descriptors of a device made as `config`.
    pub fn new(_config: &DeviceConfig) -> Self {
        Self
    }

    /// The bytes of one descriptor, if the device has it.
    pub fn find(&self, _kind: DescriptorKind, _index: u8) -> Option<&[u8]> {
        None
    }
}
