//! UNMAP (SBC-4 clause 5.35).
//!
//! All descriptors are checked before the first takes effect; then the medium unmaps them one by one. The step is
//! how many are done.

use super::{Decision, existing, fetch_list, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit, MediumPlan, Plan, limits};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::block::UnmapList;
use wire::scsi::cdb::Unmap;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const UNMAP: Row = Row {
    usage: &[0x42, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    needs: Needs::WRITE,
    timeout_s: 60,
    plan: |_, cdb| settle(unmap(cdb)),
    on_list: Some(|context, _, list| settle(start(context, list))),
    on_medium: Some(|context, _, list, _| {
        *context.step += 1;
        settle(next(context, list))
    }),
};

/// Byte of PARAMETER LIST LENGTH.
const LIST_LENGTH_FIELD: u16 = 7;
/// Byte of UNMAP BLOCK DESCRIPTOR DATA LENGTH in the list.
const DESCRIPTORS_LENGTH_FIELD: u16 = 2;

fn unmap(cdb: &[u8]) -> Decision {
    let command = fields(Unmap::decode(cdb))?;
    if command.anchor {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    match usize::from(command.parameter_list_len) {
        0 => Ok(Plan::Good),
        1..UnmapList::HEADER_LEN => Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)),
        _ => fetch_list(command.parameter_list_len.into(), LIST_LENGTH_FIELD),
    }
}

fn start(context: &mut Context<'_>, list: &[u8]) -> Decision {
    check(context.unit, decode(list)?)?;
    next(context, list)
}

fn check(unit: &LogicalUnit, list: UnmapList<'_>) -> Result<(), Sense> {
    let too_much = Sense::invalid_field_in_parameter_list(DESCRIPTORS_LENGTH_FIELD, None);
    let mut blocks = 0u64;
    for descriptor in list.descriptors() {
        existing(unit, descriptor.lba, descriptor.blocks.into())?;
        blocks += u64::from(descriptor.blocks);
    }
    let limited = limits::UNMAP_BLOCKS_MAX != u32::MAX;
    if list.len() > limits::UNMAP_DESCRIPTORS_MAX as usize
        || limited && blocks > limits::UNMAP_BLOCKS_MAX.into()
    {
        return Err(too_much);
    }
    Ok(())
}

/// Goes on with the first descriptor from the present step on that names a block.
fn next(context: &mut Context<'_>, list: &[u8]) -> Decision {
    for descriptor in decode(list)?.descriptors().skip(*context.step as usize) {
        if descriptor.blocks > 0 {
            let extent = Extent::new(descriptor.lba, descriptor.blocks.into());
            return Ok(Plan::Medium(MediumPlan::bare(MediumOp::Unmap, extent)));
        }
        *context.step += 1;
    }
    Ok(Plan::Good)
}

fn decode(list: &[u8]) -> Result<UnmapList<'_>, Sense> {
    UnmapList::decode(list).map_err(|_| Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{MediumPlan, Plan};
    use crate::medium::{MediumDone, MediumOp};
    use alloc::vec::Vec;
    use units::Extent;
    use wire::scsi::block::{UnmapDescriptor, UnmapList};
    use wire::scsi::sense::{AdditionalSense, Sense};

    const LENGTH_ERROR: Sense = Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0x00 });

    fn list(runs: &[(u64, u32)]) -> Vec<u8> {
        let runs: Vec<_> = runs.iter().map(|&(lba, blocks)| UnmapDescriptor { lba, blocks }).collect();
        let mut out = [0; 8192];
        let len = UnmapList::encode(&runs, &mut out).expect("the list is short");
        out[..len].to_vec()
    }

    fn cdb(list: &[u8]) -> [u8; 10] {
        let [high, low] = (list.len() as u16).to_be_bytes();
        [0x42, 0, 0, 0, 0, 0, 0, high, low, 0]
    }

    fn unmaps(lba: u64, blocks: u64) -> Plan {
        Plan::Medium(MediumPlan::bare(MediumOp::Unmap, Extent::new(lba, blocks)))
    }

    #[test]
    fn runs_are_unmapped_one_by_one_and_empty_ones_skipped() {
        let mut fixture = Fixture::new();
        let list = list(&[(0, 0), (8, 8), (2048, 0), (100, 1), (5, 0)]);
        assert_eq!(fixture.run_list(&cdb(&list), &list), unmaps(8, 8));
        assert_eq!(fixture.run_medium(&cdb(&list), MediumDone::Done), unmaps(100, 1));
        assert_eq!(fixture.run_medium(&cdb(&list), MediumDone::Done), Plan::Good);
    }

    #[test]
    fn nothing_is_unmapped_if_one_run_does_not_exist() {
        let list = list(&[(0, 8), (2047, 2)]);
        let Plan::Check(sense) = Fixture::new().run_list(&cdb(&list), &list) else { panic!("refused") };
        assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
        assert_eq!(sense.information, Some(2048));
    }

    #[test]
    fn lists_without_runs_are_legal() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(
            fixture.run_list(&[0x42, 0, 0, 0, 0, 0, 0, 0, 8, 0], &[0, 6, 0, 0, 0, 0, 0, 0]),
            Plan::Good
        );
    }

    #[test]
    fn a_list_shorter_than_it_says_is_a_length_error() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&[0x42, 0, 0, 0, 0, 0, 0, 0, 7, 0]), LENGTH_ERROR);
        let list = list(&[(0, 8)]);
        let plan = fixture.run_list(&cdb(&list[..23]), &list[..23]);
        assert_eq!(plan, Plan::Check(LENGTH_ERROR));
    }

    #[test]
    fn nothing_can_be_anchored() {
        let sense = Fixture::new().check(&[0x42, 0x01, 0, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(0)));
    }

    #[test]
    fn the_longest_list_is_taken_and_a_longer_one_refused() {
        let most = list(&[(1, 1); 511]);
        assert_eq!(Fixture::new().run_list(&cdb(&most), &most), unmaps(1, 1));
        let sense = Fixture::new().check(&[0x42, 0, 0, 0, 0, 0, 0, 0x20, 0x01, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(7, None));
    }
}
