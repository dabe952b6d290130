//! `interface_info`: the interfaces of the current configuration (usbredir 0.7,
//! `usb_redir_interface_info_header`).

use super::PacketType;
use crate::{DecodeError, Reader};
use core::fmt;

/// The interfaces, each in its current alternate setting; 32 at most.
///
/// ```text
///   0..4    interface_count             68..100   interface_subclass[32]
///   4..36   interface[32]              100..132   interface_protocol[32]
///  36..68   interface_class[32]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Always at most 32.
    count: usize,
    /// Zero past the count.
    entries: [InterfaceEntry; 32],
}

/// One interface in its current alternate setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceEntry {
    /// bInterfaceNumber.
    pub number: u8,
    /// bInterfaceClass.
    pub class: u8,
    /// bInterfaceSubClass.
    pub subclass: u8,
    /// bInterfaceProtocol.
    pub protocol: u8,
}

impl InterfaceInfo {
    /// The packet type that this header belongs to.
    pub const KIND: PacketType = PacketType::InterfaceInfo;
    /// Bytes on the wire.
    pub const LEN: usize = 132;
    /// Interfaces that fit.
    pub const COUNT_MAX: usize = 32;

    /// The first 32 of these interfaces.
    pub fn new(interfaces: &[InterfaceEntry]) -> Self {
        let mut entries = [InterfaceEntry::default(); Self::COUNT_MAX];
        for (place, entry) in entries.iter_mut().zip(interfaces) {
            *place = *entry;
        }
        Self { count: interfaces.len().min(Self::COUNT_MAX), entries }
    }

    /// The interfaces.
    pub fn interfaces(&self) -> &[InterfaceEntry] {
        self.entries.get(..self.count).unwrap_or_default()
    }

    /// Decodes the header; bytes past [`Self::LEN`] and entries past the count are left alone.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let head = bytes.get(..Self::LEN);
        let head = head.ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let mut reader = Reader::new(head);
        let value = reader.le32()?;
        let count = usize::try_from(value).ok().filter(|&count| count <= Self::COUNT_MAX);
        let count =
            count.ok_or(DecodeError::Invalid { field: "interface_count", value: u64::from(value) })?;
        let mut column = || reader.array::<{ Self::COUNT_MAX }>();
        let columns = (column()?.into_iter().zip(column()?)).zip(column()?.into_iter().zip(column()?));
        let mut entries = [InterfaceEntry::default(); Self::COUNT_MAX];
        for (place, ((number, class), (subclass, protocol))) in entries.iter_mut().zip(columns).take(count) {
            *place = InterfaceEntry { number, class, subclass, protocol };
        }
        Ok(Self { count, entries })
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; 132] {
        let columns = [
            self.entries.map(|entry| entry.number),
            self.entries.map(|entry| entry.class),
            self.entries.map(|entry| entry.subclass),
            self.entries.map(|entry| entry.protocol),
        ];
        let mut bytes = [0; Self::LEN];
        let fields = (self.count as u32).to_le_bytes().into_iter().chain(columns.into_iter().flatten());
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }
}

impl fmt::Display for InterfaceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interface_info")?;
        for InterfaceEntry { number, class, subclass, protocol } in self.interfaces() {
            write!(f, ", {number} is {class:02x}/{subclass:02x}/{protocol:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const UAS: InterfaceEntry = InterfaceEntry { number: 0, class: 8, subclass: 6, protocol: 0x62 };
    const HID: InterfaceEntry = InterfaceEntry { number: 3, class: 3, subclass: 1, protocol: 2 };

    fn two() -> [u8; 132] {
        let mut bytes = [0; 132];
        bytes[0] = 2;
        for (at, pair) in [(4, [0, 3]), (36, [8, 3]), (68, [6, 1]), (100, [0x62, 2])] {
            bytes[at..at + 2].copy_from_slice(&pair);
        }
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let interfaces = InterfaceInfo::decode(&two()).unwrap();
        assert_eq!(interfaces.interfaces(), [UAS, HID]);
        assert_eq!(interfaces, InterfaceInfo::new(&[UAS, HID]));
        assert_eq!(interfaces.encode(), two());
        assert_eq!(interfaces.to_string(), "interface_info, 0 is 08/06/62, 3 is 03/01/02");
    }

    #[test]
    fn a_33rd_interface_is_refused_and_never_made() {
        let mut bytes = two();
        bytes[0] = 33;
        let error = DecodeError::Invalid { field: "interface_count", value: 33 };
        assert_eq!(InterfaceInfo::decode(&bytes), Err(error));
        assert_eq!(InterfaceInfo::new(&[UAS; 40]).interfaces().len(), 32);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..132 {
            let error = InterfaceInfo::decode(&two()[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 132, got });
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(entries in prop::collection::vec(any::<[u8; 4]>(), 0..=32)) {
            let entries: std::vec::Vec<_> = entries
                .iter()
                .map(|&[number, class, subclass, protocol]| InterfaceEntry { number, class, subclass, protocol })
                .collect();
            let interfaces = InterfaceInfo::new(&entries);
            prop_assert_eq!(InterfaceInfo::decode(&interfaces.encode()).unwrap(), interfaces);
        }
    }
}
