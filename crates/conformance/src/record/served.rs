//! A virtual drive that presents a record: its descriptors with the endpoints of the transports, and the answers of its units.
//!
//! Left out: enclosures with further interfaces, such as a keyboard for buttons, or a setting that is no transport: our device
//! has one interface and nothing to put there.

use super::{Record, RecordError, UnitRecord};
use crate::device::TestedDevice;
use device::bot::BotEndpoints;
use device::device::RecordedDevice;
use device::lun::{RecordedAnswer, RecordedOutcome, RecordedUnit};
use device::uas::UasEndpoints;
use device::{DeviceConfig, Transports};
use quirks::Matching;
use wire::scsi::inquiry::StandardInquiry;
use wire::scsi::opcode::OperationCode;
use wire::usb::DescriptorKind;

/// Streams of a device that has none: the number does not matter.
const STREAMS: u16 = 32;

impl Record {
    /// Returns the configuration of a device that presents the recorded one, like `config` otherwise.
    ///
    /// # Errors
    ///
    /// Why it cannot be presented.
    pub fn device(&self, config: DeviceConfig) -> Result<DeviceConfig, RecordError> {
        let tested = self.tested()?;
        let refused = |what: &str| Err(RecordError { line: None, what: what.to_owned() });
        let configuration = &tested.probe.configuration;
        let interfaces = configuration.settings.iter().map(|setting| setting.interface.number);
        if interfaces.clone().any(|number| number != 0) {
            return refused("the device has further interfaces; only one, number 0, can be presented");
        }
        let bot = tested.bot.map(|plan| {
            let ends = BotEndpoints { bulk_in: plan.bulk_in.address, bulk_out: plan.bulk_out.address };
            (plan.place.alternate, ends)
        });
        let uas = tested.uas.map(|plan| {
            let ends = UasEndpoints {
                command: plan.command.address,
                status: plan.status.address,
                data_in: plan.data_in.address,
                data_out: plan.data_out.address,
            };
            (plan.place.alternate, ends)
        });
        let mut alternates: Vec<u8> =
            bot.iter().map(|(alternate, _)| *alternate).chain(uas.iter().map(|(of, _)| *of)).collect();
        alternates.sort_unstable();
        if !alternates.iter().copied().eq(0..interfaces.count() as u8) || alternates.is_empty() {
            return refused(
                "the device has a setting that is neither BOT nor UAS, which cannot be presented",
            );
        }
        let transports = match (bot, uas) {
            (Some(_), Some(_)) => Transports::Dual,
            (None, Some(_)) => Transports::UasOnly,
            _ => Transports::BotOnly,
        };
        let streams = tested.uas.and_then(|plan| match plan.matching {
            Matching::Streams { request } => Some(request.get()),
            Matching::Ready => None,
        });
        let device = &tested.probe.device;
        let recorded = RecordedDevice {
            descriptors: self.descriptors.clone(),
            configuration: self.configuration,
            bot,
            uas,
            self_powered: configuration.head.self_powered,
        };
        Ok(DeviceConfig {
            speed: self.speed,
            transports,
            streams: streams.unwrap_or(STREAMS).clamp(2, 256),
            vendor_id: device.vendor,
            product_id: device.product,
            release: device.device_version.0,
            serial: self.serial(device.serial_string),
            recorded: Some(recorded),
            ..config
        })
    }

    /// Finds the transports in the descriptors.
    fn tested(&self) -> Result<TestedDevice, RecordError> {
        let missing = |what: &str| RecordError { line: None, what: format!("there is no {what} descriptor") };
        let of_kind = |kind| self.descriptors.iter().filter(move |descriptor| descriptor.kind == kind);
        let device = of_kind(DescriptorKind::Device).next().ok_or_else(|| missing("device"))?;
        const VALUE: usize = 5;
        let configuration = of_kind(DescriptorKind::Configuration)
            .find(|descriptor| descriptor.bytes.get(VALUE) == Some(&self.configuration))
            .ok_or_else(|| missing(&format!("configuration (value {})", self.configuration)))?;
        TestedDevice::of(&device.bytes, &configuration.bytes, self.speed)
            .map_err(|error| RecordError { line: None, what: format!("a descriptor is wrong: {error}") })
    }

    /// The text of a string.
    fn serial(&self, index: u8) -> String {
        let is_it = |descriptor: &&device::device::RecordedDescriptor| {
            descriptor.kind == DescriptorKind::String && descriptor.index == index && index != 0
        };
        let found = self.descriptors.iter().find(is_it);
        let text = found.and_then(|found| wire::usb::StringDescriptor::decode(&found.bytes).ok());
        text.map(|text| text.to_string()).unwrap_or_default()
    }
}

impl UnitRecord {
    /// Returns the answers for a virtual unit.
    pub fn unit(&self) -> RecordedUnit {
        RecordedUnit::new(self.answers.clone())
    }

    /// Returns whether the medium can be taken out (RMB of the INQUIRY data).
    pub fn is_removable(&self) -> bool {
        let is_it = |answer: &&RecordedAnswer| answer.cdb.starts_with(&[u8::from(OperationCode::Inquiry), 0]);
        match self.answers.iter().find(is_it).map(|answer| &answer.outcome) {
            Some(RecordedOutcome::Data(bytes)) => {
                StandardInquiry::decode(bytes).is_ok_and(|inquiry| inquiry.removable)
            }
            _ => false,
        }
    }
}
