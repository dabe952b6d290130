//! Linux's rules for UAS, as far as descriptors, names and the link decide (`uas_use_uas_driver` of 6.x kernels).
//!
//! In the kernel's order. Left out, because no descriptor has it: whether the driver is there, the user's own quirks,
//! which replace what is built in, and what the host controller's driver cannot. Linux does not look at the directions
//! and kinds of the pipes, and neither does this.

use super::configuration::Configuration;
use super::identity::Identity;
use super::link::Link;
use super::own::{about_endpoints, host_streams, setting_finding, streams_offered};
use super::pipes::Pipes;
use super::quirk::{BridgeFacts, BuiltIn, KernelVersion};
use super::rule::{Evidence, Finding, Rule};
use alloc::vec::Vec;
use wire::usb::ClassCode;

/// Judgement of one interface by Linux's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxJudgement {
    /// In the order asked, up to the first that hides the rest: without a setting or without pipes there is no more.
    pub findings: Vec<Finding>,
    /// The quirks that are built in for the device.
    pub built_in: BuiltIn,
}

impl LinuxJudgement {
    /// Judges one interface of a device. What is behind `link.streams_max` only the rules of streams look at.
    pub fn of(identity: &Identity<'_>, configuration: &Configuration, interface: u8, link: Link) -> Self {
        Self::in_kernel(identity, configuration, interface, link, None)
    }

    /// The same by the tables of a version of Linux; `None` is the newest that is known.
    pub fn in_kernel(
        identity: &Identity<'_>,
        configuration: &Configuration,
        interface: u8,
        link: Link,
        kernel: Option<KernelVersion>,
    ) -> Self {
        let mut findings = Vec::new();
        findings.push(setting_finding(configuration, interface, ClassCode::UAS, Rule::UasSetting));
        let Some(setting) = configuration.setting_of_class(interface, ClassCode::UAS) else {
            return Self { findings, built_in: BuiltIn::in_kernel(identity, None, kernel) };
        };
        let pipes = Pipes::of(setting);
        findings.push(about_endpoints(Rule::PipeUsages, pipes.is_some(), setting, &setting.endpoints));
        let Some(pipes) = pipes else {
            return Self { findings, built_in: BuiltIn::in_kernel(identity, None, kernel) };
        };
        let bridge = BridgeFacts {
            max_power: configuration.head.max_power,
            speed: link.speed,
            status_streams: pipes.status.streams(),
        };
        let built_in = BuiltIn::in_kernel(identity, Some(bridge), kernel);
        findings.push(Finding {
            rule: Rule::NotIgnored,
            met: !built_in.ignores_uas(),
            evidence: Evidence::Bridge { id: identity.id, revision: identity.revision, bridge, built_in },
        });
        findings.push(host_streams(&pipes, link));
        // Not a rule but a failure: the driver is bound, allocates streams, gets none, and unbinds.
        findings.push(streams_offered(&pipes, link));
        Self { findings, built_in }
    }

    /// The first rule that is broken: why the kernel does not use UAS. `None` if nothing here is against it.
    pub fn decisive(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| !finding.met)
    }

    /// Returns the finding of one rule; `None` if Linux does not check it, since one before it has decided.
    pub fn finding(&self, rule: Rule) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.rule == rule)
    }
}
