//! Parameter data of CD, DVD and BD drives (MMC-6).
//!
//! A disc has a [`Profile`], a drive [features](FeatureDescriptor), and each is described by a few short
//! structures. Left out: what only discs that can be written have, audio, and keys.

mod disc_information;
mod event;
mod feature;
mod feature_data;
mod format_capacities;
mod mechanism;
mod msf;
mod performance;
mod profile;
mod structure;
mod toc;
mod track_information;

pub use disc_information::{DiscInformation, DiscStatus, SessionState};
pub use event::{EventClass, EventHeader, MediaEvent, MediaEventCode};
pub use feature::{FeatureCode, FeatureDescriptor, FeatureHeader, FeatureWriter, Features};
pub use feature_data::{
    CoreFeature, LoadingMechanism, PhysicalInterface, ProfileDescriptor, RandomReadableFeature,
    RemovableMediumFeature,
};
pub use format_capacities::{CapacityDescriptor, CapacityType, FormatCapacities};
pub use mechanism::MechanismState;
pub use msf::Msf;
pub use performance::{PerformanceDescriptor, PerformanceHeader};
pub use profile::Profile;
pub use structure::{DvdPhysicalFormat, StructureEntry, StructureFormat, StructureHeader};
pub use toc::{LEAD_OUT_TRACK, RawTocEntry, TocEntry, TocFormat, TocHeader};
pub use track_information::TrackInformation;

use crate::DecodeError;

/// The first `N` bytes.
fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], DecodeError> {
    bytes.first_chunk().ok_or(DecodeError::Truncated { needed: N, got: bytes.len() })
}
