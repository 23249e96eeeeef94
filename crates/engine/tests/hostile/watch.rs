//! A watch over runs: a loop that never ends inside the program under test names its run and ends the test program.

use std::collections::BTreeMap;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use crate::scenes::Name;

/// Longest that a run may take; it takes some milliseconds, on a busy machine some seconds.
const LONGEST: Duration = Duration::from_secs(300);

/// The runs that are being made, with their beginnings.
static RUNS: Mutex<BTreeMap<Name, Instant>> = Mutex::new(BTreeMap::new());

/// A run that is being watched until this is dropped.
pub struct Watched(Name);

/// Watches a run.
pub fn watch(name: Name) -> Watched {
    static WATCHER: Once = Once::new();
    WATCHER.call_once(|| {
        thread::spawn(watch_all);
    });
    RUNS.lock().expect("no holder panics").insert(name, Instant::now());
    Watched(name)
}

impl Drop for Watched {
    fn drop(&mut self) {
        RUNS.lock().expect("no holder panics").remove(&self.0);
    }
}

fn watch_all() {
    loop {
        thread::sleep(Duration::from_secs(1));
        let runs = RUNS.lock().expect("no holder panics");
        if let Some((name, _)) = runs.iter().find(|(_, began)| began.elapsed() > LONGEST) {
            // A thread that never ends cannot be ended alone. The capture of tests would keep the words of `println!`.
            let words = format!("hostile finding: {name}: it does not end\n");
            let _ = std::io::Write::write_all(&mut std::io::stdout(), words.as_bytes());
            std::process::exit(1);
        }
    }
}
