//! `--capture` of `uaskit serve` and `uaskit bench`: a dedicated thread writes the transfers of hosts to pcapng files. Each drive
//! has its own address in them.
//!
//! The thread that carries transfers copies them into a queue and does not wait; a full queue drops events and counts
//! them. Files are split by size if requested: the next one begins with the host's control transfers since the device
//! was last plugged in, so that it can be decoded alone. Times are wall-clock time: seconds since 1970 in the interface
//! of the file, nanoseconds after that in the records. Invariants: the queue holds at most [`QUEUE_EVENTS_MAX`] events
//! and [`QUEUE_BYTES_MAX`] bytes; a capture that cannot be written does not stop the drive.

use crate::args::CaptureArguments;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use atomic_file::AtomicFile;
use bench::record::CaptureSummary;
use bus::{EndpointAddress, Observer, Pipe, TransferId, TransferStatus};
use capture::{Control, DeviceAddress, Pcapng, Transfer, TransferEnd, Transfers, WriteError};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use study::plural::counted;
use units::Instant;
use wire::usb::SetupPacket;

/// Events that wait to be written.
const QUEUE_EVENTS_MAX: usize = 1 << 16;
/// Payload that waits to be written.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Control transfers of each drive that the next file begins with.
const CONTROLS_MAX: usize = 128;
/// Of a record besides its payload: block, header, comment.
const RECORD_BYTES: u64 = 120;
/// The address of the first drive in the capture.
const PLACE: DeviceAddress = DeviceAddress { bus: 1, device: 1 };
/// The largest address of a USB device.
const DEVICES_MAX: usize = 127;

/// The parameters of a capture, resolved.
#[derive(Debug)]
struct Plan {
    file: PathBuf,
    /// Comment of the capture's interface.
    description: String,
    /// Bytes of each transfer that are kept.
    snap: u32,
    /// The interrupt endpoint of the drive.
    interrupt: Option<EndpointAddress>,
    /// Bytes after which the next file begins.
    file_bytes_max: Option<u64>,
}

impl CaptureArguments {
    /// Checks that the first file can be written, before anything is measured.
    pub(crate) fn check_file(&self) -> Result<(), Failure> {
        self.file().map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Capture))
    }

    /// Begins a capture, if requested. `description` is a comment in the file; endpoints other than `interrupt` are bulk.
    pub(crate) fn start(
        &self,
        description: String,
        interrupt: Option<EndpointAddress>,
    ) -> Result<Option<(Capture, Recorder)>, Failure> {
        let Some(file) = self.capture.clone() else { return Ok(None) };
        let file_bytes_max = self.capture_size.map(|size| size.0);
        Capture::start(Plan { file, description, snap: self.snap, interrupt, file_bytes_max }).map(Some)
    }

    /// Returns the description of the capture, as text and as JSON, if one was requested; for a
    /// message before it begins.
    pub(crate) fn announcement(&self) -> Option<(String, Value)> {
        let file = shown(self.capture.as_ref()?);
        let (contents, bytes) = match self.snap {
            u32::MAX => (
                "all bytes of each transfer (--snap N keeps the first N bytes); events are dropped if the disk is too slow"
                    .to_owned(),
                None,
            ),
            bytes => {
                let of = counted(bytes.into(), "byte");
                (format!("the first {of} of each transfer (--snap N keeps N bytes, --snap 0 all)"), Some(bytes))
            }
        };
        let is_older = self.file().is_some_and(|file| file.metadata().is_ok_and(|older| older.len() > 0));
        let replaces = if is_older { "; the first transfer replaces the older capture" } else { "" };
        Some((format!("{file}: {contents}{replaces}"), json!({ "file": file, "snap_bytes": bytes })))
    }
}

/// A capture that is being written.
pub(crate) struct Capture {
    thread: JoinHandle<Result<CaptureSummary, WriteError>>,
    dropped: Arc<AtomicU64>,
}

/// Time without an event after which the file is flushed.
const QUIET: Duration = Duration::from_millis(100);

/// The size of a finished capture, as text.
pub(crate) fn summary(CaptureSummary { files, records, dropped }: CaptureSummary) -> String {
    let (records, files) = (counted(records, "record"), counted(files.into(), "file"));
    format!("{records} in {files}, {} dropped", counted(dropped, "event"))
}

/// Observes the transfers of a drive. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    queue: SyncSender<Event>,
    waiting_bytes: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
    begins: SystemTime,
    snap: usize,
    /// The address of the drive.
    device: u8,
}

/// Something that the drive's thread has seen.
#[derive(Debug)]
struct Event {
    at: Duration,
    /// The address of the drive.
    device: u8,
    kind: Kind,
    bytes: Vec<u8>,
    /// Events that were dropped by then, since the beginning.
    dropped: u64,
}

#[derive(Debug)]
enum Kind {
    /// A device is plugged in, or looked at from its beginning again.
    Plugged,
    Submitted(Transfer),
    Completed(Transfer, TransferStatus, u32),
    Control(SetupPacket, TransferStatus),
}

/// Writes files, one after the other.
struct Writer {
    plan: Plan,
    begins: SystemTime,
    out: Pcapng<BufWriter<File>>,
    transfers: Transfers,
    /// Bytes of this file, about.
    bytes: u64,
    controls: Vec<Event>,
    control_ids: u64,
    files: u32,
    records: u64,
    /// Dropped events that are recorded in the files.
    dropped: u64,
}

impl Capture {
    /// Begins to record; the first transfer creates the first file. The recorder is the observer of the drive.
    fn start(plan: Plan) -> Result<(Self, Recorder), Failure> {
        let begins = whole_second(SystemTime::now());
        let snap = plan.snap as usize;
        let (queue, events) = sync_channel(QUEUE_EVENTS_MAX);
        let (dropped, waiting_bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        output_file::check_replaceable(&plan.file, output_file::Kind::Capture)?;
        let waiting = Arc::clone(&waiting_bytes);
        let thread = thread::Builder::new().name("capture".to_owned());
        let thread = thread
            .spawn(move || write_files(plan, begins, &events, &waiting))
            .map_err(|error| Failure::new("cannot start the capture thread").because(error))?;
        let recorder = Recorder {
            queue,
            waiting_bytes,
            dropped: Arc::clone(&dropped),
            begins,
            snap,
            device: PLACE.device,
        };
        Ok((Self { thread, dropped }, recorder))
    }

    /// Waits until the files are complete. Every recorder must be dropped before.
    pub(crate) fn finish(self) -> Result<CaptureSummary, Failure> {
        let written = self.thread.join().map_err(|_| Failure::new("the capture thread has failed"))?;
        let written = written.map_err(|error| Failure::new(error.to_string()))?;
        Ok(CaptureSummary { dropped: self.dropped.load(Ordering::Relaxed), ..written })
    }
}

impl bench::backend::ObserverFactory for Recorder {
    fn observer(&self) -> Box<dyn Observer> {
        self.send(Kind::Plugged, &[]);
        Box::new(self.clone())
    }
}

impl Recorder {
    /// Returns an observer of the drive with this number, from 0. Addresses are used again after 127 drives.
    pub(crate) fn of_drive(&self, number: usize) -> Box<dyn Observer> {
        let device = (number % DEVICES_MAX) as u8 + PLACE.device;
        let recorder = Self { device, ..self.clone() };
        recorder.send(Kind::Plugged, &[]);
        Box::new(recorder)
    }

    fn send(&self, kind: Kind, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.snap)];
        let waiting = self.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let at = SystemTime::now().duration_since(self.begins).unwrap_or_default();
        let is_room = waiting + bytes.len() <= QUEUE_BYTES_MAX;
        let dropped = self.dropped.load(Ordering::Relaxed);
        let sent = is_room.then(|| {
            self.queue.try_send(Event { at, device: self.device, kind, bytes: bytes.to_vec(), dropped })
        });
        if !matches!(sent, Some(Ok(()))) {
            self.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Observer for Recorder {
    fn snap(&self) -> usize {
        self.snap
    }

    fn submitted(&mut self, id: u64, pipe: Pipe, length: u32, bytes: &[u8]) {
        let bytes = bytes.get(..length as usize).unwrap_or(bytes);
        self.send(Kind::Submitted(Transfer { id: TransferId(id), pipe, length }), bytes);
    }

    fn completed(&mut self, id: u64, pipe: Pipe, status: TransferStatus, actual: u32, bytes: &[u8]) {
        let transfer = Transfer { id: TransferId(id), pipe, length: actual };
        self.send(Kind::Completed(transfer, status, actual), bytes);
    }

    fn control(&mut self, setup: SetupPacket, bytes: &[u8], status: TransferStatus) {
        self.send(Kind::Control(setup, status), bytes);
    }
}

/// Writes transfers until all recorders have been dropped. Without a transfer an older capture stays as it is.
fn write_files(
    plan: Plan,
    begins: SystemTime,
    events: &Receiver<Event>,
    waiting_bytes: &AtomicUsize,
) -> Result<CaptureSummary, WriteError> {
    match events.iter().find(|event| !matches!(event.kind, Kind::Plugged)) {
        Some(first) => Writer::create(plan, begins)?.write_all(first, events, waiting_bytes),
        None => Ok(CaptureSummary { files: 0, records: 0, dropped: 0 }),
    }
}

impl Writer {
    fn create(plan: Plan, begins: SystemTime) -> Result<Self, WriteError> {
        let (out, transfers) = begin(&plan, 0, begins)?;
        let controls = Vec::new();
        Ok(Self {
            plan,
            begins,
            out,
            transfers,
            bytes: 0,
            controls,
            control_ids: 0,
            files: 1,
            records: 0,
            dropped: 0,
        })
    }

    /// Writes from the first event on until all recorders have been dropped.
    fn write_all(
        &mut self,
        first: Event,
        events: &Receiver<Event>,
        waiting_bytes: &AtomicUsize,
    ) -> Result<CaptureSummary, WriteError> {
        let mut outcome = Ok(());
        let mut next = Some(first);
        // The queue is drained even after an error: the drive keeps running.
        while let Some(event) = next {
            let len = event.bytes.len();
            if outcome.is_ok() {
                outcome = self.take(event);
            }
            waiting_bytes.fetch_sub(len, Ordering::Relaxed);
            next = self.next(events, &mut outcome);
        }
        outcome.and_then(|()| self.out.flush())?;
        Ok(CaptureSummary { files: self.files, records: self.records + self.out.records(), dropped: 0 })
    }

    /// The next event; `None` once all recorders have been dropped. Without an event for [`QUIET`] it flushes the file,
    /// so that the file is complete even if this process is killed.
    fn next(&mut self, events: &Receiver<Event>, outcome: &mut Result<(), WriteError>) -> Option<Event> {
        match events.recv_timeout(QUIET) {
            Err(RecvTimeoutError::Timeout) => {
                if outcome.is_ok() {
                    *outcome = self.out.flush();
                }
                events.recv().ok()
            }
            event => event.ok(),
        }
    }

    fn take(&mut self, event: Event) -> Result<(), WriteError> {
        if self.plan.file_bytes_max.is_some_and(|most| self.bytes >= most) {
            self.begin_next()?;
        }
        // Records what the queue dropped, so that no reader takes the gap for a fault of the drive.
        if !matches!(event.kind, Kind::Plugged) {
            self.out.drop_before_next(event.dropped.saturating_sub(self.dropped));
            self.dropped = self.dropped.max(event.dropped);
        }
        self.write(&event)?;
        match event.kind {
            Kind::Plugged => self.controls.retain(|control| control.device != event.device),
            Kind::Control(..) => {
                let known = self.controls.iter().filter(|control| control.device == event.device);
                if known.count() < CONTROLS_MAX {
                    self.controls.push(event);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_next(&mut self) -> Result<(), WriteError> {
        self.out.flush()?;
        self.records += self.out.records();
        let next = numbered(&self.plan.file, self.files);
        if let Err(failure) = output_file::check_replaceable(&next, output_file::Kind::Capture) {
            let cause = std::io::Error::other(failure.to_string());
            return Err(WriteError { file: shown(next), cause });
        }
        (self.out, self.transfers) = begin(&self.plan, self.files, self.begins)?;
        self.files += 1;
        self.bytes = 0;
        let controls = std::mem::take(&mut self.controls);
        let written = controls.iter().try_for_each(|event| self.write(event));
        self.controls = controls;
        written
    }

    fn write(&mut self, event: &Event) -> Result<(), WriteError> {
        let Self { out, transfers, .. } = self;
        let Event { at, device, kind, bytes, .. } = event;
        let transfers = transfers.of_device(*device);
        let at = Instant::from_ps(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000));
        self.bytes += RECORD_BYTES + bytes.len() as u64;
        match kind {
            Kind::Plugged => Ok(()),
            Kind::Submitted(transfer) => transfers.submitted(out, at, transfer, bytes),
            Kind::Completed(transfer, status, actual) => transfers.completed(
                out,
                at,
                transfer,
                TransferEnd { status: *status, actual: *actual },
                bytes,
            ),
            Kind::Control(setup, status) => {
                // From the other end than a host's own numbers.
                self.control_ids += 1;
                let id = TransferId(u64::MAX - self.control_ids);
                transfers.control(out, at, &Control { id, setup: *setup, bytes, status: *status })
            }
        }
    }
}

/// Begins a file: the first as it is called, the others with a number before the ending.
fn begin(
    plan: &Plan,
    number: u32,
    begins: SystemTime,
) -> Result<(Pcapng<BufWriter<File>>, Transfers), WriteError> {
    let application = concat!("uaskit ", env!("CARGO_PKG_VERSION"));
    let path = numbered(&plan.file, number);
    let created = if number == 0 { File::create(&path) } else { replace(&path) };
    let out = created.map_err(|cause| WriteError { file: shown(&path), cause })?;
    let mut out = Pcapng::new(BufWriter::new(out), shown(&path), application)?;
    out.begin_at(begins.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    let transfers = Transfers::new(&mut out, "drive", &plan.description, PLACE, plan.snap)?;
    Ok((out, transfers.with_interrupt(plan.interrupt)))
}

/// Creates a file in place of an older one. Only the first file has the path that the user named,
/// where a link is followed; a link at one of the others was made by somebody else, and is
/// replaced.
fn replace(path: &Path) -> io::Result<File> {
    let replacement = AtomicFile::create(path, 0o666)?;
    let file = replacement.file().try_clone()?;
    replacement.commit()?;
    Ok(file)
}

/// `drive.pcapng`, `drive.1.pcapng`, `drive.2.pcapng`.
fn numbered(file: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return file.to_owned();
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(ending) = file.extension() {
        name.push(".");
        name.push(ending);
    }
    file.with_file_name(name)
}

/// The beginning of the second: pcapng has the zero of a file in whole seconds.
fn whole_second(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::capture::{Item, Reader};
    use bus::{Direction, EndpointAddress};

    fn plan(place: &Path, file_bytes_max: Option<u64>, snap: u32) -> Plan {
        let description = "test".to_owned();
        Plan { file: place.join("drive.pcapng"), description, snap, interrupt: None, file_bytes_max }
    }

    #[test]
    fn a_file_has_its_number_before_the_ending_whatever_its_name_is() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        let of = |name: &[u8], number| {
            numbered(Path::new(OsStr::from_bytes(name)), number).into_os_string().into_encoded_bytes()
        };
        assert_eq!(of(b"/a\xff/b\xfe.pc\xfdng", 0), b"/a\xff/b\xfe.pc\xfdng");
        assert_eq!(of(b"/a\xff/b\xfe.pc\xfdng", 12), b"/a\xff/b\xfe.12.pc\xfdng");
        assert_eq!(of(b"b\xfe", 1), b"b\xfe.1");
    }

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("uaskit-capture-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        place
    }

    /// One control transfer, then so many writes of 512 bytes.
    fn play(observer: &mut dyn Observer, writes: u64) {
        let setup = SetupPacket::decode(&[0x00, 9, 1, 0, 0, 0, 0, 0]).unwrap();
        observer.control(setup, &[], TransferStatus::Done);
        let pipe = Pipe::plain(EndpointAddress::at::<2>(Direction::Out));
        for id in 0..writes {
            observer.submitted(id, pipe, 512, &[0x55; 512]);
            observer.completed(id, pipe, TransferStatus::Done, 512, &[]);
        }
    }

    fn lengths(file: &Path) -> Vec<(u64, usize)> {
        let mut reader = Reader::new(File::open(file).unwrap(), "file".to_owned()).unwrap();
        let mut lengths = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            let Item::Packet(packet) = item else { panic!("{item:?}") };
            lengths.push((packet.at_ns, packet.bytes.len()));
        }
        lengths
    }

    /// Records of control transfers: usbmon's type 2.
    fn controls(file: &Path) -> usize {
        let mut reader = Reader::new(File::open(file).unwrap(), "file".to_owned()).unwrap();
        let mut count = 0;
        while let Some(item) = reader.next_item().unwrap() {
            count += usize::from(matches!(item, Item::Packet(packet) if packet.bytes[9] == 2));
        }
        count
    }

    #[test]
    fn an_older_capture_stays_until_a_transfer_is_recorded() {
        let place = place("older");
        let file = place.join("drive.pcapng");
        let older = b"\x0a\x0d\x0d\x0aolder";
        std::fs::write(&file, older).unwrap();
        let (capture, recorder) = Capture::start(plan(&place, None, 100)).unwrap();
        drop(recorder.of_drive(0));
        drop(recorder);
        let written = capture.finish().unwrap();
        assert_eq!(written, CaptureSummary { files: 0, records: 0, dropped: 0 });
        assert_eq!(std::fs::read(&file).unwrap(), older);
        let (capture, mut observer) = Capture::start(plan(&place, None, 100)).unwrap();
        play(&mut observer, 1);
        drop(observer);
        assert_eq!(capture.finish().unwrap().files, 1);
        assert_eq!(controls(&file), 2);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn transfers_are_written_with_the_time_of_the_clock() {
        let place = place("clock");
        let before = SystemTime::now();
        let (capture, mut observer) = Capture::start(plan(&place, None, 100)).unwrap();
        play(&mut observer, 2);
        drop(observer);
        let written = capture.finish().unwrap();
        assert_eq!(written, CaptureSummary { files: 1, records: 6, dropped: 0 });
        let lengths = lengths(&place.join("drive.pcapng"));
        assert_eq!(lengths.iter().map(|one| one.1).collect::<Vec<_>>(), [64, 64, 164, 64, 164, 64]);
        let before = before.duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!((before..before + 60_000_000_000).contains(&lengths[0].0), "{} after {before}", lengths[0].0);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_file_is_whole_while_nothing_comes() {
        let place = place("quiet");
        let (capture, mut observer) = Capture::start(plan(&place, None, 100)).unwrap();
        play(&mut observer, 2);
        let file = place.join("drive.pcapng");
        let packets = || {
            // The first transfer creates the file.
            let Ok(open) = File::open(&file) else { return 0 };
            let Ok(mut reader) = Reader::new(open, "file".to_owned()) else { return 0 };
            std::iter::from_fn(|| Some(matches!(reader.next_item().ok()??, Item::Packet(_))))
                .filter(|is_packet| *is_packet)
                .count()
        };
        let begins = std::time::Instant::now();
        while packets() < 6 {
            assert!(begins.elapsed() < Duration::from_secs(60), "{} packets are written", packets());
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(lengths(&file).len(), 6, "nothing is damaged");
        drop(observer);
        capture.finish().unwrap();
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn each_file_begins_with_the_control_transfers() {
        let place = place("files");
        let (capture, mut observer) = Capture::start(plan(&place, Some(2_000), u32::MAX)).unwrap();
        play(&mut observer, 10);
        drop(observer);
        let written = capture.finish().unwrap();
        assert!(written.files > 3, "{written:?}");
        for number in 0..written.files {
            let file = numbered(&place.join("drive.pcapng"), number);
            assert_eq!(lengths(&file)[..2].iter().map(|one| one.1).collect::<Vec<_>>(), [64, 64]);
        }
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_link_at_the_path_of_a_later_file_is_replaced_and_not_followed() {
        let place = place("link");
        let foreign = place.join("foreign");
        std::fs::write(&foreign, "").unwrap();
        std::os::unix::fs::symlink(&foreign, place.join("drive.1.pcapng")).unwrap();
        let (capture, mut observer) = Capture::start(plan(&place, Some(2_000), u32::MAX)).unwrap();
        play(&mut observer, 10);
        drop(observer);
        assert!(capture.finish().unwrap().files > 1);
        assert_eq!(std::fs::read(&foreign).unwrap(), b"");
        assert_eq!(lengths(&place.join("drive.1.pcapng"))[0].1, 64);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn the_next_file_begins_with_the_last_enumeration() {
        let place = place("again");
        let (capture, recorder) = Capture::start(plan(&place, Some(2_000), u32::MAX)).unwrap();
        let factory: &dyn bench::backend::ObserverFactory = &recorder;
        for _ in 0..3 {
            play(&mut *factory.observer(), 10);
        }
        drop(recorder);
        let written = capture.finish().unwrap();
        let last = numbered(&place.join("drive.pcapng"), written.files - 1);
        // One control transfer, of the last enumeration, as two records: submission and completion.
        assert_eq!(controls(&last), 2);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_full_queue_drops_events_and_the_next_record_counts_them() {
        let place = place("drops");
        let (queue, events) = sync_channel(2);
        let (dropped, waiting_bytes) = (Arc::default(), Arc::default());
        let begins = whole_second(SystemTime::now());
        let mut recorder = Recorder {
            queue,
            waiting_bytes,
            dropped: Arc::clone(&dropped),
            begins,
            snap: usize::MAX,
            device: 1,
        };
        play(&mut recorder, 2);
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        let mut writer = Writer::create(plan(&place, None, 100), begins).unwrap();
        for event in events.try_iter() {
            writer.take(event).unwrap();
        }
        play(&mut recorder, 0);
        drop(recorder);
        let first = events.recv().unwrap();
        writer.write_all(first, &events, &AtomicUsize::new(1 << 20)).unwrap();
        let mut reader =
            Reader::new(File::open(place.join("drive.pcapng")).unwrap(), "file".to_owned()).unwrap();
        let mut dropped = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            dropped.push(match item {
                Item::Packet(_) => 0,
                Item::Dropped(dropped) => dropped.packets,
                other => panic!("{other:?}"),
            });
        }
        // Control transfers are two records.
        assert_eq!(dropped, [0, 0, 0, 3, 0, 0]);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn the_announcement_has_the_bytes_of_each_transfer() {
        let announced = |snap| {
            let capture = Some("drive.pcapng".into());
            CaptureArguments { capture, snap, capture_size: None }.announcement().unwrap()
        };
        let (line, fields) = announced(1024);
        assert_eq!(
            line,
            "drive.pcapng: the first 1024 bytes of each transfer (--snap N keeps N bytes, --snap 0 all)"
        );
        assert_eq!(fields, json!({ "file": "drive.pcapng", "snap_bytes": 1024 }));
        let (line, fields) = announced(u32::MAX);
        assert!(line.starts_with("drive.pcapng: all bytes of each transfer (--snap N"), "{line}");
        assert_eq!(fields["snap_bytes"], Value::Null);
        let nothing = CaptureArguments { capture: None, snap: 1024, capture_size: None };
        assert_eq!(nothing.announcement(), None);
    }

    #[test]
    fn files_are_numbered_before_their_ending() {
        assert_eq!(numbered(Path::new("a/b.pcapng"), 0), Path::new("a/b.pcapng"));
        assert_eq!(numbered(Path::new("a/b.pcapng"), 2), Path::new("a/b.2.pcapng"));
        assert_eq!(numbered(Path::new("b"), 1), Path::new("b.1"));
    }
}
