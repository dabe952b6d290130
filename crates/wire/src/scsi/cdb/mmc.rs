//! Commands of CD, DVD and BD drives that are not those of a disk as well (MMC-6).
//!
//! Left out: everything that writes, plays audio or exchanges keys.

use super::field::{bit, bits, bytes};
use crate::scsi::mmc::{StructureFormat, TocFormat};

cdb! {
    /// READ FORMAT CAPACITIES (MMC-6): sizes that the medium has or could be formatted to.
    pub struct ReadFormatCapacities: "READ FORMAT CAPACITIES" = Ten 0x23 {
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// READ TOC/PMA/ATIP (MMC-6): where tracks and sessions begin.
    pub struct ReadToc: "READ TOC/PMA/ATIP" = Ten 0x43 {
        /// Addresses as minutes, seconds and frames.
        #[doc(alias = "MSF")]
        msf: bool = bit(1, 1),
        /// Which of the tables.
        format: TocFormat = bits(2, 3, 0),
        /// The first track or session to report; AAh is the lead-out.
        #[doc(alias = "TRACK/SESSION NUMBER")]
        track: u8 = bytes(6, 6),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// GET CONFIGURATION (MMC-6): what drive and disc can do.
    pub struct GetConfiguration: "GET CONFIGURATION" = Ten 0x46 {
        /// Which features.
        #[doc(alias = "RT")]
        requested: RequestedFeatures = bits(1, 1, 0),
        /// The first feature to report.
        #[doc(alias = "STARTING FEATURE NUMBER")]
        first_feature: u16 = bytes(2, 3),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// GET EVENT STATUS NOTIFICATION (MMC-6): what has happened at the drive, one event at a time.
    pub struct GetEventStatusNotification: "GET EVENT STATUS NOTIFICATION" = Ten 0x4a {
        /// Answer at once.
        #[doc(alias = "IMMED")]
        polled: bool = bit(1, 0),
        /// Bit N asks for events of class N.
        #[doc(alias = "NOTIFICATION CLASS REQUEST")]
        classes: u8 = bytes(4, 4),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// READ DISC INFORMATION (MMC-6): how many sessions and tracks there are, and whether more can come.
    pub struct ReadDiscInformation: "READ DISC INFORMATION" = Ten 0x51 {
        /// 0 is the standard information.
        data_type: u8 = bits(1, 2, 0),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// READ TRACK INFORMATION (MMC-6): one track.
    pub struct ReadTrackInformation: "READ TRACK INFORMATION" = Ten 0x52 {
        /// The next track that is open, rather than this one.
        open: bool = bit(1, 2),
        /// Meaning of the address.
        #[doc(alias = "ADDRESS/NUMBER TYPE")]
        address_type: TrackAddress = bits(1, 1, 0),
        /// An LBA, a track number or a session number.
        address: u32 = bytes(2, 5),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(7, 8),
    }
}

cdb! {
    /// GET PERFORMANCE (MMC-6): how fast which part of the disc is read.
    pub struct GetPerformance: "GET PERFORMANCE" = Twelve 0xac {
        /// TOLERANCE: 2 is ten percent.
        tolerance: u8 = bits(1, 4, 3),
        /// About writes.
        write: bool = bit(1, 2),
        /// EXCEPT: nominal performance, exceptions, or all of them.
        exceptions: u8 = bits(1, 1, 0),
        /// The first block that the host asks about.
        lba: u32 = bytes(2, 5),
        /// Descriptors that the host has room for.
        #[doc(alias = "MAXIMUM NUMBER OF DESCRIPTORS")]
        count: u16 = bytes(8, 9),
        /// 0 is performance data.
        performance_type: u8 = bytes(10, 10),
    }
}

cdb! {
    /// READ DISC STRUCTURE (MMC-6): what a disc says of itself outside of its data.
    pub struct ReadDiscStructure: "READ DISC STRUCTURE" = Twelve 0xad {
        /// 0 is DVD, 1 is BD.
        media_type: u8 = bits(1, 3, 0),
        /// An address, for formats that need one.
        address: u32 = bytes(2, 5),
        /// Layer, for formats that need one.
        layer: u8 = bytes(6, 6),
        /// Which structure.
        format: StructureFormat = bytes(7, 7),
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(8, 9),
        /// Authentication grant id.
        #[doc(alias = "AGID")]
        grant_id: u8 = bits(10, 7, 6),
    }
}

cdb! {
    /// SET CD SPEED (MMC-6): how fast to read and write.
    pub struct SetCdSpeed: "SET CD SPEED" = Twelve 0xbb {
        /// Constant linear or angular velocity.
        rotational_control: u8 = bits(1, 1, 0),
        /// kB/s; FFFFh is the fastest.
        read_speed: u16 = bytes(2, 3),
        /// kB/s; FFFFh is the fastest.
        write_speed: u16 = bytes(4, 5),
    }
}

cdb! {
    /// MECHANISM STATUS (MMC-6): tray and changer.
    pub struct MechanismStatus: "MECHANISM STATUS" = Twelve 0xbd {
        /// Bytes that the host has room for.
        allocation_len: u16 = bytes(8, 9),
    }
}

cdb! {
    /// READ CD (MMC-6): chosen parts of sectors of a CD.
    pub struct ReadCd: "READ CD" = Twelve 0xbe {
        /// The sector type that is expected; 0 is any.
        sector_type: u8 = bits(1, 4, 2),
        /// The first block.
        lba: u32 = bytes(2, 5),
        /// Blocks to read.
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u32 = bytes(6, 8),
        /// SYNC: the synchronization pattern.
        sync: bool = bit(9, 7),
        /// HEADER CODES: none, header, subheader, both.
        header_codes: u8 = bits(9, 6, 5),
        /// The user data.
        user_data: bool = bit(9, 4),
        /// Error detection and correction codes.
        #[doc(alias = "EDC & ECC")]
        correction_codes: bool = bit(9, 3),
        /// C2 error bits.
        c2_error: u8 = bits(9, 2, 1),
        /// Subchannel data.
        subchannel: u8 = bits(10, 2, 0),
    }
}

choice! {
    /// RT of GET CONFIGURATION (MMC-6).
    pub enum RequestedFeatures {
        /// All from the first one on.
        All = 0 => "all features",
        /// Those that are current.
        Current = 1 => "current features",
        /// The first one alone.
        One = 2 => "one feature",
        /// Reserved.
        Reserved = 3 => "reserved",
    }
}

choice! {
    /// ADDRESS/NUMBER TYPE of READ TRACK INFORMATION (MMC-6).
    pub enum TrackAddress {
        /// The track that contains the block.
        Lba = 0 => "lba",
        /// The track of that number.
        Track = 1 => "track",
        /// The first track of the session of that number.
        Session = 2 => "session",
        /// Reserved.
        Reserved = 3 => "reserved",
    }
}

code_fields!(StructureFormat, TocFormat);

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_question_about_events_is_ten_bytes() {
        let cdb = [0x4a, 0x01, 0, 0, 0x10, 0, 0, 0, 8, 0];
        let command = GetEventStatusNotification::decode(&cdb).unwrap();
        assert_eq!((command.polled, command.classes, command.allocation_len), (true, 0x10, 8));
        assert_eq!(command.encode()[..], cdb);
    }

    #[test]
    fn one_feature_is_asked_for_by_its_number() {
        let cdb = [0x46, 0x02, 0x00, 0x1e, 0, 0, 0, 0, 16, 0];
        let command = GetConfiguration::decode(&cdb).unwrap();
        assert_eq!((command.requested, command.first_feature), (RequestedFeatures::One, 0x1e));
        assert_eq!(command.encode()[..], cdb);
    }

    #[test]
    fn the_table_of_contents_has_a_format() {
        let cdb = [0x43, 0x02, 0x01, 0, 0, 0, 1, 0, 12, 0];
        let command = ReadToc::decode(&cdb).unwrap();
        assert_eq!((command.msf, command.format, command.track), (true, TocFormat::Sessions, 1));
        assert_eq!(command.encode()[..], cdb);
        assert_eq!(command.to_string(), "READ TOC/PMA/ATIP msf sessions track 0x01 allocation_len 12");
    }

    #[test]
    fn read_cd_selects_parts_of_sectors() {
        let cdb = [0xbe, 0x08, 0, 0, 0, 16, 0, 0, 2, 0xf8, 0x01, 0];
        let command = ReadCd::decode(&cdb).unwrap();
        assert_eq!((command.sector_type, command.lba, command.blocks), (2, 16, 2));
        assert!(command.sync && command.user_data && command.correction_codes);
        assert_eq!((command.header_codes, command.c2_error, command.subchannel), (3, 0, 1));
        assert_eq!(command.encode()[..], cdb);
    }

    #[test]
    fn twelve_bytes_ask_for_a_structure() {
        let cdb = [0xad, 0x01, 0, 0, 0, 0, 1, 0xff, 0x08, 0x04, 0x40, 0];
        let command = ReadDiscStructure::decode(&cdb).unwrap();
        assert_eq!((command.media_type, command.layer, command.grant_id), (1, 1, 1));
        assert_eq!((command.format, command.allocation_len), (StructureFormat::List, 0x804));
        assert_eq!(command.encode()[..], cdb);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let cdb = [0xbb, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(SetCdSpeed::decode(&cdb).unwrap().read_speed, 0xffff);
        for len in 0..cdb.len() {
            assert!(SetCdSpeed::decode(&cdb[..len]).is_err());
        }
    }
}
