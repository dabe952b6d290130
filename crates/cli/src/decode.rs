//! `uaskit decode`: what happened between a host and its USB drives, from a capture.
//!
//! Reads, unpacks, decodes, prints; nothing is kept that has been printed. What cannot be read is reported on standard error as it is
//! found, and does not end the command, but its exit code is that of a damaged capture.

mod counts;
mod input;
mod json;
mod lines;
mod stats;

use crate::args::DecodeArguments;
use crate::failure::Failure;
use crate::sanitize::{self, shown};
use capture::{Damage, DamageKind, Dropped, Item, Reader, UnpackDamage, UnpackLimits, Unpacked};
use counts::{CommandCounts, Losses};
use decode::{Address, Command, DEVICES_MAX, Decoder, Stats};
use input::{Input, Output};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use study::plural::counted;

/// Damages that are reported one by one; further ones are counted.
const DAMAGES_REPORTED_MAX: u64 = 100;
/// Places of dropped packets that are reported; further ones are summed up. A capture that could not keep pace has thousands.
const DROPS_REPORTED_MAX: u64 = 3;

/// The printer of decoded commands, with its options and counters.
struct Printer<'a> {
    arguments: &'a DecodeArguments,
    out: Output,
    packets: u64,
    /// The time of the first packet.
    zero_ns: Option<u64>,
    stats: Stats,
    /// The same of each drive.
    stats_of: BTreeMap<Address, Stats>,
    commands: CommandCounts,
    damages: u64,
    bytes_lost: u64,
    /// Packets that the file says are missing, and how often it says so.
    dropped: u64,
    drops: u64,
}

const CAPTURES: &str = "Captures come from `uaskit serve --capture FILE`, `bench --capture FILE`, `tcpdump -i usbmon0 -w FILE`, \
                        Wireshark or USBPcap.";

pub(crate) fn run(arguments: &DecodeArguments) -> Result<(), Failure> {
    let out = Output::new();
    let Input { bytes, name, is_stopped } = Input::open(&arguments.file, &out)?;
    let fail = |error| Failure::unreadable(&arguments.file, &error);
    let bytes = Unpacked::new(bytes, UnpackLimits::default()).map_err(fail)?;
    let ends = Ends { unpacked: bytes.damage_handle(), is_stopped };
    let mut reader = Reader::new(bytes, name.clone())
        .map_err(|error| Failure::new(error.to_string()).try_this(CAPTURES))?;
    let mut decoder = Decoder::new();
    let mut printer = Printer::new(arguments, out);
    let printed = print_all(&mut reader, &mut decoder, &mut printer, &ends)?;
    match printed {
        // The reader of the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::output(error)),
        Ok(()) if printer.damages > 0 => Err(Failure::damaged(format!("the capture {name} is damaged"))
            .because("the readable parts were decoded")),
        Ok(()) => Ok(()),
    }
}

/// How the input may end before the capture does.
struct Ends {
    /// Where compressed data are damaged.
    unpacked: UnpackDamage,
    /// By Ctrl-C.
    is_stopped: Rc<Cell<bool>>,
}

/// On standard error, unless it is closed.
fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "uaskit: {}", sanitize::escape(text));
}

/// The inner result is that of printing.
fn print_all(
    reader: &mut Reader<Unpacked<'_>>,
    decoder: &mut Decoder,
    printer: &mut Printer<'_>,
    ends: &Ends,
) -> Result<io::Result<()>, Failure> {
    loop {
        let item = reader.next_item().map_err(|error| Failure::new(error.to_string()))?;
        let printed = match item {
            Some(Item::Packet(packet)) => {
                printer.packets = packet.number;
                printer.zero_ns.get_or_insert(packet.at_ns);
                decoder.take(&packet);
                printer.commands(decoder)
            }
            Some(Item::Section) => {
                decoder.begin_section();
                printer.commands(decoder)
            }
            // Where Ctrl-C has ended the input, a packet may be there in part.
            Some(Item::Damage(damage)) if ends.is_stopped.get() && is_end(&damage) => continue,
            Some(Item::Damage(damage)) => {
                decoder.miss();
                printer.damage(&damage)
            }
            Some(Item::Dropped(dropped)) => {
                if dropped.is_here {
                    decoder.miss();
                } else {
                    decoder.miss_somewhere();
                }
                printer.dropped(&dropped)
            }
            None => break,
        };
        if printed.is_err() {
            return Ok(printed);
        }
    }
    decoder.finish();
    is_of_usb(decoder, printer)?;
    if let Some(what) = ends.unpacked.get().filter(|_| !ends.is_stopped.get())
        && let Err(error) = printer.unpack_damage(reader.offset(), &what)
    {
        return Ok(Err(error));
    }
    Ok(printer.commands(decoder).and_then(|()| printer.end(decoder)))
}

/// Whether the input ends in the middle of a packet.
const fn is_end(damage: &Damage) -> bool {
    matches!(damage.kind, DamageKind::Truncated { .. } | DamageKind::Line)
}

/// A capture of something else altogether is not one of a drive that does nothing.
fn is_of_usb(decoder: &Decoder, printer: &Printer<'_>) -> Result<(), Failure> {
    let count = decoder.foreign().count;
    let link = decoder.foreign_link().filter(|_| printer.packets == count);
    link.map_or(Ok(()), |link| {
        let name = shown(&printer.arguments.file);
        Err(Failure::new(format!("{name} is not a USB capture")).because(format!("all {} are of {link}", counted(count, "packet")))
            .try_this("Capture USB traffic. Supported are link types 189 and 220 (usbmon, QEMU), 186 (FreeBSD), 249 (USBPcap), 288 and 293 to 295 (USB 2.0 packets), and usbmon text."))
    })
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a DecodeArguments, out: Output) -> Self {
        let stats = Stats::default();
        Self {
            arguments,
            out,
            packets: 0,
            zero_ns: None,
            stats,
            stats_of: BTreeMap::new(),
            commands: CommandCounts::default(),
            damages: 0,
            bytes_lost: 0,
            dropped: 0,
            drops: 0,
        }
    }

    fn commands(&mut self, decoder: &mut Decoder) -> io::Result<()> {
        while let Some(command) = decoder.poll() {
            self.commands.seen += 1;
            if self.arguments.stats {
                self.count(&command, Stats::pass);
            }
            if !self.arguments.filter.lets_through(&command) {
                continue;
            }
            self.commands.shown += 1;
            if self.arguments.stats {
                self.count(&command, Stats::add);
            }
            let zero_ns = self.zero_ns.unwrap_or(0);
            let DecodeArguments { full, json, quiet, .. } = *self.arguments;
            match (quiet, json) {
                (true, _) => {}
                (false, true) => self.record(&json::command(&command, zero_ns, full))?,
                (false, false) => {
                    if self.commands.shown == 1 {
                        writeln!(self.out, "{}", lines::HEAD)?;
                    }
                    lines::command(&mut self.out, &command, zero_ns, full)?;
                }
            }
        }
        Ok(())
    }

    /// Counts a command, in all and of its drive.
    fn count(&mut self, command: &Command, add: impl Fn(&mut Stats, &Command)) {
        add(&mut self.stats, command);
        if self.stats_of.len() < DEVICES_MAX || self.stats_of.contains_key(&command.address) {
            add(self.stats_of.entry(command.address).or_default(), command);
        }
    }

    /// One line for programs.
    fn record(&mut self, record: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", sanitize::json(&record.to_string()))
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        self.damages += 1;
        self.bytes_lost += damage.bytes;
        self.report(self.damages, || json::damage(damage), damage)
    }

    /// The compressed data end in damage, where so much of the capture had come out of them.
    fn unpack_damage(&mut self, offset: u64, what: &str) -> io::Result<()> {
        self.damages += 1;
        let text = format!("the compressed data are damaged after {offset} bytes of the capture: {what}");
        self.report(self.damages, || json::unpack_damage(offset, what), &text)
    }

    fn dropped(&mut self, dropped: &Dropped) -> io::Result<()> {
        self.drops += 1;
        self.dropped += dropped.packets;
        if self.drops > DROPS_REPORTED_MAX {
            return Ok(());
        }
        self.report(self.drops, || json::dropped(dropped), dropped)
    }

    /// Reports what of the capture is missing: as JSON in any case, as text the first hundred times.
    fn report(
        &mut self,
        nth: u64,
        record: impl FnOnce() -> Value,
        text: &dyn fmt::Display,
    ) -> io::Result<()> {
        if self.arguments.json {
            self.record(&record())?;
        }
        if nth <= DAMAGES_REPORTED_MAX {
            self.out.flush()?;
            warn(&text.to_string());
        }
        Ok(())
    }

    fn end(&mut self, decoder: &Decoder) -> io::Result<()> {
        if self.drops > DROPS_REPORTED_MAX {
            self.out.flush()?;
            let more = counted(self.drops - DROPS_REPORTED_MAX, "more position");
            let packets = counted(self.dropped, "packet");
            let all = if self.dropped > 0 { format!("; {packets} dropped in total") } else { String::new() };
            warn(&format!("events are missing at {more}{all}"));
        }
        if self.arguments.json {
            return self.end_json(decoder);
        }
        if self.arguments.stats {
            self.stats(decoder)?;
        }
        let device = self.arguments.filter.device;
        lines::verdicts(&mut self.out, decoder, device)?;
        lines::end(&mut self.out, decoder, self.commands)?;
        if self.damages > 0 {
            let (times, lost) = (self.damages, counted(self.bytes_lost, "byte"));
            writeln!(self.out, "damaged parts: {times}, {lost} skipped")?;
        }
        if self.dropped == 0 && self.drops > 0 {
            writeln!(self.out, "events may be missing at {}", counted(self.drops, "position"))?;
        }
        if self.dropped > 0 {
            let (packets, places) = (counted(self.dropped, "packet"), counted(self.drops, "position"));
            writeln!(self.out, "dropped by the capturing program: {packets}, at {places}")?;
        }
        self.out.flush()
    }

    /// Numbers of each drive, and of all if there are several.
    fn stats(&mut self, decoder: &Decoder) -> io::Result<()> {
        let is_sure = self.is_whole(decoder);
        if self.stats_of.len() < 2 {
            return stats::print(&mut self.out, &self.stats, is_sure);
        }
        for (address, stats) in &self.stats_of {
            writeln!(self.out, "\nDrive {address}")?;
            stats::print(&mut self.out, stats, is_sure)?;
        }
        writeln!(self.out, "\nAll {} drives", self.stats_of.len())?;
        stats::print(&mut self.out, &self.stats, is_sure)
    }

    /// Whether nothing that is known of is missing from the capture.
    fn is_whole(&self, decoder: &Decoder) -> bool {
        self.damages == 0 && self.drops == 0 && decoder.not_understood().count == 0
    }

    fn end_json(&mut self, decoder: &Decoder) -> io::Result<()> {
        if self.arguments.stats {
            let is_sure = self.is_whole(decoder);
            self.record(&json::stats(&self.stats, None, is_sure))?;
            let each: Vec<_> = self.stats_of.iter().filter(|_| self.stats_of.len() > 1).collect();
            let records: Vec<Value> = each
                .into_iter()
                .map(|(address, stats)| json::stats(stats, Some(*address), is_sure))
                .collect();
            records.iter().try_for_each(|record| self.record(record))?;
        }
        let device = self.arguments.filter.device;
        for verdict in
            decoder.verdicts().iter().filter(|one| device.is_none_or(|device| one.address == device))
        {
            self.record(&json::verdict(verdict))?;
        }
        let Self { damages, bytes_lost: bytes, dropped, drops, .. } = *self;
        let lost = Losses { damages, bytes, dropped, drops };
        self.record(&json::end(decoder, self.commands, &lost))?;
        self.out.flush()
    }
}
