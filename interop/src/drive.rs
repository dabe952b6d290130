//! `uaskit serve` in a separate process, as a user starts it, and ways to kill, freeze and restart it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal};

use crate::{
    Error, Result, child,
    child::Leashed,
    qemu::{Bus, Machine, Redirect},
    scratch,
    scratch::Scratch,
    wait,
};

/// A served drive. The server is killed when this is dropped.
#[derive(Debug)]
pub struct Drive {
    name: String,
    /// The option of the export.
    export: &'static str,
    arguments: Vec<String>,
    socket: PathBuf,
    log: PathBuf,
    server: Leashed,
    _place: Scratch,
}

/// A drive of ours: its name, which is its serial number as well; the controller; the arguments of `uaskit serve`.
pub type Ours = (&'static str, Bus, &'static [&'static str]);

/// Starts drives of ours with so much memory each, such as `64M`, and plugs them into a machine.
pub fn serve_all(mut machine: Machine, ours: &[Ours], memory: &str) -> Result<(Machine, Vec<Drive>)> {
    let mut drives = Vec::new();
    for (name, bus, arguments) in ours {
        let drive = Drive::serve(name, &[&["--ram", memory], *arguments].concat())?;
        let mut redirect = drive.plug();
        redirect.bus = *bus;
        machine = machine.redirect(&redirect);
        drives.push(drive);
    }
    Ok((machine, drives))
}

impl Drive {
    /// Starts `uaskit serve ARGUMENTS --serial NAME --usbredir unix:…` and waits until it listens.
    pub fn serve(name: &str, arguments: &[&str]) -> Result<Self> {
        Self::start(name, "--usbredir", &[arguments, &["--serial", name]].concat())
    }

    /// Starts `uaskit serve ARGUMENTS --usbredir unix:…` with a record, which has the serial number.
    pub fn serve_as(name: &str, arguments: &[&str]) -> Result<Self> {
        Self::start(name, "--usbredir", arguments)
    }

    /// Starts `uaskit serve ARGUMENTS --vfio-user unix:…` and waits until it listens: a USB controller with drives.
    pub fn serve_host(name: &str, arguments: &[&str]) -> Result<Self> {
        Self::start(name, "--vfio-user", arguments)
    }

    fn start(name: &str, export: &'static str, arguments: &[&str]) -> Result<Self> {
        let place = Scratch::new()?;
        let socket = place.path("socket");
        let log = scratch::log(&format!("{name}-drive.log"))?;
        let _ = fs::remove_file(&log);
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let server = start(&arguments, export, &socket, &log)?;
        Ok(Self { name: name.into(), export, arguments, socket, log, server, _place: place })
    }

    /// The drive as a device for QEMU, on the SuperSpeed controller.
    pub fn plug(&self) -> Redirect {
        Redirect::new(&self.name, &self.socket)
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the output so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Memory that the server has occupied at most since it was started, in bytes (`VmHWM`).
    pub fn most_resident_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.server.id());
        let status = fs::read_to_string(&path).map_err(Error::io(format!("read {path}")))?;
        most_resident_bytes(&status).ok_or_else(|| Error::unexpected(format!("read {path}"), status))
    }

    /// Ends the server as Ctrl-C does, and waits for it; returns its exit status as text.
    pub fn interrupt(&mut self) -> Result<String> {
        const LIMIT: Duration = Duration::from_secs(20);
        self.signal(Signal::INT)?;
        let log = &self.log;
        wait::until("the server to end", LIMIT, || scratch::tail(log), || self.server.ended())
    }

    /// Ends the server as a crash does: SIGKILL, nothing flushed.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Stops the server in its tracks: it holds its connection and answers nothing.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Starts the server again, with the same arguments and on the same socket, after it has ended or not.
    pub fn restart(&mut self) -> Result<()> {
        self.server.kill();
        self.server = start(&self.arguments, self.export, &self.socket, &self.log)?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::unexpected("signal the server", "it has no process id"))?;
        rustix::process::kill_process(pid, signal)
            .map_err(|errno| Error::Io { what: "signal the server".into(), source: errno.into() })
    }
}

fn start(arguments: &[String], export: &str, socket: &Path, log: &Path) -> Result<Leashed> {
    const LIMIT: Duration = Duration::from_secs(20);
    let opened = fs::OpenOptions::new().create(true).append(true).open(log);
    let output = opened.map_err(Error::io(format!("open {}", log.display())))?;
    let errors = output.try_clone().map_err(Error::io("share a log"))?;
    let mut command = Command::new(binary()?);
    command.arg("serve").args(arguments).arg(export).arg(format!("unix:{}", socket.display()));
    let mut server = Leashed::spawn(command.stdout(output).stderr(Stdio::from(errors)))?;
    let evidence = || scratch::tail(log);
    wait::until("the drive to listen", LIMIT, evidence, || match server.ended()? {
        Some(status) => Err(Error::unexpected("serve a drive", format!("{status}\n{}", scratch::tail(log)))),
        // Trying to connect would make us its one client.
        None => {
            Ok(fs::read_to_string("/proc/net/unix").is_ok_and(|table| listens(&table, socket)).then_some(()))
        }
    })?;
    Ok(server)
}

/// Where `uaskit` is: `$UASKIT_BIN`, or built here in release mode.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("UASKIT_BIN") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--quiet", "--package", "uaskit"]).current_dir(scratch::workspace());
    child::output_within(child::BUILD_LIMIT, &mut build)?;
    Ok(scratch::target().join("release/uaskit"))
}

/// Where a trial program of `crates/usb/examples` is, built here in release mode.
pub fn example(name: &str) -> Result<PathBuf> {
    example_of("uaskit-usb", name)
}

/// Where an example of a package is, built here in release mode.
pub fn example_of(package: &str, name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--quiet", "--package", package, "--example", name]);
    child::output_within(child::BUILD_LIMIT, build.current_dir(scratch::workspace()))?;
    Ok(scratch::target().join("release/examples").join(name))
}

/// Whether the kernel's table of Unix sockets shows a listener on that path.
fn listens(table: &str, socket: &Path) -> bool {
    /// `__SO_ACCEPTCON` of include/linux/net.h, as the Flags column prints it.
    const LISTENING: &str = "00010000";
    let socket = socket.to_string_lossy();
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(3) == Some(&LISTENING) && words.get(7) == Some(&socket.as_ref())
    })
}

/// `VmHWM` of `/proc/PID/status`, which counts in kB and means KiB.
fn most_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_listening_socket_is_seen_without_connecting_to_it() {
        let place = Scratch::new().expect("a temporary directory");
        let socket = place.path("socket");
        let table = || fs::read_to_string("/proc/net/unix").expect("readable");
        assert!(!listens(&table(), &socket));
        let listener = UnixListener::bind(&socket).expect("bound");
        assert!(listens(&table(), &socket));
        drop(listener);
        assert!(!listens(&table(), &socket));
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(most_resident_bytes("VmHWM:\t    8192 kB\nVmRSS:\t 4096 kB\n"), Some(8_388_608));
        assert_eq!(most_resident_bytes("Name:\tgone\n"), None);
    }
}
