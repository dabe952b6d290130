//! ATA PASS-THROUGH(12) and (16): an ATA command inside a SCSI command (SAT-4).
//!
//! The (12) carries the lower half of each register, the (16) both. Without EXTEND a translator ignores
//! the upper halves; here they are preserved as received. Left out: ATA PASS-THROUGH(32).

use super::field::Place::{Absent, Scattered};
use super::field::{bit, bits, bytes};
use crate::ata::CommandRegisters;

cdb! {
    /// ATA PASS-THROUGH (SAT-4).
    pub struct AtaPassThrough, width: [
        "ATA PASS-THROUGH(12)" = Twelve 0xa1, "ATA PASS-THROUGH(16)" = Sixteen 0x85,
    ] {
        /// COMMAND register.
        command: u8 = [bytes(9, 9), bytes(14, 14)],
        /// How the command moves its data.
        protocol: AtaProtocol = [bits(1, 4, 1); 2],
        /// FEATURES registers.
        features: u16 = [bytes(3, 3), bytes(3, 4)],
        /// COUNT registers.
        count: u16 = [bytes(4, 4), bytes(5, 6)],
        /// LBA registers: 24 or 48 bits.
        lba: u64 = [Scattered(&[7, 6, 5]), Scattered(&[11, 9, 7, 12, 10, 8])],
        /// DEVICE register.
        device: u8 = [bytes(8, 8), bytes(13, 13)],
        /// A 48-bit command: the upper halves count.
        extend: bool = [Absent, bit(1, 0)],
        /// Sectors per DRQ block of READ/WRITE MULTIPLE, as a power of two.
        multiple_count: u8 = [bits(1, 7, 5); 2],
        /// Seconds (0, 2, 6, 14 for 0..=3) in which STATUS may not be valid.
        #[doc(alias = "OFF_LINE")]
        off_line: u8 = [bits(2, 7, 6); 2],
        /// CHECK CONDITION with the registers even if all went well.
        #[doc(alias = "CK_COND")]
        check_condition: bool = [bit(2, 5); 2],
        /// Blocks are the device's logical sectors, else 512 bytes.
        #[doc(alias = "T_TYPE")]
        logical_sectors: bool = [bit(2, 4); 2],
        /// Data comes from the device, else it goes there.
        #[doc(alias = "T_DIR")]
        from_device: bool = [bit(2, 3); 2],
        /// The length counts blocks, else bytes.
        #[doc(alias = "BYT_BLOK")]
        in_blocks: bool = [bit(2, 2); 2],
        /// Where the length stands.
        #[doc(alias = "T_LENGTH")]
        transfer_length: AtaTransferLength = [bits(2, 1, 0); 2],
    }
}

impl AtaPassThrough {
    /// The registers as the device gets them: without EXTEND their lower halves only.
    pub fn registers(&self) -> CommandRegisters {
        let Self { features, count, lba, device, .. } = *self;
        let command = self.command.into();
        if self.extend {
            return CommandRegisters { command, features, count, lba, device };
        }
        let (features, count, lba) = (features & 0xff, count & 0xff, lba & 0xff_ffff);
        CommandRegisters { command, features, count, lba, device }
    }
}

code! {
    /// PROTOCOL of ATA PASS-THROUGH (SAT-4).
    pub enum AtaProtocol: u8 {
        /// Resets the device by its hardware line.
        HardwareReset = 0x0 => "ATA hardware reset",
        /// Resets the device by the SRST bit.
        SoftwareReset = 0x1 => "ATA software reset",
        /// No data.
        NonData = 0x3 => "non-data",
        /// PIO, from the device.
        PioDataIn = 0x4 => "PIO data-in",
        /// PIO, to the device.
        PioDataOut = 0x5 => "PIO data-out",
        /// DMA; the direction bit says which way.
        Dma = 0x6 => "DMA",
        /// EXECUTE DEVICE DIAGNOSTIC.
        ExecuteDeviceDiagnostic = 0x8 => "execute device diagnostic",
        /// DEVICE RESET.
        DeviceReset = 0x9 => "device reset",
        /// Ultra DMA, from the device.
        UdmaDataIn = 0xa => "UDMA data-in",
        /// Ultra DMA, to the device.
        UdmaDataOut = 0xb => "UDMA data-out",
        /// NCQ.
        Ncq = 0xc => "NCQ",
        /// No command: the registers of the last one are wanted.
        ReturnResponseInformation = 0xf => "return response information",
    }
}

code_fields!(AtaProtocol);

choice! {
    /// T_LENGTH: which field says how much data there is (SAT-4).
    pub enum AtaTransferLength {
        /// None: there is no data.
        NoData = 0 => "no data",
        /// FEATURES.
        InFeatures = 1 => "length in features",
        /// COUNT.
        InCount = 2 => "length in count",
        /// The transport's own length (TPSIU).
        InTransport = 3 => "length in transport",
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn identify_device_in_twelve_bytes_both_ways() {
        assert_both_ways!(
            AtaPassThrough {
                width: CdbWidth::Twelve,
                command: 0xec,
                protocol: AtaProtocol::PioDataIn,
                count: 1,
                from_device: true,
                in_blocks: true,
                transfer_length: AtaTransferLength::InCount
            },
            [0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0],
            "ATA PASS-THROUGH(12) command 0xec PIO data-in count 1 lba 0 from_device in_blocks \
             length in count"
        );
    }

    #[test]
    fn smart_return_status_both_ways() {
        assert_both_ways!(
            AtaPassThrough {
                width: CdbWidth::Twelve,
                command: 0xb0,
                protocol: AtaProtocol::NonData,
                features: 0xda,
                lba: 0xc2_4f00,
                device: 0xa0,
                check_condition: true
            },
            [0xa1, 0x06, 0x20, 0xda, 0, 0x00, 0x4f, 0xc2, 0xa0, 0xb0, 0, 0],
            "ATA PASS-THROUGH(12) command 0xb0 non-data features 0xda count 0 lba 12734208 device 0xa0 \
             check_condition"
        );
    }

    #[test]
    fn every_register_of_sixteen_bytes_both_ways() {
        assert_both_ways!(
            AtaPassThrough {
                width: CdbWidth::Sixteen,
                command: 0x25,
                protocol: AtaProtocol::Dma,
                features: 0x0102,
                count: 0x0304,
                lba: 0x0605_0403_0201,
                device: 0x40,
                extend: true,
                multiple_count: 5,
                off_line: 2,
                check_condition: true,
                logical_sectors: true,
                from_device: true,
                transfer_length: AtaTransferLength::InTransport
            },
            [0x85, 0xad, 0xbb, 1, 2, 3, 4, 0x04, 0x01, 0x05, 0x02, 0x06, 0x03, 0x40, 0x25, 0],
            "ATA PASS-THROUGH(16) command 0x25 DMA features 0x102 count 772 lba 6618611909121 device 0x40 \
             extend multiple_count 0x05 off_line 0x02 check_condition logical_sectors from_device \
             length in transport"
        );
    }

    #[test]
    fn upper_halves_take_the_wider_cdb() {
        let command = AtaPassThrough { count: 0x100, ..AtaPassThrough::default() };
        assert_eq!(command.encode()[0], 0x85);
        assert_eq!(AtaPassThrough { count: 0xff, ..command }.encode()[0], 0xa1);
    }

    #[test]
    fn registers_have_their_upper_halves_with_extend_only() {
        let mut cdb = [0x85, 0x0d, 0x0e, 1, 2, 3, 4, 0x04, 0x01, 0x05, 0x02, 0x06, 0x03, 0x40, 0x25, 0];
        let registers = AtaPassThrough::decode(&cdb).unwrap().registers();
        let (features, count, lba) = (registers.features, registers.count, registers.lba);
        assert_eq!((features, count, lba), (0x0102, 0x0304, 0x0605_0403_0201));
        cdb[1] = 0x0c;
        let registers = AtaPassThrough::decode(&cdb).unwrap().registers();
        let (features, count, lba) = (registers.features, registers.count, registers.lba);
        assert_eq!((features, count, lba), (0x02, 0x04, 0x03_0201));
    }
}
