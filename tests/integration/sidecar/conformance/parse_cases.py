"""Reads a list of pages in JSON from standard input, parses each as OpenMetrics as strictly as the library for Python does,
and prints a list in JSON with what is wrong with each, or nothing."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def wrong_with(page):
    try:
        list(text_string_to_metric_families(page))
    except Exception as wrong:  # a page that is wrong makes it fail in many ways
        return f"{type(wrong).__name__}: {wrong}"
    return None


print(json.dumps([wrong_with(page) for page in json.load(sys.stdin)]))
