//! Unpacks a body, up to a limit: a small one can stand for any amount of memory.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::answer::Denied;

/// As much as an unpacker of zstd may look back, as a power of two: 8 MiB, which every level of zstd up to 19 needs at most.
const WINDOW: u32 = 23;

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    None,
    /// gzip, in one piece or several.
    Gzip,
    /// zlib, which HTTP calls deflate.
    Deflate,
    /// Zstandard.
    Zstd,
}

impl Packing {
    /// By the name in a header. Lists are refused: nobody packs twice, except to do harm.
    pub fn named(name: Option<&str>) -> Result<Self, Denied> {
        let name = name.unwrap_or_default().trim();
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::None),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            "zstd" => Ok(Self::Zstd),
            _ => Err(Denied::Packing(name.chars().take(40).collect())),
        }
    }
}

/// What was packed, if it has at most `most` bytes.
pub fn unpack(packed: Bytes, packing: Packing, most: usize) -> Result<Bytes, Denied> {
    match packing {
        Packing::None if packed.len() > most => Err(Denied::TooLarge(most)),
        Packing::None => Ok(packed),
        Packing::Gzip => read(MultiGzDecoder::new(&*packed), most),
        Packing::Deflate => read(ZlibDecoder::new(&*packed), most),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(&*packed).map_err(malformed)?;
            decoder.window_log_max(WINDOW).map_err(malformed)?;
            read(decoder, most)
        }
    }
}

fn read(packed: impl Read, most: usize) -> Result<Bytes, Denied> {
    let mut unpacked = Vec::new();
    let mut limited = packed.take(most as u64 + 1);
    limited.read_to_end(&mut unpacked).map_err(malformed)?;
    match unpacked.len() > most {
        true => Err(Denied::TooLarge(most)),
        false => Ok(unpacked.into()),
    }
}

fn malformed(error: io::Error) -> Denied {
    Denied::Malformed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{
        Compression,
        write::{GzEncoder, ZlibEncoder},
    };
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    #[test]
    fn every_packing_is_undone_up_to_its_limit() {
        let bytes = vec![7; 1_000];
        let cases = [
            (Packing::None, bytes.clone()),
            (Packing::Gzip, gzip(&bytes)),
            (Packing::Deflate, zlib(&bytes)),
            (Packing::Zstd, zstd(&bytes)),
        ];
        for (packing, packed) in cases {
            let packed = Bytes::from(packed);
            assert_eq!(
                unpack(packed.clone(), packing, 1_000).unwrap(),
                bytes,
                "{packing:?}"
            );
            assert_eq!(
                unpack(packed, packing, 999),
                Err(Denied::TooLarge(999)),
                "{packing:?}"
            );
        }
    }

    #[test]
    fn several_pieces_count_together() {
        let pieces = [gzip(&[1; 600]), gzip(&[2; 600])].concat();
        assert_eq!(
            unpack(pieces.clone().into(), Packing::Gzip, 1_200)
                .unwrap()
                .len(),
            1_200
        );
        assert_eq!(
            unpack(pieces.into(), Packing::Gzip, 1_199),
            Err(Denied::TooLarge(1_199))
        );
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_unpacked() {
        let bomb = zstd(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(
            unpack(bomb.into(), Packing::Zstd, 4 << 20),
            Err(Denied::TooLarge(4 << 20))
        );
    }

    #[test]
    fn what_is_not_packed_so_is_malformed() {
        for packing in [Packing::Gzip, Packing::Deflate, Packing::Zstd] {
            let unpacked = unpack(Bytes::from_static(b"no such thing"), packing, 100);
            assert!(matches!(unpacked, Err(Denied::Malformed(_))), "{packing:?}");
        }
    }

    #[test]
    fn packings_are_known_by_name_and_never_in_lists() {
        assert_eq!(Packing::named(None), Ok(Packing::None));
        assert_eq!(Packing::named(Some("GZIP")), Ok(Packing::Gzip));
        assert_eq!(
            Packing::named(Some("gzip, gzip")),
            Err(Denied::Packing("gzip, gzip".to_owned()))
        );
        assert_eq!(
            Packing::named(Some("br")),
            Err(Denied::Packing("br".to_owned()))
        );
    }
}
