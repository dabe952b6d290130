//! zstd (RFC 8878): frames one after the other, of which some are to be skipped.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// A stream of frames.
pub(super) struct Frames<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Begins the next frame: whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, step).map_err(io::Error::other)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.is_in_frame = !self.decoder.is_finished();
        }
    }
}
