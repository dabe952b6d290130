//! The running machine.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use serde_json::{Map, Value, json};

use super::{Machine, Qmp, Redirect, machine::RECONNECT_SECONDS};
use crate::{
    Error, Result,
    child::Leashed,
    guest::{Guest, Image},
    scratch,
    scratch::Scratch,
    wait,
};

/// A running machine. It is killed when it is dropped.
#[derive(Debug)]
pub struct Vm {
    /// The Linux in it.
    pub guest: Guest,
    /// QEMU's monitor.
    pub qmp: Qmp,
    qemu: Leashed,
    console: PathBuf,
    _sockets: Scratch,
}

impl Vm {
    pub(super) fn launch(machine: &Machine) -> Result<Self> {
        let image = Image::prepare(machine.kernel)?;
        let sockets = Scratch::new()?;
        let (agent, qmp) = (sockets.path("agent"), sockets.path("qmp"));
        let console = scratch::log(&format!("{}-console.log", machine.name))?;
        let complaints = scratch::log(&format!("{}-qemu.log", machine.name))?;
        let _ = fs::remove_file(&console);
        let stderr = fs::File::create(&complaints).map_err(Error::io("create QEMU's log"))?;
        let mut command = machine.command(&image, &agent, &qmp, &console)?;
        let qemu = Leashed::spawn(command.stdout(Stdio::null()).stderr(stderr))?;
        // QEMU that refuses its command line ends before its sockets open; its own words say why.
        let with_complaints = |error: Error| {
            Error::unexpected("start QEMU", format!("{error}\n{}", scratch::tail(&complaints)))
        };
        let mut vm = Self {
            qmp: Qmp::connect(&qmp).map_err(with_complaints)?,
            guest: Guest::connect(&agent, console.clone()).map_err(with_complaints)?,
            qemu,
            console,
            _sockets: sockets,
        };
        match vm.qemu.ended()? {
            None => Ok(vm),
            Some(status) => Err(with_complaints(Error::unexpected("QEMU", status))),
        }
    }

    /// Waits until the guest's agent answers, after boot or reboot.
    pub fn await_boot(&mut self) -> Result<String> {
        /// Three seconds on an idle machine.
        const LIMIT: Duration = Duration::from_secs(90);
        self.guest.await_ready(LIMIT)
    }

    /// Waits until the console shows `words`. For machines that boot something without an agent.
    pub fn await_console(&self, words: &str, limit: Duration) -> Result<()> {
        let evidence = || scratch::tail(&self.console);
        wait::until(&format!("{words:?} on the console"), limit, evidence, || {
            let shown = fs::read(&self.console).unwrap_or_default();
            Ok(String::from_utf8_lossy(&shown).contains(words).then_some(()))
        })
    }

    /// Plugs in a drive.
    pub fn attach(&mut self, redirect: &Redirect) -> Result<()> {
        let path = redirect.socket.display().to_string();
        let address = json!({ "type": "unix", "data": { "path": path } });
        let socket = json!({ "addr": address, "server": false, "reconnect": RECONNECT_SECONDS });
        let backend = json!({ "type": "socket", "data": socket });
        self.qmp.execute("chardev-add", json!({ "id": redirect.channel(), "backend": backend }))?;
        let mut device: Map<String, Value> = Map::new();
        device.insert("driver".into(), "usb-redir".into());
        for (key, value) in redirect.properties() {
            device.insert(key.into(), value.into());
        }
        self.qmp.execute("device_add", Value::Object(device)).map(drop)
    }

    /// Pulls out a USB device by its name in QEMU, without a word to the guest: surprise removal. The
    /// connection of a [`Redirect`] goes with it.
    pub fn detach(&mut self, id: &str) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(20);
        self.qmp.execute("device_del", json!({ "id": id }))?;
        let is_this = |gone: &Value| gone.get("device").and_then(Value::as_str) == Some(id);
        self.qmp.await_event("DEVICE_DELETED", LIMIT, is_this).map(drop)
    }

    /// Presses the reset button and waits until the guest is up again.
    pub fn reset(&mut self) -> Result<()> {
        self.qmp.execute("system_reset", json!({}))?;
        self.await_boot().map(drop)
    }

    /// Reboots the guest from inside, as `reboot` does after an update, and waits until it is up again.
    /// The machine must [survive reboots](Machine::survives_reboot).
    pub fn reboot(&mut self) -> Result<()> {
        self.guest.start("sleep 0.2; reboot -f")?;
        self.await_boot().map(drop)
    }

    /// QEMU's process id, to pin it to a processor.
    pub fn pid(&self) -> u32 {
        self.qemu.id()
    }
}
