use super::*;
use crate::backend::DriveInfo;
use crate::backend::{AccessError, DeviceError, Route};
use crate::measure::{Estimate, Failures, MeasureError, RunError};
use crate::verify::{BlockContent, WrongBlock};
use device::medium::MediumError;
use hdrhistogram::Histogram;
use serde_json::Value;
use units::Lba;

fn figures(iops: f64) -> Figures {
    let mut latency = Histogram::new_with_bounds(1, 1_000_000_000, 3).expect("bounds");
    for microseconds in 1..=1000 {
        latency.record(microseconds * 1000).expect("within the bounds");
    }
    Figures {
        iops: Estimate { value: iops, interval: Some([iops * 0.9, iops * 1.1]) },
        iops_of_rounds: vec![iops; 3],
        mb_per_s: iops * 0.004_096,
        latency,
        processor_us_per_io: 1.5,
        joules_per_gb: None,
        ratio: None,
        ios: 1000,
        rounds: 3,
        is_steady: true,
        interrupted: false,
    }
}

fn row(route: Route, depth: u16, figures: Result<Figures, MeasureError>) -> Row {
    let label = "4K random, 70 % read".into();
    let (failures, error_counters) = (Failures::default(), ErrorCounters::NONE);
    Row {
        route,
        label,
        depth,
        part: (0, None),
        fill: None,
        failures,
        error_counters,
        findings: None,
        figures,
    }
}

fn record(rows: &[Row]) -> Record {
    let mut record = Record {
        version: "1.2.3",
        command_line: vec!["uaskit".into(), "bench".into()],
        began_unix_s: 1,
        machine: Machine::default(),
        target: Target {
            name: "2-1".into(),
            kind: "usb-port",
            identity: DriveInfo { notes: vec!["something".into()], ..DriveInfo::default() },
            ..Target::default()
        },
        workloads: vec!["one".into()],
        method: Method::default(),
        interrupted: false,
        iops: None,
        iops_of: None,
        mb_per_s: None,
        errors: 0,
        error_counters: ErrorCounters::default(),
        captured: None,
        rows: Vec::new(),
    };
    record.take(rows);
    record
}

/// Two transports at two depths; the second has a ratio, the third no figures.
fn three() -> Record {
    let against = Estimate { value: 2.0, interval: Some([1.5, 2.5]) };
    let failed =
        Failures { count: 7, kinds: vec![(AccessError::Medium(MediumError::Unreadable { lba: Lba(9) }), 7)] };
    let error_counters =
        ErrorCounters { retries: 3, lost_writes: 2, unpacked: 5, ..ErrorCounters::default() };
    let findings = crate::verify::Findings {
        written: 90,
        checked: 70,
        uncertain: 0,
        to_read_back: 9,
        read_back: 8,
        not_read_back: 1,
        wrong: 4,
        first_wrong: vec![WrongBlock {
            lba: 5,
            expected: 2,
            found: BlockContent::OtherGeneration { generation: 1 },
        }],
    };
    let second = Figures { ratio: Some(against), ..figures(2000.0) };
    let second =
        Row { failures: failed, error_counters, findings: Some(findings), ..row(Route::Uas, 1, Ok(second)) };
    let none = MeasureError::Route(DeviceError::not_offered("no way, \"none\""));
    record(&[row(Route::Bot, 1, Ok(figures(1000.0))), second, row(Route::Turbo, 1, Err(none))])
}

#[test]
fn the_record_has_the_headline_of_a_single_workload() {
    let bot = || [row(Route::Bot, 1, Ok(figures(500.0))), row(Route::Bot, 4, Ok(figures(1000.0)))];
    let first = record(&bot());
    assert_eq!((first.iops, first.mb_per_s), (Some(1000.0), Some(4.096)));
    let named = RowName { transport: "bot", job: "4K random, 70 % read".into(), depth: 4 };
    assert_eq!(first.iops_of, Some(named));
    let [one, other] = bot();
    let several = record(&[one, other, row(Route::Uas, 4, Ok(figures(9000.0)))]);
    assert_eq!((several.iops, several.iops_of, several.mb_per_s), (None, None, None));
    let mut two = first;
    two.workloads.push("another".into());
    two.take(&[row(Route::Bot, 1, Ok(figures(500.0)))]);
    assert_eq!((two.iops, two.iops_of), (None, None));
}

#[test]
fn json_has_the_fields_that_programs_read() {
    let value: Value = serde_json::to_value(three()).expect("a record is JSON");
    let top: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "began_unix_s",
        "command_line",
        "error_counters",
        "errors",
        "interrupted",
        "machine",
        "method",
        "rows",
        "target",
        "version",
        "workloads",
    ];
    assert_eq!(top, expected);
    assert_eq!(
        (&value["rows"][0]["iops"], &value["errors"], &value["error_counters"]["retries"]),
        (&1000.0.into(), &7.into(), &3.into())
    );
    let row: Vec<&str> =
        value["rows"][1].as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "depth",
        "error_counters",
        "error_kinds",
        "errors",
        "interrupted",
        "iops",
        "iops_interval",
        "iops_of_rounds",
        "ios",
        "job",
        "joules_per_gb",
        "max_us",
        "mb_per_s",
        "mean_us",
        "offset_bytes",
        "p50_us",
        "p999_us",
        "p99_us",
        "percentiles_us",
        "processor_us_per_io",
        "ratio_to_first",
        "rounds",
        "span_bytes",
        "steady",
        "transport",
        "verify",
        "written_data",
    ];
    assert_eq!(row, expected);
    assert_eq!(
        value["rows"][1]["ratio_to_first"],
        serde_json::json!({ "value": 2.0, "interval": [1.5, 2.5] })
    );
    assert_eq!(
        value["rows"][1]["verify"]["first_wrong"][0]["found"],
        serde_json::json!({ "kind": "other-generation", "generation": 1 })
    );
    assert_eq!(value["rows"][1]["error_kinds"][0]["reason"], "read error at LBA 9");
    assert_eq!(value["rows"][2]["error"], "no way, \"none\"");
    assert!(value["rows"][2].get("iops").is_none());
}

#[test]
fn json_has_the_fields_of_the_machine() {
    let value: Value = serde_json::to_value(three()).expect("a record is JSON");
    let machine: Vec<&str> =
        value["machine"].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(machine, ["kernel", "processor", "processors"]);
}

#[test]
fn every_error_counter_has_a_field() {
    let value: Value = serde_json::to_value(three()).expect("a record is JSON");
    assert_eq!(
        value["rows"][1]["error_counters"],
        serde_json::json!({
            "retries": 3, "timeouts": 0, "stalls": 0, "odd_statuses": 0, "busy": 0, "recovered": 0, "resets": 0,
            "kernel_errors": 0, "lost_writes": 2, "not_ready": 0, "transport_failures": 0, "task_aborts": 0, "unpacked": 5,
        })
    );
}

#[test]
fn errors_of_a_failed_row_count() {
    let lost = MeasureError::Run(RunError::Gone(AccessError::Medium(MediumError::Absent)));
    let lost = Row {
        failures: Failures { count: 4, kinds: vec![(AccessError::Medium(MediumError::Absent), 4)] },
        error_counters: ErrorCounters { resets: 2, ..ErrorCounters::NONE },
        ..row(Route::Uas, 1, Err(lost))
    };
    let record = record(&[row(Route::Bot, 1, Ok(figures(1000.0))), lost]);
    assert_eq!((record.errors, record.error_counters.resets), (4, 2));
    assert_eq!(record.failed_row().map(|row| row.transport), Some("uas"));
    assert!(three().failed_row().is_none(), "that there is no such transport is no failure");
    let value: Value = serde_json::to_value(&record).expect("a record is JSON");
    let row = &value["rows"][1];
    assert_eq!((&row["failed"], &row["errors"]), (&true.into(), &4.into()));
    assert!(
        csv(&record).contains("uas,\"4K random, 70 % read\",1,,,,,,,,,,,,,,,,,,4,0,2,,"),
        "{}",
        csv(&record)
    );
    assert!(table(&record, None).contains("uas, depth 1: 2 resets"), "{}", table(&record, None));
}

#[test]
fn rows_name_the_used_part_and_payload() {
    let of = |part, fill| Row { part, fill, ..row(Route::Uas, 1, Ok(figures(1000.0))) };
    let mut record = record(&[]);
    record.target.identity.block_bytes = 4096;
    let all = (0, None);
    let parts = [all, (0, Some(256 << 20)), (1 << 30, Some(4 << 30)), (0, Some(1 << 40))];
    let rows: Vec<Row> = parts.iter().map(|part| of(*part, Some(Fill::Zero))).collect();
    let spans = |record: &Record| record.rows.iter().map(|row| row.span_bytes).collect::<Vec<_>>();
    let parts_shown = |record: &Record| -> Vec<String> {
        let text = table(record, None);
        let cells = text
            .lines()
            .skip(2)
            .take(4)
            .map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).nth(3));
        cells.map(|cell| cell.unwrap_or_default().to_owned()).collect()
    };
    record.take(&rows);
    assert_eq!(spans(&record), [None, Some(256 << 20), Some(4 << 30), Some(1 << 40)]);
    assert_eq!(parts_shown(&record), ["all", "256M", "4G from 1G", "1T"]);
    // Less than was asked for is there, and the last bytes are no block.
    record.target.identity.bytes = (2 << 30) + 512;
    record.take(&rows);
    assert_eq!(spans(&record), [Some(2 << 30), Some(256 << 20), Some(1 << 30), Some(2 << 30)]);
    assert_eq!(parts_shown(&record), ["all", "256M", "1G from 1G", "all"]);
    assert!(csv(&record).contains(",1073741824,1073741824,zero,\r\n"), "{}", csv(&record));
    record.take(&rows[..1]);
    assert!(!table(&record, None).contains("part"), "all of it needs no column");
    record.method.verify = true;
    record.take(&[of(all, Some(Fill::Random)), of(all, None)]);
    let written: Vec<_> = record.rows.iter().map(|row| row.written_data).collect();
    assert_eq!(written, [Some("stamps"), None]);
}

#[test]
fn percentiles_match_the_latencies() {
    let figures = RowFigures::of(&figures(1.0));
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002;
    assert!(near(figures.mean_us, 500.5) && near(figures.p50_us, 500.0) && near(figures.p99_us, 990.0));
    assert!(near(figures.p999_us, 999.0) && near(figures.max_us, 1000.0));
    let [few, all] = [figures.percentiles_us[0], *figures.percentiles_us.last().expect("there are some")];
    assert!(
        few[0] == 1.0 && near(few[1], 10.0) && all[0] == 100.0 && near(all[1], 1000.0),
        "{few:?} {all:?}"
    );
}

#[test]
fn csv_quotes_where_required() {
    let csv = csv(&three());
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].starts_with("transport,job,depth,iops,"));
    assert!(
        lines[1].starts_with("bot,\"4K random, 70 % read\",1,1000.000,900.000,1100.000,4.096,"),
        "{}",
        lines[1]
    );
    assert!(lines[2].contains(",2.000,1.500,2.500,3,true,false,7,3,0,4,"), "{}", lines[2]);
    assert!(lines[2].ends_with(",4,,0,0,0,0,0,0,2,0,0,0,5,0,,,1"), "{}", lines[2]);
    assert!(lines[3].ends_with(",\"no way, \"\"none\"\"\",0,0,0,0,0,0,0,0,0,0,0,0,,,"), "{}", lines[3]);
    let columns = lines[0].split(',').count();
    assert_eq!(lines[1].split(',').count(), columns + 1, "the job has a comma itself");
}

#[test]
fn the_table_shows_every_error() {
    let text = table(&three(), None);
    for expected in [
        "2.00 (1.50 to 2.50)",
        "4K random, 70 % read, turbo, depth 1: no figures: no way",
        "uas, depth 1: 7 failed: read error at LBA 9",
        "uas, depth 1: 3 retries, 2 acknowledged writes lost later, 5 packs resent as single requests",
        "9 blocks written, 8 verified, 1 NOT VERIFIED (unreadable or failed writes), 4 wrong",
        "LBA 5, write 2: holds write 1\n  and 3 more\n",
        "Note: something.",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("Interrupted"));
    let interrupted = Record { interrupted: true, ..three() };
    assert!(table(&interrupted, None).contains("Interrupted: these are the figures so far."));
}

#[test]
fn a_narrow_terminal_lists_hidden_columns() {
    let rows = [row(Route::Bot, 1, Ok(figures(1000.0))), row(Route::Uas, 32, Ok(figures(2000.0)))];
    let record = record(&rows);
    let width = |text: &str| text.lines().take(4).map(|line| line.chars().count()).max();
    let whole = table(&record, None);
    assert!(width(&whole) > Some(120) && !whole.contains("Hidden columns"), "{whole}");
    assert_eq!(table(&record, Some(200)), whole);
    let narrow = table(&record, Some(80));
    assert!(width(&narrow) <= Some(80), "{narrow}");
    for shown in ["job", "transport", "depth", "IOPS", "p99", "errors"] {
        assert!(narrow.lines().next().is_some_and(|names| names.contains(&format!(" {shown} "))), "{narrow}");
    }
    let left_out = "Hidden columns: CPU/IO, p99.9, max, p50, ±, mean; use a wider terminal, --json or --csv.";
    assert!(narrow.contains(left_out), "{narrow}");
    // A table that is still too wide keeps the columns that identify rows.
    assert!(table(&record, Some(20)).contains("1000"));
    for columns in [60, 80] {
        let text = table(&three(), Some(columns));
        let fits = text
            .lines()
            .take_while(|line| !line.starts_with("Hidden columns"))
            .all(|line| line.chars().count() <= columns);
        assert!(fits && text.contains("2.00 (1.50 to 2.50)"), "{text}");
    }
    let with_ratio = table(&three(), Some(88));
    assert!(width(&with_ratio) <= Some(88) && with_ratio.contains("2.00 (1.50 to 2.50)"), "{with_ratio}");
}

#[test]
fn the_heading_of_an_unopened_drive_has_what_is_known() {
    let mut record = record(&[]);
    record.target.identity.model = Some("ACME Bridge".into());
    let head = heading(&record);
    assert_eq!(head.lines().next(), Some("2-1: ACME Bridge"));
    assert!(head.lines().nth(1).is_some_and(|line| line.starts_with("Linux ")), "{head}");
    let known =
        DriveInfo { bytes: 1 << 30, block_bytes: 512, engine: "usbfs".into(), ..DriveInfo::default() };
    record.target.identity = known;
    let head = heading(&record);
    let lines: Vec<&str> = head.lines().collect();
    assert!(lines[0].ends_with(", blocks of 512") && lines[1] == "Requests: usbfs", "{head}");
}

#[test]
fn both_temperatures_are_from_one_named_source() {
    let degrees = |celsius, source| Some(Temperature { celsius, source });
    let of = |of_drive, of_kernel| {
        let mut record = record(&[]);
        record.target.add_temperatures(of_drive, of_kernel);
        let line = heading(&record).lines().find(|line| line.contains("°C")).map(str::to_owned);
        (record.target.temperature_c, record.target.temperature_source, line)
    };
    let (log, smart) = (TemperatureSource::LogPage, TemperatureSource::Smart);
    assert_eq!(
        of([degrees(35, log), degrees(41, log)], [Some(34.5), Some(40.0)]),
        ([Some(35.0), Some(41.0)], Some("log-page"), Some("35 °C before, 41 °C after (by LOG SENSE)".into()))
    );
    assert_eq!(
        of([degrees(35, smart), None], [Some(34.5), Some(40.0)]),
        ([Some(34.5), Some(40.0)], Some("kernel"), Some("34 °C before, 40 °C after (kernel sensor)".into()))
    );
    assert_eq!(
        of([degrees(35, smart), None], [None, None]),
        ([Some(35.0), None], Some("smart"), Some("35 °C before (by SMART)".into()))
    );
    assert_eq!(of([None, None], [None, None]), ([None, None], None, None));
}
