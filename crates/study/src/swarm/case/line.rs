//! A case as a line: parts of the form `name=value`, in any order.
//!
//! A part that is left out has a default. Left out: what the values mean, which is in
//! [`super`]. Always true: a printed case parses to itself.

use super::{Case, CaseController, CaseError, CaseTransport, FullSpeedDrives, LinkSleep, Mix, SessionEnd};
use crate::swarm::parts::{self, Parts};
use sim::link::AnyRate;
use sim::link::superspeed;
use sim::link::usb2;
use std::fmt;
use std::str::FromStr;
use units::BlockSize;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed={} wire={} rate={} controller={} hubs={} drives={} translated={} nap={} early={} parts={} costs={} commands={} stack={} streams={} depth={} transfer={} block={} blocks={} latency-us={} at-once={}",
            self.seed,
            name_of(self.wire, &WIRES),
            name_of(self.rate, &RATES),
            name_of(self.controller, &CONTROLLERS),
            self.hubs,
            self.drives,
            name_of(self.translated, &TRANSLATED),
            name_of(self.nap, &NAPS),
            name_of(self.is_early, &YES_NO),
            name_of(self.parts, &parts::NAMES),
            name_of(self.is_costing, &YES_NO),
            self.commands.map_or_else(|| USUAL.into(), |commands| commands.to_string()),
            name_of(self.is_stacked, &YES_NO),
            self.streams,
            self.depth,
            self.transfer_bytes,
            self.block.bytes(),
            self.blocks,
            self.latency_us,
            self.at_once,
        )?;
        let Mix { reads, through, flushes, zeroes, aborts, again } = self.mix;
        write!(
            f,
            " cache={} requests={} longest={} reads={reads} through={through} flushes={flushes} zeroes={zeroes}",
            name_of(self.is_cached, &YES_NO),
            self.requests,
            self.longest,
        )?;
        write!(f, " aborts={aborts} again={again} finale={} faults=", name_of(self.finale, &FINALES))?;
        match &self.faults {
            Some(script) => script.fmt(f),
            None => f.write_str(DICE),
        }
    }
}

impl FromStr for Case {
    type Err = CaseError;

    /// Parses a case. Values that a line leaves out are as in seed 0, except for faults during enumeration, parts,
    /// driver costs, the number of commands that a drive takes, and the storage stack, whose default is none.
    fn from_str(line: &str) -> Result<Self, CaseError> {
        let seed_0 = Self::of_seed(0);
        let mut case = Self {
            is_early: false,
            parts: Parts::Plain,
            is_costing: false,
            commands: None,
            is_stacked: false,
            ..seed_0
        };
        for part in line.split_whitespace() {
            let taken = part.split_once('=').and_then(|(name, value)| case.take(name, value));
            taken.ok_or_else(|| CaseError { part: part.into() })?;
        }
        Ok(case.bounded())
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid part of a case: `{}`", self.part)
    }
}

impl std::error::Error for CaseError {}

impl Case {
    /// Takes one `name=value`.
    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "seed" => self.seed = value.parse().ok()?,
            "wire" => self.wire = of_name(value, &WIRES)?,
            "rate" => self.rate = of_name(value, &RATES)?,
            "controller" => self.controller = of_name(value, &CONTROLLERS)?,
            "hubs" => self.hubs = value.parse().ok()?,
            "drives" => self.drives = value.parse().ok()?,
            "translated" => self.translated = of_name(value, &TRANSLATED)?,
            "nap" => self.nap = of_name(value, &NAPS)?,
            "early" => self.is_early = of_name(value, &YES_NO)?,
            "parts" => self.parts = of_name(value, &parts::NAMES)?,
            "costs" => self.is_costing = of_name(value, &YES_NO)?,
            "commands" if value == USUAL => self.commands = None,
            "commands" => self.commands = Some(value.parse().ok()?),
            "stack" => self.is_stacked = of_name(value, &YES_NO)?,
            "streams" => self.streams = value.parse().ok()?,
            "depth" => self.depth = value.parse().ok()?,
            "transfer" => self.transfer_bytes = value.parse().ok()?,
            "block" => self.block = BlockSize::from_bytes(value.parse().ok()?)?,
            "blocks" => self.blocks = value.parse().ok()?,
            "latency-us" => self.latency_us = value.parse().ok()?,
            "at-once" => self.at_once = value.parse().ok()?,
            "cache" => self.is_cached = of_name(value, &YES_NO)?,
            "requests" => self.requests = value.parse().ok()?,
            "longest" => self.longest = value.parse().ok()?,
            "reads" => self.mix.reads = value.parse().ok()?,
            "through" => self.mix.through = value.parse().ok()?,
            "flushes" => self.mix.flushes = value.parse().ok()?,
            "zeroes" => self.mix.zeroes = value.parse().ok()?,
            "aborts" => self.mix.aborts = value.parse().ok()?,
            "again" => self.mix.again = value.parse().ok()?,
            "finale" => self.finale = of_name(value, &FINALES)?,
            "faults" if value == DICE => self.faults = None,
            "faults" => self.faults = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

const YES_NO: [(&str, bool); 2] = [("yes", true), ("no", false)];
const WIRES: [(&str, CaseTransport); 3] =
    [("uas", CaseTransport::Uas), ("bot", CaseTransport::Bot), ("turbo", CaseTransport::Turbo)];
const RATES: [(&str, AnyRate); 5] = [
    ("gen1", AnyRate::SuperSpeed(superspeed::Rate::Gen1)),
    ("gen2", AnyRate::SuperSpeed(superspeed::Rate::Gen2)),
    ("gen2x2", AnyRate::SuperSpeed(superspeed::Rate::Gen2x2)),
    ("high", AnyRate::Usb2(usb2::Rate::High)),
    ("full", AnyRate::Usb2(usb2::Rate::Full)),
];
const CONTROLLERS: [(&str, CaseController); 4] = [
    ("none", CaseController::None),
    ("chipset", CaseController::Chipset),
    ("card", CaseController::Card),
    ("early-card", CaseController::EarlyCard),
];
const TRANSLATED: [(&str, FullSpeedDrives); 3] =
    [("none", FullSpeedDrives::None), ("one", FullSpeedDrives::One), ("each", FullSpeedDrives::Each)];
const NAPS: [(&str, LinkSleep); 3] =
    [("never", LinkSleep::Never), ("idle", LinkSleep::Idle), ("at-work", LinkSleep::AtWork)];
const FINALES: [(&str, SessionEnd); 2] =
    [("unplug", SessionEnd::Unplug), ("power-loss", SessionEnd::PowerLoss)];
/// As many commands as the parts of a drive take.
const USUAL: &str = "usual";
/// Faults that dice bring about.
const DICE: &str = "dice";

fn of_name<V: Copy>(name: &str, all: &[(&str, V)]) -> Option<V> {
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn name_of<V: PartialEq + Copy>(value: V, all: &[(&'static str, V)]) -> &'static str {
    all.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}
