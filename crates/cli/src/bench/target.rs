//! What is measured: from a word on the command line to a rig.
//!
//! A port is driven by our own drivers, a block device or a file by the kernel's, a virtual drive by nobody else. Left out: what is asked
//! of it. Always true: a rig that may write is made only after its owner was asked, and nobody is asked about what cannot be; one that
//! takes a drive from its driver is made only of a drive that nobody uses; what was opened is what its owner was asked about.

use super::agreed::Agreed;
use super::arguments::{BenchArguments, RouteArgument};
use super::consent::{Victim, is_blank, unit_name};
use super::fit;
use crate::args::SpeedArgument;
use crate::failure::Failure;
use crate::harmless::shown;
use crate::unprinted::aside;
use bench::record::Target;
use bench::rig::{FileRig, FileRigOptions, Identity, MemoryRig, PortRig, Rig, Route};
use bus::Speed;
use inspect::block::BlockDevice;
use inspect::inventory::{Inventory, Scope};
use inspect::tree::Tree;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use units::{ByteCount, Capacity};
use usb::attachment::driven_disks;
use workload::Workload;

/// Bytes of a virtual drive: more than the caches of a processor hold.
const VIRTUAL_BYTES: ByteCount = ByteCount(256 << 20);

/// Something to measure.
pub(super) struct Bed {
    pub(super) rig: Box<dyn Rig>,
    pub(super) routes: Vec<Route>,
    pub(super) target: Target,
    /// Whose temperature the kernel may tell: a block device, or the disk at a port while the kernel drives it.
    thermometer: Thermometer,
}

/// Where a temperature may be read.
enum Thermometer {
    None,
    Device(BlockDevice),
    /// With the logical unit.
    Port(String, u8),
}

impl Bed {
    /// Degrees Celsius of the drive, where the kernel has a sensor for it.
    pub(super) fn temperature_c(&self) -> Option<f64> {
        let tree = usb::running_tree();
        match &self.thermometer {
            Thermometer::None => None,
            Thermometer::Device(device) => device.temperature_c(&tree),
            Thermometer::Port(port, lun) => at_port_c(port, *lun, &Inventory::read(&tree, Scope::Brief)),
        }
    }
}

/// Degrees Celsius of the disk at a port, where the kernel drives it and has a sensor for it.
fn at_port_c(port: &str, lun: u8, inventory: &Inventory) -> Option<f64> {
    let tree = usb::running_tree();
    let device = inventory.devices.iter().find(|device| device.port == port)?;
    let node = driven_disks(&tree, device, lun).into_iter().find_map(|disk| disk.node.as_deref())?;
    BlockDevice::of_name(&tree, node)?.temperature_c(&tree)
}

/// Makes what the arguments name ready. Whether that can be measured so is looked at first, then its owner is asked, before anything
/// can be lost.
pub(super) fn resolve(
    arguments: &BenchArguments,
    tree: &Tree,
    workloads: &mut [Workload],
) -> Result<Bed, Failure> {
    match arguments.target.as_deref() {
        _ if arguments.is_virtual => in_memory(arguments, workloads),
        Some(name) if is_blank(name) => Err(Failure::usage("an empty name names nothing to measure")
            .try_this(
                "Name a USB port (2-1.4, see uaskit list), a block device or a file, or say --virtual.",
            )),
        Some(name) => match name.to_str().filter(|name| is_port(name)) {
            Some(name) => port(name, arguments, tree, workloads),
            None => file(Path::new(name), arguments, tree, workloads),
        },
        None => Err(Failure::usage("name a USB port, a block device or a file, or say --virtual")),
    }
}

/// Whether what is asked for fits the drive. Jobs of named workloads that do not fit its blocks are taken away.
fn fits(
    name: &str,
    arguments: &BenchArguments,
    workloads: &mut [Workload],
    identity: &Identity,
) -> Result<(), Failure> {
    // A part of a virtual drive is all of it.
    let bytes = identity.bytes;
    if let Some(size) = arguments.size.filter(|size| size.0 > bytes && bytes > 0 && !arguments.is_virtual) {
        return Err(Failure::usage(format!("{name} has no {}", Capacity(size.0)))
            .because(format!("it has {}", Capacity(bytes))));
    }
    fit::check(arguments, workloads, identity)
}

fn in_memory(arguments: &BenchArguments, workloads: &mut [Workload]) -> Result<Bed, Failure> {
    let speed = match arguments.speed {
        SpeedArgument::Super => Speed::Super,
        SpeedArgument::High => Speed::High,
        SpeedArgument::Full => Speed::Full,
    };
    let size = arguments.size.unwrap_or(VIRTUAL_BYTES);
    let rig = MemoryRig::new(size, arguments.block_size.into(), speed)
        .map_err(|error| Failure::new(error.to_string()))?;
    let target = Target::of("virtual", "virtual", rig.identity());
    fits("virtual", arguments, workloads, &target.identity)?;
    Ok(Bed {
        rig: Box::new(rig),
        routes: routes(&arguments.transport, RouteArgument::Uas),
        target,
        thermometer: Thermometer::None,
    })
}

fn file(
    path: &Path,
    arguments: &BenchArguments,
    tree: &Tree,
    workloads: &mut [Workload],
) -> Result<Bed, Failure> {
    let writes = workloads.iter().any(Workload::writes);
    let name = &shown(path);
    let metadata = std::fs::metadata(path).map_err(|error| {
        Failure::new(format!("{name}: cannot be looked at"))
            .because(error)
            .try_this("Name a USB port (2-1.4, see uaskit list), a block device, or a file; truncate -s 1G FILE makes one.")
    })?;
    let is_block = metadata.file_type().is_block_device();
    let device = is_block.then(|| BlockDevice::of_number(&Tree::running(), metadata.rdev())).flatten();
    if arguments.lun.is_some() {
        return Err(Failure::usage(format!("{name} is a unit by itself: --lun is for USB ports")));
    }
    if !arguments.transport.is_empty() {
        let port = device.as_ref().and_then(|device| device.usb_port.as_deref());
        let remedy = port.map_or_else(
            || "Leave --transport out, or name a USB port (see uaskit list).".to_owned(),
            |port| format!("Leave --transport out, or name its port: uaskit bench {port}"),
        );
        let failure = Failure::usage(format!("{name}: the kernel's driver carries it"));
        return Err(failure.because("--transport is for our own drivers").try_this(remedy));
    }
    if arguments.capture.is_wanted() {
        return Err(Failure::usage(format!("{name}: nothing of it can be captured here"))
            .because("the kernel's driver makes the transfers")
            .try_this(
                "Name its USB port (see uaskit list), or let usbmon look on: sudo tcpdump -i usbmon0 -w FILE",
            ));
    }
    let running = Tree::running();
    let agreed = Agreed::of(path, &running);
    let victim = writes.then(|| Victim::of_path(path, tree)).transpose()?;
    victim.as_ref().map_or(Ok(()), |victim| victim.check(arguments))?;
    let reads_nothing = !workloads.iter().any(Workload::reads);
    let open = |writes| {
        let options = FileRigOptions { writes, reads_nothing, cached: arguments.cached };
        FileRig::open(path, options, Tree::running()).map_err(|error| Failure::new(error.to_string()))
    };
    let looked_at = open(false)?;
    fits(name, arguments, workloads, &looked_at.identity())?;
    if arguments.verify && !looked_at.is_direct() {
        return Err(Failure::usage(format!("{name}: --verify would read back from the page cache"))
            .because("its file system has no way past it")
            .try_this("Leave --verify out, or name a block device, or a file on another file system."));
    }
    let rig = match victim {
        Some(victim) => {
            drop(looked_at);
            let agreed = agreed.map(|agreed| agreed.noticed(&running));
            victim.ask(arguments)?;
            let rig = open(true)?;
            agreed.map_or(Ok(()), |agreed| still_there(path, &agreed))?;
            rig
        }
        None => looked_at,
    };
    let mut target = Target::of(name, if is_block { "block-device" } else { "file" }, rig.identity());
    if let Some(port) = device.as_ref().and_then(|device| device.usb_port.clone()) {
        target.add_usb(&Inventory::read(&usb::running_tree(), Scope::Brief), &port);
    }
    target.temperature_c[0] = device.as_ref().and_then(|device| device.temperature_c(&Tree::running()));
    let thermometer = device.map_or(Thermometer::None, Thermometer::Device);
    Ok(Bed { rig: Box::new(rig), routes: vec![Route::Kernel], target, thermometer })
}

fn port(
    name: &str,
    arguments: &BenchArguments,
    tree: &Tree,
    workloads: &mut [Workload],
) -> Result<Bed, Failure> {
    if arguments.cached {
        return Err(Failure::usage("--cached is for files and block devices: our own drivers have no cache"));
    }
    let writes = workloads.iter().any(Workload::writes);
    let inventory = Inventory::read(tree, Scope::Brief);
    let lun = arguments.lun.unwrap_or(0);
    let rig = PortRig::new(name, lun, &inventory).map_err(|error| Failure::new(error.to_string()))?;
    let device = inventory.devices.iter().find(|device| device.port == name);
    let victim = device.map(|device| Victim::of_port(device, lun, tree));
    // Whoever uses the disk would lose it while our drivers have it, whether they write or not.
    victim.as_ref().map_or(Ok(()), Victim::check_unused)?;
    let doubts = victim.iter().filter(|_| !writes).flat_map(Victim::doubts);
    doubts.for_each(|doubt| aside!("{doubt}"));
    let victim = victim.filter(|_| writes);
    victim.as_ref().map_or(Ok(()), |victim| victim.check(arguments))?;
    fits(name, arguments, workloads, &rig.identity())?;
    victim.map_or(Ok(()), |victim| victim.ask(arguments))?;
    let mut target = Target::of(unit_name(name, lun), "usb-port", rig.identity());
    target.lun = Some(lun);
    target.add_usb(&inventory, name);
    target.temperature_c[0] = at_port_c(name, lun, &inventory);
    let routes = routes(&arguments.transport, RouteArgument::All);
    Ok(Bed { rig: Box::new(rig), routes, target, thermometer: Thermometer::Port(name.to_owned(), lun) })
}

/// Whether a path that was opened leads to what its owner had agreed to.
fn still_there(path: &Path, agreed: &Agreed) -> Result<(), Failure> {
    let now = Agreed::of(path, &Tree::running());
    agreed.check(path, now.as_ref()).map_err(|another| not_overwritten(&shown(path), another))
}

/// Another one is there than its owner had agreed to.
pub(super) fn not_overwritten(name: &str, another: String) -> Failure {
    let failure = Failure::refused(format!("{name} is not overwritten")).because(another);
    failure.try_this("If it is meant, begin again: what is there now will be asked about.")
}

/// Each that is named, once, in the order of their names: ratios are taken against the first.
fn routes(named: &[RouteArgument], otherwise: RouteArgument) -> Vec<Route> {
    let named = if named.is_empty() { &[otherwise] } else { named };
    let of = |name: &RouteArgument| -> &[Route] {
        match name {
            RouteArgument::Bot => &[Route::Bot],
            RouteArgument::Turbo => &[Route::Turbo],
            RouteArgument::Uas => &[Route::Uas],
            RouteArgument::All => &[Route::Bot, Route::Turbo, Route::Uas],
        }
    };
    let mut routes = Vec::new();
    for route in named.iter().flat_map(of) {
        if !routes.contains(route) {
            routes.push(*route);
        }
    }
    routes
}

/// `BUS-PORT.PORT…`, as sysfs names devices.
fn is_port(name: &str) -> bool {
    let is_number =
        |word: &str| !word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(bus, ports)| is_number(bus) && ports.split('.').all(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_taken_as_they_are_named_and_once() {
        use RouteArgument::{All, Bot, Uas};
        assert_eq!(routes(&[], Uas), [Route::Uas]);
        assert_eq!(routes(&[Uas, Bot, Uas], All), [Route::Uas, Route::Bot]);
        assert_eq!(routes(&[Uas, All], All), [Route::Uas, Route::Bot, Route::Turbo]);
    }

    #[test]
    fn a_port_is_told_from_a_path() {
        assert!(is_port("2-1") && is_port("10-1.4.2"));
        for path in ["/dev/sdb", "2-", "-1", "2-1.", "a-1", "2-1/x", "./2-1", "2-1:1.0", "2"] {
            assert!(!is_port(path), "{path}");
        }
    }
}
