//! Stop Endpoint that meets the end of a TD (xHCI 1.2 clause 4.6.9): each TRB of either side to the
//! byte.
//!
//! The test is the controller: it takes commands from their ring, changes the context as one would,
//! and posts events in the order in which clause 4.6.9 has them: what ended before the stop, where
//! it stopped, and the answer to the command. Where a ring lies is not literal. Slot 1, bulk IN 1,
//! which is endpoint context 3.

use super::*;

/// A TRB that begins with an address.
fn trb(address: u64, rest: [u8; 8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..].copy_from_slice(&rest);
    bytes
}

struct Race {
    fixture: Fixture,
    device: crate::DeviceId,
    /// Where the TRBs of the transfers are, oldest first.
    at: Vec<u64>,
}

impl Race {
    /// Transfers of so many bytes on bulk IN 1, from 1 on.
    fn with(lengths: &[u32]) -> Self {
        let (mut fixture, device) = Fixture::with_device(Config::default());
        fixture.hw.is_mute = true;
        for (id, length) in (1..).zip(lengths) {
            fixture.submit(device, plain_in(), (id, *length)).unwrap();
        }
        let at = fixture.trbs(device, plain_in()).iter().map(|(at, _)| *at).collect();
        fixture.hw.doorbells.clear();
        Self { fixture, device, at }
    }

    /// A transfer is cancelled, upon which a command is there: its bytes, and where it is.
    fn cancel(&mut self, id: u64) -> ([u8; 16], u64) {
        self.fixture.cancel(self.device, plain_in(), id);
        self.command()
    }

    fn command(&mut self) -> ([u8; 16], u64) {
        let (at, bytes) = self.fixture.hw.take_command().expect("a command");
        assert_eq!(self.fixture.hw.take_command(), None);
        (bytes, at)
    }

    fn has_command(&mut self) -> bool {
        self.fixture.hw.take_command().is_some()
    }

    /// Sets the context, posts these events and raises an interrupt.
    fn report(&mut self, state: EndpointState, dequeue: u64, events: &[[u8; 16]]) {
        let slot = self.device.slot();
        self.fixture.hw.set_state(slot, IN, state);
        self.fixture.hw.set_dequeue(slot, IN, 0, (dequeue, true));
        events.iter().for_each(|event| self.fixture.hw.post_raw(*event));
        self.fixture.interrupt();
    }

    fn bytes_at(&mut self, at: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        crate::DmaMemory::read_bytes(&mut self.fixture.hw, at, &mut bytes);
        bytes
    }
}

/// Type 15, endpoint 3, slot 1; cycle bit 1.
const STOP_ENDPOINT: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x3c, 0x03, 0x01];
/// Type 14, of the same; the transfer state is not preserved.
const RESET_ENDPOINT: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x38, 0x03, 0x01];

/// Type 16, of the same; DCS 1, stream 0.
fn set_tr_dequeue(to: u64) -> [u8; 16] {
    trb(to | 1, [0, 0, 0, 0, 0x01, 0x40, 0x03, 0x01])
}

#[test]
fn a_td_that_ends_before_the_stop_is_done_and_the_next_one_runs_on() {
    let mut race = Race::with(&[512, 512]);
    let [first, second] = race.at[..] else { panic!("{:?}", race.at) };
    // Normal: 1000000h, 512 bytes, TD Size 0; cycle, interrupt on short packet and on completion.
    let normal = [0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0x25, 0x04, 0, 0];
    assert_eq!([first, second].map(|at| race.bytes_at(at)), [normal; 2]);
    let (command, at) = race.cancel(1);
    assert_eq!(command, STOP_ENDPOINT);
    race.report(
        EndpointState::Stopped,
        second,
        &[
            // Transfer event: Success, nothing left.
            trb(first, [0, 0, 0, 0x01, 0x01, 0x80, 0x03, 0x01]),
            // Stopped - Length Invalid: it has not begun with the second. What it says of a length
            // means nothing.
            trb(second, [0xad, 0xde, 0, 0x1b, 0x01, 0x80, 0x03, 0x01]),
            // Command completion event: Success.
            trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01]),
        ],
    );
    assert_eq!(race.fixture.completions(), [(1, Done, 512)]);
    // Nothing is to be moved: the doorbell of endpoint 3, and the second ends as any.
    assert!(!race.has_command());
    assert_eq!(race.fixture.hw.doorbells, [(1, 3)]);
    race.report(
        EndpointState::Running,
        second,
        &[trb(second, [0xf4, 0x01, 0, 0x0d, 0x01, 0x80, 0x03, 0x01])],
    );
    // Short packet, 500 left.
    assert_eq!(race.fixture.completions(), [(2, Short, 12)]);
    assert_eq!(race.fixture.xhci.counters(), crate::Counters::default());
}

#[test]
fn a_stall_before_the_stop_is_answered_by_context_state_error_and_a_reset() {
    let mut race = Race::with(&[512, 512]);
    let [first, second] = race.at[..] else { panic!("{:?}", race.at) };
    let (command, at) = race.cancel(2);
    assert_eq!(command, STOP_ENDPOINT);
    race.report(
        EndpointState::Halted,
        first,
        &[
            // Stall Error, 512 left.
            trb(first, [0x00, 0x02, 0, 0x06, 0x01, 0x80, 0x03, 0x01]),
            // Context State Error: a halted endpoint cannot be stopped.
            trb(at, [0, 0, 0, 0x13, 0x01, 0x84, 0, 0x01]),
        ],
    );
    assert_eq!(race.fixture.completions(), [(1, Stall, 0)]);
    let (command, at) = race.command();
    assert_eq!(command, RESET_ENDPOINT);
    race.report(EndpointState::Stopped, first, &[trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01])]);
    // Past both: the first has ended, the second is cancelled.
    let (command, at) = race.command();
    assert_eq!(command, set_tr_dequeue(second + 16));
    assert_eq!(race.fixture.completions(), [], "the controller may be in it until it was moved");
    race.report(EndpointState::Stopped, second + 16, &[trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01])]);
    assert_eq!(race.fixture.completions(), [(2, Cancelled, 0)]);
    assert!(!race.has_command());
    assert_eq!(race.fixture.hw.doorbells, [], "the device has not cleared its halt");
    assert_eq!(race.fixture.xhci.counters().stop_races, 1);
}

#[test]
fn a_td_that_is_stopped_before_its_second_trb_has_moved_the_first() {
    let mut race = Race::with(&[0x2_0000]);
    let [first, second] = race.at[..] else { panic!("{:?}", race.at) };
    // 65,536 bytes each, the first chained to the other. 64 packets are left behind it, and TD Size
    // says 31 at most.
    assert_eq!(race.bytes_at(first), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x3f, 0, 0x15, 0x04, 0, 0]);
    assert_eq!(race.bytes_at(second), [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0x01, 0, 0x25, 0x04, 0, 0]);
    let (command, at) = race.cancel(1);
    assert_eq!(command, STOP_ENDPOINT);
    race.report(
        EndpointState::Stopped,
        second,
        &[
            // Stopped - Length Invalid.
            trb(second, [0xff, 0xff, 0xff, 0x1b, 0x01, 0x80, 0x03, 0x01]),
            trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01]),
        ],
    );
    let (command, at) = race.command();
    assert_eq!(command, set_tr_dequeue(second + 16));
    race.report(EndpointState::Stopped, second + 16, &[trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01])]);
    assert_eq!(race.fixture.completions(), [(1, Cancelled, 0x1_0000)]);
    assert!(!race.has_command());
}

#[test]
fn a_td_that_is_stopped_behind_a_short_packet_has_moved_what_the_event_reports() {
    let mut race = Race::with(&[0x2_0000]);
    let second = race.at[1];
    let (_, at) = race.cancel(1);
    race.report(
        EndpointState::Stopped,
        second,
        &[
            // Stopped - Short Packet: 291 bytes of the whole TD.
            trb(second, [0x23, 0x01, 0, 0x1c, 0x01, 0x80, 0x03, 0x01]),
            trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01]),
        ],
    );
    let (command, at) = race.command();
    assert_eq!(command, set_tr_dequeue(second + 16));
    race.report(EndpointState::Stopped, second + 16, &[trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01])]);
    assert_eq!(race.fixture.completions(), [(1, Cancelled, 291)]);
}

#[test]
fn a_td_that_the_controller_has_passed_and_reports_too_late_is_cancelled_once() {
    let mut race = Race::with(&[512, 512]);
    let [first, second] = race.at[..] else { panic!("{:?}", race.at) };
    let (_, at) = race.cancel(1);
    // The answer comes without the event of what has ended, which no clause allows.
    race.report(EndpointState::Stopped, second, &[trb(at, [0, 0, 0, 0x01, 0x01, 0x84, 0, 0x01])]);
    assert_eq!(race.fixture.completions(), [(1, Cancelled, 0)]);
    assert!(!race.has_command(), "the ring is not moved back to it, nor past the second");
    // It has become a no-op (type 8) that reports its end, in case the controller has not passed it.
    assert_eq!(race.bytes_at(first), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x20, 0, 0]);
    assert_eq!(race.fixture.hw.doorbells, [(1, 3)]);
    race.report(
        EndpointState::Running,
        second,
        &[
            trb(first, [0, 0, 0, 0x01, 0x01, 0x80, 0x03, 0x01]),
            trb(second, [0, 0, 0, 0x01, 0x01, 0x80, 0x03, 0x01]),
        ],
    );
    assert_eq!(race.fixture.completions(), [(2, Done, 512)]);
}
