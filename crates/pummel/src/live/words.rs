//! The words and glyphs that the block and the screen share.

use pummel_logic::plan::Arrivals;
use pummel_logic::time::{MICROSECOND, Nanos, SECOND};
use pummel_report::numbers::grouped;
use pummel_report::snapshot::{PlanFacts, Snapshot, Stage};
use pummel_report::view::cells;
use pummel_report::visible::is_hidden;

/// Which glyphs a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// ASCII alone.
    Ascii,
    /// Also the eighth blocks of Unicode.
    Unicode,
}

impl Glyphs {
    /// The glyphs of a locale, by the value of `LC_ALL`, `LC_CTYPE` or `LANG`.
    pub fn of_locale(locale: &str) -> Glyphs {
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Glyphs::Unicode } else { Glyphs::Ascii }
    }

    /// Eight or nine marks from the least to the most.
    pub fn levels(self) -> &'static [char] {
        match self {
            Glyphs::Ascii => &['_', '.', ':', '-', '=', '+', '*', '#', '%'],
            Glyphs::Unicode => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        }
    }

    /// A picture of numbers, each between the least and the greatest of them; a blank for one that is not known. Numbers that differ
    /// by less than `least_height` do not fill the height.
    pub fn sparkline(self, values: &[Option<f64>], least_height: f64) -> String {
        let known = values.iter().flatten();
        let (low, high) =
            known.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
        self.picture(values, low, (high - low).max(least_height))
    }

    /// A picture of numbers, each between `low` and the greatest of them; a blank for one that is not known.
    pub fn sparkline_from(self, low: f64, values: &[Option<f64>]) -> String {
        let high = values.iter().flatten().fold(low, |high, value| high.max(*value));
        self.picture(values, low, high - low)
    }

    fn picture(self, values: &[Option<f64>], low: f64, height: f64) -> String {
        let levels = self.levels();
        let mark = |value: f64| {
            let share = if height > 0.0 { (value - low) / height } else { 0.0 };
            levels[((share * (levels.len() - 1) as f64).round() as usize).min(levels.len() - 1)]
        };
        values.iter().map(|value| value.map_or(' ', mark)).collect()
    }
}

/// Minutes and seconds, and hours where there are some: `00:42`, `1:02:03`.
pub fn clock_text(ns: Nanos) -> String {
    let s = ns / SECOND;
    match s / 3600 {
        0 => format!("{:02}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// The progress of the phase under way at this time of the monotonic clock, from 0 to 1; `None` if it is not known.
pub fn share_done(snapshot: &Snapshot, now: Nanos) -> Option<f64> {
    let share = match snapshot.stage {
        Stage::Measure => {
            let length_ns = snapshot.plan.as_ref()?.measured_ns.filter(|ns| *ns > 0)?;
            elapsed_ns(snapshot, now) as f64 / length_ns as f64
        }
        Stage::Over => 1.0,
        _ => {
            let (ended, of) = snapshot.progress?;
            ended as f64 / of.filter(|of| *of > 0)? as f64
        }
    };
    Some(share.clamp(0.0, 1.0))
}

/// Time since the measured phase began, at this time of the monotonic clock; 0 before it.
pub fn elapsed_ns(snapshot: &Snapshot, now: Nanos) -> Nanos {
    match snapshot.stage {
        Stage::Measure => now.saturating_sub(snapshot.started),
        _ => 0,
    }
}

/// A bar that is filled up to a share from 0 to 1.
pub fn bar(share: f64, width: usize) -> String {
    let filled = (share * width as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled.min(width)), "-".repeat(width - filled.min(width)))
}

/// The word for the stage of a run.
pub fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Connecting => "connecting",
        Stage::Load => "loading",
        Stage::WarmUp => "warming up",
        Stage::Measure => "measuring",
        Stage::Settle => "settling",
        Stage::Audit => "reading back",
        Stage::Over => "over",
    }
}

/// Text of a user or a server as a screen may show it, in at most this many characters.
pub fn shown(text: &str, chars_max: usize) -> String {
    let clean = text.chars().map(|c| if is_hidden(c) { '?' } else { c });
    let mut kept: String = clean.clone().take(chars_max).collect();
    if clean.count() > chars_max && chars_max > 2 {
        kept.truncate(kept.char_indices().nth(chars_max - 2).map_or(kept.len(), |(at, _)| at));
        kept.push_str("..");
    }
    kept
}

/// A time as the report prints it, such as `63.5 ms`.
pub fn time_words(ns: Nanos) -> String {
    cells::time(ns as f64 / MICROSECOND as f64)
}

/// A backlog with the time in which so many requests become due, such as `5,400 (2.7 s)`.
pub fn behind_words(behind: u64, asked: Option<f64>) -> String {
    let time_s = asked.filter(|asked| *asked > 0.0 && behind > 0).map(|asked| behind as f64 / asked);
    let words = time_s.map(|s| match s {
        s if s >= 99.5 => format!(" ({} s)", grouped(s.round() as u64)),
        s if s >= 0.95 => format!(" ({s:.1} s)"),
        s if s >= 0.000_95 => format!(" ({:.0} ms)", s * 1e3),
        _ => String::new(),
    });
    format!("{}{}", grouped(behind), words.unwrap_or_default())
}

/// The rate that is asked for at this time of the monotonic clock, in words. Random arrivals are the default, and are not said.
pub fn pace_words(snapshot: &Snapshot, plan: &PlanFacts, now: Nanos) -> String {
    let rate = |rate: f64| grouped(rate.round() as u64);
    let is_default = plan.arrivals == Arrivals::Poisson.to_string();
    let arrivals =
        |before: &str| if is_default { String::new() } else { format!("{before}{}", plan.arrivals) };
    match (snapshot.asked_rate(now), plan.mode) {
        (Some(asked), _) => {
            let paused = snapshot
                .resumes_at
                .map_or_else(String::new, |resumes| format!(", PAUSED at {}/s", rate(resumes)));
            format!("open {}/s{}{paused}", rate(asked), arrivals(" "))
        }
        // Clients come by a process of their own.
        (None, "open") => format!("open{}", arrivals(", ")),
        (None, _) => "closed loop".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_reaches_from_the_least_to_the_greatest() {
        let values = [Some(1.0), None, Some(5.0), Some(9.0)];
        assert_eq!(Glyphs::Ascii.sparkline(&values, 0.0), "_ =%");
        assert_eq!(Glyphs::Unicode.sparkline(&values, 0.0), "▁ ▅█");
        assert_eq!(Glyphs::Unicode.sparkline(&values, 16.0), "▁ ▃▅", "little is not drawn as much");
        assert_eq!(Glyphs::Ascii.sparkline(&[Some(3.0), Some(3.0)], 0.0), "__");
        assert_eq!(Glyphs::Ascii.sparkline(&[], 1.0), "");
        assert_eq!(Glyphs::Ascii.sparkline_from(0.0, &[Some(4.0), None, Some(8.0)]), "= %");
        assert_eq!(Glyphs::Ascii.sparkline_from(0.0, &[Some(0.0)]), "_");
    }

    #[test]
    fn times_bars_and_foreign_words_have_their_width() {
        assert_eq!(
            (clock_text(42 * SECOND), clock_text(3_723 * SECOND)),
            ("00:42".to_owned(), "1:02:03".to_owned())
        );
        assert_eq!(
            (bar(0.5, 4), bar(1.0, 4), bar(0.0, 4)),
            ("[##--]".to_owned(), "[####]".to_owned(), "[----]".to_owned())
        );
        assert_eq!([0, 850, 27_130, 63_472_000].map(time_words), ["0", "0.85 us", "27.1 us", "63.5 ms"]);
        let behind = [5_400, 300, 1, 400_000].map(|behind| behind_words(behind, Some(2_000.0)));
        assert_eq!(behind, ["5,400 (2.7 s)", "300 (150 ms)", "1", "400,000 (200 s)"]);
        assert_eq!((behind_words(0, Some(9.0)), behind_words(7, None)), ("0".to_owned(), "7".to_owned()));
        assert_eq!(shown("a\x1b[2Jb", 10), "a?[2Jb");
        assert_eq!(shown("abcdefgh", 5), "abc..");
        assert_eq!(Glyphs::of_locale("de_DE.UTF-8"), Glyphs::Unicode);
        assert_eq!(Glyphs::of_locale("C"), Glyphs::Ascii);
    }
}
