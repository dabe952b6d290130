//! GET LBA STATUS (SBC-4 clause 5.6).
//!
//! The medium is asked run by run, until the allocation length, the medium or [`DESCRIPTORS_MAX`] ends it. Runs of
//! the same kind that follow each other are reported as one. Descriptors gather in the reply; its header comes last.

use super::{Decision, existing, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit, MediumPlan, Plan};
use crate::medium::{MediumDone, MediumOp};
use units::{BlockCount, Extent};
use wire::scsi::block::{LbaStatusDescriptor, LbaStatusHeader, ProvisioningStatus};
use wire::scsi::cdb::GetLbaStatus;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

pub(in crate::lun) const GET_LBA_STATUS: Row = Row {
    usage: &[0x9e, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x04],
    needs: Needs::READ,
    timeout_s: 30,
    plan: |context, cdb| settle(start(context, cdb)),
    on_list: None,
    on_medium: Some(|context, cdb, _, done| settle(gather(context, cdb, done))),
};

/// Descriptors that one command gives at most; what is past them the host asks for again.
const DESCRIPTORS_MAX: usize = 256;

fn start(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(GetLbaStatus::decode(cdb))?;
    if command.report_type != 0 {
        return Err(Sense::invalid_field_in_cdb(14, None));
    }
    existing(context.unit, command.lba, 1)?;
    context.reply.clear();
    Ok(ask(context.unit, command.lba))
}

fn ask(unit: &LogicalUnit, lba: u64) -> Plan {
    Plan::Medium(MediumPlan::bare(MediumOp::Status, Extent::new(lba, unit.config.capacity.0 - lba)))
}

fn gather(context: &mut Context<'_>, cdb: &[u8], done: MediumDone) -> Decision {
    let command = fields(GetLbaStatus::decode(cdb))?;
    let MediumDone::Provisioning { mapped, blocks } = done else {
        return Err(Sense::new(SenseKey::HardwareError, AdditionalSense::INTERNAL_TARGET_FAILURE));
    };
    let capacity = context.unit.config.capacity.0;
    let last = context.reply.as_bytes().rchunks(LbaStatusDescriptor::LEN).next();
    let last = last.and_then(|bytes| LbaStatusDescriptor::decode(bytes).ok());
    let lba = last.map_or(command.lba, |last| last.lba + u64::from(last.blocks));
    let descriptor =
        describe(lba, mapped, BlockCount(blocks.0.clamp(1, capacity.saturating_sub(lba).max(1))));
    match last.and_then(|last| joined(last, descriptor)) {
        Some(joined) => {
            context.reply.truncate(context.reply.as_bytes().len() - LbaStatusDescriptor::LEN);
            context.reply.append(&joined.encode());
        }
        None => context.reply.append(&descriptor.encode()),
    }
    let next = descriptor.lba + u64::from(descriptor.blocks);
    if next < capacity && has_room(context.reply.as_bytes().len(), command.allocation_len) {
        return Ok(ask(context.unit, next));
    }
    let descriptors = context.reply.take();
    Ok(context.reply.fill(command.allocation_len, |out| LbaStatusHeader::encode_list(&descriptors, out)))
}

/// Whether another descriptor would reach the host in full. The last one may still grow, but only while there is
/// room for one that cannot be joined to it.
fn has_room(gathered_len: usize, allocation_len: u32) -> bool {
    let with_another = LbaStatusHeader::LEN + gathered_len + LbaStatusDescriptor::LEN;
    with_another <= allocation_len as usize && gathered_len < DESCRIPTORS_MAX * LbaStatusDescriptor::LEN
}

fn describe(lba: u64, mapped: bool, blocks: BlockCount) -> LbaStatusDescriptor {
    LbaStatusDescriptor {
        lba,
        blocks: u32::try_from(blocks.0).unwrap_or(u32::MAX),
        provisioning: if mapped { ProvisioningStatus::Mapped } else { ProvisioningStatus::Deallocated },
        additional_status: 0,
    }
}

fn joined(first: LbaStatusDescriptor, second: LbaStatusDescriptor) -> Option<LbaStatusDescriptor> {
    let blocks = first.blocks.checked_add(second.blocks)?;
    (first.provisioning == second.provisioning).then_some(LbaStatusDescriptor { blocks, ..first })
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{MediumPlan, Plan};
    use crate::medium::{MediumDone, MediumOp};
    use units::{BlockCount, Extent};
    use wire::scsi::sense::{AdditionalSense, Sense};

    const fn cdb(lba: u8, allocation_len: u8) -> [u8; 16] {
        [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, allocation_len, 0, 0]
    }

    fn asks(lba: u64) -> Plan {
        Plan::Medium(MediumPlan::bare(MediumOp::Status, Extent::new(lba, 2048 - lba)))
    }

    fn run(mapped: bool, blocks: u64) -> MediumDone {
        MediumDone::Provisioning { mapped, blocks: BlockCount(blocks) }
    }

    #[test]
    fn room_for_one_descriptor_gets_one() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&cdb(9, 24)), asks(9));
        assert_eq!(fixture.run_medium(&cdb(9, 24), run(true, 3)), Plan::Reply);
        let expected = [0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0];
        assert_eq!(fixture.reply(), expected);
    }

    #[test]
    fn runs_are_reported_up_to_the_end_and_like_ones_joined() {
        let mut fixture = Fixture::new();
        let cdb = cdb(0, 255);
        assert_eq!(fixture.run(&cdb), asks(0));
        assert_eq!(fixture.run_medium(&cdb, run(true, 10)), asks(10));
        assert_eq!(fixture.run_medium(&cdb, run(false, 5)), asks(15));
        assert_eq!(fixture.run_medium(&cdb, run(false, 5)), asks(20));
        assert_eq!(fixture.run_medium(&cdb, run(true, 2028)), Plan::Reply);
        let expected = [
            0, 0, 0, 52, 0, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 10, 1, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0x07, 0xec, 0, 0, 0, 0,
        ];
        assert_eq!(fixture.reply(), expected);
    }

    #[test]
    fn a_medium_that_counts_past_its_end_is_cut() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&cdb(0, 24)), asks(0));
        assert_eq!(fixture.run_medium(&cdb(0, 24), run(false, u64::MAX)), Plan::Reply);
        assert_eq!(fixture.reply()[16..21], [0, 0, 0x08, 0, 1]);
    }

    #[test]
    fn less_room_than_a_descriptor_gets_less() {
        let mut fixture = Fixture::new();
        fixture.run(&cdb(0, 12));
        assert_eq!(fixture.run_medium(&cdb(0, 12), run(true, 1)), Plan::Reply);
        assert_eq!(fixture.reply(), [0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_long_patchwork_ends_at_the_limit() {
        let mut fixture = Fixture::new();
        let cdb = [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let mut plan = fixture.run(&cdb);
        let mut asked = 0;
        while plan != Plan::Reply {
            asked += 1;
            plan = fixture.run_medium(&cdb, run(asked % 2 == 0, 1));
        }
        assert_eq!(asked, 256);
        assert_eq!(fixture.reply().len(), 8 + 256 * 16);
    }

    #[test]
    fn the_first_block_must_exist() {
        let sense = Fixture::new().check(&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0, 24, 0, 0]);
        assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
    }

    #[test]
    fn a_choice_of_descriptors_is_refused() {
        let sense = Fixture::new().check(&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 1, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(14, None));
    }
}
