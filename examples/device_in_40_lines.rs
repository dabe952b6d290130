//! A USB drive in RAM and a host for it, in one process: UAS with streams, one logical unit, four SCSI commands.

use std::error::Error;
use uaskit_bus::{Direction, Speed};
use uaskit_device::lun::{LogicalUnit, LogicalUnitConfig};
use uaskit_device::{Device, DeviceConfig};
use uaskit_drive::Drive;
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::{Medium, RamMedium};
use uaskit_initiator::{Command, CommandId, DataPhase, Outcome, Timeouts};
use uaskit_units::{BlockSize, ByteCount, ByteRange, Duration, Instant};
use uaskit_wire::scsi::cdb::{Cdb, Inquiry, Read, TestUnitReady, Write};
use uaskit_wire::scsi::lun::LunField;
use uaskit_wire::uas::TaskAttribute;

fn main() -> Result<(), Box<dyn Error>> {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512)?;
    let unit = LogicalUnit::new(LogicalUnitConfig::new(medium.block_size(), medium.capacity()));
    let device = Device::new(DeviceConfig::new(Speed::Super), vec![unit]);
    let mut drive: Drive = Drive::new(device, vec![Box::new(medium)]);
    let uas = plug::uas(&mut drive, None, Timeouts::default())?;
    let mut bus = Loopback::new(uas, drive);

    let mut run = |slot, cdb: Cdb, direction, mut buffer: Vec<u8>| {
        let range = ByteRange::new(0, buffer.len() as u32);
        let (id, deadline) = (CommandId { slot, generation: 0 }, Instant::ZERO + Duration::from_secs(30));
        let (lun, attribute) = (LunField([0; 8]), TaskAttribute::Simple);
        let data_phase = Some(DataPhase { direction, range });
        let command = Command { id, lun, attribute, cdb: cdb.into(), data_phase, deadline };
        bus.submit(Instant::ZERO, &command, &mut buffer)?;
        bus.run_once(Instant::ZERO);
        let done = bus.poll().ok_or("the drive has not answered")?;
        let Outcome::Answered(answer) = done.outcome else { return Err("the command failed".into()) };
        println!("{cdb}: {}", answer.status);
        Ok::<_, Box<dyn Error>>(done.buffer)
    };
    let inquiry = Inquiry { allocation_len: 36, ..Inquiry::default() };
    println!("{}", run(0, inquiry.encode(), Direction::In, vec![0; 36])?[8..32].escape_ascii());
    run(1, TestUnitReady::default().encode(), Direction::Out, vec![])?; // Reports the power-on.
    run(2, Write { blocks: 1, ..Write::default() }.encode(), Direction::Out, vec![0xa5; 512])?;
    let block = run(3, Read { blocks: 1, ..Read::default() }.encode(), Direction::In, vec![0; 512])?;
    println!("{:02x?}", &block[..4]);
    Ok(())
}
