//! Descriptors of a SuperSpeed device as a reader of USB 2.0 can use them.
//!
//! A reader of link type 288 learns from the configuration how long packets are and which endpoint is what. Wireshark's takes the
//! low ten bits of a packet's length, in which 1,024 is nothing, and opens all endpoints of a UAS interface as the one that is described last
//! (tried with tshark 4.0). So bulk endpoints say 512, and those of an alternate setting come in the order data, units.
//!
//! Invariants: what is written is as long as what was on the link, and holds the same descriptors.

use crate::transfers::Control;
use wire::uas::PipeUsage;
use wire::usb::{ConfigurationDescriptor, Descriptor, DescriptorKind, EndpointDescriptor, StandardRequest};

/// The longest bulk packet of USB 2.0: what readers hold packets against.
pub(crate) const USB2_BULK_BYTES: u16 = 512;

/// Length and kind of a descriptor.
const HEAD_BYTES: usize = 2;

/// An endpoint, with what follows it up to the next.
struct Endpoint {
    /// Whether information units go there, and not data.
    has_units: bool,
    bytes: Vec<u8>,
}

/// Returns the data stage of a control transfer as it is to be written; `None` if it is written unchanged.
pub(crate) fn data_stage(control: &Control<'_>) -> Option<Vec<u8>> {
    let Control { setup, bytes, .. } = *control;
    let is_read = setup.standard() == Some(StandardRequest::GetDescriptor);
    let is_configuration = is_read && setup.descriptor().0 == DescriptorKind::Configuration;
    is_configuration.then(|| configuration(bytes)).flatten()
}

/// A whole configuration with bulk endpoints of SuperSpeed.
fn configuration(bytes: &[u8]) -> Option<Vec<u8>> {
    let whole = ConfigurationDescriptor::decode(bytes).ok()?.total_len;
    if bytes.len() != whole.into() {
        return None;
    }
    let (mut out, mut endpoints, mut is_super_speed) = (Vec::with_capacity(bytes.len()), Vec::new(), false);
    let mut rest = bytes;
    while let Some(&len) = rest.first() {
        let one = rest.split_off(..usize::from(len)).filter(|one| one.len() >= HEAD_BYTES)?;
        match (Descriptor::decode(one), endpoints.last_mut()) {
            (Ok(Descriptor::Endpoint(endpoint)), _) => {
                let mut bytes = one.to_vec();
                if endpoint.packet_len() > USB2_BULK_BYTES {
                    is_super_speed = true;
                    let shorter = EndpointDescriptor { max_packet_size: USB2_BULK_BYTES, ..endpoint };
                    bytes[..EndpointDescriptor::LEN].copy_from_slice(&shorter.encode());
                }
                endpoints.push(Endpoint { has_units: false, bytes });
            }
            (Ok(Descriptor::Interface(_)), _) | (_, None) => {
                put(&mut out, &mut endpoints);
                out.extend_from_slice(one);
            }
            (other, Some(endpoint)) => {
                if let Ok(Descriptor::PipeUsage(pipe)) = other {
                    endpoint.has_units = matches!(pipe.usage, PipeUsage::Command | PipeUsage::Status);
                }
                endpoint.bytes.extend_from_slice(one);
            }
        }
    }
    put(&mut out, &mut endpoints);
    is_super_speed.then_some(out)
}

/// The endpoints of an alternate setting, those with units last.
fn put(out: &mut Vec<u8>, endpoints: &mut Vec<Endpoint>) {
    endpoints.sort_by_key(|endpoint| endpoint.has_units);
    for endpoint in endpoints.drain(..) {
        out.extend(endpoint.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [u8; 9] = [9, 2, 70, 0, 1, 1, 0, 0xc0, 0];
    const SETTING: [u8; 9] = [9, 4, 0, 0, 4, 8, 6, 0x62, 0];
    const COMPANION: [u8; 6] = [6, 0x30, 15, 0, 0, 0];

    const fn endpoint(address: u8, [low, high]: [u8; 2]) -> [u8; 7] {
        [7, 5, address, 2, low, high, 0]
    }

    /// A command pipe, a status pipe, and one for data.
    fn uas(packet: [u8; 2]) -> Vec<u8> {
        let pipe =
            |address, usage| [&endpoint(address, packet)[..], &COMPANION, &[4, 0x24, usage, 0]].concat();
        let mut bytes = [&HEAD[..], &SETTING, &pipe(4, 1), &pipe(0x83, 2), &pipe(0x81, 3)].concat();
        bytes[2] = bytes.len() as u8;
        bytes
    }

    #[test]
    fn endpoints_of_super_speed_say_512_and_those_with_units_come_last() {
        let (link, out) = (uas([0, 4]), configuration(&uas([0, 4])).unwrap());
        assert_eq!(out.len(), link.len());
        assert_eq!(out[..18], link[..18]);
        let pipe =
            |address, usage| [&endpoint(address, [0, 2])[..], &COMPANION, &[4, 0x24, usage, 0]].concat();
        assert_eq!(out[18..], [pipe(0x81, 3), pipe(4, 1), pipe(0x83, 2)].concat());
    }

    #[test]
    fn endpoints_of_usb_2_and_parts_of_a_configuration_are_unchanged() {
        assert_eq!(configuration(&uas([0, 2])), None);
        let whole = uas([0, 4]);
        for len in 0..whole.len() {
            assert_eq!(configuration(&whole[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_malformed_configuration_is_written_as_it_is() {
        let whole = uas([0, 4]);
        for len in [0, 3, 5, 255] {
            let mut bytes = whole.clone();
            bytes[whole.len() - 4] = len;
            assert_eq!(configuration(&bytes), None, "{len}");
        }
    }
}
