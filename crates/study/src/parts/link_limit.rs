//! The rate of a link: the highest that was chosen and that both ends and each hub between them support.
//!
//! Two ports train to the highest rate that both support (USB 3.2 clause 7.5.4); one of 2 x 10 Gb/s and one of 10 Gb/s
//! agree on one lane. A SuperSpeed device at a port of USB 2.0 runs at high speed. A part whose highest rate is unknown is
//! no limit.

use super::{Catalogue, Chain, LinkPart, PartKind};
use sim::link::{superspeed, usb2};
use std::fmt;

/// A link at the rate that its ports agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegotiatedLink {
    /// The name of a link of this rate.
    pub name: String,
    /// Its rate.
    pub rate: LinkPart,
    /// The part that keeps it below the chosen rate; none if there is no such part.
    pub limit: Option<LinkLimit>,
}

/// A part that keeps a link below the chosen rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLimit {
    /// Kind of the part.
    pub kind: PartKind,
    /// Its name.
    pub part: String,
    /// The rate that it supports.
    pub rate: LinkPart,
    /// The rate that was chosen.
    pub chosen: LinkPart,
}

impl NegotiatedLink {
    /// Returns the link of a chain of parts; none if the chain has no link, or an unknown one.
    pub(super) fn of(catalogue: &Catalogue, chain: Chain<'_>) -> Option<Self> {
        let name = chain.link?;
        let chosen = *catalogue.link(name)?;
        let controller = catalogue.controller(chain.controller).and_then(|part| part.fastest);
        let hub = |name: &str| catalogue.hub(name).and_then(|part| part.fastest);
        let bridge = chain.bridge.map(|name| (name, catalogue.bridge(name).and_then(|part| part.fastest)));
        let ports = [(PartKind::Controller, chain.controller, controller)]
            .into_iter()
            .chain(chain.hubs.iter().map(|name| (PartKind::Hub, name.as_str(), hub(name))))
            .chain(bridge.map(|(name, fastest)| (PartKind::Bridge, name, fastest)));
        let slowest = ports
            .filter_map(|(kind, part, fastest)| Some((kind, part, fastest?)))
            .filter(|(.., rate)| order(*rate) < order(chosen))
            .min_by_key(|(.., rate)| order(*rate));
        let Some((kind, part, rate)) = slowest else {
            return Some(Self { name: name.into(), rate: chosen, limit: None });
        };
        let limit = LinkLimit { kind, part: part.into(), rate, chosen };
        let links = catalogue.entries().filter(|entry| entry.kind() == PartKind::Link);
        let same = links.map(|entry| entry.name.as_str()).find(|name| catalogue.link(name) == Some(&rate));
        Some(Self { name: same.unwrap_or(name).into(), rate, limit: Some(limit) })
    }
}

/// Returns the place of a rate among all.
const fn order(rate: LinkPart) -> u8 {
    match rate {
        LinkPart::Usb2(usb2::Rate::Full) => 0,
        LinkPart::Usb2(usb2::Rate::High) => 1,
        LinkPart::SuperSpeed(superspeed::Rate::Gen1) => 2,
        LinkPart::SuperSpeed(superspeed::Rate::Gen2) => 3,
        LinkPart::SuperSpeed(superspeed::Rate::Gen2x2) => 4,
    }
}

const fn in_words(rate: LinkPart) -> &'static str {
    match rate {
        LinkPart::Usb2(rate) => rate.bit_rate(),
        LinkPart::SuperSpeed(rate) => rate.bit_rate(),
    }
}

impl fmt::Display for LinkLimit {
    /// `The link runs at 5 Gb/s, not 10 Gb/s: the host controller vl805 supports no more`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, part, rate, chosen } = self;
        let (rate, chosen) = (in_words(*rate), in_words(*chosen));
        write!(f, "The link runs at {rate}, not {chosen}: the {kind} {part} supports no more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(controller: &str, hubs: &[String], bridge: &str, link: &str) -> NegotiatedLink {
        let catalogue = Catalogue::built_in().expect("parts that come with the project");
        let chain = Chain { driver: "linux-uas", controller, bridge: Some(bridge), link: Some(link), hubs };
        NegotiatedLink::of(&catalogue, chain).expect("a link")
    }

    #[test]
    fn the_slowest_port_decides_and_is_named() {
        let link = negotiated("vl805", &[], "jms580", "gen2");
        assert_eq!(link.name, "gen1");
        assert_eq!(
            link.limit.expect("a limit").to_string(),
            "The link runs at 5 Gb/s, not 10 Gb/s: the host controller vl805 supports no more"
        );
        let link = negotiated("ehci-intel", &[], "jms567", "gen2x2");
        assert_eq!((link.name.as_str(), link.rate), ("high", LinkPart::Usb2(usb2::Rate::High)));
    }

    #[test]
    fn a_chosen_rate_that_all_support_stays() {
        assert_eq!(negotiated("vl805", &[], "jms567", "gen1").limit, None);
        assert_eq!(negotiated("vl805", &[], "jms567", "high").name, "high");
    }

    #[test]
    fn every_chip_of_the_catalogue_has_a_highest_rate() {
        let catalogue = Catalogue::built_in().expect("parts that come with the project");
        for entry in catalogue.entries().filter(|entry| entry.kind() == PartKind::Controller) {
            assert!(
                catalogue.controller(&entry.name).expect("it is there").fastest.is_some(),
                "{}",
                entry.name
            );
        }
    }
}
