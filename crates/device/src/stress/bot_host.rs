//! An orderly host over BOT, which may be wrong about its data phase and may reset early.

use super::blocks::{Blocks, Model};
use crate::host_fixture::HostFixture;
use crate::host_fixture::bot::{BULK_IN, BULK_OUT};
use crate::host_fixture::uas::{read_10, write_10};
use alloc::vec::Vec;
use bus::{Pipe, Speed, TransferId, TransferStatus};
use proptest::prelude::*;
use wire::bot::{Csw, CswStatus};

#[derive(Clone, Debug)]
struct HostCommand {
    blocks: Blocks,
    writes: bool,
    /// Blocks that the CBW announces more, or fewer, than the CDB.
    misjudged_by: i8,
    wrong_direction: bool,
    fails: bool,
    /// The host resets after so many answers of the medium.
    reset_after: Option<u8>,
}

struct Host {
    host: HostFixture,
    model: Model,
}

impl Host {
    fn take(&mut self, command: &HostCommand) {
        let HostCommand { blocks, writes, .. } = *command;
        let intent = u32::from(blocks.1) * 512;
        let expected = intent.saturating_add_signed(i32::from(command.misjudged_by) * 512);
        let outward = writes != command.wrong_direction;
        let written = writes.then(|| self.model.begin_write(blocks));
        let read = (!writes).then(|| self.model.begin_read(blocks));
        let cdb = if writes { write_10(blocks.0, blocks.1) } else { read_10(blocks.0, blocks.1) };
        self.host.send_cbw(expected, if outward { 0x00 } else { 0x80 }, &cdb);
        let data = (expected > 0).then(|| self.bring_data(outward, expected, written.as_ref()));
        if !self.serve_medium(command.reset_after, command.fails) {
            self.reset(data);
            if let Some((stamp, _)) = written {
                self.model.end_write(stamp, blocks, false);
            }
            return;
        }
        let moved = data.map_or_else(Vec::new, |data| self.finish_data(data, outward));
        let csw = Csw::decode(&self.host.take_csw()).expect("the device sends what it should");
        assert_eq!(csw.residue, expected - moved.len() as u32);
        let agreed = expected >= intent && !command.wrong_direction;
        assert_eq!(csw.status == CswStatus::PhaseError, !agreed, "{csw:?}");
        if let Some((stamp, _)) = written {
            self.model.end_write(stamp, blocks, csw.status == CswStatus::Passed);
        }
        if let Some(read) = read {
            assert!(csw.status != CswStatus::Passed || moved.len() as u32 == intent);
            self.model.end_read(read, &moved);
        }
    }

    fn bring_data(&mut self, outward: bool, expected: u32, written: Option<&(u32, Vec<u8>)>) -> TransferId {
        if !outward {
            return self.host.want(BULK_IN, expected);
        }
        let mut bytes = written.map_or_else(Vec::new, |(_, bytes)| bytes.clone());
        bytes.resize(expected as usize, 0xdd);
        self.host.send(BULK_OUT, &bytes)
    }

    /// Whether the command has ended before the host resets.
    fn serve_medium(&mut self, reset_after: Option<u8>, fails: bool) -> bool {
        for answers in 0.. {
            let Some(request) = self.host.medium.requests.front() else { break };
            if reset_after == Some(answers) {
                return false;
            }
            self.host.medium.bad = fails.then_some(request.extent.lba.0);
            self.host.answer_medium(0);
        }
        self.host.medium.bad = None;
        true
    }

    fn finish_data(&mut self, data: TransferId, outward: bool) -> Vec<u8> {
        let ended = self.host.end_of(data).clone();
        let pipe: Pipe = if outward { BULK_OUT } else { BULK_IN };
        let (is_stalled, is_halted) = (ended.status == TransferStatus::Stall, self.host.is_halted(pipe));
        // A STALL follows data in that were shorter than expected (BOT 1.0 clause 6.7.2).
        assert!(is_halted == is_stalled || is_halted && !outward);
        if is_halted {
            self.host.clear_halt(pipe.endpoint);
        }
        ended.bytes
    }

    fn reset(&mut self, data: Option<TransferId>) {
        if let Some(data) = data {
            self.host.cancel(data);
        }
        self.host.recover();
        self.host.medium.bad = None;
    }
}

fn any_turn() -> impl Strategy<Value = HostCommand> {
    (
        (0u8..24, prop_oneof![3 => 1u8..4, 1 => 8u8..40]),
        any::<bool>(),
        prop_oneof![4 => Just(0i8), 1 => -4i8..5],
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop_oneof![6 => Just(None), 1 => (0u8..3).prop_map(Some)],
    )
        .prop_map(|(blocks, writes, misjudged_by, wrong_direction, fails, reset_after)| HostCommand {
            blocks,
            writes,
            misjudged_by,
            wrong_direction,
            fails,
            reset_after,
        })
}

proptest! {
    #[test]
    fn an_orderly_host_over_bot_finds_what_it_wrote(
        speed in prop::sample::select(&[Speed::Full, Speed::High, Speed::Super][..]),
        turns in prop::collection::vec(any_turn(), 1..30),
    ) {
        let mut host = HostFixture::bot(speed);
        host.hold_medium();
        let mut host = Host { host, model: Model::default() };
        for command in &turns {
            host.take(command);
        }
        host.host.release_medium();
        host.host.assert_at_rest();
    }
}
