//! One set of values of all mode pages, and how a list of pages changes it.
//!
//! Current, default and saved values are three of these. A list of pages is checked whole before any of it counts, so
//! that a refused MODE SELECT changes nothing. Left out: which of the three is meant, and keeping them.

use crate::lun::UnitType;
use alloc::vec::Vec;
use wire::scsi::mmc::LoadingMechanism;
use wire::scsi::mode::{
    CachingPage, CapabilitiesPage, ControlExtensionPage, ControlPage, DisconnectReconnectPage,
    InformationalExceptionsPage, ModePage, ModePageCode, ModePages, PowerConditionPage, QueueAlgorithm,
    RawModePage, ReadWriteErrorRecoveryPage, ReportMethod, WriteParametersPage, forbidden_change,
};

/// Bytes of the longest page.
pub const PAGE_BYTES_MAX: usize = WriteParametersPage::LEN;

/// Page code and subpage code of a page.
pub type PageName = (ModePageCode, Option<u8>);

/// The pages of a disk, in the order in which they are reported.
const DISK_PAGES: [PageName; 7] = [
    (ModePageCode::ReadWriteErrorRecovery, None),
    (ModePageCode::DisconnectReconnect, None),
    (ModePageCode::Caching, None),
    (ModePageCode::Control, None),
    (ModePageCode::Control, Some(ControlExtensionPage::SUBPAGE)),
    (ModePageCode::PowerCondition, None),
    (ModePageCode::InformationalExceptions, None),
];

/// The pages of an optical drive, in the order in which they are reported.
const OPTICAL_PAGES: [PageName; 4] = [
    (ModePageCode::ReadWriteErrorRecovery, None),
    (ModePageCode::WriteParameters, None),
    (ModePageCode::PowerCondition, None),
    (ModePageCode::Capabilities, None),
];

/// The pages of a unit, in the order in which they are reported.
pub const fn pages(unit_type: UnitType) -> &'static [PageName] {
    match unit_type {
        UnitType::Disk => &DISK_PAGES,
        UnitType::Optical => &OPTICAL_PAGES,
        // UFI has other mode pages: see `ufi::mode`.
        UnitType::Floppy => &[],
    }
}

/// A value of every page; as a mask, ones where MODE SELECT can change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeValues {
    /// Whose pages they are.
    pub unit_type: UnitType,
    /// Page 01h.
    pub error_recovery: ReadWriteErrorRecoveryPage,
    /// Page 02h.
    pub disconnect_reconnect: DisconnectReconnectPage,
    /// Page 05h.
    pub write_parameters: WriteParametersPage,
    /// Page 08h.
    pub caching: CachingPage,
    /// Page 0Ah.
    pub control: ControlPage,
    /// Page 0Ah, subpage 01h.
    pub control_extension: ControlExtensionPage,
    /// Page 1Ah.
    pub power_condition: PowerConditionPage,
    /// Page 1Ch.
    pub exceptions: InformationalExceptionsPage,
    /// Page 2Ah.
    pub capabilities: CapabilitiesPage,
}

/// Errors in a list of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    /// Its end is in the middle of a page.
    Truncated,
    /// A field has a value that cannot be set.
    Field {
        /// First byte of the field, counted from the first page.
        byte: usize,
        /// Leftmost bit of the field, where that is known.
        bit: Option<u8>,
    },
}

impl ModeValues {
    /// Returns the values of a new unit.
    pub fn defaults(unit_type: UnitType) -> Self {
        match unit_type {
            UnitType::Disk => Self::disk_defaults(),
            UnitType::Optical => Self { capabilities: capabilities(), ..Self::zeroes(unit_type) },
            UnitType::Floppy => Self::zeroes(unit_type),
        }
    }

    fn disk_defaults() -> Self {
        Self {
            error_recovery: ReadWriteErrorRecoveryPage {
                automatic_write_reassignment: true,
                automatic_read_reassignment: true,
                ..Default::default()
            },
            caching: CachingPage { write_cache: true, ..Default::default() },
            control: ControlPage {
                queue_algorithm: QueueAlgorithm::Unrestricted,
                extended_self_test_s: EXTENDED_SELF_TEST_S,
                ..ControlPage::ZEROES
            },
            exceptions: InformationalExceptionsPage {
                report_method: ReportMethod::OnRequest,
                ..Default::default()
            },
            ..Self::zeroes(UnitType::Disk)
        }
    }

    /// Ones where MODE SELECT can change something.
    pub fn changeable(unit_type: UnitType) -> Self {
        if unit_type != UnitType::Disk {
            return Self::zeroes(unit_type);
        }
        Self {
            caching: CachingPage { write_cache: true, ..Default::default() },
            control: ControlPage {
                descriptor_sense: true,
                software_write_protect: true,
                ..ControlPage::ZEROES
            },
            exceptions: InformationalExceptionsPage {
                disable_exceptions: true,
                warnings: true,
                ..Default::default()
            },
            ..Self::zeroes(UnitType::Disk)
        }
    }

    fn zeroes(unit_type: UnitType) -> Self {
        Self {
            unit_type,
            error_recovery: Default::default(),
            disconnect_reconnect: Default::default(),
            write_parameters: Default::default(),
            caching: Default::default(),
            control: ControlPage::ZEROES,
            control_extension: Default::default(),
            power_condition: Default::default(),
            exceptions: Default::default(),
            capabilities: Default::default(),
        }
    }

    /// A page by its codes, if there is such a page.
    pub fn page(&self, code: ModePageCode, subpage: Option<u8>) -> Option<ModePage<'static>> {
        if !pages(self.unit_type).contains(&(code, subpage)) {
            return None;
        }
        Some(match (code, subpage) {
            (ModePageCode::ReadWriteErrorRecovery, None) => {
                ModePage::ReadWriteErrorRecovery(self.error_recovery)
            }
            (ModePageCode::DisconnectReconnect, None) => {
                ModePage::DisconnectReconnect(self.disconnect_reconnect)
            }
            (ModePageCode::WriteParameters, None) => ModePage::WriteParameters(self.write_parameters),
            (ModePageCode::Caching, None) => ModePage::Caching(self.caching),
            (ModePageCode::Capabilities, None) => ModePage::Capabilities(self.capabilities),
            (ModePageCode::Control, None) => ModePage::Control(self.control),
            (ModePageCode::Control, Some(ControlExtensionPage::SUBPAGE)) => {
                ModePage::ControlExtension(self.control_extension)
            }
            (ModePageCode::PowerCondition, None) => ModePage::PowerCondition(self.power_condition),
            (ModePageCode::InformationalExceptions, None) => {
                ModePage::InformationalExceptions(self.exceptions)
            }
            _ => return None,
        })
    }

    /// These values as changed by a list of pages, all of it or nothing.
    pub fn with_list(&self, list: &[u8]) -> Result<Self, ListFault> {
        let mut values = *self;
        let mut at = 0;
        for page in ModePages::new(list) {
            let page = page.map_err(|_| ListFault::Truncated)?;
            values =
                values.with_page(&page).map_err(|(byte, bit)| ListFault::Field { byte: at + byte, bit })?;
            at += page.bytes.len();
        }
        Ok(values)
    }

    /// These values as changed by one page, or the place in the page that cannot be.
    fn with_page(&self, page: &RawModePage<'_>) -> Result<Self, (usize, Option<u8>)> {
        let (code, subpage) = (page.header.code, page.header.subpage);
        let (Some(old), Some(mask)) =
            (self.page(code, subpage), Self::changeable(self.unit_type).page(code, subpage))
        else {
            return Err((0, Some(5)));
        };
        let ((old, len), (mask, _)) = (encoded(&old), encoded(&mask));
        if page.bytes.len() != len {
            let page_length_field = if subpage.is_some() { 2 } else { 1 };
            return Err((page_length_field, None));
        }
        if let Some(change) = forbidden_change(&old[..len], &mask[..len], page.bytes) {
            return Err((change.byte, Some(change.bit)));
        }
        let mut values = *self;
        match ModePage::decode(page.bytes) {
            Ok(ModePage::ReadWriteErrorRecovery(page)) => values.error_recovery = page,
            Ok(ModePage::DisconnectReconnect(page)) => values.disconnect_reconnect = page,
            Ok(ModePage::WriteParameters(page)) => values.write_parameters = page,
            Ok(ModePage::Caching(page)) => values.caching = page,
            Ok(ModePage::Capabilities(page)) => values.capabilities = page,
            Ok(ModePage::Control(page)) => values.control = page,
            Ok(ModePage::ControlExtension(page)) => values.control_extension = page,
            Ok(ModePage::PowerCondition(page)) => values.power_condition = page,
            Ok(ModePage::InformationalExceptions(page)) => values.exceptions = page,
            Ok(ModePage::Unknown(_)) | Err(_) => return Err((0, Some(5))),
        }
        Ok(values)
    }

    /// All pages, one after the other.
    pub fn encode_list(&self) -> Vec<u8> {
        let mut list = Vec::new();
        for page in pages(self.unit_type).iter().filter_map(|&(code, subpage)| self.page(code, subpage)) {
            let (bytes, len) = encoded(&page);
            list.extend_from_slice(&bytes[..len]);
        }
        list
    }
}

/// Returns what an optical drive can do: read every kind of disc that is one of reading alone, from a tray.
fn capabilities() -> CapabilitiesPage {
    // The field has two bytes; the speed of a BD does not fit.
    let kb_per_s = u16::MAX;
    CapabilitiesPage {
        reads_dvd_r: true,
        reads_dvd_rom: true,
        reads_method_2: true,
        reads_cd_rw: true,
        reads_cd_r: true,
        loading_mechanism: LoadingMechanism::Tray.into(),
        eject: true,
        lock: true,
        maximum_kb_per_s: kb_per_s,
        buffer_kib: 512,
        current_kb_per_s: kb_per_s,
        ..CapabilitiesPage::default()
    }
}

/// A page as MODE SELECT would send it, and its length.
fn encoded(page: &ModePage<'_>) -> ([u8; PAGE_BYTES_MAX], usize) {
    let mut bytes = [0; PAGE_BYTES_MAX];
    let len = page.encode(false, &mut bytes).expect("no page of ours exceeds the longest");
    (bytes, len)
}

/// EXTENDED SELF-TEST COMPLETION TIME: there is nothing that could take longer.
const EXTENDED_SELF_TEST_S: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_a_list_that_changes_nothing() {
        let defaults = ModeValues::defaults(UnitType::Disk);
        let list = defaults.encode_list();
        assert_eq!(list.len(), 12 + 16 + 20 + 12 + 32 + 40 + 12);
        assert_eq!(defaults.with_list(&list), Ok(defaults));
    }

    #[test]
    fn a_field_that_cannot_change_is_pointed_at() {
        // Control mode page with TST = 1 after a caching mode page as it is.
        let caching = [0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let control = [0x0a, 0x0a, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0, 1];
        let list = [&caching[..], &control].concat();
        assert_eq!(
            ModeValues::defaults(UnitType::Disk).with_list(&list),
            Err(ListFault::Field { byte: 22, bit: Some(5) })
        );
    }

    #[test]
    fn an_unknown_page_and_a_wrong_length_are_pointed_at() {
        let defaults = ModeValues::defaults(UnitType::Disk);
        assert_eq!(defaults.with_list(&[0x05, 0x00]), Err(ListFault::Field { byte: 0, bit: Some(5) }));
        assert_eq!(defaults.with_list(&[0x0a, 0x02, 0, 0]), Err(ListFault::Field { byte: 1, bit: None }));
        assert_eq!(
            defaults.with_list(&[0x4a, 0x01, 0x00, 0x01, 0]),
            Err(ListFault::Field { byte: 2, bit: None })
        );
        assert_eq!(defaults.with_list(&[0x0a, 0x0a, 0, 0]), Err(ListFault::Truncated));
    }
}
