//! A host that speaks USB Attached SCSI, in literal bytes.

use super::{HostFixture, STATUS_ROOM};
use crate::Transports;
use crate::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use alloc::vec::Vec;
use bus::{EndpointAddress, Pipe, Speed, StreamId, TransferId, TransferStatus};

/// TEST UNIT READY.
pub(crate) const TEST_UNIT_READY: [u8; 6] = [0; 6];

/// READ(10).
pub(crate) const fn read_10(lba: u8, blocks: u8) -> [u8; 10] {
    [0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

/// WRITE(10).
pub(crate) const fn write_10(lba: u8, blocks: u8) -> [u8; 10] {
    [0x2a, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

/// FORMAT UNIT with a list that has a short header.
pub(crate) const FORMAT_WITH_LIST: [u8; 6] = [0x04, 0x10, 0, 0, 0, 0];

/// A list of `bytes` bytes, which ends with a pattern of A5h for every block.
pub(crate) fn format_list(bytes: u16) -> Vec<u8> {
    let [high, low] = (bytes - 8).to_be_bytes();
    let mut list = alloc::vec![0, 0x08, 0, 0, 0, 0x01, high, low];
    list.resize(bytes.into(), 0xa5);
    list
}

/// Task attributes.
pub(crate) const SIMPLE: u8 = 0;
pub(crate) const HEAD_OF_QUEUE: u8 = 1;
pub(crate) const ORDERED: u8 = 2;
pub(crate) const ACA: u8 = 4;

/// A COMMAND IU.
pub(crate) fn command_iu(tag: u8, attribute: u8, lun: u8, cdb: &[u8]) -> Vec<u8> {
    let mut iu = alloc::vec![0x01, 0, 0, tag, attribute, 0, 0, 0, 0, lun, 0, 0, 0, 0, 0, 0];
    iu.extend(cdb);
    iu.resize(32, 0);
    iu
}

/// A TASK MANAGEMENT IU.
pub(crate) const fn management_iu(tag: u8, function: u8, managed: u8, lun: u8) -> [u8; 16] {
    [0x05, 0, 0, tag, function, 0, 0, managed, 0, lun, 0, 0, 0, 0, 0, 0]
}

/// A SENSE IU without sense data.
pub(crate) const fn status(tag: u8, status: u8) -> [u8; 16] {
    [0x03, 0, 0, tag, 0, 0, status, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// The SENSE IU of GOOD.
pub(crate) const fn good(tag: u8) -> [u8; 16] {
    status(tag, 0x00)
}

/// The SENSE IU of CHECK CONDITION with fixed sense data that has a key and a code alone.
pub(crate) fn check(tag: u8, key: u8, (code, qualifier): (u8, u8)) -> Vec<u8> {
    let mut iu = status(tag, 0x02).to_vec();
    iu[15] = 18;
    iu.extend([0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0]);
    iu
}

/// A RESPONSE IU.
pub(crate) const fn response(tag: u8, code: u8) -> [u8; 8] {
    [0x04, 0, 0, tag, 0, 0, 0, code]
}

/// The READY IUs.
pub(crate) const fn read_ready(tag: u8) -> [u8; 4] {
    [0x06, 0, 0, tag]
}

pub(crate) const fn write_ready(tag: u8) -> [u8; 4] {
    [0x07, 0, 0, tag]
}

/// A command and the transfers that the host has for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandTransfers {
    pub(crate) status: TransferId,
    pub(crate) data: TransferId,
}

impl HostFixture {
    /// A device whose UAS is selected: with eight streams at super speed, else without.
    pub(crate) fn uas(speed: Speed) -> Self {
        Self::configured(super::config(speed, Transports::Dual), 1)
    }

    fn pipe(&self, endpoint: EndpointAddress, tag: u8) -> Pipe {
        let stream = StreamId::new(tag.into()).filter(|_| self.device.config().speed.has_streams());
        Pipe { endpoint, stream }
    }

    /// The host is ready for an IU on the status pipe.
    pub(crate) fn want_status(&mut self, tag: u8) -> TransferId {
        self.want(self.pipe(STATUS, tag), STATUS_ROOM)
    }

    /// The host is ready for data.
    pub(crate) fn want_data(&mut self, tag: u8, bytes: u32) -> TransferId {
        self.want(self.pipe(DATA_IN, tag), bytes)
    }

    /// The host sends data.
    pub(crate) fn send_data(&mut self, tag: u8, bytes: &[u8]) -> TransferId {
        self.send(self.pipe(DATA_OUT, tag), bytes)
    }

    /// The host sends an IU, which the device must take.
    #[track_caller]
    pub(crate) fn send_iu(&mut self, iu: &[u8]) {
        let id = self.send(Pipe::plain(COMMAND), iu);
        assert_eq!(self.account_of(id), (TransferStatus::Done, iu.len()));
    }

    /// A simple command of unit 0 without data: the transfer of its status.
    pub(crate) fn command(&mut self, tag: u8, cdb: &[u8]) -> TransferId {
        self.command_as(tag, SIMPLE, cdb)
    }

    /// The same with another task attribute.
    pub(crate) fn command_as(&mut self, tag: u8, attribute: u8, cdb: &[u8]) -> TransferId {
        let status = self.want_status(tag);
        self.send_iu(&command_iu(tag, attribute, 0, cdb));
        status
    }

    /// On streams: a command that reads, with room for `bytes` bytes, in the order in which Linux posts them.
    pub(crate) fn read_command(&mut self, tag: u8, bytes: u32, cdb: &[u8]) -> CommandTransfers {
        let status = self.want_status(tag);
        let data = self.want_data(tag, bytes);
        self.send_iu(&command_iu(tag, SIMPLE, 0, cdb));
        CommandTransfers { status, data }
    }

    /// On streams: a command that writes.
    pub(crate) fn write_command(&mut self, tag: u8, bytes: &[u8], cdb: &[u8]) -> CommandTransfers {
        let status = self.want_status(tag);
        let data = self.send_data(tag, bytes);
        self.send_iu(&command_iu(tag, SIMPLE, 0, cdb));
        CommandTransfers { status, data }
    }

    /// A task management function for unit 0: the transfer of its response.
    pub(crate) fn manage(&mut self, tag: u8, function: u8, managed: u8) -> TransferId {
        let status = self.want_status(tag);
        self.send_iu(&management_iu(tag, function, managed, 0));
        status
    }
}
