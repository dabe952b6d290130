//! CSV rows (RFC 4180) with a header line.
//!
//! New columns are appended, since some readers count them.

use super::{Record, RecordRow};

const NAMES: &str = "transport,job,depth,iops,iops_low,iops_high,mb_per_s,mean_us,p50_us,p99_us,p999_us,max_us,\
                     processor_us_per_io,joules_per_gb,ratio,ratio_low,ratio_high,rounds,steady,interrupted,errors,retries,\
                     resets,wrong_blocks,error,timeouts,stalls,odd_statuses,busy,recovered,kernel_errors,lost_writes,not_ready,\
                     transport_failures,task_aborts,unpacked,offset_bytes,span_bytes,written_data,not_read_back";

/// Formats the rows of a record.
pub fn csv(record: &Record) -> String {
    let lines = record.rows.iter().map(line);
    std::iter::once(NAMES.to_owned()).chain(lines).map(|line| line + "\r\n").collect()
}

fn line(row: &RecordRow) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let figures = row.figures.as_ref();
    let of = |take: fn(&super::RowFigures) -> f64| number(figures.map(take));
    let interval = figures.and_then(|figures| figures.iops_interval);
    let ratio = figures.and_then(|figures| figures.ratio_to_first);
    let ratio_interval = ratio.and_then(|ratio| ratio.interval);
    let count = |take: fn(&super::RowFigures) -> u64| {
        figures.map_or_else(String::new, |figures| take(figures).to_string())
    };
    let flag = |take: fn(&super::RowFigures) -> bool| {
        figures.map_or_else(String::new, |figures| take(figures).to_string())
    };
    let wrong = row.verify.as_ref().map(|findings| findings.wrong.to_string());
    let error_counters = &row.error_counters;
    let fields = [
        row.transport.to_owned(),
        quoted(&row.job),
        row.depth.to_string(),
        of(|figures| figures.iops),
        number(interval.map(|[low, _]| low)),
        number(interval.map(|[_, high]| high)),
        of(|figures| figures.mb_per_s),
        of(|figures| figures.mean_us),
        of(|figures| figures.p50_us),
        of(|figures| figures.p99_us),
        of(|figures| figures.p999_us),
        of(|figures| figures.max_us),
        of(|figures| figures.processor_us_per_io),
        number(figures.and_then(|figures| figures.joules_per_gb)),
        number(ratio.map(|ratio| ratio.value)),
        number(ratio_interval.map(|[low, _]| low)),
        number(ratio_interval.map(|[_, high]| high)),
        count(|figures| figures.rounds.into()),
        flag(|figures| figures.steady),
        flag(|figures| figures.interrupted),
        row.errors.to_string(),
        error_counters.retries.to_string(),
        error_counters.resets.to_string(),
        wrong.unwrap_or_default(),
        quoted(row.error.as_deref().unwrap_or_default()),
        error_counters.timeouts.to_string(),
        error_counters.stalls.to_string(),
        error_counters.odd_statuses.to_string(),
        error_counters.busy.to_string(),
        error_counters.recovered.to_string(),
        error_counters.kernel_errors.to_string(),
        error_counters.lost_writes.to_string(),
        error_counters.not_ready.to_string(),
        error_counters.transport_failures.to_string(),
        error_counters.task_aborts.to_string(),
        error_counters.unpacked.to_string(),
        row.offset_bytes.to_string(),
        row.span_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
        row.written_data.unwrap_or_default().to_owned(),
        row.verify.as_ref().map_or_else(String::new, |findings| findings.not_read_back.to_string()),
    ];
    fields.join(",")
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
