//! Facts known without a run: constants of protocols, numbers of parts, and what carries commands in a setup.
//!
//! ```text
//! fact(uas.header_bytes)                        a constant of a protocol, from the code that lives by it
//! part(drivers/turbo packing.range_most)        a number of a part: bytes, microseconds, or things
//! depth(myce/bot)                               commands in flight at most
//! uas(myce/bot)                                 1 if UAS runs, 0 if not
//! command_bytes(myce/bot)                       bytes of a command at most
//! ```
//!
//! Always true: a number is where the code or the catalogue has it, and is not said again here.

use super::parameter::ParameterPath;
use crate::parts::{Activation, Carried, Catalogue};
use crate::setups::{Setup, Variant};
use sim::link::superspeed::Rate;
use wire::uas::{HEADER_LEN, PipeUsage};
use wire::xhci::RouteString;

/// Where facts are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Parts.
    pub catalogue: &'a Catalogue,
    /// Setups.
    pub setups: &'a [Setup],
}

impl Facts<'_> {
    /// A fact.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn find(&self, fact: &str, of: &str) -> Result<f64, String> {
        match fact {
            "fact" => protocol(of).ok_or_else(|| format!("no such fact: `{of}`")),
            "part" => self.part(of),
            _ => {
                let Activation { transport, depth, command_bytes_max, .. } = self.activation(of)?;
                Ok(match fact {
                    "depth" => f64::from(depth),
                    "uas" => f64::from(u8::from(matches!(transport, Carried::Uas(_)))),
                    _ => f64::from(command_bytes_max),
                })
            }
        }
    }

    /// A variant of a setup, as `setup/variant`.
    pub fn variant(&self, setup: &str, variant: &str) -> Option<&Variant> {
        self.setups.iter().find(|known| known.name == setup)?.variant(variant)
    }

    fn activation(&self, of: &str) -> Result<Activation, String> {
        let unknown = || format!("no such setup: `{of}`");
        let (setup, variant) = of.split_once('/').ok_or_else(unknown)?;
        let variant = self.variant(setup, variant).ok_or_else(unknown)?;
        variant.assembly.activation(self.catalogue).map_err(|error| error.to_string())
    }

    fn part(&self, of: &str) -> Result<f64, String> {
        let place: ParameterPath = of.parse()?;
        let constant = place.find(self.catalogue).ok_or_else(|| format!("no such number: `{of}`"))?;
        Ok(constant.plain())
    }
}

/// A constant of a protocol.
fn protocol(name: &str) -> Option<f64> {
    const PACKET: u32 = 1 << 10;
    let pipes = [PipeUsage::Command, PipeUsage::Status, PipeUsage::DataIn, PipeUsage::DataOut];
    let megabytes =
        |bytes: u32, symbols: u32| f64::from(bytes) * 1e6 / Rate::Gen1.symbols(symbols).as_ps() as f64;
    Some(match name {
        "uas.pipes" => pipes.len() as f64,
        "uas.header_bytes" => HEADER_LEN as f64,
        "usb3.hub_tiers" => f64::from(RouteString::TIERS_MAX),
        // A byte is a symbol after 8b/10b.
        "usb3.gen1.megabytes" => megabytes(1, 1),
        // What is left for payload of packets of 1 KiB, with what is around it.
        "usb3.gen1.payload_megabytes" => megabytes(PACKET, Rate::Gen1.data_packet(PACKET)),
        // What the standards signal with (USB 3.2 clause 6.4.1, USB 2.0 clause 7.1.11).
        "usb3.gen1.megabits" => 5_000.0,
        "usb2.high.megabits" => 480.0,
        "usb1.full.megabits" => 12.0,
        _ => return None,
    })
}
