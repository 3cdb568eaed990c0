//! Whether a condition in CEL leaves a user out, as far as that can be seen without evaluating CEL.
//!
//! Read are parts joined by `&&`, each a comparison of the user's name with a text or with a list of texts. Whatever is
//! written otherwise counts as not leaving anyone out: a false alarm is looked at, a false peace is not.

/// What conditions call the user.
const USERNAME: &str = "request.userInfo.username";

/// Whether the condition does not hold for requests of this user.
pub(super) fn leaves_out(expression: &str, user: &str) -> bool {
    let Some(tokens) = tokens(expression) else {
        return false;
    };
    // One `||` anywhere can make up for a part that does not hold.
    !tokens.contains(&Token::Sign("||"))
        && tokens
            .split(|token| *token == Token::Sign("&&"))
            .any(|part| part_leaves_out(part, user))
}

fn part_leaves_out(part: &[Token<'_>], user: &str) -> bool {
    use Token::{Sign, Text, Word};
    match part {
        [Word(USERNAME), Sign("!="), Text(text)] | [Text(text), Sign("!="), Word(USERNAME)] => {
            *text == user
        }
        [Sign("!"), Sign("("), inner @ .., Sign(")")] => names(inner, user),
        _ => false,
    }
}

/// Whether the part is a comparison that holds for this user.
fn names(part: &[Token<'_>], user: &str) -> bool {
    use Token::{Sign, Text, Word};
    match part {
        [Word(USERNAME), Sign("=="), Text(text)] | [Text(text), Sign("=="), Word(USERNAME)] => {
            *text == user
        }
        [Word(USERNAME), Word("in"), Sign("["), list @ .., Sign("]")] => {
            let is_plain = |token: &Token<'_>| matches!(token, Text(_) | Sign(","));
            list.iter().all(is_plain) && list.contains(&Text(user))
        }
        _ => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name, with the fields behind it.
    Word(&'a str),
    /// A text in quotes, without them.
    Text(&'a str),
    /// Anything else.
    Sign(&'static str),
}

const SIGNS: [&str; 11] = ["&&", "||", "==", "!=", "!", "(", ")", "[", "]", ",", "?"];

/// The expression in pieces; none if it has one that is not known here.
fn tokens(expression: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let token;
        (token, rest) = match first {
            '\'' | '"' => {
                let (text, after) = rest[1..].split_once(first)?;
                // What is escaped may mean anything, three quotes in a row a text over several lines.
                if text.contains('\\') || (text.is_empty() && after.starts_with(first)) {
                    return None;
                }
                (Token::Text(text), after)
            }
            _ if is_of_word(first) => {
                let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                (Token::Word(word), after)
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
                (Token::Sign(sign), &rest[sign.len()..])
            }
        };
        tokens.push(token);
        rest = rest.trim_start();
    }
    Some(tokens)
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_condition_that_fails_for_the_user_leaves_it_out() {
        let name = "request.userInfo.username";
        for (expression, expected) in [
            (format!("!({name} in ['a', 'me'])"), true),
            (format!("! ( {name} in [\"me\"] )"), true),
            (format!("{name} != 'me'"), true),
            (format!("'me' != {name}"), true),
            (
                format!("!({name} == 'me') && request.operation == 'CREATE'"),
                true,
            ),
            (format!("{name} in ['me']"), false),
            (format!("{name} == 'me'"), false),
            (format!("!({name} in ['a'])"), false),
            (format!("!({name} in ['me2'])"), false),
            (format!("!({name} in ['me']) || true"), false),
            (format!("!(!({name} in ['me']))"), false),
            (format!("!({name} in ['me'] ? false : true)"), false),
            ("true // leaves out me".to_owned(), false),
            ("'me' == 'me'".to_owned(), false),
            (format!("!({name} in ['m\\u0065'])"), false),
            (format!("'''{name} != 'me''''"), false),
            (String::new(), false),
        ] {
            assert_eq!(leaves_out(&expression, "me"), expected, "{expression}");
        }
    }
}
