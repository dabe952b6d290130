//! Response times: from the last symbol of a packet to the first of its answer.
//!
//! Devices and host controllers have individual response times within USB 3.2 table 8-33. The link
//! layer accepts a packet at once: LGOOD and LCRD are not delayed. Not modelled: different times
//! for different answers.

use super::side::Side;
use units::Duration;

/// Response times of both sides of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRound {
    host: Duration,
    device: Duration,
}

impl TurnRound {
    /// A device answers within this: tDPResponse, tACKResponse, tNRDYorSTALLResponse.
    pub const DEVICE_MAX: Duration = Duration::from_ns(400);
    /// A host answers within this: tHostACKResponse.
    pub const HOST_MAX: Duration = Duration::from_us(3);
    /// Ends that take no time, for links within a tree and for what other parts count already.
    pub const NONE: Self = Self::new(Duration::ZERO, Duration::ZERO);
    /// A device that takes half of what it may, behind a host that is known to take time elsewhere.
    pub const DEVICE_ONLY: Self = Self::new(Duration::ZERO, Duration::from_ns(200));
    /// A device that takes half of what it may, and a host as quick as the chipset's.
    pub const TYPICAL: Self = Self::new(Duration::from_ns(100), Duration::from_ns(200));

    /// The times of two parts.
    ///
    /// # Panics
    /// If one is longer than the standard allows: such a part does not exist.
    pub const fn new(host: Duration, device: Duration) -> Self {
        assert!(host.as_ps() <= Self::HOST_MAX.as_ps(), "a host answers within 3 us");
        assert!(device.as_ps() <= Self::DEVICE_MAX.as_ps(), "a device answers within 400 ns");
        Self { host, device }
    }

    /// Returns the response time of a side.
    pub const fn of(self, side: Side) -> Duration {
        match side {
            Side::Host => self.host,
            Side::Device => self.device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_allows_is_allowed() {
        let slow = TurnRound::new(Duration::from_us(3), Duration::from_ns(400));
        assert_eq!(slow.of(Side::Device), Duration::from_ps(400_000));
        assert_eq!(slow.of(Side::Host), Duration::from_ps(3_000_000));
    }

    #[test]
    #[should_panic(expected = "a device answers within 400 ns")]
    fn a_device_that_is_slower_is_no_device() {
        let _ = TurnRound::new(Duration::ZERO, Duration::from_ns(401));
    }

    #[test]
    #[should_panic(expected = "a host answers within 3 us")]
    fn a_host_that_is_slower_is_no_host() {
        let _ = TurnRound::new(Duration::from_ns(3_001), Duration::ZERO);
    }
}
