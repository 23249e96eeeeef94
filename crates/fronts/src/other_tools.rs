//! The words of other load generators, and what stands for them in pummel's command line. None is accepted: an error names what is.

use std::ffi::OsString;

use pummel_logic::secrets::masked_text;

/// Subcommands of other tools, and the subcommand of pummel.
pub const SUBCOMMANDS: [(&str, &str); 14] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("start", "run"),
    ("test", "run"),
    ("attack", "run"),
    ("populate", "load"),
    ("prefill", "load"),
    ("fill", "load"),
    ("sweep", "scan"),
    ("diff", "compare"),
    ("server", "serve"),
    ("print", "show"),
    ("html", "report"),
    ("plan", "explain"),
];

/// An option of other tools.
#[derive(Clone, Copy, Debug)]
pub struct OtherOption {
    /// The option with its dashes.
    pub word: &'static str,
    /// The option of pummel that stands for it, with its dashes.
    pub meant: &'static str,
    /// What becomes of its value.
    pub value: OtherValue,
}

/// What becomes of the value of an option of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherValue {
    /// pummel takes another value, which cannot be told from this one.
    Different,
    /// The value stays as it is.
    Same,
    /// The row holds for numbers only, which stay as they are.
    Number,
    /// Sets to gets, `1:10`, becomes weights of operations.
    Ratio,
    /// The ends of a range, `10-100`, become a uniform distribution.
    Range,
}

const fn row(word: &'static str, meant: &'static str, value: OtherValue) -> OtherOption {
    OtherOption { word, meant, value }
}

/// Options of memtier_benchmark, redis-benchmark, redis-cli, YCSB, wrk2 and others. Of rows with one word the first holds whose value
/// can be read.
pub const OPTIONS: [OtherOption; 56] = {
    use OtherValue::{Different, Number, Range, Ratio, Same};
    [
        row("--duration", "--time", Same),
        row("--test-time", "--time", Same),
        row("--runtime", "--time", Same),
        row("--clients", "--connections", Same),
        row("--concurrency", "--connections", Same),
        row("--qps", "--rate", Same),
        row("--rps", "--rate", Same),
        row("--target", "--rate", Same),
        row("--throughput", "--rate", Same),
        row("--rate-limiting", "--rate", Different),
        row("--host", "--server", Same),
        row("--hostname", "--server", Same),
        row("--url", "--server", Same),
        row("--uri", "--server", Same),
        row("--port", "--server", Different),
        row("--socket", "--server", Same),
        row("--unix-socket", "--server", Same),
        row("--keys", "--records", Same),
        row("--num-keys", "--records", Same),
        row("--key-count", "--records", Same),
        row("--key-maximum", "--records", Same),
        row("--keyspace", "--records", Same),
        row("--keyspacelen", "--records", Same),
        row("--recordcount", "--records", Same),
        row("--size", "--value-size", Same),
        row("--data-size", "--value-size", Same),
        row("--payload-size", "--value-size", Same),
        row("--data-size-range", "--value-size", Range),
        row("--expiry-range", "--ttl", Range),
        row("--pipeline", "--depth", Same),
        row("--pipelining", "--depth", Same),
        row("--ratio", "--mix", Ratio),
        row("--key-pattern", "--popularity", Different),
        row("--distribution", "--popularity", Different),
        row("--multi-key-get", "--multiget", Same),
        row("--run-count", "--repeat", Same),
        row("--requests-per-client", "--requests", Different),
        row("--output", "--json", Same),
        row("--out-file", "--json", Different),
        row("--json-out-file", "--json", Same),
        row("--hdr-file-prefix", "--hdr", Same),
        row("--authenticate", "--password-file", Different),
        row("--password", "--password-file", Different),
        row("--pass", "--password-file", Different),
        row("--db", "--database", Same),
        row("--dbnum", "--database", Same),
        row("--select-db", "--database", Same),
        row("--cacert", "--tls-ca", Same),
        row("--cert", "--tls-cert", Same),
        row("--sni", "--tls-server-name", Same),
        row("--insecure", "--tls-insecure", Different),
        row("-a", "--password-file", Different),
        row("-u", "--server", Same),
        row("-P", "--batch", Number),
        row("-r", "--records", Number),
        row("-x", "--repeat", Number),
    ]
};

/// What stands for an unknown option, with its dashes, of a command line: a sentence with its value where that can be read. `known`
/// are the options that there are, with their dashes.
pub fn meaning(unknown: &str, words: &[OsString], known: &[String]) -> Option<String> {
    let typed = value_of(unknown, words);
    let rows =
        OPTIONS.iter().filter(|row| row.word == unknown && known.iter().any(|known| known == row.meant));
    let (row, translated) = rows.filter_map(|row| Some((row, translated(row.value, typed)?))).next()?;
    Some(match (typed, translated) {
        (Some(typed), Some(value)) => {
            let [typed, value] = [typed, &value].map(masked_text);
            format!("'{unknown} {typed}' is '{} {value}' here", row.meant)
        }
        _ => format!("'{unknown}' is '{}' here", row.meant),
    })
}

/// The value of an option where it stands on a command line: attached, or the next word.
fn value_of<'a>(option: &str, words: &'a [OsString]) -> Option<&'a str> {
    let mut words = words.iter().map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        if word == option {
            return words.next().filter(|value| !value.starts_with('-'));
        }
        match word.strip_prefix(option) {
            Some(attached) if option.starts_with("--") => match attached.strip_prefix('=') {
                Some(value) => return Some(value),
                None => continue,
            },
            Some(attached) => return Some(attached),
            None => {}
        }
    }
    None
}

/// The value of an option of another tool as pummel takes it, `Some(None)` where that is not known, and `None` where the row is
/// about other values.
fn translated(kind: OtherValue, typed: Option<&str>) -> Option<Option<String>> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let two = |separator| {
        typed.and_then(|typed| typed.split_once(separator)).filter(|(a, b)| number(a) && number(b))
    };
    match kind {
        OtherValue::Different => Some(None),
        OtherValue::Same => Some(typed.map(str::to_owned)),
        OtherValue::Number => typed.filter(|typed| number(typed)).map(|typed| Some(typed.to_owned())),
        OtherValue::Ratio => Some(two(':').map(|(sets, gets)| {
            let weights = [("set", sets), ("get", gets)]
                .into_iter()
                .filter(|(_, weight)| !weight.trim_matches('0').is_empty());
            weights.map(|(verb, weight)| format!("{verb}:{weight}")).collect::<Vec<_>>().join(",")
        })),
        OtherValue::Range => Some(two('-').map(|(low, high)| format!("uniform:{low},{high}"))),
    }
}

/// What is to be typed instead of `-h HOST` and `-p PORT`, as redis-cli and others take them, where a command line has them. The first
/// word is the subcommand. `-h` without a host is no such habit.
pub fn host_and_port(words: &[OsString]) -> Option<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let words = &words[..end];
    let short = |option: &str| {
        let is = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with(option));
        words.iter().any(is).then(|| value_of(option, words)).flatten().filter(|value| !value.is_empty())
    };
    let (host, port) = (short("-h"), short("-p"));
    // The host of a server that stands in --server or alone, without the port that `-p` stands for.
    let server = || {
        let named =
            words.windows(2).find(|pair| pair[0] == "-s" || pair[0] == "--server").map(|pair| &pair[1]);
        let alone = || words.get(1).filter(|word| !word.to_str().is_some_and(|word| word.starts_with('-')));
        let server = named.or_else(alone)?.to_str()?;
        let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        Some(masked_text(if is_port { host } else { server }))
    };
    let host = host.map(masked_text);
    match (host, port) {
        (None, None) => None,
        (Some(host), None) => {
            Some(format!("'-h' is help and takes no host: write '-s {host}' (-s HOST:PORT)"))
        }
        (Some(host), Some(port)) => {
            Some(format!("'-h' is help and takes no host, and there is no '-p': write '-s {host}:{port}'"))
        }
        (None, Some(port)) => {
            let host = server().unwrap_or_else(|| "127.0.0.1".to_owned());
            Some(format!("there is no '-p': the port stands behind the host: write '-s {host}:{port}'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_word_of_another_tool_is_told_with_its_value() {
        let known = [
            "--mix",
            "--time",
            "--value-size",
            "--batch",
            "--json",
            "--records",
            "--password-file",
            "--server",
        ];
        let known = known.map(str::to_owned);
        for (unknown, line, told) in [
            ("--ratio", "run --ratio 1:10", "'--ratio 1:10' is '--mix set:1,get:10' here"),
            ("--ratio", "run --ratio=1:0 -t 1s", "'--ratio 1:0' is '--mix set:1' here"),
            ("--ratio", "run --ratio -t", "'--ratio' is '--mix' here"),
            ("--ratio", "run --ratio x", "'--ratio' is '--mix' here"),
            ("--duration", "run --duration 10s", "'--duration 10s' is '--time 10s' here"),
            (
                "--data-size-range",
                "run --data-size-range=1-9",
                "'--data-size-range 1-9' is '--value-size uniform:1,9' here",
            ),
            ("--output", "run --output r.json", "'--output r.json' is '--json r.json' here"),
            ("-P", "run -P 16", "'-P 16' is '--batch 16' here"),
            ("-P", "run -P16", "'-P 16' is '--batch 16' here"),
            ("-a", "run -a secret", "'-a' is '--password-file' here"),
            ("--port", "run --port 5", "'--port' is '--server' here"),
            ("-u", "run -u redis://:S3CRET@a", "'-u redis://:***@a' is '--server redis://:***@a' here"),
        ] {
            assert_eq!(meaning(unknown, &words(line), &known).as_deref(), Some(told), "{line}");
        }
        assert_eq!(meaning("-P", &words("run -P redis"), &known), None, "memtier's -P is a protocol");
        assert_eq!(meaning("--ratio", &words("serve --ratio 1:1"), &[]), None);
        assert_eq!(meaning("--cluster", &words("run --cluster"), &known), None);
    }

    #[test]
    fn host_and_port_are_told_from_help() {
        for (line, told) in [
            ("run -h 10.0.0.1 -p 6379", "write '-s 10.0.0.1:6379'"),
            ("run -p 6379 -h 10.0.0.1", "write '-s 10.0.0.1:6379'"),
            ("run -h cache1", "write '-s cache1'"),
            ("run -hcache1", "write '-s cache1'"),
            ("run -s cache1 -p 6379", "write '-s cache1:6379'"),
            ("run -p6379", "write '-s 127.0.0.1:6379'"),
            ("run cache1 -p 6379", "write '-s cache1:6379'"),
            ("run cache1:1 -p 6379", "write '-s cache1:6379'"),
            ("run -h redis://:S3CRET@a", "write '-s redis://:***@a'"),
        ] {
            assert!(host_and_port(&words(line)).is_some_and(|said| said.contains(told)), "{line}");
        }
        for line in [
            "run -h",
            "run -s a -h",
            "run -h -t 5s",
            "run --host a",
            "run -s a -- -h b",
            "run --popularity x",
        ] {
            assert_eq!(host_and_port(&words(line)), None, "{line}");
        }
    }
}
