//! The working set: the numbers and bytes of the different keys that are requested in a minute, ten minutes and an
//! hour.

/// The lengths of the windows in seconds.
pub const WINDOWS_S: [u32; 3] = [60, 600, 3_600];

/// The different keys in windows of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkingSet {
    /// Length of a window in seconds.
    pub window_s: u32,
    /// Number of windows; a last window that the trace does not fill is not counted. 0 if the trace is shorter than a
    /// window.
    pub windows: u64,
    /// Mean number of different keys in a window.
    pub keys: f64,
    /// Mean sum of the bytes of these keys and their values.
    pub bytes: f64,
    /// Number of different keys in the window with the most.
    pub most_keys: f64,
}

/// The sums of windows of one length, in which `keys` and `bytes` are sums over all of them.
#[derive(Debug, Default)]
struct WindowSums {
    number: u32,
    keys: f64,
    bytes: f64,
    ended: WorkingSet,
}

/// The working sets of a trace.
#[derive(Debug, Default)]
pub(super) struct WorkingSets([WindowSums; WINDOWS_S.len()]);

impl WorkingSets {
    /// Records a request for a key that represents `weight` keys and was last requested at `before_s`.
    pub(super) fn note(&mut self, at_s: u32, before_s: Option<u32>, weight: f64, bytes: u64) {
        for (sums, window_s) in self.0.iter_mut().zip(WINDOWS_S) {
            let number = at_s / window_s;
            if number != sums.number {
                sums.end_window();
                sums.number = number;
            }
            if before_s.is_none_or(|before_s| before_s / window_s != number) {
                sums.keys += weight;
                sums.bytes += weight * bytes as f64;
            }
        }
    }

    /// Corrects the bytes of a key that was last requested at `at_s` by a difference, which is multiplied by the
    /// weight of the key.
    pub(super) fn learn(&mut self, at_s: u32, bytes: f64) {
        for (sums, window_s) in self.0.iter_mut().zip(WINDOWS_S) {
            if at_s / window_s == sums.number {
                sums.bytes += bytes;
            }
        }
    }

    /// Ends the last window of each length. The window counts if the trace, which ends at `end_s`, fills it.
    pub(super) fn end(&mut self, end_s: u32) {
        for (sums, window_s) in self.0.iter_mut().zip(WINDOWS_S) {
            let is_whole = u64::from(end_s) + 1 >= (u64::from(sums.number) + 1) * u64::from(window_s);
            if is_whole {
                sums.end_window();
                sums.number += 1;
            }
            sums.ended.window_s = window_s;
            // Windows without a request have no keys.
            sums.ended.windows = sums.number.into();
        }
    }

    /// The means of the windows, which have ended.
    pub(super) fn means(&self) -> [WorkingSet; WINDOWS_S.len()] {
        let mean = |sums: &WindowSums| {
            let windows = sums.ended.windows.max(1) as f64;
            WorkingSet { keys: sums.ended.keys / windows, bytes: sums.ended.bytes / windows, ..sums.ended }
        };
        [mean(&self.0[0]), mean(&self.0[1]), mean(&self.0[2])]
    }
}

impl WindowSums {
    fn end_window(&mut self) {
        self.ended.keys += self.keys;
        self.ended.bytes += self.bytes;
        self.ended.most_keys = self.ended.most_keys.max(self.keys);
        (self.keys, self.bytes) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_count_once_in_each_window() {
        let mut sets = WorkingSets::default();
        // One key in every second of five minutes, and another one in the first minute.
        let mut before = None;
        for at_s in 0..300 {
            sets.note(at_s, before, 1.0, 100);
            before = Some(at_s);
            if at_s == 30 {
                sets.note(at_s, None, 1.0, 50);
            }
        }
        sets.end(299);
        let [minute, ten, hour] = sets.means();
        assert_eq!((minute.windows, minute.keys, minute.bytes, minute.most_keys), (5, 6.0 / 5.0, 110.0, 2.0));
        assert_eq!((ten.windows, ten.keys, hour.windows, hour.keys), (0, 0.0, 0, 0.0), "none is whole");
    }

    #[test]
    fn bytes_that_are_learned_late_count_in_the_windows_that_have_the_key() {
        let mut sets = WorkingSets::default();
        sets.note(0, None, 1.0, 10);
        sets.note(60, None, 1.0, 10);
        sets.learn(60, 90.0);
        sets.learn(0, 40.0);
        sets.end(599);
        assert_eq!(sets.means()[0].bytes, 55.0, "the first minute is over");
        assert_eq!(sets.means()[1].bytes, 150.0);
    }

    #[test]
    fn a_last_window_that_was_cut_does_not_count() {
        let mut sets = WorkingSets::default();
        sets.note(0, None, 1.0, 1);
        sets.note(61, Some(0), 1.0, 1);
        sets.note(62, None, 1.0, 1);
        sets.end(62);
        assert_eq!(sets.means()[0].windows, 1);
        assert_eq!(sets.means()[0].keys, 1.0);
    }
}
