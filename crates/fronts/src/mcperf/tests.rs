use super::*;

fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split_whitespace().map(str::to_owned)
}

fn run(line: &str) -> McperfRun {
    match read(words(line)) {
        Ok(McperfCommand::Run(run)) => *run,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    match read(words(line)) {
        Err(Refusal(why)) => why,
        other => panic!("{line}: {other:?}"),
    }
}

/// What a line changes, beside what the defaults say: one word for each part of the plan.
fn told(line: &str) -> String {
    let McperfRun { job, display } = run(line);
    let plan = &job.plan;
    let (group, Work::Mix(mix)) = (&plan.groups[0], &plan.phases[0].work) else { panic!("{line}: no mix") };
    let churn = group.churn.as_ref().unwrap();
    let sequence = churn.sequence.as_ref().unwrap();
    let timeout =
        if plan.timeout_ns == NO_TIMEOUT_NS { "never".to_owned() } else { plan.timeout_ns.to_string() };
    let pieces = [
        ("server", plan.servers.join(","), "localhost:11211"),
        ("timeout", timeout, "60000000000"),
        ("nodelay", plan.socket.nodelay.to_string(), "true"),
        ("linger", format!("{:?}", plan.socket.linger_s), "None"),
        ("send", format!("{:?}", plan.socket.send_buffer), "Some(4096)"),
        ("recv", format!("{:?}", plan.socket.recv_buffer), "Some(16384)"),
        ("source", plan.socket.source.join(","), ""),
        ("method", mix.ops[0].0.name().to_owned(), "set"),
        ("bogus", sequence.bogus.to_string(), "false"),
        ("expiry", plan.data.expiry_s.to_string(), "0"),
        ("noreply", mix.noreply.to_string(), "false"),
        ("prefix", plan.data.key_prefix.clone(), "mcp:"),
        ("seed", sequence.instance.to_string(), "0"),
        ("shard", format!("{}+{}", sequence.offset, sequence.stride), "0+1"),
        ("requests", plan.phases[0].stop.requests.unwrap().to_string(), "1"),
        ("calls", churn.calls.to_string(), "1"),
        ("births", format!("{:?}", churn.spawns), "Closed"),
        ("gaps", format!("{:?}", sequence.calls), "None"),
        ("depth", format!("{:?}", group.depth), "Limit(1)"),
        ("alive", group.clients.to_string(), "1"),
        ("sizes", format!("{:?}", sequence.sizes), "Fixed(1.0)"),
        ("clock", format!("{:?}", plan.engine.clock), "Kernel"),
        ("log", format!("{:?}", display.log), "None"),
        ("level", display.verbosity.to_string(), "4"),
        ("remarks", display.remarks.join("; "), ""),
        ("histogram", display.histogram.to_string(), "false"),
        ("response", display.response.to_string(), "false"),
        ("strict", display.strict.to_string(), "false"),
        ("evidence", plan.evidence.to_string(), "false"),
        ("anonymous", plan.anonymous.to_string(), "false"),
        ("json", format!("{:?}", job.outputs.files.get("json")), "None"),
        ("csv", format!("{:?}", job.outputs.files.get("csv")), "None"),
        ("hdr", format!("{:?}", job.outputs.files.get("hdr")), "None"),
        ("samples", format!("{:?}", job.outputs.files.get("samples")), "None"),
    ];
    let changed = pieces.into_iter().filter(|(_, value, default)| value != default);
    changed.map(|(name, value, _)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Command lines, and what they change.
const LINES: &[(&str, &str)] = &[
    ("", ""),
    ("-v 7", "level=7"),
    ("-v7", "level=7"),
    ("--verbosity=7", "level=7"),
    ("--verb 99", "level=11"),
    ("-v 5", "level=5"),
    ("-o log", "log=Some(\"log\") level=5"),
    ("-v 4 --output=log", "log=Some(\"log\")"),
    (
        "-r e500 -n 100",
        "requests=100 births=Drawn(Exponential(500.0)) alive=100 remarks=the intervals of -r and -R add up to about 13.8 hours",
    ),
    (
        "-R d1e300 -N 3",
        "requests=3 calls=3 gaps=Some(Fixed(1e300)) depth=Unlimited remarks=the intervals of -r and -R add up to more than a hundred years",
    ),
    ("-s cache1", "server=cache1:11211"),
    ("--server=10.0.0.1", "server=10.0.0.1:11211"),
    ("--server ::1", "server=[::1]:11211"),
    ("-s [::1]", "server=[::1]:11211"),
    ("-s fe80::1%lo", "server=[fe80::1%lo]:11211"),
    ("-s /run/m.sock -p 5", "server=/run/m.sock"),
    ("-p 5", "server=localhost:5"),
    ("--port=65535", "server=localhost:65535"),
    ("-p 4294967298", "server=localhost:2"),
    ("-p +5", "server=localhost:5"),
    ("-H", "histogram=true"),
    ("--print-histogram", "histogram=true"),
    ("--pri", "histogram=true"),
    ("-t 5", "timeout=5000000000"),
    ("-t 0", "timeout=never"),
    ("--timeout=0.5", "timeout=500000000"),
    ("-t 1e-3", "timeout=1000000"),
    ("-t 0x1p1", "timeout=2000000000"),
    ("-l 0", "linger=Some(0)"),
    ("--linger=0", "linger=Some(0)"),
    ("-l 5", ""),
    ("-b 1", "send=Some(1)"),
    ("--send-buffer=65536", "send=Some(65536)"),
    ("-B 2", "recv=Some(2)"),
    ("--recv-buffer=65536", "recv=Some(65536)"),
    ("-D", "nodelay=false"),
    ("--disable-nodelay", "nodelay=false"),
    ("-m get", "method=get"),
    ("--method=gets", "method=gets"),
    ("-m delete", "method=delete"),
    ("-m cas", "method=cas"),
    ("-m set", ""),
    ("-m add", "method=add"),
    ("-m replace", "method=replace"),
    ("-m append", "method=append"),
    ("-m prepend", "method=prepend"),
    ("-m incr", "method=incr"),
    ("-m decr", "method=decr"),
    ("-m xxx", "bogus=true"),
    ("-m xxx -m set", ""),
    ("-e 60", "expiry=60"),
    ("--expiry=2147483647", "expiry=2147483647"),
    ("-q", "noreply=true"),
    ("--use-noreply", "noreply=true"),
    ("-P key", "prefix=key"),
    ("--prefix=", "prefix="),
    ("--prefix=1234567890123456", "prefix=1234567890123456"),
    ("-c 3/4", "seed=3"),
    ("--client=5/4", "seed=5"),
    ("--cl 1/1", "seed=1"),
    ("-c 3/4 --shard", "seed=3 shard=3+4"),
    ("-c 4/4 --shard", "seed=4 shard=0+4"),
    ("-n 10", "requests=10"),
    ("--num-conns=10", "requests=10"),
    ("-n 10 -r 5", "requests=10 births=Drawn(Fixed(0.2)) alive=10"),
    (
        "-n 3000000 -r 5",
        "requests=3000000 births=Drawn(Fixed(0.2)) alive=1000000 remarks=the intervals of -r and -R add up to about 166.7 hours",
    ),
    ("-N 10", "requests=10 calls=10"),
    ("--num-calls=10", "requests=10 calls=10"),
    ("-n 3 -N 4", "requests=12 calls=4"),
    ("-r 0", ""),
    ("--conn-rate=0", ""),
    ("--co=1000", "births=Drawn(Fixed(0.001))"),
    ("-r d0.1", "births=Drawn(Fixed(0.1))"),
    ("-r u0.1,0.2", "births=Drawn(Uniform(0.1, 0.2))"),
    ("-r e2", "births=Drawn(Exponential(2.0))"),
    ("-r s2", "births=Drawn(Rising(2.0))"),
    ("-R 0", ""),
    ("--call-rate=1000", "gaps=Some(Fixed(0.001)) depth=Unlimited"),
    ("-R d0.001", "gaps=Some(Fixed(0.001)) depth=Unlimited"),
    ("-R u1,1", "gaps=Some(Uniform(1.0, 1.0)) depth=Unlimited"),
    ("-R e0.5", "gaps=Some(Exponential(0.5)) depth=Unlimited"),
    ("-z 100", "sizes=Fixed(100.0)"),
    ("--sizes=d100", "sizes=Fixed(100.0)"),
    ("-z u1,16", "sizes=Uniform(1.0, 16.0)"),
    ("-z e1.5", "sizes=Exponential(1.5)"),
    ("-z s1", "sizes=Rising(1.0)"),
    ("-m get -z d2000000000", "method=get sizes=Fixed(2000000000.0)"),
    ("--response", "response=true"),
    ("--strict", "strict=true"),
    ("--evidence", "evidence=true"),
    ("--anonymous", "anonymous=true"),
    ("--source=10.0.0.1,10.0.0.2", "source=10.0.0.1,10.0.0.2"),
    ("--clock=user", "clock=User"),
    ("--clock kernel", ""),
    ("--json=f", "json=Some(\"f\")"),
    ("--csv=f", "csv=Some(\"f\")"),
    ("--hdr f", "hdr=Some(\"f\")"),
    ("--samples f", "samples=Some(\"f\")"),
    ("-DqH", "nodelay=false noreply=true histogram=true"),
    ("plain words are ignored -q -- -H -Z", "noreply=true"),
    ("-n 1 -n 2 -n 3", "requests=3"),
    // Pairs that act on each other.
    ("-s /run/m.sock -D", "server=/run/m.sock nodelay=false"),
    ("-s ::1 -p 5", "server=[::1]:5"),
    ("-p 5 -s ::1", "server=[::1]:5"),
    ("-s a -p 5 -s b", "server=b:5"),
    ("-m get -q", "method=get"),
    ("-q -m gets", "method=gets"),
    ("-m delete -q", "method=delete noreply=true"),
    ("-m incr -z 7", "method=incr sizes=Fixed(7.0)"),
    ("-z u1,5 -m decr", "method=decr sizes=Uniform(1.0, 5.0)"),
    ("-m delete -z 7", "method=delete sizes=Fixed(7.0)"),
    ("-m get -e 60", "method=get expiry=60"),
    ("-m cas -e 60", "method=cas expiry=60"),
    ("-m xxx -q -e 5 -z 3", "bogus=true expiry=5 noreply=true sizes=Fixed(3.0)"),
    ("-m add -P k", "method=add prefix=k"),
    ("-e 60 -q", "expiry=60 noreply=true"),
    ("-z e5 -q", "noreply=true sizes=Exponential(5.0)"),
    ("-z 100000 -b 65536", "send=Some(65536) sizes=Fixed(100000.0)"),
    ("-b 1 -B 2", "send=Some(1) recv=Some(2)"),
    ("-B 2 -m get", "recv=Some(2) method=get"),
    ("-n 3 -N 4 -r 5", "requests=12 calls=4 births=Drawn(Fixed(0.2)) alive=3"),
    ("-N 4 -n 3 -R 5", "requests=12 calls=4 gaps=Some(Fixed(0.2)) depth=Unlimited"),
    ("-n 2147483647 -N 2147483647", "requests=4611686014132420609 calls=2147483647"),
    ("-n 7 -r 0", "requests=7"),
    ("-n 7 -r 5 -r 0", "requests=7"),
    ("-N 7 -R 5 -R 0", "requests=7 calls=7"),
    ("-r 10 -R 0", "births=Drawn(Fixed(0.1))"),
    ("-r 0 -R 10", "gaps=Some(Fixed(0.1)) depth=Unlimited"),
    ("-r e1 -R u1,2", "births=Drawn(Exponential(1.0)) gaps=Some(Uniform(1.0, 2.0)) depth=Unlimited"),
    ("-c 3/4 -r e1", "seed=3 births=Drawn(Exponential(1.0))"),
    ("-c 3/4 -R e1", "seed=3 gaps=Some(Exponential(1.0)) depth=Unlimited"),
    ("-c 3/4 -z e1", "seed=3 sizes=Exponential(1.0)"),
    ("-c 0/2 --shard -P k", "prefix=k shard=0+2"),
    ("--shard -n 3", "requests=3"),
    ("-c 1/1 --shard -n 3", "seed=1 requests=3"),
    ("-t 5 -r 10", "timeout=5000000000 births=Drawn(Fixed(0.1))"),
    ("-t 5 -R 10", "timeout=5000000000 gaps=Some(Fixed(0.1)) depth=Unlimited"),
    ("-t 5 -q", "timeout=5000000000 noreply=true"),
    ("-t 5 -t 0", "timeout=never"),
    ("-t 5 -z 1000000", "timeout=5000000000 sizes=Fixed(1000000.0)"),
    ("-l 0 -l 5", ""),
    ("-l 5 -l 0", "linger=Some(0)"),
    ("-l 0 -r 1000", "linger=Some(0) births=Drawn(Fixed(0.001))"),
    ("-l 0 --source=10.0.0.1", "linger=Some(0) source=10.0.0.1"),
    ("--source=10.0.0.1 -r 1000", "source=10.0.0.1 births=Drawn(Fixed(0.001))"),
    ("-H --response", "histogram=true response=true"),
    ("-H -q", "noreply=true histogram=true"),
    ("--clock=user --response", "clock=User response=true"),
    ("-v 0 -o log", "log=Some(\"log\") level=0"),
    ("-o log -v 7", "log=Some(\"log\") level=7"),
    ("-v 6 --samples=f", "level=6 samples=Some(\"f\")"),
    ("--strict -v 0", "level=0 strict=true"),
    ("--json=a --json=b", "json=Some(\"b\")"),
    ("--con 10 --cal 20", "births=Drawn(Fixed(0.1)) gaps=Some(Fixed(0.05)) depth=Unlimited"),
    ("--num-ca 2 --num-co 3", "requests=6 calls=2"),
    ("--ser a --sen 1 --si 2", "server=a:11211 send=Some(1) sizes=Fixed(2.0)"),
    ("--pre k --pri --po 1", "server=localhost:1 prefix=k histogram=true"),
    ("--verb 6 --o log --t 1 --l 0", "timeout=1000000000 linger=Some(0) log=Some(\"log\") level=6"),
    ("--r 1 --d --m get --e 1 --u", "nodelay=false recv=Some(1) method=get expiry=1"),
    (
        "--linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16",
        "timeout=5000000000 linger=Some(0) requests=10000 calls=10 births=Drawn(Fixed(0.001)) \
         gaps=Some(Fixed(0.001)) depth=Unlimited alive=1000 sizes=Uniform(1.0, 16.0)",
    ),
    (
        "--linger=0 --call-rate=0 --num-calls=100 --conn-rate=0 --num-conns=100 --sizes=d1",
        "linger=Some(0) requests=10000 calls=100",
    ),
];

/// Command lines that cannot be followed, and what is said.
const WRONG: &[(&str, &str)] = &[
    ("-p", "option -p requires a number"),
    ("-p -1", "option -p requires a number"),
    ("-p 3000000000", "option -p requires a number"),
    ("-e -5", "option -e requires a number"),
    ("-n 1.5", "option -n requires a number"),
    ("--num-calls", "option -N requires a number"),
    ("--num-calls=", "option -N requires a number"),
    ("-o", "option -o requires a file name"),
    ("-s", "option -s requires a string"),
    ("-m", "option -m requires a string"),
    ("-P", "option -P requires a string"),
    ("-c", "option -c requires a string"),
    ("-t", "option -t requires a real number"),
    ("-t x", "option -t requires a real number"),
    ("-t -1", "option -t requires a real number"),
    ("-t nan", "option -t requires a real number"),
    ("-r", "option -r requires a distribution"),
    ("-R", "option -R requires a distribution"),
    ("-z", "option -z requires a distribution"),
    ("-p 0", "option -p value 0 is not a valid port"),
    ("-p 70000", "option -p value 70000 is not a valid port"),
    (
        "-s 127.0.0.1:23111",
        "option -s value '127.0.0.1:23111' is not valid: expected a host alone; -p gives the port",
    ),
    ("-s cache1:5 -p 5", "option -s value 'cache1:5' is not valid: expected a host alone; -p gives the port"),
    ("-s [::1]:5", "option -s value '[::1]:5' is not valid: expected a host alone; -p gives the port"),
    ("-r x", "invalid distribution value 'x'"),
    ("-r -1", "invalid distribution value '-1'"),
    ("-r 1,2", "invalid distribution value '1,2'"),
    ("-R nan", "invalid distribution value 'nan'"),
    ("-r inf", "invalid distribution value 'inf'"),
    ("-r d0", "invalid mean value '0'"),
    ("-r d1,2", "invalid mean value '1,2'"),
    ("-R e-1", "invalid mean value '-1'"),
    ("-z sx", "invalid mean value 'x'"),
    ("-z u5", "invalid uniform distribution value '5'"),
    ("-z u0,5", "invalid minimum value '0'"),
    ("-z u5,x", "invalid maximum value 'x'"),
    ("-z u5,1", "maximum value '1' should be greater than or equal to minimum value '5'"),
    ("-z 0", "invalid distribution type 0 for item sizes"),
    ("-z d2000000000", "sizes above 1073741823 bytes cannot be sent"),
    (
        "-m foo",
        "'foo' is an invalid method; valid methods are get, gets, delete, cas, set, add, replace, append, prepend, \
         incr and decr",
    ),
    (
        "-m GET",
        "'GET' is an invalid method; valid methods are get, gets, delete, cas, set, add, replace, append, prepend, \
         incr and decr",
    ),
    ("-P 12345678901234567", "key prefix cannot exceed 16 in length"),
    ("-c 3", "invalid client id format '3'"),
    ("-c x/4", "client id is not a number 'x'"),
    ("-c 3/x", "number of clients is not a number 'x'"),
    ("-c 3/0", "number of clients is not a number '0'"),
    ("-s /run/m.sock --source=10.0.0.1", "option --source has no meaning for the unix socket '/run/m.sock'"),
    ("-c 5/4 --shard", "client 5 of 4 cannot be told apart by --shard"),
    ("-n 0", "option -n value 0 is not a valid number of connections"),
    ("-N 0", "option -N value 0 is not a valid number of calls"),
    ("-Z", "invalid option -- 'Z'"),
    ("--bogus", "invalid option -- 'bogus'"),
    ("--c=1", "invalid option -- 'c=1'"),
    ("--help=1", "invalid option -- 'h'"),
    ("--resp", "invalid option -- 'resp'"),
    ("--js=f", "invalid option -- 'js=f'"),
    ("--clock=sun", "option --clock value 'sun' is neither kernel nor user"),
    ("--json", "option --json requires a file name"),
    ("-h -Z", "invalid option -- 'Z'"),
    ("-V -n x", "option -n requires a number"),
    ("-n 5 -n x", "option -n requires a number"),
    ("-n x -Z", "option -n requires a number"),
    ("-qZ", "invalid option -- 'Z'"),
    ("-qn", "option -n requires a number"),
    ("-V1", "invalid option -- '1'"),
    ("--version=1", "invalid option -- 'V'"),
    ("--print-histogram=1", "invalid option -- 'H'"),
    ("--disable-nodelay=1", "invalid option -- 'D'"),
    ("--use-noreply=1", "invalid option -- 'q'"),
    ("--strict=1", "invalid option -- 'strict'"),
    ("--v 6", "invalid option -- 'v'"),
    ("--num-c 1", "invalid option -- 'num-c'"),
    ("--s 1", "invalid option -- 's'"),
    ("--se 1", "invalid option -- 'se'"),
    ("--p 1", "invalid option -- 'p'"),
    ("--pr 1", "invalid option -- 'pr'"),
    ("--str", "invalid option -- 'str'"),
    ("--sha", "invalid option -- 'sha'"),
    ("--sou 10.0.0.1", "invalid option -- 'sou'"),
    ("--clo user", "invalid option -- 'clo'"),
    ("--sam f", "invalid option -- 'sam'"),
    ("-z u1,2000000000", "sizes above 1073741823 bytes cannot be sent"),
    ("-z 1073741824", "sizes above 1073741823 bytes cannot be sent"),
    ("-m xxx -z 2000000000", "sizes above 1073741823 bytes cannot be sent"),
    ("-m get -z d2000000000 -m set", "sizes above 1073741823 bytes cannot be sent"),
    ("-r u1,nan", "invalid maximum value 'nan'"),
    ("-R unan,1", "invalid minimum value 'nan'"),
    ("-R einf", "invalid mean value 'inf'"),
    ("-z d", "invalid mean value ''"),
    ("-z u", "invalid uniform distribution value ''"),
    ("-z u,5", "invalid minimum value ''"),
    ("-z u5,", "invalid maximum value ''"),
    ("-r u2.5,0.5", "maximum value '0.5' should be greater than or equal to minimum value '2.5'"),
    ("-z u1e10,1e9", "maximum value '1e+09' should be greater than or equal to minimum value '1e+10'"),
    ("-c /", "client id is not a number ''"),
    ("-c 3/", "number of clients is not a number ''"),
    ("-c -1/4", "client id is not a number '-1'"),
];

/// Options whose value is a whole number.
const NUMBERS: &str = "vplbBenN";

/// Pairs of options that act on each other, by their letters or their long names.
const PAIRS: &[(&str, &str)] = &[
    ("s", "p"),
    ("s", "D"),
    ("s", "source"),
    ("m", "q"),
    ("m", "z"),
    ("m", "e"),
    ("m", "P"),
    ("e", "q"),
    ("z", "q"),
    ("z", "b"),
    ("b", "B"),
    ("m", "B"),
    ("n", "N"),
    ("n", "r"),
    ("N", "R"),
    ("r", "R"),
    ("c", "r"),
    ("c", "R"),
    ("c", "z"),
    ("c", "shard"),
    ("P", "shard"),
    ("n", "shard"),
    ("t", "r"),
    ("t", "R"),
    ("t", "q"),
    ("t", "z"),
    ("l", "r"),
    ("l", "source"),
    ("r", "source"),
    ("H", "response"),
    ("H", "q"),
    ("clock", "response"),
    ("v", "o"),
    ("v", "samples"),
    ("v", "strict"),
    ("h", "V"),
];

/// Whether a line of words has this option, by its letter or its long name.
fn has(line: &str, option: &str) -> bool {
    line.split(' ').any(|word| match word.strip_prefix("--") {
        Some(long) => long.split('=').next() == Some(option),
        None => option.len() == 1 && word.strip_prefix('-').is_some_and(|short| short.starts_with(option)),
    })
}

#[test]
fn every_pair_that_acts_on_each_other_has_a_line() {
    let all = LINES.iter().map(|(line, _)| *line).chain(WRONG.iter().map(|(line, _)| *line));
    let lines: Vec<&str> = all.chain(["-V -h"]).collect();
    for (one, other) in PAIRS {
        assert!(lines.iter().any(|line| has(line, one) && has(line, other)), "-{one} and -{other}");
        for option in [one, other] {
            let known = CHOICES.iter().any(|choice| {
                choice.long == Some(*option) || choice.short.is_some_and(|short| *option == short.to_string())
            });
            assert!(known, "{option} is no option");
        }
    }
    assert!(LINES.len() >= 80);
}

#[test]
fn numbers_are_asked_for_where_they_are_missing_or_wrong() {
    for letter in NUMBERS.chars() {
        let expected = format!("option -{letter} requires a number");
        let choice = CHOICES.iter().find(|choice| choice.short == Some(letter)).unwrap();
        let long = choice.long.unwrap();
        for line in [
            format!("-{letter}"),
            format!("-{letter} x"),
            format!("-{letter}5x"),
            format!("-{letter} -1"),
            format!("-{letter} 3000000000"),
            format!("-{letter} 1.5"),
            format!("--{long}"),
            format!("--{long}="),
            format!("--{long}=x"),
        ] {
            assert_eq!(refusal(&line), expected, "{line}");
        }
    }
}

#[test]
fn every_command_line_means_what_it_says() {
    for (line, expected) in LINES {
        assert_eq!(told(line), *expected, "{line}");
    }
}

#[test]
fn a_reply_is_waited_for_awake_where_there_is_nothing_else() {
    for line in ["", "-n 5 -N 5", "-r 0 -R 0 -t 5", "-r 10 -r 0"] {
        assert_eq!(run(line).job.plan.engine.wait, Wait::Brief, "{line}");
    }
    for line in ["-r 10", "-R 10", "-r e5 -R u1,2"] {
        assert_eq!(run(line).job.plan.engine.wait, Wait::Block, "{line}");
    }
}

#[test]
fn what_is_wrong_is_said_in_the_originals_words() {
    for (line, expected) in WRONG {
        assert_eq!(refusal(line), *expected, "{line}");
    }
}

#[test]
fn blanks_do_not_get_into_keys() {
    for prefix in ["a b", "a\r\n", "\u{7f}"] {
        let words = ["-P".to_owned(), prefix.to_owned()].into_iter();
        assert!(read(words).is_err(), "{prefix:?}");
    }
}

#[test]
fn help_and_version_wait_for_the_end_of_the_line() {
    for line in ["-h", "-?", "--help", "-n 5 -h", "-V -h"] {
        assert_eq!(read(words(line)), Ok(McperfCommand::Help), "{line}");
    }
    for line in ["-V", "--version", "-V -n 5"] {
        assert_eq!(read(words(line)), Ok(McperfCommand::Version), "{line}");
    }
}

#[test]
fn every_option_has_a_line_in_each_spelling() {
    let lines: Vec<&str> =
        LINES.iter().map(|(line, _)| *line).chain(["-h", "-?", "--help", "-V", "--version"]).collect();
    let is_used = |spelling: &str| {
        lines.iter().flat_map(|line| line.split(' ')).any(|word| {
            let name = word.split('=').next().unwrap_or_default();
            name == spelling || (!spelling.starts_with("--") && word.starts_with(spelling)) || {
                // A cluster of flags.
                spelling.len() == 2 && word.starts_with("-D") && word.contains(&spelling[1..])
            }
        })
    };
    for choice in &CHOICES {
        let long = choice.long.map(|long| format!("--{long}"));
        let short = choice.short.map(|short| format!("-{short}"));
        for spelling in long.into_iter().chain(short) {
            assert!(is_used(&spelling), "{spelling} has no line");
        }
    }
}

#[test]
fn every_option_is_in_the_help() {
    for choice in &CHOICES {
        let named = choice.long.is_none_or(|long| help::USAGE.contains(&format!("--{long}")));
        assert!(named, "{choice:?}");
    }
    assert!(help::USAGE.contains("(default: 4096; more speeds up large values)"));
}

#[test]
fn plans_are_those_that_can_be_saved_and_run_again() {
    for (line, _) in LINES {
        let plan = run(line).job.plan;
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap().validate(), Ok(plan), "{line}");
    }
}
