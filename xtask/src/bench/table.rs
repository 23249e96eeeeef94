//! From the figures of all rounds to the table that is printed and the data that is saved.

use serde_json::{Value, json};

use super::contender::Figures;
use super::rows::{Contender, Program, Row};
use crate::spread::Spread;

/// The figures of a row: for each contender those of every round, in turn. Never empty.
pub struct Measured<'a> {
    /// Row that was measured.
    pub row: &'a Row,
    /// The programs that took part, each with the result of every round; ratios are to the first.
    pub lines: Vec<(Contender, Vec<Figures>)>,
}

impl Measured<'_> {
    /// The table in Markdown, below it what the budget says and the notes.
    pub fn markdown(&self) -> String {
        let mut text =
            "| client | CPU us/req (user) | CPU to the first line | requests/s | rate to the first line | \
             server us/req (busy) | lag p99 us | peak RSS |\n\
             |---|---|---|---|---|---|---|---|\n"
                .to_owned();
        for (contender, figures) in &self.lines {
            let median = |of: fn(&Figures) -> f64| Spread::of(figures.iter().map(of)).median;
            let mark = if contender.program.note().is_some() { " (*)" } else { "" };
            text += &format!(
                "| {}{mark} | {:.2} ({:.2}) | {} | {:.0} | {} | {:.2} ({:.0} %) | {} | {:.1} MB |\n",
                contender.name,
                median(Figures::cpu_us),
                median(|figures| figures.user_us),
                ratio(self.to_first(figures, Figures::cpu_us)),
                median(|figures| figures.requests_per_s),
                ratio(self.to_first(figures, |figures| figures.requests_per_s)),
                median(|figures| figures.server_us),
                100.0 * median(Figures::server_busy),
                lag_p99(figures).map_or("-".to_owned(), |lag| format!("{:.1}", lag.median)),
                peak_rss(figures) as f64 / 1e6,
            );
        }
        text + &self.builds() + &self.budget() + &self.notes()
    }

    /// Another build of pummel beside this one, in the same rounds.
    fn builds(&self) -> String {
        let mut text = String::new();
        for ((_, own), (other, figures)) in self.lines.iter().zip(&self.lines[1..]) {
            if other.program == Program::OtherPummel {
                let cpu = fine_ratio(ratios(figures, own, Figures::cpu_us));
                let rate = fine_ratio(ratios(figures, own, |figures| figures.requests_per_s));
                text += &format!("{} to this build: CPU {cpu}, rate {rate}.\n", other.name);
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    /// pummel's medians beside the budget of the row.
    fn budget(&self) -> String {
        let mut text = String::new();
        for (contender, figures) in self.lines.iter().filter(|(it, _)| it.program == Program::Pummel) {
            let budget = &self.row.budget;
            let user_us = Spread::of(figures.iter().map(|figures| figures.user_us)).median;
            let cpu_ratio = self.to_first(figures, Figures::cpu_us).median;
            let rate_ratio = self.to_first(figures, |figures| figures.requests_per_s).median;
            let lag_us = lag_p99(figures).map_or(f64::INFINITY, |lag| lag.median);
            let peak_rss_mb = peak_rss(figures) as f64 / 1e6;
            let most = |name: &str, seen: f64, most: Option<f64>| {
                most.map(|most| (seen <= most, format!("{name} {seen:.3} (at most {most:.3})")))
            };
            let least = |name: &str, seen: f64, least: Option<f64>| {
                least.map(|least| (seen >= least, format!("{name} {seen:.3} (at least {least:.3})")))
            };
            let parts = [
                most("CPU ratio", cpu_ratio, budget.cpu_ratio),
                most("user CPU us", user_us, budget.user_us),
                least("rate ratio", rate_ratio, budget.rate_ratio),
                most("lag p99 us", lag_us, budget.lag_p99_us),
                most("RSS MB", peak_rss_mb, budget.peak_rss_mb),
            ];
            let parts: Vec<(bool, String)> = parts.into_iter().flatten().collect();
            if !parts.is_empty() {
                let kept = if parts.iter().all(|(kept, _)| *kept) { "kept" } else { "MISSED" };
                let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
                text += &format!("Budget {kept} by {}: {}.\n", contender.name, parts.join(", "));
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    fn notes(&self) -> String {
        let mut text = String::new();
        for (contender, _) in &self.lines {
            if let Some(note) = contender.program.note() {
                text += &format!("(*) {}: {note}.\n", contender.name);
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    /// The table as data, with every round.
    pub fn json(&self) -> Value {
        let lines: Vec<Value> =
            self.lines.iter().map(|(contender, figures)| self.line_json(contender, figures)).collect();
        let Row { name, connections, depth, rate, popularity, key_bytes, value_bytes, records, .. } =
            self.row;
        json!({
            "name": name, "protocol": self.row.dialect.name(), "op": self.row.op.name(), "connections": connections,
            "depth": depth, "rate": rate, "popularity": popularity, "key_bytes": key_bytes,
            "value_bytes": value_bytes, "records": records, "clients": lines,
        })
    }

    fn line_json(&self, contender: &Contender, figures: &[Figures]) -> Value {
        let spread = |of: fn(&Figures) -> f64| Spread::of(figures.iter().map(of));
        json!({
            "client": contender.name,
            "arguments": contender.arguments,
            "note": contender.program.note(),
            "cpu_us": spread(Figures::cpu_us),
            "cpu_user_us": spread(|figures| figures.user_us),
            "requests_per_s": spread(|figures| figures.requests_per_s),
            "server_us": spread(|figures| figures.server_us),
            "server_busy": spread(Figures::server_busy),
            "cpu_ratio": self.to_first(figures, Figures::cpu_us),
            "rate_ratio": self.to_first(figures, |figures| figures.requests_per_s),
            "lag_p99_us": lag_p99(figures),
            "peak_rss_bytes": peak_rss(figures),
            "rounds": figures,
        })
    }

    /// Ratios to the first contender in the same round.
    fn to_first(&self, figures: &[Figures], of: fn(&Figures) -> f64) -> Spread {
        ratios(figures, &self.lines[0].1, of)
    }
}

fn ratio(Spread { median, min, max }: Spread) -> String {
    format!("{median:.2} ({min:.2}-{max:.2})")
}

fn fine_ratio(Spread { median, min, max }: Spread) -> String {
    format!("{median:.3} ({min:.3}-{max:.3})")
}

/// Ratios of the figures to others of the same rounds.
fn ratios(figures: &[Figures], others: &[Figures], of: fn(&Figures) -> f64) -> Spread {
    Spread::of(figures.iter().zip(others).map(|(own, other)| of(own) / of(other)))
}

/// `None` unless every round has one.
fn lag_p99(figures: &[Figures]) -> Option<Spread> {
    let lags: Vec<f64> = figures.iter().map(|figures| figures.lag_p99_us).collect::<Option<_>>()?;
    Some(Spread::of(lags))
}

fn peak_rss(figures: &[Figures]) -> u64 {
    figures.iter().map(|figures| figures.peak_rss_bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::{Budget, ROWS};

    fn figures(cpu_us: f64) -> Figures {
        Figures {
            requests_per_s: 1e6 / cpu_us,
            user_us: 0.25,
            system_us: cpu_us - 0.25,
            peak_rss_bytes: 3_000_000,
            connections: None,
            lag_p99_us: None,
            requests: 1e6,
            server_us: 3.0,
        }
    }

    fn measured() -> Measured<'static> {
        let contenders = ROWS[0].contenders;
        let floor = vec![figures(4.0), figures(8.0), figures(4.0)];
        let pummel = vec![figures(4.4), figures(8.0), figures(5.0)];
        let uring = pummel.iter().map(|round| Figures { lag_p99_us: Some(1.5), ..*round }).collect();
        let memcaslap = vec![figures(8.0); 3];
        let lines = contenders.iter().copied().zip([floor, pummel, uring, memcaslap]).collect();
        Measured { row: &ROWS[0], lines }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let measured = measured();
        let ratio = measured.to_first(&measured.lines[1].1, Figures::cpu_us);
        assert_eq!(super::ratio(ratio), "1.10 (1.00-1.25)");
    }

    #[test]
    fn the_table_has_a_line_for_each_client_and_marks_another_workload() {
        let text = measured().markdown();
        assert!(
            text.contains(
                "| floor | 4.00 (0.25) | 1.00 (1.00-1.00) | 250000 | 1.00 (1.00-1.00) | 3.00 (75 %) | - | 3.0 MB |\n"
            ),
            "{text}"
        );
        assert!(text.contains("| memcaslap (*) | 8.00"), "{text}");
        assert!(text.contains("| 1.5 | 3.0 MB |"), "{text}");
        assert!(text.ends_with("includes its start.\n"), "{text}");
    }

    #[test]
    fn a_budget_is_held_against_the_medians() {
        let mut measured = measured();
        let text = measured.markdown();
        let kept = "MISSED by pummel epoll: CPU ratio 1.100 (at most 1.100), user CPU us 0.250 (at most 0.400), \
                    rate ratio 0.909 (at least 0.980), RSS MB 3.000 (at most 32.000).\n";
        assert!(text.contains(kept), "{text}");
        measured.lines[1].1 = vec![figures(4.0), figures(8.0), figures(4.0)];
        assert!(measured.markdown().contains("Budget kept by pummel epoll"));
        let row = Row { budget: Budget { lag_p99_us: Some(20.0), ..ROWS[0].budget }, ..*measured.row };
        // Where no lag is known, none was kept.
        assert!(Measured { row: &row, ..measured }.markdown().contains("MISSED by pummel epoll"));
    }

    #[test]
    fn another_build_is_compared_with_this_one_in_the_same_rounds() {
        let own = vec![figures(4.0), figures(8.0), figures(4.0)];
        let other = vec![figures(4.4), figures(8.0), figures(4.2)];
        let rounds = [own.clone(), own.clone(), other, own.clone(), own.clone(), own];
        let lines = ROWS[0].with_other_build().into_iter().zip(rounds).collect();
        let text = Measured { row: &ROWS[0], lines }.markdown();
        let said = "other build, epoll to this build: CPU 1.050 (1.000-1.100), rate 0.952 (0.909-1.000).\n\
                    other build, uring to this build: CPU 1.000 (1.000-1.000), rate 1.000 (1.000-1.000).\n";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn the_data_holds_every_round() {
        let json = measured().json();
        assert_eq!(json.pointer("/clients/1/rounds/2/cpu_system_us").unwrap(), 4.75);
        assert_eq!(json.pointer("/clients/1/cpu_ratio/max").unwrap(), 1.25);
        assert_eq!(json.pointer("/depth").unwrap(), 1);
    }
}
