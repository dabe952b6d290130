//! Arguments of `uaskit decode`.

use clap::Args;
use decode::{Address, Command};
use std::path::PathBuf;
use wire::scsi::cdb;
use wire::scsi::opcode::OperationCode;

/// Decode the SCSI commands in a capture of USB traffic, and report protocol errors.
///
/// Prints one line per command over BOT or UAS, in order of completion; then what went wrong, which side caused it and which
/// packets show it. Reads pcap and pcapng files of transfers (Linux usbmon, FreeBSD usbpf, Windows USBPcap, QEMU `pcap=`) or
/// of USB 2.0 packets, and usbmon text; also compressed with gzip, zstd or xz, or in a ZIP archive. Skips damaged parts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit decode drive.pcapng
  uaskit decode drive.pcapng.gz --slower 10ms --full
  sudo tcpdump -i usbmon2 -U -w - | uaskit decode -
  uaskit decode usbmon.txt --device 2.5
  uaskit decode drive.pcapng --stats --quiet
  uaskit decode drive.pcapng --json | jq 'select(.kind == \"verdict\")'

Times are in seconds since the first packet. LBAs, lengths, counts and UAS tags are decimal; codes, bytes and BOT tags are \
hexadecimal with 0x. In JSON, numbers are decimal, and `cdb` and `sense_bytes` are strings of hexadecimal bytes. From a pipe, \
commands are printed as they complete; Ctrl-C prints the verdicts so far.

Exit codes: 0 ok; 1 failed; 2 usage; 5 the capture is damaged (the readable parts were decoded).")]
pub(crate) struct DecodeArguments {
    /// Capture to decode; - for stdin.
    pub(crate) file: PathBuf,
    /// Show each transfer below its command.
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON objects, one per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print statistics by drive, opcode and queue depth, and the time spent in each phase.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print only verdicts (and statistics, with --stats).
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// Which commands are shown and counted. Verdicts are about all, or all of the device.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only commands and verdicts of this device, by bus and address, as in 2.5.
    #[arg(long, value_name = "BUS.DEVICE", value_parser = address)]
    pub(crate) device: Option<Address>,
    /// Only commands of this logical unit.
    #[arg(long, value_name = "N")]
    pub(crate) lun: Option<u16>,
    /// Only commands with this hexadecimal opcode, or whose name begins with NAME: 2a, write, inquiry.
    #[arg(long, value_name = "CODE|NAME", value_parser = opcode)]
    pub(crate) opcode: Option<Opcode>,
    /// Only commands that took longer than TIME: 10ms, 1.5s, 200us.
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub(crate) slower: Option<u64>,
    /// Only commands that failed.
    #[arg(long)]
    pub(crate) errors: bool,
}

impl Filter {
    pub(crate) fn lets_through(&self, command: &Command) -> bool {
        self.device.is_none_or(|device| command.address == device)
            && self.lun.is_none_or(|lun| command.lun == Some(lun))
            && self.opcode.as_ref().is_none_or(|wanted| wanted.is_of(command))
            && self.slower.is_none_or(|ns| command.duration_ns().is_none_or(|took| took > ns))
            && (!self.errors || command.is_error())
    }
}

/// Which commands are selected by opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
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

/// Names of commands in the output, and codes of unknown ones.
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

/// A bus and a device on it.
fn address(text: &str) -> Result<Address, String> {
    let parts =
        text.split_once('.').and_then(|(bus, device)| Some((bus.parse().ok()?, device.parse().ok()?)));
    parts.map(|(bus, device)| Address { bus, device }).ok_or_else(|| {
        format!("'{text}' is not a device; write the numbers of its bus and of itself, as in 2.5")
    })
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
    use super::{Address, Opcode, address, nanoseconds, opcode};

    #[test]
    fn a_command_is_selected_by_the_name_that_lines_have() {
        let name = |text: &str| Ok(Opcode::Name(text.to_owned()));
        assert_eq!(opcode("read capacity(16)"), name("read capacity(16)"));
        assert_eq!(opcode("Write"), name("Write"));
        assert_eq!((opcode("2a"), opcode("0x2A")), (Ok(Opcode::Code(0x2a)), Ok(Opcode::Code(0x2a))));
        assert!(opcode("reed").is_err());
    }

    #[test]
    fn a_device_has_a_bus_and_an_address() {
        assert_eq!(address("2.5"), Ok(Address { bus: 2, device: 5 }));
        assert_eq!(address("002.017"), Ok(Address { bus: 2, device: 17 }));
        for wrong in ["2", "2.", "2-1", "2.5.0", "70000.1", ""] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
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
