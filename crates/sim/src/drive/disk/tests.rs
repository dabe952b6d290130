use super::super::script::{KINDS, Script};
use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// Two surfaces, 1,000 cylinders of 100 sectors a track; a turn is 10 ms, so that a sector takes
/// 0.1 ms; seeks of 1, 5 and 9 ms; switching heads takes a sector.
fn part() -> DiskPart {
    DiskPart {
        surfaces: 2,
        zones: vec![Zone { cylinders: 1000, sectors_per_track: 100 }],
        rotation: Duration::from_ms(10),
        head_switch: Duration::from_us(100),
        seek: Seek { next: Duration::from_ms(1), average: Duration::from_ms(5), full: Duration::from_ms(9) },
        write_settle: Duration::from_us(500),
        overhead: Duration::from_us(50),
        segments: 4,
        segment_sectors: 200,
        write_sectors: 1000,
        write_cache: true,
        age_limit: Duration::from_ms(500),
    }
}

fn disk() -> Script<Disk> {
    Script::new(Disk::new(part()))
}

/// The first sector of a cylinder.
const fn cylinder(number: u64) -> u64 {
    number * 200
}

#[test]
fn a_read_takes_the_electronics_the_wait_for_its_angle_and_its_sectors() {
    let mut script = disk();
    script.read(0, 30, 8);
    script.until(1);
    // At 0.05 ms the arm waits for 3 ms; then eight sectors pass.
    assert_eq!(script.ended[0].at, Instant::from_ps(3_800_000_000));
    assert_eq!(script.ended[0].sectors, 8);
}

#[test]
fn a_read_elsewhere_takes_the_arm_there_first() {
    let mut script = disk();
    // One cylinder on begins 0.1 + 1 ms later; its sector 10 passes 2.1 ms after the start of each
    // turn.
    script.read(0, cylinder(1) + 10, 1);
    script.until(1);
    assert_eq!(script.ended[0].at, Instant::from_ps(2_200_000_000));
    // 333 cylinders are a third: 5 ms. Sector 0 of cylinder 334 passes at 334 x 1.1 = 367.4, so at
    // 7.4 ms of each turn.
    let mut script = disk();
    script.read(0, cylinder(334), 1);
    script.until(1);
    assert!(script.ended[0].at == Instant::from_ps(7_500_000_000), "{:?}", script.ended);
}

#[test]
fn what_follows_what_was_read_is_there_without_a_turn() {
    let mut script = disk();
    script.read(0, 0, 50);
    script.until(1);
    let first = script.ended[0].at;
    script.read(0, 50, 50);
    script.until(2);
    assert_eq!(script.ended[1].at - first, Duration::from_ms(5));
    script.read(0, 100, 100);
    script.until(3);
    assert_eq!(script.ended[2].at - first, Duration::from_us(15_100), "a head switch and 150 sectors");
}

#[test]
fn what_was_read_ahead_is_not_read_again() {
    let mut script = disk();
    script.read(0, 0, 8);
    script.until(1);
    script.now = script.now + Duration::from_ms(100);
    script.read(0, 100, 8);
    script.until(2);
    assert_eq!(script.ended[1].at - script.now, Duration::ZERO);
    assert_eq!(script.took(script.now), Duration::ZERO);
    assert_eq!(script.turns.len(), 1);
}

#[test]
fn who_is_slower_than_the_platters_finds_what_comes_next() {
    let mut script = disk();
    script.read(0, 0, 8);
    script.until(1);
    // By then 200 sectors more were read, and the arm rests.
    script.now = script.now + Duration::from_ms(100);
    script.read(0, 120, 8);
    script.until(2);
    // The second half was touched: 208 and what follows come meanwhile.
    script.now = script.now + Duration::from_ms(30);
    script.read(0, 208, 8);
    script.until(3);
    let took = script.ended[2].at - script.ended[1].at;
    assert_eq!(took, Duration::from_ms(30) + part().overhead);
}

#[test]
fn what_lies_past_what_was_read_ahead_waits_for_a_turn() {
    let mut script = disk();
    script.read(0, 0, 8);
    script.until(1);
    let long_after = Instant::from_ps(1_000_000_000_000);
    script.now = long_after;
    script.read(0, 208, 1);
    script.until(2);
    // 1.1 ms into each turn begins the cylinder; its sector 8 is 0.8 ms later.
    assert_eq!(script.took(long_after), Duration::from_us(1_100 + 800 + 100));
}

#[test]
fn streams_side_by_side_are_read_in_pieces_that_grow() {
    let mut script = disk();
    // Pieces of ten sectors at two places, one of each in flight; the arm goes to and fro.
    let mut next = [0, cylinder(10)];
    for stream in 0..2 {
        script.read(stream, next[usize::from(stream)], 10);
    }
    for ended in 0..80 {
        script.until(ended + 1);
        let stream = script.ended[ended].tag.0;
        next[usize::from(stream)] += 10;
        script.read(stream, next[usize::from(stream)], 10);
    }
    let places: Vec<u64> = script.turns.iter().map(|turn| turn.extent.lba.0).collect();
    // Ten, and as many more as are kept of the stream: 0, 10, 30, and then of the last two runs,
    // which half of the cache holds.
    assert_eq!(places, [0, 2000, 10, 2010, 30, 2030, 70, 2070, 140, 2140, 260, 2260]);
}

#[test]
fn the_arm_leaves_for_another_when_the_least_was_read() {
    let mut script = disk();
    script.read(0, 0, 10);
    script.read(1, cylinder(10), 10);
    script.until(2);
    script.read(1, cylinder(10) + 10, 10);
    script.read(0, 10, 10);
    script.until(3);
    script.read(2, cylinder(500), 10);
    script.until(5);
    // Ten are kept before the second piece of the first, so that ten more than it are read: they
    // are no whole frame.
    let places: Vec<u64> = script.turns.iter().map(|turn| turn.extent.lba.0).collect();
    assert_eq!(places, [0, cylinder(10), 10, cylinder(500)]);
    script.read(0, 20, 10);
    script.until(6);
    assert_eq!(script.turns.len(), 4, "they lie in a segment");
}

/// Orders 1, 2, 3, 4 at one cylinder, where the head comes by 3 first, then 2, 4, and 1.
#[test]
fn orders_at_once_are_served_as_the_platter_turns() {
    let at = [80, 30, 10, 50];
    let mut queued = disk();
    for (tag, sector) in (1..).zip(at) {
        queued.read(tag, sector, 4);
    }
    queued.until(4);
    let order: Vec<_> = queued.ended.iter().map(|ended| ended.tag.0).collect();
    assert_eq!(order, [3, 2, 4, 1]);
    assert!(queued.took(Instant::ZERO) < Duration::from_ms(10), "one turn");

    let mut part = part();
    part.segment_sectors = 0;
    let mut one_by_one = Script::new(Disk::new(part));
    for (count, (tag, sector)) in (1..).zip((1..).zip(at)) {
        one_by_one.read(tag, sector, 4);
        one_by_one.until(count);
    }
    assert!(one_by_one.took(Instant::ZERO) > Duration::from_ms(20), "a turn for each that goes back");
}

#[test]
fn the_arm_takes_the_nearest_unless_another_has_waited_too_long() {
    let mut script = disk();
    script.read(31, cylinder(900), 1);
    let mut submitted = 0_u64;
    while !script.ended.iter().any(|ended| ended.tag == Tag(31)) {
        // Six are always near: while one is read others wait.
        while script.ended.len() as u64 + 6 > submitted {
            let tag = (0..8).find(|tag| script.is_free(*tag)).unwrap_or(8);
            script.read(tag, cylinder(submitted % 7) + submitted * 37 % 100, 1);
            submitted += 1;
        }
        assert!(script.step());
    }
    let waited = script.took(Instant::ZERO);
    assert!(
        submitted > 50 && waited > Duration::from_ms(500) && waited < Duration::from_ms(560),
        "{waited} {submitted}"
    );
}

#[test]
fn a_write_ends_in_the_cache_and_a_flush_on_the_platters() {
    let mut script = disk();
    script.read(4, 0, 8);
    for (tag, lba) in [(0, 40), (1, 32), (2, 48)] {
        script.write(tag, lba, 8);
    }
    script.submit(3, DriveCommandKind::Flush, 0, 0);
    script.until(3);
    assert_eq!(script.took(Instant::ZERO), Duration::from_us(50));
    script.until(5);
    assert_eq!(script.turns[1], MediumAccess { tag: None, extent: Extent::new(32, 24) });
    assert_eq!(script.took(Instant::ZERO), Duration::from_us(5_600));
}

#[test]
fn a_write_through_ends_on_the_platters() {
    let mut script = disk();
    script.submit(0, DriveCommandKind::Write { through: true }, 20, 5);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_us(2_500));
}

#[test]
fn a_full_cache_takes_what_the_platters_take() {
    let mut script = disk();
    script.write(0, 0, 4000);
    script.until(1);
    // 1,000 sectors fit at once; 3,000 more need 30 ms each thousand, and the switches between 30
    // tracks.
    let took = script.took(Instant::ZERO);
    assert!(took > Duration::from_ms(300) && took < Duration::from_ms(360), "{took}");
    assert_eq!(script.ended[0].sectors, 4000);
}

#[test]
fn writes_far_apart_go_faster_when_many_wait() {
    let sectors: Vec<u64> = (0..100).map(|index| index * 7919 % 1000).map(cylinder).collect();
    let take = |cached: bool| {
        let mut script = Script::new(Disk::new(DiskPart { write_cache: cached, ..part() }));
        for (count, lba) in (1..).zip(&sectors) {
            script.write(0, *lba, 8);
            script.until(count);
        }
        script.submit(0, DriveCommandKind::Flush, 0, 0);
        script.until(sectors.len() + 1);
        script.took(Instant::ZERO)
    };
    assert!(take(true).as_ps() * 3 / 2 < take(false).as_ps(), "{} {}", take(true), take(false));
}

#[test]
fn what_was_written_is_read_from_the_cache_and_not_from_an_old_segment() {
    let mut script = disk();
    script.read(0, 0, 8);
    script.until(1);
    script.rest();
    script.write(0, 0, 8);
    script.until(2);
    script.read(1, 0, 8);
    script.until(3);
    assert_eq!(script.took(script.now), Duration::ZERO);
    script.rest();
    let before = script.now;
    script.read(1, 0, 8);
    script.until(4);
    assert!(script.took(before) > Duration::from_us(50), "the segment was forgotten");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_order_ends_once_with_all_its_sectors(
        orders in prop::collection::vec((select(&KINDS), 0_u64..199_000, 1_u64..1500, 0_u64..20), 1..120),
        write_cache in any::<bool>(),
        segment_sectors in 0_u32..400,
    ) {
        let part = DiskPart { write_cache, segment_sectors, ..part() };
        let mut script = Script::new(Disk::new(part));
        let (submitted, moved) = script.play(&orders);
        prop_assert_eq!(script.ended.len(), submitted);
        prop_assert_eq!(script.ended.iter().map(|ended| ended.sectors).sum::<u64>(), moved);
        prop_assert!(script.drive.dirty.is_empty() && script.drive.promised == 0);
    }
}
