//! What befalls a world from outside of its machines: faults, planted bugs, and the books that notice.
//!
//! The world asks at each of its seams: when a device sends a status, when a transfer goes to the bus, when something of one has
//! moved, when a command ends, when a packet arrives. Without faults and bugs each answer is "as it is".
//!
//! Always true: what happens to one status, transfer or command is decided here and nowhere else.

use super::drive::DriveSide;
use super::fixed_latency::FixedLatencyDrive;
use super::quiescence::AtRest;
use super::seeded_bugs::{BuggyMedium, is_status, tag_of, with_another_tag, without_attention};
use super::{DirectMachine, StopReason};
use crate::check::{Invariant, Ledger, Violation, ViolationSubject};
use crate::engine::Random;
use crate::fault::{FaultKind, Faults, SeededBug};
use crate::link::Fate;
use crate::link::bulk::{End, Message, Progress};
use crate::link::streams::StreamField;
use crate::link::superspeed::Side;
use crate::link::usb2;
use bus::{EndpointAddress, Pipe, StreamId, TransferId};
use device::device::STATUS;
use device::{Device, DeviceTransfer};
use initiator::{Inline, Payload, Transfer, Transport};
use std::collections::{BTreeSet, VecDeque};
use units::{Duration, Instant};
use wire::bot::Cbw;
use wire::uas::CommandIu;
use wire::usb::Direction;

/// What is going on besides what should.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultInjector {
    pub(super) faults: Faults,
    pub(super) ledger: Ledger,
    pub(super) medium: BuggyMedium,
    /// What the device will offer later, and when. Those of one pipe keep their order.
    late: VecDeque<(Instant, DeviceTransfer)>,
    /// Endpoints that halt by themselves.
    halts: Vec<EndpointAddress>,
    /// Endpoints that are not ready so many times in a row.
    storms: Vec<(EndpointAddress, u8)>,
    /// Why the device is not there any more, and how that turns out.
    gone: Option<(FaultKind, Random)>,
    /// Streams of a status pipe on which a status was sent twice: what comes there may be about an earlier command.
    suspect_streams: BTreeSet<StreamId>,
    /// The same of tags, where a status pipe has no streams.
    suspect_tags: BTreeSet<u16>,
    /// Statuses that came on one of these.
    misattributed: u64,
    /// [`SeededBug::EarlyTag`]: the message of the command before.
    last_command: Option<Inline>,
    /// Whether [`SeededBug::Echo`] has shown.
    echoes: bool,
    /// Whether [`SeededBug::Restless`] has.
    pub(super) is_restless: bool,
}

/// How long a device says NRDY after [`FaultKind::NotReady`].
const NOT_READY: Duration = Duration::from_ms(1);

/// NRDYs in a row of [`FaultKind::NotReadyStorm`], at least and at most.
const STORM_MIN: u8 = 2;
const STORM_MAX: u8 = 32;

/// What becomes of something that a device sends.
#[derive(Debug)]
pub(super) enum Sent {
    /// It goes out.
    Once(DeviceTransfer),
    /// It goes out, and once more for nobody.
    Twice(DeviceTransfer),
    /// It does not go out, and the device does not know.
    Never(DeviceTransfer),
    /// It goes out at this time: see [`FaultInjector::next_deferred`].
    Later(Instant),
}

/// What is left of a world whose device is gone, or was pulled out at its end.
#[derive(Debug)]
pub struct DetachedDrive {
    /// The medium, with what is on it; nothing waits.
    pub plain: FixedLatencyDrive,
    /// The device, if it has kept its power.
    pub device: Option<Device>,
    /// What goes on going wrong.
    pub faults: Faults,
}

impl FaultInjector {
    /// The device sends something, or has room for it.
    pub(super) fn send(&mut self, now: Instant, mut transfer: DeviceTransfer, drive: &DriveSide) -> Sent {
        self.mix_streams(&mut transfer, drive);
        if self.faults.draw(FaultKind::Stall).is_some() {
            self.halts.push(transfer.pipe.endpoint);
        }
        if let Some(mut random) = self.faults.draw(FaultKind::NotReadyStorm) {
            let times = STORM_MIN + random.below(u64::from(STORM_MAX - STORM_MIN) + 1) as u8;
            self.storms.push((transfer.pipe.endpoint, times));
        }
        match &transfer.payload {
            device::Payload::Inline(inline) if is_status(inline) => self.send_status(now, transfer),
            device::Payload::Message => self.send_soon(now, Sent::Once(transfer)),
            _ => Sent::Once(transfer),
        }
    }

    fn send_status(&mut self, now: Instant, mut transfer: DeviceTransfer) -> Sent {
        let device::Payload::Inline(inline) = &transfer.payload else { return Sent::Once(transfer) };
        let wrong = self.faults.draw(FaultKind::StatusTag).map(|random| with_another_tag(inline, random));
        let good =
            || without_attention(inline).filter(|_| self.faults.triggers(SeededBug::ForgottenAttention));
        if let Some(changed) = wrong.or_else(good) {
            self.suspect_tags(&transfer, [tag_of(inline.as_bytes()), tag_of(changed.as_bytes())]);
            transfer.length = changed.as_bytes().len() as u32;
            transfer.payload = device::Payload::Inline(changed);
        }
        if self.faults.draw(FaultKind::StatusLost).is_some() {
            return Sent::Never(transfer);
        }
        if self.faults.draw(FaultKind::StatusTwice).is_some() {
            self.suspect_streams.extend(transfer.pipe.stream);
            if let device::Payload::Inline(inline) = &transfer.payload {
                self.suspect_tags(&transfer, [tag_of(inline.as_bytes()), None]);
            }
            return Sent::Twice(transfer);
        }
        self.send_soon(now, Sent::Once(transfer))
    }

    /// Where there are no streams, a status with one of these tags may be about another command.
    fn suspect_tags(&mut self, transfer: &DeviceTransfer, tags: [Option<u16>; 2]) {
        if transfer.pipe == Pipe::plain(STATUS) {
            self.suspect_tags.extend(tags.into_iter().flatten());
        }
    }

    /// Whether a status without a stream is to be looked at.
    pub(super) fn has_suspect_tags(&self) -> bool {
        !self.suspect_tags.is_empty()
    }

    /// A status has come without a stream.
    pub(super) fn check_status_tag(&mut self, status: &[u8]) {
        let is_suspect = tag_of(status).is_some_and(|tag| self.suspect_tags.contains(&tag));
        self.misattributed += u64::from(is_suspect);
    }

    /// It goes out now, or the device is not ready.
    fn send_soon(&mut self, now: Instant, sent: Sent) -> Sent {
        let Sent::Once(transfer) = sent else { return sent };
        let waits = self.late.iter().rev().find(|(_, late)| late.pipe == transfer.pipe).map(|(due, _)| *due);
        let struck = self.faults.draw(FaultKind::NotReady).map(|_| now + NOT_READY);
        let Some(due) = struck.max(waits) else { return Sent::Once(transfer) };
        self.late.push_back((due, transfer));
        Sent::Later(due)
    }

    /// The next transfer that goes out by now.
    pub(super) fn next_deferred(&mut self, now: Instant) -> Option<DeviceTransfer> {
        let due = self.late.iter().position(|(due, _)| *due <= now)?;
        self.late.remove(due).map(|(_, transfer)| transfer)
    }

    /// The device takes a transfer back. Whether that was still to go out.
    pub(super) fn cancel_deferred(&mut self, id: TransferId) -> bool {
        let place = self.late.iter().position(|(_, transfer)| transfer.id == id);
        place.and_then(|place| self.late.remove(place)).is_some()
    }

    /// The device has been reset, or is gone.
    pub(super) fn clear_deferred(&mut self) {
        self.late.clear();
        self.halts.clear();
        self.storms.clear();
    }

    /// The next endpoint that halts by itself.
    pub(super) fn poll_halt(&mut self) -> Option<EndpointAddress> {
        self.halts.pop()
    }

    /// The next endpoint that is not ready so many times in a row.
    pub(super) fn poll_storm(&mut self) -> Option<(EndpointAddress, u8)> {
        self.storms.pop()
    }

    /// [`SeededBug::Haste`]: whether what is sent on a link takes no time from now on.
    pub(super) fn hurries(&mut self) -> bool {
        self.faults.triggers(SeededBug::Haste)
    }

    /// [`SeededBug::HastyBus`]: the same of data on a bus of USB 2.0.
    pub(super) fn hurries_on_bus(&mut self) -> bool {
        self.faults.triggers(SeededBug::HastyBus)
    }

    /// [`SeededBug::LostEndpoints`]: whether the port of the device has none from now on.
    pub(super) fn forgets_endpoints(&mut self) -> bool {
        self.faults.triggers(SeededBug::LostEndpoints)
    }

    /// What becomes of a packet that is sent.
    pub(super) fn fate(&mut self, message: Message) -> Fate {
        if self.damages_header() { Fate::HeaderDamaged } else { self.fate_at_its_end(message) }
    }

    /// Whether the header of a packet arrives damaged that was sent on a link.
    pub(super) fn damages_header(&mut self) -> bool {
        self.faults.draw(FaultKind::HeaderDamaged).is_some()
    }

    /// What befalls a packet that the links on its way have taken.
    pub(super) fn fate_at_its_end(&mut self, message: Message) -> Fate {
        if message.packet().payload() > 0 && self.faults.draw(FaultKind::PayloadDamaged).is_some() {
            return Fate::PayloadDamaged;
        }
        if self.faults.draw(FaultKind::PacketLost).is_some() { Fate::Lost } else { Fate::Arrives }
    }

    /// The same on a bus of USB 2.0, where nobody answers what arrives damaged.
    pub(super) fn fate_on_bus(&mut self, packet: &usb2::Packet) -> usb2::Fate {
        let kind = match packet {
            usb2::Packet::Data(..) => FaultKind::PayloadDamaged,
            usb2::Packet::Split(_) | usb2::Packet::Token(_) | usb2::Packet::Handshake(_) => {
                FaultKind::HeaderDamaged
            }
        };
        if self.faults.draw(kind).is_some() {
            return usb2::Fate::Damaged;
        }
        if self.faults.draw(FaultKind::PacketLost).is_some() { usb2::Fate::Lost } else { usb2::Fate::Arrives }
    }

    /// The host sends or asks for something.
    pub(super) fn submit(&mut self, mut transfer: Transfer) -> Transfer {
        let Payload::Inline(inline) = &transfer.payload else { return transfer };
        let last = self.last_command.replace(*inline);
        if let (Some(last), true) = (last, self.faults.triggers(SeededBug::EarlyTag)) {
            transfer.payload = Payload::Inline(with_tag_of(inline, &last));
        }
        transfer
    }

    /// Something of a transfer of the host has moved: what it is told as, first and then.
    pub(super) fn progress(&mut self, progress: Progress) -> (Option<Progress>, Progress) {
        if progress.ended.is_none() || progress.moved == 0 || !self.faults.triggers(SeededBug::Residue) {
            return (None, progress);
        }
        let moved = progress.moved - 1;
        (Some(Progress { ended: None, ..progress }), Progress { moved, piece: None, ..progress })
    }

    /// [`SeededBug::UnreportedEnd`] and [`SeededBug::KeptOffer`]: whether the drive is not told of something of its own that has moved, or was taken
    /// back.
    pub(super) fn drops_completion(&mut self, progress: &Progress) -> bool {
        let is_untold = progress.piece.is_none()
            && progress.ended.is_some()
            && self.faults.triggers(SeededBug::UnreportedEnd);
        is_untold || progress.ended == Some(End::Withdrawn) && self.faults.triggers(SeededBug::KeptOffer)
    }

    /// [`SeededBug::UncountedByte`]: bytes of a packet on a bus of USB 2.0 as they are counted.
    pub(super) fn counted(&mut self, payload: u32) -> u32 {
        if payload > 0 && self.faults.triggers(SeededBug::UncountedByte) { payload - 1 } else { payload }
    }

    /// How often the end of a command is told.
    pub(super) fn ends(&mut self) -> usize {
        self.is_restless = self.is_restless || self.faults.triggers(SeededBug::Restless);
        if self.faults.triggers(SeededBug::LostEnd) {
            return 0;
        }
        if self.faults.triggers(SeededBug::EndTwice) { 2 } else { 1 }
    }

    /// [`SeededBug::Echo`]: whether what happens now is to happen again now. Once it has shown it does not end.
    pub(super) fn echoes(&mut self) -> bool {
        self.echoes = self.echoes || self.faults.triggers(SeededBug::Echo);
        self.echoes
    }

    /// Whether a message is heard.
    pub(super) fn receives(&mut self, message: Message) -> bool {
        if let Message::Data { endpoint: STATUS, stream: Some(StreamField::Stream(stream)), .. } = message {
            self.misattributed += u64::from(self.suspect_streams.contains(&stream));
        }
        !matches!(message, Message::Erdy { .. }) || !self.faults.triggers(SeededBug::MissedErdy)
    }

    /// [`SeededBug::MixedStreams`]: data of one command take the place of another's.
    fn mix_streams(&mut self, transfer: &mut DeviceTransfer, drive: &DriveSide) {
        if let device::Payload::Buffer(command, range) = transfer.payload
            && transfer.pipe.endpoint.direction() == Direction::In
            && let Some(other) = drive.another_buffer(command, range)
            && self.faults.triggers(SeededBug::MixedStreams)
        {
            transfer.payload = device::Payload::Buffer(other, range);
        }
    }

    /// A packet arrives: whether the device is not there any more by then.
    pub(super) fn ends_session(&mut self) -> bool {
        self.ends_by(&[FaultKind::Unplug, FaultKind::PowerLoss])
    }

    /// The same of a device behind a controller.
    pub(super) fn ends_session_behind_controller(&mut self, is_behind_hub: bool) -> bool {
        self.ends_by(&[FaultKind::Unplug, FaultKind::PowerLoss, FaultKind::ControllerHalt])
            || is_behind_hub && self.ends_by(&[FaultKind::HubReset])
    }

    fn ends_by(&mut self, kinds: &[FaultKind]) -> bool {
        for &kind in kinds {
            if self.gone.is_none() {
                self.gone = self.faults.draw(kind).map(|random| (kind, random));
            }
        }
        self.gone.is_some()
    }

    /// Why the device is gone, if it is.
    pub(super) fn gone(&self) -> Option<FaultKind> {
        self.gone.as_ref().map(|(kind, _)| *kind)
    }

    /// The device is gone now, if it was not before.
    pub(super) fn go(&mut self, kind: FaultKind, seed: u64) {
        self.gone.get_or_insert_with(|| (kind, Random::new(seed, kind.name())));
    }

    /// Statuses so far that may be about an earlier command than the host believes.
    pub(super) const fn misattributed(&self) -> u64 {
        self.misattributed
    }

    /// What is left when a world ends.
    pub(super) fn leave(mut self, mut drive: DriveSide) -> DetachedDrive {
        let device = match self.gone.take() {
            Some((FaultKind::PowerLoss, random)) => {
                drive.plain.lose_power(random);
                None
            }
            _ => Some(drive.device),
        };
        drive.plain.rest();
        DetachedDrive { plain: drive.plain, device, faults: self.faults }
    }
}

/// Faults and checks of a world.
impl<T: Transport> DirectMachine<T> {
    /// The same with things that go wrong.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.injector.faults = faults;
        self
    }

    /// What goes wrong.
    pub const fn faults(&mut self) -> &mut Faults {
        &mut self.injector.faults
    }

    /// Why the device is gone, if it is.
    pub fn gone(&self) -> Option<FaultKind> {
        self.injector.gone()
    }

    /// Statuses so far that may be about an earlier command than the host believes. Where the tag is that of the stream,
    /// nothing tells them apart.
    pub const fn misattributed(&self) -> u64 {
        self.injector.misattributed
    }

    /// Payload that was carried in vain so far, in bytes: sent again, or to nobody.
    pub const fn wasted_bytes(&self) -> u64 {
        self.injector.ledger.wasted_bytes()
    }

    /// Compares all books. To be asked when a run ends, and as often as one likes before.
    ///
    /// # Errors
    /// The first violation.
    pub fn audit(&mut self) -> Result<(), Violation> {
        let now = self.engine.now();
        if let Some(link) = self.link_pair.link() {
            self.injector.ledger.audit(now, link);
        }
        if let Some(bus) = self.link_pair.bus() {
            self.injector.ledger.audit_bus(now, bus);
        }
        self.drive.audit(now, &mut self.injector.ledger);
        if let Some((law, about)) = self.stopped.and_then(StopReason::breaks) {
            self.injector.ledger.report_violation(law, now, about);
        }
        self.injector.ledger.violation().map_or(Ok(()), Err)
    }

    /// Compares what must be even when nobody wants anything any more: each transfer of the host has ended that `AtRest` does not
    /// let wait, and when the world has been left alone for [`QUIESCE_TIME`](super::QUIESCE_TIME) the drive offers nothing else. Unless a status was
    /// taken for that of an earlier command, so that its own waits for ever.
    ///
    /// # Errors
    /// The violation.
    pub fn audit_rest(&self, is_left_alone: bool) -> Result<(), Violation> {
        let takes_turns = self.link_pair.bus().is_some();
        let was_reset = self.host.transport.counters().resets() > 0;
        let rest = AtRest { takes_turns, was_reset, awaits: self.host.transport.poll_timeout().is_some() };
        if self.injector.misattributed > 0 {
            return Ok(());
        }
        let drive = is_left_alone.then_some((&self.drive, self.injector.faults.has_lost_packets()));
        rest.audit(self.engine.now(), (self.host.in_flight(), "a transfer that has not ended"), drive)
    }

    /// The end of a world, by its device being pulled out or losing its power if it has not yet. What the medium has begun is
    /// done, if the power lasts.
    pub fn end(mut self, kind: FaultKind) -> DetachedDrive {
        if self.injector.gone().is_none() {
            self.injector.go(kind, self.engine.digest());
            self.unplug();
        }
        while self.gone() == Some(FaultKind::Unplug) && self.drive.is_busy() {
            if self.stopped.is_some() || !self.step() {
                break;
            }
        }
        let Self { drive, injector, .. } = self;
        injector.leave(drive)
    }

    /// Endpoints of the device are not ready, or halt, by themselves.
    pub(super) fn inject_endpoint_faults(&mut self) {
        while let Some((endpoint, times)) = self.injector.poll_storm() {
            self.link_pair.device.refuse(endpoint, times);
        }
        while let Some(endpoint) = self.injector.poll_halt() {
            self.halt(endpoint);
        }
    }

    /// Something of a transfer of a side has moved.
    pub(super) fn book(&mut self, side: Side, progress: &Progress) {
        let now = self.engine.now();
        let ledger = &mut self.injector.ledger;
        ledger.progress(now, side, progress);
        let is_in_flight = match side {
            Side::Host => self.host.is_in_flight(progress.id),
            Side::Device => self.drive.is_in_flight(progress.id),
        };
        if !is_in_flight {
            ledger.report_violation(
                Invariant::TransferOnce,
                now,
                ViolationSubject::Transfer(side, progress.id),
            );
        }
    }
}

/// A CBW or COMMAND IU with the tag of another.
fn with_tag_of(inline: &Inline, other: &Inline) -> Inline {
    let (bytes, other) = (inline.as_bytes(), other.as_bytes());
    if let (Ok(cbw), Ok(other)) = (Cbw::decode(bytes), Cbw::decode(other)) {
        return Inline::new(&Cbw { tag: other.tag, ..cbw }.encode());
    }
    let (Ok(command), Ok(other)) = (CommandIu::decode(bytes), CommandIu::decode(other)) else {
        return *inline;
    };
    Inline::new(&CommandIu { tag: other.tag, ..command }.encode())
}
