//! Enumeration requests of a host to a new device (USB 3.2 clause 9.1.2): descriptors, address,
//! configuration.
//!
//! Runs before time zero, without packets. The control transfers are kept for observers such as
//! captures.

use super::configure::PlugError;
use device::{Device, Verdict};
use initiator::BusRequest;
use wire::bot::ClassRequest;
use wire::usb::{
    BosDescriptor, ConfigurationDescriptor, DescriptorKind, DeviceDescriptor, Recipient, SetupPacket,
    StandardRequest,
};

/// A control transfer and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlExchange {
    /// The request, without data-out.
    pub setup: SetupPacket,
    /// The device's answer.
    pub answer: Verdict,
}

/// Reads the descriptors of a device and configures it with an alternate setting of its only
/// interface.
pub(super) fn enumerate(device: &mut Device, alternate: u8) -> Result<Vec<ControlExchange>, PlugError> {
    let mut asked = Vec::new();
    let mut ask = |setup: SetupPacket| {
        let answer = device.handle_control(setup, &[]);
        asked.push(ControlExchange { setup, answer: answer.clone() });
        match answer {
            Verdict::Stall => Err(PlugError::Refused),
            Verdict::Data(bytes) => Ok(bytes),
            Verdict::Done => Ok(Vec::new()),
        }
    };
    ask(first(StandardRequest::SetAddress))?;
    ask(descriptor(DescriptorKind::Device, 0, DeviceDescriptor::LEN))?;
    // Variable-length descriptors are read by their header first, for the total length.
    for (kind, len) in [
        (DescriptorKind::Bos, BosDescriptor::LEN),
        (DescriptorKind::Configuration, ConfigurationDescriptor::LEN),
    ] {
        let head = ask(descriptor(kind, 0, len))?;
        let total =
            head.get(2..).and_then(|rest| rest.first_chunk()).map_or(0, |len| u16::from_le_bytes(*len));
        ask(descriptor(kind, 0, total.into()))?;
    }
    ask(first(StandardRequest::SetConfiguration))?;
    if let Some(setup) = (BusRequest::SelectAlternate { interface: 0, alternate }).setup() {
        ask(setup)?;
    }
    if device.config().transports.bot_alternate() == Some(alternate) {
        // A device with one unit may stall it (Bulk-Only Transport 1.0 clause 3.2).
        let setup = ClassRequest::GetMaxLun { interface: 0 }.encode();
        asked.push(ControlExchange { setup, answer: device.handle_control(setup, &[]) });
    }
    Ok(asked)
}

/// Configures a known device after a port reset.
pub(super) fn set_up_again(device: &mut Device) -> Result<(), PlugError> {
    for request in [StandardRequest::SetAddress, StandardRequest::SetConfiguration] {
        if device.handle_control(first(request), &[]) != Verdict::Done {
            return Err(PlugError::Refused);
        }
    }
    Ok(())
}

/// Address 1, or configuration 1.
fn first(request: StandardRequest) -> SetupPacket {
    SetupPacket::of_standard(Recipient::Device, request, 1)
}

fn descriptor(kind: DescriptorKind, index: u8, len: usize) -> SetupPacket {
    SetupPacket::get_descriptor(kind, index, len as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::FixedLatencyDrive;
    use units::{BlockSize, Duration};

    fn exchanges(alternate: u8) -> Vec<ControlExchange> {
        let plain = FixedLatencyDrive::new(8, BlockSize::B512, Duration::ZERO, 1);
        enumerate(&mut plain.device(), alternate).unwrap()
    }

    #[test]
    fn the_configuration_is_read_whole_before_it_is_chosen() {
        let asked = exchanges(1);
        let chosen = asked.iter().position(|exchange| exchange.setup.request == 9).unwrap();
        let whole = asked[..chosen].iter().rev().find_map(|exchange| match &exchange.answer {
            Verdict::Data(bytes) => Some(bytes),
            _ => None,
        });
        let whole = whole.unwrap();
        assert_eq!(whole[1], 2, "a configuration");
        assert_eq!(usize::from(u16::from_le_bytes([whole[2], whole[3]])), whole.len());
    }

    #[test]
    fn only_over_bot_is_it_asked_how_many_units_there_are() {
        let asks = |alternate| {
            exchanges(alternate).iter().any(|exchange| exchange.setup.encode()[..2] == [0xa1, 0xfe])
        };
        assert_eq!([asks(0), asks(1)], [true, false]);
    }
}
