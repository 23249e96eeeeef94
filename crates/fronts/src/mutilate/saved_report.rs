//! Reads mutilate's reports back, those of pummel and those of the original in all its forms, as lines of CSV.

/// The columns of the table: what a report is known by, its rate, and what a row of it says in microseconds, or in requests
/// for `op_q`.
const COLUMNS: [&str; 19] = [
    "file",
    "row",
    "target",
    "qps",
    "seconds",
    "avg",
    "std",
    "min",
    "1st",
    "5th",
    "10th",
    "50th",
    "90th",
    "95th",
    "99th",
    "99.9th",
    "max",
    "misses_percent",
    "skipped_percent",
];

/// The labels that the original prints above the values of `--scan`, and those that belong there.
const SCAN_LABELS: ([&str; 3], [&str; 3]) = (["avg", "min", "1st"], ["avg", "std", "min"]);

/// The first line of the table.
pub fn header() -> String {
    COLUMNS.join(",") + "\n"
}

/// Reads the output of one program line by line, in which reports may stand among other lines.
#[derive(Debug, Default)]
pub struct ReportReader {
    labels: Vec<String>,
    /// The rows of the report that is being read.
    rows: Vec<Row>,
    /// What stands below its rows.
    figures: Figures,
    /// The table ends with the first line that is no row.
    in_table: bool,
    finished: Vec<(Row, Figures)>,
}

#[derive(Clone, Debug)]
struct Row {
    name: String,
    /// Label and value.
    cells: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
struct Figures {
    qps: String,
    seconds: String,
    misses_percent: String,
    skipped_percent: String,
}

impl ReportReader {
    /// Takes in a line, without its end.
    pub fn read_line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(labels) = line.strip_prefix("#type") {
            self.end_report();
            self.labels = labels.split_whitespace().map(str::to_owned).collect();
            let is_scan = self.labels.last().is_some_and(|label| label == "target");
            if is_scan && self.labels.iter().take(3).eq(SCAN_LABELS.0) {
                self.labels.splice(..3, SCAN_LABELS.1.map(str::to_owned));
            }
            self.in_table = true;
            return;
        }
        if self.in_table {
            match self.row(line) {
                Some(row) => return self.rows.push(row),
                None => self.in_table = false,
            }
        }
        self.read_figure(line);
    }

    /// A line with a name and a value below each label.
    fn row(&self, line: &str) -> Option<Row> {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let values: Vec<&str> = words.collect();
        let is_number = |word: &&str| word.trim_start_matches('>').parse::<f64>().is_ok();
        if values.len() != self.labels.len() || !values.iter().all(is_number) {
            return None;
        }
        let cells = self.labels.iter().cloned().zip(values.into_iter().map(str::to_owned)).collect();
        Some(Row { name, cells })
    }

    /// A line below the rows, such as `Total QPS = 50546.3 (101093 / 2.0s)` or `Misses = 0 (0.0%)`.
    fn read_figure(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once('=') else { return };
        let (value, inside) = rest.split_once('(').unwrap_or((rest, ""));
        let percent =
            || inside.trim_end_matches(')').trim_end_matches('%').trim_start_matches('-').to_owned();
        match name.trim() {
            "Total QPS" | "Total RPS" => {
                let seconds = inside.split_once('/').map_or("", |(_, seconds)| seconds);
                self.figures.qps = value.trim().to_owned();
                self.figures.seconds = seconds.trim().trim_end_matches("s)").to_owned();
            }
            "Misses" | "GET Misses" => self.figures.misses_percent = percent(),
            "Skipped TXs" => self.figures.skipped_percent = percent(),
            _ => {}
        }
    }

    fn end_report(&mut self) {
        let figures = std::mem::take(&mut self.figures);
        self.finished.extend(self.rows.drain(..).map(|row| (row, figures.clone())));
    }

    /// The lines of the table that the output comes to, a line for each row; `None` where there is no report in it. `file` is
    /// what the output is known by.
    pub fn finish(mut self, file: &str) -> Option<String> {
        self.end_report();
        if self.finished.is_empty() {
            return None;
        }
        let line = |(row, figures): &(Row, Figures)| {
            let cell = |label: &str| {
                row.cells.iter().find(|(other, _)| other == label).map(|(_, value)| value.clone())
            };
            let value = |column: &str| match column {
                "file" => quoted(file),
                "row" => quoted(&row.name),
                // A line of --scan has its own.
                "qps" => cell("QPS").unwrap_or_else(|| figures.qps.clone()),
                "seconds" => figures.seconds.clone(),
                "misses_percent" => known(&figures.misses_percent),
                "skipped_percent" => known(&figures.skipped_percent),
                label => cell(label).unwrap_or_default(),
            };
            COLUMNS.map(value).join(",") + "\n"
        };
        Some(self.finished.iter().map(line).collect())
    }
}

/// A percentage; empty where the original prints one of nothing, `nan`.
fn known(percent: &str) -> String {
    if percent == "nan" { String::new() } else { percent.to_owned() }
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(file: &str, text: &str) -> Option<String> {
        let mut reader = ReportReader::default();
        text.lines().for_each(|line| reader.read_line(line));
        reader.finish(file)
    }

    #[test]
    fn a_report_is_a_line_for_each_row() {
        let text = "\
mutilate.cc(0): started at 1.0
#type       avg     std     min     5th    10th    90th    95th    99th
read      104.3  1505.7    14.4    21.3    21.5    53.6   108.9 >2483.6
op_q        1.0     0.0     1.0     1.0     1.0     1.1     1.1     1.1

Total QPS = 19145.5 (38291 / 2.0s)
Peak QPS  = 50000.0

Misses = 10 (0.1%)
Skipped TXs = 360395 (941.2%)

RX    9457877 bytes :    4.5 MB/s
";
        let expected = "\
a.out,read,,19145.5,2.0,104.3,1505.7,14.4,,21.3,21.5,,53.6,108.9,>2483.6,,,0.1,941.2
a.out,op_q,,19145.5,2.0,1.0,0.0,1.0,,1.0,1.0,,1.1,1.1,1.1,,,0.1,941.2
";
        assert_eq!(table("a.out", text).as_deref(), Some(expected));
    }

    #[test]
    fn the_readmes_older_form_has_other_columns_and_no_skipped_requests() {
        let text = "\
#type       avg     min     1st     5th    10th    90th    95th    99th
read       52.4    41.0    43.1    45.2    48.1    55.8    56.6    71.5

Total QPS = 18416.6 (92083 / 5.0s)

Misses = 0 (-nan%)
";
        let expected = "\"a,b\",read,,18416.6,5.0,52.4,,41.0,43.1,45.2,48.1,,55.8,56.6,71.5,,,,\n";
        assert_eq!(table("a,b", text).as_deref(), Some(expected));
    }

    #[test]
    fn the_originals_labels_of_a_scan_are_put_right() {
        let values =
            "read       23.2   151.6    10.8    12.0    12.2    17.6    34.7   110.4    993.0     1000\n";
        let expected = "s,read,1000,993.0,,23.2,151.6,10.8,,12.0,12.2,,17.6,34.7,110.4,,,,\n";
        for labels in [
            "#type       avg     min     1st     5th    10th    90th    95th    99th      QPS   target\n",
            "#type       avg     std     min     5th    10th    90th    95th    99th      QPS   target\n",
        ] {
            assert_eq!(table("s", &format!("{labels}{values}")).as_deref(), Some(expected));
        }
    }

    #[test]
    fn reports_behind_each_other_are_all_read_and_columns_of_descendants_are_known() {
        let one = "#type avg std min 5th 10th 50th 90th 95th 99th 99.9th max\nread 1 2 3 4 5 6 7 8 9 10 11\n\nTotal RPS = 5.0 (5 / 1.0s)\n";
        let other = one.replace("5.0 (5", "6.0 (6");
        let expected =
            "f,read,,5.0,1.0,1,2,3,,4,5,6,7,8,9,10,11,,\nf,read,,6.0,1.0,1,2,3,,4,5,6,7,8,9,10,11,,\n";
        assert_eq!(table("f", &format!("{one}{other}")).as_deref(), Some(expected));
        assert_eq!(
            header().split(',').count(),
            expected.lines().next().map_or(0, |line| line.split(',').count())
        );
    }

    #[test]
    fn output_without_a_report_is_no_table() {
        for text in ["", "nothing\n", "#type avg\n", "#type avg\nread x\n", "Total QPS = 5 (5 / 1s)\n"] {
            assert_eq!(table("f", text), None, "{text:?}");
        }
    }
}
