//! The limit of connections of a server, and how many connections it has refused.

use super::facts::Facts;

/// A server's limit of connections, by its own statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// Most connections at one time: `maxconns` of memcached, `maxclients` of Redis; absent where the server does not
    /// report it.
    pub connections_max: Option<u64>,
    /// Connections that the server has refused since its start; absent where the server does not count them.
    pub refused: Option<u64>,
}

impl ConnectionLimit {
    /// Reads the limit from the counters and the settings of a server.
    pub fn of(counters: &Facts, settings: &Facts) -> ConnectionLimit {
        let limit = counters.number("max_connections").or(settings.number("maxconns"));
        ConnectionLimit {
            connections_max: limit.or(counters.number("maxclients")),
            refused: counters.number("rejected_connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memcached_and_redis_name_their_limit_each_in_its_own_way() {
        let facts = |list: &[(&str, &str)]| {
            let mut facts = Facts::default();
            for (name, value) in list {
                facts.add(name.as_bytes(), value.as_bytes());
            }
            facts
        };
        let of = |counters, settings| ConnectionLimit::of(&facts(counters), &facts(settings));
        let limit = |connections_max, refused| ConnectionLimit { connections_max, refused };
        let counters = [("max_connections", "40"), ("rejected_connections", "49")];
        assert_eq!(of(&counters, &[("maxconns", "40")]), limit(Some(40), Some(49)));
        assert_eq!(
            of(&counters[1..], &[("maxconns", "41")]),
            limit(Some(41), Some(49)),
            "an older memcached"
        );
        let redis = [("maxclients", "10000"), ("rejected_connections", "0")];
        assert_eq!(of(&redis, &[]), limit(Some(10_000), Some(0)));
        assert_eq!(of(&[], &[]), ConnectionLimit::default(), "another server");
    }
}
