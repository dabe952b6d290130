//! IDENTIFY DEVICE (ACS-4 clause 7.13), and the VPD page that repeats it (89h, SAT-4 clause 12.4.2).

use crate::lun::{LogicalUnit, LogicalUnitConfig, limits};
use alloc::format;
use wire::ata::{
    AfterTrim, AtaCommand, AtaText, DeviceToHostFis, Feature, FormFactor, IdentifyDevice, ResultRegisters,
    RotationRate, SectorLayout, Trim,
};
use wire::scsi::ascii::Ascii;
use wire::scsi::vpd::AtaInformation;

/// Blocks of 512 bytes with LBA ranges that one DATA SET MANAGEMENT has at most.
pub(super) const TRIM_BLOCKS_MAX: u16 = 8;

/// The rotation rate of a rotational disk, as in VPD page B1h.
const ROTATIONS_PER_MINUTE: u16 = 7200;

/// The 512 bytes of IDENTIFY DEVICE.
pub fn identify(unit: &LogicalUnit) -> [u8; 512] {
    let config = &unit.config;
    IdentifyDevice {
        serial: AtaText::new(&config.serial),
        firmware: AtaText::new(&config.revision),
        model: AtaText::new(&format!("{} {}", config.vendor.trim(), config.product.trim())),
        sectors: config.capacity.0,
        lba48: true,
        sector: SectorLayout {
            bytes: config.block_size.bytes(),
            per_physical_exponent: limits::PHYSICAL_BLOCK_EXPONENT,
            first_offset: 0,
        },
        // There is no link behind this bridge.
        sata: None,
        rotation: rotation(config),
        form_factor: FormFactor::NotReported,
        trim: Some(Trim { reads_as: AfterTrim::Zeroes, blocks_max: TRIM_BLOCKS_MAX }),
        smart: switched(unit.ata.smart),
        smart_error_log: true,
        smart_self_test: true,
        write_cache: switched(unit.write_cache_enabled()),
        look_ahead: Feature::On,
        flush_cache: true,
        flush_cache_ext: true,
        fua: true,
        general_purpose_logging: true,
        wwn: is_ieee_registered(config.naa).then_some(config.naa),
        ..IdentifyDevice::default()
    }
    .encode()
}

/// The page with these 512 bytes, and who translates: the unit itself.
pub fn ata_information<'a>(unit: &LogicalUnit, identify: &'a [u8; 512]) -> AtaInformation<'a> {
    let signature =
        DeviceToHostFis { port: 0, interrupt: false, registers: ResultRegisters::SIGNATURE }.encode();
    AtaInformation {
        vendor: Ascii::new(&unit.config.vendor),
        product: Ascii::new(&unit.config.product),
        revision: Ascii::new(&unit.config.revision),
        signature,
        command: AtaCommand::IdentifyDevice.into(),
        identify,
    }
}

const fn rotation(config: &LogicalUnitConfig) -> RotationRate {
    if config.rotational { RotationRate::Rpm(ROTATIONS_PER_MINUTE) } else { RotationRate::NonRotating }
}

const fn switched(on: bool) -> Feature {
    if on { Feature::On } else { Feature::Off }
}

/// Words 108 to 111 hold names of NAA format 5h only.
const fn is_ieee_registered(naa: u64) -> bool {
    matches!(naa, 0x5000_0000_0000_0000..=0x5fff_ffff_ffff_ffff)
}
