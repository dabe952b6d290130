//! Memory that a client has made a server hold returns to the system when it is no longer needed:
//! measured as the resident memory of this process, which is why there is one test here.
//!
//! The floods are data that no command ever asks for: in long transfers, which an allocator gets from the system one by one, and
//! in short ones, which it cuts from what it has.

use drive::medium::RamMedium;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use uaskit_server::net::{Address, Config, Server};
use uaskit_server::usbredir::Limits;
use units::{BlockSize, ByteCount};

/// How much more than before may be resident afterwards.
const MORE_MIB_MAX: u64 = 8;
/// How soon.
const TIME: Duration = Duration::from_secs(5);
/// How much a flood sends; a session ends at 136 MiB.
const FLOOD_BYTES: usize = 120 << 20;

const HELLO: u32 = 0;
const SET_CONFIGURATION: u32 = 6;
const GET_CONFIGURATION: u32 = 7;
const CONFIGURATION_STATUS: u32 = 8;
const SET_ALT_SETTING: u32 = 9;
const ALLOC_BULK_STREAMS: u32 = 18;
const BULK_PACKET: u32 = 101;

/// A usbredir client with 64-bit ids and 32-bit lengths.
struct Client(UnixStream);

impl Client {
    /// Selects UAS, with 32 streams on its data-out pipe.
    fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has time-outs");
        let mut hello = [HELLO.to_le_bytes(), 68_u32.to_le_bytes(), [0; 4]].concat();
        hello.resize(12 + 64, 0);
        hello.extend(0xff_u32.to_le_bytes());
        stream.write_all(&hello).expect("the server reads");
        // Ours has a 32-bit id as well.
        let mut ours = [0; 12 + 68];
        stream.read_exact(&mut ours).expect("the server answers");
        let mut client = Self(stream);
        client.configure();
        client
    }

    fn configure(&mut self) {
        self.send(SET_CONFIGURATION, &[&[1]]);
        self.send(SET_ALT_SETTING, &[&[0, 1]]);
        self.send(ALLOC_BULK_STREAMS, &[&[4, 0, 0, 0, 32, 0, 0, 0]]);
    }

    fn send(&mut self, kind: u32, body: &[&[u8]]) {
        let length = body.iter().map(|part| part.len()).sum::<usize>() as u32;
        let head = [&kind.to_le_bytes()[..], &length.to_le_bytes(), &7_u64.to_le_bytes()].concat();
        self.0.write_all(&head).expect("the server reads");
        body.iter().for_each(|part| self.0.write_all(part).expect("the server reads"));
    }

    /// Sends data that no command asks for, and waits until the server has them.
    fn flood(&mut self, transfer_bytes: usize) {
        let payload = vec![0xee; transfer_bytes];
        let [l0, l1, l2, l3] = (transfer_bytes as u32).to_le_bytes();
        for number in 0..FLOOD_BYTES / transfer_bytes {
            let stream = 1 + number as u8 % 32;
            self.send(BULK_PACKET, &[&[2, 0, l0, l1, stream, 0, 0, 0, l2, l3], &payload]);
        }
        self.send(GET_CONFIGURATION, &[]);
        self.await_configuration();
    }

    /// Selects the configuration again, which cancels all transfers.
    fn cancel_all(&mut self) {
        self.send(SET_CONFIGURATION, &[&[1]]);
        self.await_configuration();
    }

    /// Reads packets up to the status of a configuration.
    fn await_configuration(&mut self) {
        loop {
            let mut head = [0; 16];
            self.0.read_exact(&mut head).expect("the server answers");
            let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let mut body = vec![0; word(4) as usize];
            self.0.read_exact(&mut body).expect("the server answers");
            if word(0) == CONFIGURATION_STATUS {
                return assert_eq!(body, [0, 1]);
            }
        }
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS is there");
    let kib: u64 = line.trim().strip_suffix(" kB").expect("VmRSS is in kB").parse().expect("VmRSS is in kB");
    kib << 10
}

/// Waits until little more is resident than this.
#[track_caller]
fn await_resident_bytes(idle_bytes: u64, after: &str) {
    let begin = Instant::now();
    loop {
        let more_mib = resident_bytes().saturating_sub(idle_bytes) >> 20;
        if more_mib < MORE_MIB_MAX {
            return;
        }
        assert!(begin.elapsed() < TIME, "{more_mib} MiB more than before are resident after {after}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn resident_memory_is_back_near_its_idle_size_seconds_after_a_flood() {
    let socket = std::env::temp_dir().join(format!("uaskit-memory-{}", std::process::id()));
    let medium = RamMedium::new(ByteCount(4 << 20), BlockSize::B512).unwrap();
    let config = Config {
        address: Address::Unix(socket.clone()),
        allow_remote: false,
        version: "test".into(),
        limits: Limits::default(),
    };
    let server = Server::start(config, testkit::host::drive(Box::new(medium)), |_| {}).unwrap();
    let mut client = Client::connect(&socket);
    client.cancel_all();
    let idle_bytes = resident_bytes();
    for transfer_bytes in [512 << 10, 40_000] {
        client.configure();
        client.flood(transfer_bytes);
        let held_bytes = resident_bytes() - idle_bytes;
        assert!(held_bytes > 100 << 20, "{held_bytes} bytes are held of a flood");
        client.cancel_all();
        await_resident_bytes(idle_bytes, &format!("transfers of {transfer_bytes} bytes were cancelled"));
    }
    client.configure();
    client.flood(512 << 10);
    drop(client);
    await_resident_bytes(idle_bytes, "the client has gone");
    server.stopper().stop();
    server.join();
}
