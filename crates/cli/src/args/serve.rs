//! Arguments of `uaskit serve`, and those of a virtual drive that `bench` has as well.
//!
//! Left out: addresses and files, which are checked where they are opened.

use super::capture::CaptureArguments;
use super::lie::{LieArgument, lie};
use super::{quantity, together};
use bus::Speed;
use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use drive::Fault;
use drive::medium::NbdAddress;
use server::vfio_user::{NotAControllerFault, PlannedFault};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use units::{BlockSize, ByteCount};

/// Serve a disk image to a virtual machine as a USB drive with UAS and BOT.
///
/// Listens on a socket for QEMU; the guest's own driver uses the drive. Prints at the start the arguments to add to the QEMU
/// command. Ctrl-C, SIGTERM and SIGHUP flush to disk and exit; a second Ctrl-C exits immediately.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("export").required(true).multiple(true).args(["usbredir", "vfio_user"]), after_help = "Examples:
  uaskit serve disk.img --usbredir unix:/tmp/drive.sock
  uaskit serve --ram 1G --usbredir tcp:127.0.0.1:4000 --speed high
  uaskit serve new.img --size 64G --usbredir unix:drive.sock --streams 256 --rotational
  uaskit serve nbd://server/disk --usbredir unix:drive.sock
  uaskit serve disc.iso --usbredir unix:drive.sock
  uaskit serve floppy.img --floppy --usbredir unix:drive.sock
  uaskit serve --vfio-user unix:host.sock --drive image=a.img --drive image=b.img,speed=high
  uaskit serve disk.img --as box.toml --usbredir unix:drive.sock

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused for safety.")]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) drive: DriveArguments,
    /// Export the drive over usbredir: listen on this address for QEMU, unix:PATH or tcp:HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) usbredir: Option<String>,
    /// Export a USB controller with the drive over vfio-user: listen on this Unix socket for a hypervisor
    /// (QEMU 10.1 or newer, cloud-hypervisor).
    #[arg(long, value_name = "unix:PATH")]
    pub(crate) vfio_user: Option<String>,
    /// How doorbells and interrupter registers of the controller are accessed. `mapped` is faster, polls while the guest is
    /// busy, and relies on how Linux orders its accesses.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = DoorbellsArgument::Messages)]
    pub(crate) doorbells: DoorbellsArgument,
    /// Put a drive at a port of the controller; repeatable, instead of IMAGE and its options.
    /// KEY is image, ram, size, or the name of an option of a drive, such as speed, transport or streams;
    /// a comma within a value is doubled.
    #[arg(long = "drive", value_name = "KEY=VALUE,...", value_parser = drive_description)]
    pub(crate) drives: Vec<DriveArguments>,
    /// Accept control commands on this Unix socket (mode 0600); see `uaskit control`.
    #[arg(long, value_name = "unix:PATH")]
    pub(crate) control: Option<String>,
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

/// Properties of a drive: media, logical units, its USB device.
#[derive(Clone, Debug, Args)]
pub(crate) struct DriveArguments {
    /// Disk image or block device of LUN 0, or an export of an NBD server: nbd://HOST:PORT/EXPORT,
    /// nbd+unix:///EXPORT?socket=PATH.
    pub(crate) image: Option<PathBuf>,
    /// Keep LUN 0 in RAM, lost on exit.
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) ram: Option<ByteCount>,
    /// Create the image with this size; it must not exist.
    #[arg(long, value_name = "SIZE", value_parser = quantity::image_size)]
    pub(crate) size: Option<ByteCount>,
    /// Serve LUN 0 as a drive of CDs, DVDs and BDs with the image as its disc, or without a disc.
    /// Default if the name of the image ends in .iso.
    #[arg(long)]
    pub(crate) optical: bool,
    /// Serve LUN 0 as a USB floppy drive (CBI, UFI) at full speed with the image as its disk: 720K, 1.25M or 1.44M.
    #[arg(long)]
    pub(crate) floppy: bool,
    /// Serve images as disks, whatever their names end in.
    #[arg(long)]
    pub(crate) disk: bool,
    /// Images of LUN 1, LUN 2, …; name them after the image of LUN 0.
    #[arg(long = "lun", value_name = "IMAGE", num_args = 1..)]
    pub(crate) luns: Vec<PathBuf>,
    /// Present the enclosure of this record: its descriptors, pages and commands. See `uaskit record`.
    #[arg(long = "as", value_name = "FILE.toml")]
    pub(crate) record: Option<PathBuf>,
    /// Link speed.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super)]
    pub(crate) speed: SpeedArgument,
    /// Transports that the drive offers to the host.
    #[arg(long, value_enum, default_value_t = TransportArgument::Dual)]
    pub(crate) transport: TransportArgument,
    /// How BOT ends a data phase with less data than the host expects (case 5). BOT 1.0 requires stall or pad.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ShortDataArgument::Stall)]
    pub(crate) bot_short_data: ShortDataArgument,
    /// Streams of each pipe at SuperSpeed: a power of two from 2 to 256. Linux keeps at most STREAMS - 2 commands in flight.
    #[arg(long, default_value = "32", value_parser = quantity::streams)]
    pub(crate) streams: u16,
    /// Logical block size in bytes.
    #[arg(long, value_enum, value_name = "BYTES", default_value_t = BlockSizeArgument::B512)]
    pub(crate) block_size: BlockSizeArgument,
    /// Open images read-only and report write protection.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Report a removable medium; the host and `uaskit control` can eject and insert it.
    #[arg(long)]
    pub(crate) removable: bool,
    /// Report rotational media.
    #[arg(long)]
    pub(crate) rotational: bool,
    /// Report this temperature in degrees Celsius, 0 to 254, by LOG SENSE and SMART.
    /// Default: no temperature.
    #[arg(long, value_name = "CELSIUS", value_parser = quantity::within::<u8>(0, 254))]
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
    /// Report this bus power in mA, 0 to 900; 0 is self-powered.
    #[arg(long, value_name = "MILLIAMPERES", default_value = "0", value_parser = quantity::within::<u16>(0, 900))]
    pub(crate) bus_power: u16,
    /// Inject a fault once at the Nth occurrence (KIND@N), or at one in N on average (KIND/N:SEED); repeatable.
    /// Of a drive, at a status: stall-status, lose-status, wrong-tag, wrong-status, wrong-residue, phase-error, wrong-response,
    /// stale-sense, garbage-status; at data of a read: stall-data, lose-data, wrong-data.
    /// Of the controller with --vfio-user, at a transfer event: lose-event, repeat-event, unknown-stream (of streams), wrong-code,
    /// wrong-cycle, wrong-pointer, wrong-length; at a Stop Endpoint command: lose-stopped, late-stopped, lose-stop; at a
    /// doorbell of an endpoint: ignore-doorbell, hse, hce; at a port that comes up: dead-port.
    #[arg(long = "fault", value_name = "KIND@N")]
    pub(crate) faults: Vec<FaultArgument>,
    /// Lie, about the blocks of LUN 0 or in messages, to test a host; repeatable. wrap=SIZE stores blocks past SIZE over
    /// others, drop=SIZE loses them, keep-after-unmap keeps data after UNMAP, capacity-off-by-one announces one block too many,
    /// stuck=LBA has eight blocks return one old block. At a power loss: ignore-flush and ignore-fua lose what should be
    /// durable, torn-writes leaves blocks that are partly new. Of what the drive sends: wrong-data, wrong-tag, wrong-status,
    /// wrong-residue, phase-error, wrong-response (to task management), stale-sense (over UAS), garbage-status. lost-attention
    /// reports no unit attention, hot a temperature that is too high.
    #[arg(long = "lie", value_name = "NAME[=VALUE]", value_parser = lie)]
    pub(crate) lies: Vec<LieArgument>,
}

/// A fault of a drive, or of the controller before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultArgument {
    Drive(Fault),
    Controller(PlannedFault),
}

impl fmt::Display for FaultArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive(fault) => fault.fmt(f),
            Self::Controller(fault) => fault.fmt(f),
        }
    }
}

/// A text that names neither.
#[derive(Debug)]
pub(crate) struct NotAFault;

impl FromStr for FaultArgument {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        match (text.parse(), text.parse()) {
            (Ok(fault), _) => Ok(Self::Drive(fault)),
            (_, Ok(fault)) => Ok(Self::Controller(fault)),
            (Err(drive::NotAFault), Err(NotAControllerFault)) => Err(NotAFault),
        }
    }
}

impl fmt::Display for NotAFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use KIND@N or KIND/N:SEED, where N counts from 1 and KIND is one that --help names")
    }
}

impl std::error::Error for NotAFault {}

/// A drive described alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, override_usage = "KEY=VALUE,...")]
struct DriveDescription {
    #[command(flatten)]
    drive: DriveArguments,
}

/// Parses `KEY=VALUE,...`: keys are the names of options, a key without a value is a switch.
pub(crate) fn drive_description(text: &str) -> Result<DriveArguments, String> {
    let mut words = Vec::new();
    for part in parts_of(text) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (part.as_str(), None),
        };
        match (key, value) {
            ("image", Some(value)) => words.push(value.to_owned()),
            (_, Some(value)) => words.push(format!("--{key}={value}")),
            (_, None) => words.push(format!("--{key}")),
        }
    }
    // An image whose name begins with a hyphen is no option.
    let is_option = |word: &String| word.starts_with("--");
    let (mut options, images): (Vec<_>, Vec<_>) = words.into_iter().partition(is_option);
    if !images.is_empty() {
        options.push("--".to_owned());
        options.extend(images);
    }
    let mut command = DriveDescription::command();
    let parsed = command
        .try_get_matches_from_mut(options)
        .and_then(|matches| Ok((DriveDescription::from_arg_matches(&matches)?, matches)));
    let (parsed, matches) = parsed.map_err(|error| {
        let text = error.render().to_string();
        // The first paragraph: what is wrong, and which values are possible.
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let wrong = first.trim_start_matches("error: ").replace("--", "");
        match error.kind() {
            ErrorKind::UnknownArgument => format!("{wrong} [possible keys: {}]", keys()),
            _ => wrong,
        }
    })?;
    together::check("serve", &command, &matches)
        .map_err(|conflict| conflict.to_string().replace("--", "").replace("IMAGE", "image"))?;
    if parsed.drive.floppy {
        return Err("a floppy drive is exported over usbredir alone: use --floppy".into());
    }
    if parsed.drive.image.is_none() && parsed.drive.ram.is_none() && !parsed.drive.optical {
        return Err("name an image (image=PATH), a size of memory (ram=SIZE), or optical".into());
    }
    Ok(parsed.drive)
}

/// The keys of a description.
fn keys() -> String {
    let command = DriveDescription::command();
    let options = command.get_arguments().filter_map(|argument| argument.get_long());
    std::iter::once("image").chain(options).collect::<Vec<_>>().join(", ")
}

/// The same description with paths that do not depend on a folder.
pub(crate) fn with_absolute_paths(text: &str) -> String {
    let absolute = |path: &str| {
        if NbdAddress::is_meant_by(path) {
            return path.to_owned();
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        path.to_string_lossy().into_owned()
    };
    let parts = parts_of(text).into_iter().map(|part| {
        let part = match part.split_once('=') {
            Some((key @ ("image" | "lun" | "as"), path)) => format!("{key}={}", absolute(path)),
            _ => part,
        };
        part.replace(',', ",,")
    });
    parts.collect::<Vec<String>>().join(",")
}

/// Splits at commas that are not doubled.
fn parts_of(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let is_separator = sign == ',' && signs.next_if_eq(&',').is_none();
        match parts.last_mut() {
            Some(part) if !is_separator => part.push(sign),
            _ => parts.push(String::new()),
        }
    }
    parts
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoorbellsArgument {
    /// Each access is a message; an idle guest costs nothing.
    Messages,
    /// The guest stores to shared memory, which uaskit polls.
    Mapped,
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

impl From<SpeedArgument> for Speed {
    fn from(argument: SpeedArgument) -> Self {
        match argument {
            SpeedArgument::Super => Self::Super,
            SpeedArgument::High => Self::High,
            SpeedArgument::Full => Self::Full,
        }
    }
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
    #[value(alias = "both")]
    Dual,
    /// UAS alone.
    Uas,
    /// BOT alone.
    Bot,
    /// With --floppy: Control/Bulk/Interrupt, completion by interrupt. Its default.
    Cbi,
    /// With --floppy: Control/Bulk, without an interrupt endpoint.
    Cb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShortDataArgument {
    /// STALL Bulk-In after the data.
    Stall,
    /// Pad with zeros up to what the host expects, at most 64 KiB; else STALL.
    Pad,
    /// End with a short packet and no STALL, as many USB sticks do.
    ShortPacket,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_described_by_its_options() {
        let drive = drive_description("image=a,,b.img,speed=high,read-only").unwrap();
        assert_eq!(drive.image, Some(PathBuf::from("a,b.img")));
        assert_eq!((drive.speed, drive.read_only), (SpeedArgument::High, true));
        assert_eq!(drive_description("ram=1G,streams=256").unwrap().streams, 256);
        assert_eq!(drive.vendor, "uaskit");
        let drive = drive_description("ram=1G,transport=bot").unwrap();
        assert_eq!((drive.image, drive.transport), (None, TransportArgument::Bot));
        let drive = drive_description("ram=1G,transport=both").unwrap();
        assert_eq!(drive.transport, TransportArgument::Dual);
    }

    #[test]
    fn paths_of_a_description_become_absolute() {
        let text = "image=/a,,b.img,lun=/c.img,as=/d.toml,speed=high";
        assert_eq!(with_absolute_paths(text), text);
        assert!(with_absolute_paths("image=a,,b.img").ends_with("/a,,b.img"));
    }

    #[test]
    fn a_description_that_says_too_little_or_too_much_is_refused() {
        for (text, wrong) in [
            ("", "name an image"),
            ("speed=high", "name an image"),
            ("image=a,image=b", "unexpected"),
            ("image=a,ram=1G", "image cannot be combined with ram"),
            ("image=a,speed=slow", "'slow' for 'speed <SPEED>' [possible values: super, high, full]"),
            (
                "image=a,colour=red",
                "unexpected argument 'colour' found [possible keys: image, ram, size, optical, floppy, disk, lun, ",
            ),
            ("image=a,read-only=yes", "unexpected value 'yes'"),
        ] {
            let error = drive_description(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
