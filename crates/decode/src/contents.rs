//! Contents of a capture by device, whether it is a drive or not: ids, classes, transfers by their
//! kind.

use crate::event::Address;
use wire::usb::ClassCode;

/// Contents of a capture for one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSummary {
    /// The device.
    pub address: Address,
    /// idVendor and idProduct, if the capture has its device descriptor.
    pub id: Option<(u16, u16)>,
    /// The class of the device, from the same descriptor.
    pub class: Option<ClassCode>,
    /// The classes of its interfaces, each once, if the capture has its configuration descriptor or the front of it.
    pub interfaces: Vec<ClassCode>,
    /// Its transfers.
    pub transfers: TransferCounts,
}

/// Transfers by the kind of their endpoint. In captures of packets those of interrupt endpoints count as bulk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// On control endpoints.
    pub control: u64,
    /// On bulk endpoints.
    pub bulk: u64,
    /// On interrupt endpoints.
    pub interrupt: u64,
    /// On isochronous endpoints.
    pub isochronous: u64,
}

/// The name of a class (USB-IF's list of class codes); empty for a device whose interfaces have the classes.
pub const fn class_name(class: ClassCode) -> &'static str {
    match class.class {
        0x00 => "",
        0x01 => "audio",
        0x02 => "communications",
        0x03 => "HID",
        0x05 => "physical",
        0x06 => "imaging",
        0x07 => "printer",
        0x08 => "mass storage",
        0x09 => "hub",
        0x0a => "CDC data",
        0x0b => "smart card",
        0x0d => "content security",
        0x0e => "video",
        0x0f => "personal healthcare",
        0x10 => "audio/video",
        0x11 => "billboard",
        0x12 => "Type-C bridge",
        0xdc => "diagnostic",
        0xe0 => "wireless controller",
        0xef => "miscellaneous",
        0xfe => "application specific",
        0xff => "vendor specific",
        _ => "unknown class",
    }
}

impl TransferCounts {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.control + self.bulk + self.interrupt + self.isochronous
    }
}
