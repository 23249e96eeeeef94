//! The line of the report on what limited a run, from its document.

use pummel_logic::plan::Group;
use pummel_measure::limit::Cause;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::summary::CARRIED_SHARE;

use super::Document;
use crate::words::limit::{cause_words, none_reached};

impl Document {
    /// The text behind the label `Limit`, without a line break and a full stop; `None` where the result names no limit, and where most
    /// requests were errors, so that the replies say nothing of a limit.
    pub fn limit_line(&self) -> Option<String> {
        line_of(self)
    }

    /// The limit in a word, as the line on the limit names it; `None` where the result names none. Of an open loop whose rate was
    /// carried it is no cause of lag, which is a matter of trust alone there.
    pub fn limit(&self) -> Option<&str> {
        let verdict = self.verdict.as_ref()?;
        let is_told = verdict.cause.as_ref().is_some_and(|cause| is_told_by_trust(self, cause));
        Some(if is_told { NO_LIMIT } else { verdict.limit.as_str() })
    }

    /// Whether the line on the limit names the generator, or CPUs that it shares, with its advice: the line on trust then says
    /// `see Limit`.
    pub(super) fn names_the_generator(&self) -> bool {
        self.limit() == Some(GENERATOR)
    }
}

/// The word for a limit that is the generator.
pub(super) const GENERATOR: &str = "generator";

/// The word for a limit where none was reached.
const NO_LIMIT: &str = "none";

/// Kinds of errors of requests that got no reply.
const WITHOUT_REPLY: [&str; 5] = ["timeout", "refused", "reset", "closed", "abandoned"];

fn line_of(document: &Document) -> Option<String> {
    let verdict = document.verdict.as_ref()?;
    if document.outcome == RunOutcome::Failed && errors_are_replies(document) {
        return None;
    }
    let Some(cause) = &verdict.cause else { return Some(verdict.says.clone()) };
    let next = match cause {
        Cause::None { next } => next.as_ref(),
        _ if is_told_by_trust(document, cause) => None,
        _ => return Some(cause_words(cause)),
    };
    let unanswered = document.totals.requests.saturating_sub(answered(document));
    match document.status == Status::Partial && unanswered > 0 {
        true => Some("none reached until then".to_owned()),
        false => Some(none_reached(unanswered, next)),
    }
}

/// Whether a cause is a matter of trust alone, since the rate of an open loop was carried all the same.
fn is_told_by_trust(document: &Document, cause: &Cause) -> bool {
    cause.is_of_trust() && is_open(document) && is_carried(document)
}

fn is_open(document: &Document) -> bool {
    !document.plan.groups.iter().any(Group::is_closed_loop)
}

/// Whether requests were answered about as fast as they were due.
fn is_carried(document: &Document) -> bool {
    let totals = &document.totals;
    let due = totals.requests.saturating_add(totals.skipped.unwrap_or(0));
    document.outcome == RunOutcome::Ok && answered(document) as f64 >= CARRIED_SHARE * due as f64
}

/// Requests that got a reply, or an error.
fn answered(document: &Document) -> u64 {
    let ended = document.totals.completed.saturating_add(document.totals.errors);
    ended.saturating_sub(without_reply(document))
}

/// Failed requests that got no reply.
fn without_reply(document: &Document) -> u64 {
    let errors = document.ops.iter().flat_map(|(_, op)| op.errors.iter());
    errors
        .filter(|(kind, _)| WITHOUT_REPLY.contains(kind))
        .map(|(_, count)| *count)
        .fold(0, u64::saturating_add)
}

/// Whether most failed requests were answered with an error.
fn errors_are_replies(document: &Document) -> bool {
    without_reply(document) <= document.totals.errors / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::FailOnAnswer;
    use crate::example::Run;
    use crate::json::render;
    use crate::words::limit::NONE_REACHED;
    use pummel_logic::plan::{Arrivals, FailOn};
    use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};
    use pummel_measure::limit::{CpuTaker, LostCpu, Side, TakenCpu};
    use pummel_measure::measurement::Keep;
    use serde_json::{Value, json};

    /// The CPU of the generator, taken by other programs.
    fn taken() -> Cause {
        let taken = Some(TakenCpu { by: CpuTaker::OtherProcesses, time_ns: 354 * MILLISECOND });
        Cause::GeneratorCpuTaken(LostCpu { agent: None, share: 0.1, lost_ns: 400 * MILLISECOND, taken })
    }

    /// Requests without an answer.
    fn unanswered() -> Cause {
        let (timeout_ns, lag_p99_ns) = (SECOND, 3 * MICROSECOND);
        Cause::Unanswered { share: 0.12, standstills: Vec::new(), overload: None, timeout_ns, lag_p99_ns }
    }

    /// The line of a run of the example after a change, and whether it names the generator.
    fn line(change: impl Fn(&mut Document)) -> (Option<String>, bool) {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        change(&mut document);
        (document.limit_line(), document.names_the_generator())
    }

    /// Gives a run the facts of a verdict.
    fn limited(document: &mut Document, limit: &str, cause: Cause) {
        let verdict = document.verdict.as_mut().expect("it was judged");
        (verdict.limit, verdict.cause) = (limit.to_owned(), Some(cause));
    }

    #[test]
    fn of_an_open_loop_that_was_carried_the_generator_is_not_the_limit() {
        let late = |document: &mut Document| limited(document, "generator", taken());
        let named = |line: &(Option<String>, bool)| {
            line.0.as_ref().is_some_and(|line| line.starts_with("pummel's CPU: other programs")) && line.1
        };
        assert_eq!(line(late), (Some(NONE_REACHED.to_owned()), false));
        let behind = line(|document| {
            late(document);
            document.totals.requests *= 2;
        });
        assert!(named(&behind), "{behind:?}");
        let closed = line(|document| {
            late(document);
            document.plan.groups[0].arrivals = Arrivals::Closed;
        });
        assert!(named(&closed), "{closed:?}");
        // Trust sees nothing of what the kernel sent late.
        let sent_late =
            line(|document| limited(document, "generator", Cause::GeneratorSendBuffer { share: 0.2 }));
        assert!(
            sent_late.0.is_some_and(|line| line.starts_with("this machine's send buffers")) && sent_late.1
        );
    }

    #[test]
    fn a_run_fails_as_limited_where_the_line_names_the_generator() {
        let shared = Cause::SharedCpu {
            waiting: Side::Client,
            agent: None,
            server: None,
            cpus: vec![0, 1],
            share: 0.2,
            machine: None,
        };
        let answer = |missing: u64| {
            let mut document = Run::new(Keep::Figures).document(Clone::clone);
            limited(&mut document, "generator", shared.clone());
            document.totals.requests += missing;
            (document.limit().map(str::to_owned), document.answer(FailOn::Limited))
        };
        assert_eq!(answer(0), (Some("none".to_owned()), FailOnAnswer::No), "the rate was carried");
        let (limit, failed) = answer(2_000);
        assert_eq!(limit.as_deref(), Some("generator"));
        assert!(matches!(failed, FailOnAnswer::Yes(_)), "{failed:?}");
    }

    #[test]
    fn a_run_that_failed_has_a_limit_only_where_replies_were_missing() {
        let failed = |kind: &'static str| {
            line(|document| {
                let mut op = document.ops.get("get").expect("it was asked for").clone();
                op.errors = [(kind, op.completed)].into_iter().collect();
                (document.outcome, document.totals.errors) = (RunOutcome::Failed, op.completed);
                document.ops = [("get", op)].into_iter().collect();
                limited(document, "server", unanswered());
            })
        };
        assert_eq!(failed("server").0, None);
        assert!(failed("timeout").0.is_some_and(|line| line.starts_with("the server, or the way to it: ")));
    }

    #[test]
    fn a_run_that_was_cut_short_has_no_limit_until_then() {
        let cut_short = |missing: u64| {
            line(|document| {
                document.status = Status::Partial;
                document.totals.requests += missing;
            })
        };
        assert_eq!(cut_short(6).0.as_deref(), Some("none reached until then"));
        assert!(cut_short(0).0.is_some_and(|line| line.starts_with(NONE_REACHED)));
        // The generator that is late in a carried open loop is no limit until then either.
        let late = line(|document| {
            limited(document, "generator", taken());
            document.status = Status::Partial;
            document.totals.requests += 6;
        });
        assert_eq!(late.0.as_deref(), Some("none reached until then"));
    }

    #[test]
    fn a_complete_run_with_requests_without_a_reply_does_not_say_that_all_were_answered() {
        let lost = line(|document| document.totals.requests += 4).0.unwrap_or_default();
        let words = "none reached: all requests but 4 were answered as they came. ";
        assert!(lost.starts_with(words), "{lost}");
    }

    #[test]
    fn facts_of_a_kind_that_is_not_known_leave_the_sentence() {
        let document = Run::new(Keep::Figures).document(Clone::clone);
        let mut value: Value = serde_json::from_slice(&render(&document)).expect("JSON");
        assert_eq!(value["verdict"]["cause"]["kind"], "none");
        value["verdict"]["cause"] = json!({"kind": "moon", "phase": 3});
        value["verdict"]["says"] = json!("the moon: it was full");
        let read = Document::read(&serde_json::to_vec(&value).expect("JSON")).expect("a result");
        assert_eq!(read.limit_line().as_deref(), Some("the moon: it was full"));
        assert_eq!(read.verdict.and_then(|verdict| verdict.cause), None);
    }
}
