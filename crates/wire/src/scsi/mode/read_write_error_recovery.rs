//! Read-write error recovery mode page, 01h (SBC-4).

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// How hard the drive retries, and what it reports.
///
/// ```text
///  2      AWRE (7), ARRE (6), TB (5), RC (4), EER (3), PER (2), DTE (1)
///  3      read retry count
///  7      LBPERE (7), MWR (6:5)
///  8      write retry count
/// 10..12  recovery time limit
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadWriteErrorRecoveryPage {
    /// A block that fails a write is reassigned.
    #[doc(alias = "AWRE")]
    pub automatic_write_reassignment: bool,
    /// A block that fails a read, and could be recovered, is reassigned.
    #[doc(alias = "ARRE")]
    pub automatic_read_reassignment: bool,
    /// A block that could not be recovered is transferred all the same.
    #[doc(alias = "TB")]
    pub transfer_block: bool,
    /// No delay for recovery, even at the price of wrong bytes.
    #[doc(alias = "RC")]
    pub read_continuous: bool,
    /// The quickest recovery first.
    #[doc(alias = "EER")]
    pub early_recovery: bool,
    /// Recovered errors are reported.
    #[doc(alias = "PER")]
    pub post_error: bool,
    /// A recovered error ends the command.
    #[doc(alias = "DTE")]
    pub terminate_on_error: bool,
    /// READ RETRY COUNT.
    pub read_retry_count: u8,
    /// Provisioning thresholds are reported.
    #[doc(alias = "LBPERE")]
    pub provisioning_error_reporting: bool,
    /// MISALIGNED WRITE REPORTING, two bits.
    #[doc(alias = "MWR")]
    pub misaligned_write_reporting: u8,
    /// WRITE RETRY COUNT.
    pub write_retry_count: u8,
    /// RECOVERY TIME LIMIT in milliseconds; 0: the drive's own.
    pub recovery_time_limit_ms: u16,
}

impl ReadWriteErrorRecoveryPage {
    /// Bytes with the header.
    pub const LEN: usize = 12;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::ReadWriteErrorRecovery, None, bytes)?;
        Ok(Self {
            automatic_write_reassignment: bit::<7>(page[2]),
            automatic_read_reassignment: bit::<6>(page[2]),
            transfer_block: bit::<5>(page[2]),
            read_continuous: bit::<4>(page[2]),
            early_recovery: bit::<3>(page[2]),
            post_error: bit::<2>(page[2]),
            terminate_on_error: bit::<1>(page[2]),
            read_retry_count: page[3],
            provisioning_error_reporting: bit::<7>(page[7]),
            misaligned_write_reporting: bits::<6, 5>(page[7]),
            write_retry_count: page[8],
            recovery_time_limit_ms: be16::<10, _>(page),
        })
    }

    /// The twelve bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 12] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::ReadWriteErrorRecovery, None, saveable);
        out[2] = set_bit::<7>(self.automatic_write_reassignment)
            | set_bit::<6>(self.automatic_read_reassignment)
            | set_bit::<5>(self.transfer_block)
            | set_bit::<4>(self.read_continuous)
            | set_bit::<3>(self.early_recovery)
            | set_bit::<2>(self.post_error)
            | set_bit::<1>(self.terminate_on_error);
        out[3] = self.read_retry_count;
        out[7] = set_bit::<7>(self.provisioning_error_reporting)
            | set_bits::<6, 5>(self.misaligned_write_reporting);
        out[8] = self.write_retry_count;
        out[10..].copy_from_slice(&self.recovery_time_limit_ms.to_be_bytes());
        out
    }
}

impl fmt::Display for ReadWriteErrorRecoveryPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, write, limit) =
            (self.read_retry_count, self.write_retry_count, self.recovery_time_limit_ms);
        write!(f, "{read} read retries, {write} write retries, {limit} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x81, 0x0a, 0xc4, 0x05, 0, 0, 0, 0xc0, 0x03, 0, 0x1b, 0x58];
        let page = ReadWriteErrorRecoveryPage {
            automatic_write_reassignment: true,
            automatic_read_reassignment: true,
            post_error: true,
            read_retry_count: 5,
            provisioning_error_reporting: true,
            misaligned_write_reporting: 2,
            write_retry_count: 3,
            recovery_time_limit_ms: 7000,
            ..ReadWriteErrorRecoveryPage::default()
        };
        assert_eq!(ReadWriteErrorRecoveryPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(true), bytes);
    }

    #[test]
    fn every_bit_has_its_own_field() {
        for bit in [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02] {
            let bytes = [0x01, 0x0a, bit, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(ReadWriteErrorRecoveryPage::decode(&bytes).unwrap().encode(false), bytes);
        }
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let bytes = [0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for got in 0..12 {
            let needed = if got < 2 { 2 } else { 12 };
            let error = DecodeError::Truncated { needed, got };
            assert_eq!(ReadWriteErrorRecoveryPage::decode(&bytes[..got]), Err(error));
        }
    }
}
