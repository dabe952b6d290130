//! The device under test, as it is known before the first test.

use crate::bus::{ControlFailure, DeviceBus};
use bus::{EndpointAddress, Speed};
use quirks::{Answers, BotPlan, InterfaceSetting, Link, Names, Probe, STREAMS_MAX, UasPlan};
use wire::DecodeError;
use wire::usb::{DescriptorKind, SetupPacket};

/// Descriptors of the device, and where its transports are.
#[derive(Clone, Debug)]
pub struct TestedDevice {
    /// The speed of its link.
    pub speed: Speed,
    /// The configuration in use, with everything in it, as bytes.
    pub configuration: Vec<u8>,
    /// The contents of the descriptors.
    pub probe: Probe,
    /// Bulk-Only Transport, if offered.
    pub bot: Option<BotPlan>,
    /// USB Attached SCSI, if offered.
    pub uas: Option<UasPlan>,
    /// The alternate settings of the interface, whatever they are.
    pub settings: usize,
}

impl TestedDevice {
    /// Finds the transports in descriptors.
    ///
    /// # Errors
    ///
    /// If one of them is no descriptor of its kind.
    pub fn of(device: &[u8], configuration: &[u8], speed: Speed) -> Result<Self, DecodeError> {
        let answers = Answers { device, configuration, bos: None, names: Names::default() };
        let probe = quirks::probe(&answers, Link { speed, streams_max: STREAMS_MAX })?;
        let (bot, uas) = (probe.bot(), probe.uas());
        let number = bot.map(|plan| plan.place).or(uas.map(|plan| plan.place)).map(|place| place.interface);
        let settings = number.map_or(0, |number| probe.configuration.settings_of(number).count());
        Ok(Self { speed, configuration: configuration.to_vec(), probe, bot, uas, settings })
    }

    /// Reads the descriptors from the device itself.
    ///
    /// # Errors
    ///
    /// Why there are none, in words.
    pub fn read(bus: &mut dyn DeviceBus, speed: Speed) -> Result<Self, String> {
        let device = descriptor(bus, DescriptorKind::Device)?;
        let configuration = descriptor(bus, DescriptorKind::Configuration)?;
        Self::of(&device, &configuration, speed).map_err(|error| error.to_string())
    }

    /// Returns the interface under test.
    pub fn interface(&self) -> u8 {
        self.bot.map(|plan| plan.place).or(self.uas.map(|plan| plan.place)).map_or(0, |place| place.interface)
    }

    /// Returns the bulk endpoints of a setting.
    pub(crate) fn endpoints(&self, place: InterfaceSetting) -> Vec<EndpointAddress> {
        if let Some(bot) = self.bot.filter(|plan| plan.place == place) {
            return vec![bot.bulk_in.address, bot.bulk_out.address];
        }
        let uas = self.uas.filter(|plan| plan.place == place);
        let ends = uas.map(|plan| [plan.command, plan.status, plan.data_in, plan.data_out]);
        ends.into_iter().flatten().map(|end| end.address).collect()
    }
}

fn descriptor(bus: &mut dyn DeviceBus, kind: DescriptorKind) -> Result<Vec<u8>, String> {
    const ENOUGH: u16 = 4096;
    let mut bytes = vec![0; ENOUGH.into()];
    let moved = bus.control(SetupPacket::get_descriptor(kind, 0, ENOUGH), &mut bytes);
    let moved = moved.map_err(|error| match error {
        ControlFailure::Stalled => format!("the device stalls the request for its {kind} descriptor"),
        ControlFailure::NoAnswer => format!("the device does not return its {kind} descriptor"),
    })?;
    bytes.truncate(moved);
    Ok(bytes)
}
