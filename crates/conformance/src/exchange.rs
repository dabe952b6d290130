//! Commands as tests send them: over Bulk-Only Transport and over USB Attached SCSI, with every part visible.
//!
//! Nothing is judged here, and nothing is repeated: an exchange holds what the device did. Left out: reads and writes of blocks
//! (`blocks`).

use crate::bus::Transfer;
use crate::probe::{Probe, hex, status_name};
use bus::{Pipe, StreamId, TransferStatus};
use initiator::{BusAnswer, BusRequest, StreamEndpoints};
use quirks::{BotPlan, Matching, PipeEnd, UasPlan};
use wire::bot::{Cbw, ClassRequest, Csw, CswStatus};
use wire::scsi::Status;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::Sense;
use wire::uas::{CommandIu, ReadyIu, ResponseIu, StatusIu, TaskAttribute};
use wire::usb::Direction;

/// Room for a CSW, and for what a device sends in its place.
const CSW_ROOM: u32 = 512;

/// Room for any IU on the status pipe.
const STATUS_ROOM: u32 = 512;

/// Sense data that REQUEST SENSE asks for.
const SENSE_BYTES: u8 = 252;

/// The data phase that the host announces.
#[derive(Clone, Copy, Debug)]
pub enum AnnouncedData<'a> {
    /// None.
    None,
    /// So many bytes to the host.
    In(u32),
    /// These bytes to the device.
    Out(&'a [u8]),
}

impl AnnouncedData<'_> {
    /// Returns a data phase of so many bytes to the host; none, if there are none.
    pub const fn to_host(length: u32) -> Self {
        if length == 0 { Self::None } else { Self::In(length) }
    }
}

/// The response of a device to one CBW.
#[derive(Clone, Debug, Default)]
pub struct BotExchange {
    /// The tag sent.
    pub tag: u32,
    /// Bytes of data that the host announced.
    pub announced: u32,
    /// How the CBW was taken.
    pub sent: Option<TransferStatus>,
    /// How the data phase ended, if there was one.
    pub data_status: Option<TransferStatus>,
    /// Bytes received.
    pub data: Vec<u8>,
    /// Whether Bulk-In was halted when the CSW was to be read.
    pub stalled_csw: bool,
    /// Bytes that came in place of the CSW, or the CSW itself.
    pub raw_csw: Vec<u8>,
    /// The CSW, if it is valid in itself (clause 6.3.1).
    pub csw: Option<Csw>,
}

impl BotExchange {
    /// Returns the status and the residue, if the CSW is one of this command.
    pub fn end(&self) -> Option<(CswStatus, u32)> {
        self.csw.filter(|csw| csw.tag == self.tag).map(|csw| (csw.status, csw.residue))
    }

    /// Says how it ended, for a verdict.
    pub fn describe(&self) -> String {
        match (self.csw, self.end()) {
            (_, Some((status, residue))) => format!("the CSW says {status}, residue {residue}"),
            (Some(csw), None) => format!("the CSW has tag {:#010x}, not {:#010x}", csw.tag, self.tag),
            (None, _) if self.raw_csw.is_empty() => "there is no CSW".to_owned(),
            (None, _) => format!("in place of a CSW came {}", hex(&self.raw_csw)),
        }
    }
}

/// The result of one command, over either transport.
#[derive(Clone, Debug)]
pub struct ScsiAnswer {
    /// The status.
    pub status: Status,
    /// Data to the host.
    pub data: Vec<u8>,
    /// Sense data, if there are any.
    pub sense: Option<Sense>,
}

impl ScsiAnswer {
    /// Returns whether the status is GOOD.
    pub fn is_good(&self) -> bool {
        self.status == Status::Good
    }

    /// Says how it ended, for a verdict.
    pub fn describe(&self) -> String {
        let sense = self.sense.map_or_else(|| "no sense data".to_owned(), |sense| sense.to_string());
        if self.is_good() {
            format!("GOOD, {} bytes", self.data.len())
        } else {
            format!("{}, {sense}", self.status)
        }
    }
}

/// Times that TEST UNIT READY is sent, for the unit attentions that a reset leaves.
const TRIES: usize = 4;

/// Tags below SuperSpeed: no more commands than this are sent at once.
const TAGS_WITHOUT_STREAMS: u16 = 16;

impl Probe<'_> {
    /// Sends a CBW, carries out the data phase that the host announced, and reads the CSW (clause 5.3, figure 2). STALLs
    /// are cleared as a host does.
    pub fn bot(&mut self, plan: &BotPlan, cbw: &Cbw, data: AnnouncedData<'_>) -> BotExchange {
        let sent = self.send(plan.bulk_out.plain(), &cbw.encode());
        let mut exchange = BotExchange {
            tag: cbw.tag,
            announced: cbw.transfer_len,
            sent: Some(sent),
            ..BotExchange::default()
        };
        if sent != TransferStatus::Done {
            return exchange;
        }
        let (end, status) = match data {
            AnnouncedData::None => (plan.bulk_in, None),
            AnnouncedData::In(length) => {
                let received = self.receive_all(plan.bulk_in.plain(), length);
                exchange.data = received.bytes;
                exchange.raw_csw = received.after.unwrap_or_default();
                (plan.bulk_in, Some(received.status))
            }
            AnnouncedData::Out(bytes) => (plan.bulk_out, Some(self.send_all(plan.bulk_out.plain(), bytes))),
        };
        exchange.data_status = status;
        match status {
            Some(TransferStatus::Stall) if self.clear_halt(end.address) != BusAnswer::Done => {
                return exchange;
            }
            Some(TransferStatus::Cancelled | TransferStatus::Disconnected) => return exchange,
            _ => {}
        }
        if exchange.raw_csw.is_empty() {
            self.read_csw(plan, &mut exchange);
        } else {
            exchange.csw = Csw::decode(&exchange.raw_csw).ok();
        }
        exchange
    }

    fn read_csw(&mut self, plan: &BotPlan, exchange: &mut BotExchange) {
        let (mut status, mut bytes) = self.receive(plan.bulk_in.plain(), CSW_ROOM);
        exchange.stalled_csw = status == TransferStatus::Stall;
        if exchange.stalled_csw && self.clear_halt(plan.bulk_in.address) == BusAnswer::Done {
            (status, bytes) = self.receive(plan.bulk_in.plain(), CSW_ROOM);
        }
        if matches!(status, TransferStatus::Done | TransferStatus::Short) {
            exchange.csw = Csw::decode(&bytes).ok();
            exchange.raw_csw = bytes;
        }
    }

    /// Reset Recovery (clause 5.3.4). Returns whether each step was accepted.
    pub fn reset_recovery(&mut self, plan: &BotPlan) -> bool {
        let interface = plan.place.interface;
        self.control(ClassRequest::MassStorageReset { interface }.encode()).is_ok()
            && self.clear_halt(plan.bulk_in.address) == BusAnswer::Done
            && self.clear_halt(plan.bulk_out.address) == BusAnswer::Done
    }

    /// Runs a command that returns at most `length` bytes, over BOT if the device has it, else over UAS. The transport must
    /// be selected ([`Self::begin_scsi`]).
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub fn scsi(&mut self, lun: u8, cdb: &[u8], length: u32) -> Result<ScsiAnswer, String> {
        match (self.device().bot, self.device().uas) {
            (Some(plan), _) => self.scsi_by_bot(&plan, lun, cdb, length),
            (None, Some(plan)) => {
                let tag = 1;
                let lun = Lun::Unit(lun.into()).into();
                let exchange = self.uas_command(&plan, tag, lun, cdb, AnnouncedData::to_host(length));
                exchange.scsi().ok_or_else(|| exchange.describe())
            }
            (None, None) => Err("the device has no transport".to_owned()),
        }
    }

    fn scsi_by_bot(
        &mut self,
        plan: &BotPlan,
        lun: u8,
        cdb: &[u8],
        length: u32,
    ) -> Result<ScsiAnswer, String> {
        let tag = self.tag();
        let cbw = Cbw::new(tag, length, Direction::In, lun, cdb);
        let exchange = self.bot(plan, &cbw, AnnouncedData::to_host(length));
        self.bot_answer(plan, lun, cdb, exchange)
    }

    /// The status of a command over BOT, with its sense data.
    pub(crate) fn bot_answer(
        &mut self,
        plan: &BotPlan,
        lun: u8,
        cdb: &[u8],
        exchange: BotExchange,
    ) -> Result<ScsiAnswer, String> {
        let length = exchange.announced;
        let Some((status, residue)) = exchange.end() else { return Err(exchange.describe()) };
        let mut bytes = exchange.data;
        match status {
            CswStatus::Passed => {
                // A device may pad the data that it has.
                bytes.truncate(length.saturating_sub(residue) as usize);
                Ok(ScsiAnswer { status: Status::Good, data: bytes, sense: None })
            }
            CswStatus::Failed if cdb.first() != Some(&OperationCode::RequestSense.into()) => {
                let ask = [OperationCode::RequestSense.into(), 0, 0, 0, SENSE_BYTES, 0];
                let answer = self.scsi_by_bot(plan, lun, &ask, SENSE_BYTES.into())?;
                let sense = Sense::decode(&answer.data).ok();
                Ok(ScsiAnswer { status: Status::CheckCondition, data: bytes, sense })
            }
            _ => Err(format!("the CSW says {status}, residue {residue}")),
        }
    }

    /// Selects the transport of [`Self::scsi`]. Returns whether that was possible.
    pub(crate) fn select_scsi(&mut self) -> bool {
        if let Some(plan) = self.device().bot {
            return self.select(plan.place);
        }
        self.device().uas.is_some_and(|plan| self.begin_uas(&plan).is_some())
    }

    /// Selects the transport of [`Self::scsi`] and takes the unit attentions that a reset leaves. `false`: the device does
    /// not answer.
    pub fn begin_scsi(&mut self) -> bool {
        self.select_scsi()
            && (0..TRIES).any(|_| self.scsi(0, &[0; 6], 0).is_ok_and(|answer| answer.is_good()))
    }

    /// Takes the unit attentions that a reset leaves, over UAS. `false`: the device does not get ready.
    pub(crate) fn is_ready_over_uas(&mut self, plan: &UasPlan) -> bool {
        (0..TRIES).any(|_| {
            let exchange = self.uas_command(plan, 1, LunField::default(), &[0; 6], AnnouncedData::None);
            exchange.scsi().is_some_and(|answer| answer.is_good())
        })
    }

    /// Selects UAS and allocates its streams; returns the highest tag that can be used.
    pub fn begin_uas(&mut self, plan: &UasPlan) -> Option<u16> {
        if !self.select(plan.place) {
            return None;
        }
        let Matching::Streams { request } = plan.matching else { return Some(TAGS_WITHOUT_STREAMS) };
        let [status, data_in, data_out] = plan.stream_endpoints();
        let endpoints = StreamEndpoints { status, data_in, data_out };
        let wanted = request.get();
        let answer = self.request(
            &format!("allocate {wanted} streams"),
            BusRequest::AllocateStreams { endpoints, wanted },
        );
        match answer {
            BusAnswer::Streams(granted) => Some(granted),
            _ => None,
        }
    }

    /// Runs a command over UAS, with the data that the host announces.
    pub fn uas_command(
        &mut self,
        plan: &UasPlan,
        tag: u16,
        lun: LunField,
        cdb: &[u8],
        data: AnnouncedData<'_>,
    ) -> UasExchange {
        self.uas(plan, tag, &command_iu(tag, lun, cdb), data)
    }

    /// Sends any bytes on the command pipe and waits for the answer with this tag, with the data that the host announces.
    pub fn uas(&mut self, plan: &UasPlan, tag: u16, iu: &[u8], data: AnnouncedData<'_>) -> UasExchange {
        let mut pending = self.uas_start(plan, tag, iu, data);
        pending.exchange.sent = self.finish(pending.command).map(|completed| completed.status);
        self.uas_finish(plan, pending)
    }

    /// Sends any bytes on the command pipe, without waiting.
    pub(crate) fn uas_start<'d>(
        &mut self,
        plan: &UasPlan,
        tag: u16,
        iu: &[u8],
        announced: AnnouncedData<'d>,
    ) -> PendingUas<'d> {
        let is_streamed = matches!(plan.matching, Matching::Streams { .. });
        let status = self.start(pipe(plan, plan.status, tag), Transfer::Receive(STATUS_ROOM));
        // Without streams data are transferred when READ READY or WRITE READY says whose they are.
        let data = if is_streamed { self.start_data(plan, tag, announced) } else { None };
        let command = self.start(plan.command.plain(), Transfer::Send(iu));
        PendingUas { tag, announced, command, status, data, exchange: UasExchange::default() }
    }

    fn start_data(&mut self, plan: &UasPlan, tag: u16, announced: AnnouncedData<'_>) -> Option<u16> {
        match announced {
            AnnouncedData::None => None,
            AnnouncedData::In(length) => {
                Some(self.start(pipe(plan, plan.data_in, tag), Transfer::Receive(length)))
            }
            AnnouncedData::Out(bytes) => {
                Some(self.start(pipe(plan, plan.data_out, tag), Transfer::Send(bytes)))
            }
        }
    }

    pub(crate) fn uas_finish(&mut self, plan: &UasPlan, pending: PendingUas<'_>) -> UasExchange {
        let PendingUas { tag, announced, mut status, mut data, mut exchange, .. } = pending;
        while let Some(completed) = self.finish(status) {
            exchange.status_transfer = Some(completed.status);
            exchange.raw = completed.bytes;
            match StatusIu::decode(&exchange.raw) {
                Ok(StatusIu::Ready(ReadyIu { tag: ready, .. }))
                    if data.is_none() && !matches!(announced, AnnouncedData::None) =>
                {
                    exchange.ready = Some(ready);
                    data = self.start_data(plan, tag, announced);
                    status = self.start(pipe(plan, plan.status, tag), Transfer::Receive(STATUS_ROOM));
                }
                _ => break,
            }
        }
        let is_good = exchange.scsi().is_some_and(|answer| answer.is_good());
        if let Some(data) = data {
            // A command that failed need not move any.
            let received = if is_good { self.finish(data) } else { self.withdraw(data) };
            exchange.data = received.map(|completed| completed.bytes).unwrap_or_default();
        }
        exchange
    }
}

/// A COMMAND IU.
pub(crate) fn command_iu(tag: u16, lun: LunField, cdb: &[u8]) -> [u8; CommandIu::LEN] {
    let mut block = [0; 16];
    for (place, byte) in block.iter_mut().zip(cdb) {
        *place = *byte;
    }
    let (attribute, lun) = (TaskAttribute::Simple, lun.0);
    CommandIu { tag, attribute, priority: 0, lun, cdb: &block, additional_cdb: &[] }.encode()
}

/// A command over UAS that has not ended.
pub(crate) struct PendingUas<'d> {
    tag: u16,
    announced: AnnouncedData<'d>,
    pub(crate) command: u16,
    status: u16,
    data: Option<u16>,
    pub(crate) exchange: UasExchange,
}

impl PendingUas<'_> {
    /// The same, without the bytes to send: on a stream their transfer has started, and has a copy.
    pub(crate) fn with_started_data(self) -> PendingUas<'static> {
        let Self { tag, command, status, data, exchange, .. } = self;
        PendingUas { tag, announced: AnnouncedData::None, command, status, data, exchange }
    }
}

/// The response of a device to one IU on the command pipe.
#[derive(Clone, Debug, Default)]
pub struct UasExchange {
    /// How the IU was taken.
    pub sent: Option<TransferStatus>,
    /// How the last transfer on the status pipe ended.
    pub status_transfer: Option<TransferStatus>,
    /// Bytes that it brought.
    pub raw: Vec<u8>,
    /// The tag of READ READY, if that came.
    pub ready: Option<u16>,
    /// Data received.
    pub data: Vec<u8>,
}

impl UasExchange {
    /// Returns the RESPONSE IU, if that is the answer.
    pub fn response(&self) -> Option<ResponseIu> {
        match StatusIu::decode(&self.raw) {
            Ok(StatusIu::Response(iu)) => Some(iu),
            _ => None,
        }
    }

    /// Returns the tag of the answer.
    pub fn tag(&self) -> Option<u16> {
        StatusIu::decode(&self.raw).ok().map(|iu| iu.tag())
    }

    /// Returns status, data and sense, if the answer is a SENSE IU.
    pub fn scsi(&self) -> Option<ScsiAnswer> {
        let Ok(StatusIu::Sense(iu)) = StatusIu::decode(&self.raw) else { return None };
        Some(ScsiAnswer { status: iu.status, data: self.data.clone(), sense: Sense::decode(iu.sense).ok() })
    }

    /// Says how it ended, for a verdict.
    pub fn describe(&self) -> String {
        match StatusIu::decode(&self.raw) {
            Ok(iu) => format!("the device answers {iu}"),
            Err(_) if !self.raw.is_empty() => format!("on the status pipe came {}", hex(&self.raw)),
            Err(_) => {
                let how = self.status_transfer.map_or("no answer", status_name);
                format!("the status pipe: {how}")
            }
        }
    }
}

/// The pipe of a command: the stream of its tag, if the plan has streams.
pub(crate) fn pipe(plan: &UasPlan, end: PipeEnd, tag: u16) -> Pipe {
    let stream = StreamId::new(tag).filter(|_| matches!(plan.matching, Matching::Streams { .. }));
    stream.map_or_else(|| end.plain(), |stream| end.stream(stream))
}
