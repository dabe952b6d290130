//! Both transports packet by packet: data integrity and exact times.

mod endings;
mod streams;
mod turns;

use super::fixture::{BLOCK, BLOCKS, command, plain, write_and_read};
use super::*;
use crate::link::superspeed::Rate;
use crate::link::usb2;

/// One connection of each kind.
const CONNECTIONS: [Connection; 2] = [
    Connection::SuperSpeed(Rate::Gen1),
    Connection::Usb2 { rate: usb2::Rate::High, hubs: 1, pacing: PACING },
];
const PACING: usb2::Pacing = usb2::Pacing { gap: Duration::from_ns(500), after_nak: Duration::from_us(200) };

fn pattern(seed: u32) -> Vec<u8> {
    fixture::pattern(seed, 3)
}

fn ask<T: Transport>(machine: &mut DirectMachine<T>, command: &Command, buffer: Vec<u8>) -> Vec<u8> {
    fixture::ask(machine, 0, command, buffer)
}

fn first<T: Transport>(machine: &mut DirectMachine<T>) {
    fixture::first(machine, 0);
}

#[test]
fn a_trace_of_a_bus_has_each_packet_when_it_begins() {
    #[derive(Clone, Default)]
    struct Shared(std::rc::Rc<std::cell::RefCell<Vec<(u64, String)>>>);
    impl crate::engine::Trace for Shared {
        fn record(&mut self, entry: crate::engine::TraceEntry<'_>) {
            if entry.component == "host" || entry.component == "device" {
                self.0.borrow_mut().push((entry.at.as_ps() / 1_000, entry.text.to_string()));
            }
        }
    }
    let plain = plain(Duration::from_us(20), 4);
    let connection = Connection::from(usb2::Rate::High);
    let device = plain.device_with(device::Transports::Dual, connection.speed());
    let mut machine = DirectMachine::new(connection, bot(device).unwrap(), plain);
    let shared = Shared::default();
    machine.trace_to(Box::new(shared.clone()));
    first(&mut machine);
    let lines = shared.0.borrow();
    // A start of frame of 19 bytes at 480 Mb/s; then the token, of whose transaction 19 bytes are
    // before the data; the CBW of 31.
    let begins: Vec<u64> = lines.iter().take(3).map(|(at, _)| *at).collect();
    assert_eq!(begins[0], 316, "{lines:?}");
    assert!(lines[0].1.starts_with("OUT ") && lines[1].1.starts_with("DATA0"), "{lines:?}");
    assert!(begins.is_sorted_by(|before, after| before < after), "{lines:?}");
}

#[test]
fn reads_return_written_data_on_both_transports() {
    let plain = plain(Duration::from_us(20), 4);
    for connection in CONNECTIONS {
        let device = || plain.device_with(device::Transports::Dual, connection.speed());
        let on_uas = || DirectMachine::new(connection, uas(device(), None).unwrap(), plain.clone());
        let on_bot = || DirectMachine::new(connection, bot(device()).unwrap(), plain.clone());
        let digests = [write_and_read(&mut on_uas(), 0), write_and_read(&mut on_bot(), 0)];
        assert_eq!(write_and_read(&mut on_uas(), 0), digests[0], "equal machines have equal digests");
        assert_ne!(digests[0], digests[1]);
    }
}
