r"""Queries and events of OpenSearch UBI and of others that follow its schema.

A retrieval is a query with its `query_response_hit_ids`.

Export the indices `ubi_queries` and `ubi_events` of a night into one folder, as documents or as hits with `_source`:

```bash
for index in ubi_queries ubi_events; do
  elasticdump --input="$OPENSEARCH/$index" --output="logs/2026-11-19/$index.jsonl" --type=data
done
```

It reads the [schema](https://github.com/o19s/ubi) 1.0 to 1.3. Clicks are events `click` and `click_through` on an object;
feedback is an event such as `thumbs_up` or `dislike`, or the `feedback` or `rating` of `event_attributes`. Without any
event in the log, clicks are unknown. UBI logs no texts, so contexts are shown by their ids, and only metrics of ids and
of users apply, unless `columns:` finds texts in `query_attributes`. Tags: `application`.

```jsonl
{"application": "help-desk", "query_id": "q-1", "client_id": "c-7", "user_query": "Do I need to bring a helmet?", "timestamp": "2026-11-19T08:00:01Z", "query_response_id": "r-1", "query_response_hit_ids": ["faq-9", "faq-1"], "query_attributes": {"index_build": "2026-11-18"}}
{"application": "help-desk", "action_name": "impression", "query_id": "q-1", "client_id": "c-7", "timestamp": "2026-11-19T08:00:02Z", "event_attributes": {"object": {"object_id": "faq-9"}, "position": {"ordinal": 1}}}
{"application": "help-desk", "action_name": "click", "query_id": "q-1", "client_id": "c-7", "timestamp": "2026-11-19T08:00:05Z", "event_attributes": {"object": {"object_id": "faq-1"}, "position": {"ordinal": 2}}}
{"application": "help-desk", "action_name": "thumbs_up", "query_id": "q-1", "client_id": "c-7", "timestamp": "2026-11-19T08:00:09Z"}
{"_index": "ubi_queries", "_id": "x", "_source": {"query_id": "q-2", "user_query": "How much is the deposit?", "timestamp": "2026-11-19T08:01:00Z", "query_response_hit_ids": ["faq-2"]}}
{"query_id": "q-3", "user_query": "When do stations open?", "timestamp": "2026-11-19T08:02:00Z"}
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.exported_values import about, at, first, identifier, moment
from ragmetrics.logs.preset import Preset, Skipped, Span
from ragmetrics.records import BadRow

_CLICKS = ("click", "click_through")
_ACTIONS = (*_CLICKS, "impression", "view", "watch", "add_to_cart", "purchase")
_THUMB = re.compile(r"thumbs?[ _-]?(up|down)|(up|down)vote|(dis)?like")
_HITS = ("query_response_hit_ids", "query_response_objects_ids", "query_response_object_ids")
_SAID = ("event_attributes.feedback", "event_attributes.rating")
_OBJECT = ("event_attributes.object.object_id", "event_attributes.object.internal_id")
_FIELDS = ("query_id", "user_query", "timestamp", "application", "query_attributes")


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped]:
    inner = record.get("_source")
    document = inner if isinstance(inner, Mapping) else record
    query = identifier(at(document, "query_id"))
    if at(document, "action_name") is not None:
        yield _event(document, query) if query else Skipped("event without a query_id")
    elif query is None:
        raise BadRow("neither a query nor an event: no query_id, no action_name")
    elif at(document, "user_query") is None:
        yield Skipped("query without a user_query")
    else:
        yield _query(document, query)


def _query(query: Mapping[str, Any], name: str) -> Span:
    hits = first(query, *_HITS)
    if not isinstance(hits, list) or not all(map(identifier, hits)):
        raise BadRow("query_response_hit_ids: no list of ids")
    ids = [identifier(hit) for hit in hits]
    attributes = at(query, "query_attributes")
    return Span(
        kind="query",
        item={
            "id": name,
            "user_input": at(query, "user_query"),
            "retrieved_contexts": ids,
            "retrieved_context_ids": ids,
            "timestamp": at(query, "timestamp"),
            **about(attributes, application=at(query, "application")),
        },
        trace=name,
        id=name,
        start=moment(at(query, "timestamp")),
        did={"clicked_context_ids": []},
        source=query,
    )


def _event(event: Mapping[str, Any], query: str) -> Span:
    action = at(event, "action_name")
    said = first(event, *_SAID)
    if said is None and isinstance(action, str) and _THUMB.fullmatch(action.lower()):
        said = action.lower()
    ids = [identifier(at(event, path)) for path in _OBJECT] if action in _CLICKS else []
    return Span(
        kind=f"{action if action in _ACTIONS else 'other'} event",
        trace=query,
        start=moment(at(event, "timestamp")),
        did={
            "clicked_context_ids": [one for one in ids if one],
            **({} if said is None else {"feedback": said}),
        },
    )


ubi = Preset(
    "ubi",
    __doc__,
    _read,
    frozenset(["_source", "action_name", "event_attributes", *_FIELDS, *_HITS]),
    ids_only=True,
)
