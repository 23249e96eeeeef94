//! Documents without names: addresses of servers, names of agents, users and paths become numbered words.

use pummel_logic::plan::address;
use pummel_logic::plan::{Plan, Work};
use serde_json::{Map, Value};

use crate::Report;
use crate::document::Document;
use crate::json_layout::json_value;
use crate::view::run::exit_status;

/// Names shorter than this are replaced only where nothing stands beside them, since they are parts of sentences too.
const SHORT_BYTES: usize = 3;

/// Fields whose texts are words of pummel, or a server's description of itself: such a word is not a name there.
const FIELDS_OF_WORDS: [&str; 17] = [
    "software",
    "version",
    "detected",
    "status",
    "clock",
    "front",
    "limit",
    "row",
    "figure",
    "kind",
    "backend",
    "profile",
    "outcome",
    "taker",
    "damage",
    "certainty_missing_kind",
    "cause",
];

/// Fields whose texts are the words of servers and of the system, which may name machines that the plan does not.
const FIELDS_OF_OTHERS: [&str; 4] = ["reason", "what", "unread", "threads_unread"];

/// What stands in the place of a path.
const PATH: &str = "path";

/// The document of a report with its exit status, without names where the plan says so.
pub fn document_of(report: &Report<'_>) -> Document {
    let document = Document::of(report);
    let document = Document { exit: exit_status(&document, report.ending), ..document };
    if report.plan.anonymous { without_names(document) } else { document }
}

/// The document with words in the place of names.
fn without_names(document: Document) -> Document {
    let names = names_of(&document);
    let plan = plan_without_names(&document.plan, &names);
    // Keys are data, and stand in no result.
    let failed_keys = document.failed_keys.clone();
    let replaced = serde_json::to_vec(&document).ok().and_then(|text| {
        let mut value: Value = serde_json::from_slice(&text).ok()?;
        walk(&mut value, &names);
        value["plan"] = json_value(&plan);
        // From bytes, as stored results are read: every type of the document would be compiled once more otherwise.
        serde_json::from_slice(value.to_string().as_bytes()).ok()
    });
    // A name that is also a word of the layout makes another document of it. All that may hold names is left out then.
    let replaced = replaced.map(|document| Document { failed_keys, ..document });
    replaced.unwrap_or(Document {
        plan,
        reason: None,
        why: None,
        outcome_says: None,
        outcome_why: None,
        agents: None,
        error_messages: Default::default(),
        verdict: None,
        evidence: None,
        cluster: None,
        server_stats: Vec::new(),
        ..document
    })
}

/// A sentence about a run of the plan by these agents with these network cards, with words in the place of names where the
/// plan says so.
pub fn sentence(text: &str, plan: &Plan, agents: &[String], cards: &[String]) -> String {
    if !plan.anonymous {
        return text.to_owned();
    }
    let mut names = names_of_run(plan, agents.iter().map(String::as_str));
    names.extend(cards.iter().map(|card| card_word(card)));
    replaced(text, &longest_first(names))
}

/// A network card, and the word for it.
fn card_word(name: &str) -> (String, String) {
    (name.to_owned(), "card".to_owned())
}

/// The names in a document, the longest first, and the word for each.
fn names_of(document: &Document) -> Vec<(String, String)> {
    let members = document.agents.iter().flat_map(|agents| &agents.members);
    let mut names = names_of_run(&document.plan, members.map(|member| member.name.as_str()));
    let machines = document.evidence.iter().flat_map(|evidence| &evidence.machines);
    let cards = machines.flat_map(|machine| &machine.network).flat_map(|network| &network.cards);
    names.extend(cards.map(|card| card_word(&card.name)));
    let shards = document.cluster.iter().flat_map(|cluster| &cluster.shards);
    let unknown = shards.filter(|shard| !document.plan.servers.contains(&shard.node)).enumerate();
    names.extend(unknown.map(|(number, shard)| (shard.node.clone(), format!("node-{}", number + 1))));
    longest_first(names)
}

/// The names in a plan and of its agents, and the word for each.
fn names_of_run<'a>(plan: &Plan, agents: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    for (role, addresses) in [("server", &plan.servers), ("asked-server", &plan.server_stats_at)] {
        for (number, address) in addresses.iter().enumerate() {
            let word = format!("{role}-{}", number + 1);
            names.push((address.clone(), word.clone()));
            let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
            names.push((host.to_owned(), word));
        }
    }
    for (number, name) in agents.enumerate() {
        names.push((name.to_owned(), format!("agent-{}", number + 1)));
    }
    for (number, rewrite) in plan.cluster.rewrite.iter().enumerate() {
        let [from, to] = ["rewritten", "reached"].map(|role| format!("{role}-{}", number + 1));
        names.extend([(rewrite.from.clone(), from), (rewrite.to.clone(), to)]);
    }
    names.extend(plan.login.iter().map(|login| (login.user.clone(), "user".to_owned())));
    names.extend(plan.socket.source.iter().map(|source| (source.clone(), "source".to_owned())));
    // What is called `-` is standard input.
    let paths = plan.files().into_iter().map(|(_, path)| path).filter(|path| *path != "-");
    names.extend(paths.map(|path| (path.to_owned(), PATH.to_owned())));
    names
}

/// The names that are not empty, in the order in which they are replaced: the longer of two may hold the shorter one.
fn longest_first(mut names: Vec<(String, String)>) -> Vec<(String, String)> {
    names.retain(|(name, _)| !name.is_empty());
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

fn plan_without_names(plan: &Plan, names: &[(String, String)]) -> Plan {
    let mut plan = plan.clone();
    let servers = plan.servers.iter_mut().chain(&mut plan.server_stats_at).chain(&mut plan.socket.source);
    let rewrites = plan.cluster.rewrite.iter_mut().flat_map(|rewrite| [&mut rewrite.from, &mut rewrite.to]);
    servers.chain(rewrites).for_each(|address| *address = replaced(address, names));
    if let Some(login) = &mut plan.login {
        "user".clone_into(&mut login.user);
        login.password_file.as_mut().into_iter().for_each(|path| PATH.clone_into(path));
    }
    if let Some(tls) = &mut plan.tls {
        let paths = [&mut tls.ca, &mut tls.cert, &mut tls.key].into_iter().flatten();
        paths.for_each(|path| PATH.clone_into(path));
        tls.server_name.as_mut().into_iter().for_each(|name| "server".clone_into(name));
    }
    plan.dataset.iter_mut().for_each(|dataset| PATH.clone_into(&mut dataset.path));
    plan.script.iter_mut().for_each(|script| PATH.clone_into(&mut script.path));
    for phase in &mut plan.phases {
        if let Work::Replay(replay) = &mut phase.work {
            PATH.clone_into(&mut replay.path);
        }
        if let Work::Trace(replay) = &mut phase.work {
            replay.paths.iter_mut().for_each(|path| PATH.clone_into(path));
        }
    }
    plan
}

fn walk(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => *text = replaced(text, names),
        Value::Array(list) => list.iter_mut().for_each(|value| walk(value, names)),
        Value::Object(fields) => {
            for (field, value) in fields.iter_mut() {
                if let ("error_messages", Value::Object(messages)) = (field.as_str(), &mut *value) {
                    *messages = messages_without_names(std::mem::take(messages), names);
                }
                if let (true, Value::String(text)) = (FIELDS_OF_OTHERS.contains(&field.as_str()), &mut *value)
                {
                    *text = without_hosts(&replaced(text, names));
                }
                if !(FIELDS_OF_WORDS.contains(&field.as_str()) && value.is_string()) {
                    walk(value, names);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The messages of servers and of the system with their counts. Messages that differ in names alone become one.
fn messages_without_names(messages: Map<String, Value>, names: &[(String, String)]) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    for (words, count) in messages {
        let words = without_hosts(&replaced(&words, names));
        let before = sums.get(&words).and_then(Value::as_u64).unwrap_or(0);
        let sum = before.saturating_add(count.as_u64().unwrap_or(0));
        sums.insert(words, Value::from(sum));
    }
    sums
}

/// The text with `host` in place of every name that is written as a host's name is: words with dots between them of which the last
/// one is of letters, or a word before the number of a port.
fn without_hosts(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(is_part) {
        let (before, tail) = rest.split_at(at);
        let end = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        let (word, behind) = tail.split_at(end);
        let bare = word.trim_end_matches([':', '.']);
        out.push_str(before);
        match is_host(bare) {
            true => out.extend(["host", &word[bare.len()..]]),
            false => out.push_str(word),
        }
        rest = behind;
    }
    out + rest
}

/// Whether a word is written as `NAME.DOMAIN`, `NAME.DOMAIN:PORT` or `NAME:PORT`.
fn is_host(word: &str) -> bool {
    let (name, port) = word.rsplit_once(':').map_or((word, None), |(name, port)| (name, Some(port)));
    if port.is_some_and(|port| port.parse::<u16>().is_err()) || name.contains(':') {
        return false;
    }
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    let has_letter = |label: &str| label.bytes().any(|byte| byte.is_ascii_alphabetic());
    let mut labels = name.split('.').rev();
    let last = labels.next().unwrap_or_default();
    let is_domain = last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    let has_dot = name.contains('.');
    name.split('.').all(is_label)
        && ((has_dot && is_domain) || (port.is_some() && has_letter(last) && !is_own(name)))
}

/// Whether a word stands for a name that was replaced.
fn is_own(name: &str) -> bool {
    name == "address"
        || name == "host"
        || name == "source"
        || name.contains("server-")
        || name.starts_with("agent-")
}

fn replaced(text: &str, names: &[(String, String)]) -> String {
    if let Some((_, word)) = names.iter().find(|(name, _)| name == text) {
        return word.clone();
    }
    if text.starts_with('/') {
        return PATH.to_owned();
    }
    let long = names.iter().filter(|(name, _)| name.len() >= SHORT_BYTES);
    let text = long.fold(text.to_owned(), |text, (name, word)| replaced_words(&text, name, word));
    without_addresses(&text)
}

/// The text with `address` in place of every IP address, with its port: messages of the system and of servers may
/// contain the addresses behind a name of the plan.
fn without_addresses(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']' | '%');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(is_part) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let end = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        let (word, behind) = tail.split_at(end);
        // A sentence may end, or go on, behind an address.
        let bare = word.trim_end_matches([':', '.']);
        let stands_alone = !out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
            && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        match stands_alone && address::is_of_ip(bare) {
            true => out = out + "address" + &word[bare.len()..],
            false => out.push_str(word),
        }
        rest = behind;
    }
    out + rest
}

/// The text with `word` in each place of `name` that is not a part of a longer name.
fn replaced_words(text: &str, name: &str, word: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        out.push_str(before);
        let is_whole =
            !out.chars().next_back().is_some_and(is_part) && !behind.chars().next().is_some_and(is_part);
        out.push_str(if is_whole { word } else { name });
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Command, Login, Phase, Rewrite, Stop, TracePace, TraceReplay};
    use pummel_measure::measurement::{Keep, Status};

    use super::*;
    use crate::example::{Run, evidence, outage};

    #[test]
    fn names_of_other_hosts_are_left_out_and_messages_that_become_equal_keep_their_counts() {
        let mut messages = Map::new();
        for (words, count) in [
            ("ERR cannot reach cache7.example.org:11211", 25),
            ("ERR cannot reach cache8.example.org:11211", 25),
            ("MOVED 3999 127.0.0.1:25001", 3),
            ("MOVED 3999 127.0.0.1:25002", 4),
            ("ERR value is not an integer or out of range.", 1),
        ] {
            messages.insert(words.to_owned(), count.into());
        }
        let sums: Vec<(String, Value)> = messages_without_names(messages, &[]).into_iter().collect();
        let sum = |words: &str| sums.iter().find(|(own, _)| own == words).and_then(|(_, sum)| sum.as_u64());
        assert_eq!(sums.len(), 3, "{sums:?}");
        assert_eq!(sum("ERR cannot reach host"), Some(50));
        assert_eq!(sum("MOVED 3999 address"), Some(7));
        assert_eq!(sum("ERR value is not an integer or out of range."), Some(1));
        for (text, shown) in [
            ("no address for db.internal: try again.", "no address for host: try again."),
            ("cache7:11211 refused", "host refused"),
            ("server-1:11211 refused, 3.5 s later", "server-1:11211 refused, 3.5 s later"),
            ("redis 7.0.15, at 10:30, e.g. x", "redis 7.0.15, at 10:30, e.g. x"),
            ("p99.9 was 5.2ms", "p99.9 was 5.2ms"),
        ] {
            assert_eq!(without_hosts(text), shown);
        }
    }

    #[test]
    fn a_document_without_names_tells_all_else() {
        let mut run = Run::new(Keep::Figures);
        run.plan.servers = vec!["cache-1.example:11211".to_owned(), "/run/memcached".to_owned()];
        let password_file = Some("/home/alice/secret".to_owned());
        run.plan.login = Some(Login { user: "alice".to_owned(), password_file });
        run.measurement.evidence = Some(evidence());
        run.measurement.message(b"ERR cache-1.example is full; cache-1.example2 is not", 3);
        let named = run.document(Clone::clone);
        run.plan.anonymous = true;
        let document = run.document(Clone::clone);
        assert_eq!(document.plan.servers, ["server-1", "server-2"]);
        let text = serde_json::to_string(&document).expect("a document");
        for name in ["cache-1.example:", "cache-1.example is", "alice", "/run"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert!(text.contains("ERR server-1 is full; cache-1.example2 is not"), "{text}");
        assert_eq!((document.totals, document.trust), (named.totals, named.trust), "figures stay");
    }

    #[test]
    fn nodes_of_a_cluster_have_the_words_of_servers_whether_the_plan_has_them_or_not() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        run.plan.anonymous = true;
        run.plan.servers.remove(1);
        run.plan.cluster.rewrite =
            vec![Rewrite { from: "inner.example".to_owned(), to: "127.0.0.1".to_owned() }];
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        seen.shards[0].outages.push(outage(1, 40));
        let document = run.document(Clone::clone);
        let cluster = document.cluster.as_ref().expect("it is a cluster");
        let nodes: Vec<&str> = cluster.shards.iter().map(|shard| shard.node.as_str()).collect();
        assert_eq!(nodes, ["server-1", "node-1"]);
        assert_eq!(cluster.outages[0].shard, "server-1");
        let text = serde_json::to_string(&document).expect("a document");
        assert!(!text.contains("127.0.0.1") && !text.contains("inner"), "{text}");
    }

    #[test]
    fn a_document_has_no_password_in_its_command_and_an_anonymous_one_no_argument() {
        let mut run = Run::new(Keep::Figures);
        run.plan.commands = vec![Command::unnamed("AUTH alice SECRET")];
        let document = run.document(Clone::clone);
        assert_eq!(document.plan.commands[0].template, "AUTH alice ***");
        assert!(!serde_json::to_string(&document).expect("a document").contains("SECRET"));
        run.plan.commands = vec![Command::unnamed("GET auth")];
        assert_eq!(run.document(Clone::clone).plan.commands[0].template, "GET auth");
        run.plan.anonymous = true;
        assert_eq!(run.document(Clone::clone).plan.commands[0].template, "GET ***");
    }

    #[test]
    fn a_sentence_has_no_names_of_agents_that_were_not_reached_nor_of_cards() {
        let plan = Plan { anonymous: true, ..Plan::default() };
        let agents = ["load1.corp:5556".to_owned()];
        let cards = ["enp3s0".to_owned()];
        let said =
            sentence("no agent at load1.corp:5556: refused; enp3s0 carried 97 %", &plan, &agents, &cards);
        assert_eq!(said, "no agent at agent-1: refused; card carried 97 %");
        let replay = TraceReplay::of(vec!["/home/alice/x.csv".to_owned()], TracePace::Fast, 1);
        let mut with_trace = plan.clone();
        with_trace.phases.push(Phase {
            name: "measure".to_owned(),
            work: Work::Trace(Box::new(replay)),
            stop: Stop::default(),
            recorded: true,
        });
        let said = sentence("cannot read '/home/alice/x.csv': No such file", &with_trace, &agents, &cards);
        assert_eq!(said, "cannot read 'path': No such file");
        let named = Plan::default();
        assert_eq!(sentence("at load1.corp:5556", &named, &agents, &cards), "at load1.corp:5556");
    }

    #[test]
    fn addresses_that_names_stand_for_are_left_out_and_numbers_are_not() {
        for (text, without) in [
            ("cannot connect to 10.1.2.3:11211: refused", "cannot connect to address: refused"),
            ("[fe80::1]:5 and ::1 are gone.", "address and address are gone."),
            ("it was 192.168.0.7.", "it was address."),
            ("redis 7.0.15, 12:30:05, 3:4, 1.5 s, v1.2.3.4", "redis 7.0.15, 12:30:05, 3:4, 1.5 s, v1.2.3.4"),
            ("Linux 6.1.0-13-amd64, 0-3,8", "Linux 6.1.0-13-amd64, 0-3,8"),
            ("", ""),
        ] {
            assert_eq!(without_addresses(text), without);
        }
    }

    #[test]
    fn a_name_that_is_a_word_of_the_layout_leaks_nothing_and_changes_nothing() {
        let mut run = Run::new(Keep::Figures);
        run.plan.servers = vec!["complete".to_owned()];
        run.plan.anonymous = true;
        let document = run.document(Clone::clone);
        assert_eq!(document.plan.servers, ["server-1"]);
        assert_eq!(document.status, Status::Complete);
        assert!(document.verdict.is_some() && document.totals.requests > 0);
    }

    #[test]
    fn a_server_that_is_called_as_its_software_has_its_software_and_version() {
        let mut run = Run::new(Keep::Figures);
        run.plan.servers = vec!["redis:6379".to_owned()];
        let mut evidence = evidence();
        let server = &mut evidence.servers[0];
        server.address = "redis:6379".to_owned();
        let reading = server.reading.as_mut().expect("a reading");
        (reading.software, reading.version) = ("redis".to_owned(), "7.0.15".to_owned());
        run.measurement.evidence = Some(evidence);
        run.measurement.detected = Some("redis 7.0.15, resp3".to_owned());
        run.plan.anonymous = true;
        let document = run.document(Clone::clone);
        assert_eq!(document.detected.as_deref(), Some("redis 7.0.15, resp3"));
        let server = &document.evidence.expect("evidence").servers[0];
        let reading = server.reading.as_ref().expect("a reading");
        assert_eq!((reading.software.as_str(), reading.version.as_str()), ("redis", "7.0.15"));
        assert_eq!(server.address, "server-1");
    }
}
