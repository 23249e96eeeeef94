//! Laws of what reads a cluster's words, as functions that tests and fuzz targets run.

use super::map::SlotMap;
use super::nodes::{NodeName, NodeTable};
use super::redirect::{Redirect, read_redirect};
use super::slots_reply::read_slots_reply;
use crate::client::route::crc16::SLOTS;

/// Checks that the reply to `CLUSTER SLOTS` that is read from any bytes can be, whatever its nodes are called by.
///
/// # Panics
/// Panics if a law does not hold.
pub fn fuzz_slots_reply(bytes: &[u8]) {
    for prefers_ip in [false, true] {
        slots_reply_can_be(bytes, prefers_ip);
    }
}

fn asked() -> NodeName {
    NodeName { host: "asked.example".to_owned(), port: 7101 }
}

fn slots_reply_can_be(bytes: &[u8], prefers_ip: bool) {
    let whole = read_slots_reply(bytes, &asked(), prefers_ip);
    let longer = [bytes, b"\r\n*0\r\n"].concat();
    let Ok(Some((reply, used))) = &whole else {
        if whole.is_err() {
            assert_eq!(
                read_slots_reply(&longer, &asked(), prefers_ip),
                whole,
                "more bytes do not mend a reply"
            );
        }
        return;
    };
    assert_eq!(
        read_slots_reply(&longer, &asked(), prefers_ip),
        whole,
        "what follows a reply does not change it"
    );
    for cut in (0..*used).rev().step_by(used.div_ceil(64).max(1)) {
        assert_eq!(read_slots_reply(&bytes[..cut], &asked(), prefers_ip), Ok(None), "cut at {cut} of {used}");
    }
    for range in &reply.ranges {
        assert!(range.first <= range.last && usize::from(range.last) < SLOTS);
        range.master.iter().chain(&range.replicas).for_each(|node| name_can_be(&node.name));
    }
    let mut nodes = NodeTable::new(3);
    let map = SlotMap::of(reply, &mut nodes);
    let owned: u32 = map.masters().map(|node| map.slots_of(node)).sum();
    assert_eq!(owned + map.unowned_slots(), SLOTS as u32);
    assert!(map.members().all(|node| usize::from(node) < nodes.len()));
}

/// Checks that the redirect that is read from any message of an error can be.
///
/// # Panics
/// Panics if a law does not hold.
pub fn fuzz_redirect(message: &[u8]) {
    if let Some(Redirect::Moved { slot, node } | Redirect::Ask { slot, node }) =
        read_redirect(message, &asked())
    {
        assert!(usize::from(slot) < SLOTS);
        node.iter().for_each(name_can_be);
    }
}

fn name_can_be(name: &NodeName) {
    assert_eq!(NodeName::parse(&name.to_string()).as_ref(), Some(name));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};
    use proptest::sample::{Index, select};

    const REPLIES: [&str; 4] = [
        "*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7101\r\n$2\r\nid\r\n*0\r\n*4\r\n$1\r\n?\r\n:7105\r\n$2\r\nid\r\n*2\r\n\
         $2\r\nip\r\n$3\r\n::1\r\n*3\r\n:5461\r\n:16383\r\n*2\r\n$-1\r\n:7102\r\n",
        ">2\r\n+invalidate\r\n_\r\n*1\r\n*3\r\n:0\r\n:1\r\n*4\r\n_\r\n:7101\r\n+id\r\n%1\r\n$2\r\nip\r\n$1\r\na\r\n",
        "-ERR This instance has cluster support disabled\r\n",
        "*0\r\n",
    ];

    const MESSAGES: [&str; 5] = [
        "MOVED 12182 127.0.0.1:7103",
        "ASK 1 [::1]:71",
        "MOVED 3 :1",
        "ASK 3 ?:1",
        "CLUSTERDOWN The cluster is down",
    ];

    /// Puts a byte, a piece of the text itself, or nothing in the place of some bytes.
    fn damaged(text: &str, changes: &[(Index, Index, u8)]) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for (at, from, byte) in changes {
            let at = at.index(bytes.len() + 1);
            let behind = (at + usize::from(byte % 4)).min(bytes.len());
            let from = from.index(bytes.len() + 1);
            let piece = match byte % 3 {
                0 => vec![*byte],
                1 => bytes[from..].to_vec(),
                _ => Vec::new(),
            };
            bytes.splice(at..behind, piece);
        }
        bytes
    }

    proptest! {
        #[test]
        fn damaged_replies_are_read_as_one_that_can_be_or_refused(
            text in select(&REPLIES[..]),
            changes in vec((any::<Index>(), any::<Index>(), any::<u8>()), 0..4),
        ) {
            fuzz_slots_reply(&damaged(text, &changes));
        }

        #[test]
        fn damaged_messages_name_a_slot_and_a_node_that_can_be_or_none(
            text in select(&MESSAGES[..]),
            changes in vec((any::<Index>(), any::<Index>(), any::<u8>()), 0..4),
        ) {
            fuzz_redirect(&damaged(text, &changes));
        }
    }
}
