//! Configuration of a device: its transports, identity and limits, and the addresses of its endpoints.

use super::recorded::RecordedDevice;
use crate::bot::ShortData;
use crate::command::Limits;
use crate::lun::limits::TRANSFER_BYTES_MAX;
use alloc::string::String;
use bus::{Direction, EndpointAddress, Speed};

/// Bulk-in of BOT, data-in of UAS.
pub const DATA_IN: EndpointAddress = EndpointAddress::new(1, Direction::In).expect("1 is an endpoint number");
/// Bulk-out of BOT, data-out of UAS.
pub const DATA_OUT: EndpointAddress =
    EndpointAddress::new(2, Direction::Out).expect("2 is an endpoint number");
/// Status pipe of UAS, interrupt endpoint of CBI.
pub const STATUS: EndpointAddress = EndpointAddress::new(3, Direction::In).expect("3 is an endpoint number");
/// Command pipe of UAS.
pub const COMMAND: EndpointAddress =
    EndpointAddress::new(4, Direction::Out).expect("4 is an endpoint number");

/// bInterval of the interrupt endpoint of CBI, in milliseconds.
pub const INTERRUPT_INTERVAL_MS: u8 = 32;

/// The bConfigurationValue of the one configuration.
pub(super) const CONFIGURATION: u8 = 1;

/// Which transports the device offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transports {
    /// Alternate setting 0 is BOT, 1 is UAS.
    #[default]
    Dual,
    /// Alternate setting 0 is UAS.
    UasOnly,
    /// Alternate setting 0 is BOT.
    BotOnly,
    /// Alternate setting 0 is CBI with UFI, completion by interrupt; at full speed.
    Cbi,
    /// Alternate setting 0 is CBI with UFI, without an interrupt endpoint; at full speed.
    ControlBulk,
}

impl Transports {
    /// How many alternate settings the interface has.
    pub const fn alternates(self) -> u8 {
        match self {
            Self::Dual => 2,
            Self::UasOnly | Self::BotOnly | Self::Cbi | Self::ControlBulk => 1,
        }
    }

    /// The alternate setting that is BOT.
    pub const fn bot_alternate(self) -> Option<u8> {
        match self {
            Self::Dual | Self::BotOnly => Some(0),
            Self::UasOnly | Self::Cbi | Self::ControlBulk => None,
        }
    }

    /// The alternate setting that is UAS.
    pub const fn uas_alternate(self) -> Option<u8> {
        match self {
            Self::Dual => Some(1),
            Self::UasOnly => Some(0),
            Self::BotOnly | Self::Cbi | Self::ControlBulk => None,
        }
    }

    /// Whether the one alternate setting is CBI, with an interrupt endpoint or without.
    pub const fn is_cbi(self) -> bool {
        matches!(self, Self::Cbi | Self::ControlBulk)
    }
}

/// Configuration of a device, without its logical units.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The speed of its link.
    pub speed: Speed,
    /// Which transports it offers.
    pub transports: Transports,
    /// Streams of its bulk pipes at super speed: a power of two, 2..=256 (USB 3.2 table 9-29).
    pub streams: u16,
    /// Current that it may draw from the bus, in mA; zero for a self-powered device.
    pub bus_power_ma: u16,
    /// idVendor.
    pub vendor_id: u16,
    /// idProduct.
    pub product_id: u16,
    /// bcdDevice.
    pub release: u16,
    /// iManufacturer.
    pub manufacturer: String,
    /// iProduct.
    pub product: String,
    /// iSerialNumber: twelve hexadecimal digits or more (Bulk-Only Transport 1.0, clause 4.1.1).
    pub serial: String,
    /// How BOT ends data that are shorter than what the host asked for.
    pub bot_short_data: ShortData,
    /// How much it accepts at once.
    pub limits: Limits,
    /// The device whose descriptors it presents in place of those above; the transports and their endpoints are those of
    /// that device as well. Its speed must be the recorded one.
    pub recorded: Option<RecordedDevice>,
}

impl DeviceConfig {
    /// Returns the configuration of a self-powered device with both transports, 32 streams and up to 64 commands in
    /// flight. The vendor id is that of pid.codes for tests; the names are placeholders.
    pub fn new(speed: Speed) -> Self {
        Self {
            speed,
            transports: Transports::Dual,
            streams: 32,
            bus_power_ma: 0,
            vendor_id: 0x1209,
            product_id: 1,
            release: 0x0100,
            manufacturer: "uaskit".into(),
            product: "Virtual Drive".into(),
            serial: "0123456789AB".into(),
            bot_short_data: ShortData::default(),
            limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: TRANSFER_BYTES_MAX },
            recorded: None,
        }
    }
}
