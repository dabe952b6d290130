//! Our own drivers in a guest, against the kernel's `uas`, on the same drive of QEMU.
//!
//! In each round fio runs on the block device that the kernel's driver has made; then `uaskit bench` takes the drive
//! from that driver, does the same over usbfs, and gives it back. Everything runs on one emulated processor, so the
//! ratio compares what both cost.

use super::super::arguments::HostArguments;
use super::super::figure::Figure;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;
use uaskit_interop::guest::Guest;
use uaskit_interop::qemu::Machine;
use uaskit_interop::scratch::Scratch;
use uaskit_interop::tools::fio::{Load, Pattern};
use uaskit_interop::{debian, drive};

/// Bytes of the drive.
const IMAGE_BYTES: u64 = 256 << 20;

const PLUG_LIMIT: Duration = Duration::from_secs(60);

/// A load, and the bar of our drivers.
struct Workload {
    what: &'static str,
    pattern: Pattern,
    block_bytes: u32,
    depth: u32,
    /// As `uaskit bench` calls it.
    flags: &'static str,
    bar: f64,
}

const WORKLOADS: [Workload; 3] = [
    Workload {
        what: "4K random read, depth 14",
        pattern: Pattern::RandomRead,
        block_bytes: 4 << 10,
        depth: 14,
        flags: "--rw randread --bs 4k --depth 14",
        bar: 1.0,
    },
    Workload {
        what: "512K sequential read, depth 4",
        pattern: Pattern::Read,
        block_bytes: 512 << 10,
        depth: 4,
        flags: "--rw read --bs 512k --depth 4",
        bar: 0.9,
    },
    Workload {
        what: "512K sequential write, depth 4",
        pattern: Pattern::Write,
        block_bytes: 512 << 10,
        depth: 4,
        flags: "--rw write --bs 512k --depth 4 --yes --write",
        bar: 0.9,
    },
];

/// Boots a guest and measures.
pub(super) fn measure(arguments: &HostArguments) -> Result<Vec<Figure>> {
    debian::ensure().context("the guest needs QEMU and a few tools")?;
    let place = Scratch::new()?;
    let image = place.image("drive", IMAGE_BYTES)?;
    let mut vm = Machine::new("bench-host").uas_disk("drive", &image).boot()?;
    let guest = &mut vm.guest;
    guest.install(&drive::binary()?)?;
    let device = device(guest)?;
    let fill = Load::new(&device, Pattern::Write).block_bytes(512 << 10).depth(4);
    fill.bytes(IMAGE_BYTES).run(guest)?;
    let port = port(guest)?;
    let seconds = arguments.seconds.as_secs().max(1).try_into().context("too long")?;
    let mut figures = Vec::new();
    for workload in &WORKLOADS {
        let mut figure = Figure::new(workload.what, workload.bar);
        for _ in 0..arguments.rounds {
            let load = Load::new(&device_again(guest, &device)?, workload.pattern);
            let report =
                load.block_bytes(workload.block_bytes).depth(workload.depth).seconds(seconds).run(guest)?;
            figure.push(report.read.iops + report.write.iops, ours(guest, &port, workload, seconds)?);
        }
        figures.push(figure);
    }
    Ok(figures)
}

/// The rate of our drivers.
fn ours(guest: &mut Guest, port: &str, workload: &Workload, seconds: u32) -> Result<f64> {
    let mut line = format!(
        "uaskit bench {port} --transport uas --json --rounds 1 --seconds {seconds} {}",
        workload.flags
    );
    if line.ends_with("--write") {
        line += &format!("={port}");
    }
    let printed = guest.stdout_within(Duration::from_secs(u64::from(seconds) + 60), &line)?;
    let record: Value = serde_json::from_str(&printed).with_context(|| format!("{line} prints {printed}"))?;
    ensure!(record["errors"] == 0, "requests fail: {printed}");
    record["iops"].as_f64().with_context(|| format!("no rate in {printed}"))
}

/// The drive as the kernel's driver shows it.
fn device(guest: &mut Guest) -> Result<String> {
    let disks = guest.await_disks(1, PLUG_LIMIT)?;
    let disk = disks.first().context("no disk appeared")?;
    ensure!(disk.driver == "uas", "{} is driven by {}", disk.path(), disk.driver);
    Ok(disk.path())
}

/// The same after it was given back, under whatever name.
fn device_again(guest: &mut Guest, first: &str) -> Result<String> {
    device(guest).with_context(|| format!("{first} was not given back"))
}

fn port(guest: &mut Guest) -> Result<String> {
    let listed: Value = serde_json::from_str(&guest.stdout_of("uaskit list --json")?)?;
    let devices = listed["devices"].as_array().context("uaskit list shows no devices")?;
    let port = devices.first().and_then(|device| device["port"].as_str());
    port.map(str::to_owned).context("uaskit list shows no drive")
}
