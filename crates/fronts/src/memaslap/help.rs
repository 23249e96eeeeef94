//! What `--help` and `--version` of memaslap's command line print.

/// The version that the original has called itself for years; scripts compare it.
pub const VERSION: &str = "memaslap v1.0\n";

/// The help.
pub const HELP: &str = "\
memaslap v1.0
    Load for memcached from moving windows of objects, as pummel implements it.

Usage:
    memaslap -hV | -s servers [-F config_file] [-t time | -x exe_num] [...]

Options:
    -s, --servers=
        Servers, as HOST[:PORT], separated by commas. Thread i loads
        server i modulo their number. Default: MEMCACHED_SERVERS.
    -T, --threads=
        Threads. Default 1.
    -c, --concurrency=
        Concurrencies of all threads together, each with a window of objects
        and one request outstanding; a multiple of the threads. Default 16.
    -n, --conn_sock=
        TCP sockets of each concurrency, used in turn. Default 1.
    -x, --execute_number=
        Gets and sets to execute, instead of a time.
    -t, --time=
        How long to run, as a number with s, m, h or d. Default 600s.
    -F, --cfg_cmd=
        File with lengths of keys and values and the shares of commands.
        Default: ~/.memaslap.cnf or ~/.memslap.cnf, if there is one.
    -w, --win_size=
        Objects of each window, as a number with k, m or g (k is 1024).
        Default 10k.
    -X, --fixed_size=
        Length of every value in bytes.
    -v, --verify=
        Share of the gets whose values are compared.
    -d, --division=
        Keys of each get. Default 1.
    -S, --stat_freq=
        Time between statistics, as a number with s, m, h or d.
        --resp_freq is an alias of --stat_freq.
    -e, --exp_verify=
        Share of the objects that expire, and whose expiry is checked.
    -o, --overwrite=
        Share of the sets that store another value under an existing key.
    -R, --reconnect 
        Reopen lost connections, once a second.
    -U, --udp 
        UDP for everything; the server listens on the same port as for TCP.
    -a, --facebook 
        Sets by TCP and gets of several keys by UDP; needs --division.
    -B, --binary 
        The binary protocol.
    -P, --tps=
        Gets and sets per second, as a number with k, m or g.
    -p, --rep_write=
        Replicated servers: a set goes to one of the first so many, a get to any.
    -b, --verbose 
        Print details of each failed check.
    -h, --help 
        This text.
    -V, --version 
        The version.

    Not in the original, never abbreviated: --seed=N, --json=FILE, --csv=FILE,
    --hdr=FILE, --no-evidence, which reads no statistics of the servers and the
    kernel, --anonymous, which leaves names and addresses out of the JSON, and
    --strict, which ends with status 1 after lost servers, failed checks or
    misses of -v and -p.

Exit status:
    0    a run took place, whatever it found; with --strict nothing was wrong
    1    everything else, also a run that a signal ended

Examples:
    memaslap -s 127.0.0.1:11211 -S 5s
    memaslap -s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b
    memaslap -s 127.0.0.1:11211 -F config -t 2m -w 40k -S 20s -o 0.2
    memaslap -s 127.0.0.1:11211 -F config -t 2m -T 4 -c 128 -d 20 -P 40k
    memaslap -s 127.0.0.1:11211 -F config -t 2m -d 50 -a -n 40
    memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m
    memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m -p 2

";
