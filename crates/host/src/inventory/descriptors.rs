//! The descriptors of a device as Linux read them: alternate settings, endpoints, pipes.
//!
//! `descriptors` of sysfs is the device descriptor and all configurations, end to end (USB 3.2 clause 9.6). A pipe
//! usage descriptor counts for the endpoint above it, the first one if there are several, as `uas_find_endpoints` has it.

use wire::uas::PipeUsage;
use wire::usb::{ClassCode, Descriptor, Descriptors, EndpointDescriptor, SuperSpeedCompanion};

/// One configuration of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// `bConfigurationValue`.
    pub value: u8,
    /// The device has a power supply of its own, it says.
    pub self_powered: bool,
    /// `bMaxPower` as it stands: 2 mA each, 8 mA each at super speed.
    pub max_power: u8,
    /// Its interfaces in all their alternate settings, in their order.
    pub alternates: Vec<Alternate>,
    /// What was wrong with the descriptors, if anything was.
    pub fault: Option<String>,
}

/// One alternate setting of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// `bInterfaceNumber`.
    pub interface: u8,
    /// `bAlternateSetting`.
    pub number: u8,
    /// What it speaks.
    pub class: ClassCode,
    /// Its endpoints, in their order.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint of an alternate setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its descriptor.
    pub descriptor: EndpointDescriptor,
    /// Its companion, at super speed.
    pub companion: Option<SuperSpeedCompanion>,
    /// Its role in UAS.
    pub usage: Option<PipeUsage>,
}

impl Configuration {
    /// The configuration of that value, or the first one without a value.
    pub fn decode(descriptors: &[u8], value: Option<u8>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for descriptor in Descriptors::new(descriptors) {
            match descriptor {
                Ok(Descriptor::Configuration(configuration)) => {
                    if found.is_some() {
                        break;
                    }
                    found = value.is_none_or(|value| value == configuration.value).then(|| Self {
                        value: configuration.value,
                        self_powered: configuration.self_powered,
                        max_power: configuration.max_power,
                        ..Self::default()
                    });
                }
                Ok(descriptor) => {
                    if let Some(found) = &mut found {
                        found.take(&descriptor);
                    }
                }
                Err(error) => {
                    if let Some(found) = &mut found {
                        found.fault.get_or_insert(error.to_string());
                    }
                }
            }
        }
        found
    }

    fn take(&mut self, descriptor: &Descriptor<'_>) {
        if let Descriptor::Interface(interface) = descriptor {
            let (number, class) = (interface.alternate, interface.class);
            self.alternates.push(Alternate {
                interface: interface.number,
                number,
                class,
                endpoints: Vec::new(),
            });
            return;
        }
        let Some(alternate) = self.alternates.last_mut() else { return };
        if let Descriptor::Endpoint(descriptor) = descriptor {
            let endpoint = Endpoint { descriptor: *descriptor, companion: None, usage: None };
            alternate.endpoints.push(endpoint);
            return;
        }
        let Some(endpoint) = alternate.endpoints.last_mut() else { return };
        match descriptor {
            Descriptor::Companion(companion) => endpoint.companion = Some(*companion),
            Descriptor::PipeUsage(usage) => drop(endpoint.usage.get_or_insert(usage.usage)),
            _ => {}
        }
    }

    /// The alternate settings of one interface.
    pub fn of_interface(&self, number: u8) -> impl Iterator<Item = &Alternate> {
        self.alternates.iter().filter(move |alternate| alternate.interface == number)
    }
}

impl Alternate {
    /// The endpoint of that role; the last one if several claim it, as in Linux.
    pub fn pipe(&self, usage: PipeUsage) -> Option<&Endpoint> {
        self.endpoints.iter().rfind(|endpoint| endpoint.usage == Some(usage))
    }
}

impl Endpoint {
    /// Streams that it offers; none without a companion.
    pub fn streams(&self) -> u32 {
        self.companion.map_or(0, |companion| companion.max_streams())
    }
}
