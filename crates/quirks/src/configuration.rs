//! A configuration as it was read, in the shape that its descriptors mean (USB 3.2 clause 9.6.3).
//!
//! Settings of interfaces with their endpoints; behind each endpoint its SuperSpeed companion and its pipe usage. What
//! does not fit is a [`Fault`] and is left out; the rest counts. As in Linux, a companion belongs to the endpoint right
//! before it, the first pipe usage behind an endpoint counts wherever it is, and the first of two equal settings or
//! endpoints wins.
//!
//! Always true: as many settings, endpoints and faults as the limits here name, whatever the device says; no endpoint 0
//! and no address twice within a setting.

use alloc::vec::Vec;
use core::fmt;
use wire::DecodeError;
use wire::uas::PipeUsage;
use wire::usb::{
    ClassCode, ConfigurationDescriptor, Descriptor, Descriptors, EndpointAddress, EndpointDescriptor,
    InterfaceDescriptor, SuperSpeedCompanion,
};

/// Settings of all interfaces that are looked at; further ones are a fault.
pub const SETTINGS_MAX: usize = 64;
/// Faults that are kept; further ones are dropped.
pub const FAULTS_MAX: usize = 16;

/// One configuration with everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Its head.
    pub head: ConfigurationDescriptor,
    /// The settings of all its interfaces, in the order of the descriptors.
    pub settings: Vec<Setting>,
    /// Errors in the descriptors.
    pub faults: Vec<Fault>,
}

/// One alternate setting of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its head.
    pub interface: InterfaceDescriptor,
    /// Its endpoints, in the order of the descriptors.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint with what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its descriptor.
    pub descriptor: EndpointDescriptor,
    /// SuperSpeed endpoint companion, if there is one.
    pub companion: Option<SuperSpeedCompanion>,
    /// Which pipe of UAS it is.
    pub usage: Option<PipeUsage>,
}

/// Error in the descriptors of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A descriptor that is none.
    Descriptor(DecodeError),
    /// The head announces more bytes than there are.
    Cut {
        /// wTotalLength.
        announced: u16,
        /// Bytes there are.
        got: usize,
    },
    /// The same setting of the same interface again.
    SettingTwice {
        /// bInterfaceNumber.
        interface: u8,
        /// bAlternateSetting.
        alternate: u8,
    },
    /// The same endpoint of a setting again, or endpoint 0.
    EndpointOutOfPlace(EndpointAddress),
    /// A companion that does not follow an endpoint.
    CompanionOutOfPlace,
    /// More settings than [`SETTINGS_MAX`] (64).
    TooManySettings,
}

impl Configuration {
    /// Takes the answer to GET_DESCRIPTOR(configuration) apart. Only a head that is none is an error.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let head = ConfigurationDescriptor::decode(bytes)?;
        let mut walk = Walk::new(head);
        let announced = usize::from(head.total_len);
        if bytes.len() < announced {
            walk.fault(Fault::Cut { announced: head.total_len, got: bytes.len() });
        }
        for descriptor in Descriptors::new(bytes.get(..announced).unwrap_or(bytes)).skip(1) {
            match descriptor {
                Ok(descriptor) => walk.take(descriptor),
                Err(error) => walk.fault(Fault::Descriptor(error)),
            }
        }
        Ok(walk.configuration)
    }

    /// The settings of one interface, in the order of the descriptors.
    pub fn settings_of(&self, interface: u8) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |setting| setting.interface.number == interface)
    }

    /// The first setting of an interface that is exactly of this class.
    pub fn setting_of_class(&self, interface: u8, class: ClassCode) -> Option<&Setting> {
        self.settings_of(interface).find(|setting| setting.interface.class == class)
    }
}

impl Endpoint {
    /// How many streams it has; 0 is none.
    pub fn streams(&self) -> u32 {
        self.companion.map_or(0, |companion| companion.max_streams())
    }
}

/// Where the walk through the descriptors is.
struct Walk {
    configuration: Configuration,
    place: Place,
}

/// Position in the walk: the item that the next descriptor would belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing that counts: before the first setting, or in one that is left out.
    Nowhere,
    /// The last setting, before its first endpoint or after one that is left out.
    Setting,
    /// Right behind the last endpoint.
    Endpoint,
    /// Behind it and something else.
    BehindEndpoint,
}

impl Walk {
    const fn new(head: ConfigurationDescriptor) -> Self {
        let configuration = Configuration { head, settings: Vec::new(), faults: Vec::new() };
        Self { configuration, place: Place::Nowhere }
    }

    fn take(&mut self, descriptor: Descriptor<'_>) {
        let place = self.place;
        if place == Place::Endpoint {
            self.place = Place::BehindEndpoint;
        }
        match descriptor {
            Descriptor::Interface(interface) => self.take_setting(interface),
            Descriptor::Endpoint(endpoint) => self.take_endpoint(endpoint),
            Descriptor::Companion(companion) => match self.endpoint() {
                Some(endpoint) if place == Place::Endpoint => endpoint.companion = Some(companion),
                _ => self.fault(Fault::CompanionOutOfPlace),
            },
            Descriptor::PipeUsage(pipe) => {
                if let Some(endpoint) = self.endpoint() {
                    endpoint.usage.get_or_insert(pipe.usage);
                }
            }
            _ => {}
        }
    }

    fn take_setting(&mut self, interface: InterfaceDescriptor) {
        self.place = Place::Nowhere;
        let InterfaceDescriptor { number, alternate, .. } = interface;
        let same = |setting: &Setting| {
            (setting.interface.number, setting.interface.alternate) == (number, alternate)
        };
        if self.configuration.settings.iter().any(same) {
            self.fault(Fault::SettingTwice { interface: number, alternate });
        } else if self.configuration.settings.len() == SETTINGS_MAX {
            self.fault(Fault::TooManySettings);
        } else {
            self.configuration.settings.push(Setting { interface, endpoints: Vec::new() });
            self.place = Place::Setting;
        }
    }

    fn take_endpoint(&mut self, descriptor: EndpointDescriptor) {
        let address = descriptor.address;
        let Some(setting) = self.setting() else { return };
        let taken = setting.endpoints.iter().any(|endpoint| endpoint.descriptor.address == address);
        if taken || address.number() == 0 {
            self.fault(Fault::EndpointOutOfPlace(address));
            self.place = Place::Setting;
        } else {
            setting.endpoints.push(Endpoint { descriptor, companion: None, usage: None });
            self.place = Place::Endpoint;
        }
    }

    fn setting(&mut self) -> Option<&mut Setting> {
        if self.place == Place::Nowhere {
            return None;
        }
        self.configuration.settings.last_mut()
    }

    /// The endpoint that the walk is behind.
    fn endpoint(&mut self) -> Option<&mut Endpoint> {
        if self.place == Place::Setting {
            return None;
        }
        self.setting()?.endpoints.last_mut()
    }

    fn fault(&mut self, fault: Fault) {
        if self.configuration.faults.len() < FAULTS_MAX {
            self.configuration.faults.push(fault);
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptor(error) => write!(f, "descriptor: {error}"),
            Self::Cut { announced, got } => write!(f, "{got} of {announced} bytes"),
            Self::SettingTwice { interface, alternate } => {
                write!(f, "interface {interface} alternate {alternate} twice")
            }
            Self::EndpointOutOfPlace(address) => write!(f, "endpoint {address} out of place"),
            Self::CompanionOutOfPlace => f.write_str("endpoint companion out of place"),
            Self::TooManySettings => write!(f, "more than {SETTINGS_MAX} settings"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use wire::usb::Direction;

    const HEAD: [u8; 9] = [9, 0x02, 9, 0, 1, 1, 0, 0x80, 50];
    const SETTING: [u8; 9] = [9, 0x04, 0, 0, 1, 0x08, 0x06, 0x62, 0];
    const STATUS: [u8; 7] = [7, 0x05, 0x82, 0x02, 0x00, 0x04, 0];

    fn decode(parts: &[&[u8]]) -> Configuration {
        let mut bytes = [&HEAD[..], &parts.concat()].concat();
        bytes[2] = bytes.len() as u8;
        Configuration::decode(&bytes).unwrap()
    }

    #[test]
    fn what_follows_an_endpoint_belongs_to_it() {
        let companion = [6, 0x30, 15, 5, 0, 0];
        let configuration = decode(&[&SETTING, &STATUS, &companion, &[4, 0x24, 2, 0]]);
        assert_eq!(configuration.faults, []);
        let endpoint = configuration.settings[0].endpoints[0];
        assert_eq!(endpoint.descriptor.address, EndpointAddress::at::<2>(Direction::In));
        assert_eq!((endpoint.streams(), endpoint.usage), (32, Some(PipeUsage::Status)));
    }

    #[test]
    fn a_companion_counts_only_right_behind_its_endpoint() {
        let companion = [6, 0x30, 15, 5, 0, 0];
        let configuration = decode(&[&SETTING, &STATUS, &[4, 0x24, 2, 0], &companion]);
        assert_eq!(configuration.faults, [Fault::CompanionOutOfPlace]);
        assert_eq!(configuration.settings[0].endpoints[0].streams(), 0);
    }

    #[test]
    fn the_first_pipe_usage_behind_an_endpoint_wins() {
        let configuration = decode(&[&SETTING, &STATUS, &[4, 0x24, 9, 0], &[4, 0x24, 2, 0]]);
        assert_eq!(configuration.settings[0].endpoints[0].usage, Some(PipeUsage::Unknown(9)));
    }

    #[test]
    fn the_first_of_two_equal_settings_wins_with_its_endpoints() {
        let again = [9, 0x04, 0, 0, 1, 0x08, 0x06, 0x50, 0];
        let configuration = decode(&[&SETTING, &STATUS, &again, &[7, 0x05, 0x01, 2, 0, 4, 0]]);
        assert_eq!(configuration.settings.len(), 1);
        assert_eq!(configuration.settings[0].endpoints.len(), 1);
        assert_eq!(configuration.faults, [Fault::SettingTwice { interface: 0, alternate: 0 }]);
    }

    #[test]
    fn endpoint_zero_and_a_repeated_endpoint_do_not_count() {
        let zero = [7, 0x05, 0x00, 0x02, 0x00, 0x04, 0];
        let configuration = decode(&[&SETTING, &STATUS, &zero, &[4, 0x24, 1, 0], &STATUS]);
        assert_eq!(configuration.settings[0].endpoints.len(), 1);
        assert_eq!(configuration.settings[0].endpoints[0].usage, None);
        assert_eq!(configuration.faults.len(), 2);
    }

    #[test]
    fn an_answer_that_was_cut_is_a_fault() {
        let bytes = [&[9, 0x02, 99, 0, 1, 1, 0, 0x80, 50][..], &SETTING].concat();
        let configuration = Configuration::decode(&bytes).unwrap();
        assert_eq!(configuration.faults, [Fault::Cut { announced: 99, got: 18 }]);
        assert_eq!(configuration.settings.len(), 1);
    }

    #[test]
    fn settings_past_the_limit_are_a_fault() {
        let mut bytes = vec![9, 0x02, 0xff, 0xff, 1, 1, 0, 0x80, 50];
        for alternate in 0..=64 {
            bytes.extend([9, 0x04, 0, alternate, 0, 0x08, 0x06, 0x50, 0]);
        }
        let configuration = Configuration::decode(&bytes).unwrap();
        assert_eq!(configuration.settings.len(), 64);
        assert!(configuration.faults.contains(&Fault::TooManySettings));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_within_the_limits(
            rest in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..10, Just(0x30), Just(0x24)], 0..600),
        ) {
            let bytes = [&[9, 0x02, 0xff, 0xff, 1, 1, 0, 0x80, 50][..], &rest].concat();
            let configuration = Configuration::decode(&bytes).unwrap();
            prop_assert!(configuration.settings.len() <= 64 && configuration.faults.len() <= 16);
            for setting in &configuration.settings {
                prop_assert!(setting.endpoints.len() <= 30);
            }
        }
    }
}
