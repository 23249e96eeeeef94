//! The choice of the kernel interface of a run: the one that was asked for, where this machine has it.

use pummel_logic::plan::Backend;

use super::uring::Uring;

/// The interface that `auto` stands for. io_uring cost never more CPU time than epoll and mostly less
/// (docs/PERFORMANCE.md).
const AUTO: Backend = Backend::Uring;

/// The kernel interface of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The interface: never [`Backend::Auto`].
    pub backend: Backend,
    /// Why it is not the interface that was asked for, as a clause.
    pub fallback: Option<String>,
}

/// The interface for `asked` on this machine.
pub fn choose(asked: Backend) -> Choice {
    choose_among(asked, AUTO, Uring::why_unusable)
}

fn choose_among(asked: Backend, auto: Backend, why_unusable: impl FnOnce() -> Option<String>) -> Choice {
    let backend = if asked == Backend::Auto { auto } else { asked };
    let why = if backend == Backend::Uring { why_unusable() } else { None };
    match why {
        Some(why) => Choice { backend: Backend::Epoll, fallback: Some(why) },
        None => Choice { backend, fallback: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_used_where_it_can_be() {
        for (asked, auto, used) in [
            (Backend::Auto, Backend::Epoll, Backend::Epoll),
            (Backend::Auto, Backend::Uring, Backend::Uring),
            (Backend::Epoll, Backend::Uring, Backend::Epoll),
            (Backend::Uring, Backend::Epoll, Backend::Uring),
        ] {
            assert_eq!(choose_among(asked, auto, || None), Choice { backend: used, fallback: None });
        }
    }

    #[test]
    fn an_obstacle_leads_to_epoll_and_is_named() {
        for (asked, auto) in [(Backend::Uring, Backend::Epoll), (Backend::Auto, Backend::Uring)] {
            let choice = choose_among(asked, auto, || Some("it is forbidden".to_owned()));
            let fallback = Some("it is forbidden".to_owned());
            assert_eq!(choice, Choice { backend: Backend::Epoll, fallback });
        }
    }

    #[test]
    fn who_wants_epoll_is_not_kept_waiting_by_trying_another() {
        let choice = choose_among(Backend::Epoll, Backend::Uring, || panic!("io_uring was tried"));
        assert_eq!(choice, Choice { backend: Backend::Epoll, fallback: None });
    }
}
