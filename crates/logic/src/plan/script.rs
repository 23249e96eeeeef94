//! The script that commands call by its name, and which every connection loads.

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// Most bytes of a script: every connection sends it once.
pub const SCRIPT_MAX_BYTES: usize = 64 << 10;

/// The script whose name stands in place of `__script__` in commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Name of the file that the script was read from, for messages: the file is not read again.
    pub path: String,
    /// The script itself, which every connection loads before its first request (`SCRIPT LOAD`).
    pub text: String,
}

impl Script {
    /// The name by which servers know the script: its SHA-1 in small hexadecimal digits.
    pub fn name(&self) -> String {
        script_name(self.text.as_bytes())
    }
}

/// The name by which servers know a script: its SHA-1 in small hexadecimal digits.
pub fn script_name(script: &[u8]) -> String {
    Sha1::digest(script).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_the_name_that_redis_gives_it() {
        // The answers of redis-cli SCRIPT LOAD.
        for (text, name) in [
            ("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ] {
            let script = Script { path: "a.lua".to_owned(), text: text.to_owned() };
            assert_eq!(script.name(), name);
        }
    }
}
