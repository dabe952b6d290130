//! USB Mass Storage Class, Control/Bulk/Interrupt Transport 1.1: floppy drives.
//!
//! A command block travels in the data stage of a class request, data by bulk endpoints. How the command ended comes
//! as two bytes from an interrupt endpoint (protocol 00h), or is asked for with REQUEST SENSE (protocol 01h).
//! Left out: command sets; [`crate::ufi`] is the one of floppy drives.

mod accept_command;
mod status;

pub use accept_command::AcceptCommand;
pub use status::{CommandStatus, CompletionValue, StatusBlock};

/// The command block of a reset (clause 2.2): SEND DIAGNOSTIC whose other bytes are all ones.
pub const RESET_BLOCK: [u8; 12] = [0x1d, 0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Bytes of the longest command block that this project accepts.
pub const BLOCK_BYTES_MAX: usize = 16;

/// Whether a command block is the one of a reset.
pub fn is_reset(block: &[u8]) -> bool {
    block == RESET_BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_test_is_not_a_reset() {
        assert!(is_reset(&[0x1d, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]));
        assert!(!is_reset(&[0x1d, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_reset(&RESET_BLOCK[..11]));
    }
}
