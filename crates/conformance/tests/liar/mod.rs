//! A drive in memory behind a bus that changes messages: what tests of messages must find.

use bus::Pipe;
use initiator::{BusAnswer, BusRequest};
use std::time::Duration;
use uaskit_conformance::{Completed, ControlFailure, DeviceBus, Transfer, VirtualBus};
use wire::bot::{Cbw, Csw};
use wire::uas::CommandIu;
use wire::usb::SetupPacket;

/// A drive that breaks a rule: what it makes of messages on their way.
#[derive(Clone, Copy)]
pub(crate) struct Lie {
    pub(crate) name: &'static str,
    /// The tests that must find it.
    pub(crate) found_by: &'static [&'static str],
    /// Change to a CBW or an IU before the drive receives it.
    pub(crate) sent: fn(&mut Vec<u8>),
    /// Change to the bytes that it sends after this CDB.
    pub(crate) received: fn(&[u8], &mut Vec<u8>),
    /// Change to its answer to a control request.
    pub(crate) control: fn(&SetupPacket, &mut Answer),
}

pub(crate) type Answer = Result<Vec<u8>, ControlFailure>;

pub(crate) const HONEST: Lie =
    Lie { name: "", found_by: &[], sent: |_| {}, received: |_, _| {}, control: |_, _| {} };

/// A drive in memory behind a lie.
pub(crate) struct Liar {
    pub(crate) drive: VirtualBus,
    pub(crate) lie: Lie,
    pub(crate) cdb: Vec<u8>,
}

impl DeviceBus for Liar {
    fn start(&mut self, slot: u16, pipe: Pipe, transfer: Transfer<'_>) {
        let Transfer::Send(bytes) = transfer else { return self.drive.start(slot, pipe, transfer) };
        let mut bytes = bytes.to_vec();
        (self.lie.sent)(&mut bytes);
        if let Ok(cbw) = Cbw::decode(&bytes) {
            self.cdb = cbw.command.to_vec();
        } else if let Ok(iu) = CommandIu::decode(&bytes) {
            self.cdb = iu.cdb.to_vec();
        }
        self.drive.start(slot, pipe, Transfer::Send(&bytes));
    }

    fn cancel(&mut self, slot: u16) {
        self.drive.cancel(slot);
    }

    fn wait(&mut self, limit: Duration) -> Option<Completed> {
        let mut completed = self.drive.wait(limit)?;
        if !completed.bytes.is_empty() {
            (self.lie.received)(&self.cdb, &mut completed.bytes);
            completed.actual = completed.bytes.len() as u32;
        }
        Some(completed)
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure> {
        let answer = self.drive.control(setup, bytes);
        let mut answer = answer.map(|moved| bytes[..moved].to_vec());
        (self.lie.control)(&setup, &mut answer);
        let answer = answer?;
        let moved = answer.len().min(bytes.len());
        bytes[..moved].copy_from_slice(&answer[..moved]);
        Ok(moved)
    }

    fn request(&mut self, request: BusRequest) -> BusAnswer {
        self.drive.request(request)
    }

    fn is_gone(&mut self) -> bool {
        self.drive.is_gone()
    }

    fn lose_power(&mut self, seed: u64) -> bool {
        self.drive.lose_power(seed)
    }
}

/// Changes a CSW.
pub(crate) fn alter_csw(bytes: &mut Vec<u8>, alter: impl FnOnce(&mut Csw)) {
    if let Ok(mut csw) = Csw::decode(bytes) {
        alter(&mut csw);
        *bytes = csw.encode().to_vec();
    }
}

/// Replaces a CDB that begins with these bytes.
pub(crate) fn alter_cdb(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let at = match bytes.len() {
        Cbw::LEN => 15,
        CommandIu::LEN => 16,
        _ => return,
    };
    if bytes[at..].starts_with(from) {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}
