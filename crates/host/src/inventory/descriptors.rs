//! The configuration that is active, out of `descriptors` of sysfs: the device descriptor and all configurations, end
//! to end (USB 3.2 clause 9.6).

use initiator::probe::configuration::Configuration;
use wire::usb::ConfigurationDescriptor;

/// The configuration with that bConfigurationValue.
pub(super) fn configuration(descriptors: &[u8], value: u8) -> Option<Configuration> {
    Configuration::decode(active_configuration(descriptors, value)?).ok()
}

/// Its bytes, and what follows it.
pub(crate) fn active_configuration(descriptors: &[u8], value: u8) -> Option<&[u8]> {
    let mut rest = descriptors.get(usize::from(*descriptors.first()?)..)?;
    loop {
        let head = ConfigurationDescriptor::decode(rest).ok()?;
        if head.value == value {
            return Some(rest);
        }
        // A length of nothing would go on forever.
        let len = usize::from(head.total_len).max(ConfigurationDescriptor::LEN);
        rest = rest.get(len..)?;
    }
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
    fn lengths_that_lead_nowhere_end_the_search() {
        let empty = [9, 2, 0, 0, 0, 1, 0, 0x80, 50];
        assert_eq!(configuration(&[&DEVICE[..], &empty, &empty].concat(), 2), None);
        assert_eq!(configuration(&[0], 1), None);
        assert_eq!(configuration(&[200, 1], 1), None);
        assert_eq!(configuration(&[], 1), None);
    }
}
