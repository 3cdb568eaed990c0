use super::*;
use crate::kit::config::Flags;

type Environment<'a> = &'a [(&'a str, &'a str)];

fn read(environment: Environment<'_>) -> Result<OtlpSettings, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let loaded = Flags::default().resolve(environment.iter().map(own).collect());
    loaded
        .map(|(settings, _)| settings)
        .map_err(|error| error.to_string())
}

#[test]
fn endpoints_follow_the_rules_of_opentelemetry() {
    const BOTH: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://both:4317");
    let cases: [(&str, Environment<'_>, Option<&str>, Option<&str>); 5] = [
        ("nothing is set", &[], None, None),
        (
            "one for all",
            &[BOTH],
            Some("http://both:4317/"),
            Some("http://both:4317/"),
        ),
        (
            "one of them goes elsewhere",
            &[
                BOTH,
                ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:4317"),
            ],
            Some("http://both:4317/"),
            Some("http://m:4317/"),
        ),
        (
            "one of them is off",
            &[BOTH, ("OTEL_METRICS_EXPORTER", "none")],
            Some("http://both:4317/"),
            None,
        ),
        (
            "all is off",
            &[BOTH, ("OTEL_SDK_DISABLED", "true")],
            None,
            None,
        ),
    ];
    for (name, environment, traces, metrics) in cases {
        let settings = read(environment).expect(name);
        let endpoint = |text: Option<&str>| text.map(|text| Endpoint(text.to_owned()));
        assert_eq!(settings.traces, endpoint(traces), "{name}");
        assert_eq!(settings.metrics, endpoint(metrics), "{name}");
    }
}

#[test]
fn what_this_program_cannot_do_is_refused_in_words() {
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
    ];
    let error = read(&environment).expect_err("five problems");
    for part in [
        "5 settings are wrong",
        "OTEL_EXPORTER_OTLP_ENDPOINT: `collector:4317` is not a URL",
        "OTEL_EXPORTER_OTLP_PROTOCOL: `http/json` is not grpc",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: `http/protobuf` is not grpc",
        "OTEL_TRACES_SAMPLER: `jaeger_remote` is not always_on",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("authorization"), "{error}");
}

#[test]
fn metrics_can_go_another_way_than_traces() {
    let millis = |count| Millis(std::time::Duration::from_millis(count));
    let tenant = |settings: &OtlpSettings| {
        let of = |headers: &Option<Headers>| {
            let headers = headers.as_ref()?;
            Some(headers.0["x-tenant"].to_str().expect("a text").to_owned())
        };
        (of(&settings.headers), of(&settings.metrics_headers))
    };
    let text = |text: &str| Some(text.to_owned());
    let common = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "3000"),
        ("OTEL_SERVICE_NAME", "runs"),
        ("OTEL_SERVICE_NAMESPACE", "team"),
    ];
    let both = read(&common).expect("settings");
    assert_eq!(tenant(&both), (text("a"), text("a")));
    assert_eq!(
        (both.timeout, both.metrics_timeout),
        (millis(2000), millis(2000))
    );
    assert_eq!(both.interval, millis(3000));
    assert_eq!(
        (both.service_name, both.service_namespace),
        (text("runs"), text("team"))
    );
    let mut apart = common.to_vec();
    apart.push(("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-tenant=b"));
    apart.push(("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "500"));
    let apart = read(&apart).expect("settings");
    assert_eq!(tenant(&apart), (text("a"), text("b")));
    assert_eq!(
        (apart.timeout, apart.metrics_timeout),
        (millis(2000), millis(500))
    );
}

#[test]
fn headers_are_read_but_never_shown() {
    let headers = Headers::parse("authorization=Bearer abc=, x-tenant=a").expect("headers");
    assert_eq!(headers.0["authorization"], "Bearer abc=");
    assert_eq!(headers.0["x-tenant"], "a");
    assert_eq!(format!("{headers:?}"), r#"["authorization", "x-tenant"]"#);
}

#[test]
fn the_instance_is_the_pod_unless_said_otherwise() {
    let pod = ("HOSTNAME", "agents-7d9f");
    let instance = |environment: Environment<'_>| read(environment).expect("settings").instance;
    assert_eq!(instance(&[pod]).as_deref(), Some("agents-7d9f"));
    let given = ("OTEL_SERVICE_INSTANCE_ID", "one");
    assert_eq!(instance(&[pod, given]).as_deref(), Some("one"));
}

#[test]
fn a_filter_is_levels_by_target_and_nothing_that_would_be_misread() {
    use tracing::Level;
    let cases = [
        ("info", Some((true, false, true))),
        ("info,agents=debug", Some((true, true, true))),
        ("warn, agents=debug", Some((true, true, false))),
        ("agents=info", Some((true, false, false))),
        ("off", Some((false, false, false))),
        ("", None),
        ("info,", None),
        ("=debug", None),
        ("agents=loud", None),
        ("agents[run]=debug", None),
        ("agents[{run}]=debug", None),
    ];
    for (text, expected) in cases {
        let seen = LogFilter::parse(text).map(|LogFilter(targets)| {
            (
                targets.would_enable("agents::kit", &Level::INFO),
                targets.would_enable("agents::kit", &Level::DEBUG),
                targets.would_enable("hyper", &Level::INFO),
            )
        });
        assert_eq!(seen, expected, "{text:?}");
    }
}
