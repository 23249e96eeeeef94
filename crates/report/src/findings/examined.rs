//! The runs that are examined: whole results of runs, and what results of several keep of each.

use pummel_logic::plan::{Goal, Plan};
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::uncertainty::quantile_name;

use super::names::stem_of;
use crate::comparison::SideSource;
use crate::document::{CurveDocument, CurveRun, Document, Figure, OtherOutcomes, reads_records};
use crate::run_figures::{Lookups, Metric, RunFigures};

/// One run with its name. Runs in a row with one name are those of one result.
#[derive(Clone, Debug)]
pub struct Examined<'a> {
    pub(super) name: String,
    pub(super) plan: Option<&'a Plan>,
    pub(super) of: Of<'a>,
    pub(super) aims: Vec<Aim>,
    ended: Option<(Status, Option<&'a str>)>,
    /// The name of a run of a suite, in which each run has another one.
    own_name: Option<String>,
}

/// The part of a result that a run is known by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of<'a> {
    /// The whole result.
    Run(&'a Document),
    /// The figures of one of several runs.
    Figures(&'a SideSource, &'a RunFigures),
    /// One run of a search, a scan or a curve.
    Series(&'a CurveRun),
    /// No run at all.
    Nothing,
}

/// A quantile that a goal is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) quantile: f64,
    pub(super) limit_us: f64,
    pub(super) reached: Figure,
    /// Ends of the interval of the quantile.
    pub(super) ends: Option<[Option<f64>; 2]>,
}

impl<'a> Examined<'a> {
    /// A run of which the whole result is known.
    pub fn of_run(name: &str, document: &'a Document) -> Examined<'a> {
        let run = Examined::new(name, Some(&document.plan), Of::Run(document));
        let told: Vec<(f64, f64)> = match document.goals.as_slice() {
            [] => document.plan.goals.iter().map(limit_of).collect(),
            goals => goals.iter().map(|goal| (goal.quantile, goal.limit_us)).collect(),
        };
        told.into_iter().fold(run, |run, (quantile, limit_us)| run.expecting(quantile, limit_us))
    }

    /// A run of which a result of several keeps figures; the runs of one result are told apart by their order.
    pub fn of_figures(
        name: &str,
        plan: &'a Plan,
        source: &'a SideSource,
        run: &'a RunFigures,
    ) -> Examined<'a> {
        let examined = Examined::new(name, Some(plan), Of::Figures(source, run));
        plan.goals
            .iter()
            .map(limit_of)
            .fold(examined, |run, (quantile, limit)| run.expecting(quantile, limit))
    }

    /// A run of a search, a scan or a curve. Its goals decide the next rate, and are judged by the whole series.
    pub fn of_series_run(name: &str, series: &'a CurveDocument, run: &'a CurveRun) -> Examined<'a> {
        Examined::new(name, series.plan.as_ref(), Of::Series(run))
    }

    /// A result without a run.
    pub fn of_nothing(name: &str, plan: Option<&'a Plan>) -> Examined<'a> {
        Examined::new(name, plan, Of::Nothing)
    }

    /// The run as one of a result of several, which ended so.
    #[must_use]
    pub fn within(self, status: Status, reason: Option<&'a str>) -> Examined<'a> {
        Examined { ended: Some((status, reason)), ..self }
    }

    /// The run with the expectation that a quantile of the response, from 0 to 1, is at most this, beside its goals.
    #[must_use]
    pub fn expecting(mut self, quantile: f64, limit_us: f64) -> Examined<'a> {
        let is_known = self.aims.iter().any(|aim| aim.quantile == quantile && aim.limit_us == limit_us);
        if quantile > 0.0 && quantile < 1.0 && limit_us.is_finite() && !is_known {
            let aim = self.aim(quantile, limit_us);
            self.aims.push(aim);
        }
        self
    }

    /// The run as one of a suite, whose names tell what differs.
    #[must_use]
    pub fn of_suite(self) -> Examined<'a> {
        Examined { own_name: Some(self.name.clone()), ..self }
    }

    /// The name by which runs of several results are told to be the same: that of a run of a suite, or else the name of the result
    /// without its number.
    pub(super) fn stem(&self) -> &str {
        match &self.own_name {
            Some(own) => own,
            None => stem_of(&self.name),
        }
    }

    /// The run with the name of the result that it is in before its own.
    #[must_use]
    pub fn named_within(self, result: &str) -> Examined<'a> {
        Examined { name: format!("{result}: {}", self.name), ..self }
    }

    fn new(name: &str, plan: Option<&'a Plan>, of: Of<'a>) -> Examined<'a> {
        Examined { name: name.to_owned(), plan, of, aims: Vec::new(), ended: None, own_name: None }
    }

    fn aim(&self, quantile: f64, limit_us: f64) -> Aim {
        let name = quantile_name(quantile);
        let (reached, ends) = match self.of {
            Of::Run(document) => {
                let own = document.goals.iter().find(|goal| goal.quantile == quantile);
                let response = document.totals.times.response_us.as_ref();
                let reached = own.map(|goal| goal.reached()).filter(|figure| *figure != Figure::Absent);
                let reached = reached.or_else(|| response.map(|times| times.at(&name)));
                let ends = response.and_then(|times| times.ci.as_ref()?.get(&name).copied());
                (reached.unwrap_or(Figure::Absent), ends)
            }
            Of::Figures(_, run) => {
                let metric = Metric::from_name(&name);
                let above = metric.and_then(|metric| run.bound(metric));
                let known = metric.and_then(|metric| run.figure(metric)).map(|figure| figure.value);
                let reached = known.map(Figure::Known).or(above.map(Figure::Above));
                let ends = run.response_us.ci.as_ref().and_then(|ends| ends.get(&name).copied());
                (reached.unwrap_or(Figure::Absent), ends)
            }
            Of::Series(_) | Of::Nothing => (Figure::Absent, None),
        };
        Aim { quantile, limit_us, reached, ends }
    }

    pub(super) fn document(&self) -> Option<&'a Document> {
        match self.of {
            Of::Run(document) => Some(document),
            _ => None,
        }
    }

    /// The limit in a word; `None` where it is not known.
    pub(super) fn limit(&self) -> Option<&'a str> {
        match self.of {
            Of::Run(document) => document.limit(),
            Of::Figures(_, run) => Some(run.limit.as_str()),
            Of::Series(run) => Some(run.limit.as_str()),
            Of::Nothing => None,
        }
    }

    /// The sentence of the result on the limit.
    pub(super) fn limit_line(&self) -> Option<String> {
        match self.of {
            Of::Run(document) => document.limit_line(),
            Of::Series(run) => Some(run.says.clone()).filter(|says| !says.is_empty()),
            Of::Figures(..) | Of::Nothing => None,
        }
    }

    /// Whether the run was steady; `None` where that is not known.
    pub(super) fn steady(&self) -> Option<bool> {
        match self.of {
            Of::Run(document) => document.steady,
            Of::Figures(_, run) => run.steady,
            Of::Series(run) => run.steady,
            Of::Nothing => None,
        }
    }

    /// How the requests were answered. A series asks for more than is answered on purpose.
    pub(super) fn outcome(&self) -> RunOutcome {
        match self.of {
            Of::Run(document) => document.outcome,
            Of::Figures(_, run) => run.outcome,
            Of::Series(run) if run.outcome == RunOutcome::Failed => RunOutcome::Failed,
            Of::Series(_) | Of::Nothing => RunOutcome::Ok,
        }
    }

    /// How the run ended, and the series that it is of, with the reason.
    pub(super) fn ended(&self) -> (Status, Option<&'a str>) {
        let (status, reason) = match self.of {
            Of::Run(document) => (document.status, document.reason.as_deref()),
            Of::Figures(_, run) => (run.status, run.reason.as_deref()),
            Of::Series(_) | Of::Nothing => (Status::Complete, None),
        };
        match self.ended {
            Some(of_all) if status == Status::Complete => of_all,
            _ => (status, reason),
        }
    }

    /// Requests that were due.
    pub(super) fn requests(&self) -> u64 {
        match self.of {
            Of::Run(document) => document.totals.requests,
            Of::Figures(_, run) => run.requests,
            Of::Series(run) => run.requests,
            Of::Nothing => 0,
        }
    }

    /// Keys of records that reads found and missed, without those of commands of the user; `None` where they are not known.
    pub(super) fn lookups(&self) -> Option<Lookups> {
        match self.of {
            Of::Run(document) => {
                let read = document.ops.iter().filter(|(name, _)| reads_records(name));
                let (hits, misses) = read.fold((0, 0), |(hits, misses): (u64, u64), (_, op)| {
                    (hits.saturating_add(op.hits), misses.saturating_add(op.misses))
                });
                Some(Lookups { hits, misses })
            }
            Of::Figures(_, run) => run.lookups,
            Of::Series(_) | Of::Nothing => None,
        }
    }

    /// The requests that may store or find nothing.
    pub(super) fn other_outcomes(&self) -> Vec<OtherOutcomes> {
        match self.of {
            Of::Run(document) => document.other_outcomes(),
            Of::Figures(_, run) => run.other_outcomes.clone(),
            Of::Series(run) => run.other_outcomes.clone(),
            Of::Nothing => Vec::new(),
        }
    }

    /// Values that were wrong or too old.
    pub(super) fn wrong_values(&self) -> u64 {
        let count = match self.of {
            Of::Run(document) => Some(document.verify.failed.saturating_add(document.verify.stale)),
            Of::Figures(_, run) => run.wrong_values,
            Of::Series(run) => run.wrong_values,
            Of::Nothing => None,
        };
        count.unwrap_or(0)
    }

    /// Failed requests; `None` where they are not known, or where some fail on purpose.
    pub(super) fn errors(&self) -> Option<u64> {
        match self.of {
            Of::Run(document) => Some(document.totals.errors),
            Of::Figures(_, run) => run.errors,
            Of::Series(_) | Of::Nothing => None,
        }
    }

    /// The program, the machines and the servers of the run.
    pub(super) fn source(&self) -> SideSource {
        match self.of {
            Of::Run(document) => SideSource::of(document),
            Of::Figures(source, _) => source.clone(),
            Of::Series(_) | Of::Nothing => SideSource::default(),
        }
    }
}

/// Quantile and limit of a goal, in microseconds.
fn limit_of(goal: &Goal) -> (f64, f64) {
    (goal.quantile, goal.limit_ns as f64 / 1e3)
}
