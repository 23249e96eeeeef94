//! The frame in front of every datagram: the number of the request, and the place of the datagram in its message.

/// The frame in front of every datagram: four numbers of 16 bits, the highest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number that the client gave the request; each datagram of the reply repeats it.
    pub request: u16,
    /// Index of this datagram among those of its message, from 0 on.
    pub sequence: u16,
    /// Number of datagrams of the message. Servers from 1.6 on also send 0, for a message without bytes.
    pub total: u16,
}

impl Frame {
    /// Length on the wire. The last two bytes are reserved and mean nothing.
    pub const LEN_BYTES: usize = 8;

    /// The frame of a message in a single datagram, as every request is.
    pub fn single(request: u16) -> Frame {
        Frame { request, sequence: 0, total: 1 }
    }

    /// The bytes of the frame, with 0 in the reserved ones.
    #[inline]
    pub fn encode(self) -> [u8; Frame::LEN_BYTES] {
        let [a, b] = self.request.to_be_bytes();
        let [c, d] = self.sequence.to_be_bytes();
        let [e, f] = self.total.to_be_bytes();
        [a, b, c, d, e, f, 0, 0]
    }

    /// The frame of a datagram and the bytes behind it; `None` for a datagram shorter than a frame.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<(Frame, &[u8])> {
        let (&[a, b, c, d, e, f, _, _], payload) = datagram.split_first_chunk::<{ Frame::LEN_BYTES }>()?;
        let number = |high, low| u16::from_be_bytes([high, low]);
        Some((Frame { request: number(a, b), sequence: number(c, d), total: number(e, f) }, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn a_frame_is_four_numbers_with_the_highest_byte_first() {
        let frame = Frame { request: 0x0102, sequence: 0x0304, total: 0x0506 };
        assert_eq!(frame.encode(), [1, 2, 3, 4, 5, 6, 0, 0]);
        assert_eq!(Frame::single(258).encode(), [1, 2, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_reserved_bytes_say_nothing() {
        let datagram = b"\x00\x07\x00\x00\x00\x01\x01\x00get a\r\n";
        assert_eq!(Frame::decode(datagram), Some((Frame::single(7), &b"get a\r\n"[..])));
    }

    #[test]
    fn what_is_shorter_than_a_frame_is_none() {
        let bytes = Frame::single(1).encode();
        for len in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..len]), None);
        }
        assert_eq!(Frame::decode(&bytes), Some((Frame::single(1), &[][..])), "an empty message");
    }

    proptest! {
        #[test]
        fn frames_read_as_they_are_written(request: u16, sequence: u16, total: u16, payload: Vec<u8>) {
            let frame = Frame { request, sequence, total };
            let datagram = [&frame.encode()[..], &payload].concat();
            prop_assert_eq!(Frame::decode(&datagram), Some((frame, &payload[..])));
        }
    }
}
