//! The verdict on a run so far, in the words of its report: whether it works, how far its times may be believed, and what is at its
//! limit.

use pummel_logic::protocol::Fault;
use pummel_measure::limit::FULL_SHARE;
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;
use pummel_measure::words::counted;
use pummel_report::snapshot::backlog::{BacklogPoint, Rates, Trend};
use pummel_report::snapshot::doubt::Doubt;
use pummel_report::snapshot::{Snapshot, SoFar};
use pummel_report::view::cells;
use pummel_report::view::run::Word;

use crate::live::canvas::{Canvas, Ink};
use crate::live::words::{behind_words, clock_text, shown, time_words};

/// The words of the report for times that may not be believed.
const UNRELIABLE: &str = "NOT RELIABLE";

/// Blanks between the parts of a verdict.
const GAP: usize = 3;

/// A part of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The words.
    pub words: String,
    /// Whether a reader has to look there.
    pub is_abnormal: bool,
}

impl Part {
    fn abnormal(words: String) -> Part {
        Part { words, is_abnormal: true }
    }

    fn plain(words: impl Into<String>) -> Part {
        Part { words: words.into(), is_abnormal: false }
    }
}

/// The verdict on the run so far, the most important part first; empty before the first interval.
pub fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let Some(so_far) = &snapshot.so_far else { return Vec::new() };
    let mut parts = Vec::new();
    if so_far.is_failing() {
        parts.push(failing(so_far));
    } else {
        let (queue, doubt) = (queue(snapshot), present_doubt(snapshot));
        let is_well = queue.is_none() && doubt.is_none();
        let limit = of_limit(snapshot, so_far).filter(|_| queue.is_none());
        let believed = believed(snapshot, so_far).filter(|_| is_well);
        parts.extend([queue, missed_goal(snapshot, so_far), doubt, believed, limit].into_iter().flatten());
    }
    parts.extend(thread(snapshot));
    parts
}

/// What is abnormal in the run so far and stands in no other line of a block; `None` where nothing is.
pub fn abnormal(snapshot: &Snapshot) -> Option<String> {
    let so_far = snapshot.so_far.as_ref()?;
    let first = if so_far.is_failing() {
        failing(so_far)
    } else if let Some(Rates { answered, .. }) = snapshot.overload() {
        // What was asked and the backlog stand in the line of the rate.
        let answered = cells::rate(answered);
        Part::abnormal(format!("{} the server answers {answered}/s", Word::Overloaded.text()))
    } else {
        let silent = queue(snapshot).filter(|_| snapshot.backlog.silent_ns().is_some());
        silent.or_else(|| missed_goal(snapshot, so_far)).or_else(|| present_doubt(snapshot))?
    };
    let thread = thread(snapshot);
    let words: Vec<String> = [Some(first), thread].into_iter().flatten().map(|part| part.words).collect();
    Some(words.join(&" ".repeat(GAP)))
}

/// Draws the verdict into a line. Parts that have no room are left out.
pub fn draw(canvas: &mut Canvas, snapshot: &Snapshot, y: usize) {
    let width = canvas.width();
    let mut x = 0;
    for (place, part) in parts(snapshot).into_iter().enumerate() {
        let begin = if place == 0 { 0 } else { x + GAP };
        if place > 0 && begin + part.words.chars().count() > width {
            continue;
        }
        let ink = if part.is_abnormal { Ink::Wait } else { Ink::Plain };
        x = canvas.put(begin, y, &shown(&part.words, width), ink);
    }
}

/// A run of errors, or of requests without a reply.
fn failing(so_far: &SoFar) -> Part {
    let counts = &so_far.counts;
    let (failed, ended) = (counts.failed(), counts.ended());
    let late = counts.errors(Fault::Timeout) + counts.errors(Fault::Abandoned);
    let what = if 2 * late > failed { "got no reply in time" } else { "were errors" };
    let share = cells::share(failed, ended);
    Part::abnormal(format!("{} so far: {share} of {} {what}", Word::Failed.text(), counted(ended, "request")))
}

/// The present queue: an overload, a server that answers nothing, or a backlog of which neither is known.
fn queue(snapshot: &Snapshot) -> Option<Part> {
    let now = snapshot.backlog.queue()?;
    let going = match snapshot.backlog.trend() {
        Some(Trend::Growing) => ", growing",
        Some(Trend::Shrinking) => ", shrinking",
        Some(Trend::Steady) | None => "",
    };
    let behind = format!("behind {}{going}", behind_words(now.behind, asked_at(snapshot, now)));
    Some(Part::abnormal(match (snapshot.overload(), snapshot.backlog.silent_ns()) {
        (Some(Rates { asked, answered }), _) => {
            let [asked, answered] = [asked, answered].map(cells::rate);
            format!("{}  {answered}/s answered of {asked} asked; {behind}", Word::Overloaded.text())
        }
        (None, Some(silent_ns)) => {
            format!("the server has answered nothing for {}; {behind}", time_words(silent_ns))
        }
        (None, None) => behind,
    }))
}

/// Requests per second that were asked for at the end of an interval.
pub fn asked_at(snapshot: &Snapshot, point: BacklogPoint) -> Option<f64> {
    snapshot.asked_rate(snapshot.started + point.end_ns.saturating_sub(1))
}

/// A goal that is missed so far.
fn missed_goal(snapshot: &Snapshot, so_far: &SoFar) -> Option<Part> {
    let goals = snapshot.plan.iter().flat_map(|plan| &plan.goals);
    let mut missed = goals.filter_map(|goal| {
        let (name, place) = QUANTILES
            .iter()
            .enumerate()
            .find(|(_, (_, quantile))| (quantile - goal.quantile).abs() < 1e-9)
            .map(|(place, (name, _))| (*name, place))?;
        let reached_ns = so_far.figures[Span::Response as usize].quantiles[place].known()?;
        let words = || {
            let (reached, limit) = (time_words(reached_ns), time_words(goal.limit_ns));
            format!("{} so far: {name} {reached} > {limit}", Word::GoalMissed.text())
        };
        (reached_ns > goal.limit_ns).then(words)
    });
    missed.next().map(Part::abnormal)
}

/// The figure that is not reliable, since when, and why if that is known; `None` where there is none, or not any more.
fn present_doubt(snapshot: &Snapshot) -> Option<Part> {
    let doubt = snapshot.doubt.filter(|doubt| doubt.until_ns.is_none())?;
    let since = clock_text(doubt.since_ns);
    let why = |share: f64| format!(" (pummel's thread was {:.0} % busy)", share * 100.0);
    let why = doubt.busy.map(why).unwrap_or_default();
    Some(Part::abnormal(format!("{} {UNRELIABLE} since {since}{why}", figure_words(&doubt))))
}

fn figure_words(doubt: &Doubt) -> &'static str {
    if doubt.figure == "mean" { "the mean" } else { doubt.figure }
}

/// How far the times so far may be believed, and what was doubtful before; `None` where they are doubtful.
fn believed(snapshot: &Snapshot, so_far: &SoFar) -> Option<Part> {
    if so_far.counts.completed == 0 {
        return Some(Part::plain("nothing was answered so far"));
    }
    if !so_far.is_trusted {
        return None;
    }
    let words = if so_far.has_figures_of_lag { "reliable up to p99 so far" } else { "reliable so far" };
    let past = snapshot.doubt.and_then(|doubt| {
        let (since, until) = (clock_text(doubt.since_ns), clock_text(doubt.until_ns?));
        let figure = figure_words(&doubt);
        Some(format!("{words}, but {figure} was {UNRELIABLE} from {since} to {until}"))
    });
    Some(match past {
        Some(words) => Part::abnormal(words),
        None => Part::plain(words),
    })
}

/// What a run that keeps up is limited by, as far as it is known while it goes on: a closed loop always has a limit, and its report
/// names it.
fn of_limit(snapshot: &Snapshot, so_far: &SoFar) -> Option<Part> {
    if let Some(most) = snapshot.backlog.most() {
        let behind = behind_words(most.behind, asked_at(snapshot, most));
        return Some(Part::plain(format!("was behind {behind} at {}", clock_text(most.end_ns))));
    }
    let is_busy = snapshot.busy_share().is_some_and(|share| share > FULL_SHARE);
    let has_backlog = snapshot.backlog.now().is_some();
    let is_free =
        has_backlog && !so_far.is_closed && !so_far.has_waits && !is_busy && so_far.counts.completed > 0;
    is_free.then(|| Part::plain("nothing at its limit"))
}

/// How busy the threads of the generator were in the last interval.
fn thread(snapshot: &Snapshot) -> Option<Part> {
    let share = snapshot.busy_share()?;
    let threads = if snapshot.workers_busy_ns.len() == 1 { "thread" } else { "threads" };
    let words = format!("pummel's {threads} {:.0} % busy", share * 100.0);
    Some(Part { words, is_abnormal: share > FULL_SHARE })
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Goal;
    use pummel_logic::time::{MICROSECOND, SECOND};

    use super::*;
    use crate::live::example;

    fn line(snapshot: &Snapshot) -> String {
        parts(snapshot).into_iter().map(|part| part.words).collect::<Vec<_>>().join("   ")
    }

    #[test]
    fn a_good_run_is_reliable_and_nothing_is_at_its_limit() {
        let (snapshot, _) = example::measuring();
        assert_eq!(line(&snapshot), "reliable so far   nothing at its limit   pummel's thread 12 % busy");
        assert_eq!(abnormal(&snapshot), None);
        assert_eq!(line(&Snapshot::default()), "", "nothing is known yet");
    }

    #[test]
    fn an_overload_is_said_from_its_second_interval_to_the_end_and_nothing_denies_it() {
        for seconds in 2..=20 {
            let (snapshot, _) = example::overloaded(seconds);
            let said = line(&snapshot);
            let (thousands, behind) = (seconds * 1_000, behind_words(seconds * 1_000, Some(2_000.0)));
            assert_eq!(snapshot.backlog.now().map(|now| now.behind), Some(thousands));
            let expected =
                format!("OVERLOADED  1,000/s answered of 2,000 asked; behind {behind}, growing   ");
            assert!(said.starts_with(&expected), "{said}");
            assert!(!said.contains("nothing at its limit"), "{said}");
        }
        let (first, _) = example::overloaded(1);
        assert!(line(&first).starts_with("behind 1,000 (500 ms), growing   "), "{}", line(&first));
        let (snapshot, _) = example::overloaded(4);
        let expected = "OVERLOADED the server answers 1,000/s   pummel's thread 1 % busy";
        assert_eq!(abnormal(&snapshot).as_deref(), Some(expected));
    }

    #[test]
    fn the_server_is_not_accused_of_a_backlog_that_the_generator_makes() {
        let (mut snapshot, _) = example::overloaded(5);
        snapshot.so_far.as_mut().expect("figures so far").is_lag_the_wait = true;
        assert!(line(&snapshot).starts_with("behind 5,000 (2.5 s), growing   "), "{}", line(&snapshot));
        assert!(!line(&snapshot).contains("OVERLOADED"));
    }

    #[test]
    fn what_was_not_reliable_stays_said_with_its_time() {
        let (mut snapshot, _) = example::measuring();
        let doubt = Doubt { figure: "p99", since_ns: 3 * SECOND, until_ns: None, busy: None };
        snapshot.doubt = Some(doubt);
        let said = "p99 NOT RELIABLE since 00:03   nothing at its limit   pummel's thread 12 % busy";
        assert_eq!(line(&snapshot), said);
        snapshot.doubt = Some(Doubt { busy: Some(0.957), ..doubt });
        let said = "p99 NOT RELIABLE since 00:03 (pummel's thread was 96 % busy)   nothing";
        assert!(line(&snapshot).starts_with(said), "{}", line(&snapshot));
        snapshot.doubt = Some(Doubt { until_ns: Some(5 * SECOND), ..doubt });
        let said = "reliable so far, but p99 was NOT RELIABLE from 00:03 to 00:05   nothing";
        assert!(line(&snapshot).starts_with(said), "{}", line(&snapshot));
    }

    #[test]
    fn a_run_of_errors_and_a_missed_goal_are_said_first() {
        let (mut snapshot, _) = example::measuring();
        snapshot.plan.as_mut().expect("a plan").goals =
            vec![Goal { quantile: 0.99, limit_ns: 20 * MICROSECOND }];
        let said = "GOAL MISSED so far: p99 71.0 us > 20.0 us   reliable so far   nothing at its limit";
        assert!(line(&snapshot).starts_with(said), "{}", line(&snapshot));
        let so_far = snapshot.so_far.as_mut().expect("figures so far");
        so_far.counts.errors[Fault::Server as usize] += 3 * so_far.counts.ended();
        let said = line(&snapshot);
        assert_eq!(said, "FAILED so far: 75.0 % of 67,200 requests were errors   pummel's thread 12 % busy");
    }

    #[test]
    fn a_closed_loop_is_never_said_to_have_no_limit() {
        let (mut snapshot, _) = example::measuring();
        snapshot.backlog = Default::default();
        snapshot.so_far.as_mut().expect("figures so far").is_closed = true;
        assert_eq!(line(&snapshot), "reliable so far   pummel's thread 12 % busy");
    }
}
