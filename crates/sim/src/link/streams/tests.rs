//! Scripts of what crosses, worked out by hand, and both ends joined with delays.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

fn id(number: u16) -> StreamId {
    StreamId::new(number).unwrap()
}

const fn none(_: StreamId) -> bool {
    false
}

const fn all(_: StreamId) -> bool {
    true
}

/// Returns the packet that the host sends, if there is one; there must not be two.
fn one(answer: Result<[Option<FromHost>; 2], Violation>) -> Option<FromHost> {
    let [first, second] = answer.unwrap();
    assert_eq!(second, None);
    first
}

/// Both ends after the first Prime.
fn primed(stream: u16) -> (Host, Device) {
    let (mut host, mut device) = (Host::new(), Device::new());
    assert_eq!(host.arm(id(stream)), Some(FromHost::Prime));
    assert_eq!(host.state(), HostState::PrimePipe);
    let answer = device.receive(FromHost::Prime, none).unwrap().unwrap();
    assert_eq!(answer, FromDevice::Nrdy(StreamField::Prime));
    assert_eq!(one(host.receive(answer, none)), None);
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
    (host, device)
}

/// Both ends while a stream moves that the device proposed.
fn moving(stream: u16) -> (Host, Device) {
    let (mut host, mut device) = primed(stream);
    let proposal = device.propose(id(stream)).unwrap();
    assert_eq!(proposal, FromDevice::Erdy(id(stream)));
    let answer = one(host.receive(proposal, all)).unwrap();
    assert_eq!(answer, FromHost::Move(id(stream)));
    assert_eq!(device.receive(answer, none), Ok(None));
    assert_eq!((host.current(), device.current()), (Some(id(stream)), Some(id(stream))));
    (host, device)
}

/// Both ends idle after a stream has moved.
fn moved(stream: u16) -> (Host, Device) {
    let (mut host, mut device) = moving(stream);
    let burst = device.burst(true).unwrap();
    let last = one(host.receive(burst, all)).unwrap();
    assert_eq!(last, FromHost::Last(id(stream)));
    assert_eq!(device.receive(last, none), Ok(None));
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
    (host, device)
}

#[test]
fn reserved_ids_are_those_of_the_standard() {
    assert_eq!([StreamField::Prime.id(), StreamField::NoStream.id()], [0xFFFE, 0xFFFF]);
    assert_eq!(StreamField::Stream(id(7)).id(), 7);
}

#[test]
fn a_stream_that_the_device_ends_leaves_both_idle() {
    moved(3);
}

#[test]
fn a_stream_goes_on_while_the_host_has_buffers_and_ends_with_them() {
    let (mut host, mut device) = moving(3);
    let burst = device.burst(false).unwrap();
    assert_eq!(device.burst(false), None);
    let goes_on = one(host.receive(burst, all)).unwrap();
    assert_eq!(goes_on, FromHost::Move(id(3)));
    assert_eq!(device.receive(goes_on, none), Ok(None));
    let burst = device.burst(false).unwrap();
    let last = one(host.receive(burst, none)).unwrap();
    assert_eq!(last, FromHost::Last(id(3)));
    assert_eq!(device.receive(last, none), Ok(None));
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
}

#[test]
fn a_device_with_nothing_more_declines_its_turn() {
    let (mut host, mut device) = moving(3);
    let declined = device.decline().unwrap();
    assert_eq!(declined, FromDevice::Nrdy(StreamField::Stream(id(3))));
    assert_eq!(one(host.receive(declined, all)), None);
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
}

#[test]
fn a_proposal_without_buffers_is_refused_and_not_repeated_until_prime() {
    let (mut host, mut device) = primed(1);
    let proposal = device.propose(id(2)).unwrap();
    assert_eq!(one(host.receive(proposal, none)), Some(FromHost::NoStream));
    assert_eq!(host.state(), HostState::StartStream);
    let answer = device.receive(FromHost::NoStream, none).unwrap().unwrap();
    assert_eq!(answer, FromDevice::Nrdy(StreamField::NoStream));
    assert_eq!(one(host.receive(answer, none)), None);
    assert_eq!(device.propose(id(2)), None);
    assert!(device.may_propose(id(1)));
    assert_eq!(host.arm(id(2)), Some(FromHost::Prime));
    let answer = device.receive(FromHost::Prime, none).unwrap().unwrap();
    assert_eq!(one(host.receive(answer, none)), None);
    assert_eq!(device.propose(id(2)), Some(FromDevice::Erdy(id(2))));
}

#[test]
fn buffers_for_the_stream_that_moved_last_start_it_without_a_proposal() {
    let (mut host, mut device) = moved(3);
    assert_eq!(host.arm(id(3)), Some(FromHost::Move(id(3))));
    assert_eq!(device.receive(FromHost::Move(id(3)), all), Ok(None));
    assert_eq!(device.current(), Some(id(3)));
}

#[test]
fn a_device_that_is_not_ready_declines_what_the_host_starts() {
    let (mut host, mut device) = moved(3);
    let moves = host.arm(id(3)).unwrap();
    let answer = device.receive(moves, none).unwrap().unwrap();
    assert_eq!(answer, FromDevice::Nrdy(StreamField::Stream(id(3))));
    assert_eq!(one(host.receive(answer, none)), None);
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
}

#[test]
fn a_stream_that_the_host_has_started_is_refused_no_more() {
    let (mut host, mut device) = moved(3);
    let proposal = device.propose(id(3)).unwrap();
    let refusal = one(host.receive(proposal, none)).unwrap();
    let answer = device.receive(refusal, none).unwrap().unwrap();
    assert_eq!(one(host.receive(answer, none)), None);
    // Buffers come; the host starts the stream that moved last by itself, and there is no Prime.
    assert_eq!(host.arm(id(3)), Some(FromHost::Move(id(3))));
    let declined = device.receive(FromHost::Move(id(3)), none).unwrap().unwrap();
    assert_eq!(one(host.receive(declined, all)), None);
    assert_eq!(device.propose(id(3)), Some(FromDevice::Erdy(id(3))));
}

#[test]
fn new_buffers_during_a_stream_are_announced_once_at_its_end() {
    let (mut host, mut device) = moving(3);
    assert_eq!([host.arm(id(4)), host.arm(id(5)), host.arm(id(3))], [None; 3]);
    let burst = device.burst(true).unwrap();
    let [last, prime] = host.receive(burst, none).unwrap().map(Option::unwrap);
    assert_eq!([last, prime], [FromHost::Last(id(3)), FromHost::Prime]);
    assert_eq!(device.receive(last, none), Ok(None));
    let answer = device.receive(prime, none).unwrap().unwrap();
    assert_eq!(one(host.receive(answer, none)), None);
    assert_eq!(host.state(), HostState::Idle);
}

#[test]
fn a_proposal_that_crosses_a_prime_is_forgotten_by_both() {
    let (mut host, mut device) = primed(1);
    let proposal = device.propose(id(2)).unwrap();
    assert_eq!(host.arm(id(2)), Some(FromHost::Prime));
    assert_eq!(one(host.receive(proposal, all)), None);
    let answer = device.receive(FromHost::Prime, none).unwrap().unwrap();
    assert_eq!(one(host.receive(answer, all)), None);
    assert_eq!((host.state(), device.state()), (HostState::Idle, DeviceState::Idle));
    assert!(device.may_propose(id(2)));
}

#[test]
fn a_proposal_that_crosses_a_stream_of_the_host_gives_way_to_it() {
    let (mut host, mut device) = moved(3);
    let proposal = device.propose(id(4)).unwrap();
    let moves = host.arm(id(3)).unwrap();
    assert_eq!(one(host.receive(proposal, all)), None);
    assert_eq!(device.receive(moves, all), Ok(None));
    assert_eq!((host.current(), device.current()), (Some(id(3)), Some(id(3))));
}

#[test]
fn what_the_other_end_could_not_have_sent_disables_the_pipe_for_good() {
    let (mut host, mut device) = primed(1);
    assert_eq!(host.receive(FromDevice::Nrdy(StreamField::Prime), all), Err(Violation));
    assert_eq!((host.state(), host.arm(id(1))), (HostState::Disabled, None));
    assert_eq!(device.receive(FromHost::NoStream, all), Err(Violation));
    assert_eq!(device.receive(FromHost::Prime, all), Err(Violation));
    assert_eq!(device.propose(id(1)), None);
}

/// A possible next step in a world of both ends.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arm(u16),
    Want(u16),
    Deliver,
    Answer,
    Propose,
    Burst { ends: bool },
    Decline,
}

fn step() -> impl Strategy<Value = Step> {
    let streams = 1_u16..5;
    prop_oneof![
        2 => streams.clone().prop_map(Step::Arm),
        2 => streams.prop_map(Step::Want),
        4 => Just(Step::Deliver),
        4 => Just(Step::Answer),
        2 => Just(Step::Propose),
        3 => any::<bool>().prop_map(|ends| Step::Burst { ends }),
        1 => Just(Step::Decline),
    ]
}

/// Both ends, and what is in flight between them. A stream moves when it has buffers and the device
/// wants it.
#[derive(Default)]
struct Joined {
    host: Host,
    device: Device,
    down: VecDeque<FromHost>,
    up: VecDeque<FromDevice>,
    armed: BTreeSet<StreamId>,
    wanted: BTreeSet<StreamId>,
    bursts: u32,
}

impl Joined {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Arm(number) => {
                if self.armed.insert(id(number)) {
                    self.down.extend(self.host.arm(id(number)));
                }
            }
            Step::Want(number) => {
                self.wanted.insert(id(number));
            }
            Step::Deliver => {
                if let Some(packet) = self.down.pop_front() {
                    self.up
                        .extend(self.device.receive(packet, |stream| self.wanted.contains(&stream)).unwrap());
                }
            }
            Step::Answer => {
                if let Some(packet) = self.up.pop_front() {
                    self.answer(packet);
                }
            }
            Step::Propose => {
                let chosen = self.wanted.iter().copied().find(|&stream| self.device.may_propose(stream));
                self.up.extend(chosen.and_then(|stream| self.device.propose(stream)));
            }
            Step::Burst { ends } => {
                let wanted = self.device.current().is_some_and(|stream| self.wanted.contains(&stream));
                self.up.extend(if wanted { self.device.burst(ends) } else { self.device.decline() });
            }
            Step::Decline => self.up.extend(self.device.decline()),
        }
    }

    /// The host takes a packet. One burst in two fills the buffers of its stream.
    fn answer(&mut self, packet: FromDevice) {
        if let FromDevice::Burst { stream, .. } = packet {
            assert_eq!(self.host.current(), Some(stream), "both ends move the same stream");
            assert!(self.armed.contains(&stream), "what moves has buffers");
            self.bursts += 1;
            if self.bursts.is_multiple_of(2) {
                self.armed.remove(&stream);
                self.wanted.remove(&stream);
            }
        }
        let answers = self.host.receive(packet, |stream| self.armed.contains(&stream)).unwrap();
        self.down.extend(answers.into_iter().flatten());
    }

    /// Lets everything happen that can, alternately, until nothing does.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            for step in [Step::Deliver, Step::Answer, Step::Burst { ends: false }, Step::Propose] {
                self.apply(step);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_crosses_each_stream_that_both_want_moves(steps in prop::collection::vec(step(), 0..120)) {
        let mut joined = Joined::default();
        for step in steps {
            joined.apply(step);
        }
        joined.settle();
        let both: Vec<_> = joined.armed.intersection(&joined.wanted).collect();
        prop_assert!(both.is_empty(), "{both:?} never move: {:?}, {:?}", joined.host.state(), joined.device.state());
        prop_assert!(joined.down.is_empty() && joined.up.is_empty());
    }

    #[test]
    fn nothing_that_comes_panics(down in prop::collection::vec((0..4_usize, 1_u16..4), 0..40), up in prop::collection::vec((0..5_usize, 1_u16..4), 0..40)) {
        let (mut host, mut device) = primed(1);
        for (kind, number) in down {
            let stream = id(number);
            let packet = [FromHost::Prime, FromHost::NoStream, FromHost::Move(stream), FromHost::Last(stream)][kind];
            let was_disabled = device.state() == DeviceState::Disabled;
            let result = device.receive(packet, all);
            prop_assert!(!was_disabled || result.is_err());
        }
        for (kind, number) in up {
            let stream = id(number);
            let packet = [
                FromDevice::Erdy(stream),
                FromDevice::Burst { stream, ends: true },
                FromDevice::Nrdy(StreamField::Prime),
                FromDevice::Nrdy(StreamField::NoStream),
                FromDevice::Nrdy(StreamField::Stream(stream)),
            ][kind];
            let was_disabled = host.state() == HostState::Disabled;
            let result = host.receive(packet, all);
            prop_assert!(!was_disabled || result.is_err());
        }
    }
}
