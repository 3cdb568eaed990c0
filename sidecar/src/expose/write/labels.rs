//! The labels of a series as text, for a page with a given escaping.

use std::borrow::Cow;

use crate::{
    model::{Labels, Number, quote},
    names::{Escaping, escape_label},
};

/// Writes labels; what most pages have is copied.
#[derive(Debug)]
pub(in super::super) struct LabelText {
    escaping: Escaping,
    scratch: String,
}

impl LabelText {
    pub(in super::super) fn new(escaping: Escaping) -> Self {
        Self {
            escaping,
            scratch: String::new(),
        }
    }

    /// Without braces. `reserved` is a label that the page itself will add: `le` or `quantile`.
    pub(in super::super) fn of<'a>(
        &'a mut self,
        labels: &'a Labels,
        reserved: Option<&str>,
    ) -> &'a str {
        if is_kept(labels, self.escaping, reserved) {
            return labels.as_str();
        }
        self.scratch.clear();
        for (name, value) in merged(labels, self.escaping, reserved) {
            if !self.scratch.is_empty() {
                self.scratch.push(',');
            }
            match crate::names::is_label(&name) {
                true => self.scratch.push_str(&name),
                false => quote(&name, &mut self.scratch),
            }
            self.scratch.push('=');
            quote(&value, &mut self.scratch);
        }
        &self.scratch
    }
}

impl LabelText {
    /// Whether this is a state of a set: it says which by the label with the name of its family, and is on or off.
    pub(in super::super) fn is_state(&self, labels: &Labels, family: &str, value: Number) -> bool {
        let mut names = labels.pairs().map(|(name, _)| name);
        [0.0, 1.0].contains(&value.as_f64())
            && names.any(|name| escape_label(&name, self.escaping) == family)
    }
}

/// Whether labels are on the page as they are kept.
pub(super) fn is_kept(labels: &Labels, escaping: Escaping, reserved: Option<&str>) -> bool {
    let text = labels.as_str();
    let is_fit = match escaping {
        Escaping::AllowUtf8 => true,
        Escaping::Underscores | Escaping::Values => labels.is_plain(),
        Escaping::Dots => labels.is_plain() && !text.contains('_'),
    };
    is_fit && !reserved.is_some_and(|reserved| may_have(text, reserved))
}

/// Whether a label is there; sometimes also if only a strange name looks like it.
fn may_have(text: &str, name: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let before = rest.get(..at).unwrap_or_default();
        let after = rest.get(at + name.len()..).unwrap_or_default();
        let begins = before.is_empty() && rest.len() == text.len() || before.ends_with(',');
        if begins && after.starts_with("=\"") {
            return true;
        }
        rest = after;
    }
    false
}

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The pairs by the names they get on the page. Names that become one have their values joined, in the order that the
/// specification of OpenTelemetry wants.
pub(in super::super) fn merged<'a>(
    labels: &'a Labels,
    escaping: Escaping,
    reserved: Option<&str>,
) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for (name, value) in labels.pairs() {
        let mut name = match escape_label(&name, escaping) {
            Cow::Borrowed(_) => name,
            Cow::Owned(escaped) => Cow::Owned(escaped),
        };
        if reserved == Some(&*name) || name == "__name__" {
            name = Cow::Owned(format!("exported_{name}"));
        }
        match pairs.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                let joined = known.to_mut();
                joined.push(';');
                joined.push_str(&value);
            }
            None => pairs.push((name, value)),
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pairs: &[(&str, &str)], escaping: Escaping, reserved: Option<&str>) -> String {
        let labels = Labels::of(pairs.iter().copied());
        LabelText::new(escaping).of(&labels, reserved).to_owned()
    }

    #[test]
    fn labels_follow_the_escaping() {
        let pairs = [("a.b", "1"), ("code_x", "2\n")];
        for (escaping, expected) in [
            (Escaping::Underscores, r#"a_b="1",code_x="2\n""#),
            (Escaping::Dots, r#"a_dot_b="1",code__x="2\n""#),
            (Escaping::Values, r#"U__a_2e_b="1",code_x="2\n""#),
            (Escaping::AllowUtf8, r#""a.b"="1",code_x="2\n""#),
        ] {
            assert_eq!(written(&pairs, escaping, None), expected);
        }
    }

    #[test]
    fn labels_that_become_one_are_joined() {
        let pairs = [
            ("hello-world", "a"),
            ("hello.world", "b"),
            ("hello_world", "c"),
        ];
        assert_eq!(
            written(&pairs, Escaping::Underscores, None),
            r#"hello_world="a;b;c""#
        );
        let name = [("..name..", "x")];
        assert_eq!(
            written(&name, Escaping::Underscores, None),
            r#"exported___name__="x""#
        );
    }

    #[test]
    fn the_label_of_the_page_wins() {
        for (pairs, expected) in [
            (&[("le", "1")] as &[_], r#"exported_le="1""#),
            (&[("a", "1"), ("le", "2")], r#"a="1",exported_le="2""#),
            (&[("a", ",le=\"")], r#"a=",le=\"""#),
            (&[("a.le=", "x")], r#""a.le="="x""#),
            (&[("a,le=", "x")], r#""a,le="="x""#),
            (&[("title", "x")], r#"title="x""#),
        ] {
            assert_eq!(written(pairs, Escaping::AllowUtf8, Some("le")), expected);
        }
    }
}
