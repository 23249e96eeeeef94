//! The scenes: what is staged for each row of the table of limits, and which loads have to end with its name.

mod generator;
mod load;
mod network;
mod server;

use super::scenario::{Scenario, Server, Unstaged};

/// All scenarios, in groups by what their rows name.
const GROUPS: [&[Scenario]; 4] = [generator::SCENES, network::SCENES, server::SCENES, load::SCENES];

/// All scenarios.
pub fn scenes() -> impl Iterator<Item = &'static Scenario> {
    GROUPS.into_iter().flatten()
}

/// The rows of the table that no scenario stages, and parts of rows.
pub const UNSTAGED: &[Unstaged] = &[
    Unstaged { row: "instrument", why: "an instrument that disagrees with itself is a bug of pummel" },
    Unstaged { row: "generator-cpu-taken, by the hypervisor", why: "steal is made outside of the machine" },
    Unstaged {
        row: "network-bandwidth, the cloud's allowance",
        why: "only cards of a cloud count what went beyond it",
    },
    Unstaged {
        row: "closed-loop",
        why: "it is left where a thread is busy for 80 to 90 % of its time, which no load holds for sure",
    },
    Unstaged {
        row: "server-connections, a full queue of the listening socket",
        why: "memcached and redis-server accept faster than one machine can connect",
    },
];

/// Runs against idle servers, in which the verdict must name no limit: server, words. Two client threads that share a
/// CPU sleep until a request is due, and timers that are late by more than 20 us are a visible part of the short
/// responses of memcached and Redis: these lines use servers that hold each request for 2 ms and do nothing meanwhile.
pub const IDLE: &[(Server, &str)] = &[
    (Server::Memcached("-t 4 -m 256"), "-c 1 --rate 100"),
    (Server::Memcached("-t 4 -m 256"), "-c 10 --rate 500"),
    (Server::Memcached("-t 4 -m 256"), "-c 50 --rate 2k"),
    (Server::Memcached("-t 1 -m 256"), "-c 20 --rate 1k"),
    (Server::Memcached("-t 1 -m 256"), "-c 100 --rate 3k --mix get:9,set:1"),
    (Server::Memcached("-t 1 -m 256"), "-c 10 --rate 200 --protocol meta"),
    (Server::Memcached("-t 1 -m 256"), "-c 50 --rate 5k --protocol binary"),
    (Server::Redis(""), "-c 10 --rate 500 --protocol resp2"),
    (Server::Redis(""), "-c 50 --rate 2k --protocol resp3"),
    (Server::Redis(""), "-c 30 --rate 1k --protocol resp2 --mix get:3,set:1"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 50 -T 2 --rate 200"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 100 -T 2 --rate 500 --mix get:9,set:1"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 60 -T 2 --rate 300 --protocol resp2"),
];

/// The options of a server that holds each reply for a time, and does nothing meanwhile.
const SLOW_AND_IDLE: &str = "--service-time 2ms --wait auto";

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of limits, as it is written.
    const TABLE: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/measure/src/limit/table.rs"));

    fn rows_of_table() -> Vec<&'static str> {
        let rows = TABLE.lines().filter_map(|line| line.trim().strip_prefix("Row { name: \""));
        rows.filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_row_of_the_table_is_staged_or_listed_as_unstaged() {
        let rows = rows_of_table();
        assert!(rows.len() > 20, "{rows:?}");
        let is_unstaged =
            |row: &str| UNSTAGED.iter().any(|unstaged| unstaged.row.split(',').next() == Some(row));
        for row in &rows {
            // The idle runs are the scenes of the last row.
            let is_staged = *row == "none" || scenes().any(|scenario| scenario.row == *row);
            assert!(is_staged || is_unstaged(row), "{row} has neither a scene nor a reason");
        }
        for unstaged in UNSTAGED {
            let row = unstaged.row.split(',').next().unwrap_or_default();
            assert!(rows.contains(&row), "{row} is no row of the table");
        }
    }

    #[test]
    fn scenes_name_rows_of_the_table_and_have_loads() {
        let rows = rows_of_table();
        for scenario in scenes() {
            let Scenario { row, must_not, staged, .. } = scenario;
            let named = [*row].into_iter().filter(|row| !row.is_empty()).chain(must_not.iter().copied());
            for name in named {
                assert!(rows.contains(&name), "{staged}: {name} is no row of the table");
            }
            assert_eq!(row.is_empty(), scenario.limit.is_empty(), "{staged}");
            assert!(!row.is_empty() || scenario.is_neighbour(), "{staged}: every verdict would be right");
            assert!(!scenario.loads.is_empty(), "{staged}");
        }
    }
}
