//! A listener that is no server: it says when a client's first request came, and what it was.

use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::child::Child;

/// Time that a client may take until its first request.
const LIMIT: Duration = Duration::from_secs(20);

/// A request is over when nothing came for so long.
const QUIET: Duration = Duration::from_millis(100);

/// Time between two looks: the exactness of [`Tap::first_byte`].
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// Bytes that stand for the key in a template.
pub const KEY: &[u8] = b"__key__";

/// A listening socket on loopback that takes connections and answers nothing.
pub struct Tap {
    listener: TcpListener,
    open: Vec<TcpStream>,
    /// The listener's port on 127.0.0.1.
    pub port: u16,
}

impl Tap {
    /// A tap on a free port.
    pub fn new() -> io::Result<Tap> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Tap { listener, open: Vec::new(), port })
    }

    /// Waits for the first byte that `client` sends on any connection: when that came, and what came with it.
    pub fn first_byte(&mut self, client: &mut Child) -> io::Result<(Instant, Vec<u8>)> {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            if let Some(bytes) = self.look()? {
                return Ok((Instant::now(), bytes));
            }
            if !client.is_running()? {
                return Err(io::Error::other("the client ended before it asked anything"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(io::Error::other("the client asks nothing"))
    }

    /// The whole first request of a client with one connection and depth 1.
    pub fn first_request(&mut self, client: &mut Child) -> io::Result<Vec<u8>> {
        let (mut newest, mut request) = self.first_byte(client)?;
        while newest.elapsed() < QUIET {
            match self.look()? {
                Some(bytes) => {
                    request.extend(bytes);
                    newest = Instant::now();
                }
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
        Ok(request)
    }

    /// Reads what is there to be read, if anything is.
    fn look(&mut self) -> io::Result<Option<Vec<u8>>> {
        while let Some((stream, _)) = unless_blocked(self.listener.accept())? {
            stream.set_nonblocking(true)?;
            self.open.push(stream);
        }
        let mut buffer = vec![0; 1 << 16];
        for stream in &mut self.open {
            if let Some(count @ 1..) = unless_blocked(stream.read(&mut buffer))? {
                buffer.truncate(count);
                return Ok(Some(buffer));
            }
        }
        Ok(None)
    }
}

fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The request with [`KEY`] in place of its key, which is a number of `key_bytes` digits.
pub fn template(request: &[u8], key_bytes: usize) -> io::Result<Vec<u8>> {
    let is_key = |window: &[u8]| window.iter().all(u8::is_ascii_digit);
    let place = request.windows(key_bytes).position(is_key).ok_or_else(|| {
        io::Error::other(format!("there is no key of {key_bytes} digits in {}", request.escape_ascii()))
    })?;
    Ok([&request[..place], KEY, &request[place + key_bytes..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_request_is_found_in_every_dialect() {
        for (request, wanted) in [
            (&b"get 00000042\r\n"[..], &b"get __key__\r\n"[..]),
            (b"mg 00000042 v f O123\r\n", b"mg __key__ v f O123\r\n"),
            (b"set 00000042 0 0 9\r\n123456789\r\n", b"set __key__ 0 0 9\r\n123456789\r\n"),
            (b"\x80\0\0\x0800000042", b"\x80\0\0\x08__key__"),
            (b"*2\r\n$3\r\nGET\r\n$8\r\n00000042\r\n", b"*2\r\n$3\r\nGET\r\n$8\r\n__key__\r\n"),
        ] {
            assert_eq!(template(request, 8).unwrap(), wanted);
        }
        assert!(template(b"version\r\n", 8).unwrap_err().to_string().contains("version"));
    }

    #[test]
    fn a_first_request_is_read_to_its_end() {
        let scratch = tempfile::tempdir().unwrap();
        let cpu = crate::bench::child::allowed_cpus().unwrap()[0];
        let mut tap = Tap::new().unwrap();
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'get ' >&3; printf '7\\r\\n' >&3; read -u 3",
            tap.port
        );
        let arguments = ["-c".to_owned(), script];
        let log = scratch.path().join("bash");
        let mut client = Child::start("bash".as_ref(), &arguments, cpu, &[], &log).unwrap();
        assert_eq!(tap.first_request(&mut client).unwrap(), b"get 7\r\n");
    }

    #[test]
    fn a_client_that_ends_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let cpu = crate::bench::child::allowed_cpus().unwrap()[0];
        let mut client =
            Child::start("true".as_ref(), [""; 0], cpu, &[], &scratch.path().join("true")).unwrap();
        let error = Tap::new().unwrap().first_byte(&mut client).unwrap_err();
        assert!(error.to_string().contains("ended"), "{error}");
    }
}
