//! Traces of machines with a controller: entries and times.

use super::*;
use crate::engine::{Trace, TraceEntry};
use std::cell::RefCell;
use std::rc::Rc;

/// Time, component, text.
type Note = (Instant, &'static str, String);

/// Recorded entries.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<Note>>>);

impl Trace for Shared {
    fn record(&mut self, entry: TraceEntry<'_>) {
        self.0.borrow_mut().push((entry.at, entry.component, entry.text.to_string()));
    }
}

/// Reads a block, with any outcome.
fn run(machine: &mut XhciMachine, slot: u16) {
    machine.submit(0, &command(slot, false, 0, 1), room(1)).unwrap();
    assert!(matches!(machine.run(), Ok(Some(_))));
}

/// Returns the trace of a read, with times from its submission.
fn noted(mut machine: XhciMachine) -> Vec<Note> {
    // The first command returns the power-on unit attention.
    run(&mut machine, 0);
    let shared = Shared::default();
    machine.trace_to(Box::new(shared.clone()));
    let begun = machine.engine.now();
    run(&mut machine, 1);
    let notes = shared.0.take();
    notes.into_iter().map(|(at, who, text)| (Instant::ZERO + (at - begun), who, text)).collect()
}

/// A card takes 250 ns for a doorbell, 800 for a read of memory, 350 for a write, and 2,437 ps for
/// a byte; interrupts are 40 us apart.
#[test]
fn a_bot_read_is_traced_with_doorbells_and_memory_accesses() {
    let notes = noted(on_bot(Part::CARD));
    let said: Vec<_> = notes.iter().filter(|(_, who, _)| *who == "xhci").map(short).collect();
    let events = "event TRB: transfer event: success, slot 1 endpoint context";
    assert_eq!(
        said,
        [
            (0, "doorbell of slot 1: endpoint context 4".to_owned()),
            // 250 + 800 for the TRB + 800 for what goes out.
            (1_850_000, "slot 1 endpoint 4, stream 0: TRB: normal 31 bytes".to_owned()),
            // CBW: 63 symbols in 126 ns and 5 of cable, 200 of the device; ACK: 20 symbols and the
            // cable, 45 ns. The event: 16 bytes in 38,992 ps, and 350 ns.
            (1_850_000 + 126_000 + 205_000 + 45_000 + 38_992 + 350_000, format!("{events} 4")),
            // The next interrupt is 40 us after the last, and the doorbell follows it.
            (40_000_000, "doorbell of slot 1: endpoint context 3".to_owned()),
            (41_050_000, "slot 1 endpoint 3, stream 0: TRB: normal 4096 bytes".to_owned()),
            // The ACK that asks: 200 ns of the card, 45 on the way, 200 of the device; a packet
            // takes 2,112 and 5 of cable. Four of them, 2,495,488 ps each, follow each other to
            // memory, and the event them.
            (
                41_050_000 + 200_000 + 45_000 + 200_000 + 2_117_000 + 4 * 2_495_488 + 38_992 + 350_000,
                format!("{events} 3"),
            ),
            (80_000_000, "doorbell of slot 1: endpoint context 3".to_owned()),
            (81_050_000, "slot 1 endpoint 3, stream 0: TRB: normal 13 bytes".to_owned()),
            // CSW is 45 symbols, 90 ns and 5 of cable, and 13 bytes to memory.
            (
                81_050_000 + 200_000 + 45_000 + 200_000 + 95_000 + 13 * 2_437 + 38_992 + 350_000,
                format!("{events} 3"),
            ),
        ]
    );
}

/// A note's time in picoseconds, and its text without addresses and what is behind them.
fn short((at, _, text): &Note) -> (u64, String) {
    let (said, _) = text.split_once(" at 0x").unwrap_or((text, ""));
    let kind = text.split_once(": normal ").map(|(_, rest)| rest.split(" at ").next().unwrap_or(rest));
    (at.as_ps(), kind.map_or_else(|| said.to_owned(), |kind| format!("{said}: normal {kind}")))
}

#[test]
fn trace_entries_are_in_time_order() {
    let bridge = |protocol| enclosure::power_on(&enclosure::BRIDGE, protocol);
    for machine in [on_bot(Part::CARD), on_uas(Part::CHIPSET), bridge(Protocol::Bot), bridge(Protocol::Uas)] {
        let notes = noted(machine);
        assert!(notes.is_sorted_by_key(|(at, ..)| *at), "{notes:#?}");
    }
    for of in [Drive::bot(), Drive::uas()] {
        let notes = noted(on_bus(Part::CHIPSET, usb2::Rate::High, of));
        assert!(notes.is_sorted_by_key(|(at, ..)| *at), "{notes:#?}");
    }
}
