//! From the figures of all rounds to the table that is printed and the data that is saved.

use serde_json::{Value, json};

use super::contender::Figures;
use super::rows::{Contender, Row};

/// The figures of a row: for each contender those of every round, in turn. Never empty.
pub struct Measured<'a> {
    /// The row.
    pub row: &'a Row,
    /// Who took part, and what came of each round; ratios are to the first.
    pub lines: Vec<(&'a Contender, Vec<Figures>)>,
}

/// Middle, least and greatest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// Of at least one number.
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.collect();
        assert!(!values.is_empty(), "every contender runs in every round");
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Spread { median: (low + high) / 2.0, min: values[0], max: values[values.len() - 1] }
    }

    fn ratio(&self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.min, self.max)
    }

    fn json(&self) -> Value {
        json!({"median": self.median, "min": self.min, "max": self.max})
    }
}

impl Measured<'_> {
    /// The table in Markdown, its notes below it.
    pub fn markdown(&self) -> String {
        let mut text = "| client | CPU us/req (user) | CPU to the first line | requests/s | rate to the first line | peak RSS |\n\
                        |---|---|---|---|---|---|\n"
            .to_owned();
        let mut notes = String::new();
        for (contender, figures) in &self.lines {
            let median = |of: fn(&Figures) -> f64| Spread::of(figures.iter().map(of)).median;
            let mark = if contender.program.note().is_some() { " (*)" } else { "" };
            text += &format!(
                "| {}{mark} | {:.2} ({:.2}) | {} | {:.0} | {} | {:.1} MB |\n",
                contender.name,
                median(Figures::cpu_us),
                median(|figures| figures.user_us),
                self.to_first(figures, Figures::cpu_us).ratio(),
                median(|figures| figures.requests_per_s),
                self.to_first(figures, |figures| figures.requests_per_s).ratio(),
                peak_rss(figures) as f64 / 1e6,
            );
            if let Some(note) = contender.program.note() {
                notes += &format!("(*) {}: {note}.\n", contender.name);
            }
        }
        text + &notes
    }

    /// The same as data, with every round.
    pub fn json(&self) -> Value {
        let lines: Vec<Value> =
            self.lines.iter().map(|(contender, figures)| self.line_json(contender, figures)).collect();
        let Row { name, connections, depth, rate, key_bytes, value_bytes, records, .. } = self.row;
        json!({
            "name": name, "connections": connections, "depth": depth, "rate": rate, "key_bytes": key_bytes,
            "value_bytes": value_bytes, "records": records, "clients": lines,
        })
    }

    fn line_json(&self, contender: &Contender, figures: &[Figures]) -> Value {
        let spread = |of: fn(&Figures) -> f64| Spread::of(figures.iter().map(of)).json();
        let rounds = figures.iter().map(|round| {
            json!({
                "requests_per_s": round.requests_per_s, "cpu_user_us": round.user_us,
                "cpu_system_us": round.system_us, "peak_rss_bytes": round.peak_rss_bytes,
            })
        });
        json!({
            "client": contender.name,
            "arguments": contender.arguments,
            "note": contender.program.note(),
            "cpu_us": spread(Figures::cpu_us),
            "cpu_user_us": spread(|figures| figures.user_us),
            "requests_per_s": spread(|figures| figures.requests_per_s),
            "cpu_ratio": self.to_first(figures, Figures::cpu_us).json(),
            "rate_ratio": self.to_first(figures, |figures| figures.requests_per_s).json(),
            "peak_rss_bytes": peak_rss(figures),
            "rounds": rounds.collect::<Vec<Value>>(),
        })
    }

    /// Ratios to the first contender in the same round.
    fn to_first(&self, figures: &[Figures], of: fn(&Figures) -> f64) -> Spread {
        let first = &self.lines[0].1;
        Spread::of(figures.iter().zip(first).map(|(own, first)| of(own) / of(first)))
    }
}

fn peak_rss(figures: &[Figures]) -> u64 {
    figures.iter().map(|figures| figures.peak_rss_bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::ROWS;

    fn figures(cpu_us: f64) -> Figures {
        Figures {
            requests_per_s: 1e6 / cpu_us,
            user_us: 0.25,
            system_us: cpu_us - 0.25,
            peak_rss_bytes: 3_000_000,
        }
    }

    fn measured() -> Measured<'static> {
        let contenders = ROWS[0].contenders;
        let floor = vec![figures(4.0), figures(8.0), figures(4.0)];
        let pummel = vec![figures(4.4), figures(8.0), figures(5.0)];
        let memcaslap = vec![figures(8.0); 3];
        let lines = contenders.iter().zip([floor, pummel, memcaslap]).collect();
        Measured { row: &ROWS[0], lines }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let measured = measured();
        let ratio = measured.to_first(&measured.lines[1].1, Figures::cpu_us);
        assert_eq!(ratio.ratio(), "1.10 (1.00-1.25)");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0 });
    }

    #[test]
    fn the_table_has_a_line_for_each_client_and_marks_another_workload() {
        let text = measured().markdown();
        assert!(
            text.contains(
                "| floor | 4.00 (0.25) | 1.00 (1.00-1.00) | 250000 | 1.00 (1.00-1.00) | 3.0 MB |\n"
            ),
            "{text}"
        );
        assert!(text.contains("| memcaslap (*) | 8.00"), "{text}");
        assert!(text.ends_with("includes its start.\n"), "{text}");
    }

    #[test]
    fn the_data_holds_every_round() {
        let json = measured().json();
        assert_eq!(json.pointer("/clients/1/rounds/2/cpu_system_us").unwrap(), 4.75);
        assert_eq!(json.pointer("/clients/1/cpu_ratio/max").unwrap(), 1.25);
        assert_eq!(json.pointer("/depth").unwrap(), 1);
    }
}
