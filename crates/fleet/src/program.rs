//! The program that an agent or a controller runs in: which build it is, and where its words go.

use std::fmt;
use std::io;

use pummel_measure::measurement::Measurement;

use crate::agent::proto::v2;

/// Facts and outlets that a program gives to the parts of it that are agents and controllers.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The version of the program.
    pub version: &'static str,
    /// The first digits of the commit that was built; `unknown` where it is not known.
    pub commit: &'static str,
    /// A hash of the sources that were built, by which builds are told apart.
    pub sources: &'static str,
    /// Enters the program into what its process measured.
    pub note_build: fn(&mut Measurement),
    /// Says a line on standard error, given without its end.
    pub say: fn(fmt::Arguments<'_>),
    /// Writes to standard output.
    pub print: fn(&[u8]) -> io::Result<()>,
}

impl Program {
    /// The build, as messages name it.
    pub fn build(&self) -> v2::Build {
        v2::Build {
            version: self.version.to_owned(),
            commit: self.commit.to_owned(),
            sources: self.sources.to_owned(),
        }
    }
}

#[cfg(test)]
impl Program {
    /// A program that says nothing.
    pub(crate) const SILENT: Program = Program {
        version: "1",
        commit: "c",
        sources: "s",
        note_build: |_| {},
        say: |_| {},
        print: |_| Ok(()),
    };
}
