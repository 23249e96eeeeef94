//! The lines of the report on how far a result can be trusted and whether it was steady, from its document.

use pummel_measure::outcome::RunOutcome;

use super::{Document, ServerResult, WarmUpResult};
use crate::words::limit::names_the_generator;
use crate::words::trust::{self, Around};
use crate::words::unsteady;

impl Document {
    /// The text behind the label `Trust`, without line breaks; `None` where the run failed, since what it has is no measurement, and
    /// where the result does not say.
    pub fn trust_line(&self) -> Option<String> {
        let known = self.trust.as_ref().filter(|_| self.outcome != RunOutcome::Failed)?;
        Some(trust::line(known, self.around_trust()))
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
        let warm_up_s = unsteady::warm_up_s(&self.plan);
        if let Some(change) = &mut self.change {
            change.says = unsteady::change(change, warm_up_s);
        }
        self
    }

    /// What the sentence on trust has to know of this result.
    fn around_trust(&self) -> Around {
        Around { limit_has_cause: names_the_generator(self), ..Around::of(&self.plan) }
    }
}
