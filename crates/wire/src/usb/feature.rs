//! Feature selectors of SET_FEATURE and CLEAR_FEATURE, and the answers of GET_STATUS (USB 3.2 tables 9-7
//! and clause 9.4.5).
//!
//! The same number means different things to a device, an interface and an endpoint, so each recipient has
//! its own type. Left out: the selectors of On-The-Go, PTM and of batteries.

use crate::DecodeError;
use core::fmt;

code! {
    /// A feature of the device (`wValue`).
    pub enum DeviceFeature: u16 {
        /// May wake up a suspended host; USB 2.0 speeds only.
        RemoteWakeup = 0x0001 => "DEVICE_REMOTE_WAKEUP",
        /// Electrical tests at high speed; the high byte of `wIndex` says which.
        TestMode = 0x0002 => "TEST_MODE",
        /// The device may ask for U1.
        U1Enable = 0x0030 => "U1_ENABLE",
        /// The device may ask for U2.
        U2Enable = 0x0031 => "U2_ENABLE",
        /// The device may send latency tolerance messages.
        LtmEnable = 0x0032 => "LTM_ENABLE",
    }
}

code! {
    /// A feature of an interface (`wValue`).
    pub enum InterfaceFeature: u16 {
        /// Suspends the function; the high byte of `wIndex` is [`SuspendOptions`].
        FunctionSuspend = 0x0000 => "FUNCTION_SUSPEND",
    }
}

code! {
    /// A feature of an endpoint (`wValue`).
    pub enum EndpointFeature: u16 {
        /// The endpoint answers everything with a stall.
        Halt = 0x0000 => "ENDPOINT_HALT",
    }
}

/// Options of SET_FEATURE(FUNCTION_SUSPEND): the high byte of `wIndex` (USB 3.2 table 9-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuspendOptions {
    /// Bit 0: suspended; otherwise running.
    pub suspended: bool,
    /// Bit 1: the function may wake up the host.
    pub remote_wake: bool,
}

impl SuspendOptions {
    /// The options in `wIndex`; reserved bits are ignored.
    pub const fn from_index(index: u16) -> Self {
        Self { suspended: index & 0x0100 != 0, remote_wake: index & 0x0200 != 0 }
    }
}

/// GET_STATUS of the device: two bytes, little-endian.
///
/// Bit 0 self-powered, 1 remote wake-up (USB 2.0 speeds), 2 U1 enabled, 3 U2 enabled, 4 LTM enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Draws no power from the bus now.
    pub self_powered: bool,
    /// [`DeviceFeature::RemoteWakeup`] is on.
    pub remote_wakeup: bool,
    /// [`DeviceFeature::U1Enable`] is on.
    pub u1_enabled: bool,
    /// [`DeviceFeature::U2Enable`] is on.
    pub u2_enabled: bool,
    /// [`DeviceFeature::LtmEnable`] is on.
    pub ltm_enabled: bool,
}

impl DeviceStatus {
    /// Bytes of the answer.
    pub const LEN: usize = 2;

    /// Decodes an answer; reserved bits are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bits = status_bits(bytes)?;
        let [self_powered, remote_wakeup, u1_enabled, u2_enabled, ltm_enabled] =
            [0, 1, 2, 3, 4].map(|bit| bits >> bit & 1 != 0);
        Ok(Self { self_powered, remote_wakeup, u1_enabled, u2_enabled, ltm_enabled })
    }

    /// The whole answer.
    pub fn encode(&self) -> [u8; 2] {
        let Self { self_powered, remote_wakeup, u1_enabled, u2_enabled, ltm_enabled } = *self;
        let usb_2 = u8::from(self_powered) | u8::from(remote_wakeup) << 1;
        let usb_3 = u8::from(u1_enabled) << 2 | u8::from(u2_enabled) << 3 | u8::from(ltm_enabled) << 4;
        [usb_2 | usb_3, 0]
    }
}

impl fmt::Display for DeviceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.self_powered { "self-powered" } else { "bus-powered" })?;
        let features = [
            (self.remote_wakeup, "remote wake-up"),
            (self.u1_enabled, "U1"),
            (self.u2_enabled, "U2"),
            (self.ltm_enabled, "LTM"),
        ];
        features.into_iter().filter(|(on, _)| *on).try_for_each(|(_, name)| write!(f, ", {name} on"))
    }
}

/// GET_STATUS of an interface: two bytes, little-endian; all zero at USB 2.0 speeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStatus {
    /// Bit 0: the function can wake up the host.
    pub remote_wake_capable: bool,
    /// Bit 1: the function may wake up the host.
    pub remote_wake_enabled: bool,
}

impl InterfaceStatus {
    /// Bytes of the answer.
    pub const LEN: usize = 2;

    /// Decodes an answer; reserved bits are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bits = status_bits(bytes)?;
        Ok(Self { remote_wake_capable: bits & 1 != 0, remote_wake_enabled: bits & 2 != 0 })
    }

    /// The whole answer.
    pub fn encode(&self) -> [u8; 2] {
        [u8::from(self.remote_wake_capable) | u8::from(self.remote_wake_enabled) << 1, 0]
    }
}

impl fmt::Display for InterfaceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.remote_wake_capable, self.remote_wake_enabled) {
            (_, true) => "remote wake on",
            (true, false) => "remote wake off",
            (false, false) => "no remote wake",
        })
    }
}

/// GET_STATUS of an endpoint: two bytes, little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Bit 0: [`EndpointFeature::Halt`] is on.
    pub halted: bool,
}

impl EndpointStatus {
    /// Bytes of the answer.
    pub const LEN: usize = 2;

    /// Decodes an answer; reserved bits are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        status_bits(bytes).map(|bits| Self { halted: bits & 1 != 0 })
    }

    /// The whole answer.
    pub fn encode(&self) -> [u8; 2] {
        [self.halted.into(), 0]
    }
}

impl fmt::Display for EndpointStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.halted { "halted" } else { "not halted" })
    }
}

fn status_bits(bytes: &[u8]) -> Result<u16, DecodeError> {
    let bits = bytes.first_chunk::<2>().map(|bits| u16::from_le_bytes(*bits));
    bits.ok_or(DecodeError::Truncated { needed: 2, got: bytes.len() })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn the_selectors_of_the_standard() {
        use DeviceFeature::*;
        let device = [1, 2, 48, 49, 50].map(DeviceFeature::from);
        assert_eq!(device, [RemoteWakeup, TestMode, U1Enable, U2Enable, LtmEnable]);
        assert_eq!(InterfaceFeature::from(0), InterfaceFeature::FunctionSuspend);
        assert_eq!(EndpointFeature::from(0), EndpointFeature::Halt);
    }

    #[test]
    fn an_unknown_selector_survives() {
        assert_eq!(u16::from(DeviceFeature::from(0x1234)), 0x1234);
        assert_eq!(EndpointFeature::from(1), EndpointFeature::Unknown(1));
    }

    #[test]
    fn suspend_options_are_in_the_high_byte() {
        assert_eq!(SuspendOptions::from_index(0x0005), SuspendOptions::default());
        let options = SuspendOptions::from_index(0x0300);
        assert_eq!(options, SuspendOptions { suspended: true, remote_wake: true });
        assert!(SuspendOptions::from_index(0x0200).remote_wake);
        assert!(!SuspendOptions::from_index(0x0200).suspended);
    }

    #[test]
    fn literal_device_status_both_ways() {
        let status = DeviceStatus { self_powered: true, u1_enabled: true, ..DeviceStatus::default() };
        assert_eq!(DeviceStatus::decode(&[0x05, 0x00]), Ok(status));
        assert_eq!(status.encode(), [0x05, 0x00]);
        assert_eq!(status.to_string(), "self-powered, U1 on");
        let status = DeviceStatus { remote_wakeup: true, u2_enabled: true, ..DeviceStatus::default() };
        assert_eq!(status.encode(), [0x0a, 0x00]);
        let status = DeviceStatus { ltm_enabled: true, ..DeviceStatus::default() };
        assert_eq!(status.encode(), [0x10, 0x00]);
        assert_eq!(status.to_string(), "bus-powered, LTM on");
    }

    #[test]
    fn literal_interface_status_both_ways() {
        let status = InterfaceStatus { remote_wake_capable: true, remote_wake_enabled: false };
        assert_eq!(InterfaceStatus::decode(&[0x01, 0x00]), Ok(status));
        assert_eq!(status.encode(), [0x01, 0x00]);
        assert_eq!(status.to_string(), "remote wake off");
    }

    #[test]
    fn literal_endpoint_status_both_ways() {
        assert_eq!(EndpointStatus::decode(&[0x01, 0x00]), Ok(EndpointStatus { halted: true }));
        assert_eq!(EndpointStatus { halted: true }.encode(), [0x01, 0x00]);
        assert_eq!(EndpointStatus { halted: false }.encode(), [0x00, 0x00]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..2 {
            let error = DecodeError::Truncated { needed: 2, got: len };
            assert_eq!(DeviceStatus::decode(&[0; 2][..len]), Err(error));
            assert_eq!(InterfaceStatus::decode(&[0; 2][..len]), Err(error));
            assert_eq!(EndpointStatus::decode(&[0; 2][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn defined_bits_come_back_and_reserved_ones_do_not(bytes: [u8; 2]) {
            prop_assert_eq!(DeviceStatus::decode(&bytes).unwrap().encode(), [bytes[0] & 0x1f, 0]);
            prop_assert_eq!(InterfaceStatus::decode(&bytes).unwrap().encode(), [bytes[0] & 0x03, 0]);
            prop_assert_eq!(EndpointStatus::decode(&bytes).unwrap().encode(), [bytes[0] & 0x01, 0]);
        }
    }
}
