//! Packs and their parts, with the device played by the test.

use super::*;
use crate::script::{Script, command, read_10, test_unit_ready, write_10};
use crate::{Answer, BusRequest, SenseBytes, Timeouts, Transfer};
use bus::{Direction, EndpointAddress, TransferStatus};
use wire::scsi::Status;

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

fn config() -> TurboConfig {
    let bot =
        BotConfig { interface: 0, alternate: 0, bulk_in: IN, bulk_out: OUT, timeouts: Timeouts::default() };
    TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) }
}

/// An interface that is busy with a first command, so that requests gather.
fn busy(config: TurboConfig) -> Script<Turbo> {
    let mut script = Script::new(Turbo::new(config));
    script.submit(test_unit_ready(100));
    script.take_wrapper();
    script
}

fn good(moved: u32) -> Outcome {
    Outcome::answered(Status::Good, moved)
}

impl Script<Turbo> {
    /// The next wrapper goes; its command block and transfer length.
    #[track_caller]
    fn take_wrapper(&mut self) -> (Vec<u8>, u32) {
        let wrapper = self.expect_transfer(OUT);
        let Payload::Inline(inline) = wrapper.payload else { panic!("{wrapper:?} is no wrapper") };
        let cbw = inline.as_bytes();
        let length = u32::from_le_bytes([cbw[8], cbw[9], cbw[10], cbw[11]]);
        let block = cbw[15..15 + usize::from(cbw[14])].to_vec();
        self.done(wrapper);
        (block, length)
    }

    #[track_caller]
    fn send_status(&mut self, status: u8, residue: u32) {
        let transfer = self.expect_transfer(IN);
        self.answer(transfer, status, residue);
    }

    #[track_caller]
    fn answer(&mut self, transfer: Transfer, status: u8, residue: u32) {
        assert_eq!(transfer.payload, Payload::Message);
        self.tag += 1;
        let [t0, t1, t2, t3] = self.tag.to_le_bytes();
        let [r0, r1, r2, r3] = residue.to_le_bytes();
        self.reply(transfer, &[b'U', b'S', b'B', b'S', t0, t1, t2, t3, r0, r1, r2, r3, status]);
    }

    /// The command that kept the device busy ends.
    #[track_caller]
    fn be_free(&mut self) {
        self.send_status(0, 0);
        assert_eq!(self.expect_finished(100), good(0));
    }

    /// The next wrapper says READ(10) of these blocks; its data transfer.
    #[track_caller]
    fn expect_read(&mut self, lba: u8, blocks: u8) -> Transfer {
        let (block, length) = self.take_wrapper();
        assert_eq!(block, [0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]);
        assert_eq!(length, u32::from(blocks) * 512);
        self.expect_transfer(IN)
    }

    /// A whole READ(10).
    #[track_caller]
    fn serve_read(&mut self, lba: u8, blocks: u8) {
        let payload = self.expect_read(lba, blocks);
        self.done(payload);
        self.send_status(0, 0);
    }

    /// The command has failed, and these are its sense data.
    #[track_caller]
    fn send_failure(&mut self, residue: u32, sense: [u8; 18]) {
        self.send_status(1, residue);
        self.take_wrapper();
        let transfer = self.expect_transfer(IN);
        self.reply(transfer, &sense);
        self.send_status(0, 0);
    }
}

fn sense(key: u8, asc: u8, lba: Option<u8>) -> [u8; 18] {
    let valid = if lba.is_some() { 0xf0 } else { 0x70 };
    [valid, 0, key, 0, 0, 0, lba.unwrap_or(0), 10, 0, 0, 0, 0, asc, 0, 0, 0, 0, 0]
}

fn checked(moved: u32, sense: [u8; 18]) -> Outcome {
    let sense = SenseBytes::new(&sense);
    Outcome::Answered(Answer { status: Status::CheckCondition, status_qualifier: 0, moved, sense })
}

#[test]
fn neighbours_in_the_queue_travel_as_one_and_end_each() {
    let mut script = busy(config());
    script.submit(read_10(0, 8, 2));
    script.submit(read_10(1, 10, 1));
    script.submit(read_10(2, 11, 5));
    script.be_free();
    let payload = script.expect_read(8, 8);
    let Payload::Pieces(pack) = payload.payload else { panic!("{payload:?} is no pack") };
    let pieces: Vec<_> =
        script.transport.pieces(pack).iter().map(|p| (p.command.slot, p.range.len)).collect();
    assert_eq!(pieces, [(0, 1024), (1, 512), (2, 2560)]);
    script.done(payload);
    script.send_status(0, 0);
    assert_eq!(script.expect_finished(0), good(1024));
    assert_eq!(script.expect_finished(1), good(512));
    assert_eq!(script.expect_finished(2), good(2560));
    script.expect_rest();
}

#[test]
fn a_request_by_itself_keeps_its_own_buffer_and_command_block() {
    let mut script = Script::new(Turbo::new(config()));
    script.submit(command(0, &[0x08, 0, 0, 8, 2, 0], Some((Direction::In, 1024))));
    let (block, _) = script.take_wrapper();
    assert_eq!(block, [0x08, 0, 0, 8, 2, 0]);
    let payload = script.expect_transfer(IN);
    assert!(matches!(payload.payload, Payload::Buffer(piece) if piece.command.slot == 0));
    script.done(payload);
    script.send_status(0, 0);
    assert_eq!(script.expect_finished(0), good(1024));
    script.expect_rest();
}

#[test]
fn what_differs_in_anything_is_not_packed() {
    let fua = command(1, &[0x28, 8, 0, 0, 0, 9, 0, 0, 1, 0], Some((Direction::In, 512)));
    let long_blocks = command(1, &[0x28, 0, 0, 0, 0, 9, 0, 0, 1, 0], Some((Direction::In, 520)));
    let mut unit_1 = read_10(1, 9, 1);
    unit_1.lun = wire::scsi::lun::Lun::Unit(1).into();
    let others = [read_10(1, 10, 1), read_10(1, 8, 1), write_10(1, 9, 1), fua, long_blocks, unit_1];
    for other in others {
        let mut script = busy(config());
        script.submit(read_10(0, 8, 1));
        script.submit(other);
        script.be_free();
        let (_, length) = script.take_wrapper();
        assert_eq!(length, 512, "{other:?}");
    }
}

#[test]
fn requests_keep_their_order() {
    let mut script = busy(config());
    script.submit(read_10(0, 8, 1));
    script.submit(read_10(1, 40, 1));
    script.submit(read_10(2, 9, 1));
    script.be_free();
    for (slot, lba) in [(0, 8), (1, 40), (2, 9)] {
        script.serve_read(lba, 1);
        assert_eq!(script.expect_finished(slot), good(512));
    }
}

#[test]
fn a_pack_is_no_longer_than_the_maximum() {
    let mut script = busy(TurboConfig { transfer_bytes_max: 1024, ..config() });
    for slot in 0..3u8 {
        script.submit(read_10(slot.into(), slot.into(), 1));
    }
    script.be_free();
    script.serve_read(0, 2);
    assert_eq!(script.expect_finished(0), good(512));
    assert_eq!(script.expect_finished(1), good(512));
    script.serve_read(2, 1);
    assert_eq!(script.expect_finished(2), good(512));
}

#[test]
fn a_short_pack_is_distributed_from_its_front() {
    let mut script = busy(config());
    for slot in 0..3u8 {
        script.submit(read_10(slot.into(), slot.into(), 1));
    }
    script.be_free();
    let payload = script.expect_read(0, 3);
    script.complete(payload.id, TransferStatus::Short, 700, &[]);
    script.send_status(0, 836);
    assert_eq!(script.expect_finished(0), good(512));
    assert_eq!(script.expect_finished(1), good(188));
    assert_eq!(script.expect_finished(2), good(0));
}

#[test]
fn a_medium_error_splits_a_read_at_its_block() {
    let mut script = busy(config());
    for slot in 0..4u8 {
        script.submit(read_10(slot.into(), u32::from(slot) * 2, 2));
    }
    script.be_free();
    let payload = script.expect_read(0, 8);
    script.complete(payload.id, TransferStatus::Short, 5 * 512, &[]);
    let unreadable = sense(3, 0x11, Some(5));
    script.send_failure(3 * 512, unreadable);
    assert_eq!(script.expect_finished(0), good(1024));
    assert_eq!(script.expect_finished(1), good(1024));
    assert_eq!(script.expect_finished(2), checked(512, unreadable));
    script.serve_read(6, 2);
    assert_eq!(script.expect_finished(3), good(1024));
    script.expect_rest();
}

#[test]
fn an_error_that_says_nothing_of_single_requests_has_each_sent_again_by_itself() {
    let mut script = busy(config());
    for slot in 0..3u8 {
        script.submit(read_10(slot.into(), slot.into(), 1));
    }
    script.be_free();
    let payload = script.expect_read(0, 3);
    script.fail(payload, TransferStatus::Short);
    script.send_failure(1536, sense(4, 0x44, None));
    for slot in 0..3u8 {
        script.serve_read(slot, 1);
        assert_eq!(script.expect_finished(slot.into()), good(512));
    }
    script.expect_rest();
    assert_eq!(script.transport.counters().unpacked, 1);
}

#[test]
fn a_write_is_not_split_but_sent_again() {
    let mut script = busy(config());
    script.submit(write_10(0, 0, 1));
    script.submit(write_10(1, 1, 1));
    script.be_free();
    script.take_wrapper();
    let payload = script.expect_transfer(OUT);
    script.done(payload);
    script.send_failure(0, sense(3, 0x0c, Some(1)));
    for slot in 0..2u8 {
        let (block, _) = script.take_wrapper();
        assert_eq!(block, [0x2a, 0, 0, 0, 0, slot, 0, 0, 1, 0]);
        let payload = script.expect_transfer(OUT);
        script.done(payload);
        script.send_status(0, 0);
        assert_eq!(script.expect_finished(slot.into()), good(512));
    }
}

#[test]
fn a_unit_attention_is_reported_once() {
    let mut script = busy(config());
    for slot in 0..3u8 {
        script.submit(read_10(slot.into(), slot.into(), 1));
    }
    script.be_free();
    let payload = script.expect_read(0, 3);
    script.fail(payload, TransferStatus::Short);
    let attention = sense(6, 0x29, None);
    script.send_failure(1536, attention);
    assert_eq!(script.expect_finished(0), checked(0, attention));
    script.serve_read(1, 2);
    assert_eq!(script.expect_finished(1), good(512));
    assert_eq!(script.expect_finished(2), good(512));
    script.expect_rest();
}

#[test]
fn an_aborted_request_takes_its_pack_down_and_the_others_are_sent_again() {
    let mut script = busy(config());
    for slot in 0..3u8 {
        script.submit(read_10(slot.into(), slot.into(), 1));
    }
    script.be_free();
    let payload = script.expect_read(0, 3);
    script.abort(1);
    script.cancelled(payload);
    script.tag += 1;
    for step in
        [BusRequest::MassStorageReset { interface: 0 }, BusRequest::ClearHalt(IN), BusRequest::ClearHalt(OUT)]
    {
        script.grant(step, BusAnswer::Done);
    }
    assert_eq!(script.expect_finished(1), Outcome::Failed(Failure::Aborted));
    for slot in [0, 2] {
        script.serve_read(slot, 1);
        assert_eq!(script.expect_finished(slot.into()), good(512));
    }
    script.expect_rest();
}

#[test]
fn a_request_in_the_queue_is_aborted_without_the_device() {
    let mut script = busy(config());
    let status = script.expect_transfer(IN);
    script.submit(read_10(0, 8, 1));
    script.abort(0);
    assert_eq!(script.expect_finished(0), Outcome::Failed(Failure::Aborted));
    script.answer(status, 0, 0);
    assert_eq!(script.expect_finished(100), good(0));
    script.expect_rest();
}

#[test]
fn a_failure_of_the_transport_fails_the_whole_pack() {
    let mut script = busy(config());
    script.submit(read_10(0, 0, 1));
    script.submit(read_10(1, 1, 1));
    script.submit(read_10(2, 9, 1));
    script.be_free();
    let payload = script.expect_read(0, 2);
    script.disconnect();
    script.fail(payload, TransferStatus::Disconnected);
    for slot in 0..3 {
        assert_eq!(script.expect_finished(slot), Outcome::Failed(Failure::Disconnected));
    }
    assert_eq!(script.try_submit(read_10(3, 0, 1)), Err(Refusal::Gone));
    script.expect_rest();
}

#[test]
fn a_lone_request_that_goes_on_where_others_ended_waits_a_while() {
    let span = Duration::from_us(100);
    let mut script =
        Script::new(Turbo::new(TurboConfig { look_ahead: LookAhead::AfterNeighbour(span), ..config() }));
    script.submit(read_10(0, 0, 1));
    script.serve_read(0, 1);
    assert_eq!(script.expect_finished(0), good(512));
    script.submit(read_10(1, 1, 1));
    script.expect_nothing();
    script.submit(read_10(2, 2, 1));
    script.expect_nothing();
    script.expect_timeout(DeadlineReason::LookAhead);
    assert_eq!(script.now, Instant::ZERO + span);
    script.serve_read(1, 2);
    assert_eq!(script.expect_finished(1), good(512));
    assert_eq!(script.expect_finished(2), good(512));
    script.expect_rest();
}

#[test]
fn no_request_waits_for_a_neighbour_that_cannot_come() {
    let look_aheads = [LookAhead::AfterNeighbour, LookAhead::Always].map(|of| of(Duration::from_us(100)));
    for look_ahead in look_aheads {
        let mut script = Script::new(Turbo::new(TurboConfig { look_ahead, ..config() }));
        script.transport.expect(1);
        for lba in 0..3_u8 {
            script.submit(read_10(lba.into(), lba.into(), 1));
            script.serve_read(lba, 1);
            assert_eq!(script.expect_finished(lba.into()), good(512));
        }
        // Of two, one does.
        script.transport.expect(2);
        script.submit(read_10(3, 3, 1));
        script.expect_nothing();
        script.submit(read_10(4, 4, 1));
        script.serve_read(3, 2);
        assert_eq!((script.expect_finished(3), script.expect_finished(4)), (good(512), good(512)));
        assert_eq!(script.now, Instant::ZERO);
        script.expect_rest();
    }
}

#[test]
fn a_request_elsewhere_does_not_wait_nor_let_wait() {
    let span = Duration::from_us(100);
    let mut script =
        Script::new(Turbo::new(TurboConfig { look_ahead: LookAhead::AfterNeighbour(span), ..config() }));
    script.submit(read_10(0, 0, 1));
    script.serve_read(0, 1);
    script.expect_finished(0);
    script.submit(read_10(1, 1, 1));
    script.expect_nothing();
    script.submit(read_10(2, 50, 1));
    script.serve_read(1, 1);
    script.expect_finished(1);
    script.serve_read(50, 1);
    script.expect_finished(2);
    script.expect_rest();
}

#[test]
fn an_unconditional_look_ahead_delays_every_access_and_nothing_else() {
    let span = Duration::from_us(50);
    let mut script = Script::new(Turbo::new(TurboConfig { look_ahead: LookAhead::Always(span), ..config() }));
    script.submit(read_10(0, 40, 1));
    script.expect_nothing();
    script.expect_timeout(DeadlineReason::LookAhead);
    script.serve_read(40, 1);
    script.expect_finished(0);
    script.submit(test_unit_ready(1));
    script.take_wrapper();
}

#[test]
fn a_queue_has_a_limit() {
    let mut script = busy(TurboConfig { requests_max: 3, ..config() });
    script.submit(read_10(0, 8, 1));
    script.submit(read_10(1, 16, 1));
    assert_eq!(script.try_submit(read_10(2, 24, 1)), Err(Refusal::Full));
}

#[test]
fn the_time_of_a_request_begins_when_the_device_is_asked() {
    let mut script = busy(config());
    let status = script.expect_transfer(IN);
    for (slot, ms) in [(0, 1400), (1, 9000), (2, 3000)] {
        let mut request = read_10(slot, 8 + u32::from(slot / 2) * 8 + u32::from(slot % 2), 1);
        request.deadline = Instant::ZERO + Duration::from_ms(ms);
        script.submit(request);
    }
    // The device takes so long for another one that all of them would be over.
    script.now = Instant::ZERO + Duration::from_secs(10);
    script.answer(status, 0, 0);
    assert_eq!(script.expect_finished(100), good(0));
    // Two of them travel together, in the time of the more urgent one.
    let reads = script.expect_read(8, 2);
    let at = script.transport.poll_timeout().map(|deadline| deadline.at);
    assert_eq!(at, Some(Instant::ZERO + Duration::from_ms(11_400)));
    script.done(reads);
    script.send_status(0, 0);
    script.expect_finished(0);
    script.expect_finished(1);
    script.expect_read(16, 1);
    let at = script.transport.poll_timeout().map(|deadline| deadline.at);
    assert_eq!(at, Some(Instant::ZERO + Duration::from_ms(13_000)));
}
