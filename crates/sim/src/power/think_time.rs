//! Link power management under a think-time load: latency cost and energy saved.
//!
//! One command at a time over UAS with a pause after each, on a drive with constant latency; with
//! driver and controller or without, so that only the link differs. Measurement starts after the
//! first command. Left out: energy of host and controller.

use crate::link::superspeed::{Rate, Sleep};
use crate::machine::xhci::{self as xhci_machine, Host, PowerOnError, XhciMachine};
use crate::machine::{
    self, DirectMachine, FinishedCommand, FixedLatencyDrive, PlugError, Simulation, StopReason,
};
use crate::power::{self, Attojoules, Meter};
use bus::Speed;
use device::Transports;
use initiator::{Command, CommandBlock, CommandId, DataPhase, Outcome, Uas};
use std::fmt;
use units::{BlockSize, ByteRange, Duration, Instant};

use wire::scsi::Status;
use wire::scsi::cdb::{Cdb, CdbWidth, Read};
use wire::scsi::lun::LunField;

use wire::usb::Direction;

/// A think-time load.
#[derive(Clone, Copy, Debug)]
pub struct ThinkTimeRun {
    /// Driver and controller; without, transfers are available at once and the link timeouts are
    /// those of [`Self::sleep`].
    pub host: Option<Host>,
    /// Rate of the link.
    pub rate: Rate,
    /// Link power management; `None` disables it.
    pub sleep: Option<Sleep>,
    /// Latency of the drive for 4 KiB.
    pub latency: Duration,
    /// Pause between commands.
    pub pause: Duration,
    /// Number of commands, at least 1.
    pub commands: u32,
}

/// Result of a think-time run.
#[derive(Clone, Copy, Debug)]
pub struct ThinkTimeResult {
    /// Mean latency.
    pub mean: Duration,
    /// Elapsed time.
    pub elapsed: Duration,
    /// Time of the link in each [`LinkState`](crate::link::superspeed::LinkState).
    pub link: [Duration; 4],
    /// Time of the drive idle and busy.
    pub drive: [Duration; 2],
    /// Energy of both link ports and the drive.
    pub energy: Attojoules,
    /// Bytes read.
    pub bytes: u64,
}

/// Why the measurement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThinkTimeError {
    /// The drive cannot be configured.
    Plug(PlugError),
    /// The machine does not power on.
    PowerOn(PowerOnError),
    /// The simulation stopped.
    Stopped(StopReason),
    /// A command failed or never completed: a model bug.
    Failed,
}

/// A machine with a power meter at its drive.
trait Metered: Simulation {
    fn drive_meter(&self) -> Option<&Meter<2>>;
}

/// Time per state of link and drive, and their energy.
struct Reading {
    at: Instant,
    link: [Duration; 4],
    drive: [Duration; 2],
    energy: Attojoules,
}

const BLOCKS: u32 = 1 << 13;
const BYTES: u32 = 4096;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a think-time load.
///
/// # Errors
/// See [`ThinkTimeError`].
pub fn measure_think_time(load: &ThinkTimeRun) -> Result<ThinkTimeResult, ThinkTimeError> {
    let plain = FixedLatencyDrive::new(BLOCKS, BlockSize::B512, load.latency, 1);
    if let Some(host) = load.host {
        let drive = xhci_machine::Drive::uas().blocks(BLOCKS, BlockSize::B512).latency(load.latency);
        let setup =
            xhci_machine::Setup::new(host).at(load.rate).with(1, xhci_machine::Drive { at_once: 1, ..drive });
        let setup = xhci_machine::Setup { sleep: load.sleep, ..setup };
        return spend(load, &mut setup.power_on().map_err(ThinkTimeError::PowerOn)?);
    }
    let device = plain.device_with(Transports::Dual, Speed::Super);
    let plugged = machine::uas(device, None).map_err(ThinkTimeError::Plug)?;
    let mut machine = DirectMachine::new(load.rate, plugged, plain);
    if let Some(sleep) = load.sleep {
        machine.let_sleep(sleep);
    }
    spend(load, &mut machine)
}

/// Alternates reads and pauses.
fn spend(load: &ThinkTimeRun, machine: &mut impl Metered) -> Result<ThinkTimeResult, ThinkTimeError> {
    // The first command reports the unit attention of a new device.
    run(machine, &command(machine.now(), &[0; 6], None)?, 0)?;
    let before = Reading::of(machine)?;
    let commands = load.commands.max(1);
    let mut stays = Duration::ZERO;
    for nth in 0..commands {
        let next = machine.now() + load.pause;
        let early = machine.run_until(Some(next)).map_err(ThinkTimeError::Stopped)?;
        if early.is_some() {
            return Err(ThinkTimeError::Failed);
        }
        read(machine, nth)?;
        stays += machine.now() - next;
    }
    machine.audit().map_err(|violation| ThinkTimeError::Stopped(StopReason::Broken(violation)))?;
    let after = Reading::of(machine)?;
    Ok(ThinkTimeResult {
        mean: Duration::from_ps(stays.as_ps() / u64::from(commands)),
        elapsed: after.at - before.at,
        link: power::since(after.link, before.link),
        drive: power::since(after.drive, before.drive),
        energy: Attojoules(after.energy.0 - before.energy.0),
        bytes: u64::from(commands) * u64::from(BYTES),
    })
}

impl Metered for DirectMachine<Uas> {
    fn drive_meter(&self) -> Option<&Meter<2>> {
        Some(self.drive_meter())
    }
}

impl Metered for XhciMachine {
    fn drive_meter(&self) -> Option<&Meter<2>> {
        self.drive_meter(0)
    }
}

impl Reading {
    fn of(machine: &impl Metered) -> Result<Self, ThinkTimeError> {
        let at = machine.now();
        let link = machine.link(0).ok_or(ThinkTimeError::Failed)?.meter(at);
        let drive = machine.drive_meter().ok_or(ThinkTimeError::Failed)?;
        if !link.is_consistent(at) || !drive.is_consistent(at) {
            return Err(ThinkTimeError::Failed);
        }
        let energy = Attojoules(link.energy(at).0 + drive.energy(at).0);
        Ok(Self { at, link: link.times(at), drive: drive.times(at), energy })
    }
}

impl ThinkTimeResult {
    /// Returns joules per 10⁹ bytes.
    pub fn joules_per_gigabyte(&self) -> f64 {
        self.energy.joules() / (self.bytes as f64 / 1e9)
    }
}

impl fmt::Display for ThinkTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plug(error) => error.fmt(f),
            Self::PowerOn(error) => error.fmt(f),
            Self::Stopped(stopped) => stopped.fmt(f),
            Self::Failed => f.write_str("a command failed without a fault: simulation model bug"),
        }
    }
}

impl std::error::Error for ThinkTimeError {}

fn command(now: Instant, cdb: &[u8], data_phase: Option<DataPhase>) -> Result<Command, ThinkTimeError> {
    Ok(Command {
        id: CommandId { slot: 0, generation: 0 },
        lun: LunField([0; 8]),
        attribute: wire::uas::TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).ok_or(ThinkTimeError::Failed)?,
        data_phase,
        deadline: now + TIMEOUT,
    })
}

fn read(machine: &mut impl Metered, nth: u32) -> Result<(), ThinkTimeError> {
    let (blocks, lba) = (BYTES / 512, u64::from(nth * (BYTES / 512) % BLOCKS));
    let cdb: Cdb = Read { width: CdbWidth::Ten, lba, blocks, ..Read::default() }.encode();
    let data_phase = DataPhase { direction: Direction::In, range: ByteRange::new(0, BYTES) };
    let command = command(machine.now(), CommandBlock::from(cdb).as_bytes(), Some(data_phase))?;
    let finished = run(machine, &command, BYTES)?;
    match &finished.outcome {
        Outcome::Answered(answer) if answer.status == Status::Good && answer.moved == BYTES => Ok(()),
        _ => Err(ThinkTimeError::Failed),
    }
}

fn run(machine: &mut impl Metered, command: &Command, bytes: u32) -> Result<FinishedCommand, ThinkTimeError> {
    machine.submit(0, command, vec![0; bytes as usize]).map_err(|_| ThinkTimeError::Failed)?;
    machine.run().map_err(ThinkTimeError::Stopped)?.ok_or(ThinkTimeError::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::xhci::DriverConfig;

    /// Without driver and controller, and with them but without interrupt moderation, which would
    /// hide other delays.
    fn hosts() -> [Option<Host>; 2] {
        let host = Host::chipset();
        [None, Some(Host { config: DriverConfig { moderation_250ns: 0, ..host.config }, ..host })]
    }

    fn load(host: Option<Host>, pause: Duration, sleep: Option<Sleep>) -> ThinkTimeRun {
        ThinkTimeRun { host, rate: Rate::Gen1, sleep, latency: Duration::from_us(60), pause, commands: 20 }
    }

    /// On a link that is always awake, and on one that may sleep.
    fn outlays(load: ThinkTimeRun) -> [ThinkTimeResult; 2] {
        [None, Some(Sleep::LINUX)].map(|sleep| measure_think_time(&ThinkTimeRun { sleep, ..load }).unwrap())
    }

    #[test]
    fn a_link_without_idle_time_costs_nothing() {
        for host in hosts() {
            let quick = load(host, Duration::from_us(20), None);
            let [awake, sleepy] = outlays(ThinkTimeRun { latency: Duration::from_us(30), ..quick });
            // Enabling link power management takes time and shifts timestamps between packets.
            assert!(sleepy.mean.as_ns().abs_diff(awake.mean.as_ns()) < 20, "{} {}", sleepy.mean, awake.mean);
            assert_eq!(sleepy.link[1..], [Duration::ZERO; 3]);
        }
    }

    #[test]
    fn a_pause_in_u1_costs_10_us_and_saves_power() {
        for host in hosts() {
            let [awake, sleepy] = outlays(load(host, Duration::from_us(500), None));
            // The first packet of a command waits for the link. A timestamp may fall into the rest
            // of a bus interval.
            let more = sleepy.mean.as_ns() - awake.mean.as_ns();
            assert!((9_900..=10_100).contains(&more), "{more} ns");
            assert!(sleepy.energy < awake.energy);
            let [_, u1, u2, exit] = sleepy.link;
            assert!((400..500).contains(&(u1.as_ns() / 20_000)), "{u1}");
            assert_eq!((u2, exit), (Duration::ZERO, Duration::from_us(20 * 10)));
        }
    }

    #[test]
    fn a_long_pause_ends_in_u2_and_costs_2_ms() {
        for host in hosts() {
            let [awake, sleepy] = outlays(load(host, Duration::from_ms(50), None));
            let more = sleepy.mean.as_ns() - awake.mean.as_ns();
            assert!((2_046_900..=2_047_100).contains(&more), "{more} ns");
            let [_, _, u2, exit] = sleepy.link;
            assert_eq!(exit, Duration::from_us(20 * 2_047));
            assert!(u2 > Duration::from_ms(700));
        }
    }

    #[test]
    fn a_device_that_sleeps_while_busy_wakes_twice() {
        let sleep = Sleep { device_refuses_at_work: false, ..Sleep::LINUX };
        for host in hosts() {
            let slow = |sleep| {
                let load = load(host, Duration::from_us(500), Some(sleep));
                measure_think_time(&ThinkTimeRun { latency: Duration::from_us(200), ..load }).unwrap()
            };
            let [refusing, agreeing] = [Sleep::LINUX, sleep].map(slow);
            let more = agreeing.mean.as_ns() - refusing.mean.as_ns();
            assert!((9_900..=10_100).contains(&more), "{more} ns");
        }
    }

    #[test]
    fn times_of_link_and_drive_add_up() {
        for host in hosts() {
            let outlay = measure_think_time(&load(host, Duration::from_ms(1), Some(Sleep::LINUX))).unwrap();
            let [idle, at_work] = outlay.drive;
            assert_eq!(at_work, Duration::from_us(20 * 60));
            assert_eq!(idle + at_work, outlay.elapsed);
            assert_eq!(outlay.link.into_iter().fold(Duration::ZERO, |sum, time| sum + time), outlay.elapsed);
        }
    }
}
