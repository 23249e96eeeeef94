//! What `--help` and `--version` of memtier_benchmark's command line print.

use super::options::NAME;

/// The line of `--version`.
pub fn version() -> String {
    format!("{NAME} 2.3.1 (pummel {})\n", env!("CARGO_PKG_VERSION"))
}

/// The help, which also follows an option that is wrong.
pub const USAGE: &str = "\
Usage: memtier_benchmark [options]
The command line of memtier_benchmark, as pummel follows it.

Connections:
  -h, --host=ADDR  -s, --server=ADDR   Server (default localhost)
  -p, --port=PORT                Port (default 6379, also for memcached)
  -S, --unix-socket=SOCKET       Unix socket, in place of host and port
  -4, --ipv4  -6, --ipv6         The address of localhost
  -P, --protocol=PROTOCOL        redis (default), resp2, resp3, memcache_text
                                 or memcache_binary
  -a, --authenticate=WORDS       PASSWORD or USER:PASSWORD
  -u, --uri=URI                  redis:// or rediss://, then
                                 [user:password@]host[:port][/database]
      --tls --cert=FILE --key=FILE --cacert=FILE --tls-skip-verify --sni=HOST
      --tls-protocols=LIST       Changes nothing: TLS 1.2 and 1.3 are offered
      --cluster-mode             The server is a node of a cluster
      --select-db=NUMBER         Database
      --reconnect-interval=N     A new connection after N requests
      --reconnect-on-error       Lost connections are opened again
      --max-reconnect-attempts=N --reconnect-backoff-factor=N
      --connection-timeout=S --thread-conn-start-min-jitter-micros=N
      --thread-conn-start-max-jitter-micros=N
                                 Change nothing

Load:
  -n, --requests=N               Requests of each client (default 10000);
                                 allkeys: one for each key
      --test-time=S              Seconds, in place of -n
  -c, --clients=N                Clients of each thread (default 50)
  -t, --threads=N                Threads (default 4)
      --pipeline=N               Requests outstanding on a connection (default 1)
      --rate-limiting=N          Requests per second of each connection
      --clients-start=N --clients-step=N --step-duration=S
                                 Clients of each thread at the beginning, and
                                 those that come with each step
      --ratio=SETS:GETS          SETs, then GETs, of each client (default 1:10)
      --multi-key-get=N          Keys of each GET
      --wait-ratio=SETS:WAITS --num-slaves=A-B --wait-timeout=A-B
                                 WAIT behind SETs
  -x, --run-count=N              Runs (default 1)
      --distinct-client-seed     Clients draw keys of their own; without it all
                                 draw the same ones
      --randomize                Another seed for each call

Commands:
      --command=COMMAND          A command: __key__ stands for a key, __data__
                                 for a value. May be given several times
      --command-ratio=N          How often it is asked in its turn (default 1)
      --command-key-pattern=P    As a letter of --key-pattern (default R)
      --monitor-input=FILE       The output of MONITOR, whose lines
                                 --command=__monitor_lineN__ and
                                 --command=__monitor_line@__ ask
      --monitor-pattern=S|R      Lines in turns (default) or at random
      --command-stats-breakdown=command|line
                                 A row for each name (default) or command

Values:
  -d, --data-size=N              Bytes (default 32)
      --data-size-range=A-B      Any length of these
      --data-size-list=N:W,...   Lengths by weight
      --data-size-pattern=R|S    S: lengths of a range rise with the keys
      --data-offset=N            SETRANGE and GETRANGE from this place on
  -R, --random-data              Random bytes in place of x
      --expiry-range=A-B         Seconds after which values expire

Keys:
      --key-prefix=TEXT          Before the number (default memtier-)
      --key-minimum=N --key-maximum=N
                                 Numbers of keys (default 0 and 10000000)
      --key-pattern=S:G          Of SETs and GETs: R uniform (default R:R),
                                 G normal, Z Zipf's law, S one after the other,
                                 P so within a share for each client
      --key-stddev=N --key-median=N --key-zipf-exp=N
                                 Of the patterns G and Z

Results:
  -o, --out-file=FILE            The report, in place of standard output
      --json-out-file=FILE       The report as JSON
      --hdr-file-prefix=PREFIX   Files of the histograms
      --client-stats=PREFIX      A table for each client
      --print-percentiles=LIST   Columns of the table (default 50,99,99.9)
      --hide-histogram           No distributions
      --print-all-runs           Each of several runs, too
      --show-config              The values of the options
  -D, --debug                    Changes nothing
      --help                     This text
  -v, --version                  The version

Not in the original: --json=FILE, --csv=FILE, --hdr=FILE and --report=FILE (a
page), pummel's own results; --timeout=S (default 60), --strict, with which
requests that failed make the exit status 1, --no-evidence, which reads no
statistics of the server and the kernel, --anonymous, which leaves names and
addresses out of the results, --clock=kernel|user, --backend=auto|epoll|uring.

";

/// What the exit statuses mean.
pub const STATUSES: &str = "\
Exit status:
 0    the runs were made, whatever became of their requests; also after Ctrl-C
 1    options that do not fit each other, a server that is not there, a file
      that cannot be written; with --strict also requests that failed
 2    an option that is not known or has a wrong value, and --help
";

/// Example command lines.
pub const EXAMPLES: &str = "\
Examples:
 memtier_benchmark -s 192.168.1.1 -c 20 -t 2 --test-time 60
 memtier_benchmark --key-pattern=P:P --ratio=1:0 -n allkeys
 memtier_benchmark -P memcache_text -p 11211 --data-size-range=10-1000
 memtier_benchmark --command=\"ZADD __key__ 1 __data__\" --command-ratio=2 \\
                   --command=\"ZRANGE __key__ 0 -1\"
";
