//! Differences between the plans, the machines and the servers of two sides, named after the options that decide them.

use pummel_logic::plan::{Arrivals, Goal, Plan, TransmitSampling, Until};
use pummel_logic::time::typed_time;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::side::{Difference, plan_differences};
use crate::json_layout::json_value;

/// Most characters of a value that is shown.
const VALUE_CHARS_MAX: usize = 60;

/// Text for a value that one side does not have.
const NOT_GIVEN: &str = "not given";

/// A difference as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceWords {
    /// Name of the difference: an option of `pummel run` if one decides it.
    pub name: String,
    /// Value of each side.
    pub values: [String; 2],
    /// The field by which the sides were found to differ.
    pub field: String,
    /// Whether the load differs.
    pub is_of_the_load: bool,
}

/// How an option writes what its field of a Plan holds.
#[derive(Clone, Copy)]
enum Form {
    /// The value as it is in the plan.
    Plain,
    /// A time in nanoseconds.
    Time,
    /// A time in seconds.
    Seconds,
    /// Requests per second.
    Rate,
    /// An option without a value, given where the field is true.
    Switch,
    /// An option without a value, given where the field is false.
    Opposite,
    /// Items with commas between them.
    List,
    /// Operations and their weights.
    Operations,
    /// How many requests a client may have outstanding.
    Depth,
    Arrivals,
    Goals,
    Until,
    Stamps,
    /// The warm-up, of which a Plan has a phase and how that ends.
    WarmUp,
    /// A value too large for a line: only whether it is present.
    Presence,
}

/// The options of `pummel run` by the fields of the Plan that they decide; `*` stands for the item of a list. The first that is the
/// beginning of a path counts.
const OPTIONS: [(&str, &str, Form); 84] = [
    ("servers", "--server", Form::List),
    ("route", "--route", Form::Plain),
    ("protocol", "--protocol", Form::Plain),
    ("transport", "--udp", Form::Presence),
    ("seed", "--seed", Form::Plain),
    ("interval_ns", "--interval", Form::Time),
    ("timeout_ns", "--timeout", Form::Time),
    ("reconnect", "--reconnect", Form::Switch),
    ("verify", "--verify", Form::Plain),
    ("goals", "--goal", Form::Goals),
    ("engine.threads", "--threads", Form::Plain),
    ("engine.cpus", "--cpus", Form::List),
    ("engine.backend", "--backend", Form::Plain),
    ("engine.wait", "--wait", Form::Plain),
    ("engine.clock", "--clock", Form::Plain),
    ("engine.stamps", "--stamps", Form::Stamps),
    ("socket.nodelay", "--no-nodelay", Form::Opposite),
    ("socket.linger_s", "--linger", Form::Plain),
    ("socket.send_buffer", "--send-buffer", Form::Plain),
    ("socket.recv_buffer", "--recv-buffer", Form::Plain),
    ("socket.source", "--source", Form::List),
    ("login.user", "--user", Form::Plain),
    ("login.password_file", "--password-file", Form::Plain),
    ("login", "--user", Form::Presence),
    ("tls.ca", "--tls-ca", Form::Plain),
    ("tls.cert", "--tls-cert", Form::Plain),
    ("tls.key", "--tls-key", Form::Plain),
    ("tls.server_name", "--tls-server-name", Form::Plain),
    ("tls.insecure", "--tls-insecure", Form::Switch),
    ("tls", "--tls", Form::Presence),
    ("database", "--database", Form::Plain),
    ("command", "--command", Form::Plain),
    ("data.records", "--records", Form::Plain),
    ("data.seed", "--data-seed", Form::Plain),
    ("data.key_prefix", "--key-prefix", Form::Plain),
    ("data.key_size", "--key-size", Form::Plain),
    ("data.value_size", "--value-size", Form::Plain),
    ("data.value_classes", "sizes of values by popularity (--workload)", Form::Presence),
    ("data.expiry_s", "--ttl", Form::Seconds),
    ("data.style.expiry_jitter_percent", "--ttl-jitter", Form::Plain),
    ("allow_partial_load", "--allow-partial-load", Form::Switch),
    ("evidence", "--no-evidence", Form::Opposite),
    ("probe", "--probe", Form::Switch),
    ("anonymous", "--anonymous", Form::Switch),
    ("server_stats_ns", "--server-stats", Form::Time),
    ("server_stats_at", "--server-stats-at", Form::List),
    ("adaptive.settle", "--warmup", Form::WarmUp),
    ("adaptive.until", "--until", Form::Until),
    ("fail_on", "--fail-on", Form::List),
    ("changes.rate", "--rate, which changes", Form::Presence),
    ("changes.burst", "--burst", Form::Presence),
    ("changes.parts", "--phases", Form::Presence),
    ("changes.events", "events of --phases", Form::Presence),
    ("groups.*.clients", "--connections", Form::Plain),
    ("groups.*.depth", "--depth", Form::Depth),
    ("groups.*.arrivals", "--arrivals", Form::Arrivals),
    ("groups.*.rate", "--rate", Form::Rate),
    ("groups.*.connection_churn.calls", "--calls-per-connection", Form::Plain),
    ("groups.*.connection_churn.clients_started.open.rate", "--conn-rate", Form::Rate),
    ("groups.*.connection_churn", "--calls-per-connection", Form::Presence),
    ("phases.*.stop.requests", "--requests", Form::Plain),
    ("phases.*.work.mix.ops", "--mix", Form::Operations),
    ("phases.*.work.mix.popularity", "--popularity", Form::Plain),
    ("phases.*.work.mix.multiget", "--multiget", Form::Plain),
    ("phases.*.work.mix.multiset", "--multiset", Form::Plain),
    ("phases.*.work.mix.fresh", "--fresh", Form::Plain),
    ("phases.*.work.mix.absent", "--absent", Form::Plain),
    ("phases.*.work.mix.churn", "--churn", Form::Presence),
    ("phases.*.work.mix.read_through_ns", "--read-through", Form::Time),
    ("phases.*.work.mix.fill_delay_s", "--read-through", Form::Seconds),
    ("phases.*.work.mix.fill", "--fill", Form::Plain),
    ("phases.*.work.mix.read_modify_write", "--read-modify-write", Form::Plain),
    ("phases.*.work.mix.inserts", "--insert", Form::Switch),
    ("phases.*.work.mix.scans", "--scan-as", Form::Presence),
    ("phases.*.work.mix.noreply", "--noreply", Form::Switch),
    ("phases.*.work.mix.meta.vivify_s", "--vivify", Form::Plain),
    ("phases.*.work.mix.meta.recache_s", "--recache", Form::Plain),
    ("phases.*.work.mix.meta.stale_s", "--stale", Form::Plain),
    ("phases.*.work.mix.meta.details", "--meta-details", Form::Switch),
    ("phases.*.work.mix.meta", "requests of the meta protocol", Form::Presence),
    ("phases.*.work.load", "what is loaded (--mix)", Form::Presence),
    ("phases.*.work.trace.paths", "--trace", Form::List),
    ("phases.*.work.trace", "options of --trace", Form::Presence),
    ("phases.*.work", "what is asked (--mix, --trace)", Form::Presence),
];

/// The differences between two sides with these plans, in words, each option once, in the order of the Plan.
pub(super) fn words_of_all(differences: &[Difference], plans: [&Plan; 2]) -> Vec<DifferenceWords> {
    let plans = plans.map(plan_value);
    let mut all: Vec<DifferenceWords> = Vec::new();
    for difference in differences {
        let words = words_of(difference, &plans);
        if all.iter().all(|known| known.name != words.name) {
            all.push(words);
        }
    }
    // Of a closed loop that has no rate the arrivals say nothing more.
    let is_closed = |words: &DifferenceWords| words.values.contains(&Arrivals::Closed.to_string());
    if all.iter().any(|words| words.name == "--rate") {
        all.retain(|words| words.name != "--arrivals" || !is_closed(words));
    }
    all
}

/// The options that decide the fields in which two plans differ, each once.
pub fn options_of<'a>(fields: impl Iterator<Item = &'a Difference>, plans: [&Plan; 2]) -> Vec<String> {
    let plans = plans.map(plan_value);
    let mut names: Vec<String> = Vec::new();
    for difference in fields {
        let name = words_of(difference, &plans).name;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The option of the first difference that makes the loads of two plans differ; `None` if their loads are equal.
pub fn load_difference(first: &Plan, second: &Plan) -> Option<String> {
    let found = plan_differences(first, second);
    let first_found = found.iter().filter(|difference| difference.is_of_the_load).take(1);
    options_of(first_found, [first, second]).pop()
}

fn plan_value(plan: &Plan) -> Value {
    json_value(&plan.told())
}

fn words_of(difference: &Difference, plans: &[Value; 2]) -> DifferenceWords {
    let (name, values) = match difference.name.strip_prefix("plan.") {
        Some(path) => of_plan(path, difference, plans),
        None => (source_name(&difference.name), difference.values.each_ref().map(value_words)),
    };
    DifferenceWords {
        name,
        values,
        field: difference.name.clone(),
        is_of_the_load: difference.is_of_the_load,
    }
}

/// The option of a field of the Plan, and its values.
fn of_plan(path: &str, difference: &Difference, plans: &[Value; 2]) -> (String, [String; 2]) {
    let steps: Vec<&str> = path.split('.').collect();
    if let ["phases", phase, rest @ ..] = steps.as_slice()
        && let Some(found) = of_phase(phase, rest, plans)
    {
        return found;
    }
    let begins = |pattern: &str| {
        let pattern: Vec<&str> = pattern.split('.').collect();
        let is_step = |(wanted, step): (&&str, &&str)| *wanted == "*" || wanted == step;
        (pattern.len() <= steps.len() && pattern.iter().zip(&steps).all(is_step)).then_some(pattern.len())
    };
    let found = OPTIONS.iter().find_map(|(pattern, flag, form)| Some((begins(pattern)?, *flag, *form)));
    let Some((length, flag, form)) = found else {
        return (format!("the plan's {path}"), difference.values.each_ref().map(value_words));
    };
    let steps = &steps[..length];
    let values = plans.each_ref().map(|plan| match form {
        Form::WarmUp => warm_up_words(plan),
        _ => form.words(at(plan, steps)),
    });
    (format!("{flag}{}", whose(steps, plans)), values)
}

/// The option of how a phase ends, or of whether there is one; `None` for what else a phase has.
fn of_phase(phase: &str, rest: &[&str], plans: &[Value; 2]) -> Option<(String, [String; 2])> {
    let steps = ["phases", phase];
    let either = |rest: &[&str]| {
        plans.iter().map(|plan| at(plan, &[&steps, rest].concat())).find(|found| !found.is_null())
    };
    let is_measured = either(&["recorded"]) == Some(&Value::Bool(true));
    let owner = whose(&steps, plans);
    match rest {
        [] if either(&["work", "load"]).is_some() => {
            let words = |plan| if at(plan, &steps).is_null() { "given" } else { NOT_GIVEN };
            Some((format!("--no-load{owner}"), plans.each_ref().map(|plan| words(plan).to_owned())))
        }
        [] | ["stop", "time_ns", ..] if !is_measured => {
            Some(("--warmup".to_owned(), plans.each_ref().map(warm_up_words)))
        }
        ["stop", "time_ns", ..] => {
            let time = |plan| Form::Time.words(at(plan, &["phases", phase, "stop", "time_ns"]));
            Some((format!("--time{owner}"), plans.each_ref().map(time)))
        }
        [] => {
            let words = |plan| if at(plan, &steps).is_null() { "not there" } else { "there" };
            let name = either(&["name"]).and_then(Value::as_str).unwrap_or(phase);
            Some((format!("phase {}", one_line(name)), plans.each_ref().map(|plan| words(plan).to_owned())))
        }
        _ => None,
    }
}

/// Which group or measured phase a value belongs to, where there are several.
fn whose(steps: &[&str], plans: &[Value; 2]) -> String {
    let [list @ ("groups" | "phases"), item, ..] = steps else { return String::new() };
    let counts = |item: &&Value| *list == "groups" || item["recorded"] == Value::Bool(true);
    let several =
        |plan: &Value| plan[*list].as_array().is_some_and(|all| all.iter().filter(counts).count() > 1);
    let name = plans.iter().find_map(|plan| at(plan, &[*list, *item])["name"].as_str().map(one_line));
    match name.filter(|_| plans.iter().any(several)) {
        Some(name) => format!(" ({} {name})", list.trim_end_matches('s')),
        None => String::new(),
    }
}

/// The value at a path; null if there is none. An item of a list is found by its number or by its name.
fn at<'a>(value: &'a Value, steps: &[&str]) -> &'a Value {
    steps.iter().fold(value, |value, step| match value {
        Value::Array(items) => {
            let named = || items.iter().find(|item| item["name"].as_str() == Some(step));
            step.parse().map_or_else(|_| named(), |place: usize| items.get(place)).unwrap_or(&Value::Null)
        }
        other => &other[*step],
    })
}

/// The value of `--warmup`.
fn warm_up_words(plan: &Value) -> String {
    let phases = plan["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_warm_up =
        |phase: &&Value| phase["recorded"] != Value::Bool(true) && phase["work"]["load"].is_null();
    let longest = phases.iter().find(is_warm_up).map(|phase| Form::Time.words(&phase["stop"]["time_ns"]));
    match (plan["adaptive"]["settle"].is_null(), longest) {
        (true, longest) => longest.unwrap_or_else(|| NOT_GIVEN.to_owned()),
        (false, Some(longest)) => format!("auto:{longest}"),
        (false, None) => "auto".to_owned(),
    }
}

impl Form {
    /// The value as its option writes it.
    fn words(self, value: &Value) -> String {
        let plain = || value_words(value);
        let switch = |is_given: bool| if is_given { "given" } else { NOT_GIVEN }.to_owned();
        match self {
            Form::Switch => return switch(*value == Value::Bool(true)),
            Form::Opposite => return switch(*value == Value::Bool(false)),
            Form::Presence => {
                return if value.is_null() { NOT_GIVEN } else { "given (its values are in the JSON)" }
                    .to_owned();
            }
            _ if value.is_null() => return NOT_GIVEN.to_owned(),
            _ => {}
        }
        match self {
            Form::Time => value.as_u64().map_or_else(plain, typed_time),
            Form::Seconds => {
                value.as_str().filter(|words| *words != "0").map_or_else(|| NOT_GIVEN.to_owned(), one_line)
            }
            Form::Rate => value.as_f64().map_or_else(plain, rate_words),
            Form::List => match value.as_array() {
                Some(items) if items.is_empty() => NOT_GIVEN.to_owned(),
                Some(items) => one_line(&items.iter().map(value_words).collect::<Vec<String>>().join(",")),
                None => plain(),
            },
            Form::Operations => read::<Vec<(String, f64)>>(value).map_or_else(plain, |ops| {
                one_line(
                    &ops.iter()
                        .map(|(op, weight)| format!("{op}:{weight}"))
                        .collect::<Vec<String>>()
                        .join(","),
                )
            }),
            Form::Depth => value.get("limit").map_or_else(plain, value_words),
            Form::Arrivals => {
                read::<Arrivals>(value).map_or_else(plain, |arrivals| one_line(&arrivals.to_string()))
            }
            Form::Goals => match read::<Vec<Goal>>(value) {
                Some(goals) if goals.is_empty() => NOT_GIVEN.to_owned(),
                Some(goals) => {
                    one_line(&goals.iter().map(Goal::to_string).collect::<Vec<String>>().join(","))
                }
                None => plain(),
            },
            Form::Until => read::<Until>(value).map_or_else(plain, |until| {
                format!("p{}:{}%", short(until.quantile * 100.0), short(until.half_width * 100.0))
            }),
            Form::Stamps => read::<TransmitSampling>(value).map_or_else(plain, |stamps| stamps.to_string()),
            Form::Plain | Form::WarmUp | Form::Switch | Form::Opposite | Form::Presence => plain(),
        }
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_slice(value.to_string().as_bytes()).ok()
}

/// A number without superfluous digits: 99, 99.9, 0.3.
fn short(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Requests per second as they are typed: 500, 20k, 1.5m.
fn rate_words(rate: f64) -> String {
    for (unit, letter) in [(1e6, "m"), (1e3, "k")] {
        if rate >= unit {
            return format!("{}{letter}", short(rate / unit));
        }
    }
    short(rate)
}

/// The displayed name of a fact about a server, a machine or the tool.
fn source_name(path: &str) -> String {
    let words = |steps: &[&str]| one_line(&steps.join(" ").replace('_', " "));
    let steps: Vec<&str> = path.split('.').collect();
    // Items are counted from 1 by people.
    let number =
        |place: &str| place.parse::<usize>().map_or_else(|_| place.to_owned(), |at| (at + 1).to_string());
    match steps.as_slice() {
        ["server", place, rest @ ..] => format!("server {}: {}", number(place), words(rest)),
        ["machine", place, rest @ ..] if place.parse::<usize>().is_ok() => {
            format!("machine {}: {}", number(place), words(rest))
        }
        ["machine", rest @ ..] => format!("machine: {}", words(rest)),
        ["tool", "version"] => "version of pummel".to_owned(),
        ["program", ..] => "program of the server".to_owned(),
        ["labels", rest @ ..] => format!("--label {}", one_line(&rest.join("."))),
        steps => words(steps),
    }
}

/// A value as one line of at most 60 characters.
fn value_words(value: &Value) -> String {
    match value {
        Value::Null => NOT_GIVEN.to_owned(),
        Value::String(text) if text.is_empty() => "nothing".to_owned(),
        Value::String(text) => one_line(text),
        Value::Number(number) => {
            number.as_f64().filter(|_| number.is_f64()).map_or_else(|| number.to_string(), short)
        }
        other => one_line(&other.to_string()),
    }
}

/// Words as one line of at most 60 characters. A result may come from elsewhere, so its words must not contain line
/// ends or terminal commands.
fn one_line(words: &str) -> String {
    let clean = |letter: char| if letter.is_control() { '?' } else { letter };
    let mut line: String = words.chars().map(clean).take(VALUE_CHARS_MAX).collect();
    if words.chars().count() > VALUE_CHARS_MAX {
        line += "...";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_stands_behind_one_that_takes_its_fields() {
        for (place, (pattern, flag, _)) in OPTIONS.iter().enumerate() {
            let before = OPTIONS[..place].iter().find(|(earlier, ..)| {
                pattern == earlier || pattern.strip_prefix(earlier).is_some_and(|rest| rest.starts_with('.'))
            });
            assert!(before.is_none(), "{flag} ({pattern}) is never found: {:?}", before.map(|found| found.0));
        }
    }

    #[test]
    fn values_are_written_as_they_are_typed() {
        let words = |form: Form, text: &str| form.words(&serde_json::from_str(text).expect("JSON"));
        for (form, value, typed) in [
            (Form::Rate, "20000.0", "20k"),
            (Form::Rate, "1500000.0", "1.5m"),
            (Form::Rate, "12.5", "12.5"),
            (Form::Time, "1500000000", "1500ms"),
            (Form::Depth, "{\"limit\": 4}", "4"),
            (Form::Depth, "\"unlimited\"", "unlimited"),
            (Form::Operations, "[[\"get\", 9.0], [\"set\", 0.5]]", "get:9,set:0.5"),
            (Form::Arrivals, "\"constant\"", "constant gaps"),
            (Form::Goals, "[{\"quantile\": 0.99, \"limit_ns\": 1000000}]", "p99:1ms"),
            (Form::Until, "{\"quantile\": 0.99, \"half_width\": 0.02, \"least_ns\": 0}", "p99:2%"),
            (Form::Switch, "true", "given"),
            (Form::Opposite, "false", "given"),
            (Form::Opposite, "null", "not given"),
            (Form::Seconds, "\"0\"", "not given"),
            (Form::List, "[\"a:1\", \"b:2\"]", "a:1,b:2"),
        ] {
            assert_eq!(words(form, value), typed, "{value}");
        }
        // A result of elsewhere may hold anything.
        assert_eq!(words(Form::Rate, "\"a\\u001bb\""), "a?b");
        assert_eq!(words(Form::Plain, &format!("\"{}\"", "x".repeat(300))).chars().count(), 63);
    }

    #[test]
    fn facts_of_servers_and_machines_are_told_in_words() {
        let known = [
            ("server.0.serving_threads", "server 1: serving threads"),
            ("machine.0.cpu_model", "machine 1: cpu model"),
            ("tool.version", "version of pummel"),
            ("labels.branch", "--label branch"),
        ];
        for (path, words) in known {
            assert_eq!(source_name(path), words);
        }
    }
}
