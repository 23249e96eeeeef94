//! The network cards on the way to the servers, and whether they stamp sent and received packets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use pummel_measure::evidence::card::{StampSetting, stamp_obstacle};

use crate::resolve::Server;
use crate::sys::{self, EthtoolQuestion};

/// Finds out whether the cards on the way to all addresses of the servers stamp packets by their own clocks. Nothing is sent, and
/// no card is set up: that is the administrator's.
///
/// # Errors
/// Returns an error that says why the first unsuitable card does not stamp, and the command that sets it up if that
/// is possible; and the error of the kernel if the route to a server is not known.
pub fn check(servers: &[Server]) -> io::Result<()> {
    if servers.iter().any(Server::is_unix) {
        return Err(io::Error::other("unix sockets have no network card"));
    }
    for &address in servers.iter().flat_map(Server::socket_addresses) {
        let name = card_towards(address)?;
        let info = sys::ethtool(&name, EthtoolQuestion::Stamps).ok();
        let setting = sys::stamp_setting(&name).ok();
        let setting = setting.map(|(tx_type, rx_filter)| StampSetting { tx_type, rx_filter });
        if let Some(why) = stamp_obstacle(&name, info.as_deref(), setting) {
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Name of the card by which packets to an address leave.
fn card_towards(address: SocketAddr) -> io::Result<String> {
    // What is sent to an address of this machine goes through loopback.
    if sys::is_own_address(address.ip()) {
        return Ok("lo".to_owned());
    }
    let any: IpAddr = match address {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    };
    // Connecting a socket of UDP asks for the way and sends nothing.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    let own = socket.local_addr()?.ip();
    let name = sys::device_with(own)?;
    name.ok_or_else(|| {
        io::Error::other(format!("no network card has the address {own}, by which {address} is reached"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Sources;

    #[test]
    fn loopback_is_refused_with_what_it_could_have_in_place_of_it() {
        for name in ["127.0.0.1:11211", "127.0.0.5:1"] {
            let server = Server::resolve(name, &Sources::default()).unwrap();
            let why = check(&[server]).unwrap_err().to_string();
            assert!(
                why.contains("card lo") && why.contains("ethtool -T lo") && why.contains("--stamps tx"),
                "{why}"
            );
        }
    }
}
