//! The rules in their order, and what each says of one drive.
//!
//! Before the kernel's questions: was the driver built? Its questions: an alternate setting that is UAS, four pipes,
//! not ignored, scatter-gather, streams. After them: is the driver loaded, and did it start?

use super::advice::{self, Advice};
use super::evidence::{Evidence, Reading};
use crate::inventory::{ConfigChoice, Module};
use crate::tree::Unread;
use initiator::probe::quirk::{BridgeFacts, Flag};
use initiator::probe::{self, Evidence as Seen};
use wire::uas::PipeUsage;
use wire::usb::ClassCode;

/// A rule, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
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

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is met.
    Met,
    /// It is not met.
    Refused,
    /// What it needs could not be read.
    Unknown,
    /// It was not asked, since an earlier one has decided.
    NotAsked,
}

/// A rule, its verdict and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The rule.
    pub rule: Rule,
    /// What it says.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub because: String,
    /// What was read, and where.
    pub readings: Vec<Reading>,
    /// What root could read in addition.
    pub root_adds: Option<String>,
    /// What to do about it.
    pub advice: Vec<Advice>,
}

impl Rule {
    /// Every rule, in order.
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

    /// What it asks, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Built => "the kernel is built with UAS",
            Self::AlternateSetting => "an alternate setting speaks UAS",
            Self::Pipes => "its endpoints say which pipe they are",
            Self::NotIgnored => "no quirk says to ignore UAS",
            Self::ScatterGather => "the controller takes scatter-gather lists",
            Self::Streams => "the controller has streams",
            Self::Loaded => "the driver uas is there",
            Self::Started => "uas has started",
        }
    }

    /// Whether a no sends the drive to `usb-storage`, and not to nobody.
    pub const fn is_question(self) -> bool {
        !matches!(self, Self::Loaded | Self::Started)
    }

    /// What it says of one drive, after what the rules before it have said.
    pub(super) fn judge(self, evidence: &Evidence<'_>, before: &[Judgement]) -> Judgement {
        match self {
            Self::Built => built(evidence),
            Self::AlternateSetting => alternate_setting(evidence),
            Self::Pipes => pipes(evidence),
            Self::NotIgnored => not_ignored(evidence),
            Self::ScatterGather => scatter_gather(evidence),
            Self::Streams => streams(evidence),
            Self::Loaded => loaded(evidence),
            Self::Started => started(evidence, before),
        }
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

fn built(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Built;
    let drivers = &evidence.inventory.drivers;
    if let Module::Registered(path) = &drivers.uas {
        return rule.says(Verdict::Met, "its driver is registered").seen(Reading::new(path, "exists"));
    }
    if let Some((choice, path)) = &drivers.config {
        let (verdict, found) = match choice {
            ConfigChoice::BuiltIn => (Verdict::Met, "CONFIG_USB_UAS=y"),
            ConfigChoice::Module => (Verdict::Met, "CONFIG_USB_UAS=m"),
            ConfigChoice::Off => (Verdict::Refused, "CONFIG_USB_UAS is not set"),
        };
        let because = if verdict == Verdict::Met {
            "its configuration says so"
        } else {
            "this kernel has no UAS: usb-storage takes every drive that it can, without asking"
        };
        let judgement = rule.says(verdict, because).seen(Reading::new(path, found));
        return if verdict == Verdict::Met { judgement } else { judgement.advise(advice::other_kernel()) };
    }
    if let Module::Loadable(path) = &drivers.uas {
        return rule.says(Verdict::Met, "it has the module").seen(Reading::new(path, "lists uas"));
    }
    rule.says(Verdict::Unknown, "the kernel's configuration could not be read")
}

fn alternate_setting(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::AlternateSetting;
    let Some(configuration) = &evidence.device.configuration else {
        return rule
            .says(Verdict::Unknown, "the kernel has set no configuration, or its descriptors cannot be read")
            .seen(evidence.attribute("bConfigurationValue", "empty"));
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
    match uas.filter(|_| evidence.speaks_uas()) {
        Some(uas) => rule
            .says(Verdict::Met, format!("setting {} is {}", uas.interface.alternate, ClassCode::UAS))
            .seen(reading),
        None => rule
            .says(Verdict::Refused, format!("no setting is {}: the drive speaks no UAS", ClassCode::UAS))
            .seen(reading)
            .advise(advice::drive_without_uas(evidence)),
    }
}

fn pipes(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Pipes;
    let Some(finding) = evidence.finding(probe::Rule::PipeUsages) else {
        return rule.says(Verdict::NotAsked, "there is no setting to look at");
    };
    let endpoints = match &finding.evidence {
        Seen::Endpoints { endpoints, .. } => endpoints.as_slice(),
        _ => &[],
    };
    let told = |usage: &PipeUsage| endpoints.iter().any(|endpoint| endpoint.usage == Some(*usage));
    let found = endpoints.iter().filter_map(|end| Some(format!("{} {}", end.usage?, end.address)));
    let reading = evidence.attribute("descriptors", found.collect::<Vec<_>>().join(", "));
    if finding.met {
        return rule.says(Verdict::Met, "all four are there").seen(reading);
    }
    let missing: Vec<String> = PIPES.iter().filter(|usage| !told(usage)).map(ToString::to_string).collect();
    rule.says(Verdict::Refused, format!("no endpoint says that it is the {}", missing.join(", nor the ")))
        .seen(reading)
        .advise(advice::firmware())
}

const PIPES: [PipeUsage; 4] = [PipeUsage::Command, PipeUsage::Status, PipeUsage::DataIn, PipeUsage::DataOut];

fn not_ignored(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::NotIgnored;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "there is no UAS to ignore");
    }
    let quirks = &evidence.quirks;
    let (built_in, in_force) = (&quirks.built_in, quirks.uas());
    let because = if !in_force.contains(Flag::IgnoreUas) {
        match quirks.user {
            Some(_) if built_in.uas().contains(Flag::IgnoreUas) => {
                "Linux would ignore it, and usb-storage.quirks= says not to".to_owned()
            }
            _ => format!("quirks in force: {in_force}"),
        }
    } else if quirks.user.is_some_and(|user| user.contains(Flag::IgnoreUas)) {
        format!("usb-storage.quirks= has the letter u for {}", evidence.device.id)
    } else if built_in.row.is_some_and(|row| row.flags.contains(Flag::IgnoreUas)) {
        format!("Linux's own table says to ignore UAS for {}", evidence.device.id)
    } else {
        built_in.coded.map_or_else(String::new, |coded| coded.reason().to_owned())
    };
    let verdict = if in_force.contains(Flag::IgnoreUas) { Verdict::Refused } else { Verdict::Met };
    let mut judgement = rule.says(verdict, because);
    if let Some(row) = built_in.row {
        let found = format!("{}: {}", row.name, row.flags);
        judgement = judgement.seen(Reading::new("Linux, unusual_uas.h", found));
    }
    if let Some(coded) = built_in.coded {
        judgement = judgement.seen(Reading::new("Linux, uas-detect.h", coded.reason()));
    }
    if let (Some(_), Some(Seen::Bridge { bridge, .. })) =
        (built_in.coded, evidence.finding(probe::Rule::NotIgnored).map(|finding| &finding.evidence))
    {
        let BridgeFacts { max_power, status_streams, .. } = bridge;
        let found = format!("bMaxPower {max_power}, {status_streams} streams on the status pipe");
        judgement = judgement.seen(evidence.attribute("descriptors", found));
        judgement = judgement.seen(evidence.attribute("speed", evidence.device.speed.to_string()));
    }
    let value = evidence.inventory.quirks.value();
    let value = if value.is_empty() { "empty" } else { value };
    judgement = judgement.seen(Reading::new(evidence.inventory.quirks.path(), value));
    if verdict == Verdict::Met {
        return judgement;
    }
    let line = ["UAS is ignored for this device", "UAS is blacklisted for this device"];
    let line = line.iter().find_map(|words| evidence.log_line(words));
    judgement.seen_if_any(line).advise(advice::use_uas(evidence))
}

fn scatter_gather(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::ScatterGather;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "an earlier rule has decided");
    }
    if let Some(line) = evidence.log_line("does not support scatter-gather") {
        return rule
            .says(Verdict::Refused, "the kernel says that the controller takes no scatter-gather lists")
            .seen(line)
            .advise(advice::other_controller());
    }
    let driver = evidence.controller.and_then(|controller| controller.driver.as_deref());
    if evidence.driver() == Some("uas") {
        return rule.says(Verdict::Met, "uas is bound, and would not be").seen(evidence.driver_reading());
    }
    // Of xhci, ehci and uhci it is known from their sources; of others it depends on the machine.
    let known = driver.is_some_and(|driver| {
        ["xhci", "ehci", "uhci", "vhci", "dummy_hcd"].iter().any(|prefix| driver.starts_with(prefix))
    });
    match (driver, evidence.controller) {
        (Some(driver), Some(controller)) if known => rule
            .says(Verdict::Met, format!("{driver} does"))
            .seen(Reading::new(format!("{}/driver", controller.path), format!("→ {driver}"))),
        _ => rule.says(Verdict::Unknown, "it is not known of this controller's driver"),
    }
}

fn streams(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Streams;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "an earlier rule has decided");
    }
    let speed = evidence.attribute("speed", evidence.device.speed.to_string());
    if !evidence.device.speed.is_super() {
        return rule.says(Verdict::Met, "below super speed none are needed").seen(speed);
    }
    let Some(controller) = evidence.controller else {
        return rule.says(Verdict::Unknown, "the controller is not to be seen").seen(speed);
    };
    if let Some(line) = evidence.log_line("does not support streams") {
        return rule
            .says(Verdict::Refused, "the kernel says that the controller has no streams")
            .seen(line)
            .advise(advice::other_controller());
    }
    if evidence.driver() == Some("uas") {
        return rule.says(Verdict::Met, "uas is bound, and would not be").seen(evidence.driver_reading());
    }
    let driver = controller.driver.as_deref().unwrap_or_default();
    let driver_reading = Reading::new(format!("{}/driver", controller.path), format!("→ {driver}"));
    if NEVER_STREAMS.contains(&driver) {
        return rule
            .says(Verdict::Refused, format!("{driver} never has streams"))
            .seen(driver_reading)
            .advise(advice::without_streams(driver));
    }
    if let Some((vendor, device, name)) =
        BROKEN_STREAMS.iter().find(|row| controller.pci == Some((row.0, row.1)))
    {
        let reading =
            Reading::new(format!("{}/device", controller.path), format!("{vendor:04x}:{device:04x}, {name}"));
        let because = format!("Linux does not use the streams of the {name}, since they are broken");
        return rule.says(Verdict::Refused, because).seen(reading).advise(advice::other_controller());
    }
    let neighbour = evidence.inventory.devices.iter().filter(|device| device.bus == evidence.device.bus);
    let bound =
        neighbour.flat_map(|device| &device.interfaces).find(|one| one.driver.as_deref() == Some("uas"));
    match (&controller.stream_arrays, bound) {
        (Ok(arrays), _) => {
            let reading = Reading::new(&arrays.path, format!("MaxPSASize {}", arrays.max_psa_size));
            if arrays.max_psa_size >= MAX_PSA_SIZE_MIN {
                return rule.says(Verdict::Met, "its stream arrays are large enough").seen(reading);
            }
            let because = format!("the controller has no streams: MaxPSASize is below {MAX_PSA_SIZE_MIN}");
            rule.says(Verdict::Refused, because).seen(reading).advise(advice::other_controller())
        }
        (Err(_), Some(interface)) => rule
            .says(Verdict::Met, "another drive of this bus is on UAS")
            .seen(Reading::new(interface.attribute("driver"), "→ uas")),
        (Err(unread), None) => {
            let mut judgement = rule
                .says(Verdict::Unknown, "most xHCI controllers have them; this one has not been asked")
                .seen(speed);
            if *unread == Unread::Refused {
                judgement.root_adds =
                    Some("debugfs tells MaxPSASize, and the kernel's log tells refusals".into());
            }
            judgement
        }
    }
}

/// Controllers' drivers that never set `can_do_streams`.
const NEVER_STREAMS: [&str; 2] = ["vhci_hcd", "dummy_hcd"];

/// The least MaxPSASize with which Linux uses streams: 32 entries of the array.
const MAX_PSA_SIZE_MIN: u8 = 4;

/// Controllers of which Linux knows that their streams are broken (drivers/usb/host/xhci-pci.c). Those in MediaTek's
/// chips are not on PCI and show a MaxPSASize of 4.
pub(super) const BROKEN_STREAMS: [(u16, u16, &str); 6] = [
    (0x1106, 0x3432, "VIA VL80x"),
    (0x1b21, 0x1042, "ASMedia ASM1042"),
    (0x1b6f, 0x7023, "Etron EJ168"),
    (0x1b6f, 0x7052, "Etron EJ188"),
    (0x1b73, 0x1000, "Fresco Logic FL1000"),
    (0x1b73, 0x1009, "Fresco Logic FL1009"),
];

fn loaded(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Loaded;
    let drivers = &evidence.inventory.drivers;
    match &drivers.uas {
        Module::Registered(path) => {
            rule.says(Verdict::Met, "it is registered").seen(Reading::new(path, "exists"))
        }
        _ if matches!(drivers.config, Some((ConfigChoice::Off, _))) => {
            rule.says(Verdict::NotAsked, "this kernel has none")
        }
        Module::Loadable(path) => {
            let judgement = rule
                .says(
                    Verdict::Refused,
                    "the module uas is there and not loaded: usb-storage leaves the drive to it",
                )
                .seen(Reading::new("/sys/bus/usb/drivers/uas", "does not exist"))
                .seen(Reading::new(path, "lists uas"));
            match &drivers.forbidden {
                Some((line, path)) => judgement
                    .seen(Reading::new(path, line))
                    .advise(advice::allow_module(line, path, evidence)),
                None => judgement.advise(advice::load_module("uas", evidence)),
            }
        }
        Module::Absent(path) => rule
            .says(
                Verdict::Refused,
                "there is no module uas: usb-storage leaves the drive to it, and nobody takes it",
            )
            .seen(Reading::new("/sys/bus/usb/drivers/uas", "does not exist"))
            .seen(Reading::new(path, "does not list uas"))
            .advise(advice::install_module(evidence)),
        Module::Unknown => rule
            .says(Verdict::Unknown, "it is not registered, and the index of modules could not be read")
            .seen(Reading::new("/sys/bus/usb/drivers/uas", "does not exist")),
    }
}

fn started(evidence: &Evidence<'_>, before: &[Judgement]) -> Judgement {
    let rule = Rule::Started;
    let any = |verdict: Verdict| before.iter().any(|judgement| judgement.verdict == verdict);
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
            .says(Verdict::Unknown, "no driver is bound, which what is not known above would explain")
            .seen(evidence.driver_reading()),
        None if evidence.finding(probe::Rule::StreamsOffered).is_some_and(|finding| !finding.met) => {
            let offered =
                evidence.finding(probe::Rule::StreamsOffered).map(|finding| finding.evidence.to_string());
            rule.says(Verdict::Refused, "at super speed a pipe of the drive has no streams: uas gave up")
                .seen(evidence.attribute("descriptors", offered.unwrap_or_default()))
                .seen(evidence.driver_reading())
                .advise(advice::below_super_speed())
        }
        None => {
            let because = "no driver is bound: uas gave up (SET_INTERFACE, endpoints, streams), or a program \
                           that had claimed the interface did not give it back";
            let line = evidence.log_line("uas");
            rule.says(Verdict::Refused, because)
                .seen(evidence.driver_reading())
                .seen_if_any(line)
                .advise(advice::probe_again(evidence))
        }
    }
}
