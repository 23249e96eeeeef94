//! The contents of a file that zstd packed: all of its frames, one after the other.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The first four bytes of a frame with data.
const MAGIC: u32 = 0xfd2f_b528;

/// The first four bytes of a frame without data, the lowest four bits of which may be any.
const MAGIC_OF_SKIPPED: u32 = 0x184d_2a50;

/// The longest header of a frame in bytes: its magic, what it holds, a window or none, a dictionary, and its length.
const HEADER_MAX_BYTES: usize = 18;

/// The largest window that is unpacked, in bytes: what `zstd --long` packs with by default. So much memory a frame may take.
const WINDOW_MAX_BYTES: u64 = 128 << 20;

/// A reader of all frames of a source. Frames that hold no data of the file are stepped over.
pub struct Unpacked<R> {
    source: R,
    /// The frame under way. Each has its own decoder, so that none decides the memory of those behind it.
    frame: Option<FrameDecoder>,
}

/// The beginning of a frame.
#[derive(Debug)]
enum Beginning {
    /// There is no further frame.
    End,
    /// A frame with data, by its header.
    Data(Vec<u8>),
    /// A frame of so many bytes without data.
    Skipped(u64),
}

impl<R: BufRead> Unpacked<R> {
    /// The contents of the frames of `source`.
    pub fn new(source: R) -> Unpacked<R> {
        Unpacked { source, frame: None }
    }

    /// Begins the next frame; `None` where there is none.
    fn begin_frame(&mut self) -> io::Result<Option<FrameDecoder>> {
        loop {
            match self.read_beginning()? {
                Beginning::End => return Ok(None),
                Beginning::Data(header) => {
                    let mut frame = FrameDecoder::new();
                    frame.init(&header[..]).map_err(io::Error::other)?;
                    return Ok(Some(frame));
                }
                Beginning::Skipped(length) => {
                    let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
    }

    /// Reads the header of the next frame (RFC 8878, section 3.1).
    fn read_beginning(&mut self) -> io::Result<Beginning> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(Beginning::End);
        }
        let mut header = Vec::with_capacity(HEADER_MAX_BYTES);
        let magic = u32::from_le_bytes(self.read_more(&mut header)?);
        if magic & !0xf == MAGIC_OF_SKIPPED {
            return Ok(Beginning::Skipped(u32::from_le_bytes(self.read_more(&mut header)?).into()));
        }
        if magic != MAGIC {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "bytes behind a frame of zstd are no frame",
            ));
        }
        let [descriptor] = self.read_more(&mut header)?;
        let is_one_segment = descriptor & 0x20 != 0;
        let mut window_bytes = match is_one_segment {
            true => 0,
            false => {
                let [window] = self.read_more(&mut header)?;
                let base = 1u64 << (10 + (window >> 3));
                base + base / 8 * u64::from(window & 7)
            }
        };
        match descriptor & 3 {
            0 => {}
            1 => drop(self.read_more::<1>(&mut header)?),
            2 => drop(self.read_more::<2>(&mut header)?),
            _ => drop(self.read_more::<4>(&mut header)?),
        }
        let content_bytes = match descriptor >> 6 {
            0 if !is_one_segment => 0,
            0 => self.read_more::<1>(&mut header)?[0].into(),
            1 => u64::from(u16::from_le_bytes(self.read_more(&mut header)?)) + 256,
            2 => u32::from_le_bytes(self.read_more(&mut header)?).into(),
            _ => u64::from_le_bytes(self.read_more(&mut header)?),
        };
        // The window of a frame of one segment is all that it holds.
        if is_one_segment {
            window_bytes = content_bytes;
        }
        if window_bytes > WINDOW_MAX_BYTES {
            let mebibytes = window_bytes.div_ceil(1 << 20);
            let says =
                format!("a frame of zstd needs a window of {mebibytes} MiB; at most 128 MiB are unpacked");
            return Err(io::Error::new(io::ErrorKind::InvalidData, says));
        }
        Ok(Beginning::Data(header))
    }

    /// Reads the next bytes of a header, and adds them to it.
    fn read_more<const BYTES: usize>(&mut self, header: &mut Vec<u8>) -> io::Result<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        self.source.read_exact(&mut bytes)?;
        header.extend_from_slice(&bytes);
        Ok(bytes)
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                while frame.can_collect() < into.len() && !frame.is_finished() {
                    let more = into.len() - frame.can_collect();
                    let strategy = BlockDecodingStrategy::UptoBytes(more);
                    frame.decode_blocks(&mut self.source, strategy).map_err(io::Error::other)?;
                }
                let count = frame.read(into)?;
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
            }
            // Its memory is free before the next one takes some.
            self.frame = None;
            self.frame = self.begin_frame()?;
            if self.frame.is_none() {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    fn contents(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Unpacked::new(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    /// A frame without data of the file.
    const SKIPPED: [u8; 12] = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];

    #[test]
    fn all_frames_are_read_and_those_without_data_are_stepped_over() {
        let long = "k,1\n".repeat(100_000);
        let frames = [&SKIPPED[..], &packed("a,1\n"), &SKIPPED, &packed(&long), &packed("b,2\n"), &SKIPPED];
        assert_eq!(contents(&frames.concat()).expect("readable"), format!("a,1\n{long}b,2\n"));
        assert_eq!(contents(&[]).expect("readable"), "");
    }

    #[test]
    fn what_is_cut_or_no_frame_is_an_error() {
        let whole = [&SKIPPED[..], &packed("a,1\n"), &packed("b,2\n")].concat();
        let ends = [SKIPPED.len(), SKIPPED.len() + packed("a,1\n").len(), whole.len()];
        for end in 1..whole.len() {
            assert_eq!(contents(&whole[..end]).is_ok(), ends.contains(&end), "{end} of {}", whole.len());
        }
        assert!(contents(&[&packed("a,1\n")[..], b"more"].concat()).is_err());
    }

    /// A frame with one block of four bytes, in a window of `base << exponent` bytes.
    fn in_window(window: u8) -> Vec<u8> {
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, window][..], &[(4 << 3) | 1, 0, 0], b"k,1\n"].concat()
    }

    #[test]
    fn every_frame_may_have_the_same_window_at_most() {
        let mebibytes = |exponent: u8| (exponent - 10) << 3;
        assert_eq!(contents(&in_window(mebibytes(27)).repeat(3)).expect("128 MiB"), "k,1\nk,1\nk,1\n");
        for (window, needs) in [(mebibytes(27) + 1, "144 MiB"), (mebibytes(31), "2048 MiB")] {
            for frames in [in_window(window), [packed("a,1\n"), in_window(window)].concat()] {
                let error = contents(&frames).expect_err("too large").to_string();
                assert!(error.contains(needs) && error.contains("at most 128 MiB"), "{error}");
            }
        }
        // One segment that says that it holds more than any memory.
        let endless = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8], &[(4 << 3) | 1, 0, 0], b"k,1\n"];
        assert!(contents(&endless.concat()).expect_err("too large").to_string().contains("at most 128 MiB"));
    }
}
