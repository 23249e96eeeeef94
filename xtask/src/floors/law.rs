//! The order of modules in each crate: the only file to change when the order changes.

/// A crate with the layers of its modules, from the lowest to the highest. A module may use what stands in lower layers and its own
/// parts, and no other module of its layer. A name stands also for the parts of a module; a part with a place of its own has
/// only that. Without layers the modules have no order. Tests are free of it.
pub struct Crate {
    /// Folder of the crate in the repository.
    pub directory: &'static str,
    /// Names of modules by layer, with spaces between them.
    pub layers: &'static [&'static str],
}

/// The crates in none of which files name each other's items in a circle.
pub const CRATES: [Crate; 10] = [
    Crate { directory: "crates/logic", layers: LOGIC },
    Crate { directory: "crates/measure", layers: &[] },
    Crate { directory: "crates/traffic", layers: &[] },
    Crate { directory: "crates/testserver", layers: &[] },
    Crate { directory: "crates/engine", layers: ENGINE },
    Crate { directory: "crates/report", layers: &[] },
    Crate { directory: "crates/fronts", layers: &[] },
    Crate { directory: "crates/fleet", layers: FLEET },
    Crate { directory: "crates/pummel", layers: TOOL },
    Crate { directory: "xtask", layers: &[] },
];

const LOGIC: &[&str] = &[
    "decimal merge rng secrets time words",
    "bodies",
    "connection::outbox",
    "counters",
    "dist",
    "protocol",
    "plan",
    "arrival client::route retry",
    "cluster",
    "workload",
    "connection plan::validate unsent",
    "client",
];

const ENGINE: &[&str] = &[
    "sys",
    "clock",
    "backend",
    "resolve",
    "backend::tls cluster::published",
    "worker",
    "side_connections",
    "cluster",
    "evidence",
    "run",
];

const FLEET: &[&str] = &["agent::proto launch", "program", "agent", "controller"];

const TOOL: &[&str] = &[
    "build_info short_help terminal write_queue",
    "stderr",
    "output",
    "front_inputs metrics parser_answer",
    "live",
    "job",
    "commands::agent_cert serve",
    "job::runner",
    "job::server_program",
    "job::outlets",
    "job::driver",
    "job::series",
    "job::series_result",
    "detection",
    "commands",
    "cli",
];
