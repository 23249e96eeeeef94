//! From the segments of a capture to service times: text gets, one outstanding on a connection.

use std::collections::HashMap;

use super::pcap::Segment;

/// Exchanges that a capture shows.
#[derive(Debug, Default, PartialEq)]
pub struct Exchanges {
    /// Of each answered request, from the segment with its first byte to the segment with the last byte of its reply,
    /// in nanoseconds; ascending.
    pub service_ns: Vec<u64>,
    /// Requests whose reply is not in the capture, and replies that are not understood or not of any request.
    pub unmatched: u64,
}

impl Exchanges {
    /// Matches requests and replies of all connections to the server at `port`.
    pub fn of(segments: &[Segment<'_>], port: u16) -> Exchanges {
        let mut found = Exchanges::default();
        let mut connections: HashMap<u16, Connection> = HashMap::new();
        for segment in segments.iter().filter(|segment| segment.len_bytes > 0) {
            if segment.destination == port {
                connections.entry(segment.source).or_default().request(segment, &mut found);
            } else if segment.source == port {
                connections.entry(segment.destination).or_default().reply(segment, &mut found);
            }
        }
        found.unmatched +=
            connections.values().filter(|connection| connection.asked.is_some()).count() as u64;
        found.service_ns.sort_unstable();
        found
    }

    /// The least time that a share `q` of the requests do not exceed; `None` when there are none.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = (self.service_ns.len() as f64 * q).ceil() as usize;
        self.service_ns.get(rank.saturating_sub(1)).copied()
    }
}

/// One connection, by the client's port.
#[derive(Default)]
struct Connection {
    /// The time at which the request passed that has no whole reply yet.
    asked: Option<u64>,
    /// Bytes that its reply still lacks; `None` until its first line was seen.
    lacking: Option<u64>,
    /// The next sequence number of requests, and of replies: what lies before is a repetition.
    next: [Option<u32>; 2],
}

impl Connection {
    fn request(&mut self, segment: &Segment<'_>, found: &mut Exchanges) {
        if self.repeats(0, segment) {
            return;
        }
        found.unmatched += u64::from(self.asked.is_some());
        self.asked = Some(segment.at_ns);
        self.lacking = None;
    }

    fn reply(&mut self, segment: &Segment<'_>, found: &mut Exchanges) {
        if self.repeats(1, segment) {
            return;
        }
        let lacking = self.lacking.or_else(|| reply_len(segment.payload));
        let (Some(asked), Some(lacking)) = (self.asked, lacking) else {
            found.unmatched += 1;
            self.asked = None;
            return;
        };
        match lacking.checked_sub(u64::from(segment.len_bytes)) {
            Some(0) => {
                found.service_ns.push(segment.at_ns.saturating_sub(asked));
                (self.asked, self.lacking) = (None, None);
            }
            Some(left) => self.lacking = Some(left),
            // More than what was asked for.
            None => {
                found.unmatched += 1;
                (self.asked, self.lacking) = (None, None);
            }
        }
    }

    fn repeats(&mut self, direction: usize, segment: &Segment<'_>) -> bool {
        let next = &mut self.next[direction];
        // Sequence numbers go round: the half behind the next one is the past.
        if next.is_some_and(|next| (segment.sequence.wrapping_sub(next) as i32) < 0) {
            return true;
        }
        *next = Some(segment.sequence.wrapping_add(segment.len_bytes));
        false
    }
}

/// Length in bytes of a reply that begins with these bytes: a miss, or one value (memcached's protocol.txt, "Retrieval command").
fn reply_len(begin: &[u8]) -> Option<u64> {
    const END: &[u8] = b"END\r\n";
    if begin == END {
        return Some(END.len() as u64);
    }
    let line_len = begin.windows(2).position(|window| window == b"\r\n")? + 2;
    let line = std::str::from_utf8(begin[..line_len].strip_prefix(b"VALUE ")?).ok()?;
    let value_len: u64 = line.split_whitespace().nth(2)?.parse().ok()?;
    Some(line_len as u64 + value_len + 2 + END.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::pcap::segments;
    use super::super::pcap::tests::Writer;
    use super::*;

    const SERVER: u16 = 11_211;

    /// A capture of what clients and server say, with sequence numbers as they come about.
    struct Talk {
        writer: Writer,
        sent: HashMap<(u16, u16), u32>,
    }

    impl Talk {
        fn new() -> Talk {
            Talk { writer: Writer::new(), sent: HashMap::new() }
        }

        fn says(mut self, at_us: u64, ports: (u16, u16), payload: &[u8]) -> Talk {
            // Close to the end of the numbers, so that they go round.
            let sequence = self.sent.entry(ports).or_insert(u32::MAX - 300);
            self.writer.tcp(at_us * 1_000, ports, *sequence, payload);
            *sequence = sequence.wrapping_add(payload.len() as u32);
            self
        }

        fn asks(self, at_us: u64, client: u16) -> Talk {
            self.says(at_us, (client, SERVER), b"get 7\r\n")
        }

        fn answers(self, at_us: u64, client: u16, bytes: &[u8]) -> Talk {
            self.says(at_us, (SERVER, client), bytes)
        }

        fn found(&self) -> Exchanges {
            Exchanges::of(&segments(&self.writer.0).unwrap(), SERVER)
        }
    }

    fn value() -> Vec<u8> {
        [&b"VALUE 7 0 200\r\n"[..], &[b'v'; 200], b"\r\nEND\r\n"].concat()
    }

    fn matched(service_us: &[u64]) -> Exchanges {
        let service_ns = service_us.iter().map(|us| us * 1_000).collect();
        Exchanges { service_ns, unmatched: 0 }
    }

    #[test]
    fn requests_of_several_connections_get_their_own_replies() {
        let talk = Talk::new().asks(10, 1).asks(11, 2).answers(40, 2, &value()).answers(50, 1, &value());
        let talk = talk.asks(60, 2).answers(65, 2, b"END\r\n").asks(70, 2).answers(95, 2, &value());
        assert_eq!(talk.found(), matched(&[5, 25, 29, 40]));
    }

    #[test]
    fn a_reply_is_there_when_its_last_byte_is() {
        let value = value();
        for cut in 20..value.len() {
            let (begin, end) = value.split_at(cut);
            let talk = Talk::new().asks(10, 1).answers(20, 1, begin).answers(31, 1, end);
            assert_eq!(talk.found(), matched(&[21]), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_sent_again_is_counted_once() {
        let mut talk = Talk::new().asks(10, 1).answers(20, 1, &value());
        talk.writer.tcp(25_000, (SERVER, 1), u32::MAX - 300, &value());
        talk.writer.tcp(26_000, (1, SERVER), u32::MAX - 300, b"get 7\r\n");
        assert_eq!(talk.found(), matched(&[10]));
    }

    #[test]
    fn what_the_capture_lost_is_said() {
        let lost_reply = Talk::new().asks(10, 1).asks(20, 1).answers(30, 1, &value());
        assert_eq!(lost_reply.found(), Exchanges { unmatched: 1, ..matched(&[10]) });
        let lost_request = Talk::new().answers(30, 1, &value()).asks(40, 1).answers(50, 1, &value());
        assert_eq!(lost_request.found(), Exchanges { unmatched: 1, ..matched(&[10]) });
        let lost_end = Talk::new().asks(10, 1).answers(20, 1, &value()[..100]);
        assert_eq!(lost_end.found(), Exchanges { unmatched: 1, ..matched(&[]) });
        let other = Talk::new().asks(10, 1).answers(20, 1, b"SERVER_ERROR out of memory\r\n");
        assert_eq!(other.found(), Exchanges { unmatched: 1, ..matched(&[]) });
    }

    #[test]
    fn quantiles_are_ranks() {
        let found = matched(&(1..=200).collect::<Vec<u64>>());
        assert_eq!(found.quantile_ns(0.5), Some(100_000));
        assert_eq!(found.quantile_ns(0.99), Some(198_000));
        assert_eq!(matched(&[]).quantile_ns(0.5), None);
    }
}
