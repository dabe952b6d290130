//! The contribution of commands to the digest: identity, outcome, and payload samples.
//!
//! Payload is sampled: the first word of every [`SAMPLED_BYTES`], which holds the block number
//! where blocks have one. Packets are added by the links.

use super::FinishedCommand;
use crate::engine::{Engine, Event};
use initiator::{Command, Outcome};
use wire::usb::Direction;

/// Sampling interval: the smallest block.
const SAMPLED_BYTES: usize = 512;

/// Used when the drive returned no status.
const NO_STATUS: u64 = 256;

/// Adds a submitted command and the data that it writes.
pub(super) fn begin<E: Event>(engine: &mut Engine<E>, drive: usize, command: &Command, buffer: &[u8]) {
    engine.mix(drive as u64);
    engine.mix(command.id.slot.into());
    words(engine, command.cdb.as_bytes().chunks(8));
    if let Some(phase) = command.data_phase.filter(|phase| phase.direction == Direction::Out) {
        words(engine, buffer[phase.range.as_usize()].chunks(SAMPLED_BYTES));
    }
}

/// Adds a completed command.
pub(super) fn end<E: Event>(engine: &mut Engine<E>, finished: &FinishedCommand) {
    let FinishedCommand { drive, id, outcome, buffer } = finished;
    let (status, moved) = match outcome {
        Outcome::Answered(answer) => (u8::from(answer.status).into(), answer.moved),
        _ => (NO_STATUS, 0),
    };
    for word in [*drive as u64, id.slot.into(), status, moved.into()] {
        engine.mix(word);
    }
    words(engine, buffer[..buffer.len().min(moved as usize)].chunks(SAMPLED_BYTES));
}

/// Adds the first word of each chunk.
fn words<'a, E: Event>(engine: &mut Engine<E>, chunks: impl Iterator<Item = &'a [u8]>) {
    for chunk in chunks {
        let mut word = [0; 8];
        let bytes = chunk.len().min(word.len());
        word[..bytes].copy_from_slice(&chunk[..bytes]);
        engine.mix(u64::from_le_bytes(word));
    }
}
