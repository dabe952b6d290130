//! A host that thinks between its commands: what a link that sleeps meanwhile costs each command, and what it saves.
//!
//! One command at a time over UAS, a pause after each, on a drive that takes the same time for each. Without a controller, so
//! that all that differs is the link. Left out: what the host draws.

use crate::link::superspeed::{Rate, Sleep};
use crate::power::{Attojoules, Meter};
use crate::world::{self, Finished, Plain, PlugError, Stopped, World};
use bus::Speed;
use initiator::{Command, CommandBlock, CommandId, DataPhase, Outcome, Uas};
use std::fmt;
use target::Transports;
use units::{BlockSize, ByteRange, Duration, Instant};

use wire::scsi::Status;
use wire::scsi::cdb::{Cdb, CdbWidth, Read};
use wire::scsi::lun::LunField;

use wire::usb::Direction;

/// What the host does.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// The link.
    pub rate: Rate,
    /// When it sleeps; never, if not told.
    pub sleep: Option<Sleep>,
    /// What the drive takes for a command of 4 KiB.
    pub latency: Duration,
    /// From the end of a command to the next.
    pub pause: Duration,
    /// Commands, at least one.
    pub commands: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outlay {
    /// The mean time of a command.
    pub mean: Duration,
    /// The whole run.
    pub elapsed: Duration,
    /// Of both ports, by [`LinkState`](crate::link::superspeed::LinkState).
    pub link: Meter<4>,
    /// Of the drive: idle, at work.
    pub drive: Meter<2>,
    /// Bytes that were read.
    pub bytes: u64,
}

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HabitError {
    /// The drive cannot be plugged in.
    Plug(PlugError),
    /// The world does not go on.
    Stopped(Stopped),
    /// A command failed, or nothing happens any more: a fault of the model.
    Failed,
}

const BLOCKS: u32 = 1 << 13;
const BYTES: u32 = 4096;
const PATIENCE: Duration = Duration::from_secs(30);

/// Lets the host do it.
///
/// # Errors
/// See [`HabitError`].
pub fn think(habit: &Habit) -> Result<Outlay, HabitError> {
    let plain = Plain::new(BLOCKS, BlockSize::B512, habit.latency, 1);
    let device = plain.device_with(Transports::Dual, Speed::Super);
    let plugged = world::uas(device, None).map_err(HabitError::Plug)?;
    let mut world = World::new(habit.rate, plugged, plain);
    if let Some(sleep) = habit.sleep {
        world.let_sleep(sleep);
    }
    // A drive that was just plugged in says so to the first command.
    run(&mut world, &command(Instant::ZERO, &[0; 6], None)?, 0)?;
    let mut stays = Duration::ZERO;
    for nth in 0..habit.commands.max(1) {
        let next = world.now() + habit.pause;
        let early = world.run_until(Some(next)).map_err(HabitError::Stopped)?;
        if early.is_some() {
            return Err(HabitError::Failed);
        }
        read(&mut world, nth)?;
        stays += world.now() - next;
    }
    let now = world.now();
    world.audit().map_err(|violation| HabitError::Stopped(Stopped::Broken(violation)))?;
    Ok(Outlay {
        mean: Duration::from_ps(stays.as_ps() / u64::from(habit.commands.max(1))),
        elapsed: now - Instant::ZERO,
        link: world.link().ok_or(HabitError::Failed)?.meter(now),
        drive: world.drive_meter().clone(),
        bytes: u64::from(habit.commands.max(1)) * u64::from(BYTES),
    })
}

impl Outlay {
    /// What link and drive have cost.
    pub fn energy(&self) -> Attojoules {
        let end = Instant::ZERO + self.elapsed;
        Attojoules(self.link.energy(end).0 + self.drive.energy(end).0)
    }

    /// How long the link was in each state.
    pub fn link_times(&self) -> [Duration; 4] {
        self.link.times(Instant::ZERO + self.elapsed)
    }

    /// Joules for 10⁹ bytes.
    pub fn joules_per_gigabyte(&self) -> f64 {
        self.energy().joules() / (self.bytes as f64 / 1e9)
    }
}

impl fmt::Display for HabitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plug(error) => error.fmt(f),
            Self::Stopped(stopped) => stopped.fmt(f),
            Self::Failed => f.write_str("a command failed in a world without faults"),
        }
    }
}

impl std::error::Error for HabitError {}

fn command(now: Instant, cdb: &[u8], data_phase: Option<DataPhase>) -> Result<Command, HabitError> {
    Ok(Command {
        id: CommandId { slot: 0, generation: 0 },
        lun: LunField([0; 8]),
        attribute: wire::uas::TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).ok_or(HabitError::Failed)?,
        data_phase,
        deadline: now + PATIENCE,
    })
}

fn read(world: &mut World<Uas>, nth: u32) -> Result<(), HabitError> {
    let (blocks, lba) = (BYTES / 512, u64::from(nth * (BYTES / 512) % BLOCKS));
    let cdb: Cdb = Read { width: CdbWidth::Ten, lba, blocks, ..Read::default() }.encode();
    let data_phase = DataPhase { direction: Direction::In, range: ByteRange::new(0, BYTES) };
    let command = command(world.now(), CommandBlock::from(cdb).as_bytes(), Some(data_phase))?;
    let finished = run(world, &command, BYTES)?;
    match &finished.outcome {
        Outcome::Answered(answer) if answer.status == Status::Good && answer.moved == BYTES => Ok(()),
        _ => Err(HabitError::Failed),
    }
}

fn run(world: &mut World<Uas>, command: &Command, bytes: u32) -> Result<Finished, HabitError> {
    world.submit(command, vec![0; bytes as usize]).map_err(|_| HabitError::Failed)?;
    world.run().map_err(HabitError::Stopped)?.ok_or(HabitError::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habit(pause: Duration, sleep: Option<Sleep>) -> Habit {
        Habit { rate: Rate::Gen1, sleep, latency: Duration::from_us(60), pause, commands: 20 }
    }

    fn outlay(pause: Duration, sleep: Option<Sleep>) -> Outlay {
        think(&habit(pause, sleep)).unwrap()
    }

    #[test]
    fn a_link_that_may_sleep_and_has_no_time_to_costs_nothing() {
        let quick = |sleep| Habit { latency: Duration::from_us(30), ..habit(Duration::from_us(20), sleep) };
        let [awake, sleepy] = [None, Some(Sleep::LINUX)].map(|sleep| think(&quick(sleep)).unwrap());
        assert_eq!(sleepy.mean, awake.mean);
        assert_eq!(sleepy.energy(), awake.energy());
    }

    #[test]
    fn a_pause_in_u1_costs_10_us_and_saves_power() {
        let pause = Duration::from_us(500);
        let [awake, sleepy] = [None, Some(Sleep::LINUX)].map(|sleep| outlay(pause, sleep));
        // The first packet of a command waits for the link. The rest of a bus interval may hold a timestamp or not.
        let more = sleepy.mean.as_ns() - awake.mean.as_ns();
        assert!((9_900..=10_100).contains(&more), "{more} ns");
        assert!(sleepy.energy() < awake.energy());
        let [_, u1, u2, exit] = sleepy.link_times();
        assert!((400..500).contains(&(u1.as_ns() / 20_000)), "{u1}");
        assert_eq!((u2, exit), (Duration::ZERO, Duration::from_us(20 * 10)));
    }

    #[test]
    fn a_long_pause_ends_in_u2_and_costs_2_ms() {
        let sleepy = outlay(Duration::from_ms(50), Some(Sleep::LINUX));
        assert_eq!(sleepy.mean.as_ns() / 100_000, 21, "{}", sleepy.mean);
        let [_, _, u2, exit] = sleepy.link_times();
        assert_eq!(exit, Duration::from_us(20 * 2_047));
        assert!(u2 > Duration::from_ms(700));
    }

    #[test]
    fn a_device_that_lets_the_link_sleep_while_it_works_pays_twice() {
        let sleep = Sleep { device_refuses_at_work: false, ..Sleep::LINUX };
        let slow =
            |sleep| Habit { latency: Duration::from_us(200), ..habit(Duration::from_us(500), Some(sleep)) };
        let [refusing, agreeing] = [Sleep::LINUX, sleep].map(|sleep| think(&slow(sleep)).unwrap());
        let more = agreeing.mean.as_ns() - refusing.mean.as_ns();
        assert!((9_900..=10_100).contains(&more), "{more} ns");
    }

    #[test]
    fn what_link_and_drive_have_cost_adds_up() {
        let outlay = outlay(Duration::from_ms(1), Some(Sleep::LINUX));
        let end = Instant::ZERO + outlay.elapsed;
        assert!(outlay.link.is_consistent(end) && outlay.drive.is_consistent(end));
        let [idle, at_work] = outlay.drive.times(end);
        assert_eq!(at_work, Duration::from_us(20 * 60));
        assert_eq!(idle + at_work, outlay.elapsed);
    }
}
