//! Vital product data pages of the unit (SPC-5 clause 7.7, SBC-4 clause 6.6).
//!
//! Left out: pages that only say that something is not there (mode page policy, power condition, block device
//! characteristics extension), zoned block devices, third-party copy.

use super::Decision;
use crate::lun::{LogicalUnit, LogicalUnitConfig, Reply, UnitType, limits, sat};
use alloc::vec::Vec;
use wire::NoRoom;
use wire::scsi::ascii::Ascii;
use wire::scsi::sense::Sense;
use wire::scsi::vpd::{
    AfterErase, Association, BlockDeviceCharacteristics, BlockLimits, CodeSet, DesignationDescriptor,
    Designator, DeviceIdentification, ExtendedInquiry, FormFactor, LogicalBlockProvisioning, ProductType,
    ProtocolId, ProvisioningType, RotationRate, SupportedVpdPages, UnitSerialNumber, UnmappedReads, VpdPage,
    VpdPageCode, Zoned,
};

/// The pages there are, ascending as page 00h wants them.
const PAGES: [VpdPageCode; 8] = [
    VpdPageCode::SupportedPages,
    VpdPageCode::UnitSerialNumber,
    VpdPageCode::DeviceIdentification,
    VpdPageCode::ExtendedInquiry,
    VpdPageCode::AtaInformation,
    VpdPageCode::BlockLimits,
    VpdPageCode::BlockDeviceCharacteristics,
    VpdPageCode::LogicalBlockProvisioning,
];

/// The pages of an optical drive: the others are of block devices.
const OPTICAL_PAGES: [VpdPageCode; 4] = [
    VpdPageCode::SupportedPages,
    VpdPageCode::UnitSerialNumber,
    VpdPageCode::DeviceIdentification,
    VpdPageCode::ExtendedInquiry,
];

const fn pages(unit_type: UnitType) -> &'static [VpdPageCode] {
    match unit_type {
        UnitType::Disk | UnitType::Floppy => &PAGES,
        UnitType::Optical => &OPTICAL_PAGES,
    }
}

/// One page as parameter data, if there is such a page.
pub(super) fn report(unit: &LogicalUnit, reply: &mut Reply, page: VpdPageCode, room: u32) -> Decision {
    if !pages(unit.config.unit_type).contains(&page) {
        return Err(Sense::invalid_field_in_cdb(2, None));
    }
    Ok(reply.fill(room, |out| encode(unit, page, out)))
}

fn encode(unit: &LogicalUnit, page: VpdPageCode, out: &mut [u8]) -> Result<usize, NoRoom> {
    let config = &unit.config;
    let peripheral = config.unit_type.peripheral();
    let identify;
    let page = match page {
        VpdPageCode::UnitSerialNumber => {
            VpdPage::UnitSerialNumber(UnitSerialNumber { serial: config.serial.as_bytes() })
        }
        VpdPageCode::DeviceIdentification => return encode_names(config, out),
        VpdPageCode::ExtendedInquiry => VpdPage::ExtendedInquiry(extended_inquiry(config)),
        VpdPageCode::AtaInformation => {
            identify = sat::identify(unit);
            VpdPage::AtaInformation(sat::ata_information(unit, &identify))
        }
        VpdPageCode::BlockLimits => VpdPage::BlockLimits(block_limits(config)),
        VpdPageCode::BlockDeviceCharacteristics => {
            VpdPage::BlockDeviceCharacteristics(characteristics(config))
        }
        VpdPageCode::LogicalBlockProvisioning => VpdPage::LogicalBlockProvisioning(PROVISIONING),
        VpdPageCode::SupportedPages | VpdPageCode::Unknown(_) => {
            return SupportedVpdPages::encode_list(peripheral, pages(config.unit_type), out);
        }
    };
    page.encode(peripheral, out)
}

/// The unit's names, the world-wide one first, and the number of its one target port.
fn encode_names(config: &LogicalUnitConfig, out: &mut [u8]) -> Result<usize, NoRoom> {
    let naa = config.naa.to_be_bytes();
    let mut specific = Vec::from(Ascii::<16>::new(&config.product).0);
    specific.extend(config.serial.bytes().take(SERIAL_BYTES_MAX));
    let descriptors = [
        DesignationDescriptor {
            code_set: CodeSet::Binary,
            association: Association::LogicalUnit,
            protocol: None,
            designator: Designator::Naa(&naa),
        },
        DesignationDescriptor {
            code_set: CodeSet::Ascii,
            association: Association::LogicalUnit,
            protocol: None,
            designator: Designator::T10Vendor { vendor: Ascii::new(&config.vendor), specific: &specific },
        },
        DesignationDescriptor {
            code_set: CodeSet::Binary,
            association: Association::TargetPort,
            protocol: Some(ProtocolId::Uas),
            designator: Designator::RelativeTargetPort(1),
        },
    ];
    DeviceIdentification::encode_list(config.unit_type.peripheral(), &descriptors, out)
}

/// Bytes of the serial number that go into a designator, whose length is one byte.
const SERIAL_BYTES_MAX: usize = 64;

fn extended_inquiry(config: &LogicalUnitConfig) -> ExtendedInquiry {
    ExtendedInquiry {
        head_of_queue: true,
        ordered: true,
        simple: true,
        volatile_cache: config.unit_type == UnitType::Disk,
        maximum_sense_length: Sense::DESCRIPTOR_LEN_MAX as u8,
        ..ExtendedInquiry::default()
    }
}

const fn block_limits(config: &LogicalUnitConfig) -> BlockLimits {
    let size = config.block_size;
    let granule = limits::blocks_per_granule(size);
    BlockLimits {
        write_same_non_zero: limits::WRITE_SAME_NON_ZERO,
        maximum_compare_and_write_length: limits::COMPARE_AND_WRITE_BLOCKS_MAX,
        optimal_transfer_length_granularity: granule as u16,
        maximum_transfer_length: limits::transfer_blocks_max(size),
        optimal_transfer_length: config.transfer_bytes_optimal / size.bytes(),
        maximum_prefetch_length: 0,
        maximum_unmap_lba_count: limits::UNMAP_BLOCKS_MAX,
        maximum_unmap_block_descriptor_count: limits::UNMAP_DESCRIPTORS_MAX,
        optimal_unmap_granularity: granule,
        unmap_granularity_alignment: Some(0),
        maximum_write_same_length: limits::write_same_blocks_max(size),
        maximum_atomic_transfer_length: if config.atomic_writes {
            limits::atomic_blocks_max(size)
        } else {
            0
        },
        atomic_alignment: 0,
        atomic_transfer_length_granularity: 0,
        maximum_atomic_transfer_length_with_boundary: 0,
        maximum_atomic_boundary_size: 0,
    }
}

const fn characteristics(config: &LogicalUnitConfig) -> BlockDeviceCharacteristics {
    let rotation_rate = if config.rotational { RotationRate::Rpm(7200) } else { RotationRate::NonRotating };
    BlockDeviceCharacteristics {
        rotation_rate,
        product_type: ProductType::NotIndicated,
        after_block_erase: AfterErase::Good,
        after_cryptographic_erase: AfterErase::NotSpecified,
        form_factor: FormFactor::NotReported,
        zoned: Zoned::NotReported,
        reassign_blocks_write_zero: false,
        background_operation_control: false,
        force_unit_access_behaviour: true,
        verify_byte_check_unmapped: false,
        depopulation_time_s: 0,
    }
}

/// Blocks are mapped when they are written, and read as zeroes when they are not.
const PROVISIONING: LogicalBlockProvisioning<'static> = LogicalBlockProvisioning {
    threshold_exponent: 0,
    unmap: true,
    write_same_16: true,
    write_same_10: true,
    unmapped_reads: UnmappedReads::Zeroes,
    anchor: false,
    minimum_percentage: 0,
    provisioning_type: ProvisioningType::Thin,
    threshold_percentage: 0,
    provisioning_group: None,
};

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use alloc::vec::Vec;
    use units::BlockSize;
    use wire::scsi::sense::Sense;

    fn page(fixture: &mut Fixture, code: u8) -> Vec<u8> {
        fixture.read(&[0x12, 0x01, code, 0x04, 0x00, 0]).to_vec()
    }

    #[test]
    fn page_00_lists_pages_that_are_all_there() {
        let mut fixture = Fixture::new();
        let list = page(&mut fixture, 0x00);
        assert_eq!(list, [0, 0, 0, 8, 0x00, 0x80, 0x83, 0x86, 0x89, 0xb0, 0xb1, 0xb2]);
        for &code in &list[4..] {
            let bytes = page(&mut fixture, code);
            assert_eq!(bytes[1], code);
            assert_eq!(bytes.len(), 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])));
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_refused() {
        let sense = Fixture::new().check(&[0x12, 0x01, 0xb6, 0, 255, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(2, None));
    }

    #[test]
    fn the_serial_number_is_page_80() {
        assert_eq!(page(&mut Fixture::new(), 0x80), *b"\x00\x80\x00\x0c0123456789AB");
    }

    #[test]
    fn page_83_names_the_unit_and_its_port() {
        let mut expected = Vec::from([0, 0x83, 0, 12 + 40 + 8]);
        expected.extend([0x01, 0x03, 0, 8, 0x31, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        expected.extend([0x02, 0x01, 0, 36]);
        expected.extend(b"uaskit  virtual drive   0123456789AB");
        expected.extend([0x91, 0x94, 0, 4, 0, 0, 0, 1]);
        assert_eq!(page(&mut Fixture::new(), 0x83), expected);
    }

    #[test]
    fn page_86_reports_the_task_attributes_and_the_cache() {
        let bytes = page(&mut Fixture::new(), 0x86);
        assert_eq!((bytes.len(), bytes[5], bytes[6], bytes[13]), (64, 0x07, 0x01, 58));
    }

    #[test]
    fn page_89_repeats_identify_after_the_signature() {
        let mut fixture = Fixture::new();
        let bytes = page(&mut fixture, 0x89);
        assert_eq!(bytes[..8], [0, 0x89, 0x02, 0x38, 0, 0, 0, 0]);
        assert_eq!(bytes[8..36], *b"uaskit  virtual drive   0.1 ");
        assert_eq!(bytes[36..50], [0x34, 0, 0x40, 0x01, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(bytes[56..60], [0xec, 0, 0, 0]);
        let identify = fixture.read(&[0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0]);
        assert_eq!(bytes[60..], *identify);
    }

    #[test]
    fn page_b0_reports_the_limits_in_blocks() {
        let bytes = page(&mut Fixture::new(), 0xb0);
        assert_eq!(bytes[..16], [0, 0xb0, 0, 0x3c, 1, 255, 0, 8, 0, 0, 0x40, 0, 0, 0, 0x08, 0]);
        assert_eq!(
            bytes[16..36],
            [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0xff, 0, 0, 0, 8, 0x80, 0, 0, 0]
        );
        assert_eq!(bytes[36..48], [0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x08, 0]);
        let bytes = page(&mut Fixture::with(|config| config.block_size = BlockSize::B4096), 0xb0);
        assert_eq!(bytes[6..12], [0, 1, 0, 0, 8, 0]);
    }

    #[test]
    fn page_b0_reports_the_optimal_transfer_that_the_unit_was_made_with() {
        let bytes = page(&mut Fixture::with(|config| config.transfer_bytes_optimal = 64 << 10), 0xb0);
        assert_eq!(bytes[12..16], [0, 0, 0, 128]);
    }

    #[test]
    fn page_b1_reports_whether_it_rotates() {
        assert_eq!(page(&mut Fixture::new(), 0xb1)[4..9], [0, 1, 0, 0x40, 0x02]);
        let mut disk = Fixture::with(|config| config.rotational = true);
        assert_eq!(page(&mut disk, 0xb1)[4..6], [0x1c, 0x20]);
    }

    #[test]
    fn page_b2_reports_thin_provisioning() {
        assert_eq!(page(&mut Fixture::new(), 0xb2), [0, 0xb2, 0, 4, 0, 0xe4, 0x02, 0]);
    }
}
