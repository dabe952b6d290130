//! `--power-states`: what a link that sleeps between commands costs them, and what it saves.
//!
//! Reads of 4 KiB over UAS, one at a time, with pauses of several lengths, on a link that never sleeps and on one that goes to U1
//! and U2 as Linux has it. What parts draw was chosen and not measured, so the ratio of two figures says more than either.

use crate::failure::Failure;
use report::TextTable;
use serde_json::{Value, json};
use sim::link::superspeed::{Rate, Sleep};
use sim::machine::xhci::Host;
use sim::power::think_time::{ThinkTimeResult, ThinkTimeRun, measure_think_time};
use units::Duration;

/// Pauses between commands, in microseconds.
const PAUSES_US: [u64; 4] = [20, 200, 2_000, 50_000];
/// Commands of each run.
const COMMANDS: u32 = 100;

/// One pause: a link that is always awake, and one that sleeps.
pub(super) struct Pause {
    pause: Duration,
    outlays: [ThinkTimeResult; 2],
}

/// Lets a host think, for each pause.
pub(super) fn measure(host: Option<Host>, rate: Rate, latency: Duration) -> Result<Vec<Pause>, Failure> {
    let of = |us| {
        let pause = Duration::from_us(us);
        let outlay = |sleep| {
            measure_think_time(&ThinkTimeRun { host, rate, sleep, latency, pause, commands: COMMANDS })
                .map_err(|error| Failure::new("simulation failed").because(error))
        };
        Ok(Pause { pause, outlays: [outlay(None)?, outlay(Some(Sleep::LINUX))?] })
    };
    PAUSES_US.into_iter().map(of).collect()
}

pub(super) fn table(pauses: &[Pause]) -> TextTable {
    let header = [
        "pause us",
        "awake us",
        "asleep us",
        "U0 %",
        "U1 %",
        "U2 %",
        "exit %",
        "awake J/GB",
        "asleep J/GB",
        "saved %",
    ];
    let mut table = TextTable::new(header).words([]);
    for Pause { pause, outlays: [awake, asleep] } in pauses {
        let us = |outlay: &ThinkTimeResult| format!("{:.1}", outlay.mean.as_ps() as f64 / 1e6);
        let joules = |outlay: &ThinkTimeResult| format!("{:.1}", outlay.joules_per_gigabyte());
        let share = |time: Duration| format!("{:.1}", percent(time.as_ps(), asleep.elapsed.as_ps()));
        let saved = 100.0 * (1.0 - asleep.joules_per_gigabyte() / awake.joules_per_gigabyte());
        let [u0, u1, u2, exit] = asleep.link.map(share);
        let pause = (pause.as_ns() / 1_000).to_string();
        let (mean, energy) = ([us(awake), us(asleep)], [joules(awake), joules(asleep)]);
        let [mean_awake, mean_asleep] = mean;
        let [energy_awake, energy_asleep] = energy;
        let saved = format!("{saved:.1}");
        table.row([pause, mean_awake, mean_asleep, u0, u1, u2, exit, energy_awake, energy_asleep, saved]);
    }
    table
}

pub(super) fn record(pauses: &[Pause]) -> Value {
    let of = |outlay: &ThinkTimeResult| {
        let [u0, u1, u2, exit] = outlay.link.map(|time| time.as_ps() as f64 / 1e3);
        json!({
            "mean_ns": outlay.mean.as_ps() as f64 / 1e3,
            "elapsed_ns": outlay.elapsed.as_ps() as f64 / 1e3,
            "link_ns": { "u0": u0, "u1": u1, "u2": u2, "exit": exit },
            "joules": outlay.energy.joules(),
            "joules_per_gigabyte": outlay.joules_per_gigabyte(),
        })
    };
    let of_pause = |Pause { pause, outlays: [awake, asleep] }: &Pause| json!({ "pause_us": pause.as_ns() / 1_000, "awake": of(awake), "asleep": of(asleep) });
    pauses.iter().map(of_pause).collect()
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
