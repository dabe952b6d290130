//! What can go wrong between VFIO and us, with what to do about it.

use super::PciAddress;
use rustix::io::Errno;
use std::fmt;

/// Why VFIO does not do what was asked. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VfioError {
    /// That is no address of a PCI function.
    Address(String),
    /// There is no such function.
    NotThere(PciAddress),
    /// Another driver has it.
    Bound {
        /// Which function.
        address: PciAddress,
        /// The driver, if there is one.
        driver: Option<String>,
    },
    /// There is no IOMMU, or it is off.
    NoIommu(PciAddress),
    /// The kernel would give it away only without an IOMMU, which we do not take.
    Unguarded(PciAddress),
    /// Other functions that the IOMMU cannot tell from it are in the kernel's hands.
    Shared {
        /// Which function.
        address: PciAddress,
        /// Its group.
        group: u32,
    },
    /// This user may not open a node of VFIO's.
    Permission {
        /// The node.
        node: String,
    },
    /// There is no such node: a module is missing.
    NoNode {
        /// The node.
        node: String,
    },
    /// Another process has it.
    Busy(PciAddress),
    /// It is no USB host controller of the xHCI kind.
    OtherClass {
        /// Which function.
        address: PciAddress,
        /// What it says it is: base class, subclass, programming interface.
        class: u32,
    },
    /// It can signal by a pin alone.
    NoInterrupts(PciAddress),
    /// Memory cannot be pinned: the limit of this process, or the machine's memory.
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
    },
    /// Something else.
    Failed {
        /// What was asked for.
        action: &'static str,
        /// The kernel's word for it.
        errno: Errno,
    },
}

impl VfioError {
    pub(super) fn of(action: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Failed { action, errno }
    }

    /// What an error of opening a node means.
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
            Self::Address(text) => write!(f, "{text:?} is no PCI address, which looks like 0000:00:14.0"),
            Self::NotThere(address) => write!(f, "there is no PCI function {address}"),
            Self::Bound { address, driver } => {
                let device = format!("/sys/bus/pci/devices/{address}");
                match driver {
                    Some(driver) => write!(f, "{address} belongs to the driver `{driver}`")?,
                    None => write!(f, "{address} has no driver")?,
                }
                write!(f, "; this gives it to us, and takes every device behind it from the kernel:")?;
                write!(f, " `sudo modprobe vfio-pci; echo vfio-pci | sudo tee {device}/driver_override;")?;
                if driver.is_some() {
                    write!(f, " echo {address} | sudo tee {device}/driver/unbind;")?;
                }
                write!(f, " echo {address} | sudo tee /sys/bus/pci/drivers_probe`")
            }
            Self::NoIommu(address) => write!(
                f,
                "{address} is behind no IOMMU, so it could write to any memory: turn it on in the firmware (VT-d, \
                 AMD-Vi) and boot with `intel_iommu=on` or `amd_iommu=on`"
            ),
            Self::Unguarded(address) => {
                write!(f, "{address} could write to any memory: VFIO's mode without an IOMMU is not used")
            }
            Self::Shared { address, group } => write!(
                f,
                "{address} cannot be kept apart from other functions that the kernel uses: bind vfio-pci to all of \
                 /sys/kernel/iommu_groups/{group}/devices"
            ),
            Self::Permission { node } => {
                write!(f, "{node} may not be opened by this user: be root, or give the node to the user")
            }
            Self::NoNode { node } => {
                write!(f, "there is no {node}: `sudo modprobe -a vfio_iommu_type1 vfio-pci`")
            }
            Self::Busy(address) => write!(f, "another program has {address}: end it first"),
            Self::OtherClass { address, class } => {
                write!(f, "{address} is no xHCI controller: its class is {class:06x} and not 0c0330")
            }
            Self::NoInterrupts(address) => write!(f, "{address} has neither MSI-X nor MSI"),
            Self::Memory { bytes } => {
                write!(f, "{bytes} bytes cannot be pinned: be root, or allow more by `ulimit -l`")
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
    fn a_function_of_the_kernels_is_told_how_to_be_had() {
        let address: PciAddress = "0000:00:14.0".parse().unwrap();
        let bound = VfioError::Bound { address, driver: Some("xhci_hcd".into()) }.to_string();
        for words in [
            "belongs to the driver `xhci_hcd`",
            "echo vfio-pci | sudo tee /sys/bus/pci/devices/0000:00:14.0/driver_override",
            "echo 0000:00:14.0 | sudo tee /sys/bus/pci/devices/0000:00:14.0/driver/unbind",
            "echo 0000:00:14.0 | sudo tee /sys/bus/pci/drivers_probe",
        ] {
            assert!(bound.contains(words), "{bound}");
        }
    }
}
