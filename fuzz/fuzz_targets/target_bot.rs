//! BOT: a host that sends what it likes where it likes.
#![no_main]

use arbitrary::Arbitrary;
use bus::Pipe;
use device::device::{DATA_IN, DATA_OUT};
use fuzz::{DriveKind, Host};

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// A wrapper that is valid and perhaps meaningful.
    Command {
        tag: u32,
        expected: u32,
        flags: u8,
        lun: u8,
        cdb_len: u8,
        cdb: [u8; 16],
    },
    Out(&'a [u8]),
    Zeroes(u16),
    In(u16),
    Csw,
    Cancel(u8),
    Turn,
    ClearHalts,
    MassStorageReset,
    BusReset,
}

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (byte, actions) = script;
    let mut host = Host::plug(DriveKind::from_byte(byte));
    host.configure(0);
    for action in actions.into_iter().take(96) {
        match action {
            Action::Command { tag, expected, flags, lun, cdb_len, cdb } => {
                let mut wrapper = [0; 31];
                wrapper[..4].copy_from_slice(b"USBC");
                wrapper[4..8].copy_from_slice(&tag.to_le_bytes());
                wrapper[8..12].copy_from_slice(&(expected % (1 << 20)).to_le_bytes());
                wrapper[12..15].copy_from_slice(&[flags & 0x80, lun % 3, 1 + cdb_len % 16]);
                wrapper[15..].copy_from_slice(&cdb);
                host.write(Pipe::plain(DATA_OUT), &wrapper);
            }
            Action::Out(bytes) => {
                host.write(Pipe::plain(DATA_OUT), bytes);
            }
            Action::Zeroes(length) => {
                host.write(Pipe::plain(DATA_OUT), &vec![0; length.into()]);
            }
            Action::In(length) => {
                host.read(Pipe::plain(DATA_IN), length.into());
            }
            Action::Csw => {
                host.read(Pipe::plain(DATA_IN), 13);
            }
            Action::Cancel(nth) => host.cancel(nth),
            Action::Turn => host.run_once(),
            Action::ClearHalts => {
                host.clear_halt(DATA_IN.into());
                host.clear_halt(DATA_OUT.into());
            }
            Action::MassStorageReset => {
                host.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], &[]);
            }
            Action::BusReset => {
                host.bus_reset();
                host.configure(0);
            }
        }
    }
    host.unplug();
});
