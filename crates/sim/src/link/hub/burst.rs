//! Bus usage of all devices behind a root port: one burst at a time in each direction (USB 3.2
//! clause 8.10.2).
//!
//! Counters, so that the cost of a packet does not grow with the number of devices.

use crate::link::bulk::Others;

/// Bus usage of a device, by direction, Out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Burst {
    /// One is in flight.
    pub(super) has: [bool; 2],
    /// One would begin.
    pub(super) wants: [bool; 2],
}

/// Number of devices that have a burst in progress, and that want one, by direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bus {
    have: [u8; 2],
    want: [u8; 2],
}

impl Burst {
    pub(super) const fn wants(&self) -> bool {
        self.wants[0] || self.wants[1]
    }
}

impl Bus {
    pub(super) const fn new() -> Self {
        Self { have: [0; 2], want: [0; 2] }
    }

    /// Updates the usage of a device. Returns whether a direction became free.
    pub(super) fn change(&mut self, before: Burst, now: Burst) -> bool {
        let mut is_freed = false;
        for direction in 0..2 {
            let [have, want] = [&mut self.have[direction], &mut self.want[direction]];
            *have = *have + u8::from(now.has[direction]) - u8::from(before.has[direction]);
            *want = *want + u8::from(now.wants[direction]) - u8::from(before.wants[direction]);
            is_freed |= before.has[direction] && *have == 0;
        }
        is_freed
    }

    /// Returns the usage of all devices except one.
    pub(super) fn others(&self, one: Burst) -> Others {
        let other = |all: [u8; 2], one: [bool; 2]| [0, 1].map(|way| all[way] > u8::from(one[way]));
        Others { have_bus: other(self.have, one.has), want_bus: other(self.want, one.wants) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_burst_that_ends_frees_its_direction() {
        let burst = |has| Burst { has: [false, has], wants: [false, !has] };
        let mut bus = Bus::new();
        assert!(!bus.change(Burst::default(), burst(true)));
        assert!(!bus.change(Burst::default(), burst(false)));
        let others = Others { have_bus: [false, true], want_bus: [false, false] };
        assert_eq!(bus.others(burst(false)), others);
        assert!(bus.change(burst(true), Burst::default()));
        assert_eq!(bus.others(burst(false)), Others::default());
    }
}
