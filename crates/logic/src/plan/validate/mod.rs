//! Validation of a Plan: a [`ValidPlan`] is one that can be run, as far as the Plan alone shows.
//!
//! What floors 1 and 2 assert of a Plan holds of every [`ValidPlan`], and [`Plan::validate`] is the only way to one.

mod audit;
mod changes;
mod clients;
mod commands;
mod datagrams;
mod field;
mod invalid;
mod phases;
mod records;
mod requests;
mod retry;
mod run;
mod slots;
mod targets;

use std::ops::Deref;

use serde::{Serialize, Serializer};

pub use self::field::{Field, FieldPath};
pub use self::invalid::Invalid;
use self::invalid::{DAY, HOUR};
use super::{Plan, SCHEMA, Transport};
use crate::time::{MILLISECOND, Nanos, SECOND};

/// A Plan that can be run, as far as the Plan alone shows. A valid Plan cannot be changed, and is never read from a
/// file: a file holds a [`Plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct ValidPlan(Plan);

impl ValidPlan {
    /// The Plan, which can be changed and validated again.
    pub fn into_plan(self) -> Plan {
        self.0
    }
}

impl Deref for ValidPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Serialize for ValidPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The timeout that stands for none: 31 years. Only a sequence of requests may have one beyond a day.
pub const NO_TIMEOUT_NS: Nanos = 1_000_000_000 * SECOND;

impl Plan {
    /// Finds out whether the Plan can be run by this version.
    ///
    /// # Errors
    /// Returns [`Invalid`] with the first field that this version cannot run, its value, and what would be accepted.
    pub fn validate(self) -> Result<ValidPlan, Invalid> {
        invalid::within(Field::Schema, self.schema.into(), SCHEMA.into(), SCHEMA.into())?;
        targets::servers(&self.servers)?;
        targets::lanes(&self)?;
        targets::cluster(&self)?;
        invalid::within(Field::Seed, self.seed, 0, invalid::NUMBER_MAX)?;
        invalid::span(Field::Interval, self.interval_ns, (10 * MILLISECOND, "10ms"), (HOUR, "1h"))?;
        if let Some(every_ns) = self.server_stats_ns {
            invalid::span(Field::ServerStats, every_ns, (100 * MILLISECOND, "100ms"), (HOUR, "1h"))?;
        }
        targets::server_stats_at(&self)?;
        timeout(&self)?;
        invalid::share(Field::Verify, self.verify)?;
        targets::goals(&self)?;
        targets::labels(&self.labels)?;
        targets::socket(&self.socket)?;
        targets::source(&self)?;
        targets::stamps(&self)?;
        targets::tls(&self)?;
        targets::login(&self)?;
        slots::data(&self.data)?;
        records::data(&self.data)?;
        if self.sequence().is_none() {
            records::expiry(&self.data.expiry_s)?;
        }
        clients::groups(&self)?;
        phases::phases(&self)?;
        phases::trace_fits(&self)?;
        run::adaptive_fits(&self)?;
        run::probe_fits(&self)?;
        changes::fits(&self)?;
        records::key_churn_fits(&self)?;
        records::unpadded_keys_fit(&self)?;
        slots::fit(&self)?;
        clients::style(&self)?;
        requests::unstored_keys_fit(&self)?;
        requests::popularities_fit(&self)?;
        requests::same_draws_fit(&self)?;
        requests::verbs_fit(&self)?;
        requests::forms_fit(&self)?;
        requests::resp_fits(&self)?;
        requests::meta(&self)?;
        run::judged_fits(&self)?;
        clients::windows_fit(&self)?;
        audit::audit_fits(&self)?;
        retry::retry_fits(&self)?;
        run::memory_fits(&self)?;
        match self.transport {
            Transport::Stream => Ok(ValidPlan(self)),
            Transport::Udp => datagrams::fits(&self).map(|()| ValidPlan(self)),
        }
    }
}

/// Checks the timeout. A sequence may have any timeout, up to the greatest, which stands for none.
fn timeout(plan: &Plan) -> Result<(), Invalid> {
    let (least, most) = match plan.sequence() {
        Some(_) => ((1, "1ns"), (NO_TIMEOUT_NS, "1000000000s")),
        None => ((1_000, "1us"), (DAY, "24h")),
    };
    invalid::span(Field::Timeout, plan.timeout_ns, least, most)
}

#[cfg(test)]
mod sayable_tests;
#[cfg(test)]
mod tests;
