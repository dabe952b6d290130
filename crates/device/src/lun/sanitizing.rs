//! A sanitize operation that is not over, as it outlives a power loss (SBC-4 clause 4.11).
//!
//! Nothing stops a sanitize operation. So its command is saved beside the medium before the first block
//! changes, and removed when the last one is durable; a unit that finds it at power-on restarts it. A failure is saved in
//! the same way: after a power cycle the unit tries once more.
//!
//! ```text
//!  0..10  the CDB          10..  its parameter list
//! ```
//! Always true: while the record is not known to be saved, the medium is unchanged and the previous state can be restored.

use super::Readiness;
use super::durable::{self, Section};
use alloc::vec::Vec;
use wire::scsi::cdb::Sanitize;
use wire::scsi::opcode::SanitizeAction;

/// Bytes of the CDB.
const CDB_BYTES: usize = 10;

/// The operation in progress, or the one that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sanitizing {
    record: Option<Record>,
    /// The previous readiness, until the record is saved.
    before: Option<(Readiness, Option<Record>)>,
}

/// The command, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its CDB.
    pub cdb: [u8; CDB_BYTES],
    /// Its parameter list; empty for an erase.
    pub list: Vec<u8>,
}

impl Sanitizing {
    /// Restores the operation in progress at power loss, if there was one.
    pub fn new(durable_state: Option<&[u8]>) -> Self {
        let saved = durable_state.and_then(|state| durable::section(state, Section::Sanitize));
        Self { record: saved.and_then(Record::decode), before: None }
    }

    /// The bytes for [`Section::Sanitize`], none if no operation is in progress.
    pub fn durable_bytes(&self) -> Vec<u8> {
        self.record.as_ref().map_or(Vec::new(), |record| [&record.cdb[..], &record.list].concat())
    }

    /// The operation that is not over.
    pub const fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// How a unit comes up that finds a record.
    pub fn readiness(&self) -> Readiness {
        let command = self.record.as_ref().and_then(Record::command);
        command.map_or(Readiness::Ready, |command| Readiness::Sanitizing {
            unrestricted_exit: command.allow_unrestricted_exit,
        })
    }

    /// A new operation is to be recorded, on a unit that is `readiness`.
    pub fn begin(&mut self, readiness: Readiness, record: Record) {
        self.before = Some((readiness, self.record.replace(record)));
    }

    /// The record is saved, or the medium saves none: the work may begin. Returns whether it was pending.
    pub fn confirm(&mut self) -> bool {
        self.before.take().is_some()
    }

    /// The record could not be saved: restores the previous readiness. `None` if the work has begun already.
    pub fn withdraw(&mut self) -> Option<Readiness> {
        let (readiness, record) = self.before.take()?;
        self.record = record;
        Some(readiness)
    }

    /// The operation is over, or its failure was left.
    pub fn forget(&mut self) {
        self.record = None;
    }
}

impl Record {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&cdb, list) = bytes.split_first_chunk()?;
        let record = Self { cdb, list: list.into() };
        record.command().is_some().then_some(record)
    }

    fn command(&self) -> Option<Sanitize> {
        use SanitizeAction as Action;
        let does_work = |command: &Sanitize| match command.service_action {
            Action::Overwrite => !self.list.is_empty(),
            Action::BlockErase | Action::CryptographicErase => true,
            _ => false,
        };
        Sanitize::decode(&self.cdb).ok().filter(does_work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERASE: [u8; 10] = [0x48, 0x22, 0, 0, 0, 0, 0, 0, 0, 0];

    fn restored(bytes: &[u8]) -> Sanitizing {
        Sanitizing::new(Some(&durable::encode(&[(Section::Sanitize, bytes)])))
    }

    fn erase() -> Record {
        Record { cdb: ERASE, list: Vec::new() }
    }

    #[test]
    fn an_operation_comes_back_after_a_power_cycle() {
        let mut sanitizing = Sanitizing::default();
        sanitizing.begin(Readiness::Ready, erase());
        assert_eq!(sanitizing.durable_bytes(), ERASE);
        let back = restored(&ERASE);
        assert_eq!(back.record(), Some(&erase()));
        assert_eq!(back.readiness(), Readiness::Sanitizing { unrestricted_exit: true });
    }

    #[test]
    fn bytes_that_are_no_such_command_are_no_operation() {
        let mut exit = ERASE;
        exit[1] = 0x1f;
        let mut overwrite_without_list = ERASE;
        overwrite_without_list[1] = 0x01;
        for bytes in [&ERASE[..9], &exit, &overwrite_without_list, &[0; 10], &[]] {
            assert_eq!(restored(bytes), Sanitizing::default(), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_could_not_be_recorded_is_as_if_it_had_not_been_asked_for() {
        let failed = Readiness::SanitizeFailed { unrestricted_exit: false };
        let mut sanitizing = Sanitizing { record: Some(erase()), before: None };
        sanitizing.begin(failed, Record { list: Vec::from([1]), ..erase() });
        assert_eq!(sanitizing.withdraw(), Some(failed));
        assert_eq!(sanitizing.record(), Some(&erase()));
        assert_eq!(sanitizing.withdraw(), None);
    }
}
