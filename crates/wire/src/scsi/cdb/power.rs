//! The medium's comings and goings: START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL (SBC-4).

use super::field::{bit, bits};

cdb! {
    /// START STOP UNIT (SBC-4): power condition, or start, stop, load and eject.
    pub struct StartStopUnit: "START STOP UNIT" = Six 0x1b {
        /// GOOD at once, the work follows.
        #[doc(alias = "IMMED")]
        immediate: bool = bit(1, 0),
        /// A finer choice within the power condition.
        power_condition_modifier: u8 = bits(3, 3, 0),
        /// The power condition to go to.
        power_condition: PowerCondition = bits(4, 7, 4),
        /// Caches need not be flushed before a stop.
        no_flush: bool = bit(4, 2),
        /// Load with `start`, else eject.
        #[doc(alias = "LOEJ")]
        load_eject: bool = bit(4, 1),
        /// Become active, else stop.
        start: bool = bit(4, 0),
    }
}

cdb! {
    /// PREVENT ALLOW MEDIUM REMOVAL (SBC-4).
    pub struct PreventAllowMediumRemoval: "PREVENT ALLOW MEDIUM REMOVAL" = Six 0x1e {
        /// Whether the medium may be taken out.
        prevent: Prevent = bits(4, 1, 0),
    }
}

code! {
    /// POWER CONDITION of START STOP UNIT (SBC-4).
    pub enum PowerCondition: u8 {
        /// None: START and LOEJ say what to do.
        StartValid = 0x0 => "start valid",
        /// Active.
        Active = 0x1 => "active",
        /// Idle; the modifier says idle_a, b or c.
        Idle = 0x2 => "idle",
        /// Standby; the modifier says standby_z or y.
        Standby = 0x3 => "standby",
        /// The unit's own timers decide from here.
        LuControl = 0x7 => "logical unit control",
        /// As if the idle timer had run out.
        ForceIdle = 0xa => "force idle",
        /// As if the standby timer had run out.
        ForceStandby = 0xb => "force standby",
    }
}

code_fields!(PowerCondition);

choice! {
    /// PREVENT (SBC-4): the upper bit, for media changers, is obsolete.
    pub enum Prevent {
        /// It may.
        Allow = 0 => "allow",
        /// It may not, until allowed or reset.
        Prevent = 1 => "prevent",
        /// Obsolete.
        ObsoleteAllow = 2 => "allow (obsolete)",
        /// Obsolete.
        ObsoletePrevent = 3 => "prevent (obsolete)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_stop_unit_both_ways() {
        assert_both_ways!(
            StartStopUnit { immediate: true, load_eject: true },
            [0x1b, 0x01, 0, 0, 0x02, 0],
            "START STOP UNIT immediate start valid load_eject"
        );
        assert_both_ways!(
            StartStopUnit {
                power_condition_modifier: 0x0f,
                power_condition: PowerCondition::Standby,
                no_flush: true,
                start: true
            },
            [0x1b, 0, 0, 0x0f, 0x35, 0],
            "START STOP UNIT power_condition_modifier 0x0f standby no_flush start"
        );
    }

    #[test]
    fn prevent_allow_medium_removal_both_ways() {
        assert_both_ways!(
            PreventAllowMediumRemoval { prevent: Prevent::Prevent },
            [0x1e, 0, 0, 0, 0x01, 0],
            "PREVENT ALLOW MEDIUM REMOVAL prevent"
        );
        assert_both_ways!(
            PreventAllowMediumRemoval { prevent: Prevent::Allow },
            [0x1e, 0, 0, 0, 0x00, 0],
            "PREVENT ALLOW MEDIUM REMOVAL"
        );
    }
}
