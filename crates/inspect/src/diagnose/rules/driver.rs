//! Whether the kernel has the driver `uas`: built with it, and there.
//!
//! A registered driver comes first, then the kernel's configuration, then the index of modules. They answer different
//! questions: a kernel that was built without CONFIG_USB_UAS has no module to be installed for it, and `usb-storage` takes every
//! drive there; one that has it as a module has `usb-storage` leave drives to a module that may not be installed.
//! Left out: modules that were built outside the kernel's tree.

use super::{Judgement, Rule, Verdict};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::{ConfigChoice, KernelConfig, Module};
use crate::tree::Unread;

pub(super) fn built(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::Built;
    let drivers = &evidence.inventory.drivers;
    if let Module::Registered(path) = &drivers.uas {
        return rule.says(Verdict::Met, "its driver is registered").seen(Reading::new(path, "exists"));
    }
    if let Some(config) = &drivers.config {
        return by_config(evidence, config);
    }
    if let Module::Loadable(path) = &drivers.uas {
        return rule.says(Verdict::Met, "it has the module").seen(Reading::new(path, "lists uas"));
    }
    if evidence.inventory.is_from_text() && evidence.is_shown_to_speak_uas() {
        return rule
            .says(Verdict::Met, "the kernel has evaluated UAS")
            .seen_if_any(evidence.log_line("USB controller ").or_else(|| evidence.log_line("UAS is ")));
    }
    let judgement = rule.says(Verdict::Unknown, "the kernel's configuration could not be read");
    let found = |why: Unread| match why {
        Unread::Absent => "does not exist",
        Unread::Refused => "for root only",
        Unread::Failed => "no configuration that can be read",
    };
    let unread = drivers.config_unread.iter();
    let mut judgement =
        unread.fold(judgement, |judgement, (path, why)| judgement.seen(Reading::new(path, found(*why))));
    if drivers.config_unread.iter().any(|(_, why)| *why == Unread::Refused) {
        judgement.root_adds = Some("the kernel's configuration shows whether it has UAS".into());
    }
    judgement
}

/// Judges by the kernel's configuration. It has UAS in a menu of USB_STORAGE, without which there is none.
fn by_config(evidence: &Evidence<'_>, config: &KernelConfig) -> Judgement {
    let rule = Rule::Built;
    let is_without_both = evidence.inventory.drivers.is_without_usb_storage();
    let judgement = match config.uas {
        ConfigChoice::BuiltIn | ConfigChoice::Module => rule.says(Verdict::Met, "its configuration says so"),
        ConfigChoice::Off if is_without_both => rule.says(
            Verdict::Refused,
            "this kernel is built without CONFIG_USB_STORAGE and UAS, so it supports no USB drive",
        ),
        ConfigChoice::Off => rule.says(
            Verdict::Refused,
            "this kernel is built without CONFIG_USB_UAS, so usb-storage binds to every drive that supports BOT",
        ),
    };
    let storage = config.usb_storage.map(|choice| config.reading("CONFIG_USB_STORAGE", choice));
    let judgement = judgement.seen(config.reading("CONFIG_USB_UAS", config.uas)).seen_if_any(storage);
    match config.uas {
        ConfigChoice::Off => judgement.advise(advice::other_kernel(is_without_both)),
        _ => judgement,
    }
}

pub(super) fn loaded(evidence: &Evidence<'_>, before: &[Judgement]) -> Judgement {
    let rule = Rule::Loaded;
    let drivers = &evidence.inventory.drivers;
    if let Module::Registered(path) = &drivers.uas {
        return rule.says(Verdict::Met, "it is registered").seen(Reading::new(path, "exists"));
    }
    if before.iter().any(|judgement| judgement.verdict == Verdict::Refused) {
        return rule.says(Verdict::NotAsked, "uas is not needed: an earlier rule has decided");
    }
    let unregistered = Reading::new("/sys/bus/usb/drivers/uas", "does not exist");
    let configured = drivers.config.as_ref().map(|config| config.reading("CONFIG_USB_UAS", config.uas));
    let in_the_way = drivers.in_the_way_of("uas");
    let forbidding = || in_the_way.iter().map(|(one, _)| Reading::new(&one.path, &one.line));
    let place = Place::of(evidence);
    let Some((what, index)) = place.explained(evidence) else {
        let judgement =
            rule.says(Verdict::Unknown, "it is not registered, and modules.dep could not be read");
        let judgement = judgement.seen(unregistered).seen_if_any(configured);
        return forbidding().fold(judgement, Judgement::seen);
    };
    let has_it = evidence.driver() == Some("usb-storage");
    let judgement = rule
        .says(Verdict::Refused, without_uas(evidence, what))
        .seen(unregistered)
        .seen_if_any(index)
        .seen_if_any(configured)
        .seen_if_any(has_it.then(|| evidence.driver_reading()));
    let judgement = forbidding().fold(judgement, Judgement::seen);
    let is_forbidden = !in_the_way.is_empty();
    let judgement = match place {
        Place::Loadable if is_forbidden => judgement,
        Place::Loadable => return judgement.advise(advice::load_module("uas", evidence)),
        Place::BuiltIn => return judgement.advise(advice::start_what_is_built_in()),
        // It was not left to uas, so that a module alone would change nothing.
        _ if has_it && drivers.config.is_none() => return judgement.advise(advice::other_kernel(false)),
        _ => judgement.advise(advice::install_module("uas", evidence)),
    };
    if is_forbidden { judgement.advise(advice::allow_module("uas", evidence)) } else { judgement }
}

/// Where a driver is that is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is a part of the kernel.
    BuiltIn,
    /// It is a module that could be loaded.
    Loadable,
    /// It is a module of this kernel, and is not installed.
    NotInstalled,
    /// It is no module of those that are installed.
    Absent,
    /// It is not known.
    Unknown,
}

impl Place {
    fn of(evidence: &Evidence<'_>) -> Self {
        let drivers = &evidence.inventory.drivers;
        match (&drivers.uas, drivers.config.as_ref().map(|config| config.uas)) {
            (Module::Loadable(_), _) => Self::Loadable,
            _ if drivers.uas_is_built_in => Self::BuiltIn,
            (Module::Absent(_), Some(ConfigChoice::Module)) => Self::NotInstalled,
            (Module::Absent(_), _) => Self::Absent,
            (Module::Registered(_) | Module::Unknown, _) => Self::Unknown,
        }
    }

    /// Explains it, with the reading of the index of modules; `None` if nothing can be said.
    fn explained(self, evidence: &Evidence<'_>) -> Option<(&'static str, Option<Reading>)> {
        let index = match &evidence.inventory.drivers.uas {
            Module::Loadable(path) => Some(Reading::new(path, "lists uas")),
            Module::Absent(path) => Some(Reading::new(path, "does not list uas")),
            Module::Registered(_) | Module::Unknown => None,
        };
        let what = match self {
            Self::BuiltIn => "uas is built into this kernel and has not started",
            Self::Loadable => match evidence.inventory.drivers.in_the_way_of("uas").as_slice() {
                [] => "the module uas is installed but not loaded",
                lines if lines.iter().any(|(one, _)| one.drivers.contains(&"uas")) => {
                    "the module uas is installed but forbidden"
                }
                _ => "the module uas is installed, but usb-storage, which it needs, is forbidden",
            },
            Self::NotInstalled => "uas is a module of this kernel that is not installed",
            Self::Absent => "there is no module uas",
            Self::Unknown => return None,
        };
        Some((what, index))
    }
}

/// Describes what follows from the lack of `uas`, for a drive that could do without, one that cannot, and one that
/// `usb-storage` has all the same.
fn without_uas(evidence: &Evidence<'_>, what: &str) -> String {
    if evidence.speaks_uas() && !evidence.speaks_bot() {
        return format!("the drive supports UAS only, and {what}: no other driver can bind to it");
    }
    let drivers = &evidence.inventory.drivers;
    let is_unknown = drivers.config.is_none() && matches!(drivers.uas, Module::Absent(_));
    match evidence.driver() {
        Some("usb-storage") => {
            let guess = if is_unknown { ", as in a kernel built without UAS" } else { "" };
            format!("{what}, but usb-storage has the drive nevertheless{guess}")
        }
        Some(driver) => format!("{what}: usb-storage leaves the drive to it, and {driver} has it"),
        None => format!("{what}: usb-storage leaves the drive to it, and no driver takes it"),
    }
}
