//! The instrument on one machine: its own errors, as `pummel calibrate` found them, and advice where they are bad.

use serde::{Deserialize, Serialize};

use crate::compare::variance;
use crate::figures::Quantile;
use crate::words::percent;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Greatest age of a calibration that is used, in seconds.
pub const AGE_MAX_S: u64 = 30 * 24 * 3600;

/// The figures of the instrument on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Names the machine, its kernel, the CPUs that are allowed, pummel's version and its backend.
    pub key: String,
    /// Time of the calibration, in seconds since 1970.
    pub unix_s: u64,
    /// Whether it was made in a few seconds: the figures are rough.
    #[serde(default)]
    pub quick: bool,
    /// The interface to the kernel.
    pub backend: String,
    /// Figures of the clock.
    pub clock: ClockFigures,
    /// Figures of sleeps and stand-stills.
    pub timer: TimerFigures,
    /// Figures of receive and transmit stamps.
    pub stamps: StampFigures,
    /// Errors of service times, for each way in which the server held its replies.
    pub service_error: Vec<ServiceError>,
    /// Lag at rates that the generator ought to keep.
    pub lag: Vec<LagFloor>,
    /// The greatest rate of one core at which the lag's p99 is below 10 % of the service time's median and the core is
    /// busy for less than 90 % of the time, in requests per second; `None` where no rate is.
    pub rate_per_core: Option<u64>,
    /// Differences between runs of the same configuration; `None` where they were not measured.
    pub noise: Option<NoiseFloor>,
}

/// Figures of a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFigures {
    /// Kernel's name of the clock source; `None` where it is not known.
    pub source: Option<String>,
    /// Time of one reading, in picoseconds.
    pub reading_ps: u64,
    /// The smallest step that was seen, in nanoseconds.
    pub step_ns: Nanos,
    /// Readings that were before the one before them.
    pub backward: u64,
}

/// Figures of sleeps and stand-stills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerFigures {
    /// Overshoots of sleeps, by their length.
    pub sleeps: Vec<Overshoot>,
    /// The longest times in which a spinning thread did not run, the longest first, in nanoseconds.
    pub gaps_ns: Vec<Nanos>,
    /// Time for which gaps were looked for, in nanoseconds.
    pub looked_ns: Nanos,
    /// Time for which the spinning thread could have run meanwhile and had no CPU, in nanoseconds: what others on the
    /// machine took. Absent where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<Nanos>,
}

impl TimerFigures {
    /// The share of the time for which the spinning thread had no CPU though it could have run; `None` where that is not known.
    pub fn run_delay_share(&self) -> Option<f64> {
        let share = self.run_delay_ns? as f64 / self.looked_ns as f64;
        (self.looked_ns > 0).then_some(share.min(1.0))
    }
}

/// Overshoot of sleeps of one length, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overshoot {
    /// Length of the sleeps.
    pub asked_ns: Nanos,
    /// Median of the overshoots.
    pub p50_ns: Nanos,
    /// The 99th percentile of the overshoots.
    pub p99_ns: Nanos,
    /// Greatest of the overshoots.
    pub max_ns: Nanos,
}

/// Stamps of the kernel, and the abilities of the network cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StampFigures {
    /// Replies that were looked at.
    pub replies: u64,
    /// Replies without a receive stamp.
    pub missing: u64,
    /// Replies that shared a read with a later one, so that their stamp is too late.
    pub late: u64,
    /// Replies whose stamp was impossible.
    pub rejected: u64,
    /// Requests that the kernel was asked to stamp when they left.
    pub transmit_asked: u64,
    /// Requests without a possible transmit stamp of their own.
    pub transmit_missing: u64,
    /// The network cards that are up, but for loopback.
    pub cards: Vec<CardStamps>,
}

/// Ability of a network card to stamp packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardStamps {
    /// Name of the card.
    pub name: String,
    /// Whether the card stamps packets in both directions by a clock of its own; `None` where that is not known.
    pub stamps_packets: Option<bool>,
}

/// Differences between the service times of one run and the times for which the server held the replies, request by
/// request, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceError {
    /// Way in which the server held the replies, in the words of `--service-time`.
    pub held: String,
    /// Number of requests.
    pub requests: u64,
    /// Median of the differences.
    pub p50_ns: i64,
    /// The 99th percentile of the differences.
    pub p99_ns: i64,
    /// Greatest of the differences.
    pub max_ns: i64,
}

/// Lag at a rate, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LagFloor {
    /// Requests per second that were asked for.
    pub rate: u64,
    /// Way in which the generator waited: `spin` or `block`.
    pub wait: String,
    /// The median of the lag; 0 without requests.
    pub p50_ns: Nanos,
    /// The 99th percentile of the lag; 0 without requests.
    pub p99_ns: Nanos,
    /// Whether the median is more than `p50_ns`: it falls among the requests that were not sent or not answered.
    #[serde(default)]
    pub p50_above: bool,
    /// Whether the 99th percentile is more than `p99_ns`.
    #[serde(default)]
    pub p99_above: bool,
}

impl LagFloor {
    /// The lag at a rate, with its median and its 99th percentile.
    pub fn of(rate: u64, wait: &str, p50: Quantile, p99: Quantile) -> LagFloor {
        let figure = |quantile| match quantile {
            Quantile::Known(ns) => (ns, false),
            Quantile::Above(ns) => (ns, true),
            Quantile::Absent => (0, false),
        };
        let ((p50_ns, p50_above), (p99_ns, p99_above)) = (figure(p50), figure(p99));
        LagFloor { rate, wait: wait.to_owned(), p50_ns, p99_ns, p50_above, p99_above }
    }
}

/// Whether the times of a run are reliable: its lag's p99 is known and below this share of the median service time.
pub fn is_prompt(lag_p99: Quantile, service_p50: Quantile, share: f64) -> bool {
    match (lag_p99, service_p50) {
        (Quantile::Known(lag_ns), Quantile::Known(service_ns)) => (lag_ns as f64) < share * service_ns as f64,
        _ => false,
    }
}

/// Differences between runs of the same configuration: standard deviations of the logarithm, in millionths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseFloor {
    /// Pairs of runs.
    pub pairs: u64,
    /// Deviation of the median response.
    pub p50_ppm: u64,
    /// Deviation of the 99th percentile of the response.
    pub p99_ppm: u64,
    /// Deviation of the rate in closed loop.
    pub rate_ppm: u64,
}

/// A calibration and its age when a result was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibrated {
    /// Age of the calibration in seconds.
    pub age_s: u64,
    /// Figures of the calibration.
    #[serde(flatten)]
    pub figures: Calibration,
}

impl Calibration {
    /// The calibration with its age at `unix_s`; `None` where it is of another key, or too old.
    pub fn at(self, key: &str, unix_s: u64) -> Option<Calibrated> {
        let age_s = unix_s.saturating_sub(self.unix_s);
        (self.key == key && age_s <= AGE_MAX_S).then_some(Calibrated { age_s, figures: self })
    }

    /// The share of its time for which other programs had the CPU of a spinning thread, where the figures are those of a busy machine.
    pub fn busy_share(&self) -> Option<f64> {
        self.timer.run_delay_share().filter(|share| *share >= RUN_DELAY_BAD)
    }

    /// The error of the shortest service times: what the instrument adds to each, in nanoseconds.
    pub fn service_error_ns(&self) -> Option<i64> {
        self.service_error.first().map(|error| error.p50_ns)
    }
}

impl Overshoot {
    /// The figures of sleeps that were to last `asked_ns` and lasted `lasted_ns`.
    pub fn of(asked_ns: Nanos, lasted_ns: impl IntoIterator<Item = Nanos>) -> Overshoot {
        let mut over: Vec<Nanos> =
            lasted_ns.into_iter().map(|lasted| lasted.saturating_sub(asked_ns)).collect();
        over.sort_unstable();
        let at = |share| quantile(&over, share).unwrap_or(0);
        Overshoot { asked_ns, p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) }
    }
}

impl ServiceError {
    /// The figures of requests of which each is the service time that pummel measured and the time that the server held the
    /// reply, in nanoseconds. `None` without requests.
    pub fn of(held: &str, pairs: impl IntoIterator<Item = (Nanos, Nanos)>) -> Option<ServiceError> {
        let mut errors: Vec<i64> =
            pairs.into_iter().map(|(measured, true_ns)| measured as i64 - true_ns as i64).collect();
        errors.sort_unstable();
        Some(ServiceError {
            held: held.to_owned(),
            requests: errors.len() as u64,
            p50_ns: quantile(&errors, 0.5)?,
            p99_ns: quantile(&errors, 0.99)?,
            max_ns: quantile(&errors, 1.0)?,
        })
    }
}

impl NoiseFloor {
    /// The standard deviation of the differences of the logarithms of pairs, in millionths; divided by the root of 2, since each
    /// has two runs. `None` for fewer than three pairs, and where a figure is not above 0.
    pub fn of(pairs: &[(f64, f64)]) -> Option<u64> {
        if pairs.len() < 3 || pairs.iter().any(|(one, other)| !(*one > 0.0 && *other > 0.0)) {
            return None;
        }
        let differences: Vec<f64> = pairs.iter().map(|(one, other)| libm::log(other / one)).collect();
        Some(libm::round(libm::sqrt(variance(&differences)? / 2.0) * 1e6) as u64)
    }
}

/// The value at a share of sorted values: the least one that at most this share lies below.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (libm::ceil(share * sorted.len() as f64) as usize).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied()
}

/// Settings and state of the machine, as far as its instrument depends on them; `None` where one is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The frequency governor.
    pub governor: Option<String>,
    /// Time to leave the deepest idle state, in microseconds.
    pub idle_exit_us: Option<u64>,
    /// Kernel's setting for transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Whether there is swap that is used.
    pub swaps: Option<bool>,
    /// Time for which the limit of a control group held this process back while it was calibrated.
    pub throttled_ns: Option<Nanos>,
    /// Share of the time that the hypervisor took from the CPUs of this process meanwhile, in thousandths.
    pub steal_permille: Option<u64>,
    /// Share of the time, in thousandths, for which sibling CPUs were busy: CPUs that share a core with a CPU of this
    /// process and are not its own.
    pub siblings_busy_permille: Option<u64>,
    /// The network card whose interrupts came to the CPUs of this process although irqbalance could move them.
    pub interrupting_card: Option<String>,
}

/// A sentence about a bad figure, and the command that may mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Bad figure and its cause.
    pub says: String,
    /// Command that may mend it.
    pub command: &'static str,
}

/// Longest reading of the clock that is not a system call, in picoseconds.
const READING_BAD_PS: u64 = 150_000;

/// Longest overshoot of sleeps of 50 us that makes no lag.
const SLEEP_BAD_NS: Nanos = 150 * MICROSECOND;

/// Longest stand-still that is not seen in p99.9.
const GAP_BAD_NS: Nanos = MILLISECOND;

/// The share of the time without a CPU from which on figures are those of a busy machine.
const RUN_DELAY_BAD: f64 = 0.01;

/// Time to leave an idle state that is too long, in microseconds.
const IDLE_EXIT_BAD_US: u64 = 50;

/// Share of the time that a hypervisor takes beyond chance, in thousandths.
const STEAL_BAD_PERMILLE: u64 = 1;

/// Share of the time for which a sibling is busy that slows its core, in thousandths.
const SIBLINGS_BAD_PERMILLE: u64 = 100;

/// Advice on settings that may have made a figure bad; settings that did no harm are left out.
pub fn advice(figures: &Calibration, around: &Surroundings) -> Vec<Advice> {
    let gap_ns = figures.timer.gaps_ns.first().copied().unwrap_or(0);
    let gap = format!("a spinning thread stood still for {:.1} ms", gap_ns as f64 / MILLISECOND as f64);
    let gap = (gap_ns > GAP_BAD_NS).then_some(gap);
    let late_ns = figures.timer.sleeps.first().map_or(0, |sleep| sleep.p99_ns);
    let late = format!("sleeps of 50 us last {} us longer at p99", late_ns / MICROSECOND);
    let late = (late_ns > SLEEP_BAD_NS).then_some(late);
    let mut all: Vec<Advice> = clock_advice(&figures.clock).into_iter().collect();
    all.extend(late.iter().flat_map(|late| sleep_advice(late, around)));
    match figures.busy_share() {
        // What others did explains the gaps, and hides what else may cause some.
        Some(share) => all.push(busy_advice(share)),
        None => all.extend(gap.iter().flat_map(|gap| gap_advice(gap, around))),
    }
    all.extend(gap.or(late).iter().flat_map(|slow| neighbour_advice(slow, around)));
    all
}

fn clock_advice(clock: &ClockFigures) -> Option<Advice> {
    let source = clock.source.as_deref().filter(|source| *source != "tsc")?;
    let reading_ns = clock.reading_ps / 1_000;
    (clock.reading_ps > READING_BAD_PS).then(|| Advice {
        says: format!("every reading of the clock costs {reading_ns} ns, since its source is {source}"),
        command: "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    })
}

/// Possible causes of sleeps that are late by these words.
fn sleep_advice(late: &str, around: &Surroundings) -> Vec<Advice> {
    let governor = around.governor.as_deref().filter(|governor| *governor != "performance");
    let governor = governor.map(|governor| Advice {
        says: format!("{late}, and the frequency governor is {governor}"),
        command: "sudo cpupower frequency-set -g performance",
    });
    let exit_us = around.idle_exit_us.filter(|exit_us| *exit_us > IDLE_EXIT_BAD_US);
    let idle = exit_us.map(|exit_us| Advice {
        says: format!("{late}, and the deepest idle state takes {exit_us} us to leave"),
        command: "sudo cpupower idle-set -D 50",
    });
    governor.into_iter().chain(idle).collect()
}

/// Advice for a machine on which other processes took the CPU for this share of the time.
fn busy_advice(share: f64) -> Advice {
    Advice {
        says: format!(
            "other programs had the CPU of a spinning thread for {} of the time, so that all of this is what a busy machine does: \
             calibrate again when it is quiet",
            percent(share)
        ),
        command: "top -b -n 1 -o %CPU | head -n 15",
    }
}

/// Possible causes of a thread that stood still for as long as these words say.
fn gap_advice(gap: &str, around: &Surroundings) -> Vec<Advice> {
    let throttled_ms = around.throttled_ns.unwrap_or(0) / MILLISECOND;
    let steal = around.steal_permille.unwrap_or(0);
    let rows = [
        (
            throttled_ms > 0,
            format!("a limit of the container's CPU time held this process back for {throttled_ms} ms"),
            "docker update --cpus 0 CONTAINER",
        ),
        (
            around.huge_pages.as_deref() == Some("always"),
            "the kernel makes huge pages by itself".to_owned(),
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        (around.swaps == Some(true), "there is swap".to_owned(), "sudo swapoff -a"),
        (
            steal >= STEAL_BAD_PERMILLE,
            format!(
                "the hypervisor took the CPUs for {:.1} % of the time (steal): a machine with CPUs of its own would not",
                steal as f64 / 10.0
            ),
            "vmstat 1",
        ),
    ];
    let bad = rows.into_iter().filter(|(is_so, ..)| *is_so);
    bad.map(|(_, why, command)| Advice { says: format!("{gap}, and {why}"), command }).collect()
}

/// Possible causes of cores that were slow by these words: other uses of the cores of this process.
fn neighbour_advice(slow: &str, around: &Surroundings) -> Vec<Advice> {
    let busy = around.siblings_busy_permille.filter(|busy| *busy >= SIBLINGS_BAD_PERMILLE);
    let busy = busy.map(|busy| Advice {
        says: format!(
            "{slow}, and CPUs that share a core with those of this process were busy for {:.0} % of the time",
            busy as f64 / 10.0
        ),
        command: "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    });
    let card = around.interrupting_card.as_deref().map(|card| Advice {
        says: format!("{slow}, and irqbalance lets {card} interrupt the CPUs of this process"),
        command: "sudo systemctl stop irqbalance",
    });
    busy.into_iter().chain(card).collect()
}

/// The age of a calibration as words: hours below two days, then days.
pub fn age_text(age_s: u64) -> String {
    match age_s / 3600 {
        0 => "less than an hour".to_owned(),
        1 => "an hour".to_owned(),
        hours @ 2..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

/// Whole seconds of a wall clock, the unit of [`Calibration::unix_s`].
pub fn unix_s(wall_ns: Nanos) -> u64 {
    wall_ns / SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_service_times_is_a_difference_for_each_request() {
        // Both lists have the same quantiles, and no request has the same time in both.
        let pairs = [(1_000, 900), (900, 1_000), (5_000, 4_000)];
        let error = ServiceError::of("0", pairs).expect("there are requests");
        assert_eq!((error.requests, error.p50_ns, error.max_ns), (3, 100, 1_000));
        assert_eq!(ServiceError::of("0", []), None);
    }

    #[test]
    fn a_quantile_among_requests_that_were_not_answered_is_no_short_time() {
        let lag = LagFloor::of(100_000, "spin", Quantile::Known(300), Quantile::Above(9_000));
        assert_eq!((lag.p50_ns, lag.p50_above, lag.p99_ns, lag.p99_above), (300, false, 9_000, true));
        assert!(is_prompt(Quantile::Known(99), Quantile::Known(1_000), 0.1));
        assert!(!is_prompt(Quantile::Known(100), Quantile::Known(1_000), 0.1));
        for unknown in [Quantile::Above(1), Quantile::Absent] {
            assert!(!is_prompt(unknown, Quantile::Known(1_000), 0.1));
            assert!(!is_prompt(Quantile::Known(1), unknown, 0.1));
        }
    }

    #[test]
    fn overshoots_are_what_sleeps_lasted_beyond_what_was_asked() {
        let sleeps = Overshoot::of(50, (1..=100).map(|over| 50 + over));
        assert_eq!((sleeps.p50_ns, sleeps.p99_ns, sleeps.max_ns), (50, 99, 100));
        assert_eq!(Overshoot::of(50, [40]).max_ns, 0);
    }

    #[test]
    fn the_noise_of_pairs_that_differ_by_two_percent_is_told() {
        let pairs: Vec<(f64, f64)> =
            (0..10).map(|i| (100.0, if i % 2 == 0 { 102.0 } else { 98.0 })).collect();
        let noise = NoiseFloor::of(&pairs).expect("there are pairs");
        assert!((14_000..16_000).contains(&noise), "{noise}");
        assert_eq!(NoiseFloor::of(&pairs[..2]), None);
        assert_eq!(NoiseFloor::of(&[(0.0, 1.0); 5]), None);
    }

    #[test]
    fn a_calibration_of_another_key_or_a_month_ago_is_none() {
        let own = Calibration { key: "a".to_owned(), unix_s: 1_000, ..Calibration::default() };
        assert_eq!(own.clone().at("a", 1_060).map(|calibrated| calibrated.age_s), Some(60));
        assert_eq!(own.clone().at("b", 1_060), None);
        assert_eq!(own.at("a", 1_001 + AGE_MAX_S), None);
    }

    #[test]
    fn advice_is_given_only_where_a_figure_was_bad() {
        let around = Surroundings {
            governor: Some("powersave".to_owned()),
            idle_exit_us: Some(200),
            huge_pages: Some("always".to_owned()),
            swaps: Some(true),
            throttled_ns: Some(40 * MILLISECOND),
            steal_permille: Some(25),
            siblings_busy_permille: Some(400),
            interrupting_card: Some("eth0".to_owned()),
        };
        let clock =
            ClockFigures { source: Some("hpet".to_owned()), reading_ps: 30_000, ..ClockFigures::default() };
        let mut figures = Calibration { clock, ..Calibration::default() };
        assert_eq!(advice(&figures, &around), []);
        figures.clock.reading_ps = 900_000;
        figures.timer.sleeps = vec![Overshoot { asked_ns: 50_000, p99_ns: 400_000, ..Overshoot::default() }];
        figures.timer.gaps_ns = vec![3 * MILLISECOND];
        let all = advice(&figures, &around);
        assert_eq!(all.len(), 9, "{all:?}");
        for words in [
            "held this process back for 40 ms",
            "2.5 % of the time (steal)",
            "busy for 40 %",
            "lets eth0 interrupt",
        ] {
            assert!(all.iter().any(|advice| advice.says.contains(words)), "{words}: {all:?}");
        }
        // What other programs did is no fault of the settings.
        let mut busy = figures.clone();
        (busy.timer.looked_ns, busy.timer.run_delay_ns) = (SECOND, Some(SECOND * 38 / 100));
        let said = advice(&busy, &around);
        assert!(said.iter().any(|advice| advice.says.contains("for 38 % of the time")), "{said:?}");
        assert!(said.iter().all(|advice| !advice.says.contains("steal")), "{said:?}");
        busy.timer.run_delay_ns = Some(SECOND / 1_000);
        assert_eq!(advice(&busy, &around), all);
        let calm = Surroundings {
            throttled_ns: Some(0),
            steal_permille: Some(0),
            siblings_busy_permille: Some(3),
            interrupting_card: None,
            ..around.clone()
        };
        assert_eq!(advice(&figures, &calm).len(), 5, "what did no harm is not blamed");
        assert!(all[0].says.contains("900 ns") && all[0].says.contains("hpet"), "{all:?}");
        assert!(all.iter().all(|advice| !advice.command.is_empty()));
        assert_eq!(advice(&figures, &Surroundings::default()).len(), 1, "what is not known is not blamed");
    }

    #[test]
    fn an_age_is_told_in_hours_and_days() {
        let texts = [5, 3_600, 3 * 3_600, 49 * 3_600, 29 * 24 * 3_600].map(age_text);
        assert_eq!(texts, ["less than an hour", "an hour", "3 hours", "2 days", "29 days"]);
    }

    #[test]
    fn figures_are_written_and_read_alike() {
        let figures = Calibration {
            lag: vec![LagFloor::of(1_000, "spin", Quantile::Known(1), Quantile::Above(2))],
            noise: Some(NoiseFloor { pairs: 10, ..NoiseFloor::default() }),
            ..Calibration::default()
        };
        let calibrated = Calibrated { age_s: 5, figures };
        let text = serde_json::to_string(&calibrated).expect("JSON");
        assert_eq!(serde_json::from_str::<Calibrated>(&text).expect("the same"), calibrated);
    }
}
