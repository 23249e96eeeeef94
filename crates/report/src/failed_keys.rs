//! The keys of requests that failed, as comma-separated values.

use pummel_logic::plan::{Plan, RetryKind};
use pummel_measure::failed_keys::FailedKeys;
use pummel_measure::words::counted;

use crate::csv::{Cell, Csv};

/// The names of the columns.
const HEADER: [&str; 4] = ["key", "operation", "phase", "reason"];

/// The table of the keys that are kept, with a last line that says how many more there are.
pub fn render(failed: &FailedKeys, plan: &Plan) -> Vec<u8> {
    let mut table = Csv::with_header(HEADER);
    for key in &failed.keys {
        let reason = key.kind.map_or(key.fault.name(), RetryKind::name);
        let phase = plan.phases.get(key.phase).map(|phase| phase.name.as_str());
        table.row([key.key.as_str().into(), plan.name_of(key.verb).into(), phase.into(), reason.into()]);
    }
    if failed.beyond > 0 {
        let more = format!("and {}", counted(failed.beyond, "more key"));
        table.row([more.into(), Cell::Absent, Cell::Absent, Cell::Absent]);
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Load, Phase, Stop, Work};
    use pummel_logic::protocol::{Fault, Verb};
    use pummel_measure::failed_keys::FailedKey;

    use super::*;

    #[test]
    fn a_line_has_a_key_and_the_last_one_says_how_many_more() {
        let phase = Phase {
            name: "load".to_owned(),
            work: Work::Load(Load::default()),
            stop: Stop::default(),
            recorded: false,
        };
        let plan = Plan { phases: vec![phase], ..Plan::default() };
        let key = |key: &str, fault, kind| FailedKey {
            key: key.to_owned(),
            verb: Verb::Set,
            phase: 0,
            fault,
            kind,
        };
        let keys = vec![
            key("k1", Fault::Server, Some(RetryKind::Oom)),
            key("a,\"b\"", Fault::Client, None),
            key("=1+1", Fault::Reset, Some(RetryKind::Lost)),
        ];
        let text = |beyond| {
            let failed = FailedKeys { keys: keys.clone(), beyond };
            String::from_utf8(render(&failed, &plan)).expect("it is text")
        };
        let lines = "key,operation,phase,reason\nk1,set,load,oom\n\"a,\"\"b\"\"\",set,load,client\n'=1+1,set,load,lost\n";
        assert_eq!(text(0), lines);
        assert_eq!(text(1_234), format!("{lines}\"and 1,234 more keys\",,,\n"));
        assert_eq!(text(1), format!("{lines}and 1 more key,,,\n"));
    }
}
