//! `--push-result`: the final metrics, put to a Pushgateway once.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use pummel_engine::sys;
use pummel_fronts::metrics_options::PushTarget;
use pummel_report::snapshot::Snapshot;

use crate::metrics::families::result_families;
use crate::metrics::http::Encoding;
use crate::metrics::server::process_figures;
use crate::metrics::text::{self, Dialect};

/// How long a push may take in all: finding the gateway, connecting, writing and reading.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a push may take in all where the run was interrupted.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// Time between two looks for the end of a push, and for an interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// Most bytes that are read of an answer.
const ANSWER_MAX_BYTES: u64 = 4 << 10;

/// Pushes the metrics of a job that is over.
///
/// # Errors
/// Returns the system's error, one of the kind `TimedOut` when the gateway takes longer than 10 s in all, one of the kind
/// `Interrupted` when a signal asks the process to end meanwhile, and one with the first line of the answer when the gateway did not take them.
pub fn push(target: &PushTarget, snapshot: &Snapshot) -> io::Result<()> {
    let body = text::render(&result_families(snapshot, &process_figures()), Dialect::Classic);
    let patience = if sys::interrupts() > 0 { SHORT_PATIENCE } else { PATIENCE };
    put(target.clone(), body, patience).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("--push-result: http://{}{}: {error}", target.authority, target.path),
        )
    })
}

/// Puts the metrics on a thread of its own, since the system finds names without a deadline, and waits for it until the time is
/// over or a signal comes.
fn put(target: PushTarget, body: String, patience: Duration) -> io::Result<()> {
    let begun = Instant::now();
    let interrupts = sys::interrupts();
    let (told, heard) = mpsc::channel();
    let work = move || {
        // The wait for it may have been given up.
        let _ = told.send(put_until(&target, &body, begun + patience));
    };
    thread::Builder::new().name("push".to_owned()).spawn(work)?;
    let late =
        || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", patience.as_secs_f64()));
    loop {
        match heard.recv_timeout(LOOK) {
            Ok(Err(error)) if is_timeout(&error) => return Err(late()),
            Ok(result) => return result,
            Err(_) if begun.elapsed() >= patience => return Err(late()),
            Err(_) if sys::interrupts() > interrupts => {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "given up after a signal"));
            }
            Err(_) => {}
        }
    }
}

/// Whether a socket's time was over, which the system tells in two ways.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The time that is left until `deadline`; never zero, which sockets take for no limit.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(LOOK)
}

fn put_until(target: &PushTarget, body: &str, deadline: Instant) -> io::Result<()> {
    let mut last = io::Error::other("the name has no address");
    for address in target.authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)) {
            Ok(stream) => return send(stream, target, body, deadline),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn send(mut stream: TcpStream, target: &PushTarget, body: &str, deadline: Instant) -> io::Result<()> {
    stream.set_write_timeout(Some(left(deadline)))?;
    stream.set_read_timeout(Some(left(deadline)))?;
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        target.path,
        target.authority,
        Encoding::Text(Dialect::Classic).content_type(),
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    // The first line says everything, and a slow gateway may take its time for the others.
    BufReader::new(stream).take(ANSWER_MAX_BYTES).read_until(b'\n', &mut answer)?;
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    let status = status.filter(|status| status.len() == 3);
    match status {
        Some(status) if status.starts_with('2') => Ok(()),
        Some(_) => Err(io::Error::other(format!("it answered: {}", pummel_report::visible::foreign(line)))),
        None => Err(io::Error::other("it did not answer with HTTP")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Makes a gateway that answers so, and then reads until the other side closes.
    fn gateway(answer: &'static str) -> (PushTarget, thread::JoinHandle<()>) {
        let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}", gateway.local_addr().unwrap()).parse().unwrap();
        let server = thread::spawn(move || {
            let mut stream = gateway.accept().unwrap().0;
            let _ = stream.write_all(answer.as_bytes());
            let mut rest = [0; 1 << 10];
            while stream.read(&mut rest).is_ok_and(|count| count > 0) {}
        });
        (target, server)
    }

    /// Pushes to a gateway that answers so.
    fn pushed(answer: &'static str, patience: Duration) -> io::Result<()> {
        let (target, server) = gateway(answer);
        let result = put(target, "metrics".to_owned(), patience);
        // A push that was given up closes its socket when its time is over.
        server.join().unwrap();
        result
    }

    #[test]
    fn the_first_line_of_an_answer_is_the_answer() {
        assert!(pushed("HTTP/1.1 200 OK\r\nX-Y: y", PATIENCE).is_ok());
        let refused = pushed("HTTP/1.1 400 Bad\u{1b}[2J\r\n", PATIENCE).unwrap_err().to_string();
        assert_eq!(refused, "it answered: HTTP/1.1 400 Bad\u{fffd}[2J");
    }

    #[test]
    fn a_gateway_without_an_answer_is_a_timeout_in_words() {
        for answer in ["", "HTTP/1.1 200"] {
            let late = pushed(answer, 10 * LOOK).unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
            assert_eq!(late.to_string(), "no answer within 0.2 s");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_by_the_deadline_is_no_answer() {
        for answer in ["", "HTTP/1.1 2", "HTTP/1.1 200", "HTTP/1.1 400 Bad"] {
            let (target, server) = gateway(answer);
            let late = put_until(&target, "metrics", Instant::now() + 10 * LOOK).unwrap_err();
            assert!(is_timeout(&late), "{answer:?}: {late}");
            server.join().unwrap();
        }
    }
}
