//! A disk in steady state takes nothing from the heap: requests come and go through places made at the beginning.

mod drive;

use initiator::disk::{Disk, DiskConfig, Memory, Operation, Output, Request, RequestId};
use initiator::{Command, Outcome, Transport};
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::RamMedium;
use units::{BlockSize, ByteCount, Extent, Instant};
use wire::scsi::Status;

const NOW: Instant = Instant::ZERO;
const DEPTH: u64 = 14;

/// An identified disk on UAS.
fn identified() -> Disk {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("1 MiB");
    let mut drive = drive::drive(bus::Speed::Super, 16, Box::new(medium));
    let uas = plug::uas(&mut drive, None, initiator::Timeouts::default()).expect("the drive has UAS");
    let depth = uas.depth() as u16;
    let mut ends = Loopback::new(uas, drive);
    let mut disk = Disk::new(DiskConfig { requests_max: DEPTH as u16, ..DiskConfig::new(depth, 1 << 20) });
    disk.start(NOW);
    while disk.geometry().is_none() {
        if let Some(Output::Submit(command, memory)) = disk.poll_output() {
            assert!(matches!(memory, Memory::None | Memory::Answer));
            ends.submit(NOW, &command, &mut Vec::new()).expect("there is room");
            ends.run_once(NOW);
            let finished = ends.poll().expect("the drive answers");
            disk.handle_outcome(NOW, finished.id, &finished.outcome, &finished.buffer);
        }
    }
    assert!(matches!(disk.poll_output(), Some(Output::Identified(Ok(())))));
    disk
}

/// Requests at full depth, each answered by GOOD at once.
fn go_round(disk: &mut Disk, rounds: u64, commands: &mut Vec<Command>) {
    for _ in 0..rounds {
        for id in 0..DEPTH {
            let operation = match id % 2 {
                0 => Operation::Read { fua: false, dpo: false, may_be_short: false },
                _ => Operation::Write { fua: true, dpo: false },
            };
            let request = Request { id: RequestId(id), operation, extent: Extent::new(id * 8, 8) };
            disk.submit(NOW, request).expect("there is room");
        }
        let mut finished = 0;
        while finished < DEPTH {
            while let Some(output) = disk.poll_output() {
                match output {
                    Output::Submit(command, _) => commands.push(command),
                    Output::Finished(_, result) => finished += u64::from(result.is_ok()),
                    other => panic!("{other:?}"),
                }
            }
            while let Some(command) = commands.pop() {
                let outcome = Outcome::answered(Status::Good, command.transfer_len());
                disk.handle_outcome(NOW, command.id, &outcome, &[]);
            }
        }
    }
}

#[test]
fn nothing_is_allocated_for_a_request() {
    let mut disk = identified();
    let mut commands = Vec::with_capacity(32);
    go_round(&mut disk, 10, &mut commands);
    let counted = allocation_counter::measure(|| go_round(&mut disk, 1000, &mut commands));
    assert_eq!(counted.count_total, 0);
}
