//! A drive made ready, and a transport for it, as a host would that has read its descriptors.

use crate::drive::Drive;
use crate::medium::Medium;
use device::Verdict;
use device::bot::BotEndpoints;
use initiator::bot::BotConfig;
use initiator::uas::{TooFewStreams, UasConfig, UasEndpoints};
use initiator::{Bot, Timeouts, Uas};
use wire::usb::{DescriptorKind, Recipient, SetupPacket, StandardRequest};

/// Number of the only interface of our devices.
const INTERFACE: u8 = 0;

/// Why there is no transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugError {
    /// The drive does not offer this transport.
    NotOffered,
    /// The drive refused to be configured.
    Refused,
    /// It has too few streams.
    Streams(TooFewStreams),
}

impl std::fmt::Display for PlugError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotOffered => f.write_str("the drive does not offer this transport"),
            Self::Refused => f.write_str("the drive refused to be configured"),
            Self::Streams(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlugError {}

/// Configures a drive for UAS; with streams where its speed has them.
///
/// # Errors
/// If the drive has no UAS, or too few streams.
pub fn uas<M: Medium + ?Sized>(
    drive: &mut Drive<M>,
    depth: Option<u16>,
    timeouts: Timeouts,
) -> Result<Uas, PlugError> {
    let config = drive.device().config();
    let alternate = config.uas_alternate().ok_or(PlugError::NotOffered)?;
    let streams = config.speed.has_streams().then_some(config.streams);
    let device::uas::UasEndpoints { command, status, data_in, data_out } = config.uas_endpoints();
    configure(drive)?;
    select(drive, alternate)?;
    let endpoints = UasEndpoints { command, status, data_in, data_out };
    let config = UasConfig { interface: INTERFACE, alternate, endpoints, streams, depth, timeouts };
    Uas::new(config).map_err(PlugError::Streams)
}

/// Configures a drive for BOT.
///
/// # Errors
/// If the drive has no BOT.
pub fn bot<M: Medium + ?Sized>(drive: &mut Drive<M>, timeouts: Timeouts) -> Result<Bot, PlugError> {
    Ok(Bot::new(bot_config(drive, timeouts)?))
}

/// Configures a drive for BOT, for a transport that is made on top of it.
///
/// # Errors
/// If the drive has no BOT.
pub fn bot_config<M: Medium + ?Sized>(
    drive: &mut Drive<M>,
    timeouts: Timeouts,
) -> Result<BotConfig, PlugError> {
    let config = drive.device().config();
    let alternate = config.bot_alternate().ok_or(PlugError::NotOffered)?;
    let BotEndpoints { bulk_in, bulk_out } = config.bot_endpoints();
    configure(drive)?;
    select(drive, alternate)?;
    Ok(BotConfig { interface: INTERFACE, alternate, bulk_in, bulk_out, timeouts })
}

/// Reads the descriptors of device and configuration, as every host does: for observers, which have to know the endpoints.
///
/// # Errors
/// If the drive does not return them.
pub fn read_descriptors<M: Medium + ?Sized>(drive: &mut Drive<M>) -> Result<(), PlugError> {
    for kind in [DescriptorKind::Device, DescriptorKind::Configuration] {
        let setup = SetupPacket::get_descriptor(kind, 0, u16::MAX);
        if !matches!(drive.control(setup, &[]), Verdict::Data(_)) {
            return Err(PlugError::Refused);
        }
    }
    Ok(())
}

/// SET ADDRESS and SET CONFIGURATION.
pub(crate) fn configure<M: Medium + ?Sized>(drive: &mut Drive<M>) -> Result<(), PlugError> {
    let set = |request: StandardRequest, value| standard(Recipient::Device, request, value);
    ask(drive, set(StandardRequest::SetAddress, 1))?;
    let value = drive.device().config().configuration_value();
    ask(drive, set(StandardRequest::SetConfiguration, value.into()))
}

fn select<M: Medium + ?Sized>(drive: &mut Drive<M>, alternate: u8) -> Result<(), PlugError> {
    ask(drive, standard(Recipient::Interface, StandardRequest::SetInterface, alternate.into()))
}

fn ask<M: Medium + ?Sized>(drive: &mut Drive<M>, setup: SetupPacket) -> Result<(), PlugError> {
    match drive.control(setup, &[]) {
        Verdict::Done => Ok(()),
        _ => Err(PlugError::Refused),
    }
}

fn standard(recipient: Recipient, request: StandardRequest, value: u16) -> SetupPacket {
    SetupPacket { index: INTERFACE.into(), ..SetupPacket::of_standard(recipient, request, value) }
}
