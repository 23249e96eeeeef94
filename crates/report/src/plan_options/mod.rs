//! The options of `pummel run` by the fields of a Plan that they decide: the one table that command lines, refusals, comparisons, saved
//! plans and the tables of documents read.

mod form;

use serde_json::Value;

pub(crate) use self::form::{Form, NOT_GIVEN, at, one_line, value_words};

/// A field of a Plan, and the option that decides it.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Path of the field in a Plan; `[]` stands for the number or the name of an item.
    pub path: &'static str,
    /// Option of `pummel run` that decides the field; empty for a field of saved plans and of other command lines alone.
    pub flag: &'static str,
    /// Value of the option, or of the field, where it is not given; empty where there is none.
    pub default: &'static str,
    /// Whether another value makes another load. The servers, the draws, the goals and what a result has in addition do not.
    pub(crate) is_of_the_load: bool,
    /// Words for the field; empty where the option says what it is.
    words: &'static str,
    /// Form in which the option writes the value of the field.
    form: Form,
}

/// A field that an option decides.
const fn option(path: &'static str, flag: &'static str, form: Form) -> OptionRow {
    OptionRow { path, flag, default: "", is_of_the_load: true, words: "", form }
}

/// A field of saved plans and of other command lines.
const fn field(path: &'static str, words: &'static str, form: Form) -> OptionRow {
    OptionRow { path, flag: "", default: "", is_of_the_load: true, words, form }
}

impl OptionRow {
    /// The row with the value that stands for none.
    const fn or(self, default: &'static str) -> OptionRow {
        OptionRow { default, ..self }
    }

    /// The row of a field that may differ without making another load.
    const fn beside_the_load(self) -> OptionRow {
        OptionRow { is_of_the_load: false, ..self }
    }

    /// The row with words for a field that is only a part of what its option decides.
    const fn called(self, words: &'static str) -> OptionRow {
        OptionRow { words, ..self }
    }

    /// Name of the field for people: its option, with words where the option decides other fields too.
    pub fn name(&self) -> String {
        match (self.words, self.flag) {
            ("", flag) => flag.to_owned(),
            (words, "") => words.to_owned(),
            (words, flag) => format!("{words} ({flag})"),
        }
    }

    /// The value of the field in a plan as its option writes it; `steps` lead to the field.
    pub(crate) fn value(&self, plan: &Value, steps: &[&str]) -> String {
        match at(plan, steps) {
            Value::Null if !self.default.is_empty() => self.default.to_owned(),
            _ => self.form.words(plan, steps),
        }
    }

    /// The steps of the path, with `[]` for each item of a list.
    pub(crate) fn steps(&self) -> Vec<&'static str> {
        steps_of(self.path)
    }
}

/// The steps of a path, with `[]` for an item of a list.
fn steps_of(path: &str) -> Vec<&str> {
    let step = |step| match str::strip_suffix(step, "[]") {
        Some(list) => vec![list, "[]"],
        None => vec![step],
    };
    path.split('.').flat_map(step).collect()
}

/// The row of the field with these steps, or of the nearest field around it that has a row.
pub(crate) fn row_at(steps: &[&str]) -> Option<&'static OptionRow> {
    let leads = |row: &&OptionRow| {
        let own = row.steps();
        own.len() <= steps.len() && own.iter().zip(steps).all(|(own, step)| *own == "[]" || own == step)
    };
    OPTIONS.iter().filter(leads).max_by_key(|row| row.steps().len())
}

/// The row of a field by its path, such as `groups[].depth`, or of the nearest field around it that has a row.
pub fn row_of(path: &str) -> Option<&'static OptionRow> {
    row_at(&steps_of(path))
}

/// The default of an option.
///
/// # Panics
/// Panics for an option without a row, or without a default.
pub fn default_of(flag: &str) -> &'static str {
    let row = OPTIONS.iter().find(|row| row.flag == flag && !row.default.is_empty());
    row.unwrap_or_else(|| panic!("{flag} has no default")).default
}

/// The path of the first field in a plan that has another value than without this option; `None` where there is none.
pub fn given_field(flag: &str, plan: &Value) -> Option<&'static str> {
    let is_given = |row: &&OptionRow| {
        let value = row.value(plan, &row.steps());
        value != NOT_GIVEN && value != row.default
    };
    OPTIONS.iter().filter(|row| row.flag == flag).find(is_given).map(|row| row.path)
}

/// The fields of a Plan with their options, in the order of the options' help.
pub const OPTIONS: &[OptionRow] = &[
    field("schema", "layout of the plan", Form::Plain),
    option("servers", "--server", Form::List).beside_the_load(),
    option("route", "--route", Form::Plain).or("all"),
    option("cluster.redirects", "--redirects", Form::Plain).or("5"),
    option("cluster.by_ip", "--cluster-ip", Form::Switch).beside_the_load(),
    option("cluster.rewrite", "--rewrite", Form::Rewrites).beside_the_load(),
    option("cluster.refresh_ns", "--cluster-refresh", Form::Time).beside_the_load(),
    option("cluster.read_from", "--read-from", Form::Plain).or("primary"),
    option("protocol", "--protocol", Form::Plain),
    option("transport", "--udp", Form::Word("udp")),
    option("tls", "--tls", Form::Given),
    option("tls.ca", "--tls-ca", Form::Plain),
    option("tls.cert", "--tls-cert", Form::Plain),
    option("tls.key", "--tls-key", Form::Plain),
    option("tls.server_name", "--tls-server-name", Form::Plain),
    option("tls.insecure", "--tls-insecure", Form::Switch),
    option("login.user", "--user", Form::Plain),
    option("login.password_file", "--password-file", Form::Plain),
    option("database", "--database", Form::Plain).or("0"),
    option("tracking", "--tracking", Form::Plain),
    option("timeout_ns", "--timeout", Form::Time).or("1s"),
    option("reconnect", "--reconnect", Form::Switch),
    option("retry", "--retry", Form::Given),
    option("retry.kinds", "--retry", Form::List),
    option("retry.for_ns", "--retry-for", Form::Time).or("10s"),
    option("failed_keys", "--failed-keys", Form::Switch).beside_the_load(),
    option("phases[].stop", "--time", Form::Given),
    option("phases[].stop.time_ns", "--time", Form::Time),
    option("phases[].stop.requests", "--requests", Form::Plain),
    option("adaptive.settle", "--warmup", Form::WarmUp),
    option("adaptive.settle.discard_ns", "--warmup", Form::Time).called("time that is ignored"),
    option("adaptive.settle.block_ns", "--warmup", Form::Time).called("block"),
    option("adaptive.first_eviction", "--warmup-until", Form::WarmUpUntil),
    option("adaptive.until", "--until", Form::Until),
    option("adaptive.until.least_ns", "--min-time", Form::Time).or("5s"),
    option("engine.threads", "--threads", Form::Plain).or("1"),
    field("groups", "groups of clients", Form::Names),
    field("groups[].name", "name of a group", Form::Plain),
    option("groups[].clients", "--connections", Form::Plain).or("50"),
    option("groups[].depth", "--depth", Form::Depth).or("1"),
    option("changes.rate", "--rate", Form::Shape),
    option("groups[].rate", "--rate", Form::Rate),
    option("changes.parts", "--stage", Form::Names).called("parts of the load"),
    option("changes.parts[].name", "--phases", Form::Plain).called("name of a part"),
    option("changes.parts[].at_ns", "--phases", Form::Time).called("beginning of a part"),
    option("changes.parts[].ops", "--phases", Form::Operations).called("mix of a part"),
    option("changes.parts[].popularity", "--phases", Form::Plain).called("popularity of a part"),
    option("changes.parts[].churn", "--phases", Form::Plain).called("churn of a part"),
    option("changes.parts[].connections", "--stage-connections", Form::Plain).called("connections of a part"),
    option("changes.events", "--phases", Form::Events).called("events"),
    option("changes.burst", "--burst", Form::Burst),
    option("groups[].arrivals", "--arrivals", Form::Arrivals),
    option("groups[].connection_churn.clients_started", "--conn-rate", Form::ConnectionRate),
    option("groups[].connection_churn.clients_started.open.rate", "--conn-rate", Form::Rate),
    option("groups[].connection_churn.clients_started.open.arrivals", "--arrivals", Form::Arrivals),
    field("groups[].connection_churn.clients_started.drawn", "gaps between clients", Form::Tagged),
    option("groups[].connection_churn.calls", "--calls-per-connection", Form::Plain),
    option("seed", "--seed", Form::Plain).beside_the_load(),
    option("interval_ns", "--interval", Form::Time).or("1s"),
    option("goals", "--goal", Form::Goals).beside_the_load(),
    option("phases[].work.mix", "--mix", Form::Given).called("requests of a mix"),
    option("phases[].work.mix.ops", "--mix", Form::Operations),
    option("phases[].work.mix.in_turns", "--mix-order", Form::Turns),
    option("commands", "--command", Form::Commands),
    option("commands[].expect", "--command-expect", Form::Plain),
    field("commands[].inline", "commands in the inline form", Form::Plain),
    option("load_command", "--load-command", Form::Given),
    option("load_command.template", "--load-command", Form::Plain),
    option("load_command.per_record", "--load-per-record", Form::Plain),
    option("dataset", "--dataset", Form::Given),
    option("dataset.path", "--dataset", Form::Plain),
    option("dataset.order", "--dataset-order", Form::Plain),
    option("script", "--script", Form::Given),
    option("script.path", "--script", Form::Plain),
    option("script.text", "--script", Form::Plain).called("text of the script"),
    option("phases[].work.mix.popularity", "--popularity", Form::Plain).or("uniform"),
    field("phases[].work.mix.popularity_of", "popularity of operations", Form::Operations),
    option("phases[].work.mix.multiget", "--multiget", Form::Plain).or("1"),
    option("phases[].work.mix.fresh", "--fresh", Form::Plain).or("0"),
    option("phases[].work.mix.absent", "--absent", Form::Plain).or("0"),
    option("phases[].work.mix.churn", "--churn", Form::Plain),
    option("phases[].work.mix.read_modify_write", "--read-modify-write", Form::Plain).or("0"),
    option("phases[].work.mix.inserts", "--insert", Form::Switch),
    option("phases[].work.mix.scans", "--scan-as", Form::Switch),
    option("phases[].work.mix.multiset", "--multiset", Form::Plain).or("1"),
    option("phases[].work.mix.meta.vivify_s", "--vivify", Form::Plain),
    option("phases[].work.mix.meta.recache_s", "--recache", Form::Plain),
    option("phases[].work.mix.meta.stale_s", "--stale", Form::Plain),
    option("phases[].work.mix.meta.details", "--meta-details", Form::Switch),
    option("phases[].work.mix.read_through_ns", "--read-through", Form::ReadThrough),
    option("phases[].work.mix.fill_delay_s", "--read-through", Form::ReadThrough),
    option("phases[].work.mix.fill", "--fill", Form::Plain).or("set"),
    option("phases[].work.mix.noreply", "--noreply", Form::Switch),
    option("verify", "--verify", Form::Plain),
    option("phases[].work.audit", "--audit", Form::Given).beside_the_load(),
    option("phases[].work.pause.for_ns", "--settle", Form::Time).or("5s").beside_the_load(),
    option("phases[].work.load", "--mix", Form::Loaded).called("loaded records"),
    option("phases[].work.load.depth", "--depth", Form::Plain)
        .called("requests outstanding while records are loaded"),
    option("phases[].work.trace", "--trace", Form::Given).called("requests of a trace"),
    option("phases[].work.trace.paths", "--trace", Form::List),
    option("phases[].work.trace.format", "--trace-format", Form::Plain),
    option("phases[].work.trace.pace", "--pace", Form::Pace),
    option("phases[].work.trace.within_second", "--within-second", Form::Plain),
    option("phases[].work.trace.by", "--trace-by", Form::Plain),
    option("phases[].work.trace.map", "--trace-map", Form::Rewrites),
    option("phases[].work.trace.ttl", "--trace-ttl", Form::Plain),
    option("phases[].work.trace.passes", "--loop", Form::Plain),
    option("phases[].work.trace.fresh_passes", "--loop-fresh", Form::Switch),
    option("phases[].work.trace.from_ns", "--trace-from", Form::Time),
    option("phases[].work.trace.to_ns", "--trace-to", Form::Time),
    option("phases[].work.trace.sample", "--trace-sample", Form::Plain),
    option("phases[].work.trace.amplify", "--trace-amplify", Form::Plain),
    option("phases[].work.trace.fills", "--fills", Form::Plain),
    option("phases[].work.trace.fill_delay_ns", "--read-through", Form::ReadThrough),
    option("phases[].work.trace.fill_delay_s", "--read-through", Form::ReadThrough),
    option("phases[].work.trace.missing_size", "--missing-size", Form::Dist),
    option("phases[].work.trace.value_max_bytes", "--max-value", Form::Plain),
    field("phases[].work.trace.stores_only", "only the stores of the trace", Form::Switch),
    option("data.records", "--records", Form::Plain).or("10k"),
    option("data.key_size", "--key-size", Form::Dist).or("30"),
    option("data.value_size", "--value-size", Form::Dist).or("200"),
    option("data.value_classes", "--workload", Form::Sizes).called("sizes of values by popularity"),
    option("data.value_compress", "--value-compress", Form::Plain).or("1"),
    field("data.value_filler", "character that values are filled with", Form::Plain),
    option("data.key_prefix", "--key-prefix", Form::Plain),
    option("data.key_tag", "--key-tag", Form::Plain),
    field("data.first_key", "number of the first key", Form::Plain).or("0"),
    option("data.slots", "--slots", Form::List),
    option("data.expiry_s", "--ttl", Form::Seconds).or("0"),
    option("data.style.expiry_jitter_percent", "--ttl-jitter", Form::Plain).or("0"),
    option("data.style.field_bytes", "--protocol", Form::Plain).called("length of a hash's field name"),
    field("data.style.keys", "rule for keys", Form::Plain),
    field("data.style.values", "rule for values", Form::Plain),
    option("allow_partial_load", "--allow-partial-load", Form::Switch),
    option("data.seed", "--data-seed", Form::Plain).or("0"),
    option("engine.backend", "--backend", Form::Plain).or("auto"),
    option("engine.wait", "--wait", Form::Plain).or("auto"),
    option("engine.clock", "--clock", Form::Plain).or("kernel"),
    option("evidence", "--no-evidence", Form::Opposite).beside_the_load(),
    option("baseline", "--no-baseline", Form::Opposite).beside_the_load(),
    option("probe", "--probe", Form::Switch).beside_the_load(),
    option("anonymous", "--anonymous", Form::Switch).beside_the_load(),
    option("server_stats_ns", "--server-stats", Form::Time).beside_the_load(),
    option("server_stats_at", "--server-stats-at", Form::List).beside_the_load(),
    option("engine.stamps", "--stamps", Form::Stamps),
    option("engine.cpus", "--cpus", Form::List),
    option("socket.source", "--source", Form::List),
    option("socket.nodelay", "--no-nodelay", Form::Opposite),
    option("socket.linger_s", "--linger", Form::Plain),
    option("socket.send_buffer", "--send-buffer", Form::Plain),
    option("socket.recv_buffer", "--recv-buffer", Form::Plain),
    option("labels", "--label", Form::Plain),
    option("fail_on", "--fail-on", Form::List).beside_the_load(),
    field("phases", "phases", Form::Names),
    field("phases[].name", "name of a phase", Form::Plain),
    field("phases[].recorded", "measured phase", Form::Switch),
    field("groups[].policy.block", "neighbouring clients of one server", Form::Plain).or("1"),
    field("groups[].policy.ends_on_time", "nothing is sent after the end of a phase", Form::Switch),
    field("groups[].policy.here", "clients of the controller", Form::Switch),
    field("groups[].policy.late", "late requests", Form::Plain).or("kept"),
    field("groups[].policy.same_draws", "all clients draw the same", Form::Switch),
    field("groups[].policy.spaced", "least gap between requests", Form::Switch),
    field("groups[].policy.successes_only", "times of successes alone", Form::Switch),
    field("groups[].policy.whole", "end at the loss of a connection", Form::Switch),
    field("groups[].connection_churn.sequence", "requests of mcperf", Form::Given),
    field("groups[].connection_churn.sequence.bogus", "word that no server knows", Form::Switch),
    field("groups[].connection_churn.sequence.calls", "gaps between the requests of a client", Form::Tagged),
    field("groups[].connection_churn.sequence.instance", "seed of an instance", Form::Plain),
    field("groups[].connection_churn.sequence.offset", "first number of a key", Form::Plain),
    field("groups[].connection_churn.sequence.sizes", "lengths of values", Form::Tagged),
    field("groups[].connection_churn.sequence.stride", "distance of the numbers of keys", Form::Plain),
    field("phases[].work.window", "requests of memaslap", Form::Given),
    field("phases[].work.window.expire", "share of stores with an expiry", Form::Plain),
    field("phases[].work.window.get", "share of gets", Form::Plain),
    field("phases[].work.window.keys", "lengths of keys", Form::Ranges),
    field("phases[].work.window.multiget", "keys of each read", Form::Plain),
    field("phases[].work.window.objects", "objects of each client", Form::Plain),
    field("phases[].work.window.overwrite", "share of objects that are replaced", Form::Plain),
    field("phases[].work.window.pool.block", "neighbouring clients of one server of a pool", Form::Plain),
    field("phases[].work.window.pool.datagrams", "gets by UDP", Form::Switch),
    field("phases[].work.window.pool.replication.writers", "servers that are written to", Form::Plain),
    field("phases[].work.window.pool.sockets", "sockets of each client", Form::Plain),
    field("phases[].work.window.preset", "objects that are only stored", Form::Switch),
    field("phases[].work.window.seed", "seed of texts and lengths", Form::Plain),
    field("phases[].work.window.set", "share of sets", Form::Plain),
    field("phases[].work.window.values", "lengths of values of a window", Form::Ranges),
    field("phases[].work.window.verbose", "messages about single requests", Form::Switch),
    field("phases[].work.window.verify", "share of values that are checked", Form::Plain),
    field("phases[].work.replay", "requests of a recording", Form::Given),
    field("phases[].work.replay.format", "format of the recording", Form::Plain),
    field("phases[].work.replay.path", "recording", Form::Plain),
    field("phases[].work.replay.read_through_ns", "delay before a missed key is stored", Form::Time),
    field("phases[].work.replay.reads_only", "reads of the recording alone", Form::Switch),
    field("phases[].work.delete", "deletion of records", Form::Given),
    field("phases[].work.delete.depth", "requests outstanding while records are deleted", Form::Plain),
    field("phases[].work.delete.share", "share of records that are deleted", Form::Plain),
    field("phases[].work.pause", "pause", Form::Given),
    field("phases[].work.pause.until_ns", "end of the pause", Form::Time),
    field("phases[].work.audit.depth", "requests outstanding while records are read back", Form::Plain),
];

#[cfg(test)]
mod tests;
