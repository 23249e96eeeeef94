//! memaslap's options: their table, what each value means, and the words for values that mean nothing.

use crate::c_numbers::{strtod, strtol};
use crate::getopt::{Choice, Event, Getopt, Takes, Wrong};
use crate::outputs::ResultPaths;

/// The longest time that is accepted: a year.
const TIME_MAX_S: i64 = 365 * 24 * 3_600;

/// Most of anything that is counted with 32 bits.
const COUNT_MAX: i64 = u32::MAX as i64;

/// Most keys of one get.
const DIVISION_MAX: i64 = u16::MAX as i64;

/// The largest value in bytes.
const VALUE_MAX: i64 = 1 << 20;

/// Bytes, objects or requests that a `k` stands for.
const KILO: i64 = 1_024;

/// The second line where a time has no unit.
const TIME_UNITS: &str =
    "'s' for second, 'm' for minute, 'h' for hour, 'd' for day. e.g.: --time=24h (means 24 hours).";

/// Every option: those of the original in its order, then what pummel adds.
pub const TABLE: &[Choice] = &[
    Choice::both('s', "servers", Takes::Value),
    Choice::both('T', "threads", Takes::Value),
    Choice::both('c', "concurrency", Takes::Value),
    Choice::both('n', "conn_sock", Takes::Value),
    Choice::both('x', "execute_number", Takes::Value),
    Choice::both('t', "time", Takes::Value),
    Choice::both('F', "cfg_cmd", Takes::Value),
    Choice::both('w', "win_size", Takes::Value),
    Choice::both('X', "fixed_size", Takes::Value),
    Choice::both('v', "verify", Takes::Value),
    Choice::both('d', "division", Takes::Value),
    Choice::both('S', "stat_freq", Takes::Value),
    Choice::both('e', "exp_verify", Takes::Value),
    Choice::both('o', "overwrite", Takes::Value),
    Choice::both('R', "reconnect", Takes::Nothing),
    Choice::both('U', "udp", Takes::Nothing),
    Choice::both('a', "facebook", Takes::Nothing),
    Choice::both('B', "binary", Takes::Nothing),
    Choice::both('P', "tps", Takes::Value),
    Choice::both('p', "rep_write", Takes::Value),
    Choice::both('b', "verbose", Takes::Nothing),
    Choice::both('h', "help", Takes::Nothing),
    Choice::both('V', "version", Takes::Nothing),
    Choice::added("resp_freq", Takes::Value),
    Choice::added("seed", Takes::Value),
    Choice::added("strict", Takes::Nothing),
    Choice::added("json", Takes::Value),
    Choice::added("csv", Takes::Value),
    Choice::added("hdr", Takes::Value),
    Choice::added("no-evidence", Takes::Nothing),
    Choice::added("anonymous", Takes::Nothing),
];

/// What the options say; nothing is known yet of servers and configuration files.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub servers: Option<String>,
    pub threads: u32,
    pub concurrency: u32,
    pub sockets: u32,
    /// Requests; `None`: time decides.
    pub execute: Option<u64>,
    pub time_s: u64,
    pub config: Option<String>,
    pub window: u32,
    pub fixed_size: Option<u32>,
    pub verify: f64,
    pub division: u32,
    /// Seconds between two reports; 0: there are none.
    pub stat_freq_s: u64,
    pub expire: f64,
    pub overwrite: f64,
    pub reconnect: bool,
    pub udp: bool,
    pub facebook: bool,
    pub binary: bool,
    /// Requests per second; 0: as fast as it goes.
    pub tps: u64,
    pub rep_write: Option<u32>,
    pub verbose: bool,
    pub seed: Option<u64>,
    pub strict: bool,
    pub no_evidence: bool,
    pub anonymous: bool,
    pub files: ResultPaths,
}

impl Default for Options {
    /// As the original really has them, whatever its help says.
    fn default() -> Options {
        Options {
            servers: None,
            threads: 1,
            concurrency: 16,
            sockets: 1,
            execute: None,
            time_s: 600,
            config: None,
            window: 10 * 1_024,
            fixed_size: None,
            verify: 0.0,
            division: 1,
            stat_freq_s: 0,
            expire: 0.0,
            overwrite: 0.0,
            reconnect: false,
            udp: false,
            facebook: false,
            binary: false,
            tps: 0,
            rep_write: None,
            verbose: false,
            seed: None,
            strict: false,
            no_evidence: false,
            anonymous: false,
            files: ResultPaths::default(),
        }
    }
}

/// What a command line says.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedLine {
    Help,
    Version,
    Options(Box<Options>),
}

/// Why a command line is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no command line of memaslap's; the program's name stands in front.
    Words(String),
    /// A value or choice is not possible; nothing stands in front.
    Choice(String),
    /// A choice is not possible, and the help goes to standard output; nothing stands in front.
    WithHelp(String),
}

impl Refusal {
    /// What is said, without the program's name.
    pub fn text(&self) -> &str {
        let (Refusal::Words(text) | Refusal::Choice(text) | Refusal::WithHelp(text)) = self;
        text
    }
}

/// Reads the words behind the program's name; options are acted upon from left to right.
///
/// # Errors
/// Returns [`Refusal`] with memaslap's words for the first option that is unknown or has a wrong value.
pub fn read(words: impl Iterator<Item = String>) -> Result<ParsedLine, Refusal> {
    let mut options = Options::default();
    for event in Getopt::new(TABLE, words) {
        let event = event.map_err(|wrong: Wrong| Refusal::Words(wrong.to_string()))?;
        let Event::Option { choice, value } = event else { continue };
        match TABLE[choice].long.unwrap_or_default() {
            "help" => return Ok(ParsedLine::Help),
            "version" => return Ok(ParsedLine::Version),
            name => options.take(name, &value.unwrap_or_default()).map_err(Refusal::Choice)?,
        }
    }
    Ok(ParsedLine::Options(Box::new(options)))
}

impl Options {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let owned = || Some(value.to_owned());
        match name {
            "servers" => self.servers = owned(),
            "threads" => self.threads = count(value, "Threads number must be greater than 0.:-)")?,
            "concurrency" => self.concurrency = count(value, "Concurrency must be greater than 0.:-)")?,
            "conn_sock" => {
                self.sockets =
                    count(value, "Number of socks of each concurrency must be greater than 0.:-)")?;
            }
            "execute_number" => {
                let number = Some(strtol(value, 10).0).filter(|&number| number > 0);
                let number = number.ok_or("Execute number must be greater than 0.:-)")?;
                self.execute = Some(number as u64);
            }
            "time" => {
                self.time_s =
                    time(value, "Please specify the run time. :-)", "Running time can not be 0. :-)")?;
            }
            "cfg_cmd" => self.config = owned(),
            "win_size" => self.window = window(value)?,
            "fixed_size" => {
                let size = Some(strtol(value, 10).0).filter(|size| (1..=VALUE_MAX).contains(size));
                self.fixed_size = Some(size.ok_or("Value size must be between 0 and 1M.:-)")? as u32);
            }
            "verify" => self.verify = share(value, "Data verification rate")?,
            "division" => self.division = division(value)?,
            "stat_freq" | "resp_freq" => {
                self.stat_freq_s = time(
                    value,
                    "Please specify the frequency of dumping statistic information. :-)",
                    "The frequency of dumping statistic information can not be 0. :-)",
                )?;
            }
            "exp_verify" => self.expire = share(value, "Expire time verification rate")?,
            "overwrite" => self.overwrite = share(value, "Objects overwrite rate")?,
            "reconnect" => self.reconnect = true,
            "udp" => self.udp = true,
            "facebook" => self.facebook = true,
            "binary" => self.binary = true,
            "tps" => {
                let rate = size(value).ok_or(
                    "Please specify the item expected throughput. :-)\ne.g.: --tps=10k (means 10k throughput).",
                )?;
                // Nothing and less is no limit.
                self.tps = rate.max(0) as u64;
            }
            "rep_write" => {
                let words = "Number of replication writing server must be greater than 0.:-)";
                self.rep_write = Some(count(value, words)?);
            }
            "verbose" => self.verbose = true,
            "seed" => {
                let seed = value.parse::<u64>().ok().filter(|&seed| seed <= i64::MAX as u64);
                self.seed = Some(seed.ok_or("--seed takes a whole number from 0 to 9223372036854775807.")?);
            }
            "strict" => self.strict = true,
            "no-evidence" => self.no_evidence = true,
            "anonymous" => self.anonymous = true,
            "json" | "csv" | "hdr" => self.files.set(name, value),
            other => unreachable!("{other} is in the table and is not followed"),
        }
        Ok(())
    }
}

/// A number above 0 with whatever follows it ignored.
fn count(text: &str, words: &str) -> Result<u32, String> {
    let number = strtol(text, 10).0;
    if (1..=COUNT_MAX).contains(&number) { Ok(number as u32) } else { Err(words.to_owned()) }
}

fn division(text: &str) -> Result<u32, String> {
    match strtol(text, 10).0 {
        number if number <= 0 => Err("Multi-get key number must be greater than 0.:-)".to_owned()),
        number if number > DIVISION_MAX => {
            Err(format!("Multi-get key number must not be greater than {DIVISION_MAX}."))
        }
        number => Ok(number as u32),
    }
}

fn share(text: &str, what: &str) -> Result<f64, String> {
    let number = strtod(text).0;
    if number > 0.0 && number <= 1.0 {
        return Ok(number);
    }
    Err(format!("{what} must be greater than 0 and less than 1.0. :-)"))
}

/// A time in seconds: a whole number and a unit, which is the last character.
fn time(text: &str, without_unit: &str, zero: &str) -> Result<u64, String> {
    let refusal = || format!("{without_unit}\n{TIME_UNITS}");
    let unit_s = match text.chars().last().map(|unit| unit.to_ascii_lowercase()) {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 24 * 3_600,
        _ => return Err(refusal()),
    };
    match strtol(text, 10).0.checked_mul(unit_s) {
        Some(0) => Err(zero.to_owned()),
        Some(seconds) if (1..=TIME_MAX_S).contains(&seconds) => Ok(seconds as u64),
        _ => Err(refusal()),
    }
}

/// A number and a unit, which is the last character; `None` without a unit, or where 64 bits do not hold it.
fn size(text: &str) -> Option<i64> {
    let power = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        _ => return None,
    };
    strtol(text, 10).0.checked_mul(KILO.pow(power))
}

fn window(text: &str) -> Result<u32, String> {
    let objects = size(text).filter(|objects| (KILO..=COUNT_MAX).contains(objects));
    let words =
        "Please specify the item window size. :-)\ne.g.: --win_size=10k (means 10k task window size).";
    objects.map(|objects| objects as u32).ok_or_else(|| words.to_owned())
}
