//! Timeouts for lost packets (USB 3.2 clause 8.13).
//!
//! The side that waits for an answer repeats a lost packet after a timeout. Invariant: at most one
//! timeout is running per endpoint and side.

use super::bulk::{ERDY_TIMEOUT, Message, TRANSACTION_TIMEOUT};
use super::superspeed::Side;
use super::{DevicePort, HostPort};
use units::Duration;
use wire::usb::{Direction, EndpointAddress};

/// A running timeout for a lost answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    endpoint: EndpointAddress,
    by: Side,
    /// Message count of the endpoint when the packet was lost.
    steps: Steps,
    /// How often the packet was repeated.
    repeats: u8,
}

/// The low bits of a count of steps: more than come in the longest of these times, and few, since
/// events are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps([u8; 3]);

impl Missed {
    /// Returns a 32-bit fingerprint for the digest.
    pub fn mark(&self) -> u64 {
        u32::from_be_bytes([self.by as u8, u8::from(self.endpoint), self.repeats, self.steps.0[0]]).into()
    }
}

/// Repetitions of ERDY before the device gives up on a host that does not answer.
const ERDY_REPEATS: u8 = 3;

/// The running timeouts of a device's endpoints.
#[derive(Clone, Debug, Default)]
pub(super) struct LossTimers {
    watched: Vec<(EndpointAddress, Side)>,
}

impl LossTimers {
    pub(super) const fn new() -> Self {
        Self { watched: Vec::new() }
    }

    /// Records a lost message. Returns the timeout of the side that waits for an answer, if there
    /// is one: call [`Self::miss`] when it expires.
    pub(super) fn lose(
        &mut self,
        host: &HostPort,
        device: &DevicePort,
        message: &Message,
    ) -> Option<(Duration, Missed)> {
        let endpoint = message.endpoint();
        // Where the host waits for nothing more, the device misses what the host has said last.
        let sides = match message {
            Message::Erdy { .. } => &[Side::Device][..],
            Message::Ack { .. } if endpoint.direction() == Direction::In => &[Side::Host, Side::Device],
            _ => &[Side::Host],
        };
        let owed = |&by: &Side| Some((by, owed(host, device, endpoint, by)?));
        let (by, missed) = sides.iter().find_map(owed)?;
        if self.watched.contains(&(endpoint, by)) {
            return None;
        }
        self.watched.push((endpoint, by));
        Some(missed)
    }

    /// Handles an expired timeout: the message is repeated unless an answer has come since. Returns
    /// the next timeout while an answer is still outstanding.
    pub(super) fn miss(
        &mut self,
        host: &mut HostPort,
        device: &mut DevicePort,
        missed: Missed,
    ) -> Option<(Duration, Missed)> {
        let Missed { endpoint, by, steps, repeats } = missed;
        let is_missed = owed(host, device, endpoint, by).is_some_and(|(_, owed)| owed.steps == steps);
        match (by, &mut *host, &mut *device) {
            (Side::Host, HostPort::SuperSpeed(host), _) if is_missed => host.time_out(endpoint),
            (Side::Device, _, DevicePort::SuperSpeed(device)) if is_missed && repeats < ERDY_REPEATS => {
                device.repeat_erdy(endpoint);
            }
            _ => {}
        }
        let is_given_up = by == Side::Device && repeats >= ERDY_REPEATS;
        let again = owed(host, device, endpoint, by).filter(|_| !is_given_up);
        if again.is_none() {
            self.watched.retain(|&watched| watched != (endpoint, by));
        }
        // What was answered since is no repetition of what is missed next.
        let repeats = if is_missed { repeats.saturating_add(1) } else { 0 };
        again.map(|(span, again)| (span, Missed { repeats, ..again }))
    }
}

/// Returns whether an answer is owed on an endpoint.
fn owed(
    host: &HostPort,
    device: &DevicePort,
    endpoint: EndpointAddress,
    by: Side,
) -> Option<(Duration, Missed)> {
    let (span, steps) = match (by, host, device) {
        (Side::Host, HostPort::SuperSpeed(host), _) => (TRANSACTION_TIMEOUT, host.awaits(endpoint)?),
        (Side::Device, _, DevicePort::SuperSpeed(device)) => (ERDY_TIMEOUT, device.awaits(endpoint)?),
        // A USB 2.0 bus waits for each answer by itself.
        _ => return None,
    };
    let [_, low @ ..] = steps.to_be_bytes();
    Some((span, Missed { endpoint, by, steps: Steps(low), repeats: 0 }))
}
