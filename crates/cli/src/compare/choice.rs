//! Which parts are compared: a setup by name or from a file, with parts of it replaced.
//!
//! A part on the command line replaces the part of that kind in every variant of the setup that has one; a driver
//! makes one variant of them. Always true: what is chosen is in the catalogue, and some transport runs.

use super::parts;
use crate::args::{Choice, CompareArguments, ComparedTransport, LinkArgument, OsArgument};
use crate::failure::Failure;
use crate::nearest;
use crate::text_file;
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::path::Path;
pub(super) use study::compare::Configuration;
use study::parts::{Activation, Carried, Catalogue, Os, PartKind};
use study::plural::listed;
use study::setups::{Assembly, DriveName, Setup};

/// Variants to compare.
pub(super) struct Selection {
    pub(super) setup: Setup,
    pub(super) columns: Vec<Configuration>,
    /// Which variants options removed, and what stays around a replaced part, a sentence or two each.
    pub(super) notes: Vec<String>,
}

/// Variants of a setup that are not compared.
#[derive(Default)]
struct LeftOut {
    /// By `--os` or `--transport`.
    filtered: Vec<String>,
    /// By `--driver`, since they have no USB driver.
    native: Vec<String>,
}

impl Choice {
    /// The setup, and what of it is compared. `controller` and `link` are arguments of [`CompareArguments`], since runs without parts have them
    /// as well.
    pub(super) fn columns(
        &self,
        catalogue: &Catalogue,
        controller: Option<&str>,
        link: Option<&str>,
        power_states: bool,
    ) -> Result<Selection, Failure> {
        let setup = self.setup(catalogue)?;
        let (mut columns, mut unwanted) = (Vec::new(), BTreeSet::new());
        let mut left_out = LeftOut::default();
        for variant in &setup.variants {
            let mut assembly = variant.assembly.clone();
            self.replace(&mut assembly, catalogue, controller, link)?;
            assembly.power_states |= power_states && assembly.bridge.is_some();
            if self.driver.is_some() && assembly.bridge.is_none() {
                left_out.native.push(variant.name.clone());
                continue;
            }
            let activation = assembly.activation(catalogue).map_err(|error| {
                let what = format!(
                    "setup {}, variant {}: these parts cannot be connected",
                    setup.name, variant.name
                );
                Failure::usage(what).because(error)
            })?;
            let name = self.driver.as_ref().unwrap_or(&variant.name).clone();
            if !self.wants(&activation, catalogue) {
                left_out.filtered.push(variant.name.clone());
                unwanted.insert(format!("{name}: {activation}"));
            } else if !columns.iter().any(|other: &Configuration| other.name == name) {
                columns.push(Configuration { name, assembly, activation });
            }
        }
        if columns.is_empty() {
            return Err(nothing_left(&setup.name, unwanted));
        }
        let mut notes = self.left_out(&left_out, &columns);
        notes.extend(self.unchanged(&columns, catalogue, controller.is_some() || link.is_some()));
        Ok(Selection { setup, columns, notes })
    }

    /// Names the variants that options remove from the setup, and those that remain.
    fn left_out(&self, left_out: &LeftOut, columns: &[Configuration]) -> Vec<String> {
        let mut notes = Vec::new();
        if !left_out.filtered.is_empty() {
            let os = self.os.map(|os| format!("--os {}", name_of(os)));
            let transports: Vec<String> = self.transport.iter().copied().map(name_of).collect();
            let transports =
                Some(format!("--transport {}", transports.join(","))).filter(|_| !transports.is_empty());
            let options: Vec<String> = os.into_iter().chain(transports).collect();
            let remaining: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            notes.push(format!(
                "Left out by {}: {}. Compared: {}.",
                listed(&options),
                listed(&left_out.filtered),
                listed(&remaining)
            ));
        }
        if !left_out.native.is_empty() {
            let natives = listed(&left_out.native);
            notes.push(format!("Left out by --driver: {natives}, which uses no USB."));
        }
        notes
    }

    /// Names the host that stays around a replaced part, and the variants that have no such part.
    fn unchanged(&self, columns: &[Configuration], catalogue: &Catalogue, is_replaced: bool) -> Vec<String> {
        let of_usb = is_replaced || self.bridge.is_some() || !self.hub.is_empty();
        let mut notes = Vec::new();
        if (of_usb || self.driver.is_some() || self.drive.is_some()) && self.host.is_none() {
            let mut hosts: Vec<String> = Vec::new();
            for name in columns.iter().map(|column| &column.assembly.host) {
                let title = catalogue.find(PartKind::Host, name).map_or("", |entry| &entry.title);
                let host = format!("{name} ({title})");
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            notes.push(format!("Kept: host {}; --host replaces it.", listed(&hosts)));
        }
        let native = columns.iter().filter(|column| column.assembly.bridge.is_none());
        let native: Vec<String> = native.map(|column| column.name.clone()).collect();
        if of_usb && !native.is_empty() {
            notes.push(format!("Unchanged: {}, which has no USB part.", listed(&native)));
        }
        notes
    }

    fn setup(&self, catalogue: &Catalogue) -> Result<Setup, Failure> {
        setup(self.setup.as_deref().unwrap_or("myce"), catalogue)
    }

    fn replace(
        &self,
        assembly: &mut Assembly,
        catalogue: &Catalogue,
        controller: Option<&str>,
        link: Option<&str>,
    ) -> Result<(), Failure> {
        let known = |kind, name: &str| known(catalogue, kind, name);
        if let Some(name) = &self.host {
            assembly.host = known(PartKind::Host, name)?;
        }
        if let Some(name) = &self.drive {
            assembly.drive = DriveName::find(name, catalogue)
                .ok_or_else(|| unknown("drive", name, names(catalogue, &[PartKind::Ssd, PartKind::Hdd])))?;
        }
        if assembly.bridge.is_none() {
            return Ok(());
        }
        if let Some(name) = &self.driver {
            assembly.driver = known(PartKind::Driver, name)?;
        }
        if let Some(name) = controller {
            assembly.controller = known(PartKind::Controller, name)?;
        }
        if let Some(name) = &self.bridge {
            assembly.bridge = Some(known(PartKind::Bridge, name)?);
        }
        if let Some(name) = link {
            assembly.link = Some(known(PartKind::Link, name)?);
        }
        if !self.hub.is_empty() {
            assembly.hubs =
                self.hub.iter().map(|name| known(PartKind::Hub, name)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn wants(&self, activation: &Activation, catalogue: &Catalogue) -> bool {
        let carried = match activation.transport {
            Carried::Bot => ComparedTransport::Bot,
            Carried::Turbo => ComparedTransport::Turbo,
            Carried::Uas(_) => ComparedTransport::Uas,
            Carried::Sata => ComparedTransport::Sata,
        };
        let os = catalogue.driver(&activation.driver).map(|driver| driver.os);
        let of_os = self.os.is_none_or(|wanted| {
            let wanted = match wanted {
                OsArgument::Windows7 => Os::Windows7,
                OsArgument::Windows8 => Os::Windows8,
                OsArgument::Linux => Os::Linux,
            };
            os.is_some_and(|os| os == wanted || os == Os::Any)
        });
        of_os && (self.transport.is_empty() || self.transport.contains(&carried))
    }
}

/// An argument as it is typed.
fn name_of(argument: impl ValueEnum) -> String {
    argument.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Names the reason why a requested transport does not run.
fn nothing_left(setup: &str, unwanted: BTreeSet<String>) -> Failure {
    Failure::usage(format!("setup {setup}: no variant matches"))
        .because(unwanted.into_iter().collect::<Vec<_>>().join(" "))
        .try_this("leave --os, --transport or --driver out, or replace the part named above")
}

impl CompareArguments {
    /// The setup, and what of it is compared. Its title says which parts replace its own.
    pub(super) fn columns(&self, catalogue: &Catalogue) -> Result<Selection, Failure> {
        let link = self.link.map(LinkArgument::part);
        let mut selection =
            self.choice.columns(catalogue, self.controller.as_deref(), link, self.power_states)?;
        let replaced = self.replaced_parts();
        if !replaced.is_empty() {
            selection.setup.title = format!("Setup {} with {replaced}", selection.setup.name);
        }
        Ok(selection)
    }

    /// Parts that are not those of the setup, in words: `drive disk-7200 and bridge jms580`. Empty if all are.
    pub(super) fn replaced_parts(&self) -> String {
        let Choice { host, driver, hub, bridge, drive, .. } = &self.choice;
        let link = self.link.map(|link| link.part().to_owned());
        let one = [("host", host), ("driver", driver), ("controller", &self.controller), ("bridge", bridge)];
        let parts = one.into_iter().chain([("link", &link), ("drive", drive)]);
        let parts = parts.filter_map(|(kind, name)| Some((kind, name.as_ref()?)));
        let hubs = hub.iter().map(|name| ("hub", name));
        let all: Vec<String> = parts.chain(hubs).map(|(kind, name)| format!("{kind} {name}")).collect();
        listed(&all)
    }
}

fn built_in(catalogue: &Catalogue) -> Result<Vec<Setup>, Failure> {
    let broken = "a built-in setup is invalid (a bug of uaskit)";
    Setup::built_in(catalogue).map_err(|error| Failure::new(broken).because(error))
}

/// Names of the setups that come with the program.
pub(crate) fn setup_names(catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
    Ok(built_in(catalogue)?.into_iter().map(|setup| setup.name).collect())
}

/// A setup by its name or from a file.
pub(crate) fn setup(name: &str, catalogue: &Catalogue) -> Result<Setup, Failure> {
    let built_in = built_in(catalogue)?;
    if let Some(setup) = built_in.iter().find(|setup| setup.name == name) {
        return Ok(setup.clone());
    }
    let path = Path::new(name);
    if !path.exists() {
        let names = built_in.iter().map(|setup| setup.name.as_str());
        return Err(Failure::usage(format!("no such setup or file: `{name}`"))
            .try_this(nearest::hint(name, "setups", names) + "; or name a TOML file"));
    }
    let stem = crate::sanitize::shown(path.file_stem().unwrap_or_default());
    Setup::read(&stem, name, &text_file::read(path, "setup", parts::FILE_BYTES_MAX)?, catalogue)
        .map_err(|error| Failure::new(error.to_string()))
}

fn known(catalogue: &Catalogue, kind: PartKind, name: &str) -> Result<String, Failure> {
    match catalogue.find(kind, name) {
        Some(entry) => Ok(entry.name.clone()),
        None => Err(unknown(&kind.to_string(), name, names(catalogue, &[kind]))),
    }
}

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    Failure::usage(format!("no such {kind}: `{name}`")).try_this(nearest::hint(
        name,
        &format!("{kind}s"),
        known,
    ))
}

fn names<'a>(catalogue: &'a Catalogue, kinds: &'a [PartKind]) -> impl Iterator<Item = &'a str> {
    let of_kinds = catalogue.entries().filter(|entry| kinds.contains(&entry.kind()));
    of_kinds.map(|entry| entry.name.as_str())
}
