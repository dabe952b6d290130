//! Profiles: kinds of discs, and what a drive can do with one (MMC-6 clause 5.4).

code! {
    /// PROFILE NUMBER.
    pub enum Profile: u16 {
        /// No disc is in the drive.
        None = 0x0000 => "no profile",
        /// A CD that is read.
        CdRom = 0x0008 => "CD-ROM",
        /// A CD that is written once.
        CdR = 0x0009 => "CD-R",
        /// A CD that is written again.
        CdRw = 0x000a => "CD-RW",
        /// A DVD that is read.
        DvdRom = 0x0010 => "DVD-ROM",
        /// A DVD that is written once.
        DvdR = 0x0011 => "DVD-R sequential",
        /// A DVD with random writes.
        DvdRam = 0x0012 => "DVD-RAM",
        /// A DVD+RW.
        DvdPlusRw = 0x001a => "DVD+RW",
        /// A DVD+R.
        DvdPlusR = 0x001b => "DVD+R",
        /// A DVD+R of two layers.
        DvdPlusRDualLayer = 0x002b => "DVD+R dual layer",
        /// A BD that is read.
        BdRom = 0x0040 => "BD-ROM",
        /// A BD that is written once.
        BdR = 0x0041 => "BD-R sequential",
        /// A BD that is written again.
        BdRe = 0x0043 => "BD-RE",
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Profile;
    use std::string::ToString;

    #[test]
    fn profiles_have_the_numbers_of_the_standard() {
        assert_eq!(Profile::from(0x0008), Profile::CdRom);
        assert_eq!(Profile::from(0x0010), Profile::DvdRom);
        assert_eq!(u16::from(Profile::BdRom), 0x0040);
        assert_eq!(Profile::from(0x0050).to_string(), "unknown (0x50)");
    }
}
