//! The rules in their order, and what each says of one drive.
//!
//! Before them all, and reported only where it is not met: has the kernel set a configuration? Before its questions: was the driver built? Its questions: an alternate setting that is UAS, four pipes,
//! not ignored, scatter-gather, streams. After them: is the driver loaded, and did it start?

mod configured;
mod driver;
mod ignored;
pub(super) mod streams;

use super::advice::{self, Advice};
use super::evidence::{Evidence, Reading};
use quirks::Evidence as Seen;
use wire::uas::PipeUsage;
use wire::usb::ClassCode;

/// A rule, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A configuration is set: without one no driver is asked. Judged only of a drive that has none.
    Configured,
    /// CONFIG_USB_UAS: without it `usb-storage` does not even ask.
    Built,
    /// An alternate setting is exactly 08/06/62.
    AlternateSetting,
    /// Four endpoints say which pipe they are.
    Pipes,
    /// No quirk says that UAS is to be ignored.
    NotIgnored,
    /// The controller takes lists of memory pieces.
    ScatterGather,
    /// At super speed, the controller has streams.
    Streams,
    /// The driver `uas` is there: if it is not, `usb-storage` declines all the same.
    Loaded,
    /// `uas` has set the interface up.
    Started,
}

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is met.
    Met,
    /// It is not met.
    Refused,
    /// The evidence that it needs could not be read.
    Unknown,
    /// It was not asked, since an earlier one has decided.
    NotAsked,
}

/// A rule, its verdict and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The rule.
    pub rule: Rule,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub because: String,
    /// Values that were read, and where.
    pub readings: Vec<Reading>,
    /// Facts that root could read in addition.
    pub root_adds: Option<String>,
    /// Advice on it.
    pub advice: Vec<Advice>,
}

impl Rule {
    /// Every rule of a drive that has a configuration, in order.
    pub const ALL: [Self; 8] = [
        Self::Built,
        Self::AlternateSetting,
        Self::Pipes,
        Self::NotIgnored,
        Self::ScatterGather,
        Self::Streams,
        Self::Loaded,
        Self::Started,
    ];

    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Built => "built",
            Self::AlternateSetting => "alternate-setting",
            Self::Pipes => "pipes",
            Self::NotIgnored => "not-ignored",
            Self::ScatterGather => "scatter-gather",
            Self::Streams => "streams",
            Self::Loaded => "loaded",
            Self::Started => "started",
        }
    }

    /// Returns the condition that it checks, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Configured => "the kernel has set a configuration",
            Self::Built => "the kernel is built with UAS",
            Self::AlternateSetting => "an alternate setting supports UAS",
            Self::Pipes => "its endpoints have pipe usage descriptors",
            Self::NotIgnored => "no quirk disables UAS",
            Self::ScatterGather => "the controller supports scatter-gather lists",
            Self::Streams => "the controller has streams",
            Self::Loaded => "the driver uas is there",
            Self::Started => "uas has started",
        }
    }

    /// Whether a no sends the drive to `usb-storage`, and not to no driver.
    pub const fn is_question(self) -> bool {
        !matches!(self, Self::Configured | Self::Loaded | Self::Started)
    }

    /// Judges one drive by it, after the judgements of the rules before it.
    /// `None` of one that is reported only where it is not met.
    pub(super) fn judge(self, evidence: &Evidence<'_>, before: &[Judgement]) -> Option<Judgement> {
        let judgement = match self {
            Self::Configured => return configured::judge(evidence),
            Self::Built => driver::built(evidence),
            Self::AlternateSetting => alternate_setting(evidence),
            Self::Pipes => pipes(evidence),
            Self::NotIgnored => ignored::judge(evidence),
            Self::ScatterGather => scatter_gather(evidence),
            Self::Streams => streams::judge(evidence),
            Self::Loaded => driver::loaded(evidence, before),
            Self::Started => started(evidence, before),
        };
        Some(judgement)
    }

    fn says(self, verdict: Verdict, because: impl Into<String>) -> Judgement {
        let because = because.into();
        Judgement { rule: self, verdict, because, readings: Vec::new(), root_adds: None, advice: Vec::new() }
    }
}

impl Judgement {
    fn seen(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }

    fn seen_if_any(mut self, reading: Option<Reading>) -> Self {
        self.readings.extend(reading);
        self
    }

    fn advise(mut self, advice: Advice) -> Self {
        self.advice.push(advice);
        self
    }
}

fn alternate_setting(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::AlternateSetting;
    let Some(configuration) = evidence.device.described() else {
        if evidence.driver() == Some("uas") {
            return rule.says(Verdict::Met, "uas is bound and requires one").seen(evidence.driver_reading());
        }
        if evidence.is_shown_to_speak_uas() {
            return rule
                .says(Verdict::Met, "the kernel went on to later rules, which requires one")
                .seen_if_any(
                    evidence
                        .log_line_of("uas")
                        .or_else(|| evidence.log_line("UAS is "))
                        .or_else(|| evidence.log_line("USB controller ")),
                );
        }
        return rule
            .says(
                Verdict::Unknown,
                if evidence.inventory.is_from_text() {
                    "the text does not have its descriptors"
                } else {
                    "its descriptors cannot be read"
                },
            )
            .seen(evidence.attribute("descriptors", "the active configuration is missing"));
    };
    let settings = evidence
        .settings
        .iter()
        .map(|one| format!("setting {} {}", one.interface.alternate, one.interface.class));
    let mut found = settings.collect::<Vec<_>>().join(", ");
    if let Some(fault) = configuration.faults.first() {
        found += &format!("; the descriptors are wrong: {fault:?}");
    }
    let reading = evidence.attribute("descriptors", found);
    let uas = configuration.setting_of_class(evidence.interface.number, ClassCode::UAS);
    if uas.is_none() && is_shortened(evidence) && evidence.driver() != Some("uas") {
        return rule.says(Verdict::Unknown, "the text has a part of its descriptors alone").seen(reading);
    }
    match uas.filter(|_| evidence.speaks_uas()) {
        Some(uas) => rule
            .says(Verdict::Met, format!("setting {} is {}", uas.interface.alternate, ClassCode::UAS))
            .seen(reading),
        None => rule
            .says(
                Verdict::Refused,
                format!("no setting is {}: the drive does not support UAS", ClassCode::UAS),
            )
            .seen(reading)
            .advise(advice::drive_without_uas(evidence)),
    }
}

/// Whether a text has a part of the descriptors alone.
fn is_shortened(evidence: &Evidence<'_>) -> bool {
    let report = evidence.inventory.report.as_ref();
    report.is_some_and(|report| report.short.contains(&evidence.device.port))
}

fn pipes(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Pipes;
    let is_short = is_shortened(evidence);
    let finding = evidence.finding(quirks::Rule::PipeUsages).filter(|finding| finding.met || !is_short);
    let Some(finding) = finding else {
        if evidence.driver() == Some("uas") {
            return rule.says(Verdict::Met, "uas is bound and requires them").seen(evidence.driver_reading());
        }
        if evidence.speaks_uas() {
            return rule.says(Verdict::Unknown, "the text does not list its endpoints");
        }
        return rule.says(Verdict::NotAsked, "there is no setting to look at");
    };
    let endpoints = match &finding.evidence {
        Seen::Endpoints { endpoints, .. } => endpoints.as_slice(),
        _ => &[],
    };
    let is_declared = |usage: &PipeUsage| endpoints.iter().any(|endpoint| endpoint.usage == Some(*usage));
    let found = endpoints.iter().filter_map(|end| Some(format!("{} {}", end.usage?, end.address)));
    let reading = evidence.attribute("descriptors", found.collect::<Vec<_>>().join(", "));
    if finding.met {
        return rule.says(Verdict::Met, "all four pipes are present").seen(reading);
    }
    let missing: Vec<String> =
        PIPES.iter().filter(|usage| !is_declared(usage)).map(ToString::to_string).collect();
    rule.says(
        Verdict::Refused,
        format!("no endpoint has a pipe usage descriptor for the {}", missing.join(", nor the ")),
    )
    .seen(reading)
    .advise(advice::firmware())
}

const PIPES: [PipeUsage; 4] = [PipeUsage::Command, PipeUsage::Status, PipeUsage::DataIn, PipeUsage::DataOut];

fn scatter_gather(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::ScatterGather;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "an earlier rule has decided");
    }
    if evidence.driver() == Some("uas") {
        return rule.says(Verdict::Met, "uas is bound, which requires it").seen(evidence.driver_reading());
    }
    if let Some(line) = evidence.log_line(NO_LISTS) {
        return rule
            .says(
                Verdict::Refused,
                "the kernel logged that the controller does not support scatter-gather lists",
            )
            .seen(line)
            .advise(advice::other_controller());
    }
    let driver = evidence.controller.and_then(|controller| controller.driver.as_deref());
    // Of xhci, ehci and uhci it is known from their sources; of others it depends on the machine. Tegra's is an xhci.
    let known = driver.is_some_and(|driver| {
        ["xhci", "ehci", "uhci", "vhci", "dummy_hcd", "tegra-xusb"]
            .iter()
            .any(|prefix| driver.starts_with(prefix))
    });
    // What shows registers of xHCI is driven by Linux's xHCI core, whatever it is called.
    let registers = evidence.controller.and_then(|controller| controller.stream_arrays.as_ref().ok());
    match (driver, evidence.controller) {
        (Some(driver), Some(controller)) if known => rule
            .says(Verdict::Met, format!("{driver} does"))
            .seen(Reading::new(format!("{}/driver", controller.path), format!("→ {driver}"))),
        _ => match registers {
            Some(arrays) => {
                rule.says(Verdict::Met, "xHCI controllers do").seen(Reading::new(&arrays.path, "exists"))
            }
            None => by_table_size(evidence),
        },
    }
}

/// Beginning of the kernel's line if a controller takes no lists; the driver's name and the rest follow (uas-detect.h).
const NO_LISTS: &str = "The driver for the USB controller ";

/// Judges a controller with an unknown driver by the SCSI host of `usb-storage`: it has the controller's own
/// number of entries, and [`SG_ALL`] where the controller has none (`usb_stor_sg_tablesize` in
/// drivers/usb/storage/usb.c).
fn by_table_size(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::ScatterGather;
    let is_usb_storage = |driver: &str| driver == "usb-storage" || driver.starts_with("ums-");
    let table = evidence.interface.scatter_gather.as_ref();
    let Some(table) = table.filter(|_| evidence.driver().is_some_and(is_usb_storage)) else {
        return rule.says(Verdict::Unknown, "unknown for this controller's driver");
    };
    let reading = Reading::new(evidence.interface.attribute(&table.attribute), table.entries.to_string());
    let judgement = match table.entries {
        0 => rule.says(Verdict::Unknown, "unknown for this controller's driver"),
        SG_ALL => rule.says(
            Verdict::Unknown,
            format!(
                "usb-storage uses {SG_ALL} entries, its default for controllers without lists; the \
                 controller may have as many"
            ),
        ),
        _ => rule.says(Verdict::Met, "usb-storage uses the number of entries of the controller"),
    };
    judgement.seen(reading)
}

/// The entries that `usb-storage` has where the controller takes no lists (include/scsi/scsi_host.h).
const SG_ALL: u64 = 128;

/// That `uas` was asked and refused the interface with an error, by the kernel's log.
fn probe_error(evidence: &Evidence<'_>) -> Option<Judgement> {
    let line = evidence.log_line_of("uas").filter(|line| line.found.contains("failed with error"))?;
    if evidence.driver().is_some() {
        return None;
    }
    let because = match super::cause::errno_meaning(&line.found) {
        Some(meaning) => format!("uas has refused it with error {meaning}"),
        None => "uas has refused it with an error".to_owned(),
    };
    let judgement = Rule::Started.says(Verdict::Refused, because).seen(line);
    let judgement = if evidence.speaks_bot_or_unknown() {
        judgement.advise(advice::keep_off_uas(evidence))
    } else {
        judgement
    };
    Some(judgement.advise(advice::other_controller()))
}

fn started(evidence: &Evidence<'_>, before: &[Judgement]) -> Judgement {
    let rule = Rule::Started;
    let any = |verdict: Verdict| before.iter().any(|judgement| judgement.verdict == verdict);
    if let Some(judgement) = probe_error(evidence).filter(|_| !any(Verdict::Refused)) {
        return judgement;
    }
    match evidence.driver() {
        Some("uas") => rule
            .says(Verdict::Met, format!("it is bound, with setting {}", evidence.interface.alternate))
            .seen(evidence.driver_reading()),
        Some(driver) => rule
            .says(Verdict::NotAsked, format!("{driver} has the interface"))
            .seen(evidence.driver_reading()),
        None if any(Verdict::Refused) || !evidence.speaks_uas() => {
            rule.says(Verdict::NotAsked, "an earlier rule has decided")
        }
        None if any(Verdict::Unknown) => rule
            .says(Verdict::Unknown, "no driver is bound; the unknown rules above may explain it")
            .seen(evidence.driver_reading()),
        None if evidence.finding(quirks::Rule::StreamsOffered).is_some_and(|finding| !finding.met) => {
            let offered =
                evidence.finding(quirks::Rule::StreamsOffered).map(|finding| finding.evidence.to_string());
            rule.says(Verdict::Refused, "at SuperSpeed a pipe of the drive has no streams, so uas gave up")
                .seen(evidence.attribute("descriptors", offered.unwrap_or_default()))
                .seen(evidence.driver_reading())
                .advise(advice::below_super_speed())
        }
        None => {
            let because = "no driver is bound: uas failed (SET_INTERFACE, endpoints, streams), or was not \
                           reattached after a program had claimed the interface";
            rule.says(Verdict::Refused, because)
                .seen(evidence.driver_reading())
                .seen_if_any(evidence.log_line_of("uas"))
                .advise(advice::probe_again(evidence))
        }
    }
}
