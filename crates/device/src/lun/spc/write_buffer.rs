//! WRITE BUFFER (SPC-4 clause 6.49): fills the unit's buffers.
//!
//! The unit has no microcode that a host could replace: those modes are refused.

use super::{Decision, fetch_list, fields, settle};
use crate::lun::access::Access;
use crate::lun::buffers::{DATA_BUFFER_BYTES, ECHO_BUFFER_BYTES};
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, Plan};
use wire::scsi::cdb::{WriteBuffer, WriteBufferMode};
use wire::scsi::sense::Sense;

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x3b, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 1,
    plan: |_, cdb| settle(plan(cdb)),
    on_list: Some(|context, cdb, list| settle(store(context.unit, cdb, list))),
    on_medium: None,
};

fn plan(cdb: &[u8]) -> Decision {
    let command = fields(WriteBuffer::decode(cdb))?;
    let room = match command.mode {
        WriteBufferMode::Data if command.buffer_id != 0 => return Err(Sense::invalid_field_in_cdb(2, None)),
        WriteBufferMode::Data => {
            let past_end = Sense::invalid_field_in_cdb(3, None);
            DATA_BUFFER_BYTES.checked_sub(command.buffer_offset).ok_or(past_end)?
        }
        WriteBufferMode::EchoBuffer => ECHO_BUFFER_BYTES,
        _ => return Err(Sense::invalid_field_in_cdb(1, Some(4))),
    };
    if command.parameter_list_len > room {
        return Err(Sense::invalid_field_in_cdb(6, None));
    }
    fetch_list(command.parameter_list_len, 6)
}

fn store(unit: &mut LogicalUnit, cdb: &[u8], list: &[u8]) -> Decision {
    let command = fields(WriteBuffer::decode(cdb))?;
    let stored = match command.mode {
        WriteBufferMode::EchoBuffer => unit.buffers.set_echo(list),
        _ => unit.buffers.write(command.buffer_offset, list),
    };
    stored.map_err(|_| Sense::invalid_field_in_cdb(6, None))?;
    Ok(Plan::Good)
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use wire::scsi::sense::Sense;

    #[test]
    fn nothing_goes_past_the_end_of_a_buffer() {
        let mut fixture = Fixture::new();
        let mut check = |cdb: [u8; 10]| fixture.check(&cdb);
        let length = Sense::invalid_field_in_cdb(6, None);
        assert_eq!(check([0x3b, 0x02, 0, 0, 0x0f, 0xff, 0, 0, 2, 0]), length);
        assert_eq!(check([0x3b, 0x0a, 0, 0, 0, 0, 0, 0x10, 1, 0]), length);
        assert_eq!(check([0x3b, 0x02, 0, 0, 0x10, 1, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(3, None));
        assert_eq!(check([0x3b, 0x02, 1, 0, 0, 0, 0, 0, 1, 0]), Sense::invalid_field_in_cdb(2, None));
    }

    #[test]
    fn microcode_is_refused() {
        for mode in [0x04, 0x05, 0x06, 0x07, 0x0d, 0x0e, 0x0f] {
            let sense = Fixture::new().check(&[0x3b, mode, 0, 0, 0, 0, 0, 2, 0, 0]);
            assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(4)), "mode {mode:#x}");
        }
    }
}
