//! Errors of usbfs, with what to do about them.

use crate::host_bus::HostBusError;
use inspect::diagnose::give_back_command;
use rustix::io::Errno;
use std::fmt;

/// Why a usbfs operation failed. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsbfsError {
    /// This user may not write to the device's node.
    Permission {
        /// The node.
        node: String,
    },
    /// There is no such node: usbfs is not mounted, or the device is disconnected.
    NoNode {
        /// The node.
        node: String,
    },
    /// The interface is in use.
    Busy {
        /// The interface, as named in sysfs.
        interface: String,
        /// The driver bound to it; `usbfs` stands for another program.
        holder: Option<String>,
    },
    /// The usbfs memory limit is exceeded.
    Memory {
        /// The limit for all programs in MiB, if known; 0 is unlimited.
        limit_mb: Option<u64>,
        /// Bytes needed here in all, if known.
        wanted_bytes: Option<u64>,
    },
    /// The host controller, or its driver, does not support streams.
    NoStreams,
    /// The device is disconnected.
    Disconnected,
    /// The kernel driver could not be bound again.
    NotReattached {
        /// The interface, as named in sysfs.
        interface: String,
        /// The error number, if any.
        errno: Option<Errno>,
    },
    /// Another error.
    Failed {
        /// The operation.
        action: &'static str,
        /// The error number.
        errno: Errno,
    },
}

impl UsbfsError {
    /// Maps the error number of an operation on an open device.
    pub(super) fn of(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NODEV | Errno::SHUTDOWN => Self::Disconnected,
            Errno::NOMEM => Self::Memory { limit_mb: memory_limit_mb(), wanted_bytes: None },
            errno => Self::Failed { action, errno },
        }
    }

    /// Adds the memory needed in all.
    #[must_use]
    pub(crate) fn wanting(self, bytes: u64) -> Self {
        match self {
            Self::Memory { limit_mb, .. } => Self::Memory { limit_mb, wanted_bytes: Some(bytes) },
            other => other,
        }
    }
}

/// Reads the parameter of the module `usbcore`; 0 is unlimited.
fn memory_limit_mb() -> Option<u64> {
    std::fs::read_to_string(MEMORY_PARAMETER).ok()?.trim().parse().ok()
}

/// Returns a limit in MiB that suffices. The memory of other programs is unknown, but no more than
/// the present limit. Copied transfers are accepted if they take at most half of the limit.
const fn sufficient_mb(limit_mb: u64, wanted_mb: u64) -> u64 {
    wanted_mb.saturating_add(if limit_mb > wanted_mb { limit_mb } else { wanted_mb })
}

const MEMORY_PARAMETER: &str = "/sys/module/usbcore/parameters/usbfs_memory_mb";

impl fmt::Display for UsbfsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission { node } => write!(
                f,
                "cannot open {node}: permission denied; run as root or install the udev rule that `uaskit list --udev` prints"
            ),
            Self::NoNode { node } => {
                write!(f, "cannot open {node}: not found; the device is disconnected or usbfs is not mounted")
            }
            Self::Busy { interface, holder: Some(holder) } if holder == super::kernel::USBFS => {
                write!(f, "{interface} is in use by another program; close it first")
            }
            Self::Busy { interface, holder: Some(holder) } => {
                write!(f, "{interface} was bound to driver `{holder}` in the meantime; try again")
            }
            Self::Busy { interface, holder: None } => write!(f, "{interface} is busy; try again"),
            Self::Memory { limit_mb: Some(limit), wanted_bytes } if *limit > 0 => {
                // A single transfer of unknown length needs less than 1 MiB.
                let wanted_mb = wanted_bytes.map_or(1, |bytes| bytes.div_ceil(1 << 20));
                let wanted = wanted_bytes.map_or_else(String::new, |_| format!(", {wanted_mb} MiB needed"));
                write!(
                    f,
                    "usbfs memory limit exceeded: {limit} MiB allowed{wanted}; raise it with `echo {} | sudo \
                     tee {MEMORY_PARAMETER}`, or use a smaller depth or smaller transfers",
                    sufficient_mb(*limit, wanted_mb)
                )
            }
            Self::Memory { .. } => f.write_str("out of kernel memory; use a smaller depth"),
            Self::NoStreams => f.write_str("the host controller does not support streams"),
            Self::Disconnected => f.write_str("device disconnected"),
            Self::NotReattached { interface, errno } => {
                write!(f, "cannot reattach the kernel driver to {interface}")?;
                if let Some(errno) = errno {
                    write!(f, " ({errno})")?;
                }
                write!(f, "; run `{}`", give_back_command(interface))
            }
            Self::Failed { action, errno } => write!(f, "cannot {action}: {errno}"),
        }
    }
}

impl std::error::Error for UsbfsError {}

impl HostBusError for UsbfsError {
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
        let interface = "2-1:1.0".to_owned();
        let lost = text(UsbfsError::NotReattached { interface: interface.clone(), errno: None });
        assert!(lost.contains("echo 2-1:1.0 | sudo tee /sys/bus/usb/drivers_probe"), "{lost}");
        let busy = text(UsbfsError::Busy { interface, holder: Some("usbfs".into()) });
        assert_eq!(busy, "2-1:1.0 is in use by another program; close it first");
    }

    #[test]
    fn the_limit_that_is_advised_suffices() {
        let advised = |limit, bytes| {
            let text = UsbfsError::Memory { limit_mb: Some(limit), wanted_bytes: bytes }.to_string();
            let command = text.split_once("`echo ").expect("a command").1;
            let (number, rest) = command.split_once(' ').expect("a number");
            assert!(rest.starts_with("| sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb`"), "{text}");
            (number.parse::<u64>().expect("a number"), text.contains(" needed"))
        };
        for (limit, wanted_mb) in [(1, 1), (1, 9), (16, 3), (16, 100), (16, 2048), (100, 100)] {
            let (advised_mb, names_need) = advised(limit, Some((wanted_mb << 20) - 1));
            // Others may have all that may be had so far; what is copied must be half of it at
            // most.
            assert!(names_need && advised_mb >= limit + wanted_mb && advised_mb >= 2 * wanted_mb);
        }
        assert_eq!((advised(16, Some(9 << 20)), advised(16, None)), ((25, true), (17, false)));
        let unlimited = UsbfsError::Memory { limit_mb: Some(0), wanted_bytes: Some(1) }.to_string();
        assert_eq!(unlimited, "out of kernel memory; use a smaller depth");
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
