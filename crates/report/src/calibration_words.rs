//! A calibration as text for people: its figures with advice, and its line in the report of a run.

use pummel_logic::time::Nanos;
use pummel_measure::calibration::{Advice, Calibrated, Calibration, CardStamps, LagFloor, age_text};
use pummel_measure::summary::time_text;
use pummel_measure::words::{grouped, percent};

/// The figures in lines, and the advice behind them.
pub fn text(figures: &Calibration, advice: &[Advice]) -> String {
    let Calibration { clock, timer, stamps, backend, .. } = figures;
    let mut text = String::new();
    let mut field = |name: &str, words: &str| text += &format!("{name:<15}{words}\n");
    let source = clock.source.as_deref().unwrap_or("not known");
    field(
        "Clock",
        &format!(
            "source {source}, {:.1} ns for each reading, smallest step {} ns, {} steps back",
            clock.reading_ps as f64 / 1e3,
            clock.step_ns,
            clock.backward
        ),
    );
    for sleep in &timer.sleeps {
        let [p50, p99, max] = [sleep.p50_ns, sleep.p99_ns, sleep.max_ns].map(time_text);
        field(
            &format!("Sleep {}", time_text(sleep.asked_ns)),
            &format!("too long by {p50} at p50, {p99} at p99, {max} at most"),
        );
    }
    let gaps: Vec<String> = timer.gaps_ns.iter().map(|gap| time_text(*gap)).collect();
    let waited = timer.run_delay_share().filter(|share| *share >= 0.0005);
    let waited =
        waited.map_or_else(String::new, |share| format!("; others had its CPU for {}", percent(share)));
    field(
        "Stand-stills",
        &format!(
            "the longest of a spinning thread in {}: {}{waited}",
            time_text(timer.looked_ns),
            gaps.join(", ")
        ),
    );
    field(
        "Stamps",
        &format!(
            "{} replies: {} without a receive stamp, {} with a late one, {} with an impossible one; {} requests: {} without a \
             transmit stamp",
            grouped(stamps.replies),
            grouped(stamps.missing),
            grouped(stamps.late),
            grouped(stamps.rejected),
            grouped(stamps.transmit_asked),
            grouped(stamps.transmit_missing)
        ),
    );
    for CardStamps { name, stamps_packets } in &stamps.cards {
        let can = match stamps_packets {
            Some(true) => "stamps packets by its own clock (--stamps nic)",
            Some(false) => "does not stamp packets",
            None => "does not say whether it can stamp packets",
        };
        field("Network card", &format!("{name} {can}"));
    }
    for error in &figures.service_error {
        let [p50, p99, max] = [error.p50_ns, error.p99_ns, error.max_ns].map(signed_text);
        field(
            "Service error",
            &format!("{p50} at p50, {p99} at p99, {max} at most, {}", held_words(&error.held)),
        );
    }
    for LagFloor { rate, wait, p50_ns, p99_ns, p50_above, p99_above } in &figures.lag {
        let text = |ns: Nanos, above: bool| format!("{}{}", if above { "> " } else { "" }, time_text(ns));
        let (p50, p99) = (text(*p50_ns, *p50_above), text(*p99_ns, *p99_above));
        field("Lag", &format!("{p50} at p50, {p99} at p99, at {}/s, --wait {wait}", grouped(*rate)));
    }
    field(
        "Rate of a core",
        &match figures.rate_per_core {
            Some(rate) => {
                format!("up to {}/s with lag below a tenth of the service time ({backend})", grouped(rate))
            }
            None => "not known: at every rate the lag was more than a tenth of the service time of the built-in server"
                .to_owned(),
        },
    );
    if let Some(noise) = &figures.noise {
        let [p50, p99, rate] = [noise.p50_ppm, noise.p99_ppm, noise.rate_ppm].map(|ppm| ppm as f64 / 1e4);
        field(
            "Noise floor",
            &format!(
                "runs of one thing differ by {p50:.1} % at p50, {p99:.1} % at p99, {rate:.1} % in rate (standard deviations, {} pairs)",
                noise.pairs
            ),
        );
    }
    if figures.noise.is_none() && !figures.quick {
        field("Noise floor", "not known: in a run a quantile fell among requests that were not answered");
    }
    for Advice { says, command } in advice {
        text += &format!("\nHint: {says}. A command for it:\n  {command}\n");
    }
    text
}

/// The replies that a service error is about, by how long the server held them.
fn held_words(held: &str) -> String {
    match held {
        "0" => "of replies that the server sent at once".to_owned(),
        held => format!("of replies that the server held for {held}"),
    }
}

/// What the report of a run says of the instrument.
pub fn line(calibrated: &Calibrated) -> String {
    let Calibrated { age_s, figures } = calibrated;
    let error = figures
        .service_error_ns()
        .map(|error_ns| format!("{} in the median service time", signed_text(error_ns)));
    let rate = figures.rate_per_core.map(|rate| format!("a core is to be trusted up to {}/s", grouped(rate)));
    let known: Vec<String> = [error, rate].into_iter().flatten().collect();
    let place = if figures.busy_share().is_some() { " on a busy machine" } else { "" };
    format!("{} (calibrated {} ago{place})", known.join("; "), age_text(*age_s))
}

/// A time with its sign: `+1.90 us`.
fn signed_text(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", time_text(ns.unsigned_abs() as Nanos))
}

#[cfg(test)]
mod tests {
    use pummel_measure::calibration::{NoiseFloor, ServiceError, StampFigures};

    use super::*;

    fn figures() -> Calibration {
        Calibration {
            backend: "epoll".to_owned(),
            service_error: vec![ServiceError {
                held: "0".to_owned(),
                requests: 2_000,
                p50_ns: 1_900,
                p99_ns: 4_000,
                max_ns: -5,
            }],
            stamps: StampFigures {
                replies: 10_000,
                late: 3,
                transmit_asked: 200,
                transmit_missing: 1,
                cards: vec![CardStamps { name: "eth0".to_owned(), stamps_packets: Some(false) }],
                ..StampFigures::default()
            },
            lag: vec![LagFloor {
                rate: 20_000,
                wait: "spin".to_owned(),
                p50_ns: 900,
                p99_ns: 2_100,
                p99_above: true,
                ..LagFloor::default()
            }],
            rate_per_core: Some(180_000),
            noise: Some(NoiseFloor { pairs: 10, p50_ppm: 8_000, p99_ppm: 31_000, rate_ppm: 12_000 }),
            ..Calibration::default()
        }
    }

    #[test]
    fn the_line_of_a_report_says_what_the_instrument_adds_and_how_old_that_is() {
        let calibrated = Calibrated { age_s: 3 * 24 * 3600, figures: figures() };
        assert_eq!(
            line(&calibrated),
            "+1.90 us in the median service time; a core is to be trusted up to 180,000/s (calibrated 3 days ago)"
        );
    }

    #[test]
    fn the_figures_are_in_lines_and_advice_has_its_command() {
        let advice = [Advice { says: "the clock is slow".to_owned(), command: "mend it" }];
        let words = text(&figures(), &advice);
        for part in [
            "Service error  +1.90 us at p50, +4.00 us at p99, -5 ns at most, of replies that the server sent at once",
            "Stamps         10,000 replies: 0 without a receive stamp, 3 with a late one, 0 with an impossible one; 200 \
             requests: 1 without a transmit stamp\n",
            "Network card   eth0 does not stamp packets\n",
            "Lag            900 ns at p50, > 2.10 us at p99, at 20,000/s, --wait spin",
            "differ by 0.8 % at p50, 3.1 % at p99, 1.2 % in rate",
            "Hint: the clock is slow. A command for it:\n  mend it\n",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
