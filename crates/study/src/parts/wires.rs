//! Parts between host and drive: links, hubs, and the adapter of a cable that goes to the drive without USB.
//!
//! Timing of a link is in its standard, so its file has no numbers but a name; a part of a link is there to be chosen.

use super::bridge::SataRate;
use super::fields::{FieldError, File, within};
use super::quantity::{Count, Quantity, Time};
use serde::Deserialize;
use sim::link::{AnyRate, superspeed, usb2};
use sim::sata;
use units::Duration;

/// A link, which is defined by its rate.
pub type LinkPart = AnyRate;

/// A hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubPart {
    /// Number of downstream ports.
    pub ports: u8,
    /// From the last symbol of a header to the first on the other side: wHubDelay, 400 ns at most (USB 3.2 table 10-5).
    pub delay: Duration,
    /// Transaction translators of its USB 2.0 half.
    pub translators: usb2::Translators,
    /// The highest rate of its ports, where known.
    pub fastest: Option<LinkPart>,
}

/// A SATA host adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SataPart {
    /// Link rate.
    pub rate: sata::Rate,
    /// Delay from end to end, link layers included.
    pub latency: Duration,
    /// Maximum of queued commands (NCQ).
    pub queued: u8,
    /// From the register write that starts a command to its frame on the cable, and from the last
    /// frame to the interrupt.
    pub command: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkFile {
    title: String,
    rate: LinkRate,
}

/// Link names in files.
#[derive(Clone, Copy, Deserialize)]
enum LinkRate {
    #[serde(rename = "12 Mb/s")]
    Full,
    #[serde(rename = "480 Mb/s")]
    High,
    #[serde(rename = "5 Gb/s")]
    Gen1,
    #[serde(rename = "10 Gb/s")]
    Gen2,
    #[serde(rename = "2 x 10 Gb/s")]
    Gen2x2,
}

/// The highest rate of a port, and where it is stated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fastest {
    rate: LinkRate,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HubFile {
    title: String,
    ports: Quantity<Count>,
    delay: Quantity<Time>,
    /// Defaults to one.
    translators: Option<Quantity<Count>>,
    /// Defaults to unknown.
    fastest: Option<Fastest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SataFile {
    title: String,
    rate: SataRate,
    latency: Quantity<Time>,
    queued: Quantity<Count>,
    command: Quantity<Time>,
}

impl File for LinkFile {
    type Part = LinkPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        Ok(self.rate.rate())
    }
}

impl LinkRate {
    const fn rate(self) -> LinkPart {
        match self {
            Self::Full => LinkPart::Usb2(usb2::Rate::Full),
            Self::High => LinkPart::Usb2(usb2::Rate::High),
            Self::Gen1 => LinkPart::SuperSpeed(superspeed::Rate::Gen1),
            Self::Gen2 => LinkPart::SuperSpeed(superspeed::Rate::Gen2),
            Self::Gen2x2 => LinkPart::SuperSpeed(superspeed::Rate::Gen2x2),
        }
    }
}

impl Fastest {
    /// Returns the rate at `place`, which needs a source.
    pub(super) fn rate(&self, place: &str) -> Result<LinkPart, FieldError> {
        if self.source.trim().is_empty() {
            return Err(FieldError::new(place, format!("`{place}` has no source")));
        }
        Ok(self.rate.rate())
    }
}

impl File for HubFile {
    type Part = HubPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        let ports = within("ports", &self.ports, 1, 15)?;
        Ok(HubPart {
            ports,
            fastest: self.fastest.as_ref().map(|fastest| fastest.rate("fastest")).transpose()?,
            delay: Duration::from_ps(within("delay", &self.delay, 0, 400_000)?),
            translators: match &self.translators {
                None => usb2::Translators::One,
                Some(count) => match within::<u8, _>("translators", count, 1, ports.into())? {
                    1 => usb2::Translators::One,
                    _ => usb2::Translators::Each,
                },
            },
        })
    }
}

impl File for SataFile {
    type Part = SataPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        Ok(SataPart {
            rate: self.rate.rate(),
            latency: self.latency.duration(),
            queued: within("queued", &self.queued, 0, 32)?,
            command: self.command.duration(),
        })
    }
}
