//! Which transport carries commands, by what the parts are: rules in an order, and the first that says no decides.
//!
//! A driver that speaks UAS asks whether the bridge does, whether a quirk says to leave it alone, and whether the
//! controller has streams; where the answer is no, the driver that it falls back on has the drive. What Linux knows of bridges is
//! asked of [`quirks`], and the words are those of `uaskit why`, which asks the same of hardware. Left out: what a
//! user may configure.
//!
//! Always true: a transport that is not the best one has a reason.

use super::link_limit::NegotiatedLink;
use super::{
    BridgePart, Catalogue, ControllerPart, DriverPart, DriverStreams, DriverTransport, Os, PartKind,
    StreamsOf,
};
use bus::Speed;
use device::Transports;
use quirks::quirk::{BridgeFacts, BuiltIn, Flag, Flags};
use std::fmt;
use wire::usb::ClassCode;

/// The names of the parts between a program and a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a> {
    /// The preferred driver.
    pub driver: &'a str,
    /// A host controller or SATA adapter.
    pub controller: &'a str,
    /// None for native SATA.
    pub bridge: Option<&'a str>,
    /// None for native SATA.
    pub link: Option<&'a str>,
    /// Hubs between controller and bridge.
    pub hubs: &'a [String],
}

/// The active transport, and why no better one is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// Name of the active driver.
    pub driver: String,
    /// The transport.
    pub transport: Carried,
    /// Queue depth; with Turbo, requests packed into one.
    pub depth: u16,
    /// Maximum bytes of a data command.
    pub command_bytes_max: u32,
    /// Maximum bytes of a request given to the driver, which packs several if it supports that.
    pub request_bytes_max: u32,
    /// Every checked rule, in order.
    pub reasons: Vec<Reason>,
    /// The link, at the highest rate that its ports support; none for native SATA.
    pub link: Option<NegotiatedLink>,
}

/// An active transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with packs.
    Turbo,
    /// UAS, and how transfers are matched with commands.
    Uas(Matched),
    /// No USB at all.
    Sata,
}

/// How UAS transfers are matched with commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// By this many streams of the controller.
    Streams(u16),
    /// By streams that the driver emulates.
    Emulated,
    /// By READ READY and WRITE READY, below SuperSpeed.
    Ready,
}

/// A checked rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which.
    pub rule: Rule,
    /// Name of the driver.
    pub driver: String,
    /// Whether it is met. An unmet rule selects another transport.
    pub is_met: bool,
    /// The reason, as a sentence.
    pub because: String,
}

/// The rules, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The driver supports UAS.
    Driver,
    /// The driver supports that controller.
    Controller,
    /// An alternate setting is 08/06/62.
    AlternateSetting,
    /// No quirk disables UAS.
    NotIgnored,
    /// The controller supports scatter-gather lists.
    ScatterGather,
    /// At SuperSpeed, the controller has streams.
    Streams,
}

impl Rule {
    /// Returns the rule as a question.
    pub const fn question(self) -> &'static str {
        match self {
            Self::Driver => "does the driver support UAS?",
            Self::Controller => "does the driver support this host controller?",
            Self::AlternateSetting => "does an alternate setting support UAS?",
            Self::NotIgnored => "is there no quirk that disables UAS?",
            Self::ScatterGather => "does the host controller support scatter-gather lists?",
            Self::Streams => "does the host controller have streams, if needed?",
        }
    }
}

/// Why parts cannot be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// No part of that name.
    Unknown(PartKind, String),
    /// The driver does not support that controller and has no fallback.
    NoDriver {
        /// The driver.
        driver: String,
        /// The controller.
        controller: String,
    },
    /// A native SATA driver with a bridge or link, or a USB driver without.
    Mixed(String),
    /// Fallback drivers form a cycle.
    Circle(String),
}

/// Maximum length of a fallback chain.
const FALLBACKS_MAX: usize = 8;
/// Linux reserves two streams: one for untagged, one for bridges that count from another number.
const LINUX_STREAMS_KEPT: u16 = 2;
/// Linux's queue depth below SuperSpeed, before the reserved ones.
const LINUX_DEPTH_USB2: u16 = 32;
/// Command size left by a quirk of 240 sectors.
const BYTES_OF_240_SECTORS: u32 = 240 * 512;

/// A chain with its parts looked up.
struct Parts<'a> {
    catalogue: &'a Catalogue,
    controller_name: &'a str,
    controller: &'a ControllerPart,
    controller_title: &'a str,
    bridge: &'a BridgePart,
    link: NegotiatedLink,
}

impl Activation {
    /// Determines the transport of a chain of parts.
    ///
    /// # Errors
    ///
    /// See [`ChainError`].
    pub fn of(catalogue: &Catalogue, chain: Chain<'_>) -> Result<Self, ChainError> {
        let driver = find(PartKind::Driver, chain.driver, Catalogue::driver, catalogue)?;
        if driver.transport == DriverTransport::Sata {
            return on_cable(catalogue, chain, driver);
        }
        let (Some(bridge), Some(link)) = (chain.bridge, chain.link) else {
            return Err(ChainError::Mixed(chain.driver.into()));
        };
        let controller = find(PartKind::Controller, chain.controller, Catalogue::controller, catalogue)?;
        let title = catalogue.find(PartKind::Controller, chain.controller).map_or("", |entry| &entry.title);
        let parts = Parts {
            catalogue,
            controller_name: chain.controller,
            controller,
            controller_title: title,
            bridge: find(PartKind::Bridge, bridge, Catalogue::bridge, catalogue)?,
            link: NegotiatedLink::of(catalogue, chain)
                .ok_or_else(|| ChainError::Unknown(PartKind::Link, link.into()))?,
        };
        parts.activation(chain.driver)
    }

    /// Returns the name of the link at the rate that its ports agree on; none for native SATA.
    pub fn link_name(&self) -> Option<&str> {
        self.link.as_ref().map(|link| link.name.as_str())
    }

    /// Returns the rule that excluded a better transport; none if the best one is active.
    pub fn decisive(&self) -> Option<&Reason> {
        self.reasons.iter().find(|reason| !reason.is_met)
    }
}

fn find<'a, P>(
    kind: PartKind,
    name: &str,
    of: impl Fn(&'a Catalogue, &str) -> Option<&'a P>,
    catalogue: &'a Catalogue,
) -> Result<&'a P, ChainError> {
    of(catalogue, name).ok_or_else(|| ChainError::Unknown(kind, name.into()))
}

fn on_cable(catalogue: &Catalogue, chain: Chain<'_>, driver: &DriverPart) -> Result<Activation, ChainError> {
    if chain.bridge.is_some() || chain.link.is_some() {
        return Err(ChainError::Mixed(chain.driver.into()));
    }
    let adapter = find(PartKind::Sata, chain.controller, Catalogue::sata, catalogue)?;
    Ok(Activation {
        driver: chain.driver.into(),
        transport: Carried::Sata,
        depth: driver.depth.min(u16::from(adapter.queued).max(1)),
        command_bytes_max: driver.transfer_bytes_max,
        request_bytes_max: driver.transfer_bytes_max,
        reasons: Vec::new(),
        link: None,
    })
}

impl Parts<'_> {
    /// Tries drivers along the fallback chain.
    fn activation(&self, first: &str) -> Result<Activation, ChainError> {
        let mut name = first.to_owned();
        let mut reasons = Vec::new();
        for _ in 0..FALLBACKS_MAX {
            let driver = find(PartKind::Driver, &name, Catalogue::driver, self.catalogue)?;
            let before = reasons.len();
            self.ask(&name, driver, &mut reasons);
            let is_uas = driver.transport == DriverTransport::Uas;
            let refused = reasons[before..].iter().find(|reason| !reason.is_met);
            match refused.map(|reason| reason.rule) {
                Some(Rule::Controller) => {}
                Some(_) if is_uas => {}
                _ => return Ok(self.runs(name, driver, reasons)),
            }
            name = driver.fallback.clone().ok_or_else(|| self.no_driver(&name))?;
        }
        Err(ChainError::Circle(first.into()))
    }

    fn no_driver(&self, driver: &str) -> ChainError {
        ChainError::NoDriver { driver: driver.into(), controller: self.controller_name.into() }
    }

    /// Checks the rules of one driver, up to the first unmet one.
    fn ask(&self, name: &str, driver: &DriverPart, reasons: &mut Vec<Reason>) {
        let first = [Self::for_controller, Self::speaks_uas, Self::setting];
        let last = [Self::not_ignored, Self::scatter_gather, Self::streams];
        for rule in first.into_iter().chain(last) {
            let Some((rule, is_met, because)) = rule(self, name, driver) else { continue };
            reasons.push(Reason { rule, driver: name.into(), is_met, because });
            if !is_met {
                return;
            }
        }
    }

    fn for_controller(&self, name: &str, driver: &DriverPart) -> Option<(Rule, bool, String)> {
        let is_met = driver.controllers.iter().any(|known| known == self.controller_name);
        let (all, one) = (driver.controllers.join(", "), self.controller_name);
        let because = match is_met {
            true => format!("{name} supports {one}"),
            false => format!("{name} supports {all}, not {one}"),
        };
        (!driver.controllers.is_empty()).then_some((Rule::Controller, is_met, because))
    }

    fn speaks_uas(&self, name: &str, driver: &DriverPart) -> Option<(Rule, bool, String)> {
        let is_met = driver.transport == DriverTransport::Uas;
        let because = if is_met { format!("{name} supports UAS") } else { "it supports only BOT".into() };
        Some((Rule::Driver, is_met, because))
    }

    fn setting(&self, _: &str, _: &DriverPart) -> Option<(Rule, bool, String)> {
        let is_met = self.bridge.transports != Transports::BotOnly;
        let because = match is_met {
            true => format!("an alternate setting is {}", ClassCode::UAS),
            false => format!("no alternate setting is {}: the drive does not support UAS", ClassCode::UAS),
        };
        Some((Rule::AlternateSetting, is_met, because))
    }

    /// Only Linux has such a list.
    fn not_ignored(&self, _: &str, driver: &DriverPart) -> Option<(Rule, bool, String)> {
        if driver.os != Os::Linux {
            return None;
        }
        let built_in = self.built_in();
        let is_met = !built_in.uas().contains(Flag::IgnoreUas);
        let because = match (is_met, built_in.coded) {
            (true, None) => "no quirk".to_owned(),
            (false, None) => format!("Linux's built-in quirks disable UAS for {}", self.bridge.id),
            (_, Some(coded)) => coded.reason().to_owned(),
        };
        Some((Rule::NotIgnored, is_met, because))
    }

    fn scatter_gather(&self, _: &str, _: &DriverPart) -> Option<(Rule, bool, String)> {
        let (is_met, title) = (self.controller.scatter_gather, self.controller_title);
        let because = match is_met {
            true => format!("the {title} does"),
            false => format!("the {title} does not support scatter-gather lists"),
        };
        Some((Rule::ScatterGather, is_met, because))
    }

    fn streams(&self, name: &str, driver: &DriverPart) -> Option<(Rule, bool, String)> {
        if self.link.rate.speed() != Speed::Super {
            return Some((Rule::Streams, true, "not needed below SuperSpeed".into()));
        }
        let emulates = driver.streams == DriverStreams::Emulated;
        let who = if driver.os == Os::Linux { "Linux" } else { name };
        // Linux needs arrays of four entries (`can_do_streams`), the minimum of any controller with
        // streams.
        let (is_met, because) = match self.controller.streams_of(name) {
            StreamsOf::Missing if emulates => {
                (true, format!("the controller has no streams, and {name} emulates them"))
            }
            StreamsOf::Missing => (false, "the controller has no streams".into()),
            StreamsOf::Broken => {
                let title = self.controller_title;
                (false, format!("{who} does not use the streams of the {title}, which are broken"))
            }
            StreamsOf::Work => (true, "it supports large enough stream arrays".into()),
        };
        Some((Rule::Streams, is_met, because))
    }

    /// Linux's built-in quirks of the bridge.
    fn built_in(&self) -> BuiltIn {
        let unit_ma = if self.link.rate.speed() == Speed::Super { 8 } else { 2 };
        let max_power = u8::try_from(self.bridge.max_power_ma / unit_ma).unwrap_or(u8::MAX);
        let status_streams =
            if self.link.rate.speed() == Speed::Super { u32::from(self.bridge.streams) } else { 0 };
        let facts = BridgeFacts { max_power, speed: self.link.rate.speed(), status_streams };
        let speaks = self.bridge.transports != Transports::BotOnly;
        BuiltIn::of(&self.bridge.identity(), speaks.then_some(facts))
    }

    /// The properties of the active driver.
    fn runs(&self, name: String, driver: &DriverPart, reasons: Vec<Reason>) -> Activation {
        let is_linux = driver.os == Os::Linux;
        let transport = self.carried(&name, driver);
        let depth = match transport {
            Carried::Bot => 1,
            Carried::Turbo | Carried::Sata | Carried::Uas(Matched::Emulated) => driver.depth,
            Carried::Uas(Matched::Streams(streams)) if is_linux => streams - LINUX_STREAMS_KEPT,
            Carried::Uas(Matched::Streams(streams)) => driver.depth.min(streams),
            Carried::Uas(Matched::Ready) if is_linux => LINUX_DEPTH_USB2 - LINUX_STREAMS_KEPT,
            Carried::Uas(Matched::Ready) => driver.depth,
        };
        let flags = match transport {
            Carried::Uas(_) if is_linux => self.built_in().uas(),
            _ if is_linux => self.built_in().storage(),
            _ => Flags::NONE,
        };
        let longest = driver.command_bytes_max(self.link.rate.speed());
        let is_short = flags.contains(Flag::MaxSectors240);
        let least = |bytes: u32| if is_short { bytes.min(BYTES_OF_240_SECTORS) } else { bytes };
        let request_bytes_max = least(driver.request_bytes_max(self.link.rate.speed()));
        let command_bytes_max = least(longest);
        let link = Some(self.link.clone());
        Activation { driver: name, transport, depth, command_bytes_max, request_bytes_max, reasons, link }
    }

    fn carried(&self, name: &str, driver: &DriverPart) -> Carried {
        match driver.transport {
            DriverTransport::Bot => Carried::Bot,
            DriverTransport::Turbo => Carried::Turbo,
            DriverTransport::Sata => Carried::Sata,
            DriverTransport::Uas if self.link.rate.speed() != Speed::Super => Carried::Uas(Matched::Ready),
            DriverTransport::Uas if self.controller.streams_of(name) == StreamsOf::Work => {
                // Entry 0 of the array is not a stream.
                let entries = 2_u16 << self.controller.part.model.primary_streams_exponent.min(14);
                Carried::Uas(Matched::Streams(self.bridge.streams.min(entries - 1)))
            }
            DriverTransport::Uas => Carried::Uas(Matched::Emulated),
        }
    }
}

impl Rule {
    /// Returns the name for programs, shared with `uaskit why`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Controller => "controller",
            Self::AlternateSetting => "alternate-setting",
            Self::NotIgnored => "not-ignored",
            Self::ScatterGather => "scatter-gather",
            Self::Streams => "streams",
        }
    }

    /// Returns the rule as a statement.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Driver => "the driver supports UAS",
            Self::Controller => "the driver supports the controller",
            Self::AlternateSetting => "an alternate setting supports UAS",
            Self::NotIgnored => "no quirk disables UAS",
            Self::ScatterGather => "the controller supports scatter-gather lists",
            Self::Streams => "the controller has streams",
        }
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bot => f.write_str("BOT"),
            Self::Turbo => f.write_str("Turbo"),
            Self::Uas(Matched::Streams(streams)) => write!(f, "UAS with {streams} streams"),
            Self::Uas(Matched::Emulated) => f.write_str("UAS with emulated streams"),
            Self::Uas(Matched::Ready) => f.write_str("UAS without streams"),
            Self::Sata => f.write_str("SATA"),
        }
    }
}

impl fmt::Display for Activation {
    /// `BOT, driver linux-usb-storage: the controller has no streams.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, driver {}", self.transport, self.driver)?;
        match self.decisive() {
            Some(reason) => write!(f, ": {}.", reason.because),
            None if self.reasons.is_empty() => f.write_str("."),
            None => f.write_str(": every rule is met."),
        }?;
        match self.link.as_ref().and_then(|link| link.limit.as_ref()) {
            Some(limit) => write!(f, " {limit}."),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(kind, name) => write!(f, "no such {kind}: `{name}`"),
            Self::NoDriver { driver, controller } => {
                write!(f, "{driver} does not support {controller} and has no fallback")
            }
            Self::Mixed(driver) => {
                write!(f, "{driver} needs both a bridge and a link for USB, or neither for native SATA")
            }
            Self::Circle(driver) => write!(f, "the fallback drivers of {driver} form a cycle"),
        }
    }
}

impl std::error::Error for ChainError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn activation(
        driver: &str,
        controller: &str,
        bridge: &str,
        link: &str,
    ) -> Result<Activation, ChainError> {
        let catalogue = Catalogue::built_in().expect("parts that come with the project");
        Activation::of(
            &catalogue,
            Chain { driver, controller, bridge: Some(bridge), link: Some(link), hubs: &[] },
        )
    }

    fn sentence(driver: &str, controller: &str, bridge: &str, link: &str) -> String {
        activation(driver, controller, bridge, link).expect("a chain").to_string()
    }

    #[test]
    fn uas_is_active_if_every_rule_is_met() {
        let activation = activation("linux-uas", "vl805", "jms567", "gen1").expect("a chain");
        assert_eq!(activation.to_string(), "UAS with 31 streams, driver linux-uas: every rule is met.");
        assert_eq!((activation.depth, activation.command_bytes_max), (29, 512 << 10));
    }

    #[test]
    fn a_driver_of_bot_alone_is_the_reason_itself() {
        let text = sentence("windows7-usbstor", "intel-7-series", "asm1051e", "gen1");
        assert_eq!(text, "BOT, driver windows7-usbstor: it supports only BOT.");
    }

    #[test]
    fn a_bridge_without_uas_falls_back() {
        let text = sentence("linux-uas", "vl805", "jms539", "gen1");
        let because = "no alternate setting is 08/06/62 (UAS): the drive does not support UAS";
        assert_eq!(text, format!("BOT, driver linux-usb-storage: {because}."));
    }

    #[test]
    fn linux_does_not_use_broken_streams() {
        for (controller, title) in [("asm1042", "ASMedia ASM1042"), ("ej168", "EtronTech EJ168")] {
            let because = format!("Linux does not use the streams of the {title}, which are broken");
            let text = sentence("linux-uas", controller, "jms567", "gen1");
            assert_eq!(text, format!("BOT, driver linux-usb-storage: {because}."));
        }
    }

    #[test]
    fn the_vendors_driver_uses_streams_that_others_do_not() {
        let transport =
            |driver| activation(driver, "asm1042", "asm1051e", "gen1").expect("a chain").transport;
        assert!(matches!(transport("mcci-uasp"), Carried::Uas(Matched::Streams(_))));
        assert_eq!(transport("windows8-uasp"), Carried::Bot);
    }

    #[test]
    fn streams_are_emulated_where_there_are_none() {
        let activation = activation("windows8-uasp", "a75", "asm1051e", "gen1").expect("a chain");
        assert_eq!((activation.transport, activation.depth), (Carried::Uas(Matched::Emulated), 2));
        assert!(sentence("linux-uas", "a75", "jms567", "gen1").ends_with("the controller has no streams."));
    }

    #[test]
    fn linux_uses_stream_arrays_of_four_entries_and_more() {
        let built_in = Catalogue::built_in().expect("parts that come with the project");
        let chain = Chain {
            driver: "linux-uas",
            controller: "vl805",
            bridge: Some("jms567"),
            link: Some("gen1"),
            hubs: &[],
        };
        let with = |entries| {
            let tried = built_in.with(PartKind::Controller, "vl805", "streams.entries", entries);
            Activation::of(&tried.expect("a number of it"), chain).expect("a chain")
        };
        assert!(with(0.0).to_string().ends_with("the controller has no streams."));
        for (entries, depth, streams) in [(4.0, 1, 3), (8.0, 5, 7), (16.0, 13, 15)] {
            let activation = with(entries);
            let expected = format!("UAS with {streams} streams, driver linux-uas: every rule is met.");
            assert_eq!((activation.to_string(), activation.depth), (expected, depth));
        }
    }

    #[test]
    fn at_high_speed_uas_goes_without_streams() {
        let activation = activation("linux-uas", "ej168", "jms567", "high").expect("a chain");
        assert_eq!((activation.transport, activation.depth), (Carried::Uas(Matched::Ready), 30));
    }

    #[test]
    fn a_controller_without_scatter_gather_lists_has_no_uas() {
        let text = sentence("linux-uas", "dwc-otg", "asm1153", "high");
        let because = "the DesignWare OTG controller does not support scatter-gather lists";
        assert_eq!(text, format!("BOT, driver linux-usb-storage: {because}."));
    }

    #[test]
    fn linux_identifies_asmedia_bridges_by_streams_and_current() {
        let text = |bridge, link| sentence("linux-uas", "intel-7-series", bridge, link);
        assert!(text("asm1051e", "gen1").contains("it may be an ASM1051, whose UAS is broken"));
        assert!(text("asm1153", "gen1").starts_with("UAS"));
        assert!(text("asm1053e", "high").contains("below super speed"));
        let short = activation("linux-uas", "intel-7-series", "asm1053e", "gen1").expect("a chain");
        assert_eq!((short.command_bytes_max, short.depth), (122_880, 62));
    }

    #[test]
    fn a_driver_of_one_controller_is_not_used_on_another() {
        let text = sentence("renesas-uasp", "upd720201", "upd720230", "gen1");
        assert!(text.starts_with("UAS"), "{text}");
        let error = activation("windows8-usbstor-asmedia", "ej168", "asm1051e", "gen1").unwrap_err();
        let what = "windows8-usbstor-asmedia does not support ej168 and has no fallback";
        assert_eq!(error.to_string(), what);
    }

    #[test]
    fn native_sata_has_neither_bridge_nor_link() {
        let catalogue = Catalogue::built_in().expect("parts that come with the project");
        let chain =
            Chain { driver: "sata-native", controller: "ahci-6g", bridge: None, link: None, hubs: &[] };
        let activation = Activation::of(&catalogue, chain).expect("a chain");
        assert_eq!(activation.to_string(), "SATA, driver sata-native.");
        let chain = Chain { bridge: Some("generic"), ..chain };
        assert_eq!(Activation::of(&catalogue, chain), Err(ChainError::Mixed("sata-native".into())));
        let chain = Chain { driver: "linux-uas", ..chain };
        assert_eq!(Activation::of(&catalogue, chain), Err(ChainError::Mixed("linux-uas".into())));
    }

    #[test]
    fn unknown_parts_are_named() {
        let error = activation("linux-uas", "vl805", "jms999", "gen1").unwrap_err();
        assert_eq!(error.to_string(), "no such bridge: `jms999`");
    }
}
