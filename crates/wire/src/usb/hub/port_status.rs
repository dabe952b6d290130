//! GET_PORT_STATUS: what a port of a hub is, and what has changed (USB 2.0 clause 11.24.2.7, USB 3.2 clause 10.16.2.6).

use crate::DecodeError;
use crate::xhci::LinkState;
use core::fmt;

/// Which of both layouts a hub speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HubKind {
    /// USB 2.0.
    Usb2,
    /// SuperSpeed.
    SuperSpeed,
}

/// Four bytes of a port. Little-endian; the bits of changes mean the same in both layouts.
///
/// ```text
///  0..2   wPortStatus     USB 2.0: connection 0, enable 1, suspend 2, over-current 3, reset 4, power 8, low speed 9, high 10
///                         USB 3.2: connection 0, enable 1, over-current 3, reset 4, link state 8:5, power 9, speed 12:10
///  2..4   wPortChange     connection 0, enable 1, suspend 2, over-current 3, reset 4, warm reset 5, link state 6, config error 7
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubPortStatus {
    /// Somebody is there.
    pub connected: bool,
    /// Packets go through.
    pub enabled: bool,
    /// Too much current was drawn.
    pub over_current: bool,
    /// It is being reset.
    pub resetting: bool,
    /// It has power.
    pub powered: bool,
    /// At SuperSpeed the state of its link; of USB 2.0, U3 for suspend and U0 else.
    pub link_state: LinkState,
    /// How fast who is there is.
    pub speed: HubPortSpeed,
    /// Changes that are not acknowledged yet.
    pub changes: HubPortChanges,
}

/// The speed of a device at a port of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HubPortSpeed {
    /// 1.5 Mb/s.
    Low,
    /// 12 Mb/s.
    Full,
    /// 480 Mb/s.
    High,
    /// 5 Gb/s.
    Super,
}

register_bits! {
    /// Changes at a port.
    pub struct HubPortChanges: u16 {
        /// Somebody came or went.
        CONNECTION = 0x0001 => "connection",
        /// The hub has disabled it (USB 2.0).
        ENABLE = 0x0002 => "enable",
        /// It was resumed (USB 2.0).
        SUSPEND = 0x0004 => "suspend",
        /// Over-current began or ended.
        OVER_CURRENT = 0x0008 => "over-current",
        /// A reset is over.
        RESET = 0x0010 => "reset",
        /// A warm reset is over.
        WARM_RESET = 0x0020 => "warm-reset",
        /// The link came from U3 to U0, or to where it needs help.
        LINK_STATE = 0x0040 => "link-state",
        /// The link did not come to a configuration.
        CONFIG_ERROR = 0x0080 => "config-error",
    }
}

impl HubPortStatus {
    /// Bytes of the answer.
    pub const LEN: usize = 4;

    /// Decodes an answer of a hub of this kind; reserved bits are ignored.
    pub fn decode(bytes: &[u8], kind: HubKind) -> Result<Self, DecodeError> {
        let needed = DecodeError::Truncated { needed: 4, got: bytes.len() };
        let &[s0, s1, c0, c1] = bytes.first_chunk::<4>().ok_or(needed)?;
        let status = u16::from_le_bytes([s0, s1]);
        let bit = |number: u16| status >> number & 1 != 0;
        let (powered, link_state, speed) = match kind {
            HubKind::Usb2 => {
                let speed = match (bit(9), bit(10)) {
                    (true, _) => HubPortSpeed::Low,
                    (false, true) => HubPortSpeed::High,
                    (false, false) => HubPortSpeed::Full,
                };
                (bit(8), if bit(2) { LinkState::U3 } else { LinkState::U0 }, speed)
            }
            HubKind::SuperSpeed => (bit(9), LinkState::from((status >> 5 & 0x0f) as u8), HubPortSpeed::Super),
        };
        Ok(Self {
            connected: bit(0),
            enabled: bit(1),
            over_current: bit(3),
            resetting: bit(4),
            powered,
            link_state,
            speed,
            changes: HubPortChanges::from(u16::from_le_bytes([c0, c1])),
        })
    }

    /// The answer of a hub of this kind.
    pub fn encode(&self, kind: HubKind) -> [u8; 4] {
        let place = |is_set: bool, number: u16| u16::from(is_set) << number;
        let own = match kind {
            HubKind::Usb2 => {
                place(self.link_state == LinkState::U3, 2)
                    | place(self.powered, 8)
                    | place(self.speed == HubPortSpeed::Low, 9)
                    | place(self.speed == HubPortSpeed::High, 10)
            }
            HubKind::SuperSpeed => u16::from(u8::from(self.link_state) & 0x0f) << 5 | place(self.powered, 9),
        };
        let status = own
            | place(self.connected, 0)
            | place(self.enabled, 1)
            | place(self.over_current, 3)
            | place(self.resetting, 4);
        let ([s0, s1], [c0, c1]) = (status.to_le_bytes(), u16::from(self.changes).to_le_bytes());
        [s0, s1, c0, c1]
    }
}

impl fmt::Display for HubPortStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link_state, changes, .. } = self;
        let names = [
            (self.connected, "connected "),
            (self.enabled, "enabled "),
            (self.over_current, "over-current "),
            (self.resetting, "resetting "),
            (self.powered, "powered "),
        ];
        names.into_iter().filter(|(is_so, _)| *is_so).try_for_each(|(_, name)| f.write_str(name))?;
        write!(f, "{link_state}, changes: {changes}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn a_port_of_superspeed_both_ways() {
        // Connected, enabled, U0, powered; the connection has changed.
        let bytes = [0x03, 0x02, 0x01, 0x00];
        let status = HubPortStatus::decode(&bytes, HubKind::SuperSpeed).unwrap();
        assert_eq!(
            (status.connected, status.enabled, status.powered, status.resetting, status.over_current),
            (true, true, true, false, false)
        );
        assert_eq!((status.link_state, status.speed), (LinkState::U0, HubPortSpeed::Super));
        assert_eq!(status.changes, HubPortChanges::CONNECTION);
        assert_eq!(status.encode(HubKind::SuperSpeed), bytes);
        // Powered, nothing attached: Rx.Detect.
        let empty = HubPortStatus::decode(&[0xa0, 0x02, 0, 0], HubKind::SuperSpeed).unwrap();
        assert_eq!((empty.connected, empty.link_state), (false, LinkState::RxDetect));
        assert_eq!(empty.encode(HubKind::SuperSpeed), [0xa0, 0x02, 0, 0]);
    }

    #[test]
    fn a_port_of_usb_2_both_ways() {
        // Connected, enabled, powered, high speed; a reset is over.
        let bytes = [0x03, 0x05, 0x10, 0x00];
        let status = HubPortStatus::decode(&bytes, HubKind::Usb2).unwrap();
        assert_eq!(
            (status.speed, status.powered, status.link_state),
            (HubPortSpeed::High, true, LinkState::U0)
        );
        assert_eq!(status.changes, HubPortChanges::RESET);
        assert_eq!(status.encode(HubKind::Usb2), bytes);
        let low = HubPortStatus::decode(&[0x01, 0x03, 0x01, 0], HubKind::Usb2).unwrap();
        assert_eq!(low.speed, HubPortSpeed::Low);
        let full = HubPortStatus::decode(&[0x05, 0x01, 0x01, 0], HubKind::Usb2).unwrap();
        assert_eq!((full.speed, full.link_state), (HubPortSpeed::Full, LinkState::U3));
        assert_eq!(full.encode(HubKind::Usb2), [0x05, 0x01, 0x01, 0]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..4 {
            let error = HubPortStatus::decode(&[0; 4][..len], HubKind::Usb2).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 4, got: len });
        }
    }

    #[test]
    fn one_line_says_all() {
        let status = HubPortStatus::decode(&[0x03, 0x02, 0x11, 0x00], HubKind::SuperSpeed).unwrap();
        assert_eq!(status.to_string(), "connected enabled powered U0, changes: connection reset");
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(bytes: [u8; 4], is_super: bool) {
            let kind = if is_super { HubKind::SuperSpeed } else { HubKind::Usb2 };
            let status = HubPortStatus::decode(&bytes, kind).unwrap();
            prop_assert_eq!(HubPortStatus::decode(&status.encode(kind), kind).unwrap(), status);
        }
    }
}
