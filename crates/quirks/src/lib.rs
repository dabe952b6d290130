#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! [`probe`] takes what GET_DESCRIPTOR answered and what the link is. For each mass-storage interface it judges BOT and
//! UAS by our own needs, which gives a plan where they are met, and UAS by the rules of Linux. Each judgement is a list
//! of findings: a rule, whether it is met, what was seen. Everything here is a value; showing it is for others.
//!
//! Always true: any bytes are judged within the limits of [`configuration`]; a plan exists exactly if no rule that is
//! needed is broken; the same bytes give the same answer. Left out: other configurations than the one given, other
//! subclasses than transparent SCSI, quirks that a user sets.
#![no_std]

extern crate alloc;

pub mod command;
pub mod configuration;
mod identity;
mod link;
mod linux;
mod own;
mod pipes;
mod plan;
pub mod quirk;
mod rule;
#[cfg(test)]
mod tests;

pub use {bus, wire};

pub use identity::{DeviceId, Identity, Names, NoDeviceId};
pub use link::{Link, STREAMS_MAX, fastest_lane_mbps, fastest_speed};
pub use linux::LinuxJudgement;
pub use plan::{BotPlan, InterfaceSetting, Matching, PipeEnd, Plan, UasPlan};
pub use rule::{EndpointFact, Evidence, Finding, Judgement, Rule, SettingName};

use alloc::vec::Vec;
pub use configuration::Configuration;
use wire::DecodeError;
use wire::usb::DeviceDescriptor;

/// bInterfaceClass of mass storage.
const MASS_STORAGE: u8 = 0x08;

/// Descriptors and strings that the device returned.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    /// The device descriptor.
    pub device: &'a [u8],
    /// The configuration in use, or the one to use, with everything in it.
    pub configuration: &'a [u8],
    /// The binary device object store, if there is one.
    pub bos: Option<&'a [u8]>,
    /// The strings that some rule asks for.
    pub names: Names<'a>,
}

/// Everything found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The device.
    pub device: DeviceDescriptor,
    /// The configuration.
    pub configuration: Configuration,
    /// Whether the link is as fast as the device.
    pub link: Finding,
    /// Each interface with a mass-storage setting, in the order of the descriptors.
    pub interfaces: Vec<InterfaceProbe>,
}

/// Findings about one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceProbe {
    /// bInterfaceNumber.
    pub number: u8,
    /// Bulk-Only Transport by our own needs.
    pub bot: Judgement<BotPlan>,
    /// USB Attached SCSI by our own needs.
    pub uas: Judgement<UasPlan>,
    /// USB Attached SCSI by Linux's rules.
    pub linux: LinuxJudgement,
}

/// Judges a device. An error is a device or a configuration descriptor that is none.
pub fn probe(answers: &Answers<'_>, link: Link) -> Result<Probe, DecodeError> {
    let device = DeviceDescriptor::decode(answers.device)?;
    let configuration = Configuration::decode(answers.configuration)?;
    let mut numbers: Vec<u8> = Vec::new();
    for setting in &configuration.settings {
        let number = setting.interface.number;
        if setting.interface.class.class == MASS_STORAGE && !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    let identity = Identity::of(&device, answers.names);
    let interfaces = numbers
        .into_iter()
        .map(|number| InterfaceProbe {
            number,
            bot: own::judge_bot(&configuration, number, link),
            uas: own::judge_uas(&configuration, number, link),
            linux: LinuxJudgement::of(&identity, &configuration, number, link),
        })
        .collect();
    let link = link::speed_finding(link.speed, answers.bos);
    Ok(Probe { device, configuration, link, interfaces })
}

impl Probe {
    /// UAS on the first interface that has it.
    pub fn uas(&self) -> Option<UasPlan> {
        self.interfaces.iter().find_map(|interface| interface.uas.plan)
    }

    /// BOT on the first interface that has it.
    pub fn bot(&self) -> Option<BotPlan> {
        self.interfaces.iter().find_map(|interface| interface.bot.plan)
    }

    /// The transport that we use: UAS where it works, else BOT.
    pub fn best(&self) -> Option<Plan> {
        self.uas().map(Plan::Uas).or_else(|| self.bot().map(Plan::Bot))
    }
}
