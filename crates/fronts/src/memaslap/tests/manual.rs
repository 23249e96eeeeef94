//! Every example of the manual's text, and every two options that have to do with each other.

use super::*;

/// The manual's samples, and the examples in its chapters and behind `e.g.:`, each with a server where it names none.
const EXAMPLES: &[(&str, &str)] = &[
    ("-s 127.0.0.1:11211 -S 5s", "servers 127.0.0.1:11211; tables 5"),
    (
        "-s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b",
        "servers 127.0.0.1:11211; time Some(120); verify 0.2; expire 0.05; verbose",
    ),
    (
        "-s 127.0.0.1:11211 -F sample -t 2m -w 40k -S 20s -o 0.2",
        "servers 127.0.0.1:11211; time Some(120); objects 40960; keys 128-128; values 2048-2048; overwrite 0.2; tables 20",
    ),
    (
        "-s 127.0.0.1:11211 -F sample -t 2m -T 4 -c 128 -d 20 -P 40k",
        "servers 127.0.0.1:11211; threads 4; clients 128; block 32; time Some(120); keys 128-128; \
         values 2048-2048; multiget 20; rate 40960",
    ),
    (
        "-s 127.0.0.1:11211 -F small -t 2m -d 50 -a -n 40",
        "servers 127.0.0.1:11211; sockets 40; gets by datagrams; time Some(120); keys 16-24; values 100-100; multiget 50",
    ),
    // 50 keys of 128 bytes do not fit in a datagram, of which the manual speaks elsewhere: 10 do.
    (
        "-s 127.0.0.1:11211 -F sample -t 2m -d 50 -a -n 40",
        "servers 127.0.0.1:11211; sockets 40; gets by datagrams; time Some(120); keys 128-128; values 2048-2048; multiget 10; \
         1 remarks",
    ),
    // One thread has one server.
    (
        "-s 127.0.0.1:11211,127.0.0.1:11212 -F sample -t 2m",
        "servers 127.0.0.1:11211; time Some(120); keys 128-128; values 2048-2048; 1 remarks",
    ),
    (
        "-s 127.0.0.1:11211,127.0.0.1:11212 -F sample -t 2m -p 2",
        "servers 127.0.0.1:11211,127.0.0.1:11212; writers 2; time Some(120); keys 128-128; values 2048-2048; reconnect",
    ),
    ("--help", "help"),
    ("-s a --threads=2 --concurrency=128", "threads 2; clients 128; block 64"),
    ("-s a --threads=8 --concurrency=128", "threads 8; clients 128"),
    ("-s a --threads=8 --concurrency=256", "threads 8; clients 256; block 32"),
    ("-s a --threads=12 --concurrency=144", "threads 12; clients 144; block 12"),
    ("-s a --threads=16 --concurrency=256", "threads 16; clients 256"),
    ("-s a --threads=16 --concurrency=512", "threads 16; clients 512; block 32"),
    ("-s a --threads=24 --concurrency=288", "threads 24; clients 288; block 12"),
    // Its dashes are lost in the manual; a word without them says nothing.
    ("-s a --exp_verify=0.01 verify=0.1", "expire 0.01"),
    ("-s a --exp_verify=0.01 --verify=0.1", "verify 0.1; expire 0.01"),
    (
        "--servers=10.1.1.1:11211,10.1.1.2:11212,10.1.1.3:11213 --threads=6 --concurrency=36",
        "servers 10.1.1.1:11211,10.1.1.2:11212,10.1.1.3:11213; threads 6; clients 36; block 6",
    ),
    ("-s a --time=30s", "time Some(30)"),
    ("-s a --execute_number=100000", "time None; requests 100000"),
    ("-s a --stat_freq=20s", "tables 20"),
    ("-s a -F small --facebook --division=50", "gets by datagrams; keys 16-24; values 100-100; multiget 50"),
    (
        "-s a -F small --facebook --division=50 --conn_sock=200",
        "sockets 200; gets by datagrams; keys 16-24; values 100-100; multiget 50",
    ),
    ("--servers=10.1.1.1:11211,10.1.1.2:11212 rep_write=2", "servers 10.1.1.1:11211; 1 remarks"),
    (
        "--servers=10.1.1.1:11211,10.1.1.2:11212 --rep_write=2",
        "servers 10.1.1.1:11211,10.1.1.2:11212; writers 2; reconnect",
    ),
    ("-s a --threads=8 --concurrency=128 --conn_sock=128", "threads 8; clients 128; sockets 128"),
    ("-s a --binary", "binary"),
    ("-s a --binary --division=50", "multiget 50; binary"),
    (
        "--servers=localhost:1234,localhost:11211 -T 2",
        "servers localhost:1234,localhost:11211; threads 2; block 8",
    ),
    ("-s a --time=2h", "time Some(7200)"),
    ("-s a --time=24h", "time Some(86400)"),
    ("-s a --win_size=10k", ""),
    ("-s a --verify=0.01", "verify 0.01"),
    ("-s a --resp_freq=10s", "tables 10"),
    ("-s a --exp_verify=0.01", "expire 0.01"),
    ("-s a --overwrite=0.01", "overwrite 0.01"),
    ("-s a --tps=10k", "rate 10240"),
    ("-s a --udp -F small", "keys 16-24; values 100-100; udp"),
    ("-s a,b --rep_write=2", "servers a:11211,b:11211; writers 2; reconnect"),
    ("-s a -w 8k -c 128", "clients 128; block 128; objects 8192"),
    ("-s a -w 11k -c 128", "clients 128; block 128; objects 11264"),
    ("-s a -w 32k -c 128", "clients 128; block 128; objects 32768"),
    ("-s a -w 46k -c 128", "clients 128; block 128; objects 47104"),
];

/// Options that have to do with each other: excluded, implied, shared out, or one without the other.
const PAIRS: &[(&str, &str)] = &[
    // Time and number.
    ("-s a -x 9 -t 1m", "time None; requests 9"),
    ("-s a -x 9 -S 1s", "time None; requests 9; tables 1"),
    ("-s a -t 1s -S 2s", "time Some(1); tables 2"),
    ("-s a -x 9 -R", "time None; requests 9; reconnect"),
    ("-s a,b -x 9 -p 1", "servers a:11211,b:11211; writers 1; time None; requests 9; reconnect"),
    ("-s a -x 5 -c 16", "time None; requests 5"),
    ("-s a -x 100 -d 7", "time None; requests 100; multiget 7"),
    ("-s a -x 100 -F gets", "time None; requests 100; set 0 get 1; presets"),
    // Servers, threads and clients.
    ("-s a,b -T 1", "1 remarks"),
    ("-s a,b -T 2", "servers a:11211,b:11211; threads 2; block 8"),
    ("-s a,b,c -T 2", "servers a:11211,b:11211; threads 2; block 8; 1 remarks"),
    ("-s a,b,c -T 6 -c 6", "servers a:11211,b:11211,c:11211; threads 6; clients 6; block 1"),
    ("-s a,b,c -p 3 -T 1", "servers a:11211,b:11211,c:11211; writers 3; reconnect"),
    ("-s a -T 5 -c 16", "+Concurrency must be the multiples of threads count."),
    ("-s a -T 16 -c 16", "threads 16; block 1"),
    ("-T 5 -c 16", "+No servers provided\n"),
    ("-T 5 -c 16 -V", "version"),
    ("-P 100k -c 50 -T 2 -s a", "threads 2; clients 50; block 25; rate 102400"),
    // Sockets.
    ("-s a,b -p 1 -n 3", "servers a:11211,b:11211; sockets 3; writers 1; reconnect"),
    ("-s a -n 3 -R", "sockets 3; reconnect"),
    ("-s a -n 3 -B", "sockets 3; binary"),
    ("-s a -n 3 -U -X 9", "UDP doesn't support multi-socks in one connection structure."),
    ("-s a -n 1 -U -X 9", "values 9-9; udp"),
    ("-s a -n 3 -a -d 2", "sockets 3; gets by datagrams; multiget 2"),
    ("-s a -U -R -X 9", "values 9-9; reconnect; udp"),
    ("-s a -a -d 2 -R", "gets by datagrams; multiget 2; reconnect"),
    // What excludes what, and which is said first.
    (
        "-s a -a",
        "facebook test must work with multi-get, please specify multi-get key number with '--division' option.",
    ),
    (
        "-s a -a -d 1",
        "facebook test must work with multi-get, please specify multi-get key number with '--division' option.",
    ),
    ("-s a -a -d 2 -U", "facebook test couldn't work with UDP."),
    ("-s a -a -d 2 -U -n 2", "facebook test couldn't work with UDP."),
    ("-s a -U -n 2 -p 1", "UDP doesn't support multi-socks in one connection structure."),
    ("-s a -U -p 1", "Please specify 2 servers at least for replication"),
    ("-s a,b -U -p 3", "Servers to do replication writing is larger than the total servers"),
    ("-s a,b -U -p 2", "UDP doesn't support replication."),
    ("-s a,b -a -d 2 -p 2", "facebook test couldn't work with replication."),
    ("-s a,b -p 2 -B", "servers a:11211,b:11211; writers 2; reconnect; binary"),
    ("-s a,b -p 2 -R", "servers a:11211,b:11211; writers 2; reconnect"),
    ("-s a,b -p 2 -d 5", "servers a:11211,b:11211; writers 2; multiget 5; reconnect"),
    ("-s a -B -U", "UDP doesn't support the binary protocol."),
    ("-s a -B -a -d 2", "facebook test couldn't work with the binary protocol."),
    // Lengths, which a datagram has to hold.
    ("-s a -F k251 -B", "key length must be less than 250 bytes."),
    ("-s a -F small -X 50", "keys 16-24; values 50-50"),
    ("-s a -F v1m1 -X 50", "values 50-50"),
    ("-s a -F v0 -X 50", "values 50-50"),
    ("-s a -F k15 -X 50", "key length must be greater than 16 bytes."),
    ("-s a -F small -U -d 54", "keys 16-24; values 100-100; multiget 54; udp"),
    ("-s a -F small -U -d 56", "keys 16-24; values 100-100; multiget 55; udp; 1 remarks"),
    ("-s a -F k26 -a -d 50", "gets by datagrams; keys 16-26; multiget 50"),
    ("-s a -F k27 -a -d 50", "gets by datagrams; keys 16-27; multiget 49; 1 remarks"),
    ("-s a -a -d 50", "gets by datagrams; multiget 21; 1 remarks"),
    // A set of the facebook test goes by TCP, and one that expires says so.
    ("-s a -a -d 2 -X 1048576", "gets by datagrams; values 1048576-1048576; multiget 2"),
    ("-s a -U -X 1311", "values 1311-1311; udp"),
    ("-s a -U -X 1310 -e 0.1", "values 1310-1310; expire 0.1; udp"),
    (
        "-s a -U -X 1311 -e 0.1",
        "multi-packet request for UDP not supported.\nThe longest set takes 1401 bytes, and a datagram has 1400: shorter keys or values fit.",
    ),
    // Checks.
    ("-s a -v 1 -e 1", "verify 1; expire 1"),
    ("-s a -v 1 -o 1", "overwrite 1; verify 1"),
    ("-s a -v 0.5 -d 20 -B", "multiget 20; verify 0.5; binary"),
    ("-s a -v 1 -F sets", "set 1 get 0; verify 1"),
    ("-s a -o 0.5 -F gets", "set 0 get 1; overwrite 0.5; presets"),
    ("-s a -e 0.5 -F gets", "set 0 get 1; expire 0.5; presets"),
    ("-s a -b -v 1", "verify 1; verbose"),
    ("-s a -b", "verbose"),
    ("-s a -F gets -P 1k", "set 0 get 1; rate 1024; presets"),
    // The last of several counts.
    ("-s a -S 5s --resp_freq=7s", "tables 7"),
    ("-s a --resp_freq=7s -S 5s", "tables 5"),
    ("-s a -F small -F sets", "set 1 get 0"),
    ("-s a -x 5 -x 6", "time None; requests 6"),
    ("-s a --seed=5 -v 1", "verify 1; seed 5"),
    ("-s a -h -c 0", "help"),
    ("-s a -c 0 -h", "Concurrency must be greater than 0.:-)"),
];

#[test]
fn every_example_of_the_manual_means_what_the_manual_says() {
    for (line, expected) in EXAMPLES {
        assert_eq!(meaning(line), *expected, "{line}");
    }
}

#[test]
fn options_that_have_to_do_with_each_other_are_taken_together() {
    for (line, expected) in PAIRS {
        assert_eq!(meaning(line), *expected, "{line}");
    }
}
