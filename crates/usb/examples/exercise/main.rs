//! A disk driven by our own initiator, for trials against real kernels: writes, reads back,
//! compares, measures.
//!
//! `exercise PORT bot|turbo|uas VERB …`, where VERB is
//! - `verify FIRST COUNT BYTES DEPTH`: COUNT stamped pieces of BYTES from block FIRST on, written, flushed, read back;
//! - `read random|sequential BYTES DEPTH SECONDS`: reads, and prints how many in a second;
//! - `panic`: panics while reads are in flight;
//! - `panic-between`: panics while the interface is held from one attachment to the next;
//! - `hold`: reads until a signal comes in.
//!
//! `--timeout-ms N` behind it all ends a command's patience sooner. The last line is `key=value`
//! pairs. Exit status 1: something was not right. Ctrl-C ends it in good order.

mod trial;

use initiator::disk::RetryLimits;
use inspect::inventory::{Inventory, Scope};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trial::{Failure, Trial};
use uaskit_usb::attachment::{AttachConfig, Attachment, ClaimedInterface, TransportChoice};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("exercise: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<bool, Failure> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut retry_limits = RetryLimits::DEFAULT;
    if let [.., "--timeout-ms", milliseconds] = words[..] {
        retry_limits.command_timeout = units::Duration::from_ms(milliseconds.parse()?);
        words.truncate(words.len() - 2);
    }
    let [port, transport, verb, rest @ ..] = &words[..] else { return Err("PORT TRANSPORT VERB …".into()) };
    let number =
        |at: usize| -> Result<u32, Failure> { Ok(rest.get(at).ok_or("a number is missing")?.parse()?) };
    let (bytes, depth) = match *verb {
        "verify" => (number(2)?, number(3)?),
        "read" => (number(1)?, number(2)?),
        _ => (65_536, 8),
    };
    let config = AttachConfig {
        transport: match *transport {
            "bot" => TransportChoice::Bot,
            "turbo" => TransportChoice::Turbo,
            "uas" => TransportChoice::Uas,
            _ => return Err("bot, turbo or uas".into()),
        },
        slots: depth.try_into()?,
        slot_bytes: bytes,
        retry_limits,
        ..AttachConfig::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let tree = uaskit_usb::running_tree();
    let inventory = Inventory::read(&tree, Scope::Brief);
    let drive = *inventory.find(port).first().ok_or("there is no such port")?;
    if *verb == "panic-between" {
        let mut claimed = ClaimedInterface::default();
        let disk = claimed.attach(&tree, drive, &config)?;
        claimed.retain(disk)?;
        panic!("as was asked for, with the interface held: {}", claimed.is_claimed());
    }
    let disk = Attachment::open(&tree, drive, &config)?;
    println!(
        "{}, depth {}, {}",
        disk.transport(),
        disk.depth(),
        if disk.is_zero_copy() { "mapped" } else { "copied" }
    );
    let mut trial = Trial::new(disk, stop);
    let right = match *verb {
        "verify" => trial.verify(number(0)?.into(), number(1)?.into(), bytes)?,
        "read" => trial.read(rest[0] == "random", bytes, Duration::from_secs(number(3)?.into()))?,
        "panic" => trial.panic()?,
        "hold" => trial.read(true, bytes, Duration::from_secs(600))?,
        _ => return Err("no such verb".into()),
    };
    let counters = trial.disk.counters();
    println!("{:?} {:?}", counters.transport, counters.disk);
    trial.disk.close()?;
    Ok(right)
}
