//! Whatever the bytes are: what decodes can be printed and encoded, and decodes to the same again; the rest is refused.
//!
//! Three kinds of bytes for each family: any bytes, the inputs that fuzzing starts from with every truncated length of
//! theirs, and those inputs with some bytes changed. A failure prints its bytes.

// The fuzz targets share the families, and know the crate by this name.
extern crate uaskit_wire as wire;

mod families;

use proptest::{collection::vec, prelude::*, sample::Index};
use std::fs;
use std::path::Path;

/// Inputs that fuzzing starts from: made by hand (a file each), and found (a line of hexadecimal each).
fn inputs(target: &str) -> Vec<Vec<u8>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let seeds = fs::read_dir(fuzz.join("seeds").join(target)).expect("there are seeds");
    let seeds = seeds.map(|entry| fs::read(entry.expect("it can be listed").path()).expect("it can be read"));
    let found =
        fs::read_to_string(fuzz.join("found").join(format!("{target}.hex"))).expect("something was found");
    let byte = |pair: &str| u8::from_str_radix(pair, 16).expect("it is hexadecimal");
    let bytes = |line: &str| (0..line.len() / 2).map(|at| byte(&line[2 * at..][..2])).collect();
    seeds.chain(found.lines().map(bytes)).collect()
}

/// Bytes to be put at places of an input.
fn changes() -> impl Strategy<Value = (Index, Vec<(Index, u8)>)> {
    (any::<Index>(), vec(any::<(Index, u8)>(), 0..8))
}

macro_rules! family {
    ($name:ident, $target:literal) => {
        mod $name {
            use super::*;
            use families::$name::check;

            #[test]
            fn known_inputs_and_all_their_beginnings_hold() {
                for input in inputs($target) {
                    (0..=input.len()).for_each(|len| check(&input[..len]));
                }
            }

            #[test]
            fn known_inputs_hold_with_other_bytes_in_them() {
                let inputs = inputs($target);
                proptest!(|((which, changes) in changes())| {
                    let mut input = which.get(&inputs).clone();
                    for (place, byte) in changes {
                        if !input.is_empty() {
                            let place = place.index(input.len());
                            input[place] = byte;
                        }
                    }
                    check(&input);
                });
            }

            proptest! {
                #[test]
                fn any_bytes_hold(bytes in vec(any::<u8>(), 0..600)) {
                    check(&bytes);
                }
            }
        }
    };
}

family!(ata, "wire_ata");
family!(bot, "wire_bot");
family!(nbd, "wire_nbd");
family!(scsi, "wire_scsi");
family!(uas, "wire_uas");
family!(usb, "wire_usb");
family!(usbredir, "wire_usbredir");
family!(vfio_user, "wire_vfio_user");
family!(xhci, "wire_xhci");
