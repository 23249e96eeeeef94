//! Which option of `run` and `load` decides a field of the Plan.

use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, FieldPath};
use pummel_logic::plan::{Load, Phase, Plan, Work};
use pummel_logic::protocol::Verb;
use pummel_report::plan_options::row_of;

/// The option that decides the field at a path; `--plan` for what only a saved plan can say. Of a field of a phase, `is_recorded`
/// says whether that phase is measured. The first group of clients loads, and another one measures beside it.
pub fn flag_of(path: FieldPath, is_recorded: bool) -> &'static str {
    match path.field() {
        Field::Clients if path.index() > 0 => "--measure-connections",
        Field::Depth if path.index() > 0 => "--measure-depth",
        Field::Rate if path.index() > 0 => "--measure-rate",
        Field::Stop | Field::StopTime if !is_recorded => "--warmup",
        Field::TotalClients => "--connections",
        field => match row_of(field.name()).map(|row| row.flag) {
            None | Some("") => "--plan",
            Some(flag) => flag,
        },
    }
}

/// The options that decide a field in the place of this one, where one of them is given instead.
pub fn in_place_of(flag: &str) -> &'static [&'static str] {
    match flag {
        "--time" => &["--max-time", "--stage", "--stage-connections", "--phases"],
        "--connections" => &["--stage-connections"],
        "--depth" => &["--batch"],
        "--min-time" => &["--max-time"],
        "--warmup" => &["--warmup-until", "--trace-warmup"],
        "--trace" => &["--fill"],
        "--stage" => &["--stage-connections", "--phases"],
        "--rate" => &["--phases"],
        "--fresh" | "--absent" => &["--hit-ratio"],
        "--route" => &["--cluster"],
        _ => &[],
    }
}

/// Whether an expiry that was asked for is part of any request. A saved plan may describe its records all the same.
pub fn sends_expiry(plan: &Plan) -> bool {
    // A command of the user says itself when its key expires.
    let sets_for_commands = |load: &Load| load.commands && plan.load_command.is_none();
    let sends = |phase: &Phase| match &phase.work {
        // Hashes have none.
        Work::Load(load) => !load.no_plain || load.pieces || load.counters || sets_for_commands(load),
        Work::Mix(mix) => {
            let verbs = || mix.ops.iter().map(|(verb, _)| *verb);
            let renews = mix.read_through_ns.is_some() || mix.meta.renews();
            verbs().any(Verb::has_expiry)
                || renews && verbs().any(|verb| verb.reads() && !verb.is_resp_only())
        }
        _ => false,
    };
    plan.data.expiry_s == Dist::Fixed(0.0) || plan.phases.iter().any(sends)
}
