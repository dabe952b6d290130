//! What the kernel's log says about a port: resets, disconnects, errors, refusals.
//!
//! `/dev/kmsg` goes back to boot or to where the buffer has been overwritten, and is for root where
//! `kernel.dmesg_restrict` is set. A file that `dmesg` or `journalctl -k` wrote does as well.

use super::{Controller, UsbDevice};
use crate::tree::{Tree, Unread, log_of};
use std::cell::Cell;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use wire::Legible;

/// The log of the running kernel.
pub(super) const PATH: &str = "/dev/kmsg";

/// The lines of the log that are about USB storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLog {
    /// The file, as text.
    pub path: String,
    /// Lines that it has in all, as far as it was looked at; in a recorded machine those that were recorded.
    pub lines_read: usize,
    lines: Vec<String>,
}

/// How often the log tells of trouble at one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// `reset … USB device`: an error handler's last resort, and the normal end of a suspend.
    pub resets: usize,
    /// `USB disconnect`.
    pub disconnects: usize,
    /// Commands that `uas` gave up.
    pub aborts: usize,
    /// Errors while the device was being recognised.
    pub enumeration_errors: usize,
    /// Ports that were switched off by their hub, or did not come up: mostly the cable.
    pub link_losses: usize,
    /// Blocks that could not be read or written.
    pub io_errors: usize,
    /// Events of streams that the controller's driver did not know; the line names the controller alone.
    pub unknown_streams: usize,
    /// Too much current was drawn, or there is not enough.
    pub power: usize,
    /// One line of each kind, the last.
    pub examples: Vec<String>,
}

impl KernelLog {
    pub(super) fn read(tree: &Tree, path: &str) -> Result<Self, Unread> {
        Self::of(path.to_owned(), |is_wanted| tree.log(path, is_wanted))
    }

    pub(super) fn read_file(file: &Path) -> Result<Self, Unread> {
        let path = Legible(file.as_os_str().as_bytes()).to_string();
        Self::of(path, |is_wanted| log_of(file, is_wanted))
    }

    fn of(
        path: String,
        read: impl FnOnce(&dyn Fn(&str) -> bool) -> Result<Vec<String>, Unread>,
    ) -> Result<Self, Unread> {
        let lines_read = Cell::new(0);
        let is_wanted = |line: &str| {
            lines_read.set(lines_read.get() + usize::from(!line.trim().is_empty()));
            ["usb ", "uas", "usb-storage", "hub ", "xhci", " error, dev sd"]
                .iter()
                .any(|word| line.contains(word))
                && !["SerialNumber:", "ommand line:"].iter().any(|word| line.contains(word))
        };
        let lines = read(&is_wanted)?;
        Ok(Self { path, lines_read: lines_read.get(), lines })
    }

    /// Whether it says nothing about USB at all: a machine with a drive has such lines from its start on.
    pub const fn is_silent(&self) -> bool {
        self.lines.is_empty()
    }

    /// The last line about a device or its hub's port that contains `words`.
    pub fn last(&self, device: &UsbDevice, words: &str) -> Option<&str> {
        self.about(device).filter(|line| line.contains(words)).last()
    }

    /// The last line that contains `words`, about any device.
    pub fn last_anywhere(&self, words: &str) -> Option<&str> {
        self.lines.iter().map(String::as_str).rfind(|line| line.contains(words))
    }

    /// What went wrong at the port of a device, and with streams at a controller whose streams it uses.
    pub fn troubles(&self, device: &UsbDevice, streams_of: Option<&Controller>) -> Troubles {
        let mut troubles = Troubles::default();
        let mut examples: [Option<&str>; 8] = [None; 8];
        let controller = streams_of.map(|controller| format!(" {}: ", controller.name));
        let of_controller = self.lines.iter().map(String::as_str).filter(|line| {
            controller.as_ref().is_some_and(|name| line.contains(name)) && line.contains(UNKNOWN_STREAM)
        });
        for line in self.about(device).chain(of_controller) {
            let (count, example) = match Kind::of(line) {
                Some(Kind::Reset) => (&mut troubles.resets, 0),
                Some(Kind::Disconnect) => (&mut troubles.disconnects, 1),
                Some(Kind::Abort) => (&mut troubles.aborts, 2),
                Some(Kind::Enumeration) => (&mut troubles.enumeration_errors, 3),
                Some(Kind::Power) => (&mut troubles.power, 4),
                Some(Kind::Link) => (&mut troubles.link_losses, 5),
                Some(Kind::Blocks) => (&mut troubles.io_errors, 6),
                Some(Kind::Stream) => (&mut troubles.unknown_streams, 7),
                None => continue,
            };
            *count += 1;
            if let Some(example) = examples.get_mut(example) {
                *example = Some(line);
            }
        }
        troubles.examples = examples.into_iter().flatten().map(str::to_owned).collect();
        troubles
    }

    fn about<'a>(&'a self, device: &UsbDevice) -> impl Iterator<Item = &'a str> {
        let usb = format!("usb {}: ", device.port);
        let interface = format!(" {}:", device.port);
        // A port has another half of the other speed in the same socket, which a bad cable shows at as well.
        let halves = device.plugged.iter().flat_map(|port| {
            let own = port.path.rsplit('/').next();
            own.into_iter().chain(port.peer.as_deref()).map(|half| format!("usb {half}: "))
        });
        // `sd 6:0:0:0: [sda] … uas_eh_abort_handler` names the unit alone, `scsi host6: …` its SCSI host.
        let units = device.disks().flat_map(|disk| {
            let host = disk.address.split(':').next().unwrap_or_default();
            [
                format!("sd {}: ", disk.address),
                format!("scsi {}: ", disk.address),
                format!("scsi host{host}: "),
            ]
        });
        // The block layer names the disk alone, by the name that it has now.
        let names = device.disks().filter_map(|disk| disk.node.as_ref());
        let disks = names.map(|name| format!(" error, dev {name}, "));
        let words: Vec<String> =
            [usb, interface].into_iter().chain(halves).chain(units).chain(disks).collect();
        self.lines
            .iter()
            .map(String::as_str)
            .filter(move |line| words.iter().any(|words| line.contains(words)))
    }
}

/// What xhci-ring.c says of an event whose stream it has no ring for, with a slot and an endpoint; versions put their own
/// words before it.
const UNKNOWN_STREAM: &str = "for unknown stream ring";

enum Kind {
    Reset,
    Disconnect,
    Abort,
    Enumeration,
    Power,
    Link,
    Blocks,
    Stream,
}

impl Kind {
    fn of(line: &str) -> Option<Self> {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        if has(&["over-current", "insufficient available bus power", "not enough power"]) {
            Some(Self::Power)
        } else if line.contains(": reset ") && line.contains(" USB device") {
            Some(Self::Reset)
        } else if has(&["USB disconnect"]) {
            Some(Self::Disconnect)
        } else if has(&[
            "uas_eh_abort_handler",
            "uas_eh_device_reset_handler FAILED",
            "cmplt err",
            "uas_zap_pending",
        ]) {
            Some(Self::Abort)
        } else if has(&[
            "device descriptor read",
            "not accepting address",
            "not responding to setup address",
            "unable to enumerate",
            "can't set config",
        ]) {
            Some(Self::Enumeration)
        } else if has(&["disabled by hub (EMI?)", "Cannot enable.", "cannot enable.", "cannot reset (err"]) {
            Some(Self::Link)
        } else if line.contains(" error, dev ") {
            Some(Self::Blocks)
        } else if line.contains(UNKNOWN_STREAM) {
            Some(Self::Stream)
        } else {
            None
        }
    }
}
