//! A drive on real sockets, with a small client that knows BOT.

use super::{Address, Config, ControlError, Event, Reason, Server, ServerExit};
use crate::usbredir::Limits;
use crate::usbredir::tests::fixture::{QEMU, bulk, hello, packet};
use device::ActiveTransport;
use drive::medium::{Engine, FileMedium, FileOptions, RamMedium, create_image};
use drive::{Drive, SlotError};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{env, fs, process};
use testkit::drive::{drive_on, drive_with};
use units::{BlockSize, ByteCount};

/// How long anything may take before a test fails.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A directory with room for a socket, which goes when this is dropped.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("uaskit-net-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    pub(super) fn address(&self) -> Address {
        Address::Unix(self.socket())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A disk of 4 MiB in memory.
pub(crate) fn drive() -> Drive {
    drive_on(Box::new(RamMedium::new(ByteCount(4 << 20), BlockSize::B512).unwrap()))
}

/// A served drive and its events.
#[derive(Debug)]
struct Bench {
    server: Server,
    events: Receiver<Event>,
    place: Place,
}

impl Bench {
    fn start(limits: Limits) -> Self {
        Self::serve(drive(), Place::new(), limits)
    }

    fn serve(drive: Drive, place: Place, limits: Limits) -> Self {
        let (sender, events) = mpsc::channel();
        let config =
            Config { address: place.address(), allow_remote: false, version: "uaskit".into(), limits };
        let server = Server::start(config, drive, move |event| drop(sender.send(event))).unwrap();
        Self { server, events, place }
    }

    /// The same at a TCP port.
    fn start_at_tcp() -> Self {
        let (sender, events) = mpsc::channel();
        let config = Config {
            address: Address::Tcp("127.0.0.1:0".into()),
            allow_remote: false,
            version: "uaskit".into(),
            limits: Limits::default(),
        };
        let server = Server::start(config, drive(), move |event| drop(sender.send(event))).unwrap();
        Self { server, events, place: Place::new() }
    }

    fn connect_by_tcp(&self) -> Client<TcpStream> {
        let Address::Tcp(address) = self.server.address() else { panic!("a TCP address") };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Client { stream, next_id: 1 }
    }

    fn connect(&self) -> Client<UnixStream> {
        let stream = UnixStream::connect(self.place.socket()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Client { stream, next_id: 1 }
    }

    /// The next event that is of interest.
    #[track_caller]
    fn event<T>(&self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        loop {
            let event = self.events.recv_timeout(TIMEOUT).expect("the event comes");
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }

    #[track_caller]
    fn disconnect_reason(&self) -> String {
        self.event(|event| match event {
            Event::Disconnected(reason) => Some(reason.to_string()),
            _ => None,
        })
    }

    fn stop(self) -> ServerExit {
        self.server.stopper().stop();
        self.server.join()
    }
}

/// The other end: a host that knows BOT.
#[derive(Debug)]
struct Client<S> {
    stream: S,
    next_id: u64,
}

impl<S: Read + Write> Client<S> {
    /// Says hello and takes the device in up to the BOT interface.
    fn enumerate(mut self) -> Self {
        self.stream.write_all(&hello(QEMU)).unwrap();
        assert_eq!(self.hello(), "uaskit");
        assert_eq!([self.receive().0, self.receive().0, self.receive().0], [4, 5, 1]);
        self.stream.write_all(&packet(6, 1, &[1])).unwrap();
        assert_eq!([self.receive().0, self.receive().0, self.receive().0], [4, 5, 8]);
        self
    }

    /// The server's hello: its version text.
    fn hello(&mut self) -> String {
        let mut bytes = [0; 12 + 64 + 4];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes[12..76].iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// The next packet with a 64-bit id: type, id, body.
    fn receive(&mut self) -> (u32, u64, Vec<u8>) {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let mut body = vec![0; word(4) as usize];
        self.stream.read_exact(&mut body).unwrap();
        (word(0), u64::from_le_bytes(head[8..].try_into().unwrap()), body)
    }

    /// One bulk transfer and the bytes it brings.
    fn bulk(&mut self, endpoint: u8, length: u32, payload: &[u8]) -> Vec<u8> {
        self.next_id += 1;
        self.stream.write_all(&bulk(self.next_id, endpoint, 0, length, payload)).unwrap();
        let (kind, id, body) = self.receive();
        assert_eq!((kind, id, body[1]), (101, self.next_id, 0));
        body[10..].to_vec()
    }

    /// One command by BOT: its data and its CSW status.
    fn command(&mut self, cdb: &[u8], read: u32, written: &[u8]) -> (Vec<u8>, u8) {
        let length = read.max(written.len() as u32).to_le_bytes();
        let flags = if read > 0 { 0x80 } else { 0 };
        let head = [&b"USBC\x01\0\0\0"[..], &length, &[flags, 0, cdb.len() as u8], cdb].concat();
        let mut cbw = [0; 31];
        cbw[..head.len()].copy_from_slice(&head);
        self.bulk(0x02, 31, &cbw);
        if !written.is_empty() {
            self.bulk(0x02, written.len() as u32, written);
        }
        let data = if read > 0 { self.bulk(0x81, read, &[]) } else { vec![] };
        let csw = self.bulk(0x81, 13, &[]);
        assert_eq!(csw[..8], *b"USBS\x01\0\0\0");
        (data, csw[12])
    }

    /// Takes the unit attention of a new nexus.
    fn ready(mut self) -> Self {
        assert_eq!(self.command(&[0; 6], 0, &[]).1, 1, "a unit attention comes first");
        assert_eq!(self.command(&[0; 6], 0, &[]).1, 0);
        self
    }
}

#[test]
fn a_client_finds_a_disk() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate();
    let (data, status) = client.command(&[0x12, 0, 0, 0, 36, 0], 36, &[]);
    assert_eq!((status, &data[8..14]), (0, &b"uaskit"[..]));
    bench.event(|event| matches!(event, Event::Listening(_)).then_some(()));
    bench.event(|event| matches!(event, Event::Connected { .. }).then_some(()));
    let version = bench.event(|event| match event {
        Event::Greeted(peer) => Some(peer.version.clone()),
        _ => None,
    });
    assert_eq!(version, "qemu usb-redir guest 7.2.0");
    bench.event(|event| matches!(event, Event::Transport(ActiveTransport::Bot)).then_some(()));
    assert!(bench.server.snapshot().has_client);
}

/// Bulk-Only Transport 1.0 clause 6.7.2, case 5.
#[test]
fn a_guest_that_asks_for_too_much_by_bot_clears_a_stall_and_gets_the_status() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate();
    let mut cbw = b"USBC\x01\0\0\0\xff\0\0\0\x80\0\x06\x12\0\0\0\x24".to_vec();
    cbw.resize(31, 0);
    client.bulk(0x02, 31, &cbw);
    assert_eq!(client.bulk(0x81, 255, &[]).len(), 36);
    client.stream.write_all(&bulk(90, 0x81, 0, 13, &[])).unwrap();
    assert_eq!(client.receive(), (101, 90, vec![0x81, 4, 0, 0, 0, 0, 0, 0, 0, 0]), "the STALL");
    // CLEAR FEATURE (ENDPOINT_HALT)
    client.stream.write_all(&packet(100, 91, &[0, 1, 2, 0, 0, 0, 0x81, 0, 0, 0])).unwrap();
    assert_eq!(client.receive(), (100, 91, vec![0, 1, 2, 0, 0, 0, 0x81, 0, 0, 0]));
    assert_eq!(client.bulk(0x81, 13, &[]), b"USBS\x01\0\0\0\xdb\0\0\0\0");
}

#[test]
fn a_transport_is_reported_once_the_guest_uses_it() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate();
    let is_transport = |event: &Event| matches!(event, Event::Transport(_));
    assert!(!bench.events.try_iter().any(|event| is_transport(&event)), "it is selected and not used");
    client.command(&[0; 6], 0, &[]);
    bench.event(|event| matches!(event, Event::Transport(ActiveTransport::Bot)).then_some(()));
}

#[test]
fn a_second_client_is_rejected_by_a_hello_that_says_so() {
    let bench = Bench::start(Limits::default());
    let mut first = bench.connect().enumerate();
    let mut second = bench.connect();
    assert_eq!(second.hello(), "uaskit: rejected, another client is connected");
    assert_eq!(second.stream.read(&mut [0; 1]).unwrap(), 0);
    bench.event(|event| matches!(event, Event::Rejected { .. }).then_some(()));
    assert_eq!(first.command(&[0x12, 0, 0, 0, 36, 0], 36, &[]).1, 0, "the first is served on");
}

/// Each client sends its hello and a command, closes at once, and the next one connects before the
/// server has read that.
fn close_and_connect<S: Read + Write>(connect: impl Fn() -> Client<S>) {
    for _ in 0..50 {
        let mut client = connect();
        client.stream.write_all(&hello(QEMU)).unwrap();
        client.stream.write_all(&packet(6, 1, &[1])).unwrap();
        drop(client);
        connect().enumerate();
    }
}

#[test]
fn a_client_that_has_just_closed_does_not_keep_the_next_one_out() {
    let bench = Bench::start(Limits::default());
    close_and_connect(|| bench.connect());
    let bench = Bench::start_at_tcp();
    close_and_connect(|| bench.connect_by_tcp());
}

#[test]
fn what_a_client_sent_before_it_closed_is_done_before_the_next_one_is_served() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate().ready();
    let cbw = |direction, length: u32, cdb: [u8; 10]| {
        [&b"USBC\x01\0\0\0"[..], &length.to_le_bytes(), &[direction, 0, 10], &cdb, &[0; 6]].concat()
    };
    let write = cbw(0, 512, [0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0]);
    let sent = [bulk(90, 0x02, 0, 31, &write), bulk(91, 0x02, 0, 512, &[7; 512])].concat();
    client.stream.write_all(&sent).unwrap();
    drop(client);
    let mut client = bench.connect().enumerate().ready();
    assert_eq!(client.command(&[0x28, 0, 0, 0, 0, 9, 0, 0, 1, 0], 512, &[]), (vec![7; 512], 0));
}

#[test]
fn a_client_that_did_not_read_and_closed_does_not_keep_the_next_one_out() {
    let bench = Bench::start(Limits { outgoing_bytes: 64 << 10, ..Limits::default() });
    let mut client = bench.connect().enumerate();
    client.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let question = packet(100, 7, &[0x80, 6, 0x80, 0, 0, 1, 0, 0, 18, 0]);
    while client.stream.write_all(&question).is_ok() {}
    drop(client);
    bench.connect().enumerate();
}

#[test]
fn a_client_without_a_hello_is_disconnected_in_time() {
    let bench = Bench::start(Limits { hello_timeout: Duration::from_millis(200), ..Limits::default() });
    let silent = bench.connect();
    assert_eq!(bench.disconnect_reason(), "timed out waiting for its usbredir hello");
    drop(silent);
    bench.connect().enumerate();
}

#[test]
fn bytes_of_a_hello_that_trickle_in_do_not_extend_its_deadline() {
    let bench = Bench::start(Limits { hello_timeout: Duration::from_millis(200), ..Limits::default() });
    let mut slow = bench.connect();
    let begins = Instant::now();
    let hello = hello(QEMU);
    let written = hello.iter().take_while(|byte| {
        std::thread::sleep(Duration::from_millis(20));
        slow.stream.write_all(&[**byte]).is_ok()
    });
    assert!(written.count() < 40, "the connection is closed while the hello is sent");
    assert!(begins.elapsed() < TIMEOUT);
    assert_eq!(bench.disconnect_reason(), "timed out waiting for its usbredir hello");
}

#[test]
fn a_client_whose_hello_has_arrived_has_no_deadline() {
    let bench = Bench::start(Limits { hello_timeout: Duration::from_millis(50), ..Limits::default() });
    let mut client = bench.connect().enumerate();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(client.command(&[0x12, 0, 0, 0, 36, 0], 36, &[]).1, 0);
}

#[test]
fn the_disk_outlives_its_client() {
    let bench = Bench::start(Limits::default());
    let written: Vec<u8> = (0..512_u32).map(|n| n as u8).collect();
    let mut client = bench.connect().enumerate().ready();
    assert_eq!(client.command(&[0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0], 0, &written).1, 0);
    drop(client);
    assert_eq!(bench.disconnect_reason(), "connection closed by peer");
    let mut client = bench.connect().enumerate().ready();
    let (read, status) = client.command(&[0x28, 0, 0, 0, 0, 9, 0, 0, 1, 0], 512, &[]);
    assert_eq!((read, status), (written, 0));
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_payload_leaves_nothing_behind() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate().ready();
    let whole = bulk(99, 0x02, 0, 100_000, &[1; 100_000]);
    client.stream.write_all(&whole[..50_000]).unwrap();
    drop(client);
    bench.disconnect_reason();
    bench.connect().enumerate().ready();
}

#[test]
fn a_long_write_arrives_whole() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate().ready();
    let written: Vec<u8> = (0..1_u32 << 20).map(|n| (n ^ n >> 9) as u8).collect();
    assert_eq!(client.command(&[0x2a, 0, 0, 0, 0, 0, 0, 8, 0, 0], 0, &written).1, 0);
    let (read, status) = client.command(&[0x28, 0, 0, 0, 0, 0, 0, 8, 0, 0], 1 << 20, &[]);
    assert_eq!(status, 0);
    assert!(read == written, "the same bytes come back");
    let counters = bench.server.snapshot().counters;
    assert_eq!((counters.written_bytes, counters.failures), (1 << 20, 0));
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_until_it_does() {
    let bench = Bench::start(Limits { outgoing_bytes: 64 << 10, ..Limits::default() });
    let mut client = bench.connect().enumerate();
    client.stream.set_nonblocking(true).unwrap();
    let question = packet(100, 7, &[0x80, 6, 0x80, 0, 0, 1, 0, 0, 18, 0]);
    let (mut asked, mut quiet) = (0, 0);
    // Bytes of a question that did not fit go first the next time.
    let mut rest: &[u8] = &question;
    while quiet < 20 {
        match client.stream.write(rest) {
            Ok(count) => (rest, quiet) = (&rest[count..], 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                quiet += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if rest.is_empty() {
            (rest, asked) = (&question, asked + 1);
            assert!(asked < 200_000, "the server takes questions without end");
        }
    }
    client.stream.set_nonblocking(false).unwrap();
    for _ in 0..asked {
        let (kind, _, body) = client.receive();
        assert_eq!((kind, body.len()), (100, 10 + 18));
    }
}

#[test]
fn a_client_that_breaks_the_protocol_is_gone_and_the_next_is_served() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect();
    client.stream.write_all(&packet(1, 0, &[])).unwrap();
    assert_eq!(
        bench.disconnect_reason(),
        "it sent device_connect before a usbredir hello; a client such as QEMU begins with its hello"
    );
    bench.connect().enumerate();
}

#[test]
fn a_client_that_closes_one_direction_is_gone() {
    let bench = Bench::start(Limits::default());
    let client = bench.connect().enumerate();
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(bench.disconnect_reason(), "connection closed by peer");
}

#[test]
fn bytes_that_come_together_with_the_end_do_not_hide_it() {
    let bench = Bench::start(Limits::default());
    for _ in 0..50 {
        let mut client = bench.connect();
        client.stream.write_all(&hello(QEMU)).unwrap();
        drop(client);
        bench.disconnect_reason();
    }
}

#[test]
fn a_server_that_stops_says_goodbye_and_flushes() {
    let bench = Bench::start(Limits::default());
    let mut client = bench.connect().enumerate().ready();
    bench.server.stopper().stop();
    assert_eq!(client.receive(), (2, 0, vec![]), "device_disconnect");
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
    bench.event(|event| matches!(event, Event::Disconnected(Reason::Stopped)).then_some(()));
    let socket = bench.place.socket();
    let ended = bench.stop();
    assert!(ended.flushed.is_ok() && ended.outcome.is_ok());
    assert!(!Path::new(&socket).exists());
}

#[test]
fn an_image_is_read_and_written_and_flushed_in_the_end() {
    for engine in [Engine::Automatic, Engine::Threads] {
        let place = Place::new();
        let image = place.0.join("image");
        create_image(&image, ByteCount(4 << 20)).unwrap();
        let options = FileOptions { engine, ..FileOptions::default() };
        let medium = FileMedium::open(&image, &options).unwrap();
        let bench = Bench::serve(drive_on(Box::new(medium)), place, Limits::default());
        let mut client = bench.connect().enumerate().ready();
        let written: Vec<u8> = (0..1_u32 << 20).map(|n| (n ^ n >> 9) as u8).collect();
        assert_eq!(client.command(&[0x2a, 0, 0, 0, 0, 8, 0, 8, 0, 0], 0, &written).1, 0);
        let (read, status) = client.command(&[0x28, 0, 0, 0, 0, 8, 0, 8, 0, 0], 1 << 20, &[]);
        assert!(status == 0 && read == written, "the same bytes come back");
        bench.server.stopper().stop();
        let Bench { server, place: _kept, .. } = bench;
        assert!(server.join().flushed.is_ok());
        assert!(fs::read(&image).unwrap()[4096..][..1 << 20] == written[..], "the bytes are in the image");
    }
}

#[test]
fn a_drive_is_served_by_tcp_as_well() {
    let bench = Bench::start_at_tcp();
    let mut client = bench.connect_by_tcp().enumerate();
    assert_eq!(client.command(&[0x12, 0, 0, 0, 36, 0], 36, &[]).0.len(), 36);
}

#[test]
fn media_come_and_go_while_a_guest_is_there() {
    let place = Place::new();
    let (first, second) = (place.0.join("first"), place.0.join("second"));
    let open = |path: &Path, size| {
        create_image(path, ByteCount(size)).unwrap();
        Box::new(FileMedium::open(path, &FileOptions::default()).unwrap())
    };
    let drive = drive_with(open(&first, 1 << 20), |config| config.removable = true);
    let bench = Bench::serve(drive, place, Limits::default());
    let mut client = bench.connect().enumerate().ready();
    assert_eq!(client.command(&[0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0], 0, &[7; 512]).1, 0);
    let controller = bench.server.controller();
    assert_eq!(controller.eject(None, 0, false), Ok(()));
    assert_eq!(fs::read(&first).unwrap()[9 * 512..10 * 512], [7; 512]);
    assert_eq!(client.command(&[0; 6], 0, &[]).1, 1, "no medium");
    assert_eq!(controller.describe().unwrap().drives[0].units[0].capacity, None);
    assert_eq!(controller.insert(None, 0, open(&second, 2 << 20)), Ok(()));
    assert_eq!(controller.describe().unwrap().drives[0].units[0].capacity, Some(ByteCount(2 << 20)));
    assert_eq!(client.command(&[0; 6], 0, &[]).1, 1, "the medium may have changed");
    assert_eq!(client.command(&[0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0], 0, &[8; 512]).1, 0);
    let read = client.command(&[0x28, 0, 0, 0, 0, 9, 0, 0, 1, 0], 512, &[]);
    assert_eq!(read, (vec![8; 512], 0));
    assert_eq!(fs::read(&first).unwrap()[9 * 512..10 * 512], [7; 512]);
}

#[test]
fn a_request_that_cannot_be_carried_out_is_answered() {
    let bench = Bench::start(Limits::default());
    let controller = bench.server.controller();
    assert_eq!(controller.eject(Some(0), 0, true), Err(ControlError::Slot(SlotError::Fixed)));
    assert_eq!(controller.measure(None, 9), Err(ControlError::Slot(SlotError::NoUnit)));
    bench.stop();
    assert_eq!(controller.describe().unwrap_err(), ControlError::Stopped);
}
