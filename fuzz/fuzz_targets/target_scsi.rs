//! Any commands from a host that keeps to BOT: each must end with a status wrapper of its tag, whatever it asks.
#![no_main]

use arbitrary::Arbitrary;
use bus::{Pipe, TransferStatus};
use device::device::{DATA_IN, DATA_OUT};
use fuzz::{DriveKind, Host};
use wire::bot::Csw;

#[derive(Arbitrary, Debug)]
struct Command<'a> {
    lun: u8,
    cdb: [u8; 16],
    /// The data to send if the command sends data, repeated to the length.
    payload: &'a [u8],
    length: u16,
    reads: bool,
}

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Command>)| {
    let (byte, commands) = script;
    let mut host = Host::plug(DriveKind::from_byte(byte));
    host.configure(0);
    for (command, tag) in commands.iter().take(32).zip(1..) {
        run(&mut host, command, tag);
    }
    host.unplug();
});

/// Bulk-Only Transport 1.0, figure 2, from the host's side.
fn run(host: &mut Host, command: &Command, tag: u32) {
    let mut wrapper = [0; 31];
    wrapper[..4].copy_from_slice(b"USBC");
    wrapper[4..8].copy_from_slice(&tag.to_le_bytes());
    wrapper[8..12].copy_from_slice(&u32::from(command.length).to_le_bytes());
    wrapper[12..15].copy_from_slice(&[if command.reads { 0x80 } else { 0 }, command.lun % 3, 16]);
    wrapper[15..].copy_from_slice(&command.cdb);
    let sent = host.write(Pipe::plain(DATA_OUT), &wrapper).expect("there is room on the bus");
    host.run_once();
    assert!(matches!(host.take(sent), Some((TransferStatus::Done, _))), "a valid wrapper is taken");
    if command.length > 0 {
        data_phase(host, command);
    }
    let status = match status(host) {
        Some(status) => status,
        // A stalled status is asked for once more.
        None => status(host).expect("the second status is no stall"),
    };
    let csw = Csw::decode(&status).expect("thirteen bytes with a signature");
    assert_eq!(csw.tag, tag);
}

fn data_phase(host: &mut Host, command: &Command) {
    let pipe = Pipe::plain(if command.reads { DATA_IN } else { DATA_OUT });
    let id = if command.reads {
        host.read(pipe, command.length.into())
    } else {
        let payload = if command.payload.is_empty() { &[0][..] } else { command.payload };
        let bytes: Vec<u8> = payload.iter().copied().cycle().take(command.length.into()).collect();
        host.write(pipe, &bytes)
    };
    host.run_once();
    let (status, _) = host.take(id.expect("there is room on the bus")).expect("the data phase ends");
    if status == TransferStatus::Stall {
        host.clear_halt(pipe.endpoint.into());
    }
}

/// The thirteen bytes, or nothing after a stall.
fn status(host: &mut Host) -> Option<Vec<u8>> {
    let id = host.read(Pipe::plain(DATA_IN), 13).expect("there is room on the bus");
    host.run_once();
    let (status, bytes) = host.take(id).expect("a status comes");
    if status == TransferStatus::Stall {
        host.clear_halt(DATA_IN.into());
        return None;
    }
    Some(bytes)
}
