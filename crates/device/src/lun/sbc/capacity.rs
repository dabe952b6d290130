//! READ CAPACITY(10) and (16) (SBC-4 clauses 5.20 and 5.21).
//!
//! PMI is obsolete since SBC-3. SBC-2 has a unit refuse an address without it, and name with it the last block
//! before a delay; there is none here but the last block of all.

use super::{Decision, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnitConfig, limits};
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb::{ReadCapacity10, ReadCapacity16};
use wire::scsi::sense::Sense;
use wire::{NoRoom, Writer};

const NEEDS: Needs = Needs { access: Access::Always, ..Needs::READ };

pub(in crate::lun) const READ_CAPACITY_10: Row = Row {
    usage: &[0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0x04],
    needs: NEEDS,
    timeout_s: 1,
    plan: |context, cdb| settle(read_capacity_10(context, cdb)),
    on_list: None,
    on_medium: None,
};

pub(in crate::lun) const READ_CAPACITY_16: Row = Row {
    usage: &[0x9e, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x04],
    needs: NEEDS,
    timeout_s: 1,
    plan: |context, cdb| settle(read_capacity_16(context, cdb)),
    on_list: None,
    on_medium: None,
};

fn read_capacity_10(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadCapacity10::decode(cdb))?;
    with_indicator(command.partial_medium, command.lba.into())?;
    let config = &context.unit.config;
    let last_lba = u32::try_from(config.capacity.0.saturating_sub(1)).unwrap_or(u32::MAX);
    let answer = Capacity10 { last_lba, block_length: config.block_size.bytes() };
    Ok(context.reply.fill(u32::MAX, |out| put(out, &answer.encode())))
}

fn read_capacity_16(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadCapacity16::decode(cdb))?;
    with_indicator(command.partial_medium, command.lba)?;
    let answer = capacity_16(&context.unit.config);
    Ok(context.reply.fill(command.allocation_len, |out| put(out, &answer.encode())))
}

/// Returns the READ CAPACITY (16) data of a unit.
pub(in crate::lun) const fn capacity_16(config: &LogicalUnitConfig) -> Capacity16 {
    Capacity16 {
        last_lba: config.capacity.0.saturating_sub(1),
        block_length: config.block_size.bytes(),
        rc_basis: 0,
        protection: None,
        protection_interval_exponent: 0,
        physical_block_exponent: limits::PHYSICAL_BLOCK_EXPONENT,
        provisioning_management: true,
        provisioning_reads_zeroes: true,
        lowest_aligned_lba: 0,
    }
}

fn with_indicator(partial_medium: bool, lba: u64) -> Result<(), Sense> {
    if lba == 0 || partial_medium { Ok(()) } else { Err(Sense::invalid_field_in_cdb(2, None)) }
}

fn put(out: &mut [u8], bytes: &[u8]) -> Result<usize, NoRoom> {
    let mut writer = Writer::new(out);
    writer.put(bytes)?;
    Ok(writer.written())
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, Readiness};
    use units::{BlockCount, BlockSize};
    use wire::scsi::sense::{AdditionalSense, Sense};

    const TEN: [u8; 10] = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn ten_bytes_report_the_last_block_and_the_block_length() {
        assert_eq!(Fixture::new().read(&TEN), [0, 0, 0x07, 0xff, 0, 0, 0x02, 0]);
    }

    #[test]
    fn ten_bytes_send_to_sixteen_what_does_not_fit() {
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(0x1_0000_0000));
        assert_eq!(fixture.read(&TEN)[..4], [0xff, 0xff, 0xff, 0xff]);
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(0x2_0000_0000));
        assert_eq!(fixture.read(&TEN)[..4], [0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn an_address_needs_the_partial_medium_indicator() {
        let mut fixture = Fixture::new();
        let sense = fixture.check(&[0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(2, None));
        assert_eq!(fixture.read(&[0x25, 0, 0, 0, 0, 1, 0, 0, 1, 0]), [0, 0, 0x07, 0xff, 0, 0, 0x02, 0]);
    }

    #[test]
    fn sixteen_bytes_report_provisioning_as_well() {
        let mut fixture = Fixture::with(|config| {
            config.capacity = BlockCount(0x1_0000_0001);
            config.block_size = BlockSize::B4096;
        });
        let mut expected = [0; 32];
        expected[..15].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0xc0]);
        assert_eq!(fixture.read(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]), expected);
    }

    #[test]
    fn sixteen_bytes_are_cut_at_the_allocation_length() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0]).len(), 12);
        assert_eq!(fixture.run(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Reply);
        assert_eq!(fixture.reply(), []);
    }

    #[test]
    fn without_a_medium_there_is_no_capacity() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Ejected;
        assert_eq!(fixture.check(&TEN), Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0 }));
    }
}
