//! A disk on a drive in memory.

use ::drive::Drive;
use ::drive::loopback::LoopbackBus;
use initiator::Transport;
use initiator::disk::{AskTemperature, DiskConfig};
use initiator::session::{Session, SessionBuffers, SessionConfig};
use initiator::turbo::TRANSFER_BYTES;
use units::Instant;

/// Joins a transport, a drive and a disk, and identifies that. Each slot has as many bytes; a command moves 32 KiB at most.
pub fn identified<T: Transport>(
    transport: T,
    drive: Drive,
    slots: u16,
    slot_bytes: u32,
) -> Session<LoopbackBus, T> {
    let config =
        SessionConfig { merged_bytes: TRANSFER_BYTES, slots, slot_bytes, ..SessionConfig::of(&transport) };
    let disk =
        DiskConfig { requests_max: slots, report_luns: true, ..DiskConfig::new(config.commands, 32 << 10) };
    let mut bus = LoopbackBus::new(drive);
    let buffers = SessionBuffers::new(bus.allocate(SessionBuffers::blocks(&config)), &config);
    let mut session = Session::new(disk, transport, bus, buffers);
    session.identify(Instant::ZERO, AskTemperature::Not);
    run(&mut session);
    assert_eq!(session.take_identified(), Some(Ok(())));
    session
}

/// Carries everything out until nothing is left to happen.
pub fn run<T: Transport>(session: &mut Session<LoopbackBus, T>) {
    while session.disk().commands_in_flight() > 0 || session.disk().in_flight() > 0 {
        session.settle(Instant::ZERO);
        session.bus_mut().run_once();
        session.settle(Instant::ZERO);
    }
}
