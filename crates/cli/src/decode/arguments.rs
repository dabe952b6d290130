//! The arguments of `uaskit decode`.

use clap::Args;
use decode::Command;
use std::path::PathBuf;
use wire::scsi::cdb;
use wire::scsi::opcode::OperationCode;

/// Say what happened between a host and its USB drives, from a capture of their traffic.
///
/// One line is one command, over BOT or UAS, when it has ended. Behind the commands is what went wrong, who did it and which packets
/// show it. Reads pcap and pcapng with transfers (usbmon in Linux, USBPcap in Windows, `pcap=` of QEMU) or packets of USB 2.0, of any
/// length; what is damaged is said, and the rest is read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit decode drive.pcapng
  uaskit decode drive.pcapng --slower 10ms --full
  sudo tcpdump -i usbmon2 -w - | uaskit decode -
  uaskit decode drive.pcapng --stats --quiet
  uaskit decode drive.pcapng --json | jq 'select(.kind == \"verdict\")'

Times are in seconds since the first packet. Commands are told in the order in which they ended. Numbers are decimal: places, lengths, counts,
tags of UAS; what begins with 0x is hexadecimal: codes, bytes, tags of BOT. Numbers of JSON are decimal; `cdb` and `sense_bytes` are bytes in
hexadecimal.

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct DecodeArguments {
    /// The capture; - is standard input.
    pub(super) file: PathBuf,
    /// Show each transfer below its command.
    #[arg(long)]
    pub(super) full: bool,
    /// Print JSON objects, one a line.
    #[arg(long)]
    pub(super) json: bool,
    /// Count commands by what they are and how deep the queue was, and show where their time went.
    #[arg(long)]
    pub(super) stats: bool,
    /// Leave the commands out: verdicts, and numbers with --stats.
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) filter: Filter,
}

/// Which commands are shown and counted. Verdicts are always about all.
#[derive(Debug, Args)]
pub(super) struct Filter {
    /// Commands of this logical unit.
    #[arg(long, value_name = "N")]
    lun: Option<u16>,
    /// Commands with this operation code, in hexadecimal, or whose name begins so: 2a, write, inquiry.
    #[arg(long, value_name = "CODE|NAME", value_parser = opcode)]
    opcode: Option<Opcode>,
    /// Commands that took longer: 10ms, 1.5s, 200us.
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    slower: Option<u64>,
    /// Commands that did not end as they should.
    #[arg(long)]
    errors: bool,
}

impl Filter {
    pub(super) fn lets_through(&self, command: &Command) -> bool {
        self.lun.is_none_or(|lun| command.lun == Some(lun))
            && self.opcode.as_ref().is_none_or(|wanted| wanted.is_of(command))
            && self.slower.is_none_or(|ns| command.duration_ns().is_none_or(|took| took > ns))
            && (!self.errors || command.is_error())
    }
}

/// What commands are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Opcode {
    Code(u8),
    /// The beginning of a name, in any case.
    Name(String),
}

impl Opcode {
    fn is_of(&self, command: &Command) -> bool {
        match self {
            Self::Code(code) => OperationCode::from(*code) == command.block.opcode(),
            Self::Name(begin) => begins(&command.block.name(), begin),
        }
    }
}

/// What lines call commands, and the codes of those that are not known closely.
fn names() -> impl Iterator<Item = String> {
    let codes = (0..=u8::MAX).map(|code| OperationCode::from(code).to_string());
    cdb::Command::names().map(str::to_owned).chain(codes)
}

fn begins(name: &str, begin: &str) -> bool {
    name.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin))
}

/// A code or the beginning of a name that some command has.
fn opcode(text: &str) -> Result<Opcode, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let code = u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 2);
    let is_known = || names().any(|name| begins(&name, text));
    match code {
        Some(code) => Ok(Opcode::Code(code)),
        None if !text.is_empty() && is_known() => Ok(Opcode::Name(text.to_owned())),
        None => Err(format!(
            "'{text}' is neither a code of two hexadecimal digits, as in 2a, nor the beginning of a command's name, as in write"
        )),
    }
}

/// A time with its unit, in nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a time; write a number with us, ms or s, as in 10ms");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: f64 = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if (0.0..=1e9).contains(&number) { Ok((number * unit) as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::{Opcode, nanoseconds, opcode};

    #[test]
    fn a_command_is_asked_for_by_the_name_that_lines_have() {
        let name = |text: &str| Ok(Opcode::Name(text.to_owned()));
        assert_eq!(opcode("read capacity(16)"), name("read capacity(16)"));
        assert_eq!(opcode("Write"), name("Write"));
        assert_eq!((opcode("2a"), opcode("0x2A")), (Ok(Opcode::Code(0x2a)), Ok(Opcode::Code(0x2a))));
        assert!(opcode("reed").is_err());
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(nanoseconds("10ms"), Ok(10_000_000));
        assert_eq!(nanoseconds("1.5s"), Ok(1_500_000_000));
        assert_eq!(nanoseconds("200us"), Ok(200_000));
        for wrong in ["10", "ms", "-1s", "1h", "", "1 s", "NaNs"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
