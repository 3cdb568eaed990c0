//! Protobuf as it is written: answers, and what JSON is turned into.

/// A message being written. Messages within it get a length of always five bytes, so that nothing is moved afterwards.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    most: usize,
    is_over: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self::up_to(usize::MAX)
    }
}

impl Writer {
    /// One that takes so many bytes, in memory as well: what does not fit is left out, and then [`Self::is_over`].
    pub fn up_to(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            is_over: false,
        }
    }

    /// Whether something did not fit, so that the rest is not worth writing.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A number of variable length.
    pub fn varint(&mut self, number: u32, value: u64) {
        self.tag(number, 0);
        self.raw_varint(value);
    }

    /// A signed number in zigzag.
    pub fn sint32(&mut self, number: u32, value: i32) {
        let zigzag = (value << 1) ^ (value >> 31);
        self.varint(number, u64::from(zigzag.cast_unsigned()));
    }

    /// Eight bytes.
    pub fn fixed64(&mut self, number: u32, value: u64) {
        self.tag(number, 1);
        self.put(&value.to_le_bytes());
    }

    /// A double.
    pub fn double(&mut self, number: u32, value: f64) {
        self.fixed64(number, value.to_bits());
    }

    /// Text or bytes.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.raw_varint(value.len() as u64);
        self.put(value);
    }

    /// A message within this one.
    pub fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let open = self.open(number);
        write(self);
        self.close(open);
    }

    /// Begins a message within this one; `close` ends it.
    pub fn open(&mut self, number: u32) -> Open {
        self.tag(number, 2);
        self.put(&[0; 5]);
        Open(self.bytes.len())
    }

    /// Ends what `open` began.
    pub fn close(&mut self, Open(from): Open) {
        let length = self.bytes.len() - from;
        // Its place is missing if the message did not fit.
        let place = from.checked_sub(5).filter(|_| !self.is_over);
        if let Some(place) = place.and_then(|place| self.bytes.get_mut(place..from)) {
            for (index, byte) in place.iter_mut().enumerate() {
                let more = if index < 4 { 0x80 } else { 0 };
                *byte = ((length >> (7 * index)) & 0x7f) as u8 | more;
            }
        }
    }

    fn tag(&mut self, number: u32, kind: u8) {
        self.raw_varint(u64::from(number) << 3 | u64::from(kind));
    }

    fn raw_varint(&mut self, mut value: u64) {
        let (mut bytes, mut length) = ([0; 10], 0);
        for byte in &mut bytes {
            length += 1;
            *byte = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                break;
            }
            *byte |= 0x80;
        }
        self.put(bytes.get(..length).unwrap_or_default());
    }

    #[inline]
    fn put(&mut self, piece: &[u8]) {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if piece.len() > self.most - length {
            self.is_over = true;
            return;
        }
        if piece.len() > capacity - length {
            // Doubled as ever, but never beyond what may be written.
            let doubled = capacity.saturating_mul(2).clamp(64, self.most.max(64));
            self.bytes
                .reserve_exact((length + piece.len()).max(doubled) - length);
        }
        self.bytes.extend_from_slice(piece);
    }
}

/// A message that has been begun.
#[derive(Debug)]
#[must_use]
pub struct Open(usize);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::wire::{Content, Fields};

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.varint(1, 300);
        writer.sint32(2, -3);
        writer.message(3, |inner| inner.bytes(1, &[7; 200]));
        let bytes = writer.into_bytes();
        let mut fields = Fields::of(&bytes);
        let first = fields.read().unwrap().unwrap();
        assert_eq!((first.number, first.content), (1, Content::Varint(300)));
        assert_eq!(fields.read().unwrap().unwrap().content.sint32(), Ok(-3));
        let inner = fields.read().unwrap().unwrap().content.bytes().unwrap();
        let inner = Fields::of(inner).read().unwrap().unwrap();
        assert_eq!(inner.content, Content::Bytes(&[7; 200]));
    }

    #[test]
    fn a_writer_takes_no_more_than_it_may_in_bytes_and_in_memory() {
        for most in [0, 3, 64, 100, 1_000, 4_096] {
            let mut writer = Writer::up_to(most);
            let mut times = 0;
            while !writer.is_over() {
                writer.message(1, |inner| inner.fixed64(6, 1));
                times += 1;
                assert!(times <= most + 1, "{times} of {most}");
            }
            let bytes = writer.into_bytes();
            assert!(bytes.len() <= most, "{} of {most}", bytes.len());
            let memory = bytes.capacity();
            assert!(memory <= most.max(64), "{memory} of {most}");
        }
    }

    #[test]
    fn numbers_of_every_length_are_read_as_they_were_written() {
        for value in (0..64).map(|bits| 1 << bits).chain([0, 127, u64::MAX]) {
            let mut writer = Writer::default();
            writer.varint(1, value);
            let bytes = writer.into_bytes();
            let read = Fields::of(&bytes).read().unwrap().unwrap();
            assert_eq!(read.content, Content::Varint(value));
        }
    }
}
