"""Pushes one metric of each kind that the OpenTelemetry SDK for Python has, once, to where the first argument says, over
what the second says: grpc or http."""

import math
import sys

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import (
    ExplicitBucketHistogramAggregation,
    ExponentialBucketHistogramAggregation,
    View,
)
from opentelemetry.sdk.resources import Resource

endpoint, way = sys.argv[1:]
if way == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

    exporter = OTLPMetricExporter(endpoint=endpoint, insecure=True)
else:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    exporter = OTLPMetricExporter(endpoint=endpoint)

provider = MeterProvider(
    metric_readers=[PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)],
    resource=Resource({"service.name": "python-" + way}),
    views=[
        View(instrument_name="wait", aggregation=ExplicitBucketHistogramAggregation([1, 2])),
        View(instrument_name="body.size", aggregation=ExponentialBucketHistogramAggregation()),
    ],
)
meter = provider.get_meter("python-client")
by = {"http.route": "/pay", "try": 2}
meter.create_counter("http.requests", unit="{request}").add(3, by)
depth = meter.create_up_down_counter("queue.depth")
depth.add(5, by)
depth.add(-2, by)
meter.create_gauge("oven.temperature", unit="Cel").set(21.5)
wait = meter.create_histogram("wait", unit="s")
size = meter.create_histogram("body.size", unit="By")
for value in [0.5, 1.5, 9]:
    wait.record(value)
    size.record(value)
# Without an interval, nothing is pushed unless asked for.
provider.force_flush()
provider.shutdown()
