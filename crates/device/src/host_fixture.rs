//! A device with a bus without time, a memory medium, and a host that a test plays.
//!
//! The host submits transfers; after each one everything that can happen happens, except at a medium
//! that is held. What the device asks of its driver is carried out here and checked on the way.
//!
//! Always true, or the test fails: no transfer id is reused or completes twice; a buffer is
//! acquired before it is named, no range leaves it, and it is released once.

pub(crate) mod bot;
pub(crate) mod medium;
pub(crate) mod uas;

use crate::command::{CommandId, DataLocation, Limits};
use crate::lun::LogicalUnit;
use crate::lun::fixture::Fixture;
use crate::output::{DeviceTransfer, Output, Payload};
use crate::{Device, DeviceConfig, Transports, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bus::rendezvous::{Completed, CopyRange, Rendezvous, TransferSink};
use bus::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
use medium::Medium;
use wire::usb::SetupPacket;

/// Bytes that the host has room for on the status pipe, as Linux has.
pub(crate) const STATUS_ROOM: u32 = 112;

type Bus = Rendezvous<TransferId, TransferId>;

/// The device, and everything around it.
#[derive(Debug)]
pub(crate) struct HostFixture {
    pub(crate) device: Device,
    pub(crate) medium: Medium,
    bus: Bus,
    /// The host's transfers in flight, and their bytes.
    host_transfers: BTreeMap<TransferId, Vec<u8>>,
    /// The host's transfers that have ended.
    ended: BTreeMap<TransferId, EndedTransfer>,
    offers: BTreeMap<TransferId, Offered>,
    buffers: BTreeMap<CommandId, Vec<u8>>,
    /// Names of the host's transfers in the order of their ends.
    order: Vec<TransferId>,
    host_names: u64,
    last_device_name: Option<TransferId>,
}

/// A host transfer that has ended, with the bytes that were moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndedTransfer {
    pub(crate) status: TransferStatus,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
struct Offered {
    transfer: DeviceTransfer,
    message: Vec<u8>,
}

/// Events of the bus.
#[derive(Debug)]
enum BusEvent {
    Copy(CopyRange, TransferId, TransferId),
    Device(Completion),
    Host(Completion),
}

/// All that it says of one step.
#[derive(Debug, Default)]
struct BusEvents(Vec<BusEvent>);

impl TransferSink<TransferId, TransferId> for BusEvents {
    fn copy(&mut self, range: CopyRange, host: &mut TransferId, device: &mut TransferId) {
        self.0.push(BusEvent::Copy(range, *host, *device));
    }

    fn device_completed(&mut self, ended: Completed<&mut TransferId>, _host: Option<&TransferId>) {
        self.0.push(BusEvent::Device(Completion {
            id: *ended.context,
            status: ended.status,
            actual: ended.actual,
        }));
    }

    fn host_completed(&mut self, ended: Completed<&mut TransferId>) {
        self.0.push(BusEvent::Host(Completion {
            id: *ended.context,
            status: ended.status,
            actual: ended.actual,
        }));
    }
}

/// A device with two units that says little and does much: two to four of everything.
pub(crate) fn config(speed: Speed, transports: Transports) -> DeviceConfig {
    DeviceConfig {
        speed,
        transports,
        streams: 8,
        bus_power_ma: 0,
        bot_short_data: Default::default(),
        vendor_id: 0x1209,
        product_id: 0x0001,
        release: 0x0100,
        manufacturer: "ACME".into(),
        product: "Disk".into(),
        serial: "0123456789AB".into(),
        limits: Limits { commands: 6, buffer_bytes: 1 << 16, segment_bytes: 4096 },
        recorded: None,
    }
}

impl HostFixture {
    /// A device that was just plugged in.
    pub(crate) fn new(config: DeviceConfig) -> Self {
        let unit = || match config.transports.is_cbi() {
            true => Fixture::floppy(),
            false => Fixture::new(),
        };
        let units: Vec<LogicalUnit> = (0..2).map(|_| LogicalUnit::new(unit().unit.config)).collect();
        let capacity = units[0].config.capacity.0 as usize;
        Self {
            medium: Medium::new(units.len(), capacity),
            bus: Rendezvous::new(config.speed),
            device: Device::new(config, units),
            host_transfers: BTreeMap::new(),
            ended: BTreeMap::new(),
            offers: BTreeMap::new(),
            buffers: BTreeMap::new(),
            order: Vec::new(),
            host_names: 0,
            last_device_name: None,
        }
    }

    /// A device that the host has configured, and whose unit attention conditions it has seen.
    pub(crate) fn configured(config: DeviceConfig, alternate: u8) -> Self {
        let mut host = Self::new(config);
        host.configure(alternate);
        host.calm();
        host
    }

    /// SET ADDRESS, SET CONFIGURATION and SET INTERFACE.
    pub(crate) fn configure(&mut self, alternate: u8) {
        self.control([0x00, 0x05, 7, 0, 0, 0, 0, 0], &[]);
        self.control([0x00, 0x09, 1, 0, 0, 0, 0, 0], &[]);
        assert_eq!(self.control([0x01, 0x0b, alternate, 0, 0, 0, 0, 0], &[]), Verdict::Done);
    }

    /// Forgets every unit attention condition.
    pub(crate) fn calm(&mut self) {
        for unit in self.device.units_mut() {
            unit.attentions = Default::default();
        }
    }

    /// A control transfer.
    pub(crate) fn control(&mut self, setup: [u8; 8], data_out: &[u8]) -> Verdict {
        let setup = SetupPacket::decode(&setup).unwrap();
        let verdict = self.device.handle_control(setup, data_out);
        if setup.selects_setting() && verdict != Verdict::Stall {
            self.on_bus(|bus, heard| bus.cancel_all_host(heard));
        }
        self.settle();
        verdict
    }

    /// CLEAR FEATURE (ENDPOINT_HALT).
    pub(crate) fn clear_halt(&mut self, endpoint: EndpointAddress) {
        assert_eq!(self.control([0x02, 0x01, 0, 0, endpoint.into(), 0, 0, 0], &[]), Verdict::Done);
    }

    /// The host resets the port, and with it ends what it has on the bus.
    pub(crate) fn reset_port(&mut self) {
        self.on_bus(|bus, heard| bus.disconnect(heard));
        self.settle();
        self.device.handle_bus_reset();
        self.settle();
    }

    /// The host sends `bytes`.
    pub(crate) fn send(&mut self, pipe: Pipe, bytes: &[u8]) -> TransferId {
        self.submit(pipe, bytes.to_vec())
    }

    /// The host has room for `length` bytes.
    pub(crate) fn want(&mut self, pipe: Pipe, length: u32) -> TransferId {
        self.submit(pipe, alloc::vec![0; length as usize])
    }

    /// The host takes a transfer back.
    pub(crate) fn cancel(&mut self, id: TransferId) {
        self.on_bus(|bus, heard| bus.cancel_host(|&own| own == id, heard));
        self.settle();
    }

    /// Whether a host transfer has not ended.
    pub(crate) fn is_pending(&self, id: TransferId) -> bool {
        self.host_transfers.contains_key(&id)
    }

    /// The host's transfers in flight, oldest first.
    pub(crate) fn pending(&self) -> Vec<TransferId> {
        self.host_transfers.keys().copied().collect()
    }

    /// Names of the host's transfers in the order of their ends.
    pub(crate) fn order(&self) -> &[TransferId] {
        &self.order
    }

    /// How a host transfer has ended.
    #[track_caller]
    pub(crate) fn end_of(&self, id: TransferId) -> &EndedTransfer {
        self.ended.get(&id).expect("the transfer has ended")
    }

    /// The bytes of a host transfer that has ended without an error.
    #[track_caller]
    pub(crate) fn bytes_of(&self, id: TransferId) -> &[u8] {
        let ended = self.end_of(id);
        assert!(matches!(ended.status, TransferStatus::Done | TransferStatus::Short), "{ended:?}");
        &ended.bytes
    }

    /// How many bytes a host transfer moved, and how it ended.
    #[track_caller]
    pub(crate) fn account_of(&self, id: TransferId) -> (TransferStatus, usize) {
        let ended = self.end_of(id);
        (ended.status, ended.bytes.len())
    }

    /// Whether host transfers have ended in this order.
    #[track_caller]
    pub(crate) fn assert_order(&self, expected: &[TransferId]) {
        let order: Vec<_> = self.order.iter().filter(|id| expected.contains(id)).copied().collect();
        assert_eq!(order, expected);
    }

    /// Holds the medium: it answers nothing until it is released.
    pub(crate) fn hold_medium(&mut self) {
        self.medium.is_held = true;
    }

    /// The medium answers everything, in order, from now on.
    pub(crate) fn release_medium(&mut self) {
        self.medium.is_held = false;
        self.settle();
    }

    /// The held medium answers the request at this place in its queue.
    pub(crate) fn answer_medium(&mut self, position: usize) {
        let request = self.medium.requests.remove(position).expect("so many requests are held");
        self.perform(request);
        self.settle();
    }

    /// Fails unless the host has no transfer left, and the device no command and no buffer.
    #[track_caller]
    pub(crate) fn assert_at_rest(&self) {
        assert!(self.host_transfers.is_empty(), "the host waits for {:?}", self.host_transfers.keys());
        assert!(self.device.is_idle(), "{} commands are in flight", self.device.depth());
        assert!(self.buffers.is_empty(), "buffers of {:?} are held", self.buffers.keys());
    }

    fn submit(&mut self, pipe: Pipe, bytes: Vec<u8>) -> TransferId {
        self.host_names += 1;
        let id = TransferId(self.host_names);
        let length = bytes.len() as u32;
        self.host_transfers.insert(id, bytes);
        let taken = self.on_bus(|bus, heard| bus.submit_host(pipe, length, || id, heard));
        taken.expect("a test has few transfers");
        self.settle();
        id
    }

    /// Lets everything happen that can.
    fn settle(&mut self) {
        loop {
            if let Some(output) = self.device.poll_output().map(bus::Front::take) {
                self.carry_out(output);
            } else if let Some(request) = self.medium.next() {
                self.perform(request);
            } else {
                return;
            }
        }
    }

    /// Says something to the bus, and handles what it answers before anything else.
    fn on_bus<T>(&mut self, say: impl FnOnce(&mut Bus, &mut BusEvents) -> T) -> T {
        let mut heard = BusEvents::default();
        let answer = say(&mut self.bus, &mut heard);
        heard.0.into_iter().for_each(|word| self.handle_word(word));
        answer
    }

    fn handle_word(&mut self, word: BusEvent) {
        match word {
            BusEvent::Copy(copied, host, device) => self.carry(copied, host, device),
            BusEvent::Device(completion) => self.complete_device(completion),
            BusEvent::Host(completion) => self.complete_host(completion),
        }
    }

    fn complete_host(&mut self, completion: Completion) {
        let Completion { id, status, actual } = completion;
        let mut bytes = self.host_transfers.remove(&id).expect("a host transfer completes once");
        bytes.truncate(actual as usize);
        self.order.push(id);
        self.ended.insert(id, EndedTransfer { status, bytes });
    }

    fn complete_device(&mut self, completion: Completion) {
        let offered = self.offers.remove(&completion.id).expect("a transfer completes once");
        self.device.handle_completion(completion, &offered.message);
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Transfer(transfer) => self.offer(transfer),
            Output::Cancel(id) => self.on_bus(|bus, heard| bus.cancel_device(|&own| own == id, heard)),
            Output::Finish(pipe) => self.on_bus(|bus, heard| bus.finish(pipe, heard)),
            Output::FinishBoth(data_in, data_out) => self.on_bus(|bus, heard| {
                bus.finish(data_in, heard);
                bus.finish(data_out, heard);
            }),
            Output::Halt(endpoint) => self.on_bus(|bus, heard| bus.halt(endpoint, heard)),
            Output::ClearHalt(endpoint) => self.bus.clear_halt(endpoint),
            Output::Acquire(command, bytes) => {
                let earlier = self.buffers.insert(command, alloc::vec![0xee; bytes as usize]);
                assert_eq!(earlier, None, "a command has one buffer");
            }
            Output::Release(command) => {
                self.buffers.remove(&command).expect("a buffer is released once");
            }
            Output::Medium(request) => self.medium.requests.push_back(request),
        }
    }

    fn offer(&mut self, transfer: DeviceTransfer) {
        assert!(self.last_device_name < Some(transfer.id), "{:?} is not a new name", transfer.id);
        self.last_device_name = Some(transfer.id);
        let room = match &transfer.payload {
            Payload::Inline(inline) => inline.as_bytes().len(),
            Payload::Reply(command) => self.device.reply(*command).len(),
            Payload::Buffer(command, range) => self.buffers[command][range.as_usize()].len(),
            Payload::Message | Payload::Nowhere => transfer.length as usize,
        };
        let is_in = transfer.pipe.endpoint.direction() == Direction::In;
        // Zeros may follow what the device sends.
        assert!(room == transfer.length as usize || is_in && room < transfer.length as usize);
        let DeviceTransfer { id, pipe, length, ends, .. } = transfer;
        self.offers.insert(id, Offered { transfer, message: Vec::new() });
        self.on_bus(|bus, heard| bus.submit_device(pipe, length, ends, || id, heard));
    }

    fn carry(&mut self, copied: CopyRange, host: TransferId, device: TransferId) {
        let CopyRange { direction, host_offset, device_offset, bytes, .. } = copied;
        let range = |offset: u32| offset as usize..(offset + bytes) as usize;
        let host = &mut self.host_transfers.get_mut(&host).expect("bytes move in a transfer in flight")
            [range(host_offset)];
        let offered = self.offers.get_mut(&device).expect("bytes move in a transfer in flight");
        match (direction, &offered.transfer.payload) {
            (Direction::In, Payload::Inline(inline)) => {
                copy_padded(host, inline.as_bytes(), device_offset);
            }
            (Direction::In, &Payload::Reply(command)) => {
                copy_padded(host, self.device.reply(command), device_offset);
            }
            (Direction::In, &Payload::Buffer(command, part)) => {
                copy_padded(host, &self.buffers[&command][part.as_usize()], device_offset);
            }
            (Direction::Out, &Payload::Buffer(command, part)) => {
                let buffer = self.buffers.get_mut(&command).expect("the buffer is still held");
                buffer[part.as_usize()][range(device_offset)].copy_from_slice(host);
            }
            (Direction::Out, Payload::Message) => offered.message.extend_from_slice(host),
            (Direction::Out, Payload::Nowhere) => {}
            (direction, payload) => panic!("{payload:?} does not go {direction}"),
        }
    }

    fn perform(&mut self, request: crate::medium::MediumRequest) {
        let mut parameters = self.device.reply(request.id.command).to_vec();
        let buffer = match request.location {
            DataLocation::Parameters => Some(&mut parameters),
            DataLocation::Buffer => self.buffers.get_mut(&request.id.command),
        };
        let buffer = buffer.map_or(&mut [][..], |buffer| &mut buffer[request.range.as_usize()]);
        let completion = self.medium.perform(request, buffer);
        self.device.handle_medium(completion);
    }
}

/// Fills `host` with the bytes of a payload from this offset on, and with zeros where there are no more.
fn copy_padded(host: &mut [u8], payload: &[u8], offset: u32) {
    let rest = payload.get(offset as usize..).unwrap_or_default();
    let (bytes, zeros) = host.split_at_mut(rest.len().min(host.len()));
    bytes.copy_from_slice(&rest[..bytes.len()]);
    zeros.fill(0);
}
