//! RECEIVE DIAGNOSTIC RESULTS (SPC-4 clause 6.28): a diagnostic page.
//!
//! There is one page, the list of pages; without PCV it is also the page that was last sent.

use super::{Decision, fields, settle};
use crate::lun::Reply;
use crate::lun::access::Access;
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::ReceiveDiagnosticResults;
use wire::scsi::diagnostic::SupportedDiagnosticPages;
use wire::scsi::sense::Sense;

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x1c, 0x01, 0xff, 0xff, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context.reply, cdb)),
    on_list: None,
    on_medium: None,
};

/// The list of pages: itself.
const SUPPORTED_PAGES: SupportedDiagnosticPages<'_> =
    SupportedDiagnosticPages { codes: &[SupportedDiagnosticPages::CODE] };

fn plan(reply: &mut Reply, cdb: &[u8]) -> Decision {
    let command = fields(ReceiveDiagnosticResults::decode(cdb))?;
    if command.page_code_valid && command.page_code != SupportedDiagnosticPages::CODE {
        return Err(Sense::invalid_field_in_cdb(2, None));
    }
    Ok(reply.fill(command.allocation_len.into(), |out| SUPPORTED_PAGES.encode(out)))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    #[test]
    fn the_list_of_pages_names_itself() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&[0x1c, 0x01, 0x00, 0, 64, 0]), [0, 0, 0, 1, 0]);
        assert_eq!(fixture.read(&[0x1c, 0x00, 0x00, 0, 4, 0]), [0, 0, 0, 1]);
    }

    #[test]
    fn another_page_is_refused() {
        let sense = Fixture::new().check(&[0x1c, 0x01, 0x40, 0, 64, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(2, None));
    }
}
