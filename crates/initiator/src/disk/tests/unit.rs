//! A unit that answers a disk: well, unless a script says otherwise.

use crate::{Answer, CommandBlock, Failure, Outcome, SenseBytes};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use wire::scsi::Status;
use wire::scsi::block::UnmapList;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb::Command;
use wire::scsi::inquiry::{Peripheral, StandardInquiry};
use wire::scsi::mode::{CachingPage, DeviceSpecific, ModeForm, ModeHeader, ModeWriter};
use wire::scsi::sense::{AdditionalSense, Sense, SenseFormat};
use wire::scsi::vpd::{
    Association, BlockLimits, CodeSet, DesignationDescriptor, Designator, DeviceIdentification,
    LogicalBlockProvisioning, SupportedVpdPages, UnitSerialNumber, VpdPage, VpdPageCode,
};

/// The properties and contents of a unit. Tests change it at will.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) version: u8,
    pub(super) peripheral: u8,
    pub(super) last_lba: u64,
    pub(super) block_length: u32,
    pub(super) exponent: u8,
    pub(super) provisioned: bool,
    /// Byte 5 of VPD page B2h: 80h UNMAP, 40h WRITE SAME(16).
    pub(super) ways_to_unmap: u8,
    pub(super) limits: BlockLimits,
    pub(super) write_protected: bool,
    pub(super) dpo_fua: bool,
    pub(super) write_cache: bool,
    /// The data of LOG SENSE; there is no page otherwise.
    pub(super) log_page: Option<Vec<u8>>,
    /// It lists VPD page 89h.
    pub(super) is_ata: bool,
    /// The data of ATA PASS-THROUGH; it is refused otherwise.
    pub(super) smart: Option<Vec<u8>>,
    /// Operation codes to which it says nothing, page codes of INQUIRY and MODE SENSE with them.
    pub(super) silent_to: Vec<(u8, u8)>,
    /// Operation codes that it does not have.
    pub(super) missing: Vec<u8>,
    /// Answers that replace its usual ones, first to last, each for the first command with the
    /// operation code.
    pub(super) script: VecDeque<(u8, Outcome)>,
    /// The CDBs that it got.
    pub(super) log: Vec<Vec<u8>>,
    pub(super) blocks: Vec<u8>,
}

/// CHECK CONDITION with this sense data, nothing moved.
pub(super) fn check(sense: Sense) -> Outcome {
    let mut bytes = [0; Sense::DESCRIPTOR_LEN_MAX];
    let len = sense.encode(SenseFormat::Descriptor, &mut bytes).unwrap();
    let sense = SenseBytes::new(&bytes[..len]);
    Outcome::Answered(Answer { status: Status::CheckCondition, status_qualifier: 0, moved: 0, sense })
}

pub(super) fn refused(additional: AdditionalSense) -> Outcome {
    check(Sense::illegal_request(additional))
}

impl Unit {
    /// A modern disk of 1024 blocks.
    pub(super) fn new() -> Self {
        let limits = BlockLimits {
            maximum_unmap_lba_count: 256,
            maximum_unmap_block_descriptor_count: 1,
            ..BlockLimits::default()
        };
        Self {
            version: 7,
            peripheral: 0,
            last_lba: 1023,
            block_length: 512,
            exponent: 0,
            provisioned: true,
            ways_to_unmap: 0x80,
            limits,
            write_protected: false,
            dpo_fua: true,
            write_cache: true,
            log_page: None,
            is_ata: false,
            smart: None,
            silent_to: Vec::new(),
            missing: Vec::new(),
            script: VecDeque::new(),
            log: Vec::new(),
            blocks: vec![0xee; 1024 * 512],
        }
    }

    /// The next command with this operation code ends so.
    pub(super) fn then(&mut self, opcode: u8, outcome: Outcome) {
        self.script.push_back((opcode, outcome));
    }

    /// How many commands with this operation code it got.
    pub(super) fn count(&self, opcode: u8) -> usize {
        self.log.iter().filter(|cdb| cdb[0] == opcode).count()
    }

    /// Carries a command out on `memory`, the bytes of its data phase.
    pub(super) fn execute(&mut self, cdb: &CommandBlock, memory: &mut [u8]) -> Outcome {
        self.log.push(cdb.as_bytes().to_vec());
        let opcode = cdb.operation_code();
        if let Some(at) = self.script.iter().position(|(scripted, _)| *scripted == opcode) {
            return self.script.remove(at).unwrap().1;
        }
        let bytes = cdb.as_bytes();
        if self.silent_to.contains(&(opcode, bytes.get(2).copied().unwrap_or_default())) {
            return Outcome::Failed(Failure::TimedOut);
        }
        if self.missing.contains(&opcode) {
            return refused(AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
        }
        match self.carry_out(cdb, memory) {
            Some(moved) => Outcome::answered(Status::Good, moved as u32),
            None => refused(AdditionalSense::INVALID_FIELD_IN_CDB),
        }
    }

    fn carry_out(&mut self, cdb: &CommandBlock, memory: &mut [u8]) -> Option<usize> {
        let size = self.block_length as usize;
        let place = |lba: u64, blocks: u32| lba as usize * size..(lba as usize + blocks as usize) * size;
        match Command::decode(cdb.as_bytes()).ok()? {
            Command::TestUnitReady(_) | Command::StartStopUnit(_) | Command::SynchronizeCache(_) => Some(0),
            Command::Read(read) => {
                memory.copy_from_slice(&self.blocks[place(read.lba, read.blocks)]);
                Some(memory.len())
            }
            Command::Write(write) if write.fua && !self.dpo_fua => None,
            Command::Write(write) => {
                self.blocks[place(write.lba, write.blocks)].copy_from_slice(memory);
                Some(memory.len())
            }
            Command::WriteSame(same) => {
                let range = place(same.lba, same.blocks);
                self.blocks[range].chunks_mut(size).for_each(|block| block.copy_from_slice(memory));
                Some(size)
            }
            Command::Unmap(_) => {
                for run in UnmapList::decode(memory).ok()?.descriptors() {
                    self.blocks[place(run.lba, run.blocks)].fill(0);
                }
                Some(memory.len())
            }
            other => {
                let answer = self.answer(&other)?;
                let moved = answer.len().min(memory.len());
                memory[..moved].copy_from_slice(&answer[..moved]);
                Some(moved)
            }
        }
    }

    /// Parameter data.
    fn answer(&self, command: &Command) -> Option<Vec<u8>> {
        match command {
            Command::Inquiry(inquiry) if inquiry.evpd => self.page(inquiry.page_code.into()),
            Command::Inquiry(_) => {
                let mut bytes = StandardInquiry::decode(&[0; 36]).ok()?.encode();
                [bytes[0], bytes[2], bytes[3]] = [self.peripheral, self.version, 2];
                bytes[8..36].copy_from_slice(b"ACME    Disk of tests   1.0 ");
                Some(bytes.to_vec())
            }
            Command::LogSense(_) => self.log_page.clone(),
            Command::AtaPassThrough(_) => self.smart.clone(),
            Command::ReportLuns(_) => Some(vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Command::ReadCapacity10(_) => {
                let last_lba = u32::try_from(self.last_lba).unwrap_or(u32::MAX);
                Some(Capacity10 { last_lba, block_length: self.block_length }.encode().to_vec())
            }
            Command::ReadCapacity16(_) => {
                let mut capacity = Capacity16::decode(&[0; 32]).ok()?;
                capacity.last_lba = self.last_lba;
                capacity.block_length = self.block_length;
                capacity.physical_block_exponent = self.exponent;
                capacity.provisioning_management = self.provisioned;
                capacity.provisioning_reads_zeroes = self.provisioned;
                Some(capacity.encode().to_vec())
            }
            Command::ModeSense(sense) => {
                let form = if sense.page_code == 0x3f { ModeForm::Six } else { ModeForm::Ten };
                let device_specific =
                    DeviceSpecific { write_protected: self.write_protected, dpo_fua: self.dpo_fua };
                let header = ModeHeader {
                    mode_data_length: 0,
                    medium_type: 0,
                    device_specific,
                    long_lba: false,
                    block_descriptor_length: 0,
                };
                let mut bytes = [0; 64];
                let mut writer = ModeWriter::new(form, header, &[], &mut bytes).ok()?;
                let caching = CachingPage { write_cache: self.write_cache, ..CachingPage::default() };
                writer.page(&caching.encode(false)).ok()?;
                let len = writer.finish().ok()?;
                Some(bytes[..len].to_vec())
            }
            _ => None,
        }
    }

    fn page(&self, page: VpdPageCode) -> Option<Vec<u8>> {
        let mut bytes = [0; 128];
        let naa = [0x3a, 0, 0, 0, 0, 0, 0, 1];
        let len = match page {
            VpdPageCode::SupportedPages => {
                let codes: &[u8] = if self.is_ata {
                    &[0x00, 0x80, 0x83, 0x89, 0xb0, 0xb2]
                } else {
                    &[0x00, 0x80, 0x83, 0xb0, 0xb2]
                };
                VpdPage::SupportedPages(SupportedVpdPages { codes }).encode(Peripheral::DISK, &mut bytes)
            }
            VpdPageCode::UnitSerialNumber => {
                UnitSerialNumber { serial: b"  UK0042" }.encode(Peripheral::DISK, &mut bytes)
            }
            VpdPageCode::DeviceIdentification => {
                let name = DesignationDescriptor {
                    code_set: CodeSet::Binary,
                    association: Association::LogicalUnit,
                    protocol: None,
                    designator: Designator::Naa(&naa),
                };
                DeviceIdentification::encode_list(Peripheral::DISK, &[name], &mut bytes)
            }
            VpdPageCode::BlockLimits => {
                VpdPage::BlockLimits(self.limits).encode(Peripheral::DISK, &mut bytes)
            }
            VpdPageCode::LogicalBlockProvisioning => {
                let page = [0, 0xb2, 0, 4, 0, self.ways_to_unmap, 2, 0];
                LogicalBlockProvisioning::decode(&page).ok()?.encode(Peripheral::DISK, &mut bytes)
            }
            _ => return None,
        };
        Some(bytes[..len.ok()?].to_vec())
    }
}
