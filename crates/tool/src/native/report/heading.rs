//! The top of the report: what was asked for, and how the run ended.

use pummel_logic::measure::measurement::Status;
use pummel_logic::measure::summary::time_text;
use pummel_logic::measure::words::{counted, grouped};
use pummel_logic::plan::{
    Arrivals, ChurningClients, Depth, Group, Mix, Plan, Route, Spawns, TlsOptions, Work,
};

use super::page::Page;
use super::steadiness::goal_words;
use super::units::plain;
use crate::report::document::Document;
use crate::report::numbers::number;

pub(super) fn heading(page: &mut Page, document: &Document) {
    let plan = &document.plan;
    let status = match document.status {
        Status::Complete => "complete",
        Status::Partial => "PARTIAL",
        Status::Interrupted => "INTERRUPTED",
    };
    let version = &document.tool.version;
    let mut line = format!("pummel {version}: {status}, {:.2} s measured", document.seconds);
    if document.verify.failed > 0 {
        line += ", WRONG VALUES FOUND";
    } else if document.verify.stale > 0 {
        line += ", STALE VALUES FOUND";
    }
    line += goal_words(document);
    page.line(&line);
    if document.tool.profile == "quick" {
        page.field(
            "Build",
            "profile quick, for a first look: figures of speed want the release build (make build)",
        );
    }
    if let Some(reason) = &document.reason {
        page.field("Reason", reason);
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
        if let Work::Mix(mix) = &phase.work {
            page.field("Requests", &requests(plan, mix));
        }
    }
    if let Some(command) = &plan.command {
        page.field("Command", command);
    }
    page.field("Seed", &format!("{} (data seed {})", plan.seed, plan.data.seed));
}

/// The servers, with what they were found to speak where the command line left it open.
fn servers(document: &Document) -> String {
    let names = document.plan.servers.join(", ");
    document.detected.as_ref().map_or(names.clone(), |detected| format!("{names} ({detected})"))
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
        Depth::Unlimited => "unlimited depth".to_owned(),
    };
    let rate = group.rate.map_or_else(String::new, |rate| format!(" at {} req/s", plain(rate)));
    if let Some(churn) = &group.churn {
        return format!("{}, {depth}", comers(group, churn));
    }
    let load = match &group.arrivals {
        Arrivals::Closed => Arrivals::Closed.to_string(),
        open => format!("open loop{rate}, {open}"),
    };
    let mut connections = counted(u64::from(group.clients), "connection");
    if plan.route.lanes(plan.servers.len()) > 1 {
        connections += " to each server";
    }
    format!("{connections}, {depth}, {load}, {}", counted(u64::from(plan.engine.threads), "thread"))
}

fn requests(plan: &Plan, mix: &Mix) -> String {
    let total: f64 = mix.ops.iter().map(|(_, weight)| weight).sum();
    let ops: Vec<String> = mix
        .ops
        .iter()
        .map(|(verb, weight)| format!("{} {} %", plan.name_of(*verb), plain(weight / total * 100.0)))
        .collect();
    let mut text = ops.join(", ");
    if mix.multiget > 1 {
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
        text += &format!(", missed keys are set {after}");
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
    let data = &plan.data;
    let records = counted(data.records, "record");
    text + &format!(
        "; {records}, {}, keys {} bytes, values {} bytes",
        mix.popularity, data.key_size, data.value_size
    )
}
