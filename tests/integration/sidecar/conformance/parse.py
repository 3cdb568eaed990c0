"""Parses a page from standard input as strictly as the library for Python does, and prints how many families and samples
it has. The argument is the format: openmetrics or text."""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

parse = openmetrics if sys.argv[1] == "openmetrics" else text
families = list(parse(sys.stdin.buffer.read().decode("utf-8")))
print(len(families), sum(len(family.samples) for family in families))
