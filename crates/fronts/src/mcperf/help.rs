//! What `--help` and `--version` say.

/// The line of `--version`.
pub fn version() -> String {
    format!("This is mcperf-0.1.1 as pummel {} follows it\n\n", env!("CARGO_PKG_VERSION"))
}

/// How to call it.
pub const USAGE: &str = "\
Usage: mcperf [-?hV] [-v verbosity level] [-o output file]
              [-s server] [-p port] [-H] [-t timeout] [-l linger]
              [-b send-buffer] [-B recv-buffer] [-D]
              [-m method] [-e expiry] [-q] [-P prefix]
              [-c client] [-n num-conns] [-N num-calls]
              [-r conn-rate] [-R call-rate] [-z sizes]

Options:
  -h, -?, --help        : this help
  -V, --version         : print the version and exit
  -v, --verbosity=N     : log level, 0 to 11 (default: 4; 5 with -o): 1 errors, 4 warnings, 5 the number of connections,
                          6 the end of each, 7 every call
  -o, --output=S        : file for the log (default: stderr)
  -s, --server=S        : host name, address, or path of a unix socket (default: localhost)
  -p, --port=N          : port of the server (default: 11211)
  -H, --print-histogram : print the histogram of response times

  -t, --timeout=X       : seconds to wait for a connection to open and for a response (default: 60; 0: no limit)
  -l, --linger=N        : 0: connections are closed by a reset (default: off); other values leave closing as it is
  -b, --send-buffer=N   : bytes of a socket's send buffer (default: 4096; more speeds up large values)
  -B, --recv-buffer=N   : bytes of a socket's receive buffer (default: 16384)
  -D, --disable-nodelay : leave Nagle's algorithm on

  -m, --method=M        : method of every request (default: set)
  -e, --expiry=N        : expiry of stored items (default: 0)
  -q, --use-noreply     : ask for no reply
  -P, --prefix=S        : prefix of all keys, at most 16 bytes (default: mcp:)

  -c, --client=I/N      : this is instance I of N; I seeds sizes and gaps (default: 0/1)
  -n, --num-conns=N     : number of connections (default: 1)
  -N, --num-calls=N     : calls on each connection (default: 1)
  -r, --conn-rate=R     : when connections are made (default: 0)
  -R, --call-rate=R     : when calls are made on a connection (default: 0)
  -z, --sizes=R         : bytes of a value (default: d1)

Added by pummel, and never abbreviated:
  --response            : two more lines, with times from when a call was due, and
                          three decimals in all percentiles
  --strict              : exit with 1 when anything failed
  --shard               : instances of -c I/N divide the keys among them
  --source=S,...        : addresses to connect from, in turn
  --clock=S             : kernel (default) or user: clock for the arrival of responses
  --evidence            : ask the server for its statistics before and after
  --anonymous           : no names and addresses in the result of --json
  --json=S, --csv=S, --hdr=S, --samples=S
                        : files for results, as of `pummel run`

Where:
  N is a whole number, X a real number, S a text
  M is one of get, gets, delete, cas, set, add, replace, append, prepend, incr and decr
  R is a distribution:
    0        the next when the previous one is done (not for sizes)
    X        X per second; as a size, X bytes
    dX       every X seconds; X bytes
    uX1,X2   uniform between X1 and X2
    eX       exponential with mean X
";

/// The exit statuses, which `--help` prints below [`USAGE`].
pub const STATUSES: &str = "
Exit status:
  0    a run took place, whatever failed in it; with --strict nothing failed
  1    wrong usage, or no run took place; with --strict also if anything failed
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written
";
