//! How long the codec takes for one information unit: decode what arrives, encode what leaves.
//!
//! Inputs vary in every field, and pass through `black_box`, so that the compiler knows nothing about them. The best
//! of many tries counts: whatever disturbs one only ever adds time. Left out: caches that do not hold the input,
//! which a drive's have just received.

use super::figure;
use anyhow::Result;
use comfy_table::{Table, presets};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;
use wire::scsi::Status;
use wire::uas::{CommandIu, SenseIu, TaskAttribute};

/// The time that one IU takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CodecTime {
    pub(super) iu: &'static str,
    pub(super) decode_ns: f64,
    pub(super) encode_ns: f64,
}

impl CodecTime {
    /// The most that decoding and encoding may take together.
    pub(super) const BAR_NS: f64 = 20.0;

    /// Both together.
    pub(super) fn both_ns(&self) -> f64 {
        self.decode_ns + self.encode_ns
    }

    /// Whether the bar is kept.
    pub(super) fn passes(&self) -> bool {
        self.both_ns() <= Self::BAR_NS
    }
}

/// Times COMMAND and SENSE IUs.
pub(super) fn measure() -> Result<[CodecTime; 2]> {
    let mut random = fastrand::Rng::with_seed(1);
    let commands: Vec<Vec<u8>> = (0..INPUTS).map(|_| command(&mut random)).collect();
    let decoded = commands.iter().map(|bytes| CommandIu::decode(bytes)).collect::<Result<Vec<_>, _>>()?;
    let command = CodecTime {
        iu: "COMMAND",
        decode_ns: best_ns(&commands, |bytes| {
            black_box(CommandIu::decode(black_box(bytes))).is_ok_and(|iu| iu.tag != 0)
        }),
        encode_ns: best_ns(&decoded, |iu| black_box(black_box(iu).encode())[0] != 0),
    };

    let senses = (0..INPUTS).map(|_| sense(&mut random)).collect::<Result<Vec<_>>>()?;
    let decoded = senses.iter().map(|bytes| SenseIu::decode(bytes)).collect::<Result<Vec<_>, _>>()?;
    let sense = CodecTime {
        iu: "SENSE",
        decode_ns: best_ns(&senses, |bytes| {
            black_box(SenseIu::decode(black_box(bytes))).is_ok_and(|iu| iu.tag != 0)
        }),
        encode_ns: best_ns(&decoded, |iu| {
            let mut out = [0; SENSE_BYTES_MAX];
            let encoded = black_box(iu).encode(black_box(&mut out));
            black_box(&out);
            encoded.is_ok()
        }),
    };
    Ok([command, sense])
}

/// One row for each IU.
pub(super) fn table(times: &[CodecTime]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "decode", "encode", "both", ""]);
    for time in times {
        let CodecTime { iu, decode_ns, encode_ns } = time;
        let [decode, encode, both] =
            [*decode_ns, *encode_ns, time.both_ns()].map(|nanoseconds| format!("{nanoseconds:.1}"));
        let verdict = if time.passes() { "" } else { "TOO SLOW" };
        table.add_row([iu, decode.as_str(), encode.as_str(), both.as_str(), verdict]);
    }
    figure::align(&mut table);
    table
}

/// Few enough that all of them stay in the first-level cache.
const INPUTS: usize = 128;
const TRIES: u32 = 50;
const WALKS_PER_TRY: u32 = 400;
const SENSE_BYTES_MAX: usize = SenseIu::LEN + 18;

/// The shortest time per input of a walk over all of them.
fn best_ns<T>(inputs: &[T], step: impl Fn(&T) -> bool) -> f64 {
    let walks = || {
        let start = Instant::now();
        for _ in 0..WALKS_PER_TRY {
            black_box(inputs.iter().all(&step));
        }
        start.elapsed().as_nanos() as f64
    };
    (0..TRIES).map(|_| walks()).fold(f64::INFINITY, f64::min) / (f64::from(WALKS_PER_TRY) * INPUTS as f64)
}

/// Any COMMAND IU; one in eight has additional CDB bytes.
fn command(random: &mut fastrand::Rng) -> Vec<u8> {
    let cdb = std::array::from_fn(|_| random.u8(..));
    let additional_cdb = vec![0x11; if random.u8(..8) == 0 { 16 } else { 0 }];
    let iu = CommandIu {
        tag: random.u16(1..),
        attribute: TaskAttribute::from(random.u8(..3)),
        priority: random.u8(..16),
        lun: [0, random.u8(..4), 0, 0, 0, 0, 0, 0],
        cdb: &cdb,
        additional_cdb: &additional_cdb,
    };
    [&iu.encode()[..], &additional_cdb].concat()
}

/// Any SENSE IU; one in four has sense data.
fn sense(random: &mut fastrand::Rng) -> Result<Vec<u8>> {
    let fixed: [u8; 18] = std::array::from_fn(|_| random.u8(..));
    let (status, sense) =
        if random.u8(..4) == 0 { (Status::CheckCondition, &fixed[..]) } else { (Status::Good, &[][..]) };
    let mut out = [0; SENSE_BYTES_MAX];
    let len = SenseIu { tag: random.u16(1..), status_qualifier: 0, status, sense }.encode(&mut out)?;
    Ok(out[..len].to_vec())
}
