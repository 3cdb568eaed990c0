//! A registry as a page, in the format that the scraper asks for.

use std::fmt;

use http::HeaderValue;
use prometheus_client::{encoding::text::encode, registry::Registry};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// What Prometheus asks for.
    OpenMetrics,
    /// What everyone else understands.
    Text,
}

impl Format {
    /// The best format that an `Accept` header allows.
    pub(super) fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        })
    }
}

/// All metrics as a page.
pub(super) fn render(registry: &Registry, format: Format) -> Result<String, fmt::Error> {
    let mut page = String::new();
    encode(&mut page, registry)?;
    Ok(match format {
        Format::OpenMetrics => page,
        Format::Text => plain(&page),
    })
}

/// The older text format has no units and no end mark, and names a counter as its samples are named.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap_or((typed, "unknown"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take() {
                text += &format!("# HELP {name}{suffix} {help}\n");
            }
            text += &format!("# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with("# ") {
            text += line;
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        metrics::{counter::Counter, gauge::Gauge, info::Info},
        registry::Unit,
    };

    use super::*;

    fn registry() -> Registry {
        let mut registry = Registry::default();
        let reviews = Counter::<u64>::default();
        reviews.inc_by(7);
        registry.register("reviews", "Reviews answered", reviews);
        let age = Gauge::<i64>::default();
        age.set(3);
        registry.register_with_unit("age", "Age of it", Unit::Seconds, age);
        registry.register("build", "The build", Info::new([("version", "1")]));
        registry
    }

    #[test]
    fn openmetrics_is_what_the_library_writes() {
        let page = render(&registry(), Format::OpenMetrics).expect("a page");
        let expected = "\
# HELP reviews Reviews answered.
# TYPE reviews counter
reviews_total 7
# HELP age_seconds Age of it.
# TYPE age_seconds gauge
# UNIT age_seconds seconds
age_seconds 3
# HELP build The build.
# TYPE build info
build_info{version=\"1\"} 1
# EOF
";
        assert_eq!(page, expected);
    }

    #[test]
    fn the_older_format_names_types_after_their_samples() {
        let page = render(&registry(), Format::Text).expect("a page");
        let expected = "\
# HELP reviews_total Reviews answered.
# TYPE reviews_total counter
reviews_total 7
# HELP age_seconds Age of it.
# TYPE age_seconds gauge
age_seconds 3
# HELP build_info The build.
# TYPE build_info gauge
build_info{version=\"1\"} 1
";
        assert_eq!(page, expected);
    }

    #[test]
    fn the_format_follows_the_accept_header() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Text);
        assert_eq!(Format::accepted(""), Format::Text);
    }
}
