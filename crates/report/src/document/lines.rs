//! The lines of the report on how far a result can be trusted and whether it was steady, from its document.

use pummel_measure::outcome::RunOutcome;
use pummel_measure::reason::Reason;

use super::{Document, ReliableFigures, ServerResult, TrustResult, WarmUpResult};
use crate::words::trust::{self, Around};
use crate::words::{intervals, unsteady};

impl Document {
    /// The text behind the label `Trust`, without line breaks; `None` where the run failed, since what it has is no measurement, and
    /// where the result does not say.
    pub fn trust_line(&self) -> Option<trust::Line> {
        let (known, around) = (self.trust_of_times()?, self.around_trust());
        let of_parts = trust::merged(known, &self.merged, around.is_closed);
        Some(of_parts.unwrap_or_else(|| trust::line(known, around)))
    }

    /// Whether none of the times is reliable, as the line on trust then says first.
    pub fn is_unreliable(&self) -> bool {
        let parts = self.merged.iter().filter_map(|part| part.trust.as_ref());
        let mut all = parts.chain(&self.trust);
        self.trust_of_times().is_some() && all.any(|known| known.kind == ReliableFigures::None)
    }

    /// How far the times can be believed; `None` where there are none, since the run failed, and where the result does not say.
    fn trust_of_times(&self) -> Option<&TrustResult> {
        self.trust.as_ref().filter(|_| self.outcome != RunOutcome::Failed)
    }

    /// The text behind the label `Unsteady`, without line breaks; `None` where the run was steady, or where that is not known.
    pub fn unsteady_line(&self) -> Option<String> {
        if self.steady != Some(false) {
            return None;
        }
        if !self.merged.is_empty() {
            return Some(unsteady::merged(&self.merged));
        }
        if let Some(change) = &self.change {
            return Some(unsteady::change(change, unsteady::warm_up_s(&self.plan)));
        }
        let is_unsettled =
            |warm_up: &WarmUpResult| warm_up.until.is_none() && !warm_up.settled && !warm_up.cut_short;
        let servers = self.evidence.iter().flat_map(|evidence| &evidence.servers);
        let of_server = |server: &ServerResult| {
            let saves = &server.reading.as_ref()?.saves;
            let save = saves.iter().find(|save| save.from_s.is_some() || save.to_s.is_some())?;
            Some(unsteady::saved(&server.address, &save.says))
        };
        let saved = servers.into_iter().find_map(of_server);
        saved
            .filter(|_| !self.warmup.as_ref().is_some_and(is_unsettled))
            .or_else(|| Some(unsteady::unsettled()))
    }

    /// The document with the words of its facts.
    pub(super) fn with_words(mut self) -> Document {
        let around = self.around_trust();
        if let Some(known) = &mut self.trust {
            known.says = trust::says(known, around);
        }
        self.certainty_missing = self.certainty_missing_kind.map(|kind| intervals::missing(kind).to_owned());
        let warm_up_s = unsteady::warm_up_s(&self.plan);
        if let Some(change) = &mut self.change {
            change.says = unsteady::change(change, warm_up_s);
        }
        self
    }

    /// What the sentence on trust has to know of this result.
    fn around_trust(&self) -> Around {
        Around {
            limit_has_cause: self.names_the_generator(),
            is_cut_short: matches!(self.why, Some(Reason::ServerGone { .. })),
            ..Around::of(&self.plan)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use pummel_measure::measurement::{Keep, Status};

    #[test]
    fn the_times_of_a_run_whose_server_went_away_are_reliable_until_then() {
        let mut run = Run::new(Keep::Figures);
        let whole = run.document(Document::trust_line).expect("it says");
        assert_eq!(whole.to_string(), "reliable: pummel's own delay (lag) is 3 % of p50 and 2 % of p99");
        let server = "a:1".to_owned();
        let reason = Reason::ServerGone { server, silent_ns: 1, turned_away: false, trouble: None };
        run.measurement.mark(Status::Partial, reason);
        let (line, says) =
            run.document(|document| (document.trust_line(), document.trust.clone().expect("it says").says));
        let line = line.expect("it says").to_string();
        assert_eq!(line, "reliable until then: pummel's own delay (lag) is 3 % of p50 and 2 % of p99");
        assert_eq!(says, line);
    }

    #[test]
    fn a_run_that_failed_has_no_line_on_trust() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.outcome = RunOutcome::Failed;
        assert_eq!(document.trust_line(), None);
        assert_eq!(document.unsteady_line(), None, "whether it was steady is not known");
    }
}
