//! The real binary, as far as it needs no server: what is refused, what is explained, what is written.

use std::ffi::OsString;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use pummel_fronts::job::{FrontInputs, Job};
use pummel_fronts::native;
use pummel_tool::commands::schema::SchemaName;
use pummel_tool::front_inputs;

use crate::common::schema::wrongs;

fn pummel(words: &[&str]) -> Output {
    Command::new(cargo_bin!("pummel"))
        .env_remove("MEMCACHED_SERVERS")
        .args(words)
        .output()
        .expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("pummel writes UTF-8")
}

/// Asserts that the command line ends with status 2, says nothing on standard output, and all of `parts` on standard
/// error.
fn assert_refused(words: &[&str], parts: &[&str]) {
    let output = pummel(words);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
    assert_eq!(text(&output.stdout), "", "{words:?}");
    for part in parts {
        assert!(errors.contains(part), "{words:?} does not say {part:?}: {errors}");
    }
}

/// Flag, wrong value, and a part of what is said to be accepted.
const WRONG_VALUES: &[(&str, &str, &str)] = &[
    ("--server", "::1", "[::1]:11211"),
    ("--server", "a:0", "HOST:PORT"),
    ("--server", "", "HOST:PORT"),
    ("--protocol", "http", "binary"),
    ("--timeout", "0", "from 1us to 24h"),
    ("--timeout", "-5ms", "250ms"),
    ("--timeout", "25h", "from 1us to 24h"),
    ("--time", "0", "from 1ms"),
    ("--time", "soon", "10s"),
    ("--requests", "0", "from 1 to"),
    ("--requests", "-1", "10k"),
    ("--requests", "1.5", "whole number"),
    ("--warmup", "-1", "10s"),
    ("--warmup", "1us", "from 1ms"),
    ("--threads", "0", "from 1 to 1024"),
    ("--threads", "99999999999", "from 1 to 1024"),
    ("--threads", "51", "at most as many threads as connections (50)"),
    ("--threads", "two", "whole number"),
    ("--connections", "0", "from 1 to 1000000"),
    ("--connections", "2m", "from 1 to 1000000"),
    ("--connections", "5g", "whole number"),
    ("--depth", "0", "from 1 to"),
    ("--depth", "infinite", "unlimited"),
    ("--depth", "unlimited", "only with --rate"),
    ("--rate", "0", "above 0"),
    ("--rate", "-1k", "above 0"),
    ("--rate", "fast", "20k"),
    ("--rate", "20,000", "leave out ',': 20000"),
    ("--rate", "20000/s", "leave out '/s': 20000"),
    ("--records", "10,000", "leave out ',': 10000"),
    ("--rate", "inf", "20k"),
    ("--arrivals", "poisson", "only with --rate"),
    ("--arrivals", "sometimes", "poisson, constant, uniform"),
    ("--seed", "x", "whole number"),
    ("--seed", "18446744073709551616", "from 0 to 9223372036854775807"),
    ("--seed", "-1", "from 0 to 9223372036854775807"),
    ("--conn-rate", "-1", "expected clients per second above 0"),
    ("--seed", "18446744073709551615", "from 0 to"),
    ("--interval", "0", "from 10ms to 1h"),
    ("--goal", "p99", "p99:1ms"),
    ("--goal", "p99:1", "1 s or 1 ms?"),
    ("--goal", "p100:1ms", "p99:1ms"),
    ("--goal", "p99:0", "p99:1ms"),
    ("--mix", "fetch:1", "get, gets"),
    ("--mix", "get:0", "above 0"),
    ("--mix", "get:1,get:1", "once"),
    ("--popularity", "zipf:5.1", "from 0 to 5"),
    ("--popularity", "zipf", "zipf:EXPONENT"),
    ("--popularity", "hot:0,1", "hot:KEYS,REQUESTS"),
    ("--popularity", "famous", "sequential"),
    ("--multiget", "0", "from 1 to 1000"),
    ("--multiget", "1001", "from 1 to 1000"),
    ("--multiset", "0", "from 1 to 1000"),
    ("--vivify", "1.5", "whole seconds"),
    ("--recache", "soon", "10s"),
    ("--stale", "-1", "10s"),
    ("--database", "-1", "whole number"),
    ("--verify", "1.5", "from 0 to 1"),
    ("--verify", "-1", "from 0 to 1"),
    ("--records", "0", "from 1 to 1099511627776"),
    ("--records", "2000g", "from 1 to 1099511627776"),
    ("--key-size", "4", "at least 5 bytes"),
    ("--key-size", "251", "up to 250"),
    ("--key-size", "uniform:1,2", "at least 5 bytes"),
    ("--key-size", "uniform:9,5", "LO <= HI"),
    ("--key-size", "30.5", "whole number"),
    ("--value-size", "2GiB", "up to 1GiB"),
    ("--value-size", "-1", "0 or more"),
    ("--value-size", "uniform:-5,5", "0 or more"),
    ("--value-size", "file:/nonexistent/sizes", "/nonexistent/sizes"),
    ("--value-size", "huge", "uniform:LO,HI"),
    ("--value-compress", "0.5", "from 1 (bytes that do not compress) to 10"),
    ("--value-compress", "-2", "a ratio, such as"),
    ("--key-prefix", "a b", "without spaces"),
    ("--key-tag", "0", "from 1 to 1000000"),
    ("--slots", "1-2", "only with --cluster and with --route crc16"),
    ("--slots", "x", "ranges of slots from 0 to 16383"),
    ("--ttl", "31h31", "seconds"),
    ("--ttl", "1000h", "30 days"),
    ("--ttl", "500ms", "whole number"),
    ("--data-seed", "-1", "whole number"),
    ("--backend", "kqueue", "epoll"),
    ("--wait", "nap", "spin"),
    ("--clock", "sundial", "kernel"),
    ("--cpus", "5-2", "0,2-5"),
    ("--cpus", "all", "0,2-5"),
    ("--source", "localhost", "IP addresses"),
    ("--linger", "-1", "whole number"),
    ("--linger", "65536", "from 0 to 65535"),
    ("--send-buffer", "0", "from 1 to"),
    ("--recv-buffer", "4g", "from 1 to"),
    ("--format", "xml", "json"),
    ("--csv", "-", "only --json takes -"),
    ("--plan", "/nonexistent/plan.toml", "pummel explain"),
];

#[test]
fn a_file_of_values_that_is_not_there_is_refused_by_every_command_in_the_same_words() {
    let missing = "file:/nonexistent/values";
    let accepted = "'/nonexistent/values' cannot be read: No such file or directory (os error 2)";
    let to_servers = ["-s", "127.0.0.1:1"];
    for (words, option) in [
        (&["run", "--ttl", missing][..], "--ttl <DIST>"),
        (&["load", "--key-size", missing], "--key-size <DIST>"),
        (&["scan", "--rates", "1k:2k:1k", "--value-size", missing], "--value-size <DIST>"),
        (&["search", "--goal", "p99:1ms", "--value-size", missing], "--value-size <DIST>"),
        (&["serve", "--service-time", missing], "--service-time <DIST>"),
    ] {
        let servers = if words[0] == "serve" { &[] } else { &to_servers[..] };
        let output = pummel(&[words, servers].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(
            text(&output.stderr),
            format!(
                "error: invalid value '{missing}' for '{option}': {accepted}\n\nFor more information, try '--help'.\n"
            )
        );
    }
}

#[test]
fn every_wrong_value_is_refused_with_flag_value_and_what_is_accepted() {
    for (flag, value, accepted) in WRONG_VALUES {
        let mut words = vec!["run", flag, value];
        if *flag != "--plan" && *flag != "--server" {
            words.extend(["-s", "127.0.0.1:1"]);
        }
        assert_refused(&words, &[flag, &format!("'{value}'"), accepted]);
    }
}

#[test]
fn a_wrong_delay_of_read_through_is_refused() {
    let words = ["run", "-s", "127.0.0.1:1", "--read-through=later"];
    assert_refused(&words, &["--read-through", "'later'", "have a unit: us, ms"]);
}

#[test]
fn choices_that_exclude_each_other_are_refused_with_the_reason() {
    let rows: &[(&str, &[&str])] = &[
        ("--mix set:1 --multiget 2", &["'2' for '--multiget'", "only with a read"]),
        ("--mix set:1 --read-through=1ms", &["'1ms' for '--read-through'", "only with a read"]),
        ("--mix get:1 --noreply", &["--noreply", "only with a write"]),
        ("--mix gte:9", &["'gte:9' for '--mix", "did you mean 'get'?"]),
        ("--popularity zipff:1", &["'zipff:1' for '--popularity", "did you mean 'zipf'?"]),
        ("--mix get:1,hset:1", &["'get:1,hset:1' for '--mix'", "hset is one of RESP"]),
        ("--protocol meta --mix mset:1", &["'mset:1' for '--mix'", "mset is one of RESP"]),
        ("-s b,c -c 2", &["'2' for '--connections'", "each of the 3 servers"]),
        ("--records 1g --key-size 9", &["'9' for '--key-size'", "at least 10 bytes"]),
        (
            "--key-prefix abcdef --key-size 10",
            &["'10' for '--key-size'", "at least 11 bytes", "6 of the prefix"],
        ),
        ("--json r --csv r", &["'r' for '--csv'", "--json already writes to this one"]),
        ("--json r --csv ./r", &["'./r' for '--csv'", "--json already writes to this one"]),
        ("--json - --format text", &["'-' for '--json'", "--format text"]),
        // Standard output is a pipe here.
        ("--json /dev/stdout --format text", &["'/dev/stdout' for '--json'", "--format text"]),
        ("--json /dev/stdout --format markdown", &["'/dev/stdout' for '--json'", "and markdown"]),
        ("--json - --csv /dev/stdout", &["'/dev/stdout' for '--csv'", "--format json or --json -"]),
        ("--format json --csv /dev/stdout", &["'/dev/stdout' for '--csv'", "--format json or --json -"]),
        ("--format markdown --csv /dev/stdout", &["'/dev/stdout' for '--csv'", "--format markdown"]),
        ("--hdr /dev/fd/1 --csv /dev/stdout", &["'/dev/fd/1' for '--hdr'", "--csv already writes"]),
        ("--push-result http://x:99999", &["'http://x:99999' for '--push-result", "http://gateway:9091"]),
        ("--rate 1 --rate 2", &["--rate", "multiple times"]),
        ("--tls-ca f", &["'--tls-ca'", "only with '--tls'"]),
        ("--tls-cert f --tls-key f", &["'--tls-cert'", "only with '--tls'"]),
        ("--tls-key f", &["'--tls-key'", "only with '--tls'"]),
        ("--tls-server-name n", &["'--tls-server-name'", "only with '--tls'"]),
        ("--tls-insecure", &["'--tls-insecure'", "only with '--tls'"]),
        ("--tls --tls-cert f", &["'f' for '--tls-cert'", "accepted only with --tls-key"]),
        ("--tls --tls-key f", &["'f' for '--tls-key'", "accepted only with --tls-cert"]),
        ("--tls -s /run/x", &["'/run/x' for '--server'", "unix socket", "--tls-server-name"]),
        ("--plan x --rate 1", &["--plan"]),
        ("--password-file f", &["--password-file", "--user"]),
        ("--user u", &["PUMMEL_PASSWORD"]),
        ("--protocol resp2 --mix get:1,cas:1", &["--mix", "cas", "expected get, gat"]),
        ("--database 1", &["'1' for '--database'", "only RESP servers"]),
        ("--protocol resp2 --database 3000000000", &["'3000000000' for '--database'", "from 0 to"]),
        ("--command PING", &["'PING' for '--command'", "--protocol resp2 or resp3"]),
        ("--protocol resp2 --command VERSION", &["'VERSION' for '--command'", "--command NAME=COMMAND"]),
        ("--protocol resp2 --command GET", &["'GET' for '--command'", "GET has 2 words"]),
        ("--protocol resp2 --command PING --mix ping:1,pong:1", &["--mix", "operations are", "ping"]),
        (
            "--protocol resp2 --command PING --command INFO --mix ping:1",
            &["'INFO' for '--command'", "info in --mix"],
        ),
        ("--protocol resp2 --command a=PING --mix a:0.5 --mix-order turns", &["--mix", "whole weights"]),
        ("--protocol resp2 --mix command:1", &["'command:1' for '--mix'", "only with --command"]),
        ("--protocol resp2 --command MONITOR", &["'MONITOR' for '--command'", "one reply for each request"]),
        (
            "--protocol resp2 --command GET__place__",
            &["--command", "'__place__' is no place", "'ZADD __key__"],
        ),
        ("--protocol resp2 --multiset 5", &["'5' for '--multiset'", "only with mset"]),
        ("--protocol resp3 --mix hget:1 --multiget 5", &["'5' for '--multiget'", "HGET takes one key"]),
        ("--vivify 5", &["'5' for '--vivify'", "only with --protocol meta"]),
        ("--protocol binary --recache 5", &["'5' for '--recache'", "only with --protocol meta"]),
        ("--protocol meta --stale 5", &["'5' for '--stale'", "only with delete"]),
        ("--protocol meta --mix set:1 --vivify 5", &["'5' for '--vivify'", "only with a read"]),
        ("--protocol meta --vivify 721h", &["'721h' for '--vivify'", "from 0 to 2592000"]),
        ("--protocol meta --recache 5 --multiget 2", &["'2' for '--multiget'", "which of them"]),
        ("--meta-details", &["--meta-details", "only with --protocol meta"]),
        ("--protocol resp3 --mix set:1 --noreply", &["--noreply"]),
        ("--protocol resp3 --mix get:1,gat:1 --multiget 3", &["--multiget"]),
        ("--protocol binary --mix touch:1 --noreply", &["--noreply", "touch"]),
        ("--mix gat:1 --multiget 66", &["'66' for '--multiget'", "at most 65"]),
        ("--mix get:1,gats:1 --multiget 9 --key-size 250", &["'9' for '--multiget'", "at most 8"]),
        (
            "--mix gat:1 --multiget 120 --key-size 5 --churn requests:1000",
            &["'120' for '--multiget'", "at most 119"],
        ),
        ("--conn-rate 5 --reconnect", &["'5' for '--conn-rate'", "not accepted with --reconnect"]),
        ("--conn-rate 5 --route ketama", &["'5' for '--conn-rate'", "only with --route all"]),
        ("--conn-rate 5 --calls-per-connection 2 --udp", &["'5' for '--conn-rate'", "only over TCP"]),
        ("--calls-per-connection 2 --reconnect", &["'2' for '--calls-per-connection'", "--reconnect"]),
        ("--conn-rate 5 --calls-per-connection 0", &["'0' for '--calls-per-connection'", "from 1 to"]),
        ("--no-load --mix get:1 --ttl 60", &["'60' for '--ttl'", "no request has one"]),
        ("--no-load --mix get:1,incr:1 --ttl uniform:1,9", &["--ttl", "stored or touched"]),
        ("--protocol resp3 --mix hset:1 --ttl 1m", &["'1m' for '--ttl'", "no request has one"]),
        ("--mix set:1 --verify", &["'--verify' is not accepted: ", "an operation that reads"]),
        ("--mix set:1 --read-through", &["'--read-through' is accepted only with a read"]),
        ("--noreply --protocol resp2", &["'--noreply' is not accepted: "]),
        ("--udp --tls", &["'--udp' is not accepted: "]),
        ("--insert", &["'--insert' is accepted only with add in --mix"]),
        ("--read-through=-1", &["'-1' for '--read-through", "expected times of 0 or more"]),
        ("--popularity cachelib:", &["'cachelib:' for '--popularity", "expected cachelib:FILE"]),
        ("--arrivals poison --rate 5", &["'poison' for '--arrivals", "did you mean 'poisson'?"]),
        ("--burst hrst:0.8,1s --rate 5", &["'hrst:0.8,1s' for '--burst", "did you mean 'hurst'?"]),
        ("--trace t --trace-format twiter", &["'twiter' for '--trace-format", "did you mean 'twitter'?"]),
        ("--trace t --pace fst", &["'fst' for '--pace", "did you mean 'fast'?"]),
        ("--fail-on error", &["'error' for '--fail-on", "did you mean 'errors'?"]),
        (
            "--mix set:1 --noreply --goal p99:1ms",
            &["'p99:1ms' for '--goal'", "an operation that is answered"],
        ),
        (
            "--mix set:1 --noreply --until p99:2%",
            &["'p99:2%' for '--until'", "an operation that is answered"],
        ),
        ("--nonsense", &["--nonsense"]),
    ];
    for (options, parts) in rows {
        // Where it is left open, what one protocol refuses another may take, and the server would decide.
        let named: &[&str] = if options.contains("--protocol") { &[] } else { &["--protocol", "text"] };
        let words =
            [&["run", "-s", "127.0.0.1:1"][..], named, &options.split(' ').collect::<Vec<_>>()].concat();
        assert_refused(&words, parts);
    }
    let source = ["run", "-s", "/run/x", "--source", "127.0.0.1"];
    assert_refused(&source, &["'127.0.0.1' for '--source'", "unix sockets have none"]);
}

#[test]
fn a_directory_or_a_file_in_place_of_a_socket_is_told_as_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    fs::write(at("file"), "").expect("written");
    for command in [&["run"][..], &["load"], &["scan", "--rates", "1:2:1"], &["ab", "--a=-d 1", "--b=-d 2"]] {
        let words = |server: &str| -> Vec<String> {
            [command, &["-s", server]].concat().iter().map(|word| (*word).to_owned()).collect()
        };
        for (server, what) in [(at(""), "a directory"), (at("file"), "a file")] {
            let words = words(&server);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_refused(&words, &["for '--server': expected a unix socket, and this is ", what]);
        }
    }
}

#[test]
fn a_series_has_one_report_on_standard_output() {
    let scan = ["scan", "-s", "127.0.0.1:1", "--rates", "1:2:1"];
    for (options, parts) in [
        (
            "--format markdown --json /dev/stdout",
            ["'/dev/stdout' for '--json'", "--format text and markdown"],
        ),
        ("--json - --csv /dev/stdout", ["'/dev/stdout' for '--csv'", "--format json or --json -"]),
    ] {
        assert_refused(&[&scan[..], &options.split(' ').collect::<Vec<_>>()].concat(), &parts);
    }
}

#[test]
fn an_output_in_the_place_of_what_is_read_is_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let kept = [("r.json", "{}"), ("t.csv", "op,key\nget,a\n"), ("d.txt", "10\n")];
    kept.iter().for_each(|(name, content)| fs::write(at(name), content).expect("written"));
    symlink("t.csv", at("link")).expect("a link");
    save("run -s 127.0.0.1:1 --seed 1", Path::new(&at("q.json")));
    let plan = fs::read(at("q.json")).expect("readable");
    for (words, said) in [
        ("report @r.json -o @r.json", "'--output': expected a separate file: it is read as the result"),
        (
            "compare @t.csv @r.json --json @r.json",
            "'--json': expected a separate file: it is read as a result of B",
        ),
        (
            "audit @t.csv @r.json --json @r.json",
            "'--json': expected a separate file: it is read as one of the results",
        ),
        (
            "merge --as-runs @r.json @t.csv -o @r.json",
            "'--output': expected a separate file: it is read as one of the",
        ),
        ("fit @t.csv -o @link", "'--output': expected a separate file: it is read as the trace"),
        ("fit @t.csv -o @new --rates @new", "'--rates': expected a separate file: --output already writes"),
        (
            "run @s --trace @t.csv --csv @t.csv",
            "'--csv': expected a separate file: it is read as the file of --trace",
        ),
        (
            "run @s --trace @t.csv --samples @link",
            "'--samples': expected a separate file: it is read as the file of",
        ),
        ("run @s --value-size file:@d.txt --csv @d.txt", "it is read as the file of --value-size"),
        (
            "scan @s --rates 1:2:1 --value-size file:@d.txt --csv @d.txt",
            "it is read as the file of --value-size",
        ),
        (
            "load @s --fill @t.csv --json @t.csv",
            "'--json': expected a separate file: it is read as the file of --fill",
        ),
        (
            "run --plan @q.json --json @q.json",
            "'--json': expected a separate file: it is read as the file of --plan",
        ),
        ("explain run @s --value-size=file:@d.txt --plan @d.txt", "'--plan': expected a separate file"),
    ] {
        let words = words.replace("@s", "-s 127.0.0.1:1").replace('@', &at(""));
        assert_refused(&words.split(' ').collect::<Vec<_>>(), &["invalid value '", said]);
    }
    for (name, content) in kept {
        assert_eq!(fs::read_to_string(at(name)).expect("readable"), content, "{name}");
    }
    assert_eq!(fs::read(at("q.json")).expect("readable"), plan);
}

#[test]
fn a_word_that_names_no_file_which_is_read_keeps_no_output_from_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let plan = at("plan.toml");
    for label in ["cfg=plan.toml", &format!("cfg={plan}")] {
        // The second time the plan of the first time is in its place.
        for _ in 0..2 {
            save(&format!("run -s a --label {label} --json {plan}"), Path::new(&plan));
        }
    }
    // A name that the program has is no file, although one is called so.
    fs::write(at("cache"), "text").expect("written");
    let words = "run -s 127.0.0.1:1 --protocol text --workload cache --json cache";
    let ended = Command::new(cargo_bin!("pummel")).current_dir(folder.path()).args(words.split(' ')).output();
    let ended = ended.expect("it runs");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(!errors.contains("it is read as") && ended.status.code() == Some(1), "{errors}");
}

#[test]
fn a_prefix_without_room_for_the_keys_that_no_load_stores_is_refused() {
    let prefix = "x".repeat(235);
    let value = format!("'{prefix}' for '--key-prefix'");
    for options in ["--fresh 0.5", "--absent 0.5", "--mix get:1,add:1 --insert", "--churn requests:1000"] {
        let words =
            format!("run -s 127.0.0.1:1 --protocol text --key-size 250 --key-prefix {prefix} {options}");
        assert_refused(&words.split(' ').collect::<Vec<_>>(), &[&value, "at most 234 bytes"]);
    }
}

#[test]
fn an_expiry_is_accepted_wherever_a_request_has_it() {
    for options in [
        "--mix get:1 --ttl 60",
        "--no-load --ttl 60",
        "--no-load --mix get:1 --ttl 0",
        "--no-load --mix touch:1 --ttl 60",
        "--no-load --mix get:1,gat:1 --ttl 60",
        "--no-load --mix get:1 --read-through --ttl 60",
        "--no-load --mix get:1 --protocol meta --vivify 5 --ttl 60",
    ] {
        let words: Vec<&str> = ["explain", "run", "-s", "a"].into_iter().chain(options.split(' ')).collect();
        let output = pummel(&words);
        assert_eq!(output.status.code(), Some(0), "{options}: {}", text(&output.stderr));
    }
}

#[test]
fn a_password_that_is_missing_is_all_that_is_said() {
    for (options, part) in [
        (&["--user", "u"][..], "PUMMEL_PASSWORD"),
        (&["--user", "u", "--password-file", "/nonexistent/word"], "/nonexistent/word"),
    ] {
        let words: Vec<&str> = ["run", "-s", "127.0.0.1:1"].iter().chain(options).copied().collect();
        assert_refused(&words, &[part]);
        let errors = text(&pummel(&words).stderr);
        assert!(!errors.contains("seed"), "nothing was begun: {errors}");
        assert_refused(&[&["scan", "--rates", "1:2:1"], &words[1..]].concat(), &[part]);
    }
}

#[test]
fn what_is_not_there_yet_is_said_and_never_ignored() {
    assert_refused(&["agent", "--anything"], &["--anything"]);
    assert_refused(&["explain", "agent", "--server=x"], &["FRONT", "'agent'"]);
    assert_refused(&["explain", "rn", "-s", "x"], &["'rn' for 'FRONT'", "did you mean 'run'?"]);
    assert_refused(&["show", "r.json", "--span", "serv"], &["'serv' for '--span", "did you mean 'service'?"]);
    assert_refused(&["serve", "--service-time", "-1"], &["'-1' for '--service-time", "times of 0 or more"]);
    assert_refused(
        &["explain", "ab", "-s", "x"],
        &["'ab'", "run, load, mcperf, memaslap, mutilate, redis-benchmark, memtier_benchmark or native"],
    );
}

#[cfg(feature = "agents")]
#[test]
fn wrong_values_of_an_agent_are_refused_with_what_is_accepted() {
    for (flag, value, accepted) in [
        ("--listen", "nope", "expected an IP address with a port"),
        ("--listen", "cache1:5556", "expected an IP address with a port"),
        ("--max-connections", "-1", "expected a whole number"),
        ("--max-memory", "0", "expected a whole number above 0"),
    ] {
        assert_refused(&["agent", flag, value], &[flag, &format!("'{value}'"), accepted]);
    }
}

#[test]
fn words_of_other_tools_lead_to_the_options_that_stand_for_them() {
    for (words, tip) in [
        (&["run", "--duration", "3"][..], "'--duration 3' is '--time 3' here"),
        (&["run", "--clients=3"], "'--clients 3' is '--connections 3' here"),
        (&["scan", "--data-size", "3"], "'--data-size 3' is '--value-size 3' here"),
        (&["run", "--ratio", "1:10"], "'--ratio 1:10' is '--mix set:1,get:10' here"),
        (&["run", "--output", "x"], "'--output x' is '--json x' here"),
        (&["run", "--test-time=5"], "'--test-time 5' is '--time 5' here"),
        (&["run", "--qps", "5k"], "'--qps 5k' is '--rate 5k' here"),
        (&["run", "-P", "16"], "'-P 16' is '--batch 16' here"),
        (&["run", "-a", "word"], "'-a' is '--password-file' here"),
        (&["run", "--key-maximum", "5"], "'--key-maximum 5' is '--records 5' here"),
        (&["run", "--conections", "5"], "a similar argument exists: '--connections'\n"),
        (&["agent", "--allow-targets", "x"], "a similar argument exists: '--allow-target'\n"),
        (&["rn"], "a similar subcommand exists: 'run'\n"),
        (&["bench", "-s", "a"], "'pummel bench' is 'pummel run' here"),
        (&["benchmark"], "'pummel benchmark' is 'pummel run' here"),
    ] {
        assert_refused(words, &[tip]);
    }
    // Nothing here stands for these, and no tip is better than a wrong one.
    for option in ["--sentinel", "--retries", "--statsd-host"] {
        let refused = pummel(&["run", "-s", "a", option]);
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!("unexpected argument '{option}'")), "{errors}");
        assert!(!errors.contains("tip:"), "{errors}");
    }
    // It has no such option.
    let errors = text(&pummel(&["serve", "--duration", "3"]).stderr);
    assert!(!errors.contains("'--time'"), "{errors}");
}

#[test]
fn host_and_port_as_redis_cli_takes_them_are_refused_with_the_form_that_is_taken() {
    for (words, part) in [
        (&["run", "-h", "10.0.0.1", "-p", "6379"][..], "write '-s 10.0.0.1:6379'"),
        (&["load", "-h", "10.0.0.1"], "'-h' is help and takes no host: write '-s 10.0.0.1'"),
        (&["search", "-s", "10.0.0.1", "-p", "6379"], "there is no '-p'"),
        (&["ab", "-h", "a"], "write '-s a'"),
        (&["explain", "run", "-h", "a"], "write '-s a'"),
    ] {
        assert_refused(words, &[part]);
    }
    for words in [&["run", "-h"][..], &["run", "-s", "10.0.0.1", "-h"], &["run", "-h", "-t", "1s"]] {
        let output = pummel(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(text(&output.stdout).starts_with("Store the records"), "{words:?}");
    }
}

#[test]
fn a_server_is_a_word_alone_or_a_uri_for_every_command_that_has_servers() {
    let plan = |words: &[&str]| {
        let output = pummel(&[&["explain"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(plan(&["run", "cache1:5"]).contains("servers = [\"cache1:5\"]"));
    assert!(plan(&["load", "/run/m.sock", "--records", "5"]).contains("servers = [\"/run/m.sock\"]"));
    let redis = plan(&["run", "rediss://cache1/3"]);
    for line in ["servers = [\"cache1:6379\"]", "protocol = \"resp2\"", "database = 3", "[tls]"] {
        assert!(redis.contains(line), "{line}: {redis}");
    }
    for command in [
        &["run"][..],
        &["load"],
        &["search", "--goal", "p99:1ms"],
        &["curve"],
        &["scan", "--rates", "1:2:1"],
        &["ab", "--versus", "redis://127.0.0.1:2"],
    ] {
        let words = |server| [command, server].concat();
        assert_refused(&words(&["-s", "redis://u:S3CRET@a"]), &["redis://u:***@a", "--password-file"]);
        assert_refused(
            &words(&["memcached://a/2"]),
            &["'memcached://a/2' for '--server", "only RESP servers"],
        );
        assert_refused(&words(&["-s", "a", "b"]), &["unexpected word 'b'"]);
        // Nothing listens there, and that is said of the server that was meant.
        let output =
            pummel(&words(&["redis://127.0.0.1:1", "-t", "10ms"][..if command == ["load"] { 1 } else { 3 }]));
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        // The first run of `ab` may be the one of the other side.
        let server = if command[0] == "ab" { "127.0.0.1:" } else { "127.0.0.1:1 " };
        assert!(text(&output.stderr).contains(server), "{command:?}: {}", text(&output.stderr));
    }
    assert_refused(&["run", "--plan", "p.toml", "redis://a"], &["expected HOST:PORT with --plan"]);
}

#[test]
fn the_names_of_the_old_tools_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, version) in [("memaslap", "memaslap v1.0\n"), ("memcaslap", "memaslap v1.0\n")] {
        let link = folder.path().join(name);
        symlink(cargo_bin!("pummel"), &link).expect("a link");
        let output = Command::new(&link).arg("-V").output().expect("the link can be started");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stdout), version);
    }
}

#[test]
fn a_run_without_a_server_is_refused() {
    assert_refused(&["run"], &["'--server' (-s) is required", "MEMCACHED_SERVERS"]);
    assert_refused(&["load"], &["'--server' (-s) is required", "MEMCACHED_SERVERS"]);
    let output = Command::new(cargo_bin!("pummel"))
        .env("MEMCACHED_SERVERS", "")
        .args(["explain", "run"])
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_environment_names_servers() {
    let output = Command::new(cargo_bin!("pummel"))
        .env("MEMCACHED_SERVERS", "one,two:7")
        .args(["explain", "run"])
        .output()
        .expect("the binary can be started");
    assert!(text(&output.stdout).contains(r#"servers = ["one:11211", "two:7"]"#));
}

/// Every option that scripts rely on.
const OPTIONS: &[&str] = &[
    "-s,",
    "--server",
    "--protocol",
    "--udp",
    "--tls",
    "--tls-ca",
    "--tls-cert",
    "--tls-key",
    "--tls-server-name",
    "--tls-insecure",
    "--user",
    "--password-file",
    "-t,",
    "--time",
    "-n,",
    "--requests",
    "--warmup",
    "-T,",
    "--threads",
    "-c,",
    "--connections",
    "-d,",
    "--depth",
    "--rate",
    "--arrivals",
    "--records",
    "--key-size",
    "--value-size",
    "--value-compress",
    "--key-prefix",
    "--key-tag",
    "--slots",
    "--ttl",
    "--mix",
    "--popularity",
    "--verify",
    "--read-through",
    "--multiget",
    "--noreply",
    "--load",
    "--no-load",
    "--data-seed",
    "--seed",
    "--backend",
    "--wait",
    "--clock",
    "--cpus",
    "--source",
    "--timeout",
    "--reconnect",
    "--no-nodelay",
    "--linger",
    "--send-buffer",
    "--recv-buffer",
    "--interval",
    "--goal",
    "--json",
    "--csv",
    "--hdr",
    "--report",
    "--junit",
    "--summary",
    "--parquet",
    "--label",
    "--fail-on",
    "--fill",
    "--hit-ratio",
    "--churn",
    "--ttl-jitter",
    "--samples",
    "--format",
    "--quiet",
    "--metrics",
    "--metrics-linger",
    "--push-result",
    "--plan",
];

#[test]
fn help_mentions_every_option() {
    let output = pummel(&["run", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for option in OPTIONS {
        assert!(help.contains(option), "{option}");
    }
    for example in ["weighted:LO-HI@P", "MEMCACHED_SERVERS", "[default: 50]", "Exit status"] {
        assert!(help.contains(example), "{example}");
    }
}

#[test]
fn the_help_of_a_series_lists_no_option_that_it_refuses() {
    let refused = [
        ("search", "--goal p99:1ms", "--rate 5k"),
        ("search", "--goal p99:1ms", "--until p99:2%"),
        ("search", "--goal p99:1ms", "--burst 2,1ms,9ms"),
        ("scan", "--rates 1k:2k:1k", "--stage 1s:5k"),
        ("scan", "--rates 1k:2k:1k", "--hdr x.hlog"),
        ("scan", "--rates 1k:2k:1k", "--times"),
        ("scan", "--over connections:1:4", "--min-time 3s"),
        ("curve", "-c 4", "--interval 1s"),
        ("curve", "-c 4", "--samples x.csv"),
        ("curve", "-c 4", "--conn-rate 10"),
        ("curve", "-c 4", "--stamps tx"),
        ("scan", "--rates 1k:2k:1k --trace t", "--within-second burst"),
        ("ab", "--versus 127.0.0.1:2", "--stamps tx"),
        ("ab", "--versus 127.0.0.1:2", "--goal p99:1ms"),
        ("ab", "--versus 127.0.0.1:2", "--metrics 0"),
        ("ab", "--versus 127.0.0.1:2", "--junit x.xml"),
    ];
    for (command, words, option) in refused {
        let line = format!("{command} -s 127.0.0.1:1 --protocol text {words} {option}");
        let output = pummel(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        let flag = option.split(' ').next().expect("a flag");
        let help = text(&pummel(&[command, "--help"]).stdout);
        let lists = |flag: &str| help.lines().any(|line| line.trim_start().starts_with(&format!("{flag} ")));
        assert!(help.contains("-c, --connections") && !lists(flag), "{command} lists {flag}");
    }
}

#[test]
fn help_lists_the_subcommands() {
    let help = text(&pummel(&["--help"]).stdout);
    for command in ["run", "load", "serve", "show", "report", "merge", "schema", "demo", "explain"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
    for command in ["load", "serve", "show", "report", "schema", "demo", "explain"] {
        let output = pummel(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(text(&output.stdout).contains("Usage: pummel"), "{command}");
    }
}

/// A command line that leaves no part of the Plan at its default.
const RICH: &str = "run -s a,[::1]:7,/run/b -t 3s -n 5m --warmup 1500ms -T 3 -c 300 -d 7 --rate 1.5k \
    --arrivals weighted:1-2@0.5,5-9@0.25 --records 1m --key-size gev:30.7984,8.20449,0.078688 \
    --value-size weighted:1-100@0.1,1k-2KiB@0.9 --key-prefix k: --ttl uniform:10,1h \
    --mix get:9,set:0.1,append:0.3,incr:1 --popularity zipf:0.99 --verify 0.1 --read-through=5ms --multiget 3 \
    --noreply --data-seed 5 --seed 9007199254740993 --backend epoll --wait spin --clock user --cpus 0,2-3 \
    --source 10.0.0.1 --timeout 250ms --reconnect --no-nodelay --linger 0 --send-buffer 64KiB --recv-buffer 1 \
    --interval 100ms --goal p99.9:1ms --tls --tls-ca ca --tls-cert cert --tls-key key --tls-server-name n --tls-insecure";

fn job(line: &str) -> Job {
    let inputs = FrontInputs { seed: 3, servers: None, ..front_inputs::of_process() };
    native::job(line.split_whitespace().map(OsString::from), &inputs)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn save(line: &str, path: &Path) {
    let mut words = vec!["explain"];
    words.extend(line.split_whitespace());
    words.extend(["--plan", path.to_str().expect("UTF-8")]);
    let output = pummel(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_saved_plan_is_the_plan_of_its_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for line in [RICH, "run -s a --seed 1 --rate 5 -d unlimited", "load -s a --mix decr"] {
        for name in ["plan.toml", "plan.json", "plan"] {
            let path = folder.path().join(name);
            save(line, &path);
            let loaded = job(&format!("run --plan {}", path.display())).plan;
            let mut typed = job(line).plan.into_plan();
            if !line.contains("--seed") {
                typed.seed = loaded.seed;
            }
            assert_eq!(*loaded, typed, "{name}: {line}");
        }
    }
}

/// Phases with everything that one can have.
const PHASES: &str = r#"
[[phase]]
name = "calm"
time = "10s"
rate = "1k..2k"
churn = "default"
[[phase]]
name = "flash"
time = "1m"
rate = "5k"
mix = { get = 0.9, set = 0.1 }
popularity = "zipf:0.9"
[[phase.event]]
at = "10s"
hot = { key = "new", share = 0.4, rise = "2s", hold = "20s", fall = "10s" }
[[phase.event]]
at = "40s"
delete = "rank:0-9"
[[phase.event]]
at = "41s"
expire = "rank:3"
"#;

/// Command lines whose plans have between them every field that a plan can have.
const PLANS: &[&str] = &[
    RICH,
    "run -s a",
    "load -s a --mix decr,hget:1 --protocol resp3",
    "run -s a --rate 5 -d unlimited --phases PHASES --read-through=exponential:5ms --fill add",
    "run -s a --rate sine:1k,900,100ms -t 5s --burst 3,10ms,30ms --ttl 1h --ttl-jitter 10%",
    "run -s a --rate day:1k,1m -t 5s --burst hurst:0.8,10ms,50 --fresh 0.1 --absent 0.1",
    "run -s a --rate 500 --stage 200ms:1500,200ms,0s:0,100ms --churn share:0.01",
    "run -s a --rate 500 --warmup auto:60s --until p99:5% --min-time 3s --max-time 60s",
    "run -s a --rate 500 -t 5s --arrivals etc-arrival:5 --agents b:1 --measure-connections 2 --fail-on limited,errors --label a=b",
    "run -s a --workload ycsb-d --seed 1 -t 5s",
    "run -s a --workload ycsb-f --rate 100 -t 5s --stamps tx:7 --server-stats=1s --anonymous",
    "run -s a --calls-per-connection 5 --conn-rate 100 -n 100",
    "run -s a,b --route ketama --protocol meta --vivify 30 --recache 5 -n 100",
    "run -s a --udp -n 100 -t 5s",
    "run -s a --trace t.csv --pace trace:2 --trace-by row --within-second poisson --loop=2 --loop-fresh",
    "run -s a --trace t.csv --pace fast --fills own --trace-sample 0.5 --trace-amplify 2 --trace-warmup 500",
    "mutilate -s a -t 5 -q 1000 -u 0.1 -K fb_key -V fb_value -i fb_ia -Q 100 -C 2 -D 3 -w 2",
    "mutilate -s a -B -t 5 --read_file t.csv",
    "memaslap -s a,b -x 1000 -c 16 -T 2 -v 0.5 -o 0.1 -e 0.1 -p 2",
    "memaslap -s a -t 5s -c 16 -U",
    "mcperf -s a -n 100 -N 10 -r 50 -R 20 --sizes u1,16",
    "mcperf -s a -n 10 -r e0.01",
];

#[test]
fn every_plan_has_its_schema_and_the_schema_knows_every_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let phases = folder.path().join("phases.toml");
    fs::write(&phases, PHASES).expect("written");
    let schema: serde_json::Value = serde_json::from_str(SchemaName::Plan.text()).expect("it is JSON");
    for line in PLANS {
        let line = line.replace("PHASES", phases.to_str().expect("UTF-8"));
        let mut words = vec!["explain"];
        words.extend(line.split_whitespace());
        words.extend(["--format", "json"]);
        let output = pummel(&words);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let found = wrongs(&schema, &plan);
        assert!(found.is_empty(), "{line}: {found:#?}");
    }
    let mut strange: serde_json::Value =
        serde_json::from_slice(&pummel(&["explain", "run", "-s", "a", "--format", "json"]).stdout)
            .expect("it is JSON");
    strange["changes"] = serde_json::json!({ "events": [{ "at_ns": 1, "what": { "cold": 1 } }] });
    assert!(!wrongs(&schema, &strange).is_empty(), "an event of another kind is none");
}

#[test]
fn a_plan_with_values_from_a_file_is_whole_without_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = folder.path().join("sizes");
    let plan = folder.path().join("plan.toml");
    fs::write(&sizes, "30\n10\n20\n").expect("written");
    let line = format!("run -s a --seed 1 --value-size file:{}", sizes.display());
    let typed = job(&line).plan;
    save(&line, &plan);
    fs::remove_file(&sizes).expect("removed");
    assert_eq!(job(&format!("run --plan {}", plan.display())).plan, typed);
}

#[test]
fn a_printed_plan_is_a_saved_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    for (format, name) in [("text", "printed.toml"), ("json", "printed.json")] {
        let words = ["explain", "native", "-s", "a", "--seed", "1", "--format", format];
        let path = folder.path().join(name);
        fs::write(&path, pummel(&words).stdout).expect("written");
        assert_eq!(job(&format!("run --plan {}", path.display())).plan, job("run -s a --seed 1").plan);
    }
}

#[test]
fn only_servers_and_outputs_may_stand_beside_a_saved_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.toml");
    save("run -s a --seed 1", &path);
    let file = path.to_str().expect("UTF-8");
    let beside = job(&format!("run --plan {file} -s b:1 --json r --quiet"));
    let mut expected = job("run -s a --seed 1").plan.into_plan();
    expected.servers = vec!["b:1".to_string()];
    assert_eq!(*beside.plan, expected);
    for options in [
        "-t 5s",
        "-c 5",
        "--mix get",
        "--records 5",
        "--wait spin",
        "--linger 0",
        "--timeout 1s",
        "--reconnect",
    ] {
        let words: Vec<&str> = ["run", "--plan", file].into_iter().chain(options.split(' ')).collect();
        let flag = options.split(' ').next().unwrap_or_default();
        let named = match flag {
            "-t" => "--time",
            "-c" => "--connections",
            other => other,
        };
        let refused = format!("error: '{named}' is not accepted with '--plan', which says everything\n");
        assert_refused(&words, &[&refused]);
    }
}

#[test]
fn several_runs_refuse_a_saved_plan_that_asks_for_what_they_have_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.toml");
    let file = path.to_str().expect("UTF-8");
    for (options, field) in [
        ("--fail-on limited", "'fail_on'"),
        ("--until p99:2%", "'adaptive.until'"),
        ("--anonymous", "'anonymous'"),
        ("--server-stats", "'server_stats_ns'"),
        ("--stamps tx", "'engine.stamps'"),
        ("--goal p99:1ms", "'goals'"),
    ] {
        save(&format!("run -s 127.0.0.1:1 {options}"), &path);
        let value = format!("invalid value '{file}' for '--plan': expected a plan without {field}");
        assert_refused(
            &["ab", "--plan", file, "--versus", "127.0.0.1:2"],
            &[&value, "with 'pummel run' only"],
        );
        let side = format!("--plan {file}");
        assert_refused(&["ab", "--a", &side, "--b", &side], &[&value, "with 'pummel run' only"]);
        // Repeated runs have goals.
        if field != "'goals'" {
            assert_refused(&["run", "--plan", file, "--repeat", "3"], &[&value, "without --repeat only"]);
        }
    }
}

#[test]
fn a_saved_plan_that_makes_no_sense_is_refused_with_the_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.toml");
    save("run -s a --seed 1", &path);
    let good = fs::read_to_string(&path).expect("readable");
    for (from, to, parts) in [
        ("threads = 1", "threads = 0", &["engine.threads is '0'", "from 1 to 1024"][..]),
        ("threads = 1", "threads = 51", &["engine.threads is '51'", "(50)"][..]),
        ("schema = 1", "schema = 2", &["schema 2", "reads schema 1"][..]),
        ("wait = \"auto\"", "wait = \"auto\"\nnice = 5", &["nice"][..]),
        ("\"a:11211\"", "\"a\"", &["servers[0] is 'a'", "a:11211"][..]),
        ("recorded = true", "recorded = maybe", &["recorded"][..]),
        ("recorded = true", "recorded = false", &["expected a measured phase", "recorded = true"][..]),
        ("key_size = \"30\"", "key_size = \"3\"", &["data.key_size is '3'", "at least 5 bytes"][..]),
        ("popularity = \"uniform\"", "popularity = \"zipf:6\"", &["from 0 to 5"][..]),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&path, good.replace(from, to)).expect("written");
        let file = path.to_str().expect("UTF-8");
        assert_refused(&["run", "--plan", file], &["--plan", file]);
        assert_refused(&["run", "--plan", file], parts);
    }
}

#[test]
fn options_of_a_run_that_are_no_part_of_its_plan_are_explained_too() {
    let explain = |options: &str| {
        let words = format!("explain run -s a --seed 1 {options}");
        let output = pummel(&words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{options}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let plan = explain("");
    for options in ["--repeat 5", "--repeat=5 --restart true", "--format markdown", "--quiet --json -"] {
        assert_eq!(explain(options), plan, "{options}");
    }
    #[cfg(feature = "live")]
    assert_eq!(explain("--live --steer"), plan);
    assert_refused(&["explain", "run", "-s", "a", "--repeat", "1"], &["--repeat", "from 2 to 1000"]);
    assert_refused(&["explain", "mutilate", "--format", "markdown"], &["--format", "text, json"]);
}

#[test]
fn a_plan_that_cannot_be_written_is_a_failure() {
    let output = pummel(&["explain", "run", "-s", "a", "--plan", "/nonexistent/plan.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nonexistent/plan.toml"));
}

#[test]
fn a_plan_for_a_dash_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let explain = |plan: &[&str]| {
        let mut command = Command::new(cargo_bin!("pummel"));
        command.args(["explain", "run", "-s", "a", "--seed", "1"]).args(plan).current_dir(folder.path());
        command.output().expect("the binary can be started").stdout
    };
    assert_eq!(text(&explain(&["--plan", "-"])), text(&explain(&[])));
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

#[test]
fn help_that_nobody_can_read_is_a_failure_but_not_where_somebody_has_read_enough() {
    let shell = |to: &str| {
        let line = format!("{} run --help {to}", cargo_bin!("pummel").display());
        let output = Command::new("bash").args(["-c", &line]).output().expect("a shell");
        (output.status.code(), text(&output.stderr))
    };
    let (status, errors) = shell(">/dev/full");
    assert_eq!(status, Some(1));
    assert!(errors.contains("standard output"), "{errors}");
    assert_eq!(shell("| true; exit ${PIPESTATUS[0]}"), (Some(0), String::new()));
}

#[test]
fn man_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let man = folder.path().join("share/man1");
    let completions = folder.path().join("completions");
    let words = ["pages", "--man", man.to_str().expect("UTF-8"), "--completions"];
    let output = pummel(&[&words[..], &[completions.to_str().expect("UTF-8")]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run = fs::read_to_string(man.join("pummel-run.1")).expect("a page for run");
    assert!(run.contains("popularity") && run.contains("etc\\-value"), "{run}");
    assert!(fs::read_to_string(man.join("pummel.1")).expect("a page").contains("pummel"));
    let (_, synopsis) = run.split_once(".SH SYNOPSIS\n").expect("a synopsis");
    assert_eq!(synopsis.lines().next(), Some("pummel run [OPTIONS] [SERVER]..."), "{synopsis}");
    for front in ["mcperf", "memaslap", "memcaslap", "mutilate"] {
        for name in [format!("{front}.bash"), format!("_{front}"), format!("{front}.fish")] {
            assert!(completions.join(&name).exists(), "{name}");
        }
    }
    for name in ["pummel.bash", "_pummel", "pummel.fish"] {
        let script =
            fs::read_to_string(completions.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(script.contains("popularity"), "{name}");
    }
}

#[test]
fn the_demo_starts_the_built_in_server_says_so_and_ends_it() {
    let output = pummel(&["demo"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    let (_, rest) = shown.split_once("built-in one of pummel, at ").expect("it is named");
    let (address, _) = rest.split_once(',').expect("an address");
    for command in ["-t 3s\n", "-t 3s --rate 20k --arrivals poisson --no-load\n"] {
        assert!(shown.contains(&format!("$ pummel run -s {address} {command}")), "{shown}");
    }
    let end: Vec<&str> = shown.trim_end().lines().rev().take(4).collect();
    assert_eq!(end[0], "Next: pummel run -s HOST, with your server; pummel run -h", "{shown}");
    for begin in ["Closed loop: ", "Open loop at 20,000/s: "] {
        assert!(end.iter().any(|line| line.starts_with(begin)), "{begin}: {end:?}");
    }
    assert!(TcpStream::connect(address).is_err(), "the server at {address} is still there");
}

#[test]
fn every_flag_of_the_table_is_an_option() {
    let help = text(&pummel(&["run", "--help"]).stdout);
    for (flag, ..) in WRONG_VALUES {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn a_file_keeps_what_it_has_until_there_is_something_new() {
    let folder = tempfile::tempdir().expect("a folder");
    let (plan, truth) = (folder.path().join("plan.toml"), folder.path().join("truth"));
    for path in [&plan, &truth] {
        fs::write(path, "precious").expect("written");
    }
    let at = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    // It listens nowhere: the port is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let serve = pummel(&["serve", "--listen", &address, "--truth", &at(&truth), "--max-seconds", "1s"]);
    assert!(!serve.status.success(), "{}", text(&serve.stderr));
    assert_eq!(fs::read(&truth).expect("it is there"), b"precious");
    // A reader that has the old plan open goes on reading that one.
    let old = fs::File::open(&plan).expect("it is there");
    save("run -s a", &plan);
    assert_eq!(std::io::read_to_string(old).expect("it is readable"), "precious");
    assert!(fs::read_to_string(&plan).expect("it is there").contains("schema"));
}
