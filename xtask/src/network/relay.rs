//! A relay of tunnelled frames: the way between two networks, with a delay and with losses of its own.

use std::io;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// Frames that are on the way in one direction at most; one more is lost, as by a router.
const ON_THE_WAY_MAX: usize = 8_192;

/// The longest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// Time between two looks of an idle relay whether it has to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes of a VXLAN header and of the Ethernet header behind it.
const HEADERS: usize = 8 + 14;

/// Trouble of frames on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// Time that every frame takes, one way, in microseconds.
    pub delay_us: u64,
    /// One of so many segments with data is lost; 0 for none.
    #[serde(default)]
    pub lost_one_in: u64,
}

/// A running relay between two ends of a tunnel; dropping it ends it.
pub struct Relay {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Relays between two sockets, each of which is connected to its end of the tunnel.
    pub fn start(one: UdpSocket, other: UdpSocket, trouble: Trouble) -> io::Result<Relay> {
        let ends = Arc::new(AtomicBool::new(false));
        let (tell, told) = sync_channel(4);
        let mut threads = Vec::new();
        for (from, to) in [(one.try_clone()?, other.try_clone()?), (other, one)] {
            from.set_read_timeout(Some(LOOK_EVERY))?;
            let (put, take) = sync_channel(ON_THE_WAY_MAX);
            let flag = Arc::clone(&ends);
            let (one, other) = (tell.clone(), tell.clone());
            threads.push(thread::spawn(move || {
                let _ = one.send(own_number());
                receive(&from, &put, &flag, trouble);
            }));
            threads.push(thread::spawn(move || {
                let _ = other.send(own_number());
                send(&to, &take);
            }));
        }
        let numbers = told.iter().take(threads.len()).collect::<io::Result<Vec<String>>>();
        let relay = Relay { ends, threads };
        prefer(&numbers?);
        Ok(relay)
    }
}

/// The number by which the kernel knows this thread.
fn own_number() -> io::Result<String> {
    let link = std::fs::read_link("/proc/thread-self")?;
    let name = link.file_name().ok_or_else(|| io::Error::other("a thread without a number"))?;
    Ok(name.to_string_lossy().into_owned())
}

/// Lets threads run before everything else on their CPU, as a way between two machines takes no CPU from either. Where that is
/// not permitted, frames come later when the CPU is busy.
fn prefer(numbers: &[String]) {
    let words = ["-n", "-15", "-p"].map(str::to_owned);
    let mut renice = Command::new("renice");
    let _ = renice.args(words).args(numbers).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so, and the frames of its direction are lost.
            let _ = thread.join();
        }
    }
}

fn receive(from: &UdpSocket, put: &SyncSender<(Instant, Vec<u8>)>, ends: &AtomicBool, trouble: Trouble) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut segments = 0;
    while !ends.load(Ordering::Relaxed) {
        // Beside silence there is only the refusal of an end that is gone, which the next frame finds out again.
        let Ok(length) = from.recv(&mut buffer) else { continue };
        let frame = &mut buffer[..length];
        if let Some(data_bytes) = complete_checksum(frame) {
            segments += u64::from(data_bytes > 0);
            if data_bytes > 0 && trouble.lost_one_in > 0 && segments % trouble.lost_one_in == 0 {
                continue;
            }
        }
        // A full queue loses the frame.
        let _ = put.try_send((Instant::now() + Duration::from_micros(trouble.delay_us), frame.to_vec()));
    }
}

fn send(to: &UdpSocket, take: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, frame)) = take.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A frame that cannot be sent is lost, as on any way.
        let _ = to.send(&frame);
    }
}

/// Puts the checksum into the TCP segment of a tunnelled frame, since the kernel leaves that to a card which is not there.
/// Returns how many bytes of data the segment has; `None` where the frame has no TCP segment over IPv4.
fn complete_checksum(frame: &mut [u8]) -> Option<usize> {
    let packet = frame.get_mut(HEADERS..)?;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let is_tcp = packet[0] >> 4 == 4 && *packet.get(9)? == 6;
    if !is_tcp || header < 20 || length < header + 20 || packet.len() < length {
        return None;
    }
    let (head, segment) = packet[..length].split_at_mut(header);
    let offset = usize::from(segment[12] >> 4) * 4;
    segment[16..18].fill(0);
    let sum = words_sum(&head[12..20]) + words_sum(segment) + 6 + segment.len() as u32;
    segment[16..18].copy_from_slice(&folded(sum).to_be_bytes());
    segment.len().checked_sub(offset)
}

/// The sum of the 16-bit words of at most 64 KiB, the last of which may be half a word.
fn words_sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))).sum()
}

/// The checksum of the Internet protocols for a sum of words (RFC 1071).
fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    !(((once & 0xffff) + (once >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with data and without its checksum, tunnelled.
    fn frame(data: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADERS];
        let length = 20 + 20 + data.len() as u16;
        let [high, low] = length.to_be_bytes();
        frame.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend(data);
        frame
    }

    #[test]
    fn a_completed_checksum_makes_the_sum_of_all_words_nothing() {
        for data in [&b""[..], b"g", b"get key-1\r\n", &[0xff; 1_400]] {
            let mut whole = frame(data);
            assert_eq!(complete_checksum(&mut whole), Some(data.len()));
            let (head, segment) = whole[HEADERS..].split_at(20);
            let sum = words_sum(&head[12..]) + words_sum(segment) + 6 + segment.len() as u32;
            assert_eq!(folded(sum), 0);
        }
    }

    #[test]
    fn frames_that_are_cut_or_of_something_else_are_left_alone() {
        let whole = frame(b"get key-1\r\n");
        for end in 0..whole.len() {
            assert_eq!(complete_checksum(&mut whole[..end].to_vec()), None, "{end}");
        }
        for (place, byte) in [(0, 0x65), (0, 0x41), (9, 17)] {
            let mut other = whole.clone();
            other[HEADERS + place] = byte;
            assert_eq!(complete_checksum(&mut other), None);
        }
    }

    #[test]
    fn a_relay_delays_and_loses_what_it_was_told_to() {
        let pair = || {
            let (inner, outer) =
                (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
            inner.connect(outer.local_addr().unwrap()).unwrap();
            outer.connect(inner.local_addr().unwrap()).unwrap();
            (inner, outer)
        };
        let ((one_inner, one), (other_inner, other)) = (pair(), pair());
        let trouble = Trouble { delay_us: 20_000, lost_one_in: 3 };
        let relay = Relay::start(one_inner, other_inner, trouble).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let begin = Instant::now();
        for number in 0..6 {
            one.send(&frame(&[number])).unwrap();
        }
        one.send(&frame(b"")).unwrap();
        let mut buffer = [0; 256];
        let mut seen = Vec::new();
        while seen.last() != Some(&None) {
            let length = other.recv(&mut buffer).unwrap();
            assert!(begin.elapsed() >= Duration::from_micros(trouble.delay_us));
            seen.push(buffer[..length].get(HEADERS + 40).copied());
        }
        assert_eq!(
            seen,
            [Some(0), Some(1), Some(3), Some(4), None],
            "and a segment without data is not lost"
        );
        drop(relay);
    }
}
