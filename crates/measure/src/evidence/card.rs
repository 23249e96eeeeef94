//! Reason why a network card does not stamp packets by its own clock, from the answers of ethtool and the driver.
//!
//! The numbers are those of linux/ethtool.h (`struct ethtool_ts_info`) and linux/net_tstamp.h (`struct hwtstamp_config`).

use super::provenance::{stamps_packets, word};

/// HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL: the card stamps packets that ask for it, and all packets that come.
const TX_ON: u32 = 1;
const FILTER_ALL: u32 = 1;

/// Places of the fields in `struct ethtool_ts_info`, in words.
const TX_TYPES_WORD: usize = 3;
const RX_FILTERS_WORD: usize = 7;

/// Configuration of a card's stamps (`struct hwtstamp_config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampSetting {
    /// Kind of stamps for sent packets.
    pub tx_type: u32,
    /// Filter for stamps of received packets.
    pub rx_filter: u32,
}

/// The reason why the card `name` does not stamp the requests and replies of a run; `None` if it does. `info` is
/// ethtool's account of its stamps, and `setting` the driver's configuration, if it is known.
pub fn stamp_obstacle(name: &str, info: Option<&[u8]>, setting: Option<StampSetting>) -> Option<String> {
    let can = |info: &[u8]| {
        let has = |at: usize, bit: u32| word(info, at).is_some_and(|bits| bits & (1 << bit) != 0);
        stamps_packets(info) == Some(true) && has(TX_TYPES_WORD, TX_ON) && has(RX_FILTERS_WORD, FILTER_ALL)
    };
    if !info.is_some_and(can) {
        return Some(format!(
            "the network card {name} does not stamp all packets by a clock of its own (`ethtool -T {name}` says what it can); \
             --stamps tx takes the stamps of the kernel"
        ));
    }
    let is_set_up =
        setting.is_some_and(|setting| setting.tx_type == TX_ON && setting.rx_filter == FILTER_ALL);
    (!is_set_up).then(|| {
        format!(
            "the network card {name} can stamp packets, and is not set up to; as administrator, run `hwstamp_ctl -i {name} \
             -t 1 -r 1` (of linuxptp)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct ethtool_ts_info` with these fields.
    fn info(stamping: u32, tx_types: u32, rx_filters: u32) -> Vec<u8> {
        let words = [0x41, stamping, 0, tx_types, 0, 0, 0, rx_filters, 0, 0, 0];
        words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect()
    }

    const ABLE: u32 = 0x5f;

    #[test]
    fn a_card_that_is_able_and_set_up_has_no_obstacle() {
        let setting = |tx_type, rx_filter| Some(StampSetting { tx_type, rx_filter });
        let able = info(ABLE, 0b11, 0b11);
        assert_eq!(stamp_obstacle("eth0", Some(&able), setting(1, 1)), None);
        for other in [None, setting(0, 0), setting(1, 0), setting(0, 1), setting(1, 12)] {
            let why = stamp_obstacle("eth0", Some(&able), other).expect("it is not set up");
            assert!(why.contains("hwstamp_ctl -i eth0 -t 1 -r 1"), "{why}");
        }
        for unable in [info(0x18, 0b11, 0b11), info(ABLE, 0b01, 0b11), info(ABLE, 0b11, 0b01)] {
            let why = stamp_obstacle("lo", Some(&unable), setting(1, 1)).expect("it is not able");
            assert!(why.contains("ethtool -T lo") && why.contains("--stamps tx"), "{why}");
        }
        assert!(stamp_obstacle("lo", None, None).is_some());
        for cut in 0..able.len() {
            assert!(stamp_obstacle("eth0", Some(&able[..cut]), setting(1, 1)).is_some(), "cut at {cut}");
        }
    }
}
