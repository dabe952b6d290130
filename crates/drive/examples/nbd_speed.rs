//! Random 4 KiB reads, then writes, on an export of an NBD server, with sixteen commands in flight over UAS: what fio's `nbd`
//! engine does, through the whole drive. Destroys what the export holds. docs/PERFORMANCE.md has the comparison.

use bus::Speed;
use testkit::command::command;
use testkit::drive::drive_at;
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::{Medium, NbdMedium};
use units::BlockSize;

const DEPTH: u16 = 16;
const BLOCKS: u16 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("usage: nbd_speed ADDRESS [SECONDS]")?.parse()?;
    let seconds: f64 = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let medium = NbdMedium::open(&address, BlockSize::B512, false)?;
    println!("{}", medium.describe());
    let places = medium.capacity().0 / u64::from(BLOCKS);
    let mut drive = drive_at(Speed::Super, 32, Box::new(medium));
    let uas = plug::uas(&mut drive, None, initiator::Timeouts::default())?;
    let mut ends = Loopback::new(uas, drive);
    // The first command reports the power-on.
    start(&mut ends, 0, 0, None);
    wait(&mut ends);
    for writes in [false, true] {
        let rate = measure(&mut ends, places, writes, seconds);
        println!("{}: {rate:.0} IOPS", if writes { "randwrite" } else { "randread" });
    }
    Ok(())
}

/// Commands per second.
fn measure<T: initiator::Transport>(ends: &mut Loopback<T>, places: u64, writes: bool, seconds: f64) -> f64 {
    let mut random = 1_u64;
    let mut place = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % places) as u32 * u32::from(BLOCKS)
    };
    for slot in 0..DEPTH {
        start(ends, slot, 1, Some((place(), writes)));
    }
    let begin = std::time::Instant::now();
    let mut count = 0_u32;
    let mut in_flight = DEPTH;
    while in_flight > 0 {
        let slot = wait(ends);
        count += 1;
        if begin.elapsed().as_secs_f64() < seconds {
            start(ends, slot, count, Some((place(), writes)));
        } else {
            in_flight -= 1;
        }
    }
    f64::from(count) / begin.elapsed().as_secs_f64()
}

fn start<T: initiator::Transport>(
    ends: &mut Loopback<T>,
    slot: u16,
    generation: u32,
    access: Option<(u32, bool)>,
) {
    let id = initiator::CommandId { slot, generation };
    let deadline = units::Instant::ZERO + units::Duration::from_secs(3600);
    let (lba, writes) = access.unwrap_or_default();
    let blocks = if access.is_some() { BLOCKS } else { 0 };
    let command = command(id, writes, (lba, blocks), deadline);
    let mut buffer = ends.pool().take(usize::from(blocks) * 512);
    ends.submit(units::Instant::ZERO, &command, &mut buffer).expect("there is room");
}

/// Waits for a command. Returns its slot.
fn wait<T: initiator::Transport>(ends: &mut Loopback<T>) -> u16 {
    loop {
        if let Some(over) = ends.poll() {
            assert!(over.id.generation == 0 || over.outcome.is_good(), "{:?}", over.outcome);
            ends.pool().put(over.buffer);
            return over.id.slot;
        }
        ends.run_once(units::Instant::ZERO);
        if let Some(over) = ends.poll() {
            assert!(over.id.generation == 0 || over.outcome.is_good(), "{:?}", over.outcome);
            ends.pool().put(over.buffer);
            return over.id.slot;
        }
        let fds: Vec<_> = ends.drive().event_fds().collect();
        let mut set: Vec<_> =
            fds.iter().map(|fd| rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)).collect();
        let _ = rustix::event::poll(&mut set, None);
    }
}
