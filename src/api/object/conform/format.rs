//! The formats of texts that the API server holds an object to. It reads more leniently than the standards say, and so
//! does this; other formats, such as int32, it does not hold anyone to.

use crate::api::object::cause::Reason;

/// A format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A moment.
    DateTime,
    /// An address: with a scheme, or an absolute path.
    Uri,
}

impl Format {
    /// The format of this name, if it is one that counts.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "date-time" => Some(Self::DateTime),
            "uri" => Some(Self::Uri),
            _ => None,
        }
    }

    /// Whether the text has this format.
    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Uri => is_uri(text),
        }
    }

    /// What is wrong and what would be right, as the end of a sentence.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::DateTime => "is not a time; write one like 2026-02-08T10:00:00Z",
            Self::Uri => "is not a URL; write an address like https://host.example/path",
        }
    }

    /// The reason for refusing a text of another format.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::DateTime => Reason::InvalidTime,
            Self::Uri => Reason::InvalidUrl,
        }
    }
}

/// A date, `t`, and a time of day with an offset. What follows a second `t` is not looked at.
fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date.as_bytes()) && is_time_of_day(time)
}

fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return false;
    };
    let number = |digits: &[u8]| -> Option<i16> {
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
    };
    let small = |digits: &[u8]| number(digits).and_then(|n| i8::try_from(n).ok());
    let (year, month, day) = (
        number(&[y1, y2, y3, y4]),
        small(&[m1, m2]),
        small(&[d1, d2]),
    );
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => jiff::civil::Date::new(year, month, day).is_ok(),
        (None, _, _) | (_, None, _) | (_, _, None) => false,
    }
}

/// `hh:mm:ss`, then perhaps one mark and a fraction, then `z` or an offset `+hh:mm`.
fn is_time_of_day(text: &str) -> bool {
    let digits = |text: &str, most: &str| {
        text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) && text <= most
    };
    let clock = |text: &str, hours: &str, minutes: &str| {
        let (hour, minute) = text.split_once(':').unwrap_or_default();
        digits(hour, hours) && digits(minute, minutes)
    };
    let (Some(clock_text), Some(seconds)) = (text.get(..5), text.get(5..8)) else {
        return false;
    };
    let seconds = seconds.strip_prefix(':').unwrap_or_default();
    if !clock(clock_text, "23", "59") || !digits(seconds, "59") {
        return false;
    }
    let rest = text.get(8..).unwrap_or_default();
    let fraction = match rest.strip_suffix(['z', 'Z']) {
        Some(fraction) => fraction,
        None => {
            let cut = rest.len().saturating_sub(6);
            let (Some(fraction), Some(offset)) = (rest.get(..cut), rest.get(cut..)) else {
                return false;
            };
            match offset.strip_prefix(['+', '-']) {
                Some(offset) if clock(offset, "99", "99") => fraction,
                Some(_) | None => return false,
            }
        }
    };
    let mut chars = fraction.chars();
    let no_fraction = chars.next().is_none();
    let digits = chars.as_str();
    no_fraction || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// An address as it would stand in a request: `scheme:...` or `/...`, or `*`.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b.is_ascii_control()) {
        return false;
    }
    let (has_scheme, rest) = match scheme_end(text) {
        Some(0) => return false,
        Some(end) => (true, text.get(end + 1..).unwrap_or_default()),
        None => (false, text),
    };
    let path = rest.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        return has_scheme || text == "*";
    }
    match path.strip_prefix("//").filter(|_| has_scheme) {
        Some(place) => {
            let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
            is_authority(authority) && escapes_are_whole(path)
        }
        None => escapes_are_whole(path),
    }
}

/// Where the scheme ends: before the first colon, if only letters, digits and `+-.` come before it.
fn scheme_end(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))?;
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == ':');
    (text.get(end..)?.starts_with(':') && starts).then_some(end)
}

/// User, host and port.
fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:%".contains(c);
    let is_user = user.chars().all(|c| plain(c) || c == '@');
    let is_host = host
        .chars()
        .all(|c| plain(c) || !c.is_ascii() || "[]<>\"".contains(c));
    let port = match host.rfind(']') {
        Some(end) => host.get(end + 1..).unwrap_or_default(),
        None => host
            .rfind(':')
            .and_then(|colon| host.get(colon..))
            .unwrap_or_default(),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_port =
        port.is_empty() || port.starts_with(':') && digits.bytes().all(|b| b.is_ascii_digit());
    is_user && is_host && is_port && escapes_are_whole(text)
}

/// Two hexadecimal digits after each percent sign.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_api_server_reads_them() {
        for right in [
            "2026-02-08T10:00:00Z",
            "2026-02-08t10:00:00z",
            "2026-02-08T10:00:00.123456789Z",
            "2026-02-08T10:00:00+02:00",
            "2026-02-08T10:00:00.5-99:99",
            "2024-02-29T23:59:59Z",
            "2026-02-08T10:00:00,5Z",
            "0000-01-01T00:00:00Z",
            "2026-02-08T10:00:00Zt",
        ] {
            assert!(Format::DateTime.fits(right), "{right}");
        }
        for wrong in [
            "",
            "yesterday",
            "2026-02-08",
            "2026-02-30T10:00:00Z",
            "2026-13-01T10:00:00Z",
            "2026-2-8T10:00:00Z",
            "2026-02-08 10:00:00Z",
            "2026-02-08T10:00Z",
            "2026-02-08T24:00:00Z",
            "2026-02-08T10:60:00Z",
            "2026-02-08T10:00:60Z",
            "2026-02-08T10:00:00",
            "2026-02-08T10:00:00.Z",
            "2026-02-08T10:00:00+0200",
            "+026-02-08T10:00:00Z",
            "2026-02-08Tää:00:00Z",
        ] {
            assert!(!Format::DateTime.fits(wrong), "{wrong}");
        }
    }

    #[test]
    fn addresses_are_read_as_the_api_server_reads_them() {
        for right in [
            "https://git.example.com",
            "https://me@git.example.com:8443/a%20b?c=%zz",
            "ssh://git@host",
            "mailto:someone",
            "host:80 80",
            "/path",
            "//host/path",
            "https://[::1]:80/",
            "https://bücher.example/",
            "*",
            "https://host:/",
        ] {
            assert!(Format::Uri.fits(right), "{right}");
        }
        for wrong in [
            "",
            "git.example.com",
            ":80",
            "https://a b/",
            "https://host:port/",
            "https://host/%zz",
            "https://host/\n",
            "https://[::1]x/",
            "1http://host",
        ] {
            assert!(!Format::Uri.fits(wrong), "{wrong}");
        }
    }
}
