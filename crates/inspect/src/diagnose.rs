//! Why a drive is on the transport that it is on: Linux's own rules, in Linux's order, with what was read and where.
//!
//! Both drivers ask `uas_use_uas_driver` (Linux, drivers/usb/storage/uas-detect.h): `uas` takes the interface if the
//! answer is yes, `usb-storage` if it is no. [`Rule`] has its questions and what comes before and after; the first
//! that says no decides. What descriptors and ids decide is judged by [`quirks`]; what needs this machine, here.
//! [`Check`]s are what else a user asks: link, power, serial numbers, TRIM, SMART, resets.
//! Always true: a verdict names its evidence, and what the kernel really did is looked at last and never hidden.

mod absent;
mod advice;
mod budget;
mod cause;
mod check;
mod entry;
mod evidence;
mod flags;
mod rules;

pub use absent::{Absent, AbsentKind};
pub use advice::{Advice, Step, give_back_command};
pub use cause::{Cause, CauseKind, errno_meaning};
pub use check::{Check, CheckKind, Health};
pub use evidence::{Evidence, Reading};
pub use flags::Quirks;
pub use rules::{Judgement, Rule, Verdict};

use crate::inventory::{Inventory, KernelLog, Transport, UsbDevice};
use crate::log::History;
use crate::text::Report;
use quirks::DeviceId;
use quirks::quirk::Flags;
use std::cell::OnceCell;

/// The diagnosis of one interface of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The interface, such as `2-1:1.0`.
    pub interface: String,
    /// The transport that carries its commands now.
    pub transport: Transport,
    /// The driver that should, by the rules.
    pub expected: Expected,
    /// The reason for the transport.
    pub decision: Decision,
    /// Whether it speaks what `usb-storage` does, so that it could do without `uas`.
    pub speaks_bot: bool,
    /// Every rule in its order; [`Rule::Configured`] is before them if it is not met.
    pub judgements: Vec<Judgement>,
    /// Flags, and where they come from.
    pub quirks: Quirks,
    /// A driver has it, and there is no logical unit: the first commands got no answer.
    pub is_without_unit: bool,
    /// Trouble that the log shows, the cause that explains most first.
    pub causes: Vec<Cause>,
    /// Checks beyond the rules.
    pub checks: Vec<Check>,
    /// How to have it otherwise, beyond what rules and checks advise.
    pub advice: Vec<Advice>,
}

/// The driver that the rules lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// `uas`.
    Uas,
    /// `usb-storage`.
    UsbStorage,
    /// None at all.
    NoDriver,
}

/// The reason for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Every rule is met, or none that could be looked at is against it, and `uas` has the drive.
    AllMet,
    /// This rule said no.
    Decided(Rule),
    /// This rule said no, and `usb-storage`, which could have the drive, leaves it alone because of a quirk.
    LeftAlone(Rule),
    /// No rule that could be looked at says no; this one could not be, and would explain it.
    Supposed(Rule),
    /// The kernel did otherwise than the rules say.
    Unexplained,
    /// A program or another driver has the drive now.
    TakenAway,
    /// The rules lead to `usb-storage`, and no driver has the drive: it is not loaded, it gave up, or a program that had
    /// claimed the interface did not give it back.
    NotTaken,
    /// A report in text does not say which driver has the drive.
    NotShown,
}

/// Ids that no text of a report has.
const NO_ID: DeviceId = DeviceId::new(0, 0);

/// Diagnoses the drives of one machine: its log is parsed once, and when it is needed.
#[derive(Debug)]
pub struct Diagnoser<'a> {
    inventory: &'a Inventory,
    history: OnceCell<Option<History<'a>>>,
}

impl<'a> Diagnoser<'a> {
    /// A diagnoser of a machine.
    pub const fn of(inventory: &'a Inventory) -> Self {
        Self { inventory, history: OnceCell::new() }
    }

    fn history(&self) -> Option<&History<'a>> {
        self.history.get_or_init(|| self.inventory.readable_log().map(KernelLog::history)).as_ref()
    }

    /// Looks at every storage interface of a device.
    pub fn diagnose(&self, device: &UsbDevice) -> Vec<Diagnosis> {
        let gathered = Evidence::gather(self.inventory, device);
        let mut diagnoses: Vec<Diagnosis> =
            gathered.iter().map(|evidence| Diagnosis::of(evidence, self.history())).collect();
        if let Some(report) = &self.inventory.report {
            diagnoses.iter_mut().for_each(|diagnosis| diagnosis.cite(report));
        }
        if device.id == NO_ID {
            diagnoses.iter_mut().for_each(Diagnosis::drop_commands_without_id);
        }
        diagnoses
    }

    /// Everything that the log speaks of and that is not there.
    pub fn absent(&self) -> Vec<Absent> {
        self.history().map_or_else(Vec::new, |history| absent::find(self.inventory, history))
    }
}

/// Looks at every storage interface of one device.
pub fn diagnose(inventory: &Inventory, device: &UsbDevice) -> Vec<Diagnosis> {
    Diagnoser::of(inventory).diagnose(device)
}

/// Everything that the log speaks of and that is not there.
pub fn absent(inventory: &Inventory) -> Vec<Absent> {
    Diagnoser::of(inventory).absent()
}

impl Diagnosis {
    fn of(evidence: &Evidence<'_>, history: Option<&History<'_>>) -> Self {
        let mut judgements: Vec<Judgement> = Vec::with_capacity(Rule::ALL.len() + 1);
        for rule in std::iter::once(Rule::Configured).chain(Rule::ALL) {
            let judgement = rule.judge(evidence, &judgements);
            judgements.extend(judgement);
        }
        let transport = Transport::of(evidence.device, evidence.interface);
        let expected = expected(evidence, &judgements);
        let decision = decision(evidence, &transport, expected, &judgements);
        let causes = cause::find(evidence, history);
        let mut advice = advice::otherwise(evidence, &transport, decision);
        if causes.iter().any(|cause| cause.kind.is_serious()) {
            advice.clear();
            judgements.iter_mut().for_each(|one| one.advice.retain(|advice| !advice.is_wish));
        }
        Self {
            interface: evidence.interface.name.clone(),
            is_without_unit: matches!(transport, Transport::Uas { .. } | Transport::Bot)
                && evidence.interface.disks.is_empty()
                && !evidence.inventory.is_from_text(),
            checks: check::all(evidence, history, &causes),
            causes,
            advice,
            decision,
            speaks_bot: evidence.speaks_bot(),
            quirks: evidence.quirks,
            transport,
            expected,
            judgements,
        }
    }

    /// Drops advice whose commands need ids that a report does not have; a cause then says how to find them.
    fn drop_commands_without_id(&mut self) {
        for cause in &mut self.causes {
            let count = cause.advice.len();
            cause.advice.retain(|advice| !advice.needs_id());
            if cause.advice.len() < count {
                cause.advice.push(advice::find_port());
            }
        }
        let of_rules = self.judgements.iter_mut().map(|one| &mut one.advice);
        let of_checks = self.checks.iter_mut().map(|one| &mut one.advice);
        let all = of_rules.chain(of_checks).chain([&mut self.advice]);
        all.for_each(|advice| advice.retain(|one| !one.needs_id()));
    }

    /// Has every reading name the line of a text that it comes from.
    fn cite(&mut self, report: &Report) {
        let of_rules = self.judgements.iter_mut().flat_map(|one| &mut one.readings);
        let of_causes = self.causes.iter_mut().flat_map(|one| &mut one.readings);
        let of_checks = self.checks.iter_mut().flat_map(|one| &mut one.readings);
        of_rules.chain(of_causes).chain(of_checks).for_each(|reading| report.cite(reading));
    }

    /// Whether the kernel did what the rules say.
    pub fn agrees(&self) -> bool {
        match &self.transport {
            Transport::Uas { .. } => self.expected == Expected::Uas,
            Transport::Bot => self.expected == Expected::UsbStorage,
            Transport::None => self.expected == Expected::NoDriver,
            Transport::Claimed | Transport::Other(_) | Transport::Unknown => true,
        }
    }

    /// The flags that the driver goes by that has the drive; those of `uas` if none has it.
    pub fn in_force(&self) -> Flags {
        match self.transport {
            Transport::Bot => self.quirks.storage(),
            _ => self.quirks.uas(),
        }
    }

    /// Returns the judgement of one rule.
    pub fn judgement(&self, rule: Rule) -> Option<&Judgement> {
        self.judgements.iter().find(|judgement| judgement.rule == rule)
    }
}

/// Where the rules lead. An unknown one is taken for met: most machines meet it.
fn expected(evidence: &Evidence<'_>, judgements: &[Judgement]) -> Expected {
    let refused = judgements.iter().find(|judgement| judgement.verdict == Verdict::Refused);
    match refused.map(|judgement| judgement.rule) {
        None if evidence.speaks_uas() => Expected::Uas,
        Some(Rule::Configured | Rule::Loaded | Rule::Started) => Expected::NoDriver,
        _ if evidence.usb_storage_takes_it() => Expected::UsbStorage,
        _ => Expected::NoDriver,
    }
}

fn decision(
    evidence: &Evidence<'_>,
    transport: &Transport,
    expected: Expected,
    judgements: &[Judgement],
) -> Decision {
    let first = |verdict: Verdict, of_kernel: bool| {
        let questions = judgements.iter().filter(|judgement| !of_kernel || judgement.rule.is_question());
        questions.filter(|judgement| judgement.verdict == verdict).map(|judgement| judgement.rule).next()
    };
    match transport {
        Transport::Uas { .. } if expected == Expected::Uas => Decision::AllMet,
        Transport::Uas { .. } => Decision::Unexplained,
        Transport::Claimed | Transport::Other(_) => Decision::TakenAway,
        // What keeps it off UAS may be there without the driver's name. An entry of the user's wins over a table, and such a text may
        // not have it.
        Transport::Unknown => match first(Verdict::Refused, true) {
            Some(Rule::NotIgnored) if evidence.inventory.quirks.in_force.is_none() => Decision::NotShown,
            Some(rule) => Decision::Decided(rule),
            None => Decision::NotShown,
        },
        // With both drivers there, only a question of the kernel's sends a drive to usb-storage.
        Transport::Bot => match (first(Verdict::Refused, true), first(Verdict::Unknown, true)) {
            (Some(rule), _) => Decision::Decided(rule),
            // A text seldom has the kernel's configuration, and most kernels have UAS.
            (None, Some(Rule::Built)) if evidence.inventory.is_from_text() && !evidence.speaks_uas() => {
                Decision::Supposed(Rule::AlternateSetting)
            }
            (None, Some(rule)) => Decision::Supposed(rule),
            (None, None) => Decision::Unexplained,
        },
        Transport::None if expected == Expected::UsbStorage => Decision::NotTaken,
        Transport::None => match (first(Verdict::Refused, false), first(Verdict::Unknown, false)) {
            (Some(rule), _) if rule.is_question() && evidence.speaks_bot() && evidence.is_left_alone() => {
                Decision::LeftAlone(rule)
            }
            (Some(rule), _) => Decision::Decided(rule),
            (None, Some(rule)) => Decision::Supposed(rule),
            (None, None) => Decision::Unexplained,
        },
    }
}

#[cfg(test)]
mod tests;
