//! An authority, and a certificate of it for `localhost`.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// The files of an authority and of a server that it vouches for.
pub struct Certificates(TempDir);

impl Certificates {
    pub fn make() -> Certificates {
        let made = Certificates(TempDir::new().expect("a temporary folder"));
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate().expect("a key");
        made.write("ca.pem", &params.self_signed(&key).expect("a certificate").pem());
        let authority = Issuer::new(params, key);
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        made.write("cert.pem", &params.signed_by(&key, &authority).expect("a certificate").pem());
        made.write("key.pem", &key.serialize_pem());
        made
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder can be written to");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// The authority's certificate.
    pub fn ca(&self) -> String {
        self.file("ca.pem")
    }

    /// The server's certificate.
    pub fn cert(&self) -> String {
        self.file("cert.pem")
    }

    /// The server's key.
    pub fn key(&self) -> String {
        self.file("key.pem")
    }
}
