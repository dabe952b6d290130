//! How much a disk takes on, and how long it keeps trying.
//!
//! Each limit of [`DiskPatience`] bounds one way in which a unit can put a host off, so that a request ends whatever the
//! unit answers. Left out: the transport's own recovery, which goes on below.

use units::Duration;
use wire::scsi::lun::LunField;

/// What a disk is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The unit.
    pub lun: LunField,
    /// Commands under way at once: no more than the transport's depth. 0 counts as 1.
    pub depth: u16,
    /// Requests taken on at once. 0 counts as 1.
    pub requests_max: u16,
    /// Bytes of data in one command at most: the transport's maximum, or what is good for it.
    pub transfer_bytes_max: u32,
    /// Whether the survey begins with the question which units there are: [`Disk::luns`](super::Disk::luns).
    pub report_luns: bool,
    /// How long it keeps trying.
    pub patience: DiskPatience,
}

/// How often and how long something is tried again before it counts as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPatience {
    /// Times that a command is sent in all, where what went wrong may pass.
    pub attempts_max: u8,
    /// Unit attentions that one command puts up with: a unit may have several to report.
    pub attentions_max: u8,
    /// BUSY and TASK SET FULL answers that one command puts up with.
    pub busy_max: u8,
    /// How long to wait after the first of them; doubles with each.
    pub busy_wait: Duration,
    /// The longest such wait, also where the unit asks for a longer one.
    pub busy_wait_max: Duration,
    /// How often to ask a unit that is becoming ready.
    pub ready_poll: Duration,
    /// How long a unit may be becoming ready.
    pub ready_wait: Duration,
    /// The deadline of a command, handed to the transport.
    pub command_timeout: Duration,
    /// The deadline of SYNCHRONIZE CACHE and of commands that change many blocks.
    pub long_timeout: Duration,
}

impl DiskPatience {
    /// For real drives: a disk that spins up, a bridge that chokes now and then.
    pub const DEFAULT: Self = Self {
        attempts_max: 5,
        attentions_max: 8,
        busy_max: 20,
        busy_wait: Duration::from_ms(1),
        busy_wait_max: Duration::from_secs(1),
        ready_poll: Duration::from_ms(250),
        ready_wait: Duration::from_secs(30),
        command_timeout: Duration::from_secs(30),
        long_timeout: Duration::from_secs(60),
    };
}

impl Default for DiskPatience {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl DiskConfig {
    /// Unit 0 with the default patience, as many requests as commands.
    pub fn new(depth: u16, transfer_bytes_max: u32) -> Self {
        Self {
            lun: LunField::default(),
            depth,
            requests_max: depth,
            transfer_bytes_max,
            report_luns: false,
            patience: DiskPatience::DEFAULT,
        }
    }
}
