//! What can go wrong between usbfs and us, with what to do about it.

use crate::door::DoorError;
use inspect::diagnose::give_back_command;
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
        /// MiB that all programs may have together, if the kernel tells; 0 is no limit.
        limit_mb: Option<u64>,
        /// Bytes that are wanted here in all, if they are known.
        wanted_bytes: Option<u64>,
    },
    /// The host controller, or its driver, has no streams.
    NoStreams,
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
    /// What an error number means for an action on a device that is open.
    pub(super) fn of(action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NODEV | Errno::SHUTDOWN => Self::Disconnected,
            Errno::NOMEM => Self::Memory { limit_mb: memory_limit_mb(), wanted_bytes: None },
            errno => Self::Failed { action, errno },
        }
    }

    /// The same, where so much memory is wanted in all.
    #[must_use]
    pub(crate) fn wanting(self, bytes: u64) -> Self {
        match self {
            Self::Memory { limit_mb, .. } => Self::Memory { limit_mb, wanted_bytes: Some(bytes) },
            other => other,
        }
    }
}

/// What the module `usbcore` was told; 0 is no limit.
fn memory_limit_mb() -> Option<u64> {
    std::fs::read_to_string(MEMORY_PARAMETER).ok()?.trim().parse().ok()
}

/// A limit, in MiB, under which so many of them can be had. The kernel does not tell what others have: it is no more than the limit that
/// is. Transfers that are copied, since there is no room in one piece, are carried if all of them take half of the limit.
const fn sufficient_mb(limit_mb: u64, wanted_mb: u64) -> u64 {
    wanted_mb.saturating_add(if limit_mb > wanted_mb { limit_mb } else { wanted_mb })
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
            Self::Memory { limit_mb: Some(limit), wanted_bytes } if *limit > 0 => {
                // One transfer of a kind whose bytes nobody counted has less than one.
                let wanted_mb = wanted_bytes.map_or(1, |bytes| bytes.div_ceil(1 << 20));
                let wanted =
                    wanted_bytes.map_or_else(String::new, |_| format!(", and {wanted_mb} are wanted here"));
                write!(
                    f,
                    "usbfs may not have so much memory: all programs together have {limit} MiB{wanted}; `echo {} | sudo \
                     tee {MEMORY_PARAMETER}` allows it, or take a smaller depth or smaller transfers",
                    sufficient_mb(*limit, wanted_mb)
                )
            }
            Self::Memory { .. } => f.write_str("the kernel has no memory for so much: take a smaller depth"),
            Self::NoStreams => f.write_str("the host controller has no streams"),
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
        let interface = "2-1:1.0".to_owned();
        let lost = text(UsbfsError::NotGivenBack { interface: interface.clone(), errno: None });
        assert!(lost.contains("echo 2-1:1.0 | sudo tee /sys/bus/usb/drivers_probe"), "{lost}");
        let busy = text(UsbfsError::Busy { interface, holder: Some("usbfs".into()) });
        assert_eq!(busy, "another program has 2-1:1.0: end it first");
    }

    #[test]
    fn the_limit_that_is_advised_suffices() {
        let advised = |limit, bytes| {
            let text = UsbfsError::Memory { limit_mb: Some(limit), wanted_bytes: bytes }.to_string();
            let command = text.split_once("`echo ").expect("a command").1;
            let (number, rest) = command.split_once(' ').expect("a number");
            assert!(rest.starts_with("| sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb`"), "{text}");
            (number.parse::<u64>().expect("a number"), text.contains("are wanted here"))
        };
        for (limit, wanted_mb) in [(1, 1), (1, 9), (16, 3), (16, 100), (16, 2048), (100, 100)] {
            let (advised_mb, is_told) = advised(limit, Some((wanted_mb << 20) - 1));
            // Others may have all that may be had so far; what is copied must be half of it at most.
            assert!(is_told && advised_mb >= limit + wanted_mb && advised_mb >= 2 * wanted_mb);
        }
        assert_eq!((advised(16, Some(9 << 20)), advised(16, None)), ((25, true), (17, false)));
        let unlimited = UsbfsError::Memory { limit_mb: Some(0), wanted_bytes: Some(1) }.to_string();
        assert_eq!(unlimited, "the kernel has no memory for so much: take a smaller depth");
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
