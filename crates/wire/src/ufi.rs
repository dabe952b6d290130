//! UFI Command Specification 1.0: the command set of floppy drives on USB.
//!
//! Every command block has twelve bytes, of which the first ten are those of SCSI-2 and MMC; bits 7:5 of byte 1 name
//! the logical unit. Left out: blocks that are the same in [`crate::scsi::cdb`].

mod command_block;
mod disk_format;
mod format_list;
mod inquiry;
mod mode;

pub use command_block::{BLOCK_LEN, DataStage, data_stage, lun};
pub use disk_format::DiskFormat;
pub use format_list::{FormatTrack, FormatUnit};
pub use inquiry::UfiInquiry;
pub use mode::{FlexibleDiskPage, ModePages, UfiModeHeader};

use crate::DecodeError;

/// The first `N` bytes.
fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], DecodeError> {
    bytes.first_chunk().ok_or(DecodeError::Truncated { needed: N, got: bytes.len() })
}
