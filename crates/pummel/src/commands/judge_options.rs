//! Options by which two sides are judged: those of `ab` and `compare`.

use clap::Args;
use pummel_fronts::values::ValueError;
use pummel_report::comparison::{Claim, ClaimKind, Question};
use pummel_report::run_figures::Metric;

/// How two sides are judged.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Judgement")]
pub struct JudgeArgs {
    /// Figures to judge: p50, p90, p99, p99.9, rate, client-cpu, server-cpu
    ///
    /// p50 to p99.9 are of the response time, client-cpu and server-cpu the CPU time per request; the others are only shown. Default: those of --worse and --within, else p99 in an open loop and rate in a closed loop
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', value_parser = metric)]
    pub metric: Vec<Metric>,
    /// Exit with status 3 when B is worse by more than this, such as p99:5%
    ///
    /// B has to be shown to be worse than A. The exit status is 1 when that cannot be judged; may be repeated
    #[arg(long, value_name = "METRIC:PERCENT", value_parser = worse, allow_hyphen_values = true)]
    pub worse: Vec<Claim>,
    /// Exit with status 3 unless B is better, or worse by less, such as p99:5%
    ///
    /// B has to be shown to be better than A, or worse by less than this. The exit status is 1 when that cannot be judged; may be
    /// repeated
    #[arg(long, value_name = "METRIC:PERCENT", value_parser = within, allow_hyphen_values = true)]
    pub within: Vec<Claim>,
    /// Judge runs that were not steady as if they had been. Without it they are judged where the interval of the change decides
    #[arg(long)]
    pub accept_unsteady: bool,
}

impl JudgeArgs {
    /// What is asked of the comparison.
    pub fn question(&self, accept_order: bool) -> Question {
        Question {
            metrics: self.metric.clone(),
            claims: self.worse.iter().chain(&self.within).copied().collect(),
            accept_order,
            accept_unsteady: self.accept_unsteady,
            ..Question::default()
        }
    }
}

fn metric(text: &str) -> Result<Metric, ValueError> {
    Metric::from_name(text).ok_or_else(|| ValueError(format!("expected {}", Metric::names())))
}

fn worse(text: &str) -> Result<Claim, ValueError> {
    claim(text, ClaimKind::Worse)
}

fn within(text: &str) -> Result<Claim, ValueError> {
    claim(text, ClaimKind::Within)
}

fn claim(text: &str, kind: ClaimKind) -> Result<Claim, ValueError> {
    let refused = || {
        let names = Metric::names();
        ValueError(format!("expected a metric and a change in percent, such as p99:2%; metrics are {names}"))
    };
    let (name, change) = text.split_once(':').ok_or_else(refused)?;
    let metric = Metric::from_name(name).ok_or_else(refused)?;
    let change = change.strip_suffix('%').unwrap_or(change);
    let is_plain = !change.is_empty() && change.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = change.parse().ok().filter(|_| is_plain).ok_or_else(refused)?;
    if !(0.0..=10_000.0).contains(&percent) {
        return Err(refused());
    }
    Ok(Claim { metric, limit: percent / 100.0, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_metric_and_a_share() {
        let read = worse("p99.9:2.5%").expect("a claim");
        assert_eq!((read.metric, read.limit, read.kind), (Metric::P999, 0.025, ClaimKind::Worse));
        assert_eq!(within("rate:0").map(|claim| claim.limit), Ok(0.0));
        for text in [
            "",
            "p99",
            "p98:2%",
            "p99:",
            "p99:%",
            "p99:-2%",
            "p99:2ms",
            "p99:nan",
            "p99:inf%",
            "p99:1e9",
            "p99:20000%",
        ] {
            assert!(worse(text).is_err(), "{text}");
        }
    }
}
