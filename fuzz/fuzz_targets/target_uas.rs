//! UAS with and without streams: a host that sends anything, in any order, and cancels anything.
#![no_main]

use arbitrary::Arbitrary;
use bus::{EndpointAddress, Pipe, StreamId};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use fuzz::{DriveKind, Host};
use wire::uas::{CommandIu, TaskAttribute, TaskManagementFunction, TaskManagementIu};

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// As a good host: status and data first, then the command.
    Command {
        tag: u8,
        attribute: u8,
        lun: u8,
        cdb: [u8; 16],
        length: u16,
        writes: bool,
    },
    TaskManagement {
        tag: u8,
        function: u8,
        managed: u8,
        lun: u8,
    },
    Message(&'a [u8]),
    Status {
        stream: u8,
        length: u16,
    },
    DataIn {
        stream: u8,
        length: u16,
    },
    DataOut {
        stream: u8,
        bytes: &'a [u8],
    },
    Cancel(u8),
    Turn,
    ClearHalt(u8),
    Interface(bool),
    BusReset,
}

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (byte, actions) = script;
    let kind = DriveKind::from_byte(byte);
    let mut host = Host::plug(kind);
    host.configure(1);
    let pipe = |endpoint: EndpointAddress, stream: u8| {
        let stream = StreamId::new(1 + u16::from(stream) % kind.streams).filter(|_| kind.speed.has_streams());
        stream.map_or(Pipe::plain(endpoint), |stream| Pipe::stream(endpoint, stream))
    };
    for action in actions.into_iter().take(96) {
        match action {
            Action::Command { tag, attribute, lun, cdb, length, writes } => {
                host.read(pipe(STATUS, tag), 112);
                if writes {
                    host.write(pipe(DATA_OUT, tag), &vec![tag; length.into()]);
                } else {
                    host.read(pipe(DATA_IN, tag), length.into());
                }
                let attribute = TaskAttribute::from(attribute % 8);
                let tag = 1 + u16::from(tag) % kind.streams;
                let lun = [0, lun % 3, 0, 0, 0, 0, 0, 0];
                let iu = CommandIu { tag, attribute, priority: 0, lun, cdb: &cdb, additional_cdb: &[] };
                host.write(Pipe::plain(COMMAND), &iu.encode());
            }
            Action::TaskManagement { tag, function, managed, lun } => {
                host.read(pipe(STATUS, tag), 112);
                let iu = TaskManagementIu {
                    tag: 1 + u16::from(tag) % kind.streams,
                    function: TaskManagementFunction::from(function),
                    managed_tag: 1 + u16::from(managed) % kind.streams,
                    lun: [0, lun % 3, 0, 0, 0, 0, 0, 0],
                };
                host.write(Pipe::plain(COMMAND), &iu.encode());
            }
            Action::Message(bytes) => {
                host.write(Pipe::plain(COMMAND), bytes);
            }
            Action::Status { stream, length } => {
                host.read(pipe(STATUS, stream), length.into());
            }
            Action::DataIn { stream, length } => {
                host.read(pipe(DATA_IN, stream), length.into());
            }
            Action::DataOut { stream, bytes } => {
                host.write(pipe(DATA_OUT, stream), bytes);
            }
            Action::Cancel(nth) => host.cancel(nth),
            Action::Turn => host.run_once(),
            Action::ClearHalt(endpoint) => host.clear_halt(endpoint),
            Action::Interface(uas) => host.configure(uas.into()),
            Action::BusReset => {
                host.bus_reset();
                host.configure(1);
            }
        }
    }
    host.unplug();
});
