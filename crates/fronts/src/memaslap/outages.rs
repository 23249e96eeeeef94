//! Which servers are away, as the losses and reconnections of their connections show.

use std::collections::BTreeMap;

use pummel_logic::time::{MILLISECOND, Nanos, SECOND};

/// A server counts as back when none of its connections was lost for this long. A process that dies closes its connections
/// one after the other and its listening socket last, so that an early reconnection succeeds and is lost again.
const SETTLED_NS: Nanos = 100 * MILLISECOND;

/// Servers that are away.
#[derive(Debug, Default)]
pub struct Outages(BTreeMap<usize, Outage>);

/// A server that is away.
#[derive(Debug)]
struct Outage {
    since: Nanos,
    /// When a connection was open again, if none was lost after that.
    back: Option<Nanos>,
}

impl Outages {
    /// A connection was lost. Whether the server was there until now.
    pub fn lost(&mut self, server: usize, now: Nanos) -> bool {
        let known = self.0.get_mut(&server);
        let is_new = known.is_none();
        match known {
            Some(away) => away.back = None,
            None => _ = self.0.insert(server, Outage { since: now, back: None }),
        }
        is_new
    }

    /// A connection that was lost is open again.
    pub fn back(&mut self, server: usize, now: Nanos) {
        if let Some(away) = self.0.get_mut(&server) {
            away.back.get_or_insert(now);
        }
    }

    /// Takes the servers that are back for good by now, with how many seconds they were away, to the nearest.
    pub fn returned(&mut self, now: Nanos) -> Vec<(usize, u64)> {
        let returned = |(server, away): (&usize, &Outage)| {
            let back = away.back.filter(|back| now.saturating_sub(*back) >= SETTLED_NS)?;
            Some((*server, (back.saturating_sub(away.since) + SECOND / 2) / SECOND))
        };
        let returned: Vec<(usize, u64)> = self.0.iter().filter_map(returned).collect();
        returned.iter().for_each(|(server, _)| _ = self.0.remove(server));
        returned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_away_from_its_first_loss_until_a_connection_stays() {
        let mut outages = Outages::default();
        assert!(outages.lost(0, 1_000 * MILLISECOND));
        assert!(!outages.lost(0, 1_001 * MILLISECOND));
        outages.back(0, 1_002 * MILLISECOND);
        assert!(!outages.lost(0, 1_003 * MILLISECOND), "it was never really back");
        assert!(outages.returned(9_000 * MILLISECOND).is_empty());
        outages.back(0, 3_700 * MILLISECOND);
        outages.back(0, 3_750 * MILLISECOND);
        assert!(outages.returned(3_799 * MILLISECOND).is_empty());
        assert_eq!(outages.returned(3_800 * MILLISECOND), [(0, 3)]);
        assert!(outages.returned(9_000 * MILLISECOND).is_empty());
        assert!(outages.lost(0, 9_000 * MILLISECOND), "the next time is another");
    }

    #[test]
    fn servers_are_apart() {
        let mut outages = Outages::default();
        assert!(outages.lost(0, 0) && outages.lost(1, 0));
        outages.back(1, SECOND);
        outages.back(2, SECOND);
        assert_eq!(outages.returned(Nanos::MAX), [(1, 1)]);
        assert!(!outages.lost(0, 2 * SECOND) && outages.lost(1, 2 * SECOND));
    }
}
