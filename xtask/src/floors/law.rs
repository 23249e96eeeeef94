//! What the floors allow, as tables: the only file to change when the law changes.

/// A crate of the workspace and what holds in it.
pub struct Floor {
    /// The package of the crate.
    pub package: &'static str,
    /// The directory of the crate in the repository.
    pub directory: &'static str,
    /// Packages of the workspace that it may depend on.
    pub below: &'static [&'static str],
    /// Packages that belong to another floor.
    pub foreign: &'static [&'static str],
    /// The modules of the crate from the lowest to the highest, each with the modules that it may use. A name stands also for
    /// the parts of a module, and a module may always use its own parts; a part with a row of its own may use only what that
    /// row says. An empty table means that the modules are not ordered. Tests are free of the order.
    pub modules: &'static [(&'static str, &'static [&'static str])],
    /// The files and directories in which `unsafe` may stand.
    pub unsafe_code: &'static [&'static str],
    /// Paths that may not be named, and why.
    pub banned_paths: &'static [(&'static str, &'static str)],
    /// What is allowed although a banned path covers it.
    pub allowed_paths: &'static [&'static str],
    /// Macros that may not be called.
    pub banned_macros: &'static [&'static str],
    /// Modules of pure functions, by their rows in `modules`, that name no file, environment, process or clock.
    pub pure: &'static [&'static str],
    /// Modules that read what a peer sent, where `unwrap` and `expect` may not be called.
    pub peer_data: &'static [&'static str],
}

/// The crates whose files name no items of each other in circles, by their directories. The list only grows.
pub const WITHOUT_CIRCLES: &[&str] = &["crates/logic", "crates/engine", "crates/tool"];

/// The three floors.
pub const FLOORS: [Floor; 3] = [LOGIC, ENGINE, TOOL];

const LOGIC: Floor = Floor {
    package: "pummel-logic",
    directory: "crates/logic",
    below: &[],
    foreign: &[
        "clap",
        "indicatif",
        "io-uring",
        "libc",
        "mio",
        "nix",
        "rustix",
        "rustls",
        "socket2",
        "tokio",
        "tonic",
    ],
    modules: &[
        ("time", &[]),
        ("rng", &[]),
        ("connection::outbox", &[]),
        ("dist", &["rng"]),
        ("protocol", &["connection::outbox", "time"]),
        ("plan", &["dist", "protocol", "time"]),
        ("client::route", &["plan"]),
        ("arrival", &["dist", "plan", "rng", "time"]),
        ("workload::stable_size", &["dist", "rng"]),
        ("workload::key", &["dist", "plan", "rng", "workload::stable_size"]),
        ("workload::value", &["dist", "plan", "protocol", "rng", "workload::key", "workload::stable_size"]),
        ("workload::verify::stale", &["rng", "workload::value"]),
        ("workload::sequence", &["plan", "protocol", "time"]),
        ("workload", &["client::route", "dist", "plan", "protocol", "rng", "time"]),
        ("connection::inflight", &["protocol", "time", "workload"]),
        ("connection", &["protocol", "time"]),
        ("measure", &["plan", "protocol", "rng", "time", "workload"]),
        ("unsent", &["arrival", "protocol", "time", "workload"]),
        ("client", &["arrival", "connection", "plan", "protocol", "rng", "time", "unsent", "workload"]),
        ("plan::validate", &["arrival", "client::route", "dist", "plan", "protocol", "time", "workload"]),
        ("server", &["connection::outbox", "dist", "protocol", "rng", "time"]),
    ],
    unsafe_code: &[],
    banned_paths: &[
        ("std::net", "sockets belong to the engine"),
        ("std::os", "the operating system belongs to the engine"),
        ("std::fs", "files belong to the tool"),
        ("std::env", "the environment belongs to the tool"),
        ("std::process", "processes belong to the tool"),
        ("std::thread", "threads belong to the engine"),
        ("std::sync", "nothing is shared between threads here"),
        ("std::time::Instant", "times are given, never asked for"),
        ("std::time::SystemTime", "times are given, never asked for"),
        ("std::io::stdin", "input is given as bytes"),
        ("std::io::stdout", "results are returned, never printed"),
        ("std::io::stderr", "results are returned, never printed"),
    ],
    // Addresses are data: a Plan holds them as text.
    allowed_paths: &["std::net::IpAddr", "std::net::Ipv6Addr", "std::sync::Arc"],
    banned_macros: PRINTING,
    pure: &[],
    peer_data: &["protocol", "connection", "client"],
};

const ENGINE: Floor = Floor {
    package: "pummel-engine",
    directory: "crates/engine",
    below: &["pummel-logic"],
    foreign: &["clap", "indicatif", "ratatui", "tokio", "tonic"],
    modules: &[
        ("sys", &[]),
        ("clock", &["sys"]),
        ("backend::tls", &["backend", "resolve"]),
        ("backend", &["clock", "sys"]),
        ("resolve", &["backend", "clock", "sys"]),
        ("worker::trouble", &["backend"]),
        ("worker::messages", &["sys", "worker::trouble"]),
        ("worker::message_sender", &["worker::messages"]),
        ("worker::departures", &["worker::messages", "worker::trouble"]),
        ("worker::churn_account", &[]),
        ("worker::stamping", &["backend"]),
        ("worker::meeting", &[]),
        ("worker::opening", &["backend"]),
        ("worker::silence", &[]),
        ("worker::deadlines", &[]),
        (
            "worker::reporter",
            &[
                "backend",
                "worker::churn_account",
                "worker::departures",
                "worker::message_sender",
                "worker::messages",
                "worker::stamping",
                "worker::trouble",
            ],
        ),
        ("worker", &["backend", "clock", "resolve"]),
        ("evidence", &["backend", "clock", "resolve", "sys", "worker::trouble"]),
        ("run", &["backend", "clock", "evidence", "resolve", "sys", "worker"]),
    ],
    unsafe_code: &["sys", "backend"],
    banned_paths: &[],
    allowed_paths: &[],
    banned_macros: PRINTING,
    pure: &[],
    peer_data: &[],
};

const TOOL: Floor = Floor {
    package: "pummel",
    directory: "crates/tool",
    below: &["pummel-logic", "pummel-engine"],
    foreign: &[],
    modules: &[
        ("write_queue", &[]),
        ("stderr", &["write_queue"]),
        ("values", &[]),
        ("exit_status", &["stderr"]),
        ("report", &[]),
        ("report::output", &[]),
        ("job", &["report"]),
        ("job::background_writer", &["write_queue"]),
        ("job::rate_search", &[]),
        ("job::output_file", &["report"]),
        ("job::samples", &["job::output_file", "report", "write_queue"]),
        ("job::result_files", &["job", "job::samples", "report"]),
        ("job::unpacked", &[]),
        ("job::inputs", &["compat", "job::unpacked", "stderr"]),
        ("job::runner", &["controller", "job"]),
        ("job::style", &["exit_status", "job::runner", "report"]),
        ("job::outlets", &["job::background_writer", "job::output_file", "job::style", "report", "stderr"]),
        (
            "job::driver",
            &[
                "exit_status",
                "job",
                "job::inputs",
                "job::outlets",
                "job::result_files",
                "job::runner",
                "job::style",
                "report",
                "stderr",
            ],
        ),
        ("native", &["job", "report", "values"]),
        ("native::report", &["native::report_agents", "report"]),
        ("native::report_agents", &["report"]),
        ("native::saved", &["job", "values"]),
        ("native::style", &["exit_status", "job", "job::runner", "job::style", "native::report", "report"]),
        ("compat", &["job", "report", "values"]),
        ("compat::mcperf::style", &["compat", "exit_status", "job::runner", "job::samples", "job::style"]),
        (
            "compat::mcperf::command",
            &["compat", "compat::mcperf::style", "exit_status", "job::driver", "job::outlets", "stderr"],
        ),
        ("compat::memaslap::style", &["compat", "exit_status", "job::runner", "job::style"]),
        (
            "compat::memaslap::command",
            &["compat", "compat::memaslap::style", "exit_status", "job", "job::driver", "report", "stderr"],
        ),
        ("compat::mutilate::style", &["compat", "exit_status", "job::runner", "job::style"]),
        (
            "compat::mutilate::command",
            &[
                "agent",
                "commands::agent",
                "compat",
                "compat::mutilate::style",
                "controller",
                "exit_status",
                "job",
                "job::driver",
                "job::outlets",
                "job::rate_search",
                "job::runner",
                "job::style",
                "report",
                "stderr",
            ],
        ),
        ("launch", &["job", "stderr"]),
        ("agent", &["job::inputs", "report", "stderr"]),
        ("controller", &["agent", "job", "launch", "report", "stderr"]),
        ("serve", &["job::output_file", "stderr", "values"]),
        ("commands", &[]),
        ("commands::agent_cert", &["exit_status", "job", "report", "stderr"]),
        (
            "commands::agent",
            &["agent", "commands::agent_cert", "exit_status", "job", "launch", "native", "stderr", "values"],
        ),
        ("commands::demo", &["exit_status", "job", "native", "report", "stderr", "values"]),
        (
            "commands::explain",
            &["cli", "compat", "exit_status", "job", "native", "report", "stderr", "values"],
        ),
        ("commands::man_pages", &["exit_status", "stderr"]),
        ("commands::stored", &["report"]),
        ("commands::show", &["commands::stored", "exit_status", "job", "native::report", "report", "stderr"]),
        ("commands::page", &["commands::stored", "exit_status", "report", "stderr"]),
        ("commands::schema", &["exit_status", "report", "stderr"]),
        ("commands::table", &["compat", "exit_status", "report", "stderr"]),
        ("commands::single", &["exit_status", "job", "job::driver", "native::style"]),
        (
            "commands::series",
            &[
                "exit_status",
                "job",
                "job::driver",
                "job::rate_search",
                "job::runner",
                "job::style",
                "native",
                "report",
                "stderr",
                "values",
            ],
        ),
        (
            "cli",
            &[
                "commands::agent",
                "commands::demo",
                "commands::explain",
                "commands::man_pages",
                "commands::page",
                "commands::schema",
                "commands::series",
                "commands::show",
                "commands::table",
                "native",
                "serve",
                "values",
            ],
        ),
    ],
    unsafe_code: &[],
    banned_paths: &[],
    allowed_paths: &[],
    banned_macros: &["dbg"],
    pure: &[
        "compat",
        "compat::mcperf::style",
        "compat::memaslap::style",
        "compat::mutilate::style",
        "native",
        "native::report",
        "native::report_agents",
        "native::saved",
        "native::style",
        "report",
        "values",
    ],
    peer_data: &[],
};

/// What a pure module may not name, and why. The floors below ban more for whole crates.
pub const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "files are opened by the driver, or by the reader that a front is given"),
    ("std::env", "the environment is read by commands"),
    ("std::net", "names are resolved by commands"),
    ("std::process", "processes are started by commands"),
    ("std::thread", "threads are started by the driver"),
    ("std::time::Instant", "an event comes with its moment"),
    ("std::time::SystemTime::now", "an event comes with its moment"),
    ("pummel_engine::clock", "an event comes with its moment"),
];

const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];
