//! READ BUFFER(10) (SPC-4 clause 6.18): reads the unit's buffers.
//!
//! There is one data buffer, number 0, and one echo buffer. Left out: microcode status and error history, which the
//! unit does not have.

use super::{Decision, fields, settle};
use crate::lun::access::Access;
use crate::lun::buffers::{DATA_BUFFER_BYTES, ECHO_BUFFER_BYTES};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Plan, Reply};
use wire::Writer;
use wire::scsi::buffer::{BufferDescriptor, EchoBufferDescriptor};
use wire::scsi::cdb::{ReadBuffer, ReadBufferMode};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0x3c, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context, cdb)),
    on_list: None,
    on_medium: None,
};

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReadBuffer::decode(cdb))?;
    let room = command.allocation_len;
    let buffers = &context.unit.buffers;
    match command.mode {
        ReadBufferMode::Data if command.buffer_id != 0 => Err(Sense::invalid_field_in_cdb(2, None)),
        ReadBufferMode::Data => {
            let past_end = Sense::invalid_field_in_cdb(3, None);
            let bytes = buffers.read(command.buffer_offset, room).map_err(|_| past_end)?;
            Ok(context.reply.fill(room, |out| {
                let places = out.iter_mut().zip(bytes);
                Ok(places.map(|(place, byte)| *place = byte).count())
            }))
        }
        ReadBufferMode::Descriptor => {
            // Any offset is on a boundary; a buffer that is not there has no size.
            let capacity = if command.buffer_id == 0 { DATA_BUFFER_BYTES } else { 0 };
            let descriptor = BufferDescriptor { offset_boundary: 0, capacity };
            Ok(give(context.reply, room, &descriptor.encode()))
        }
        ReadBufferMode::EchoBuffer => {
            let nothing_written = Sense::illegal_request(AdditionalSense::COMMAND_SEQUENCE_ERROR);
            Ok(give(context.reply, room, buffers.echo().ok_or(nothing_written)?))
        }
        ReadBufferMode::EchoBufferDescriptor => {
            let descriptor =
                EchoBufferDescriptor { overwritten_supported: false, capacity: ECHO_BUFFER_BYTES as u16 };
            Ok(give(context.reply, room, &descriptor.encode()))
        }
        _ => Err(Sense::invalid_field_in_cdb(1, Some(4))),
    }
}

fn give(reply: &mut Reply, room: u32, bytes: &[u8]) -> Plan {
    reply.fill(room, |out| Writer::new(out).put(bytes).map(|()| bytes.len()))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, UnitEvent};
    use wire::scsi::sense::{AdditionalSense, Sense};

    const fn cdb(mode: u8, buffer: u8, offset: u16, room: u16) -> [u8; 10] {
        let ([o1, o0], [r1, r0]) = (offset.to_be_bytes(), room.to_be_bytes());
        [0x3c, mode, buffer, 0, o1, o0, 0, r1, r0, 0]
    }

    #[test]
    fn data_written_is_read_back() {
        let mut fixture = Fixture::new();
        let write = [0x3b, 0x02, 0, 0, 0, 1, 0, 0, 3, 0];
        assert_eq!(fixture.run_list(&write, &[7, 8, 9]), Plan::Good);
        assert_eq!(fixture.read(&cdb(0x02, 0, 0, 5)), [0, 7, 8, 9, 0]);
        assert_eq!(fixture.read(&cdb(0x02, 0, 4090, 100)).len(), 6);
    }

    #[test]
    fn the_descriptors_report_the_sizes() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(&cdb(0x03, 0, 0, 4)), [0, 0, 0x10, 0]);
        assert_eq!(fixture.read(&cdb(0x03, 1, 0, 4)), [0, 0, 0, 0]);
        assert_eq!(fixture.read(&cdb(0x0b, 0, 0, 4)), [0, 0, 0x10, 0]);
    }

    #[test]
    fn an_echo_lasts_until_the_nexus_is_lost() {
        let mut fixture = Fixture::new();
        let nothing_written = Sense::illegal_request(AdditionalSense { asc: 0x2c, ascq: 0 });
        assert_eq!(fixture.check(&cdb(0x0a, 0, 0, 8)), nothing_written);
        let write = [0x3b, 0x0a, 0, 0, 0, 0, 0, 0, 3, 0];
        assert_eq!(fixture.run_list(&write, &[1, 2, 3]), Plan::Good);
        assert_eq!(fixture.read(&cdb(0x0a, 0, 0, 8)), [1, 2, 3]);
        fixture.unit.handle_event(UnitEvent::NexusLoss);
        fixture.unit.attentions = Default::default();
        assert_eq!(fixture.check(&cdb(0x0a, 0, 0, 8)), nothing_written);
    }

    #[test]
    fn what_is_not_there_is_refused_at_its_field() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&cdb(0x02, 1, 0, 4)), Sense::invalid_field_in_cdb(2, None));
        assert_eq!(fixture.check(&cdb(0x02, 0, 4097, 4)), Sense::invalid_field_in_cdb(3, None));
        assert_eq!(fixture.check(&cdb(0x1c, 0, 0, 4)), Sense::invalid_field_in_cdb(1, Some(4)));
    }
}
