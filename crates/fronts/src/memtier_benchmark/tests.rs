//! Command lines of memtier_benchmark, and what they mean.

use pummel_logic::merge::Merge as _;
use pummel_logic::plan::{KeyStyle, Plan, Popularity, Work};
use pummel_logic::secrets::masked_words;
use pummel_measure::counters::Bytes;
use pummel_measure::measurement::Measurement;
use pummel_measure::recorder::{Counts, Recorder};

use super::*;
use crate::getopt::Takes;

const MONITORED: &str = "OK\n1.2 [0 127.0.0.1:1] \"SET\" \"a\" \"1\"\n1.3 [0 127.0.0.1:1] \"GET\" \"a\"\n";

fn read_words(words: Vec<String>) -> Result<MemtierCommand, Refusal> {
    let open = |path: &Path| match path.to_str() {
        Some("monitor.txt") => Ok(MONITORED.into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    read(words.into_iter(), &FrontInputs::without_files(7), &open)
}

/// A line of words between blanks; `~` stands for a blank in a word.
fn read_line(line: &str) -> Result<MemtierCommand, Refusal> {
    read_words(line.split_whitespace().map(|word| word.replace('~', " ")).collect())
}

fn runs_of(line: &str) -> Vec<MemtierRun> {
    match read_line(line) {
        Ok(MemtierCommand::Runs { runs, .. }) => runs,
        other => panic!("{line}: {other:?}"),
    }
}

fn run_of(line: &str) -> MemtierRun {
    let mut runs = runs_of(line);
    assert_eq!(runs.len(), 1, "{line}");
    runs.remove(0)
}

fn plan_of(line: &str) -> Plan {
    run_of(line).job.plan.into_plan()
}

fn mix_of(plan: &Plan) -> &Mix {
    match &plan.phases[0].work {
        Work::Mix(mix) => mix,
        other => panic!("{other:?}"),
    }
}

fn refusal_of(line: &str) -> Refusal {
    match read_line(line) {
        Err(refusal) => refusal,
        Ok(read) => panic!("{line}: {read:?}"),
    }
}

#[test]
fn the_defaults_are_those_of_the_original() {
    let plan = plan_of("");
    assert_eq!((&*plan.servers[0], plan.protocol, plan.seed), ("localhost:6379", Protocol::Resp2, 0));
    assert_eq!((plan.groups[0].clients, plan.engine.threads), (200, 4));
    assert_eq!(plan.phases[0].stop.requests, Some(2_000_000));
    let mix = mix_of(&plan);
    assert_eq!((&*mix.ops, mix.in_turns), (&[(Verb::Set, 1.0), (Verb::Get, 10.0)][..], true));
    let data = &plan.data;
    assert_eq!((data.records, data.first_key, &*data.key_prefix), (10_000_001, 0, "memtier-"));
    assert_eq!(
        (data.style.keys, data.value_size.mean(), data.value_filler),
        (KeyStyle::Unpadded, 32.0, Some('x'))
    );
    assert!(plan.groups[0].policy.same_draws, "all clients begin with one seed");
    assert!(!plan_of("--distinct-client-seed").groups[0].policy.same_draws);
    assert_eq!(plan_of("--randomize").seed, 7);
    assert_eq!(plan_of("-R").data.value_filler, None);
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let plan = plan_of("-c5 stray -t 2 --requ=7 --pipeline 3 -s cache -p 7000");
    assert_eq!((plan.groups[0].clients, plan.groups[0].depth), (10, Depth::Limit(3)));
    assert_eq!((plan.phases[0].stop.requests, &*plan.servers[0]), (Some(70), "cache:7000"));
    for (line, words) in [
        ("--bogus", "memtier_benchmark: unrecognized option '--bogus'"),
        ("-c", "memtier_benchmark: option requires an argument -- 'c'"),
        ("-c 0", "error: clients must be greater than zero."),
        ("-c -1", "error: clients must be greater than zero."),
        ("-c 5x", "error: clients must be greater than zero."),
        ("--ratio 0:0", "error: ratio must be expressed as [0-n]:[0-n]."),
        ("--key-minimum 0", "error: key-minimum must be greater than zero."),
        (
            "--key-pattern P:S",
            "error: parallel key-pattern must be configured for both SET and GET commands.",
        ),
        ("-n 5 --test-time 5", "error: --test-time and --requests are mutually exclusive."),
        ("--test-time 5 -n 5", "error: --test-time and --requests are mutually exclusive."),
        (
            "-P memcached",
            "error: supported protocols are 'memcache_text', 'memcache_binary', 'redis', 'resp2' and resp3'.",
        ),
        ("--command-ratio 2", "error: no arbitrary command found."),
        (
            "-d 5 --data-size-range 1-5",
            "error: data-size cannot be used with data-size-list or data-size-range.",
        ),
        ("-P memcache_text -a pw", "error: authenticate can only be used with redis or memcache_binary."),
    ] {
        assert_eq!(refusal_of(line), Refusal::Usage(words.to_owned()), "{line}");
    }
    assert_eq!(refusal_of("--help"), Refusal::Help);
    assert!(matches!(refusal_of("-S /s -p 5"), Refusal::Configuration(_)));
    assert!(matches!(read_line("-v"), Ok(MemtierCommand::Version)));
}

#[test]
fn every_client_has_its_share_of_all_keys() {
    let requests = |line: &str| plan_of(line).phases[0].stop.requests;
    assert_eq!(requests("-n allkeys --key-maximum 100 -c 1 -t 1"), Some(100));
    assert_eq!(
        requests("-n allkeys --key-maximum 100 --key-pattern P:P --ratio 1:0 -c 3 -t 2"),
        Some(6 * 17)
    );
    let Ok(MemtierCommand::Runs { head, .. }) = read_line("-n allkeys --key-maximum 100") else { panic!() };
    assert_eq!(head, "setting requests to 100\n");
}

#[test]
fn patterns_of_keys_become_popularities_of_operations() {
    let plan =
        plan_of("--key-pattern G:S --key-minimum 100 --key-maximum 700 --key-median 200 --key-stddev 9");
    let mix = mix_of(&plan);
    assert_eq!(mix.popularity, Popularity::Normal { median: 100.0, deviation: 9.0 });
    assert_eq!(mix.popularity_of, [(Verb::Get, Popularity::SequentialEach)]);
    let plan = plan_of("--key-pattern Z:Z --key-zipf-exp 1.2");
    assert_eq!((plan.data.first_key, plan.data.records), (1, 10_000_000));
    assert_eq!(mix_of(&plan).popularity, Popularity::Zipf { exponent: 1.2 });
    assert_eq!(mix_of(&plan_of("--key-pattern P:P")).popularity, Popularity::SequentialShares);
}

#[test]
fn values_with_an_expiry_or_an_offset_are_stored_by_the_commands_of_the_original() {
    let templates =
        |line: &str| plan_of(line).commands.into_iter().map(|command| command.template).collect::<Vec<_>>();
    assert_eq!(templates("--expiry-range 10-20"), ["SETEX __key__ __int:10-20__ __value__"]);
    assert_eq!(templates("--data-offset 7"), ["SETRANGE __key__ 7 __value__", "GETRANGE __key__ 7 -1"]);
    assert_eq!(templates("--wait-ratio 1:1 --num-slaves 1-2 --wait-timeout 5-5"), ["WAIT __int:1-2__ 5"]);
    let plan = plan_of("-P memcache_text --expiry-range 10-20");
    assert_eq!((plan.commands.len(), plan.data.expiry_s.mean()), (0, 15.0));
}

#[test]
fn commands_take_turns_and_have_rows_by_their_names() {
    let line = "--command SET~__key__~5 --command-ratio 2 --command GET~__key__ --command SET~__key__~6";
    let run = run_of(line);
    let rows: Vec<(&str, usize)> = run.display.rows.iter().map(|row| (&*row.name, row.verbs.len())).collect();
    assert_eq!(rows, [("Sets", 2), ("Gets", 1)]);
    let mix = mix_of(&run.job.plan);
    assert!(mix.in_turns);
    assert_eq!(mix.ops.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), [2.0, 1.0, 1.0]);
    let by_line = run_of(&format!("{line} --command-stats-breakdown line"));
    assert_eq!(by_line.display.rows.len(), 3);
    let monitored = run_of("--monitor-input monitor.txt --command __monitor_line@__ --monitor-pattern R");
    assert_eq!(monitored.job.plan.commands.len(), 2);
    assert!(!mix_of(&monitored.job.plan).in_turns);
    assert!(matches!(refusal_of("--command SET --ratio 1:1"), Refusal::Usage(_)));
}

#[test]
fn the_examples_of_the_original_can_be_followed() {
    for line in [
        "--monitor-input=monitor.txt --command=__monitor_line1__",
        "--monitor-input=monitor.txt --command=__monitor_line1__ --command=__monitor_line2__",
        "--monitor-input=monitor.txt --command=__monitor_line@__",
        "--command=SET~foo~__data__ --command=SET~bar~__data__ --command=GET~foo",
        "--command=set~__key__~5 --command-ratio=2 --command-key-pattern=G",
        "--ratio=1:0 --test-time=60 --rate-limiting=100 -t 2 -c 50 --key-pattern=P:P --key-maximum 1000000",
        "--data-size-list=10:1,100:3 -R --data-size-pattern=R",
        "--clients-start=10 --clients-step=10 --step-duration=5 --test-time=60 -c 50",
    ] {
        assert_eq!(runs_of(line).len(), 1, "{line}");
    }
    assert!(
        matches!(refusal_of("--statsd-host=localhost --test-time=60"), Refusal::Usage(why) if why.contains("--metrics"))
    );
}

#[test]
fn a_rate_limit_comes_in_portions_of_a_fiftieth_of_a_second() {
    let group = |line: &str| plan_of(line).groups.remove(0);
    assert_eq!(
        (group("--rate-limiting 50 -c 2 -t 1").arrivals, group("--rate-limiting 50 -c 2 -t 1").rate),
        (Arrivals::Constant, Some(100.0))
    );
    assert_eq!(group("--rate-limiting 1000").arrivals, Arrivals::Bursts(20));
    assert_eq!(group("--reconnect-interval 9").churn.map(|churn| churn.calls), Some(9));
}

#[test]
fn the_number_of_clients_rises_in_steps() {
    let plan = plan_of("-t 2 -c 10 --clients-start 4 --clients-step 4 --step-duration 5 --test-time 60");
    let steps: Vec<_> =
        plan.changes.parts.iter().map(|part| (part.at_ns / SECOND, part.connections)).collect();
    assert_eq!(steps, [(0, Some(8)), (5, Some(16)), (10, Some(20))]);
    let short = plan_of("-c 10 --clients-start 4 --clients-step 1 --step-duration 5 --test-time 6");
    assert_eq!(short.changes.parts.len(), 2);
}

#[test]
fn several_runs_write_their_results_to_files_of_their_own() {
    let runs = runs_of("-x 3 --json r.json");
    let files: Vec<_> =
        runs.iter().map(|run| run.job.outputs.files.get("json").map(Path::to_path_buf)).collect();
    assert_eq!(files, ["r.1.json", "r.2.json", "r.3.json"].map(|name| Some(name.into())));
}

#[test]
fn a_uri_goes_before_the_options() {
    let run = run_of("-u rediss://joe:word@cache:7000/2");
    let plan = &run.job.plan;
    assert_eq!((&*plan.servers[0], plan.database, plan.tls.is_some()), ("cache:7000", 2, true));
    assert_eq!(plan.login.as_ref().map(|login| &*login.user), Some("joe"));
    assert_eq!(run.password.as_ref().map(Secret::reveal), Some("word"));
    let Ok(MemtierCommand::Runs { warnings, .. }) = read_line("-u redis://cache -p 5") else { panic!() };
    assert_eq!(warnings, "warning: both URI and --port specified, URI takes precedence.\n");
}

#[test]
fn passwords_of_command_lines_are_not_kept() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    for line in [
        "memtier_benchmark -a user:hunter2",
        "memtier_benchmark --authenticate=hunter2",
        "memtier_benchmark -u redis://u:hunter2@h",
        "memtier_benchmark --authenticate hunter2 -c 5",
    ] {
        let masked = masked_words(&words(line)).join(" ");
        assert!(!masked.contains("hunter2"), "{masked}");
    }
}

#[test]
fn every_option_of_the_table_is_followed_or_refused() {
    for choice in &options::CHOICES {
        let name = choice.long.expect("every option has a long name");
        for value in ["5", "1:1", "1-5", "R", "x"] {
            let mut words = vec![format!("--{name}")];
            if choice.takes == Takes::Value {
                words.push(value.to_owned());
            }
            // Refused or not: it ends without a panic.
            drop(read_words(words));
        }
    }
}

#[test]
fn the_bytes_of_a_run_are_dealt_to_its_rows() {
    let run = run_of("-c 1 -t 1");
    let counts = |numbers: &[u64]| -> Vec<Counts> {
        numbers.iter().map(|completed| Counts { completed: *completed, ..Counts::default() }).collect()
    };
    let dealt = run.display.dealt(&counts(&[10, 100, 0]), Bytes { sent: 10_000, received: 1_000 });
    let sums = dealt
        .iter()
        .flatten()
        .fold((0, 0), |(sent, received), bytes| (sent + bytes.sent, received + bytes.received));
    assert!(sums.0.abs_diff(10_000) <= 2 && sums.1 == 1_000, "{sums:?}");
    assert_eq!(dealt[0].map(|bytes| bytes.received), Some(50), "ten times +OK");
    let only = run_of("--ratio 1:0").display.dealt(&counts(&[10, 0, 0]), Bytes { sent: 700, received: 50 });
    assert_eq!(only[0], Some(Bytes { sent: 700, received: 50 }));
    let failed = Counts { errors: [1; pummel_logic::protocol::Fault::COUNT], ..Counts::default() };
    let with_failures = [counts(&[10, 100]), vec![failed]].concat();
    assert_eq!(run.display.dealt(&with_failures, Bytes { sent: 9, received: 9 }), [None; 3]);
    let several = run_of("--command PING --command TIME");
    assert_eq!(several.display.dealt(&counts(&[1, 1]), Bytes { sent: 9, received: 9 }), [None, None]);
}

#[test]
fn a_server_that_stops_answering_does_not_raise_the_rate() {
    let run = run_of("-c 1 -t 1 --test-time 4");
    let plan = &run.job.plan;
    let names = plan.groups.iter().map(|group| group.name.clone());
    let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
    let mut recorder = Recorder::new([Verb::Get].into_iter());
    *recorder.counts(Verb::Get) = Counts { completed: 400, ..Counts::default() };
    measurement.groups[0].ops.merge(recorder.ops());
    (measurement.measured_ns, measurement.answered_ns) = (4 * SECOND, SECOND);
    let figures = run.display.figures(&measurement, Vec::new());
    assert_eq!((figures.rate(), figures.length_ms), (100.0, 4_000));
    measurement.answered_ns = 5 * SECOND;
    assert_eq!(
        run.display.figures(&measurement, Vec::new()).rate(),
        80.0,
        "what was answered in the drain took longer"
    );
}

#[test]
fn a_number_of_runs_and_of_steps_has_a_limit() {
    assert!(matches!(refusal_of("-x 4294967295"), Refusal::Configuration(_)));
    let line = "-c 4000000 --clients-start 1 --clients-step 1 --step-duration 1 --test-time 4000000000 -t 1";
    assert!(matches!(refusal_of(line), Refusal::Configuration(_)));
}

#[test]
fn no_command_line_makes_it_panic() {
    let values = [
        "1",
        "5",
        "0",
        "-1",
        "1:2",
        "2-9",
        "P:P",
        "S:R",
        "R",
        "S",
        "x",
        "",
        "99999999999999999999",
        "GET __key__",
        "a:b@c",
    ];
    let mut state = 1;
    let mut draw = |below: usize| {
        state = pummel_logic::rng::mix(&[state]);
        (state % below as u64) as usize
    };
    for _ in 0..20_000 {
        let mut words = Vec::new();
        for _ in 0..draw(6) {
            let choice = &options::CHOICES[draw(options::CHOICES.len())];
            words.push(format!("--{}", choice.long.unwrap_or_default()));
            if choice.takes == Takes::Value {
                words.push(values[draw(values.len())].to_owned());
            }
        }
        if let Ok(MemtierCommand::Runs { runs, .. }) = read_words(words.clone()) {
            assert!(!runs.is_empty(), "{words:?}");
        }
    }
}
