//! An order of a controller: its checks, and the task that it becomes.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use pummel_engine::backend::tls::{FileReader, Setup};
use pummel_engine::run::OpenFiles;
use pummel_engine::run::{Inputs, Permit, RunError, TraceFiles, password_of, permitted};
use pummel_engine::run::{dataset_rows, replay_of, trace_of};
use pummel_engine::sys;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::{Invalid, ValidPlan};
use pummel_logic::plan::{Plan, Wait};
use pummel_logic::secrets::Secret;
use pummel_logic::workload::dataset::PackedRows;
use pummel_logic::workload::trace::Trace;
use pummel_measure::events::Wants;
use pummel_measure::measurement::Keep;

use crate::agent::files::PlanFiles;
use crate::agent::limits::RecordingLimit;
use crate::agent::member::MemberTask;
use crate::agent::overrides::LocalOverrides;
use crate::agent::policy::AccessPolicy;
use crate::agent::proto::v2;
use crate::program::Program;

/// Most characters of the name of a run.
const RUN_NAME_MAX: usize = 200;

/// The reason of a check that was given up.
const CONTROLLER_GONE: &str = "the controller is gone";

/// Why an order is not followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The reason, as a sentence without its full stop.
    pub(super) why: String,
    /// No agent can follow the order.
    pub(super) usage: bool,
}

impl Refusal {
    /// This agent does not follow the order.
    pub(super) fn here(why: impl ToString) -> Refusal {
        Refusal { why: why.to_string(), usage: false }
    }

    fn of_plan(invalid: &Invalid) -> Refusal {
        Refusal { why: format!("the plan's {invalid}"), usage: true }
    }
}

/// The task that an order asks for. Nothing is sent anywhere but to the name service, and only files that the policy allows
/// are read. The check is given up when `is_wanted` returns false.
///
/// # Errors
/// Returns why the agent does not follow the order.
pub(super) fn task_of(
    order: &v2::Order,
    program: Program,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
    is_wanted: &dyn Fn() -> bool,
) -> Result<MemberTask, Refusal> {
    checked_task(order, program, policy, overrides, is_wanted)
        .map_err(|refusal| Refusal { why: policy.reworded(refusal.why), ..refusal })
}

fn checked_task(
    order: &v2::Order,
    program: Program,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
    is_wanted: &dyn Fn() -> bool,
) -> Result<MemberTask, Refusal> {
    let plan: Plan = serde_json::from_slice(&order.plan)
        .map_err(|error| Refusal::here(format!("the plan cannot be read: {error}")))?;
    policy.limits.check_size(&plan).map_err(Refusal::here)?;
    let (plan, files) = allowed_plan(plan, order, policy, overrides)?;
    let part: ProcessShare = serde_json::from_slice(&order.part)
        .map_err(|error| Refusal::here(format!("the part cannot be read: {error}")))?;
    if !part.fits(&plan) {
        return Err(Refusal::here("the part is not one of the plan"));
    }
    check_cpus(&plan, &part, overrides)?;
    let recording_limit = policy.limits.check(&plan, &part).map_err(Refusal::here)?;
    let permit = permit_of(policy);
    check_targets(&plan, &permit, is_wanted)?;
    let (limits, share) = (policy.limits, part.clone());
    let PlanFiles { contents, recording, trace: trace_files, dataset } = files;
    let password = password_for(&plan, order, &contents)?;
    let tls_files = reader_of(contents);
    if let Some(options) = &plan.tls {
        Setup::with_files(options, &[], tls_files.as_ref()).map_err(Refusal::here)?;
    }
    let trace =
        recording.map(|file| recorded(&plan, file, recording_limit, program, is_wanted)).transpose()?;
    let rows = dataset.map(|file| rows_of(&plan, file, is_wanted)).transpose()?;
    Ok(MemberTask {
        program,
        wants: Wants {
            rows: order.rows,
            departures: false,
            keep: Keep::Figures,
            outstanding: order.outstanding,
            connections: false,
        },
        inputs: Inputs {
            password,
            trace,
            rows,
            files: plan.trace().map(|_| Arc::new(OpenFiles(trace_files)) as Arc<dyn TraceFiles>),
            permit: Some(permit),
            plan_check: Some(Arc::new(move |plan| limits.check(plan, &share).map(drop))),
            steering: None,
            tls_files: Some(tls_files),
        },
        plan,
        part,
        run_name: order.run.chars().filter(|character| !character.is_control()).take(RUN_NAME_MAX).collect(),
        snapshot: None,
    })
}

/// A plan that can be run, with what the agent decides itself; and its files, which the policy allows.
fn allowed_plan(
    mut plan: Plan,
    order: &v2::Order,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
) -> Result<(ValidPlan, PlanFiles), Refusal> {
    if overrides.threads > 0 {
        plan.engine.cpus.clone_from(&overrides.cpus);
        if overrides.blocking {
            plan.engine.wait = Wait::Block;
        }
    }
    let plan = plan.validate().map_err(|invalid| Refusal::of_plan(&invalid))?;
    policy.check_secrets(&plan, order.password.is_some()).map_err(Refusal::here)?;
    let files = policy.files.open(&plan).map_err(Refusal::here)?;
    Ok((plan, files))
}

/// The password of the plan's login: the controller's, else the first line of the plan's file, else the agent's own.
fn password_for(
    plan: &Plan,
    order: &v2::Order,
    contents: &HashMap<String, Vec<u8>>,
) -> Result<Option<Secret>, Refusal> {
    let path = plan.login.as_ref().and_then(|login| login.password_file.as_ref());
    match (&order.password, path) {
        (Some(password), _) => Ok(Some(Secret::new(password.as_str()))),
        (None, None) => password_of(plan).map_err(Refusal::here),
        (None, Some(path)) => match str::from_utf8(&contents[path]) {
            Ok(text) => Ok(Some(Secret::new(text.lines().next().unwrap_or_default()))),
            Err(_) => Err(Refusal::here(format!("the password cannot be read from {path}: it is no UTF-8"))),
        },
    }
}

/// Reader of a plan's files from their contents.
fn reader_of(contents: HashMap<String, Vec<u8>>) -> Arc<FileReader> {
    Arc::new(move |path| contents.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()))
}

/// The requests of a recording. Reading is given up when they need too much memory, or when `is_wanted` returns false.
fn recorded(
    plan: &Plan,
    file: File,
    limit: RecordingLimit,
    program: Program,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Arc<Trace>, Refusal> {
    let check = |trace: &Trace| match is_wanted() {
        true => limit.check(trace).map_err(|why| io::Error::new(io::ErrorKind::OutOfMemory, why)),
        false => Err(io::Error::other(CONTROLLER_GONE)),
    };
    let replay = replay_of(plan).expect("a recording is opened for a plan that replays one");
    let (trace, notice) = trace_of(plan, replay, file, &check).map_err(Refusal::here)?;
    if let Some(words) = notice {
        (program.say)(format_args!("{words}"));
    }
    Ok(Arc::new(trace))
}

/// The rows of the plan's dataset. Packing them is given up when `is_wanted` returns false.
fn rows_of(plan: &Plan, file: File, is_wanted: &dyn Fn() -> bool) -> Result<PackedRows, Refusal> {
    let check = || if is_wanted() { Ok(()) } else { Err(io::Error::other(CONTROLLER_GONE)) };
    let dataset = plan.dataset.as_ref().expect("a file of rows is opened for a plan that has a dataset");
    dataset_rows(plan, dataset, file, &check).map_err(Refusal::here)
}

/// Refuses threads and CPUs that this machine does not have.
fn check_cpus(plan: &Plan, part: &ProcessShare, overrides: &LocalOverrides) -> Result<(), Refusal> {
    let cpus = cpus();
    if overrides.threads == 0 && part.threads > cpus {
        return Err(Refusal::here(format!("{} threads are asked for, and it has {cpus} CPUs", part.threads)));
    }
    if let Ok(allowed) = sys::allowed_cpus()
        && let Some(cpu) = plan.engine.cpus.iter().find(|cpu| !allowed.contains(cpu))
    {
        return Err(Refusal::here(format!("it may not run on CPU {cpu}, only on {allowed:?}")));
    }
    Ok(())
}

/// The number of CPUs that this process may use.
pub(super) fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// Allows the addresses of the policy's networks.
fn permit_of(policy: &AccessPolicy) -> Permit {
    let targets = policy.targets.clone();
    Arc::new(move |address| targets.iter().any(|network| network.contains(address)))
}

/// Refuses a plan with a server that the agent does not send load to. The check is given up when the order is no longer wanted.
fn check_targets(plan: &Plan, permit: &Permit, is_wanted: &dyn Fn() -> bool) -> Result<(), Refusal> {
    permitted(plan, permit, is_wanted).map_err(|error| match error {
        RunError::Forbidden { .. } => Refusal::here(format!("{error} (--allow-target says where to)")),
        RunError::Interrupted => Refusal::here(CONTROLLER_GONE),
        other => Refusal::here(other),
    })
}
