//! A unit and a transport that answer randomly: every request ends once with a correct result.

use super::super::*;
use super::fixture::Fixture;
use super::unit::Unit;
use crate::{Answer, Failure, SenseBytes};
use alloc::vec;
use alloc::vec::Vec;
use bus::Direction;
use proptest::prelude::*;
use units::{Duration, Extent};

const FAILURES: [Failure; 7] = [
    Failure::TimedOut,
    Failure::Reset,
    Failure::Stalled,
    Failure::Babble,
    Failure::Bus,
    Failure::PhaseError,
    Failure::BadStatus,
];

/// Numbers that decide; when they are used up everything goes well.
struct Dice(Vec<u32>);

impl Dice {
    fn roll(&mut self) -> u32 {
        self.0.pop().unwrap_or(u32::MAX)
    }

    /// Whether something that happens once in `n` times does.
    fn one_in(&mut self, n: u32) -> bool {
        self.roll().is_multiple_of(n)
    }

    /// How a command ends that asked for `expected` bytes; `None` leaves it to the unit.
    fn outcome(&mut self, expected: u32) -> Option<Outcome> {
        let roll = self.roll();
        let [kind, key, asc, ascq] = roll.to_be_bytes();
        let sense = |bytes: &[u8]| SenseBytes::new(bytes);
        let with = |status: u8, moved: u32, sense: SenseBytes| {
            let status_qualifier = u16::from(ascq);
            Some(Outcome::Answered(Answer { status: status.into(), status_qualifier, moved, sense }))
        };
        match kind {
            0..=0x0f => with(asc, 0, SenseBytes::NONE),
            0x10..=0x2f => {
                let fixed =
                    [0x70 | key >> 7, 0, key & 0x0f, 0, 0, 0, 1, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0];
                with(0x02, expected.min(u32::from(ascq) << 8), sense(&fixed))
            }
            // The senses that are met with in life.
            0x30..=0x6f => {
                let (key, asc, ascq) =
                    [(6, 0x29, 0), (6, 0x2a, 9), (2, 4, 1), (2, 4, 2), (0xb, 0x47, 0)][usize::from(key) % 5];
                with(0x02, 0, sense(&[0x72, key, asc, ascq, 0, 0, 0, 0]))
            }
            0x70..=0x7f => with(0x00, expected.saturating_sub(u32::from(ascq)), SenseBytes::NONE),
            0x80..=0x8f => Some(Outcome::Failed(FAILURES[usize::from(key) % FAILURES.len()])),
            0x90..=0x97 => with(0x08, 0, SenseBytes::NONE),
            0x98 if ascq > 0xe0 => Some(Outcome::Failed(Failure::Disconnected)),
            _ => None,
        }
    }
}

fn operation(choice: u8) -> Operation {
    match choice % 8 {
        0 | 1 => Operation::Read { fua: choice & 8 != 0, dpo: false, may_be_short: choice & 16 != 0 },
        2 | 3 => Operation::Write { fua: choice & 8 != 0, dpo: choice & 16 != 0 },
        4 => Operation::Flush,
        5 => Operation::Unmap,
        6 => Operation::Zero { may_unmap: choice & 8 != 0 },
        _ => Operation::WriteSame,
    }
}

/// Carries one command out, wholly or not: what is not claimed to have been moved may not have
/// been.
fn carry_out(
    fixture: &mut Fixture,
    command: &Command,
    memory: Memory,
    dice: &mut Dice,
) -> (Outcome, Vec<u8>) {
    let expected = command.transfer_len();
    let Some(outcome) = dice.outcome(expected) else {
        return fixture.execute(command, memory);
    };
    let moved = if let Outcome::Answered(answer) = &outcome { answer.moved } else { 0 };
    let reads = command.data_phase.is_some_and(|phase| phase.direction == Direction::In);
    if (moved == 0 || !reads) && moved < expected && dice.one_in(2) {
        return (outcome, Vec::new());
    }
    let (honest, answer) = fixture.execute(command, memory);
    if !honest.is_good() {
        return (honest, answer);
    }
    if let (Memory::Request(id), Some(phase)) = (memory, command.data_phase)
        && phase.direction == Direction::In
        && let Some(buffer) = fixture.buffers.get_mut(&id)
    {
        buffer[phase.range.as_usize()][moved as usize..].fill(0xaa);
    }
    (outcome, answer)
}

/// Carries everything out by dice until nothing is left to happen.
fn run(fixture: &mut Fixture, dice: &mut Dice) -> Result<(), TestCaseError> {
    for _ in 0..100_000 {
        fixture.drain();
        prop_assert!(fixture.in_flight.len() <= 4, "more commands than the depth");
        if fixture.in_flight.is_empty() {
            if !fixture.pass_time() {
                return Ok(());
            }
            continue;
        }
        let at = dice.roll() as usize % fixture.in_flight.len();
        let (command, memory) = fixture.in_flight.remove(at);
        if dice.one_in(61) {
            fixture.disk.handle_refusal(fixture.now, command.id, Refusal::Full);
            continue;
        }
        let (outcome, mut answer) = carry_out(fixture, &command, memory, dice);
        if memory == Memory::Answer && dice.one_in(37) {
            answer.iter_mut().for_each(|byte| *byte ^= dice.roll() as u8);
        }
        fixture.now = fixture.now + Duration::from_us(u64::from(dice.roll() % 1000));
        fixture.disk.handle_outcome(fixture.now, command.id, &outcome, &answer);
        if dice.one_in(41) {
            fixture.disk.abort(fixture.now, RequestId(u64::from(dice.roll() % 8)));
        }
    }
    Err(TestCaseError::fail("the disk does not come to an end"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_request_ends_once_and_rightly_whatever_the_unit_says(
        identify_dice in prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u32>(), 0..40)],
        dice in prop::collection::vec(any::<u32>(), 0..600),
        requests in prop::collection::vec((any::<u8>(), 0u64..100, 0u64..100), 1..8),
        unit_choice: [bool; 6], exponent in 0u8..5, runs in 0u32..6, depth in 1u16..5, unmaps: bool,
        transfer in prop::sample::select(vec![1, 4 << 10, 16 << 10, 1 << 20]),
    ) {
        let [old, protected, dpo_fua, write_cache, six, no_same] = unit_choice;
        let version = if old { 0 } else { 6 };
        let unit = Unit { version, write_protected: protected && old, dpo_fua, write_cache, exponent, ..Unit::new() };
        let mut unit = Unit { missing: if six { vec![0x28, 0x2a] } else { vec![] }, ..unit };
        unit.limits.maximum_unmap_block_descriptor_count = runs;
        unit.missing.extend([0x41, 0x93].into_iter().filter(|_| no_same));
        let config = DiskConfig { requests_max: 8, ..DiskConfig::new(depth, transfer) };
        let mut fixture = Fixture::new(unit, config);
        fixture.disk.start(fixture.now);
        run(&mut fixture, &mut Dice(identify_dice))?;
        prop_assert!(!fixture.identified.is_empty());
        if fixture.disk.geometry().is_none_or(|geometry| geometry.capacity.0 < 1024) {
            return Ok(());
        }

        // Each request has a separate range of 100 blocks, so that their order does not matter.
        let mut taken = Vec::new();
        for (id, (choice, from, blocks)) in (0u64..).zip(requests) {
            let extent = Extent::new(id * 100 + from, blocks.min(100 - from));
            let operation = if unmaps && choice < 200 { Operation::Unmap } else { operation(choice) };
            let request = Request { id: RequestId(id), operation, extent };
            if fixture.disk.submit(fixture.now, request).is_ok() {
                let bytes = request.buffer_bytes(fixture.disk.geometry().unwrap().block_size).unwrap();
                fixture.buffers.insert(request.id, vec![id as u8; bytes as usize]);
                taken.push(request);
            }
        }
        run(&mut fixture, &mut Dice(dice))?;
        prop_assert_eq!((fixture.disk.in_flight(), fixture.disk.commands_in_flight()), (0, 0));
        prop_assert_eq!(fixture.finished.len(), taken.len());

        for request in taken {
            let (_, result) = fixture.finished.iter().find(|(id, _)| *id == request.id).unwrap();
            let Ok(Done { moved }) = *result else { continue };
            let start = request.extent.lba.0 as usize * 512;
            let blocks = &fixture.unit.blocks[start..start + request.extent.blocks.0 as usize * 512];
            let buffer = &fixture.buffers[&request.id];
            match request.operation {
                Operation::Read { may_be_short, .. } => {
                    prop_assert!(may_be_short || moved as usize == buffer.len());
                    prop_assert_eq!(&buffer[..moved as usize], &blocks[..moved as usize]);
                }
                Operation::Write { .. } => {
                    prop_assert_eq!(moved as usize, buffer.len());
                    prop_assert!(blocks == buffer);
                }
                Operation::WriteSame => prop_assert!(blocks.iter().all(|&byte| byte == request.id.0 as u8)),
                Operation::Zero { .. } | Operation::Unmap => prop_assert!(blocks.iter().all(|&byte| byte == 0)),
                Operation::Flush => {}
            }
        }
    }
}
