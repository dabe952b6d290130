//! `uaskit decode`: what happened between a host and its USB drives, from a capture.
//!
//! Reads, decodes, prints; nothing is kept that has been printed. What could not be read is told on standard error as it is found,
//! and does not end the command.

mod arguments;
mod json;
mod lines;
mod stats;

pub(crate) use arguments::DecodeArguments;

use crate::counted::counted;
use crate::failure::Failure;
use crate::harmless::{self, shown};
use capture::{Damage, Dropped, Item, Reader};
use decode::{Decoder, Stats};
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, StdoutLock, Write};

/// Bytes that are gathered before they are printed.
const OUTPUT_BYTES: usize = 1 << 16;
/// Damages that are told one by one; further ones are counted.
const DAMAGES_TOLD_MAX: u64 = 100;
/// Places of dropped packets that are told; further ones are summed up. A capture that could not keep pace has thousands.
const DROPS_TOLD_MAX: u64 = 3;

/// What is printed, and how.
struct Printer<'a> {
    arguments: &'a DecodeArguments,
    out: BufWriter<StdoutLock<'static>>,
    packets: u64,
    /// The time of the first packet.
    zero_ns: Option<u64>,
    stats: Stats,
    /// Commands seen, and shown.
    commands: (u64, u64),
    damages: u64,
    bytes_lost: u64,
    /// Packets that the file says are missing, and how often it says so.
    dropped: u64,
    drops: u64,
}

pub(crate) fn run(arguments: &DecodeArguments) -> Result<(), Failure> {
    let (input, name) = open(arguments)?;
    let mut reader = Reader::new(input, name).map_err(|error| Failure::new(error.to_string()))?;
    let mut decoder = Decoder::new();
    let mut printer = Printer::new(arguments);
    let printed = print_all(&mut reader, &mut decoder, &mut printer)?;
    match printed {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|error| Failure::new("cannot print").because(error)),
    }
}

fn open(arguments: &DecodeArguments) -> Result<(Box<dyn Read>, String), Failure> {
    let path = &arguments.file;
    if path.as_os_str() == "-" {
        return Ok((Box::new(io::stdin().lock()), "on standard input".to_owned()));
    }
    let name = shown(path);
    match File::open(path) {
        Ok(file) => Ok((Box::new(file), name)),
        Err(error) => Err(Failure::new(format!("cannot open the capture {name}")).because(error)),
    }
}

/// On standard error, unless nobody listens there.
fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "uaskit: {}", harmless::tame(text));
}

/// The inner result is that of printing.
fn print_all(
    reader: &mut Reader<Box<dyn Read>>,
    decoder: &mut Decoder,
    printer: &mut Printer<'_>,
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
    Ok(printer.commands(decoder).and_then(|()| printer.end(decoder)))
}

/// A capture of something else altogether is not one of a drive that does nothing.
fn is_of_usb(decoder: &Decoder, printer: &Printer<'_>) -> Result<(), Failure> {
    let count = decoder.foreign().count;
    let link = decoder.foreign_link().filter(|_| printer.packets == count);
    link.map_or(Ok(()), |link| {
        let name = shown(&printer.arguments.file);
        Err(Failure::new(format!("{name} has no packets of USB")).because(format!("all {count} are of {link}"))
            .try_this("Capture USB: link types 189 and 220 (usbmon, QEMU), 249 (USBPcap), 288 and 293 to 295 (packets) are read"))
    })
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a DecodeArguments) -> Self {
        let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        let stats = Stats::default();
        Self {
            arguments,
            out,
            packets: 0,
            zero_ns: None,
            stats,
            commands: (0, 0),
            damages: 0,
            bytes_lost: 0,
            dropped: 0,
            drops: 0,
        }
    }

    fn commands(&mut self, decoder: &mut Decoder) -> io::Result<()> {
        while let Some(command) = decoder.poll() {
            self.commands.0 += 1;
            if self.arguments.stats {
                self.stats.pass(&command);
            }
            if !self.arguments.filter.lets_through(&command) {
                continue;
            }
            self.commands.1 += 1;
            if self.arguments.stats {
                self.stats.add(&command);
            }
            let zero_ns = self.zero_ns.unwrap_or(0);
            let DecodeArguments { full, json, quiet, .. } = *self.arguments;
            match (quiet, json) {
                (true, _) => {}
                (false, true) => self.record(&json::command(&command, zero_ns, full))?,
                (false, false) => {
                    if self.commands.1 == 1 {
                        writeln!(self.out, "{}", lines::HEAD)?;
                    }
                    lines::command(&mut self.out, &command, zero_ns, full)?;
                }
            }
        }
        Ok(())
    }

    /// One line for programs.
    fn record(&mut self, record: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", harmless::json(&record.to_string()))
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        self.damages += 1;
        self.bytes_lost += damage.bytes;
        self.tell(self.damages, || json::damage(damage), damage)
    }

    fn dropped(&mut self, dropped: &Dropped) -> io::Result<()> {
        self.drops += 1;
        self.dropped += dropped.packets;
        if self.drops > DROPS_TOLD_MAX {
            return Ok(());
        }
        self.tell(self.drops, || json::dropped(dropped), dropped)
    }

    /// What of the capture is missing: for programs in any case, for people the first hundred times.
    fn tell(&mut self, nth: u64, record: impl FnOnce() -> Value, text: &dyn fmt::Display) -> io::Result<()> {
        if self.arguments.json {
            self.record(&record())?;
        }
        if nth <= DAMAGES_TOLD_MAX {
            self.out.flush()?;
            warn(&text.to_string());
        }
        Ok(())
    }

    fn end(&mut self, decoder: &Decoder) -> io::Result<()> {
        if self.drops > DROPS_TOLD_MAX {
            self.out.flush()?;
            let more = counted(self.drops - DROPS_TOLD_MAX, "more place");
            warn(&format!("and at {more}; {} were dropped in all", counted(self.dropped, "packet")));
        }
        if self.arguments.json {
            return self.end_json(decoder);
        }
        if self.arguments.stats {
            let is_sure = self.is_whole(decoder);
            stats::print(&mut self.out, &self.stats, is_sure)?;
        }
        lines::verdicts(&mut self.out, decoder)?;
        lines::end(&mut self.out, decoder, self.commands)?;
        if self.damages > 0 {
            let (times, lost) = (counted(self.damages, "time"), counted(self.bytes_lost, "byte"));
            writeln!(self.out, "damage: {times}, {lost} not read")?;
        }
        if self.dropped > 0 {
            let (packets, places) = (counted(self.dropped, "packet"), counted(self.drops, "place"));
            writeln!(self.out, "dropped when captured: {packets}, at {places}")?;
        }
        self.out.flush()
    }

    /// Whether nothing that is known of is missing from the capture.
    fn is_whole(&self, decoder: &Decoder) -> bool {
        self.damages == 0 && self.drops == 0 && decoder.not_understood().count == 0
    }

    fn end_json(&mut self, decoder: &Decoder) -> io::Result<()> {
        if self.arguments.stats {
            self.record(&json::stats(&self.stats, self.is_whole(decoder)))?;
        }
        for verdict in decoder.verdicts() {
            self.record(&json::verdict(verdict))?;
        }
        let Self { damages, bytes_lost: bytes, dropped, drops, .. } = *self;
        let lost = json::Lost { damages, bytes, dropped, drops };
        self.record(&json::end(decoder, self.commands, &lost))?;
        self.out.flush()
    }
}
