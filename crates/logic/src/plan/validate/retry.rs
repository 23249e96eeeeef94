//! Checks that requests can be sent again after errors.

use super::field::Field;
use super::invalid::{DAY, Invalid, refuse_if, span};
use crate::plan::{Late, Plan, RetryKind, Work};
use crate::time::MILLISECOND;

/// Refuses to send requests again where their errors are not known, where they have an order of their own, or where a connection that
/// is lost is not opened again.
pub fn retry_fits(plan: &Plan) -> Result<(), Invalid> {
    let Some(retry) = &plan.retry else { return Ok(()) };
    let kinds = retry.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
    let refuse_where = |is_so: bool, expected: &str| refuse_if(is_so, Field::RetryKinds, &kinds, expected);
    refuse_where(kinds.is_empty(), "expected at least one kind of errors")?;
    let is_twice = (1..retry.kinds.len()).any(|at| retry.kinds[..at].contains(&retry.kinds[at]));
    refuse_where(is_twice, "expected each kind once")?;
    let expected =
        "expected no noscript: requests of --script are sent again after it without being asked to";
    refuse_where(retry.kinds.contains(&RetryKind::NoScript), expected)?;
    span(Field::RetryFor, retry.for_ns, (MILLISECOND, "1ms"), (DAY, "24h"))?;
    let is_lost = retry.kinds.iter().any(|kind| kind.is_unanswered());
    let expected = "lost needs --reconnect: a request is sent again on another connection";
    refuse_where(retry.kinds.contains(&RetryKind::Lost) && !plan.reconnect, expected)?;
    sent_again_fits(plan, refuse_where)?;
    plan.mixes().try_for_each(|(_, mix)| {
        let expected = "lost and timeout are accepted without --vivify and --recache: the reply to a read that makes an item, or wins \
                        the right to renew one, is lost with it";
        let wins = mix.meta.vivify_s.is_some() || mix.meta.recache_s.is_some();
        refuse_where(is_lost && wins, expected)
    })
}

/// Refuses, by `refuse_where`, a plan whose requests cannot be sent again after an error.
pub fn sent_again_fits(
    plan: &Plan,
    refuse_where: impl Fn(bool, &str) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    let expected =
        "expected TCP or unix sockets: a late datagram may be carried out after one that was sent again";
    refuse_where(plan.uses_datagrams(), expected)?;
    let expected = "expected clients that stay: one that comes and goes ends with its connection";
    refuse_where(plan.groups.iter().any(|group| group.churn.is_some()), expected)?;
    let expected = "expected clients that leave out no late requests, and ask as soon as one is due";
    let has_policy = plan.groups.iter().any(|group| group.policy.late != Late::Kept || group.policy.spaced);
    refuse_where(has_policy, expected)?;
    plan.phases.iter().try_for_each(|phase| match &phase.work {
        Work::Window(_) => refuse_where(true, "a window of objects sends nothing again"),
        Work::Replay(_) => refuse_where(true, "a recording sends nothing again"),
        Work::Mix(mix) => {
            let expected = "expected no --noreply: errors of requests without replies belong to no request";
            refuse_where(mix.noreply, expected)
        }
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ChurningClients, Group, Mix, Phase, Retry, Spawns, Stop, Transport};
    use crate::protocol::Verb;
    use crate::time::SECOND;

    /// A change of a plan, and a word of the reason for which it is refused.
    type Change = (&'static str, fn(&mut Plan));

    fn retrying() -> Plan {
        let retry = Some(Retry { kinds: RetryKind::asked_for().collect(), for_ns: 10 * SECOND });
        let mix = Mix::of(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
        let phase = Phase {
            name: "measure".to_owned(),
            work: Work::Mix(mix),
            stop: Stop { time_ns: Some(SECOND), requests: None },
            recorded: true,
        };
        let servers = vec!["127.0.0.1:11211".to_owned()];
        Plan {
            retry,
            servers,
            reconnect: true,
            groups: vec![Group::default()],
            phases: vec![phase],
            ..Plan::default()
        }
    }

    fn mix_of(plan: &mut Plan) -> &mut Mix {
        let mix = plan.phases.iter_mut().find_map(|phase| match &mut phase.work {
            Work::Mix(mix) => Some(mix),
            _ => None,
        });
        mix.expect("it draws from a mix")
    }

    #[test]
    fn a_plan_whose_requests_cannot_be_sent_again_is_refused_with_the_reason() {
        assert_eq!(retrying().validate().map(|_| ()), Ok(()));
        let kinds = |plan: &mut Plan, kinds: &[RetryKind]| {
            plan.retry = Some(Retry { kinds: kinds.to_vec(), for_ns: SECOND });
        };
        let mut quiet = Plan { reconnect: false, ..retrying() };
        kinds(&mut quiet, &[RetryKind::Oom]);
        assert_eq!(quiet.validate().map(|_| ()), Ok(()), "its connections stay open");
        let changes: [Change; 9] = [
            ("noscript", |plan| {
                plan.retry = Some(Retry { kinds: vec![RetryKind::NoScript], for_ns: SECOND });
            }),
            ("at least one", |plan| plan.retry = Some(Retry { kinds: Vec::new(), for_ns: SECOND })),
            ("each kind once", |plan| {
                plan.retry = Some(Retry { kinds: vec![RetryKind::Oom; 2], for_ns: SECOND });
            }),
            ("1ms", |plan| plan.retry = Some(Retry { kinds: vec![RetryKind::Oom], for_ns: 1 })),
            ("--reconnect", |plan| plan.reconnect = false),
            ("datagram", |plan| plan.transport = Transport::Udp),
            ("--noreply", |plan| mix_of(plan).noreply = true),
            ("late", |plan| plan.groups[0].policy.late = Late::Skipped),
            ("come", |plan| {
                let spawns = Spawns::Closed;
                plan.reconnect = false;
                plan.retry = Some(Retry { kinds: vec![RetryKind::Oom], for_ns: SECOND });
                plan.groups[0].churn = Some(ChurningClients { spawns, calls: 3, sequence: None });
            }),
        ];
        for (word, change) in changes {
            let mut changed = retrying();
            change(&mut changed);
            let why = changed.validate().expect_err(word);
            assert!(why.path.name().starts_with("retry."), "{word}: {why}");
            assert!(why.expected.contains(word), "{word}: {why}");
        }
    }
}
