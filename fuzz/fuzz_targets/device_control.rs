//! Endpoint 0: any control transfers, with bus resets between them.
#![no_main]

use arbitrary::Arbitrary;
use device::Verdict;
use fuzz::{DriveKind, Host};
use wire::usb::Descriptors;

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    Control {
        setup: [u8; 8],
        data_out: &'a [u8],
    },
    /// A request of the standard, so that the fuzzer need not find it.
    Standard {
        recipient: u8,
        request: u8,
        value: u16,
        index: u8,
        length: u16,
    },
    /// A descriptor; what comes must be walkable.
    Descriptor {
        kind: u8,
        index: u8,
        length: u16,
    },
    BusReset,
}

libfuzzer_sys::fuzz_target!(|script: (u8, Vec<Action>)| {
    let (kind, actions) = script;
    let mut host = Host::plug(DriveKind::from_byte(kind));
    for action in actions.into_iter().take(64) {
        match action {
            Action::Control { setup, data_out } => {
                host.control(setup, data_out);
            }
            Action::Standard { recipient, request, value, index, length } => {
                let [value_low, value_high] = value.to_le_bytes();
                let [length_low, length_high] = length.to_le_bytes();
                // Which way the data stage goes is the request's, from GET_STATUS 0 to GET_INTERFACE 10.
                let direction = if matches!(request % 13, 0 | 6 | 8 | 10) { 0x80 } else { 0 };
                let setup = [
                    direction | (recipient % 3),
                    request % 13,
                    value_low,
                    value_high,
                    index,
                    0,
                    length_low,
                    length_high,
                ];
                host.control(setup, &[0; 6]);
            }
            Action::Descriptor { kind, index, length } => {
                let [low, high] = length.to_le_bytes();
                if let Verdict::Data(data) = host.control([0x80, 6, index, kind, 0, 0, low, high], &[])
                    && length == u16::MAX
                {
                    assert!(Descriptors::new(&data).all(|descriptor| descriptor.is_ok()), "{data:02x?}");
                }
            }
            Action::BusReset => host.bus_reset(),
        }
    }
    host.unplug();
});
