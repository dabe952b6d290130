//! A whole attachment on a bridge in memory, over Bulk-Only Transport; and one attachment after
//! another on the same bus.

mod temperature;

use super::setup::{Found, FoundInterface, session_config};
use super::*;
use crate::host_bus::{BufferMemory, HostBus, TransferRequest, answer};
use bus::Direction::{self, In, Out};
use bus::{Completion, EndpointAddress, TransferId, TransferStatus};
use initiator::disk::{Done, Doubt, Error};
use initiator::session::{HeapBuffers, SessionBuffers};
use initiator::{BusAnswer, BusRequest, RequestId};
use quirks::{BotPlan, InterfaceSetting, Matching, PipeEnd, Plan, UasPlan};
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::scsi::sense::{AdditionalSense, SenseKey};
use wire::scsi::vpd::VpdPageCode;
use wire::usb::SetupPacket;

/// A bridge with a disk of 32768 blocks that reads as zeroes.
#[derive(Debug, Default)]
struct Bridge {
    buffers: HeapBuffers,
    log_page: Answer,
    smart: Answer,
    /// Answer to every VPD page, in place of its data.
    page: Option<Answer>,
    /// So many VPD pages are lost before that.
    loses_pages: u32,
    /// The tag of the command in flight, how many bytes it wants, and what it brings.
    command: Option<(u32, u32, Answer)>,
    /// The response code, sense key and code of the last command that was refused.
    sense: [u8; 3],
    /// So many writes and flushes are answered with a deferred error.
    loses: u32,
    /// So many writes fail, of which the sense data say nothing.
    forgets: u32,
    /// The residue of reads in their statuses.
    residue: u32,
    /// The data of a write come next.
    takes_data: bool,
    /// The command in flight reads blocks.
    is_read: bool,
    waiting: Vec<TransferRequest>,
    ended: VecDeque<Completion>,
    resets: u32,
    /// The highest unit, if it reports one, and one up to there that is not connected.
    highest: Option<u8>,
    absent: Option<u8>,
    /// It answers nothing any more.
    is_deaf: bool,
    /// Requests and commands received, in order.
    asked: Vec<Asked>,
    /// Flag of a signal, which comes during the setting of an interface or right before a wait.
    signal: Option<Arc<AtomicBool>>,
    signal_comes_with_setting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Setting(u8),
    Cleared(u8),
    HighestUnit,
    /// Of this unit.
    Command(u8),
}

/// Answer to a command.
#[derive(Clone, Debug, Default)]
enum Answer {
    Bytes(Vec<u8>),
    /// With a stall where there is a data phase.
    #[default]
    Refused,
    /// Nothing at all.
    Silence,
}

#[derive(Debug, Default)]
struct Failed {
    is_stall: bool,
}

impl Bridge {
    fn answer(&self, cdb: &[u8]) -> Answer {
        let bytes: &[u8] = match (cdb[0], cdb[1] & 1) {
            _ if self.is_deaf => return Answer::Silence,
            (0x12, 0) => b"\0\0\x06\x02\x1f\0\0\0ACME    Warm disk       1.0 ",
            (0x12, _) if self.page.is_some() => return self.page.clone().unwrap_or_default(),
            // Which VPD pages: 00h, and that of a SCSI / ATA translation.
            (0x12, _) if cdb[2] == 0 => &[0, 0, 0, 2, 0, 0x89],
            (0x2a | 0x35, _) if self.loses > 0 => return Answer::Refused,
            (0x2a, _) if self.forgets > 0 => return Answer::Refused,
            (0x2a | 0x35, _) => &[],
            (0x25, _) => &[0, 0, 0x7f, 0xff, 0, 0, 2, 0],
            (0x00, _) => &[],
            (0x28, _) => return Answer::Bytes(vec![0; usize::from(cdb[8]) * 512]),
            (0x03, _) => {
                let [response, key, code] = self.sense;
                return Answer::Bytes(
                    [response, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, 0, 0, 0, 0, 0].into(),
                );
            }
            (0x4d, _) => return self.log_page.clone(),
            (0x85, _) => return self.smart.clone(),
            _ => return Answer::Refused,
        };
        Answer::Bytes(bytes.to_vec())
    }

    fn end(&mut self, request: &TransferRequest, status: TransferStatus, actual: usize) {
        self.ended.push_back(Completion { id: request.id, status, actual: actual as u32 });
    }

    fn take_wrapper(&mut self, request: &TransferRequest) {
        let wrapper = self.buffers.get(request.span).expect("a buffer of this bus").to_vec();
        assert_eq!((&wrapper[..4], wrapper.len()), (&b"USBC"[..], 31));
        let word = |at: usize| u32::from_le_bytes(wrapper[at..at + 4].try_into().expect("four bytes"));
        self.asked.push(Asked::Command(wrapper[13]));
        let answer = match self.answer(&wrapper[15..]) {
            Answer::Bytes(mut bytes) if wrapper[15] == 0x12 && self.absent == Some(wrapper[13]) => {
                bytes[0] = 0x7f;
                Answer::Bytes(bytes)
            }
            _ if wrapper[15] == 0x12 && wrapper[16] & 1 == 1 && self.loses_pages > 0 => {
                self.loses_pages -= 1;
                Answer::Silence
            }
            answer => answer,
        };
        if matches!(answer, Answer::Refused) {
            let is_lost = matches!(wrapper[15], 0x2a | 0x35) && self.loses > 0;
            let is_forgotten = wrapper[15] == 0x2a && !is_lost;
            self.loses -= u32::from(is_lost);
            self.forgets -= u32::from(is_forgotten);
            self.sense = match (is_lost, is_forgotten) {
                (true, _) => [0x71, 0x03, 0x0c],
                (_, true) => [0x70, 0x00, 0x00],
                _ => [0x70, 0x05, 0x20],
            };
        }
        self.is_read = wrapper[15] == 0x28;
        self.takes_data = word(8) > 0 && wrapper[12] & 0x80 == 0;
        let wanted = if self.takes_data { 0 } else { word(8) };
        self.command = Some((word(4), wanted, answer));
        self.end(request, TransferStatus::Done, 31);
    }

    /// The data of a command, then its status.
    fn bring(&mut self, request: TransferRequest) {
        let Some((tag, wanted, answer)) = self.command.take() else { return self.waiting.push(request) };
        let is_status = wanted == 0;
        let bytes = match answer {
            Answer::Silence => {
                self.command = Some((tag, wanted, answer));
                return self.waiting.push(request);
            }
            Answer::Refused if is_status => status(tag, 0, 1),
            Answer::Refused => {
                self.command = Some((tag, 0, answer));
                return self.end(&request, TransferStatus::Stall, 0);
            }
            Answer::Bytes(_) if is_status => status(tag, if self.is_read { self.residue } else { 0 }, 0),
            Answer::Bytes(bytes) => {
                self.command = Some((tag, 0, Answer::Bytes(Vec::new())));
                bytes
            }
        };
        let len = self.buffers.copy_in(request.span, &bytes);
        let whole = len == request.span.range.len as usize;
        self.end(&request, if whole { TransferStatus::Done } else { TransferStatus::Short }, len);
    }
}

/// A status wrapper.
fn status(tag: u32, residue: u32, status: u8) -> Vec<u8> {
    [&b"USBS"[..], &tag.to_le_bytes(), &residue.to_le_bytes(), &[status]].concat()
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

impl HostBusError for Failed {
    fn is_stall(&self) -> bool {
        self.is_stall
    }

    fn is_disconnect(&self) -> bool {
        false
    }
}

impl HostBus for Bridge {
    type Buffers = HeapBuffers;

    fn buffers(&mut self) -> &mut HeapBuffers {
        &mut self.buffers
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        match request.pipe.endpoint.direction() {
            Direction::Out if self.takes_data => {
                self.takes_data = false;
                self.end(&request, TransferStatus::Done, request.span.range.len as usize);
            }
            Direction::Out => self.take_wrapper(&request),
            Direction::In => self.bring(request),
        }
        None
    }

    fn cancel(&mut self, id: TransferId) {
        if let Some(at) = self.waiting.iter().position(|request| request.id == id) {
            let request = self.waiting.remove(at);
            self.end(&request, TransferStatus::Cancelled, 0);
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        self.ended.pop_front()
    }

    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(answer(self, request))
    }
}

impl HardwareBus for Bridge {
    type Error = Failed;

    fn is_zero_copy(&self) -> bool {
        true
    }

    fn reap(&mut self) -> Result<bool, Failed> {
        Ok(!self.ended.is_empty())
    }

    fn wait(&mut self, limit: Option<std::time::Duration>) -> Result<Readiness, Failed> {
        if let Some(signal) = &self.signal {
            signal.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(limit.unwrap_or_default());
        Ok(Readiness::TimeOver)
    }

    fn take_fault(&mut self) -> Option<Failed> {
        None
    }

    fn select_alternate(&mut self, alternate: u8) -> Result<(), Failed> {
        self.asked.push(Asked::Setting(alternate));
        if let Some(signal) = self.signal.as_ref().filter(|_| self.signal_comes_with_setting) {
            signal.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn allocate_streams(&mut self, _endpoints: [EndpointAddress; 3], _wanted: u16) -> Result<u16, Failed> {
        Err(Failed::default())
    }

    /// Get Max LUN, or Bulk-Only Mass Storage Reset.
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, Failed> {
        if setup.encode() == [0xa1, 0xfe, 0, 0, 0, 0, 1, 0] {
            self.asked.push(Asked::HighestUnit);
            bytes[0] = self.highest.ok_or(Failed { is_stall: true })?;
            return Ok(1);
        }
        (self.command, self.resets) = (None, self.resets + 1);
        Ok(0)
    }

    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), Failed> {
        self.asked.push(Asked::Cleared(endpoint.into()));
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failed> {
        (self.command, self.resets) = (None, self.resets + 1);
        Ok(())
    }

    fn close(self) -> Result<(), Failed> {
        Ok(())
    }
}

/// The disk of a bridge, asked on its way up.
fn attached(bridge: Bridge) -> Attachment<Bridge> {
    let ask_temperature = AskTemperature::ByLogOrSmart;
    attached_as(bridge, &AttachConfig { ask_temperature, ..small(TransportChoice::Bot) })
}

fn small(transport: TransportChoice) -> AttachConfig {
    AttachConfig { transport, slots: 2, slot_bytes: 4096, ..AttachConfig::default() }
}

fn attached_as(bridge: Bridge, config: &AttachConfig) -> Attachment<Bridge> {
    found_as(bridge, Found::Unbound { alternate: 0 }, config)
}

fn found_as(bridge: Bridge, found: Found, config: &AttachConfig) -> Attachment<Bridge> {
    let attached = set_up(bridge, (bot(), found), config);
    attached.unwrap_or_else(|failed| panic!("the disk is identified whatever it reports: {}", failed.1))
}

fn bot() -> Plan {
    Plan::Bot(BotPlan { place: PLACE, bulk_in: end::<1>(In), bulk_out: end::<2>(Out) })
}

const PLACE: InterfaceSetting = InterfaceSetting { configuration: 1, interface: 0, alternate: 0 };

fn end<const NUMBER: u8>(direction: Direction) -> PipeEnd {
    PipeEnd { address: EndpointAddress::at::<NUMBER>(direction), packet_bytes: 1024, burst_packets: 1 }
}

fn set_up(
    mut bridge: Bridge,
    (plan, found): (Plan, Found),
    config: &AttachConfig,
) -> Result<Attachment<Bridge>, Box<(Bridge, AttachError<Failed>)>> {
    let config_of_session = session_config(plan, config);
    let firsts = bridge.buffers.allocate(SessionBuffers::blocks(&config_of_session));
    let buffers = SessionBuffers::new(firsts, &config_of_session);
    let stop = bridge.signal.clone().map_or_else(Stop::default, Stop::when);
    Attachment::set_up(FoundInterface { bus: bridge, plan, found }, buffers, config, &stop).map_err(Box::new)
}

/// Reads a block; what that had to bear.
fn read(disk: &mut Attachment<Bridge>) -> AttachmentCounters {
    let before = disk.counters();
    let operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
    disk.submit(0, operation, Extent::new(9, 1)).expect("it is taken");
    let finished = disk.wait(Instant::now() + std::time::Duration::from_secs(5)).expect("the bus works");
    assert_eq!(finished.map(|finished| finished.result), Some(Ok(Done { moved: 512 })));
    let after = disk.counters();
    assert_eq!(after.transport, before.transport, "a read bears nothing of what was asked before it");
    assert_eq!(after.disk.sent_again, before.disk.sent_again);
    after
}

#[test]
fn a_write_that_was_lost_is_reported_at_once_and_by_the_flush() {
    let mut disk = attached(Bridge { loses: 2, ..Bridge::default() });
    let mut ask = |operation, extent| {
        disk.submit(0, operation, extent).expect("it is taken");
        let finished = disk.wait(Instant::now() + std::time::Duration::from_secs(5)).expect("the bus works");
        (finished.map(|finished| finished.result), disk.poll_lost())
    };
    let write = Operation::Write { fua: false, dpo: false };
    let (key, additional) = (SenseKey::MediumError, AdditionalSense::WRITE_ERROR);
    let lost = LostWrite { key, additional, lba: None };
    assert_eq!(ask(write, Extent::new(9, 1)), (Some(Ok(Done { moved: 512 })), Some(lost)));
    let flush = Operation::Flush;
    assert_eq!(ask(flush, Extent::default()), (Some(Err(Error::LostWrite(lost))), Some(lost)));
    assert_eq!(ask(flush, Extent::default()), (Some(Ok(Done { moved: 0 })), None));
    assert_eq!(disk.counters().disk.lost_writes, 2);
}

#[test]
fn a_write_that_fails_about_nothing_is_written_again_and_never_a_success() {
    let mut disk = attached(Bridge { forgets: 1, ..Bridge::default() });
    let mut write = || {
        let before = disk.counters().disk.sent_again;
        disk.submit(0, Operation::Write { fua: false, dpo: false }, Extent::new(9, 1)).expect("it is taken");
        let finished = disk.wait(Instant::now() + std::time::Duration::from_secs(5)).expect("the bus works");
        let again = disk.counters().disk.sent_again - before;
        disk.session.bus_mut().forgets = 5;
        (finished.map(|finished| finished.result), again)
    };
    assert_eq!(write(), (Some(Ok(Done { moved: 512 })), 1));
    let (key, additional) = (SenseKey::NoSense, AdditionalSense { asc: 0, ascq: 0 });
    assert_eq!(write(), (Some(Err(Error::Sense { key, additional })), 4));
}

#[test]
fn a_disk_that_says_nothing_to_a_page_is_identified_long_before_the_limit_and_again_as_well() {
    let began = Instant::now();
    let mut disk = attached(Bridge { page: Some(Answer::Silence), ..Bridge::default() });
    // It is asked twice.
    let seconds = began.elapsed().as_secs();
    assert!((10..30).contains(&seconds), "{seconds} s");
    let doubts = &disk.geometry().doubts;
    assert!(doubts.contains(&Doubt::Page(VpdPageCode::SupportedPages)), "{doubts:?}");
    let counters = read(&mut disk);
    assert_eq!((counters.transport.timeouts, disk.session.bus().resets), (2, 2));
    // From then on once, within what a later identify sequence may take.
    let again = disk.temperature(AskTemperature::ByLog).expect("it is identified again");
    assert_eq!((again, disk.counters().transport.timeouts, disk.session.bus().resets), (None, 3, 3));
}

#[test]
fn a_disk_whose_answer_to_a_page_is_lost_once_is_known_as_any_other() {
    let mut disk = attached(Bridge { loses_pages: 1, ..Bridge::default() });
    assert_eq!(disk.geometry(), attached(Bridge::default()).geometry());
    let counters = read(&mut disk);
    assert_eq!((counters.transport.timeouts, disk.session.bus().resets), (1, 1));
}

#[test]
fn residues_that_are_known_to_mean_nothing_are_not_believed() {
    for transport in [TransportChoice::Bot, TransportChoice::Turbo] {
        let config = AttachConfig { ignore_residue: true, ..small(transport) };
        let mut disk = attached_as(Bridge { residue: 512, ..Bridge::default() }, &config);
        read(&mut disk);
    }
}

#[test]
fn a_signal_ends_an_identification_whenever_it_comes() {
    for signal_comes_with_setting in [true, false] {
        let signal = Some(Arc::new(AtomicBool::new(false)));
        let bridge = Bridge { is_deaf: true, signal, signal_comes_with_setting, ..Bridge::default() };
        let began = Instant::now();
        let found = Found::Used { settings: 2 };
        let failed = set_up(bridge, (bot(), found), &small(TransportChoice::Bot));
        let (bridge, error) = *failed.expect_err("it is stopped");
        assert!(matches!(error, AttachError::IdentifyInterrupted), "{error}");
        assert!(began.elapsed().as_secs_f64() < 2.0, "{:?}", began.elapsed());
        assert_eq!(bridge.resets, 0);
    }
}

/// Returns the requests that came before the first command.
fn begun_by(bridge: &mut Bridge) -> Vec<Asked> {
    let asked = std::mem::take(&mut bridge.asked).into_iter();
    asked.take_while(|asked| !matches!(asked, Asked::Command(_))).collect()
}

#[test]
fn an_attachment_follows_another_on_the_same_interface() {
    let mut disk = attached_as(Bridge::default(), &small(TransportChoice::Bot));
    assert_eq!(begun_by(disk.session.bus_mut()), []);
    read(&mut disk);
    let cleared = [Asked::Cleared(0x81), Asked::Cleared(0x02)];
    for (transport, found, begun) in [
        // The caller that has one setting may not know SET_INTERFACE.
        (TransportChoice::Turbo, Found::Used { settings: 1 }, &cleared[..]),
        (TransportChoice::Bot, Found::Used { settings: 2 }, &[Asked::Setting(0)]),
        (TransportChoice::Bot, Found::Unbound { alternate: 1 }, &[Asked::Setting(0)]),
    ] {
        assert!(disk.session.is_at_rest());
        disk.session.bus_mut().asked.clear();
        disk = found_as(disk.session.into_bus(), found, &small(transport));
        assert_eq!(begun_by(disk.session.bus_mut()), begun);
        read(&mut disk);
    }
}

#[test]
fn what_is_in_flight_is_not_at_rest() {
    let mut disk = attached_as(Bridge::default(), &small(TransportChoice::Bot));
    disk.session.bus_mut().is_deaf = true;
    disk.submit(0, Operation::Flush, Extent::default()).expect("it is taken");
    assert!(!disk.session.is_at_rest());
}

#[test]
fn over_turbo_one_request_at_a_time_does_not_wait_for_another() {
    let look_ahead = LookAhead::AfterNeighbour(Duration::from_secs(60));
    let mut disk =
        attached_as(Bridge::default(), &AttachConfig { look_ahead, ..small(TransportChoice::Turbo) });
    disk.expect(1);
    for lba in 0..3 {
        let operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
        disk.submit(0, operation, Extent::new(lba, 1)).expect("it is taken");
        let finished = disk.wait(Instant::now() + std::time::Duration::from_secs(5)).expect("the bus works");
        assert_eq!(finished.map(|finished| finished.result), Some(Ok(Done { moved: 512 })), "block {lba}");
    }
}

#[test]
fn the_bus_is_returned_after_a_failed_setup() {
    let plan = Plan::Uas(UasPlan {
        place: InterfaceSetting { alternate: 1, ..PLACE },
        command: end::<1>(Out),
        status: end::<2>(In),
        data_in: end::<3>(In),
        data_out: end::<4>(Out),
        matching: Matching::Streams { request: NonZeroU16::MIN },
    });
    let found = Found::Unbound { alternate: 0 };
    let failed = set_up(Bridge::default(), (plan, found), &small(TransportChoice::Uas));
    let (mut bridge, _) = *failed.expect_err("this bridge has no streams");
    assert_eq!(begun_by(&mut bridge), [Asked::Setting(1)]);
    read(&mut found_as(bridge, Found::Used { settings: 2 }, &small(TransportChoice::Bot)));
}

#[test]
fn all_commands_are_of_the_unit_that_is_driven() {
    for (lun, before) in [(0, &[][..]), (2, &[Asked::HighestUnit])] {
        let bridge = Bridge { highest: Some(3), ..Bridge::default() };
        let mut disk = attached_as(bridge, &AttachConfig { lun, ..small(TransportChoice::Turbo) });
        read(&mut disk);
        let commands = disk.session.bus().asked.iter().filter(|asked| matches!(asked, Asked::Command(_)));
        assert!(commands.clone().count() > 4 && commands.clone().all(|asked| *asked == Asked::Command(lun)));
        assert_eq!(begun_by(disk.session.bus_mut()), before);
    }
}

#[test]
fn a_unit_that_is_not_there_comes_with_those_that_are() {
    let found = Found::Unbound { alternate: 0 };
    for (highest, absent, lun, units) in [
        // Past the highest; where the drive does not report it; up to the highest, and not connected.
        (Some(1), None, 2, &[0, 1][..]),
        (None, None, 1, &[0]),
        (Some(2), Some(1), 1, &[0, 2]),
        (Some(1), Some(0), 0, &[1]),
    ] {
        let bridge = Bridge { highest, absent, ..Bridge::default() };
        let config = AttachConfig { lun, ..small(TransportChoice::Bot) };
        let (bridge, error) = *set_up(bridge, (bot(), found), &config).expect_err("there is no such unit");
        let AttachError::NoUnit { lun: refused, units: those } = error else { panic!("{error}") };
        assert_eq!((refused, &those[..]), (lun, units));
        let is_asked = bridge.asked.iter().any(|asked| matches!(asked, Asked::Command(_)));
        assert_eq!(is_asked, absent.is_some(), "nothing is sent to a unit that cannot be");
    }
    let config = AttachConfig { lun: 16, ..small(TransportChoice::Bot) };
    let failed = set_up(Bridge::default(), (bot(), found), &config).expect_err("a wrapper has four bits");
    assert!(matches!(failed.1, AttachError::UnitOutOfReach { lun: 16 }), "{}", failed.1);
}
