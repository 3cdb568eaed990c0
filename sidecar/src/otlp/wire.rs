//! Protobuf as it travels, field by field, without a copy.
//!
//! By hand, because generated types copy every string, fail a whole request on one bad byte of text, and grow a hostile
//! request a hundredfold.

/// What is wrong with bytes that should be protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field goes beyond the end.
    #[error("a field ends before its length")]
    Truncated,
    /// A number with more than ten bytes.
    #[error("a number has too many bytes")]
    Overlong,
    /// No field has the number 0.
    #[error("a field has no number")]
    NoField,
    /// A kind of field that nobody writes any more, or never did.
    #[error("a field is of the unknown kind {0}")]
    Kind(u8),
    /// A known field is of another kind than it should.
    #[error("a field is of another kind than its number says")]
    OtherKind,
    /// Messages within messages, too many.
    #[error("values are nested too deeply")]
    TooDeep,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Text, bytes, a message, or numbers one after the other.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> Content<'a> {
    /// Text, bytes or a message.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => Err(Malformed::OtherKind),
        }
    }

    /// A number of variable length.
    pub fn varint(self) -> Result<u64, Malformed> {
        match self {
            Self::Varint(number) => Ok(number),
            Self::Bytes(_) | Self::Fixed64(_) | Self::Fixed32(_) => Err(Malformed::OtherKind),
        }
    }

    /// Eight bytes as a whole number.
    pub fn fixed64(self) -> Result<u64, Malformed> {
        match self {
            Self::Fixed64(number) => Ok(number),
            Self::Bytes(_) | Self::Varint(_) | Self::Fixed32(_) => Err(Malformed::OtherKind),
        }
    }

    /// Eight bytes as a double.
    pub fn double(self) -> Result<f64, Malformed> {
        self.fixed64().map(f64::from_bits)
    }

    /// A signed number in zigzag.
    pub fn sint32(self) -> Result<i32, Malformed> {
        let number = self.varint()? as u32; // more than 32 bits are cut off, as everywhere
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its number.
    pub number: u32,
    /// What it holds.
    pub content: Content<'a>,
    /// Where it lies in its message, number and length included.
    pub place: (usize, usize),
}

/// The fields of a message, one after the other.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Fields<'a> {
    /// Of a message.
    pub fn of(message: &'a [u8]) -> Self {
        Self {
            rest: message,
            length: message.len(),
        }
    }

    /// The next one, if there is one.
    ///
    /// Always inlined: then what a caller does not look at is not made, and a request consists of little else.
    #[inline(always)]
    pub fn read(&mut self) -> Result<Option<Field<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let from = self.length - self.rest.len();
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed::Overlong)?;
        if number == 0 {
            return Err(Malformed::NoField);
        }
        let content = match tag & 7 {
            0 => Content::Varint(varint(&mut self.rest)?),
            1 => Content::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
                Content::Bytes(self.take(length)?)
            }
            5 => Content::Fixed32(u32::from_le_bytes(self.array()?)),
            kind => return Err(Malformed::Kind(kind as u8)),
        };
        Ok(Some(Field {
            number,
            content,
            place: (from, self.length - self.rest.len()),
        }))
    }

    /// Goes over what follows as long as it is short messages or texts with this number, which must be below 16. Says where that
    /// ends.
    #[inline(always)]
    pub fn skip(&mut self, number: u32) -> usize {
        let tag = (number << 3 | 2) as u8;
        while let [found, length, after @ ..] = self.rest
            && *found == tag
            && *length < 0x80
            && let Some(rest) = after.get(usize::from(*length)..)
        {
            self.rest = rest;
        }
        self.length - self.rest.len()
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// Takes a number of variable length off the front. Most have one byte, and lengths of messages two.
#[inline(always)]
pub fn varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    match rest {
        [first, after @ ..] if *first < 0x80 => {
            let number = u64::from(*first);
            *rest = after;
            Ok(number)
        }
        [first, second, after @ ..] if *second < 0x80 => {
            let number = u64::from(*first & 0x7f) | u64::from(*second) << 7;
            *rest = after;
            Ok(number)
        }
        _ => long_varint(rest),
    }
}

#[inline(never)]
fn long_varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    if let Some((word, _)) = rest.split_first_chunk()
        && let Some((number, length)) = within_word(u64::from_le_bytes(*word))
    {
        *rest = rest.get(length..).unwrap_or_default();
        return Ok(number);
    }
    let mut number = 0_u64;
    for (index, byte) in rest.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            *rest = rest.get(index + 1..).unwrap_or_default();
            return Ok(number);
        }
    }
    Err(match rest.len() {
        0..10 => Malformed::Truncated,
        _ => Malformed::Overlong,
    })
}

/// A number of variable length that ends within eight bytes, and how many of them it has: pairs of seven bits are moved
/// together, then pairs of those, and so on.
#[inline(always)]
fn within_word(word: u64) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let bits = ends.trailing_zeros() + 1;
    let sevens = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let number = (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((number, bits as usize / 8))
}

/// Eight bytes each, one after the other.
pub fn packed64(bytes: &[u8]) -> Result<impl Iterator<Item = u64>, Malformed> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    match rest.is_empty() {
        true => Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes))),
        false => Err(Malformed::Truncated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Content<'_>)>, Malformed> {
        let mut fields = Fields::of(bytes);
        let mut read = Vec::new();
        while let Some(field) = fields.read()? {
            read.push((field.number, field.content));
        }
        Ok(read)
    }

    #[test]
    fn fields_of_every_kind_are_read() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: 1 in eight bytes
            0x25, 2, 0, 0, 0, // 4: 2 in four
        ];
        let expected = vec![
            (1, Content::Varint(150)),
            (2, Content::Bytes(b"hi")),
            (3, Content::Fixed64(1)),
            (4, Content::Fixed32(2)),
        ];
        assert_eq!(read(&bytes), Ok(expected));
    }

    #[test]
    fn what_is_malformed_is_named() {
        let cases: &[(&[u8], Malformed)] = &[
            (&[0x08], Malformed::Truncated),
            (&[0x12, 0x05, b'h'], Malformed::Truncated),
            (&[0x19, 1, 2, 3], Malformed::Truncated),
            (&[0x00, 0x01], Malformed::NoField),
            (&[0x0b], Malformed::Kind(3)),
            (&[0x0f], Malformed::Kind(7)),
            (
                &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255],
                Malformed::Overlong,
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(read(bytes), Err(*expected), "{bytes:?}");
        }
    }

    #[test]
    fn zigzag_is_undone() {
        for (sent, expected) in [(0, 0), (1, -1), (2, 1), (0xffff_ffff, i32::MIN)] {
            assert_eq!(Content::Varint(sent).sint32(), Ok(expected));
        }
    }

    #[test]
    fn fields_in_a_row_are_gone_over_and_no_others() {
        // Two texts of field 7, one of field 6, one more of 7, and one that is cut off.
        let bytes = [
            0x3a, 1, b'a', 0x3a, 0, 0x32, 1, b'b', 0x3a, 1, b'c', 0x3a, 9, b'd',
        ];
        let mut fields = Fields::of(&bytes);
        assert_eq!(fields.skip(7), 5);
        assert_eq!(fields.skip(7), 5);
        assert_eq!(fields.read().unwrap().unwrap().number, 6);
        assert_eq!(fields.skip(7), 11);
        assert_eq!(fields.read(), Err(Malformed::Truncated));
    }

    /// One byte after the other, as the format is defined.
    fn plainly(bytes: &[u8]) -> Option<(u64, usize)> {
        let mut number = 0_u64;
        for (index, byte) in bytes.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                return Some((number, index + 1));
            }
        }
        None
    }

    proptest! {
        #[test]
        fn numbers_of_every_length_are_read_as_the_format_is_defined(
            number: u64, shift in 0..64_u32, padding in 0..9_usize, after in proptest::collection::vec(any::<u8>(), 0..10),
        ) {
            let mut rest = number >> shift;
            let mut bytes = Vec::new();
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            // Longer than it needs to be, as some writers make lengths.
            for _ in 0..padding.min(10 - bytes.len()) {
                *bytes.last_mut().unwrap() |= 0x80;
                bytes.push(0);
            }
            let length = bytes.len();
            bytes.extend_from_slice(&after);
            let mut left = &bytes[..];
            prop_assert_eq!(varint(&mut left).ok(), Some(number >> shift));
            prop_assert_eq!(left.len(), after.len());
            prop_assert_eq!(plainly(&bytes), Some((number >> shift, length)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }
    }
}
