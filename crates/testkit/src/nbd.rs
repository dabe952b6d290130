//! A small NBD server in this process, on a Unix socket, with a cache that it loses when it is killed.
//!
//! It answers in order, one thread for each connection. Left out: everything that a test does not need.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wire::nbd::{
    BASE_ALLOCATION, BlockSizes, BlockStatus, ChunkFlags, ChunkHeader, ChunkKind, ClientFlags, Command,
    CommandFlags, ErrorCode, ExportDetail, ExportInfo, Go, HandshakeFlags, MetaContext, OptionCode,
    OptionHeader, OptionReply, OptionReplyKind, Request, ServerHello, SimpleReply, Statuses,
    TransmissionFlags,
};

/// Every ability that the server has.
pub const ABILITIES: TransmissionFlags = TransmissionFlags::HAS_FLAGS
    .with(TransmissionFlags::SEND_FLUSH)
    .with(TransmissionFlags::SEND_FUA)
    .with(TransmissionFlags::SEND_WRITE_ZEROES)
    .with(TransmissionFlags::SEND_CACHE);

/// Behaviour of a server.
#[derive(Clone, Copy, Debug)]
pub struct NbdConfig {
    /// Size of the export in bytes.
    pub size_bytes: usize,
    /// Flags that it announces.
    pub flags: TransmissionFlags,
    /// Whether it has structured replies and block status.
    pub is_structured: bool,
    /// Whether it wants TLS.
    pub wants_tls: bool,
    /// Minimum and maximum of its requests, in bytes.
    pub block_sizes: Option<(u32, u32)>,
    /// Whether its reads come in two chunks, the second one first.
    pub splits_reads: bool,
}

impl NbdConfig {
    /// A server with everything.
    pub const fn new(size_bytes: usize) -> Self {
        Self {
            size_bytes,
            flags: ABILITIES,
            is_structured: true,
            wants_tls: false,
            block_sizes: Some((1, 32 << 20)),
            splits_reads: false,
        }
    }
}

/// State that the connections of a server share.
#[derive(Debug)]
struct Shared {
    config: NbdConfig,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Content that a kill leaves.
    durable: Vec<u8>,
    /// Content that is read.
    cached: Vec<u8>,
    streams: Vec<UnixStream>,
    is_closing: bool,
    /// It takes requests and does not answer.
    is_silent: bool,
    /// It closes all connections at the request with which this has counted down.
    closes_after: Option<u32>,
    requests: u64,
    connections: u64,
    /// The error of each flush.
    flush_error: ErrorCode,
}

/// A server. It ends when this is dropped.
#[derive(Debug)]
pub struct NbdServer {
    path: PathBuf,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl NbdServer {
    /// Listens at `path`, with zeroes.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn start(path: &Path, config: NbdConfig) -> Self {
        let state = State {
            durable: vec![0; config.size_bytes],
            cached: vec![0; config.size_bytes],
            streams: Vec::new(),
            is_closing: false,
            is_silent: false,
            closes_after: None,
            requests: 0,
            connections: 0,
            flush_error: ErrorCode::None,
        };
        let shared = Arc::new(Shared { config, state: Mutex::new(state), changed: Condvar::new() });
        let mut server = Self { path: path.into(), shared, listener: None };
        server.restart();
        server
    }

    /// The address of its export.
    pub fn address(&self) -> String {
        format!("nbd+unix:///?socket={}", self.path.display())
    }

    /// Ends as by SIGKILL: connections are closed, and what no flush has covered is lost.
    pub fn kill(&mut self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        state.cached = state.durable.clone();
        for stream in state.streams.drain(..) {
            // One that is closed already is as good.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the listener, which may be waiting.
        let _ = UnixStream::connect(&self.path);
        if let Some(listener) = self.listener.take() {
            listener.join().expect("the listener does not panic");
        }
        let _ = fs::remove_file(&self.path);
    }

    /// Listens again, after a kill.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn restart(&mut self) {
        self.shared.lock().is_closing = false;
        let listener = UnixListener::bind(&self.path).expect("the path can be listened at");
        let shared = Arc::clone(&self.shared);
        self.listener = Some(thread::spawn(move || accept(&listener, &shared)));
    }

    /// Answers no more, or again.
    pub fn set_silent(&self, is_silent: bool) {
        self.shared.lock().is_silent = is_silent;
        self.shared.changed.notify_all();
    }

    /// Fails each flush from now on.
    pub fn fail_flushes(&self, error: ErrorCode) {
        self.shared.lock().flush_error = error;
    }

    /// Closes all connections in place of the `count`th request from now on, and loses what no flush has covered.
    pub fn close_after(&self, count: u32) {
        self.shared.lock().closes_after = Some(count);
    }

    /// Connections that there have been.
    pub fn connections(&self) -> u64 {
        self.shared.lock().connections
    }

    /// Requests that there have been.
    pub fn requests(&self) -> u64 {
        self.shared.lock().requests
    }

    /// Returns what a kill would leave.
    pub fn durable(&self) -> Vec<u8> {
        self.shared.lock().durable.clone()
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let mut state = shared.lock();
        if state.is_closing {
            return;
        }
        let Ok(twin) = stream.try_clone() else { continue };
        state.streams.push(twin);
        state.connections += 1;
        drop(state);
        let shared = Arc::clone(shared);
        // It ends with its connection.
        thread::spawn(move || {
            let mut stream = stream;
            let _ = negotiate(&mut stream, &shared).and_then(|goes_on| match goes_on {
                true => serve(&mut stream, &shared),
                false => Ok(()),
            });
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

fn malformed<E>(_: E) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn receive<const LEN: usize>(stream: &mut UnixStream) -> io::Result<[u8; LEN]> {
    let mut bytes = [0; LEN];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Whether the client has chosen the export.
fn negotiate(stream: &mut UnixStream, shared: &Shared) -> io::Result<bool> {
    let flags = HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES);
    stream.write_all(&ServerHello { flags }.encode())?;
    ClientFlags::decode(&receive::<{ ClientFlags::LEN }>(stream)?).map_err(malformed)?;
    loop {
        let header = OptionHeader::decode(&receive::<{ OptionHeader::LEN }>(stream)?).map_err(malformed)?;
        let mut data = vec![0; header.data_len as usize];
        stream.read_exact(&mut data)?;
        let mut reply = |kind, data: &[u8]| {
            let reply = OptionReply { option: header.option, kind, data_len: data.len() as u32 };
            stream.write_all(&[&reply.encode()[..], data].concat())
        };
        let config = &shared.config;
        match header.option {
            _ if config.wants_tls => reply(OptionReplyKind::TlsRequired, b"")?,
            OptionCode::StructuredReply if config.is_structured => reply(OptionReplyKind::Ack, b"")?,
            OptionCode::SetMetaContext if config.is_structured => {
                let mut out = [0; 64];
                let context = MetaContext { id: 5, name: BASE_ALLOCATION.as_bytes() };
                let len = context.encode(&mut out).map_err(malformed)?;
                reply(OptionReplyKind::MetaContext, &out[..len])?;
                reply(OptionReplyKind::Ack, b"")?;
            }
            OptionCode::Go if Go::decode(&data).is_ok_and(|go| go.name.is_empty()) => {
                let mut out = [0; 64];
                let info = ExportInfo { size_bytes: config.size_bytes as u64, flags: config.flags };
                let len = ExportDetail::Export(info).encode(&mut out).map_err(malformed)?;
                reply(OptionReplyKind::Info, &out[..len])?;
                if let Some((minimum, maximum)) = config.block_sizes {
                    let sizes = BlockSizes { minimum, preferred: 4096.max(minimum), maximum };
                    let len = ExportDetail::BlockSizes(sizes).encode(&mut out).map_err(malformed)?;
                    reply(OptionReplyKind::Info, &out[..len])?;
                }
                reply(OptionReplyKind::Ack, b"")?;
                return Ok(true);
            }
            OptionCode::Go => reply(OptionReplyKind::UnknownExport, b"no such export")?,
            OptionCode::Abort => return Ok(false),
            _ => reply(OptionReplyKind::Unsupported, b"")?,
        }
    }
}

fn serve(stream: &mut UnixStream, shared: &Shared) -> io::Result<()> {
    let mut payload = Vec::new();
    loop {
        let request = Request::decode(&receive::<{ Request::LEN }>(stream)?).map_err(malformed)?;
        payload.clear();
        if request.command == Command::Write {
            payload.resize(request.length as usize, 0);
            stream.read_exact(&mut payload)?;
        }
        if request.command == Command::Disconnect {
            return Ok(());
        }
        let mut state = shared.lock();
        while state.is_silent && !state.is_closing {
            let (next, _) = shared
                .changed
                .wait_timeout(state, Duration::from_millis(100))
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        if state.is_closing {
            return Ok(());
        }
        if let Some(left) = &mut state.closes_after {
            *left -= 1;
            if *left == 0 {
                state.closes_after = None;
                state.cached = state.durable.clone();
                for stream in state.streams.drain(..) {
                    let _ = stream.shutdown(Shutdown::Both);
                }
                return Ok(());
            }
        }
        state.requests += 1;
        let reply = carry_out(&request, &payload, &mut state, &shared.config);
        drop(state);
        stream.write_all(&reply)?;
    }
}

/// Carries out a request. Returns the bytes of its reply.
fn carry_out(request: &Request, payload: &[u8], state: &mut State, config: &NbdConfig) -> Vec<u8> {
    let Request { command, flags, offset, length, cookie } = *request;
    let (start, end) = (offset as usize, offset as usize + length as usize);
    let simple = |error| SimpleReply { error, cookie }.encode().to_vec();
    let minimum = config.block_sizes.map_or(1, |(minimum, _)| minimum);
    if end > config.size_bytes || !offset.is_multiple_of(minimum.into()) || !length.is_multiple_of(minimum) {
        return simple(ErrorCode::Invalid);
    }
    match command {
        Command::Read if config.is_structured => read_chunks(request, &state.cached[start..end], config),
        Command::Read => [&simple(ErrorCode::None)[..], &state.cached[start..end]].concat(),
        Command::Write | Command::WriteZeroes => {
            match command {
                Command::Write => state.cached[start..end].copy_from_slice(payload),
                _ => state.cached[start..end].fill(0),
            }
            if flags.has(CommandFlags::FUA) {
                let cached = state.cached[start..end].to_vec();
                state.durable[start..end].copy_from_slice(&cached);
            }
            simple(ErrorCode::None)
        }
        Command::Flush => {
            if state.flush_error == ErrorCode::None {
                state.durable = state.cached.clone();
            }
            simple(state.flush_error)
        }
        Command::Cache => simple(ErrorCode::None),
        Command::BlockStatus => {
            let run = |zero: bool| {
                let is_run = |block: &[u8]| block.iter().all(|&byte| byte == 0) == zero;
                state.cached[start..end].chunks(512).take_while(|block| is_run(block)).count() * 512
            };
            let (bytes, status) = match run(true) {
                0 => (run(false), Statuses::EMPTY),
                bytes => (bytes, Statuses::HOLE.with(Statuses::ZERO)),
            };
            let mut out = [0; BlockStatus::LEN];
            let bytes = bytes.min(end - start) as u32;
            let encoded = BlockStatus { context: 5, length: bytes, status }.encode(&mut out);
            assert_eq!(encoded, Ok(BlockStatus::LEN));
            chunk(ChunkKind::BlockStatus, cookie, true, &out)
        }
        _ => simple(ErrorCode::NotSupported),
    }
}

fn read_chunks(request: &Request, bytes: &[u8], config: &NbdConfig) -> Vec<u8> {
    let data = |at: usize, bytes: &[u8], is_last| {
        let offset = request.offset + at as u64;
        if bytes.iter().all(|&byte| byte == 0) {
            let hole = [&offset.to_be_bytes()[..], &(bytes.len() as u32).to_be_bytes()].concat();
            return chunk(ChunkKind::OffsetHole, request.cookie, is_last, &hole);
        }
        chunk(ChunkKind::OffsetData, request.cookie, is_last, &[&offset.to_be_bytes()[..], bytes].concat())
    };
    if !config.splits_reads || bytes.len() < 2 {
        return data(0, bytes, true);
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let end = chunk(ChunkKind::None, request.cookie, true, &[]);
    [data(first.len(), second, false), data(0, first, false), end].concat()
}

fn chunk(kind: ChunkKind, cookie: u64, is_last: bool, payload: &[u8]) -> Vec<u8> {
    let flags = if is_last { ChunkFlags::DONE } else { ChunkFlags::EMPTY };
    let header = ChunkHeader { flags, kind, cookie, length: payload.len() as u32 };
    [&header.encode()[..], payload].concat()
}
