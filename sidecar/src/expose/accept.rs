//! What the scraper asked for, from its headers.
//!
//! The rules are those of Prometheus' content negotiation. Nothing of a header is ever repeated in an answer: each
//! answer is one of a few fixed texts.

use http::HeaderValue;

use crate::names::Escaping;

/// How a page is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// What everything understands.
    #[default]
    Text004,
    /// The same with names in UTF-8.
    Text100,
    /// What Prometheus asks for first.
    OpenMetrics1,
    /// Whole histograms on one line; still a draft, so only for those who ask for exactly this.
    OpenMetrics2,
    /// With native histograms.
    Protobuf,
}

/// What is done to the bytes of a page on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// Nothing.
    #[default]
    Identity,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// What a scraper gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Style {
    /// How the page is written.
    pub format: Format,
    /// What is done with names that older versions do not know.
    pub escaping: Escaping,
}

/// The most clauses of a header that are looked at; Prometheus sends six.
const CLAUSES: usize = 32;

impl Style {
    /// The best that an `Accept` header allows: the highest `q`, of several the first; the oldest text for any other.
    pub fn accepted(accept: &str) -> Self {
        let mut best: Option<(Self, u16)> = None;
        for clause in clauses(accept) {
            let quality = clause.quality();
            let is_better = best.is_none_or(|(_, known)| quality > known);
            if let Some(style) = style(&clause).filter(|_| quality > 0 && is_better) {
                best = Some((style, quality));
            }
        }
        best.map(|(style, _)| style).unwrap_or_default()
    }

    /// The header of the answer.
    pub fn content_type(self) -> HeaderValue {
        use Escaping::{AllowUtf8, Dots, Underscores, Values};
        HeaderValue::from_static(match (self.format, self.escaping) {
            (Format::Text004, Underscores) => "text/plain; version=0.0.4; charset=utf-8",
            (Format::Text004, Dots) => "text/plain; version=0.0.4; charset=utf-8; escaping=dots",
            (Format::Text004, Values) => {
                "text/plain; version=0.0.4; charset=utf-8; escaping=values"
            }
            (Format::Text004, AllowUtf8) => {
                "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8"
            }
            (Format::Text100, Underscores) => {
                "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"
            }
            (Format::Text100, Dots) => "text/plain; version=1.0.0; charset=utf-8; escaping=dots",
            (Format::Text100, Values) => {
                "text/plain; version=1.0.0; charset=utf-8; escaping=values"
            }
            (Format::Text100, AllowUtf8) => {
                "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
            }
            (Format::OpenMetrics1, Underscores) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
            }
            (Format::OpenMetrics1, Dots) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=dots"
            }
            (Format::OpenMetrics1, Values) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=values"
            }
            (Format::OpenMetrics1, AllowUtf8) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
            }
            (Format::OpenMetrics2, Underscores) => {
                "application/openmetrics-text; version=2.0.0; charset=utf-8; escaping=underscores"
            }
            (Format::OpenMetrics2, Dots) => {
                "application/openmetrics-text; version=2.0.0; charset=utf-8; escaping=dots"
            }
            (Format::OpenMetrics2, Values) => {
                "application/openmetrics-text; version=2.0.0; charset=utf-8; escaping=values"
            }
            (Format::OpenMetrics2, AllowUtf8) => {
                "application/openmetrics-text; version=2.0.0; charset=utf-8; escaping=allow-utf-8"
            }
            (Format::Protobuf, Underscores) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            (Format::Protobuf, Dots) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=dots"
            }
            (Format::Protobuf, Values) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=values"
            }
            (Format::Protobuf, AllowUtf8) => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=allow-utf-8"
            }
        })
    }
}

impl Encoding {
    /// The best that an `Accept-Encoding` header allows: Zstandard, then gzip, unless a `q` says otherwise.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (Self::Identity, 0);
        for clause in clauses(accept) {
            let encoding = match clause.kind {
                kind if kind.eq_ignore_ascii_case("gzip") => Self::Gzip,
                kind if kind.eq_ignore_ascii_case("zstd") => Self::Zstd,
                _ => continue,
            };
            let quality = clause.quality();
            if quality > 0 && (quality, encoding) > (best.1, best.0) {
                best = (encoding, quality);
            }
        }
        best.0
    }

    /// The header of the answer, if there is to be one.
    pub fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
        }
    }
}

/// One alternative of a header: what it is, and what it says about it.
#[derive(Clone, Copy)]
struct Clause<'a> {
    kind: &'a str,
    parameters: &'a str,
}

fn clauses(header: &str) -> impl Iterator<Item = Clause<'_>> {
    header.split(',').take(CLAUSES).map(|clause| {
        let (kind, parameters) = clause.split_once(';').unwrap_or((clause, ""));
        Clause {
            kind: kind.trim(),
            parameters,
        }
    })
}

impl<'a> Clause<'a> {
    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.split(';').find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            let is_it = key.trim().eq_ignore_ascii_case(name);
            is_it.then(|| value.trim().trim_matches('"'))
        })
    }

    /// In thousandths; what cannot be read counts as not said.
    fn quality(&self) -> u16 {
        let given = self
            .parameter("q")
            .and_then(|given| given.parse::<f64>().ok());
        let quality = given
            .filter(|given| (0.0..=1.0).contains(given))
            .unwrap_or(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000"
        )]
        let thousandths = (quality * 1000.0).round() as u16;
        thousandths
    }
}

/// What a clause asks for, if we can give it.
fn style(clause: &Clause<'_>) -> Option<Style> {
    let version = clause.parameter("version");
    let is = |kind: &str| clause.kind.eq_ignore_ascii_case(kind);
    let format = if is("text/plain") {
        match version {
            None | Some("0.0.4") => Format::Text004,
            Some("1.0.0") => Format::Text100,
            Some(_) => return None,
        }
    } else if is("application/openmetrics-text") {
        match version {
            // 0.0.1 is what drafts were called; the specification makes 1.0.0 of it.
            None | Some("0.0.1" | "1.0.0") => Format::OpenMetrics1,
            Some("2.0.0") => Format::OpenMetrics2,
            Some(_) => return None,
        }
    } else if is("application/vnd.google.protobuf") {
        let family = clause.parameter("proto") == Some("io.prometheus.client.MetricFamily");
        let delimited = clause.parameter("encoding") == Some("delimited");
        (family && delimited).then_some(Format::Protobuf)?
    } else if is("*/*") || is("text/*") {
        Format::Text004
    } else {
        return None;
    };
    let asked = clause.parameter("escaping");
    let known = Escaping::ALL
        .into_iter()
        .find(|known| asked == Some(known.as_str()));
    let escaping = match (format, known.unwrap_or_default()) {
        // This version cannot quote names.
        (Format::Text004, Escaping::AllowUtf8) => Escaping::Underscores,
        (_, escaping) => escaping,
    };
    Some(Style { format, escaping })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROTOBUF: &str =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily";

    fn answer(accept: &str) -> String {
        let header = Style::accepted(accept).content_type();
        header.to_str().expect("text").to_owned()
    }

    #[test]
    fn the_answer_follows_the_accept_header() {
        const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
        const DELIMITED: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
        let open_metrics = |version: &str, escaping: &str| {
            format!(
                "application/openmetrics-text; version={version}; charset=utf-8; escaping={escaping}"
            )
        };
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let protobuf_first = format!(
            "{PROTOBUF};encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
             text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
        );
        let cases: &[(&str, String)] = &[
            ("", TEXT.to_owned()),
            ("*/*", TEXT.to_owned()),
            ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT.to_owned()),
            ("application/unknown", TEXT.to_owned()),
            ("text/plain", TEXT.to_owned()),
            ("text/plain;version=0.0.4", TEXT.to_owned()),
            ("text/plain;version=0.0.4;", TEXT.to_owned()),
            (
                "text/plain;version=0.0.4; escaping=allow-utf-8",
                TEXT.to_owned(),
            ),
            (
                "text/plain;version=0.0.4; escaping=values;",
                format!("{TEXT}; escaping=values"),
            ),
            ("text/plain;version=9.9.9", TEXT.to_owned()),
            (
                "text/plain;version=1.0.0",
                "text/plain; version=1.0.0; charset=utf-8; escaping=underscores".to_owned(),
            ),
            (
                "text/plain; version=1.0.0; escaping=allow-utf-8",
                "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8".to_owned(),
            ),
            (
                "application/openmetrics-text",
                open_metrics("1.0.0", "underscores"),
            ),
            (
                "application/openmetrics-text;version=0.0.1; escaping=underscores",
                open_metrics("1.0.0", "underscores"),
            ),
            (
                "application/openmetrics-text;version=1.0.0",
                open_metrics("1.0.0", "underscores"),
            ),
            (
                "application/openmetrics-text;version=1.0.0; escaping=values;",
                open_metrics("1.0.0", "values"),
            ),
            (
                "application/openmetrics-text;version=1.0.0; escaping=nothing",
                open_metrics("1.0.0", "underscores"),
            ),
            (
                "application/openmetrics-text;version=0.0.4",
                TEXT.to_owned(),
            ),
            (
                "application/openmetrics-text;version=2.0.0",
                open_metrics("2.0.0", "underscores"),
            ),
            (
                "application/openmetrics-text;version=1.0.0;q=0.8, application/openmetrics-text;version=2.0.0;q=0.9",
                open_metrics("2.0.0", "underscores"),
            ),
            (
                &format!("{PROTOBUF};encoding=delimited"),
                DELIMITED.to_owned(),
            ),
            (
                &format!("{PROTOBUF};encoding=delimited; escaping=allow-utf-8;"),
                format!("{DELIMITED}; escaping=allow-utf-8"),
            ),
            (&format!("{PROTOBUF};encoding=text"), TEXT.to_owned()),
            (
                &format!("{PROTOBUF};encoding=compact-text"),
                TEXT.to_owned(),
            ),
            (
                "application/vnd.google.protobuf;encoding=delimited",
                TEXT.to_owned(),
            ),
            (prometheus, open_metrics("1.0.0", "allow-utf-8")),
            (&protobuf_first, DELIMITED.to_owned()),
            (
                "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;q=0.5",
                TEXT.to_owned(),
            ),
            (
                "text/plain;q=0,application/openmetrics-text;q=0.1",
                open_metrics("1.0.0", "underscores"),
            ),
            (
                "TEXT/PLAIN; Version=\"1.0.0\"; Escaping=dots",
                "text/plain; version=1.0.0; charset=utf-8; escaping=dots".to_owned(),
            ),
            (
                // The escaping of a clause that is not chosen does not count.
                "text/plain;version=7;escaping=dots,text/plain;version=0.0.4",
                TEXT.to_owned(),
            ),
        ];
        assert_eq!(cases.len(), 31);
        for (accept, expected) in cases {
            assert_eq!(answer(accept), *expected, "{accept}");
        }
    }

    #[test]
    fn the_encoding_follows_its_header() {
        for (accept, expected) in [
            ("", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("GZIP", Encoding::Gzip),
            ("zstd, gzip", Encoding::Zstd),
            ("gzip, zstd", Encoding::Zstd),
            ("gzip;q=1, zstd;q=0.5", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("gzip;q=0, identity", Encoding::Identity),
            ("deflate, br", Encoding::Identity),
            ("*", Encoding::Identity),
        ] {
            assert_eq!(Encoding::accepted(accept), expected, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn any_header_has_an_answer(accept in ".{0,64}") {
            Style::accepted(&accept);
            Encoding::accepted(&accept);
        }
    }
}
