//! `--parquet`: the tables of a run are read again and hold what its other results hold; a build without it says so.

use crate::common::{Serve, pummel};

#[cfg(feature = "parquet")]
#[test]
fn a_run_that_measured_nothing_has_no_requests_of_another_run_in_its_table() {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    let (nowhere, folder) = (crate::common::Reserved::new(), tempfile::tempdir().expect("a folder"));
    let (samples, tables) = (folder.path().join("samples"), folder.path().join("tables"));
    let line = format!(
        "run -s {} -n 40 --samples {} --parquet {}",
        nowhere.name,
        samples.display(),
        tables.display()
    );
    let row = "due,ready,sent,arrived,read,op,outcome,key,client,group\n5,5,6,9,9,get,hit,1,2,0\n";
    for old in [None, Some(row)] {
        old.iter().for_each(|old| std::fs::write(&samples, old).expect("written"));
        let ended = pummel(&line).expect(1);
        assert!(!ended.errors.contains("samples.parquet"), "{}", ended.errors);
        let file = File::open(tables.join("samples.parquet")).expect("it is written");
        let table = SerializedFileReader::new(file).expect("a file of Parquet");
        assert_eq!(table.metadata().file_metadata().num_rows(), 0, "{old:?}");
        let kept = std::fs::read_to_string(&samples).ok();
        assert_eq!(kept.as_deref(), old, "the file of samples keeps what it held");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn the_tables_of_a_run_hold_its_intervals_its_histograms_and_its_samples() {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    let server = Serve::start("");
    let ended = pummel(&format!(
        "run -s {} -n 400 -c 2 --mix get:3,set:1 --interval 20ms --samples samples --parquet tables/of/it --csv table.csv",
        server.name
    ));
    let ended = ended.expect(0);
    let result = ended.json();
    let open = |name: &str| {
        let file = File::open(ended.path("tables/of/it").join(name)).expect("it is written");
        SerializedFileReader::new(file).expect("a file of Parquet")
    };
    let rows = |name: &str| open(name).metadata().file_metadata().num_rows();
    let csv = ended.file("table.csv");
    assert_eq!(rows("intervals.parquet"), csv.lines().count() as i64 - 1);
    assert_eq!(rows("samples.parquet"), ended.samples().len() as i64);
    assert_eq!(rows("samples.parquet"), 400);
    let sum: i64 = open("histograms.parquet")
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let row = row.expect("a row");
            let text = |place: usize| row.get_column_iter().nth(place).expect("a column").1.to_string();
            let is_whole = text(0) == "null" && text(2) == "\"response\"";
            if is_whole { text(5).parse::<i64>().expect("a count") } else { 0 }
        })
        .sum();
    assert_eq!(sum, result.count("totals/completed") as i64);
}

#[cfg(feature = "parquet")]
#[test]
fn requests_of_a_trace_have_no_number_of_a_record_in_their_table() {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    let (server, folder) = (Serve::start(""), tempfile::tempdir().expect("a folder"));
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, "op,key\nset,a\nget,a\nget,b\n").expect("written");
    let ended = pummel(&format!(
        "run -s {} --trace {} --pace fast --quiet --samples samples --parquet tables",
        server.name,
        trace.display()
    ));
    let ended = ended.expect(0);
    let file = File::open(ended.path("tables/samples.parquet")).expect("it is written");
    let reader = SerializedFileReader::new(file).expect("a file of Parquet");
    let keys: Vec<(String, String)> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let row = row.expect("a row");
            let (name, key) = row.get_column_iter().nth(7).expect("a column");
            (name.clone(), key.to_string())
        })
        .collect();
    assert_eq!(keys, vec![("key".to_owned(), "null".to_owned()); 3]);
}

#[cfg(feature = "parquet")]
#[test]
fn the_table_of_samples_is_a_file_like_the_others_and_its_place_is_looked_at_before_the_run() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = Serve::start("");
    let words = format!("run -s {} -n 40 -c 2 --samples samples --parquet tables", server.name);
    let ended = pummel(&words).expect(0);
    let mode = |name: &str| {
        let path = ended.path("tables").join(name);
        std::fs::metadata(path).expect("it is written").permissions().mode()
    };
    assert_eq!(mode("samples.parquet"), mode("intervals.parquet"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("samples.parquet")).expect("a directory in its place");
    let samples = folder.path().join("samples.csv");
    let refused = pummel(&format!(
        "run -s {} -n 40 --samples {} --parquet {}",
        server.name,
        samples.display(),
        folder.path().display()
    ));
    let refused = refused.expect(1);
    let words = &refused.errors;
    assert!(words.contains("samples.parquet") && words.contains("a file is needed"), "{words}");
    assert!(!samples.exists() && !refused.path("result.json").exists(), "nothing was measured");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_where_there_is_one() {
    let server = Serve::start("");
    let ended = pummel(&format!("run -s {} -n 4 --parquet tables", server.name)).expect(2);
    assert!(ended.errors.contains("'tables' for '--parquet': this build has no Parquet"), "{}", ended.errors);
    assert!(ended.errors.contains("cargo build --release --features parquet"), "{}", ended.errors);
}
