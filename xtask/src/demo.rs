//! `cargo xtask demo`: the main job, shown. A real Linux in QEMU drives one image, over UAS and over BOT; then a simulated world of real
//! parts is asked the same.
//!
//! Everything that is printed was just seen: the guest's own `lsusb -t`, its queue depth, what its fio measured, what `uaskit compare` says.

use anyhow::{Context, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use std::process::Command;
use std::time::Duration;
use uaskit_interop::debian;
use uaskit_interop::drive::Drive;
use uaskit_interop::guest::Disk;
use uaskit_interop::qemu::{Machine, Vm};
use uaskit_interop::scratch::Scratch;
use uaskit_interop::tools::fio::{Load, Pattern};

/// Bytes of the image.
const IMAGE_BYTES: u64 = 256 << 20;
/// Depths that are measured.
const DEPTHS: [u32; 3] = [1, 4, 30];
/// Block sizes that are measured, and the unit of their rate.
const BLOCKS: [(u32, Unit); 2] = [(4 << 10, Unit::Iops), (512 << 10, Unit::MegabytesPerSecond)];
/// How long the guest may take to find the disk.
const PLUG_LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
enum Unit {
    Iops,
    MegabytesPerSecond,
}

/// Results of one transport, in the order of the table's rows.
type Column = Vec<f64>;

/// Runs the demonstration; each measurement takes `seconds` seconds.
pub(crate) fn run(seconds: u32) -> Result<bool> {
    debian::ensure().context("the demonstration needs QEMU and a few tools")?;
    let images = Scratch::new()?;
    let image = images.image("demo", IMAGE_BYTES)?;
    let image = image.to_str().context("the image's path is not UTF-8")?;
    println!("Booting Linux in QEMU (software emulation, a few seconds) …");
    let mut vm = Machine::new("demo").boot()?;

    let uas = with_drive(&mut vm, "uas", image, |vm, disk| {
        show(vm, disk, "UAS")?;
        measure(vm, disk, seconds)
    })?;
    let bot = with_drive(&mut vm, "bot", image, |vm, disk| {
        show(vm, disk, "BOT")?;
        measure(vm, disk, seconds)
    })?;
    print_table(&bot, &uas);
    println!("\nThe guest's kernel had nothing to complain about.");
    simulated()
}

/// The same question in a simulated world of real parts, and where two commands overlap.
fn simulated() -> Result<bool> {
    let uaskit = uaskit_interop::drive::binary()?;
    for arguments in [
        &["compare", "--block", "4K", "--depth", "1,4,32"][..],
        &["compare", "--timeline", "--transport", "bot,uas"],
    ] {
        println!("\n$ uaskit {}", arguments.join(" "));
        let status = Command::new(&uaskit).args(arguments).status().context("uaskit does not start")?;
        ensure!(status.success(), "uaskit {} ended with {status}", arguments.join(" "));
    }
    Ok(true)
}

/// Serves the image over one transport, plugs it in, and takes it out afterwards.
fn with_drive<T>(
    vm: &mut Vm,
    transport: &str,
    image: &str,
    act: impl FnOnce(&mut Vm, &Disk) -> Result<T>,
) -> Result<T> {
    let drive = Drive::serve(transport, &[image, "--transport", transport])?;
    println!("\n$ uaskit serve demo.img --transport {transport} --usbredir unix:drive.sock");
    vm.attach(&drive.plug())?;
    let disk = vm.guest.await_disks(1, PLUG_LIMIT)?.remove(0);
    let outcome = act(vm, &disk)?;
    let log = vm.guest.dmesg()?;
    ensure!(log.complaints().is_empty(), "the guest's kernel complains: {:?}", log.complaints());
    // The guest deletes the disk first, as a user ejects a drive: the kernel logs errors when a drive in use is pulled out.
    vm.guest.stdout_of(&format!("echo 1 > /sys/block/{}/device/delete", disk.name))?;
    vm.detach(transport)?;
    vm.guest.await_disks(0, PLUG_LIMIT)?;
    Ok(outcome)
}

fn show(vm: &mut Vm, disk: &Disk, transport: &str) -> Result<()> {
    println!("guest$ lsusb -t");
    let tree = vm.guest.stdout_of("lsusb -t")?;
    for line in tree.lines() {
        println!("    {line}");
    }
    println!(
        "{transport}: driver {}, {} Mb/s, queue depth {}, {}",
        disk.driver,
        disk.speed_mbps,
        disk.queue_depth,
        disk.path()
    );
    Ok(())
}

fn measure(vm: &mut Vm, disk: &Disk, seconds: u32) -> Result<Column> {
    let mut column = Column::new();
    for (block_bytes, unit) in BLOCKS {
        for depth in DEPTHS {
            for pattern in patterns(block_bytes) {
                let load =
                    Load::new(&disk.path(), pattern).block_bytes(block_bytes).depth(depth).seconds(seconds);
                let report = load.run(&mut vm.guest)?;
                let side = if writes(pattern) { report.write } else { report.read };
                column.push(match unit {
                    Unit::Iops => side.iops,
                    Unit::MegabytesPerSecond => side.bytes_per_second as f64 / 1e6,
                });
            }
        }
    }
    Ok(column)
}

/// Random for small blocks, sequential for large ones.
const fn patterns(block_bytes: u32) -> [Pattern; 2] {
    if block_bytes <= 4096 {
        [Pattern::RandomRead, Pattern::RandomWrite]
    } else {
        [Pattern::Read, Pattern::Write]
    }
}

const fn writes(pattern: Pattern) -> bool {
    matches!(pattern, Pattern::Write | Pattern::RandomWrite)
}

fn print_table(bot: &Column, uas: &Column) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["workload", "depth", "BOT", "UAS", "UAS : BOT"]);
    let mut values = bot.iter().zip(uas);
    for (block_bytes, unit) in BLOCKS {
        for depth in DEPTHS {
            for pattern in patterns(block_bytes) {
                let Some((bot, uas)) = values.next() else { continue };
                let name = format!("{}K {}", block_bytes >> 10, describe(pattern));
                let rate = |value: f64| match unit {
                    Unit::Iops => format!("{value:.0} IOPS"),
                    Unit::MegabytesPerSecond => format!("{value:.0} MB/s"),
                };
                table.add_row([name, depth.to_string(), rate(*bot), rate(*uas), format!("{:.2}", uas / bot)]);
            }
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("\nThe same image over both transports, in this emulated guest (fio, direct I/O):\n{table}");
}

const fn describe(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Read => "sequential read",
        Pattern::Write => "sequential write",
        Pattern::RandomRead => "random read",
        Pattern::RandomWrite => "random write",
        Pattern::RandomMixed => "random mixed",
    }
}
