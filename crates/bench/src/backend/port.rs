//! A drive at a USB port, detached from the kernel's driver: our own BOT, Turbo and UAS over usbfs.
//!
//! Each route is an [`Attachment`] with its streams, alternate setting and buffers; between two
//! routes a [`ClaimedInterface`] keeps the interface claimed, so that the kernel does not create a disk each
//! time. A failed drive is released and attached again. A route stays open while route and buffer
//! layout stay the same. The drive's temperature is read when it is first opened and before it is
//! closed. The interface is claimed with all of its logical units, of which one is used.
//!
//! Always true: the kernel's driver is reattached on close, even after an error; a drive that
//! replaced the one first seen is left alone.

use super::device_identity::DeviceIdentity;
use super::quirks::KnownQuirks;
use super::thermometer::Thermometer;
use super::{
    AccessError, BenchDevice, BufferLayout, CompletedAccess, DeviceError, DriveInfo, ErrorCounters,
    ObserverFactory, Route, Runner,
};
use initiator::Timeouts;
use initiator::disk::{AskTemperature, Error, Geometry, LostWrite, Operation, RetryLimits, Temperature};
use inspect::inventory::{Inventory, Scope, UsbDevice};
use inspect::tree::Tree;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::{BlockCount, BlockSize, Extent};
use usb::attachment::{
    AttachConfig, AttachError, Attachment, AttachmentCounters, ClaimedInterface, Stop, TransportChoice,
    driven_disks,
};
use usb::host_bus::{HardwareBus, ObservedBus};
use usb::usbfs::{UsbInterface, UsbfsError};
use workload::{Access, AccessKind};

/// A USB port with a drive.
#[derive(Debug)]
pub struct UsbPortDevice {
    tree: Tree,
    port: String,
    lun: u8,
    identity: DriveInfo,
    /// Identifies the drive that was seen first.
    agreed: DeviceIdentity,
    /// Why a replaced drive was rejected.
    changed_device: Option<DeviceError>,
    /// How each route was opened so far.
    routes: Vec<String>,
    up: Option<Up>,
    /// The claimed interface while no route is open.
    claimed: ClaimedInterface,
    factory: Option<Box<dyn ObserverFactory>>,
    thermometer: Thermometer,
    /// Ends attempts to open an unresponsive drive.
    stop: Stop,
}

#[derive(Debug)]
struct Up {
    route: Route,
    room: BufferLayout,
    runner: Box<dyn Attached>,
}

/// A disk that our driver uses, with or without a transfer observer.
trait Attached: Runner + std::fmt::Debug {
    fn is_usable(&self) -> bool;

    /// Returns what the disk reports of itself.
    fn geometry(&self) -> &Geometry;

    /// Describes transport, depth and data path.
    fn carried(&self) -> String;

    /// Returns the drive's current temperature, if it reports one.
    fn temperature(&mut self, ask: AskTemperature) -> Option<Temperature>;

    /// Closes, and leaves the interface claimed in `hold` if possible.
    fn leave(self: Box<Self>, claimed: &mut ClaimedInterface) -> Result<(), DeviceError>;
}

impl UsbPortDevice {
    /// Prepares a logical unit of the drive at a port of this machine, from a fresh inventory.
    /// Nothing is claimed yet.
    ///
    /// # Errors
    ///
    /// If no drive is there, or Linux knows it to have one logical unit and another is requested,
    /// which may be the same disk.
    pub fn new(port: &str, lun: u8, inventory: &Inventory) -> Result<Self, DeviceError> {
        let tree = usb::running_tree();
        let device = find(inventory, port)?;
        if lun > 0 && KnownQuirks::of(inventory, device).has_one_unit() {
            let what =
                "Linux knows this drive to have a single logical unit, whatever it reports (SINGLE_LUN)";
            return Err(DeviceError::new(what));
        }
        let claimed_before = driven_disks(&tree, device, lun).into_iter().next();
        let disk = claimed_before.or_else(|| device.disks().find(|disk| disk.lun == u64::from(lun)));
        let words = disk.map(|disk| [disk.vendor.as_deref(), disk.model.as_deref()]);
        let model = words.map(|words| words.into_iter().flatten().collect::<Vec<_>>().join(" "));
        let identity = DriveInfo {
            model: model.filter(|model| !model.is_empty()).or_else(|| device.product.clone()),
            serial: disk.and_then(|disk| disk.serial.clone()).or_else(|| device.serial.clone()),
            firmware: disk.and_then(|disk| disk.revision.clone()),
            bytes: disk.and_then(|disk| disk.bytes).unwrap_or_default(),
            block_bytes: disk.and_then(|disk| disk.block_bytes).unwrap_or_default(),
            ..DriveInfo::default()
        };
        Ok(Self { identity, agreed: DeviceIdentity::of(device, disk), ..Self::at(tree, port, lun) })
    }

    /// A port of which nothing is known or claimed yet.
    fn at(tree: Tree, port: &str, lun: u8) -> Self {
        Self {
            tree,
            port: port.to_owned(),
            lun,
            identity: DriveInfo::default(),
            agreed: DeviceIdentity::default(),
            changed_device: None,
            routes: Vec::new(),
            up: None,
            claimed: ClaimedInterface::default(),
            factory: None,
            thermometer: Thermometer::default(),
            stop: Stop::default(),
        }
    }

    fn attach(&mut self, route: Route, room: BufferLayout) -> Result<Box<dyn Attached>, DeviceError> {
        let transport = match route {
            Route::Bot => TransportChoice::Bot,
            Route::Turbo => TransportChoice::Turbo,
            Route::Uas => TransportChoice::Uas,
            Route::Kernel => {
                let what = "the kernel's driver is detached; name the block device instead";
                return Err(DeviceError::not_offered(what));
            }
        };
        let (lun, slots, slot_bytes) = (self.lun, room.slots, room.bytes);
        let config = AttachConfig { transport, lun, slots, slot_bytes, ..AttachConfig::default() };
        // Read again: a reset may have changed the device number.
        let inventory = Inventory::read(&self.tree, Scope::Brief);
        let device = find(&inventory, &self.port)?;
        self.recognise(|agreed| agreed.recognise(device))?;
        let known = KnownQuirks::of(&inventory, device);
        let ask_temperature = self.thermometer.asks(known);
        let most = known.transfer_bytes_max(route).unwrap_or(u32::MAX);
        let config = AttachConfig {
            transfer_bytes_max: config.transfer_bytes_max.min(most),
            ignore_residue: known.ignores_residue(),
            ..config
        };
        let notes = known.notes(route).into_iter().filter(|note| !self.identity.notes.contains(note));
        let notes: Vec<String> = notes.collect();
        self.identity.notes.extend(notes);
        let was_held = self.claimed.is_claimed();
        match self.open(device, &AttachConfig { ask_temperature, ..config }) {
            Err(error) if self.is_to_end(&error) => Err(unopened(error)),
            Err(_) if was_held && !self.claimed.is_claimed() => self.reopen(route, &config),
            Err(error) if self.may_become_available(&error) => self.reopen(route, &config),
            Err(AttachError::Identify(_) | AttachError::IdentifyTimedOut)
                if ask_temperature != AskTemperature::Not =>
            {
                self.thermometer.note_before(None);
                self.reopen(route, &config)
            }
            Ok(attached) => self.admit(route, attached),
            Err(error) => Err(unopened(error)),
        }
    }

    /// Reports an error if the drive is not the one first seen.
    fn recognise(
        &mut self,
        compare: impl FnOnce(&mut DeviceIdentity) -> Result<(), String>,
    ) -> Result<(), DeviceError> {
        compare(&mut self.agreed).map_err(|differences| {
            let changed_device =
                DeviceError::new(format!("a different drive is at port {} now: {differences}", self.port));
            self.changed_device.insert(changed_device).clone()
        })
    }

    /// Accepts a disk of the drive first seen. Another one is released untouched.
    fn admit(&mut self, route: Route, attached: Box<dyn Attached>) -> Result<Box<dyn Attached>, DeviceError> {
        self.recognise(|agreed| agreed.recognise_unit(attached.geometry()))?;
        self.learn(route, &*attached);
        Ok(attached)
    }

    fn open(&mut self, device: &UsbDevice, config: &AttachConfig) -> Result<Box<dyn Attached>, AttachError> {
        let Some(factory) = &self.factory else {
            let attachment = self.claimed.attach(&self.tree, device, config)?;
            return Ok(Box::new(PortRunner { attachment, is_reported: false, over: Vec::new() }));
        };
        let attachment = self.claimed.attach_observed(&self.tree, device, config, factory.observer())?;
        Ok(Box::new(PortRunner::<ObservedBus<UsbInterface>> {
            attachment,
            is_reported: false,
            over: Vec::new(),
        }))
    }

    /// Whether a drive may become available shortly: after a failure it was released, and the
    /// kernel or a disk manager may still be reading its partitions.
    fn may_become_available(&self, error: &AttachError) -> bool {
        is_temporary(error) && !self.routes.is_empty()
    }

    /// Retries opening a drive that failed earlier, may reappear, or is in use for a moment.
    fn reopen(&mut self, route: Route, config: &AttachConfig) -> Result<Box<dyn Attached>, DeviceError> {
        let until = Instant::now() + REATTACH_MAX;
        loop {
            let inventory = Inventory::read(&self.tree, Scope::Brief);
            let why = match find(&inventory, &self.port) {
                Ok(device) => {
                    self.recognise(|agreed| agreed.recognise(device))?;
                    match self.open(device, config) {
                        Err(error) if !self.is_to_end(&error) => unopened(error),
                        Err(error) => return Err(unopened(error)),
                        Ok(attached) => return self.admit(route, attached),
                    }
                }
                Err(error) => error,
            };
            if self.stop.is_wanted() || Instant::now() >= until {
                return Err(why);
            }
            std::thread::sleep(REATTACH_POLL);
        }
    }

    /// Whether to stop retrying, since the caller wants to end.
    fn is_to_end(&self, error: &AttachError) -> bool {
        *error == AttachError::IdentifyInterrupted || self.stop.is_wanted()
    }

    fn take_down(&mut self) -> Result<(), DeviceError> {
        let Some(up) = self.up.take() else { return Ok(()) };
        up.runner.leave(&mut self.claimed)
    }

    /// Records the geometry and how the route was opened.
    fn learn(&mut self, route: Route, attached: &dyn Attached) {
        let geometry = attached.geometry();
        self.thermometer.note_before(geometry.temperature);
        let who = &geometry.identity;
        self.identity.model = Some(format!("{} {}", who.vendor, who.product));
        self.identity.firmware = Some(who.revision.to_string());
        self.identity.serial = who.serial.clone().or_else(|| self.identity.serial.take());
        self.identity.bytes = geometry.bytes();
        self.identity.block_bytes = geometry.block_size.bytes();
        let line = format!("{route}: {}", attached.carried());
        if !self.routes.contains(&line) {
            self.routes.push(line);
        }
        self.identity.engine = format!("usbfs; {}", self.routes.join("; "));
    }
}

/// Whether another user has the drive and may release it soon.
const fn is_temporary(error: &AttachError) -> bool {
    matches!(error, AttachError::InUse { .. } | AttachError::Bus(UsbfsError::Busy { .. }))
}

fn not_released(error: UsbfsError) -> DeviceError {
    DeviceError::new(error.to_string())
}

fn unopened(error: AttachError) -> DeviceError {
    let what = error.to_string();
    if error.is_not_offered() { DeviceError::not_offered(what) } else { DeviceError::new(what) }
}

fn find<'a>(inventory: &'a Inventory, port: &str) -> Result<&'a UsbDevice, DeviceError> {
    let found = inventory.devices.iter().find(|device| device.port == port);
    let device = found.ok_or_else(|| {
        DeviceError::new(format!("nothing is plugged into port {port}; see uaskit list --all"))
    })?;
    let title = device.title();
    if !device.is_storage() {
        return Err(DeviceError::new(format!("{title} at port {port} is not a drive; see uaskit list")));
    }
    if !device.is_configured() {
        let what = format!("the kernel has not configured {title}; see uaskit why {port}");
        return Err(DeviceError::new(what));
    }
    Ok(device)
}

impl BenchDevice for UsbPortDevice {
    fn watch(&mut self, factory: Box<dyn ObserverFactory>) -> Result<(), DeviceError> {
        self.factory = Some(factory);
        Ok(())
    }

    fn set_stop_flag(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Stop::when(flag);
        self.claimed.stop_by(self.stop.clone());
    }

    fn open_route(&mut self, route: Route, room: BufferLayout) -> Result<&mut dyn Runner, DeviceError> {
        let fits = |up: &Up| up.route == route && up.room == room && up.runner.is_usable();
        if !self.up.as_ref().is_some_and(fits) {
            self.take_down()?;
            let runner = self.attach(route, room)?;
            self.up = Some(Up { route, room, runner });
        }
        let up = self.up.as_mut().ok_or_else(|| DeviceError::new("no route is open"))?;
        Ok(&mut *up.runner)
    }

    fn close(&mut self) -> Result<(), DeviceError> {
        if let (Some(up), Some(ask)) = (&mut self.up, self.thermometer.asks_again())
            && up.runner.is_usable()
        {
            self.thermometer.note_after(up.runner.temperature(ask));
        }
        let left = self.take_down();
        left.and(self.claimed.reattach().map_err(not_released))
    }

    fn temperatures(&self) -> [Option<Temperature>; 2] {
        self.thermometer.readings()
    }

    fn identity(&self) -> DriveInfo {
        self.identity.clone()
    }

    fn changed_device(&self) -> Option<&DeviceError> {
        self.changed_device.as_ref()
    }
}

/// A disk that our driver uses.
#[derive(Debug)]
struct PortRunner<D: HardwareBus> {
    attachment: Attachment<D>,
    /// The counters of opening were reported.
    is_reported: bool,
    /// Completed accesses that were not polled yet.
    over: Vec<CompletedAccess>,
}

impl<D> Attached for PortRunner<D>
where
    D: HardwareBus<Error = UsbfsError> + Into<UsbInterface> + std::fmt::Debug,
{
    fn is_usable(&self) -> bool {
        self.attachment.depth() > 0
    }

    fn geometry(&self) -> &Geometry {
        self.attachment.geometry()
    }

    fn carried(&self) -> String {
        let copies = if self.attachment.is_zero_copy() { "zero-copy" } else { "copied by the kernel" };
        format!("{}, depth {}, {copies}", self.attachment.transport(), self.attachment.depth())
    }

    fn temperature(&mut self, ask: AskTemperature) -> Option<Temperature> {
        // A drive that reports no temperature is not an error.
        self.attachment.temperature(ask).ok().flatten()
    }

    fn leave(self: Box<Self>, claimed: &mut ClaimedInterface) -> Result<(), DeviceError> {
        claimed.retain(self.attachment).map_err(not_released)
    }
}

impl<D: HardwareBus> PortRunner<D> {
    fn submit(&mut self, slot: u16, operation: Operation, extent: Extent) {
        if self.attachment.submit(slot, operation, extent).is_err() {
            // Only a missing or changed logical unit rejects a request that fits.
            self.over.push(CompletedAccess { slot, result: Err(AccessError::Disk(Error::Gone)) });
        }
    }
}

impl<D: HardwareBus> Runner for PortRunner<D> {
    fn block_size(&self) -> BlockSize {
        self.attachment.geometry().block_size
    }

    fn capacity(&self) -> BlockCount {
        self.attachment.geometry().capacity
    }

    fn prepare(&mut self, depth: u16, _bytes: u32) -> Result<(), DeviceError> {
        // Buffers were allocated at attachment; leftover requests of an earlier run complete first.
        let until = Instant::now() + SETTLE_MAX;
        while self.attachment.in_flight() > 0 && Instant::now() < until {
            self.attachment.wait(until).map_err(|error| DeviceError::new(error.to_string()))?;
        }
        if self.attachment.in_flight() == 0 && depth <= self.attachment.slots() {
            self.attachment.expect(depth);
            Ok(())
        } else {
            Err(DeviceError::new(format!(
                "{} requests did not complete in time",
                self.attachment.in_flight()
            )))
        }
    }

    fn memory(&mut self, slot: u16) -> &mut [u8] {
        self.attachment.buffer(slot).unwrap_or_default()
    }

    fn start(&mut self, slot: u16, access: Access) {
        let operation = match access.kind {
            AccessKind::Read => Operation::Read { fua: false, dpo: false, may_be_short: false },
            AccessKind::Write => Operation::Write { fua: false, dpo: false },
        };
        self.submit(slot, operation, access.extent);
    }

    fn start_flush(&mut self, slot: u16) {
        self.submit(slot, Operation::Flush, Extent::default());
    }

    fn poll_lost(&mut self) -> Option<LostWrite> {
        self.attachment.poll_lost()
    }

    fn run_once(&mut self, timeout: Duration) -> Result<(), DeviceError> {
        if !self.over.is_empty() {
            return Ok(());
        }
        let waited = self.attachment.wait(Instant::now() + timeout);
        let finished = waited.map_err(|error| DeviceError::new(error.to_string()))?;
        self.over.extend(finished.map(CompletedAccess::from));
        Ok(())
    }

    fn poll(&mut self) -> Option<CompletedAccess> {
        self.over.pop().or_else(|| self.attachment.poll().map(CompletedAccess::from))
    }

    fn initial_error_counters(&mut self) -> ErrorCounters {
        let error_counters = self.error_counters();
        if std::mem::replace(&mut self.is_reported, true) { error_counters } else { refused(error_counters) }
    }

    fn access_max(&self) -> Duration {
        longest(|disk| disk.command_timeout)
    }

    fn flush_max(&self) -> Duration {
        longest(|disk| disk.long_timeout)
    }

    fn error_counters(&self) -> ErrorCounters {
        let AttachmentCounters { transport, disk } = self.attachment.counters();
        ErrorCounters::of(disk, transport)
    }
}

/// Removes what opening a drive rejects, which is no error of the first run. Timeouts and resets
/// stay, since nothing else would report them.
const fn refused(error_counters: ErrorCounters) -> ErrorCounters {
    ErrorCounters { timeouts: 0, resets: 0, transport_failures: 0, task_aborts: 0, ..error_counters }
}

/// The longest time of a command with this deadline: all attempts, each with every recovery step
/// after it, and all busy waits.
fn longest(deadline: fn(&RetryLimits) -> units::Duration) -> Duration {
    let AttachConfig { timeouts, retry_limits, .. } = AttachConfig::default();
    let Timeouts { sense, data_after_status, abort_task, logical_unit_reset, .. } = timeouts;
    let Timeouts { nexus_reset, clear_halt, mass_storage_reset, port_reset, .. } = timeouts;
    let managed = sense + data_after_status + abort_task + logical_unit_reset + nexus_reset;
    // Clears both halts; after a port reset the alternate setting and the streams are set up again.
    let reset = mass_storage_reset + clear_halt + clear_halt + port_reset + port_reset + port_reset;
    let each = std_of(deadline(&retry_limits) + managed + reset);
    let busy = std_of(retry_limits.busy_wait_max) * retry_limits.busy_max.into();
    each * retry_limits.attempts_max.into() + busy + std_of(retry_limits.ready_wait)
}

const fn std_of(span: units::Duration) -> Duration {
    Duration::from_nanos(span.as_ns())
}

/// How long to wait for requests of an earlier run.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// How long a lost drive, or one in use since its release, may take to become available.
const REATTACH_MAX: Duration = Duration::from_secs(5);

/// Poll interval of that wait.
const REATTACH_POLL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_differ_from_routes_not_offered() {
        let transport = TransportChoice::Uas;
        assert!(unopened(AttachError::NotOffered { transport, because: None }).is_not_offered);
        let memory = UsbfsError::Memory { limit_mb: Some(1), wanted_bytes: Some(8 << 20) };
        assert!(!unopened(memory.into()).is_not_offered);
    }

    #[test]
    fn a_drive_in_use_for_a_moment_is_retried() {
        let busy = UsbfsError::Busy { interface: "2-1:1.0".into(), holder: Some("uas".into()) };
        let in_use = AttachError::InUse { disk: "sda".into(), by: "something holds it".into() };
        assert!(is_temporary(&busy.into()) && is_temporary(&in_use));
        assert!(!is_temporary(&UsbfsError::Disconnected.into()));
    }

    #[test]
    fn errors_of_opening_count_for_the_first_run() {
        let open_route = ErrorCounters {
            timeouts: 2,
            resets: 3,
            transport_failures: 4,
            task_aborts: 5,
            stalls: 6,
            not_ready: 7,
            ..ErrorCounters::NONE
        };
        let first =
            open_route.and(ErrorCounters { stalls: 1, ..ErrorCounters::NONE }).since(refused(open_route));
        let expected = ErrorCounters { stalls: 1, not_ready: 0, ..open_route };
        assert_eq!(first, expected);
    }

    #[test]
    fn access_timeout_covers_all_attempts_and_recoveries() {
        // Five attempts of 30 or 60 seconds, each with a recovery of 63.2; twenty busy waits of a
        // second, and thirty becoming ready.
        assert_eq!(longest(|disk| disk.command_timeout), Duration::from_secs(5 * 30 + 316 + 20 + 30));
        assert_eq!(longest(|disk| disk.long_timeout), Duration::from_secs(5 * 60 + 316 + 20 + 30));
    }

    #[test]
    fn a_set_stop_flag_ends_the_wait_for_a_drive() {
        // A port of a machine without USB.
        let mut bench_device =
            UsbPortDevice::at(Tree::of("".parse().expect("a record of nothing")), "99-9", 0);
        assert!(bench_device.is_to_end(&AttachError::IdentifyInterrupted));
        assert!(!bench_device.is_to_end(&AttachError::IdentifyTimedOut));
        let word = Arc::new(AtomicBool::new(true));
        bench_device.set_stop_flag(word);
        assert!(bench_device.is_to_end(&AttachError::IdentifyTimedOut));
        let began = Instant::now();
        bench_device.reopen(Route::Uas, &AttachConfig::default()).expect_err("no drive is there");
        assert!(began.elapsed() < REATTACH_MAX / 2, "{:?}", began.elapsed());
    }

    /// A recorded guest, and the same with another drive at port 3-3.
    fn replaced() -> (Tree, Tree) {
        const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");
        let serial = "/usb3/3-3/serial = SERIAL-6";
        assert!(GUEST.contains(serial), "the drive has a serial number");
        let other = GUEST.replace(serial, "/usb3/3-3/serial = SERIAL-9");
        let of = |text: &str| Tree::of(text.parse().expect("it is a record"));
        (of(GUEST), of(&other))
    }

    #[test]
    fn a_replaced_drive_is_left_alone() {
        let (guest, other) = replaced();
        let mut bench_device =
            UsbPortDevice::new("3-3", 0, &Inventory::read(&guest, Scope::Brief)).expect("it is recorded");
        let before = bench_device.identity();
        bench_device.tree = other;
        let differs = "a different drive is at port 3-3 now: USB serial number SERIAL-6 then, SERIAL-9 now";
        let room = BufferLayout { slots: 1, bytes: 4096 };
        let error = bench_device.open_route(Route::Bot, room).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(differs));
        assert_eq!(bench_device.changed_device().map(DeviceError::to_string).as_deref(), Some(differs));
        assert_eq!(bench_device.identity(), before, "nothing is learnt of it");
        // Nor while waiting for one that detached.
        let began = Instant::now();
        let error = bench_device.reopen(Route::Bot, &AttachConfig::default()).expect_err("it is another");
        assert_eq!(error.to_string(), differs);
        assert!(began.elapsed() < REATTACH_MAX / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_port_without_a_drive_is_an_error() {
        let error = UsbPortDevice::new("99-9", 0, &Inventory::default()).expect_err("no drive is there");
        assert_eq!(error.to_string(), "nothing is plugged into port 99-9; see uaskit list --all");
    }
}
