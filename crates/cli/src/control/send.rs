//! `uaskit control`: sends one order to a drive that is being served, and prints the answer.

use super::{LINE_BYTES_MAX, Order};
use crate::args::{ControlArguments, OrderArgument};
use crate::failure::Failure;
use crate::harmless::{self, shown};
use serde_json::Value;
use server::net::Address;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take: the server waits 30 s for the host's commands, and then flushes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends the order of the arguments.
pub(crate) fn run(arguments: &ControlArguments) -> Result<(), Failure> {
    let path = socket_path(&arguments.address)?;
    let order = match &arguments.order {
        OrderArgument::Status => Order::Status,
        OrderArgument::Insert { image, lun } => {
            let image = std::path::absolute(image).unwrap_or_else(|_| image.clone());
            Order::Insert { lun: *lun, image }
        }
        OrderArgument::Eject { lun, force } => Order::Eject { lun: *lun, force: *force },
        OrderArgument::Resize { lun } => Order::Resize { lun: *lun },
    };
    let answer = exchange(&path, &order.encode().to_string())?;
    match (answer.get("ok"), answer.get("error")) {
        (Some(_), _) if arguments.json => println!("{}", harmless::json(&answer.to_string())),
        (Some(Value::Object(fields)), _) => {
            for (name, value) in fields {
                println!("{}: {}", harmless::tame(name), harmless::json(&value.to_string()));
            }
        }
        (_, Some(Value::String(why))) => return Err(Failure::new(why.clone())),
        _ => return Err(Failure::new("the drive gave an answer that is none").because(answer)),
    }
    Ok(())
}

/// The path of a Unix address; there are no others for orders.
pub(crate) fn socket_path(address: &str) -> Result<std::path::PathBuf, Failure> {
    match address.parse() {
        Ok(Address::Unix(path)) => Ok(path),
        _ => {
            Err(Failure::usage(format!("\"{address}\" is no address for orders"))
                .try_this("Write unix:PATH."))
        }
    }
}

/// Sends a line and takes the line that answers it.
fn exchange(path: &Path, order: &str) -> Result<Value, Failure> {
    let failed = |error| Failure::new(format!("cannot talk to the drive at {}", shown(path))).because(error);
    let stream = UnixStream::connect(path)
        .map_err(|error| failed(error).try_this("Is it being served with --control and this address?"))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    (&stream).write_all(format!("{order}\n").as_bytes()).map_err(failed)?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(&stream).take(LINE_BYTES_MAX as u64);
    reader.read_until(b'\n', &mut line).map_err(failed)?;
    serde_json::from_slice(&line)
        .map_err(|error| Failure::new("the drive gave an answer that is none").because(error))
}
