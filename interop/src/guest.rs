//! The Linux that runs in the machine, and the conversation with it.
//!
//! [`Image`] is a Debian kernel and an initramfs of busybox and tools. Its init loads the modules that the
//! kernel command line names and leaves the rest to an agent, a shell script that takes commands from a
//! virtio serial port: [`Guest`] is the host's end. Commands run beside the agent, so that one which hangs in
//! the kernel (a drive that stopped answering is a scenario here) does not take the conversation with it.

mod channel;
mod disk;
mod image;
mod kernel;
mod log;
mod reply;

use std::{
    fs,
    io::Read,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use channel::Channel;
pub use disk::Disk;
pub use image::Image;
pub use log::KernelLog;
use reply::{Answer, Reply};

use crate::{Error, Result, scratch, scratch::Scratch, wait, wait::Deadline};

/// The host's end of the conversation with a booted guest.
#[derive(Debug)]
pub struct Guest {
    channel: Channel,
    console: PathBuf,
    last_id: u64,
}

/// Result of a command in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit status as the shell reports it: 128 + n after signal n.
    pub status: u8,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A command that runs in the guest while the host does something else.
#[derive(Debug)]
pub struct Job {
    id: u64,
    script: String,
}

impl Guest {
    /// Takes the port's socket; the guest need not be up yet.
    pub(crate) fn connect(socket: &Path, console: PathBuf) -> Result<Self> {
        let stream = wait::until("QEMU's agent socket", CONNECT_LIMIT, String::new, || {
            Ok(UnixStream::connect(socket).ok())
        })?;
        Ok(Self { channel: Channel::new(stream), console, last_id: 0 })
    }

    /// Waits until the agent of a booting guest answers, and returns its kernel release.
    pub fn await_ready(&mut self, limit: Duration) -> Result<String> {
        let deadline = Deadline::after(limit);
        loop {
            if let Reply::Ready { release } = self.next("the guest to boot", deadline)? {
                return Ok(release);
            }
        }
    }

    /// Runs a shell script to its end, for at most a minute. A failure of the script is not an error here.
    pub fn run(&mut self, script: &str) -> Result<Output> {
        self.run_within(RUN_LIMIT, script)
    }

    /// Like [`run`](Self::run), with a limit. A script that exceeds it is killed.
    pub fn run_within(&mut self, limit: Duration, script: &str) -> Result<Output> {
        let job = self.start(script)?;
        self.finish(job, limit)
    }

    /// Runs a script that must succeed, and returns its standard output.
    pub fn stdout_of(&mut self, script: &str) -> Result<String> {
        self.stdout_within(RUN_LIMIT, script)
    }

    /// Like [`stdout_of`](Self::stdout_of), with a limit.
    pub fn stdout_within(&mut self, limit: Duration, script: &str) -> Result<String> {
        let output = self.run_within(limit, script)?;
        if output.status == 0 {
            return Ok(output.stdout);
        }
        let Output { status, stdout, stderr } = output;
        Err(Error::Command {
            line: script.into(),
            status: format!("exit status {status} in the guest"),
            output: stdout + &stderr,
        })
    }

    /// Starts a script and leaves it running.
    pub fn start(&mut self, script: &str) -> Result<Job> {
        let id = self.request(&format!("start {{id}} {}\n", script.len()), script.as_bytes())?;
        Ok(Job { id, script: script.into() })
    }

    /// Waits for a started script, and kills one that exceeds the limit, as far as the kernel allows.
    pub fn finish(&mut self, job: Job, limit: Duration) -> Result<Output> {
        match self.poll(&job, limit)? {
            Some(output) => Ok(output),
            None => {
                let Job { id, script } = job;
                self.channel.send(format!("kill {id}\n").as_bytes()).map_err(Error::io("kill a command"))?;
                Err(Error::Timeout { what: format!("`{script}`"), limit, evidence: self.evidence() })
            }
        }
    }

    /// Waits for a started script; `None` when it still runs at the limit.
    pub fn poll(&mut self, job: &Job, limit: Duration) -> Result<Option<Output>> {
        // The guest's clock is coarse and slow: the host adds what a stalled machine may need to answer.
        let line = format!("wait {} {}\n", job.id, limit.as_secs());
        self.channel.send(line.as_bytes()).map_err(Error::io("ask after a command"))?;
        match self.answer(job.id, &job.script, limit + ANSWER_LIMIT)? {
            Answer::Running => Ok(None),
            Answer::Over { status, stdout, stderr } => Ok(Some(Output {
                status,
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            })),
            other => Err(Error::unexpected(format!("`{}`", job.script), format!("{other:?}"))),
        }
    }

    /// Copies a file of the host into the guest.
    pub fn push(&mut self, from: &Path, to: &str) -> Result<()> {
        let mut file = fs::File::open(from).map_err(Error::io(format!("open {}", from.display())))?;
        let mut chunk = Vec::new();
        let mut verb = "put";
        loop {
            chunk.clear();
            let limited = file.by_ref().take(CHUNK_BYTES).read_to_end(&mut chunk);
            limited.map_err(Error::io(format!("read {}", from.display())))?;
            if chunk.is_empty() && verb == "append" {
                return Ok(());
            }
            let id = self.request(&format!("{verb} {{id}} {} {to}\n", chunk.len()), &chunk)?;
            match self.answer(id, to, ANSWER_LIMIT)? {
                Answer::Stored => verb = "append",
                other => {
                    return Err(Error::unexpected(format!("write {to} in the guest"), format!("{other:?}")));
                }
            }
        }
    }

    /// Puts a program of the host on the guest's path, with the shared libraries that the guest lacks.
    pub fn install(&mut self, program: &Path) -> Result<()> {
        let place = Scratch::new()?;
        let stripped = place.path("program");
        // Debug information would be most of what goes through the guest's serial port.
        let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program).status();
        let is_stripped = strip.is_ok_and(|status| status.success());
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let inside = format!("/usr/bin/{name}");
        self.push(if is_stripped { &stripped } else { program }, &inside)?;
        for library in image::libraries_of(program) {
            let path = library.display().to_string();
            let directory = library.parent().unwrap_or(&library).display();
            if self.run(&format!("mkdir -p {directory}; test -e {path}"))?.status != 0 {
                self.push(&library, &path)?;
            }
        }
        self.stdout_of(&format!("chmod 755 {inside}")).map(drop)
    }

    /// Returns the bytes of a file in the guest.
    pub fn pull(&mut self, from: &str) -> Result<Vec<u8>> {
        let id = self.request(&format!("get {{id}} 0 {from}\n"), &[])?;
        match self.answer(id, from, RUN_LIMIT)? {
            Answer::File(bytes) => Ok(bytes),
            other => Err(Error::unexpected(format!("read {from} in the guest"), format!("{other:?}"))),
        }
    }

    /// The kernel's log since the last [`forget_log`](Self::forget_log), or since boot.
    pub fn dmesg(&mut self) -> Result<KernelLog> {
        self.stdout_of("dmesg").map(KernelLog::new)
    }

    /// Empties the kernel's log, so that the next look shows only what happens from here on.
    pub fn forget_log(&mut self) -> Result<()> {
        self.stdout_of("dmesg -c > /dev/null").map(drop)
    }

    /// The USB disks that the guest has now, in the order of their names.
    pub fn disks(&mut self) -> Result<Vec<Disk>> {
        let listed = self.stdout_of("sh /usr/share/interop/disks.sh")?;
        listed.lines().map(Disk::parse).collect()
    }

    /// Waits until the guest has `count` USB disks, with their capacity read.
    pub fn await_disks(&mut self, count: usize, limit: Duration) -> Result<Vec<Disk>> {
        let deadline = Deadline::after(limit);
        loop {
            let disks = self.disks()?;
            if disks.len() == count {
                return Ok(disks);
            }
            if deadline.remaining().is_none() {
                let evidence = format!("there are {disks:#?}\n{}", self.dmesg()?);
                return Err(Error::Timeout { what: format!("{count} USB disks"), limit, evidence });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the guest has a disk with logical unit `lun` of the USB device with that serial number, and has
    /// read its capacity.
    pub fn await_unit(&mut self, serial: &str, lun: u64, limit: Duration) -> Result<Disk> {
        let deadline = Deadline::after(limit);
        loop {
            let disks = self.disks()?;
            if let Some(disk) =
                disks.iter().find(|disk| disk.serial == serial && disk.lun == lun && disk.bytes > 0)
            {
                return Ok(disk.clone());
            }
            if deadline.remaining().is_none() {
                let evidence = format!("there are {disks:#?}\n{}", self.dmesg()?);
                return Err(Error::Timeout { what: format!("LUN {lun} of {serial}"), limit, evidence });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the only logical unit of the USB device with that serial number.
    pub fn await_disk(&mut self, serial: &str, limit: Duration) -> Result<Disk> {
        self.await_unit(serial, 0, limit)
    }

    /// Reads a few hundred blocks of a disk one after the other; the kernel gives a command up after two seconds.
    pub fn read_impatiently(&mut self, disk: &Disk) -> Result<()> {
        let Disk { name, .. } = disk;
        self.stdout_of(&format!(
            "echo 2 > /sys/block/{name}/device/timeout; dd if=/dev/{name} of=/dev/null bs=4k iflag=direct count=300"
        ))
        .map(drop)
    }

    /// Unbinds the kernel's USB controllers and binds them again, which enumerates all devices.
    /// A capture that is to be dissected needs this: the descriptors say which endpoint is which pipe.
    pub fn enumerate_again(&mut self) -> Result<()> {
        let script = "cd /sys/bus/pci/drivers && for device in [ex]hci*/0000:*; do \
            driver=${device%/*} address=${device#*/}; \
            echo $address > $driver/unbind && echo $address > $driver/bind || exit 1; done";
        self.stdout_of(script).map(drop)
    }

    /// Returns the last output of the guest on its console.
    pub fn evidence(&self) -> String {
        scratch::tail(&self.console)
    }

    /// Sends a request whose line has a place for the id.
    fn request(&mut self, line: &str, body: &[u8]) -> Result<u64> {
        self.last_id += 1;
        let line = line.replacen("{id}", &self.last_id.to_string(), 1);
        let sent = self.channel.send(line.as_bytes()).and_then(|()| self.channel.send(body));
        sent.map_err(Error::io("speak to the guest"))?;
        Ok(self.last_id)
    }

    /// The answer to the request of that id. Answers to requests that were given up are passed over.
    fn answer(&mut self, wanted: u64, what: &str, limit: Duration) -> Result<Answer> {
        let deadline = Deadline::after(limit);
        loop {
            match self.next(what, deadline)? {
                Reply::Answer { id, answer } if id == wanted => return Ok(answer),
                Reply::Answer { .. } => {}
                Reply::Ready { .. } => return Err(Error::unexpected(what, "the guest rebooted meanwhile")),
            }
        }
    }

    fn next(&mut self, what: &str, deadline: Deadline) -> Result<Reply> {
        self.channel
            .next(deadline)
            .map_err(|failure| failure.explain(what, deadline.limit(), &self.evidence()))
    }
}

/// For most commands: under emulation even a slow one ends sooner.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// For the agent itself to answer, on a host that is busy with other things.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// For QEMU to start and open its sockets.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// The agent's dd holds one chunk in memory.
const CHUNK_BYTES: u64 = 1 << 20;
