//! `cargo xtask bench decode`: how fast captures are read, against a program that only reads the file.
//!
//! Two captures of a simulated drive over BOT and UAS, as usbmon records them, with payload: reads of 64 KiB, and reads of 4 KiB, in which half
//! is headers. `uaskit decode` prints its lines into nothing. The rate is of the file's bytes by the clock on the wall; the file is in
//! the page cache. What is held against the bar is the slower one.

use super::figure::{self, Spread};
use super::judged::{Judged, conclude};
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets};
use serde::Serialize;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How to measure decoding.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DecodeArguments {
    /// How often each is measured, alternately.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// About how large the captures are, in MiB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=4096))]
    mib: u32,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    speeds: Vec<Speed>,
}

/// One capture.
#[derive(Debug, Serialize)]
struct Speed {
    what: String,
    bytes: u64,
    commands: u64,
    /// MB/s (10^6 bytes) of decoding, one for each round.
    decoded: Vec<f64>,
    /// Of reading alone.
    read: Vec<f64>,
}

/// MB/s of usbmon with payload.
const BAR: f64 = 200.0;
const BLOCKS_KIB: [u32; 2] = [64, 4];
/// Bytes that reading alone asks for at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Measures; whether the bar was reached.
pub(super) fn measure(arguments: &DecodeArguments) -> Result<bool> {
    let place = tempfile::tempdir().context("make a directory")?;
    let uaskit = std::env::var_os("UASKIT_BIN").context("UASKIT_BIN is not set")?;
    let uaskit = Path::new(&uaskit);
    let mut captures = Vec::new();
    for kib in BLOCKS_KIB {
        captures.push(Speed::captured(uaskit, place.path(), kib, arguments.mib)?);
    }
    for _ in 0..arguments.rounds {
        for (path, speed) in &mut captures {
            speed.measure(uaskit, path)?;
        }
    }
    let report = Report { speeds: captures.into_iter().map(|(_, speed)| speed).collect() };
    conclude(&report, arguments.json, || {
        println!("MB/s of captures, at least {BAR:.0}; {} rounds\n{}", arguments.rounds, report.table());
    })
}

impl Speed {
    /// A capture of reads of so many KiB, of about so many MiB.
    fn captured(uaskit: &Path, place: &Path, kib: u32, mib: u32) -> Result<(PathBuf, Self)> {
        // The same commands run over BOT; with each come headers of some KiB.
        let commands = u64::from(mib) * 1024 / u64::from(2 * kib + 2);
        let path = place.join(format!("{kib}.pcapng"));
        let mut compare = Command::new(uaskit);
        compare.args(["compare", "--raw", "--depth", "8", "--block", &format!("{kib}K"), "--commands"]);
        compare.arg(commands.to_string()).arg("--capture").arg(&path).stdout(Stdio::null());
        ensure!(compare.status().context("start uaskit compare")?.success(), "the capture failed");
        let bytes = fs::metadata(&path).context("look at the capture")?.len();
        let what = format!("usbmon, reads of {kib} KiB");
        Ok((path, Self { what, bytes, commands: 2 * commands, decoded: Vec::new(), read: Vec::new() }))
    }

    /// One round.
    fn measure(&mut self, uaskit: &Path, path: &Path) -> Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let before = Instant::now();
        let mut file = File::open(path).context("open the capture")?;
        while file.read(&mut chunk).context("read the capture")? > 0 {}
        self.read.push(self.bytes as f64 / 1e6 / before.elapsed().as_secs_f64());
        let before = Instant::now();
        let mut decode = Command::new(uaskit);
        decode.arg("decode").arg(path).stdout(Stdio::null());
        ensure!(decode.status().context("start uaskit decode")?.success(), "decoding failed");
        self.decoded.push(self.bytes as f64 / 1e6 / before.elapsed().as_secs_f64());
        Ok(())
    }
}

impl Judged for Report {
    fn passes(&self) -> bool {
        self.speeds.iter().all(|speed| Spread::of(speed.decoded.clone()).median >= BAR)
    }
}

impl Report {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["", "MB", "commands", "decoded", "min", "max", "only read", "ratio", ""]);
        for Speed { what, bytes, commands, decoded, read } in &self.speeds {
            let Spread { min, median, max } = Spread::of(decoded.clone());
            let read = Spread::of(read.clone()).median;
            let numbers = [*bytes as f64 / 1e6, *commands as f64, median, min, max, read];
            let numbers = numbers.map(|number| format!("{number:.0}"));
            let verdict = if median >= BAR { "" } else { "TOO SLOW" }.to_owned();
            let row = [vec![what.clone()], numbers.to_vec(), vec![format!("{:.2}", median / read), verdict]];
            table.add_row(row.concat());
        }
        figure::align(&mut table);
        table
    }
}
