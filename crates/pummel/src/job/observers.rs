//! The observers of a job while it runs: the snapshot that its runs update, and the displays that show it.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use pummel_engine::run::Steering;
use pummel_engine::{clock, sys};
use pummel_fronts::job::Job;
use pummel_fronts::metrics_options::PushTarget;
use pummel_logic::plan::Plan;
use pummel_logic::time::{Nanos, SECOND};
use pummel_report::snapshot::{Identity, Role, SharedSnapshot};

use crate::live::block;
#[cfg(feature = "live")]
use crate::live::terminal::LiveView;
use crate::live::words::Glyphs;
use crate::metrics::push::push;
use crate::metrics::server::MetricsServer;
#[cfg(feature = "live")]
use crate::stderr::{hold, release, settle};

/// The least time between two drawings of the block.
const BLOCK_NS: Nanos = SECOND / 10;

/// The snapshot of a job and the displays that show it.
#[derive(Debug, Default)]
pub struct Observers {
    /// The snapshot that the runs update; `None` if no display shows it, so that they update none.
    snapshot: Option<SharedSnapshot>,
    server: Option<MetricsServer>,
    /// How long to wait for one more scrape when the job is over.
    linger: Duration,
    push: Option<PushTarget>,
    screen: Screen,
    /// The queue of the screen's commands that change the rate; `None` without `--steer`.
    steering: Option<Arc<Steering>>,
    /// Time of the last drawing of the block, on the monotonic clock.
    drawn_at: Nanos,
    #[cfg(feature = "live")]
    view: Option<LiveView>,
    /// A CPU for display threads; `None` if they may run anywhere.
    aside: Option<usize>,
}

/// How a terminal shows the progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Screen {
    /// By lines: standard error is no terminal, or progress is not wanted.
    #[default]
    Lines,
    /// By a block of lines with these glyphs.
    Block(Glyphs),
    /// By the whole screen with these glyphs.
    Whole(Glyphs),
}

impl Observers {
    /// Begins to show a job that has this name in metrics. Also returns a notice if it is not shown as requested.
    ///
    /// # Errors
    /// Returns the system's error when nothing can listen where metrics are to be served.
    pub fn start(job: &Job, run_name: &str) -> io::Result<(Observers, Option<&'static str>)> {
        let wanted = &job.outputs.metrics;
        let terminal = (job.outputs.block || job.outputs.live).then(glyphs_of_terminal).flatten();
        let screen = match terminal {
            Some(glyphs) if job.outputs.live => Screen::Whole(glyphs),
            Some(glyphs) if job.outputs.block => Screen::Block(glyphs),
            _ => Screen::Lines,
        };
        let notice = (job.outputs.live && screen == Screen::Lines)
            .then_some("--live needs a terminal on standard error, and no CI: progress is shown as lines");
        if !wanted.is_wanted() && screen == Screen::Lines {
            return Ok((Observers::default(), notice));
        }
        let identity = Identity {
            run: run_name.to_owned(),
            role: if job.fleet.is_some() { Role::Controller } else { Role::Run },
            front: job.front,
        };
        let snapshot = SharedSnapshot::new(identity);
        {
            let mut snapshot = snapshot.lock();
            snapshot.is_steerable = job.outputs.steer;
            (snapshot.keeps_recent, snapshot.keeps_ops) = (screen != Screen::Lines, wanted.is_wanted());
        }
        let aside = cpu_aside(&job.plan);
        let serve = |listen| MetricsServer::start(listen, snapshot.clone(), aside);
        let mut observers = Observers::default();
        observers.server = wanted.metrics.map(serve).transpose()?;
        observers.linger = Duration::from_nanos(wanted.metrics_linger);
        observers.steering = job.outputs.steer.then(Arc::default);
        observers.push.clone_from(&wanted.push_result);
        (observers.screen, observers.aside, observers.snapshot) = (screen, aside, Some(snapshot));
        Ok((observers, notice))
    }

    /// The snapshot that the runs update; `None` if no display shows it.
    pub fn snapshot(&self) -> Option<&SharedSnapshot> {
        self.snapshot.as_ref()
    }

    /// The queue of the screen's commands that change the rate; `None` without `--steer`.
    pub fn steering(&self) -> Option<Arc<Steering>> {
        self.steering.clone()
    }

    /// Whether a block or a screen takes the place of lines of progress.
    pub fn replace_lines(&self) -> bool {
        self.screen != Screen::Lines
    }

    /// The address at which metrics are served, as a sentence.
    pub fn announcement(&self) -> Option<String> {
        self.server.as_ref().map(|server| format!("metrics at http://{}/metrics", server.address()))
    }

    /// Opens the screen, if one is requested and not open. Lines on standard error wait from then on. Returns a notice
    /// if the screen cannot be opened, and the block takes its place.
    #[cfg(feature = "live")]
    pub fn open_view(&mut self, interrupts: &'static AtomicU32) -> Option<String> {
        let (Screen::Whole(glyphs), None, Some(snapshot)) = (self.screen, &self.view, &self.snapshot) else {
            return None;
        };
        // What was said before stands before the screen, and not on it.
        hold();
        settle();
        match LiveView::open(snapshot.clone(), glyphs, interrupts, self.aside, self.steering.clone()) {
            Ok(view) => {
                self.view = Some(view);
                None
            }
            Err(error) => {
                release();
                self.screen = Screen::Block(glyphs);
                Some(format!("--live: the terminal cannot be had: {error}"))
            }
        }
    }

    /// Opens nothing: no option of this build asks for a screen.
    #[cfg(not(feature = "live"))]
    pub fn open_view(&mut self, _interrupts: &'static AtomicU32) -> Option<String> {
        let _ = self.aside;
        None
    }

    /// Closes the screen, if one is open, and prints the lines that waited.
    pub fn close_view(&mut self) {
        #[cfg(feature = "live")]
        if let Some(view) = self.view.take() {
            view.close();
            release();
        }
    }

    /// The lines of the block, if one is shown and was not drawn just now.
    pub fn block(&mut self) -> Option<Vec<String>> {
        let (Screen::Block(glyphs), Some(snapshot)) = (self.screen, &self.snapshot) else { return None };
        let now = clock::now();
        if now < self.drawn_at + BLOCK_NS {
            return None;
        }
        self.drawn_at = now;
        Some(block::lines(&snapshot.lock(), now, glyphs))
    }

    /// Shows the end of the job for as long as `--metrics-linger` says, and pushes its result.
    ///
    /// # Errors
    /// Returns the error of the push; it names the option and the URL.
    pub fn finish(mut self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        self.close_view();
        let pushed = match (&self.push, &self.snapshot) {
            (Some(target), Some(snapshot)) => {
                let snapshot = snapshot.lock().clone();
                push(target, &snapshot)
            }
            _ => Ok(()),
        };
        if let Some(server) = self.server.take() {
            server.finish(self.linger, stop);
        }
        pushed
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        self.close_view();
    }
}

/// The name of the run: the label `run` of the user, or the start of the command, in nanoseconds since 1970 cut off to
/// the second, and its seed.
pub fn run_name(plan: &Plan, started_unix_ns: Nanos) -> String {
    let own = plan.labels.get("run").cloned();
    own.unwrap_or_else(|| format!("{}-{}", started_unix_ns / SECOND, plan.seed))
}

/// Whether standard error is a terminal on which a block or a screen is shown.
pub fn has_terminal() -> bool {
    glyphs_of_terminal().is_some()
}

/// The glyphs of the terminal of standard error; `None` if there is none, or if it is only the log of a CI system.
fn glyphs_of_terminal() -> Option<Glyphs> {
    let value = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    if !io::stderr().is_terminal() || value("CI").is_some() || value("TERM").is_none_or(|term| term == "dumb")
    {
        return None;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value);
    Some(Glyphs::of_locale(&locale.unwrap_or_default()))
}

/// A CPU that no worker of the plan is pinned to; `None` where workers run anywhere, and where they have all CPUs.
fn cpu_aside(plan: &Plan) -> Option<usize> {
    let pinned = &plan.engine.cpus;
    let allowed = sys::allowed_cpus().ok().filter(|_| !pinned.is_empty())?;
    allowed.into_iter().rev().find(|cpu| !pinned.contains(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_name_of_its_label_or_of_its_beginning_and_seed() {
        let mut plan = Plan { seed: 7, ..Plan::default() };
        assert_eq!(run_name(&plan, 1_700_000_000 * SECOND + 5), "1700000000-7");
        plan.labels.insert("run".to_owned(), "nightly".to_owned());
        assert_eq!(run_name(&plan, 0), "nightly");
    }
}
