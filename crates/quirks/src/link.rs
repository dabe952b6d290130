//! The link between host and device: its speed, its streams, and whether the device could be faster (USB 3.2 clause 9.6.2).

use super::rule::{Evidence, Finding, Rule};
use bus::{Speed, StreamId};
use wire::usb::{Descriptor, Descriptors, DeviceCapability, SpeedSet};

/// The most streams that are ever requested: there are no more ids.
pub const STREAMS_MAX: u16 = StreamId::MAX;

/// The link between the host and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its speed.
    pub speed: Speed,
    /// Streams per endpoint that the host offers; 0 if its controller has none.
    pub streams_max: u16,
}

/// Whether the link is as fast as the fastest speed in the device's binary device object store.
pub(super) fn speed_finding(link: Speed, bos: Option<&[u8]>) -> Finding {
    let able = bos.and_then(fastest_speed);
    let met = able.is_none_or(|able| link >= able);
    Finding { rule: Rule::LinkSpeed, met, evidence: Evidence::Speeds { link, able } }
}

/// The fastest of the speeds that a device has by its binary device object store: that of its SuperSpeed capability
/// (USB 3.2 clause 9.6.2.2), or super speed if it has a SuperSpeedPlus one. `None` if it has neither.
pub fn fastest_speed(bos: &[u8]) -> Option<Speed> {
    let speeds = Descriptors::new(bos).filter_map(|descriptor| match descriptor {
        Ok(Descriptor::Capability(DeviceCapability::SuperSpeed(capability))) => fastest_of(capability.speeds),
        Ok(Descriptor::Capability(DeviceCapability::SuperSpeedPlus(_))) => Some(Speed::Super),
        _ => None,
    });
    speeds.max()
}

/// Mb/s of the fastest lane that a device has by the SuperSpeedPlus capability of its binary device object store (USB 3.2
/// clause 9.6.2.5); `None` if there is none. How many lanes it can use at once is not in it.
pub fn fastest_lane_mbps(bos: &[u8]) -> Option<u32> {
    let capabilities = Descriptors::new(bos).filter_map(|descriptor| match descriptor {
        Ok(Descriptor::Capability(DeviceCapability::SuperSpeedPlus(capability))) => Some(capability),
        _ => None,
    });
    let lanes = capabilities.flat_map(|capability| capability.sublinks());
    lanes.map(|lane| u32::try_from(lane.bits_per_second() / 1_000_000).unwrap_or(u32::MAX)).max()
}

/// The fastest speed of a set.
fn fastest_of(set: SpeedSet) -> Option<Speed> {
    [(SpeedSet::SUPER, Speed::Super), (SpeedSet::HIGH, Speed::High), (SpeedSet::FULL, Speed::Full)]
        .into_iter()
        .find_map(|(one, speed)| set.contains(one).then_some(speed))
}
