//! Device configuration and its transport, before time zero.

use super::enumerate::{ControlExchange, enumerate};
use crate::link::bulk::Endpoint;
use bus::Speed;
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use device::{ActiveTransport, Device};
use initiator::bot::BotConfig;
use initiator::uas::{TooFewStreams, UasConfig, UasEndpoints};
use initiator::{Bot, Timeouts, Turbo, TurboConfig, Uas};
use std::fmt;

/// A configured device and its transport.
#[derive(Debug)]
pub struct Plugged<T> {
    /// The host's transport.
    pub transport: T,
    /// The device.
    pub device: Device,
    /// Endpoints of the alternate setting.
    pub endpoints: Vec<Endpoint>,
    /// Control transfers of the enumeration.
    pub enumeration: Vec<ControlExchange>,
}

/// Why a device cannot be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugError {
    /// The device does not offer the transport.
    NotOffered,
    /// The device rejected a request.
    Refused,
    /// The device has too few streams.
    Streams(TooFewStreams),
}

/// Maximum burst of the device at SuperSpeed.
const BURST: u8 = 16;

/// Configures a device for UAS, with streams at SuperSpeed.
///
/// # Errors
/// If the device does not offer UAS or has too few streams.
pub fn uas(mut device: Device, depth: Option<u16>) -> Result<Plugged<Uas>, PlugError> {
    let alternate = device.config().transports.uas_alternate().ok_or(PlugError::NotOffered)?;
    let streams = device.config().speed.has_streams().then_some(device.config().streams);
    let enumeration = enumerate(&mut device, alternate)?;
    let endpoints = UasEndpoints { command: COMMAND, status: STATUS, data_in: DATA_IN, data_out: DATA_OUT };
    let timeouts = Timeouts::default();
    let config = UasConfig { interface: 0, alternate, endpoints, streams, depth, timeouts };
    let transport = Uas::new(config).map_err(PlugError::Streams)?;
    let endpoints = endpoints_of(&device);
    Ok(Plugged { transport, device, endpoints, enumeration })
}

/// Configures a device for BOT.
///
/// # Errors
/// If the device does not offer BOT.
pub fn bot(device: Device) -> Result<Plugged<Bot>, PlugError> {
    bulk_only(device, Bot::new)
}

/// Configures a device for BOT with a transport that packs adjacent requests.
///
/// # Errors
/// If the device does not offer BOT.
pub fn turbo(device: Device) -> Result<Plugged<Turbo>, PlugError> {
    bulk_only(device, |config| Turbo::new(TurboConfig::new(config)))
}

fn bulk_only<T>(mut device: Device, make: impl FnOnce(BotConfig) -> T) -> Result<Plugged<T>, PlugError> {
    let alternate = device.config().transports.bot_alternate().ok_or(PlugError::NotOffered)?;
    let enumeration = enumerate(&mut device, alternate)?;
    let timeouts = Timeouts::default();
    let config = BotConfig { interface: 0, alternate, bulk_in: DATA_IN, bulk_out: DATA_OUT, timeouts };
    let endpoints = endpoints_of(&device);
    Ok(Plugged { transport: make(config), device, endpoints, enumeration })
}

/// Returns the endpoints of the current alternate setting: none before configuration.
pub(super) fn endpoints_of(device: &Device) -> Vec<Endpoint> {
    let speed = device.config().speed;
    let burst = if speed == Speed::Super { BURST } else { 1 };
    let packet_bytes = speed.bulk_packet_bytes() as u16;
    let endpoint = |address, streams| Endpoint::bulk(address, packet_bytes, burst, streams);
    match device.transport() {
        ActiveTransport::None => Vec::new(),
        // Hosts of the simulator have no driver of floppy drives.
        ActiveTransport::Cbi { .. } => Vec::new(),
        ActiveTransport::Bot => vec![endpoint(DATA_IN, 0), endpoint(DATA_OUT, 0)],
        ActiveTransport::Uas { streams } => {
            let streams = if streams { device.config().streams } else { 0 };
            let with_streams = [STATUS, DATA_IN, DATA_OUT].map(|address| endpoint(address, streams));
            std::iter::once(endpoint(COMMAND, 0)).chain(with_streams).collect()
        }
    }
}

impl fmt::Display for PlugError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("the device does not offer this transport"),
            Self::Refused => f.write_str("the device rejected its configuration"),
            Self::Streams(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlugError {}
