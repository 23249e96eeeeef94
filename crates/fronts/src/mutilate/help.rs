//! What `--help` and `--version` print.

/// The answer to `--version`.
pub const VERSION: &str = "mutilate 0.1\n";

/// The answer to `--help`.
pub const HELP: &str = r#"Usage: mutilate -s server[:port] [options]

A load generator for memcached, as pummel implements it

  -h, --help                    Print this and exit
      --version                 Print the version and exit
  -v, --verbose                 Say more on standard error; repeat it for still more
      --quiet                   Only warnings and failures on standard error

Basic options:
  -s, --server=STRING           Server, host[:port]; repeat it, or use commas, for
                                  more than one
      --unix_socket             Servers are paths of unix sockets
      --binary                  Speak memcached's binary protocol
      --redis                   Speak RESP, for Redis and compatible servers
      --getset                  Read, and store what was not found
      --getsetorset             As --getset, and store directly when --update or
                                  the trace says so
      --successful              Count and time only hits and successful stores
      --prefix=STRING           Prefix of every key
      --delete90                After half of --queries, delete 90 percent of the
                                  keys; with --getset or --getsetorset
      --assoc=INT               With --redis, use hashes: the last INT bytes of a
                                  key are the field
  -q, --qps=INT                 Requests per second in total; 0 for as many as
                                  possible  (default=`0')
  -t, --time=INT                Seconds to measure  (default=`5')
      --read_file=STRING        Replay the requests of a trace  (default=`')
      --twitter_trace=INT       Format of that trace, 0 to 2  (default=`0')
  -K, --keysize=STRING          Length of keys (distribution)  (default=`30')
  -V, --valuesize=STRING        Length of values (distribution)  (default=`200')
  -r, --records=INT             Number of records, divided by the number of
                                  servers  (default=`10000')
  -m, --misswindow=INT          Print the share of misses after every INT reads;
                                  0 for never  (default=`0')
  -N, --queries=INT             Number of requests, divided by the number of
                                  servers; 0 for no limit  (default=`0')
  -u, --update=FLOAT            Share of stores  (default=`0.0')

Advanced options:
  -U, --username=STRING         User, for SASL
  -P, --password=STRING         Password, for SASL
  -T, --threads=INT             Number of threads  (default=`1')
      --affinity                Pin threads to CPUs, in turn
  -c, --connections=INT         Connections that each thread opens to each server
                                  (default=`1')
  -d, --depth=INT               Most requests outstanding on a connection
                                  (default=`1')
  -R, --roundrobin              Assign servers to threads in turn
  -i, --iadist=STRING           Gaps between requests (distribution), fitted to
                                  --qps  (default=`exponential')
  -S, --skip                    Skip requests that are late
      --moderate                Never send faster than the mean gap allows
      --noload                  Do not store the records first
      --loadonly                Store the records, and nothing else
  -B, --blocking                Sleep when there is nothing to do
      --no_nodelay              Leave TCP_NODELAY off
  -w, --warmup=INT              Seconds of load before anything is measured
  -W, --wait=INT                Start to measure INT seconds after the start
      --save=STRING             Write the latency of every read to a file
      --search=N:X              Find the rate at which N percent of requests are
                                  faster than X us
      --scan=min:max:step       Measure at every rate from min to max

Agent-mode options:
  -A, --agentmode               Be an agent
  -a, --agent=host              Use an agent, host[:port], or ssh://HOST,HOST
  -p, --agent_port=STRING       Port of agents  (default=`5556')
  -l, --lambda_mul=INT          Weight in the division of --qps  (default=`1')
  -C, --measure_connections=INT Connections of this process instead of --connections
  -Q, --measure_qps=INT         Rate of this process
  -D, --measure_depth=INT       Depth of this process

What pummel adds (never abbreviated):
      --response                Rows read_rt and update_rt: time from when a request
                                  was due, which includes waiting
      --p50                     Columns for the 50th and the 99.9th percentile
      --all_rows                Rows read_all and update_all, which include the agents
      --save_all                With --save, one line for every request of every
                                  machine: seconds since 1970, seconds since the
                                  start, read or update, us, the machine
      --no-evidence             Do not read statistics of the servers and the kernel
      --anonymous               No names, addresses and ids in the result of --json
      --json=FILE               Write the whole result as JSON
      --csv=FILE                Write the result second by second
      --hdr=FILE                Write histograms second by second (HdrHistogram log)
      --samples=FILE            Write every request
      --clock=kernel|user       Clock that says when a reply arrived  (default=`kernel')
      --seed=INT                Seed that makes a run repeatable

The --measure_* options let one process of many, the master, measure with few
connections at a low rate, so that its own queues do not add to what it sees, while
agents load the server.

On several machines, master and agents must share a token: the first line of a file
that PUMMEL_AGENT_TOKEN_FILE names on each of them. Without it, an agent (-A) listens
only on the loopback address.

   PUMMEL_AGENT_TOKEN_FILE      File with the token; the agent then listens on all
                                addresses, and sends load to any server
   PUMMEL_AGENT_LISTEN          Address that the agent listens on, or ADDRESS:PORT
   PUMMEL_ALLOW_TARGET          Networks that the agent sends load to, such as
                                10.0.0.0/8, separated by commas
   PUMMEL_ALLOW_FILE            Directory below which the agent reads traces
   PUMMEL_AGENT_MAX_MEMORY      Most memory that the agent uses for a run, such as 2g
                                (default: half of the machine's, up to 16 GiB)
   PUMMEL_AGENT_MAX_CONNECTIONS Most connections that the agent opens in a run
   PUMMEL_AGENT_TLS_CERT, PUMMEL_AGENT_TLS_KEY, PUMMEL_AGENT_TLS_CA
                                Certificate, key and authorities, instead of the token
   PUMMEL_AGENT_ALLOW_VERSION_MISMATCH
                                1: the master accepts agents of other builds

-a ssh://HOST,HOST starts agents on these hosts, which need no pummel and no token.

Distributions are written as NAME[:PARAMETER[,...]]; the name may be shortened, and
parameters may be left out.

   [fixed:]<value>              Always the same
   uniform:<max>                Anything between 0 and <max>
   normal:<mean>,<sd>           The normal distribution
   exponential:<lambda>         The exponential distribution; its mean is 1/<lambda>
   pareto:<loc>,<scale>,<shape> The generalized Pareto distribution
   gev:<loc>,<scale>,<shape>    The generalized extreme value distribution

   fb_value   value sizes of Facebook's "ETC" pool [1]
   fb_key     its key sizes: gev:30.7984,8.20449,0.078688
   fb_ia      its gaps: pareto:0.0,16.0292,0.154971

[1] Atikoglu et al., Workload Analysis of a Large-Scale Key-Value Store,
    SIGMETRICS 2012

Exit status:
   0    the run took place, even if requests failed
   1    an option or its value cannot be read
   255  every other failure: options that cannot be followed, records that were not
        stored, a connection that was lost for good
   130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is printed
"#;
