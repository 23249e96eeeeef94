//! Turns the protocol of agents into Rust, without a protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const PROTO: &str = "proto/agent.proto";
    println!("cargo::rerun-if-changed={PROTO}");
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "agents")]
    {
        use prost::Message;
        let described = protox::compile([PROTO], ["proto"])?;
        let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
        std::fs::write(out.join("agent.bin"), described.encode_to_vec())?;
        tonic_prost_build::configure().bytes(".").compile_fds(described)?;
    }
    Ok(())
}
