//! Command lines of redis-benchmark, and what they mean.

use pummel_logic::plan::{Backend, Depth, Plan, Protocol, Work};
use pummel_logic::secrets::masked_text;
use pummel_logic::time::{MILLISECOND, SECOND};

use super::*;
use crate::fronts::front_of;
use crate::getopt::Takes;

fn read_as(program: Program, line: &str) -> Result<BenchmarkCommand, Refusal> {
    let words = line.split_whitespace().map(str::to_owned).collect();
    read(program, words, &FrontInputs::without_files(7))
}

struct Read {
    runs: Vec<BenchmarkRun>,
    repeats: bool,
    remarks: Vec<String>,
    epilogue: Option<&'static str>,
}

fn tests_of(program: Program, line: &str) -> Read {
    match read_as(program, line) {
        Ok(BenchmarkCommand::Tests { runs, repeats, remarks, epilogue }) => {
            Read { runs, repeats, remarks, epilogue }
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// The one test of a command line.
fn test_of(line: &str) -> BenchmarkRun {
    let mut runs = tests_of(Program::Redis, line).runs;
    assert_eq!(runs.len(), 1, "{line}");
    runs.remove(0)
}

fn plan_of(line: &str) -> Plan {
    test_of(line).job.plan.into_plan()
}

#[test]
fn the_defaults_are_those_of_the_original() {
    let plan = plan_of("-t get");
    assert_eq!(plan.servers, ["127.0.0.1:6379"]);
    assert_eq!((plan.protocol, plan.database, plan.seed), (Protocol::Resp2, 0, 7));
    assert_eq!((plan.groups[0].clients, plan.groups[0].depth), (50, Depth::Limit(1)));
    assert_eq!(plan.phases.len(), 1);
    assert_eq!(plan.phases[0].stop.requests, Some(100_000));
    assert_eq!(plan.commands[0].template, r"GET key:\__rand_int__");
    assert_eq!((plan.interval_ns, plan.timeout_ns), (250 * MILLISECOND, 60 * SECOND));
    let all = tests_of(Program::Redis, "");
    assert_eq!((all.runs.len(), all.epilogue, all.repeats), (21, Some("\n"), false));
    assert!(all.runs[0].job.plan.commands[0].inline && !all.runs[1].job.plan.commands[0].inline);
    assert_eq!(tests_of(Program::Redis, "--csv").epilogue, None);
    assert!(tests_of(Program::Redis, "-l PING").repeats);
}

#[test]
fn options_are_read_as_whole_words_by_the_rules_of_the_original() {
    for (line, is_so) in [
        ("-t get -c 0", (|plan| plan.groups[0].clients == 1) as fn(&Plan) -> bool),
        ("-t get -n 10k", |plan| plan.phases[0].stop.requests == Some(10)),
        ("-t get -n 5 -n 7", |plan| plan.phases[0].stop.requests == Some(7)),
        ("-t get -P 16", |plan| plan.groups[0].depth == Depth::Batch(16)),
        ("-t get -P -3", |plan| plan.groups[0].depth == Depth::Limit(1)),
        ("-t set -d 0", |plan| plan.commands[0].template == r"SET key:\__rand_int__ V"),
        ("-t set -d 600", |plan| plan.commands[0].template == r"SET key:\__rand_int__ __value__"),
        ("-t get -r 100", |plan| plan.commands[0].template == "GET key:__int:000000000000-000000000099__"),
        ("-t zadd", |plan| plan.commands[0].template == r"ZADD myzset 0 element:\__rand_int__"),
        ("-t get -r 0", |plan| plan.commands[0].template == "GET key:000000000000"),
        ("-h ::1 -p 7000 -t get", |plan| plan.servers == ["[::1]:7000"]),
        ("-s /tmp/redis.sock -p 1 -t get", |plan| plan.servers == ["/tmp/redis.sock"]),
        ("--enable-tracking -t get", |plan| plan.protocol == Protocol::Resp3 && plan.tracking.is_some()),
        ("--dbnum 3 -t get", |plan| plan.database == 3),
        ("--threads 600 -t get", |plan| plan.engine.threads == 50),
        ("--threads 4 -t get", |plan| plan.engine.threads == 4),
        ("-k 0 -P 2 -t get", |plan| plan.groups[0].churn.as_ref().is_some_and(|churn| churn.calls == 2)),
        ("-k 2 -t get", |plan| plan.groups[0].churn.is_none()),
        ("-a pw -t get", |plan| plan.login.as_ref().is_some_and(|login| login.user.is_empty())),
        ("-a pw --user me -t get", |plan| plan.login.as_ref().is_some_and(|login| login.user == "me")),
        ("--user me -t get", |plan| plan.login.is_none()),
        ("--rps 500 -t get", |plan| plan.groups[0].rate == Some(500.0)),
        ("--duration 3 -t get", |plan| {
            plan.phases[0].stop.time_ns == Some(3 * SECOND) && plan.phases[0].stop.requests.is_none()
        }),
        ("--warmup 2 -t get", |plan| plan.phases.len() == 2 && !plan.phases[0].recorded),
        ("--tls --insecure --sni a -t get", |plan| plan.tls.as_ref().is_some_and(|tls| tls.insecure)),
        ("--backend epoll -t get", |plan| plan.engine.backend == Backend::Epoll),
        ("-I -c 7", |plan| matches!(plan.phases[0].work, Work::Pause(_))),
        ("-n 10 GET -n", |plan| plan.commands[0].template == "GET -n"),
        ("-n 10 -- GET k", |plan| plan.commands[0].template == "GET k"),
    ] {
        assert!(is_so(&plan_of(line)), "{line}: {:?}", plan_of(line));
    }
}

#[test]
fn a_uri_says_what_its_parts_say() {
    let run = test_of("-u redis://me:s%40cret@redis1:7000/3 -t get");
    assert_eq!((&run.job.plan.servers[0][..], run.job.plan.database), ("redis1:7000", 3));
    assert_eq!(run.job.plan.login.as_ref().map(|login| &login.user[..]), Some("me"));
    assert_eq!(run.password.map(|word| word.reveal().to_owned()).as_deref(), Some("s@cret"));
    let run = test_of("-u rediss://secret@redis1 -t get");
    assert!(run.job.plan.tls.is_some() && run.job.plan.servers == ["redis1:6379"]);
    assert_eq!(run.password.map(|word| word.reveal().to_owned()).as_deref(), Some("secret"));
    assert!(test_of("-u valkey://redis1 -t get").password.is_none());
}

#[test]
fn what_cannot_be_followed_is_refused_with_its_words() {
    let refused = |program, line: &str| match read_as(program, line) {
        Err(Refusal::Unknown(word)) => format!("unknown {word}"),
        Err(Refusal::Words(words)) => words,
        other => panic!("{line}: {other:?}"),
    };
    for (line, words) in [
        ("-c50", "unknown -c50"),
        ("--clients 5", "unknown --clients"),
        ("-c", "unknown -c"),
        ("-r -x", "unknown -r"),
        ("--json", "unknown --json"),
        ("-q=1", "unknown -q=1"),
        ("-p 65536", "Invalid server port."),
        ("-u http://a", "Invalid URI scheme"),
        ("-u memcached://a", "Invalid URI scheme"),
        ("-u redis://%zz@a", "Invalid URI: a % needs"),
        ("-u redis://a?b=1", "Invalid URI: expected a URI without '?'"),
        ("-u redis://a/x", "Invalid URI: expected redis://"),
        ("--sequential", "--sequential: pummel run has"),
        ("--rfr maybe", "--rfr: expected no, yes or all"),
        ("--rfr yes", "--rfr: expected --cluster"),
        ("--cluster GET k", "the command: its keys need {tag}"),
        ("--cluster -r 9 GET k__rand_int__", "the command: its keys need {tag}"),
        ("--duration 1 -n 5", "Options -n and --duration are mutually exclusive."),
        ("-n 0", "-n 0: expected"),
        ("--duration x", "--duration 0: expected"),
        ("--timeout 0", "--timeout: expected"),
        ("--clock sun", "--clock: expected"),
        ("--dbnum -1", "--dbnum -1: expected"),
        ("SUBSCRIBE a", "the command 'SUBSCRIBE a': SUBSCRIBE does not get one reply"),
        ("GET", "the command 'GET': GET has 2 words"),
        ("--json -", "standard output takes the result of one test"),
        ("-x GET", "-x: standard input cannot be read"),
        ("--dataset a.csv GET k", "--dataset 'a.csv'"),
    ] {
        let told = refused(Program::Redis, line);
        assert!(told.starts_with(words), "{line}: {told}");
    }
    assert!(refused(Program::Valkey, "GET a ;").starts_with("a command needs"));
}

#[test]
fn commands_of_the_user_are_one_test() {
    let run = test_of("-r 10 -P 4 -n 8 -q LPUSH mylist __rand_int__");
    assert_eq!(run.display.title, "LPUSH mylist __rand_int__");
    // *3, then $5, $6 and $12, each with its word.
    assert_eq!(run.display.payload_bytes, 4 + (4 + 7) + (4 + 8) + (5 + 14));
    assert_eq!(run.display.form, Form::Quiet);
    assert_eq!(run.job.plan.commands[0].template, "LPUSH mylist __int:000000000000-000000000009__");
    let told = tests_of(Program::Redis, "-t get LPUSH mylist __rand_int__");
    assert_eq!(told.remarks, ["without -r, __rand_int__ stands for itself", "Option -t is ignored."]);
    let several = tests_of(Program::Valkey, "-P 2 3 SET a __data__ ; GET a ; SET b 1");
    let plan = several.runs[0].job.plan.clone().into_plan();
    let templates: Vec<&str> = plan.commands.iter().map(|command| &command.template[..]).collect();
    assert_eq!(templates, ["SET a VXK", "GET a", "SET b 1"]);
    assert_eq!(plan.groups[0].depth, Depth::Batch(10));
    let Work::Mix(mix) = &plan.phases[0].work else { panic!("a mix") };
    assert!(mix.in_turns && mix.ops.iter().map(|(_, weight)| *weight).eq([3.0, 1.0, 1.0]));
}

#[test]
fn keys_have_tags_in_a_cluster() {
    let template = |line: &str| {
        let plan = plan_of(line);
        assert_eq!((plan.route, plan.data.records), (Route::Cluster, 16_384), "{line}");
        plan.commands[0].template.clone()
    };
    for (line, expected) in [
        ("--cluster -t ping_mbulk", "PING"),
        ("--cluster -t get", r"GET key:{__key__}:\__rand_int__"),
        ("--cluster -t incr -r 10", "INCR counter:{__key__}:__int:000000000000-000000000009__"),
        ("--cluster -t lpush", "LPUSH mylist:{__key__} VXK"),
        ("--cluster -t sadd -r 0", "SADD myset:{__key__} element:000000000000"),
        ("--cluster SET a{tag}b {tag}", "SET a{__key__}b {__key__}"),
    ] {
        assert_eq!(template(line), expected, "{line}");
    }
    let mset = template("--cluster -t mset");
    assert_eq!(mset.matches(r"key:{__key__}:\__rand_int__ VXK").count(), 10);
    assert_eq!(plan_of("SET a{tag} b").commands[0].template, "SET a{tag} b");
    let read_from = |line: &str| plan_of(line).cluster.read_from;
    assert_eq!(read_from("--cluster --rfr yes -t get"), ReadFrom::Replica);
    assert_eq!(read_from("--cluster --rfr all -t get"), ReadFrom::Any);
    let told = tests_of(Program::Redis, "--cluster --dbnum 3 -t get");
    assert!(told.runs[0].job.plan.database == 0 && told.remarks[0].starts_with("--dbnum"));
}

#[test]
fn tests_that_are_not_there_are_named_and_left_out() {
    let none = tests_of(Program::Redis, "-t fcall,GET");
    assert_eq!(
        (none.runs.len(), &none.remarks[..]),
        (1, &["-t fcall: there is no such test".to_owned()][..])
    );
    assert!(tests_of(Program::Redis, "-t none").runs.is_empty());
}

#[test]
fn results_of_several_tests_have_a_file_each() {
    let paths = |line: &str| {
        let runs = tests_of(Program::Redis, line).runs;
        let path =
            |run: &BenchmarkRun| run.job.outputs.files.get("json").map(|path| path.display().to_string());
        runs.iter().filter_map(path).collect::<Vec<_>>()
    };
    assert_eq!(paths("-t get --json a/r.json"), ["a/r.json"]);
    assert_eq!(paths("-t set,lpop --json a/r.json"), ["a/r.set.json", "a/r.lpop.json"]);
    assert_eq!(paths("-t rpop,lpop --json r"), ["r.lpop", "r.rpop"]);
    assert_eq!(paths("-t get --json -"), ["-"]);
}

#[test]
fn a_password_in_the_command_is_hidden_behind_every_option() {
    for choice in options::CHOICES {
        let name = match (choice.short, choice.long) {
            (Some(short), _) => format!("-{short}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        };
        let value = if choice.takes == Takes::Value { " 1" } else { "" };
        let line =
            |password: &str| format!("redis-benchmark {name}{value} CONFIG SET requirepass {password}");
        let told = masked_text(&line("SECRET"));
        assert!(!told.contains("SECRET") && told.ends_with("requirepass ***"), "{told}");
    }
}

#[test]
fn the_head_of_comma_separated_values_stands_once_where_tests_are_repeated() {
    let run = test_of("-l --csv -t get");
    assert_eq!([run.is_first(), run.is_first()], [true, false]);
    let several = tests_of(Program::Redis, "--csv -t get,set").runs;
    assert_eq!([several[1].is_first(), several[0].is_first()], [false, true]);
}

#[test]
fn each_program_has_its_own_name() {
    for (line, program) in [
        ("redis-benchmark -q", Program::Redis),
        ("/usr/bin/valkey-benchmark -q", Program::Valkey),
        ("pummel valkey-benchmark -q", Program::Valkey),
        ("/opt/valkey/bin/redis-benchmark -q", Program::Redis),
        ("pummel redis-benchmark -q", Program::Redis),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (front, name, rest) = front_of(&words).expect("it is known");
        assert_eq!((front.name, Program::of_name(&name), rest), (NAME, program, &["-q"][..]), "{line}");
    }
}
