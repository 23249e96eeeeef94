//! The way into an agent: connections are taken, encrypted, and asked for the preface of HTTP/2 before a service sees them.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, Receiver};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::agent::peers::{Closing, PEERS_MAX, Peer, Peers, Place};
use crate::program::Program;

/// First bytes of every connection of gRPC: the preface of HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a connection that begins with a handshake of TLS (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;

/// The alert of TLS that ends a handshake, as a record (RFC 8446, 5.1 and 6).
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// Answer of an agent with TLS to a controller without encryption.
const WANTS_TLS: &str =
    "this agent was started with --tls-cert: --agent-tls-ca, --agent-tls-cert and --agent-tls-key are wanted";

/// Most bytes that are read of a peer which is hung up on.
const FAREWELL_BYTES_MAX: usize = 256 << 10;

/// Pause after the system gave no connection, because there are too many already.
const PAUSE: Duration = Duration::from_millis(50);

/// The peer that made a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The connection that the request came over.
    pub peer: Arc<Peer>,
}

/// A connection that speaks gRPC, encrypted or not. It ends with an error when the agent has to close it.
pub struct Wire {
    stream: Stream,
    /// The rest of the preface, which was read already and which HTTP/2 has to read too.
    unread: &'static [u8],
    place: Place,
    /// Ready when the agent has to close the connection.
    closing: Pin<Box<dyn Future<Output = Closing> + Send>>,
    is_closed: bool,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    fn new(stream: Stream, place: Place) -> Wire {
        let closing = Box::pin(Arc::clone(&place.peer).closing());
        Wire { stream, unread: PREFACE, place, closing, is_closed: false }
    }

    /// Returns an error when the agent has to close the connection; else wakes the caller when that is so.
    fn check_open(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.is_closed {
            let Poll::Ready(closing) = self.closing.as_mut().poll(cx) else { return Ok(()) };
            self.is_closed = true;
            self.place.peer.refused(closing);
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Wire").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Connected for Wire {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        Caller { peer: Arc::clone(&self.place.peer) }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_open(cx)?;
        if !self.unread.is_empty() {
            let (now, later) = self.unread.split_at(self.unread.len().min(buf.remaining()));
            buf.put_slice(now);
            self.unread = later;
            return Poll::Ready(Ok(()));
        }
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_open(cx)?;
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_open(cx)?;
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_open(cx)?;
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

/// Takes connections until the receiver is dropped. The reasons of those that are closed are said on standard error.
pub fn open(listener: TcpListener, tls: Option<Arc<ServerConfig>>, program: Program) -> Receiver<Wire> {
    let (through, wires) = mpsc::channel(PEERS_MAX);
    let acceptor = tls.map(TlsAcceptor::from);
    let peers = Arc::new(Peers::new(program));
    tokio::spawn(async move {
        while !through.is_closed() {
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    (program.say)(format_args!("a connection could not be accepted: {error}"));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            tokio::spawn(greet(stream, peers.admit(address), acceptor.clone(), through.clone()));
        }
    });
    wires
}

/// Hands a connection through once it has begun as gRPC does.
async fn greet(stream: TcpStream, place: Place, acceptor: Option<TlsAcceptor>, through: mpsc::Sender<Wire>) {
    let peer = Arc::clone(&place.peer);
    let begun = tokio::select! {
        begun = begin(stream, acceptor) => begun,
        closing = Arc::clone(&peer).closing() => Err(Rejected::with_reason(closing.to_string())),
    };
    match begun {
        // Nothing is left to be done for the peer when the agent ends.
        Ok(stream) => drop(through.send(Wire::new(stream, place)).await),
        Err(rejected) => {
            if let Some(why) = rejected.why {
                peer.refused(why);
            }
            if let Some((stream, words)) = rejected.farewell {
                tokio::select! {
                    () = hang_up(stream, &words) => {}
                    _ = peer.closing() => {}
                }
            }
        }
    }
}

/// A connection that no service sees.
#[derive(Debug, Default)]
struct Rejected {
    /// The reason; absent for a peer that only looked whether the port is open, as health checks do.
    why: Option<String>,
    /// The last words to the peer, in its own language, where it is told.
    farewell: Option<(TcpStream, Vec<u8>)>,
}

impl Rejected {
    fn with_reason(why: impl ToString) -> Rejected {
        Rejected { why: Some(why.to_string()), farewell: None }
    }
}

/// Says the last words to a peer and waits until it has read them: closing a connection whose bytes were not all read takes
/// back what was sent.
async fn hang_up(mut stream: TcpStream, words: &[u8]) {
    if stream.write_all(words).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut bytes = [0; 1_024];
    let mut left = FAREWELL_BYTES_MAX;
    while let Ok(read @ 1..) = stream.read(&mut bytes).await
        && left > read
    {
        left -= read;
    }
}

/// Encrypts a connection, if that is wanted, and reads how it begins.
async fn begin(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Result<Stream, Rejected> {
    // Without it, small messages wait for each other; a connection that has gone already is found out below.
    let _ = stream.set_nodelay(true);
    let mut stream = match acceptor {
        None => Stream::Plain(stream),
        Some(acceptor) => Stream::Tls(Box::new(encrypt(stream, &acceptor).await?)),
    };
    let mut first = [0; PREFACE.len()];
    let mut read = 0;
    while read < first.len() {
        let more = match &mut stream {
            Stream::Plain(stream) => stream.read(&mut first[read..]).await,
            Stream::Tls(stream) => stream.read(&mut first[read..]).await,
        };
        match more {
            Ok(0) | Err(_) if read == 0 => return Err(Rejected::default()),
            Ok(0) => return Err(Rejected::with_reason("it ended in the middle of the preface of HTTP/2")),
            Ok(more) => read += more,
            Err(error) => return Err(Rejected::with_reason(error)),
        }
        if first[..read] != PREFACE[..read] {
            return Err(no_grpc(stream, &first[..read]));
        }
    }
    Ok(stream)
}

/// Makes a connection an encrypted one, with a peer that shows a certificate.
async fn encrypt(stream: TcpStream, acceptor: &TlsAcceptor) -> Result<TlsStream<TcpStream>, Rejected> {
    let mut first = [0; 3];
    match stream.peek(&mut first).await {
        Ok(0) | Err(_) => return Err(Rejected::default()),
        Ok(read) if first[..read] == PREFACE[..read] => {
            let why = "no TLS as it is asked for: it speaks gRPC without encryption";
            let farewell = Some((stream, goaway(WANTS_TLS)));
            return Err(Rejected { why: Some(why.to_owned()), farewell });
        }
        Ok(_) => {}
    }
    // The alert that says why was sent when the handshake fails.
    acceptor.accept(stream).into_fallible().await.map_err(|(error, stream)| Rejected {
        why: Some(format!("no TLS as it is asked for: {error}")),
        farewell: Some((stream, Vec::new())),
    })
}

/// Rejects a connection that begins with these bytes, which no connection of gRPC does.
fn no_grpc(stream: Stream, first: &[u8]) -> Rejected {
    match stream {
        Stream::Plain(stream) if first[0] == TLS_HANDSHAKE => Rejected {
            why: Some(
                "it does not speak gRPC but TLS, and this agent was started without --tls-cert".to_owned(),
            ),
            farewell: Some((stream, HANDSHAKE_FAILURE.to_vec())),
        },
        _ => Rejected::with_reason(format!("it does not speak gRPC: \"{}\"", first.escape_ascii())),
    }
}

/// The frames of HTTP/2 by which a server says that it wants encryption (RFC 9113, 6.5 and 6.8).
fn goaway(words: &str) -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const INADEQUATE_SECURITY: u32 = 12;
    let len_bytes = (8 + words.len() as u32).to_be_bytes();
    let mut frames = SETTINGS.to_vec();
    frames.extend(&len_bytes[1..]);
    // The type of the frame, no flags, stream 0; then the last stream that was begun, which is none.
    frames.extend([7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frames.extend(INADEQUATE_SECURITY.to_be_bytes());
    frames.extend(words.as_bytes());
    frames
}

/// The encryption of an agent: with its own certificate, and only for controllers that have a certificate of the
/// authorities in `ca`.
///
/// # Errors
/// Returns the file that cannot be used, and why.
pub fn secure(cert: &Path, key: &Path, ca: &Path) -> Result<Arc<ServerConfig>, String> {
    let chain = certificates(cert)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| format!("'{}': {error}", key.display()))?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(ca)? {
        roots.add(authority).map_err(|error| format!("'{}': {error}", ca.display()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| format!("'{}': {error}", ca.display()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private)
        .map_err(|error| format!("'{}' and '{}': {error}", cert.display(), key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(format!("'{}': it has no certificate", path.display()))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("'{}': {error}", path.display())),
    }
}

/// A word that both ends have to know.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl fmt::Debug for Token {
    /// Leaves the word out.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Token")
    }
}

impl Token {
    /// Reads the token in the first line of a file.
    ///
    /// # Errors
    /// Returns the reason when the file cannot be read, or its first line is no word of visible characters.
    pub fn read(path: &Path) -> Result<Token, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("'{}' cannot be read: {error}", path.display()))?;
        Token::of(text.lines().next().unwrap_or_default())
            .map_err(|why| format!("'{}': its first line {why}", path.display()))
    }

    /// The token in a line.
    ///
    /// # Errors
    /// Returns the reason when the line is no word of visible characters.
    pub fn of(line: &str) -> Result<Token, String> {
        let word = line.trim();
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("has to be a word of visible ASCII characters".to_owned());
        }
        Ok(Token(word.into()))
    }

    /// The header in which a controller sends the token.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether a header shows this token. The time that the comparison takes tells nothing but the length.
    pub fn is_shown_by(&self, header: Option<&[u8]>) -> bool {
        header.is_some_and(|shown| shown.ct_eq(self.bearer().as_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_word_is_taken() {
        let token = Token("secret".into());
        assert!(token.is_shown_by(Some(b"Bearer secret")));
        for shown in [None, Some(&b"Bearer secre"[..]), Some(b"Bearer secres"), Some(b"secret"), Some(b"")] {
            assert!(!token.is_shown_by(shown), "{shown:?}");
        }
        assert!(!format!("{token:?}").contains("secret"));
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Token::read(&path).map(|token| token.bearer())
        };
        assert_eq!(read("abc\nsecond"), Ok("Bearer abc".to_owned()));
        assert_eq!(read(" abc \n"), Ok("Bearer abc".to_owned()));
        for text in ["", "\nabc", "a b", "ü"] {
            assert!(read(text).is_err(), "{text:?}");
        }
        assert!(Token::read(&directory.path().join("none")).is_err());
    }
}
