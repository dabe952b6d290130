//! Parameter data of block commands (SBC-4): the lists that travel with UNMAP, GET LBA STATUS, FORMAT UNIT,
//! SANITIZE and READ DEFECT DATA.
//!
//! Always true: what decodes was there in full; a list that says it is longer than its bytes is `Truncated`.
//! Left out: address descriptors of defects, since a unit here never has one, and protection information.

mod defect_list;
mod format_list;
mod lba_status;
mod overwrite_list;
mod unmap_list;

pub use defect_list::{DefectListHeader10, DefectListHeader12};
pub use format_list::{FormatList, InitializationPattern, PatternType};
pub use lba_status::{LbaStatusDescriptor, LbaStatusHeader, ProvisioningStatus};
pub use overwrite_list::OverwriteList;
pub use unmap_list::{UnmapDescriptor, UnmapList};
