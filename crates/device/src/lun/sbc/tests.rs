//! Commands of several steps, through the executor: script and expected outputs.

use crate::command::{CommandId, CommandOutput, DataLocation, Executor, Intent, Limits, Outcome, Request};
use crate::lun::fixture::Fixture;
use crate::lun::{UnitType, registry};
use crate::medium::{MediumCompletion, MediumDone, MediumError, MediumOp, MediumRequest};
use crate::output::Output;
use alloc::vec;
use alloc::vec::Vec;
use bus::Direction;
use units::{BlockCount, ByteRange, Extent};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseKey};
use wire::uas::TaskAttribute;

const LIMITS: Limits = Limits { commands: 8, buffer_bytes: 1 << 20, segment_bytes: 4096 };
const TEST_UNIT_READY: [u8; 6] = [0; 6];
const SANITIZING: Sense =
    Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x1b }).with_key_specific(KeySpecific::Progress(0));

/// An executor with one unit of 2048 blocks of 512 bytes, and what it wants.
struct Bench {
    executor: Executor,
    outputs: Vec<CommandOutput>,
    /// Outputs for the driver.
    wants: Vec<Output>,
}

impl Bench {
    fn new() -> Self {
        Self {
            executor: Executor::new(vec![Fixture::new().unit], LIMITS),
            outputs: Vec::new(),
            wants: Vec::new(),
        }
    }

    /// Submits a command; whatever it intends is fine.
    fn submit(&mut self, cdb: &[u8]) -> CommandId {
        let request = Request { lun: [0; 8], attribute: TaskAttribute::Simple, cdb, asks: true };
        let id = self.executor.submit(request).expect("the task set has room");
        self.drain();
        id
    }

    fn drain(&mut self) {
        while let Some(output) = self.executor.poll_output() {
            if let CommandOutput::Begin { id, .. } = output {
                self.executor.proceed(id);
            }
            self.outputs.push(output);
        }
        self.wants.extend(core::iter::from_fn(|| self.executor.poll_want().map(bus::Front::take)));
    }

    /// Submits a command with a parameter list, and gives it the list.
    fn submit_list(&mut self, cdb: &[u8], list: &[u8]) -> CommandId {
        let id = self.submit(cdb);
        self.executor.handle_parameter_list(id, list);
        self.drain();
        id
    }

    /// Submits a command with block data, and gives it all that it asks for.
    fn submit_data(&mut self, cdb: &[u8]) -> CommandId {
        let id = self.submit(cdb);
        for output in self.outputs.clone() {
            if let CommandOutput::DataOut { range, .. } = output {
                self.executor.handle_data_out(id, range, range.len);
            }
        }
        self.drain();
        id
    }

    /// The only request for the medium, as operation and extent.
    #[track_caller]
    fn request(&mut self) -> MediumRequest {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests[0]
    }

    /// Saves the unit's state as requested.
    #[track_caller]
    fn keep_state(&mut self) {
        let save = self.request();
        assert_eq!(save.op, MediumOp::SaveState);
        self.complete(save, DONE);
    }

    /// The requests for the medium so far; everything else that was wanted is forgotten.
    fn requests(&mut self) -> Vec<MediumRequest> {
        self.outputs.clear();
        let requests = core::mem::take(&mut self.wants).into_iter().filter_map(|want| match want {
            Output::Medium(request) => Some(request),
            _ => None,
        });
        requests.collect()
    }

    fn complete(&mut self, request: MediumRequest, result: Result<MediumDone, MediumError>) {
        self.executor.handle_medium(MediumCompletion { id: request.id, result });
        self.drain();
    }

    /// How the commands that have ended did so; everything else that was wanted is forgotten.
    fn ends(&mut self) -> Vec<(CommandId, Status, Option<Sense>)> {
        let ends = core::mem::take(&mut self.outputs).into_iter().filter_map(|output| match output {
            CommandOutput::Completed { id, outcome: Outcome { status, sense, .. } } => {
                Some((id, status, sense.map(|it| *it)))
            }
            _ => None,
        });
        ends.collect()
    }
}

const DONE: Result<MediumDone, MediumError> = Ok(MediumDone::Done);

#[test]
fn a_write_and_verify_compares_what_lies_in_its_buffer() {
    let mut bench = Bench::new();
    let id = bench.submit_data(&[0x2e, 0x02, 0, 0, 0, 4, 0, 0, 3, 0]);
    let write = bench.request();
    assert_eq!((write.op, write.extent), (MediumOp::Write { fua: true }, Extent::new(4, 3)));
    bench.complete(write, DONE);
    let compare = bench.request();
    assert_eq!((compare.op, compare.extent), (MediumOp::Compare, Extent::new(4, 3)));
    assert_eq!((compare.location, compare.range), (DataLocation::Buffer, ByteRange::new(0, 1536)));
    bench.complete(compare, DONE);
    assert!(bench.wants.contains(&Output::Release(id)));
    assert_eq!(bench.ends(), [(id, Status::Good, None)]);
    assert!(bench.executor.is_idle());
}

#[test]
fn a_miscompare_is_reported_from_the_start_of_the_data() {
    let mut bench = Bench::new();
    let id = bench.submit_data(&[0x2f, 0x02, 0, 0, 0, 0, 0, 0, 16, 0]);
    let compares = bench.requests();
    assert_eq!(compares.len(), 2, "segments of 4096 bytes");
    assert_eq!(compares[1].extent, Extent::new(8, 8));
    bench.complete(compares[0], DONE);
    bench.complete(compares[1], Err(MediumError::Miscompare { offset: 5 }));
    let miscompare =
        Sense::new(SenseKey::Miscompare, AdditionalSense { asc: 0x1d, ascq: 0x00 }).with_information(4101);
    assert_eq!(bench.ends(), [(id, Status::CheckCondition, Some(miscompare))]);
}

#[test]
fn a_compare_and_write_is_one_request_and_waits_for_older_commands() {
    let mut bench = Bench::new();
    let read = bench.submit(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    let read_request = bench.request();
    let id = bench.submit_data(&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]);
    let later = bench.submit(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(bench.outputs, [], "the read is in flight");
    bench.complete(read_request, DONE);
    bench.executor.handle_data_in(read);
    bench.drain();
    let range = ByteRange::new(0, 16384);
    assert!(bench.outputs.contains(&CommandOutput::DataOut {
        id,
        range,
        location: DataLocation::Buffer,
        last: true
    }));
    bench.executor.handle_data_out(id, range, 16384);
    bench.drain();
    let request = bench.request();
    assert_eq!((request.op, request.range), (MediumOp::CompareAndWrite { fua: false }, range));
    bench.complete(request, Err(MediumError::Miscompare { offset: 7 }));
    let is_read = |want: &Output| matches!(want, Output::Medium(read) if read.id.command == later);
    assert!(bench.wants.iter().any(is_read));
    let miscompare =
        Sense::new(SenseKey::Miscompare, AdditionalSense { asc: 0x1d, ascq: 0x00 }).with_information(7);
    assert_eq!(bench.ends(), [(id, Status::CheckCondition, Some(miscompare))]);
}

#[test]
fn extents_are_unmapped_in_turn_until_one_fails() {
    let mut bench = Bench::new();
    let mut list = vec![0, 54, 0, 48, 0, 0, 0, 0];
    for lba in [1, 2, 3] {
        list.extend([0, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
    let id = bench.submit_list(&[0x42, 0, 0, 0, 0, 0, 0, 0, 56, 0], &list);
    let first = bench.request();
    assert_eq!((first.op, first.extent), (MediumOp::Unmap, Extent::new(1, 1)));
    bench.complete(first, DONE);
    let second = bench.request();
    assert_eq!((second.op, second.extent), (MediumOp::Unmap, Extent::new(2, 1)));
    bench.complete(second, Err(MediumError::Unwritable { lba: units::Lba(2) }));
    let failed =
        Sense::new(SenseKey::MediumError, AdditionalSense { asc: 0x0c, ascq: 0x00 }).with_information(2);
    assert_eq!(bench.ends(), [(id, Status::CheckCondition, Some(failed))]);
    assert!(bench.executor.is_idle());
}

#[test]
fn provisioning_is_asked_for_run_by_run_and_then_reported() {
    let mut bench = Bench::new();
    let id = bench.submit(&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0]);
    for (mapped, blocks) in [(true, 8), (false, 2040)] {
        let request = bench.request();
        assert_eq!(request.op, MediumOp::Status);
        bench.complete(request, Ok(MediumDone::Provisioning { mapped, blocks: BlockCount(blocks) }));
    }
    let intent = Intent { direction: Direction::In, bytes: 40 };
    assert!(bench.outputs.contains(&CommandOutput::Begin { id, intent }));
    assert_eq!(bench.executor.reply(id)[..8], [0, 0, 0, 36, 0, 0, 0, 0]);
    bench.executor.handle_data_in(id);
    bench.drain();
    assert_eq!(bench.ends(), [(id, Status::Good, None)]);
}

#[test]
fn a_sanitize_goes_on_although_it_is_aborted() {
    let mut bench = Bench::new();
    let id = bench.submit(&[0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.keep_state();
    let erase = bench.request();
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(SANITIZING))]);
    bench.executor.abort(id);
    bench.drain();
    assert_eq!(bench.outputs, [CommandOutput::Aborted { id }]);
    assert!(!bench.executor.is_live(id));
    assert_eq!(bench.executor.live(None).count(), 0);
    bench.complete(erase, DONE);
    let flush = bench.request();
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(SANITIZING))]);
    bench.complete(flush, DONE);
    bench.keep_state();
    assert_eq!(bench.outputs, [], "its end is reported once");
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::Good, None)]);
    assert!(bench.executor.is_idle());
}

#[test]
fn an_overwrite_gives_the_medium_a_separate_block() {
    let mut bench = Bench::new();
    let id = bench.submit_list(&[0x48, 0x81, 0, 0, 0, 0, 0, 0, 5, 0], &[2, 0, 0, 1, 0xaa]);
    assert!(!bench.outputs.iter().any(|output| matches!(output, CommandOutput::Completed { .. })));
    bench.keep_state();
    assert!(bench.outputs.iter().any(|output| matches!(output, CommandOutput::Completed { .. })));
    for _ in 0..2 {
        let pass = bench.request();
        assert_eq!((pass.op, pass.extent), (MediumOp::WriteSame { unmap: false }, Extent::new(0, 2048)));
        assert_eq!((pass.location, pass.range), (DataLocation::Parameters, ByteRange::new(0, 512)));
        assert_eq!(bench.executor.reply(id), [0xaa; 512]);
        bench.complete(pass, DONE);
    }
    let flush = bench.request();
    assert_eq!(flush.op, MediumOp::Flush);
    bench.complete(flush, DONE);
    bench.keep_state();
    assert_eq!(bench.outputs, []);
    assert!(bench.executor.is_idle());
}

#[test]
fn an_immediate_format_has_ended_before_it_begins() {
    let mut bench = Bench::new();
    let id = bench.submit_list(&[0x04, 0x10, 0, 0, 0, 0], &[0, 0x02, 0, 0]);
    let good = |output: &CommandOutput| matches!(output, CommandOutput::Completed { .. });
    assert!(bench.outputs.iter().any(good), "{:?}", bench.outputs);
    let unmap = bench.request();
    assert_eq!((unmap.id.command, unmap.op), (id, MediumOp::Unmap));
    let test = bench.submit(&TEST_UNIT_READY);
    let formatting = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x04 })
        .with_key_specific(KeySpecific::Progress(0));
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(formatting))]);
}

#[test]
fn a_sanitize_that_fails_bars_the_medium() {
    let mut bench = Bench::new();
    let id = bench.submit(&[0x48, 0x22, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.keep_state();
    let erase = bench.request();
    bench.complete(erase, Err(MediumError::OutOfSpace));
    let failed = Sense::new(SenseKey::MediumError, AdditionalSense { asc: 0x31, ascq: 0x03 });
    assert_eq!(bench.ends(), [(id, Status::CheckCondition, Some(failed))]);
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(failed))]);
    bench.submit(&[0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.keep_state();
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends().last(), Some(&(test, Status::Good, None)));
}

#[test]
fn a_flush_that_fails_late_is_none_of_the_sanitize() {
    let mut bench = Bench::new();
    bench.submit(&[0x35, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]);
    let flush = bench.request();
    bench.submit(&[0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.complete(flush, Err(MediumError::OutOfSpace));
    bench.ends();
    let no_space = Sense::new(SenseKey::DataProtect, AdditionalSense { asc: 0x27, ascq: 0x07 });
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(Sense { deferred: true, ..no_space }))]);
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::CheckCondition, Some(SANITIZING))]);
}

#[test]
fn an_immediate_format_that_fails_is_reported_by_the_next_command_and_once() {
    let mut bench = Bench::new();
    bench.submit_list(&[0x04, 0x10, 0, 0, 0, 0], &[0, 0x02, 0, 0]);
    let unmap = bench.request();
    bench.complete(unmap, Err(MediumError::Unwritable { lba: units::Lba(7) }));
    let failed = Sense::medium_error(AdditionalSense { asc: 0x0c, ascq: 0x00 }, 7);
    let read = bench.submit(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(bench.ends(), [(read, Status::CheckCondition, Some(Sense { deferred: true, ..failed }))]);
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::Good, None)]);
}

#[test]
fn who_waits_for_the_end_of_a_format_is_reported_of_its_failure_once() {
    let mut bench = Bench::new();
    let id = bench.submit(&[0x04, 0, 0, 0, 0, 0]);
    let unmap = bench.request();
    bench.complete(unmap, Err(MediumError::OutOfSpace));
    let no_space = Sense::new(SenseKey::DataProtect, AdditionalSense { asc: 0x27, ascq: 0x07 });
    assert_eq!(bench.ends(), [(id, Status::CheckCondition, Some(no_space))]);
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::Good, None)]);
}

#[test]
fn a_sanitize_without_room_for_its_record_has_not_begun() {
    let mut bench = Bench::new();
    let id = bench.submit(&[0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]);
    let save = bench.request();
    bench.complete(save, Err(MediumError::OutOfSpace));
    assert_eq!(bench.ends()[0].0, id);
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::Good, None)]);
    assert_eq!(bench.executor.units()[0].unfinished(), None);
}

#[test]
fn a_sanitize_that_a_power_loss_has_cut_off_goes_on_by_itself() {
    let mut bench = Bench::new();
    bench.submit_list(&[0x48, 0x81, 0, 0, 0, 0, 0, 0, 5, 0], &[1, 0, 0, 1, 0xaa]);
    bench.keep_state();
    let mut fixture = Fixture::with(|config| {
        config.durable_state = Some(bench.executor.units()[0].durable_state());
    });
    fixture.unit.attentions = Default::default();
    let mut bench =
        Bench { executor: Executor::new(vec![fixture.unit], LIMITS), outputs: Vec::new(), wants: Vec::new() };
    let test = bench.submit(&TEST_UNIT_READY);
    assert!(bench.outputs.iter().any(
        |output| matches!(output, CommandOutput::Completed { id, outcome } if *id == test && outcome.sense.as_deref() == Some(&SANITIZING))
    ));
    let pass = bench.request();
    assert_eq!((pass.op, pass.location), (MediumOp::WriteSame { unmap: false }, DataLocation::Parameters));
    assert_eq!(bench.executor.reply(pass.id.command), [0xaa; 512]);
    bench.complete(pass, DONE);
    let flush = bench.request();
    bench.complete(flush, DONE);
    bench.keep_state();
    assert_eq!(bench.ends(), [], "no command waits for its end");
    let test = bench.submit(&TEST_UNIT_READY);
    assert_eq!(bench.ends(), [(test, Status::Good, None)]);
    assert!(bench.executor.is_idle());
}

#[test]
fn usage_maps_have_the_length_of_their_operation_code_and_end_with_naca() {
    for row in UnitType::ALL.into_iter().flat_map(registry::rows) {
        assert_eq!(Some(row.usage.len()), row.opcode().cdb_len(), "{row}");
        assert_eq!(row.usage[row.usage.len() - 1], 0x04, "{row}");
    }
}
