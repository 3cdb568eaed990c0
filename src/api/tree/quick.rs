//! Trees as the quick reader reads them.

use std::borrow::Cow;

use super::{Cursor, Tree};

/// Brackets that may be open at once. Deeper ones are left to the thorough reader, who knows where the stack ends.
const DEEPEST: usize = 64;
/// Room for what most specs hold, so that it is made once.
const USUAL: usize = 32;

/// A whole text as a tree, if it is as machines write it: keys in order, nothing twice.
pub(super) fn read(text: &str) -> Option<Tree<'_>> {
    let mut cursor = Cursor::new(text);
    let mut open = Open {
        entries: Vec::new(),
        fields: Vec::with_capacity(USUAL),
        depth: 0,
    };
    let tree = open.value(&mut cursor)?;
    cursor.is_at_end().then_some(tree)
}

/// What is in the lists and objects that are still open, so that each is made once and as large as it is.
struct Open<'a> {
    entries: Vec<Tree<'a>>,
    fields: Vec<(Cow<'a, str>, Tree<'a>)>,
    depth: usize,
}

impl<'a> Open<'a> {
    fn value(&mut self, cursor: &mut Cursor<'a>) -> Option<Tree<'a>> {
        match cursor.peek()? {
            b'"' => text(cursor),
            b'{' => self.nested(cursor, Self::object),
            b'[' => self.nested(cursor, Self::list),
            b't' | b'f' => cursor.truth().map(Tree::Bool),
            b'n' => cursor.unless_null(|_| None::<()>).map(|_| Tree::Null),
            _ => cursor.whole().map(|number| Tree::Number(number.into())),
        }
    }

    fn nested(
        &mut self,
        cursor: &mut Cursor<'a>,
        read: fn(&mut Self, &mut Cursor<'a>) -> Option<Tree<'a>>,
    ) -> Option<Tree<'a>> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let read = read(self, cursor);
        self.depth -= 1;
        read
    }

    fn object(&mut self, cursor: &mut Cursor<'a>) -> Option<Tree<'a>> {
        let start = self.fields.len();
        let mut before = None;
        cursor.fields(|cursor, name| {
            if before.is_some_and(|before| before >= name) {
                return None;
            }
            before = Some(name);
            let value = self.value(cursor)?;
            self.fields.push((Cow::Borrowed(name), value));
            Some(())
        })?;
        Some(Tree::Fields(self.fields.drain(start..).collect()))
    }

    fn list(&mut self, cursor: &mut Cursor<'a>) -> Option<Tree<'a>> {
        let start = self.entries.len();
        cursor.entries(|cursor| {
            let value = self.value(cursor)?;
            self.entries.push(value);
            Some(())
        })?;
        Some(Tree::List(self.entries.drain(start..).collect()))
    }
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Option<Tree<'a>> {
    let mut ahead = cursor.clone();
    if let Some(plain) = ahead.plain() {
        *cursor = ahead;
        return Some(Tree::Text(Cow::Borrowed(plain)));
    }
    let escaped: String = serde_json::from_str(cursor.skip()?).ok()?;
    Some(Tree::Text(Cow::Owned(escaped)))
}
