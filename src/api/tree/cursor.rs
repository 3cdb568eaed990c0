//! JSON as machines write it, read at one go: texts without escapes are borrowed, and nothing is asked twice.
//!
//! A quick reader beside the thorough one, which is `serde_json`. What is unusual ends it without a word: whoever calls then
//! asks the thorough reader, who also knows what is wrong. What both read, they read alike.

/// Brackets that may be open at once where values are passed over.
const DEEPEST: u32 = u64::BITS;

/// The same byte eight times.
const ONES: u64 = 0x0101_0101_0101_0101;

/// A place in a JSON text.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no blank; it is not taken.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match *bytes.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Whether nothing is left but blanks.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// A text without escapes.
    pub fn plain(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let (start, end) = (self.at, self.stop()?);
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        self.text.get(start..end)
    }

    /// A whole number of at most 18 digits.
    pub fn whole(&mut self) -> Option<i64> {
        self.peek()?;
        let start = self.at;
        self.pass_number()?;
        let digits = self.text.get(start..self.at)?;
        // "-0" is no whole number to the thorough reader.
        if digits.len() > 18 || digits == "-0" {
            return None;
        }
        digits.parse().ok()
    }

    /// One of true and false.
    pub fn truth(&mut self) -> Option<bool> {
        match self.peek()? {
            b't' => self.word("true").map(|()| true),
            _ => self.word("false").map(|()| false),
        }
    }

    /// What is there, or none for null.
    pub fn unless_null<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.peek()? {
            b'n' => self.word("null").map(|()| None),
            _ => read(self).map(Some),
        }
    }

    /// Hands over the fields of an object one by one; each value must be taken.
    pub fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        loop {
            let name = self.plain()?;
            self.take(b':')?;
            field(self, name)?;
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.take(b'}'),
            }
        }
    }

    /// Hands over the entries of a list one by one; each must be taken.
    pub fn entries(&mut self, mut entry: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? == b']' {
            return self.take(b']');
        }
        loop {
            entry(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.take(b']'),
            }
        }
    }

    /// Passes over a value of any sort; gives its text.
    pub fn skip(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        self.pass()?;
        self.text.get(start..self.at)
    }

    fn pass(&mut self) -> Option<()> {
        // One bit for each open bracket, the innermost last: whether it is that of an object.
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            let opened = match self.peek()? {
                b'"' => self.pass_text().map(|()| None),
                b'{' => Some(Some(true)),
                b'[' => Some(Some(false)),
                b't' => self.word("true").map(|()| None),
                b'f' => self.word("false").map(|()| None),
                b'n' => self.word("null").map(|()| None),
                _ => self.pass_number().map(|()| None),
            }?;
            if let Some(is_object) = opened {
                self.at += 1;
                let close = if is_object { b'}' } else { b']' };
                if self.peek()? != close {
                    if depth == DEEPEST {
                        return None;
                    }
                    (objects, depth) = (objects << 1 | u64::from(is_object), depth + 1);
                    if is_object {
                        self.pass_name()?;
                    }
                    continue;
                }
                self.at += 1;
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = objects & 1 == 1;
                match (self.peek()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.pass_name()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        (objects, depth) = (objects >> 1, depth - 1);
                    }
                    _ => return None,
                }
            }
        }
    }

    fn pass_name(&mut self) -> Option<()> {
        self.peek()?;
        self.pass_text()?;
        self.take(b':')
    }

    fn pass_text(&mut self) -> Option<()> {
        self.take(b'"')?;
        let bytes = self.text.as_bytes();
        loop {
            let end = self.stop()?;
            match (bytes.get(end)?, bytes.get(end + 1)) {
                (b'"', _) => {
                    self.at = end + 1;
                    return Some(());
                }
                (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                    self.at = end + 2;
                }
                (b'\\', Some(b'u')) => {
                    let digits = bytes.get(end + 2..end + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    self.at = end + 6;
                }
                _ => return None,
            }
        }
    }

    fn pass_number(&mut self) -> Option<()> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte()? {
            b'0' => self.at += 1,
            _ => self.pass_digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.pass_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.pass_digits()?;
        }
        Some(())
    }

    /// One digit at least.
    fn pass_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        if self.peek()? != wanted {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        if !rest.starts_with(word.as_bytes()) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    /// Where the text ends that the place is in, or its first byte that does not stand for itself.
    fn stop(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while let Some(eight) = bytes.get(at..)?.first_chunk() {
            let found = special(u64::from_le_bytes(*eight));
            if found != 0 {
                return Some(at + found.trailing_zeros() as usize / 8);
            }
            at += 8;
        }
        let mut rest = bytes.get(at..)?.iter();
        let place = rest.position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        Some(at + place)
    }
}

/// Eight bytes in which the first that is a quote, a backslash or a control character has its highest bit set. Only what
/// comes after it may be wrong.
fn special(eight: u64) -> u64 {
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes;
    let controls = eight.wrapping_sub(ONES * 0x20) & !eight;
    let quotes = zeros(eight ^ (ONES * b'"' as u64));
    let escapes = zeros(eight ^ (ONES * b'\\' as u64));
    (controls | quotes | escapes) & (ONES << 7)
}
