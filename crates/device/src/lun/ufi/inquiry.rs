//! INQUIRY (UFI 1.0 clause 4.3): names alone, and no vital product data.

use super::brief;
use crate::lun::Context;
use crate::lun::row::{Needs, Row};
use crate::lun::ufi::{Decision, fields, settle};
use wire::Writer;
use wire::scsi::ascii::Ascii;
use wire::scsi::cdb::Inquiry;
use wire::scsi::sense::Sense;
use wire::ufi::UfiInquiry;

pub(in crate::lun) const ROW: Row =
    brief(&[0x12, 0x01, 0xff, 0, 0xff, 0x04], Needs::NOTHING, |context, cdb| settle(plan(context, cdb)));

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(Inquiry::decode(cdb))?;
    if command.evpd {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    if command.page_code != 0 {
        return Err(Sense::invalid_field_in_cdb(2, None));
    }
    let config = &context.unit.config;
    let inquiry = UfiInquiry {
        vendor: Ascii::new(&config.vendor),
        product: Ascii::new(&config.product),
        revision: Ascii::new(&config.revision),
    };
    let room = command.allocation_len.into();
    Ok(context.reply.fill(room, |out| Writer::new(out).put(&inquiry.encode()).map(|()| UfiInquiry::LEN)))
}
