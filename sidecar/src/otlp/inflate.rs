//! Unpacks a body, up to a limit: a small one can stand for any amount of memory.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

use super::answer::Denied;

/// As much as an unpacker of zstd may look back, and so must hold: what every level of zstd up to 19 needs at most.
const WINDOW: u64 = 8 << 20;

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
        Packing::Zstd => unpack_zstd(&packed, most),
    }
}

/// One frame after the other.
fn unpack_zstd(packed: &[u8], most: usize) -> Result<Bytes, Denied> {
    let mut rest = packed;
    let mut unpacked = Vec::new();
    while !rest.is_empty() {
        let Some(window) = window(rest) else {
            return Err(Denied::Malformed(
                "the head of a frame is cut off".to_owned(),
            ));
        };
        if window > WINDOW.max(most as u64) {
            return Err(Denied::TooLarge(most));
        }
        let frame = StreamingDecoder::new(&mut rest);
        let frame = frame.map_err(|error| Denied::Malformed(error.to_string()))?;
        let mut limited = frame.take((most - unpacked.len()) as u64 + 1);
        limited.read_to_end(&mut unpacked).map_err(malformed)?;
        if unpacked.len() > most {
            return Err(Denied::TooLarge(most));
        }
    }
    Ok(unpacked.into())
}

/// How far a frame looks back, by its head (RFC 8878, 3.1.1.1): the library would get memory for it before it reads on.
fn window(frame: &[u8]) -> Option<u64> {
    let descriptor = *frame.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        let window = *frame.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + (base >> 3) * u64::from(window & 7));
    }
    let from = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = frame.get(from..from + length)?;
    let size = size
        .iter()
        .rev()
        .fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
    Some(if length == 2 { size + 256 } else { size })
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
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
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
    fn a_frame_that_looks_back_too_far_is_refused_by_its_head() {
        let head = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window, 0];
        assert_eq!(window(&head(0x50)), Some(1 << 20));
        assert_eq!(window(&head(0x51)), Some((1 << 20) + (1 << 17)));
        let far = Bytes::copy_from_slice(&head(0x88));
        assert_eq!(
            unpack(far, Packing::Zstd, 1 << 20),
            Err(Denied::TooLarge(1 << 20))
        );
        assert_eq!(window(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 7]), Some(7));
        assert_eq!(window(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 1, 0]), Some(257));
        assert_eq!(window(&[0x28, 0xb5, 0x2f, 0xfd]), None);
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
