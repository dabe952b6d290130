//! The state of one logical unit, and what events and commands may change of it.
//!
//! Commands are in the families' files ([`super::spc`], [`super::sbc`], [`super::reservation`], [`super::sat`]); this
//! file knows none of them. Always true: state changes one command or event at a time.

use super::UnitType;
use super::attention::{Attention, Attentions};
use super::buffers::Buffers;
use super::config::LogicalUnitConfig;
use super::durable::{self, Section};
use super::event::UnitEvent;
use super::logs::Logs;
use super::mode::Modes;
use super::plan::Plan;
use super::readiness::Readiness;
use super::reservation::Reservations;
use super::sanitizing::{Record, Sanitizing};
use super::sat::AtaDevice;
use alloc::vec::Vec;
use wire::scsi::mmc::MediaEventCode;
use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseFormat, SenseKey};

/// One logical unit.
#[derive(Debug)]
pub struct LogicalUnit {
    /// Its configuration.
    pub config: LogicalUnitConfig,
    /// Unit attention conditions that the host has not seen.
    pub attentions: Attentions,
    /// Sense data of the last command, where the transport cannot carry it (BOT): for REQUEST SENSE.
    pub held_sense: Option<Sense>,
    /// Why work failed whose command already ended with GOOD (IMMED): reported by the next command (SPC-4 clause 4.5.5).
    /// Of several, the last one.
    pub deferred: Option<Sense>,
    /// Whether it can access its medium.
    pub readiness: Readiness,
    /// The sanitize operation in progress or failed.
    pub sanitizing: Sanitizing,
    /// Whether the host prevents that the medium is taken out (PREVENT ALLOW MEDIUM REMOVAL).
    pub removal_prevented: bool,
    /// The event that an optical drive reports next.
    pub media_event: MediaEventCode,
    /// Values of its mode pages.
    pub modes: Modes,
    /// Reservations and registrations.
    pub reservations: Reservations,
    /// Counters behind its log pages.
    pub logs: Logs,
    /// State of the ATA device behind ATA PASS-THROUGH.
    pub ata: AtaDevice,
    /// Buffers of WRITE BUFFER and READ BUFFER.
    pub buffers: Buffers,
}

impl LogicalUnit {
    /// Creates a unit that has just been powered on.
    pub fn new(config: LogicalUnitConfig) -> Self {
        // An optical drive has no state that a disc could keep; what lies beside the image is of a disk.
        let is_disk = config.unit_type == UnitType::Disk;
        let state = config.durable_state.as_deref().filter(|_| is_disk);
        let modes = Modes::new(config.unit_type, config.durable, state);
        let reservations = Reservations::new(state);
        let sanitizing = Sanitizing::new(state);
        let is_empty = !is_disk && config.capacity.0 == 0;
        let readiness = if is_empty { Readiness::Absent } else { sanitizing.readiness() };
        let mut unit = Self {
            config,
            attentions: Attentions::default(),
            held_sense: None,
            deferred: None,
            readiness,
            sanitizing,
            removal_prevented: false,
            media_event: MediaEventCode::NoChange,
            modes,
            reservations,
            logs: Logs::default(),
            ata: AtaDevice::default(),
            buffers: Buffers::default(),
        };
        unit.handle_event(UnitEvent::PowerOn);
        unit
    }

    /// Updates the state for `event` as SAM-6 specifies, unit attention included.
    pub fn handle_event(&mut self, event: UnitEvent) {
        self.held_sense = None;
        self.reservations.handle_event(event);
        self.ata.handle_event(event);
        self.removal_prevented = false;
        if event == UnitEvent::BusReset && self.readiness == Readiness::Stopped {
            // A drive on USB comes up when its port is reset, or no host after this one would find it.
            self.start();
        }
        match event {
            UnitEvent::NexusLoss => self.buffers.forget_echo(),
            UnitEvent::PowerOn | UnitEvent::BusReset | UnitEvent::LogicalUnitReset => self.modes.restore(),
        }
        self.attentions.establish(match event {
            UnitEvent::PowerOn => Attention::PowerOn,
            UnitEvent::BusReset => Attention::BusReset,
            UnitEvent::LogicalUnitReset => Attention::DeviceReset,
            UnitEvent::NexusLoss => Attention::NexusLoss,
        });
    }

    /// Takes the gravest unit attention condition, to be reported.
    #[inline]
    pub(crate) fn take_attention(&mut self) -> Option<Attention> {
        self.attentions.take().filter(|_| !self.config.loses_attentions)
    }

    /// Starts a stopped unit.
    pub(crate) const fn start(&mut self) {
        self.readiness = Readiness::Ready;
        self.logs.start_stop_cycles = self.logs.start_stop_cycles.saturating_add(1);
    }

    /// Whether writes are refused at present.
    pub const fn is_write_protected(&self) -> bool {
        self.config.read_only || self.modes.current().control.software_write_protect
    }

    /// Whether a write may end before it is durable (WCE of the caching mode page). Without it every write is made
    /// as with FUA.
    pub fn write_cache_enabled(&self) -> bool {
        match &self.config.recorded {
            Some(recorded) => recorded.write_cache_enabled(),
            None => self.modes.current().caching.write_cache,
        }
    }

    /// NOT READY with its cause, unless the unit is ready.
    pub(crate) fn check_ready(&self) -> Result<(), Plan> {
        let cause = match self.readiness {
            Readiness::Ready => return Ok(()),
            Readiness::Stopped => AdditionalSense::NOT_READY_INITIALIZING_COMMAND_REQUIRED,
            Readiness::Ejected | Readiness::Absent => self.no_medium(),
            Readiness::Formatting => AdditionalSense::NOT_READY_FORMAT_IN_PROGRESS,
            Readiness::Sanitizing { .. } => AdditionalSense::NOT_READY_SANITIZE_IN_PROGRESS,
            Readiness::SanitizeFailed { .. } => {
                let failed = Sense::new(SenseKey::MediumError, AdditionalSense::SANITIZE_COMMAND_FAILED);
                return Err(Plan::Check(failed));
            }
        };
        let sense = Sense::not_ready(cause);
        // The medium reports no progress, but the field is mandatory (SBC-4 clause 4.11.3).
        Err(Plan::Check(match self.readiness {
            Readiness::Formatting | Readiness::Sanitizing { .. } => {
                sense.with_key_specific(KeySpecific::Progress(0))
            }
            _ => sense,
        }))
    }

    /// Why there is no medium: of an optical drive, whether its tray is open.
    pub(super) const fn no_medium(&self) -> AdditionalSense {
        match (self.config.unit_type, self.readiness) {
            (UnitType::Disk | UnitType::Floppy, _) => AdditionalSense::MEDIUM_NOT_PRESENT,
            (UnitType::Optical, Readiness::Ejected) => AdditionalSense::MEDIUM_NOT_PRESENT_TRAY_OPEN,
            (UnitType::Optical, _) => AdditionalSense::MEDIUM_NOT_PRESENT_TRAY_CLOSED,
        }
    }

    /// DATA PROTECT, unless the medium may be written.
    pub(crate) fn check_writable(&self) -> Result<(), Plan> {
        if !self.is_write_protected() {
            return Ok(());
        }
        Err(Plan::Check(Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED)))
    }

    /// The format of sense data: D_SENSE of the control mode page says it, but ATA registers come in their
    /// descriptor always (see [`sat`](super::sat)).
    pub fn sense_format(&self, sense: Option<&Sense>) -> SenseFormat {
        let registers = sense.is_some_and(|sense| sense.ata_return.is_some());
        if registers || self.modes.current().control.descriptor_sense {
            SenseFormat::Descriptor
        } else {
            SenseFormat::Fixed
        }
    }

    /// The command whose work a power loss interrupted, with its parameter list: it resumes at power-on.
    pub fn unfinished(&self) -> Option<&Record> {
        self.sanitizing.record()
    }

    /// Encodes what must survive a power cycle, as bytes for [`LogicalUnitConfig::durable_state`]: see
    /// [`crate::medium::MediumOp::SaveState`].
    pub fn durable_state(&self) -> Vec<u8> {
        durable::encode(&[
            (Section::ModePages, &self.modes.durable_bytes()),
            (Section::Reservations, &self.reservations.durable_bytes()),
            (Section::Sanitize, &self.sanitizing.durable_bytes()),
        ])
    }
}
