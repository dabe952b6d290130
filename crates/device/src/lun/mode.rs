//! The mode pages of a unit: their current, changeable, default and saved values (SPC-5 clause 7.5).
//!
//! A host can change little, and each change has an effect: WCE (writes are made durable one by one without
//! it), D_SENSE (format of sense data), SWP (writes are refused), DEXCPT and EWASC (informational exceptions, which
//! never occur here). Everything else is reported and cannot be changed.
//!
//! Left out: reverting to defaults on demand (RTD), which the unit says it does not do (VPD page 86h). Always true:
//! saved values are values that MODE SELECT would accept; saved bytes that are not valid are ignored.

mod values;

use super::UnitType;
use super::durable::{self, Section};
use alloc::vec::Vec;
pub use values::{ListFault, ModeValues, PAGE_BYTES_MAX, PageName, pages};
use wire::scsi::mode::PageControl;

/// The values of all pages, as far as they can differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes {
    current: ModeValues,
    saved: ModeValues,
    saveable: bool,
}

impl Modes {
    /// The saved values found in `durable_state`, else the default ones. `saveable` is whether the medium keeps any.
    pub fn new(unit_type: UnitType, saveable: bool, durable_state: Option<&[u8]>) -> Self {
        let stored = durable_state.and_then(|state| durable::section(state, Section::ModePages));
        let defaults = ModeValues::defaults(unit_type);
        let saved = stored.and_then(|list| defaults.with_list(list).ok()).unwrap_or(defaults);
        Self { current: saved, saved, saveable }
    }

    /// The values in force.
    pub const fn current(&self) -> &ModeValues {
        &self.current
    }

    /// The values that MODE SENSE asks for; `None` for saved ones where none can be saved.
    pub fn values(&self, which: PageControl) -> Option<ModeValues> {
        match which {
            PageControl::Current => Some(self.current),
            PageControl::Changeable => Some(ModeValues::changeable(self.current.unit_type)),
            PageControl::Default => Some(ModeValues::defaults(self.current.unit_type)),
            PageControl::Saved => self.saveable.then_some(self.saved),
        }
    }

    /// Whether values can be saved: the PS bit of every page.
    pub const fn is_saveable(&self) -> bool {
        self.saveable
    }

    /// Puts other values in force.
    pub const fn set_current(&mut self, values: ModeValues) {
        self.current = values;
    }

    /// Makes the values in force the saved ones.
    pub const fn save(&mut self) {
        self.saved = self.current;
    }

    /// After a reset the saved values are in force (SPC-5 clause 7.5.1).
    pub const fn restore(&mut self) {
        self.current = self.saved;
    }

    /// The saved values for [`durable`]: the page list that a MODE SELECT would have sent.
    pub fn durable_bytes(&self) -> Vec<u8> {
        self.saved.encode_list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_write_cache() -> Modes {
        let mut modes = Modes::new(UnitType::Disk, true, None);
        let mut values = *modes.current();
        values.caching.write_cache = false;
        modes.set_current(values);
        modes
    }

    #[test]
    fn a_reset_brings_the_saved_values_back() {
        let mut modes = without_write_cache();
        modes.restore();
        assert!(modes.current().caching.write_cache);
        let mut modes = without_write_cache();
        modes.save();
        modes.restore();
        assert!(!modes.current().caching.write_cache);
    }

    #[test]
    fn saved_values_outlive_a_power_cycle() {
        let mut modes = without_write_cache();
        modes.save();
        let state = durable::encode(&[(Section::ModePages, &modes.durable_bytes())]);
        assert!(!Modes::new(UnitType::Disk, true, Some(&state)).current().caching.write_cache);
    }

    #[test]
    fn kept_bytes_that_mode_select_would_refuse_are_not_taken() {
        let read_cache_off = [0x08, 0x12, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let state = durable::encode(&[(Section::ModePages, &read_cache_off)]);
        assert_eq!(Modes::new(UnitType::Disk, true, Some(&state)), Modes::new(UnitType::Disk, true, None));
    }

    #[test]
    fn nothing_is_saved_where_the_medium_keeps_nothing() {
        assert_eq!(Modes::new(UnitType::Disk, false, None).values(PageControl::Saved), None);
    }
}
