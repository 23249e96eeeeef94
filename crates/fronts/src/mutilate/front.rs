//! mutilate's row among the command lines of other tools.

use crate::exit_status::Exit;
use crate::front::{Front, Machine, Request, Text};
use crate::mutilate::style::{FATAL, line};
use crate::mutilate::{HELP, MutilateCommand, NAME, OPTIONS, Refusal, VERSION, read};

/// mutilate's command line.
pub const FRONT: Front = Front {
    name: NAME,
    links: &[],
    about: "Accept the command line of mutilate and print its report",
    options: OPTIONS,
    help: &[HELP],
    read: request,
    failure,
};

/// What the words behind the program's name ask for.
fn request(program: &str, words: Vec<String>, machine: &Machine<'_>) -> Request {
    let refusal = match read(words.into_iter(), machine.inputs, machine.cpus) {
        Ok(MutilateCommand::Help) => return Request::Text("--help", Text::Output(HELP.to_owned())),
        Ok(MutilateCommand::Version) => return Request::Text("--version", Text::Output(VERSION.to_owned())),
        Ok(MutilateCommand::Agent(asked)) => return Request::Agent(asked),
        Ok(MutilateCommand::Runs(runs)) => return Request::Runs(runs),
        Err(refusal) => refusal,
    };
    let why = refusal.to_string();
    let (text, exit) = match refusal {
        Refusal::Words(text) => (format!("{program}: {text}\n"), Exit::Other(1)),
        Refusal::Fatal(text) => failure(&text),
    };
    Request::Refused { why, texts: vec![Text::Error(text)], exit }
}

/// The words and the exit status of something that cannot be done.
fn failure(words: &str) -> (String, Exit) {
    (format!("{}\n", line(words)), FATAL)
}
