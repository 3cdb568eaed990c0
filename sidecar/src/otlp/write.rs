//! Protobuf as it is written: answers, and what JSON is turned into.

/// A message being written. Messages within it get a length of always five bytes, so that nothing is moved afterwards.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
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
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A double.
    pub fn double(&mut self, number: u32, value: f64) {
        self.fixed64(number, value.to_bits());
    }

    /// Text or bytes.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.raw_varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
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
        self.bytes.extend_from_slice(&[0; 5]);
        Open(self.bytes.len())
    }

    /// Ends what `open` began.
    pub fn close(&mut self, Open(from): Open) {
        let length = self.bytes.len() - from;
        if let Some(place) = self.bytes.get_mut(from - 5..from) {
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
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
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
}
