//! Unix sockets of servers, before anything connects to them.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use pummel_fronts::job::UsageError;

/// Refuses a server whose path is that of something else than a socket. A path at which nothing is may become one.
///
/// # Errors
/// Returns [`UsageError::Value`] for the first such server.
pub fn check_sockets(servers: &[String]) -> Result<(), UsageError> {
    for server in servers.iter().filter(|server| server.starts_with('/')) {
        let Ok(present) = fs::metadata(server) else { continue };
        let kind = present.file_type();
        let what = match () {
            () if kind.is_socket() => continue,
            () if kind.is_dir() => "a directory",
            () if kind.is_file() => "a file",
            () => "no socket",
        };
        return Err(UsageError::Value {
            flag: "--server".to_owned(),
            value: server.clone(),
            accepted: format!("expected a unix socket, and this is {what}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_directory_or_a_file_in_place_of_a_socket_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("file"), "").unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        let told = |server: String| {
            check_sockets(&["127.0.0.1:1".to_owned(), server]).err().map(|error| error.to_string())
        };
        assert_eq!(told(at("socket")), None);
        assert_eq!(told(at("absent")), None);
        assert!(told(at("file")).is_some_and(|said| said.ends_with("this is a file")));
        assert!(told(at("")).is_some_and(|said| said.ends_with("this is a directory")));
        assert!(told("/dev/null".to_owned()).is_some_and(|said| said.ends_with("this is no socket")));
    }
}
