//! Errors of VFIO, with what to do about them.

use super::PciAddress;
use rustix::io::Errno;
use std::fmt;

/// Why a VFIO operation failed. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VfioError {
    /// Not the address of a PCI function.
    Address(String),
    /// There is no such function.
    NotThere(PciAddress),
    /// Another driver is bound to it.
    Bound {
        /// The function.
        address: PciAddress,
        /// The driver, if there is one.
        driver: Option<String>,
    },
    /// There is no IOMMU, or it is disabled.
    NoIommu(PciAddress),
    /// Only VFIO no-IOMMU mode is available, which is not supported.
    Unguarded(PciAddress),
    /// Its IOMMU group has functions that the kernel uses.
    Shared {
        /// The function.
        address: PciAddress,
        /// The IOMMU group.
        group: u32,
    },
    /// Permission denied on a VFIO node.
    Permission {
        /// The node.
        node: String,
    },
    /// A VFIO node is missing: a module is not loaded.
    NoNode {
        /// The node.
        node: String,
    },
    /// Another process uses it.
    Busy(PciAddress),
    /// It is not an xHCI host controller.
    OtherClass {
        /// The function.
        address: PciAddress,
        /// Its class code: base class, subclass, programming interface.
        class: u32,
    },
    /// It has pin interrupts only.
    NoInterrupts(PciAddress),
    /// Memory cannot be pinned: limit of the process or of the machine.
    Memory {
        /// Bytes requested.
        bytes: usize,
    },
    /// Another error.
    Failed {
        /// The operation.
        action: &'static str,
        /// The error number.
        errno: Errno,
    },
}

impl VfioError {
    pub(super) fn of(action: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Failed { action, errno }
    }

    /// Maps the error number of opening a node.
    pub(super) fn of_node(node: String, address: &PciAddress) -> impl FnOnce(Errno) -> Self {
        let address = address.clone();
        move |errno| match errno {
            Errno::ACCESS | Errno::PERM => Self::Permission { node },
            Errno::NOENT | Errno::NODEV => Self::NoNode { node },
            Errno::BUSY => Self::Busy(address),
            errno => Self::Failed { action: "open a node of VFIO's", errno },
        }
    }
}

impl fmt::Display for VfioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(text) => write!(f, "invalid PCI address {text:?}; the form is 0000:00:14.0"),
            Self::NotThere(address) => write!(f, "PCI function {address} not found"),
            Self::Bound { address, driver } => {
                let device = format!("/sys/bus/pci/devices/{address}");
                match driver {
                    Some(driver) => write!(f, "{address} is bound to driver `{driver}`")?,
                    None => write!(f, "{address} has no driver")?,
                }
                write!(f, "; to bind vfio-pci (the kernel loses every device behind it), run")?;
                write!(f, " `sudo modprobe vfio-pci; echo vfio-pci | sudo tee {device}/driver_override;")?;
                if driver.is_some() {
                    write!(f, " echo {address} | sudo tee {device}/driver/unbind;")?;
                }
                write!(f, " echo {address} | sudo tee /sys/bus/pci/drivers_probe`")
            }
            Self::NoIommu(address) => write!(
                f,
                "{address} is not behind an IOMMU, so it could write to any memory; enable it in the firmware (VT-d, \
                 AMD-Vi) and boot with `intel_iommu=on` or `amd_iommu=on`"
            ),
            Self::Unguarded(address) => {
                write!(f, "{address} could write to any memory: VFIO no-IOMMU mode is not supported")
            }
            Self::Shared { address, group } => write!(
                f,
                "{address} shares IOMMU group {group} with functions of the kernel; bind vfio-pci to all of \
                 /sys/kernel/iommu_groups/{group}/devices"
            ),
            Self::Permission { node } => {
                write!(
                    f,
                    "cannot open {node}: permission denied; run as root or change the owner of the node"
                )
            }
            Self::NoNode { node } => {
                write!(f, "cannot open {node}: not found; run `sudo modprobe -a vfio_iommu_type1 vfio-pci`")
            }
            Self::Busy(address) => write!(f, "{address} is in use by another program; close it first"),
            Self::OtherClass { address, class } => {
                write!(f, "{address} is not an xHCI controller: class is {class:06x}, not 0c0330")
            }
            Self::NoInterrupts(address) => write!(f, "{address} has neither MSI-X nor MSI"),
            Self::Memory { bytes } => {
                write!(f, "cannot pin {bytes} bytes; run as root or raise `ulimit -l`")
            }
            Self::Failed { action, errno } => write!(f, "cannot {action}: {errno}"),
        }
    }
}

impl std::error::Error for VfioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_bound_function_says_how_to_bind_vfio() {
        let address: PciAddress = "0000:00:14.0".parse().unwrap();
        let bound = VfioError::Bound { address, driver: Some("xhci_hcd".into()) }.to_string();
        for words in [
            "bound to driver `xhci_hcd`",
            "echo vfio-pci | sudo tee /sys/bus/pci/devices/0000:00:14.0/driver_override",
            "echo 0000:00:14.0 | sudo tee /sys/bus/pci/devices/0000:00:14.0/driver/unbind",
            "echo 0000:00:14.0 | sudo tee /sys/bus/pci/drivers_probe",
        ] {
            assert!(bound.contains(words), "{bound}");
        }
    }
}
