//! Settings in force against those for the next boot, as far as one drive is concerned.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::entry::{self, VALUE_BYTES_MAX};
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::SettingPlace;
use quirks::DeviceId;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Settings;
    let settings = &evidence.inventory.quirks;
    let id = evidence.device.id;
    if let Some(long) = settings.places.iter().find(|place| place.value.len() > VALUE_BYTES_MAX) {
        let because = format!(
            "usb-storage.quirks= has {} characters there; the kernel takes {VALUE_BYTES_MAX} and refuses all of it",
            long.value.len()
        );
        return kind.says(Health::Concern, because).seen(Reading::new(&long.path, &long.line));
    }
    if let Some(mistake) = settings.mistakes.first() {
        let check = kind.says(Health::Concern, format!("`{}`: {}", mistake.line, mistake.because));
        return settings
            .mistakes
            .iter()
            .fold(check, |check, mistake| check.seen(Reading::new(&mistake.path, &mistake.line)))
            .advise(advice::right_setting(evidence));
    }
    let said = settings.places.last().and_then(|place| Some((place, entry::letters_of(&place.value, id)?)));
    if evidence.inventory.lacks_quirks_in_force() {
        return without_those_in_force(evidence, said);
    }
    let Some(in_force) = &settings.in_force else {
        return kind.says(Health::Good, "usb-storage is not loaded; the settings apply when it is");
    };
    let now = entry::letters_of(in_force, id);
    let of_id = |place: &&SettingPlace| entry::letters_of(&place.value, id).is_some();
    let unheard = settings.unheard.iter().rfind(of_id);
    if let Some(place) = unheard.filter(|place| entry::letters_of(&place.value, id) != now) {
        let because = "modprobe files are ignored, since usb-storage is built into this kernel";
        return kind.says(Health::Concern, because).seen(Reading::new(&place.path, &place.line));
    }
    let reading = Reading::new(settings.path(), if in_force.is_empty() { "empty" } else { in_force });
    match (now, said) {
        (None, None) => match other_product(evidence) {
            Some(other) => kind
                .says(
                    Health::Concern,
                    format!("a quirk is set for {other}, which is not attached; this drive is {id}"),
                )
                .seen(reading),
            None => kind.says(Health::Good, "no quirk is set for it").seen(reading),
        },
        (Some(now), Some((_, said))) if now == said => {
            kind.says(Health::Good, "the same is in force now and after the next boot").seen(reading)
        }
        (now, said) => {
            let words = |letters: Option<&str>| {
                letters.map_or("no entry".to_owned(), |letters| format!("\"{letters}\""))
            };
            let because = format!(
                "in force: {}; after the next boot: {}",
                words(now),
                words(said.map(|(_, letters)| letters))
            );
            let check = kind.says(Health::Concern, because).seen(reading);
            match said {
                Some((place, _)) => check.seen(Reading::new(&place.path, &place.line)),
                None => check,
            }
        }
    }
}

/// A text lacks the quirks in force; it may have the setting that applies at boot.
fn without_those_in_force(evidence: &Evidence<'_>, said: Option<(&SettingPlace, &str)>) -> Check {
    let kind = CheckKind::Settings;
    match said {
        Some((place, letters)) => {
            let because = format!("\"{letters}\" is set for it at boot; what is in force is not in the text");
            kind.says(Health::Concern, because).seen(Reading::new(&place.path, &place.line))
        }
        None => kind
            .says(Health::Unknown, "the quirks in force are not in the text")
            .seen(Reading::new("missing", format!("cat {} /proc/cmdline", evidence.inventory.quirks.path()))),
    }
}

/// An entry for another product of the same vendor that is not attached: mistyped, or of another drive.
fn other_product(evidence: &Evidence<'_>) -> Option<DeviceId> {
    let settings = &evidence.inventory.quirks;
    let is_attached = |id: DeviceId| evidence.inventory.devices.iter().any(|device| device.id == id);
    let values = settings.places.iter().map(|place| place.value.as_str()).chain(settings.in_force.as_deref());
    let mut ids = values.flat_map(entry::entries).map(|(_, id, _)| id);
    ids.find(|id| id.vendor == evidence.device.id.vendor && !is_attached(*id))
}
