//! usbmon in the guest, tshark on the host: does an independent dissector understand the traffic?
//!
//! usbmon sees URBs as the guest's drivers hand them in and get them back. It carries no stream id, so the
//! data of several UAS commands in flight cannot be assigned to them; the IUs can. Captures of a simulation, which keep the
//! stream, are read by the same program.

use std::{fs, path::Path, process::Command, time::Duration};

use crate::{
    Error, Result, child, drive,
    guest::{Guest, Job},
    scratch::Scratch,
};

/// A capture that runs in the guest.
#[derive(Debug)]
pub struct Running {
    job: Job,
    file: String,
}

/// A capture on the host.
#[derive(Debug)]
pub struct Capture {
    place: Scratch,
}

/// The file in its directory.
const FILE: &str = "capture.pcapng";

/// Starts to capture all URBs of a bus; `usb_bus` is its number in the guest, 0 for every bus.
pub fn start(guest: &mut Guest, usb_bus: u8) -> Result<Running> {
    let file = format!("/tmp/usbmon{usb_bus}.pcap");
    let job = guest.start(&format!("rm -f {file}; exec dumpcap -q -P -i usbmon{usb_bus} -w {file}"))?;
    // dumpcap creates the file once it listens.
    let listening = format!("for n in $(seq 100); do [ -s {file} ] && exit; sleep 0.05; done; exit 1");
    guest.stdout_of(&listening)?;
    Ok(Running { job, file })
}

/// Returns the capture of `uaskit compare --raw ARGUMENTS`.
pub fn simulated(arguments: &[&str]) -> Result<Capture> {
    compared(&[&["--raw"], arguments].concat())
}

/// Returns the capture of `uaskit compare ARGUMENTS`.
pub fn compared(arguments: &[&str]) -> Result<Capture> {
    let place = Scratch::new()?;
    let mut compare = Command::new(drive::binary()?);
    compare.arg("compare").args(arguments).arg("--capture").arg(place.path(FILE));
    child::output_of(&mut compare)?;
    Ok(Capture { place })
}

/// Returns the capture of `uaskit bench --virtual ARGUMENTS`, and its standard output.
pub fn measured(arguments: &[&str]) -> Result<(Capture, String)> {
    let place = Scratch::new()?;
    let mut bench = Command::new(drive::binary()?);
    bench.args(["bench", "--virtual"]).args(arguments).arg("--capture").arg(place.path(FILE));
    let printed = child::text_of(&mut bench)?;
    Ok((Capture { place }, printed))
}

/// A capture that a server has written; it is copied, so that the server may go on.
pub fn written(file: &Path) -> Result<Capture> {
    let place = Scratch::new()?;
    fs::copy(file, place.path(FILE)).map_err(Error::io(format!("copy {}", file.display())))?;
    Ok(Capture { place })
}

impl Running {
    /// Ends the capture and brings it to the host.
    pub fn stop(self, guest: &mut Guest) -> Result<Capture> {
        const LIMIT: Duration = Duration::from_secs(20);
        guest.stdout_of("killall -INT dumpcap")?;
        guest.finish(self.job, LIMIT)?;
        let place = Scratch::new()?;
        let path = place.path(FILE);
        let bytes = guest.pull(&self.file)?;
        fs::write(&path, bytes).map_err(Error::io(format!("write {}", path.display())))?;
        guest.stdout_of(&format!("rm {}", self.file))?;
        Ok(Capture { place })
    }
}

/// The objects that `uaskit decode` printed for a capture.
#[derive(Debug)]
pub struct Decoded(Vec<serde_json::Value>);

impl Decoded {
    /// How many commands are as wanted.
    pub fn commands(&self, is_wanted: impl Fn(&serde_json::Value) -> bool) -> usize {
        self.0.iter().filter(|object| object["kind"] == "command" && is_wanted(object)).count()
    }

    /// Bytes that all commands moved.
    pub fn bytes(&self) -> u64 {
        let commands = self.0.iter().filter(|object| object["kind"] == "command");
        commands.filter_map(|command| command["bytes"].as_u64()).sum()
    }

    /// The names of what went wrong.
    pub fn faults(&self) -> Vec<&str> {
        self.0.iter().filter_map(|object| object["fault"].as_str()).collect()
    }

    /// The last object, with the numbers of what was seen and what was dropped.
    pub fn end(&self) -> &serde_json::Value {
        self.0.last().unwrap_or(&serde_json::Value::Null)
    }
}

impl Capture {
    /// Decodes it with `uaskit decode`.
    pub fn decoded(&self) -> Result<Decoded> {
        let mut decode = Command::new(drive::binary()?);
        decode.arg("decode").arg(self.place.path(FILE)).arg("--json");
        let text = child::text_of(&mut decode)?;
        let object = |line: &str| {
            serde_json::from_str(line).map_err(|error| Error::Unexpected {
                what: "read what uaskit decode prints".to_owned(),
                evidence: format!("{error}: {line}"),
            })
        };
        text.lines().map(object).collect::<Result<_>>().map(Decoded)
    }

    /// The packets that a display filter of Wireshark selects, one line each. An empty filter selects all.
    pub fn packets(&self, filter: &str) -> Result<Vec<String>> {
        packets(&self.place.path(FILE), filter)
    }

    /// How many packets a display filter selects.
    pub fn count(&self, filter: &str) -> Result<usize> {
        self.packets(filter).map(|packets| packets.len())
    }

    /// The sum of a field, in the packets that a display filter selects.
    pub fn sum(&self, filter: &str, field: &str) -> Result<u64> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(self.place.path(FILE)).args(["-Y", filter, "-T", "fields", "-e", field]);
        Ok(child::text_of(&mut tshark)?.lines().filter_map(|line| line.parse::<u64>().ok()).sum())
    }

    /// The packets that the dissector could not make sense of. What the host itself has cut off does not count:
    /// Linux asks for the first four bytes of a VPD page to learn its length, and the dissector wants the rest.
    pub fn malformed(&self) -> Result<Vec<String>> {
        self.packets(
            "(_ws.malformed || _ws.unreassembled) && !(scsi_sbc.opcode == 0x12 && usb.data_len == 4)",
        )
    }
}

/// The packets of any capture file that a display filter of Wireshark selects, one line each.
pub fn packets(file: &Path, filter: &str) -> Result<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-Y", filter]);
    Ok(child::text_of(&mut tshark)?.lines().map(str::to_owned).collect())
}
