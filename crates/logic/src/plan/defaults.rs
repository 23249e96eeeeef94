//! The defaults of a Plan and of its parts.

use super::{
    Adaptive, Arrivals, Backend, Changes, ClientPolicy, Clock, ClusterOptions, Data, Depth, Engine, Group,
    Labels, Mix, Plan, Protocol, Route, SCHEMA, Socket, Style, Transport, Wait,
};
use crate::dist::Dist;
use crate::protocol::Verb;
use crate::time::SECOND;

impl Default for Plan {
    /// A Plan in memcached's text protocol, with a timeout and intervals of a second, and without a baseline. The Plan cannot be run before
    /// servers, groups and phases are added.
    fn default() -> Plan {
        Plan {
            schema: SCHEMA,
            servers: Vec::new(),
            route: Route::default(),
            cluster: ClusterOptions::default(),
            protocol: Protocol::Text,
            transport: Transport::default(),
            seed: 0,
            interval_ns: SECOND,
            timeout_ns: SECOND,
            reconnect: false,
            retry: None,
            failed_keys: false,
            verify: 0.0,
            goals: Vec::new(),
            engine: Engine::default(),
            socket: Socket::default(),
            login: None,
            tls: None,
            database: 0,
            tracking: None,
            commands: Vec::new(),
            load_command: None,
            dataset: None,
            script: None,
            data: Data::default(),
            allow_partial_load: false,
            evidence: true,
            baseline: false,
            probe: false,
            server_stats_ns: None,
            server_stats_at: Vec::new(),
            adaptive: Adaptive::default(),
            changes: Changes::default(),
            anonymous: false,
            fail_on: Vec::new(),
            labels: Labels::new(),
            groups: Vec::new(),
            phases: Vec::new(),
        }
    }
}

impl Default for Engine {
    /// One thread on any CPU, with the best that the kernel offers.
    fn default() -> Engine {
        Engine {
            threads: 1,
            cpus: Vec::new(),
            backend: Backend::Auto,
            wait: Wait::Auto,
            clock: Clock::Kernel,
            stamps: None,
        }
    }
}

impl Default for Socket {
    /// Small segments leave at once; all else is the kernel's choice.
    fn default() -> Socket {
        Socket { nodelay: true, linger_s: None, send_buffer: None, recv_buffer: None, source: Vec::new() }
    }
}

impl Default for Data {
    /// 10,000 records of 30 and 200 bytes, which do not expire.
    fn default() -> Data {
        Data {
            records: 10_000,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: Style::default(),
        }
    }
}

impl Default for Group {
    /// One client in closed loop, with one request outstanding.
    fn default() -> Group {
        Group {
            name: "clients".to_owned(),
            clients: 1,
            depth: Depth::Limit(1),
            arrivals: Arrivals::Closed,
            rate: None,
            churn: None,
            policy: ClientPolicy::default(),
        }
    }
}

impl Mix {
    /// Returns a mix of these operations and weights, on any record, one key at a time.
    pub fn of(ops: &[(Verb, f64)]) -> Mix {
        Mix { ops: ops.to_vec(), multiget: 1, multiset: 1, ..Mix::default() }
    }
}
