//! INQUIRY (SPC-5 clause 6.7): standard data, or a vital product data page.
//!
//! The version claimed is SPC-4, because checkers of the day take a later one for an error; SPC-5 stands among the
//! version descriptors. Left out: the obsolete CMDDT, which is refused.

use super::{Decision, fields, settle, vital_product_data};
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Reply, UnitType};
use wire::Writer;
use wire::scsi::ascii::Ascii;
use wire::scsi::cdb::{Inquiry, stray_bit};
use wire::scsi::inquiry::{
    Peripheral, PeripheralDeviceType, PeripheralQualifier, SpcVersion, StandardInquiry,
    TargetPortGroupSupport, VersionDescriptor,
};
use wire::scsi::lun::{Lun, WellKnownLun};
use wire::scsi::sense::Sense;
use wire::scsi::vpd::{SupportedVpdPages, VpdPageCode};

pub(in crate::lun) const ROW: Row = Row {
    usage: USAGE,
    needs: Needs::NOTHING,
    timeout_s: 1,
    plan: |context, cdb| settle(inquire(context.unit, context.reply, cdb)),
    on_list: None,
    on_medium: None,
};

const USAGE: &[u8] = &[0x12, 0x01, 0xff, 0xff, 0xff, 0x04];

fn inquire(unit: &LogicalUnit, reply: &mut Reply, cdb: &[u8]) -> Decision {
    let config = &unit.config;
    let command = command(cdb)?;
    let room = command.allocation_len.into();
    if command.evpd {
        return vital_product_data::report(unit, reply, command.page_code.into(), room);
    }
    let standard = StandardInquiry {
        removable: config.removable,
        vendor: Ascii::new(&config.vendor),
        product: Ascii::new(&config.product),
        revision: Ascii::new(&config.revision),
        version_descriptors: standards(config.unit_type),
        ..anyone(config.unit_type.peripheral())
    };
    Ok(reply.fill(room, |out| Writer::new(out).put(&standard.encode()).map(|()| StandardInquiry::LEN)))
}

/// The answer of a logical unit number without a logical unit.
///
/// The REPORT LUNS well-known unit is reported as such; any other number as not capable of a unit.
pub(in crate::lun) fn inquire_without_unit(lun: Option<Lun>, reply: &mut Reply, cdb: &[u8]) -> Decision {
    let peripheral = match lun {
        Some(Lun::WellKnown(WellKnownLun::ReportLuns)) => WELL_KNOWN,
        _ => Peripheral::NOT_CAPABLE,
    };
    let command = command(cdb)?;
    let room = command.allocation_len.into();
    if command.evpd {
        return match VpdPageCode::from(command.page_code) {
            page @ VpdPageCode::SupportedPages => {
                Ok(reply.fill(room, |out| SupportedVpdPages::encode_list(peripheral, &[page], out)))
            }
            _ => Err(Sense::invalid_field_in_cdb(2, None)),
        };
    }
    let standard = anyone(peripheral).encode();
    Ok(reply.fill(room, |out| Writer::new(out).put(&standard).map(|()| StandardInquiry::LEN)))
}

/// The CDB, if it asks for something that there is: no CMDDT, and no page code without EVPD.
fn command(cdb: &[u8]) -> Result<Inquiry, Sense> {
    let command = fields(Inquiry::decode(cdb))?;
    if let Some((byte, bit)) = stray_bit(cdb, USAGE) {
        return Err(Sense::invalid_field_in_cdb(byte, Some(bit)));
    }
    if !command.evpd && command.page_code != 0 {
        return Err(Sense::invalid_field_in_cdb(2, None));
    }
    Ok(command)
}

/// Returns the INQUIRY data that are the same for every unit of the device.
const fn anyone(peripheral: Peripheral) -> StandardInquiry {
    StandardInquiry {
        peripheral,
        removable: false,
        version: SpcVersion::Spc4,
        normal_aca: true,
        hierarchical: true,
        response_data_format: 2,
        storage_array: false,
        target_port_groups: TargetPortGroupSupport::None,
        third_party_copy: false,
        protection: false,
        enclosure_services: false,
        multi_port: false,
        command_queuing: true,
        vendor: Ascii::BLANK,
        product: Ascii::BLANK,
        revision: Ascii::BLANK,
        vendor_specific: [0; 20],
        version_descriptors: standards(UnitType::Disk),
    }
}

/// The standards that a unit claims.
const fn standards(unit_type: UnitType) -> [VersionDescriptor; 8] {
    let (older, newer) = match unit_type {
        UnitType::Disk | UnitType::Floppy => (VersionDescriptor::Sbc3, VersionDescriptor::Sbc4),
        UnitType::Optical => (VersionDescriptor::Mmc6, VersionDescriptor::None),
    };
    [
        VersionDescriptor::Sam5,
        VersionDescriptor::Spc4,
        VersionDescriptor::Spc5,
        older,
        newer,
        VersionDescriptor::Uas,
        VersionDescriptor::BulkOnly,
        VersionDescriptor::None,
    ]
}

const WELL_KNOWN: Peripheral = Peripheral {
    qualifier: PeripheralQualifier::Connected,
    device_type: PeripheralDeviceType::WellKnownLogicalUnit,
};

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, Readiness, Reply, UnitEvent, absent_unit};
    use wire::scsi::lun::LunField;
    use wire::scsi::sense::Sense;

    const STANDARD: [u8; 6] = [0x12, 0, 0, 0, 255, 0];

    #[test]
    fn standard_data_is_96_bytes() {
        let mut fixture = Fixture::new();
        let bytes = fixture.read(&STANDARD);
        assert_eq!(bytes.len(), 96);
        assert_eq!(bytes[..8], [0x00, 0x00, 0x06, 0x32, 91, 0, 0, 0x02]);
        assert_eq!(bytes[8..36], *b"uaskit  virtual drive   0.1 ");
        assert_eq!(bytes[58..74], [0, 0xa0, 4, 0x60, 5, 0xc0, 4, 0xc0, 6, 0, 0x17, 0x40, 0x17, 0x30, 0, 0]);
    }

    #[test]
    fn a_removable_medium_is_reported() {
        let mut fixture = Fixture::with(|config| config.removable = true);
        assert_eq!(fixture.read(&STANDARD)[1], 0x80);
    }

    #[test]
    fn every_allocation_length_is_legal() {
        let mut fixture = Fixture::new();
        for length in 0..=255u8 {
            let bytes = fixture.read(&[0x12, 0, 0, 0, length, 0]);
            assert_eq!(bytes.len(), usize::from(length.min(96)));
        }
        assert_eq!(fixture.read(&[0x12, 0, 0, 1, 0, 0]).len(), 96);
    }

    #[test]
    fn a_page_code_without_evpd_and_cmddt_are_refused() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&[0x12, 0, 1, 0, 255, 0]), Sense::invalid_field_in_cdb(2, None));
        assert_eq!(fixture.check(&[0x12, 2, 0, 0, 255, 0]), Sense::invalid_field_in_cdb(1, Some(1)));
    }

    #[test]
    fn nothing_holds_it_up_and_a_unit_attention_stays() {
        let mut fixture = Fixture::new();
        fixture.unit.handle_event(UnitEvent::BusReset);
        fixture.unit.readiness = Readiness::Ejected;
        assert_eq!(fixture.run(&STANDARD), Plan::Reply);
        assert!(!fixture.unit.attentions.is_empty());
    }

    #[test]
    fn where_no_unit_is_it_says_so() {
        let mut reply = Reply::default();
        let lun_5 = LunField([0, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(absent_unit::without_unit(lun_5, &STANDARD, &mut reply, 1), Plan::Reply);
        assert_eq!(reply.as_bytes()[..3], [0x7f, 0, 6]);
        assert_eq!(absent_unit::without_unit(lun_5, &[0x12, 1, 0, 0, 255, 0], &mut reply, 1), Plan::Reply);
        assert_eq!(reply.as_bytes(), [0x7f, 0, 0, 1, 0]);
        let unit_serial_number = Sense::invalid_field_in_cdb(2, None);
        assert_eq!(
            absent_unit::without_unit(lun_5, &[0x12, 1, 0x80, 0, 255, 0], &mut reply, 1),
            Plan::Check(unit_serial_number)
        );
    }

    #[test]
    fn the_well_known_unit_says_what_it_is() {
        let mut reply = Reply::default();
        let w_lun = LunField([0xc1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(absent_unit::without_unit(w_lun, &STANDARD, &mut reply, 1), Plan::Reply);
        assert_eq!(reply.as_bytes()[0], 0x1e);
    }
}
