//! Disk geometry: cylinder, surface and angle of a sector.
//!
//! Sectors are numbered along a track, then over the surfaces of a cylinder, then inwards. Outer
//! zones have more sectors per track. Each track starts later than the one before by the skew of a
//! head or cylinder switch, so that sequential reads lose no revolution.

use units::{Duration, Instant, Lba};

/// A zone: cylinders whose tracks have the same number of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How many cylinders.
    pub cylinders: u32,
    /// Sectors of each of their tracks.
    pub sectors_per_track: u32,
}

/// The position of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPosition {
    /// Cylinder number, from the outside, from 0.
    pub cylinder: u32,
    /// From 0.
    pub surface: u32,
    /// On its track, from 0.
    pub sector: u32,
    /// Of its track.
    pub sectors_per_track: u32,
}

/// The platters.
#[derive(Clone, Debug)]
pub struct Geometry {
    surfaces: u32,
    zones: Vec<ZoneStart>,
    sectors: u64,
    rotation: Duration,
    /// Skew of a head switch and of a cylinder switch.
    skews: [Duration; 2],
}

#[derive(Clone, Copy, Debug)]
struct ZoneStart {
    zone: Zone,
    sector: u64,
    cylinder: u32,
}

impl Geometry {
    /// Creates platters with `zones`, from the outside. `skews` are those of a head switch and of a
    /// cylinder switch.
    pub fn new(surfaces: u32, zones: &[Zone], rotation: Duration, skews: [Duration; 2]) -> Self {
        let (mut sector, mut cylinder) = (0, 0);
        let mut starts = Vec::new();
        for &zone in zones {
            starts.push(ZoneStart { zone, sector, cylinder });
            sector += u64::from(zone.cylinders) * u64::from(surfaces) * u64::from(zone.sectors_per_track);
            cylinder += zone.cylinders;
        }
        Self { surfaces, zones: starts, sectors: sector, rotation, skews }
    }

    /// Returns the number of sectors.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the number of cylinders.
    pub fn cylinders(&self) -> u32 {
        self.zones.last().map_or(0, |last| last.cylinder + last.zone.cylinders)
    }

    /// The time of a revolution.
    pub const fn rotation(&self) -> Duration {
        self.rotation
    }

    /// Returns the position of a sector. One past the end continues the last zone.
    pub fn place(&self, lba: Lba) -> DiskPosition {
        let after = self.zones.partition_point(|start| start.sector <= lba.0);
        let Some(start) = self.zones.get(after.saturating_sub(1)) else {
            return DiskPosition { cylinder: 0, surface: 0, sector: 0, sectors_per_track: 1 };
        };
        let sectors_per_track = start.zone.sectors_per_track;
        let (track, sector) = div_rem(lba.0 - start.sector, sectors_per_track);
        let (cylinder, surface) = div_rem(track, self.surfaces);
        DiskPosition { cylinder: start.cylinder + cylinder as u32, surface, sector, sectors_per_track }
    }

    /// Returns the first sector of the track of a position.
    pub fn first_of(&self, place: DiskPosition) -> u64 {
        let after = self.zones.partition_point(|start| start.cylinder <= place.cylinder);
        let Some(start) = self.zones.get(after.saturating_sub(1)) else { return 0 };
        let cylinder = u64::from(place.cylinder - start.cylinder);
        let track = cylinder * u64::from(self.surfaces) + u64::from(place.surface);
        start.sector + track * u64::from(start.zone.sectors_per_track)
    }

    /// Returns the time in which a sector passes the head.
    pub const fn sector_time(&self, place: DiskPosition) -> Duration {
        Duration::from_ps(self.rotation.as_ps() / place.sectors_per_track as u64)
    }

    /// Returns the time from the start of a revolution to the start of a sector.
    pub const fn angle(&self, place: DiskPosition) -> Duration {
        let [surface, cylinder] = [self.skews[0].as_ps(), self.skews[1].as_ps()];
        let skew_of_cylinder = cylinder + (self.surfaces as u64 - 1) * surface;
        let skew = place.cylinder as u64 * skew_of_cylinder + place.surface as u64 * surface;
        Duration::from_ps((skew + self.along(place)) % self.rotation.as_ps())
    }

    /// Returns the rotational latency at `now` to the start of a sector on the current track. A
    /// sector missed by less than its own length counts as met: read-ahead electronics are in time.
    pub fn wait(&self, now: Instant, place: DiskPosition) -> Duration {
        let turn = self.rotation.as_ps();
        let ahead = (self.angle(place).as_ps() + turn - now.as_ps() % turn) % turn;
        let missed = turn - ahead < self.sector_time(place).as_ps();
        Duration::from_ps(if missed { 0 } else { ahead })
    }

    /// Returns the time from the start of a sector to the end of the last of `count` sequential
    /// sectors.
    pub fn pass(&self, from: Lba, count: u64) -> Duration {
        let (mut lba, mut left, mut time) = (from, count, Duration::ZERO);
        while left > 0 {
            let place = self.place(lba);
            let on_track = left.min(u64::from(place.sectors_per_track - place.sector));
            let end = DiskPosition { sector: place.sector + on_track as u32, ..place };
            time += Duration::from_ps(self.along(end) - self.along(place));
            (lba, left) = (Lba(lba.0 + on_track), left - on_track);
            if left > 0 {
                let is_last = place.surface + 1 == self.surfaces;
                time += self.skews[usize::from(is_last)];
            }
        }
        time
    }

    const fn along(&self, place: DiskPosition) -> u64 {
        place.sector as u64 * self.rotation.as_ps() / place.sectors_per_track as u64
    }
}

/// Quotient and remainder; the latter fits what it was divided by.
const fn div_rem(all: u64, by: u32) -> (u64, u32) {
    (all / by as u64, (all % by as u64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two zones of two cylinders of two surfaces; a turn is 8 ms, a sector 1 ms outside and 2 ms
    /// inside.
    fn small() -> Geometry {
        let zones =
            [Zone { cylinders: 2, sectors_per_track: 8 }, Zone { cylinders: 2, sectors_per_track: 4 }];
        Geometry::new(2, &zones, Duration::from_ms(8), [Duration::from_ms(1), Duration::from_ms(2)])
    }

    #[test]
    fn sectors_go_along_tracks_then_surfaces_then_inwards() {
        let geometry = small();
        assert_eq!((geometry.sectors(), geometry.cylinders()), (48, 4));
        let place = |lba| {
            let DiskPosition { cylinder, surface, sector, sectors_per_track } = geometry.place(Lba(lba));
            (cylinder, surface, sector, sectors_per_track)
        };
        assert_eq!(place(0), (0, 0, 0, 8));
        assert_eq!(place(9), (0, 1, 1, 8));
        assert_eq!(place(31), (1, 1, 7, 8));
        assert_eq!(place(32), (2, 0, 0, 4));
        assert_eq!(place(47), (3, 1, 3, 4));
    }

    #[test]
    fn a_track_begins_when_the_head_has_switched_to_it() {
        let geometry = small();
        let angle = |lba| geometry.angle(geometry.place(Lba(lba))).as_ms();
        assert_eq!((angle(0), angle(7), angle(8), angle(16)), (0, 7, 1, 3));
    }

    #[test]
    fn what_was_just_missed_comes_again_after_a_turn() {
        let geometry = small();
        let wait = |us: u64, lba| geometry.wait(Instant::from_ps(us * 1_000_000), geometry.place(Lba(lba)));
        assert_eq!(wait(2_000, 3), Duration::from_ms(1));
        assert_eq!(wait(4_500, 3), Duration::from_us(6_500));
        assert_eq!(wait(3_500, 3), Duration::ZERO, "missed by half a sector");
    }

    #[test]
    fn reading_on_costs_sectors_and_switches() {
        let geometry = small();
        assert_eq!(geometry.pass(Lba(0), 8), Duration::from_ms(8));
        assert_eq!(geometry.pass(Lba(6), 4), Duration::from_ms(2 + 1 + 2));
        assert_eq!(geometry.pass(Lba(14), 3), Duration::from_ms(2 + 2 + 1));
        assert_eq!(geometry.pass(Lba(30), 3), Duration::from_ms(2 + 2 + 2), "into the next zone");
    }
}
