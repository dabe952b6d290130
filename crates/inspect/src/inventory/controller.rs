//! Host controllers: the parent of a root hub in sysfs, and whether it supports streams as far as that is known.
//!
//! An xHCI controller has one device and two buses. Streams need MaxPSASize of 1 or more in HCCPARAMS1 (xHCI 1.2
//! clause 5.3.6), which only debugfs shows, and only to root; the version is in HCIVERSION (clause 5.3.2).

use super::UsbDevice;
use crate::tree::{Tree, Unread};

/// A host controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its name: a PCI address, or a platform device.
    pub name: String,
    /// Its directory in sysfs.
    pub path: String,
    /// The numbers of its buses.
    pub buses: Vec<u16>,
    /// Its driver, such as `xhci_hcd`.
    pub driver: Option<String>,
    /// PCI vendor and device.
    pub pci: Option<(u16, u16)>,
    /// Its limit of stream arrays, or why that was not read.
    pub stream_arrays: Result<StreamArrays, Unread>,
}

/// The largest primary stream array of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamArrays {
    /// HCIVERSION in BCD, such as 0100h; `None` if it is not known.
    pub version: Option<u16>,
    /// MaxPSASize; the array has two to the power of this and one more entries.
    pub max_psa_size: u8,
    /// The file.
    pub path: String,
}

impl Controller {
    pub(super) fn read_all(tree: &Tree, devices: &[UsbDevice]) -> Vec<Self> {
        let mut controllers: Vec<Self> = Vec::new();
        for hub in devices.iter().filter(|device| device.is_root_hub()) {
            let Some((path, _)) = hub.path.rsplit_once('/') else { continue };
            match controllers.iter_mut().find(|controller| controller.path == path) {
                Some(controller) => controller.buses.push(hub.bus),
                None => controllers.push(Self::read(tree, path, hub.bus)),
            }
        }
        controllers
    }

    fn read(tree: &Tree, path: &str, bus: u16) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let number = |name: &str| tree.hexadecimal(&format!("{path}/{name}"));
        Self {
            pci: number("vendor").zip(number("device")),
            buses: vec![bus],
            path: path.to_owned(),
            driver: tree.link_name(&format!("{path}/driver")),
            stream_arrays: StreamArrays::read(tree, &name),
            name,
        }
    }
}

impl StreamArrays {
    /// Asks debugfs, where Linux's xHCI core shows each of its controllers by its device's name, whichever driver has it:
    /// not each of those is called xhci.
    fn read(tree: &Tree, controller: &str) -> Result<Self, Unread> {
        let path = format!("/sys/kernel/debug/usb/xhci/{controller}/reg-cap");
        let registers = tree.text(&path)?;
        let digits = |register: &str| {
            let line = registers.lines().find(|line| line.starts_with(register))?;
            line.split("0x").nth(1).map(str::trim)
        };
        // Bits 15:12 are the fourth digit from the right.
        let digit = digits("HCCPARAMS1").and_then(|digits| digits.chars().rev().nth(3)?.to_digit(16));
        let max_psa_size = digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(Unread::Failed)?;
        // The register of CAPLENGTH has HCIVERSION in bits 31:16, which are the first four of its eight digits.
        let version = digits("CAPLENGTH").filter(|digits| digits.len() == 8);
        let version = version.and_then(|digits| u16::from_str_radix(digits.get(..4)?, 16).ok());
        Ok(Self { version, max_psa_size, path })
    }
}
