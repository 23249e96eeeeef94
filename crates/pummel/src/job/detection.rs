//! What is known of the protocol of a job's servers before its first run.

use pummel_engine::run::Undetected;
use pummel_fronts::hints::{Obstacle, login_hint};
use pummel_logic::plan::Protocol;
use pummel_logic::plan::detect::Spoken;

/// What came of asking the servers of a job which protocol they speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// The command line names the protocol.
    #[default]
    Unasked,
    /// The servers speak this, such as `memcached 1.6.18, text`.
    Found(String),
    /// A server could not be reached, for this reason, and the plan has the protocol that is likeliest.
    Assumed(String),
    /// No run can begin, for this reason.
    Refused(Obstacle),
    /// The user ended the question.
    Interrupted,
}

impl Detection {
    /// What an answer means for a command line. `has_user`: it names a user to log in as. `assumed` is the protocol of a plan
    /// where none was found. Returns the protocol of the plan.
    pub fn of(
        answer: Result<(String, Spoken), Undetected>,
        has_user: bool,
        assumed: Protocol,
    ) -> (Protocol, Detection) {
        match answer {
            Ok((server, Spoken { protocol, login: Some(said), .. })) if !has_user => {
                (protocol, Detection::Refused(wants_login(&server, &said, protocol)))
            }
            Ok((_, spoken)) => (spoken.protocol, Detection::Found(spoken.words())),
            Err(Undetected::Interrupted) => (assumed, Detection::Interrupted),
            Err(why @ Undetected::Unreachable { .. }) => (assumed, Detection::Assumed(why.to_string())),
            Err(why @ Undetected::Different(_)) => {
                let hint = "measure them one after the other";
                (assumed, Detection::Refused(Obstacle::with_hint(why.to_string(), hint)))
            }
            Err(why @ Undetected::Refused { .. }) => {
                (assumed, Detection::Refused(Obstacle::from(why.to_string())))
            }
            Err(why @ Undetected::Foreign { wants_no_tls: true, .. }) => {
                let hint = "is this the server's port? --protocol names its protocol without asking";
                (assumed, Detection::Refused(Obstacle::with_hint(why.to_string(), hint)))
            }
            Err(why @ Undetected::Foreign { is_closed: true, .. }) => {
                let hint = "--tls; or --protocol, if you know what it speaks";
                (assumed, Detection::Refused(Obstacle::with_hint(why.to_string(), hint)))
            }
            Err(why @ Undetected::Foreign { .. }) => {
                let hint = "--tls if it expects TLS; --protocol names its protocol without asking";
                (assumed, Detection::Refused(Obstacle::with_hint(why.to_string(), hint)))
            }
        }
    }
}

fn wants_login(server: &str, said: &str, protocol: Protocol) -> Obstacle {
    Obstacle::with_hint(format!("{server} requires a login: it said \"{said}\""), login_hint(protocol))
}

#[cfg(test)]
mod tests {
    use pummel_measure::connections::TroubleKind;

    use super::*;

    fn spoken(login: Option<&str>) -> Result<(String, Spoken), Undetected> {
        let software = Some("redis 7.0.15".to_owned());
        let spoken = Spoken {
            protocol: Protocol::Resp2,
            software,
            login: login.map(str::to_owned),
            is_cluster: false,
        };
        Ok(("cache1:6379".to_owned(), spoken))
    }

    #[test]
    fn a_server_that_answers_decides_the_protocol() {
        let (protocol, detection) = Detection::of(spoken(None), false, Protocol::Text);
        assert_eq!(protocol, Protocol::Resp2);
        assert_eq!(detection, Detection::Found("redis 7.0.15, resp2".to_owned()));
    }

    #[test]
    fn a_login_that_is_missing_is_told_and_one_that_is_there_is_not() {
        let noauth = Some("-NOAUTH Authentication required.");
        let (_, detection) = Detection::of(spoken(noauth), false, Protocol::Text);
        let Detection::Refused(Obstacle { reason, hint, .. }) = detection else { panic!("{detection:?}") };
        assert_eq!(reason, "cache1:6379 requires a login: it said \"-NOAUTH Authentication required.\"");
        assert!(hint.is_some_and(|hint| hint.contains("--user") && hint.contains("default")));
        let (_, detection) = Detection::of(spoken(noauth), true, Protocol::Text);
        assert!(matches!(detection, Detection::Found(_)), "{detection:?}");
    }

    #[test]
    fn a_server_that_is_not_there_leaves_the_assumption_to_the_run() {
        let (server, why) = ("a:1".to_owned(), "refused".to_owned());
        let gone = Undetected::Unreachable { server, kind: TroubleKind::Refused, why };
        let (protocol, detection) = Detection::of(Err(gone), false, Protocol::Meta);
        assert_eq!((protocol, detection), (Protocol::Meta, Detection::Assumed("a:1: refused".to_owned())));
    }

    #[test]
    fn a_server_that_closes_without_a_word_is_taken_for_one_of_tls() {
        let did = "closed the connection".to_owned();
        let closed =
            Undetected::Foreign { server: "a:1".to_owned(), did, wants_no_tls: false, is_closed: true };
        let (_, detection) = Detection::of(Err(closed), false, Protocol::Text);
        let Detection::Refused(obstacle) = detection else { panic!("{detection:?}") };
        assert_eq!(
            obstacle.to_string(),
            "a:1 closed the connection without a word, as TLS servers do\n\
             hint: --tls; or --protocol, if you know what it speaks"
        );
    }

    #[test]
    fn a_server_that_answers_nothing_known_ends_the_job_in_at_most_five_lines() {
        let of = |wants_no_tls| {
            let did = "sent \"HTTP/1.1\"".to_owned();
            let other =
                Undetected::Foreign { server: "a:80".to_owned(), did, wants_no_tls, is_closed: false };
            let (_, detection) = Detection::of(Err(other), false, Protocol::Text);
            let Detection::Refused(obstacle) = detection else { panic!("{detection:?}") };
            obstacle
        };
        assert!(of(false).to_string().contains("--tls"), "the bytes of TLS are no words");
        let obstacle = of(true);
        assert!(!obstacle.to_string().contains("--tls"), "words need no TLS: {obstacle}");
        assert!(!obstacle.reason.contains("hint"), "the hint is no part of results: {obstacle}");
        let words = obstacle.to_string();
        assert!(words.contains("sent \"HTTP/1.1\"") && words.contains("--protocol"), "{words}");
        assert!(words.lines().count() < 5, "{words}");
    }
}
