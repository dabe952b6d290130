//! ATA PASS-THROUGH (12) and (16) (SAT-4 clause 12.2): what the CDB says about the transfer, and the end.
//!
//! The transfer that the CDB announces (PROTOCOL, T_DIR, T_LENGTH and its kin) must be the one that the ATA command
//! makes; otherwise host and device would wait for each other, so it is an INVALID FIELD IN CDB. With T_LENGTH 3 the
//! transport knows the length, the unit does not: the command's own counts.
//!
//! Registers travel in the ATA Status Return descriptor, always in descriptor format. Since SAT-2 they have a place
//! in fixed format, to be used while D_SENSE is zero; but bridges use the format of the first SAT, and so udisks,
//! libatasmart and hdparm look for the descriptor alone. Every host that knows the newer place knows both.
//!
//! Left out: MULTIPLE_COUNT and OFF_LINE change nothing here, and are not looked at. A medium error has its
//! own sense data, without registers.

use super::{Action, AtaDevice, blocks, features, identify, logs, smart};
use crate::lun::access::Access;
use crate::lun::plan::{Decision, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, DataPhase, LogicalUnit, MediumPlan, Plan};
use wire::ata::{AtaCommand, AtaError, AtaStatus, CommandRegisters, Protocol, ResultRegisters};
use wire::scsi::cdb::{AtaPassThrough, AtaProtocol, AtaTransferLength, CdbWidth};
use wire::scsi::sense::{AdditionalSense, AtaStatusReturn, Sense, SenseKey};

pub(in crate::lun) const ROW_12: Row = Row {
    usage: &[0xa1, 0x1e, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    // Any ATA command may be in it; whether it needs the medium is seen once it is known.
    needs: Needs { access: Access::Write, ..Needs::UNIT },
    timeout_s: 60,
    plan: |context, cdb| settle(plan(context, cdb)),
    on_list: Some(|context, cdb, list| settle(on_list(context, cdb, list))),
    on_medium: Some(|context, cdb, list, _| settle(on_medium(context, cdb, list))),
};

pub(in crate::lun) const ROW_16: Row = Row {
    usage: &[0x85, 0x1f, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x04],
    ..ROW_12
};

/// The CDB and what it means to the device.
struct Order {
    cdb: AtaPassThrough,
    registers: CommandRegisters,
}

/// The data that the CDB announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    Nothing,
    Bytes(u64),
    /// As much as the command moves.
    Any,
}

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let order = Order::decode(cdb)?;
    match order.cdb.protocol {
        AtaProtocol::ReturnResponseInformation => {
            let information = AdditionalSense::ATA_PASS_THROUGH_INFORMATION_AVAILABLE;
            let sense = Sense::new(SenseKey::RecoveredError, information);
            return Err(sense.with_ata_return(context.unit.ata.last));
        }
        AtaProtocol::HardwareReset
        | AtaProtocol::SoftwareReset
        | AtaProtocol::Ncq
        | AtaProtocol::Unknown(_) => return Err(Sense::invalid_field_in_cdb(1, Some(4))),
        _ => {}
    }
    let registers = &order.registers;
    let Some(protocol) = registers.command.protocol(registers.features as u8) else {
        return order.settle(context, Action::ABORT);
    };
    order.check_protocol(protocol)?;
    let announced = order.announced(context.unit.config.block_size.bytes());
    if matches!((protocol, announced), (Protocol::NonData | Protocol::Diagnostic, Announced::Bytes(1..))) {
        return Err(order.wrong_length());
    }
    let action = start(context.unit, registers);
    if !announced.suits(&action) {
        return Err(order.wrong_length());
    }
    order.settle(context, action)
}

fn on_list(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Decision {
    let order = Order::decode(cdb)?;
    let action = blocks::trim(context.unit, list);
    order.settle(context, action)
}

fn on_medium(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Decision {
    let order = Order::decode(cdb)?;
    *context.step += 1;
    let action = match order.registers.command {
        AtaCommand::DataSetManagement => blocks::trim_next(list, *context.step),
        _ => Action::DONE,
    };
    order.settle(context, action)
}

/// Begins an ATA command.
fn start(unit: &mut LogicalUnit, registers: &CommandRegisters) -> Action {
    use AtaCommand as Command;
    match registers.command {
        Command::IdentifyDevice => Action::Send(identify(unit).to_vec()),
        Command::Smart => smart::start(unit, registers),
        Command::ReadLogExt | Command::ReadLogDmaExt => logs::read_log_ext(unit, registers),
        command if blocks::counts_sectors(command) => blocks::start(unit, registers),
        Command::ReadVerifySectors
        | Command::ReadVerifySectorsExt
        | Command::DataSetManagement
        | Command::FlushCache
        | Command::FlushCacheExt => blocks::start(unit, registers),
        _ => features::start(unit, registers),
    }
}

impl Order {
    fn decode(cdb: &[u8]) -> Result<Self, Sense> {
        let cdb = fields(AtaPassThrough::decode(cdb))?;
        Ok(Self { cdb, registers: cdb.registers() })
    }

    /// Whether PROTOCOL and, where there is data, T_DIR are the command's.
    fn check_protocol(&self, protocol: Protocol) -> Result<(), Sense> {
        let from_device = self.cdb.from_device;
        let named = match self.cdb.protocol {
            AtaProtocol::NonData => Protocol::NonData,
            AtaProtocol::PioDataIn => Protocol::PioIn,
            AtaProtocol::PioDataOut => Protocol::PioOut,
            AtaProtocol::Dma if from_device => Protocol::DmaIn,
            AtaProtocol::UdmaDataIn => Protocol::DmaIn,
            AtaProtocol::Dma | AtaProtocol::UdmaDataOut => Protocol::DmaOut,
            AtaProtocol::ExecuteDeviceDiagnostic => Protocol::Diagnostic,
            _ => return Err(Sense::invalid_field_in_cdb(1, Some(4))),
        };
        if named != protocol {
            return Err(Sense::invalid_field_in_cdb(1, Some(4)));
        }
        let wrong_way = match protocol {
            Protocol::PioIn | Protocol::DmaIn => !from_device,
            Protocol::PioOut | Protocol::DmaOut => from_device,
            _ => false,
        };
        if wrong_way { Err(Sense::invalid_field_in_cdb(2, Some(3))) } else { Ok(()) }
    }

    fn announced(&self, sector_bytes: u32) -> Announced {
        let count: u64 = match self.cdb.transfer_length {
            AtaTransferLength::NoData => return Announced::Nothing,
            AtaTransferLength::InTransport => return Announced::Any,
            AtaTransferLength::InFeatures => self.registers.features.into(),
            // There zero stands for the most sectors that there can be.
            AtaTransferLength::InCount
                if self.cdb.in_blocks && blocks::counts_sectors(self.registers.command) =>
            {
                self.registers.sectors().into()
            }
            AtaTransferLength::InCount => self.registers.count.into(),
        };
        let unit_bytes = match (self.cdb.in_blocks, self.cdb.logical_sectors) {
            (false, _) => 1,
            (true, false) => BLOCK_BYTES,
            (true, true) => sector_bytes,
        };
        Announced::Bytes(count * u64::from(unit_bytes))
    }

    /// The field that says how long the data is, at fault.
    const fn wrong_length(&self) -> Sense {
        let byte = match (self.cdb.transfer_length, self.cdb.width) {
            (AtaTransferLength::InFeatures, _) => 3,
            (AtaTransferLength::InCount, CdbWidth::Twelve) => 4,
            (AtaTransferLength::InCount, _) => 5,
            (AtaTransferLength::NoData | AtaTransferLength::InTransport, _) => 2,
        };
        Sense::invalid_field_in_cdb(byte, None)
    }

    /// The plan of an action. What has ended is remembered.
    fn settle(&self, context: &mut Context<'_>, action: Action) -> Decision {
        match action {
            Action::End(registers) => self.end(&mut context.unit.ata, registers).map(|()| Plan::Good),
            Action::Send(blocks) => {
                let end = self.end(&mut context.unit.ata, ResultRegisters::GOOD);
                let reply = context
                    .reply
                    .fill(u32::MAX, |out| wire::Writer::new(out).put(&blocks).map(|()| blocks.len()));
                Ok(end.map_or_else(Plan::ReplyThen, |()| reply))
            }
            Action::Receive(bytes) => Ok(Plan::List { bytes }),
            Action::Medium(plan) => Ok(Plan::Medium(plan)),
            Action::Refuse(plan) => Ok(plan),
        }
    }

    /// The sense data of a command that has ended: for an error, or because CK_COND asks for the registers.
    fn end(&self, device: &mut AtaDevice, registers: ResultRegisters) -> Result<(), Sense> {
        device.last = AtaStatusReturn::of(&registers, self.cdb.extend);
        let condition = if registers.status.has(AtaStatus::ERROR) {
            failure(registers.error)
        } else if self.cdb.check_condition {
            let information = AdditionalSense::ATA_PASS_THROUGH_INFORMATION_AVAILABLE;
            Sense::new(SenseKey::RecoveredError, information)
        } else {
            return Ok(());
        };
        Err(condition.with_ata_return(device.last))
    }
}

impl Announced {
    /// Whether that is what the action moves: of data from the device at least that. A command that ends at once
    /// moves nothing, whatever was announced.
    fn suits(self, action: &Action) -> bool {
        let moved = match action {
            Action::Send(blocks) => blocks.len() as u64,
            Action::Receive(bytes) => (*bytes).into(),
            Action::Medium(MediumPlan { data: DataPhase::In | DataPhase::Out, bytes, .. }) => (*bytes).into(),
            Action::Medium(_) | Action::End(_) | Action::Refuse(_) => return true,
        };
        match self {
            Self::Nothing => false,
            Self::Any => true,
            Self::Bytes(bytes) if matches!(action, Action::Send(_)) => bytes >= moved,
            Self::Bytes(bytes) => bytes == moved,
        }
    }
}

/// Bytes in a block of BYT_BLOK, unless T_TYPE says that it is a logical sector.
const BLOCK_BYTES: u32 = 512;

/// Returns the sense data of an ATA error (SAT-4 clause 11).
const fn failure(error: AtaError) -> Sense {
    if error.has(AtaError::ID_NOT_FOUND) {
        return Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
    }
    Sense::new(SenseKey::AbortedCommand, AdditionalSense::NO_ADDITIONAL_SENSE_INFORMATION)
}
