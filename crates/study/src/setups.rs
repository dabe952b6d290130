//! Setups: which parts are joined, by name, as an article or a user describes them.
//!
//! ```toml
//! title = "Raspberry Pi 4"
//! source = "where it is described"
//!
//! [all]
//! host = "raspberry-pi-4"
//! controller = "vl805"
//! speed = "gen1"
//! drive = "dramless-240"
//!
//! [variant.uasp]
//! driver = "linux-uas"
//! bridge = "asm1153"
//! ```
//!
//! A key in `[all]` holds for each variant that does not say otherwise; a file without variants is one. Every name is looked up
//! in the catalogue; an unknown name, or parts that cannot be connected, are an error with its line. Setups that come with the project are in
//! `crates/study/setups`. Left out: workloads, and numbers, which belong to parts.
//!
//! Always true: the parts of a setup are in the catalogue that it was read with, and some transport runs.

use crate::parts::schema::{self, Fault};
use crate::parts::{Activation, Catalogue, Chain, ChainError, Os, PartError, PartKind};
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::xhci::RouteString;

/// A setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name on command lines, which is that of its file.
    pub name: String,
    /// Description in a line.
    pub title: String,
    /// Source of the description.
    pub source: String,
    /// Its variants, in the order of the file.
    pub variants: Vec<Variant>,
}

/// One combination of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its difference from the others, in a line; empty if the name suffices.
    pub title: String,
    /// Its parts.
    pub assembly: Assembly,
}

/// The names of connected parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Of [`PartKind::Host`].
    pub host: String,
    /// Of [`PartKind::Driver`].
    pub driver: String,
    /// Of [`PartKind::Controller`]; of [`PartKind::Sata`] where there is no USB.
    pub controller: String,
    /// Of [`PartKind::Hub`], from the root port on.
    pub hubs: Vec<String>,
    /// Of [`PartKind::Bridge`]; none for native SATA.
    pub bridge: Option<String>,
    /// Of [`PartKind::Link`]; none for native SATA.
    pub link: Option<String>,
    /// The drive.
    pub drive: DriveName,
    /// Whether the root port's link may enter U1 and U2, as under Linux.
    pub power_states: bool,
}

/// The name of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveName {
    /// Of [`PartKind::Ssd`].
    Ssd(String),
    /// Of [`PartKind::Hdd`].
    Hdd(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupFile {
    title: String,
    source: String,
    #[serde(default)]
    all: Choice,
    #[serde(default)]
    variant: BTreeMap<String, Choice>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    title: Option<String>,
    host: Option<String>,
    /// Checked against the driver's.
    os: Option<Os>,
    driver: Option<String>,
    controller: Option<String>,
    hubs: Option<Vec<String>>,
    bridge: Option<String>,
    drive: Option<String>,
    /// A link.
    speed: Option<String>,
    power_states: Option<bool>,
}

/// A file being read.
struct Reading<'a> {
    text: &'a str,
    catalogue: &'a Catalogue,
    all: Choice,
}

/// Maximum hubs between root port and drive.
const HUBS_MAX: usize = RouteString::TIERS_MAX as usize;

/// Built-in setups: name, text.
const BUILT_IN: [(&str, &str); 5] = [
    ("geerling", include_str!("../setups/geerling.toml")),
    ("hardware-fr", include_str!("../setups/hardware-fr.toml")),
    ("myce", include_str!("../setups/myce.toml")),
    ("renesas", include_str!("../setups/renesas.toml")),
    ("toms", include_str!("../setups/toms.toml")),
];

impl Setup {
    /// Returns the built-in setups, by name.
    ///
    /// # Errors
    ///
    /// If a part is not in the catalogue.
    pub fn built_in(catalogue: &Catalogue) -> Result<Vec<Self>, PartError> {
        let read =
            |(name, text): (&str, &str)| Self::read(name, &format!("setups/{name}.toml"), text, catalogue);
        BUILT_IN.into_iter().map(read).collect()
    }

    /// Reads the text of the file named `file`.
    ///
    /// # Errors
    ///
    /// See [`PartError`].
    pub fn read(name: &str, file: &str, text: &str, catalogue: &Catalogue) -> Result<Self, PartError> {
        let in_file = |Fault { line, what }| PartError { file: file.into(), line, what };
        let SetupFile { title, source, all, variant } = schema::parse(text).map_err(in_file)?;
        let reading = Reading { text, catalogue, all };
        let mut chosen: Vec<_> = variant.into_iter().collect();
        if chosen.is_empty() {
            chosen.push((name.to_owned(), Choice::default()));
        }
        chosen.sort_by_key(|(name, _)| schema::line_of_table(text, &table_of(name)));
        let variants = chosen.into_iter().map(|(name, choice)| reading.variant(name, choice));
        let variants = variants.collect::<Result<_, _>>().map_err(in_file)?;
        Ok(Self { name: name.into(), title, source, variants })
    }

    /// Finds a variant.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

fn table_of(variant: &str) -> String {
    format!("variant.{variant}")
}

impl Assembly {
    /// Returns the chain of parts between a program and the drive.
    pub fn chain(&self) -> Chain<'_> {
        Chain {
            driver: &self.driver,
            controller: &self.controller,
            bridge: self.bridge.as_deref(),
            link: self.link.as_deref(),
            hubs: &self.hubs,
        }
    }

    /// Determines the active transport.
    ///
    /// # Errors
    ///
    /// See [`ChainError`]; none with the catalogue that the setup was read with.
    pub fn activation(&self, catalogue: &Catalogue) -> Result<Activation, ChainError> {
        Activation::of(catalogue, self.chain())
    }
}

impl DriveName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Ssd(name) | Self::Hdd(name) => name,
        }
    }

    /// Finds the drive of this name, of either kind.
    pub fn find(name: &str, catalogue: &Catalogue) -> Option<Self> {
        let is_ssd = catalogue.ssd(name).is_some();
        let ssd = || is_ssd.then(|| Self::Ssd(name.into()));
        ssd().or_else(|| catalogue.hdd(name).map(|_| Self::Hdd(name.into())))
    }
}

impl Reading<'_> {
    fn variant(&self, name: String, choice: Choice) -> Result<Variant, Fault> {
        let title = choice.title.clone().unwrap_or_default();
        let assembly = self.assembly(&table_of(&name), choice.over(&self.all))?;
        Ok(Variant { name, title, assembly })
    }

    fn assembly(&self, table: &str, choice: Choice) -> Result<Assembly, Fault> {
        let need = |key, value: Option<String>| value.ok_or_else(|| self.missing(table, key));
        let assembly = Assembly {
            host: self.known(table, "host", need("host", choice.host)?, PartKind::Host)?,
            driver: self.known(table, "driver", need("driver", choice.driver)?, PartKind::Driver)?,
            controller: need("controller", choice.controller)?,
            hubs: choice.hubs.unwrap_or_default(),
            bridge: choice.bridge,
            link: choice.speed,
            drive: self.drive(table, &need("drive", choice.drive)?)?,
            power_states: choice.power_states.unwrap_or_default(),
        };
        for hub in &assembly.hubs {
            self.known(table, "hubs", hub.clone(), PartKind::Hub)?;
        }
        if assembly.hubs.len() > HUBS_MAX || (assembly.link.is_none() && !assembly.hubs.is_empty()) {
            let what = format!("at most {HUBS_MAX} hubs are possible with USB, none without");
            return Err(self.fault(table, "hubs", what));
        }
        self.check(table, &assembly, choice.os)?;
        Ok(assembly)
    }

    /// Checks that some transport is active, under the given system.
    fn check(&self, table: &str, assembly: &Assembly, os: Option<Os>) -> Result<(), Fault> {
        let driver = self.catalogue.driver(&assembly.driver);
        let known = driver.map_or(Os::Any, |driver| driver.os);
        if os.is_some_and(|os| known != Os::Any && os != known) {
            let what = format!("`{}` is not a driver of that operating system", assembly.driver);
            return Err(self.fault(table, "os", what));
        }
        let kind_of = |error: &ChainError| match error {
            ChainError::Unknown(PartKind::Bridge, _) => "bridge",
            ChainError::Unknown(PartKind::Link, _) => "speed",
            ChainError::Unknown(..) | ChainError::NoDriver { .. } => "controller",
            _ => "driver",
        };
        let of_chain = |error: ChainError| {
            let what = match &error {
                ChainError::Unknown(kind, name) => self.unknown(*kind, name),
                other => other.to_string(),
            };
            self.fault(table, kind_of(&error), what)
        };
        assembly.activation(self.catalogue).map_err(of_chain).map(drop)
    }

    fn known(&self, table: &str, key: &str, name: String, kind: PartKind) -> Result<String, Fault> {
        if self.catalogue.find(kind, &name).is_some() {
            return Ok(name);
        }
        Err(self.fault(table, key, self.unknown(kind, &name)))
    }

    fn drive(&self, table: &str, name: &str) -> Result<DriveName, Fault> {
        DriveName::find(name, self.catalogue).ok_or_else(|| {
            let names = self.names(|kind| matches!(kind, PartKind::Ssd | PartKind::Hdd));
            self.fault(table, "drive", format!("no such drive: `{name}`; available: {names}"))
        })
    }

    fn unknown(&self, kind: PartKind, name: &str) -> String {
        format!("no such {kind}: `{name}`; available: {}", self.names(|other| other == kind))
    }

    fn names(&self, is_meant: impl Fn(PartKind) -> bool) -> String {
        let meant = self.catalogue.entries().filter(|entry| is_meant(entry.kind()));
        meant.map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn missing(&self, table: &str, key: &str) -> Fault {
        let line = schema::line_of_table(self.text, table);
        Fault { line, what: format!("missing `{key}` here and in `[all]`") }
    }

    /// An error at a key in either table.
    fn fault(&self, table: &str, key: &str, what: String) -> Fault {
        let own = schema::line_of(self.text, &format!("{table}.{key}"));
        Fault { line: own.or_else(|| schema::line_of(self.text, &format!("all.{key}"))), what }
    }
}

impl Choice {
    /// Overrides the common choice. Native SATA has neither bridge nor link, whatever the common
    /// choice says.
    fn over(self, all: &Self) -> Self {
        let all = all.clone();
        let none = |chosen: Option<String>| chosen.filter(|name| name != NONE);
        Self {
            title: self.title.or(all.title),
            host: self.host.or(all.host),
            os: self.os.or(all.os),
            driver: self.driver.or(all.driver),
            controller: self.controller.or(all.controller),
            hubs: self.hubs.or(all.hubs),
            bridge: none(self.bridge.or(all.bridge)),
            drive: self.drive.or(all.drive),
            speed: none(self.speed.or(all.speed)),
            power_states: self.power_states.or(all.power_states),
        }
    }
}

/// Removes a common part.
const NONE: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Carried;

    const TEXT: &str = include_str!("../setups/geerling.toml");

    fn catalogue() -> Catalogue {
        Catalogue::built_in().expect("parts that come with the project")
    }

    fn outcome_of(text: &str) -> String {
        match Setup::read("mine", "mine.toml", text, &catalogue()) {
            Ok(setup) => format!("{} variants", setup.variants.len()),
            Err(error) => error.to_string(),
        }
    }

    fn line(words: &str) -> usize {
        TEXT[..TEXT.find(words).expect("words of the file")].matches('\n').count() + 1
    }

    #[test]
    fn built_in_setups_have_all_parts() {
        let setups = Setup::built_in(&catalogue()).expect("setups that come with the project");
        assert_eq!(setups.len(), BUILT_IN.len());
        for setup in &setups {
            assert!(setup.variants.len() >= 2, "{}", setup.name);
            assert!(!setup.source.is_empty(), "{}", setup.name);
        }
    }

    #[test]
    fn variants_are_on_the_transports_that_their_names_say() {
        let catalogue = catalogue();
        for setup in Setup::built_in(&catalogue).expect("setups that come with the project") {
            for Variant { name, assembly, .. } in &setup.variants {
                let carried = assembly.activation(&catalogue).expect("parts that are there").transport;
                let is_as_named = |word: &str| match word {
                    "bot" => carried == Carried::Bot,
                    "turbo" | "fnet" => carried == Carried::Turbo,
                    "uasp" | "mcci" => matches!(carried, Carried::Uas(_)),
                    "sata" => carried == Carried::Sata,
                    _ => true,
                };
                assert!(name.split('-').all(is_as_named), "{} {name}: {carried}", setup.name);
            }
        }
    }

    #[test]
    fn variants_override_the_common_choice() {
        let setups = Setup::built_in(&catalogue()).expect("setups that come with the project");
        let myce = setups.iter().find(|setup| setup.name == "myce").expect("a setup");
        let names: Vec<_> = myce.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["sata", "bot", "turbo", "uasp"], "in the order of the file");
        let [sata, uasp] = ["sata", "uasp"].map(|name| &myce.variant(name).expect("a variant").assembly);
        assert_eq!((sata.bridge.as_deref(), uasp.bridge.as_deref()), (None, Some("asm1051e")));
        assert_eq!(sata.drive, uasp.drive);
        assert_eq!(uasp.drive, DriveName::Ssd("vertex3-20-240".into()));
    }

    #[test]
    fn a_file_without_variants_is_one() {
        let end = TEXT.find("[variant").expect("a table");
        let text = format!("{}driver = \"linux-uas\"\nbridge = \"asm1153\"\n", &TEXT[..end]);
        assert_eq!(outcome_of(&text), "1 variants");
    }

    #[test]
    fn an_unknown_part_lists_the_available_ones() {
        let error = outcome_of(&TEXT.replace("\"vl805\"", "\"vl999\""));
        let start = format!(
            "mine.toml, line {}: no such host controller: `vl999`; available: ",
            line("controller =")
        );
        assert!(error.starts_with(&start) && error.contains("vl805"), "{error}");
        let error = outcome_of(&TEXT.replace("\"dramless-240\"", "\"floppy\""));
        assert!(error.contains("no such drive: `floppy`") && error.contains("disk-7200"), "{error}");
    }

    #[test]
    fn missing_and_unknown_keys_have_their_line() {
        let text = TEXT.replace("controller = \"vl805\"\n", "");
        let header = text[..text.find("[variant").expect("a table")].matches('\n').count() + 1;
        assert_eq!(
            outcome_of(&text),
            format!("mine.toml, line {header}: missing `controller` here and in `[all]`")
        );
        let error = outcome_of(&TEXT.replace("controller =", "control ="));
        assert!(
            error.starts_with(&format!("mine.toml, line {}: unknown field `control`", line("controller ="))),
            "{error}"
        );
    }

    #[test]
    fn a_driver_of_another_system_is_rejected() {
        let error = outcome_of(&TEXT.replace("os = \"linux\"", "os = \"windows8\""));
        assert!(error.ends_with("is not a driver of that operating system"), "{error}");
    }

    #[test]
    fn too_many_hubs_are_rejected() {
        let hubs = ["\"superspeed-4\""; 6].join(", ");
        let error = outcome_of(&TEXT.replace("os = ", &format!("hubs = [{hubs}]\nos = ")));
        assert!(error.contains("at most 5 hubs"), "{error}");
    }
}
