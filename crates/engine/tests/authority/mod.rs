//! Certificates that tests make for themselves, and the server's side of TLS.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use pummel_logic::plan::TlsOptions;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream, SupportedProtocolVersion};
use tempfile::TempDir;

/// An authority that signs certificates.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate with its key, also as files.
pub struct Identity {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
    pub cert_path: String,
    pub key_path: String,
}

/// Time for which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Valid now, and for a long time.
    Now,
    /// Valid until long ago.
    Past,
    /// Valid from a far day on.
    Future,
}

impl Authority {
    pub fn new() -> Authority {
        Authority::with(&[], Validity::Now)
    }

    /// An authority whose own certificate is also for these names, as programs make a self-signed one.
    pub fn with(names: &[&str], validity: Validity) -> Authority {
        let mut params = params(names, validity);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // No two authorities have one name: a certificate is looked up by the name of its authority.
        let name: String = key.public_key_raw().iter().map(|byte| format!("{byte:02x}")).take(20).collect();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key), directory }
    }

    /// The path of a file with the authority's certificate, for clients that trust it.
    pub fn file(&self) -> String {
        path(&self.directory.path().join("ca.pem"))
    }

    /// Options that trust this authority, and expect servers to be `localhost`.
    pub fn options(&self) -> TlsOptions {
        TlsOptions {
            ca: Some(self.file()),
            server_name: Some("localhost".to_owned()),
            ..TlsOptions::default()
        }
    }

    /// A certificate for these names.
    pub fn issue(&self, names: &[&str], validity: Validity) -> Identity {
        let mut params = params(names, validity);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.keep(&certificate, &key)
    }

    /// The certificate of an authority, shown as if it were that of a server.
    pub fn issue_itself(&self) -> Identity {
        self.keep(&self.certificate, self.issuer.key())
    }

    fn keep(&self, certificate: &Certificate, key: &KeyPair) -> Identity {
        let count = fs::read_dir(self.directory.path()).unwrap().count();
        let file = |kind: &str| self.directory.path().join(format!("{count}-{kind}.pem"));
        fs::write(file("cert"), certificate.pem()).unwrap();
        fs::write(file("key"), key.serialize_pem()).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            cert_path: path(&file("cert")),
            key_path: path(&file("key")),
        }
    }

    /// A server for `localhost`, as most tests want it.
    pub fn server(&self) -> Arc<ServerConfig> {
        server(&self.issue(&["localhost"], Validity::Now), None, rustls::ALL_VERSIONS)
    }
}

fn params(names: &[&str], validity: Validity) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    (params.not_before, params.not_after) = match validity {
        Validity::Now => (date_time_ymd(2000, 1, 1), date_time_ymd(2900, 1, 1)),
        Validity::Past => (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1)),
        Validity::Future => (date_time_ymd(2800, 1, 1), date_time_ymd(2900, 1, 1)),
    };
    params
}

fn path(path: &Path) -> String {
    path.to_str().expect("temporary directories have plain names").to_owned()
}

/// A server with that certificate, which wants its clients to have one of `of_clients`.
pub fn server(
    identity: &Identity,
    of_clients: Option<&Authority>,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions).unwrap();
    let builder = match of_clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.certificate.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key());
    Arc::new(config.unwrap())
}

/// The server's end of an encrypted connection. Dropping it sends a close alert.
pub struct Secured<S: Read + Write> {
    tls: ServerConnection,
    stream: Sips<S>,
    polite: bool,
}

/// Takes one byte at a time, so that nothing behind a handshake is read with it.
struct Sips<S>(S);

impl<S: Read + Write> Secured<S> {
    /// Waits until both sides have agreed.
    pub fn agree(stream: S, config: &Arc<ServerConfig>) -> io::Result<Secured<S>> {
        let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
        let mut stream = Sips(stream);
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        Ok(Secured { tls, stream, polite: true })
    }

    /// Makes the end of the connection come without a close alert.
    pub fn turn_rude(&mut self) {
        self.polite = false;
    }

    /// Connection below TLS.
    pub fn raw(&self) -> &S {
        &self.stream.0
    }
}

impl<S: Read> Read for Sips<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(1);
        self.0.read(&mut into[..len])
    }
}

impl<S: Write> Write for Sips<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<S: Read + Write> Read for Secured<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Stream::new(&mut self.tls, &mut self.stream.0).read(into)
    }
}

impl<S: Read + Write> Write for Secured<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::new(&mut self.tls, &mut self.stream.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Stream::new(&mut self.tls, &mut self.stream.0).flush()
    }
}

impl<S: Read + Write> Drop for Secured<S> {
    fn drop(&mut self) {
        if self.polite {
            self.tls.send_close_notify();
        }
        while self.tls.wants_write() {
            // The other end may be gone, which is its right.
            if self.tls.write_tls(&mut self.stream.0).is_err() {
                return;
            }
        }
    }
}
