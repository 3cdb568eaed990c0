//! A page made smaller on its way, piece by piece.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::accept::Encoding;

/// Text of metrics is so repetitive that more effort gains a few percent and takes twice the time and more.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// Takes pieces and gives bytes to send.
pub(super) enum Compressor {
    /// As they are.
    Identity,
    /// By gzip.
    Gzip(GzEncoder<Vec<u8>>),
    /// By Zstandard.
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    pub(super) fn new(encoding: Encoding) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Identity => Self::Identity,
            Encoding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
            Encoding::Zstd => {
                Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)
            }
        })
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
            Self::Zstd(encoder) => {
                encoder.write_all(piece)?;
                if is_last {
                    encoder.do_finish()?;
                }
                std::mem::take(encoder.get_mut())
            }
        };
        piece.clear();
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let pieces: Vec<Vec<u8>> = (0..20_u8).map(|at| vec![at; 10_000]).collect();
        for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
            let mut compressor = Compressor::new(encoding).expect("a compressor");
            let mut sent = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                let is_last = at + 1 == pieces.len();
                sent.extend(compressor.push(&mut piece.clone(), is_last).expect("bytes"));
            }
            let mut read = Vec::new();
            match encoding {
                Encoding::Identity => read = sent,
                Encoding::Gzip => {
                    flate2::read::GzDecoder::new(&*sent)
                        .read_to_end(&mut read)
                        .expect("gzip");
                }
                Encoding::Zstd => {
                    zstd::stream::read::Decoder::new(&*sent)
                        .expect("zstd")
                        .read_to_end(&mut read)
                        .expect("zstd");
                }
            }
            assert_eq!(read, pieces.concat(), "{encoding:?}");
        }
    }
}
