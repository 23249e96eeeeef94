//! Output that nobody reads: standard error, standard output, samples, logs. Runs end in time all the same.

use std::io::{PipeReader, Read, Write, pipe};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Json, Process, Serve, patience_of, shell_status, until};

/// A pipe that is full, and stays so as long as its reading end is kept.
fn full_pipe() -> (PipeReader, Stdio) {
    let (reader, mut writer) = pipe().expect("a pipe can be made");
    let filler = writer.try_clone().expect("a pipe has as many ends as it takes");
    std::thread::spawn(move || while writer.write_all(&[b'.'; 4096]).is_ok() {});
    // It is full when the next byte would have to wait.
    until("the pipe is full", || {
        let mut ready = [rustix::event::PollFd::new(&filler, rustix::event::PollFlags::OUT)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        (rustix::event::poll(&mut ready, Some(&now)).expect("it can be polled") == 0).then_some(())
    });
    (reader, filler.into())
}

/// Starts the program; its files are in `directory`.
fn start(words: &str, directory: &Path, out: Stdio, err: Stdio) -> Process {
    let words: Vec<&str> = words.split_whitespace().collect();
    let child = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(&words)
        .args(patience_of(&words))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn();
    Process(child.expect("the program starts"))
}

/// The exit status of a program that ends in time.
#[track_caller]
fn end(mut process: Process) -> Option<i32> {
    let status = until("the end of the program", || process.0.try_wait().expect("it is our child"));
    Some(shell_status(status))
}

/// Makes a named pipe.
fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("there is mkfifo");
    assert!(made.success());
}

fn json(directory: &Path) -> Json {
    let text = std::fs::read_to_string(directory.join("r.json")).expect("the result is there");
    Json(crate::common::value_of(&text))
}

#[test]
fn standard_error_that_is_not_read_holds_up_neither_the_run_nor_its_result() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("run -s {} --records 100 --interval 10ms -t 300ms -T 2 --json r.json", server.name);
    let child = start(&words, directory.path(), Stdio::null(), full);
    assert_eq!(end(child), Some(0));
    assert_eq!(json(directory.path()).text("status"), "complete");
}

#[test]
fn an_interrupt_ends_a_run_whose_standard_error_is_not_read() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("run -s {} --records 100 --interval 10ms -t 1h --json r.json", server.name);
    let child = start(&words, directory.path(), Stdio::null(), full);
    // The result so far is written beside what is said of it.
    until("some of the run is measured", || directory.path().join("r.json").exists().then_some(()));
    child.interrupt();
    assert_eq!(end(child), Some(130));
    assert_eq!(json(directory.path()).text("status"), "interrupted");
}

#[test]
fn an_interrupt_ends_a_program_whose_report_is_not_read() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("run -s {} --records 100 -t 100ms --json r.json", server.name);
    let child = start(&words, directory.path(), full, Stdio::null());
    until("some of the run is measured", || directory.path().join("r.json").exists().then_some(()));
    child.interrupt();
    let status = end(child);
    assert!(status == Some(1) || status == Some(130), "the report is missing: {status:?}");
    assert_ne!(json(directory.path()).text("status"), "partial");
}

#[test]
fn a_result_for_dev_stdout_is_added_to_the_file_that_standard_output_goes_to() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    std::fs::write(&path, "before\n").expect("the directory can be written to");
    let log = std::fs::OpenOptions::new().append(true).open(&path).expect("it is there");
    let words = format!("run -s {} --records 10 -n 10 --json /dev/stdout", server.name);
    let child = start(&words, directory.path(), log.into(), Stdio::null());
    assert_eq!(end(child), Some(0));
    let text = std::fs::read_to_string(&path).expect("it is still there");
    let result = text.strip_prefix("before\n").expect("what was there before comes first");
    let json = Json(serde_json::from_str(result).expect("the result follows"));
    assert_eq!(json.text("status"), "complete");
}

#[test]
fn a_result_for_dev_stdout_is_all_that_the_reader_of_a_pipe_gets() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (mut reader, out) = pipe().expect("a pipe");
    let words = format!("run -s {} --records 10 -n 10 --json /dev/stdout", server.name);
    let child = start(&words, directory.path(), out.into(), Stdio::null());
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    assert_eq!(end(child), Some(0));
    let json = Json(serde_json::from_str(&text).expect("one result and nothing else"));
    assert_eq!(json.text("status"), "complete");
}

#[test]
fn samples_for_a_pipe_without_a_reader_are_dropped_and_counted() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    make_pipe(&directory.path().join("pipe"));
    let words = format!("run -s {} --records 100 -t 200ms --json r.json --samples pipe", server.name);
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    assert_eq!(end(child), Some(1), "a result is missing");
    let json = json(directory.path());
    assert_eq!((json.text("status"), json.count("samples/written")), ("complete", 0));
    assert_eq!(json.count("samples/dropped"), json.count("totals/requests"));
}

#[test]
fn samples_that_a_named_pipe_is_read_for_are_all_there() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    make_pipe(&pipe);
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).expect("it can be read"));
    let words = format!("run -s {} --records 100 -n 5k --json r.json --samples pipe", server.name);
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    assert_eq!(end(child), Some(0));
    let lines = reader.join().expect("it reads to the end");
    assert_eq!(lines.lines().count(), 5_001, "a first line, and one for each request");
    let json = json(directory.path());
    assert_eq!((json.count("samples/written"), json.count("samples/dropped")), (5_000, 0));
}

#[test]
fn lines_that_memaslap_prints_meanwhile_and_that_are_not_read_do_not_hold_up_the_run() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("memaslap -s {} -t 3s -S 1s -w 1k -c 4 --json r.json", server.name);
    let child = start(&words, directory.path(), full, Stdio::null());
    // Files are written before the report, which waits for its reader.
    let is_there = || directory.path().join("r.json").exists();
    until("the result", || (is_there() && json(directory.path()).text("status") == "complete").then_some(()));
    child.interrupt();
    assert_eq!(end(child), Some(1), "the report is missing");
}

#[test]
fn an_interrupt_ends_a_memaslap_whose_standard_output_is_not_read() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("memaslap -s {} -t 1h -S 1s -w 1k -c 4 --json r.json", server.name);
    let child = start(&words, directory.path(), full, Stdio::null());
    let mut talk = server.connect();
    until("some load", || (talk.stats().get("cmd_get") > 0).then_some(()));
    child.interrupt();
    assert_eq!(end(child), Some(1));
    assert_eq!(json(directory.path()).text("status"), "interrupted");
}

#[test]
fn windows_of_misses_that_are_not_read_do_not_hold_up_mutilate() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let (_reader, full) = full_pipe();
    let words = format!("mutilate -s {} -r 100 -t 3600 -m 10 -B --json r.json", server.name);
    let child = start(&words, directory.path(), full, Stdio::null());
    let result = || {
        let text = std::fs::read_to_string(directory.path().join("r.json")).ok()?;
        Some(Json(crate::common::value_of(&text)))
    };
    // The result is rewritten while the run goes on.
    until("some intervals", || (result()?.at("intervals").as_array()?.len() > 1).then_some(()));
    child.interrupt();
    assert_eq!(end(child), Some(130));
    assert_eq!(json(directory.path()).text("status"), "interrupted");
}

#[test]
fn latencies_that_mutilate_saves_to_a_named_pipe_wait_for_its_reader() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    make_pipe(&pipe);
    let words = format!("mutilate -s {} -r 100 -N 50 -B --save pipe --json r.json", server.name);
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    let lines = std::fs::read_to_string(&pipe).expect("it can be read");
    assert_eq!(lines.lines().count(), 50);
    assert_eq!(end(child), Some(0));
}

#[test]
fn an_interrupt_ends_a_mutilate_that_saves_to_a_named_pipe_without_a_reader() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    make_pipe(&directory.path().join("pipe"));
    let words = format!("mutilate -s {} -r 100 -t 3600 -B --save pipe --json r.json", server.name);
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    until("some of the run is measured", || directory.path().join("r.json").exists().then_some(()));
    child.interrupt();
    assert_eq!(end(child), Some(130));
    assert_eq!(json(directory.path()).text("status"), "interrupted");
}

#[test]
fn a_log_for_a_named_pipe_without_a_reader_does_not_hold_up_mcperf() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    make_pipe(&directory.path().join("pipe"));
    let (_, port) = server.name.rsplit_once(':').expect("a port");
    let words = format!("mcperf -s 127.0.0.1 -p {port} -n 20 -N 30 -v 7 -o pipe --json r.json");
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    assert_eq!(end(child), Some(0));
    assert_eq!(json(directory.path()).text("status"), "complete");
}

#[test]
fn a_log_that_a_named_pipe_is_read_for_is_all_there() {
    let server = Serve::start("");
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    make_pipe(&pipe);
    let (_, port) = server.name.rsplit_once(':').expect("a port");
    let words = format!("mcperf -s 127.0.0.1 -p {port} -n 20 -N 30 -v 7 -o pipe");
    let child = start(&words, directory.path(), Stdio::null(), Stdio::null());
    let log = std::fs::read_to_string(&pipe).expect("it can be read");
    assert_eq!(log.lines().filter(|line| line.contains("] call ")).count(), 600);
    assert!(log.ends_with("destroyed 20 of 20 connections\n"), "{log}");
    assert_eq!(end(child), Some(0));
}
