//! mcperf's report: the lines and words of the original, with its wrong figures put right.

use std::fmt::{self, Write};

use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::churn::Churn;
use pummel_measure::figures::{Quantile, Unanswered, quantile};
use pummel_measure::histogram::{Histogram, Moments};
use pummel_measure::recorder::Span;

/// What a report is made from.
#[derive(Clone, Debug, Default)]
pub struct McperfFigures {
    /// What came of the connections.
    pub churn: Churn,
    /// Length of the run.
    pub elapsed_ns: Nanos,
    /// For how long the client thread ran, in which the CPU time was used.
    pub thread_ns: Nanos,
    /// CPU time of this process.
    pub cpu_user_ns: Nanos,
    /// CPU time of the kernel for this process.
    pub cpu_system_ns: Nanos,
}

/// What the report has beside the lines that it always has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportLayout {
    /// The histogram of response times.
    pub histogram: bool,
    /// Times from when a call was due.
    pub response: bool,
}

/// The report of a run.
pub fn render(figures: &McperfFigures, layout: ReportLayout) -> String {
    let mut text = String::new();
    write_all(&mut text, figures, layout).expect("text can always be added to");
    text
}

fn write_all(to: &mut String, figures: &McperfFigures, layout: ReportLayout) -> fmt::Result {
    let churn = &figures.churn;
    let (requests, replies) = (churn.request_bytes.count, churn.reply_bytes.count);
    let elapsed_s = figures.elapsed_ns as f64 / SECOND as f64;
    writeln!(
        to,
        "\nTotal: connections {} requests {requests} responses {replies} test-duration {elapsed_s:.3} s",
        churn.asked
    )?;
    if churn.asked > 0 {
        let (rate, gap) = rate_of(churn.asked, elapsed_s);
        let most = churn.alive_max;
        writeln!(
            to,
            "\nConnection rate: {rate:.1} conn/s ({gap:.1} ms/conn <= {most} concurrent connections)"
        )?;
        spread(to, "Connection time [ms]", &churn.life.moments(), MILLISECOND)?;
        spread(to, "Connect time [ms]", &churn.connect.moments(), MILLISECOND)?;
    }
    if requests > 0 {
        let (rate, gap) = rate_of(requests, elapsed_s);
        writeln!(to, "\nRequest rate: {rate:.1} req/s ({gap:.1} ms/req)")?;
        spread(to, "Request size [B]", &churn.request_bytes, 1)?;
    }
    if replies > 0 {
        let (rate, gap) = rate_of(replies, elapsed_s);
        writeln!(to, "\nResponse rate: {rate:.1} rsp/s ({gap:.1} ms/rsp)")?;
        write_replies(to, churn, layout)?;
    }
    write_errors(to, churn)?;
    write_cpu(to, figures)?;
    write_traffic(to, churn, elapsed_s)
}

fn write_replies(to: &mut String, churn: &Churn, layout: ReportLayout) -> fmt::Result {
    spread(to, "Response size [B]", &churn.reply_bytes, 1)?;
    spread(to, "Response time [ms]", &churn.service.moments(), MILLISECOND)?;
    if layout.histogram {
        writeln!(to, "Response time histogram [ms]:")?;
        histogram(to, &churn.service)?;
    }
    let unanswered = unanswered(churn);
    let at = |span: Span, times: &Histogram, share: f64, digits: usize| match quantile(
        span,
        times,
        &unanswered,
        share,
    ) {
        Quantile::Known(ns) => format!("{:.digits$}", milliseconds(ns)),
        // The original's lines have numbers alone, and the warning about unanswered calls says the rest.
        Quantile::Above(bound_ns) if !layout.response => format!("{:.digits$}", milliseconds(bound_ns)),
        Quantile::Above(bound_ns) => format!(">{:.digits$}", milliseconds(bound_ns)),
        Quantile::Absent => format!("{:.digits$}", 0.0),
    };
    let [p25, p50, p75, p95, p99, p999] = SHARES
        .map(|(_, share)| at(Span::Service, &churn.service, share, if layout.response { 3 } else { 1 }));
    writeln!(to, "Response time [ms]: p25 {p25} p50 {p50} p75 {p75}")?;
    writeln!(to, "Response time [ms]: p95 {p95} p99 {p99} p999 {p999}")?;
    if layout.response {
        let (avg, min, max, stddev) = figures_of(&churn.response.moments(), MILLISECOND);
        writeln!(
            to,
            "Response time from due [ms]: avg {avg:.3} min {min:.3} max {max:.3} stddev {stddev:.3}"
        )?;
        let [p50, p95, p99, p999] =
            [0.5, 0.95, 0.99, 0.999].map(|share| at(Span::Response, &churn.response, share, 3));
        writeln!(to, "Response time from due [ms]: p50 {p50} p95 {p95} p99 {p99} p999 {p999}")?;
    }
    let kinds = &churn.replies;
    writeln!(
        to,
        "Response type: stored {} not_stored {} exists {} not_found {}",
        kinds.stored, kinds.not_stored, kinds.exists, kinds.not_found
    )?;
    writeln!(
        to,
        "Response type: num {} deleted {} end {} value {}",
        kinds.num, kinds.deleted, kinds.end, kinds.value
    )?;
    writeln!(
        to,
        "Response type: error {} client_error {} server_error {}",
        kinds.error, kinds.client_error, kinds.server_error
    )
}

/// The percentiles of response times, by their names.
const SHARES: [(&str, f64); 6] =
    [("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The calls that were sent and not answered: a call whose connection failed took longer than any that was answered.
fn unanswered(churn: &Churn) -> Unanswered {
    let others = churn.request_bytes.count.saturating_sub(churn.reply_bytes.count);
    Unanswered { timeouts: 0, others, timeout_ns: 0 }
}

/// The names of the percentiles that lie among calls without an answer, so that their true values are greater than those
/// of the report.
pub fn unknown_percentiles(churn: &Churn) -> Vec<&'static str> {
    if churn.reply_bytes.count == 0 {
        return Vec::new();
    }
    let unanswered = unanswered(churn);
    let is_above = |share: f64| {
        matches!(quantile(Span::Service, &churn.service, &unanswered, share), Quantile::Above(_))
    };
    SHARES.into_iter().filter(|(_, share)| is_above(*share)).map(|(name, _)| name).collect()
}

fn write_errors(to: &mut String, churn: &Churn) -> fmt::Result {
    let failures = &churn.failures;
    writeln!(
        to,
        "\nErrors: total {} client-timo {} socket-timo {} connrefused {} connreset {}",
        failures.total(),
        failures.timeout,
        failures.unreachable,
        failures.refused,
        failures.reset
    )?;
    writeln!(
        to,
        "Errors: fd-unavail {} ftab-full {} addrunavail {} other {}",
        failures.descriptors, failures.files, failures.addresses, failures.other
    )
}

/// Writes the CPU time and its shares of the time in which it was used. The client of mcperf is one thread, so that they are
/// at most the whole of that time: in runs of some milliseconds the threads beside it, and the ticks of the kernel's clock, are
/// more than that.
fn write_cpu(to: &mut String, figures: &McperfFigures) -> fmt::Result {
    let (user_ns, system_ns) = (figures.cpu_user_ns, figures.cpu_system_ns);
    let whole_ns = figures.elapsed_ns.max(figures.thread_ns).max(user_ns + system_ns);
    let share = |part_ns: Nanos| if whole_ns > 0 { 100.0 * part_ns as f64 / whole_ns as f64 } else { 0.0 };
    let seconds = |ns: Nanos| ns as f64 / SECOND as f64;
    writeln!(
        to,
        "\nCPU time [s]: user {:.2} system {:.2} (user {:.1}% system {:.1}% total {:.1}%)",
        seconds(user_ns),
        seconds(system_ns),
        share(user_ns),
        share(system_ns),
        share(user_ns + system_ns)
    )
}

/// Writes how many bytes went over the net.
fn write_traffic(to: &mut String, churn: &Churn, elapsed_s: f64) -> fmt::Result {
    let (requests, replies) = (&churn.request_bytes, &churn.reply_bytes);
    if requests.count + replies.count > 0 {
        let bytes = (requests.sum + replies.sum) as f64;
        let (amount, unit) = amount(bytes);
        let per_second = if elapsed_s > 0.0 { bytes / elapsed_s } else { 0.0 };
        writeln!(
            to,
            "Net I/O: bytes {amount:.1} {unit} rate {:.1} KB/s ({:.1}*10^6 bps)",
            per_second / 1024.0,
            per_second * 8.0 / 1e6
        )?;
    }
    writeln!(to)
}

/// Rate per second of a count, and the milliseconds for each.
fn rate_of(count: u64, elapsed_s: f64) -> (f64, f64) {
    let rate = if elapsed_s > 0.0 { count as f64 / elapsed_s } else { 0.0 };
    (rate, 1_000.0 * elapsed_s / count as f64)
}

fn milliseconds(ns: Nanos) -> f64 {
    ns as f64 / MILLISECOND as f64
}

/// A line with mean, bounds, and standard deviation; zeros where there is no value.
fn spread(to: &mut String, what: &str, moments: &Moments, unit: u64) -> fmt::Result {
    let (avg, min, max, stddev) = figures_of(moments, unit);
    writeln!(to, "{what}: avg {avg:.1} min {min:.1} max {max:.1} stddev {stddev:.2}")
}

/// Mean, least, greatest, and the standard deviation of a sample, in units.
fn figures_of(moments: &Moments, unit: u64) -> (f64, f64, f64, f64) {
    let Some(mean) = moments.mean_ns() else { return (0.0, 0.0, 0.0, 0.0) };
    let unit = unit as f64;
    let count = moments.count as f64;
    let stddev = match moments.count {
        0 | 1 => 0.0,
        _ => moments.stddev_ns().unwrap_or(0.0) * (count / (count - 1.0)).sqrt(),
    };
    (mean / unit, moments.min as f64 / unit, moments.max as f64 / unit, stddev / unit)
}

/// Bytes in the unit in which the original prints them.
fn amount(bytes: f64) -> (f64, &'static str) {
    let units = [(1.0, "B"), (1024.0, "KB"), (1024.0 * 1024.0, "MB")];
    for (size, name) in units {
        if bytes <= size * 1024.0 {
            return (bytes / size, name);
        }
    }
    (bytes / (1024.0 * 1024.0 * 1024.0), "GB")
}

/// The last bin of the histogram, in milliseconds.
const LAST_BIN: u64 = 99_999;

/// A line for each millisecond in which there are values, and a colon where some without were left out.
fn histogram(to: &mut String, times: &Histogram) -> fmt::Result {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (low, high, count) in times.cells() {
        let middle = low + (high - low) / 2;
        let bin = ((middle + MILLISECOND / 2) / MILLISECOND).min(LAST_BIN);
        match bins.last_mut() {
            Some((last, so_far)) if *last == bin => *so_far += count,
            _ => bins.push((bin, count)),
        }
    }
    let mut next = 0;
    for (bin, count) in bins {
        if bin > next {
            writeln!(to, "{:>14}", ":")?;
        }
        writeln!(to, "{:>16.1} {count}", bin as f64)?;
        next = bin + 1;
    }
    if next <= LAST_BIN {
        writeln!(to, "{:>14}", ":")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
