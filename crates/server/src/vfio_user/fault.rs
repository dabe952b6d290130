//! Why a client is disconnected.

use std::fmt;
use wire::DecodeError;
use wire::vfio_user::{Command, MESSAGE_LEN_MAX};

/// A violation of the protocol. Other messages are answered with an error number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its header is invalid.
    Header(DecodeError),
    /// It is longer than any that this server takes.
    TooLong(u32),
    /// It came before VERSION.
    BeforeVersion(Command),
    /// The version, or its capabilities, cannot be read or are of another major version.
    Version(String),
    /// Its first message has not arrived in time.
    VersionTimeout,
    /// More descriptors than were announced.
    TooManyDescriptors,
    /// The memory of the guest came without a descriptor.
    MemoryNotShared,
    /// A file with memory of the guest has become shorter than what was mapped.
    MemoryShrunk,
}

/// Arguments that make QEMU share the guest's memory.
pub(super) const SHARED_MEMORY: &str =
    "-object memory-backend-memfd,id=mem,size=SIZE,share=on -machine memory-backend=mem";

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => write!(f, "invalid message: {error}"),
            Self::TooLong(length) => {
                write!(f, "message of {length} bytes (maximum {MESSAGE_LEN_MAX})")
            }
            Self::BeforeVersion(command) => write!(f, "{command} before VERSION"),
            Self::Version(reason) => write!(f, "VERSION: {reason}"),
            Self::VersionTimeout => f.write_str("timed out waiting for its VERSION message"),
            Self::TooManyDescriptors => f.write_str("more file descriptors than announced"),
            Self::MemoryNotShared => write!(
                f,
                "guest memory is not shared with this process; start QEMU with {SHARED_MEMORY}, where SIZE is that of -m"
            ),
            Self::MemoryShrunk => f.write_str("the file of guest memory was truncated"),
        }
    }
}

impl std::error::Error for Fault {}
