//! Addresses in minutes, seconds and frames (MMC-6 clause 4.2.3.6.5).

use core::fmt;

/// An address of a CD: 75 frames are a second, and LBA 0 is two seconds in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Msf {
    /// Minute.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Frame, 0 to 74.
    pub frame: u8,
}

impl Msf {
    /// The highest address that three bytes can say; what lies past it is reported as this.
    pub const MAX: Self = Self { minute: 255, second: 59, frame: 74 };
    /// Frames before LBA 0.
    const PREGAP: u64 = 150;

    /// The address of a block.
    pub fn of_lba(lba: u32) -> Self {
        let frames = u64::from(lba) + Self::PREGAP;
        match u8::try_from(frames / (60 * 75)) {
            Ok(minute) => Self { minute, second: (frames / 75 % 60) as u8, frame: (frames % 75) as u8 },
            Err(_) => Self::MAX,
        }
    }

    /// The four bytes of an address field, of which the first is reserved.
    pub const fn field(self) -> [u8; 4] {
        [0, self.minute, self.second, self.frame]
    }

    /// From an address field.
    pub const fn from_field(field: [u8; 4]) -> Self {
        let [_, minute, second, frame] = field;
        Self { minute, second, frame }
    }
}

impl fmt::Display for Msf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.minute, self.second, self.frame)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Msf;
    use std::string::ToString;

    #[test]
    fn block_zero_is_two_seconds_in() {
        assert_eq!(Msf::of_lba(0).field(), [0, 0, 2, 0]);
        assert_eq!(Msf::of_lba(359_849).field(), [0, 79, 59, 74]);
        assert_eq!(Msf::of_lba(359_849).to_string(), "79:59:74");
        assert_eq!(Msf::from_field([9, 1, 2, 3]), Msf { minute: 1, second: 2, frame: 3 });
    }

    #[test]
    fn what_is_past_the_last_minute_is_the_last_frame_of_it() {
        assert_eq!(Msf::of_lba(256 * 60 * 75 - 151), Msf::MAX);
        assert_eq!(Msf::of_lba(256 * 60 * 75 - 150), Msf::MAX);
        assert_eq!(Msf::of_lba(u32::MAX).field(), [0, 0xff, 0x3b, 0x4a]);
    }
}
