//! The name of a label by a strategy.

use std::borrow::Cow;

use super::{NameError, Strategy};

/// How attributes become labels. The default is what the specification says; Prometheus 3 sets both switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelOptions {
    /// Decides whether anything is replaced at all.
    pub strategy: Strategy,
    /// Keeps several underscores in a row (`label_name_preserve_multiple_underscores` in Prometheus).
    pub preserve_multiple_underscores: bool,
    /// Puts `key` before a single leading underscore (`label_name_underscore_sanitization` in Prometheus).
    pub underscore_sanitization: bool,
}

/// What an attribute is called on the page; UTF-8 where the strategy keeps it.
pub fn label(name: &str, options: LabelOptions) -> Result<Cow<'_, str>, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    let named = match options.strategy.escapes() {
        true => escaped(name, options),
        false => Cow::Borrowed(name),
    };
    // `key_` is what the translator makes of underscores; all such attributes would be one label.
    if named.bytes().all(|byte| byte == b'_') || named == "key_" && name != "key_" {
        return Err(NameError::Underscores);
    }
    if named == "__name__" {
        return Err(NameError::Reserved);
    }
    Ok(named)
}

fn escaped(name: &str, options: LabelOptions) -> Cow<'_, str> {
    let preserve = options.preserve_multiple_underscores;
    // `__x__` is a name that Prometheus itself gives; only what is inside is changed.
    let inner = name
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"));
    let (edge, inner) = match inner {
        Some(inner) if !preserve => ("__", inner),
        _ => ("", name),
    };
    let mut named = String::with_capacity(name.len() + 4);
    named.push_str(edge);
    let mut was_underscore = false;
    for letter in inner.chars() {
        let is_word = letter.is_ascii_alphanumeric();
        if is_word {
            named.push(letter);
        } else if preserve || !was_underscore {
            named.push('_');
        }
        was_underscore = !is_word;
    }
    named.push_str(edge);
    if named.starts_with(|letter: char| letter.is_ascii_digit()) {
        named.insert_str(0, "key_");
    } else if options.underscore_sanitization && named.starts_with('_') && !named.starts_with("__")
    {
        named.insert_str(0, "key");
    }
    match named == name {
        true => Cow::Borrowed(name),
        false => Cow::Owned(named),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::model::is_plain;

    const SPEC: LabelOptions = LabelOptions {
        strategy: Strategy::UnderscoreEscapingWithSuffixes,
        preserve_multiple_underscores: false,
        underscore_sanitization: false,
    };
    const PRESERVE: LabelOptions = LabelOptions {
        preserve_multiple_underscores: true,
        ..SPEC
    };
    const SANITIZE: LabelOptions = LabelOptions {
        underscore_sanitization: true,
        ..SPEC
    };
    const BOTH: LabelOptions = LabelOptions {
        preserve_multiple_underscores: true,
        ..SANITIZE
    };

    /// What the translator of Prometheus makes of each name by the specification, with underscores preserved, with a
    /// leading one sanitised, and with both; nothing where it refuses.
    const VECTORS: &[(&str, [&str; 4])] = &[
        ("label:with:colons", ["label_with_colons"; 4]),
        ("LabelWithCapitalLetters", ["LabelWithCapitalLetters"; 4]),
        (
            "label!with&special$chars)",
            ["label_with_special_chars_"; 4],
        ),
        (
            "label_with_foreign_characters_字符",
            [
                "label_with_foreign_characters_",
                "label_with_foreign_characters___",
                "label_with_foreign_characters_",
                "label_with_foreign_characters___",
            ],
        ),
        ("label.with.dots", ["label_with_dots"; 4]),
        (".foo", ["_foo", "_foo", "key_foo", "key_foo"]),
        ("123label", ["key_123label"; 4]),
        ("_one", ["_one", "_one", "key_one", "key_one"]),
        ("__two", ["_two", "__two", "key_two", "__two"]),
        ("ようこそ", [""; 4]),
        ("a__b", ["a_b", "a__b", "a_b", "a__b"]),
        (
            "label.name__with&&special##chars",
            [
                "label_name_with_special_chars",
                "label_name__with__special__chars",
                "label_name_with_special_chars",
                "label_name__with__special__chars",
            ],
        ),
        (
            "__reserved__label__name__",
            [
                "__reserved_label_name__",
                "__reserved__label__name__",
                "__reserved_label_name__",
                "__reserved__label__name__",
            ],
        ),
        (
            "trailing_underscores___",
            [
                "trailing_underscores_",
                "trailing_underscores___",
                "trailing_underscores_",
                "trailing_underscores___",
            ],
        ),
        ("", [""; 4]),
        ("__", [""; 4]),
        ("____", [""; 4]),
    ];

    #[test]
    fn a_label_is_called_as_in_the_translator_of_prometheus() {
        assert_eq!(VECTORS.len(), 17);
        for (given, expected) in VECTORS {
            for (options, expected) in [SPEC, PRESERVE, SANITIZE, BOTH].into_iter().zip(expected) {
                let named = label(given, options).unwrap_or_default();
                assert_eq!(named, *expected, "{given} {options:?}");
            }
        }
    }

    #[test]
    fn utf8_is_kept_where_the_strategy_keeps_it() {
        let options = LabelOptions {
            strategy: Strategy::NoTranslation,
            ..SPEC
        };
        for (given, expected) in [
            ("ようこそ", Ok("ようこそ")),
            ("http.route", Ok("http.route")),
            ("", Err(NameError::Empty)),
            ("__", Err(NameError::Underscores)),
            ("__name__", Err(NameError::Reserved)),
        ] {
            assert_eq!(
                label(given, options).as_deref(),
                expected.as_ref().copied(),
                "{given}"
            );
        }
    }

    #[test]
    fn no_label_is_the_name_of_the_metric() {
        assert_eq!(label("__name__", SPEC), Err(NameError::Reserved));
        assert_eq!(label("..name..", PRESERVE), Err(NameError::Reserved));
        assert_eq!(label("..name..", SPEC).as_deref(), Ok("_name_"));
    }

    proptest! {
        #[test]
        fn an_escaped_label_is_valid_and_stays_as_it_is(
            name in ".{0,12}",
            preserve_multiple_underscores: bool,
            underscore_sanitization: bool,
        ) {
            let options = LabelOptions { preserve_multiple_underscores, underscore_sanitization, ..SPEC };
            if let Ok(named) = label(&name, options) {
                prop_assert!(is_plain(&named), "{named}");
                let again = label(&named, options);
                prop_assert_eq!(again.as_deref(), Ok(&*named));
            }
        }
    }
}
