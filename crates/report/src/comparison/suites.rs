//! Two suites compared: their runs by name, the figures of all pairs of runs as one family, and whether most of them moved together.

use serde::{Deserialize, Serialize};

use super::result::{Comparison, PairCommand, Question, Unjudged};
use super::row::Row;
use super::side::Side;
use crate::csv::{Cell, Csv};
use crate::document::{SCHEMA, ToolResult};
use crate::run_figures::Metric;
use pummel_measure::compare::{ALPHA, sign_p};

/// Most runs of a suite that are compared.
pub const SUITE_RUNS_MAX: usize = 200;

/// Fewest runs that move together.
const TOGETHER_MIN: usize = 4;

/// Greatest change of runs that move together, as a multiple of the least one.
const TOGETHER_BAND: f64 = 3.0;

/// Least change, as a logarithm, of runs of which it is said that they moved.
const MOVE_MIN: f64 = 0.005;

/// Suite as one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuiteSide {
    /// Title of the suite, or the names of its files.
    pub label: String,
    /// Runs by name, each with the figures of its rounds; no two have one name.
    pub runs: Vec<(String, Side)>,
    /// Names of the runs of which no round is complete.
    pub failed: Vec<String>,
}

/// Result of two suites, as `compare` writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuitesComparison {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that compared.
    pub tool: ToolResult,
    /// The word `compare`.
    pub command: PairCommand,
    /// Names of the suites in the user's words: their titles or files.
    pub labels: [String; 2],
    /// Comparisons of the runs that both suites have, in the order of the first suite. The runs of each are the rounds.
    pub pairs: Vec<NamedPair>,
    /// Names of the runs that only the first suite has, and of those that only the second has.
    pub only: [Vec<String>; 2],
    /// Names of the runs of which no round is complete in the first suite, and of those in the second.
    #[serde(default)]
    pub failed: [Vec<String>; 2],
    /// Number of judged figures of all pairs for which the p are corrected together.
    pub tests: usize,
    /// Change that most runs have in common; null where there is none.
    pub shared_shift: Option<SharedShift>,
}

/// Comparison of the two runs of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedPair {
    /// Name of the run in both suites.
    pub name: String,
    /// Comparison of its rounds in the two suites.
    pub comparison: Comparison,
}

/// Change that most runs of two suites have in common, which speaks of the machine or of the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedShift {
    /// The figure that moved.
    pub metric: Metric,
    /// Number of runs that moved together.
    pub runs: usize,
    /// Number of runs whose change of the figure is known.
    pub of: usize,
    /// Relative changes of the runs that moved together, from the least to the greatest: 0.03 for 3 % more.
    pub changes: (f64, f64),
}

impl SuitesComparison {
    /// Compares the runs of two suites by name. The p of the judged figures of all pairs are corrected by Holm for the number of all of
    /// them, and so are the gates of `--worse`.
    pub fn of(first: SuiteSide, second: SuiteSide, question: &Question) -> SuitesComparison {
        let labels = [first.label, second.label];
        let (mut others, mut alone) = (second.runs, Vec::new());
        let (mut names, mut unjudged) = (Vec::new(), Vec::new());
        for (name, side) in first.runs {
            match others.iter().position(|(other, _)| *other == name) {
                Some(place) => {
                    let (_, other) = others.remove(place);
                    unjudged.push(Unjudged::of_results([side, other], question));
                    names.push(name);
                }
                None => alone.push(name),
            }
        }
        let mut only = [alone, others.into_iter().map(|(name, _)| name).collect::<Vec<String>>()];
        // A run that failed in the other suite is there too.
        only[0].retain(|name| !second.failed.contains(name));
        only[1].retain(|name| !first.failed.contains(name));
        let (comparisons, tests) = Unjudged::judged_together(unjudged, question);
        let pairs = names.into_iter().zip(comparisons);
        let pairs: Vec<NamedPair> = pairs.map(|(name, comparison)| NamedPair { name, comparison }).collect();
        SuitesComparison {
            schema: SCHEMA,
            tool: ToolResult::named(),
            command: PairCommand::Compare,
            labels,
            only,
            failed: [first.failed, second.failed],
            shared_shift: SharedShift::of(&pairs),
            pairs,
            tests,
        }
    }

    /// Whether there are no more runs and rounds than are compared, and each pair has all figures.
    pub(crate) fn is_within_limits(&self) -> bool {
        let names = self.only.iter().chain(&self.failed).map(Vec::len);
        names.chain([self.pairs.len()]).all(|length| length <= SUITE_RUNS_MAX)
            && self.pairs.iter().all(|pair| pair.comparison.is_within_limits())
    }

    /// The figures as CSV, a line for each figure of each pair that a side knows.
    pub fn csv(&self) -> Vec<u8> {
        let mut table = Csv::with_header([
            "run",
            "figure",
            "a",
            "b",
            "change",
            "ci_low",
            "ci_high",
            "p",
            "p_corrected",
            "judged",
            "word",
        ]);
        for NamedPair { name, comparison } in &self.pairs {
            for row in comparison.rows.iter().filter(|row| row.is_known()) {
                let [a, b] = row.values.map(Cell::from);
                let ends = [row.ci.map(|ends| ends.0), row.ci.map(|ends| ends.1)].map(Cell::from);
                let [low, high] = ends;
                table.row([
                    Cell::from(name.as_str()),
                    row.metric.name().into(),
                    a,
                    b,
                    row.change.into(),
                    low,
                    high,
                    row.p.into(),
                    row.p_corrected.into(),
                    row.is_judged.into(),
                    row.word.text().into(),
                ]);
            }
        }
        table.finish()
    }
}

impl SharedShift {
    /// The change that most runs have in common: at least three of four runs, and four at least, moved in one direction, none of them by
    /// more than three times the change of another. Chance does not explain it: half of those runs differ on their own, or so many runs
    /// in one direction are beyond chance.
    fn of(pairs: &[NamedPair]) -> Option<SharedShift> {
        let shifts = Metric::ALL.into_iter().filter_map(|metric| {
            let rows = pairs.iter().map(|pair| pair.comparison.row(metric));
            let rows: Vec<&Row> = rows.filter(|row| row.is_judged && row.change.is_some()).collect();
            SharedShift::of_rows(metric, &rows)
        });
        // Of as many runs the first figure is told.
        shifts.reduce(|most, next| if next.runs > most.runs { next } else { most })
    }

    fn of_rows(metric: Metric, rows: &[&Row]) -> Option<SharedShift> {
        let of = rows.len();
        let up = Together::most(rows, 1.0);
        let down = Together::most(rows, -1.0);
        let Together { moves } = if down.moves.len() > up.moves.len() { down } else { up };
        let runs = moves.len();
        if runs < TOGETHER_MIN || 4 * runs < 3 * of {
            return None;
        }
        let alone = moves.iter().filter(|(_, row)| row.p.is_some_and(|p| p <= ALPHA)).count();
        let is_beyond_chance = 2 * alone >= runs || sign_p(runs, of) <= ALPHA;
        let changes = moves.iter().filter_map(|(_, row)| row.change);
        let ends = changes.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), change| {
            (low.min(change), high.max(change))
        });
        is_beyond_chance.then_some(SharedShift { metric, runs, of, changes: ends })
    }
}

/// Runs that moved in one direction by similar changes: the size of each change, as a logarithm, and its row.
struct Together<'a> {
    moves: Vec<(f64, &'a Row)>,
}

impl<'a> Together<'a> {
    /// As many of these rows as moved together in the direction of a sign.
    fn most(rows: &[&'a Row], sign: f64) -> Together<'a> {
        let size = |row: &&'a Row| Some((sign * row.change?.ln_1p(), *row));
        let mut moves: Vec<(f64, &Row)> =
            rows.iter().filter_map(size).filter(|(size, _)| size.is_finite() && *size >= MOVE_MIN).collect();
        moves.sort_by(|one, other| one.0.total_cmp(&other.0));
        let within = |from: usize| {
            let most = TOGETHER_BAND * moves[from].0;
            from..moves.partition_point(|(size, _)| *size <= most)
        };
        // The first of as many is that of the least changes.
        let widest = (0..moves.len())
            .map(within)
            .reduce(|most, next| if next.len() > most.len() { next } else { most });
        Together { moves: widest.map_or_else(Vec::new, |range| moves[range].to_vec()) }
    }
}
