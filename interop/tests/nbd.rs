//! Exports of real NBD servers as media: qemu-nbd with qcow2, nbdkit with memory, a file, a web server, errors and delays.
//!
//! The medium is driven in this process, as a drive drives it. Servers are killed in the middle of writes and started again.

use device::command::{CommandId, DataLocation};
use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest, MediumRequestId};
use drive::medium::{CompletedJob, Job, Medium, NbdMedium, flush};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use uaskit_interop::scratch::Scratch;
use uaskit_interop::{Result, debian};
use units::{BlockSize, ByteRange, Extent};

/// How long a server may take to listen, and a command to end.
const LIMIT: Duration = Duration::from_secs(30);

/// A server, killed when this is dropped.
struct Server {
    program: &'static str,
    arguments: Vec<String>,
    socket: PathBuf,
    child: Child,
}

impl Server {
    fn start(program: &'static str, socket: &Path, arguments: &[String]) -> Self {
        debian::ensure_nbd().expect("the packages can be installed");
        let child = spawn(program, arguments);
        let server = Self { program, arguments: arguments.to_vec(), socket: socket.into(), child };
        server.wait();
        server
    }

    /// A server in the foreground: nbdkit, with a plug-in and its parameters.
    fn nbdkit(scratch: &Scratch, arguments: &[&str]) -> Self {
        let socket = scratch.path("nbdkit.sock");
        let first = ["-f".to_owned(), "-U".to_owned(), socket.display().to_string()];
        let rest = arguments.iter().map(|argument| (*argument).to_owned());
        Self::start("nbdkit", &socket, &first.into_iter().chain(rest).collect::<Vec<_>>())
    }

    fn wait(&self) {
        let deadline = Instant::now() + LIMIT;
        while !self.socket.exists() {
            assert!(Instant::now() < deadline, "{} listens", self.program);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, and the same again.
    fn kill_and_restart(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
        // A socket of a server that was killed stays.
        let _ = fs::remove_file(&self.socket);
        self.child = spawn(self.program, &self.arguments);
        self.wait();
    }

    fn open(&self) -> NbdMedium {
        let address = format!("nbd+unix:///?socket={}", self.socket.display());
        let address = address.parse().expect("it is an address");
        NbdMedium::open(&address, BlockSize::B512, false).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn spawn(program: &str, arguments: &[String]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it is installed")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn job(op: MediumOp, number: u16, lba: u64, blocks: u64, buffer: Vec<u8>) -> Job {
    let id = MediumRequestId { command: CommandId { slot: number, generation: 1 }, part: 0 };
    let (extent, range) = (Extent::new(lba, blocks), ByteRange::new(0, buffer.len() as u32));
    Job { request: MediumRequest { id, unit: 0, op, extent, location: DataLocation::Buffer, range }, buffer }
}

/// Waits for a job, by the event descriptor.
fn wait(medium: &mut NbdMedium) -> CompletedJob {
    let deadline = Instant::now() + LIMIT;
    loop {
        medium.flush_submissions();
        if let Some(over) = medium.poll() {
            return over;
        }
        assert!(Instant::now() < deadline, "the command ends");
        let fd = medium.event_fd().expect("it has one");
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&second));
    }
}

fn run(medium: &mut NbdMedium, job: Job) -> (std::result::Result<MediumDone, MediumError>, Vec<u8>) {
    let over = medium.submit(job).unwrap_or_else(|| wait(medium));
    (over.completion.result, over.buffer)
}

fn read(medium: &mut NbdMedium, lba: u64, blocks: u64) -> Vec<u8> {
    let (result, bytes) = run(medium, job(MediumOp::Read, 0, lba, blocks, vec![0xee; blocks as usize * 512]));
    assert_eq!(result, Ok(MediumDone::Done), "block {lba}");
    bytes
}

fn write(medium: &mut NbdMedium, lba: u64, bytes: Vec<u8>) {
    let write = job(MediumOp::Write { fua: false }, 0, lba, bytes.len() as u64 / 512, bytes);
    assert_eq!(run(medium, write).0, Ok(MediumDone::Done), "block {lba}");
}

/// Writes, reads, unmaps, flushes.
fn works(medium: &mut NbdMedium) {
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 7 / 3) as u8).collect();
    write(medium, 2048, bytes.clone());
    assert!(read(medium, 2048, 2048) == bytes);
    let unmap = job(MediumOp::Unmap, 0, 2048, 1024, Vec::new());
    assert_eq!(run(medium, unmap).0, Ok(MediumDone::Done));
    assert!(read(medium, 2048, 1024).iter().all(|&byte| byte == 0));
    flush(medium, |_| {}).expect("it is flushed");
}

#[test]
fn nbdkit_in_memory_and_with_a_file() -> Result<()> {
    let scratch = Scratch::new()?;
    works(&mut Server::nbdkit(&scratch, &["memory", "64M"]).open());
    let image = scratch.image("image", 64 << 20)?;
    let other = Scratch::new()?;
    let server = Server::nbdkit(&other, &["file", &image.display().to_string()]);
    let mut medium = server.open();
    works(&mut medium);
    let status = job(MediumOp::Status, 0, 0, 1024, Vec::new());
    let (result, _) = run(&mut medium, status);
    assert!(matches!(result, Ok(MediumDone::Provisioning { mapped: false, .. })), "{result:?}");
    Ok(())
}

/// Sixteen writes are in flight whenever the server is killed.
#[test]
fn a_killed_qemu_nbd_with_qcow2_loses_nothing() -> Result<()> {
    let (scratch, kills) = (Scratch::on_disk()?, 6_u16);
    debian::ensure_nbd()?;
    let (image, socket) = (scratch.path("disk.qcow2"), scratch.path("qemu.sock"));
    let image = image.display().to_string();
    let made = Command::new("qemu-img").args(["create", "-q", "-f", "qcow2", &image, "64M"]).status();
    assert!(made.expect("it is installed").success());
    let arguments = ["-t", "-f", "qcow2", "--discard=unmap", "-k"].map(str::to_owned);
    let last = [socket.display().to_string(), image.clone()];
    let arguments: Vec<String> = arguments.into_iter().chain(last).collect();
    let mut server = Server::start("qemu-nbd", &socket, &arguments);
    let mut medium = server.open();
    works(&mut medium);
    let place = |round: u16, number: u16| u64::from((round * 16 + number) * 97 % 1500) * 64;
    for round in 0..kills {
        for number in 0..16 {
            let bytes = vec![(round * 16 + number) as u8 | 1; 64 * 512];
            let write = job(MediumOp::Write { fua: false }, number, place(round, number), 64, bytes);
            assert!(medium.submit(write).is_none());
        }
        medium.flush_submissions();
        server.kill_and_restart();
        for _ in 0..16 {
            let over = wait(&mut medium);
            assert_eq!(over.completion.result, Ok(MediumDone::Done), "round {round}");
        }
        if round % 2 == 1 {
            flush(&mut medium, |_| {}).expect("it is flushed");
        }
    }
    server.kill_and_restart();
    for (round, number) in (0..kills).flat_map(|round| (0..16).map(move |number| (round, number))) {
        let bytes = read(&mut medium, place(round, number), 64);
        assert!(bytes.iter().all(|&byte| byte == (round * 16 + number) as u8 | 1), "{round} {number}");
    }
    flush(&mut medium, |_| {}).expect("it is flushed");
    drop((medium, server));
    let checked = Command::new("qemu-img").args(["check", "-q", "-r", "leaks", &image]).status();
    assert!(checked.expect("it is installed").success());
    Ok(())
}

#[test]
fn errors_and_delays_are_those_of_the_server() -> Result<()> {
    let scratch = Scratch::new()?;
    let filters = ["--filter=delay", "--filter=error", "memory", "16M", "rdelay=300ms"];
    let flag = scratch.path("fails");
    let errors = [
        "error-pread=EIO".to_owned(),
        "error-pread-rate=100%".to_owned(),
        format!("error-file={}", flag.display()),
    ];
    let arguments: Vec<&str> = filters.into_iter().chain(errors.iter().map(String::as_str)).collect();
    let server = Server::nbdkit(&scratch, &arguments);
    let mut medium = server.open();
    let begun = Instant::now();
    assert!(read(&mut medium, 0, 8).iter().all(|&byte| byte == 0));
    assert!(begun.elapsed() >= Duration::from_millis(300));
    fs::write(&flag, b"").expect("there is room");
    let (failed, _) = run(&mut medium, job(MediumOp::Read, 0, 5, 1, vec![0; 512]));
    assert_eq!(failed, Err(MediumError::Unreadable { lba: units::Lba(5) }));
    fs::remove_file(&flag).expect("it is there");
    read(&mut medium, 5, 1);
    Ok(())
}

#[test]
fn an_image_on_a_web_server_is_read() -> Result<()> {
    let bytes: Vec<u8> = (0..4 << 20).map(|at: u32| (at / 512 * 31) as u8).collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it listens").port();
    let served = bytes.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let served = served.clone();
            std::thread::spawn(move || answer(stream, &served));
        }
    });
    let scratch = Scratch::new()?;
    let server = Server::nbdkit(&scratch, &["-r", "curl", &format!("http://127.0.0.1:{port}/disk.img")]);
    let mut medium = server.open();
    assert!(medium.is_read_only());
    for lba in [0, 77, 8000] {
        assert!(read(&mut medium, lba, 100) == bytes[lba as usize * 512..][..100 * 512], "block {lba}");
    }
    let (refused, _) = run(&mut medium, job(MediumOp::Write { fua: false }, 0, 0, 1, vec![1; 512]));
    assert_eq!(refused, Err(MediumError::WriteProtected));
    Ok(())
}

/// Answers requests of HTTP/1.1 for the bytes, or for a range of them.
fn answer(stream: std::net::TcpStream, bytes: &[u8]) {
    let Ok(mut out) = stream.try_clone() else { return };
    let (mut head, mut range) = (String::new(), None);
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("range")
        {
            let ends = value.trim().strip_prefix("bytes=").and_then(|value| value.split_once('-'));
            range = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        }
        if head.is_empty() {
            head = line;
        } else if line.is_empty() {
            let (status, body): (_, &[u8]) = match range.take() {
                Some((first, last)) => ("206 Partial Content", bytes.get(first..=last).unwrap_or_default()),
                None => ("200 OK", bytes),
            };
            let length = body.len();
            let header =
                format!("HTTP/1.1 {status}\r\nAccept-Ranges: bytes\r\nContent-Length: {length}\r\n\r\n");
            let body = if head.starts_with("HEAD") { &[] } else { body };
            if out.write_all(header.as_bytes()).and_then(|()| out.write_all(body)).is_err() {
                return;
            }
            head.clear();
        }
    }
}
