//! The words for what limited a run: one sentence for each cause.

use pummel_logic::plan::Data;
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::evidence::provenance::list_of;
use pummel_measure::headroom::Resource;
use pummel_measure::limit::{
    CardBound, Cause, Clients, CpuTaker, DelayTaker, InFlight, Limit, LostCpu, LostWhy, MoreInFlight,
    NextLimit, Occupied, Outpaced, SharedMachine, Side, Spare, Standstill, ThreadAdvice, ThreadTime, TimeAt,
    TurnedAwayBy, WaitedFor,
};
use pummel_measure::misses::NeverThere;
use pummel_measure::summary::time_text;
use pummel_measure::words::{counted, grouped, percent, rate_text, was};

use crate::document::{MergedLimit, MergedResult};

/// The sentence of a run that nothing limited and in which all requests were answered.
pub const NONE_REACHED: &str = "none reached: every request was answered as it came";

/// The sentence of a run that nothing limited, with the number of requests that got no reply.
pub fn none_reached(unanswered: u64, next: Option<&NextLimit>) -> String {
    let words = match unanswered {
        0 => NONE_REACHED.to_owned(),
        some => format!("none reached: all requests but {} were answered as they came", grouped(some)),
    };
    match next {
        None => words,
        Some(next) => format!("{words}. {}", next_words(next)),
    }
}

/// The sentence for a sum, without a full stop: that of its parts where all say the same, and else that of each, those that the
/// generator limited first.
pub fn merged(parts: &[MergedResult]) -> String {
    let known: Vec<(&str, &MergedLimit)> =
        parts.iter().filter_map(|part| Some((part.file.as_str(), part.limit.as_ref()?))).collect();
    if known.iter().all(|(_, limit)| limit.limit == Limit::None.name()) {
        return NONE_REACHED.to_owned();
    }
    let mut sentences: Vec<(&MergedLimit, Vec<&str>)> = Vec::new();
    for (file, limit) in known {
        match sentences.iter_mut().find(|(other, _)| other.says == limit.says) {
            Some((_, files)) => files.push(file),
            None => sentences.push((limit, vec![file])),
        }
    }
    if let [(limit, _)] = sentences.as_slice() {
        return limit.says.clone();
    }
    sentences.sort_by_key(|(limit, _)| limit.limit != Limit::Generator.name());
    let more: usize = sentences.iter().skip(SENTENCES_MAX).map(|(_, files)| files.len()).sum();
    let told = sentences
        .iter()
        .take(SENTENCES_MAX)
        .map(|(limit, files)| format!("{}: {}", files.join(", "), limit.says));
    let more = (more > 0).then(|| format!("{} in the JSON", counted(more as u64, "more result")));
    told.chain(more).collect::<Vec<_>>().join(". ")
}

/// The most sentences on the parts of a sum.
const SENTENCES_MAX: usize = 4;

/// Advice for a load that is more than a server can do.
const SEARCH: &str = "pummel search --goal p99:100ms";

/// The sentence for a cause, without a full stop: the subject, what was seen, and one advice where one follows.
pub fn cause_words(cause: &Cause) -> String {
    match cause {
        Cause::NothingCompleted => "not known: no request was completed".to_owned(),
        Cause::Instrument { apart } => format!(
            "not known: pummel counted the requests in flight in two ways, which are {} apart (Little's law)",
            percent(*apart)
        ),
        Cause::Ports { failed, attempts } => format!(
            "this machine's local ports: {} of {} attempts to connect found none free. --linger 0 frees them at once, more \
             addresses (--source) have more",
            grouped(*failed),
            grouped(*attempts)
        ),
        Cause::ServerConnections { by, turned_away, ours, limit, taken, software } => {
            connections_words(*by, (*turned_away, *ours), *limit, *taken, software.as_deref())
        }
        Cause::GeneratorCpuTaken(lost) => lost_words(lost),
        Cause::SharedCpu { waiting, agent, server, cpus, share, machine } => {
            let place =
                agent.as_ref().map_or("this machine".to_owned(), |agent| format!("the machine of {agent}"));
            match machine {
                Some(machine) => {
                    format!("{place}: {}", shared_machine_words(machine, cpus, *waiting, *share))
                }
                None => format!(
                    "{place}: {} and pummel share {}, and {} waited for a CPU {} of its time. {APART}",
                    subject(server.as_deref()),
                    cpus_words(cpus),
                    if *waiting == Side::Client { "pummel".to_owned() } else { subject(server.as_deref()) },
                    percent(*share)
                ),
            }
        }
        Cause::GeneratorThreadBusy { thread, threads, busy, server_busy, advice } => {
            let which = match threads {
                0 | 1 => "its one thread".to_owned(),
                _ => format!("thread {thread} of {threads}"),
            };
            let server =
                server_busy.map_or_else(String::new, |busy| format!(" (the server's: {})", percent(busy)));
            let advice = thread_advice_words(*advice);
            format!("pummel's CPU: {which} was {} busy{server}. {advice}", percent(*busy))
        }
        Cause::GeneratorKeptBack {
            kept,
            sent,
            lag_p50_ns,
            lag_p99_ns,
            lag_max_ns,
            behind,
            stalls,
            stalled_ns,
        } => {
            let stalls = match stalls {
                0 => String::new(),
                stalls => {
                    format!("; its threads had {} ({})", counted(*stalls, "stall"), time_text(*stalled_ns))
                }
            };
            let behind = behind
                .as_ref()
                .map_or_else(String::new, |wait| format!("; others waited behind them ({})", at_words(wait)));
            format!(
                "pummel: it sent {} of {} requests late, p50 by {}, p99 by {}, the latest by {}{behind}{stalls}",
                grouped(*kept),
                grouped(*sent),
                time_text(*lag_p50_ns),
                time_text(*lag_p99_ns),
                time_text(*lag_max_ns)
            )
        }
        Cause::GeneratorStoodStill { stalls, stalled_ns, taken } => {
            let why = match taken {
                None => ", and why is not known".to_owned(),
                Some(taken) => {
                    let (taker, advice) = taker_words(taken.by);
                    format!(": {taker} took a CPU for {}. {advice}", time_text(taken.time_ns))
                }
            };
            let times = if *stalls == 1 { "once".to_owned() } else { format!("{} times", grouped(*stalls)) };
            format!("pummel: its threads stood still {times}, for {}{why}", time_text(*stalled_ns))
        }
        Cause::GeneratorOut { out_ns, queued_ns, share } => {
            let queued = queued_ns.map_or_else(String::new, |queued_ns| {
                format!(", {} of it in the queueing discipline", time_text(queued_ns))
            });
            format!(
                "this machine's network stack: half of the requests left it {} or more after they were sent{queued}; that is {} of \
                 their service time",
                time_text(*out_ns),
                percent(*share)
            )
        }
        Cause::ServerRestarted { server, anew, misses, longest_wait_ns } => {
            let missed = match misses {
                misses if *misses > 0.0 => format!("; {} of the keys were not found", percent(*misses)),
                _ => String::new(),
            };
            match (longest_wait_ns, server, anew) {
                (Some(wait_ns), None, _) => format!(
                    "none reached, but for the time without a server (requests waited up to {})",
                    time_text(*wait_ns)
                ),
                (Some(wait_ns), Some(server), _) => format!(
                    "none reached, but for the time without {server} (requests waited up to {})",
                    time_text(*wait_ns)
                ),
                (None, _, Some(anew)) => {
                    let up =
                        anew.uptime_s.map_or_else(String::new, |up_s| format!(", {up_s} s before the end"));
                    format!("{}: it started anew{up}{missed}", subject(server.as_deref()))
                }
                (None, _, None) => format!("{}: it was gone for a time{missed}", subject(server.as_deref())),
            }
        }
        Cause::Others { servers, requests, connections, at_least } => {
            let requests = requests
                .map(|(others, ours)| format!("{} beside our {}", counted(others, "request"), grouped(ours)));
            let least = if *at_least { "at least " } else { "" };
            let came =
                (*connections > 0).then(|| format!("{least}{}", counted(*connections, "new connection")));
            let what: Vec<String> = requests.into_iter().chain(came).collect();
            let place = if *servers > 1 { " at these servers" } else { "" };
            format!("other clients{place}: {}. Stop them, or use a server of your own", what.join(", and "))
        }
        Cause::NetworkBandwidth { card, agent, beyond } => {
            let place = agent.as_ref().map_or_else(String::new, |agent| format!(" of {agent}"));
            match beyond {
                CardBound::Speed(share) => {
                    format!("the network: {card}{place} carried {} of what it can", percent(*share))
                }
                CardBound::Allowance(packets) => format!(
                    "the network: {} of {card}{place} went beyond what the cloud allows the machine",
                    counted(*packets, "packet")
                ),
            }
        }
        Cause::NetworkLoss { segments, lost, sent, tail } => format!(
            "the network: {} of {} {}, and {} ({}) is as long as TCP waits before it sends again",
            grouped(*segments),
            counted(*sent, "segment"),
            if *lost { "did not arrive" } else { "were sent again" },
            tail.quantile,
            time_text(tail.time_ns)
        ),
        Cause::ServerReceiveWindow { share } => format!(
            "the server: it read more slowly than was sent, its receive window was full for {} of the time",
            percent(*share)
        ),
        Cause::GeneratorSendBuffer { share } => format!(
            "this machine's send buffers: they were full for {} of the time. Larger ones: --send-buffer",
            percent(*share)
        ),
        Cause::ServerOneThread { server, threads, busiest, others } => format!(
            "{}: one of its {threads} threads was {}, the others {} on average. More connections (-c) are spread more evenly",
            whose(server.as_deref(), "CPU"),
            busy_words(busiest),
            percent(*others)
        ),
        Cause::ServerCpu { server, threads, busiest, others, client_threads, client_busy } => {
            let (busy, others) = (busy_words(busiest), others.map(percent));
            let what = match (threads, others) {
                (Some(1), _) => format!("its one thread was {busy}"),
                (Some(threads), Some(others)) => {
                    format!("the busiest of its {threads} threads was {busy}, the others {others} on average")
                }
                (Some(threads), None) => format!("its {threads} threads were {busy} each, on average"),
                (None, _) => format!("its busiest thread was {busy}"),
            };
            let client = format!("{}: {}", client_words(*client_threads), percent(*client_busy));
            format!("{}: {what} ({client})", whose(server.as_deref(), "CPU"))
        }
        Cause::ServerOccupied { server, by, cpu } => {
            let cpu = cpu.map_or_else(String::new, |cpu| format!(" ({} of a CPU)", percent(cpu)));
            let what = match by {
                Occupied::InCommands(share) => format!(
                    "it was inside commands for {} of the time{cpu}, and executes one after the other",
                    percent(*share)
                ),
                Occupied::Probed { one_ns, ten_ns } => format!(
                    "it answers one after the other{cpu}: one request at a time took {} (p50), each of ten {}",
                    time_text(*one_ns),
                    time_text(*ten_ns)
                ),
            };
            format!("{}: {what}. More connections only wait longer", subject(server.as_deref()))
        }
        Cause::Slots { wait, taken, slots, clients, meanwhile, may_be_occupied } => format!(
            "{}: requests waited {} for a free one, {taken:.1} of {} were busy, and {}. {}",
            clients_words(clients),
            at_words(wait),
            grouped(*slots),
            match meanwhile {
                Spare::AsFastAsAlone(alone_ns) =>
                    format!("one request at a time took {}", time_text(*alone_ns)),
                Spare::Cpu(share) => format!("the server's CPU {}", percent(*share)),
            },
            more_words(*may_be_occupied)
        ),
        Cause::InFlight(flight) | Cause::ClosedLoop(flight) => flight_words(flight),
        Cause::ServiceByExclusion { share, client_threads, client_busy, unread } => format!(
            "the server, or the way to it: requests were there for {} of their time ({}: {} busy). The server's CPU is not \
             known{}",
            percent(*share),
            client_words(*client_threads),
            percent(*client_busy),
            because(unread.as_deref())
        ),
        Cause::ServerRunDelay { server, share, taker } => {
            let taker = match taker {
                Some(DelayTaker::OtherProcesses) => {
                    ", other programs had it. Stop them, or give it CPUs of its own"
                }
                Some(DelayTaker::Servers) => {
                    ", other threads of it had it. Give it more CPUs, or fewer threads"
                }
                None => "",
            };
            format!(
                "{}: a thread of it waited for a CPU {} of its time{taker}",
                match server {
                    None => "the server's machine".to_owned(),
                    Some(server) => format!("the machine of {server}"),
                },
                percent(*share)
            )
        }
        Cause::Overload { asked, answered, full, .. } => match full {
            Some(clients) => format!(
                "the server: {} with all {} busy all the time. Ask for less, or let pummel find the rate: {SEARCH}",
                rate_text(*answered),
                clients_text(clients)
            ),
            None => {
                let rates = Outpaced { asked: *asked, answered: *answered };
                format!(
                    "the server, overloaded: it answered {}. Ask for less, or: {SEARCH}",
                    outpaced_words(&rates)
                )
            }
        },
        Cause::LostRecords { misses, why } => lost_records_words(*misses, why),
        Cause::Way { connect_ns, service_ns } => format!(
            "the way to the server: opening a connection takes {}, a request {} (p50), and the server's CPU is idle",
            time_text(*connect_ns),
            time_text(*service_ns)
        ),
        Cause::ServerBursts {
            standstills,
            longest_ns,
            longest_is_bound,
            median_ns,
            wait,
            server_says,
            ..
        } => {
            let said = match server_says.as_slice() {
                [] => String::new(),
                said => format!(". It says of that time: {}", said.join("; ")),
            };
            if let Some(stood) = standstill_words(standstills) {
                return format!("the server: {stood}{said}");
            }
            let bound = if *longest_is_bound { "more than " } else { "" };
            let longest = match longest_ns {
                0 => String::new(),
                longest_ns => format!(
                    ", for one request {bound}{} ({bound}{} times the median)",
                    time_text(*longest_ns),
                    grouped(longest_ns / median_ns.max(&1))
                ),
            };
            format!(
                "the server: it stood still at times{longest}, and others waited behind it ({}){said}",
                at_words(wait)
            )
        }
        Cause::Unanswered { share, standstills, overload, timeout_ns, lag_p99_ns } => {
            if let (Some(rates), [.., Standstill { from_ns, lasted: true, .. }]) =
                (overload, standstills.as_slice())
            {
                return format!(
                    "the server, overloaded: it answered {}, and from {} on nothing within {}. Ask for less, or: {SEARCH}",
                    outpaced_words(rates),
                    tenths(*from_ns),
                    whole_text(*timeout_ns)
                );
            }
            match standstill_words(standstills) {
                Some(stood) => format!("the server: {stood}"),
                None => format!(
                    "the server, or the way to it: {} of the requests got no answer, and pummel was not late (lag p99 {})",
                    percent(*share),
                    time_text(*lag_p99_ns)
                ),
            }
        }
        Cause::WaitsByExclusion { wait, why } => match why {
            WaitedFor::Connections { lost, failed } => format!(
                "the server: requests waited {} for connections that were not there ({} lost, {} could not be opened)",
                at_words(wait),
                grouped(*lost),
                grouped(*failed)
            ),
            WaitedFor::Answers { connections, lag_p99_ns, server_busy, unread } => format!(
                "the server, or the number of connections ({}): requests waited {} for others to be answered, and not for pummel \
                 (lag p99 {}). The server's CPU {}",
                grouped(*connections),
                at_words(wait),
                time_text(*lag_p99_ns),
                match server_busy {
                    Some(share) => format!("was at most {} busy", percent(*share)),
                    None => format!("is not known{}", because(unread.as_deref())),
                }
            ),
        },
        Cause::None { next } => none_reached(0, next.as_ref()),
    }
}

/// The sentence for a cause that several runs have in common, without figures that are those of one of them.
pub fn common_cause_words(cause: &Cause) -> String {
    match cause {
        Cause::SharedCpu { agent, server, cpus, machine, .. } => {
            common_cpus_words(agent.as_deref(), server.as_deref(), cpus, machine.as_ref())
        }
        Cause::GeneratorCpuTaken(LostCpu { agent, taken, .. }) => {
            let place = agent.as_ref().map_or_else(String::new, |agent| format!(" on {agent}"));
            match taken {
                None => {
                    format!("pummel's CPU{place}: its threads waited for it, and who had it is not known")
                }
                Some(taken) => {
                    let (taker, advice) = taker_words(taken.by);
                    format!("pummel's CPU{place}: {taker} took it. {advice}")
                }
            }
        }
        Cause::GeneratorThreadBusy { threads, advice, .. } => {
            let which = if *threads > 1 { "a thread of it" } else { "its one thread" };
            format!("pummel's CPU: {which} was full. {}", thread_advice_words(*advice))
        }
        Cause::GeneratorKeptBack { .. } => "pummel: it sent requests late".to_owned(),
        Cause::GeneratorStoodStill { taken, .. } => match taken {
            None => "pummel: its threads stood still, and why is not known".to_owned(),
            Some(taken) => {
                let (taker, advice) = taker_words(taken.by);
                format!("pummel: its threads stood still, since {taker} took a CPU. {advice}")
            }
        },
        other => cause_words(other),
    }
}

/// CPUs that both sides share, without the figures of one run.
fn common_cpus_words(
    agent: Option<&str>,
    server: Option<&str>,
    cpus: &[u32],
    machine: Option<&SharedMachine>,
) -> String {
    let place = agent.map_or("this machine".to_owned(), |agent| format!("the machine of {agent}"));
    let server = server.unwrap_or("server");
    match machine {
        Some(SharedMachine { cpus: 1, is_whole: true, .. }) => {
            format!("{place}: {server} and pummel share its one CPU. Send from another machine")
        }
        Some(SharedMachine { cpus, is_whole: true, .. }) => {
            format!("{place}: {server} and pummel share its {cpus} CPUs. {APART_TOO}")
        }
        _ => format!("{place}: {server} and pummel share {}. {APART_TOO}", cpus_words(cpus)),
    }
}

/// What a cause is of, as a noun without figures, such as `the server's CPU`.
pub fn limit_noun(cause: &Cause) -> &'static str {
    match cause {
        Cause::NothingCompleted | Cause::Instrument { .. } => "not known",
        Cause::Ports { .. } => "this machine's local ports",
        Cause::ServerConnections { .. } => "the server's limit of connections",
        Cause::GeneratorCpuTaken(_) | Cause::GeneratorThreadBusy { .. } => "pummel's CPU",
        Cause::SharedCpu { .. } => "this machine",
        Cause::GeneratorKeptBack { .. } | Cause::GeneratorStoodStill { .. } => "pummel",
        Cause::GeneratorOut { .. } => "this machine's network stack",
        Cause::GeneratorSendBuffer { .. } => "this machine's send buffers",
        Cause::Others { .. } => "other clients",
        Cause::NetworkBandwidth { .. } | Cause::NetworkLoss { .. } => "the network",
        Cause::ServerOneThread { .. } => "one thread of the server",
        Cause::ServerCpu { .. } => "the server's CPU",
        Cause::ServerRunDelay { .. } => "the server's machine",
        Cause::Slots { .. } => "the number of connections",
        Cause::InFlight(_) | Cause::ClosedLoop(_) => "what is in flight",
        Cause::ServiceByExclusion { .. } | Cause::Unanswered { .. } => "the server, or the way to it",
        Cause::LostRecords { why: LostWhy::Memory { .. }, .. } => "the server's memory",
        Cause::LostRecords { .. } => "the records",
        Cause::Way { .. } => "the way to the server",
        Cause::ServerRestarted { .. }
        | Cause::ServerReceiveWindow { .. }
        | Cause::ServerOccupied { .. }
        | Cause::Overload { .. }
        | Cause::ServerBursts { .. }
        | Cause::WaitsByExclusion { .. } => "the server",
        Cause::None { .. } => "none",
    }
}

/// Advice for a thread that has no time left.
fn thread_advice_words(advice: ThreadAdvice) -> &'static str {
    match advice {
        ThreadAdvice::MoreThreads => "Use more threads (-T)",
        ThreadAdvice::MoreConnections => "Use more connections and threads (-c, -T)",
        ThreadAdvice::AnotherMachine => "This machine has no CPU for another: use one with more",
    }
}

/// Advice for two sides on the same CPUs, where several runs had them.
const APART_TOO: &str = "Send from another machine, or give each its own (taskset, --cpus)";

/// Advice for two sides on the same CPUs.
const APART: &str = "Give them CPUs of their own (taskset, --cpus), or send from another machine";

/// A server as a subject.
fn subject(server: Option<&str>) -> String {
    server.unwrap_or("the server").to_owned()
}

/// A thing of a server.
fn whose(server: Option<&str>, what: &str) -> String {
    match server {
        None => format!("the server's {what}"),
        Some(server) => format!("the {what} of {server}"),
    }
}

/// The busiest of the client threads.
fn client_words(threads: u64) -> &'static str {
    if threads > 1 { "pummel's busiest thread" } else { "pummel's thread" }
}

/// A time at a quantile, such as `1.20 ms (p99)`.
fn at_words(at: &TimeAt) -> String {
    format!("{} ({})", time_text(at.time_ns), at.quantile)
}

/// A time in seconds with one digit behind the point, as exact as the windows of a run are.
fn tenths(ns: Nanos) -> String {
    format!("{:.1} s", seconds(ns))
}

/// A time that was set, without digits that say nothing: `1 s`, `2.5 ms`.
fn whole_text(ns: Nanos) -> String {
    let text = time_text(ns);
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            format!("{} {unit}", value.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// The reason behind a sentence, where it is known.
fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

/// The connections, and their depth where it is not 1, such as `50 connections of depth 16`.
fn clients_text(clients: &Clients) -> String {
    let mean = if clients.are_mean { " on average" } else { "" };
    let connections = format!("{}{mean}", counted(clients.connections, "connection"));
    match (clients.batch, clients.depth) {
        (None, None | Some(1)) => connections,
        (Some(size), _) => format!("{connections} with batches of {}", grouped(u64::from(size))),
        (None, Some(depth)) => format!("{connections} of depth {depth}"),
    }
}

/// The connections as a subject.
fn clients_words(clients: &Clients) -> String {
    format!("the {}", clients_text(clients))
}

/// Advice to have more in flight.
fn more_words(may_be_occupied: bool) -> &'static str {
    match may_be_occupied {
        true => {
            "More of them (-c) or depth (-d) help, unless something else than its CPU occupies the server"
        }
        false => "More of them (-c) or depth (-d) help",
    }
}

/// The share of its time for which a thread was busy.
fn busy_words(thread: &ThreadTime) -> String {
    match thread.waited {
        None => format!("{} busy", percent(thread.cpu)),
        Some(waited) => format!("{} busy and waited {} for its CPU", percent(thread.cpu), percent(waited)),
    }
}

/// The CPUs that two sides share.
fn cpus_words(cpus: &[u32]) -> String {
    match cpus {
        [] => "its CPUs".to_owned(),
        [cpu] => format!("CPU {cpu}"),
        cpus => format!("CPUs {}", list_of(&cpus.iter().map(|cpu| *cpu as usize).collect::<Vec<_>>())),
    }
}

/// The taker of a CPU as a subject, and the advice.
pub(super) fn taker_words(taker: CpuTaker) -> (&'static str, &'static str) {
    match taker {
        CpuTaker::Hypervisor => ("the hypervisor", "Send from a machine with CPUs of its own"),
        CpuTaker::ContainerLimit => ("the container's limit", "Raise it, or send from another machine"),
        CpuTaker::OtherProcesses => ("other programs", "Stop them, or send from another machine"),
        CpuTaker::OwnThreads => {
            ("its other threads, which are more than its CPUs,", "Use fewer threads (-T)")
        }
        CpuTaker::Agents => ("other agents on this machine", "Run each on a machine of its own"),
        CpuTaker::Servers => ("the server", APART),
    }
}

/// The CPU time that the client threads lost.
fn lost_words(lost: &LostCpu) -> String {
    let place = lost.agent.as_ref().map_or_else(String::new, |agent| format!(" on {agent}"));
    let share = percent(lost.share);
    match lost.taken {
        None => format!(
            "pummel's CPU{place}: a thread waited for it {share} of its time ({}), and who had it is not known",
            time_text(lost.lost_ns)
        ),
        Some(taken) => {
            let (taker, advice) = taker_words(taken.by);
            let time = time_text(taken.time_ns);
            format!(
                "pummel's CPU{place}: {taker} took it for {time} (a thread waited {share} of its time). {advice}"
            )
        }
    }
}

/// The use of a machine by both sides, and the advice.
fn shared_machine_words(machine: &SharedMachine, shared: &[u32], waiting: Side, share: f64) -> String {
    let SharedMachine { cpus, is_whole, busy, client_cpus, server_cpus, software, both_waited } = machine;
    let server = software.as_deref().unwrap_or("the server");
    let (its, one) = match (is_whole, cpus) {
        (true, 1) => ("its CPU was".to_owned(), "it"),
        (true, cpus) => (format!("its {cpus} CPUs were"), "one"),
        (false, 1) => (format!("{} was", cpus_words(shared)), "it"),
        (false, _) => (format!("{} were", cpus_words(shared)), "one"),
    };
    let waited = match (both_waited, waiting) {
        (true, _) => "each kept the other waiting".to_owned(),
        (false, Side::Client) => format!("pummel waited for a CPU {} of its time", percent(share)),
        (false, Side::Server) => format!("{server} waited for a CPU {} of its time", percent(share)),
    };
    let advice = match cpus {
        1 if *is_whole => "Send from another machine".to_owned(),
        _ => format!(
            "Give them CPUs of their own (taskset for {server}, --cpus here), or send from another machine"
        ),
    };
    format!(
        "{its} {} busy, {server} used {server_cpus:.2} of {one}, pummel {client_cpus:.2}, and {waited}. {advice}",
        percent(*busy)
    )
}

/// The connections that a server did not take, and the advice.
fn connections_words(
    by: TurnedAwayBy,
    (turned_away, ours): (u64, u64),
    limit: Option<u64>,
    taken: Option<u64>,
    software: Option<&str>,
) -> String {
    let lost = format!("{} of ours failed or were lost", grouped(ours));
    match (by, taken) {
        (TurnedAwayBy::Server, taken) => {
            let more = match software {
                Some("memcached") => "a greater -c there",
                Some("redis" | "valkey") => "a greater maxclients there",
                _ => "a greater limit there",
            };
            match taken {
                Some(taken) => {
                    format!("the server's limit of connections. -c {} here, or {more}", grouped(taken))
                }
                None => format!(
                    "the server's limit of connections{}: it refused {}, and {lost}. Fewer here (-c), or {more}",
                    limit.map_or_else(String::new, |limit| format!(" ({})", grouped(limit))),
                    grouped(turned_away)
                ),
            }
        }
        (TurnedAwayBy::ItsQueue, _) => format!(
            "the server's queue of new connections: it was full and turned away {}, and {lost}",
            counted(turned_away, "attempt")
        ),
        (TurnedAwayBy::QueueOfMachine, _) => format!(
            "the server's machine: full queues of new connections turned away {}, and {} of ours {} refused or reset",
            counted(turned_away, "attempt"),
            grouped(ours),
            was(ours)
        ),
    }
}

/// What was in flight in a closed loop, and the advice.
fn flight_words(flight: &InFlight) -> String {
    let InFlight { flown, slots, is_below, clients, alone_ns, server_busy, .. } = flight;
    let flown = match slots {
        Some(slots) if *is_below => {
            format!("{flown:.1} requests on average, of {} that may be", grouped(*slots))
        }
        Some(slots) => counted(*slots, "request"),
        None if clients.batch.is_some() => format!("{flown:.1} requests on average"),
        None => "as many requests as came".to_owned(),
    };
    let alone =
        alone_ns.map_or_else(String::new, |alone_ns| format!("; one at a time took {}", time_text(alone_ns)));
    let bound = if flight.server_busy_is_bound { "at most " } else { "" };
    let server = server_busy
        .map_or_else(String::new, |busy| format!("the server's CPU was {bound}{} busy, ", percent(busy)));
    let size = if clients.batch.is_some() { "larger batches (--batch)" } else { "depth (-d)" };
    let more = match flight.more {
        None => String::new(),
        Some(MoreInFlight::Sure) => format!(". More connections (-c) or {size} give more"),
        Some(MoreInFlight::UnlessOccupied) => format!(
            ". More connections (-c) or {size} give more, unless the server is busy with more than its CPU"
        ),
    };
    format!(
        "what is in flight: {flown} ({}), each answered in {} (p50){alone}; {server}{} {}{more}",
        clients_text(clients),
        time_text(flight.response_p50_ns),
        client_words(flight.client_threads),
        percent(flight.client_busy)
    )
}

/// The rates of a server that answered less than was asked, such as `1,000/s of 2,000 asked`.
fn outpaced_words(rates: &Outpaced) -> String {
    let asked = rate_text(rates.asked);
    format!("{} of {} asked", rate_text(rates.answered), asked.trim_end_matches("/s"))
}

/// The times in which a server answered nothing; `None` where there are none.
fn standstill_words(standstills: &[Standstill]) -> Option<String> {
    let longest = standstills.iter().map(|stop| stop.to_ns.saturating_sub(stop.from_ns)).max()?;
    Some(match standstills {
        [Standstill { lasted: true, .. }] => format!("it stood still for {}", tenths(longest)),
        [_] => format!("it stood still once, for {}", tenths(longest)),
        stops => format!("it stood still {} times, for up to {}", stops.len(), tenths(longest)),
    })
}

/// The records that were lost, and the advice.
fn lost_records_words(misses: f64, why: &LostWhy) -> String {
    match why {
        LostWhy::Memory { evictions, refused_stores, full, software } => {
            let full = full.map(|full| format!("{} full", percent(full)));
            let evicted =
                Some(counted(*evictions, "eviction")).filter(|_| *evictions > 0 || *refused_stores == 0);
            let refused =
                (*refused_stores > 0).then(|| format!("{} without room", counted(*refused_stores, "store")));
            let seen: Vec<String> = full.into_iter().chain(evicted).chain(refused).collect();
            let option = match software.as_slice() {
                [one] if one == "memcached" => " (-m)",
                [one] if one == "redis" || one == "valkey" => " (maxmemory)",
                _ => "",
            };
            format!("the server's memory: {}. More of it{option}, or fewer records", seen.join(", "))
        }
        LostWhy::Removed { stored } => format!(
            "the records: {} of the keys were not found, though all {} were stored before and this run removes none",
            percent(misses),
            grouped(*stored)
        ),
        LostWhy::NeverThere(never) => {
            format!("the records: {} of the keys were {}", percent(misses), never_there_words(never))
        }
    }
}

/// Explanation of keys that were not in the servers when the run began, as the end of a sentence whose subject is those keys.
pub fn never_there_words(never: &NeverThere) -> String {
    let keys = |key_size: &dyn std::fmt::Display, key_prefix: &str| match key_prefix {
        "" => format!("keys {key_size} bytes, no prefix"),
        prefix => format!("keys {key_size} bytes, prefix '{prefix}'"),
    };
    let mut words =
        format!("not in the server when the run began ({})", keys(&never.key_size, &never.key_prefix));
    if never.holds_usual {
        let Data { key_size, key_prefix, .. } = Data::default();
        let usual = keys(&key_size, &key_prefix);
        words += &format!("; it holds a record with the key of the usual settings ({usual})");
    }
    words
}

/// A resource as a noun, such as `the server's CPU`.
pub fn resource_words(resource: &Resource) -> String {
    match resource {
        Resource::ClientThread { threads } => client_words(*threads).to_owned(),
        Resource::Slots => "the connections".to_owned(),
        Resource::Card { name, agent } => {
            let place = agent.as_ref().map_or_else(String::new, |agent| format!(" of {agent}"));
            format!("the network card {name}{place}")
        }
        Resource::ServerCpu { server } => whose(server.as_deref(), "CPU"),
        Resource::ServerCommands { server } => whose(server.as_deref(), "time inside commands"),
        Resource::ServerMemory { server } => whose(server.as_deref(), "memory"),
        Resource::ServerConnections { server } => whose(server.as_deref(), "limit of connections"),
    }
}

/// The resource that would be used up first, as a sentence of its own without a full stop.
fn next_words(next: &NextLimit) -> String {
    let resource = resource_words(&next.resource);
    let first = match resource.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => resource,
    };
    // A request costs less CPU the more of them there are at once.
    let cost = match next.resource {
        Resource::ClientThread { .. } | Resource::ServerCpu { .. } | Resource::ServerCommands { .. } => {
            " at this cost a request"
        }
        Resource::Slots
        | Resource::Card { .. }
        | Resource::ServerMemory { .. }
        | Resource::ServerConnections { .. } => "",
    };
    format!(
        "{first}, {} busy, would be the first, at about {}{cost}",
        percent(next.share),
        rate_text(next.full_at_rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::dist::Dist;
    use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};
    use pummel_measure::limit::{StartedAnew, TakenCpu};

    const FIFTY: Clients = Clients { connections: 50, depth: Some(1), batch: None, are_mean: false };

    fn at(time_ns: Nanos) -> TimeAt {
        TimeAt::new("p99", time_ns)
    }

    fn full_thread(cpu: f64) -> ThreadTime {
        ThreadTime { cpu, waited: None }
    }

    fn flight() -> InFlight {
        InFlight {
            flown: 3.9,
            slots: Some(4),
            is_below: false,
            clients: Clients { connections: 4, depth: Some(1), batch: None, are_mean: false },
            response_p50_ns: 60_700,
            alone_ns: None,
            server_busy: Some(0.55),
            server_busy_is_bound: false,
            client_threads: 1,
            client_busy: 0.28,
            more: Some(MoreInFlight::UnlessOccupied),
        }
    }

    fn lost(by: CpuTaker) -> Cause {
        let taken = Some(TakenCpu { by, time_ns: 354 * MILLISECOND });
        Cause::GeneratorCpuTaken(LostCpu { agent: None, share: 0.1, lost_ns: 400 * MILLISECOND, taken })
    }

    #[test]
    fn a_cause_of_several_runs_has_no_figure_of_one_of_them() {
        let of = |cpus: u64, is_whole: bool| SharedMachine {
            cpus,
            is_whole,
            busy: 0.95,
            client_cpus: 0.7,
            server_cpus: 0.9,
            software: None,
            both_waited: true,
        };
        let shared = |machine: Option<SharedMachine>| {
            common_cause_words(&Cause::SharedCpu {
                waiting: Side::Client,
                agent: None,
                server: None,
                cpus: vec![0, 1],
                share: 0.3,
                machine,
            })
        };
        let apart = "Send from another machine, or give each its own (taskset, --cpus)";
        assert_eq!(
            shared(Some(of(2, true))),
            format!("this machine: server and pummel share its 2 CPUs. {apart}")
        );
        assert_eq!(shared(None), format!("this machine: server and pummel share CPUs 0-1. {apart}"));
        assert_eq!(
            shared(Some(of(1, true))),
            "this machine: server and pummel share its one CPU. Send from another machine"
        );
        let taken = common_cause_words(&lost(CpuTaker::OtherProcesses));
        assert_eq!(taken, "pummel's CPU: other programs took it. Stop them, or send from another machine");
        let busy = Cause::GeneratorThreadBusy {
            thread: 1,
            threads: 1,
            busy: 0.99,
            server_busy: None,
            advice: ThreadAdvice::MoreThreads,
        };
        assert_eq!(common_cause_words(&busy), "pummel's CPU: its one thread was full. Use more threads (-T)");
        let flight = Cause::ClosedLoop(flight());
        assert_eq!(common_cause_words(&flight), cause_words(&flight));
        assert_eq!([limit_noun(&flight), limit_noun(&busy)], ["what is in flight", "pummel's CPU"]);
    }

    fn stop(from: Nanos, to: Nanos, lasted: bool) -> Standstill {
        Standstill { from_ns: from * SECOND / 10, to_ns: to * SECOND / 10, lasted }
    }

    fn bursts(standstills: Vec<Standstill>, server_says: &[&str]) -> Cause {
        Cause::ServerBursts {
            standstills,
            longest_ns: 996 * MILLISECOND,
            longest_is_bound: false,
            median_ns: 40 * MICROSECOND,
            wait: at(900 * MILLISECOND),
            ratio: None,
            server_says: server_says.iter().map(|words| (*words).to_owned()).collect(),
        }
    }

    fn unanswered(standstills: Vec<Standstill>, overload: Option<Outpaced>) -> Cause {
        let (timeout_ns, lag_p99_ns) = (SECOND, 3 * MICROSECOND);
        Cause::Unanswered { share: 0.12, standstills, overload, timeout_ns, lag_p99_ns }
    }

    /// Each cause once, beside its sentence.
    fn table() -> Vec<(Cause, &'static str)> {
        let shared = SharedMachine {
            cpus: 2,
            is_whole: true,
            busy: 0.88,
            client_cpus: 0.74,
            server_cpus: 0.95,
            software: Some("memcached".to_owned()),
            both_waited: true,
        };
        let memory = LostWhy::Memory {
            evictions: 15_181,
            refused_stores: 0,
            full: Some(0.95),
            software: vec!["memcached".to_owned()],
        };
        let never =
            NeverThere { key_size: Dist::Fixed(21.0), key_prefix: "z:".to_owned(), holds_usual: true };
        let next = |resource, share, full_at_rate| Some(NextLimit { resource, share, full_at_rate });
        vec![
            (Cause::NothingCompleted, "not known: no request was completed"),
            (
                Cause::Instrument { apart: 0.07 },
                "not known: pummel counted the requests in flight in two ways, which are 7 % apart (Little's law)",
            ),
            (
                Cause::Ports { failed: 880, attempts: 1_280 },
                "this machine's local ports: 880 of 1,280 attempts to connect found none free. --linger 0 frees them at once, \
                 more addresses (--source) have more",
            ),
            (
                Cause::ServerConnections {
                    by: TurnedAwayBy::Server,
                    turned_away: 405,
                    ours: 405,
                    limit: Some(40),
                    taken: Some(19),
                    software: Some("memcached".to_owned()),
                },
                "the server's limit of connections. -c 19 here, or a greater -c there",
            ),
            (
                Cause::ServerConnections {
                    by: TurnedAwayBy::Server,
                    turned_away: 12,
                    ours: 10,
                    limit: Some(1_024),
                    taken: None,
                    software: Some("redis".to_owned()),
                },
                "the server's limit of connections (1,024): it refused 12, and 10 of ours failed or were lost. Fewer here (-c), \
                 or a greater maxclients there",
            ),
            (
                Cause::ServerConnections {
                    by: TurnedAwayBy::ItsQueue,
                    turned_away: 40,
                    ours: 10,
                    limit: None,
                    taken: None,
                    software: None,
                },
                "the server's queue of new connections: it was full and turned away 40 attempts, and 10 of ours failed or were lost",
            ),
            (
                Cause::ServerConnections {
                    by: TurnedAwayBy::QueueOfMachine,
                    turned_away: 597,
                    ours: 1,
                    limit: None,
                    taken: None,
                    software: None,
                },
                "the server's machine: full queues of new connections turned away 597 attempts, and 1 of ours was refused or reset",
            ),
            (
                lost(CpuTaker::OtherProcesses),
                "pummel's CPU: other programs took it for 354 ms (a thread waited 10 % of its time). Stop them, or send from \
                 another machine",
            ),
            (
                lost(CpuTaker::Hypervisor),
                "pummel's CPU: the hypervisor took it for 354 ms (a thread waited 10 % of its time). Send from a machine with CPUs \
                 of its own",
            ),
            (
                Cause::GeneratorCpuTaken(LostCpu {
                    agent: Some("m1:7711".to_owned()),
                    share: 0.1,
                    lost_ns: 400 * MILLISECOND,
                    taken: None,
                }),
                "pummel's CPU on m1:7711: a thread waited for it 10 % of its time (400 ms), and who had it is not known",
            ),
            (
                Cause::SharedCpu {
                    waiting: Side::Client,
                    agent: None,
                    server: None,
                    cpus: vec![0, 1],
                    share: 0.33,
                    machine: Some(shared.clone()),
                },
                "this machine: its 2 CPUs were 88 % busy, memcached used 0.95 of one, pummel 0.74, and each kept the other waiting. \
                 Give them CPUs of their own (taskset for memcached, --cpus here), or send from another machine",
            ),
            (
                Cause::SharedCpu {
                    waiting: Side::Server,
                    agent: None,
                    server: None,
                    cpus: vec![0],
                    share: 0.5,
                    machine: Some(SharedMachine { cpus: 1, both_waited: false, ..shared.clone() }),
                },
                "this machine: its CPU was 88 % busy, memcached used 0.95 of it, pummel 0.74, and memcached waited for a CPU 50 % of \
                 its time. Send from another machine",
            ),
            (
                Cause::SharedCpu {
                    waiting: Side::Client,
                    agent: None,
                    server: None,
                    cpus: vec![1],
                    share: 0.33,
                    machine: Some(SharedMachine { cpus: 1, is_whole: false, ..shared }),
                },
                "this machine: CPU 1 was 88 % busy, memcached used 0.95 of it, pummel 0.74, and each kept the other waiting. \
                 Give them CPUs of their own (taskset for memcached, --cpus here), or send from another machine",
            ),
            (
                Cause::SharedCpu {
                    waiting: Side::Client,
                    agent: Some("m1:7711".to_owned()),
                    server: None,
                    cpus: vec![0],
                    share: 0.33,
                    machine: None,
                },
                "the machine of m1:7711: the server and pummel share CPU 0, and pummel waited for a CPU 33 % of its time. Give them \
                 CPUs of their own (taskset, --cpus), or send from another machine",
            ),
            (
                Cause::GeneratorThreadBusy {
                    thread: 1,
                    threads: 1,
                    busy: 0.97,
                    server_busy: Some(0.6),
                    advice: ThreadAdvice::MoreThreads,
                },
                "pummel's CPU: its one thread was 97 % busy (the server's: 60 %). Use more threads (-T)",
            ),
            (
                Cause::GeneratorThreadBusy {
                    thread: 2,
                    threads: 4,
                    busy: 0.97,
                    server_busy: None,
                    advice: ThreadAdvice::AnotherMachine,
                },
                "pummel's CPU: thread 2 of 4 was 97 % busy. This machine has no CPU for another: use one with more",
            ),
            (
                Cause::GeneratorKeptBack {
                    kept: 20_808,
                    sent: 398_759,
                    lag_p50_ns: 30 * MICROSECOND,
                    lag_p99_ns: 907 * MICROSECOND,
                    lag_max_ns: 500 * MILLISECOND,
                    behind: Some(at(MILLISECOND)),
                    stalls: 1,
                    stalled_ns: 500 * MILLISECOND,
                },
                "pummel: it sent 20,808 of 398,759 requests late, p50 by 30.0 us, p99 by 907 us, the latest by 500 ms; others waited \
                 behind them (1.00 ms (p99)); its threads had 1 stall (500 ms)",
            ),
            (
                Cause::GeneratorStoodStill { stalls: 1, stalled_ns: 50 * MILLISECOND, taken: None },
                "pummel: its threads stood still once, for 50.0 ms, and why is not known",
            ),
            (
                Cause::GeneratorStoodStill {
                    stalls: 3,
                    stalled_ns: 50 * MILLISECOND,
                    taken: Some(TakenCpu { by: CpuTaker::ContainerLimit, time_ns: 40 * MILLISECOND }),
                },
                "pummel: its threads stood still 3 times, for 50.0 ms: the container's limit took a CPU for 40.0 ms. Raise it, or \
                 send from another machine",
            ),
            (
                Cause::GeneratorOut {
                    out_ns: 90 * MICROSECOND,
                    queued_ns: Some(60 * MICROSECOND),
                    share: 0.22,
                },
                "this machine's network stack: half of the requests left it 90.0 us or more after they were sent, 60.0 us of it in \
                 the queueing discipline; that is 22 % of their service time",
            ),
            (
                Cause::ServerRestarted {
                    server: None,
                    anew: Some(StartedAnew { uptime_s: Some(2), span_ns: 8 * SECOND }),
                    misses: 0.4,
                    longest_wait_ns: Some(633 * MILLISECOND),
                },
                "none reached, but for the time without a server (requests waited up to 633 ms)",
            ),
            (
                Cause::ServerRestarted {
                    server: None,
                    anew: Some(StartedAnew { uptime_s: Some(2), span_ns: 8 * SECOND }),
                    misses: 0.4,
                    longest_wait_ns: None,
                },
                "the server: it started anew, 2 s before the end; 40 % of the keys were not found",
            ),
            (
                Cause::Others { servers: 1, requests: Some((1_234, 60_000)), connections: 5, at_least: true },
                "other clients: 1,234 requests beside our 60,000, and at least 5 new connections. Stop them, or use a server of \
                 your own",
            ),
            (
                Cause::NetworkBandwidth {
                    card: "eth0".to_owned(),
                    agent: None,
                    beyond: CardBound::Speed(0.94),
                },
                "the network: eth0 carried 94 % of what it can",
            ),
            (
                Cause::NetworkBandwidth {
                    card: "eth0".to_owned(),
                    agent: Some("m1:7711".to_owned()),
                    beyond: CardBound::Allowance(7),
                },
                "the network: 7 packets of eth0 of m1:7711 went beyond what the cloud allows the machine",
            ),
            (
                Cause::NetworkLoss { segments: 400, lost: true, sent: 40_000, tail: at(250 * MILLISECOND) },
                "the network: 400 of 40,000 segments did not arrive, and p99 (250 ms) is as long as TCP waits before it sends again",
            ),
            (
                Cause::ServerReceiveWindow { share: 0.2 },
                "the server: it read more slowly than was sent, its receive window was full for 20 % of the time",
            ),
            (
                Cause::GeneratorSendBuffer { share: 0.2 },
                "this machine's send buffers: they were full for 20 % of the time. Larger ones: --send-buffer",
            ),
            (
                Cause::ServerOneThread {
                    server: Some("a:11211".to_owned()),
                    threads: 4,
                    busiest: full_thread(0.97),
                    others: 0.2,
                },
                "the CPU of a:11211: one of its 4 threads was 97 % busy, the others 20 % on average. More connections (-c) are \
                 spread more evenly",
            ),
            (
                Cause::ServerCpu {
                    server: None,
                    threads: Some(1),
                    busiest: full_thread(0.97),
                    others: None,
                    client_threads: 1,
                    client_busy: 0.79,
                },
                "the server's CPU: its one thread was 97 % busy (pummel's thread: 79 %)",
            ),
            (
                Cause::ServerCpu {
                    server: None,
                    threads: Some(4),
                    busiest: ThreadTime { cpu: 0.88, waited: Some(0.1) },
                    others: Some(0.94),
                    client_threads: 2,
                    client_busy: 0.79,
                },
                "the server's CPU: the busiest of its 4 threads was 88 % busy and waited 10 % for its CPU, the others 94 % on average \
                 (pummel's busiest thread: 79 %)",
            ),
            (
                Cause::ServerOccupied { server: None, by: Occupied::InCommands(0.97), cpu: Some(0.04) },
                "the server: it was inside commands for 97 % of the time (4 % of a CPU), and executes one after the other. More \
                 connections only wait longer",
            ),
            (
                Cause::ServerOccupied {
                    server: None,
                    by: Occupied::Probed { one_ns: MILLISECOND, ten_ns: 10 * MILLISECOND },
                    cpu: None,
                },
                "the server: it answers one after the other: one request at a time took 1.00 ms (p50), each of ten 10.0 ms. More \
                 connections only wait longer",
            ),
            (
                Cause::Slots {
                    wait: at(12 * MILLISECOND),
                    taken: 49.3,
                    slots: 50,
                    clients: FIFTY,
                    meanwhile: Spare::Cpu(0.2),
                    may_be_occupied: false,
                },
                "the 50 connections: requests waited 12.0 ms (p99) for a free one, 49.3 of 50 were busy, and the server's CPU 20 %. \
                 More of them (-c) or depth (-d) help",
            ),
            (
                Cause::InFlight(flight()),
                "what is in flight: 4 requests (4 connections), each answered in 60.7 us (p50); the server's CPU was 55 % busy, \
                 pummel's thread 28 %. More connections (-c) or depth (-d) give more, unless the server is busy with more than its CPU",
            ),
            (
                Cause::InFlight(InFlight {
                    flown: 41.25,
                    slots: None,
                    clients: Clients { connections: 4, depth: Some(16), batch: Some(16), are_mean: false },
                    more: Some(MoreInFlight::Sure),
                    ..flight()
                }),
                "what is in flight: 41.2 requests on average (4 connections with batches of 16), each answered in 60.7 us (p50); the \
                 server's CPU was 55 % busy, pummel's thread 28 %. More connections (-c) or larger batches (--batch) give more",
            ),
            (
                Cause::ServiceByExclusion {
                    share: 0.93,
                    client_threads: 1,
                    client_busy: 0.4,
                    unread: Some("it answered `stats` with ERROR".to_owned()),
                },
                "the server, or the way to it: requests were there for 93 % of their time (pummel's thread: 40 % busy). The server's \
                 CPU is not known: it answered `stats` with ERROR",
            ),
            (
                Cause::ServerRunDelay { server: None, share: 0.25, taker: Some(DelayTaker::OtherProcesses) },
                "the server's machine: a thread of it waited for a CPU 25 % of its time, other programs had it. Stop them, or give it \
                 CPUs of its own",
            ),
            (
                Cause::Overload { asked: 2_000.0, answered: 1_000.0, backlog: 6_999, full: Some(FIFTY) },
                "the server: 1,000/s with all 50 connections busy all the time. Ask for less, or let pummel find the rate: pummel \
                 search --goal p99:100ms",
            ),
            (
                Cause::Overload { asked: 2_000.0, answered: 1_000.0, backlog: 6_999, full: None },
                "the server, overloaded: it answered 1,000/s of 2,000 asked. Ask for less, or: pummel search --goal p99:100ms",
            ),
            (
                Cause::LostRecords { misses: 0.506, why: memory },
                "the server's memory: 95 % full, 15,181 evictions. More of it (-m), or fewer records",
            ),
            (
                Cause::LostRecords { misses: 0.05, why: LostWhy::Removed { stored: 10_000 } },
                "the records: 5 % of the keys were not found, though all 10,000 were stored before and this run removes none",
            ),
            (
                Cause::LostRecords { misses: 0.05, why: LostWhy::NeverThere(never) },
                "the records: 5 % of the keys were not in the server when the run began (keys 21 bytes, prefix 'z:'); it holds a \
                 record with the key of the usual settings (keys 30 bytes, no prefix)",
            ),
            (
                Cause::Way { connect_ns: 1_900 * MICROSECOND, service_ns: 2 * MILLISECOND },
                "the way to the server: opening a connection takes 1.90 ms, a request 2.00 ms (p50), and the server's CPU is idle",
            ),
            (bursts(vec![stop(50, 69, false)], &[]), "the server: it stood still once, for 1.9 s"),
            (
                bursts(vec![stop(50, 69, false), stop(80, 85, false)], &[]),
                "the server: it stood still 2 times, for up to 1.9 s",
            ),
            (
                bursts(Vec::new(), &["memory defragmented", "snapshot (fork 12.3 ms)"]),
                "the server: it stood still at times, for one request 996 ms (24,900 times the median), and others waited behind it \
                 (900 ms (p99)). It says of that time: memory defragmented; snapshot (fork 12.3 ms)",
            ),
            (
                unanswered(Vec::new(), None),
                "the server, or the way to it: 12 % of the requests got no answer, and pummel was not late (lag p99 3.00 us)",
            ),
            (unanswered(vec![stop(49, 80, true)], None), "the server: it stood still for 3.1 s"),
            (
                unanswered(vec![stop(21, 80, true)], Some(Outpaced { asked: 2_000.0, answered: 1_000.0 })),
                "the server, overloaded: it answered 1,000/s of 2,000 asked, and from 2.1 s on nothing within 1 s. Ask for less, or: \
                 pummel search --goal p99:100ms",
            ),
            (
                Cause::WaitsByExclusion {
                    wait: at(MILLISECOND),
                    why: WaitedFor::Connections { lost: 10, failed: 0 },
                },
                "the server: requests waited 1.00 ms (p99) for connections that were not there (10 lost, 0 could not be opened)",
            ),
            (
                Cause::WaitsByExclusion {
                    wait: at(MILLISECOND),
                    why: WaitedFor::Answers {
                        connections: 2,
                        lag_p99_ns: 3 * MICROSECOND,
                        server_busy: None,
                        unread: None,
                    },
                },
                "the server, or the number of connections (2): requests waited 1.00 ms (p99) for others to be answered, and not for \
                 pummel (lag p99 3.00 us). The server's CPU is not known",
            ),
            (
                Cause::ClosedLoop(InFlight {
                    is_below: true,
                    slots: Some(100),
                    clients: Clients { connections: 50, depth: Some(2), batch: None, are_mean: false },
                    alone_ns: Some(10 * MILLISECOND),
                    server_busy_is_bound: true,
                    client_threads: 2,
                    more: None,
                    ..flight()
                }),
                "what is in flight: 3.9 requests on average, of 100 that may be (50 connections of depth 2), each answered in 60.7 us \
                 (p50); one at a time took 10.0 ms; the server's CPU was at most 55 % busy, pummel's busiest thread 28 %",
            ),
            (
                Cause::None { next: next(Resource::ClientThread { threads: 1 }, 0.21, 94_700.0) },
                "none reached: every request was answered as it came. pummel's thread, 21 % busy, would be the first, at about \
                 94,700/s at this cost a request",
            ),
            (
                Cause::None { next: next(Resource::ServerCpu { server: None }, 0.22, 90_200.0) },
                "none reached: every request was answered as it came. The server's CPU, 22 % busy, would be the first, at about \
                 90,200/s at this cost a request",
            ),
            (
                Cause::None { next: next(Resource::Slots, 0.19, 2_490.0) },
                "none reached: every request was answered as it came. The connections, 19 % busy, would be the first, at about \
                 2,490/s",
            ),
            (Cause::None { next: None }, "none reached: every request was answered as it came"),
        ]
    }

    #[test]
    fn each_cause_has_one_sentence() {
        for (cause, words) in table() {
            assert_eq!(cause_words(&cause), words);
        }
    }

    #[test]
    fn sentences_are_short_and_of_one_line() {
        for (cause, words) in table() {
            assert!(words.chars().count() <= SENTENCE_MAX, "{} characters: {words}", words.chars().count());
            assert!(!words.contains('\n') && !words.ends_with('.') && !words.contains("  "), "{cause:?}");
        }
    }

    /// The most characters of a sentence: three lines of a screen.
    const SENTENCE_MAX: usize = 230;

    #[test]
    fn causes_are_read_as_they_were_written() {
        for (cause, words) in table() {
            let written = serde_json::to_vec(&cause).expect("plain values");
            assert_eq!(
                serde_json::from_slice::<Cause>(&written).expect("as it was written"),
                cause,
                "{words}"
            );
        }
    }
}
