//! The lines of the report on how far a result can be trusted, from its document.

use pummel_measure::outcome::RunOutcome;

use super::Document;
use crate::words::trust::{self, Around};

impl Document {
    /// The text behind the label `Trust`, without line breaks; `None` where the run failed, since what it has is no measurement, and
    /// where the result does not say.
    pub fn trust_line(&self) -> Option<String> {
        let known = self.trust.as_ref().filter(|_| self.outcome != RunOutcome::Failed)?;
        Some(trust::line(known, self.around_trust()))
    }

    /// The document with the words of its facts.
    pub(super) fn with_words(mut self) -> Document {
        let around = self.around_trust();
        if let Some(known) = &mut self.trust {
            known.says = trust::says(known, around);
        }
        self
    }

    /// What the sentence on trust has to know of this result.
    fn around_trust(&self) -> Around {
        Around::of(&self.plan, self.verdict.as_ref())
    }
}
