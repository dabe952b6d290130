//! CBI: a host that sends command blocks, data and resets in any order, with an interrupt endpoint and without.
#![no_main]

use arbitrary::Arbitrary;
use bus::Pipe;
use device::Transports;
use device::device::{DATA_IN, DATA_OUT, STATUS};
use fuzz::{DriveKind, Host};

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// Accept Device-Specific Command with a block of UFI's length.
    Block([u8; 12]),
    /// The same with any bytes.
    Accept(&'a [u8]),
    Out(&'a [u8]),
    Zeroes(u16),
    In(u16),
    Status,
    Cancel(u8),
    Turn,
    ClearHalts,
    Reset,
    BusReset,
}

fn accept(host: &mut Host, block: &[u8]) {
    let block = &block[..block.len().min(255)];
    host.control([0x21, 0, 0, 0, 0, 0, block.len() as u8, 0], block);
}

libfuzzer_sys::fuzz_target!(|script: (bool, Vec<Action>)| {
    let (has_interrupt, actions) = script;
    let transport = if has_interrupt { Transports::Cbi } else { Transports::ControlBulk };
    let mut host = Host::plug(DriveKind::floppy(transport));
    host.configure(0);
    for action in actions.into_iter().take(96) {
        match action {
            Action::Block(block) => accept(&mut host, &block),
            Action::Accept(bytes) => accept(&mut host, bytes),
            Action::Out(bytes) => {
                host.write(Pipe::plain(DATA_OUT), bytes);
            }
            Action::Zeroes(length) => {
                host.write(Pipe::plain(DATA_OUT), &vec![0; length.into()]);
            }
            Action::In(length) => {
                host.read(Pipe::plain(DATA_IN), length.into());
            }
            Action::Status => {
                host.read(Pipe::plain(STATUS), 2);
            }
            Action::Cancel(nth) => host.cancel(nth),
            Action::Turn => host.run_once(),
            Action::ClearHalts => {
                for endpoint in [DATA_IN, DATA_OUT, STATUS] {
                    host.clear_halt(endpoint.into());
                }
            }
            Action::Reset => {
                accept(&mut host, &[0x1d, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
            }
            Action::BusReset => {
                host.bus_reset();
                host.configure(0);
            }
        }
    }
    host.unplug();
});
