//! `pummel agent cert`: certificates for tests, of an authority made for them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use pummel_fronts::exit_status::Exit;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::output::print;
use crate::stderr::say;

/// Options of `pummel agent cert`.
#[derive(Args, Clone, Debug)]
pub struct CertArgs {
    /// Where to write ca.pem, agent.pem, agent.key, controller.pem and controller.key. Existing files are not overwritten
    #[arg(long, value_name = "DIRECTORY", default_value = ".", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Name or IP address of an agent, as --agents will name it; may be repeated
    #[arg(long = "name", value_name = "NAME", default_values = ["localhost", "127.0.0.1", "::1"], value_delimiter = ',')]
    pub names: Vec<String>,
}

/// Makes an authority and the certificates of an agent and a controller, and writes them. Prints which files were written.
pub fn cert(args: &CertArgs) -> Exit {
    let made = make(&args.names).map_err(|error| format!("certificates cannot be made: {error}"));
    let written = made.and_then(|files| write(&args.directory, &files).map_err(|error| error.to_string()));
    match written {
        Ok(()) => {
            let text = format!(
                "ca.pem, agent.pem, agent.key, controller.pem and controller.key are in {}, for tests: the key of their \
                 authority was thrown away\n",
                args.directory.display()
            );
            match print(text.as_bytes()) {
                Ok(()) => Exit::Complete,
                Err(error) => failed(&error.to_string()),
            }
        }
        Err(error) => failed(&error),
    }
}

fn failed(what: &str) -> Exit {
    say(format_args!("error: {what}"));
    Exit::Failed
}

/// The names and the contents of the files.
type Files = [(&'static str, String); 5];

fn make(names: &[String]) -> Result<Files, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "pummel test authority");
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    let issuer = Issuer::new(params, key);
    let leaf = |name: &str, names: &[String], purpose: ExtendedKeyUsagePurpose| {
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let signed = params.signed_by(&key, &issuer)?;
        Ok::<_, rcgen::Error>((signed.pem(), key.serialize_pem()))
    };
    let (agent, agent_key) = leaf("pummel agent", names, ExtendedKeyUsagePurpose::ServerAuth)?;
    let (controller, controller_key) =
        leaf("pummel controller", &["controller".to_owned()], ExtendedKeyUsagePurpose::ClientAuth)?;
    Ok([
        ("ca.pem", authority.pem()),
        ("agent.pem", agent),
        ("agent.key", agent_key),
        ("controller.pem", controller),
        ("controller.key", controller_key),
    ])
}

/// Writes all files, keys so that only their owner can read them.
///
/// # Errors
/// Returns the error of the system with the file that cannot be written, or that exists already.
fn write(directory: &Path, files: &Files) -> io::Result<()> {
    let explained = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write '{}': {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| explained(directory, error))?;
    if let Some((name, _)) = files.iter().find(|(name, _)| directory.join(name).exists()) {
        return Err(explained(&directory.join(name), io::ErrorKind::AlreadyExists.into()));
    }
    for (name, text) in files {
        let path = directory.join(name);
        let mode = if name.ends_with(".key") { 0o600 } else { 0o644 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| explained(&path, error))?;
    }
    Ok(())
}
