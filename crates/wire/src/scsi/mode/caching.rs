//! Caching mode page, 08h (SBC-4).

use super::{ModePageCode, RawModePage, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// How the drive uses its cache.
///
/// ```text
///  2      IC (7), ABPF (6), CAP (5), DISC (4), SIZE (3), WCE (2), MF (1), RCD (0)
///  3      demand read (7:4) and write (3:0) retention priority
///  4..6   disable pre-fetch transfer length     12      FSW (7), LBCSS (6), DRA (5),
///  6..8   minimum pre-fetch                             SYNC_PROG (2:1), NV_DIS (0)
///  8..10  maximum pre-fetch                     13      number of cache segments
/// 10..12  maximum pre-fetch ceiling             14..16  cache segment size
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachingPage {
    /// The fields here, not the drive's own rules, control the cache.
    #[doc(alias = "IC")]
    pub initiator_control: bool,
    /// A new command aborts a pre-fetch.
    #[doc(alias = "ABPF")]
    pub abort_pre_fetch: bool,
    /// Analysis of what was cached is permitted.
    #[doc(alias = "CAP")]
    pub analysis_permitted: bool,
    /// Pre-fetch goes on across a discontinuity.
    #[doc(alias = "DISC")]
    pub discontinuity: bool,
    /// The segment size counts, not the number of segments.
    #[doc(alias = "SIZE")]
    pub size_enable: bool,
    /// Write cache: a write may end before it reached the medium.
    #[doc(alias = "WCE")]
    pub write_cache: bool,
    /// The pre-fetch lengths multiply the transfer length.
    #[doc(alias = "MF")]
    pub multiplication_factor: bool,
    /// Reads come from the medium, not from the cache.
    #[doc(alias = "RCD")]
    pub read_cache_disable: bool,
    /// DEMAND READ RETENTION PRIORITY, four bits.
    pub demand_read_retention_priority: u8,
    /// WRITE RETENTION PRIORITY, four bits.
    pub write_retention_priority: u8,
    /// DISABLE PRE-FETCH TRANSFER LENGTH in blocks.
    pub disable_pre_fetch_transfer_length: u16,
    /// MINIMUM PRE-FETCH.
    pub minimum_pre_fetch: u16,
    /// MAXIMUM PRE-FETCH.
    pub maximum_pre_fetch: u16,
    /// MAXIMUM PRE-FETCH CEILING in blocks.
    pub maximum_pre_fetch_ceiling: u16,
    /// Writes reach the medium in order of their addresses.
    #[doc(alias = "FSW")]
    pub force_sequential_write: bool,
    /// The segment size is in blocks, not bytes.
    #[doc(alias = "LBCSS")]
    pub segment_size_in_blocks: bool,
    /// No read-ahead.
    #[doc(alias = "DRA")]
    pub disable_read_ahead: bool,
    /// SYNC_PROG, two bits: how SYNCHRONIZE CACHE reports its progress.
    pub synchronize_progress: u8,
    /// The non-volatile cache is off.
    #[doc(alias = "NV_DIS")]
    pub non_volatile_disable: bool,
    /// NUMBER OF CACHE SEGMENTS.
    pub cache_segment_count: u8,
    /// CACHE SEGMENT SIZE, in blocks or bytes.
    pub cache_segment_size: u16,
}

impl CachingPage {
    /// Bytes with the header.
    pub const LEN: usize = 20;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        whole_of(ModePageCode::Caching, None, bytes).map(Self::from_whole)
    }

    /// Decodes a page that MODE SENSE returned, of any length: SCSI-2 had 12 bytes. What it does not say of its twenty
    /// bytes is zero, what is past them is ignored.
    pub fn decode_sensed(page: &RawModePage<'_>) -> Result<Self, DecodeError> {
        if (page.header.code, page.header.subpage) != (ModePageCode::Caching, None) {
            let (expected, found) =
                (u8::from(ModePageCode::Caching).into(), u8::from(page.header.code).into());
            return Err(DecodeError::WrongKind { expected, found });
        }
        let mut whole = [0; Self::LEN];
        for (place, byte) in whole.iter_mut().zip(page.bytes) {
            *place = *byte;
        }
        Ok(Self::from_whole(&whole))
    }

    fn from_whole(page: &[u8; Self::LEN]) -> Self {
        Self {
            initiator_control: bit::<7>(page[2]),
            abort_pre_fetch: bit::<6>(page[2]),
            analysis_permitted: bit::<5>(page[2]),
            discontinuity: bit::<4>(page[2]),
            size_enable: bit::<3>(page[2]),
            write_cache: bit::<2>(page[2]),
            multiplication_factor: bit::<1>(page[2]),
            read_cache_disable: bit::<0>(page[2]),
            demand_read_retention_priority: bits::<7, 4>(page[3]),
            write_retention_priority: bits::<3, 0>(page[3]),
            disable_pre_fetch_transfer_length: be16::<4, _>(page),
            minimum_pre_fetch: be16::<6, _>(page),
            maximum_pre_fetch: be16::<8, _>(page),
            maximum_pre_fetch_ceiling: be16::<10, _>(page),
            force_sequential_write: bit::<7>(page[12]),
            segment_size_in_blocks: bit::<6>(page[12]),
            disable_read_ahead: bit::<5>(page[12]),
            synchronize_progress: bits::<2, 1>(page[12]),
            non_volatile_disable: bit::<0>(page[12]),
            cache_segment_count: page[13],
            cache_segment_size: be16::<14, _>(page),
        }
    }

    /// The twenty bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 20] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::Caching, None, saveable);
        out[2] = set_bit::<7>(self.initiator_control)
            | set_bit::<6>(self.abort_pre_fetch)
            | set_bit::<5>(self.analysis_permitted)
            | set_bit::<4>(self.discontinuity)
            | set_bit::<3>(self.size_enable)
            | set_bit::<2>(self.write_cache)
            | set_bit::<1>(self.multiplication_factor)
            | set_bit::<0>(self.read_cache_disable);
        out[3] = set_bits::<7, 4>(self.demand_read_retention_priority)
            | set_bits::<3, 0>(self.write_retention_priority);
        out[4..6].copy_from_slice(&self.disable_pre_fetch_transfer_length.to_be_bytes());
        out[6..8].copy_from_slice(&self.minimum_pre_fetch.to_be_bytes());
        out[8..10].copy_from_slice(&self.maximum_pre_fetch.to_be_bytes());
        out[10..12].copy_from_slice(&self.maximum_pre_fetch_ceiling.to_be_bytes());
        out[12] = set_bit::<7>(self.force_sequential_write)
            | set_bit::<6>(self.segment_size_in_blocks)
            | set_bit::<5>(self.disable_read_ahead)
            | set_bits::<2, 1>(self.synchronize_progress)
            | set_bit::<0>(self.non_volatile_disable);
        out[13] = self.cache_segment_count;
        out[14..16].copy_from_slice(&self.cache_segment_size.to_be_bytes());
        out
    }
}

impl fmt::Display for CachingPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write cache {}, read cache {}", self.write_cache, !self.read_cache_disable)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [
            0x88, 0x12, 0x15, 0x3a, 0xff, 0xff, 0x00, 0x01, 0x0f, 0xff, 0x10, 0x00, 0xa4, 0x08, 0x04, 0x00,
            0, 0, 0, 0,
        ];
        let page = CachingPage {
            discontinuity: true,
            write_cache: true,
            read_cache_disable: true,
            demand_read_retention_priority: 3,
            write_retention_priority: 10,
            disable_pre_fetch_transfer_length: 0xffff,
            minimum_pre_fetch: 1,
            maximum_pre_fetch: 0x0fff,
            maximum_pre_fetch_ceiling: 0x1000,
            force_sequential_write: true,
            disable_read_ahead: true,
            synchronize_progress: 2,
            cache_segment_count: 8,
            cache_segment_size: 1024,
            ..CachingPage::default()
        };
        assert_eq!(CachingPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(true), bytes);
        assert_eq!(page.to_string(), "write cache true, read cache false");
    }

    #[test]
    fn every_bit_has_its_own_field() {
        for (at, mask) in [(2, 0xff_u8), (12, 0xe7)] {
            for bit in (0..8).map(|n| 1 << n).filter(|bit| mask & bit != 0) {
                let mut bytes = [0; 20];
                bytes[..2].copy_from_slice(&[0x08, 0x12]);
                bytes[at] = bit;
                assert_eq!(CachingPage::decode(&bytes).unwrap().encode(false), bytes);
            }
        }
    }

    #[test]
    fn the_page_of_scsi_2_counts_for_a_host() {
        let bytes = [0x08, 0x0a, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xee];
        let page = CachingPage::decode_sensed(&RawModePage::decode(&bytes).unwrap()).unwrap();
        assert_eq!(page, CachingPage { write_cache: true, ..CachingPage::default() });
        let other = RawModePage::decode(&[0x0a, 0x00]).unwrap();
        let error = DecodeError::WrongKind { expected: 0x08, found: 0x0a };
        assert_eq!(CachingPage::decode_sensed(&other), Err(error));
    }

    #[test]
    fn the_page_of_scsi_2_is_too_short() {
        let error = DecodeError::Invalid { field: "PAGE LENGTH", value: 0x0a };
        assert_eq!(CachingPage::decode(&[0x08, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(error));
    }
}
