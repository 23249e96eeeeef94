//! The lines on what ran: the servers, the number of runs, the connections, the load, the requests and the records.

use std::collections::BTreeSet;

use pummel_logic::plan::{Arrivals, Plan};
use pummel_logic::time::seconds;
use pummel_measure::words::counted;

use super::rows;
use crate::document::CurveDocument;
use crate::view::cells::plain;
use crate::view::run::ran::{from, records, servers_of, work};

/// The lines: what was asked, then how.
pub(super) fn ran(curve: &CurveDocument) -> Vec<Vec<String>> {
    let title = format!("pummel {}", curve.tool.version);
    let Some(plan) = &curve.plan else { return vec![vec![title, runs(curve)]] };
    let programs: BTreeSet<String> = curve.software.iter().cloned().collect();
    vec![vec![title, servers_of(plan, None, &programs), runs(curve)], vec![load(curve, plan)]]
}

/// The number of runs and their length, such as `18 runs of 10 s`.
fn runs(curve: &CurveDocument) -> String {
    let many = counted(curve.runs.len() as u64, "run");
    let stop = curve.plan.as_ref().and_then(|plan| plan.phases.iter().find(|phase| phase.recorded));
    let Some(stop) = stop.map(|phase| phase.stop) else { return many };
    match (stop.time_ns, stop.requests) {
        (Some(time_ns), _) => format!("{many} of {} s", plain(seconds(time_ns))),
        (None, Some(requests)) => format!("{many} of {}", counted(requests, "request")),
        (None, None) => many,
    }
}

/// Connections, load, requests and records.
fn load(curve: &CurveDocument, plan: &Plan) -> String {
    let over = rows::level_of(curve);
    let is_open = over.is_none();
    let groups = plan.groups.iter().enumerate().map(|(index, group)| {
        // The plan is that of the first run, which may be a closed loop that shows where the others have to be.
        let pace = match curve.arrivals.as_str() {
            _ if !is_open => "closed loop".to_owned(),
            spacing if !spacing.is_empty() && spacing != Arrivals::Poisson.to_string() => {
                format!("open loop, {spacing}")
            }
            _ => "open loop".to_owned(),
        };
        // The number of connections is what such a scan varies.
        match over {
            Some("connections") => pace,
            _ => format!("{}, {pace}", from(plan, group, if index == 0 { curve.agents } else { 0 })),
        }
    });
    let groups = groups.collect::<Vec<_>>().join(" and ");
    let threads = u64::from(plan.engine.threads);
    let threads = if threads > 1 && over != Some("threads") {
        format!(", {}", counted(threads, "thread"))
    } else {
        String::new()
    };
    let mut parts = vec![format!("{groups}{threads}")];
    match plan.trace() {
        Some(replay) if is_open => parts.push(format!("the requests of {}", replay.paths.join(", "))),
        Some(_) => parts.extend(work(plan)),
        None => parts.extend(work(plan).into_iter().chain([records(plan)])),
    }
    parts.join("; ")
}
