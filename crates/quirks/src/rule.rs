//! Rules as values: what was asked of the device, whether it holds, and what was seen.
//!
//! A [`Finding`] is one rule with its evidence; a [`Judgement`] is the findings about one use of the device, in the
//! order in which they are asked, and the plan if none that is needed is broken. Left out: what to do about it.

use super::configuration::{Endpoint, Setting};
use super::identity::DeviceId;
use super::quirk::{BridgeFacts, BuiltIn};
use alloc::vec::Vec;
use bus::{EndpointAddress, Speed};
use core::fmt;
use wire::uas::PipeUsage;
use wire::usb::{ClassCode, TransferType};

/// Rules about a device's descriptors and the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The link is as fast as the device can be (BOS). Advice: a cable or a port may be to blame.
    LinkSpeed,
    /// An alternate setting is exactly 08/06/50.
    BotSetting,
    /// It has a bulk IN and a bulk OUT endpoint (Bulk-Only Transport 1.0 clause 4.4).
    BulkPair,
    /// An alternate setting is exactly 08/06/62.
    UasSetting,
    /// Pipe usage descriptors name all four pipes, ids 1 to 4 (UAS-2 clause 5.2.3).
    PipeUsages,
    /// All four pipes are bulk, each in its direction.
    PipeKinds,
    /// The packets of every endpoint that is needed are of a size that bulk endpoints have at this speed.
    PacketSizes,
    /// At SuperSpeed: status, data-in and data-out have streams (UAS-2 clause 4.3).
    StreamsOffered,
    /// At SuperSpeed: and as many each. Advice: the fewest count.
    StreamsAgree,
    /// At SuperSpeed: the host controller has streams.
    HostStreams,
    /// Linux: neither its table nor its code says to ignore UAS for the device.
    NotIgnored,
}

/// One rule, asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Rule that was checked.
    pub rule: Rule,
    /// Whether it holds.
    pub met: bool,
    /// Evidence for the result.
    pub evidence: Evidence,
}

/// Evidence for the result of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Settings of the interface, all that there are.
    Settings(Vec<SettingName>),
    /// Endpoints of a setting, those that the rule is about.
    Endpoints {
        /// The setting.
        setting: SettingName,
        /// The endpoints, in the order of the descriptors.
        endpoints: Vec<EndpointFact>,
    },
    /// Streams, offered and possible.
    Streams {
        /// Of status, data-in and data-out pipe; 0 is none.
        offered: [u32; 3],
        /// Streams that the host supports at most; 0 is none.
        host_max: u16,
    },
    /// Quirks that are built in for the device, and the facts by which they were found.
    Bridge {
        /// idVendor and idProduct.
        id: DeviceId,
        /// bcdDevice.
        revision: u16,
        /// Facts that distinguish bridges with the same id.
        bridge: BridgeFacts,
        /// Quirks found.
        built_in: BuiltIn,
    },
    /// Speeds.
    Speeds {
        /// Of the link.
        link: Speed,
        /// The fastest of the device, where it is reported.
        able: Option<Speed>,
    },
}

/// A setting by its numbers and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingName {
    /// bInterfaceNumber.
    pub interface: u8,
    /// bAlternateSetting.
    pub alternate: u8,
    /// Its class.
    pub class: ClassCode,
}

/// Facts about an endpoint that a rule may check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointFact {
    /// Its address.
    pub address: EndpointAddress,
    /// How data moves.
    pub transfer_type: TransferType,
    /// Its longest packet, in bytes.
    pub packet_bytes: u16,
    /// Which pipe of UAS it says to be.
    pub usage: Option<PipeUsage>,
    /// Its streams; 0 is none.
    pub streams: u32,
}

/// The findings about one use of the device, and how to use it if all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement<P> {
    /// In the order asked. A rule that cannot be asked, because one before it is broken, is not there.
    pub findings: Vec<Finding>,
    /// There exactly if no rule that is needed is broken.
    pub plan: Option<P>,
}

impl Rule {
    /// Whether the transport works without it, though not as well.
    pub const fn is_advice(self) -> bool {
        matches!(self, Self::LinkSpeed | Self::StreamsAgree)
    }

    /// The rule in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::LinkSpeed => "the link is as fast as the device can be",
            Self::BotSetting => "an alternate setting is 08/06/50",
            Self::BulkPair => "it has a bulk IN and a bulk OUT endpoint",
            Self::UasSetting => "an alternate setting is 08/06/62",
            Self::PipeUsages => "pipe usage descriptors name all four pipes",
            Self::PipeKinds => "the pipes are bulk, each in its direction",
            Self::PacketSizes => "packets have a size of this speed",
            Self::StreamsOffered => "status, data-in and data-out have streams",
            Self::StreamsAgree => "the pipes have equally many streams",
            Self::HostStreams => "the host controller has streams",
            Self::NotIgnored => "Linux does not ignore UAS for the device",
        }
    }
}

impl<P> Judgement<P> {
    /// The rule that decided against it: the first that is needed and broken.
    pub fn decisive(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| !finding.met && !finding.rule.is_advice())
    }
}

impl SettingName {
    pub(super) const fn of(setting: &Setting) -> Self {
        let interface = setting.interface;
        Self { interface: interface.number, alternate: interface.alternate, class: interface.class }
    }
}

impl EndpointFact {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        Self {
            address: endpoint.descriptor.address,
            transfer_type: endpoint.descriptor.attributes.transfer_type(),
            packet_bytes: endpoint.descriptor.packet_len(),
            usage: endpoint.usage,
            streams: endpoint.streams(),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met { "yes" } else { "no" };
        write!(f, "{}: {verdict} ({})", self.rule, self.evidence)
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, alternate, class } = self;
        write!(f, "interface {interface} alternate {alternate} {class}")
    }
}

impl fmt::Display for EndpointFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} B", self.address, self.transfer_type, self.packet_bytes)?;
        if let Some(usage) = self.usage {
            write!(f, " {usage}")?;
        }
        match self.streams {
            0 => Ok(()),
            streams => write!(f, " {streams} streams"),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(settings) if settings.is_empty() => f.write_str("no setting"),
            Self::Settings(settings) => list(f, settings),
            Self::Endpoints { setting, endpoints } if endpoints.is_empty() => {
                write!(f, "{setting}: no such endpoint")
            }
            Self::Endpoints { setting, endpoints } => {
                write!(f, "{setting}: ")?;
                list(f, endpoints)
            }
            Self::Streams { offered: [status, data_in, data_out], host_max } => write!(
                f,
                "status {status}, data-in {data_in}, data-out {data_out} streams; host {host_max} at most"
            ),
            Self::Bridge { id, revision, bridge, built_in } => {
                let BridgeFacts { max_power, speed, status_streams } = bridge;
                write!(
                    f,
                    "{id} {revision:04x}, bMaxPower {max_power}, {speed}, {status_streams} status streams; "
                )?;
                write!(f, "flags {}", built_in.uas())
            }
            Self::Speeds { link, able: Some(able) } => write!(f, "link {link}, device {able}"),
            Self::Speeds { link, able: None } => write!(f, "link {link}, device does not report its speeds"),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(at, item)| {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")
    })
}
