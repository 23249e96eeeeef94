//! Who may speak to an agent: connections are taken, encrypted and looked at before anybody is listened to.

use std::fmt;
use std::io;
use std::net::SocketAddr;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::stderr::say;

/// What every connection of gRPC begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a connection may take to say that it is one of gRPC.
const HURRY: Duration = Duration::from_secs(3);

/// Most connections at one time: a controller needs one, and others only ask who has the agent.
const CONNECTIONS_MAX: usize = 64;

/// How long to wait when the system gives no connection, because there are too many already.
const PAUSE: Duration = Duration::from_millis(50);

/// Who opened a connection.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// From where.
    pub address: SocketAddr,
}

/// A connection that speaks gRPC, encrypted or not.
pub struct Wire {
    stream: Stream,
    /// What was read to see who it is, and is still to be read: the rest of the preface.
    unread: &'static [u8],
    caller: Caller,
    _room: OwnedSemaphorePermit,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl fmt::Debug for Wire {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Wire").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl Connected for Wire {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

/// Takes connections for as long as somebody wants them. Those that are refused are said on standard error.
pub fn open(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Receiver<Wire> {
    let (through, wires) = mpsc::channel(CONNECTIONS_MAX);
    let acceptor = tls.map(TlsAcceptor::from);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
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
            let Ok(room) = Arc::clone(&room).try_acquire_owned() else {
                refused(address, format_args!("there are {CONNECTIONS_MAX} connections already"));
                continue;
            };
            let (through, acceptor) = (through.clone(), acceptor.clone());
            tokio::spawn(async move {
                let greeted = timeout(HURRY, greet(stream, acceptor)).await;
                match greeted.unwrap_or_else(|_| Err(Some("it said nothing of use for 3 s".to_owned()))) {
                    Ok(stream) => {
                        let wire = Wire { stream, unread: PREFACE, caller: Caller { address }, _room: room };
                        // The agent ends.
                        let _ = through.send(wire).await;
                    }
                    Err(Some(why)) => refused(address, why),
                    // Whoever only looks whether the port is open, as health checks do, is no attempt.
                    Err(None) => {}
                }
            });
        }
    });
    wires
}

/// Says that somebody was sent away.
pub fn refused(address: SocketAddr, why: impl fmt::Display) {
    say(format_args!("refused {address}: {why}"));
}

/// Encrypts a connection, if that is wanted, and reads how it begins. `Err(None)` where it ended without a word.
async fn greet(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Result<Stream, Option<String>> {
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
            Ok(0) => return Err(Some("it ended in the middle of its first words".to_owned())),
            Ok(more) => read += more,
            Err(error) => return Err(Some(error.to_string())),
        }
        if first[..read] != PREFACE[..read] {
            return Err(Some(format!("it does not speak gRPC: \"{}\"", first[..read].escape_ascii())));
        }
    }
    Ok(stream)
}

/// The encryption of an agent: with its own certificate, and only for those who have one from the authorities in `ca`.
///
/// # Errors
/// What is wrong with which file.
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
    /// Without the word.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Token")
    }
}

impl Token {
    /// The first line of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no word of visible characters.
    pub fn read(path: &Path) -> Result<Token, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("'{}' cannot be read: {error}", path.display()))?;
        Token::of(text.lines().next().unwrap_or_default())
            .map_err(|why| format!("'{}': its first line {why}", path.display()))
    }

    /// This word.
    ///
    /// # Errors
    /// When it is none.
    pub fn of(line: &str) -> Result<Token, String> {
        let word = line.trim();
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("has to be a word of visible ASCII characters".to_owned());
        }
        Ok(Token(word.into()))
    }

    /// How it is sent.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether these are the same words. How long it takes tells nothing but their length.
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
