//! From arguments to a drive: media opened, units and device described.
//!
//! Names and serial numbers are derived from the image's path, so that a guest finds the same drive again. Limits are
//! chosen here, once, for all of the server. Left out: sockets.

use super::disc;
use super::floppy;
use super::recorded::Presented;
use crate::args::{
    DriveArguments, FaultArgument, LieArgument, ShortDataArgument, SpeedArgument, TransportArgument,
};
use crate::command_line::line;
use crate::failure::Failure;
use crate::in_use;
use crate::sanitize::shown;
use bus::Speed;
use conformance::record::UnitRecord;
use device::bot::ShortData;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig, UnitType, limits};
use device::{Device, DeviceConfig, Transports};
use drive::medium::{
    EmptySlot, FileMedium, FileOptions, Lie, LyingMedium, Medium, NbdAddress, NbdError, NbdMedium, NbdReason,
    OpenReason, RamMedium, create_image,
};
use drive::{Drive, FAULTS_MAX};
use inspect::block::is_same_file;
use inspect::tree::Tree;
use std::path::{Path, PathBuf};
use units::{BlockSize, ByteCount};

/// A CBW names sixteen units at most; UAS could more.
const UNITS_MAX: usize = 16;

/// The maximum current that a device may draw from a port of USB 2.0.
const BUS_POWER_USB2_MA: u16 = 500;

/// Bytes of command buffers held at once, whatever the depth.
const BUFFER_BYTES: u32 = 8 << 20;
/// Data of writes that a host with streams sends ahead of their commands, if each is of optimal length. QEMU takes 16
/// transfers on the command pipe and one on each stream, so that data of a full queue overtake its commands.
const AHEAD_BYTES: u32 = 16 << 20;

/// An image that was created just now. It is removed again unless it is kept: nothing can be in it yet.
#[derive(Debug, Default)]
pub(crate) struct CreatedImage(Option<PathBuf>);

impl CreatedImage {
    /// The drive is served: the image stays.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for CreatedImage {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Where that fails an empty image stays, as it would without trying.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The drive that the arguments describe, and the image that was created for it. Drives in memory differ by `address`.
pub(super) fn drive(arguments: &DriveArguments, address: &str) -> Result<(Drive, CreatedImage), Failure> {
    let identity = Identity::new(arguments, address);
    check_bus_power(arguments)?;
    disc::check(arguments)?;
    floppy::check(arguments)?;
    let presented = Presented::read(arguments)?;
    let presented = presented.as_ref();
    let config = device(arguments, &identity);
    let config = match presented {
        Some(presented) => presented.device(config)?,
        None => config,
    };
    let created = create(arguments)?;
    check_luns(arguments)?;
    let mut media = vec![lying(first_medium(arguments)?, arguments)?];
    for image in &arguments.luns {
        let create = line(&["truncate".as_ref(), "--size".as_ref(), "1G".as_ref(), image.as_os_str()]);
        let unit_type = disc::unit_type_by_name(image, arguments);
        media.push(file(image, arguments, unit_type, &format!("To create it: {create}"))?);
    }
    let units = media.iter().enumerate().map(|(number, medium)| {
        let config = unit(arguments, &identity, number, &**medium)?;
        let record = presented.and_then(|presented| presented.unit(number));
        Ok(LogicalUnit::new(LogicalUnitConfig {
            removable: record.map_or(config.removable, UnitRecord::is_removable),
            recorded: record.map(|record| Box::new(record.unit())),
            ..config
        }))
    });
    let units = units.collect::<Result<Vec<_>, Failure>>()?;
    let mut drive = Drive::new(Device::new(config, units), media);
    let faults = arguments
        .faults
        .iter()
        .filter_map(|fault| if let FaultArgument::Drive(fault) = fault { Some(*fault) } else { None });
    for fault in faults.chain(LieArgument::in_messages(&arguments.lies)) {
        if !drive.plan_fault(fault) {
            return Err(Failure::usage(format!("too many faults of one drive (maximum {FAULTS_MAX})")));
        }
    }
    Ok((drive, created))
}

/// Checks that the bus power can be reported: USB 2.0 allows 500 mA (clause 9.6.3), USB 3.2 900 mA.
fn check_bus_power(arguments: &DriveArguments) -> Result<(), Failure> {
    let power_ma = arguments.bus_power;
    if arguments.speed == SpeedArgument::Super || power_ma <= BUS_POWER_USB2_MA {
        return Ok(());
    }
    Err(Failure::usage(format!("--bus-power {power_ma} is too large at this --speed"))
        .because(format!("USB 2.0 allows {BUS_POWER_USB2_MA} mA"))
        .try_this("Lower --bus-power, or use --speed super."))
}

/// Checks how many logical units there are, and that no two of them write to one image.
fn check_luns(arguments: &DriveArguments) -> Result<(), Failure> {
    let count = 1 + arguments.luns.len();
    if count > UNITS_MAX {
        return Err(Failure::usage(format!("too many logical units: {count} (maximum {UNITS_MAX})"))
            .because("a Bulk-Only CBW has four bits for the LUN"));
    }
    let images: Vec<(usize, &Path)> = arguments
        .image
        .iter()
        .map(|image| (0, &**image))
        .chain((1..).zip(arguments.luns.iter().map(|image| &**image)))
        .collect();
    for (index, (lun, image)) in images.iter().enumerate() {
        let is_same = |before: &Path| before == *image || is_same_file(before, image);
        let writes = |lun| !arguments.read_only && disc::unit_type(arguments, lun) != UnitType::Optical;
        let same = images[..index].iter().find(|(_, before)| is_same(before));
        if let Some((before, _)) = same.filter(|(before, _)| writes(*before) || writes(*lun)) {
            return Err(Failure::usage(format!(
                "{} is named for LUN {before} and for LUN {lun}",
                shown(image)
            ))
            .because("two logical units cannot write to one image")
            .try_this("Name another image, or add --read-only."));
        }
    }
    Ok(())
}

/// Creates the image of LUN 0, if its size is given.
fn create(arguments: &DriveArguments) -> Result<CreatedImage, Failure> {
    let (Some(image), Some(size)) = (&arguments.image, arguments.size) else {
        return Ok(CreatedImage::default());
    };
    if remote(image)?.is_some() {
        return Err(Failure::usage(format!("cannot create {}", shown(image)))
            .because("--size creates files on this machine")
            .try_this("Create the image where its server is, and leave --size out."));
    }
    check_size("--size", size, arguments)?;
    create_image(image, size).map_err(|error| match error.reason {
        OpenReason::Exists if image.is_dir() => {
            Failure::usage(format!("cannot create {}", shown(image))).because("it is a folder")
        }
        OpenReason::Exists => Failure::refused(error.to_string()).try_this(
            "To serve it as it is, leave --size out; to create another image, choose another name.",
        ),
        _ => Failure::new(error.to_string()),
    })?;
    Ok(CreatedImage(Some(image.clone())))
}

/// Checks that a size is one of whole blocks.
fn check_size(option: &str, size: ByteCount, arguments: &DriveArguments) -> Result<(), Failure> {
    let block_bytes = u64::from(BlockSize::from(arguments.block_size).bytes());
    if size.0 < block_bytes {
        return Err(Failure::usage(format!("{option} {size} is too small"))
            .because(format!("it is less than one block of {block_bytes} bytes"))
            .try_this("Choose a larger size."));
    }
    if !size.0.is_multiple_of(block_bytes) {
        return Err(Failure::usage(format!("{option} {} is not a whole number of blocks", size.0))
            .because(format!("a block has {block_bytes} bytes"))
            .try_this(format!("Choose a multiple of {block_bytes}.")));
    }
    Ok(())
}

fn first_medium(arguments: &DriveArguments) -> Result<Box<dyn Medium + Send>, Failure> {
    if let Some(size) = arguments.ram {
        check_size("--ram", size, arguments)?;
        let block_size = BlockSize::from(arguments.block_size);
        // A drive that stores less than it announces needs no more memory.
        let medium =
            RamMedium::new(Lie::stored_of(&LieArgument::about_blocks(&arguments.lies), size), block_size)
                .map_err(|error| Failure::new(format!("cannot allocate --ram {size}")).because(error))?;
        return Ok(Box::new(medium));
    }
    let Some(image) = arguments.image.as_deref() else {
        let block_size = if arguments.floppy { BlockSize::B512 } else { BlockSize::B2048 };
        return Ok(Box::new(EmptySlot { block_size }));
    };
    match disc::unit_type(arguments, 0) {
        UnitType::Disk => {
            let how_to_create = "To create it, add --size SIZE (in --drive: size=SIZE).";
            file(image, arguments, UnitType::Disk, how_to_create)
        }
        UnitType::Floppy => floppy::open(image, arguments),
        UnitType::Optical => {
            let how_to_create = "To start with an empty drive, leave the image out and add --optical.";
            file(image, arguments, UnitType::Optical, how_to_create)
        }
    }
}

/// Wraps the medium of LUN 0 in the lies that are asked for.
fn lying(
    medium: Box<dyn Medium + Send>,
    arguments: &DriveArguments,
) -> Result<Box<dyn Medium + Send>, Failure> {
    let lies = LieArgument::about_blocks(&arguments.lies);
    if lies.is_empty() {
        return Ok(medium);
    }
    let size = arguments.ram.map(|size| medium.block_size().blocks_in(size));
    let announced = size.unwrap_or_else(|| medium.capacity());
    let liar = LyingMedium::new(medium, announced, &lies)
        .map_err(|error| Failure::usage("the drive cannot lie so").because(error))?;
    Ok(Box::new(liar))
}

/// Opens an image that nothing else uses. `how_to_create` is the advice if it does not exist.
pub(super) fn file(
    image: &Path,
    arguments: &DriveArguments,
    unit_type: UnitType,
    how_to_create: &str,
) -> Result<Box<dyn Medium + Send>, Failure> {
    if let Some(address) = remote(image)? {
        return export(&address, arguments, unit_type);
    }
    let options = options(arguments, unit_type);
    if !options.read_only {
        in_use::refuse_to_serve(image, &Tree::running())?;
    }
    let medium = FileMedium::open(image, &options).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error.reason {
            OpenReason::Missing => failure.try_this(how_to_create),
            OpenReason::Denied | OpenReason::ReadOnlyFileSystem if !options.read_only => {
                failure.try_this("To open it read-only, add --read-only.")
            }
            _ => failure,
        }
    })?;
    Ok(Box::new(medium))
}

/// The address that an image is named by, if it is one of another machine.
fn remote(image: &Path) -> Result<Option<NbdAddress>, Failure> {
    match image.to_str().filter(|text| NbdAddress::is_meant_by(text) && !image.exists()) {
        None => Ok(None),
        Some(text) => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(error) => Err(Failure::usage(format!("cannot open {}: {error}", shown(image)))),
        },
    }
}

/// Opens an export of an NBD server.
fn export(
    address: &NbdAddress,
    arguments: &DriveArguments,
    unit_type: UnitType,
) -> Result<Box<dyn Medium + Send>, Failure> {
    let FileOptions { block_size, read_only, .. } = options(arguments, unit_type);
    let medium = NbdMedium::open(address, block_size, read_only);
    let medium = medium.map_err(|error: NbdError| match error.reason {
        NbdReason::BlocksTooSmall { .. } if unit_type == UnitType::Disk => {
            Failure::usage(error.to_string()).try_this("Add --block-size 4096.")
        }
        _ => Failure::new(error.to_string()),
    })?;
    Ok(Box::new(medium))
}

/// How images are opened for a unit.
pub(crate) fn options(arguments: &DriveArguments, unit_type: UnitType) -> FileOptions {
    match unit_type {
        UnitType::Disk => FileOptions {
            block_size: arguments.block_size.into(),
            read_only: arguments.read_only,
            ..FileOptions::default()
        },
        UnitType::Floppy => FileOptions {
            block_size: floppy::block_size(arguments),
            read_only: arguments.read_only,
            ..FileOptions::default()
        },
        UnitType::Optical => FileOptions::of_disc(),
    }
}

/// How images are opened that are put into a drive later; discs are known by the unit.
pub(crate) fn options_of_insert(arguments: &DriveArguments) -> FileOptions {
    options(arguments, if arguments.floppy { UnitType::Floppy } else { UnitType::Disk })
}

fn unit(
    arguments: &DriveArguments,
    identity: &Identity,
    number: usize,
    medium: &dyn Medium,
) -> Result<LogicalUnitConfig, Failure> {
    let durable_state = medium.load_state().map_err(|error| {
        Failure::new(format!("cannot read the saved state of LUN {number}")).because(error).try_this(
            "It is in the .state file beside the image: repair that file, or remove it to reset the state.",
        )
    })?;
    let unit_type = disc::unit_type(arguments, number);
    let is_removable = unit_type != UnitType::Disk;
    Ok(LogicalUnitConfig {
        unit_type,
        vendor: arguments.vendor.clone(),
        product: arguments.product.clone(),
        // Four characters are all it has.
        revision: concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR")).into(),
        serial: identity.unit_serial(number),
        naa: identity.naa(number),
        block_size: medium.block_size(),
        capacity: medium.capacity(),
        transfer_bytes_optimal: match arguments.speed {
            SpeedArgument::Super => limits::transfer_bytes_optimal(AHEAD_BYTES, arguments.streams),
            SpeedArgument::High | SpeedArgument::Full => limits::TRANSFER_BYTES_OPTIMAL_MAX,
        },
        read_only: medium.is_read_only() || arguments.read_only,
        removable: arguments.removable || is_removable,
        rotational: arguments.rotational,
        temperature_c: LieArgument::temperature(&arguments.lies).or(arguments.temperature),
        loses_attentions: arguments.lies.contains(&LieArgument::LostAttention),
        durable: medium.keeps_state(),
        atomic_writes: medium.writes_atomically(),
        durable_state,
        recorded: None,
    })
}

fn device(arguments: &DriveArguments, identity: &Identity) -> DeviceConfig {
    let (vendor_id, product_id) = arguments.usb_id;
    DeviceConfig {
        speed: if arguments.floppy { Speed::Full } else { arguments.speed.into() },
        transports: match arguments.transport {
            TransportArgument::Cb => Transports::ControlBulk,
            TransportArgument::Cbi => Transports::Cbi,
            _ if arguments.floppy => Transports::Cbi,
            TransportArgument::Dual => Transports::Dual,
            TransportArgument::Uas => Transports::UasOnly,
            TransportArgument::Bot => Transports::BotOnly,
        },
        streams: arguments.streams,
        bus_power_ma: arguments.bus_power,
        bot_short_data: match arguments.bot_short_data {
            ShortDataArgument::Stall => ShortData::Stall,
            ShortDataArgument::Pad => ShortData::Pad,
            ShortDataArgument::ShortPacket => ShortData::ShortPacket,
        },
        vendor_id,
        product_id,
        release: 0x0100,
        manufacturer: arguments.vendor.clone(),
        product: arguments.product.clone(),
        serial: identity.serial.clone(),
        limits: Limits {
            // One more than any depth a host can reach, so that the task set is never the bottleneck.
            commands: arguments.streams.max(64) + 1,
            buffer_bytes: BUFFER_BYTES,
            // A command's buffer travels to the medium as a whole.
            segment_bytes: limits::TRANSFER_BYTES_MAX,
        },
        recorded: None,
    }
}

/// Serial numbers and names that stay the same for the same image.
struct Identity {
    serial: String,
    hash: u64,
}

impl Identity {
    fn new(arguments: &DriveArguments, address: &str) -> Self {
        let place: PathBuf = match &arguments.image {
            // An address is what it is, wherever it is used.
            Some(image) if matches!(remote(image), Ok(Some(_))) => image.clone(),
            Some(image) => std::path::absolute(image).unwrap_or_else(|_| image.clone()),
            // Memory has no path; the address distinguishes two such drives.
            None => PathBuf::from(address),
        };
        let hash = fnv_1a(place.as_os_str().as_encoded_bytes());
        let serial = arguments.serial.clone().unwrap_or_else(|| format!("{hash:016X}"));
        Self { serial, hash }
    }

    fn unit_serial(&self, number: usize) -> String {
        if number == 0 { self.serial.clone() } else { format!("{}-{number}", self.serial) }
    }

    /// NAA 3, locally assigned: four bits of format, sixty of ours (SPC-4 clause 7.8.6.6.3).
    fn naa(&self, number: usize) -> u64 {
        const LOCALLY_ASSIGNED: u64 = 3;
        const SPACE: u64 = 1 << 60;
        LOCALLY_ASSIGNED * SPACE + self.hash.wrapping_add(number as u64) % SPACE
    }
}

/// FNV-1a: a stable hash, which the standard library's is not from one version to the next.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The size of a unit, for people.
pub(super) fn capacity(unit: &LogicalUnit) -> ByteCount {
    unit.config.block_size.bytes_in(unit.config.capacity).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_of_units_differ_and_have_their_format() {
        let identity = Identity { serial: "S".into(), hash: u64::MAX };
        assert_eq!(identity.naa(0), 0x3fff_ffff_ffff_ffff);
        assert_eq!(identity.naa(1), 0x3000_0000_0000_0000);
        assert_eq!(identity.unit_serial(1), "S-1");
    }
}
