//! Kinds of discs, by the number of their blocks.
//!
//! A disc is the smallest that holds the image: a CD of 80 minutes, a DVD of one layer, a DVD of two, a BD. Speeds
//! are those of fast drives, since hosts show them; nothing is slowed down to them.

use crate::lun::LogicalUnit;
use units::{BlockCount, BlockSize};
use wire::scsi::mmc::Profile;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = BlockSize::B2048.bytes();

/// Blocks of a CD of 80 minutes: its lead-out begins at 79:59:74.
pub const CD_BLOCKS_MAX: u64 = 359_849;
/// Blocks of a DVD of one layer, as on a DVD-R.
pub const DVD_LAYER_BLOCKS_MAX: u64 = 2_298_496;
/// Blocks of a DVD of two layers, as on a DVD+R.
pub const DVD_BLOCKS_MAX: u64 = 4_173_824;
/// Blocks that READ (10) and (12) can address. A BD of four layers has 62 500 864.
pub const BLOCKS_MAX: u64 = u32::MAX as u64;

/// The profile of a disc of that size.
pub const fn profile_of(capacity: BlockCount) -> Profile {
    match capacity.0 {
        0 => Profile::None,
        blocks if blocks <= CD_BLOCKS_MAX => Profile::CdRom,
        blocks if blocks <= DVD_BLOCKS_MAX => Profile::DvdRom,
        _ => Profile::BdRom,
    }
}

/// The profile of the disc in a drive.
pub(super) const fn profile(unit: &LogicalUnit) -> Profile {
    if unit.has_medium() { profile_of(unit.config.capacity) } else { Profile::None }
}

/// Nominal speed in units of 1000 bytes a second: CD 48x, DVD 16x, BD 12x.
pub(super) const fn kb_per_s(profile: Profile) -> u32 {
    match profile {
        Profile::DvdRom => 22_160,
        Profile::BdRom => 53_954,
        _ => 8_467,
    }
}

#[cfg(test)]
mod tests {
    use super::profile_of;
    use units::BlockCount;
    use wire::scsi::mmc::Profile;

    #[test]
    fn a_disc_is_the_smallest_that_holds_the_image() {
        for (blocks, profile) in [
            (0, Profile::None),
            (1, Profile::CdRom),
            (359_849, Profile::CdRom),
            (359_850, Profile::DvdRom),
            (4_173_824, Profile::DvdRom),
            (4_173_825, Profile::BdRom),
            (62_500_864, Profile::BdRom),
        ] {
            assert_eq!(profile_of(BlockCount(blocks)), profile, "{blocks}");
        }
    }
}
