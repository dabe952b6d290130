//! A drive at a USB port, taken from the kernel's driver: our own BOT, Turbo and UAS over usbfs.
//!
//! A route is an [`Attachment`], since streams, settings and memory belong to one; between two the interface is in a [`ClaimedInterface`], so that the
//! kernel does not make a disk of it each time. A drive that has failed meanwhile is given back and taken anew. As long as the route and
//! its room stay the same it stays up. When it is put up first, and before it is closed, the drive is asked how warm it is.
//! The interface is taken with all of its units, of which one is driven.
//!
//! Always true: whatever ends the bench_device, the kernel's driver has the interface again; a drive that took the place of the one that was
//! looked at first is left alone.

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
use usb::host_bus::{HostBus, ObservedBus};
use usb::usbfs::{UsbInterface, UsbfsError};
use workload::{Access, AccessKind};

/// A USB port with a drive.
#[derive(Debug)]
pub struct UsbPortDevice {
    tree: Tree,
    port: String,
    lun: u8,
    identity: DriveInfo,
    /// What tells the drive from others, since it was looked at first.
    agreed: DeviceIdentity,
    /// Why another one was left alone.
    changed_device: Option<DeviceError>,
    /// How each route was carried so far.
    routes: Vec<String>,
    up: Option<Up>,
    /// What is ours of the drive while no route is up.
    claimed: ClaimedInterface,
    factory: Option<Box<dyn ObserverFactory>>,
    thermometer: Thermometer,
    /// Whoever measures wants to come to an end.
    stop: Stop,
}

#[derive(Debug)]
struct Up {
    route: Route,
    room: BufferLayout,
    runner: Box<dyn Attached>,
}

/// A disk that is driven by us, over a door that somebody looks on at, or nobody.
trait Attached: Runner + std::fmt::Debug {
    fn is_usable(&self) -> bool;

    /// What the disk says of itself.
    fn geometry(&self) -> &Geometry;

    /// Over what, how many requests at once, how data go.
    fn carried(&self) -> String;

    /// How warm the drive says to be now, if it tells.
    fn temperature(&mut self, ask: AskTemperature) -> Option<Temperature>;

    /// Ends, and leaves the interface in the hold if it can be kept.
    fn leave(self: Box<Self>, claimed: &mut ClaimedInterface) -> Result<(), DeviceError>;
}

impl UsbPortDevice {
    /// A logical unit of the drive at a port of this machine, whose inventory has just been read. Nothing is taken yet.
    ///
    /// # Errors
    /// If there is no drive, or it is known to have one unit alone and another is asked for: what answers there may be the same disk.
    pub fn new(port: &str, lun: u8, inventory: &Inventory) -> Result<Self, DeviceError> {
        let tree = usb::running_tree();
        let device = find(inventory, port)?;
        if lun > 0 && KnownQuirks::of(inventory, device).has_one_unit() {
            let what = "Linux knows that the drive has one logical unit alone, whatever it says (SINGLE_LUN)";
            return Err(DeviceError::new(what));
        }
        let driven = driven_disks(&tree, device, lun).into_iter().next();
        let disk = driven.or_else(|| device.disks().find(|disk| disk.lun == u64::from(lun)));
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

    /// A port of which nothing is known yet, and where nothing was taken.
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
                let what = "the kernel's driver was taken off; name the block device";
                return Err(DeviceError::not_offered(what));
            }
        };
        let (lun, slots, slot_bytes) = (self.lun, room.slots, room.bytes);
        let config = AttachConfig { transport, lun, slots, slot_bytes, ..AttachConfig::default() };
        // Read again: a reset may have given the device another number.
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
            Err(_) if was_held && !self.claimed.is_claimed() => self.open_anew(route, &config),
            Err(error) if self.may_let_go(&error) => self.open_anew(route, &config),
            Err(AttachError::Identify(_) | AttachError::IdentifyTimedOut)
                if ask_temperature != AskTemperature::Not =>
            {
                self.thermometer.note_before(None);
                self.open_anew(route, &config)
            }
            Ok(attached) => self.admit(route, attached),
            Err(error) => Err(unopened(error)),
        }
    }

    /// Takes another drive than the one that was looked at first for an error, and says so.
    fn recognise(
        &mut self,
        compare: impl FnOnce(&mut DeviceIdentity) -> Result<(), String>,
    ) -> Result<(), DeviceError> {
        compare(&mut self.agreed).map_err(|differences| {
            let changed_device =
                DeviceError::new(format!("another drive is at port {} now: {differences}", self.port));
            self.changed_device.insert(changed_device).clone()
        })
    }

    /// Lets a disk be driven if it is that of the drive that was looked at first. Another one is given back at once, untouched.
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

    /// Whether a drive that was ours a moment ago may be again in a moment: it has failed and was given back, and the kernel reads its
    /// partitions, and so may whoever looks at disks that come.
    fn may_let_go(&self, error: &AttachError) -> bool {
        is_of_a_moment(error) && !self.routes.is_empty()
    }

    /// Opens a drive that has failed since it was ours or when it was asked for what it does not know, and may come back, or that
    /// somebody else has for a moment.
    fn open_anew(&mut self, route: Route, config: &AttachConfig) -> Result<Box<dyn Attached>, DeviceError> {
        let until = Instant::now() + COME_BACK_MAX;
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
            std::thread::sleep(COME_BACK_POLL);
        }
    }

    /// Whether a drive that did not open is not to be tried again, since somebody wants to come to an end.
    fn is_to_end(&self, error: &AttachError) -> bool {
        *error == AttachError::IdentifyInterrupted || self.stop.is_wanted()
    }

    fn take_down(&mut self) -> Result<(), DeviceError> {
        let Some(up) = self.up.take() else { return Ok(()) };
        up.runner.leave(&mut self.claimed)
    }

    /// Notes what the disk says of itself, and how it is carried.
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

/// Whether somebody else has the drive, who may let it go.
const fn is_of_a_moment(error: &AttachError) -> bool {
    matches!(error, AttachError::InUse { .. } | AttachError::Bus(UsbfsError::Busy { .. }))
}

fn not_given_back(error: UsbfsError) -> DeviceError {
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
        return Err(DeviceError::new(format!("{title} at port {port} is no drive; see uaskit list")));
    }
    if !device.is_configured() {
        let what = format!("the kernel has set no configuration of {title}; see uaskit why {port}");
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
        let up = self.up.as_mut().ok_or_else(|| DeviceError::new("nothing is attached"))?;
        Ok(&mut *up.runner)
    }

    fn close(&mut self) -> Result<(), DeviceError> {
        if let (Some(up), Some(ask)) = (&mut self.up, self.thermometer.asks_again())
            && up.runner.is_usable()
        {
            self.thermometer.note_after(up.runner.temperature(ask));
        }
        let left = self.take_down();
        left.and(self.claimed.reattach().map_err(not_given_back))
    }

    fn temperatures(&self) -> [Option<Temperature>; 2] {
        self.thermometer.told()
    }

    fn identity(&self) -> DriveInfo {
        self.identity.clone()
    }

    fn changed_device(&self) -> Option<&DeviceError> {
        self.changed_device.as_ref()
    }
}

/// A disk that is driven by us.
#[derive(Debug)]
struct PortRunner<D: HostBus> {
    attachment: Attachment<D>,
    /// Its troubles were asked for: those of putting it up are told.
    is_reported: bool,
    /// Accesses that have ended and were not polled yet.
    over: Vec<CompletedAccess>,
}

impl<D> Attached for PortRunner<D>
where
    D: HostBus<Error = UsbfsError> + Into<UsbInterface> + std::fmt::Debug,
{
    fn is_usable(&self) -> bool {
        self.attachment.depth() > 0
    }

    fn geometry(&self) -> &Geometry {
        self.attachment.geometry()
    }

    fn carried(&self) -> String {
        let copies = if self.attachment.is_zero_copy() { "without a copy" } else { "copied by the kernel" };
        format!("{}, {} at once, {copies}", self.attachment.transport(), self.attachment.depth())
    }

    fn temperature(&mut self, ask: AskTemperature) -> Option<Temperature> {
        // Nothing is wrong with a measurement whose drive does not tell.
        self.attachment.temperature(ask).ok().flatten()
    }

    fn leave(self: Box<Self>, claimed: &mut ClaimedInterface) -> Result<(), DeviceError> {
        claimed.retain(self.attachment).map_err(not_given_back)
    }
}

impl<D: HostBus> PortRunner<D> {
    fn submit(&mut self, slot: u16, operation: Operation, extent: Extent) {
        if self.attachment.submit(slot, operation, extent).is_err() {
            // Only a unit that is gone, or that has changed, takes no request that fits.
            self.over.push(CompletedAccess { slot, result: Err(AccessError::Disk(Error::Gone)) });
        }
    }
}

impl<D: HostBus> Runner for PortRunner<D> {
    fn block_size(&self) -> BlockSize {
        self.attachment.geometry().block_size
    }

    fn capacity(&self) -> BlockCount {
        self.attachment.geometry().capacity
    }

    fn prepare(&mut self, depth: u16, _bytes: u32) -> Result<(), DeviceError> {
        // The room was made when it was attached; what an earlier run left under way comes to its end first.
        let until = Instant::now() + SETTLE_MAX;
        while self.attachment.in_flight() > 0 && Instant::now() < until {
            self.attachment.wait(until).map_err(|error| DeviceError::new(error.to_string()))?;
        }
        if self.attachment.in_flight() == 0 && depth <= self.attachment.slots() {
            self.attachment.expect(depth);
            Ok(())
        } else {
            Err(DeviceError::new(format!("{} requests do not end", self.attachment.in_flight())))
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
        self.over.extend(finished.map(ended));
        Ok(())
    }

    fn poll(&mut self) -> Option<CompletedAccess> {
        self.over.pop().or_else(|| self.attachment.poll().map(ended))
    }

    fn initial_error_counters(&mut self) -> ErrorCounters {
        let troubles = self.error_counters();
        if std::mem::replace(&mut self.is_reported, true) { troubles } else { refused(troubles) }
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

/// What a drive has refused when it was put up, which is no trouble of the first run. That it has run into time-outs then, and was reset,
/// is: nothing else would tell.
const fn refused(troubles: ErrorCounters) -> ErrorCounters {
    ErrorCounters { timeouts: 0, resets: 0, transport_failures: 0, task_aborts: 0, ..troubles }
}

/// How long a command may take with this deadline: each try to its end, every rung that there is of a recovery after it, and all that the
/// disk puts up with.
fn longest(deadline: fn(&RetryLimits) -> units::Duration) -> Duration {
    let AttachConfig { timeouts, retry_limits, .. } = AttachConfig::default();
    let Timeouts { sense, data_after_status, abort_task, logical_unit_reset, .. } = timeouts;
    let Timeouts { nexus_reset, clear_halt, mass_storage_reset, port_reset, .. } = timeouts;
    let managed = sense + data_after_status + abort_task + logical_unit_reset + nexus_reset;
    // Both halts are cleared; after the port the alternate setting and the streams are set up again.
    let reset = mass_storage_reset + clear_halt + clear_halt + port_reset + port_reset + port_reset;
    let each = std_of(deadline(&retry_limits) + managed + reset);
    let busy = std_of(retry_limits.busy_wait_max) * retry_limits.busy_max.into();
    each * retry_limits.attempts_max.into() + busy + std_of(retry_limits.ready_wait)
}

const fn std_of(span: units::Duration) -> Duration {
    Duration::from_nanos(span.as_ns())
}

fn ended(finished: usb::attachment::FinishedRequest) -> CompletedAccess {
    CompletedAccess { slot: finished.slot, result: finished.result.map(|_| ()).map_err(AccessError::Disk) }
}

/// How long requests of an earlier run are waited for.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// How long a drive that was lost, or that somebody has since it was given back, may take to be there again.
const COME_BACK_MAX: Duration = Duration::from_secs(5);

/// How often it is looked for.
const COME_BACK_POLL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_failed_is_told_from_what_is_not_offered() {
        let transport = TransportChoice::Uas;
        assert!(unopened(AttachError::NotOffered { transport, because: None }).is_not_offered);
        let memory = UsbfsError::Memory { limit_mb: Some(1), wanted_bytes: Some(8 << 20) };
        assert!(!unopened(memory.into()).is_not_offered);
    }

    #[test]
    fn who_has_a_drive_for_a_moment_is_waited_for() {
        let busy = UsbfsError::Busy { interface: "2-1:1.0".into(), holder: Some("uas".into()) };
        let in_use = AttachError::InUse { disk: "sda".into(), by: "something holds it".into() };
        assert!(is_of_a_moment(&busy.into()) && is_of_a_moment(&in_use));
        assert!(!is_of_a_moment(&UsbfsError::Disconnected.into()));
    }

    #[test]
    fn what_went_wrong_when_a_drive_was_put_up_is_told_of_the_first_run() {
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
        let told = ErrorCounters { stalls: 1, not_ready: 0, ..open_route };
        assert_eq!(first, told);
    }

    #[test]
    fn a_command_may_take_all_its_tries_with_a_recovery_after_each() {
        // Five tries of 30 or 60 seconds, each with a recovery of 63.2; twenty times busy for a second, and thirty becoming ready.
        assert_eq!(longest(|disk| disk.command_timeout), Duration::from_secs(5 * 30 + 316 + 20 + 30));
        assert_eq!(longest(|disk| disk.long_timeout), Duration::from_secs(5 * 60 + 316 + 20 + 30));
    }

    #[test]
    fn nobody_who_wants_to_come_to_an_end_waits_for_a_drive() {
        // A port of a machine without USB.
        let mut bench_device =
            UsbPortDevice::at(Tree::of("".parse().expect("a record of nothing")), "99-9", 0);
        assert!(bench_device.is_to_end(&AttachError::IdentifyInterrupted));
        assert!(!bench_device.is_to_end(&AttachError::IdentifyTimedOut));
        let word = Arc::new(AtomicBool::new(true));
        bench_device.set_stop_flag(word);
        assert!(bench_device.is_to_end(&AttachError::IdentifyTimedOut));
        let began = Instant::now();
        bench_device.open_anew(Route::Uas, &AttachConfig::default()).expect_err("there is no drive at all");
        assert!(began.elapsed() < COME_BACK_MAX / 2, "{:?}", began.elapsed());
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
    fn a_drive_in_the_place_of_the_one_that_was_agreed_to_is_left_alone() {
        let (guest, other) = replaced();
        let mut bench_device =
            UsbPortDevice::new("3-3", 0, &Inventory::read(&guest, Scope::Brief)).expect("it is recorded");
        let before = bench_device.identity();
        bench_device.tree = other;
        let differs = "another drive is at port 3-3 now: USB serial number SERIAL-6 then, SERIAL-9 now";
        let room = BufferLayout { slots: 1, bytes: 4096 };
        let told = bench_device.open_route(Route::Bot, room).err().map(|error| error.to_string());
        assert_eq!(told.as_deref(), Some(differs));
        assert_eq!(bench_device.changed_device().map(DeviceError::to_string).as_deref(), Some(differs));
        assert_eq!(bench_device.identity(), before, "nothing is learnt of it");
        // Nor while one is waited for that has gone.
        let began = Instant::now();
        let told = bench_device.open_anew(Route::Bot, &AttachConfig::default()).expect_err("it is another");
        assert_eq!(told.to_string(), differs);
        assert!(began.elapsed() < COME_BACK_MAX / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_port_without_a_drive_is_told() {
        let error =
            UsbPortDevice::new("99-9", 0, &Inventory::default()).expect_err("there is no drive at all");
        assert_eq!(error.to_string(), "nothing is plugged into port 99-9; see uaskit list --all");
    }
}
