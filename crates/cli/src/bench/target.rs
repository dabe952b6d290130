//! The target of a benchmark: from a name on the command line to an open [`BenchDevice`].
//!
//! uaskit's drivers drive a port, or the port of a USB id; the kernel's drivers drive a block device or a file; a virtual
//! drive is in memory. Left out: the workload. Invariants: a device is opened for writes only after the user confirmed,
//! and the user is asked only about a run that is possible; the kernel driver is detached only from a drive that is not
//! in use; the opened device is the one that the user confirmed.

use super::confirm::{WriteTarget, is_blank, unit_name};
use super::fit;
use super::identity::DeviceIdentity;
use crate::args::{BenchArguments, RouteArgument};
use crate::command_line;
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use bench::backend::{
    BenchDevice, DriveInfo, FileDevice, FileDeviceOptions, MemoryDevice, Route, UsbPortDevice,
};
use bench::record::Target;
use inspect::block::BlockDevice;
use inspect::inventory::{DeviceId, Inventory, Scope};
use inspect::tree::Tree;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use study::plural::listed;
use units::{ByteCount, Capacity};
use usb::attachment::driven_disks;
use workload::Workload;

/// Bytes of a virtual drive: more than the caches of a processor hold.
const VIRTUAL_BYTES: ByteCount = ByteCount(256 << 20);

/// Something to measure.
pub(super) struct BenchTarget {
    pub(super) device: Box<dyn BenchDevice>,
    pub(super) routes: Vec<Route>,
    pub(super) target: Target,
    /// Where the kernel may report a temperature: a block device, or the disk at a port while the kernel drives it.
    thermometer: Thermometer,
}

/// Where a temperature may be read.
enum Thermometer {
    None,
    Device(BlockDevice),
    /// With the logical unit.
    Port(String, u8),
}

impl BenchTarget {
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
) -> Result<BenchTarget, Failure> {
    match arguments.target.as_deref() {
        _ if arguments.is_virtual => in_memory(arguments, workloads),
        Some(name) => match Named::of(name, tree)? {
            Named::Port(name) => port(&name, arguments, tree, workloads),
            Named::Path(path) => file(&path, arguments, tree, workloads),
        },
        None => Err(nothing_named()),
    }
}

/// Checks that the arguments name something to measure, before anything else is asked of them.
pub(super) fn is_named(arguments: &BenchArguments) -> Result<(), Failure> {
    match arguments.target.as_deref() {
        _ if arguments.is_virtual => Ok(()),
        Some(name) if is_blank(name) => Err(Failure::usage("TARGET is empty").try_this(TARGETS)),
        Some(_) => Ok(()),
        None => Err(nothing_named()),
    }
}

fn nothing_named() -> Failure {
    Failure::usage("TARGET is missing").try_this(TARGETS)
}

/// Hint in error messages: the targets that can be measured.
const TARGETS: &str = "Name a USB port (2-1.4, see `uaskit list`), a USB id (174c:55aa), a block device (sdb, /dev/sdb) or a file; \
                       or measure a drive in memory: uaskit bench --virtual";

/// The USB port or the path that a name on the command line stands for.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Port(String),
    Path(PathBuf),
}

impl Named {
    /// A name as `uaskit why` reads it: a port, an id, a block device with or without `/dev/`; else the path of a file.
    fn of(name: &OsStr, tree: &Tree) -> Result<Self, Failure> {
        let path = Path::new(name);
        let Some(text) = name.to_str() else { return Ok(Self::Path(path.into())) };
        if is_port(text) {
            return Ok(Self::Port(text.to_owned()));
        }
        // A file in this folder is what its name says, whatever else has that name.
        if text.contains('/') || path.exists() {
            return Ok(Self::Path(path.into()));
        }
        if text.parse::<DeviceId>().is_ok() {
            return Self::of_id(text, &Inventory::read(tree, Scope::Brief));
        }
        let is_node = BlockDevice::of_name(tree, text).is_some();
        Ok(Self::Path(if is_node { Path::new("/dev").join(text) } else { path.into() }))
    }

    /// The port of the only drive with this id.
    fn of_id(id: &str, inventory: &Inventory) -> Result<Self, Failure> {
        let found = inventory.find(id);
        let drives: Vec<&str> =
            found.iter().filter(|device| device.is_storage()).map(|device| device.port.as_str()).collect();
        match drives.as_slice() {
            [port] => Ok(Self::Port((*port).to_owned())),
            [] if found.is_empty() => Err(Failure::new(format!("no USB device has the id {id}"))
                .try_this("See `uaskit list` for the drives that are attached.")),
            [] => Err(Failure::new(format!("{id} is not a USB mass-storage device"))
                .try_this("See `uaskit list` for the drives that are attached.")),
            ports => Err(Failure::usage(format!("{} drives have the id {id}", ports.len()))
                .because(format!("they are at ports {}", listed(ports)))
                .try_this("Name one of the ports.")),
        }
    }
}

/// Whether what is asked for fits the drive. Jobs of named workloads that do not fit its blocks are taken away.
fn fits(
    name: &str,
    arguments: &BenchArguments,
    workloads: &mut [Workload],
    identity: &DriveInfo,
) -> Result<(), Failure> {
    // A part of a virtual drive is all of it.
    let bytes = identity.bytes;
    if let Some(size) = arguments.size.filter(|size| size.0 > bytes && bytes > 0 && !arguments.is_virtual) {
        return Err(Failure::usage(format!("--size {} is larger than {name}", Capacity(size.0)))
            .because(format!("it has {}", Capacity(bytes))));
    }
    fit::check(arguments, workloads, identity)
}

fn in_memory(arguments: &BenchArguments, workloads: &mut [Workload]) -> Result<BenchTarget, Failure> {
    let size = arguments.size.unwrap_or(VIRTUAL_BYTES);
    let bench_device = MemoryDevice::new(size, arguments.block_size.into(), arguments.speed.into())
        .map_err(|error| Failure::new(error.to_string()))?;
    let target = Target::of("virtual", "virtual", bench_device.identity());
    fits("virtual", arguments, workloads, &target.identity)?;
    Ok(BenchTarget {
        device: Box::new(bench_device),
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
) -> Result<BenchTarget, Failure> {
    let writes = workloads.iter().any(Workload::writes);
    let name = &shown(path);
    let metadata = readable(path)?;
    let is_block = metadata.file_type().is_block_device();
    let device = is_block.then(|| BlockDevice::of_number(&Tree::running(), metadata.rdev())).flatten();
    if arguments.lun.is_some() {
        return Err(Failure::usage(format!("--lun needs a USB port or id; {name} is one logical unit")));
    }
    if !arguments.transport.is_empty() {
        let port = device.as_ref().and_then(|device| device.usb_port.as_deref());
        let remedy = port.map_or_else(
            || "Leave --transport out, or name a USB port (see `uaskit list`).".to_owned(),
            |port| format!("Leave --transport out, or name its port: uaskit bench {port}"),
        );
        let failure = Failure::usage(format!("--transport does not apply to {name}"));
        return Err(failure
            .because("the kernel's driver carries its requests and has chosen the transport")
            .try_this(remedy));
    }
    if arguments.capture.is_wanted() {
        return Err(Failure::usage(format!("cannot capture the transfers of {name}"))
            .because("the kernel's driver submits them")
            .try_this(
                "Name its USB port (see `uaskit list`), or capture with usbmon: sudo tcpdump -i usbmon0 -w FILE",
            ));
    }
    let running = Tree::running();
    let confirmed = DeviceIdentity::of(path, &running);
    let write_target = writes.then(|| WriteTarget::of_path(path, tree)).transpose()?;
    write_target.as_ref().map_or(Ok(()), |write_target| write_target.check(arguments))?;
    let reads_nothing = !workloads.iter().any(Workload::reads);
    let open = |writes| {
        let options = FileDeviceOptions { writes, reads_nothing, cached: arguments.cached };
        FileDevice::open(path, options, Tree::running()).map_err(|error| Failure::new(error.to_string()))
    };
    let read_only = open(false)?;
    fits(name, arguments, workloads, &read_only.identity())?;
    if arguments.verify && !read_only.is_direct() {
        return Err(Failure::usage(format!("--verify cannot check {name}"))
            .because("its file system does not support O_DIRECT, so reads would come from the page cache")
            .try_this("Leave --verify out, or name a block device, or a file on another file system."));
    }
    let bench_device = match write_target {
        Some(write_target) => {
            drop(read_only);
            let confirmed = confirmed.map(|confirmed| confirmed.noticed(&running));
            write_target.ask(arguments)?;
            let bench_device = open(true)?;
            confirmed.map_or(Ok(()), |confirmed| still_there(path, &confirmed))?;
            bench_device
        }
        None => read_only,
    };
    let mut target =
        Target::of(name, if is_block { "block-device" } else { "file" }, bench_device.identity());
    if let Some(port) = device.as_ref().and_then(|device| device.usb_port.clone()) {
        target.add_usb(&Inventory::read(&usb::running_tree(), Scope::Brief), &port);
    }
    target.temperature_c[0] = device.as_ref().and_then(|device| device.temperature_c(&Tree::running()));
    let thermometer = device.map_or(Thermometer::None, Thermometer::Device);
    Ok(BenchTarget { device: Box::new(bench_device), routes: vec![Route::Kernel], target, thermometer })
}

fn port(
    name: &str,
    arguments: &BenchArguments,
    tree: &Tree,
    workloads: &mut [Workload],
) -> Result<BenchTarget, Failure> {
    if arguments.cached {
        return Err(Failure::usage(
            "--cached needs a file or block device; uaskit's own drivers have no page cache",
        ));
    }
    let writes = workloads.iter().any(Workload::writes);
    let inventory = Inventory::read(tree, Scope::Brief);
    let lun = arguments.lun.unwrap_or(0);
    let bench_device =
        UsbPortDevice::new(name, lun, &inventory).map_err(|error| Failure::new(error.to_string()))?;
    let device = inventory.devices.iter().find(|device| device.port == name);
    let write_target = device.map(|device| WriteTarget::of_port(device, lun, tree));
    // A program that uses the disk would lose it while our driver has the interface, for reads as well.
    write_target.as_ref().map_or(Ok(()), WriteTarget::check_unused)?;
    let doubts = write_target.iter().filter(|_| !writes).flat_map(WriteTarget::doubts);
    doubts.for_each(|doubt| message!("{doubt}"));
    let write_target = write_target.filter(|_| writes);
    write_target.as_ref().map_or(Ok(()), |write_target| write_target.check(arguments))?;
    fits(name, arguments, workloads, &bench_device.identity())?;
    write_target.map_or(Ok(()), |write_target| write_target.ask(arguments))?;
    let mut target = Target::of(unit_name(name, lun), "usb-port", bench_device.identity());
    target.lun = Some(lun);
    target.add_usb(&inventory, name);
    target.temperature_c[0] = at_port_c(name, lun, &inventory);
    let routes = routes(&arguments.transport, RouteArgument::All);
    Ok(BenchTarget {
        device: Box::new(bench_device),
        routes,
        target,
        thermometer: Thermometer::Port(name.to_owned(), lun),
    })
}

/// Reads the metadata of a path, and checks that a file or block device there can be opened.
fn readable(path: &Path) -> Result<Metadata, Failure> {
    let metadata = std::fs::metadata(path).map_err(|error| unopened(path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::usage(format!("{} is a folder", shown(path))).try_this(TARGETS));
    }
    // A pipe without a writer would block here.
    if metadata.is_file() || metadata.file_type().is_block_device() {
        File::open(path).map_err(|error| unopened(path, &error))?;
    }
    Ok(metadata)
}

/// Why a file or a block device cannot be opened, and what helps.
fn unopened(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot open {}", shown(path))).because(error);
    match error.kind() {
        ErrorKind::NotFound if path.starts_with("/dev") => failure.try_this(TARGETS),
        ErrorKind::NotFound => failure.try_this(format!("{TARGETS}\n  Create a file: truncate -s 1G FILE")),
        ErrorKind::PermissionDenied if path.starts_with("/dev") => {
            failure.try_this("Run as root, or add yourself to group disk: sudo usermod -aG disk $USER")
        }
        ErrorKind::PermissionDenied => failure.try_this(format!(
            "Run as a user with read permission; see {}",
            command_line::line(&[OsStr::new("ls"), OsStr::new("-l"), path.as_os_str()])
        )),
        _ => failure,
    }
}

/// Checks that the opened path is still the device that the user confirmed.
fn still_there(path: &Path, confirmed: &DeviceIdentity) -> Result<(), Failure> {
    let now = DeviceIdentity::of(path, &Tree::running());
    confirmed.check(path, now.as_ref()).map_err(|another| not_overwritten(&shown(path), another))
}

/// Another device is there than the user confirmed.
pub(super) fn not_overwritten(name: &str, another: String) -> Failure {
    let failure = Failure::refused(format!("refusing to overwrite {name}")).because(another);
    failure.try_this("To overwrite the present device, run the command again and confirm.")
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
    fn a_drive_is_named_as_why_names_it() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let guest = include_str!("../../../inspect/tests/trees/guest.tree");
        let class = "/sys/class/block/sdc -> ../../devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/host3/target3:0:0/3:0:0:0/block/sdc";
        inspect::tree::expand(&format!("{guest}\n{class}\n"), place.path()).expect("it is a tree");
        let tree = Tree::at(place.path());
        let inventory = Inventory::read(&tree, Scope::Brief);
        let of = |name: &str| Named::of(OsStr::new(name), &tree);
        assert_eq!(of("3-3").ok(), Some(Named::Port("3-3".into())));
        assert_eq!(of("sdc").ok(), Some(Named::Path("/dev/sdc".into())));
        assert_eq!(of("/dev/sdc").ok(), Some(Named::Path("/dev/sdc".into())));
        assert_eq!(of("no-such-file").ok(), Some(Named::Path("no-such-file".into())));
        let count = |id: DeviceId| inventory.storage().filter(|device| device.id == id).count();
        for device in inventory.storage() {
            let found = of(&device.id.to_string());
            if count(device.id) == 1 {
                assert_eq!(found.ok(), Some(Named::Port(device.port.clone())));
            } else {
                let refusal = found.expect_err("several have that id").to_string();
                assert!(
                    refusal.contains("drives have the id") && refusal.contains(&device.port),
                    "{refusal}"
                );
            }
        }
        let refusal = of("dead:beef").expect_err("there is none").to_string();
        assert!(refusal.starts_with("no USB device has the id dead:beef"), "{refusal}");
    }

    #[test]
    fn what_cannot_be_opened_has_the_hint_that_fits() {
        let refusal =
            |path: &str, kind: ErrorKind| unopened(Path::new(path), &io::Error::from(kind)).to_string();
        assert!(refusal("image", ErrorKind::NotFound).contains("truncate -s 1G"));
        let missing = refusal("/dev/sdz", ErrorKind::NotFound);
        assert!(missing.contains("see `uaskit list`") && !missing.contains("truncate"), "{missing}");
        let denied = refusal("/dev/sdb", ErrorKind::PermissionDenied);
        assert!(denied.starts_with("cannot open /dev/sdb: ") && denied.contains("group disk"), "{denied}");
        let denied = refusal("an image", ErrorKind::PermissionDenied);
        assert!(denied.contains("ls -l 'an image'") && !denied.contains("truncate"), "{denied}");
    }

    #[test]
    fn a_port_is_not_a_path() {
        assert!(is_port("2-1") && is_port("10-1.4.2"));
        for path in ["/dev/sdb", "2-", "-1", "2-1.", "a-1", "2-1/x", "./2-1", "2-1:1.0", "2"] {
            assert!(!is_port(path), "{path}");
        }
    }
}
