//! Bits and byte ranges of parameter data, written as the standards' tables write them.
//!
//! `bits::<7, 5>(byte)` reads the field that a table of SPC-5 puts at bits 7 to 5; `set_bits` is its inverse.
//! `be32::<8, _>(&array)` reads a field that starts at byte 8. Whether the bits and bytes exist is checked
//! when compiling, so nothing here can fail.

/// Bit `AT` of `byte`.
pub(crate) const fn bit<const AT: u32>(byte: u8) -> bool {
    const { assert!(AT < 8) };
    byte >> AT & 1 == 1
}

/// A byte with bit `AT` as given and zeroes elsewhere.
pub(crate) const fn set_bit<const AT: u32>(set: bool) -> u8 {
    const { assert!(AT < 8) };
    (set as u8) << AT
}

/// Bits `HIGH` to `LOW` of `byte`.
pub(crate) const fn bits<const HIGH: u32, const LOW: u32>(byte: u8) -> u8 {
    const { assert!(LOW <= HIGH && HIGH < 8) };
    byte >> LOW & (0xff >> (7 - (HIGH - LOW)))
}

/// A byte with `value` in bits `HIGH` to `LOW` and zeroes elsewhere; what does not fit is cut off.
pub(crate) const fn set_bits<const HIGH: u32, const LOW: u32>(value: u8) -> u8 {
    const { assert!(LOW <= HIGH && HIGH < 8) };
    (value & (0xff >> (7 - (HIGH - LOW)))) << LOW
}

/// `LEN` bytes from byte `AT` on.
#[allow(clippy::indexing_slicing, reason = "the assertion is made when compiling")]
pub(crate) fn part<const AT: usize, const LEN: usize, const N: usize>(bytes: &[u8; N]) -> [u8; LEN] {
    const { assert!(AT + LEN <= N) };
    core::array::from_fn(|at| bytes[AT + at])
}

/// The two bytes from byte `AT` on, big-endian.
pub(crate) fn be16<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u16 {
    u16::from_be_bytes(part::<AT, 2, N>(bytes))
}

/// The four bytes from byte `AT` on, big-endian.
pub(crate) fn be32<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u32 {
    u32::from_be_bytes(part::<AT, 4, N>(bytes))
}

/// The eight bytes from byte `AT` on, big-endian.
pub(crate) fn be64<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u64 {
    u64::from_be_bytes(part::<AT, 8, N>(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_from_where_the_table_says() {
        assert!(bit::<7>(0x80) && !bit::<6>(0x80));
        assert_eq!(set_bit::<3>(true), 0x08);
        assert_eq!(bits::<7, 5>(0b1010_0000), 0b101);
        assert_eq!(bits::<7, 0>(0xa5), 0xa5);
        assert_eq!(bits::<2, 2>(0x04), 1);
        assert_eq!(set_bits::<6, 5>(0xff), 0x60);
        assert_eq!(be16::<1, _>(&[0, 0x12, 0x34]), 0x1234);
        assert_eq!(be32::<0, _>(&[1, 2, 3, 4]), 0x0102_0304);
        assert_eq!(be64::<1, _>(&[9, 1, 2, 3, 4, 5, 6, 7, 8]), 0x0102_0304_0506_0708);
    }
}
