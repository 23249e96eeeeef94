//! Reads what tcpdump wrote: TCP segments over IPv4 out of a capture file of the classic format (pcap-savefile(5)).

/// A TCP segment as it passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment<'a> {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Port that it came from.
    pub source: u16,
    /// Port that it went to.
    pub destination: u16,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Number of bytes that the segment carried.
    pub len_bytes: u32,
    /// The captured part of these bytes.
    pub payload: &'a [u8],
}

/// Link type of Ethernet, which Linux gives loopback too.
const ETHERNET: u32 = 1;

/// Every TCP segment of the file in its order; other packets are passed over. The error says what the file is not.
///
/// A record that is cut off at the end is what an interruption leaves, and ends the file.
pub fn segments(file: &[u8]) -> Result<Vec<Segment<'_>>, String> {
    let header = file.get(..24).ok_or("the capture has no header")?;
    let magic: [u8; 4] = header[..4].try_into().expect("four bytes");
    // The order of bytes is that of the machine which wrote it; the magic number says so, and the unit of the times.
    let (word, unit_ns): (fn([u8; 4]) -> u32, u64) = match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (u32::from_le_bytes, 1_000),
        [0x4d, 0x3c, 0xb2, 0xa1] => (u32::from_le_bytes, 1),
        [0xa1, 0xb2, 0xc3, 0xd4] => (u32::from_be_bytes, 1_000),
        [0xa1, 0xb2, 0x3c, 0x4d] => (u32::from_be_bytes, 1),
        _ => return Err(format!("the capture begins with {magic:02x?}, which is no pcap file")),
    };
    let word_at = |bytes: &[u8], at: usize| Some(word(bytes.get(at..at + 4)?.try_into().ok()?));
    match word_at(header, 20) {
        Some(link) if link & 0x0fff_ffff == ETHERNET => {}
        link => return Err(format!("the capture's link type is {link:?}, and not Ethernet's")),
    }
    let mut found = Vec::new();
    let mut rest = &file[24..];
    while let (Some(seconds), Some(fraction), Some(captured)) =
        (word_at(rest, 0), word_at(rest, 4), word_at(rest, 8))
    {
        let Some(packet) = rest.get(16..).and_then(|behind| behind.get(..captured as usize)) else { break };
        let at_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit_ns;
        found.extend(segment(packet, at_ns));
        rest = &rest[16 + captured as usize..];
    }
    Ok(found)
}

/// The segment in an Ethernet frame; `None` where there is none. Headers as in RFC 791 and RFC 9293.
fn segment(frame: &[u8], at_ns: u64) -> Option<Segment<'_>> {
    let short = |bytes: &[u8], at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let ip = frame.get(14..)?;
    if short(frame, 12)? != 0x0800 || ip.first()? >> 4 != 4 || *ip.get(9)? != 6 {
        return None;
    }
    let ip_header_len = usize::from(ip[0] & 0xf) * 4;
    let tcp = ip.get(ip_header_len..)?;
    let tcp_header_len = usize::from(*tcp.get(12)? >> 4) * 4;
    let len_bytes = usize::from(short(ip, 2)?).checked_sub(ip_header_len + tcp_header_len)?;
    // Short frames are padded: what follows the packet is none of it.
    let payload = tcp.get(tcp_header_len..)?;
    Some(Segment {
        at_ns,
        source: short(tcp, 0)?,
        destination: short(tcp, 2)?,
        sequence: u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?),
        len_bytes: len_bytes as u32,
        payload: &payload[..payload.len().min(len_bytes)],
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A capture file in the making.
    pub struct Writer(pub Vec<u8>);

    impl Writer {
        /// With times in nanoseconds, as a little-endian machine writes it.
        pub fn new() -> Writer {
            let words: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 128, ETHERNET];
            Writer(words.iter().flat_map(|word| word.to_le_bytes()).collect())
        }

        /// A segment with 12 bytes of TCP options, cut off behind 128 bytes.
        pub fn tcp(&mut self, at_ns: u64, ports: (u16, u16), sequence: u32, payload: &[u8]) {
            let mut frame = vec![0; 12];
            frame.extend([0x08, 0x00]);
            frame.extend([0x45, 0]);
            frame.extend((52 + payload.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
            frame.extend(ports.0.to_be_bytes());
            frame.extend(ports.1.to_be_bytes());
            frame.extend(sequence.to_be_bytes());
            frame.extend([0, 0, 0, 0, 0x80, 0x18, 1, 0, 0, 0, 0, 0]);
            frame.extend([1; 12]);
            frame.extend(payload);
            self.frame(at_ns, &frame);
        }

        /// Adds any frame.
        pub fn frame(&mut self, at_ns: u64, frame: &[u8]) {
            let captured = frame.len().min(128);
            let words = [at_ns / 1_000_000_000, at_ns % 1_000_000_000, captured as u64, frame.len() as u64];
            self.0.extend(words.iter().flat_map(|&word| (word as u32).to_le_bytes()));
            self.0.extend(&frame[..captured]);
        }
    }

    #[test]
    fn segments_are_read_with_their_real_lengths() {
        let mut writer = Writer::new();
        writer.tcp(5_000_000_007, (40_000, 11_211), 100, b"get 7\r\n");
        writer.frame(5_000_000_008, &[0; 60]);
        writer.tcp(5_000_000_009, (11_211, 40_000), 900, &[b'x'; 300]);
        let found = segments(&writer.0).unwrap();
        let (source, destination) = (40_000, 11_211);
        let payload = &b"get 7\r\n"[..];
        assert_eq!(
            found[0],
            Segment { at_ns: 5_000_000_007, source, destination, sequence: 100, len_bytes: 7, payload }
        );
        assert_eq!((found.len(), found[1].len_bytes, found[1].payload.len()), (2, 300, 62));
    }

    #[test]
    fn a_file_in_microseconds_of_a_big_endian_machine_is_read() {
        let mut writer = Writer::new();
        writer.tcp(0, (1, 2), 3, b"x");
        let mut file: Vec<u8> = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 128, ETHERNET]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        let frame = &writer.0[40..];
        file.extend(
            [9, 5, frame.len() as u32, frame.len() as u32].iter().flat_map(|word| word.to_be_bytes()),
        );
        file.extend(frame);
        assert_eq!(segments(&file).unwrap()[0].at_ns, 9_000_005_000);
    }

    #[test]
    fn padding_of_short_frames_is_no_payload() {
        let mut writer = Writer::new();
        writer.tcp(0, (1, 2), 3, b"");
        let frame = [&writer.0[40..], &[0; 8]].concat();
        let mut padded = Writer::new();
        padded.frame(0, &frame);
        assert_eq!(segments(&padded.0).unwrap()[0].payload, b"");
    }

    #[test]
    fn every_cut_of_a_file_is_read_up_to_there_or_refused() {
        let mut writer = Writer::new();
        writer.tcp(1, (1, 2), 3, b"x");
        writer.tcp(2, (1, 2), 4, b"y");
        let whole = segments(&writer.0).unwrap();
        for cut in 0..writer.0.len() {
            match segments(&writer.0[..cut]) {
                Ok(found) => assert!(cut >= 24 && whole.starts_with(&found), "{cut}"),
                Err(_) => assert!(cut < 24, "{cut}"),
            }
        }
    }

    #[test]
    fn nonsense_is_refused_or_passed_over() {
        assert!(segments(&[7; 100]).unwrap_err().contains("no pcap"));
        let mut other_link = Writer::new();
        other_link.0[20] = 113;
        assert!(segments(&other_link.0).unwrap_err().contains("link type"));
        // A TCP header that says to be longer than the packet.
        let mut writer = Writer::new();
        writer.tcp(1, (1, 2), 3, b"");
        writer.0[40 + 14 + 20 + 12] = 0xf0;
        assert_eq!(segments(&writer.0).unwrap(), []);
    }
}
