//! Tables of numbers: by command and by queue depth, and where the time went.

use super::lines::time;
use comfy_table::{CellAlignment, Table, presets};
use decode::{DEPTH_MAX, Spread, Stats, Summary};
use std::io::{self, Write};

pub(super) fn print(out: &mut impl Write, stats: &Stats, is_sure: bool) -> io::Result<()> {
    let mut by_name = table("command");
    for (_, name, row) in stats.by_name() {
        add(&mut by_name, name.to_owned(), &row);
    }
    add(&mut by_name, "all".to_owned(), &stats.all());
    let mut by_depth = table("in flight");
    for (depth, row) in stats.by_depth() {
        let more = if depth == DEPTH_MAX { " or more" } else { "" };
        add(&mut by_depth, format!("{depth}{more}"), &row);
    }
    writeln!(out, "\n{by_name}\n\n{by_depth}\n\n{}", gaps(stats))?;
    let (span_ns, idle_ns) = stats.span_ns();
    let share = if span_ns == 0 { 0.0 } else { 100.0 * idle_ns as f64 / span_ns as f64 };
    writeln!(
        out,
        "\n{} from the first command to the last; no command in flight for {} ({share:.1} %)",
        time(span_ns),
        time(idle_ns)
    )?;
    if !is_sure {
        writeln!(
            out,
            "packets are missing: idle times are upper limits, and more commands may have been in flight"
        )?;
    }
    Ok(())
}

fn gaps(stats: &Stats) -> Table {
    let gaps = stats.gaps();
    let mut table = plain(&["phase", "count", "p50", "p90", "p99", "max"]);
    for (name, spread) in [
        ("until the command is sent", gaps.sending),
        ("from the command to the last data", gaps.data),
        ("from the last data to the status", gaps.status),
        ("from the status to the next command", gaps.idle),
    ] {
        table.add_row([vec![name.to_owned(), spread.count.to_string()], percentiles(&spread)].concat());
    }
    right_from_second(&mut table);
    table
}

fn table(what: &str) -> Table {
    plain(&[what, "commands", "errors", "bytes", "p50", "p90", "p99", "max"])
}

fn plain(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head);
    table
}

fn add(table: &mut Table, name: String, row: &Summary) {
    let Summary { commands, errors, bytes, latency } = row;
    let counts = vec![name, commands.to_string(), errors.to_string(), bytes.to_string()];
    table.add_row([counts, percentiles(latency)].concat());
    right_from_second(table);
}

fn right_from_second(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn percentiles(spread: &Spread) -> Vec<String> {
    let Spread { count, p50_ns, p90_ns, p99_ns, max_ns } = *spread;
    let times = [p50_ns, p90_ns, p99_ns, max_ns];
    times.map(|ns| if count == 0 { "-".to_owned() } else { time(ns) }).to_vec()
}
