//! Configurations out of `descriptors` of sysfs: the device descriptor and all configurations, end to end (USB 3.2 clause
//! 9.6). Always true: as many as Linux looks at, [`CONFIGURATIONS_MAX`], whatever the device says.

use quirks::configuration::Configuration;
use wire::usb::ConfigurationDescriptor;

/// Configurations of a device that are looked at (USB_MAXCONFIG of Linux, drivers/usb/core/config.c).
const CONFIGURATIONS_MAX: usize = 8;

/// Everything that the device offers, for one of which nothing is active.
pub(super) fn offered(descriptors: &[u8]) -> Vec<Configuration> {
    all(descriptors).filter_map(|bytes| Configuration::decode(bytes).ok()).collect()
}

/// The configuration with that bConfigurationValue.
pub(super) fn configuration(descriptors: &[u8], value: u8) -> Option<Configuration> {
    Configuration::decode(active_configuration(descriptors, value)?).ok()
}

/// Its bytes, and what follows it.
pub fn active_configuration(descriptors: &[u8], value: u8) -> Option<&[u8]> {
    all(descriptors)
        .find(|bytes| ConfigurationDescriptor::decode(bytes).is_ok_and(|head| head.value == value))
}

/// The bytes of each configuration, and what follows it.
fn all(descriptors: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = descriptors.first().and_then(|len| descriptors.get(usize::from(*len)..));
    let rests = std::iter::successors(first, |rest| behind(rest));
    rests.take_while(|rest| ConfigurationDescriptor::decode(rest).is_ok()).take(CONFIGURATIONS_MAX)
}

fn behind(configuration: &[u8]) -> Option<&[u8]> {
    let head = ConfigurationDescriptor::decode(configuration).ok()?;
    // A length of nothing would go on forever.
    configuration.get(usize::from(head.total_len).max(ConfigurationDescriptor::LEN)..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: [u8; 18] = [18, 1, 0, 3, 0, 0, 0, 9, 0x09, 0x12, 1, 0, 0, 1, 0, 0, 0, 2];

    #[test]
    fn the_active_one_of_two_is_taken() {
        let first = [9, 2, 9, 0, 0, 1, 0, 0x80, 50];
        let second = [9, 2, 9, 0, 0, 2, 0, 0xc0, 0];
        let blob = [&DEVICE[..], &first, &second].concat();
        let active = configuration(&blob, 2).expect("it is there");
        assert_eq!((active.head.self_powered, active.head.max_power), (true, 0));
        assert_eq!(configuration(&blob, 3), None);
    }

    #[test]
    fn as_many_are_offered_as_the_kernel_looks_at() {
        let of = |value| [9, 2, 9, 0, 0, value, 0, 0x80, 249];
        let many = (1..=20).map(of).collect::<Vec<_>>().concat();
        let values = |blob: &[u8]| offered(blob).iter().map(|one| one.head.value).collect::<Vec<_>>();
        assert_eq!(values(&[&DEVICE[..], &many].concat()), (1..=8).collect::<Vec<_>>());
        assert_eq!(values(&[&DEVICE[..], &of(1), &of(2)[..5]].concat()), [1]);
        assert_eq!(values(&DEVICE), []);
    }

    #[test]
    fn lengths_that_lead_nowhere_end_the_search() {
        let empty = [9, 2, 0, 0, 0, 1, 0, 0x80, 50];
        assert_eq!(configuration(&[&DEVICE[..], &empty, &empty].concat(), 2), None);
        assert_eq!(configuration(&[0], 1), None);
        assert_eq!(configuration(&[200, 1], 1), None);
        assert_eq!(configuration(&[], 1), None);
    }
}
