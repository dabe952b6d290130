//! Commands of a CD, DVD or BD drive (MMC-6) that a disk does not have: one file per group of commands.
//!
//! The disc is one session with one data track, of mode 1 on a CD, and cannot be written. Its size says what it is
//! ([`disc`]). INQUIRY, MODE SENSE, READ, START STOP UNIT and their kin are those of a disk.
//!
//! Left out: audio, subchannels, raw sectors, regions and keys, changers, and everything that writes.

pub(super) mod capacities;
pub(super) mod configuration;
pub mod disc;
pub(super) mod events;
pub(super) mod information;
pub(super) mod mechanism;
pub(super) mod performance;
pub(super) mod read_cd;
pub(super) mod removal;
pub(super) mod structure;
#[cfg(test)]
mod tests;
pub(super) mod toc;

use super::plan::{Decision, fields, settle};
use super::row::{Needs, PlanFn, Row};
use super::{Context, LogicalUnit, Plan};
use wire::scsi::sense::Sense;
use wire::{NoRoom, Writer};

/// A command without a later step that ends within a second.
const fn brief(usage: &'static [u8], needs: Needs, plan: PlanFn) -> Row {
    Row { usage, needs, timeout_s: 1, plan, on_list: None, on_medium: None }
}

/// Bytes as the reply, cut at the allocation length.
fn reply(context: &mut Context<'_>, allocation_len: u16, parts: &[&[u8]]) -> Plan {
    context.reply.fill(allocation_len.into(), |out| put(out, parts))
}

fn put(out: &mut [u8], parts: &[&[u8]]) -> Result<usize, NoRoom> {
    let mut writer = Writer::new(out);
    parts.iter().try_for_each(|part| writer.put(part))?;
    Ok(writer.written())
}

/// INVALID FIELD IN CDB at bit 7 or below of a byte.
fn refused(byte: u16, bit: u8) -> Sense {
    Sense::invalid_field_in_cdb(byte, Some(bit))
}

/// Blocks of the disc. More than a CDB can address are refused before a drive has them.
fn blocks(unit: &LogicalUnit) -> u32 {
    u32::try_from(unit.config.capacity.0).unwrap_or(u32::MAX)
}
