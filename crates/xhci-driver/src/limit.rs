//! Limits with names: how many, how long, how often.
//!
//! Reaching one is a typed answer or a wait that ends; nothing grows past them, whatever controller and devices say.

use units::Duration;

/// Devices at a time.
pub const DEVICES_MAX: u8 = 64;
/// Commands on the command ring at a time.
pub const COMMANDS_MAX: usize = 128;
/// TRBs of a segment of the command ring, its link counted.
pub const COMMAND_RING_TRBS: u16 = 256;
/// The fewest TRBs of a segment of the event ring.
pub const EVENT_RING_TRBS_MIN: u16 = 256;
/// The most: 64 KiB of them (table 6-1).
pub const EVENT_RING_TRBS_MAX: u16 = 4096;
/// Segments of the event ring, if the controller can have as many.
pub const EVENT_RING_SEGMENTS: u16 = 4;
/// Events taken in one call; for what is left there is a deadline at once.
pub const EVENTS_PER_CALL: usize = 512;
/// Events taken before the controller is told that there is room again: half of the shortest event ring.
pub const EVENTS_PER_ACKNOWLEDGEMENT: usize = 128;
/// Extended capabilities that are looked at: a chain that goes on is taken for a circle.
pub const EXTENDED_CAPABILITIES_MAX: usize = 64;
/// Streams of an endpoint: a tag of SCSI needs one, and hosts ask for 256.
pub const STREAMS_MAX: u16 = 1024;
/// Bytes of one transfer.
pub const TRANSFER_BYTES_MAX: u32 = 4 << 20;
/// Answers and completions that wait to be polled before no more transfers are taken.
pub const OUTPUTS_MAX: usize = 16_384;

/// A transaction error is tried again this often before the transfer ends with it.
pub const SOFT_RETRIES_MAX: u8 = 3;
/// Stop Endpoint is said this often to an endpoint that goes on running.
pub const STOP_ATTEMPTS_MAX: u8 = 5;
/// An endpoint may halt this often where no transfer is before one ends: then it is given up, since nobody can be told why.
pub const LOST_HALTS_MAX: u8 = 16;

/// How often a register is looked at that is waited for.
pub const POLL_INTERVAL: Duration = Duration::from_ms(1);
/// The firmware hands the controller over within this.
pub const HANDOVER_PATIENCE: Duration = Duration::from_secs(1);
/// A running controller halts within this (16 ms by clause 5.4.1.1, and some are slower).
pub const HALT_PATIENCE: Duration = Duration::from_ms(32);
/// A reset is over within this.
pub const RESET_PATIENCE: Duration = Duration::from_secs(10);
/// A command is answered within this.
pub const COMMAND_PATIENCE: Duration = Duration::from_secs(5);
/// The command ring stops within this when it is aborted (clause 4.6.1.2).
pub const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// A port is reset within this.
pub const PORT_RESET_PATIENCE: Duration = Duration::from_ms(800);
/// Late events come within this of an early answer to Stop Endpoint.
pub const STOP_SETTLES: Duration = Duration::from_ms(1);
