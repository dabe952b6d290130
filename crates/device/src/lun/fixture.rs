//! A unit on a bench, for the tests of its commands: literal CDB in, plan and bytes out.

use super::registry::Index;
use super::{Context, LogicalUnit, LogicalUnitConfig, Plan, Reply, UnitType, precheck};
use crate::medium::MediumDone;
use alloc::string::ToString;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize};
use wire::scsi::sense::Sense;

/// A unit, and what the executor keeps for one command of it.
#[derive(Debug)]
pub(crate) struct Fixture {
    /// The unit under test.
    pub(crate) unit: LogicalUnit,
    /// How many units the device says it has.
    pub(crate) units: u8,
    index: Index,
    reply: Reply,
    list: Vec<u8>,
    step: u32,
}

impl Fixture {
    /// A disk of 2048 blocks of 512 bytes that keeps its state, with no unit attention pending.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A drive with a CD of 1000 blocks, with no unit attention pending.
    pub(crate) fn optical() -> Self {
        Self::with(|config| {
            config.unit_type = UnitType::Optical;
            config.block_size = BlockSize::B2048;
            config.capacity = BlockCount(1000);
            config.removable = true;
            config.read_only = true;
            config.durable = false;
            config.atomic_writes = false;
        })
    }

    /// A floppy drive with a disk of 1.44 MB, with no unit attention pending.
    pub(crate) fn floppy() -> Self {
        Self::with(|config| {
            config.unit_type = UnitType::Floppy;
            config.capacity = BlockCount(2880);
            config.removable = true;
            config.durable = false;
            config.atomic_writes = false;
        })
    }

    /// The same with another configuration.
    pub(crate) fn with(change: impl FnOnce(&mut LogicalUnitConfig)) -> Self {
        let mut config = LogicalUnitConfig {
            unit_type: UnitType::Disk,
            vendor: "uaskit".to_string(),
            product: "virtual drive".to_string(),
            revision: "0.1".to_string(),
            serial: "0123456789AB".to_string(),
            naa: 0x3123_4567_89ab_cdef,
            block_size: BlockSize::B512,
            capacity: BlockCount(2048),
            transfer_bytes_optimal: crate::lun::limits::TRANSFER_BYTES_OPTIMAL_MAX,
            read_only: false,
            removable: false,
            rotational: false,
            temperature_c: None,
            loses_attentions: false,
            durable: true,
            atomic_writes: true,
            durable_state: None,
            recorded: None,
        };
        change(&mut config);
        let mut unit = LogicalUnit::new(config);
        unit.attentions = Default::default();
        Self { unit, units: 1, index: Index::default(), reply: Reply::default(), list: Vec::new(), step: 0 }
    }

    /// Takes a command up to its first plan.
    #[track_caller]
    pub(crate) fn run(&mut self, cdb: &[u8]) -> Plan {
        self.step = 0;
        self.reply = Reply::default();
        self.list.clear();
        let row = self.index.find(Some(&self.unit), cdb);
        match precheck::admit(&mut self.unit, row, cdb) {
            Ok(row) => precheck::begin(row, &mut self.context(), cdb),
            Err(plan) => plan,
        }
    }

    /// Takes a command through its parameter list to the plan after it.
    #[track_caller]
    pub(crate) fn run_list(&mut self, cdb: &[u8], list: &[u8]) -> Plan {
        match self.run(cdb) {
            Plan::ListHead { least } => assert!(least as usize <= list.len() && list.len() <= 64),
            plan => assert_eq!(plan, Plan::List { bytes: list.len() as u32 }),
        }
        self.interpret(cdb, list)
    }

    /// Takes a command that asked for a list to the plan after it, whatever came.
    #[track_caller]
    pub(crate) fn interpret(&mut self, cdb: &[u8], list: &[u8]) -> Plan {
        self.list = Vec::from(list);
        let row = self.index.find(Some(&self.unit), cdb).expect("the command was admitted");
        row.on_list.expect("a command that asks for a list looks at it")(&mut self.context(), cdb, list)
    }

    /// Gives the medium's answer to a command and takes it to the plan after it.
    #[track_caller]
    pub(crate) fn run_medium(&mut self, cdb: &[u8], done: MediumDone) -> Plan {
        let row = self.index.find(Some(&self.unit), cdb).expect("the command was admitted");
        let list = core::mem::take(&mut self.list);
        let plan = match row.on_medium {
            Some(on_medium) => on_medium(&mut self.context(), cdb, &list, done),
            None => Plan::Good,
        };
        self.list = list;
        plan
    }

    /// The parameter data of a command that must have some.
    #[track_caller]
    pub(crate) fn read(&mut self, cdb: &[u8]) -> &[u8] {
        assert_eq!(self.run(cdb), Plan::Reply);
        self.reply.as_bytes()
    }

    /// The sense data of a command that must end with CHECK CONDITION before any data.
    #[track_caller]
    pub(crate) fn check(&mut self, cdb: &[u8]) -> Sense {
        match self.run(cdb) {
            Plan::Check(sense) => sense,
            plan => panic!("CHECK CONDITION expected, not {plan:?}"),
        }
    }

    /// The parameter data of the last command.
    pub(crate) fn reply(&self) -> &[u8] {
        self.reply.as_bytes()
    }

    /// Takes the unit through a power cycle; what it keeps comes back.
    pub(crate) fn power_cycle(&mut self) {
        let state = self.unit.durable_state();
        let mut config = self.unit.config.clone();
        config.durable_state = config.durable.then_some(state);
        self.unit = LogicalUnit::new(config);
    }

    fn context(&mut self) -> Context<'_> {
        Context { unit: &mut self.unit, reply: &mut self.reply, step: &mut self.step, units: self.units }
    }
}
