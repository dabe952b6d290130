//! A session in steady state takes nothing from the heap, whatever its requests are: disk, transport, bus and drive.

mod drive;

use initiator::disk::{AskTemperature, DiskConfig, Operation};
use initiator::session::{Session, SessionBuffers, SessionConfig};
use initiator::turbo::{LookAhead, TRANSFER_BYTES, Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use uaskit_drive::loopback::{LoopbackBus, plug};
use uaskit_drive::medium::RamMedium;
use units::{BlockSize, ByteCount, Extent, Instant};

const NOW: Instant = Instant::ZERO;
const SLOTS: u16 = 14;

fn ram_drive() -> uaskit_drive::Drive {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("1 MiB");
    drive::drive(bus::Speed::Super, 16, Box::new(medium))
}

/// An identified disk.
fn identified<T: Transport>(transport: T, drive: uaskit_drive::Drive) -> Session<LoopbackBus, T> {
    let config = SessionConfig {
        merged_bytes: TRANSFER_BYTES,
        slots: SLOTS,
        slot_bytes: 64 << 10,
        ..SessionConfig::of(&transport)
    };
    let disk = DiskConfig { requests_max: SLOTS, ..DiskConfig::new(config.commands, 16 << 10) };
    let mut bus = LoopbackBus::new(drive);
    let buffers = SessionBuffers::new(bus.allocate(SessionBuffers::blocks(&config)), &config);
    let mut session = Session::new(disk, transport, bus, buffers);
    session.identify(NOW, AskTemperature::Not);
    while session.take_identified().is_none() {
        session.settle(NOW);
        session.bus_mut().run_once();
    }
    session
}

/// Reads and writes in all slots: neighbours, and some longer than a command.
fn go_round<T: Transport>(session: &mut Session<LoopbackBus, T>, rounds: u64) {
    for round in 0..rounds {
        for slot in 0..SLOTS {
            let operation = match (round + u64::from(slot) / 4) % 2 {
                0 => Operation::Read { fua: false, dpo: false, may_be_short: false },
                _ => Operation::Write { fua: true, dpo: false },
            };
            let blocks = if slot % 5 == 4 { 96 } else { 8 };
            session
                .submit(NOW, slot, operation, Extent::new(u64::from(slot) * 96, blocks))
                .expect("there is room");
        }
        let mut finished = 0;
        while finished < SLOTS {
            session.settle(NOW);
            session.bus_mut().run_once();
            session.settle(NOW);
            while let Some(ended) = session.poll() {
                assert!(ended.result.is_ok(), "{ended:?}");
                finished += 1;
            }
        }
    }
}

#[test]
fn nothing_is_allocated_for_a_request() {
    let mut drive = ram_drive();
    let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
    let mut session = identified(uas, drive);
    go_round(&mut session, 20);
    assert_eq!(allocation_counter::measure(|| go_round(&mut session, 1000)).count_total, 0);
}

#[test]
fn nothing_is_allocated_for_a_merged_request() {
    let mut drive = ram_drive();
    let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let mut session =
        identified(Turbo::new(TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) }), drive);
    go_round(&mut session, 20);
    assert_eq!(allocation_counter::measure(|| go_round(&mut session, 1000)).count_total, 0);
}
