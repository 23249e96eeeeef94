//! What a file holds that zstd packed: all of its frames, one after the other.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A reader of all frames of a source. Frames that hold no data of the file are stepped over.
pub struct Unpacked<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Unpacked<R> {
    /// The contents of the frames of `source`.
    pub fn new(source: R) -> Unpacked<R> {
        Unpacked { source, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Begins the next frame; false where there is none.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_in_frame {
                while self.decoder.can_collect() < into.len() && !self.decoder.is_finished() {
                    let more = into.len() - self.decoder.can_collect();
                    let strategy = BlockDecodingStrategy::UptoBytes(more);
                    self.decoder.decode_blocks(&mut self.source, strategy).map_err(io::Error::other)?;
                }
                let count = self.decoder.read(into)?;
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
            }
            self.is_in_frame = self.begin_frame()?;
            if !self.is_in_frame {
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
}
