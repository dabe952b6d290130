use super::super::script::{KINDS, Script};
use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// Two channels of two dies; a page of 4 KiB takes 50 us to read, 4.096 us over the channel, 500 us
/// to program.
fn part() -> SolidPart {
    SolidPart {
        sectors: 1 << 20,
        command: Duration::from_us(5),
        channels: 2,
        dies_per_channel: 2,
        page_bytes: 4096,
        pages_per_block: 64,
        times: FlashTimes {
            read: Duration::from_us(50),
            program: Duration::from_us(500),
            erase: Duration::from_us(3000),
            byte: Duration::from_ns(1),
        },
        write_sectors: 256,
        ahead_pages: 0,
        compresses: false,
        spare_per_mille: 280,
    }
}

fn drive(part: SolidPart) -> Script<Solid> {
    Script::new(Solid::new(part, Contents::FRESH))
}

#[test]
fn a_read_takes_the_controller_the_flash_and_the_channel() {
    let mut script = drive(part());
    script.read(0, 8, 8);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(5_000 + 50_000 + 4_096));
}

#[test]
fn half_a_page_takes_the_channel_for_half_as_long() {
    let mut script = drive(part());
    script.read(0, 8, 4);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(5_000 + 50_000 + 2_048));
}

#[test]
fn reads_of_other_dies_overlap_and_those_of_the_same_do_not() {
    let mut script = drive(part());
    for tag in 0..4 {
        script.read(tag, u64::from(tag) * 8, 8);
    }
    script.until(4);
    // The controller looks at the last after 20 us.
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(20_000 + 50_000 + 4_096));
    let mut script = drive(part());
    for tag in 0..2 {
        script.read(tag, u64::from(tag) * 32, 8);
    }
    script.until(2);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(5_000 + 2 * (50_000 + 4_096)));
}

#[test]
fn two_dies_wait_for_the_channel_that_they_share() {
    let mut script = drive(part());
    // Pages 0 and 2 are on channel 0.
    script.read(0, 0, 24);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(5_000 + 50_000 + 2 * 4_096));
    assert_eq!(script.ended[0].sectors, 24);
}

#[test]
fn a_write_ends_in_the_buffer_and_a_flush_in_flash() {
    let mut script = drive(part());
    script.write(0, 0, 4);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_us(5));
    script.submit(1, DriveCommandKind::Flush, 0, 0);
    script.until(2);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(10_000 + 4_096 + 500_000));
}

#[test]
fn a_write_through_ends_in_flash() {
    let mut script = drive(part());
    script.submit(0, DriveCommandKind::Write { through: true }, 0, 8);
    script.until(1);
    assert_eq!(script.took(Instant::ZERO), Duration::from_ns(5_000 + 4_096 + 500_000));
}

/// A die programs a page in 504 us, and erases for 3 ms after 64: 29.7 MB/s with four.
fn sequential_write(part: SolidPart, contents: Contents) -> f64 {
    let mut script = Script::new(Solid::new(part, contents));
    for count in 0..64 {
        script.write(0, count * 256, 256);
        script.until(count as usize + 1);
    }
    let bytes = 64.0 * 256.0 * 512.0;
    bytes / (script.took(Instant::ZERO).as_ps() as f64 / 1e6)
}

#[test]
fn writing_goes_as_fast_as_dies_program() {
    let rate = sequential_write(part(), Contents::FRESH);
    assert!((29.7..31.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_controller_that_compresses_writes_less_flash() {
    let zeroes = Contents { compressed_per_mille: 250, ..Contents::FRESH };
    let rate = sequential_write(SolidPart { compresses: true, ..part() }, zeroes);
    assert!((113.0..124.0).contains(&rate), "{rate} MB/s");
    let rate = sequential_write(part(), zeroes);
    assert!((29.7..31.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn reads_go_before_pages_that_wait_to_be_programmed() {
    let mut script = drive(part());
    script.write(0, 0, 256);
    script.until(1);
    let before = script.now;
    script.read(1, 4096, 8);
    script.until(2);
    let took = script.took(before);
    assert!(took < Duration::from_us(5 + 505 + 55 + 5), "{took}");
}

#[test]
fn reading_on_finds_what_was_read_ahead() {
    let take = |ahead_pages| {
        let mut script = drive(SolidPart { ahead_pages, ..part() });
        for count in 0..100 {
            script.read(0, count * 8, 8);
            script.until(count as usize + 1);
        }
        script.took(Instant::ZERO)
    };
    assert_eq!(take(0), Duration::from_ns(100 * 59_096));
    assert!(take(8).as_ps() * 3 < take(0).as_ps(), "{}", take(8));
}

#[test]
fn worn_flash_writes_slower_where_it_is_written_in_no_order() {
    let rate = |worn_sectors: u64| {
        let part = SolidPart { sectors: 1 << 17, ..part() };
        let mut script = Script::new(Solid::new(part, Contents { worn_sectors, ..Contents::FRESH }));
        let mut random = Random::new(3, "host");
        for count in 0..4000 {
            script.write(0, random.below(1 << 14) * 8, 8);
            script.until(count + 1);
        }
        (4000.0 / (script.took(Instant::ZERO).as_ps() as f64 / 1e12), script.drive.amplification_per_mille())
    };
    let ((fresh, none), (worn, some)) = (rate(0), rate(1 << 17));
    assert_eq!(none, 1000);
    assert!((2100..2490).contains(&some), "{some}");
    // A move costs a read and a program as well.
    let ratio = fresh / worn * 1000.0;
    assert!(ratio > 0.85 * some as f64 && ratio < 1.3 * some as f64, "{fresh} {worn} {some}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_order_ends_once_with_all_its_sectors(
        orders in prop::collection::vec((prop_oneof![4 => select(&KINDS), 1 => Just(DriveCommandKind::Trim)], 0_u64..100_000, 1_u64..700, 0_u64..20), 1..120),
        ahead_pages in 0_u32..8,
        compressed_per_mille in 100_u16..1000,
    ) {
        let part = SolidPart { ahead_pages, compresses: true, ..part() };
        let contents = Contents { compressed_per_mille, worn_sectors: 0 };
        let mut script = Script::new(Solid::new(part, contents));
        let (submitted, moved) = script.play(&orders);
        prop_assert_eq!(script.ended.len(), submitted);
        prop_assert_eq!(script.ended.iter().map(|ended| ended.sectors).sum::<u64>(), moved);
        prop_assert_eq!(script.drive.buffer.promised + script.drive.buffer.programming, 0);
    }
}
