//! A page made smaller on its way, piece by piece.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::accept::Encoding;

/// Text of metrics is so repetitive that more effort gains a few percent and takes twice the time and more.
const GZIP_LEVEL: u32 = 1;

/// Takes pieces and gives bytes to send.
pub(super) enum Compressor {
    /// As they are.
    Identity,
    /// By gzip.
    Gzip(Box<GzEncoder<Vec<u8>>>),
    /// By Zstandard: each piece is a frame, and frames one after the other are what they are together.
    Zstd,
}

impl Compressor {
    pub(super) fn new(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Identity => Self::Identity,
            Encoding::Gzip => {
                let encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
                Self::Gzip(Box::new(encoder))
            }
            Encoding::Zstd => Self::Zstd,
        }
    }

    /// What can be sent after one more piece; sometimes nothing, before the last.
    pub(super) fn push(&mut self, piece: &mut Vec<u8>, is_last: bool) -> io::Result<Bytes> {
        let out = match self {
            Self::Identity => std::mem::take(piece),
            Self::Gzip(encoder) => {
                encoder.write_all(piece)?;
                if is_last {
                    encoder.try_finish()?;
                }
                std::mem::take(encoder.get_mut())
            }
            Self::Zstd => compress_to_vec(&**piece, CompressionLevel::Fastest),
        };
        piece.clear();
        Ok(out.into())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read as _;

    use super::*;

    /// What was sent, as it was before.
    pub(in super::super) fn opened(mut sent: &[u8], encoding: Encoding) -> Vec<u8> {
        let mut read = Vec::new();
        match encoding {
            Encoding::Identity => read.extend(sent),
            Encoding::Gzip => {
                let mut decoder = flate2::read::GzDecoder::new(sent);
                decoder.read_to_end(&mut read).expect("gzip");
            }
            Encoding::Zstd => {
                while !sent.is_empty() {
                    let mut frame =
                        ruzstd::decoding::StreamingDecoder::new(&mut sent).expect("a frame");
                    frame.read_to_end(&mut read).expect("zstd");
                }
            }
        }
        read
    }

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let pieces: Vec<Vec<u8>> = (0..20_u8).map(|at| vec![at; 10_000]).collect();
        for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
            let mut compressor = Compressor::new(encoding);
            let mut sent = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                let is_last = at + 1 == pieces.len();
                sent.extend(compressor.push(&mut piece.clone(), is_last).expect("bytes"));
            }
            assert_eq!(opened(&sent, encoding), pieces.concat(), "{encoding:?}");
        }
    }
}
