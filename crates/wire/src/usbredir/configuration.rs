//! Configurations and alternate settings: requests of the guest, answers of the host (usbredir 0.7).
//!
//! `get_configuration` has no type-specific header. Before either status the host sends `interface_info` and
//! `ep_info` if they changed.

use super::{PacketType, Status};

fixed_layout! {
    /// Select a configuration; answered by [`ConfigurationStatus`].
    pub struct SetConfiguration is PacketType::SetConfiguration => {
        /// bConfigurationValue; 0 returns the device to the address state.
        configuration: u8 as u8,
    }
}

fixed_layout! {
    /// Which configuration is selected, after a request to set or to get it.
    pub struct ConfigurationStatus is PacketType::ConfigurationStatus => {
        /// How the request ended.
        status: Status as u8,
        /// bConfigurationValue; 0 in the address state.
        configuration: u8 as u8,
    }
}

fixed_layout! {
    /// Select an alternate setting; answered by [`AltSettingStatus`].
    pub struct SetAltSetting is PacketType::SetAltSetting => {
        /// bInterfaceNumber.
        interface: u8 as u8,
        /// bAlternateSetting.
        alternate: u8 as u8,
    }
}

fixed_layout! {
    /// Ask for the alternate setting of an interface; answered by [`AltSettingStatus`].
    pub struct GetAltSetting is PacketType::GetAltSetting => {
        /// bInterfaceNumber.
        interface: u8 as u8,
    }
}

fixed_layout! {
    /// Which alternate setting is selected, after a request to set or to get it.
    pub struct AltSettingStatus is PacketType::AltSettingStatus => {
        /// How the request ended.
        status: Status as u8,
        /// bInterfaceNumber.
        interface: u8 as u8,
        /// bAlternateSetting; 255 if it is not known.
        alternate: u8 as u8,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::DecodeError;
    use std::string::ToString;

    #[test]
    fn configuration_requests_and_answers() {
        let request = SetConfiguration::decode(&[1]).unwrap();
        assert_eq!(request, SetConfiguration { configuration: 1 });
        assert_eq!(request.encode(), [1]);
        let answer = ConfigurationStatus::decode(&[4, 2]).unwrap();
        assert_eq!(answer, ConfigurationStatus { status: Status::Stall, configuration: 2 });
        assert_eq!(answer.encode(), [4, 2]);
        assert_eq!(answer.to_string(), "configuration_status, status stall, configuration 2");
    }

    #[test]
    fn alternate_setting_requests_and_answers() {
        let request = SetAltSetting::decode(&[3, 1]).unwrap();
        assert_eq!(request, SetAltSetting { interface: 3, alternate: 1 });
        assert_eq!(request.encode(), [3, 1]);
        assert_eq!(GetAltSetting::decode(&[3]), Ok(GetAltSetting { interface: 3 }));
        assert_eq!(GetAltSetting { interface: 3 }.encode(), [3]);
        let answer = AltSettingStatus::decode(&[0, 3, 1]).unwrap();
        assert_eq!(answer, AltSettingStatus { status: Status::Success, interface: 3, alternate: 1 });
        assert_eq!(answer.encode(), [0, 3, 1]);
    }

    #[test]
    fn an_unknown_status_survives() {
        let answer = AltSettingStatus::decode(&[0xee, 0, 0]).unwrap();
        assert_eq!(answer.status, Status::Unknown(0xee));
        assert_eq!(answer.encode(), [0xee, 0, 0]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let short = |needed, got| Some(DecodeError::Truncated { needed, got });
        assert_eq!(SetConfiguration::decode(&[]).err(), short(1, 0));
        assert_eq!(GetAltSetting::decode(&[]).err(), short(1, 0));
        for got in 0..2 {
            assert_eq!(ConfigurationStatus::decode(&[0; 2][..got]).err(), short(2, got));
            assert_eq!(SetAltSetting::decode(&[0; 2][..got]).err(), short(2, got));
        }
        for got in 0..3 {
            assert_eq!(AltSettingStatus::decode(&[0; 3][..got]).err(), short(3, got));
        }
    }
}
