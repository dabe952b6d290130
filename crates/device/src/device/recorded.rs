//! A device that presents the descriptors of another one, as they were recorded.
//!
//! Left out: where a record comes from. Always true: the descriptors are sent byte for byte, and the endpoints that the
//! transports use are those that the descriptors announce.

use super::config::{COMMAND, CONFIGURATION, DATA_IN, DATA_OUT, DeviceConfig, STATUS, Transports};
use crate::bot::BotEndpoints;
use crate::cbi::CbiEndpoints;
use crate::uas::UasEndpoints;
use alloc::vec::Vec;
use wire::usb::DescriptorKind;

/// The descriptors of a device, and where its transports are in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDevice {
    /// Each descriptor with all that belongs to it.
    pub descriptors: Vec<RecordedDescriptor>,
    /// bConfigurationValue of the configuration that a host may set.
    pub configuration: u8,
    /// Where Bulk-Only Transport is, if the device has it.
    pub bot: Option<(u8, BotEndpoints)>,
    /// Where USB Attached SCSI is, if the device has it: the alternate setting, and its pipes.
    pub uas: Option<(u8, UasEndpoints)>,
    /// Whether it is powered by itself (bmAttributes of the configuration).
    pub self_powered: bool,
}

/// One descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDescriptor {
    /// Its type.
    pub kind: DescriptorKind,
    /// Its index.
    pub index: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl DeviceConfig {
    /// Returns how many alternate settings the interface has.
    pub fn alternates(&self) -> u8 {
        match &self.recorded {
            Some(recorded) => u8::from(recorded.bot.is_some()) + u8::from(recorded.uas.is_some()),
            None => self.transports.alternates(),
        }
    }

    /// Returns the alternate setting that is BOT.
    pub fn bot_alternate(&self) -> Option<u8> {
        match &self.recorded {
            Some(recorded) => recorded.bot.map(|(alternate, _)| alternate),
            None => self.transports.bot_alternate(),
        }
    }

    /// Returns the alternate setting that is UAS.
    pub fn uas_alternate(&self) -> Option<u8> {
        match &self.recorded {
            Some(recorded) => recorded.uas.map(|(alternate, _)| alternate),
            None => self.transports.uas_alternate(),
        }
    }

    /// Returns the endpoints of BOT.
    pub fn bot_endpoints(&self) -> BotEndpoints {
        let own = BotEndpoints { bulk_in: DATA_IN, bulk_out: DATA_OUT };
        let recorded = self.recorded.as_ref().and_then(|recorded| recorded.bot);
        recorded.map_or(own, |(_, endpoints)| endpoints)
    }

    /// Returns the endpoints of CBI, if the device has it.
    pub fn cbi_endpoints(&self) -> Option<CbiEndpoints> {
        let is_cbi = self.recorded.is_none() && self.transports.is_cbi();
        let interrupt = (self.transports == Transports::Cbi).then_some(STATUS);
        is_cbi.then_some(CbiEndpoints { bulk_in: DATA_IN, bulk_out: DATA_OUT, interrupt })
    }

    /// Returns the endpoints of UAS.
    pub fn uas_endpoints(&self) -> UasEndpoints {
        let own = UasEndpoints { command: COMMAND, status: STATUS, data_in: DATA_IN, data_out: DATA_OUT };
        let recorded = self.recorded.as_ref().and_then(|recorded| recorded.uas);
        recorded.map_or(own, |(_, endpoints)| endpoints)
    }

    /// Returns the bConfigurationValue that a host may set.
    pub fn configuration_value(&self) -> u8 {
        self.recorded.as_ref().map_or(CONFIGURATION, |recorded| recorded.configuration)
    }

    /// Returns whether GET_STATUS reports a device that is powered by itself.
    pub(super) fn is_self_powered(&self) -> bool {
        self.recorded.as_ref().is_none_or(|recorded| recorded.self_powered)
    }
}
