//! The three formats of UFI disks (UFI 1.0 tables 1 and 33).

use core::fmt;

/// Format of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    /// 720 KB, double density: 80 cylinders, 2 heads, 9 sectors of 512 bytes.
    Double720,
    /// 1.25 MB, high density: 77 cylinders, 2 heads, 8 sectors of 1024 bytes.
    High1250,
    /// 1.44 MB, high density: 80 cylinders, 2 heads, 18 sectors of 512 bytes.
    High1440,
}

impl DiskFormat {
    /// All of them, smallest first.
    pub const ALL: [Self; 3] = [Self::Double720, Self::High1250, Self::High1440];

    /// Heads of a drive.
    pub const HEADS: u8 = 2;

    /// The format with this many blocks of this many bytes, if there is one.
    pub fn of(blocks: u64, block_bytes: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            u64::from(format.blocks()) == blocks && u32::from(format.block_bytes()) == block_bytes
        })
    }

    /// The format of an image of this many bytes, if there is one.
    pub fn of_size(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.bytes() == bytes)
    }

    /// Cylinders.
    pub const fn cylinders(self) -> u16 {
        match self {
            Self::High1250 => 77,
            Self::Double720 | Self::High1440 => 80,
        }
    }

    /// Sectors of a track.
    pub const fn sectors(self) -> u8 {
        match self {
            Self::Double720 => 9,
            Self::High1250 => 8,
            Self::High1440 => 18,
        }
    }

    /// Bytes of a sector, which is a logical block.
    pub const fn block_bytes(self) -> u16 {
        match self {
            Self::High1250 => 1024,
            Self::Double720 | Self::High1440 => 512,
        }
    }

    /// Blocks of the disk.
    pub const fn blocks(self) -> u32 {
        self.cylinders() as u32 * Self::HEADS as u32 * self.sectors() as u32
    }

    /// Bytes of the disk.
    pub const fn bytes(self) -> u64 {
        self.blocks() as u64 * self.block_bytes() as u64
    }

    /// MEDIUM TYPE CODE of MODE SENSE.
    pub const fn medium_type(self) -> u8 {
        match self {
            Self::Double720 => 0x1e,
            Self::High1250 => 0x93,
            Self::High1440 => 0x94,
        }
    }

    /// TRANSFER RATE of the flexible disk page, in kbit/s.
    pub const fn transfer_rate_kbit_s(self) -> u16 {
        match self {
            Self::Double720 => 250,
            Self::High1250 | Self::High1440 => 500,
        }
    }

    /// MEDIUM ROTATION RATE, in revolutions per minute.
    pub const fn rotation_rpm(self) -> u16 {
        match self {
            Self::High1250 => 360,
            Self::Double720 | Self::High1440 => 300,
        }
    }
}

impl fmt::Display for DiskFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Double720 => "720 KB",
            Self::High1250 => "1.25 MB",
            Self::High1440 => "1.44 MB",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn sizes_are_those_of_the_table() {
        let sizes = DiskFormat::ALL.map(|format| (format.blocks(), format.bytes()));
        assert_eq!(sizes, [(1440, 737_280), (1232, 1_261_568), (2880, 1_474_560)]);
        for format in DiskFormat::ALL {
            assert_eq!(DiskFormat::of_size(format.bytes()), Some(format));
            assert_eq!(DiskFormat::of(format.blocks().into(), format.block_bytes().into()), Some(format));
        }
        assert_eq!((DiskFormat::of_size(0), DiskFormat::of(2880, 1024)), (None, None));
    }
}
