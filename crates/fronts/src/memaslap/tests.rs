//! Command lines and configuration files, and what they mean or why they mean nothing.

mod files;
mod manual;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use pummel_logic::plan::{Arrivals, Protocol, Transport, Work};

use super::*;
use crate::getopt::Takes;
use crate::job::FrontInputs;

/// Files that command lines of the tables may name.
const FILES: &[(&str, &str)] = &[
    ("small", "key\n16 24 1\nvalue\n100 100 1\n"),
    ("k15", "key\n15 20 1\n"),
    ("k16", "key\n16 16 1\n"),
    ("k26", "key\n16 26 1\n"),
    ("k27", "key\n16 27 1\n"),
    ("k250", "key\n250 250 1\n"),
    ("k251", "key\n16 251 1\n"),
    ("v0", "value\n0 10 1\n"),
    ("v1m", "value\n1 1048576 1\n"),
    ("v1m1", "value\n1 1048577 1\n"),
    ("turned", "key\n40 20 1\n"),
    ("negative", "key\n20 20 -1\n"),
    ("negativecmd", "cmd\n0 -1\n1 2\n"),
    ("half", "key\n20 20 0.5\n"),
    ("sets", "cmd\n0 1\n"),
    ("gets", "cmd\n1 1\n"),
    ("sample", "key\n128 128 1\nvalue\n2048 2048 1\ncmd\n0    0.1\n1.0 0.9\n"),
    ("empty", ""),
    ("comments", "# nothing\n"),
    ("junk", "what is this\n"),
    ("/home/u/.memaslap.cnf", "key\n30 30 1\n"),
    ("/home/both/.memaslap.cnf", "key\n31 31 1\n"),
    ("/home/both/.memslap.cnf", "key\n32 32 1\n"),
    ("/home/old/.memslap.cnf", "key\n33 33 1\n"),
];

fn open(path: &Path) -> io::Result<Vec<u8>> {
    let found = FILES.iter().find(|(name, _)| Path::new(name) == path);
    found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn follow_at(line: &str, home: Option<&str>, servers: Option<&str>) -> Result<MemaslapCommand, Refusal> {
    let front = FrontInputs { servers: servers.map(str::to_owned), ..FrontInputs::without_files(42) };
    let inputs = Machine { inputs: &front, home: home.map(PathBuf::from), cpus: &[3, 5], open: &open };
    read(line.split_whitespace().map(|word| word.replace('~', " ")), &inputs)
}

fn follow(line: &str) -> Result<MemaslapCommand, Refusal> {
    follow_at(line, None, None)
}

/// What a refusal says: `?` in front for the parser's words, `+` where the help follows.
fn said(refusal: Refusal) -> String {
    match refusal {
        Refusal::Words(text) => format!("?{text}"),
        Refusal::Choice(text) => text,
        Refusal::WithHelp(text) => format!("+{text}"),
    }
}

fn run_of(line: &str) -> MemaslapRun {
    match follow(line) {
        Ok(MemaslapCommand::Run(run)) => *run,
        other => panic!("{line}: {other:?}"),
    }
}

/// What a command line means, in the words that differ from the defaults.
fn meaning(line: &str) -> String {
    meaning_of(follow(line))
}

fn meaning_of(asked: Result<MemaslapCommand, Refusal>) -> String {
    let run = match asked {
        Ok(MemaslapCommand::Run(run)) => *run,
        Ok(MemaslapCommand::Help) => return "help".to_owned(),
        Ok(MemaslapCommand::Version) => return "version".to_owned(),
        Err(refusal) => return said(refusal),
    };
    let plan = &run.job.plan;
    let window = plan.window().expect("every plan has a window");
    let (group, measure) = (&plan.groups[0], &plan.phases[plan.phases.len() - 1]);
    let lengths = |list: &[Lengths]| {
        let shown: Vec<String> = list.iter().map(|range| format!("{}-{}", range.start, range.end)).collect();
        shown.join(",")
    };
    let mut words = Vec::new();
    let mut say = |differs: bool, text: String| {
        if differs {
            words.push(text);
        }
    };
    say(plan.servers != ["a:11211"], format!("servers {}", plan.servers.join(",")));
    say(plan.engine.threads != 1, format!("threads {}", plan.engine.threads));
    // One thread is bound as well as several.
    say(plan.engine.cpus != [3, 5], format!("cpus {:?}", plan.engine.cpus));
    say(group.clients != 16, format!("clients {}", group.clients));
    say(window.pool.block != 16, format!("block {}", window.pool.block));
    say(window.pool.sockets != 1, format!("sockets {}", window.pool.sockets));
    say(window.pool.datagrams, "gets by datagrams".to_owned());
    let replication = window.pool.replication.map(|replication| replication.writers);
    say(replication.is_some(), format!("writers {}", replication.unwrap_or(0)));
    say(
        measure.stop.time_ns != Some(600 * SECOND),
        format!("time {:?}", measure.stop.time_ns.map(|ns| ns / SECOND)),
    );
    say(measure.stop.requests.is_some(), format!("requests {}", measure.stop.requests.unwrap_or(0)));
    say(window.objects != 10_240, format!("objects {}", window.objects));
    say(lengths(&window.keys) != "64-64", format!("keys {}", lengths(&window.keys)));
    say(lengths(&window.values) != "1024-1024", format!("values {}", lengths(&window.values)));
    say((window.set, window.get) != (0.1, 0.9), format!("set {} get {}", window.set, window.get));
    say(window.multiget != 1, format!("multiget {}", window.multiget));
    say(window.overwrite != 0.0, format!("overwrite {}", window.overwrite));
    say(window.verify != 0.0, format!("verify {}", window.verify));
    say(window.expire != 0.0, format!("expire {}", window.expire));
    say(window.verbose, "verbose".to_owned());
    say(plan.reconnect, "reconnect".to_owned());
    say(plan.protocol == Protocol::Binary, "binary".to_owned());
    say(plan.transport == Transport::Udp, "udp".to_owned());
    say(group.rate.is_some(), format!("rate {}", group.rate.unwrap_or(0.0)));
    say(group.rate.is_some() != (group.arrivals == Arrivals::Constant), "rate without gaps".to_owned());
    let presets =
        plan.phases.iter().any(|phase| matches!(&phase.work, Work::Window(window) if window.preset));
    say(presets, "presets".to_owned());
    say(plan.seed != 42, format!("seed {}", plan.seed));
    say(run.display.stat_freq_s != 0, format!("tables {}", run.display.stat_freq_s));
    say(run.display.strict, "strict".to_owned());
    say(!plan.evidence, "no evidence".to_owned());
    say(plan.anonymous, "anonymous".to_owned());
    for name in ["json", "csv", "hdr"] {
        let path = run.job.outputs.files.get(name);
        say(path.is_some(), format!("{name} {}", path.unwrap_or(Path::new("")).display()));
    }
    say(!run.remarks.is_empty(), format!("{} remarks", run.remarks.len()));
    words.join("; ")
}

/// Every option in each of its spellings.
const LINES: &[(&str, &str)] = &[
    ("-s a", ""),
    ("-sa", ""),
    ("--servers=a", ""),
    ("--servers a", ""),
    ("--serv=a", ""),
    ("-s b -s a", ""),
    ("-s a:0", ""),
    ("-s a:11211:3", ""),
    ("-s a:11211~3", ""),
    ("-s a:1~b:2", "servers a:1"),
    ("-s a:1/?3", "servers a:1"),
    ("-s a,", ""),
    ("-s a,~b:7 -T 2", "servers a:11211,b:7; threads 2; block 8"),
    ("-s [::1]:7", "servers [::1]:7"),
    ("-s [::1]", "servers [::1]:11211"),
    ("-s /run/m.sock", "servers /run/m.sock"),
    ("-s a,b", "1 remarks"),
    ("-s a word --time=5s another", "time Some(5)"),
    ("-s a -T 2", "threads 2; block 8"),
    ("-s a -T4x", "threads 4; block 4"),
    ("-s a --threads=2", "threads 2; block 8"),
    ("-s a --thr=2", "threads 2; block 8"),
    ("-s a -T 1", ""),
    ("-s a -c 50", "clients 50; block 50"),
    ("-s a --concurrency=128 --threads=8", "threads 8; clients 128"),
    ("-s a --conc=1", "clients 1; block 1"),
    ("-s a -n 40", "sockets 40"),
    ("-s a --conn_sock=128", "sockets 128"),
    ("-s a -x 1000", "time None; requests 1000"),
    ("-s a -x 5k", "time None; requests 5"),
    ("-s a --execute_number=9000000000", "time None; requests 9000000000"),
    ("-s a -x 7 -t 3s", "time None; requests 7"),
    ("-s a -t 3s -x 7", "time None; requests 7"),
    ("-s a -t 2m", "time Some(120)"),
    ("-s a -t 5S", "time Some(5)"),
    ("-s a -t 1M", "time Some(60)"),
    ("-s a -t 1.5m", "time Some(60)"),
    ("-s a --time=24h", "time Some(86400)"),
    ("-s a --time=2d", "time Some(172800)"),
    ("-s a -F small", "keys 16-24; values 100-100"),
    ("-s a --cfg_cmd=small", "keys 16-24; values 100-100"),
    ("-s a -w 40k", "objects 40960"),
    ("-s a -w 1.9k", "objects 1024"),
    ("-s a --win_size=1m", "objects 1048576"),
    ("-s a -X 20", "values 20-20"),
    ("-s a --fixed_size=1048576", "values 1048576-1048576"),
    ("-s a -v 0.2", "verify 0.2"),
    ("-s a --verify=1", "verify 1"),
    ("-s a --verif=0.01", "verify 0.01"),
    ("-s a -d 20", "multiget 20"),
    ("-s a --division=50", "multiget 50"),
    ("-s a -S 5s", "tables 5"),
    ("-s a --stat_freq=20s", "tables 20"),
    ("-s a --resp_freq=10s", "tables 10"),
    ("-s a -S 2h", "tables 7200"),
    ("-s a -e 0.05", "expire 0.05"),
    ("-s a --exp_verify=1.0", "expire 1"),
    ("-s a -o 0.2", "overwrite 0.2"),
    ("-s a --overwrite=1", "overwrite 1"),
    ("-s a -R", "reconnect"),
    ("-s a --reconnect", "reconnect"),
    ("-s a -U -F small", "keys 16-24; values 100-100; udp"),
    ("-s a --udp -X 20", "values 20-20; udp"),
    ("-s a -U -X 1311", "values 1311-1311; udp"),
    ("-s a -a -d 50 -F small", "gets by datagrams; keys 16-24; values 100-100; multiget 50"),
    ("-s a --facebook -d 2 -n 40", "sockets 40; gets by datagrams; multiget 2"),
    ("-s a -B", "binary"),
    ("-s a --binary", "binary"),
    ("-s a -Bb", "verbose; binary"),
    ("-s a -P 10k", "rate 10240"),
    ("-s a --tps=1m", "rate 1048576"),
    ("-s a -P 0k", ""),
    ("-s a -P -3k", ""),
    ("-s a,b -p 2", "servers a:11211,b:11211; writers 2; reconnect"),
    ("-s a,b,c --rep_write=1", "servers a:11211,b:11211,c:11211; writers 1; reconnect"),
    ("-s a -b", "verbose"),
    ("-s a --verbose", "verbose"),
    ("-s a --verbo", "verbose"),
    ("-h", "help"),
    ("--help", "help"),
    ("--he", "help"),
    ("-V", "version"),
    ("--version", "version"),
    ("-V -c 0", "version"),
    ("-s a --seed=7", "seed 7"),
    ("-s a --strict", "strict"),
    ("-s a --no-evidence", "no evidence"),
    ("-s a --anonymous", "anonymous"),
    ("-s a --json=j --csv c --hdr=h", "json j; csv c; hdr h"),
    ("-s a -F sets", "set 1 get 0"),
    ("-s a -F gets", "set 0 get 1; presets"),
    ("-s a -F sample", "keys 128-128; values 2048-2048"),
    ("-s a -F half", "keys 20-20; 1 remarks"),
    ("-s a -F k16", "keys 16-16"),
    ("-s a -F k250 -B", "keys 250-250; binary"),
    ("-s a -F v1m", "values 1-1048576"),
    ("-s a -F v0 -X 9", "values 9-9"),
];

#[test]
fn command_lines_mean_what_they_meant_to_the_original() {
    for (line, expected) in LINES {
        assert_eq!(meaning(line), *expected, "{line}");
    }
}

#[test]
fn every_option_has_a_line_with_its_name_and_one_with_its_letter() {
    let typed: BTreeSet<&str> = LINES.iter().flat_map(|(line, _)| line.split_whitespace()).collect();
    for choice in TABLE {
        let long = format!("--{}", choice.long.unwrap());
        assert!(typed.iter().any(|word| word.split('=').next() == Some(&long)), "no line with {long}");
        let Some(short) = choice.short else { continue };
        let bundled = |word: &&&str| {
            let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            rest.is_some_and(|rest| {
                rest.starts_with(short) || choice.takes == Takes::Nothing && rest.contains(short)
            })
        };
        assert!(typed.iter().any(|word| bundled(&word)), "no line with -{short}");
    }
}

/// Why command lines mean nothing.
const REFUSALS: &[(&str, &str)] = &[
    ("-s a --foo", "?unrecognized option '--foo'"),
    ("-s a -Z", "?invalid option -- 'Z'"),
    ("-s", "?option requires an argument -- 's'"),
    ("-s a --time", "?option '--time' requires an argument"),
    ("-s a --udp=1", "?option '--udp' doesn't allow an argument"),
    ("-s a --ver", "?option '--ver' is ambiguous; possibilities: '--verify' '--verbose' '--version'"),
    ("-s a --js=x", "?unrecognized option '--js=x'"),
    ("-s a -c 0", "Concurrency must be greater than 0.:-)"),
    ("-s a -c x", "Concurrency must be greater than 0.:-)"),
    ("-s a -c -1", "Concurrency must be greater than 0.:-)"),
    ("-c 0 -V", "Concurrency must be greater than 0.:-)"),
    ("-s a -x 0", "Execute number must be greater than 0.:-)"),
    ("-s a -T 0", "Threads number must be greater than 0.:-)"),
    ("-s a -X 0", "Value size must be between 0 and 1M.:-)"),
    ("-s a -X 1048577", "Value size must be between 0 and 1M.:-)"),
    ("-s a -v 0", "Data verification rate must be greater than 0 and less than 1.0. :-)"),
    ("-s a -v 1.1", "Data verification rate must be greater than 0 and less than 1.0. :-)"),
    ("-s a -v nan", "Data verification rate must be greater than 0 and less than 1.0. :-)"),
    ("-s a -d 0", "Multi-get key number must be greater than 0.:-)"),
    ("-s a -d 70000", "Multi-get key number must not be greater than 65535."),
    ("-s a -t 5", "Please specify the run time. :-)\n'"),
    ("-s a -t -5s", "Please specify the run time. :-)\n'"),
    ("-s a -t 99999999999999d", "Please specify the run time. :-)\n'"),
    ("-s a -t s", "Running time can not be 0. :-)"),
    ("-s a -t 0s", "Running time can not be 0. :-)"),
    ("-s a -w 10240", "Please specify the item window size. :-)\ne.g.: --win_size=10k"),
    ("-s a -w 0k", "Please specify the item window size. :-)\n"),
    ("-s a -w -1k", "Please specify the item window size. :-)\n"),
    ("-s a -w 9g", "Please specify the item window size. :-)\n"),
    ("-s a -e 0", "Expire time verification rate must be greater than 0 and less than 1.0. :-)"),
    ("-s a -o 2", "Objects overwrite rate must be greater than 0 and less than 1.0. :-)"),
    ("-s a -S 5", "Please specify the frequency of dumping statistic information. :-)\n'"),
    ("-s a -S 0s", "The frequency of dumping statistic information can not be 0. :-)"),
    ("-s a -n 0", "Number of socks of each concurrency must be greater than 0.:-)"),
    ("-s a -n 70000", "Number of socks of each concurrency must not be greater than"),
    ("-s a -P 100", "Please specify the item expected throughput. :-)\ne.g.: --tps=10k"),
    ("-s a -p 0", "Number of replication writing server must be greater than 0.:-)"),
    ("-s a --seed=x", "--seed takes"),
    ("", "+No servers provided\n"),
    ("-s ,", "+No servers provided\n"),
    ("-s a -c 17 -T 2", "+Concurrency must be the multiples of threads count."),
    ("-s a -T 4 -c 2", "+Concurrency must be the multiples of threads count."),
    ("-s a:99999", "'a:99999' is no server"),
    ("-s a -F none", "Can not open file: 'none'."),
    ("-s a -F empty", "Bad configuration file, no configuration find."),
    ("-s a -F comments", "Bad configuration file, no configuration find."),
    ("-s a -F junk", "Bad configuration file, no configuration find."),
    ("-s a -a", "facebook test must work with multi-get, please specify multi-get key number with"),
    ("-s a -a -U", "facebook test must work with multi-get"),
    ("-s a -a -U -d 2", "facebook test couldn't work with UDP."),
    ("-s a -U -n 2", "UDP doesn't support multi-socks in one connection structure."),
    ("-s a -p 1", "Please specify 2 servers at least for replication"),
    ("-s a,b -p 3", "Servers to do replication writing is larger than the total servers"),
    ("-s a,b -p 1 -U", "UDP doesn't support replication."),
    ("-s a,b -p 1 -a -d 2", "facebook test couldn't work with replication."),
    ("-s a -U -B", "UDP doesn't support the binary protocol."),
    ("-s a -a -d 2 -B", "facebook test couldn't work with the binary protocol."),
    ("-s a -F k15", "key length must be greater than 16 bytes."),
    ("-s a -F k251", "key length must be less than 250 bytes."),
    ("-s a -F k251 -B", "key length must be less than 250 bytes."),
    ("-s a -F v0", "value length must be greater than 0 bytes."),
    ("-s a -F v1m1", "key length must be less than or equal to 1M."),
    ("-s a -F turned", "start length must be less than or equal to end length."),
    ("-s a -F negative", "proportion must not be less than 0."),
    ("-s a -F negativecmd", "proportion must not be less than 0."),
    ("-s a -F k15 -a", "facebook test must work with multi-get"),
    ("-s a -F none -a", "Can not open file: 'none'."),
    ("-c 17 -T 2", "+No servers provided\n"),
    ("-s a -U -X 1312", "multi-packet request for UDP not supported.\nThe longest set takes 1401 bytes"),
];

#[test]
fn what_is_wrong_is_said_in_the_words_and_in_the_order_of_the_original() {
    for (line, expected) in REFUSALS {
        let text = follow(line).map(|asked| panic!("{line}: {asked:?}")).unwrap_or_else(said);
        assert!(text.starts_with(expected), "{line}: {text:?} and not {expected:?}");
    }
}

#[test]
fn gets_that_no_datagram_holds_have_fewer_keys_and_a_sentence_says_so() {
    let run = run_of("-s a -a -d 50");
    assert_eq!(
        run.remarks,
        [
            "multi-packet request for UDP not supported: a get of 50 keys takes up to 3263 bytes and a datagram has 1400, so that \
          gets have 21 keys"
        ]
    );
    assert!(run_of("-s a -a -d 21").remarks.is_empty());
}

#[test]
fn the_banner_has_the_list_as_it_was_typed() {
    let run = run_of("-s a,~b:7 -t 2m -T 2 -w 40k -F sample");
    let expected = "servers: a, b:7\nthreads count: 2\nconcurrency: 16\nrun time: 120s\nwindows size: 40k\n\
                    set proportion: set_prop=0.10\nget proportion: get_prop=0.90\n";
    assert_eq!(run.banner, expected);
    assert!(run_of("-s a -x 1007").banner.contains("\nexecute number: 1007\n"));
}

#[test]
fn the_environment_names_servers_only_where_the_line_does_not() {
    let servers = |line, environment| match follow_at(line, None, environment) {
        Ok(MemaslapCommand::Run(run)) => run.job.plan.servers.join(","),
        other => format!("{other:?}"),
    };
    assert_eq!(servers("", Some("e:7")), "e:7");
    assert_eq!(servers("-s a", Some("e:7")), "a:11211");
    assert!(servers("", None).contains("No servers provided"));
}

#[test]
fn the_file_at_home_is_the_one_that_the_manual_names_or_else_the_old_one_and_need_not_be() {
    let key = |home, line: &str| match follow_at(line, home, None) {
        Ok(MemaslapCommand::Run(run)) => run.job.plan.window().unwrap().keys[0].start,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(Some("/home/u"), "-s a"), 30);
    assert_eq!(key(Some("/home/both"), "-s a"), 31);
    assert_eq!(key(Some("/home/old"), "-s a"), 33);
    assert_eq!(key(Some("/home/none"), "-s a"), 64);
    assert_eq!(key(None, "-s a"), 64);
    assert_eq!(key(Some("/home/both"), "-s a -F small"), 16);
}

#[test]
fn plans_are_saved_and_read_again() {
    for (line, _) in LINES.iter().filter(|(line, _)| matches!(follow(line), Ok(MemaslapCommand::Run(_)))) {
        let plan = run_of(line).job.plan.into_plan();
        let text = toml::to_string(&plan).unwrap();
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan, "{line}");
    }
}

#[test]
fn servers_beyond_the_threads_are_named_and_not_used() {
    let run = run_of("-s a,b,c -T 2");
    assert_eq!(run.job.plan.servers, ["a:11211", "b:11211"]);
    assert_eq!(run.remarks, ["only the first 2 of 3 servers are used: one for each thread"]);
}
