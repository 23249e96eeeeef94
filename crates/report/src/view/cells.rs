//! Cells and figures in words: three significant digits, one unit for each, intervals in the unit of their figure.

use pummel_measure::words::grouped;

/// A unit of time: its name and its length in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    name: &'static str,
    us: f64,
}

const UNITS: [TimeUnit; 3] =
    [TimeUnit { name: "us", us: 1.0 }, TimeUnit { name: "ms", us: 1e3 }, TimeUnit { name: "s", us: 1e6 }];

impl TimeUnit {
    /// The unit in which a time has up to three digits before its point.
    pub fn of(us: f64) -> TimeUnit {
        let fits = |unit: &&TimeUnit| us / unit.us < 999.5;
        *UNITS.iter().find(fits).unwrap_or(&UNITS[2])
    }

    /// A time in this unit, without its name.
    pub fn number(self, us: f64) -> String {
        significant(us / self.us)
    }
}

/// A number with three significant digits, and with all digits from a thousand on.
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.9995 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => grouped(value.round() as u64),
    }
}

/// A time in microseconds with its unit, such as `63.5 ms`.
pub fn time(us: f64) -> String {
    if us == 0.0 {
        return "0".to_owned();
    }
    let unit = TimeUnit::of(us);
    // Below a microsecond two digits are what a clock knows.
    let number = if us < 0.9995 { format!("{us:.2}") } else { unit.number(us) };
    format!("{number} {}", unit.name)
}

/// A time in microseconds that was set, without digits that say nothing, such as `5 ms`.
pub fn set_time(us: f64) -> String {
    let unit = TimeUnit::of(us);
    format!("{} {}", trimmed(&unit.number(us)), unit.name)
}

/// A time in seconds with its unit.
pub fn seconds(seconds: f64) -> String {
    if seconds == 0.0 { "0 s".to_owned() } else { time(seconds * 1e6) }
}

/// The ends of an interval in the unit of its figure, in microseconds, such as `22.4..30.9`; an end that is not known is left out.
pub fn interval(figure_us: f64, ends_us: [Option<f64>; 2]) -> String {
    let unit = TimeUnit::of(figure_us);
    let end = |us: Option<f64>| us.map_or_else(String::new, |us| unit.number(us));
    match ends_us {
        [None, None] => String::new(),
        [low, high] => format!("{}..{}", end(low), end(high)),
    }
}

/// A rate as a whole number, and with three digits below a hundred.
pub fn rate(per_second: f64) -> String {
    significant(per_second)
}

/// The ends of the interval of a rate, such as `174,800..179,300`: to three digits of its width, since more say nothing.
pub fn rate_interval([low, high]: [f64; 2]) -> String {
    let step = 10f64.powf(((high - low).abs().max(1.0) / 100.0).log10().ceil()).max(1.0);
    let end = |value: f64| {
        if value < 100.0 { significant(value) } else { grouped(((value / step).round() * step) as u64) }
    };
    format!("{}..{}", end(low), end(high))
}

/// A share in percent with three significant digits, such as `49.4 %`; one that is not whole is never told as 0 or 100 %.
pub fn share(part: u64, all: u64) -> String {
    if all == 0 {
        return "0 %".to_owned();
    }
    let percent = 100.0 * part as f64 / all as f64;
    match part {
        0 => "0 %".to_owned(),
        part if part == all => "100 %".to_owned(),
        _ if percent > 99.95 => "above 99.9 %".to_owned(),
        _ if percent < 0.01 => "below 0.01 %".to_owned(),
        _ if percent < 1.0 => format!("{} %", trimmed(&format!("{percent:.2}"))),
        _ => format!("{percent:.1} %"),
    }
}

/// A number as people write it: no zeros at the end of a fraction.
pub fn plain(value: f64) -> String {
    trimmed(&significant(value))
}

fn trimmed(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// A time as it was given to an option, such as `300ms` or `1.5s`.
pub fn given_time(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{}ms", s * 1e3),
        s => format!("{s}s"),
    }
}

/// A time that an option is advised to have, such as `3m` or `32s`, rounded up: at least this long.
pub fn option_time(seconds: f64) -> String {
    match seconds {
        s if s <= 90.0 => format!("{}s", s.ceil()),
        s if s <= 5_400.0 => format!("{}m", (s / 60.0).ceil()),
        s => format!("{}h", (s / 3_600.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_digits_and_the_unit_that_suits_it() {
        let texts = [0.0, 0.25, 1.4, 27.13, 266.6, 999.6, 1_040.0, 63_472.0, 5_090_000.0].map(time);
        let expected =
            ["0", "0.25 us", "1.40 us", "27.1 us", "267 us", "1.00 ms", "1.04 ms", "63.5 ms", "5.09 s"];
        assert_eq!(texts, expected);
        assert_eq!([100.0, 1_500.0, 5_000.0].map(set_time), ["100 us", "1.5 ms", "5 ms"]);
    }

    #[test]
    fn an_interval_has_the_unit_of_its_figure() {
        assert_eq!(interval(25.0, [Some(22.4), Some(30.9)]), "22.4..30.9");
        assert_eq!(interval(176.0, [Some(131.0), Some(1_299.0)]), "131..1,299");
        assert_eq!(interval(2_970.0, [Some(271.0), None]), "0.271..");
        assert_eq!(interval(2_970.0, [None, None]), "");
    }

    #[test]
    fn a_share_that_is_not_whole_is_not_told_as_whole() {
        let of = |part| share(part, 100_000);
        assert_eq!([0, 100_000, 99_999, 1].map(of), ["0 %", "100 %", "above 99.9 %", "below 0.01 %"]);
        assert_eq!([60_500, 100, 50, 26_140].map(of), ["60.5 %", "0.1 %", "0.05 %", "26.1 %"]);
    }

    #[test]
    fn an_option_is_long_enough() {
        assert_eq!([31.2, 90.0, 91.0, 5_401.0].map(option_time), ["32s", "90s", "2m", "2h"]);
        assert_eq!([0.3, 1.0, 1.5, 100.0].map(given_time), ["300ms", "1s", "1.5s", "100s"]);
    }
}
