"""Exports traces and request durations by OTLP, for processes that run flows or tasks.

Prefect opens the spans: a flow run is a night or a gate, its task runs are stages and parts.
"""

from __future__ import annotations

import logging
from functools import cache

from ragmetrics import __version__

log = logging.getLogger("ragmetrics.tracing")


@cache
def export() -> bool:
    """Send spans and metrics to where the variables of OpenTelemetry say, until the process ends.

    Returns whether that is so: without the extra `otel` nothing is sent, and where this process has
    providers already they are used as they are.
    """
    from opentelemetry import metrics, trace

    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("no traces: %s is not installed (the extra `otel`)", error.name)
        return False
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return False
    resource = Resource.create({"service.name": "ragmetrics", "service.version": __version__})
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider(resource=resource, metric_readers=[reader]))
    return True
