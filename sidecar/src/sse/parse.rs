//! From the bytes of an event stream to its events, by the rules of WHATWG and whatever the chunks, within bounds that those
//! rules do not have. Knows no connection and no clock.

#[cfg(test)]
mod tests;

use std::{mem, time::Duration};

use memchr::{memchr, memchr2};

/// What may stand once before everything.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Bytes that a buffer keeps from one event to the next. What a large one needed goes back.
const KEPT: usize = 16 * 1024;

/// How much is kept of what has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line.
    pub line: usize,
    /// Bytes of the data of an event.
    pub event: usize,
}

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// The server says how long to wait before coming back.
    Retry(Duration),
    /// Something was too long and is left out: the line, and the whole event that it belongs to.
    Excess(Excess),
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its type; `message` where it has none.
    pub name: &'a str,
    /// What it says.
    pub data: &'a str,
}

/// What was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// A line.
    Line,
    /// The data of an event, all lines together.
    Event,
}

/// The line that has not ended yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// It is kept.
    #[default]
    Kept,
    /// It means nothing, so it is not kept.
    Comment,
    /// It is too long to be kept.
    TooLong,
}

/// Reads one stream.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    is_first_line: bool,
    /// A line has ended with CR; an LF that comes now belongs to it.
    is_after_cr: bool,
    state: Line,
    line: Vec<u8>,
    name: String,
    /// Each line of the data ends with LF here.
    data: String,
    /// Part of the event was left out.
    is_spoiled: bool,
    id: String,
    last_id: String,
}

impl Parser {
    /// For a stream from its beginning, where the last event had this id.
    pub fn new(limits: Limits, last_id: &str) -> Self {
        Self {
            limits,
            is_first_line: true,
            is_after_cr: false,
            state: Line::Kept,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            is_spoiled: false,
            id: last_id.to_owned(),
            last_id: last_id.to_owned(),
        }
    }

    /// The id to resume from; empty if there is none.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Takes the next bytes, and hands over what they complete.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        let mut rest = chunk;
        if self.is_after_cr && !rest.is_empty() {
            self.is_after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr2(b'\r', b'\n', rest) {
            let (part, end) = rest.split_at(at);
            self.end_line(part, sink);
            rest = match end {
                // To wait for an LF that may follow would hold the event back.
                [b'\r'] => {
                    self.is_after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.keep(rest, sink);
    }

    /// Keeps part of a line, if that is of any use.
    fn keep(&mut self, part: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        match self.state {
            Line::Comment | Line::TooLong => return,
            Line::Kept => {}
        }
        if self.line.is_empty() && part.starts_with(b":") {
            self.state = Line::Comment;
        } else if self.fits(part) {
            self.line.extend_from_slice(part);
        } else {
            self.state = Line::TooLong;
            self.line = Vec::new();
            self.spoil(Excess::Line, sink);
        }
    }

    fn fits(&self, part: &[u8]) -> bool {
        self.line.len() + part.len() <= self.limits.line
    }

    /// The last part of a line has come.
    fn end_line(&mut self, part: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        let state = mem::take(&mut self.state);
        let is_whole = self.line.is_empty();
        match state {
            Line::Comment | Line::TooLong => {}
            Line::Kept if is_whole && part.starts_with(b":") => {}
            Line::Kept if !self.fits(part) => {
                self.line = Vec::new();
                self.spoil(Excess::Line, sink);
            }
            Line::Kept if is_whole => self.read(part, sink),
            Line::Kept => {
                let mut line = mem::take(&mut self.line);
                line.extend_from_slice(part);
                self.read(&line, sink);
                line.clear();
                line.shrink_to(KEPT);
                self.line = line;
            }
        }
        self.is_first_line = false;
    }

    /// Reads a whole line.
    fn read(&mut self, line: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.is_first_line => rest,
            Some(_) | None => line,
        };
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (line.get(..at), line.get(at + 1..)),
            None => (Some(line), None),
        };
        let value = value.unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // No letter goes over the end of a line, so a line is repaired as the whole stream would be.
        let text = || String::from_utf8_lossy(value);
        match field.unwrap_or_default() {
            b"data" => self.add(&text(), sink),
            b"event" => self.name = text().into_owned(),
            b"id" if memchr(0, value).is_none() => self.id = text().into_owned(),
            b"retry" => {
                if let Some(delay) = milliseconds(&text()) {
                    sink(Item::Retry(delay));
                }
            }
            // An empty field is a comment after a byte order mark.
            _ => {}
        }
    }

    fn add(&mut self, text: &str, sink: &mut dyn FnMut(Item<'_>)) {
        if self.is_spoiled {
            return;
        }
        if self.data.len() + text.len() > self.limits.event {
            return self.spoil(Excess::Event, sink);
        }
        self.data.push_str(text);
        self.data.push('\n');
    }

    /// Gives up on the event; what is left of it is read over.
    fn spoil(&mut self, excess: Excess, sink: &mut dyn FnMut(Item<'_>)) {
        self.is_spoiled = true;
        self.data = String::new();
        sink(Item::Excess(excess));
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(Item<'_>)) {
        // Also after one that was left out: it would be as long when it is sent again.
        self.last_id.clone_from(&self.id);
        if !mem::take(&mut self.is_spoiled)
            && let Some(data) = self.data.strip_suffix('\n')
        {
            let name = match &*self.name {
                "" => "message",
                name => name,
            };
            sink(Item::Event(Event { name, data }));
        }
        self.name.clear();
        self.data.clear();
        self.data.shrink_to(KEPT);
    }
}

/// The time that digits and nothing else mean; one that is longer than any is the longest.
fn milliseconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_millis(text.parse().unwrap_or(u64::MAX)))
}
