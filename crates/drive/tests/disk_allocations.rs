//! A session in steady state takes nothing from the heap, whatever its requests are: disk, transport, bus and drive.

use bus::Speed;
use initiator::disk::Operation;
use initiator::session::Session;
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{Timeouts, Transport};
use testkit::drive::ram_drive;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{LoopbackBus, plug};
use units::{Extent, Instant};

const NOW: Instant = Instant::ZERO;
const SLOTS: u16 = 14;

fn identified<T: Transport>(transport: T, drive: Drive) -> Session<LoopbackBus, T> {
    testkit::disk::identified(transport, drive, SLOTS, 64 << 10)
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
    let mut drive = ram_drive(Speed::Super, 16);
    let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
    let mut session = identified(uas, drive);
    go_round(&mut session, 20);
    assert_eq!(allocation_counter::measure(|| go_round(&mut session, 1000)).count_total, 0);
}

#[test]
fn nothing_is_allocated_for_a_merged_request() {
    let mut drive = ram_drive(Speed::Super, 16);
    let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let mut session =
        identified(Turbo::new(TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) }), drive);
    go_round(&mut session, 20);
    assert_eq!(allocation_counter::measure(|| go_round(&mut session, 1000)).count_total, 0);
}
