//! MODE SENSE(6) and (10) (SPC-4 clauses 6.13 and 6.14): the values of mode pages.
//!
//! The header and block descriptor are this file's, the pages are the unit's. Page 3Fh is all of them, in order.
//! Left out: vendor pages, and half-known subpage combinations, which are refused at their field.

use super::{Decision, fields, settle};
use crate::lun::access::Access;
use crate::lun::mode::{PageName, pages};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit, UnitType};
use units::BlockCount;
use wire::scsi::cdb::{CdbWidth, ModeSense};
use wire::scsi::mode::{
    ALL_SUBPAGES, DeviceSpecific, LongBlockDescriptor, ModeForm, ModeHeader, ModePageCode, ModeWriter,
    PageControl, ShortBlockDescriptor,
};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW_6: Row = Row {
    usage: &[0x1a, 0x08, 0xff, 0xff, 0xff, 0x04],
    // Another's reservation of either kind keeps it away (SPC-5 table 66).
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context, cdb)),
    on_list: None,
    on_medium: None,
};

pub(in crate::lun) const ROW_10: Row =
    Row { usage: &[0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x04], ..ROW_6 };

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ModeSense::decode(cdb))?;
    let unit = &*context.unit;
    let pages = pages(unit.config.unit_type);
    let wanted = wanted(pages, command.page_code.into(), command.subpage_code)?;
    let values = unit.modes.values(command.page_control);
    let mut values =
        values.ok_or(Sense::illegal_request(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED))?;
    if command.page_control == PageControl::Current {
        values.capabilities.lock_state = unit.removal_prevented;
    }
    let is_disk = unit.config.unit_type == UnitType::Disk;
    let header = ModeHeader {
        mode_data_length: 0,
        medium_type: 0,
        // Reserved for optical drives.
        device_specific: DeviceSpecific {
            write_protected: is_disk && unit.is_write_protected(),
            dpo_fua: is_disk,
        },
        long_lba: command.long_lba_accepted,
        block_descriptor_length: 0,
    };
    let (long, short) = (long_descriptor(unit).encode(), short_descriptor(unit).encode());
    // Optical drives have no block descriptors (MMC-6 clause 7.2.2).
    let without_descriptor = command.disable_block_descriptors || !is_disk;
    let descriptor: &[u8] = match (without_descriptor, command.long_lba_accepted) {
        (true, _) => &[],
        (false, true) => &long,
        (false, false) => &short,
    };
    let form = form(command.width);
    Ok(context.reply.fill(command.allocation_len.into(), |out| {
        let mut writer = ModeWriter::new(form, header, descriptor, out)?;
        for &(code, subpage) in pages.iter().filter(|(code, subpage)| wanted.includes(*code, *subpage)) {
            let mut page = [0; crate::lun::mode::PAGE_BYTES_MAX];
            if let Some(values) = values.page(code, subpage) {
                let len = values.encode(unit.modes.is_saveable(), &mut page)?;
                writer.page(&page[..len])?;
            }
        }
        writer.finish()
    }))
}

/// The form of the parameter list that belongs to a CDB.
pub(super) const fn form(width: CdbWidth) -> ModeForm {
    match width {
        CdbWidth::Six => ModeForm::Six,
        _ => ModeForm::Ten,
    }
}

/// The block descriptor with 64-bit count. There are no blocks without a medium.
pub(super) fn long_descriptor(unit: &LogicalUnit) -> LongBlockDescriptor {
    let BlockCount(capacity) = unit.config.capacity;
    let block_count = if unit.has_medium() { capacity } else { 0 };
    LongBlockDescriptor { block_count, block_length: unit.config.block_size.bytes() }
}

/// The block descriptor with 32-bit count, which is all ones where it cannot hold it.
pub(super) fn short_descriptor(unit: &LogicalUnit) -> ShortBlockDescriptor {
    let LongBlockDescriptor { block_count, block_length } = long_descriptor(unit);
    ShortBlockDescriptor { block_count: u32::try_from(block_count).unwrap_or(u32::MAX), block_length }
}

/// Which pages are asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    code: Option<ModePageCode>,
    subpage: Subpages,
}

#[derive(Clone, Copy, Debug)]
enum Subpages {
    All,
    One(Option<u8>),
}

impl Wanted {
    fn includes(self, code: ModePageCode, subpage: Option<u8>) -> bool {
        let subpage_fits = match self.subpage {
            Subpages::All => true,
            Subpages::One(wanted) => wanted == subpage,
        };
        self.code.is_none_or(|wanted| wanted == code) && subpage_fits
    }
}

/// Returns the pages that the page code and subpage code of a CDB ask for, if they exist (SPC-5 table 174).
fn wanted(pages: &[PageName], code: ModePageCode, subpage_code: u8) -> Result<Wanted, Sense> {
    let subpage = match subpage_code {
        ALL_SUBPAGES => Subpages::All,
        0 => Subpages::One(None),
        other => Subpages::One(Some(other)),
    };
    let any = Wanted { code: (code != ModePageCode::All).then_some(code), subpage: Subpages::All };
    let wanted = Wanted { subpage, ..any };
    let some = |wanted: Wanted| pages.iter().any(|&(code, subpage)| wanted.includes(code, subpage));
    if !some(any) {
        Err(Sense::invalid_field_in_cdb(2, Some(5)))
    } else if !some(wanted) || code == ModePageCode::All && !matches!(subpage_code, 0 | ALL_SUBPAGES) {
        Err(Sense::invalid_field_in_cdb(3, None))
    } else {
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use crate::lun::Readiness;
    use crate::lun::fixture::Fixture;
    use units::BlockCount;
    use wire::scsi::sense::{AdditionalSense, Sense};

    const CACHING: [u8; 20] = [0x88, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn the_caching_page_stands_behind_header_and_block_descriptor() {
        let mut expected = [0x1f, 0, 0x10, 8, 0, 0, 0x08, 0, 0, 0, 2, 0].to_vec();
        expected.extend(CACHING);
        assert_eq!(Fixture::new().read(&[0x1a, 0, 0x08, 0, 255, 0]), expected);
    }

    #[test]
    fn dbd_leaves_the_block_descriptor_out() {
        let mut expected = [0, 0x1a, 0, 0x10, 0, 0, 0, 0].to_vec();
        expected.extend(CACHING);
        assert_eq!(Fixture::new().read(&[0x5a, 0x08, 0x08, 0, 0, 0, 0, 0, 255, 0]), expected);
    }

    #[test]
    fn llbaa_asks_for_the_long_block_descriptor() {
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(0x1_0000_0000));
        let bytes = fixture.read(&[0x5a, 0x10, 0x08, 0, 0, 0, 0, 0, 255, 0]);
        assert_eq!(bytes[..8], [0, 0x2a, 0, 0x10, 1, 0, 0, 16]);
        assert_eq!(bytes[8..24], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        let bytes = fixture.read(&[0x5a, 0, 0x08, 0, 0, 0, 0, 0, 255, 0]);
        assert_eq!(bytes[8..16], [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
    }

    #[test]
    fn all_pages_come_in_ascending_order() {
        let mut fixture = Fixture::new();
        let bytes = fixture.read(&[0x1a, 0x08, 0x3f, 0, 255, 0]).to_vec();
        let mut codes = alloc::vec::Vec::new();
        let mut at = 4;
        while at < bytes.len() {
            codes.push(bytes[at] & 0x3f);
            at += 2 + usize::from(bytes[at + 1]);
        }
        assert_eq!(codes, [0x01, 0x02, 0x08, 0x0a, 0x1a, 0x1c]);
        assert_eq!(usize::from(bytes[0]) + 1, bytes.len());
        let with_subpages = fixture.read(&[0x1a, 0x08, 0x3f, 0xff, 255, 0]).len();
        assert_eq!(with_subpages, bytes.len() + 32);
    }

    #[test]
    fn a_subpage_is_asked_for_alone_or_with_its_page() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&[0x1a, 0x08, 0x0a, 0x01, 255, 0])[4..8], [0xca, 0x01, 0x00, 0x1c]);
        assert_eq!(fixture.read(&[0x1a, 0x08, 0x0a, 0xff, 255, 0]).len(), 4 + 12 + 32);
    }

    #[test]
    fn pages_that_are_not_there_are_refused_at_their_field() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&[0x1a, 0, 0x05, 0, 255, 0]), Sense::invalid_field_in_cdb(2, Some(5)));
        assert_eq!(fixture.check(&[0x1a, 0, 0x0a, 2, 255, 0]), Sense::invalid_field_in_cdb(3, None));
        assert_eq!(fixture.check(&[0x1a, 0, 0x3f, 1, 255, 0]), Sense::invalid_field_in_cdb(3, None));
    }

    #[test]
    fn changeable_values_are_a_mask() {
        let bytes = Fixture::new().read(&[0x1a, 0x08, 0x4a, 0, 255, 0]).to_vec();
        assert_eq!(bytes[4..], [0x8a, 0x0a, 0x04, 0, 0x08, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn saved_values_are_refused_where_nothing_is_saved() {
        let mut fixture = Fixture::with(|config| config.durable = false);
        let refusal = Sense::illegal_request(AdditionalSense { asc: 0x39, ascq: 0x00 });
        assert_eq!(fixture.check(&[0x1a, 0, 0xc8, 0, 255, 0]), refusal);
        assert_eq!(fixture.read(&[0x1a, 0x08, 0x08, 0, 255, 0])[4], 0x08);
    }

    #[test]
    fn a_read_only_unit_is_write_protected() {
        let mut fixture = Fixture::with(|config| config.read_only = true);
        assert_eq!(fixture.read(&[0x1a, 0x08, 0x08, 0, 255, 0])[2], 0x90);
    }

    #[test]
    fn an_empty_drive_has_no_blocks() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Ejected;
        assert_eq!(fixture.read(&[0x1a, 0, 0x08, 0, 12, 0])[4..], [0, 0, 0, 0, 0, 0, 2, 0]);
    }
}
