//! The arguments of subcommands that have no module of arguments beside them.
//!
//! One description for parsing, help, completions and man pages. What can be checked on one argument alone is checked
//! here; what depends on the world (files, addresses) is checked where it is used.

use crate::quantity;
use crate::recorder::CaptureArguments;
use clap::{Args, Subcommand, ValueEnum};
use drive::Fault;
use std::ffi::OsString;
use std::path::PathBuf;
use units::{BlockSize, ByteCount};

/// Serve a disk image to a virtual machine as a USB drive with UAS and BOT.
///
/// The drive waits for QEMU on a socket, and the guest's own driver uses it. The arguments printed
/// at the start can be pasted to the QEMU command. Ctrl-C, SIGTERM and SIGHUP flush to disk and
/// exit; a second Ctrl-C exits immediately.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit serve disk.img --usbredir unix:/tmp/drive.sock
  uaskit serve --ram 1G --usbredir tcp:127.0.0.1:4000 --speed high
  uaskit serve new.img --size 64G --usbredir unix:drive.sock --streams 256 --rotational

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused for safety.")]
pub(crate) struct ServeArguments {
    /// Disk image or block device of LUN 0.
    #[arg(conflicts_with = "ram", required_unless_present = "ram")]
    pub(crate) image: Option<PathBuf>,
    /// Address to listen on for QEMU: unix:PATH or tcp:HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) usbredir: String,
    /// Keep LUN 0 in RAM, lost on exit.
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) ram: Option<ByteCount>,
    /// Create the image with this size; it must not exist.
    #[arg(long, value_name = "SIZE", value_parser = quantity::image_size, conflicts_with = "ram")]
    pub(crate) size: Option<ByteCount>,
    /// Images of further logical units, LUN 1 and up, named after that of LUN 0.
    #[arg(long = "lun", value_name = "IMAGE", num_args = 1..)]
    pub(crate) luns: Vec<PathBuf>,
    /// Link speed.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super)]
    pub(crate) speed: SpeedArgument,
    /// Transports that the drive offers.
    #[arg(long, value_enum, default_value_t = TransportArgument::Dual)]
    pub(crate) transport: TransportArgument,
    /// How BOT ends data that are shorter than the host asked for. The standard requires a STALL or padding.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ShortDataArgument::Stall)]
    pub(crate) bot_short_data: ShortDataArgument,
    /// Streams of each pipe at SuperSpeed: a power of two from 2 to 256.
    /// Linux keeps up to this number less 2 commands in flight.
    #[arg(long, default_value = "32", value_parser = quantity::streams)]
    pub(crate) streams: u16,
    /// Logical block size in bytes.
    #[arg(long, value_enum, value_name = "BYTES", default_value_t = BlockSizeArgument::B512)]
    pub(crate) block_size: BlockSizeArgument,
    /// Open images read-only and report write protection.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Report a removable medium, and allow to eject and insert it.
    #[arg(long)]
    pub(crate) removable: bool,
    /// Report rotational media.
    #[arg(long)]
    pub(crate) rotational: bool,
    /// Report this temperature in degrees Celsius, 0 to 254, by LOG SENSE and SMART.
    /// Default: no temperature.
    #[arg(long, value_name = "CELSIUS", value_parser = clap::value_parser!(u8).range(..=254))]
    pub(crate) temperature: Option<u8>,
    /// T10 vendor identification, at most 8 characters.
    #[arg(long, default_value = "uaskit", value_parser = quantity::text::<8>)]
    pub(crate) vendor: String,
    /// Product identification, at most 16 characters.
    #[arg(long, default_value = "Virtual Drive", value_parser = quantity::text::<16>)]
    pub(crate) product: String,
    /// Serial number. Default: derived from the path of the image.
    #[arg(long, value_parser = quantity::serial)]
    pub(crate) serial: Option<String>,
    /// idVendor and idProduct, VID:PID in hexadecimal.
    #[arg(long, value_name = "VID:PID", default_value = "1209:0001", value_parser = quantity::usb_id)]
    pub(crate) usb_id: (u16, u16),
    /// Accept control commands on this Unix socket (mode 0600); see `uaskit control`.
    #[arg(long, value_name = "unix:PATH")]
    pub(crate) control: Option<String>,
    /// Report this bus power in mA, 0 to 900; 0 is self-powered.
    #[arg(long, value_name = "MILLIAMPERES", default_value = "0", value_parser = clap::value_parser!(u16).range(0..=900))]
    pub(crate) bus_power: u16,
    /// Inject one fault at the Nth status or read-data transfer; repeatable.
    /// KIND is stall-status, lose-status, stall-data or lose-data.
    #[arg(long = "fault", value_name = "KIND@N")]
    pub(crate) faults: Vec<Fault>,
    #[command(flatten)]
    pub(crate) capture: CaptureArguments,
    /// Allow addresses other than loopback. Every machine that reaches the port can read and write
    /// the image.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Print events as JSON, one per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Eject and insert media of a served drive, or print its status.
///
/// The drive accepts commands if it is served with `--control`. Media can be ejected and inserted
/// if it is served with
/// `--removable`. A host can prevent the removal of a medium that it uses; see `eject --force`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit serve card.img --removable --usbredir unix:drive.sock --control unix:drive.ctl
  uaskit control unix:drive.ctl eject
  uaskit control unix:drive.ctl insert other.img
  uaskit control unix:drive.ctl status --json

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ControlArguments {
    /// Control socket of the drive: unix:PATH.
    pub(crate) address: String,
    #[command(subcommand)]
    pub(crate) command: ControlCommandArgument,
    /// Print the reply as one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommandArgument {
    /// Print the status of the drive and its logical units.
    Status,
    /// Insert an image into a logical unit without a medium.
    Insert {
        /// Disk image or block device.
        image: PathBuf,
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
    },
    /// Flush and eject the medium of a logical unit.
    Eject {
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
        /// Eject even if the host prevents removal. Data that the host has not written yet are
        /// lost.
        #[arg(long)]
        force: bool,
    },
    /// Read the size of the image again, and report a change to the host.
    Resize {
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpeedArgument {
    /// 5 Gb/s: UAS with streams.
    Super,
    /// 480 Mb/s: UAS with READ READY and WRITE READY.
    High,
    /// 12 Mb/s.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlockSizeArgument {
    #[value(name = "512")]
    B512,
    #[value(name = "4096")]
    B4096,
}

impl From<BlockSizeArgument> for BlockSize {
    fn from(argument: BlockSizeArgument) -> Self {
        match argument {
            BlockSizeArgument::B512 => Self::B512,
            BlockSizeArgument::B4096 => Self::B4096,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportArgument {
    /// Both: the host chooses.
    Dual,
    /// UAS alone.
    Uas,
    /// BOT alone.
    Bot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShortDataArgument {
    /// STALL Bulk-In after the data.
    Stall,
    /// Send zeros up to what the host asked for, at most 64 KiB; else STALL.
    Pad,
    /// Send a short packet and no STALL, as many sticks do.
    ShortPacket,
}

/// Show the USB drives of this machine: transport, speed, disk, queue depth.
///
/// One line is one drive, below the bus and the hubs that it is plugged into. Nothing is changed, and root is not
/// needed. `uaskit why` says for one of them why it is on this transport and not on the other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit list
  uaskit list --all --json
  uaskit list --udev | sudo tee /etc/udev/rules.d/70-uaskit.rules
  uaskit list --record machine.tree

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ListArguments {
    /// Show every USB device, not drives alone.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the udev rule that lets the user at the console open these drives.
    #[arg(long, conflicts_with_all = ["all", "json", "record"])]
    pub(crate) udev: bool,
    /// Write what `list` and `why` read of this machine into a file, without serial numbers, to be sent to others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "json"])]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}

/// Say why a USB drive is on UAS, on BOT, or on nothing, and what can be done about it.
///
/// Asks what Linux asks, in the same order, and shows for each question what was read and where. Looks at link, power,
/// serial numbers, TRIM, SMART and resets as well. Nothing is changed; the output names what only root can read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit why
  uaskit why /dev/sdb
  uaskit why 2-1.4 --json
  sudo uaskit why 174c:55aa
  uaskit why --from dmesg.txt lsusb-t.txt
  dmesg | uaskit why --from - --markdown
  uaskit why --simulate geerling

Exit codes: 0 ok, 1 failed, 2 usage, 4 unknown: the report lacks what decides.")]
pub(crate) struct WhyArguments {
    /// A port (2-1.4), a disk (/dev/sdb), or an id (174c:55aa); every drive unless given.
    pub(crate) drive: Option<OsString>,
    /// Ask it of parts that you do not own: a setup of `uaskit compare`, by name or as a file. UAS or not, and what it would bring.
    #[arg(long, value_name = "SETUP", conflicts_with_all = ["drive", "log", "from"])]
    pub(crate) simulate: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the kernel's log from a file, as dmesg or journalctl -k prints it. With --from it is that machine's.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print Markdown to paste into an issue or a forum.
    #[arg(long, conflicts_with_all = ["json", "simulate"])]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}

/// Which machine is looked at.
#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// Read a report instead of this machine: a file of `list --record`, output of dmesg, lsusb, lspci and the like, an
    /// archive or a directory of them, `-` for stdin. Several files are one report.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
}
