//! Our own needs: what makes BOT or UAS work on this link (Bulk-Only Transport 1.0 clause 4, UAS-2 clause 5.2).
//!
//! Rules are asked in an order in which each can lean on those before it; one that hides the rest ends the list.
//! Always true: a plan exists exactly if every rule that is needed was asked and is met. Left out: what bridges do
//! wrong behind good descriptors, which only traffic shows.

use super::configuration::{Configuration, Endpoint, Setting};
use super::link::{Link, STREAMS_MAX};
use super::pipes::Pipes;
use super::plan::{BotPlan, InterfaceSetting, Matching, PipeEnd, UasPlan};
use super::rule::{EndpointFact, Evidence, Finding, Judgement, Rule, SettingName};
use alloc::vec::Vec;
use bus::Speed;
use core::num::NonZeroU16;
use wire::usb::{ClassCode, Direction, TransferType};

/// Bulk-Only Transport on one interface.
pub(super) fn judge_bot(configuration: &Configuration, interface: u8, link: Link) -> Judgement<BotPlan> {
    let mut findings = Vec::new();
    let plan = bot(configuration, interface, link, &mut findings);
    Judgement { findings, plan }
}

/// USB Attached SCSI on one interface.
pub(super) fn judge_uas(configuration: &Configuration, interface: u8, link: Link) -> Judgement<UasPlan> {
    let mut findings = Vec::new();
    let plan = uas(configuration, interface, link, &mut findings);
    Judgement { findings, plan }
}

/// Whether some setting of the interface is of this class, with all settings as evidence.
pub(super) fn setting_finding(
    configuration: &Configuration,
    interface: u8,
    class: ClassCode,
    rule: Rule,
) -> Finding {
    let settings = configuration.settings_of(interface).map(SettingName::of).collect();
    let met = configuration.setting_of_class(interface, class).is_some();
    Finding { rule, met, evidence: Evidence::Settings(settings) }
}

/// Whether the host controller has the streams that SuperSpeed wants.
pub(super) fn host_streams(pipes: &Pipes<'_>, link: Link) -> Finding {
    let evidence = Evidence::Streams { offered: pipes.streams(), host_max: link.streams_max };
    Finding { rule: Rule::HostStreams, met: !link.speed.has_streams() || link.streams_max > 0, evidence }
}

/// Whether the device has the streams that SuperSpeed wants.
pub(super) fn streams_offered(pipes: &Pipes<'_>, link: Link) -> Finding {
    let offered = pipes.streams();
    let met = !link.speed.has_streams() || offered.iter().all(|&streams| streams > 0);
    let evidence = Evidence::Streams { offered, host_max: link.streams_max };
    Finding { rule: Rule::StreamsOffered, met, evidence }
}

fn bot(
    configuration: &Configuration,
    interface: u8,
    link: Link,
    findings: &mut Vec<Finding>,
) -> Option<BotPlan> {
    findings.push(setting_finding(configuration, interface, ClassCode::BOT, Rule::BotSetting));
    let setting = configuration.setting_of_class(interface, ClassCode::BOT)?;
    // The first of each direction, as every host takes them.
    let bulk = |direction| setting.endpoints.iter().find(move |endpoint| is_bulk(endpoint, direction));
    let pair = bulk(Direction::In).zip(bulk(Direction::Out));
    findings.push(about_endpoints(Rule::BulkPair, pair.is_some(), setting, &setting.endpoints));
    let (bulk_in, bulk_out) = pair?;
    let sized = packet_sizes(setting, &[*bulk_in, *bulk_out], link.speed);
    let met = sized.met;
    findings.push(sized);
    met.then(|| BotPlan {
        place: place(configuration, setting),
        bulk_in: PipeEnd::of(bulk_in),
        bulk_out: PipeEnd::of(bulk_out),
    })
}

fn uas(
    configuration: &Configuration,
    interface: u8,
    link: Link,
    findings: &mut Vec<Finding>,
) -> Option<UasPlan> {
    findings.push(setting_finding(configuration, interface, ClassCode::UAS, Rule::UasSetting));
    let setting = configuration.setting_of_class(interface, ClassCode::UAS)?;
    let pipes = Pipes::of(setting);
    findings.push(about_endpoints(Rule::PipeUsages, pipes.is_some(), setting, &setting.endpoints));
    let pipes = pipes?;
    let ends = pipes.all().map(|(_, endpoint)| *endpoint);
    let kinds = pipes
        .all()
        .iter()
        .all(|(usage, endpoint)| usage.direction().is_some_and(|direction| is_bulk(endpoint, direction)));
    findings.push(about_endpoints(Rule::PipeKinds, kinds, setting, &ends));
    let sized = packet_sizes(setting, &ends, link.speed);
    let asked = [streams_offered(&pipes, link), streams_agree(&pipes, link), host_streams(&pipes, link)];
    let met = kinds && sized.met && asked.iter().all(|finding| finding.met || finding.rule.is_advice());
    findings.push(sized);
    if link.speed.has_streams() {
        findings.extend(asked);
    }
    met.then_some(())?;
    Some(UasPlan {
        place: place(configuration, setting),
        command: PipeEnd::of(pipes.command),
        status: PipeEnd::of(pipes.status),
        data_in: PipeEnd::of(pipes.data_in),
        data_out: PipeEnd::of(pipes.data_out),
        matching: matching(&pipes, link),
    })
}

/// The fewest of what the pipes have, what the host has, and what there are ids for.
fn matching(pipes: &Pipes<'_>, link: Link) -> Matching {
    if !link.speed.has_streams() {
        return Matching::Ready;
    }
    let offered = pipes.streams().into_iter().min().unwrap_or(0);
    let request = offered.min(link.streams_max.into()).min(STREAMS_MAX.into()) as u16;
    // The rules before have seen to it that no count is zero.
    Matching::Streams { request: NonZeroU16::new(request).unwrap_or(NonZeroU16::MIN) }
}

fn streams_agree(pipes: &Pipes<'_>, link: Link) -> Finding {
    let offered = pipes.streams();
    let [status, data_in, data_out] = offered;
    let met = !link.speed.has_streams() || (status == data_in && status == data_out);
    let evidence = Evidence::Streams { offered, host_max: link.streams_max };
    Finding { rule: Rule::StreamsAgree, met, evidence }
}

fn packet_sizes(setting: &Setting, endpoints: &[Endpoint], speed: Speed) -> Finding {
    let met = endpoints.iter().all(|endpoint| fits(endpoint.descriptor.packet_len(), speed));
    about_endpoints(Rule::PacketSizes, met, setting, endpoints)
}

/// Bulk packets: 8, 16, 32 or 64 bytes at full speed, and one size at each of the others (USB 2.0 clause 5.8.3,
/// USB 3.2 clause 9.6.6).
const fn fits(packet_bytes: u16, speed: Speed) -> bool {
    match speed {
        Speed::Full => matches!(packet_bytes, 8 | 16 | 32 | 64),
        faster => packet_bytes as u32 == faster.bulk_packet_bytes(),
    }
}

fn is_bulk(endpoint: &Endpoint, direction: Direction) -> bool {
    endpoint.descriptor.attributes.transfer_type() == TransferType::Bulk
        && endpoint.descriptor.address.direction() == direction
}

pub(super) fn about_endpoints(rule: Rule, met: bool, setting: &Setting, endpoints: &[Endpoint]) -> Finding {
    let endpoints = endpoints.iter().map(EndpointFact::of).collect();
    Finding { rule, met, evidence: Evidence::Endpoints { setting: SettingName::of(setting), endpoints } }
}

const fn place(configuration: &Configuration, setting: &Setting) -> InterfaceSetting {
    InterfaceSetting {
        configuration: configuration.head.value,
        interface: setting.interface.number,
        alternate: setting.interface.alternate,
    }
}
