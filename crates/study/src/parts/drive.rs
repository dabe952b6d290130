//! Drives: flash and disks.
//!
//! Fields are the parameters of the models in [`sim::drive`]. Left out: whatever does not affect
//! timing.

use super::fields::{FieldError, File, sectors, within};
use super::quantity::{Count, Quantity, Rate, RotationSpeed, Share, Size, Time};
use serde::Deserialize;
use sim::drive::SECTOR_BYTES;
use sim::drive::disk::{DiskPart, Seek, Zone};
use sim::drive::solid::{FlashTimes, SolidPart};
use units::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SsdFile {
    title: String,
    capacity: Quantity<Size>,
    controller: SsdController,
    flash: SsdFlash,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SsdController {
    /// Per command, sequential.
    command: Quantity<Time>,
    /// Whether stored data is compressed.
    compresses: bool,
    write_buffer: Quantity<Size>,
    read_ahead: Quantity<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SsdFlash {
    channels: Quantity<Count>,
    dies_per_channel: Quantity<Count>,
    page: Quantity<Size>,
    /// Planes that are read and programmed together.
    planes: Quantity<Count>,
    pages_per_block: Quantity<Count>,
    channel: Quantity<Rate>,
    read: Quantity<Time>,
    program: Quantity<Time>,
    erase: Quantity<Time>,
    spare: Quantity<Share>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HddFile {
    title: String,
    capacity: Quantity<Size>,
    platters: HddPlatters,
    arm: HddArm,
    electronics: HddElectronics,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HddPlatters {
    speed: Quantity<RotationSpeed>,
    surfaces: Quantity<Count>,
    zones: Quantity<Count>,
    outer_track: Quantity<Count>,
    inner_track: Quantity<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HddArm {
    head_switch: Quantity<Time>,
    next_cylinder: Quantity<Time>,
    average: Quantity<Time>,
    full: Quantity<Time>,
    write_settle: Quantity<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HddElectronics {
    command: Quantity<Time>,
    segments: Quantity<Count>,
    segment: Quantity<Size>,
    write_cache: Quantity<Size>,
    age_limit: Quantity<Time>,
}

impl File for SsdFile {
    type Part = SolidPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        self.part()
    }
}

impl File for HddFile {
    type Part = DiskPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        self.part()
    }
}

impl SsdFile {
    fn part(&self) -> Result<SolidPart, FieldError> {
        let (controller, flash) = (&self.controller, &self.flash);
        let page_bytes: u32 = within("flash.page", &flash.page, 512, 1 << 20)?;
        let planes: u32 = within("flash.planes", &flash.planes, 1, 8)?;
        Ok(SolidPart {
            sectors: self.capacity.whole() / u64::from(SECTOR_BYTES),
            command: controller.command.duration(),
            channels: within("flash.channels", &flash.channels, 1, 64)?,
            dies_per_channel: within("flash.dies_per_channel", &flash.dies_per_channel, 1, 64)?,
            page_bytes: page_bytes * planes,
            pages_per_block: within("flash.pages_per_block", &flash.pages_per_block, 1, 1 << 16)?,
            times: FlashTimes {
                read: flash.read.duration(),
                program: flash.program.duration(),
                erase: flash.erase.duration(),
                byte: Duration::from_ps(flash.channel.whole()),
            },
            write_sectors: sectors("controller.write_buffer", &controller.write_buffer)?,
            ahead_pages: within("controller.read_ahead", &controller.read_ahead, 0, 1 << 12)?,
            compresses: controller.compresses,
            spare_per_mille: within("flash.spare", &flash.spare, 0, 10_000)?,
        })
    }
}

impl HddFile {
    fn part(&self) -> Result<DiskPart, FieldError> {
        let (platters, arm, electronics) = (&self.platters, &self.arm, &self.electronics);
        let surfaces: u32 = within("platters.surfaces", &platters.surfaces, 1, 64)?;
        Ok(DiskPart {
            surfaces,
            zones: self.zones(surfaces)?,
            rotation: Duration::from_ps(platters.speed.whole()),
            head_switch: arm.head_switch.duration(),
            seek: Seek {
                next: arm.next_cylinder.duration(),
                average: arm.average.duration(),
                full: arm.full.duration(),
            },
            write_settle: arm.write_settle.duration(),
            overhead: electronics.command.duration(),
            segments: within("electronics.segments", &electronics.segments, 0, 256)?,
            segment_sectors: sectors("electronics.segment", &electronics.segment)?,
            write_sectors: sectors("electronics.write_cache", &electronics.write_cache)?,
            write_cache: true,
            age_limit: electronics.age_limit.duration(),
        })
    }

    /// As many cylinders as the capacity needs, in zones of equal size whose tracks shorten
    /// linearly.
    fn zones(&self, surfaces: u32) -> Result<Vec<Zone>, FieldError> {
        let platters = &self.platters;
        let count: u32 = within("platters.zones", &platters.zones, 1, 256)?;
        let outer: u32 = within("platters.outer_track", &platters.outer_track, 1, 1 << 20)?;
        let inner: u32 = within("platters.inner_track", &platters.inner_track, 1, u64::from(outer))?;
        let length = |zone: u32| outer - (outer - inner) * zone / count.saturating_sub(1).max(1);
        let all: u64 = (0..count).map(|zone| u64::from(length(zone))).sum::<u64>() * u64::from(surfaces);
        let sectors = self.capacity.whole() / u64::from(SECTOR_BYTES);
        let cylinders = u32::try_from(sectors.div_ceil(all))
            .map_err(|_| FieldError::new("capacity", "the capacity is too large"))?;
        Ok((0..count).map(|zone| Zone { cylinders, sectors_per_track: length(zone) }).collect())
    }
}
