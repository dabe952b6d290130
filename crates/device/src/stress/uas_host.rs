//! An orderly host over UAS, with and without streams.

use super::blocks::{Blocks, Model, Read, Stamp};
use crate::host_fixture::HostFixture;
use crate::host_fixture::uas::{command_iu, management_iu, read_10, write_10};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bus::{Speed, TransferId, TransferStatus};
use proptest::prelude::*;
use wire::uas::{ResponseCode, StatusIu};

/// Tags of commands are 1 to 6, those of functions 7 and 8.
const COMMAND_TAGS: u8 = 6;

#[derive(Clone, Debug)]
enum Step {
    Read(Blocks),
    Write(Blocks),
    Plain { attribute: u8 },
    AbortTask { tag: u8 },
    AbortTaskSet,
    ResetUnit,
    AnswerMedium { position: usize, fails: bool },
    ResetPort,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Read(Read),
    Write(Stamp, Blocks),
}

#[derive(Debug)]
struct Command {
    serial: u64,
    kind: Kind,
    /// Data that the host sends if the device asks, or room for those it reads.
    payload: Vec<u8>,
    status: Option<TransferId>,
    data: Option<TransferId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Status,
    Data,
}

#[derive(Debug)]
struct Host {
    host: HostFixture,
    streams: bool,
    model: Model,
    serial: u64,
    commands: BTreeMap<u8, Command>,
    /// For each function in flight, the commands that it ends.
    functions: BTreeMap<u8, Vec<(u8, u64)>>,
    roles: BTreeMap<TransferId, Role>,
    /// How many of the transfers that have ended the host has looked at.
    seen: usize,
}

impl Host {
    fn new(speed: Speed) -> Self {
        let mut host = HostFixture::uas(speed);
        host.hold_medium();
        Self {
            host,
            streams: speed.has_streams(),
            model: Model::default(),
            serial: 0,
            commands: BTreeMap::new(),
            functions: BTreeMap::new(),
            roles: BTreeMap::new(),
            seen: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Read(blocks) => self.submit(&read_10(blocks.0, blocks.1), 0, |model| {
                (Kind::Read(model.begin_read(blocks)), alloc::vec![0; usize::from(blocks.1) * 512])
            }),
            Step::Write(blocks) => self.submit(&write_10(blocks.0, blocks.1), 0, |model| {
                let (stamp, bytes) = model.begin_write(blocks);
                (Kind::Write(stamp, blocks), bytes)
            }),
            Step::Plain { attribute } => self.submit(&[0; 6], attribute, |_| (Kind::Plain, Vec::new())),
            Step::AbortTask { tag } => self.manage(0x01, tag, |other| other == tag),
            Step::AbortTaskSet => self.manage(0x02, 0, |_| true),
            Step::ResetUnit => self.manage(0x08, 0, |_| true),
            Step::AnswerMedium { position, fails } => {
                let held = self.host.medium.requests.len();
                if held > 0 {
                    let request = &self.host.medium.requests[position % held];
                    self.host.medium.bad = fails.then_some(request.extent.lba.0);
                    self.host.answer_medium(position % held);
                    self.host.medium.bad = None;
                }
            }
            Step::ResetPort => self.reset_port(),
        }
        self.look();
    }

    fn submit(&mut self, cdb: &[u8], attribute: u8, begin: impl FnOnce(&mut Model) -> (Kind, Vec<u8>)) {
        let used = |tag: &u8| {
            self.commands.contains_key(tag)
                || self.functions.values().flatten().any(|(aborted, _)| aborted == tag)
        };
        let Some(tag) = (1..=COMMAND_TAGS).find(|tag| !used(tag)) else { return };
        let (kind, payload) = begin(&mut self.model);
        self.serial += 1;
        let status = self.want_status(tag);
        let command = Command { serial: self.serial, kind, payload, status: Some(status), data: None };
        self.commands.insert(tag, command);
        if self.streams {
            self.bring_data(tag);
        }
        self.host.send_iu(&command_iu(tag, attribute, 0, cdb));
    }

    fn want_status(&mut self, tag: u8) -> TransferId {
        let id = self.host.want_status(tag);
        self.roles.insert(id, Role::Status);
        id
    }

    /// Queues the data transfer of a command, if it has data.
    fn bring_data(&mut self, tag: u8) {
        let command = &self.commands[&tag];
        let id = match command.kind {
            Kind::Plain => return,
            Kind::Read(_) => self.host.want_data(tag, command.payload.len() as u32),
            Kind::Write(..) => self.host.send_data(tag, &command.payload.clone()),
        };
        self.roles.insert(id, Role::Data);
        self.commands.get_mut(&tag).expect("it is in flight").data = Some(id);
    }

    fn manage(&mut self, function: u8, managed: u8, is_meant: impl Fn(u8) -> bool) {
        let Some(tag) = (7..=8).find(|tag| !self.functions.contains_key(tag)) else { return };
        let meant = self.commands.iter().filter(|(tag, _)| is_meant(**tag));
        let meant = meant.map(|(tag, command)| (*tag, command.serial)).collect();
        self.functions.insert(tag, meant);
        self.want_status(tag);
        self.host.send_iu(&management_iu(tag, function, managed, 0));
    }

    fn reset_port(&mut self) {
        self.host.reset_port();
        for (_, command) in core::mem::take(&mut self.commands) {
            if let Kind::Write(stamp, blocks) = command.kind {
                self.model.end_write(stamp, blocks, false);
            }
        }
        self.functions.clear();
        self.seen = self.host.order().len();
        self.host.configure(1);
    }

    /// Looks at what has ended since the last look.
    fn look(&mut self) {
        while let Some(&id) = self.host.order().get(self.seen) {
            self.seen += 1;
            if self.roles.remove(&id) == Some(Role::Status)
                && self.host.end_of(id).status != TransferStatus::Cancelled
            {
                let bytes = self.host.bytes_of(id).to_vec();
                match StatusIu::decode(&bytes).expect("the device sends what it should") {
                    StatusIu::Ready(iu) => {
                        assert!(!self.streams, "no READY IU on streams");
                        let tag = iu.tag as u8;
                        assert_eq!(self.commands[&tag].data, None, "a data phase has one READY IU");
                        self.want_status(tag);
                        self.bring_data(tag);
                    }
                    StatusIu::Sense(iu) => self.end(iu.tag as u8, u8::from(iu.status)),
                    StatusIu::Response(iu) => {
                        assert_eq!(iu.code, ResponseCode::TaskManagementComplete);
                        self.end_function(iu.tag as u8);
                    }
                }
            }
        }
    }

    fn end(&mut self, tag: u8, status: u8) {
        let command = self.commands.remove(&tag).expect("a command ends once");
        let data = command.data.map(|id| self.host.end_of(id).clone());
        match command.kind {
            Kind::Plain => {}
            Kind::Write(stamp, blocks) => self.model.end_write(stamp, blocks, status == 0),
            Kind::Read(read) => {
                let bytes = data.map(|data| data.bytes).unwrap_or_default();
                assert!(status != 0 || bytes.len() == command.payload.len(), "GOOD brings all data");
                self.model.end_read(read, &bytes);
            }
        }
    }

    fn end_function(&mut self, tag: u8) {
        for (tag, serial) in self.functions.remove(&tag).expect("a function ends once") {
            if self.commands.get(&tag).is_none_or(|command| command.serial != serial) {
                continue;
            }
            let command = self.commands.remove(&tag).expect("it is there");
            assert!(
                command.data.is_none_or(|id| !self.host.is_pending(id)),
                "an aborted command has no data"
            );
            if let Kind::Write(stamp, blocks) = command.kind {
                self.model.end_write(stamp, blocks, false);
            }
            if self.streams {
                self.host.cancel(command.status.expect("every command has a status transfer"));
            }
        }
    }

    /// The medium answers everything, and everything ends.
    fn calm(mut self) {
        self.host.release_medium();
        self.look();
        assert!(self.commands.is_empty(), "{:?} have not ended", self.commands);
        assert!(self.functions.is_empty(), "{:?} have not ended", self.functions);
        if !self.streams {
            // Without streams it is unknown which status transfer an aborted command has left.
            for id in self.host.pending() {
                assert_eq!(self.roles.get(&id), Some(&Role::Status));
                self.host.cancel(id);
            }
        }
        self.host.assert_at_rest();
    }
}

fn any_blocks() -> impl Strategy<Value = Blocks> {
    (0u8..24, prop_oneof![3 => 1u8..4, 1 => 8u8..40])
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_blocks().prop_map(Step::Read),
        8 => any_blocks().prop_map(Step::Write),
        3 => (0u8..3).prop_map(|attribute| Step::Plain { attribute }),
        2 => (1..=COMMAND_TAGS).prop_map(|tag| Step::AbortTask { tag }),
        1 => Just(Step::AbortTaskSet),
        1 => Just(Step::ResetUnit),
        16 => (0usize..16, prop::bool::weighted(0.1))
            .prop_map(|(position, fails)| Step::AnswerMedium { position, fails }),
        1 => Just(Step::ResetPort),
    ]
}

proptest! {
    #[test]
    fn an_orderly_host_over_uas_finds_what_it_wrote(
        speed in prop::sample::select(&[Speed::Full, Speed::High, Speed::Super, Speed::Super][..]),
        steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let mut host = Host::new(speed);
        for step in steps {
            host.take(step);
        }
        host.calm();
    }
}
