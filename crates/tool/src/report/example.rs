//! Runs as tests of reports tell them, without a server.
