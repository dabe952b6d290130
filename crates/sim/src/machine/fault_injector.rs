//! Fault injection, seeded bugs and invariant checks of a [`DirectMachine`].
//!
//! The machine calls the injector at each of its interfaces: a device sends a status, a transfer
//! goes to the bus, progress is reported, a command completes, a packet arrives. Without faults and
//! bugs each call returns its input.
//!
//! Invariant: the fate of a status, transfer or command is decided here only.

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
use initiator::{Inline, Transport};
use std::collections::{BTreeSet, VecDeque};
use units::{Duration, Instant};
use wire::bot::Cbw;
use wire::uas::CommandIu;
use wire::usb::Direction;

/// Faults, seeded bugs and bookkeeping of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultInjector {
    pub(super) faults: Faults,
    pub(super) ledger: Ledger,
    pub(super) medium: BuggyMedium,
    /// Transfers that the device queues later, and when. Those of one pipe stay in order.
    late: VecDeque<(Instant, DeviceTransfer)>,
    /// Endpoints to halt.
    halts: Vec<EndpointAddress>,
    /// Endpoints to answer NRDY so many times.
    nrdy_bursts: Vec<(EndpointAddress, u8)>,
    /// Why the device is gone, and the random source for the details.
    gone: Option<(FaultKind, Random)>,
    /// Streams of the status pipe on which a status was duplicated: the next one may belong to an
    /// earlier command.
    suspect_streams: BTreeSet<StreamId>,
    /// Like `suspect_streams`, by tag where the status pipe has no streams.
    suspect_tags: BTreeSet<u16>,
    /// Statuses received on one of these.
    misattributed: u64,
    /// [`SeededBug::EarlyTag`]: the IU of the previous command.
    last_command: Option<Inline>,
    /// Whether [`SeededBug::Echo`] has triggered.
    echoes: bool,
    /// Whether [`SeededBug::Restless`] has triggered.
    pub(super) is_restless: bool,
}

/// NRDY period of [`FaultKind::NotReady`].
const NOT_READY: Duration = Duration::from_ms(1);

/// Minimum and maximum NRDYs of [`FaultKind::NotReadyStorm`].
const NRDY_BURST_MIN: u8 = 2;
const NRDY_BURST_MAX: u8 = 32;

/// The fate of a transfer that a device sends.
#[derive(Debug)]
pub(super) enum Sent {
    /// It is sent.
    Once(DeviceTransfer),
    /// It is sent, and a discarded copy too.
    Twice(DeviceTransfer),
    /// It is not sent, and the device does not know.
    Never(DeviceTransfer),
    /// It is sent at this time: see [`FaultInjector::next_deferred`].
    Later(Instant),
}

/// The drive of a machine that has ended.
#[derive(Debug)]
pub struct DetachedDrive {
    /// The medium; no requests are queued.
    pub plain: FixedLatencyDrive,
    /// The device, if it kept its power.
    pub device: Option<Device>,
    /// Its faults.
    pub faults: Faults,
}

impl FaultInjector {
    /// Decides the fate of a transfer that the device queues.
    pub(super) fn send(&mut self, now: Instant, mut transfer: DeviceTransfer, drive: &DriveSide) -> Sent {
        self.mix_streams(&mut transfer, drive);
        if self.faults.draw(FaultKind::Stall).is_some() {
            self.halts.push(transfer.pipe.endpoint);
        }
        if let Some(mut random) = self.faults.draw(FaultKind::NotReadyStorm) {
            let times = NRDY_BURST_MIN + random.below(u64::from(NRDY_BURST_MAX - NRDY_BURST_MIN) + 1) as u8;
            self.nrdy_bursts.push((transfer.pipe.endpoint, times));
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

    /// Marks tags as suspect where the status pipe has no streams.
    fn suspect_tags(&mut self, transfer: &DeviceTransfer, tags: [Option<u16>; 2]) {
        if transfer.pipe == Pipe::plain(STATUS) {
            self.suspect_tags.extend(tags.into_iter().flatten());
        }
    }

    /// Returns whether statuses without a stream need checking.
    pub(super) fn has_suspect_tags(&self) -> bool {
        !self.suspect_tags.is_empty()
    }

    /// Checks the tag of a status without a stream.
    pub(super) fn check_status_tag(&mut self, status: &[u8]) {
        let is_suspect = tag_of(status).is_some_and(|tag| self.suspect_tags.contains(&tag));
        self.misattributed += u64::from(is_suspect);
    }

    /// Sends a transfer now, or later if the device is not ready.
    fn send_soon(&mut self, now: Instant, sent: Sent) -> Sent {
        let Sent::Once(transfer) = sent else { return sent };
        let waits = self.late.iter().rev().find(|(_, late)| late.pipe == transfer.pipe).map(|(due, _)| *due);
        let struck = self.faults.draw(FaultKind::NotReady).map(|_| now + NOT_READY);
        let Some(due) = struck.max(waits) else { return Sent::Once(transfer) };
        self.late.push_back((due, transfer));
        Sent::Later(due)
    }

    /// Returns the next deferred transfer that is due.
    pub(super) fn next_deferred(&mut self, now: Instant) -> Option<DeviceTransfer> {
        let due = self.late.iter().position(|(due, _)| *due <= now)?;
        self.late.remove(due).map(|(_, transfer)| transfer)
    }

    /// Cancels a deferred transfer. Returns whether there was one.
    pub(super) fn cancel_deferred(&mut self, id: TransferId) -> bool {
        let place = self.late.iter().position(|(_, transfer)| transfer.id == id);
        place.and_then(|place| self.late.remove(place)).is_some()
    }

    /// Drops deferred transfers and endpoint faults: the device was reset or is gone.
    pub(super) fn clear_deferred(&mut self) {
        self.late.clear();
        self.halts.clear();
        self.nrdy_bursts.clear();
    }

    /// Returns the next endpoint to halt.
    pub(super) fn poll_halt(&mut self) -> Option<EndpointAddress> {
        self.halts.pop()
    }

    /// Returns the next endpoint to answer NRDY, and how often.
    pub(super) fn poll_nrdy_burst(&mut self) -> Option<(EndpointAddress, u8)> {
        self.nrdy_bursts.pop()
    }

    /// [`SeededBug::Haste`]: returns whether packets on a link take no time from now on.
    pub(super) fn hurries(&mut self) -> bool {
        self.faults.triggers(SeededBug::Haste)
    }

    /// [`SeededBug::HastyBus`]: like [`Self::hurries`], for data on a USB 2.0 bus.
    pub(super) fn hurries_on_bus(&mut self) -> bool {
        self.faults.triggers(SeededBug::HastyBus)
    }

    /// [`SeededBug::LostEndpoints`]: returns whether the device port loses its endpoints.
    pub(super) fn forgets_endpoints(&mut self) -> bool {
        self.faults.triggers(SeededBug::LostEndpoints)
    }

    /// Decides the fate of a packet.
    pub(super) fn fate(&mut self, message: Message) -> Fate {
        if self.damages_header() { Fate::HeaderDamaged } else { self.fate_at_its_end(message) }
    }

    /// Returns whether the header of a packet is corrupted.
    pub(super) fn damages_header(&mut self) -> bool {
        self.faults.draw(FaultKind::HeaderDamaged).is_some()
    }

    /// Decides the fate of a packet at its destination.
    pub(super) fn fate_at_its_end(&mut self, message: Message) -> Fate {
        if message.packet().payload() > 0 && self.faults.draw(FaultKind::PayloadDamaged).is_some() {
            return Fate::PayloadDamaged;
        }
        if self.faults.draw(FaultKind::PacketLost).is_some() { Fate::Lost } else { Fate::Arrives }
    }

    /// Decides the fate of a packet on a USB 2.0 bus, where a corrupted packet is not answered.
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

    /// Processes the bytes of a message that the host submits.
    pub(super) fn submit_message(&mut self, bytes: &mut [u8]) {
        if let Some(changed) = self.change_tag(Inline::new(bytes)) {
            bytes.copy_from_slice(changed.as_bytes());
        }
    }

    /// [`SeededBug::EarlyTag`]: returns a message with the tag of the one before.
    fn change_tag(&mut self, inline: Inline) -> Option<Inline> {
        let last = self.last_command.replace(inline);
        let triggers = self.faults.triggers(SeededBug::EarlyTag);
        last.filter(|_| triggers).map(|last| with_tag_of(&inline, &last))
    }

    /// Returns how progress of a host transfer is reported, in one or two steps.
    pub(super) fn progress(&mut self, progress: Progress) -> (Option<Progress>, Progress) {
        if progress.ended.is_none() || progress.moved == 0 || !self.faults.triggers(SeededBug::Residue) {
            return (None, progress);
        }
        let moved = progress.moved - 1;
        (Some(Progress { ended: None, ..progress }), Progress { moved, piece: None, ..progress })
    }

    /// [`SeededBug::UnreportedEnd`] and [`SeededBug::KeptOffer`]: returns whether the drive does
    /// not learn of progress or of a cancellation.
    pub(super) fn drops_completion(&mut self, progress: &Progress) -> bool {
        let is_untold = progress.piece.is_none()
            && progress.ended.is_some()
            && self.faults.triggers(SeededBug::UnreportedEnd);
        is_untold || progress.ended == Some(End::Withdrawn) && self.faults.triggers(SeededBug::KeptOffer)
    }

    /// [`SeededBug::UncountedByte`]: returns the counted payload of a packet on a USB 2.0 bus.
    pub(super) fn counted(&mut self, payload: u32) -> u32 {
        if payload > 0 && self.faults.triggers(SeededBug::UncountedByte) { payload - 1 } else { payload }
    }

    /// Returns how often a completion is reported.
    pub(super) fn ends(&mut self) -> usize {
        self.is_restless = self.is_restless || self.faults.triggers(SeededBug::Restless);
        if self.faults.triggers(SeededBug::LostEnd) {
            return 0;
        }
        if self.faults.triggers(SeededBug::EndTwice) { 2 } else { 1 }
    }

    /// [`SeededBug::Echo`]: returns whether the event is scheduled again. Once triggered, always.
    pub(super) fn echoes(&mut self) -> bool {
        self.echoes = self.echoes || self.faults.triggers(SeededBug::Echo);
        self.echoes
    }

    /// Returns whether a message is received.
    pub(super) fn receives(&mut self, message: Message) -> bool {
        if let Message::Data { endpoint: STATUS, stream: Some(StreamField::Stream(stream)), .. } = message {
            self.misattributed += u64::from(self.suspect_streams.contains(&stream));
        }
        !matches!(message, Message::Erdy { .. }) || !self.faults.triggers(SeededBug::MissedErdy)
    }

    /// [`SeededBug::MixedStreams`]: sends the data of another command.
    fn mix_streams(&mut self, transfer: &mut DeviceTransfer, drive: &DriveSide) {
        if let device::Payload::Buffer(command, range) = transfer.payload
            && transfer.pipe.endpoint.direction() == Direction::In
            && let Some(other) = drive.another_buffer(command, range)
            && self.faults.triggers(SeededBug::MixedStreams)
        {
            transfer.payload = device::Payload::Buffer(other, range);
        }
    }

    /// Counts a packet arrival. Returns whether the device is gone.
    pub(super) fn ends_session(&mut self) -> bool {
        self.ends_by(&[FaultKind::Unplug, FaultKind::PowerLoss])
    }

    /// Like [`Self::ends_session`], for a device behind a controller.
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

    /// Returns why the device is gone, if it is.
    pub(super) fn gone(&self) -> Option<FaultKind> {
        self.gone.as_ref().map(|(kind, _)| *kind)
    }

    /// Marks the device as gone, unless it is already.
    pub(super) fn go(&mut self, kind: FaultKind, seed: u64) {
        self.gone.get_or_insert_with(|| (kind, Random::new(seed, kind.name())));
    }

    /// Returns the statuses so far that the host may have attributed to the wrong command.
    pub(super) const fn misattributed(&self) -> u64 {
        self.misattributed
    }

    /// Takes the drive out of a machine that ends.
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

/// Faults and invariant checks.
impl<T: Transport> DirectMachine<T> {
    /// Adds faults.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.injector.faults = faults;
        self
    }

    /// Returns the faults.
    pub const fn faults(&mut self) -> &mut Faults {
        &mut self.injector.faults
    }

    /// Returns why the device is gone, if it is.
    pub fn gone(&self) -> Option<FaultKind> {
        self.injector.gone()
    }

    /// Returns the statuses so far that the host may have attributed to the wrong command. With
    /// streams the tag equals the stream, so that nothing distinguishes them.
    pub const fn misattributed(&self) -> u64 {
        self.injector.misattributed
    }

    /// Returns the payload bytes carried in vain: retried or unclaimed.
    pub const fn wasted_bytes(&self) -> u64 {
        self.injector.ledger.wasted_bytes()
    }

    /// Checks all invariants. May be called at any time.
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
        if let Some((invariant, subject)) = self.stopped.and_then(StopReason::breaks) {
            self.injector.ledger.report_violation(invariant, now, subject);
        }
        self.injector.ledger.violation().map_or(Ok(()), Err)
    }

    /// Checks what must hold once no command is outstanding: each host transfer has completed that
    /// `AtRest` does not allow, and after [`QUIESCE_TIME`](super::QUIESCE_TIME) of idle time the
    /// drive has nothing else queued. Not checked if a status was misattributed, since its transfer
    /// then waits forever.
    ///
    /// # Errors
    /// The violation.
    pub fn audit_rest(&self, is_left_alone: bool) -> Result<(), Violation> {
        let takes_turns = self.link_pair.bus().is_some();
        let was_reset = self.host.transport().counters().resets() > 0;
        let rest = AtRest { takes_turns, was_reset, awaits: self.host.transport().poll_timeout().is_some() };
        if self.injector.misattributed > 0 {
            return Ok(());
        }
        let drive = is_left_alone.then_some((&self.drive, self.injector.faults.has_lost_packets()));
        rest.audit(self.engine.now(), self.host.in_flight(), "a transfer that has not ended", drive)
    }

    /// Ends the machine by detaching its device or cutting its power, unless that has happened.
    /// Started medium requests complete if power lasts.
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

    /// Applies endpoint faults: NRDY and halts.
    pub(super) fn inject_endpoint_faults(&mut self) {
        while let Some((endpoint, times)) = self.injector.poll_nrdy_burst() {
            self.link_pair.device.refuse(endpoint, times);
        }
        while let Some(endpoint) = self.injector.poll_halt() {
            self.halt(endpoint);
        }
    }

    /// Books progress of a transfer.
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

/// Returns a CBW or COMMAND IU with the tag of another.
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
