//! A host that breaks every rule: any transfers, anywhere, at any time.

use crate::Transports;
use crate::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use crate::host_fixture::HostFixture;
use crate::host_fixture::bot::cbw;
use crate::host_fixture::uas::{TEST_UNIT_READY, command_iu, good, management_iu};
use alloc::vec::Vec;
use bus::{EndpointAddress, Pipe, Speed, StreamId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Send { endpoint: EndpointAddress, tag: u8, bytes: Vec<u8> },
    Want { endpoint: EndpointAddress, tag: u8, length: u32 },
    Cancel { position: usize },
    AnswerMedium { position: usize, fails: bool },
    Control([u8; 8]),
    ResetPort { alternate: u8 },
}

fn take(host: &mut HostFixture, step: Step) {
    match step {
        Step::Send { endpoint, tag, bytes } => {
            let pipe = pipe(host, endpoint, tag);
            host.send(pipe, &bytes);
        }
        Step::Want { endpoint, tag, length } => {
            let pipe = pipe(host, endpoint, tag);
            host.want(pipe, length);
        }
        Step::Cancel { position } => {
            let pending = host.pending();
            if !pending.is_empty() {
                host.cancel(pending[position % pending.len()]);
            }
        }
        Step::AnswerMedium { position, fails } => {
            let held = host.medium.requests.len();
            if held > 0 {
                host.medium.bad = fails.then_some(host.medium.requests[position % held].extent.lba.0);
                host.answer_medium(position % held);
                host.medium.bad = None;
            }
        }
        Step::Control(setup) => {
            host.control(setup, &[]);
        }
        Step::ResetPort { alternate } => {
            host.reset_port();
            host.configure(alternate);
        }
    }
}

/// The pipe that a host has there: with a stream where UAS runs on streams.
fn pipe(host: &HostFixture, endpoint: EndpointAddress, tag: u8) -> Pipe {
    let streams = host.device.transport() == crate::ActiveTransport::Uas { streams: true };
    match StreamId::new(tag.into()) {
        Some(stream) if streams && endpoint != COMMAND => Pipe::stream(endpoint, stream),
        _ => Pipe::plain(endpoint),
    }
}

fn any_cdb() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        4 => prop::sample::select(&[0x00u8, 0x03, 0x12, 0x15, 0x1a, 0x28, 0x2a, 0x35, 0x3b, 0x42, 0x55, 0x5f, 0x8f][..]),
        1 => any::<u8>(),
    ];
    (opcode, prop::collection::vec(prop_oneof![4 => Just(0), 4 => 0u8..9, 1 => any::<u8>()], 15)).prop_map(
        |(opcode, mut cdb)| {
            cdb.insert(0, opcode);
            cdb
        },
    )
}

/// Something for the command pipe, or for bulk-out: mostly well formed.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let function = prop::sample::select(&[0x01u8, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80, 0x81, 0x82, 0x33][..]);
    let bytes = prop_oneof![Just(0u32), Just(36), Just(512), Just(4096), 0u32..9000];
    prop_oneof![
        8 => (0u8..10, prop_oneof![3 => Just(0u8), 1 => 0u8..6], 0u8..3, any_cdb())
            .prop_map(|(tag, attribute, lun, cdb)| command_iu(tag, attribute, lun, &cdb)),
        3 => (0u8..10, function, 0u8..10, 0u8..3)
            .prop_map(|(tag, function, managed, lun)| management_iu(tag, function, managed, lun).to_vec()),
        8 => (bytes, prop::sample::select(&[0x00u8, 0x80][..]), any_cdb(), 6usize..16)
            .prop_map(|(bytes, flags, cdb, length)| cbw(bytes, flags, &cdb[..length])),
        1 => prop::collection::vec(any::<u8>(), 0..70),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![0u32..40, Just(112u32), Just(512), Just(4096), 0u32..9000];
    let into = prop::sample::select(&[DATA_IN, STATUS][..]);
    let control = prop_oneof![
        (0u8..2, prop::sample::select(&[0x81u8, 0x02, 0x83, 0x04][..])).prop_map(|(set, endpoint)| [
            0x02,
            1 + 2 * set,
            0,
            0,
            endpoint,
            0,
            0,
            0
        ]),
        (0u8..2).prop_map(|alternate| [0x01, 0x0b, alternate, 0, 0, 0, 0, 0]),
        (0u8..2).prop_map(|configuration| [0x00, 0x09, configuration, 0, 0, 0, 0, 0]),
        Just([0x21, 0xff, 0, 0, 0, 0, 0, 0]),
    ];
    prop_oneof![
        12 => any_message().prop_map(|bytes| Step::Send { endpoint: COMMAND, tag: 0, bytes }),
        6 => any_message().prop_map(|bytes| Step::Send { endpoint: DATA_OUT, tag: 0, bytes }),
        6 => (1u8..9, length())
            .prop_map(|(tag, length)| Step::Send { endpoint: DATA_OUT, tag, bytes: alloc::vec![tag; length as usize] }),
        16 => (into, 1u8..9, length()).prop_map(|(endpoint, tag, length)| Step::Want { endpoint, tag, length }),
        3 => (0usize..64).prop_map(|position| Step::Cancel { position }),
        10 => (0usize..16, prop::bool::weighted(0.2))
            .prop_map(|(position, fails)| Step::AnswerMedium { position, fails }),
        3 => control.prop_map(Step::Control),
        1 => (0u8..2).prop_map(|alternate| Step::ResetPort { alternate }),
    ]
}

proptest! {
    #[test]
    fn a_device_survives_a_random_host(
        speed in prop::sample::select(&[Speed::Full, Speed::High, Speed::Super][..]),
        alternate in 0u8..2,
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut host = HostFixture::configured(crate::host_fixture::config(speed, Transports::Dual), alternate);
        host.hold_medium();
        for step in steps {
            take(&mut host, step);
        }
        host.release_medium();
        host.reset_port();
        host.assert_at_rest();
        host.configure(1);
        host.calm();
        for unit in host.device.units_mut() {
            unit.readiness = crate::lun::Readiness::Ready;
        }
        let status = host.command(1, &TEST_UNIT_READY);
        prop_assert_eq!(host.bytes_of(status), good(1));
    }
}
