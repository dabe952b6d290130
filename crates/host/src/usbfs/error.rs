//! What can go wrong between usbfs and us, with what to do about it.

use crate::door::DoorError;
use rustix::io::Errno;
use std::fmt;

/// Why usbfs does not do what was asked. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsbfsError {
    /// This user may not write to the device's node.
    Permission {
        /// The node.
        node: String,
    },
    /// There is no node: usbfs is not mounted here, or the device has gone.
    NoNode {
        /// The node.
        node: String,
    },
    /// Somebody else has the interface.
    Busy {
        /// The interface, as sysfs names it.
        interface: String,
        /// The driver that has it: `usbfs` is another program.
        holder: Option<String>,
    },
    /// Transfers need more memory than usbfs may have.
    Memory {
        /// MiB that all programs may have together, if the kernel tells.
        limit_mb: Option<u64>,
    },
    /// The device is gone.
    Disconnected,
    /// The kernel's driver is not bound again.
    NotGivenBack {
        /// The interface, as sysfs names it.
        interface: String,
        /// Why, if the kernel says.
        errno: Option<Errno>,
    },
    /// Something else.
    Failed {
        /// What was asked for.
        action: &'static str,
        /// The kernel's word for it.
        errno: Errno,
    },
}

impl UsbfsError {
    /// What the kernel means that does not map memory.
    pub(crate) fn of_memory(errno: Errno) -> Self {
        Self::of("map memory", errno)
    }

    /// What an error number means for an action on a device that is open.
    pub(super) fn of(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NODEV | Errno::SHUTDOWN => Self::Disconnected,
            Errno::NOMEM => Self::Memory { limit_mb: memory_limit_mb() },
            errno => Self::Failed { action, errno },
        }
    }
}

/// What the module `usbcore` was told; 0 is no limit.
fn memory_limit_mb() -> Option<u64> {
    std::fs::read_to_string(MEMORY_PARAMETER).ok()?.trim().parse().ok()
}

/// The command that gives an interface without a driver back to the kernel.
pub fn give_back_command(interface: &str) -> String {
    format!("echo {interface} | sudo tee /sys/bus/usb/drivers_probe")
}

const MEMORY_PARAMETER: &str = "/sys/module/usbcore/parameters/usbfs_memory_mb";

impl fmt::Display for UsbfsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission { node } => write!(
                f,
                "{node} may not be written by this user: be root, or install the rule that `uaskit list --udev` prints"
            ),
            Self::NoNode { node } => {
                write!(f, "there is no {node}: the device is gone, or usbfs is not there")
            }
            Self::Busy { interface, holder: Some(holder) } if holder == super::kernel::USBFS => {
                write!(f, "another program has {interface}: end it first")
            }
            Self::Busy { interface, holder: Some(holder) } => {
                write!(f, "the driver `{holder}` has taken {interface} meanwhile: try again")
            }
            Self::Busy { interface, holder: None } => write!(f, "{interface} is taken: try again"),
            Self::Memory { limit_mb: Some(limit) } if *limit > 0 => write!(
                f,
                "usbfs may not have so much memory: all programs together have {limit} MiB; `echo {} | sudo tee \
                 {MEMORY_PARAMETER}` allows more, or take a smaller depth or smaller transfers",
                limit.saturating_mul(4)
            ),
            Self::Memory { .. } => f.write_str("the kernel has no memory for so much: take a smaller depth"),
            Self::Disconnected => f.write_str("the device is gone"),
            Self::NotGivenBack { interface, errno } => {
                write!(f, "the kernel has not taken {interface} back")?;
                if let Some(errno) = errno {
                    write!(f, " ({errno})")?;
                }
                write!(f, ": `{}`", give_back_command(interface))
            }
            Self::Failed { action, errno } => write!(f, "cannot {action}: {errno}"),
        }
    }
}

impl std::error::Error for UsbfsError {}

impl DoorError for UsbfsError {
    fn is_stall(&self) -> bool {
        matches!(self, Self::Failed { errno: Errno::PIPE, .. })
    }

    fn is_disconnect(&self) -> bool {
        *self == Self::Disconnected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let text = |error: UsbfsError| error.to_string();
        let node = "/dev/bus/usb/002/003".to_owned();
        assert!(text(UsbfsError::Permission { node }).contains("uaskit list --udev"));
        let memory = text(UsbfsError::Memory { limit_mb: Some(16) });
        assert!(
            memory.contains("echo 64 | sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb"),
            "{memory}"
        );
        let interface = "2-1:1.0".to_owned();
        let lost = text(UsbfsError::NotGivenBack { interface: interface.clone(), errno: None });
        assert!(lost.contains("echo 2-1:1.0 | sudo tee /sys/bus/usb/drivers_probe"), "{lost}");
        let busy = text(UsbfsError::Busy { interface, holder: Some("usbfs".into()) });
        assert_eq!(busy, "another program has 2-1:1.0: end it first");
    }

    #[test]
    fn an_error_number_is_taken_for_what_it_means() {
        assert_eq!(UsbfsError::of("reap", Errno::NODEV), UsbfsError::Disconnected);
        assert!(matches!(UsbfsError::of("submit", Errno::NOMEM), UsbfsError::Memory { .. }));
        assert_eq!(
            UsbfsError::of("reset the port", Errno::IO).to_string(),
            "cannot reset the port: Input/output error (os error 5)"
        );
    }
}
