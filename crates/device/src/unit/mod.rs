//! A logical unit: what commands mean (SPC-5, SBC-4, SAT-4).
//!
//! A command is a row in [`table`]: its operation code, its CDB usage mask, what it needs, and up to three
//! functions. `plan` looks at the CDB and says what is to be done; `on_list` does so again once a parameter list
//! has come; `on_medium` once the medium has answered. Each gives a [`Plan`]; the executor in [`crate::command`]
//! carries it out. So a command's own file has no queue, no transfer and no buffer in it.
//!
//! To add a command: its CDB in `wire::scsi::cdb`, its file here, its row in its family's `ROWS`.
//!
//! Always true: a unit's state changes only in these functions, one command at a time.

pub mod attention;
pub mod buffers;
pub mod durable;
#[cfg(test)]
#[allow(dead_code, reason = "each family of commands uses its part of it")]
pub(crate) mod fixture;
pub mod gate;
pub mod limits;
pub mod logs;
pub mod mode;
mod plan;
#[cfg(test)]
mod property_tests;
pub mod reservation;
pub mod sanitizing;
pub mod sat;
pub mod sbc;
pub mod spc;
pub mod table;

use alloc::string::String;
use alloc::vec::Vec;
use attention::{Attention, Attentions};
use buffers::Buffers;
use core::hint::cold_path;
use durable::Section;
use logs::Logs;
use mode::Modes;
pub use plan::{Context, DataPhase, LIST_HEAD_BYTES, MediumPlan, PARAMETER_BYTES_MAX, Plan, Reply};
use reservation::{Nexus, Obstacle, Reservations};
use sanitizing::{Record, Sanitizing};
use sat::AtaDevice;
pub use sbc::InsertedMedium;
use table::Row;
use units::{BlockCount, BlockSize};
use wire::scsi::sense::{Sense, SenseFormat};

/// What a unit is, as its owner decides before it is plugged in.
#[derive(Clone, Debug)]
pub struct UnitConfig {
    /// T10 vendor identification, ASCII, 8 bytes at most are told.
    pub vendor: String,
    /// Product identification, ASCII, 16 bytes at most are told.
    pub product: String,
    /// Product revision level, ASCII, 4 bytes at most are told.
    pub revision: String,
    /// Unit serial number, ASCII.
    pub serial: String,
    /// World-wide name in NAA format (SPC-4 clause 7.8.6.6).
    pub naa: u64,
    /// Logical block length.
    pub block_size: BlockSize,
    /// How many blocks there are.
    pub capacity: BlockCount,
    /// Bytes of a transfer that is large enough to be fast: a multiple of the block, see
    /// [`limits::transfer_bytes_optimal`].
    pub transfer_bytes_optimal: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the medium can be taken out (RMB, START STOP UNIT with LOEJ).
    pub removable: bool,
    /// Whether it tells the rotation rate of a disk rather than "solid state".
    pub rotational: bool,
    /// What its thermometer tells in degrees Celsius, always the same; 254 at most, since 255 means "not known" on the
    /// wire (SPC-5, Temperature log page). `None`: it has no thermometer.
    pub temperature_c: Option<u8>,
    /// Whether the medium keeps [`Unit::durable_state`] (APTPL, saved mode pages).
    pub durable: bool,
    /// Whether the medium can write all or nothing ([`MediumOp::WriteAtomic`](crate::medium::MediumOp::WriteAtomic)).
    pub atomic_writes: bool,
    /// What [`Unit::durable_state`] gave when it was last kept, if it was.
    pub durable_state: Option<Vec<u8>>,
}

/// One logical unit.
#[derive(Debug)]
pub struct Unit {
    /// What it was made as.
    pub config: UnitConfig,
    /// Unit attention conditions that the host has not seen.
    pub attentions: Attentions,
    /// Sense data of the last command, where the transport cannot carry it (BOT): for REQUEST SENSE.
    pub held_sense: Option<Sense>,
    /// Why work failed whose command was told GOOD before (IMMED): the next command is told (SPC-4 clause 4.5.5).
    /// Of several the last is kept.
    pub deferred: Option<Sense>,
    /// Whether it can get at its medium.
    pub readiness: Readiness,
    /// The sanitize operation that is not over.
    pub sanitizing: Sanitizing,
    /// Whether the host prevents that the medium is taken out (PREVENT ALLOW MEDIUM REMOVAL).
    pub removal_prevented: bool,
    /// Values of its mode pages.
    pub modes: Modes,
    /// Who may use it.
    pub reservations: Reservations,
    /// What it counts.
    pub logs: Logs,
    /// What the ATA device behind ATA PASS-THROUGH remembers.
    pub ata: AtaDevice,
    /// What WRITE BUFFER left.
    pub buffers: Buffers,
}

/// Whether a unit can get at its medium, and why not (SBC-4 clause 4.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// START STOP UNIT has stopped it.
    Stopped,
    /// The host has ejected the medium, and can load it again.
    Ejected,
    /// There is no medium.
    Absent,
    /// FORMAT UNIT runs.
    Formatting,
    /// SANITIZE runs.
    Sanitizing {
        /// What becomes of it if it fails: see [`Readiness::SanitizeFailed`].
        unrestricted_exit: bool,
    },
    /// SANITIZE has failed; nothing may be read or written.
    SanitizeFailed {
        /// EXIT FAILURE MODE ends this, not only another SANITIZE (AUSE).
        unrestricted_exit: bool,
    },
}

/// What happens to a unit from outside its commands (SAM-6 clause 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitEvent {
    /// Power came.
    PowerOn,
    /// The bus was reset (hard reset).
    BusReset,
    /// LOGICAL UNIT RESET was asked for.
    LogicalUnitReset,
    /// I_T NEXUS RESET was asked for, or the host is another one now.
    NexusLoss,
}

/// The first step of the work that [`Unit::unfinished`] tells of.
pub(crate) fn resume(context: &mut Context<'_>, list: &[u8]) -> Plan {
    sbc::resume_sanitize(context, list)
}

impl Unit {
    /// A unit that has just been powered on.
    pub fn new(config: UnitConfig) -> Self {
        let modes = Modes::new(config.durable, config.durable_state.as_deref());
        let reservations = Reservations::new(config.durable_state.as_deref());
        let sanitizing = Sanitizing::new(config.durable_state.as_deref());
        let mut unit = Self {
            config,
            attentions: Attentions::default(),
            held_sense: None,
            deferred: None,
            readiness: sanitizing.readiness(),
            sanitizing,
            removal_prevented: false,
            modes,
            reservations,
            logs: Logs::default(),
            ata: AtaDevice::default(),
            buffers: Buffers::default(),
        };
        unit.handle_event(UnitEvent::PowerOn);
        unit
    }

    /// Brings the state to what SAM-6 says after `event`, unit attention included.
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

    /// A stopped unit comes up.
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
    pub const fn write_cache_enabled(&self) -> bool {
        self.modes.current().caching.write_cache
    }

    /// What reservations say to a command of the host.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check_reservations(&self, row: &Row, cdb: &[u8]) -> Result<(), Obstacle> {
        if self.reservations.are_lost() && !reservation::is_allowed_after_loss(row, cdb) {
            cold_path();
            return Err(Obstacle::Lost);
        }
        self.reservations.check(Nexus::HOST, row.needs.access)
    }

    /// The format of sense data: D_SENSE of the control mode page says it, but ATA registers come in their
    /// descriptor always (see [`sat`]).
    pub fn sense_format(&self, sense: Option<&Sense>) -> SenseFormat {
        let registers = sense.is_some_and(|sense| sense.ata_return.is_some());
        if registers || self.modes.current().control.descriptor_sense {
            SenseFormat::Descriptor
        } else {
            SenseFormat::Fixed
        }
    }

    /// The command whose work a power loss has cut off, with its parameter list: it goes on when power comes.
    pub fn unfinished(&self) -> Option<&Record> {
        self.sanitizing.record()
    }

    /// What must outlive a power cycle, as bytes for [`UnitConfig::durable_state`]: see
    /// [`crate::medium::MediumOp::SaveState`].
    pub fn durable_state(&self) -> Vec<u8> {
        durable::encode(&[
            (Section::ModePages, &self.modes.durable_bytes()),
            (Section::Reservations, &self.reservations.durable_bytes()),
            (Section::Sanitize, &self.sanitizing.durable_bytes()),
        ])
    }
}
