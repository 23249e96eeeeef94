//! The top of the report: what was asked for, and how the run ended.

use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, ChurningClients, Dataset, DatasetOrder, Depth, Fill, Group, KeyChurn, KeyStyle, LoadCommand,
    Mix, Plan, Popularity, Route, Script, Spawns, TlsOptions, TracePace, TraceReplay, Work, labels_text,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::from_seconds;
use pummel_measure::summary::time_text;
use pummel_measure::words::{counted, grouped};

use super::changes::{connections_words, event_words, rate_words};
use super::page::Page;
use super::units::plain;
use crate::document::Document;
use crate::numbers::number;

/// Most merged results that the heading names.
const MERGED_SHOWN_MAX: usize = 8;

pub(super) fn heading(page: &mut Page, document: &Document) {
    let plan = &document.plan;
    page.line("");
    if !document.merged.is_empty() {
        page.field("Merged", &merged(document));
    }
    page.field("Servers", &servers(document));
    if plan.route != Route::All {
        let copies =
            if plan.route.owns_keys() { "every record on one server" } else { "every record on each server" };
        page.field("Route", &format!("{}, {copies}", plan.route.name()));
    }
    if let Some(options) = &plan.tls {
        page.field("TLS", &authority(options));
    }
    for group in &plan.groups {
        page.field("Clients", &clients(plan, group));
    }
    for phase in plan.phases.iter().filter(|phase| phase.recorded) {
        match &phase.work {
            Work::Mix(mix) => page.field("Requests", &requests(plan, mix)),
            Work::Trace(replay) => page.field("Requests", &replayed(replay)),
            _ => {}
        }
    }
    if !plan.changes.events.is_empty() {
        page.field("Events", &event_words(&plan.changes.events));
    }
    for command in &plan.commands {
        page.field("Command", &format!("{}: {}", command.name, command.template));
    }
    if let Some(load) = &plan.load_command {
        page.field("Command", &format!("{}: {}", LoadCommand::NAME, load.template));
    }
    if let Some(dataset) = &plan.dataset {
        page.field("Dataset", &dataset_words(dataset));
    }
    if let Some(script) = &plan.script {
        page.field("Script", &script_words(script, plan.anonymous));
    }
    if !document.labels.is_empty() {
        page.field("Labels", &labels_text(&document.labels));
    }
    page.field("Seed", &format!("{} (data seed {})", plan.seed, plan.data.seed));
}

/// The file of the rows that fill places of commands, and the order in which they do.
fn dataset_words(dataset: &Dataset) -> String {
    let order = match dataset.order {
        DatasetOrder::File => "row by row for each client",
        DatasetOrder::Random => "rows drawn at random",
    };
    format!("{}, {order}", dataset.path)
}

/// The file of the script that commands call, and the name that servers give it, which an anonymous result does not tell.
fn script_words(script: &Script, is_anonymous: bool) -> String {
    if is_anonymous { script.path.clone() } else { format!("{} ({})", script.path, script.name()) }
}

/// The servers, with what they were found to speak where the command line left it open.
fn servers(document: &Document) -> String {
    let names = document.plan.servers.join(", ");
    document.detected.as_ref().map_or(names.clone(), |detected| format!("{names} ({detected})"))
}

/// The results that were added up.
fn merged(document: &Document) -> String {
    let each = document.merged.iter().take(MERGED_SHOWN_MAX);
    let mut each: Vec<String> = each.map(|part| format!("{} {}/s", part.file, number(part.rate))).collect();
    if document.merged.len() > MERGED_SHOWN_MAX {
        each.push(format!("and {} more", document.merged.len() - MERGED_SHOWN_MAX));
    }
    format!("the sum of {} results: {}", document.merged.len(), each.join(", "))
}

/// Whose word the certificates of servers were.
fn authority(options: &TlsOptions) -> String {
    if options.insecure {
        return "NOT VERIFIED: every certificate was accepted (--tls-insecure), so who answered is not known"
            .to_owned();
    }
    let authorities = match &options.ca {
        Some(file) => format!("the authorities in {file}"),
        None => "the authorities that this system trusts".to_owned(),
    };
    format!("certificates of the servers checked against {authorities}")
}

/// Clients that come and go.
fn comers(group: &Group, churn: &ChurningClients) -> String {
    let when = match &churn.spawns {
        Spawns::Closed => "as soon as there is room".to_owned(),
        Spawns::Open { arrivals, rate } => {
            format!("{} a second, {arrivals}", plain(*rate))
        }
        Spawns::Drawn(gap) => format!("by drawn gaps, {gap:?}").to_lowercase(),
    };
    format!(
        "come {when}, at most {} at one time, {} each",
        grouped(u64::from(group.clients)),
        counted(churn.calls, "request")
    )
}

fn clients(plan: &Plan, group: &Group) -> String {
    let depth = match group.depth {
        Depth::Limit(depth) => format!("depth {}", grouped(u64::from(depth))),
        Depth::Batch(size) => format!("batches of {}", grouped(u64::from(size))),
        Depth::Unlimited => "unlimited depth".to_owned(),
    };
    let index = plan.groups.iter().position(|other| other.name == group.name).unwrap_or(0);
    let rate = rate_words(plan, index, group);
    if let Some(churn) = &group.churn {
        return format!("{}, {depth}", comers(group, churn));
    }
    let load = match &group.arrivals {
        Arrivals::Closed => Arrivals::Closed.to_string(),
        open => format!("open loop{rate}, {open}"),
    };
    let mut connections = connections_words(plan, group);
    if plan.route.lanes(plan.servers.len()) > 1 {
        connections += match (plan.route, plan.cluster.read_from.asks_replicas()) {
            (Route::Cluster, false) => " to each master",
            (Route::Cluster, true) => " to each node",
            _ => " to each server",
        };
    }
    format!("{connections}, {depth}, {load}, {}", counted(u64::from(plan.engine.threads), "thread"))
}

/// The trace that is replayed, and at which pace.
fn replayed(replay: &TraceReplay) -> String {
    let pace = match replay.pace {
        TracePace::Trace { speed: 1.0 } => "at its own pace".to_owned(),
        TracePace::Trace { speed } => format!("at {} times its own pace", plain(speed)),
        TracePace::Fast => "as fast as it is answered".to_owned(),
        TracePace::Rate => "in its order, at the rate above".to_owned(),
    };
    let mut text = format!("those of {}, {pace}", replay.paths.join(", "));
    if replay.sample < 1.0 {
        text += &format!(", {} % of the keys", plain(replay.sample * 100.0));
    }
    if replay.amplify > 1 {
        text += &format!(", each {} times with other keys", replay.amplify);
    }
    text
}

/// For how long records keep their keys.
fn churn_words(churn: &KeyChurn) -> String {
    match churn {
        KeyChurn::Seconds(Dist::Fixed(life_s)) => {
            format!("records get new keys every {}", time_text(from_seconds(*life_s)))
        }
        KeyChurn::Seconds(lives) => format!("records get new keys after {lives} s"),
        KeyChurn::Requests(lives) => format!("records get new keys after {lives} requests"),
        KeyChurn::Share(share) => format!("{} records get new keys for each request", number(*share)),
    }
}

fn requests(plan: &Plan, mix: &Mix) -> String {
    let weights = mix.weights();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let ops: Vec<String> = weights
        .iter()
        .map(|(verb, weight)| format!("{} {} %", plan.name_of(*verb), plain(weight / total * 100.0)))
        .collect();
    let mut text = ops.join(", ");
    if mix.read_modify_write > 0.0 {
        text += &format!(", {} % of the gets with a set of their key", plain(mix.read_modify_write * 100.0));
    }
    if mix.inserts {
        text += ", adds of new records";
    }
    if mix.scans {
        text += &format!(", 1 to {} consecutive records in each read", mix.multiget);
    } else if mix.multiget > 1 {
        text += &format!(", {} keys in each read", mix.multiget);
    }
    if mix.multiset > 1 {
        text += &format!(", {} keys in each mset", mix.multiset);
    }
    let seconds = [
        (mix.meta.vivify_s, "misses are vivified for"),
        (mix.meta.recache_s, "renewed when they expire in less than"),
        (mix.meta.stale_s, "deletes mark as stale for"),
    ];
    for (seconds, words) in seconds.into_iter().filter_map(|(seconds, words)| Some((seconds?, words))) {
        text += &format!(", {words} {seconds} s");
    }
    if let Some(delay_ns) = mix.read_through_ns {
        let after =
            if delay_ns == 0 { "at once".to_owned() } else { format!("after {}", time_text(delay_ns)) };
        let after = match &mix.fill_delay_s {
            Some(delay) => format!("after delays of {delay} s"),
            None => after,
        };
        let verb = if mix.fill == Fill::Add { "added" } else { "set" };
        text += &format!(", missed keys are {verb} {after}");
    }
    if mix.noreply {
        text += ", writes without reply";
    }
    for (share, words) in
        [(mix.absent, "of the keys read do not exist"), (mix.fresh, "of the keys read are asked for once")]
    {
        if share > 0.0 {
            text += &format!(", {} % {words}", number(share * 100.0));
        }
    }
    if let Some(churn) = &mix.churn {
        text += &format!(", {}", churn_words(churn));
    }
    let data = &plan.data;
    let records = counted(data.records, "record");
    let classes = if data.value_classes.is_empty() { "" } else { ", the most popular ones others" };
    text + &format!(
        "; {records}, {}, keys {}, values {}{classes}",
        popularities(plan, mix),
        match data.style.keys {
            KeyStyle::Unpadded => "without zeros in front".to_owned(),
            KeyStyle::Drawn | KeyStyle::Fnv => lengths(&data.key_size.to_string()),
        },
        lengths(&data.value_size.to_string()),
    )
}

/// The popularity of the records, and those of operations with one of their own.
fn popularities(plan: &Plan, mix: &Mix) -> String {
    let words = |popularity: &Popularity| {
        brief(&popularity.to_string()).unwrap_or_else(|(name, parts)| format!("{name} with {parts} points"))
    };
    let of_verb =
        |(verb, popularity): &(Verb, Popularity)| format!(", {} {}", plan.name_of(*verb), words(popularity));
    words(&mix.popularity) + &mix.popularity_of.iter().map(of_verb).collect::<String>()
}

/// Lengths in bytes, where the text of their distribution is long in a few words.
fn lengths(text: &str) -> String {
    match brief(text) {
        Ok(text) => format!("{text} bytes"),
        Err(("weighted", parts)) => format!("in {parts} weighted ranges of bytes"),
        Err((name, parts)) => format!("{name} with {parts} numbers, in bytes"),
    }
}

/// The text of a popularity or a distribution; where it is long, its name and how many parts it has.
fn brief(text: &str) -> Result<String, (&str, usize)> {
    match text.split_once(':') {
        Some((name, parts)) if text.len() > BRIEF_BYTES_MAX => Err((name, parts.split(',').count())),
        _ => Ok(text.to_owned()),
    }
}

/// The longest text of a distribution that a heading has room for.
const BRIEF_BYTES_MAX: usize = 120;
