//! GET CONFIGURATION (MMC-6 clause 6.6): the features of the drive, and which of them the disc makes current.
//!
//! Left out: real-time streaming, which needs SET STREAMING and SET READ AHEAD, and microcode and region features.

use super::{Decision, brief, disc, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit};
use wire::NoRoom;
use wire::scsi::cdb::{GetConfiguration, RequestedFeatures};
use wire::scsi::mmc::{
    CoreFeature, FeatureCode, FeatureDescriptor, FeatureWriter, LoadingMechanism, PhysicalInterface, Profile,
    ProfileDescriptor, RandomReadableFeature, RemovableMediumFeature,
};
use wire::scsi::sense::Sense;

/// Neither a unit attention nor a missing disc holds it up (MMC-6 clause 6.6.1).
pub(in crate::lun) const ROW: Row =
    brief(&[0x46, 0x03, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x04], Needs::NOTHING, |context, cdb| {
        settle(plan(context, cdb))
    });

/// The features, ascending as the data want them.
const FEATURES: [FeatureCode; 11] = [
    FeatureCode::ProfileList,
    FeatureCode::Core,
    FeatureCode::Morphing,
    FeatureCode::RemovableMedium,
    FeatureCode::RandomReadable,
    FeatureCode::CdRead,
    FeatureCode::DvdRead,
    FeatureCode::BdRead,
    FeatureCode::PowerManagement,
    FeatureCode::Timeout,
    FeatureCode::SerialNumber,
];

/// The profiles, the one that can do most first.
const PROFILES: [Profile; 3] = [Profile::BdRom, Profile::DvdRom, Profile::CdRom];

/// Bytes of the longest feature of ours.
const FEATURE_BYTES_MAX: usize = 64;

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(GetConfiguration::decode(cdb))?;
    if command.requested == RequestedFeatures::Reserved {
        return Err(Sense::invalid_field_in_cdb(1, Some(1)));
    }
    let unit = &*context.unit;
    let profile = disc::profile(unit);
    Ok(context.reply.fill(command.allocation_len.into(), |out| {
        let mut writer = FeatureWriter::new(profile, out)?;
        for code in FEATURES {
            let mut bytes = [0; FEATURE_BYTES_MAX];
            let feature = feature(unit, profile, code, &mut bytes)?;
            let number = u16::from(code);
            let is_wanted = match command.requested {
                RequestedFeatures::Current => number >= command.first_feature && feature.current,
                RequestedFeatures::One => number == command.first_feature,
                _ => number >= command.first_feature,
            };
            if is_wanted {
                writer.feature(&feature)?;
            }
        }
        writer.finish()
    }))
}

/// A feature, with what it defines in `bytes`.
fn feature<'a>(
    unit: &LogicalUnit,
    profile: Profile,
    code: FeatureCode,
    bytes: &'a mut [u8; FEATURE_BYTES_MAX],
) -> Result<FeatureDescriptor<'a>, NoRoom> {
    let (version, current) = match code {
        FeatureCode::RandomReadable => (0, profile != Profile::None),
        FeatureCode::CdRead => (2, profile == Profile::CdRom),
        FeatureCode::DvdRead => (0, profile == Profile::DvdRom),
        FeatureCode::BdRead => (0, profile == Profile::BdRom),
        FeatureCode::Core | FeatureCode::RemovableMedium => (2, true),
        FeatureCode::Morphing | FeatureCode::Timeout => (1, true),
        _ => (0, true),
    };
    let is_of_the_disc = matches!(
        code,
        FeatureCode::RandomReadable | FeatureCode::CdRead | FeatureCode::DvdRead | FeatureCode::BdRead
    );
    let len = put_definition(unit, profile, code, bytes)?;
    Ok(FeatureDescriptor { code, version, persistent: !is_of_the_disc, current, bytes: &bytes[..len] })
}

/// Writes what a feature defines; returns how many bytes that is.
fn put_definition(
    unit: &LogicalUnit,
    current: Profile,
    code: FeatureCode,
    out: &mut [u8],
) -> Result<usize, NoRoom> {
    match code {
        FeatureCode::ProfileList => {
            let list = PROFILES.map(|profile| ProfileDescriptor { profile, current: profile == current });
            super::put(out, &list.map(|entry| entry.encode()).each_ref().map(|entry| &entry[..]))
        }
        FeatureCode::Core => {
            let core = CoreFeature { interface: PhysicalInterface::Usb, device_busy_events: false };
            super::put(out, &[&core.encode()])
        }
        FeatureCode::RemovableMedium => {
            let mechanism = LoadingMechanism::Tray;
            let removable = RemovableMediumFeature { mechanism, load: true, eject: true, lock: true };
            super::put(out, &[&removable.encode()])
        }
        FeatureCode::RandomReadable => {
            // A CD has its error correction in each block, the others in 16 or 32 of them.
            let blocking = match current {
                Profile::DvdRom => 16,
                Profile::BdRom => 32,
                _ => 1,
            };
            let page_present = true;
            let readable = RandomReadableFeature { block_bytes: disc::BLOCK_BYTES, blocking, page_present };
            super::put(out, &[&readable.encode()])
        }
        // No C2 pointers, no CD-Text; no events without being asked; no time limit of its choice.
        FeatureCode::CdRead | FeatureCode::Morphing | FeatureCode::Timeout => super::put(out, &[&[0; 4]]),
        FeatureCode::BdRead => super::put(out, &[&[0; BD_ROM_AT], &BD_ROM_CLASSES]),
        FeatureCode::SerialNumber => {
            let serial = unit.config.serial.as_bytes();
            let len = serial.len().min(FEATURE_BYTES_MAX);
            super::put(out, &[&serial[..len], &b"   "[..(4 - len % 4) % 4]])
        }
        _ => Ok(0),
    }
}

/// Where the BD read feature says which classes of BD-ROM are read, after BD-RE and BD-R (MMC-6 clause 5.3.18).
const BD_ROM_AT: usize = 20;
/// Versions 1 of class 0.
const BD_ROM_CLASSES: [u8; 8] = [0, 0x02, 0, 0, 0, 0, 0, 0];
