//! A host that speaks Bulk-Only Transport, in literal bytes.

use super::{EndedTransfer, HostFixture};
use crate::Transports;
use crate::device::{DATA_IN, DATA_OUT};
use alloc::vec::Vec;
use bus::{Pipe, Speed, TransferId, TransferStatus};

pub(crate) const BULK_IN: Pipe = Pipe::plain(DATA_IN);
pub(crate) const BULK_OUT: Pipe = Pipe::plain(DATA_OUT);

/// dCBWTag of every command: one at a time needs no more.
const TAG: [u8; 4] = [0x44, 0x33, 0x22, 0x11];

/// A command block wrapper for unit 0. `flags` is 80h for data to the host.
pub(crate) fn cbw(bytes: u32, flags: u8, cdb: &[u8]) -> Vec<u8> {
    let mut cbw = b"USBC".to_vec();
    cbw.extend(TAG);
    cbw.extend(bytes.to_le_bytes());
    cbw.extend([flags, 0, cdb.len() as u8]);
    cbw.extend(cdb);
    cbw.resize(31, 0);
    cbw
}

/// A command status wrapper: 0 passed, 1 failed, 2 phase error.
pub(crate) fn csw(residue: u32, status: u8) -> Vec<u8> {
    let mut csw = b"USBS".to_vec();
    csw.extend(TAG);
    csw.extend(residue.to_le_bytes());
    csw.push(status);
    csw
}

impl HostFixture {
    /// A device whose BOT is selected.
    pub(crate) fn bot(speed: Speed) -> Self {
        Self::configured(super::config(speed, Transports::Dual), 0)
    }

    /// The host sends a CBW, which the device must take.
    #[track_caller]
    pub(crate) fn send_cbw(&mut self, bytes: u32, flags: u8, cdb: &[u8]) {
        let id = self.send(BULK_OUT, &cbw(bytes, flags, cdb));
        assert_eq!(self.account_of(id), (TransferStatus::Done, 31));
    }

    /// The host asks for the CSW, after clearing the halt of bulk-in if there is one.
    #[track_caller]
    pub(crate) fn take_csw(&mut self) -> Vec<u8> {
        let mut id = self.want(BULK_IN, 13);
        if !self.is_pending(id) && self.end_of(id).status == TransferStatus::Stall {
            self.clear_halt(DATA_IN);
            id = self.want(BULK_IN, 13);
        }
        self.bytes_of(id).to_vec()
    }

    /// A command that reads: how its data phase ended, and its CSW.
    #[track_caller]
    pub(crate) fn read(&mut self, bytes: u32, cdb: &[u8]) -> (EndedTransfer, Vec<u8>) {
        self.send_cbw(bytes, 0x80, cdb);
        let data = self.want(BULK_IN, bytes);
        let ended = self.end_of(data).clone();
        (ended, self.take_csw())
    }

    /// A command that writes: how its data phase ended, and its CSW.
    #[track_caller]
    pub(crate) fn write(&mut self, bytes: &[u8], cdb: &[u8]) -> (EndedTransfer, Vec<u8>) {
        self.send_cbw(bytes.len() as u32, 0x00, cdb);
        let data = self.send(BULK_OUT, bytes);
        let ended = self.end_of(data).clone();
        if ended.status == TransferStatus::Stall {
            self.clear_halt(DATA_OUT);
        }
        (ended, self.take_csw())
    }

    /// A command without a data phase: its CSW.
    #[track_caller]
    pub(crate) fn run(&mut self, cdb: &[u8]) -> Vec<u8> {
        self.send_cbw(0, 0x00, cdb);
        self.take_csw()
    }

    /// Mass storage reset, then both halts cleared (clause 5.3.4).
    pub(crate) fn recover(&mut self) {
        assert_eq!(self.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]), crate::Verdict::Done);
        self.clear_halt(DATA_IN);
        self.clear_halt(DATA_OUT);
    }

    /// Whether GET_STATUS reports that an endpoint is halted.
    pub(crate) fn is_halted(&mut self, pipe: Pipe) -> bool {
        let status = self.control([0x82, 0x00, 0, 0, pipe.endpoint.into(), 0, 2, 0], &[]);
        status == crate::Verdict::Data(alloc::vec![1, 0])
    }

    /// Sense data of the last command, fetched with REQUEST SENSE: key, code and qualifier.
    #[track_caller]
    pub(crate) fn request_sense(&mut self) -> (u8, u8, u8) {
        let (ended, status) = self.read(18, &[0x03, 0, 0, 0, 18, 0]);
        assert_eq!(status, csw(0, 0));
        (ended.bytes[2] & 0x0f, ended.bytes[12], ended.bytes[13])
    }

    /// Submits without an end in sight: the host's data transfer of a command.
    pub(crate) fn begin_read(&mut self, bytes: u32, cdb: &[u8]) -> TransferId {
        self.send_cbw(bytes, 0x80, cdb);
        self.want(BULK_IN, bytes)
    }
}
