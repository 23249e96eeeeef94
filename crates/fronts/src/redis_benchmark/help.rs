//! What `--help` and `--version` of redis-benchmark's command line print.

use super::suite::Program;

/// The line of `--version`.
pub fn version(program: Program) -> String {
    format!("{} 8.0.0 (pummel {})\n", program.name(), env!("CARGO_PKG_VERSION"))
}

/// The help, which also follows an option that is not known.
pub const USAGE: &str = "\
Usage: redis-benchmark [OPTIONS] [COMMAND ARGS...]
The command line of redis-benchmark and valkey-benchmark, as pummel follows it.

Options:
 -h <hostname>      Server (default 127.0.0.1)
 -p <port>          Port (default 6379)
 -s <socket>        Unix socket, in place of host and port
 -a <password>      Password
 --user <username>  User of that password
 -u <uri>           redis://, rediss://, valkey:// or valkeys://, then
                    [[user:]password@][host[:port]][/database]
 -c <clients>       Connections (default 50)
 -n <requests>      Requests of each test (default 100000); never more are sent
 -d <size>          Bytes of a value (default 3)
 --dbnum <db>       Database (default 0)
 -3                 RESP3
 --threads <num>    Threads (default one)
 --cluster          The server is a node of a cluster. {tag} in a word of the
                    command is a tag that decides on the node.
 --enable-tracking  CLIENT TRACKING on, on each connection; implies -3
 -k <boolean>       1 keeps connections, 0 opens one for each batch (default 1)
 -r <keyspacelen>   Twelve random digits below this in place of __rand_int__.
                    Without it every request has the same key, which has the
                    letters __rand_int__ in it.
 -P <numreq>        Requests of a batch: they are sent together, and the next
                    batch when all are answered (default 1)
 -q                 One line for each test
 --csv              The same figures as comma-separated values
 --precision <num>  Changes nothing
 -l                 Repeat the tests until interrupted
 -t <tests>         Tests to run, with commas between them
 -I                 Open the connections, send nothing, and wait
 -x                 The last word of the command comes from standard input
 -e                 Changes nothing
 --seed <num>       Seed of what is drawn
 --tls --sni <host> --cacert <file> --insecure --cert <file> --key <file>
                    TLS
 --help             This text
 -v, --version      The version

Of valkey-benchmark alone:
 --duration <s>     Length of each test, in place of -n
 --warmup <s>       Time before each test that is not measured
 --rps <num>        Requests per second of all connections: an open loop. A
                    request that has to wait is counted from when it is sent.
 --rfr no|yes|all   With --cluster: reads go to masters, replicas or both
 --dataset <file>   CSV or TSV file whose columns fill __field:NAME__
 When the program is called valkey-benchmark, a command may have several parts
 with ';' between them, a number of repetitions in front of each, __data__,
 and __rand_1st__ to __rand_9th__, which are drawn once for a command.

Not in the originals: --json <file>, --hdr <file>, --report <file> (a page),
each with the name of the test before the ending where there are several
tests; --timeout <s> (default 60), --no-evidence, which reads no statistics of
the server and the kernel, --anonymous, which leaves names and addresses out of
the results, --clock kernel|user, --backend auto|epoll|uring.

";

/// What the exit statuses mean.
pub const STATUSES: &str = "\
Exit status:
 0    the tests were run
 1    everything else: an option that is not known, a server that is not there,
      answers with an error or closes a connection
";

/// Example command lines.
pub const EXAMPLES: &str = "\
Examples:
 redis-benchmark -h 192.168.1.1 -p 6379 -n 100000 -c 20
 redis-benchmark -t set -n 1000000 -r 100000000
 redis-benchmark -t ping,set,get -n 100000 --csv
 redis-benchmark -r 10000 -n 10000 lpush mylist __rand_int__
";
