use proptest::prelude::{Just, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{
    super::{Escaping, escape, is_metric},
    MetricType::{Counter, Exponential, Gauge, Histogram, Summary, Unknown, UpDown},
    *,
};

const WITH: Strategy = Strategy::UnderscoreEscapingWithSuffixes;
const WITHOUT: Strategy = Strategy::UnderscoreEscapingWithoutSuffixes;
const UTF8_WITH: Strategy = Strategy::NoUtf8EscapingWithSuffixes;
const AS_IS: Strategy = Strategy::NoTranslation;

type Vector = (
    Strategy,
    MetricType,
    &'static str,
    &'static str,
    &'static str,
);

/// What the translator of Prometheus makes of them; nothing where it refuses. Those with a namespace are left out: we
/// have none.
#[rustfmt::skip]
const VECTORS: &[Vector] = &[
    (WITHOUT, Gauge, "simple_metric", "", "simple_metric"),
    (WITHOUT, Gauge, "metric@with#special$chars", "", "metric_with_special_chars"),
    (WITHOUT, Gauge, "123metric", "", "_123metric"),
    (WITHOUT, Gauge, "", "", ""),
    (WITHOUT, Gauge, "metric@@##$$name", "", "metric_name"),
    (WITHOUT, Gauge, "@#$%", "", ""),
    (WITHOUT, Gauge, "@_#_$_%", "", ""),
    (WITH, Counter, "requests", "", "requests_total"),
    (WITH, Gauge, "cpu_usage", "1", "cpu_usage_ratio"),
    (WITH, Counter, "items", "1", "items_total"),
    (WITH, Gauge, "response_time", "ms", "response_time_milliseconds"),
    (WITH, Gauge, "memory_usage", "By", "memory_usage_bytes"),
    (WITH, Gauge, "requests", "1/s", "requests_per_second"),
    (WITH, Gauge, "throughput", "By/s", "throughput_bytes_per_second"),
    (WITH, Gauge, "custom_metric", "custom_unit", "custom_metric_custom_unit"),
    (WITH, Gauge, "custom_metric", "{custom}", "custom_metric"),
    (WITH, Gauge, "custom_metric", "By/{custom}", "custom_metric_bytes"),
    (WITH, Counter, "requests_total", "", "requests_total"),
    (WITH, Gauge, "cpu_usage_ratio", "1", "cpu_usage_ratio"),
    (WITH, Gauge, "response_time_seconds", "s", "response_time_seconds"),
    (UTF8_WITH, Counter, "requests_total", "", "requests_total"),
    (UTF8_WITH, Gauge, "cpu_usage_ratio", "1", "cpu_usage_ratio"),
    (UTF8_WITH, Gauge, "response_time_seconds", "s", "response_time_seconds"),
    (UTF8_WITH, Counter, "cpu_seconds_total", "s", "cpu_seconds_total"),
    (UTF8_WITH, Counter, "otelcol_process_cpu_seconds", "s", "otelcol_process_cpu_seconds_total"),
    (WITHOUT, Gauge, "___", "", "___"),
    (AS_IS, Gauge, "___", "", "___"),
    (WITH, Gauge, "metric__with__multiple__underscores", "unit__multiple__underscores", "metric_with_multiple_underscores_unit_multiple_underscores"),
    (WITH, Gauge, "custom_metric", "unit@with#special/chars", "custom_metric_unit_with_special_per_chars"),
    (WITH, Gauge, "@#$%", "", ""),
    (AS_IS, Gauge, "métric_with_ñ_chars", "", "métric_with_ñ_chars"),
    (UTF8_WITH, Counter, "requêsts", "", "requêsts_total"),
    (UTF8_WITH, Gauge, "cpu_usagé", "1", "cpu_usagé_ratio"),
    (UTF8_WITH, Gauge, "respønse_time", "ms", "respønse_time_milliseconds"),
    (UTF8_WITH, Gauge, "requêsts", "1/s", "requêsts_per_second"),
    (UTF8_WITH, Counter, "@#$%", "", "@#$%_total"),
    (WITH, Histogram, "request_duration", "s", "request_duration_seconds"),
    (WITH, Exponential, "request_size", "By", "request_size_bytes"),
    (WITH, Summary, "response_time", "ms", "response_time_milliseconds"),
    (WITH, UpDown, "active_connections", "", "active_connections"),
    (WITH, Unknown, "unknown_metric", "", "unknown_metric"),
    (WITH, Gauge, "uptime", "d", "uptime_days"),
    (WITH, Gauge, "duration", "h", "duration_hours"),
    (WITH, Gauge, "timeout", "min", "timeout_minutes"),
    (WITH, Gauge, "latency", "us", "latency_microseconds"),
    (WITH, Gauge, "precision_time", "ns", "precision_time_nanoseconds"),
    (WITH, Gauge, "cache_size", "KiBy", "cache_size_kibibytes"),
    (WITH, Gauge, "memory", "MiBy", "memory_mebibytes"),
    (WITH, Gauge, "storage", "GiBy", "storage_gibibytes"),
    (WITH, Gauge, "capacity", "TiBy", "capacity_tibibytes"),
    (WITH, Gauge, "transfer", "KBy", "transfer_kilobytes"),
    (WITH, Gauge, "download", "MBy", "download_megabytes"),
    (WITH, Gauge, "backup", "GBy", "backup_gigabytes"),
    (WITH, Gauge, "archive", "TBy", "archive_terabytes"),
    (WITH, Gauge, "distance", "m", "distance_meters"),
    (WITH, Gauge, "voltage", "V", "voltage_volts"),
    (WITH, Gauge, "current", "A", "current_amperes"),
    (WITH, Gauge, "energy", "J", "energy_joules"),
    (WITH, Gauge, "power", "W", "power_watts"),
    (WITH, Gauge, "weight", "g", "weight_grams"),
    (WITH, Gauge, "temperature", "Cel", "temperature_celsius"),
    (WITH, Gauge, "frequency", "Hz", "frequency_hertz"),
    (WITH, Gauge, "cpu_usage", "%", "cpu_usage_percent"),
    (WITH, Gauge, "requests", "1/m", "requests_per_minute"),
    (WITH, Gauge, "events", "1/h", "events_per_hour"),
    (WITH, Gauge, "transactions", "1/d", "transactions_per_day"),
    (WITH, Gauge, "reports", "1/w", "reports_per_week"),
    (WITH, Gauge, "invoices", "1/mo", "invoices_per_month"),
    (WITH, Gauge, "renewals", "1/y", "renewals_per_year"),
    (WITH, Gauge, "custom", "1/custom_unit", "custom_per_custom_unit"),
    (WITH, Gauge, "metric", "By/", "metric_bytes"),
    (WITH, Gauge, "metric", " By / s ", "metric_bytes_per_second"),
    (WITH, Gauge, "metric", "/", "metric"),
    (WITH, Histogram, "http.request.duration", "ms", "http_request_duration_milliseconds"),
    (AS_IS, Histogram, "http.request.duration", "ms", "http.request.duration"),
    (WITH, Counter, "http.requests", "1", "http_requests_total"),
    (AS_IS, Counter, "http.requests", "1", "http.requests"),
];

/// Where the translator and the specification differ, and what neither lists.
#[rustfmt::skip]
const MORE: &[Vector] = &[
    (WITH, Histogram, "http.server.request.duration", "s", "http_server_request_duration_seconds"),
    (UTF8_WITH, Histogram, "http.server.request.duration", "s", "http.server.request.duration_seconds"),
    (WITH, Counter, "process.cpu.time", "s", "process_cpu_time_seconds_total"),
    (UTF8_WITH, Counter, "process.cpu.time", "s", "process.cpu.time_seconds_total"),
    (WITH, Counter, "requests.total.count", "", "requests_count_total"),
    (UTF8_WITH, Counter, "requests.total.count", "", "requests.total.count_total"),
    (WITH, Counter, "total", "", "total"),
    (UTF8_WITH, Counter, "total", "", "total_total"),
    (WITH, Gauge, "cpu.utilization", "1", "cpu_utilization_ratio"),
    (UTF8_WITH, Gauge, "cpu.utilization", "1", "cpu.utilization_ratio"),
    (WITH, Gauge, "ratio.foo", "1", "foo_ratio"),
    (UTF8_WITH, Gauge, "ratio.foo", "1", "ratio.foo_ratio"),
    (WITH, UpDown, "x", "1", "x"),
    (UTF8_WITH, UpDown, "x", "1", "x"),
    (WITH, Gauge, "queue.depth", "{item}", "queue_depth"),
    (UTF8_WITH, Gauge, "queue.depth", "{item}", "queue.depth"),
    (WITH, Gauge, "queue.rate", "{item}/s", "queue_rate_per_second"),
    (UTF8_WITH, Gauge, "queue.rate", "{item}/s", "queue.rate_per_second"),
    (WITH, Counter, "io", "By/s", "io_bytes_per_second_total"),
    (UTF8_WITH, Counter, "io", "By/s", "io_bytes_per_second_total"),
    (WITH, Gauge, "x", "m/s", "x_meters_per_second"),
    (WITH, Gauge, "x", "km/h", "x_km_per_hour"),
    (WITH, Gauge, "x", "By/", "x_bytes"),
    (WITH, Gauge, "x", "%", "x_percent"),
    (WITH, Counter, "(lambda).function.executions(#)", "", "lambda_function_executions_total"),
    (UTF8_WITH, Counter, "(lambda).function.executions(#)", "", "(lambda).function.executions(#)_total"),
    (WITH, Counter, "2xx.responses", "", "_2xx_responses_total"),
    (UTF8_WITH, Counter, "2xx.responses", "", "2xx.responses_total"),
    (WITH, Gauge, "a:b.c", "", "a:b_c"),
    (UTF8_WITH, Gauge, "a:b.c", "", "a:b.c"),
    (WITH, Gauge, "日本", "", ""),
    (UTF8_WITH, Gauge, "日本", "", "日本"),
    (WITHOUT, Gauge, "a__b", "", "a__b"),
    (WITHOUT, Gauge, "a._b", "", "a__b"),
    (WITH, Gauge, "seconds_before_birthday", "s", "seconds_before_birthday"),
    (WITH, Gauge, "x_custom_unit", "custom_unit", "x_custom_unit_custom_unit"),
    (WITH, Gauge, "foo_per_second", "1/s", "foo_per_second_per_second"),
    (WITH, Gauge, "x", "{a}By", "x"),
    (WITH, Gauge, "mem", "kBy", "mem_kilobytes"),
    (WITH, Gauge, "mem", "KBy", "mem_kilobytes"),
    (WITH, Gauge, "mem", "TiBy", "mem_tibibytes"),
    (UTF8_WITH, Counter, "subtotal", "", "su_total"),
    (UTF8_WITH, Counter, "a日total", "", "a_total"),
    (UTF8_WITH, Counter, "日total", "", "日total_total"),
    (WITH, Gauge, "x", "s/€", "x_seconds"),
    (WITH, Gauge, "x", "a€/s", "x_a_per_second"),
    (WITH, Gauge, "", "s", ""),
    (AS_IS, Gauge, "", "", ""),
    (UTF8_WITH, Counter, "", "", ""),
];

#[test]
fn a_metric_is_called_as_in_the_translator_of_prometheus() {
    assert_eq!(VECTORS.len(), 77);
    for (strategy, kind, name, unit, expected) in VECTORS.iter().chain(MORE) {
        let named = metric(name, unit, *kind, *strategy).unwrap_or_default();
        assert_eq!(named, *expected, "{name} [{unit}] {kind:?} {strategy}");
    }
}

#[test]
fn what_loses_its_name_is_refused() {
    for (strategy, name, expected) in [
        (WITH, "", NameError::Empty),
        (WITH, "@#$%", NameError::Empty),
        (WITHOUT, "@_#_$_%", NameError::Underscores),
        (AS_IS, "", NameError::Empty),
    ] {
        assert_eq!(metric(name, "", Gauge, strategy), Err(expected), "{name}");
    }
    assert_eq!(metric("___", "", Gauge, WITHOUT).as_deref(), Ok("___"));
}

/// The table of the specification: each strategy with and without the escaping that UTF-8 names get.
#[test]
fn strategy_and_escaping_work_together() {
    for (strategy, underscores, utf8) in [
        (WITH, "foo_bar_bytes_total", "foo_bar_bytes_total"),
        (WITHOUT, "foo_bar", "foo_bar"),
        (UTF8_WITH, "foo_bar_bytes_total", "foo.bar_bytes_total"),
        (AS_IS, "foo_bar", "foo.bar"),
    ] {
        let name = metric("foo.bar", "By", Counter, strategy).expect("a name");
        assert_eq!(
            escape(&name, Escaping::Underscores),
            underscores,
            "{strategy}"
        );
        assert_eq!(escape(&name, Escaping::AllowUtf8), utf8, "{strategy}");
    }
}

fn any_type() -> impl proptest::strategy::Strategy<Value = MetricType> {
    prop_oneof![
        Just(Gauge),
        Just(Counter),
        Just(UpDown),
        Just(Histogram),
        Just(Exponential),
        Just(Summary),
        Just(Unknown),
    ]
}

proptest! {
    #[test]
    fn an_escaped_name_is_valid(name in ".{0,12}", unit in ".{0,6}", kind in any_type()) {
        for strategy in [WITH, WITHOUT] {
            if let Ok(named) = metric(&name, &unit, kind, strategy) {
                prop_assert!(is_metric(&named), "{named}");
            }
        }
    }

    #[test]
    fn a_counter_says_so_at_its_end(name in "[a-z._]{1,12}", unit in "(s|By|1|)") {
        for strategy in [WITH, UTF8_WITH] {
            if let Ok(named) = metric(&name, &unit, Counter, strategy) {
                prop_assert!(named == "total" || named.ends_with("_total"), "{named}");
            }
        }
    }

    #[test]
    fn a_name_without_unit_stays_as_it_is_once_made(name in ".{0,12}", kind in any_type()) {
        for strategy in [WITH, WITHOUT, AS_IS] {
            if let Ok(named) = metric(&name, "", kind, strategy) {
                let again = metric(&named, "", kind, strategy);
                prop_assert_eq!(again.as_deref(), Ok(&*named));
            }
        }
    }
}
