//! Little's law in every result that a test reads: the requests in flight, by counting them and by adding up their times.

use serde_json::Value;

/// Words of the figure by which a verdict says how far the two accounts are apart.
const FIGURE: &str = "(Little's law)";

/// Requests from which on pummel judges its own accounts.
const REQUESTS_MIN: u64 = 10_000;

/// The share by which the two accounts may differ.
const ERROR_MAX: f64 = 0.01;

/// Faults in the self-checks of a result and of the results within it; empty where they agree. A complete result of
/// 10,000 requests or more that were all answered has to have one.
pub fn wrongs(result: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(result, "$", &mut found);
    found
}

fn visit(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if members.contains_key("verdict") && members.contains_key("totals") {
                found.extend(wrong_of_run(value).map(|wrong| format!("{path}: {wrong}")));
            }
            for (name, member) in members {
                visit(member, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                visit(element, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

fn wrong_of_run(run: &Value) -> Option<String> {
    let judged = run["verdict"]["evidence"].as_array().and_then(|figures| {
        figures.iter().find(|figure| figure["says"].as_str().is_some_and(|says| says.contains(FIGURE)))
    });
    match judged {
        Some(figure) => {
            let is_within = figure["value"].as_f64().is_some_and(|value| value <= ERROR_MAX);
            (!is_within).then(|| figure["says"].to_string())
        }
        None => has_to_agree(run).then(|| format!("no self-check of {}", run["totals"]["requests"])),
    }
}

/// Whether a run is complete and has enough requests, each of which was answered without an error.
fn has_to_agree(run: &Value) -> bool {
    let total = |name: &str| run["totals"][name].as_u64().unwrap_or(0);
    let lost = ["errors", "unfinished", "unsent"].into_iter().map(total).sum::<u64>();
    run["status"] == "complete" && total("requests") >= REQUESTS_MIN && lost == 0
}
