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
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, Receiver};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::agent::peers::{Closing, PEERS_MAX, Peer, Peers, Place};
use crate::agent::refusals::refused;
use crate::stderr::say;

/// What every connection of gRPC begins with: the preface of HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait when the system gives no connection, because there are too many already.
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
            refused(self.place.peer.address, closing);
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
pub fn open(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Receiver<Wire> {
    let (through, wires) = mpsc::channel(PEERS_MAX);
    let acceptor = tls.map(TlsAcceptor::from);
    let peers = Arc::new(Peers::default());
    tokio::spawn(async move {
        while !through.is_closed() {
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    say(format_args!("a connection could not be taken: {error}"));
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
    let greeted = tokio::select! {
        greeted = begin(stream, acceptor) => greeted,
        closing = Arc::clone(&peer).closing() => Err(Some(closing.to_string())),
    };
    match greeted {
        // Nothing is left to be done for the peer when the agent ends.
        Ok(stream) => drop(through.send(Wire::new(stream, place)).await),
        Err(Some(why)) => refused(peer.address, why),
        // A peer that only looks whether the port is open, as health checks do, is no attempt.
        Err(None) => {}
    }
}

/// Encrypts a connection, if that is wanted, and reads how it begins. Returns `Err(None)` where the connection ended before
/// its first byte.
async fn begin(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Result<Stream, Option<String>> {
    // Without it, small messages wait for each other; a connection that has gone already is found out below.
    let _ = stream.set_nodelay(true);
    let mut stream = match acceptor {
        None => Stream::Plain(stream),
        Some(acceptor) => {
            if let Ok(0) = stream.peek(&mut [0]).await {
                return Err(None);
            }
            let secured = acceptor.accept(stream).await;
            Stream::Tls(Box::new(
                secured.map_err(|error| Some(format!("no TLS as it is asked for: {error}")))?,
            ))
        }
    };
    let mut first = [0; PREFACE.len()];
    let mut read = 0;
    while read < first.len() {
        let more = match &mut stream {
            Stream::Plain(stream) => stream.read(&mut first[read..]).await,
            Stream::Tls(stream) => stream.read(&mut first[read..]).await,
        };
        match more {
            Ok(0) | Err(_) if read == 0 => return Err(None),
            Ok(0) => return Err(Some("it ended in the middle of the preface of HTTP/2".to_owned())),
            Ok(more) => read += more,
            Err(error) => return Err(Some(error.to_string())),
        }
        if first[..read] != PREFACE[..read] {
            return Err(Some(format!("it does not speak gRPC: \"{}\"", first[..read].escape_ascii())));
        }
    }
    Ok(stream)
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
        let known = self.bearer();
        let Some(shown) = header.filter(|shown| shown.len() == known.len()) else { return false };
        shown.iter().zip(known.as_bytes()).fold(0, |different, (one, other)| different | (one ^ other)) == 0
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
