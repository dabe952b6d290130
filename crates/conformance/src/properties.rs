//! Properties that a drive announces of its cache and of unmapping: mode pages and vital product data.
//!
//! Left out: whether it does what it announces, which tests ask.

use crate::exchange::ScsiAnswer;
use crate::probe::Probe;
use wire::scsi::mode::{CachingPage, ModeForm, ModeParameters};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, SenseKey};
use wire::scsi::vpd::{BlockLimits, LogicalBlockProvisioning, UnmappedReads, VpdPageCode};

/// Bytes that commands ask for.
const ENOUGH: u8 = 252;

/// The mode parameters that concern writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteProperties {
    /// DPOFUA: reads and writes may have FUA.
    pub(crate) has_fua: bool,
    /// WP: the medium is write-protected.
    pub(crate) is_protected: bool,
    /// WCE: writes may end before they are durable. Not known without a Caching page.
    pub(crate) write_cache: Option<bool>,
}

/// How blocks are unmapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProvisioningProperties {
    /// LBPME of READ CAPACITY (16): blocks can be unmapped.
    pub(crate) is_managed: bool,
    /// LBPRZ there: unmapped blocks are zeros.
    pub(crate) reads_zeros: bool,
    /// The ways to unmap, if the drive has the page that lists them.
    pub(crate) ways: Option<UnmapWays>,
    /// Blocks of the longest UNMAP.
    pub(crate) unmap_blocks_max: u64,
}

/// The Logical Block Provisioning page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnmapWays {
    /// LBPU: UNMAP.
    pub(crate) unmap: bool,
    /// LBPWS: WRITE SAME (16) with UNMAP.
    pub(crate) write_same_16: bool,
    /// LBPWS10: WRITE SAME (10) with UNMAP.
    pub(crate) write_same_10: bool,
    /// LBPRZ of the page.
    pub(crate) reads_zeros: bool,
}

impl WriteProperties {
    /// Asks for the mode parameters, with MODE SENSE (6) or, without it, (10). A drive without both has none.
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub(crate) fn read(probe: &mut Probe<'_>) -> Result<Self, String> {
        const ALL_PAGES: u8 = 0x3f;
        let short = [OperationCode::ModeSense6.into(), 0, ALL_PAGES, 0, ENOUGH, 0];
        let long = [OperationCode::ModeSense10.into(), 0, ALL_PAGES, 0, 0, 0, 0, 0, ENOUGH, 0];
        for (form, cdb) in [(ModeForm::Six, &short[..]), (ModeForm::Ten, &long)] {
            let answer = probe.scsi(0, cdb, ENOUGH.into())?;
            let sensed = ModeParameters::decode_sensed(form, &answer.data).ok();
            let Some(sensed) = sensed.filter(|_| answer.is_good()) else { continue };
            let caching = sensed.pages().flatten().find_map(|page| CachingPage::decode_sensed(&page).ok());
            return Ok(Self {
                has_fua: sensed.header.device_specific.dpo_fua,
                is_protected: sensed.header.device_specific.write_protected,
                write_cache: caching.map(|page| page.write_cache),
            });
        }
        Ok(Self::default())
    }
}

impl ProvisioningProperties {
    /// Asks how blocks are unmapped.
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub(crate) fn read(probe: &mut Probe<'_>) -> Result<Self, String> {
        let capacity = probe.capacity_16()?;
        let page = vpd(probe, VpdPageCode::LogicalBlockProvisioning)?;
        let ways = LogicalBlockProvisioning::decode(&page).ok().map(|page| UnmapWays {
            unmap: page.unmap,
            write_same_16: page.write_same_16,
            write_same_10: page.write_same_10,
            reads_zeros: page.unmapped_reads == UnmappedReads::Zeroes,
        });
        let page = vpd(probe, VpdPageCode::BlockLimits)?;
        let announced = BlockLimits::decode(&page).map_or(0, |limits| limits.maximum_unmap_lba_count);
        Ok(Self {
            is_managed: capacity.is_some_and(|capacity| capacity.provisioning_management),
            reads_zeros: capacity.is_some_and(|capacity| capacity.provisioning_reads_zeroes),
            ways,
            // Zero: not reported.
            unmap_blocks_max: if announced == 0 { u64::MAX } else { announced.into() },
        })
    }
}

/// Asks for a page of vital product data; returns no bytes if the drive does not have it.
fn vpd(probe: &mut Probe<'_>, page: VpdPageCode) -> Result<Vec<u8>, String> {
    const EVPD: u8 = 1;
    let cdb = [OperationCode::Inquiry.into(), EVPD, page.into(), 0, ENOUGH, 0];
    let answer = probe.scsi(0, &cdb, ENOUGH.into())?;
    Ok(if answer.is_good() { answer.data } else { Vec::new() })
}

impl ScsiAnswer {
    /// Returns whether the command was refused as invalid with one of these codes.
    pub(crate) fn is_refused(&self, codes: &[AdditionalSense]) -> bool {
        self.sense.is_some_and(|sense| {
            sense.key == SenseKey::IllegalRequest && codes.contains(&sense.additional) && !sense.deferred
        })
    }

    /// Returns whether the drive does not have the command, or a field of it.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.is_refused(&[
            AdditionalSense::INVALID_COMMAND_OPERATION_CODE,
            AdditionalSense::INVALID_FIELD_IN_CDB,
        ])
    }
}
