//! Our USB controller over vfio-user against QEMU's own drives, in one guest.
//!
//! One virtual machine in software emulation has five drives on images of the same length in the same folder: ours behind a
//! controller with mapped doorbells, behind one by messages, and over usbredir; QEMU's `usb-uas` with `scsi-hd`; and `virtio-blk`, which
//! is what a virtual machine can have at best. fio alternates between them, another first each time.
//!
//! Afterwards system calls of our servers are counted with strace, in runs that are not measured. A message of vfio-user is one
//! `recvmsg`, a reply one `sendto`; eventfds are written for interrupts.

use super::arguments::VfioArguments;
use super::figure::{Figure, Spread, align};
use super::judged::{Judged, conclude};
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use uaskit_interop::debian;
use uaskit_interop::drive::Drive;
use uaskit_interop::guest::Guest;
use uaskit_interop::qemu::Machine;
use uaskit_interop::scratch::Scratch;
use uaskit_interop::tools::fio::{Load, Pattern};

/// Bytes of each image.
const IMAGE_BYTES: u64 = 256 << 20;
/// The rivals in the order of [`Rivals`]; ours by their serial numbers.
const NAMES: [&str; RIVALS] = ["mapped", "messages", "usbredir", "usb-uas", "virtio-blk"];
const RIVALS: usize = 5;
const MAPPED: usize = 0;
const MESSAGES: usize = 1;
const USBREDIR: usize = 2;
const USB_UAS: usize = 3;
const VIRTIO: usize = 4;

const PLUG_LIMIT: Duration = Duration::from_secs(60);
/// How long system calls are counted.
const COUNTED: Duration = Duration::from_secs(2);
/// How long strace needs to attach.
const ATTACH: Duration = Duration::from_millis(500);

/// A load, and bars: of `usb-uas` for both ways of ours, and of our usbredir.
struct Workload {
    pattern: Pattern,
    block_bytes: u32,
    depth: u32,
    mapped_bar: f64,
    messages_bar: f64,
    usbredir_bar: f64,
}

const WORKLOADS: [Workload; 7] = [
    Workload { usbredir_bar: 3.0, ..large(Pattern::Read) },
    large(Pattern::Write),
    Workload { messages_bar: 0.55, ..small(Pattern::RandomRead, 1, 0.9) },
    small(Pattern::RandomRead, 14, 1.0),
    small(Pattern::RandomRead, 30, 1.0),
    small(Pattern::RandomWrite, 14, 1.0),
    small(Pattern::RandomWrite, 30, 1.0),
];

const fn small(pattern: Pattern, depth: u32, mapped_bar: f64) -> Workload {
    Workload { pattern, block_bytes: 4 << 10, depth, mapped_bar, messages_bar: 0.0, usbredir_bar: 0.0 }
}

const fn large(pattern: Pattern) -> Workload {
    Workload { block_bytes: 512 << 10, ..small(pattern, 4, 0.95) }
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    workloads: Vec<Measured>,
    /// Memory that each server of ours occupied at most, in bytes.
    resident_bytes: BTreeMap<&'static str, u64>,
}

/// One load.
#[derive(Debug, Serialize)]
struct Measured {
    what: String,
    /// Commands per second of each rival, round by round.
    rates: BTreeMap<&'static str, Vec<f64>>,
    ratios: Vec<Figure>,
    /// System calls for a command, by server and name.
    calls: BTreeMap<&'static str, BTreeMap<String, f64>>,
}

/// Boots the machine, measures, and judges.
pub(super) fn measure(arguments: &VfioArguments) -> Result<bool> {
    debian::ensure().context("the guest needs QEMU and a few tools")?;
    let place = Scratch::new()?;
    let image = |name| place.image(name, IMAGE_BYTES);
    let host = |number: usize, doorbells| {
        let description = format!("image={},serial={}", image(NAMES[number])?.display(), NAMES[number]);
        Drive::serve_host(NAMES[number], &["--doorbells", doorbells, "--drive", &description])
    };
    let (mapped, messages) = (host(MAPPED, "mapped")?, host(MESSAGES, "messages")?);
    let redirected = Drive::serve(NAMES[USBREDIR], &[&image(NAMES[USBREDIR])?.to_string_lossy()])?;
    let machine = Machine::new("bench-vfio").host(mapped.socket(), None).host(messages.socket(), None);
    let machine = machine.redirect(&redirected.plug()).uas_disk(NAMES[USB_UAS], &image(NAMES[USB_UAS])?);
    let mut vm = machine.arguments(virtio(&image(NAMES[VIRTIO])?)).boot()?;
    let rivals = Rivals::find(&mut vm.guest)?;
    vm.guest.forget_log()?;

    let servers = [(MAPPED, &mapped), (MESSAGES, &messages), (USBREDIR, &redirected)];
    let mut workloads = Vec::new();
    for workload in &WORKLOADS {
        let mut measured = rivals.compare(&mut vm.guest, workload, arguments)?;
        for (number, server) in servers {
            if let Some(calls) = rivals.count_calls(&mut vm.guest, workload, number, server.pid())? {
                measured.calls.insert(NAMES[number], calls);
            }
        }
        workloads.push(measured);
    }
    let log = vm.guest.dmesg()?;
    let complaints = log.complaints();
    ensure!(complaints.is_empty(), "the guest's kernel complains:\n{}", complaints.join("\n"));
    let resident = servers.map(|(number, server)| Ok((NAMES[number], server.most_resident_bytes()?)));
    let report = Report { workloads, resident_bytes: resident.into_iter().collect::<Result<_>>()? };
    conclude(&report, arguments.json, || report.print(arguments))
}

/// QEMU's arguments for a virtio disk.
fn virtio(image: &Path) -> [String; 4] {
    let file = format!("file.driver=file,file.filename={},file.locking=off", image.display());
    [
        "-blockdev".into(),
        format!("driver=raw,node-name=virtio,discard=unmap,{file}"),
        "-device".into(),
        "virtio-blk-pci,drive=virtio".into(),
    ]
}

/// The block devices of the guest.
struct Rivals([String; RIVALS]);

impl Rivals {
    /// Finds each, and writes all of it, so that no block is a hole.
    fn find(guest: &mut Guest) -> Result<Self> {
        guest.stdout_of("modprobe virtio_blk")?;
        let disks = guest.await_disks(RIVALS - 1, PLUG_LIMIT)?;
        let mut rivals: [String; RIVALS] = Default::default();
        rivals[VIRTIO] = "/dev/vda".into();
        for disk in disks.iter().filter(|disk| disk.driver == "uas") {
            let place = NAMES.iter().position(|name| *name == disk.serial).unwrap_or(USB_UAS);
            rivals[place] = disk.path();
        }
        ensure!(rivals.iter().all(|path| !path.is_empty()), "not all drives are there: {disks:?}");
        for path in &rivals {
            let fill = Load::new(path, Pattern::Write).block_bytes(512 << 10).depth(4);
            fill.bytes(IMAGE_BYTES).run(guest)?;
        }
        Ok(Self(rivals))
    }

    /// All rivals in turn, in each round so often that each is first once.
    fn compare(&self, guest: &mut Guest, workload: &Workload, arguments: &VfioArguments) -> Result<Measured> {
        let orders: [[usize; RIVALS]; RIVALS] =
            std::array::from_fn(|first| std::array::from_fn(|place| (first + place) % RIVALS));
        let turn = arguments.seconds / RIVALS as u32;
        let rivals = orders.as_flattened().iter();
        let loads: Vec<_> = rivals.map(|rival| workload.load(&self.0[*rival]).time(turn)).collect();
        let mut rounds = Vec::new();
        for _ in 0..arguments.rounds {
            let reports = Load::run_in_turn(&loads, guest)?;
            let mut rates = [0.0; RIVALS];
            for (rival, report) in orders.as_flattened().iter().zip(&reports) {
                rates[*rival] += (report.read.iops + report.write.iops) / RIVALS as f64;
            }
            rounds.push(rates);
        }
        let ratio = |measured: usize, reference: usize, bar| {
            let mut figure = Figure::new(format!("{} to {}", NAMES[measured], NAMES[reference]), bar);
            rounds.iter().for_each(|rates| figure.push(rates[reference], rates[measured]));
            figure
        };
        let ratios = vec![
            ratio(MAPPED, USB_UAS, workload.mapped_bar),
            ratio(MESSAGES, USB_UAS, workload.messages_bar),
            ratio(USBREDIR, USB_UAS, 0.0),
            ratio(MAPPED, USBREDIR, workload.usbredir_bar),
            ratio(MAPPED, VIRTIO, 0.0),
        ];
        let rates = |rival: usize| (NAMES[rival], rounds.iter().map(|rates| rates[rival]).collect());
        let rates = (0..RIVALS).map(rates).collect();
        Ok(Measured { what: workload.describe(), rates, ratios, calls: BTreeMap::new() })
    }

    /// System calls of a server for a command. `None` without strace.
    fn count_calls(
        &self,
        guest: &mut Guest,
        workload: &Workload,
        rival: usize,
        pid: u32,
    ) -> Result<Option<BTreeMap<String, f64>>> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-c", "-p", &pid.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        let Ok(strace) = strace.stderr(Stdio::piped()).spawn() else { return Ok(None) };
        std::thread::sleep(ATTACH);
        let report = workload.load(&self.0[rival]).time(COUNTED).run(guest)?;
        if let Some(pid) = i32::try_from(strace.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::INT).context("end strace")?;
        }
        let output = strace.wait_with_output().context("wait for strace")?;
        let commands = (report.read.bytes + report.write.bytes) as f64 / f64::from(workload.block_bytes);
        let table = String::from_utf8_lossy(&output.stderr);
        let calls: BTreeMap<_, _> = table
            .lines()
            .filter_map(called)
            .map(|(name, count)| (name, count / commands))
            .filter(|(_, count)| *count >= 0.01)
            .collect();
        Ok((!calls.is_empty()).then_some(calls))
    }
}

/// A line of strace's table: `% time, seconds, usecs/call, calls, errors or none, name`.
fn called(line: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.last().filter(|name| **name != "total" && words.len() >= 5)?;
    words.first()?.parse::<f64>().ok()?;
    Some(((*name).to_owned(), words.get(3)?.parse().ok()?))
}

impl Workload {
    fn load(&self, device: &str) -> Load {
        Load::new(device, self.pattern).block_bytes(self.block_bytes).depth(self.depth)
    }

    fn describe(&self) -> String {
        let pattern = match self.pattern {
            Pattern::Read | Pattern::RandomRead => "read",
            _ => "write",
        };
        format!("{}K {pattern} QD{}", self.block_bytes >> 10, self.depth)
    }
}

impl Judged for Report {
    fn passes(&self) -> bool {
        self.workloads.iter().flat_map(|measured| &measured.ratios).all(Figure::passes)
    }
}

impl Report {
    fn print(&self, arguments: &VfioArguments) {
        println!(
            "Commands per second in a guest (median of {} rounds of {:?}), and median ratios within a round\n{}",
            arguments.rounds,
            arguments.seconds,
            self.rates()
        );
        println!("{}\n", self.ratios());
        for (name, bytes) in &self.resident_bytes {
            println!("{name}: at most {:.1} MiB resident", *bytes as f64 / f64::from(1 << 20));
        }
        println!("\nSystem calls for a command\n{}", self.calls());
    }

    fn rates(&self) -> Table {
        let mut table = new_table([""].into_iter().chain(NAMES));
        for Measured { what, rates, .. } in &self.workloads {
            let rate = |name| format!("{:.0}", Spread::of(rates[name].clone()).median);
            table.add_row(std::iter::once(what.clone()).chain(NAMES.into_iter().map(rate)));
        }
        align(&mut table);
        table
    }

    fn ratios(&self) -> Table {
        let mut table = new_table(["", "", "ratio", "min", "max", "bar", ""]);
        for Measured { what, ratios, .. } in &self.workloads {
            for figure in ratios {
                let Spread { min, median, max } = figure.ratio();
                let [min, median, max] = [min, median, max].map(|ratio| format!("{ratio:.2}"));
                let bar = if figure.bar > 0.0 { format!("{:.2}", figure.bar) } else { "-".into() };
                let verdict = if figure.passes() { "" } else { "TOO SLOW" };
                table.add_row([what, &figure.what, &median, &min, &max, &bar, verdict]);
            }
        }
        align(&mut table);
        table
    }

    fn calls(&self) -> Table {
        let mut table = new_table(["", "", "system calls"]);
        for Measured { what, calls, .. } in &self.workloads {
            for (name, calls) in calls {
                let mut calls: Vec<_> = calls.iter().collect();
                calls.sort_by(|(_, one), (_, other)| other.total_cmp(one));
                let calls: Vec<_> = calls.iter().map(|(name, count)| format!("{name} {count:.2}")).collect();
                table.add_row([what.as_str(), *name, &calls.join(", ")]);
            }
        }
        table
    }
}

fn new_table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(header);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_strace_has_a_name_and_a_count() {
        let line = " 52.12    0.001234           3       400        12 recvmsg";
        assert_eq!(called(line), Some(("recvmsg".into(), 400.0)));
        assert_eq!(
            called("  1.00    0.000001           1         7           sendto"),
            Some(("sendto".into(), 7.0))
        );
        assert_eq!(called("------ ----------- ----------- --------- --------- ----------------"), None);
        assert_eq!(called("100.00    0.002345           3       500        12 total"), None);
        assert_eq!(called("% time     seconds  usecs/call     calls    errors syscall"), None);
    }
}
