//! Which build of pummel this is.

use pummel_report::Build;

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first 12 digits of the commit that was built; `unknown` in builds for development and of sources without git.
pub const COMMIT: &str = env!("PUMMEL_COMMIT");

/// A hash of the sources that were built, 16 hexadecimal digits.
pub const SOURCES: &str = env!("PUMMEL_SOURCES");

/// Cargo's profile: `release`, `quick`, `dev` or another of the builder's own.
pub const PROFILE: &str = env!("PUMMEL_PROFILE");

/// The platform that the program was built for, as Rust names it, such as `x86_64-unknown-linux-gnu`.
pub const TARGET: &str = env!("PUMMEL_TARGET");

/// The optional parts that were built in, such as `agents, live`, or `none`.
pub const FEATURES: &str = env!("PUMMEL_FEATURES");

/// What results say of this build.
pub const BUILD: Build = Build { commit: COMMIT, profile: PROFILE, target: TARGET, features: FEATURES };

/// What `pummel --version` says behind the program's name.
pub const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("PUMMEL_COMMIT"),
    "\nprofile: ",
    env!("PUMMEL_PROFILE"),
    "\ntarget: ",
    env!("PUMMEL_TARGET"),
    "\nfeatures: ",
    env!("PUMMEL_FEATURES"),
);
