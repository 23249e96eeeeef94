//! The real binary with transmit stamps (`--stamps`): the sampled requests have their moment of leaving, over every way to
//! a server that has stamps, and the others are refused.

use std::time::Duration;

use crate::common::{Json, Memcached, Place, Running, backends, in_some_quiet_moment, pummel, quiet};

/// Checks that the sampled requests are those that one in `every` makes, nearly all with a stamp, and that both parts of
/// their service times are no longer than the whole. Complains of what a busy machine alone can bring about: requests that
/// share a send with others or are never sent, and stamps that come too late.
fn check_split(result: &Json, every: u64) -> Result<(), String> {
    let sampled = result.count("transmit/out_us/count");
    let without = ["missing", "merged", "rejected"].map(|why| result.count(&format!("transmit/tx_{why}")));
    let completed = result.count("totals/completed");
    let expected = completed / every;
    let all = sampled + without.iter().sum::<u64>();
    if !(expected / 2..=2 * expected + 10).contains(&all) {
        return Err(format!("{all} sampled of {completed}, one in {every}"));
    }
    if sampled * 10 < all * 9 {
        return Err(format!("{sampled} of {all} have a stamp, not {without:?}"));
    }
    assert_eq!(result.count("transmit/served_us/count"), sampled, "every reply has its own stamp too");
    assert_eq!(result.count("transmit/every"), every);
    assert_eq!(result.count("totals/errors"), 0);
    let Some(service_us) = result.at("totals/service_us/max").as_f64() else {
        return Err(format!("not all requests were sent and answered: {}", result.at("totals")));
    };
    // The sample is a part of all requests, so no part of it is longer than the longest of them.
    for part in ["out_us", "served_us"] {
        let longest = result.number(&format!("transmit/{part}/max"));
        assert!(longest <= service_us + 1.0, "{part}: {longest}");
    }
    Ok(())
}

#[test]
fn sampled_requests_are_split_where_they_left_over_both_kernel_interfaces() {
    let _alone = quiet();
    let server = Memcached::start();
    for backend in backends() {
        for (depth, every, wait) in [(1, 1, "block"), (1, 64, "spin"), (16, 8, "block")] {
            let words = format!(
                "run -s {} -n 20k -c 8 -d {depth} --records 1000 --backend {backend} --wait {wait} --stamps tx:{every}",
                server.name
            );
            in_some_quiet_moment(|| {
                let result = pummel(&words).expect(0).json();
                assert!(result.count("transmit/out_us/count") > 100, "{words}");
                // Of requests that share a send the last one is taken, so that fewer are where most do.
                if depth == 1 { check_split(&result, every) } else { Ok(()) }
            });
        }
    }
}

#[test]
fn sampled_requests_are_split_over_udp_and_in_open_loop() {
    let _alone = quiet();
    let (udp, server) = (Memcached::start_on(Place::Udp), Memcached::start());
    let words = format!("run -s {} --udp -n 10k -c 4 --records 500 --stamps tx:4", udp.name);
    in_some_quiet_moment(|| check_split(&pummel(&words).expect(0).json(), 4));
    let words = format!(
        "run -s {} --rate 5000 --time 2s -c 8 --records 500 --depth unlimited --stamps tx+sched:4",
        server.name
    );
    in_some_quiet_moment(|| {
        let result = pummel(&words).expect(0).json();
        check_split(&result, 4)?;
        assert!(result.count("transmit/queued_us/count") <= result.count("transmit/out_us/count"));
        Ok(())
    });
}

#[test]
fn a_thread_that_is_stopped_shows_nothing_of_it_in_what_followed_its_requests() {
    let _alone = quiet();
    let server = Memcached::start();
    let words = format!("run -s {} --time 4s --interval 100ms -c 4 --records 500 --stamps tx:1", server.name);
    // Where the server has no CPU for a tenth of a second, its replies come in the midst of the pause.
    in_some_quiet_moment(|| {
        let mut running = Running::start(&words);
        running.wait_for_progress();
        let (least_s, _) = running.process.pause(Duration::from_millis(700));
        let result = running.end().expect(0).json();
        // The run was measured while its process stood still: replies lay unread, or, where the thread was stopped between a
        // reply and the next request, that request left late.
        let seen_us = result.number("totals/reaction_us/max").max(result.number("totals/lag_us/max"));
        if seen_us <= 0.9e6 * least_s {
            return Err(format!("the pause is not in the measured phase, but {seen_us} us"));
        }
        let served = result.number("transmit/served_us/max");
        match served < 0.5e6 * least_s {
            true => Ok(()),
            false => Err(format!("{served} us after the request had left, of a pause of {least_s} s")),
        }
    });
}

#[test]
fn what_cannot_be_stamped_is_refused_with_the_reason() {
    for (words, reason) in [
        ("run -s 127.0.0.1:1 --stamps rx", "'rx' for '--stamps"),
        ("run -s 127.0.0.1:1 --stamps tx:0", "'tx:0' for '--stamps'"),
        ("run -s 127.0.0.1:1 --stamps tx:x", "'tx:x' for '--stamps"),
        ("run -s /tmp/socket --stamps tx", "unix sockets have no stamps"),
        ("run -s 127.0.0.1:1 --stamps tx --clock user", "--clock kernel"),
        ("run -s 127.0.0.1:1 --stamps nic --clock user", "--clock kernel"),
        ("run -s 127.0.0.1:1 --stamps nic --backend uring", "--backend epoll"),
        ("run -s /tmp/socket --stamps nic", "unix sockets have no stamps"),
    ] {
        let ended = pummel(words).expect(2);
        assert!(ended.errors.contains(reason), "{words}: {}", ended.errors);
    }
}

#[test]
fn a_card_that_stamps_nothing_ends_the_run_with_what_it_lacks_before_anything_is_sent() {
    let server = Memcached::start();
    let before = server.connect().stats().get("total_connections");
    let ended = pummel(&format!("run -s {} -n 100 --protocol text --stamps nic:4", server.name)).expect(1);
    for words in ["card lo", "ethtool -T lo", "--stamps tx"] {
        assert!(ended.errors.contains(words), "{words}: {}", ended.errors);
    }
    assert_eq!(server.connect().stats().get("total_connections") - before, 1, "the one that asks");
}

/// A pair of virtual cards with addresses of this process' own; removed with the value.
struct Cards(&'static str);

impl Cards {
    /// `None` where this process may not make any.
    fn make() -> Option<Cards> {
        let ip = |words: &str| {
            let status = std::process::Command::new("ip").args(words.split(' ')).status();
            status.is_ok_and(|status| status.success())
        };
        let cards = Cards("pmlstamp0");
        let made = ip("link add pmlstamp0 type veth peer name pmlstamp1")
            && ip("address add 10.231.77.1/30 dev pmlstamp0")
            && ip("link set pmlstamp0 up")
            && ip("link set pmlstamp1 up");
        made.then_some(cards)
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        // Where there are none, nothing is left to be removed.
        let _ = std::process::Command::new("ip").args(["link", "delete", self.0]).output();
    }
}

#[test]
fn a_virtual_card_is_refused_by_its_name() {
    let Some(_cards) = Cards::make() else {
        return eprintln!("no virtual cards can be made here: the test needs root and iproute2");
    };
    // The other end has no address: nothing would ever answer, and nothing is sent.
    let ended =
        pummel("run -s 10.231.77.2:11211 -n 100 --protocol text --no-evidence --stamps nic").expect(1);
    assert!(ended.errors.contains("card pmlstamp0"), "{}", ended.errors);
}

#[test]
fn without_the_option_nothing_is_said_of_it() {
    let _alone = quiet();
    let server = Memcached::start();
    let result = pummel(&format!("run -s {} -n 1000 --records 100", server.name)).expect(0).json();
    assert!(result.0.get("transmit").is_none());
}
