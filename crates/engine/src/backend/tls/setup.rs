//! The setup of TLS connections: the trusted authorities, the client's certificate, and the name that each server must
//! prove.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pummel_logic::plan::TlsOptions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

use super::words;
use crate::backend::Target;
use crate::resolve::Server;

/// Number of servers whose sessions a worker keeps to resume them.
const SESSIONS_MAX: usize = 256;

/// A function that returns the content of the file at a path.
pub type FileReader = dyn Fn(&str) -> io::Result<Vec<u8>> + Send + Sync;

/// The settings that the TLS connections of a run share.
#[derive(Clone, Debug)]
pub struct Setup {
    config: ClientConfig,
    names: Names,
}

/// The configuration of a server's TLS connections: its certificate and key, and the authorities of its clients'
/// certificates where clients need one.
///
/// # Errors
/// Returns [`TlsError::Unreadable`] for a file that cannot be read, [`TlsError::Content`] for one without what it
/// should hold, and [`TlsError::Identity`] when the key does not belong to the certificate.
pub fn server_config(cert: &str, key: &str, ca: Option<&str>) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for TLS 1.2 and 1.3");
    let builder = match ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let store = Arc::new(authorities(path, certificates(path, &read_file)?)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(store, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| no_authorities(path, &error))?)
        }
    };
    let config = builder.with_single_cert(certificates(cert, &read_file)?, private_key(key, &read_file)?);
    config.map(Arc::new).map_err(|error| TlsError::Identity {
        cert: cert.to_owned(),
        key: key.to_owned(),
        error,
    })
}

/// The name that the certificate of a server must be for.
#[derive(Clone, Debug)]
enum Names {
    /// One name for all servers.
    One(ServerName<'static>),
    /// The name of each server by its address.
    ByAddress(HashMap<SocketAddr, ServerName<'static>>),
}

/// Why TLS cannot be set up. The text of each variant says what can be done about it.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable {
        /// Path of the file.
        path: String,
        /// The error of the read.
        error: io::Error,
    },
    /// A file does not hold what it should.
    Content {
        /// Path of the file.
        path: String,
        /// The content that the file should have.
        wanted: &'static str,
        /// The fault of the file.
        error: String,
    },
    /// There is a certificate without a key, or a key without a certificate.
    Half,
    /// The certificate and the key cannot be used, or not together.
    Identity {
        /// Path of the certificate.
        cert: String,
        /// Path of the key.
        key: String,
        /// The error of rustls.
        error: rustls::Error,
    },
    /// The system has no certificates of authorities.
    NoAuthorities,
    /// A name is neither one of the domain name system nor an IP address.
    Name(String),
    /// A unix socket has no name that a certificate could be for.
    Nameless(String),
    /// Servers with different names are at one address, so that it is not known which name is to be proved there.
    TwoNames {
        /// Names of the servers.
        names: [String; 2],
        /// Address of the servers.
        address: SocketAddr,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable { path, error } => write!(to, "{path:?} could not be read: {error}"),
            TlsError::Content { path, wanted, error } => {
                write!(to, "{path:?} holds no {wanted} in the PEM format ({error})")
            }
            TlsError::Half => to.write_str(
                "a certificate of the client and its private key are needed together: give both, or neither",
            ),
            TlsError::Identity { cert, key, error } => {
                write!(to, "the certificate in {cert:?} cannot be used with the key in {key:?}: {error}")
            }
            TlsError::NoAuthorities => to.write_str(
                "this system has no certificates of authorities to check servers with: give a file with those of \
                 the servers' authority, or install the package ca-certificates",
            ),
            TlsError::Name(name) => {
                write!(to, "{name:?} is no name for a certificate: use a host name or an IP address")
            }
            TlsError::Nameless(server) => write!(
                to,
                "{server:?} is a unix socket, which has no name that a certificate could be for: say which name \
                 the server's certificate has"
            ),
            TlsError::TwoNames { names: [one, other], address } => write!(
                to,
                "{one:?} and {other:?} are both at {address}: say which name the servers' certificates have"
            ),
        }
    }
}

impl std::error::Error for TlsError {}

impl Setup {
    /// Reads the files that the options name, and determines the name that each server must prove.
    ///
    /// # Errors
    /// Returns [`TlsError::Unreadable`] or [`TlsError::Content`] for a file that cannot be used,
    /// [`TlsError::NoAuthorities`] when this system trusts none, [`TlsError::Half`] for a certificate without a key,
    /// [`TlsError::Identity`] when the two do not belong together, [`TlsError::Name`] for a name that no certificate
    /// has, [`TlsError::Nameless`] for a unix socket whose name is not given, and [`TlsError::TwoNames`] for two
    /// servers of one address.
    pub fn new(options: &TlsOptions, servers: &[Server]) -> Result<Setup, TlsError> {
        Setup::with_files(options, servers, &read_file)
    }

    /// [`Setup::new`] with files that `read` returns the contents of, by their paths in the options.
    ///
    /// # Errors
    /// Returns the errors of [`Setup::new`].
    pub fn with_files(
        options: &TlsOptions,
        servers: &[Server],
        read: &FileReader,
    ) -> Result<Setup, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for TLS 1.2 and 1.3");
        let verifier = match options.insecure {
            true => Verifier::Any(provider),
            false => Verifier::of_authorities(options.ca.as_deref(), provider, read)?,
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&options.cert, &options.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(certificates(cert, read)?, private_key(key, read)?)
                .map_err(|error| TlsError::Identity { cert: cert.clone(), key: key.clone(), error })?,
            _ => return Err(TlsError::Half),
        };
        Ok(Setup { config, names: Names::of(options, servers)? })
    }

    /// The configuration for one worker, which remembers sessions of its own: workers share nothing while they run.
    pub(super) fn config(&self) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Arc::new(config)
    }

    /// The name that the certificate of the server at `target` must be for.
    pub(super) fn name(&self, target: &Target) -> ServerName<'static> {
        match (&self.names, target) {
            (Names::One(name), _) => name.clone(),
            (Names::ByAddress(names), Target::Tcp { address, .. }) => {
                // A node that joined its cluster later is known by its address alone.
                names.get(address).cloned().unwrap_or_else(|| ServerName::IpAddress(address.ip().into()))
            }
            (Names::ByAddress(_), Target::Unix(_) | Target::Udp { .. }) => {
                unreachable!("a unix socket without a name is refused")
            }
        }
    }
}

impl Names {
    fn of(options: &TlsOptions, servers: &[Server]) -> Result<Names, TlsError> {
        if let Some(name) = &options.server_name {
            return parse_name(name).map(Names::One);
        }
        let mut names: HashMap<SocketAddr, ServerName<'static>> = HashMap::new();
        for server in servers {
            let Some(host) = server.host() else {
                return Err(TlsError::Nameless(server.name().to_owned()));
            };
            let name = parse_name(host)?;
            for &address in server.socket_addresses() {
                let present = names.entry(address).or_insert_with(|| name.clone());
                if *present != name {
                    let names = [present.to_str().into_owned(), host.to_owned()];
                    return Err(TlsError::TwoNames { names, address });
                }
            }
        }
        Ok(Names::ByAddress(names))
    }
}

fn parse_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

/// The certificates of a file as authorities.
fn authorities(path: &str, certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate).map_err(|error| no_authorities(path, &error))?;
    }
    Ok(store)
}

/// The authorities that the system trusts.
fn authorities_of_system() -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    // Some of a system's certificates may be too old to be understood; the others serve.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() { Err(TlsError::NoAuthorities) } else { Ok(store) }
}

fn certificates(path: &str, read: &FileReader) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = content_of(path, read)?;
    let wrong = |error| wrong_content(path, "certificate", &error);
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match all.map_err(wrong)? {
        none if none.is_empty() => Err(wrong(pem::Error::NoItemsFound)),
        certificates => Ok(certificates),
    }
}

fn private_key(path: &str, read: &FileReader) -> Result<PrivateKeyDer<'static>, TlsError> {
    let content = content_of(path, read)?;
    PrivateKeyDer::from_pem_slice(&content)
        .map_err(|error| wrong_content(path, "unencrypted private key", &error))
}

fn content_of(path: &str, read: &FileReader) -> Result<Vec<u8>, TlsError> {
    read(path).map_err(|error| TlsError::Unreadable { path: path.to_owned(), error })
}

fn read_file(path: &str) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

fn wrong_content(path: &str, wanted: &'static str, error: &dyn fmt::Display) -> TlsError {
    TlsError::Content { path: path.to_owned(), wanted, error: error.to_string() }
}

fn no_authorities(path: &str, error: &dyn fmt::Display) -> TlsError {
    wrong_content(path, "usable certificates of authorities", error)
}

/// The verifier of servers' certificates.
#[derive(Debug)]
enum Verifier {
    /// Every certificate is accepted, since the user asked for it; the provider knows the kinds of signatures.
    Any(Arc<CryptoProvider>),
    /// Authorities are trusted, and beside them every server's certificate that the file of authorities holds byte for byte. A
    /// self-signed certificate is often made as that of an authority (CA:TRUE), which is none of a server by the rules of chains.
    Listed {
        chains: Arc<WebPkiServerVerifier>,
        /// The certificates in the file of authorities; none where the authorities are those of the system.
        listed: Vec<CertificateDer<'static>>,
    },
}

impl Verifier {
    /// The verifier that trusts the authorities in the file at `path`, or those of the system.
    fn of_authorities(
        path: Option<&str>,
        provider: Arc<CryptoProvider>,
        read: &FileReader,
    ) -> Result<Verifier, TlsError> {
        let listed = path.map(|path| certificates(path, read)).transpose()?.unwrap_or_default();
        let store = match path {
            Some(path) => authorities(path, listed.clone())?,
            None => authorities_of_system()?,
        };
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .expect("there is an authority, and there are no lists of revoked certificates");
        Ok(Verifier::Listed { chains, listed })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Verifier::Listed { chains, listed } = self else { return Ok(ServerCertVerified::assertion()) };
        match chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The dates of a certificate are checked before its chain: one of another time has another error.
            Err(rustls::Error::InvalidCertificate(error))
                if (words::is_authority(&error) || error == CertificateError::UnknownIssuer)
                    && listed.iter().any(|listed| listed == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self {
            Verifier::Any(_) => Ok(HandshakeSignatureValid::assertion()),
            Verifier::Listed { chains, .. } => chains.verify_tls12_signature(message, cert, dss),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self {
            Verifier::Any(_) => Ok(HandshakeSignatureValid::assertion()),
            Verifier::Listed { chains, .. } => chains.verify_tls13_signature(message, cert, dss),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Verifier::Any(provider) => provider.signature_verification_algorithms.supported_schemes(),
            Verifier::Listed { chains, .. } => chains.supported_verify_schemes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Sources;

    fn server(name: &str) -> Server {
        Server::resolve(name, &Sources::default()).unwrap()
    }

    fn insecure() -> TlsOptions {
        TlsOptions { insecure: true, ..TlsOptions::default() }
    }

    #[test]
    fn a_server_has_to_prove_the_name_that_it_was_asked_for_by() {
        let servers = [server("localhost:7"), server("127.0.0.2:7"), server("[::1]:8")];
        let setup = Setup::new(&insecure(), &servers).unwrap();
        for (server, name) in servers.iter().zip(["localhost", "127.0.0.2", "::1"]) {
            for attempt in 0..server.addresses() {
                assert_eq!(setup.name(&server.target(0, attempt)).to_str(), name);
            }
        }
    }

    #[test]
    fn a_name_of_its_own_goes_before_the_names_of_servers() {
        let options = TlsOptions { server_name: Some("cache.example".to_owned()), ..insecure() };
        let server = server("/run/memcached.sock");
        let setup = Setup::new(&options, std::slice::from_ref(&server)).unwrap();
        assert_eq!(setup.name(&server.target(0, 0)).to_str(), "cache.example");
    }

    #[test]
    fn what_has_no_certain_name_is_refused() {
        let refused = |names: &[&str]| {
            let servers: Vec<Server> = names.iter().map(|name| server(name)).collect();
            Setup::new(&insecure(), &servers).unwrap_err()
        };
        assert!(matches!(refused(&["/run/memcached.sock"]), TlsError::Nameless(_)));
        assert!(matches!(refused(&["127.0.0.1:7", "localhost:7"]), TlsError::TwoNames { .. }));
        let options = TlsOptions { server_name: Some("no name".to_owned()), ..insecure() };
        assert!(matches!(Setup::new(&options, &[]), Err(TlsError::Name(_))));
    }

    #[test]
    fn files_that_are_not_there_or_hold_something_else_are_named() {
        let missing = TlsOptions { ca: Some("/nonexistent/ca.pem".to_owned()), ..TlsOptions::default() };
        let error = Setup::new(&missing, &[]).unwrap_err();
        assert!(matches!(error, TlsError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains("/nonexistent/ca.pem"));
        let empty = TlsOptions { ca: Some("/dev/null".to_owned()), ..TlsOptions::default() };
        assert!(matches!(Setup::new(&empty, &[]), Err(TlsError::Content { .. })));
        let half = TlsOptions { cert: Some("/dev/null".to_owned()), ..insecure() };
        assert!(matches!(Setup::new(&half, &[]), Err(TlsError::Half)));
    }
}
