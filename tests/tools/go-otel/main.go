// Pushes one metric of each kind that the OpenTelemetry SDK for Go has, once, to where the first argument says, over
// what the second says: grpc, http or delta (over HTTP, as differences).
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, endpoint, way string) error {
	exporter, err := exporterFor(ctx, endpoint, way)
	if err != nil {
		return err
	}
	reader := sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour))
	exponential := sdk.NewView(sdk.Instrument{Name: "body.size"},
		sdk.Stream{Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}})
	provider := sdk.NewMeterProvider(
		sdk.WithReader(reader),
		sdk.WithView(exponential),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "go-"+way),
			attribute.String("service.instance.id", "1"),
		)),
	)
	if err := record(ctx, provider.Meter("go-client"), way); err != nil {
		return err
	}
	if way == "delta" {
		// The second push is only what came since the first.
		if err := provider.ForceFlush(ctx); err != nil {
			return err
		}
		if err := record(ctx, provider.Meter("go-client"), way); err != nil {
			return err
		}
	}
	return provider.Shutdown(ctx)
}

func exporterFor(ctx context.Context, endpoint, way string) (sdk.Exporter, error) {
	switch way {
	case "grpc":
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(endpoint), otlpmetricgrpc.WithInsecure(),
			otlpmetricgrpc.WithCompressor("gzip"))
	case "http":
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(endpoint), otlpmetrichttp.WithInsecure(),
			otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	case "delta":
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(endpoint), otlpmetrichttp.WithInsecure(),
			otlpmetrichttp.WithTemporalitySelector(sdk.DeltaTemporalitySelector))
	default:
		return nil, fmt.Errorf("there is no way %q", way)
	}
}

// sampled is a context within a trace, so that what is recorded there becomes an exemplar.
func sampled(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID{0x0a, 15: 0x01},
		SpanID:     trace.SpanID{0x0b, 7: 0x02},
		TraceFlags: trace.FlagsSampled,
	}))
}

func record(ctx context.Context, meter metric.Meter, way string) error {
	by := metric.WithAttributes(attribute.String("http.route", "/pay"), attribute.Int("try", 2))
	requests, err := meter.Int64Counter("http.requests", metric.WithUnit("{request}"))
	if err != nil {
		return err
	}
	requests.Add(sampled(ctx), 3, by)
	depth, err := meter.Int64UpDownCounter("queue.depth")
	if err != nil {
		return err
	}
	if way != "delta" { // a sum that may fall has no sense as a difference
		depth.Add(ctx, 5, by)
		depth.Add(ctx, -2, by)
	}
	oven, err := meter.Float64Gauge("oven.temperature", metric.WithUnit("Cel"))
	if err != nil {
		return err
	}
	oven.Record(ctx, 21.5)
	wait, err := meter.Float64Histogram("wait", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(1, 2))
	if err != nil {
		return err
	}
	size, err := meter.Float64Histogram("body.size", metric.WithUnit("By"))
	if err != nil {
		return err
	}
	for _, value := range []float64{0.5, 1.5, 9} {
		wait.Record(ctx, value)
		size.Record(ctx, value)
	}
	return nil
}
