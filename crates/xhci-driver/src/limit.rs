//! Named limits: counts and timeouts.
//!
//! Reaching one is a typed answer or the end of a wait; nothing grows past them, whatever
//! controllers and devices report.

use units::Duration;

/// Devices at once.
pub const DEVICES_MAX: u8 = 64;
/// Commands on the command ring at once.
pub const COMMANDS_MAX: usize = 128;
/// TRBs of a segment of the command ring, including its link.
pub const COMMAND_RING_TRBS: u16 = 256;
/// Minimum of TRBs of a segment of the event ring.
pub const EVENT_RING_TRBS_MIN: u16 = 256;
/// Maximum of TRBs of a segment of the event ring: 64 KiB (table 6-1).
pub const EVENT_RING_TRBS_MAX: u16 = 4096;
/// Segments of the event ring, if the controller supports as many.
pub const EVENT_RING_SEGMENTS: u16 = 4;
/// Events handled in one call; for the rest there is an immediate deadline.
pub const EVENTS_PER_CALL: usize = 512;
/// Events handled before the dequeue pointer is updated: half of the shortest event ring.
pub const EVENTS_PER_ACKNOWLEDGEMENT: usize = 128;
/// Extended capabilities parsed: a longer chain is taken for a loop.
pub const EXTENDED_CAPABILITIES_MAX: usize = 64;
/// Streams of an endpoint: UAS needs one per tag, and hosts ask for 256.
pub const STREAMS_MAX: u16 = 1024;
/// Bytes of one transfer.
pub const TRANSFER_BYTES_MAX: u32 = 4 << 20;
/// Outputs not polled, above which no more transfers are accepted.
pub const OUTPUTS_MAX: usize = 16_384;

/// Retries of a transaction error before the transfer fails with it.
pub const SOFT_RETRIES_MAX: u8 = 3;
/// Stop Endpoint commands to an endpoint that keeps running.
pub const STOP_ATTEMPTS_MAX: u8 = 5;
/// Halts without a transfer before one ends; then the endpoint is given up, since no completion
/// could report them.
pub const LOST_HALTS_MAX: u8 = 16;

/// Interval of polling a register.
pub const POLL_INTERVAL: Duration = Duration::from_ms(1);
/// Timeout of the handover by firmware.
pub const HANDOVER_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of halting a running controller (16 ms by clause 5.4.1.1, and some are slower).
pub const HALT_TIMEOUT: Duration = Duration::from_ms(32);
/// Timeout of a controller reset.
pub const RESET_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a command.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of stopping the command ring after an abort (clause 4.6.1.2).
pub const ABORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a port reset.
pub const PORT_RESET_TIMEOUT: Duration = Duration::from_ms(800);
/// Late events arrive within this time after an early answer to Stop Endpoint.
pub const STOP_SETTLES: Duration = Duration::from_ms(1);
