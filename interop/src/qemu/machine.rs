//! Parts of a machine, and its command line.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::Vm;
use crate::{
    Result,
    debian::{self, Suite},
    guest::Image,
};

/// A machine to be booted.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) name: String,
    memory_mib: u32,
    cpus: u32,
    pub(super) kernel: Suite,
    firmware: Firmware,
    modules: Vec<String>,
    kernel_words: Vec<String>,
    arguments: Vec<String>,
    /// Controllers of other programs: their sockets, and their places in the order of boot devices.
    hosts: Vec<(PathBuf, Option<u32>)>,
    /// Other programs cannot map its memory.
    is_private: bool,
    pub(super) survives_reboot: bool,
}

/// The firmware that loads the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// QEMU loads the kernel of [`Image`]; the guest's agent answers.
    None,
    /// SeaBIOS boots from a disk.
    SeaBios,
    /// OVMF (UEFI) boots from a disk.
    Ovmf,
}

/// A USB controller of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// SuperSpeed, with streams; takes slower devices as well.
    Xhci,
    /// High speed.
    Ehci,
}

/// A drive of another program, over usbredir.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// The device's name in QEMU.
    pub id: String,
    /// The socket on which the other program listens. QEMU connects, and again when the connection is lost.
    pub socket: PathBuf,
    /// The controller.
    pub bus: Bus,
    /// Where QEMU writes a capture, if anywhere: ground truth that no guest can falsify.
    pub pcap: Option<PathBuf>,
    /// Its place in the order of boot devices.
    pub boot_index: Option<u32>,
}

impl Bus {
    fn path(self) -> &'static str {
        match self {
            Self::Xhci => "xhci.0",
            Self::Ehci => "ehci.0",
        }
    }
}

impl Redirect {
    /// A drive on the SuperSpeed controller.
    pub fn new(id: &str, socket: &Path) -> Self {
        Self { id: id.into(), socket: socket.into(), bus: Bus::Xhci, pcap: None, boot_index: None }
    }

    /// The name of its connection in QEMU.
    pub(super) fn channel(&self) -> String {
        format!("{}-channel", self.id)
    }

    /// The device's properties, for the command line and for QMP.
    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties =
            vec![("id", self.id.clone()), ("chardev", self.channel()), ("bus", self.bus.path().into())];
        properties.extend(self.pcap.iter().map(|path| ("pcap", path.display().to_string())));
        properties.extend(self.boot_index.iter().map(|index| ("bootindex", index.to_string())));
        properties
    }

    fn arguments(&self) -> [String; 4] {
        let socket = comma_doubled(&self.socket);
        let device: String = self.properties().iter().map(|(key, value)| format!(",{key}={value}")).collect();
        [
            "-chardev".into(),
            format!("socket,id={},path={socket},reconnect={RECONNECT_SECONDS}", self.channel()),
            "-device".into(),
            format!("usb-redir{device}"),
        ]
    }
}

impl Machine {
    /// A machine with 512 MiB, one processor and the modules that disks need. The name is that of its log.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            memory_mib: 512,
            cpus: 1,
            kernel: Suite::Installed,
            firmware: Firmware::None,
            modules: MODULES.iter().map(|&module| module.into()).collect(),
            kernel_words: Vec::new(),
            arguments: Vec::new(),
            hosts: Vec::new(),
            is_private: false,
            survives_reboot: false,
        }
    }

    /// Main memory in MiB. The tools take 100.
    #[must_use]
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// Processors. One is faster for most scenarios: emulation pays for each.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Boots the newest kernel of a Debian suite.
    #[must_use]
    pub fn kernel(mut self, suite: Suite) -> Self {
        self.kernel = suite;
        self
    }

    /// Boots from a disk through firmware instead of from the kernel of [`Image`].
    #[must_use]
    pub fn firmware(mut self, firmware: Firmware) -> Self {
        self.firmware = firmware;
        self
    }

    /// Loads these modules instead of the usual ones; leaving out `uas` leaves its disks without a driver.
    #[must_use]
    pub fn modules(mut self, modules: &[&str]) -> Self {
        self.modules = modules.iter().map(|&module| module.into()).collect();
        self
    }

    /// Puts an IOMMU before every device, and has the kernel use it: a program of the guest can be given a device.
    #[must_use]
    pub fn iommu(self) -> Self {
        // Where interrupts are remapped the kernel panics if its timer does not tick in time, as on a busy host.
        let machine = self.arguments(["-device".into(), "intel-iommu,intremap=on".into()]);
        machine.kernel_words("intel_iommu=on no_timer_check")
    }

    /// Adds words to the kernel's command line, such as `usb-storage.quirks=46f4:0003:u`.
    #[must_use]
    pub fn kernel_words(mut self, words: &str) -> Self {
        self.kernel_words.push(words.into());
        self
    }

    /// Lets the guest reboot. Otherwise a reboot, and so a panic, ends QEMU.
    #[must_use]
    pub fn survives_reboot(mut self) -> Self {
        self.survives_reboot = true;
        self
    }

    /// QEMU's own UAS drive with the image as its disk.
    #[must_use]
    pub fn uas_disk(self, id: &str, image: &Path) -> Self {
        self.usb_disk("usb-uas", id, Bus::Xhci, image)
    }

    /// QEMU's own BOT drive with the image as its disk.
    #[must_use]
    pub fn storage_disk(self, id: &str, image: &Path) -> Self {
        self.usb_disk("usb-storage", id, Bus::Xhci, image)
    }

    /// QEMU's BOT bridge with the image as a SCSI disk behind it.
    #[must_use]
    pub fn bot_disk(self, id: &str, image: &Path) -> Self {
        self.usb_disk("usb-bot", id, Bus::Xhci, image)
    }

    /// One of the three, by its name in QEMU (`usb-uas`, `usb-storage`, `usb-bot`), on a bus. Its id is its serial number as well.
    #[must_use]
    pub fn numbered_disk(self, kind: &str, id: &str, bus: Bus, image: &Path) -> Self {
        self.usb_disk(&format!("{kind},serial={id}"), id, bus, image)
    }

    /// A bridge of QEMU's (`usb-uas`, `usb-bot`) on the SuperSpeed controller, with a logical unit of each of these numbers. Their serial numbers
    /// are that of the bridge with the number behind, such as `ID-1`.
    #[must_use]
    pub fn units(mut self, kind: &str, id: &str, units: &[(u8, &Path)]) -> Self {
        let device = format!("{kind},id={id}-bridge,bus={},serial={id}", Bus::Xhci.path());
        let mut devices = vec![device];
        for (lun, image) in units {
            let unit = format!("{id}-{lun}");
            self = self.drive(&unit, image);
            devices.push(format!("scsi-hd,drive={unit},serial={unit},bus={id}-bridge.0,lun={lun}"));
        }
        self.arguments(devices.into_iter().flat_map(|device| ["-device".to_owned(), device]))
    }

    /// Has QEMU capture the transfers of one of its drives that was added before. The file is complete when the bridge
    /// `ID-bridge` is unplugged.
    #[must_use]
    pub fn captured(self, id: &str, file: &Path) -> Self {
        self.arguments(["-set".into(), format!("device.{id}-bridge.pcap={}", file.display())])
    }

    /// A drive of another program.
    #[must_use]
    pub fn redirect(self, redirect: &Redirect) -> Self {
        self.arguments(redirect.arguments())
    }

    /// A USB controller of another program over vfio-user, and its place in the order of boot devices. The machine runs in
    /// the newest QEMU, with memory that the other program can map.
    #[must_use]
    pub fn host(mut self, socket: &Path, boot_index: Option<u32>) -> Self {
        self.hosts.push((socket.into(), boot_index));
        self
    }

    /// Keeps the memory of a machine with such a controller to itself, as a user does who forgets to share it.
    #[must_use]
    pub fn private_memory(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// Anything else that QEMU understands.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(arguments);
        self
    }

    /// Starts the machine and waits until its guest answers.
    pub fn boot(&self) -> Result<Vm> {
        let mut vm = self.launch()?;
        vm.await_boot()?;
        Ok(vm)
    }

    /// Starts the machine and leaves it to itself.
    pub fn launch(&self) -> Result<Vm> {
        Vm::launch(self)
    }

    /// One of QEMU's drives, or one of its bridges with a SCSI disk behind. `model` may have properties.
    fn usb_disk(self, model: &str, id: &str, bus: Bus, image: &Path) -> Self {
        let device = format!("{model},id={id}-bridge,bus={}", bus.path());
        let devices = match model.split(',').next().unwrap_or_default() {
            "usb-storage" => vec![format!("{device},drive={id}")],
            _ => vec![device, format!("scsi-hd,drive={id},bus={id}-bridge.0")],
        };
        let devices = devices.into_iter().flat_map(|device| ["-device".to_owned(), device]);
        self.drive(id, image).arguments(devices)
    }

    fn drive(self, id: &str, image: &Path) -> Self {
        // A node outlives its device, so that the disk can be pulled out and plugged in again. The image may
        // be looked at from outside while the machine runs: no lock.
        let file = format!("file.driver=file,file.filename={},file.locking=off", comma_doubled(image));
        self.arguments(["-blockdev".into(), format!("driver=raw,node-name={id},discard=unmap,{file}")])
    }

    /// The command line; sockets and logs are where [`Vm`] wants them.
    pub(super) fn command(&self, image: &Image, agent: &Path, qmp: &Path, console: &Path) -> Result<Command> {
        let mut command =
            if self.hosts.is_empty() { Command::new("qemu-system-x86_64") } else { newest_qemu()? };
        self.add_hosts(&mut command);
        command.args(["-accel", "tcg", "-nodefaults", "-display", "none"]);
        command.args(["-m", &self.memory_mib.to_string(), "-smp", &self.cpus.to_string()]);
        command.args(["-chardev", &format!("file,id=console,path={}", comma_doubled(console))]);
        command.args(["-serial", "chardev:console"]);
        command.args(["-chardev", &format!("socket,id=qmp,path={},server=on,wait=off", comma_doubled(qmp))]);
        command.args(["-mon", "chardev=qmp,mode=control"]);
        command
            .args(["-chardev", &format!("socket,id=agent,path={},server=on,wait=off", comma_doubled(agent))]);
        command.args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=agent"]);
        command.args(["-device", "qemu-xhci,id=xhci,p2=8,p3=8", "-device", "usb-ehci,id=ehci"]);
        if !self.survives_reboot {
            command.arg("-no-reboot");
        }
        match self.firmware {
            Firmware::None => {
                command.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.initramfs);
                command.args(["-append", &self.kernel_line()]);
            }
            Firmware::SeaBios => {}
            Firmware::Ovmf => {
                command.args(["-bios", "/usr/share/ovmf/OVMF.fd"]);
            }
        }
        // QEMU 10 has milliseconds in its place.
        let seconds = format!("reconnect={RECONNECT_SECONDS}");
        let milliseconds = format!("reconnect-ms={}", 1000 * RECONNECT_SECONDS);
        command.args(self.arguments.iter().map(|argument| match self.hosts.is_empty() {
            true => argument.clone(),
            false => argument.replace(&seconds, &milliseconds),
        }));
        Ok(command)
    }

    /// The board, with the controllers of other programs and memory to share with them.
    fn add_hosts(&self, command: &mut Command) {
        if self.hosts.is_empty() {
            command.args(["-machine", "q35"]);
            return;
        }
        if self.is_private {
            command.args(["-machine", "q35"]);
        } else {
            let memory = format!("memory-backend-memfd,id=memory,size={}M,share=on", self.memory_mib);
            command.args(["-object", &memory, "-machine", "q35,memory-backend=memory"]);
        }
        for (socket, boot_index) in &self.hosts {
            let socket = serde_json::json!({ "type": "unix", "path": socket });
            let mut device = serde_json::json!({ "driver": "vfio-user-pci", "socket": socket });
            if let Some(index) = boot_index {
                device["bootindex"] = (*index).into();
            }
            command.args(["-device", &device.to_string()]);
        }
    }

    /// A panic reboots at once, which QEMU takes for the end unless the machine survives reboots.
    fn kernel_line(&self) -> String {
        let modules = self.modules.join(",");
        let words = self.kernel_words.join(" ");
        format!("console=ttyS0 quiet panic=-1 uaskit.modules={modules} {words}").trim_end().into()
    }
}

/// The newest QEMU, run by its own loader with its own libraries.
fn newest_qemu() -> Result<Command> {
    let root = debian::newest_qemu()?;
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).args(["--argv0", "qemu-system-x86_64"]);
    command.arg(root.join("usr/bin/qemu-system-x86_64"));
    for firmware in ["qemu", "seabios"] {
        command.arg("-L").arg(root.join("usr/share").join(firmware));
    }
    command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
    Ok(command)
}

/// The agent's port first; the controllers last, so that every driver is there when the disks appear.
const MODULES: &[&str] =
    &["virtio_pci", "virtio_console", "sd_mod", "sg", "usb-storage", "uas", "usbmon", "ehci-pci", "xhci-pci"];

/// How often QEMU tries again when the other program is not there.
pub(super) const RECONNECT_SECONDS: u32 = 1;

/// A path as QEMU's option parser wants it: a comma ends a value, two stand for one.
fn comma_doubled(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;

    fn line(machine: &Machine) -> String {
        let image = Image { kernel: "/k".into(), initramfs: "/i".into() };
        child::line_of(&machine.command(&image, Path::new("/a"), Path::new("/q"), Path::new("/c")).unwrap())
    }

    #[test]
    fn every_machine_is_emulated_in_software() {
        for firmware in [Firmware::None, Firmware::SeaBios, Firmware::Ovmf] {
            assert!(line(&Machine::new("m").firmware(firmware)).contains("-accel tcg"));
        }
    }

    #[test]
    fn a_redirected_drive_is_a_channel_and_a_device() {
        let mut redirect = Redirect::new("d0", Path::new("/run/a,b.sock"));
        redirect.pcap = Some("/tmp/d0.pcap".into());
        redirect.boot_index = Some(1);
        let line = line(&Machine::new("m").redirect(&redirect));
        let channel = "-chardev socket,id=d0-channel,path=/run/a,,b.sock,reconnect=1";
        let device = "-device usb-redir,id=d0,chardev=d0-channel,bus=xhci.0,pcap=/tmp/d0.pcap,bootindex=1";
        assert!(line.ends_with(&format!("{channel} {device}")), "{line}");
    }

    #[test]
    fn firmware_boots_without_a_kernel_of_ours() {
        let line = line(&Machine::new("m").firmware(Firmware::SeaBios));
        assert!(!line.contains("-kernel") && !line.contains("-initrd"), "{line}");
    }

    #[test]
    fn quirks_reach_the_kernels_command_line() {
        let line = line(&Machine::new("m").kernel_words("usb-storage.quirks=1:2:u").modules(&["uas", "sg"]));
        assert!(line.contains("uaskit.modules=uas,sg usb-storage.quirks=1:2:u"), "{line}");
    }
}
