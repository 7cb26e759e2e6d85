"""First contact: logs as people have them are read, or refused with a line that can be pasted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import ragmetrics
from ragmetrics.config import PRESETS, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import GoldenSet, ReadCounts, golden_set, log_set
from ragmetrics.pipeline import check_logs
from ragmetrics.records import LogRow
from tests.fakes.logs import make_rows, write_jsonl

QUESTIONS = ("How do I reset my badge?", "When does the canteen open?", "Who repairs a chair?")
CONTEXTS = (
    ["Badges are reset at the front desk.", "The desk opens at 8."],
    ["The canteen opens at 11:30."],
    ["It's the janitor's work.", 'He says "call 12" in a hurry.'],
)
ANSWERS = ("At the front desk.", "At 11:30.", "The janitor.")

Record = dict[str, Any]


def records(make: Callable[[str, list[str], str], Record]) -> list[Record]:
    """One record for each question, its contexts and its answer."""
    return [make(*one) for one in zip(QUESTIONS, CONTEXTS, ANSWERS, strict=True)]


def lines(make: Callable[[str, list[str], str], Record]) -> str:
    """The records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records(make))


def table(make: Callable[[str, list[str], str], Record], **options: Any) -> str:
    """The records as pandas writes them to CSV."""
    return pd.DataFrame(records(make)).to_csv(index=False, **options)


def documents(texts: Iterable[str], **more: Any) -> list[Record]:
    """Documents of LangChain."""
    return [{"page_content": text, "metadata": {"source": "a.pdf"}, **more} for text in texts]


def nodes(texts: Iterable[str]) -> list[Record]:
    """Nodes of LlamaIndex, with a score."""
    return [{"node": {"id_": str(n), "text": text}, "score": 0.5} for n, text in enumerate(texts)]


def hits(texts: Iterable[str]) -> list[Record]:
    """Matches of a vector database."""
    return [{"id": str(n), "score": 0.5, "metadata": {"text": t}} for n, t in enumerate(texts)]


def asked(question: str) -> list[Record]:
    """Messages of a chat."""
    return [{"role": "system", "content": "Be nice."}, {"role": "user", "content": question}]


# Name of the file, its content, and the line of the note that says how it was read.
READ: dict[str, tuple[str, str, str]] = {
    "lists of pandas": (
        "log.csv",
        table(lambda q, c, a: {"user_input": q, "retrieved_contexts": c, "response": a}),
        "",
    ),
    "arrays of numpy": (
        "log.csv",
        table(lambda q, c, a: {"user_input": q, "retrieved_contexts": np.array(c, object)}),
        "",
    ),
    "numbers of numpy": (
        "log.csv",
        table(
            lambda q, c, a: {
                "user_input": q,
                "retrieved_contexts": c,
                "retrieved_context_scores": [np.float64(0.5)] * len(c),
            }
        ),
        "",
    ),
    "JSON in a text": (
        "log.jsonl",
        lines(lambda q, c, a: {"user_input": q, "retrieved_contexts": json.dumps(c)}),
        "",
    ),
    "documents in our field": (
        "log.jsonl",
        lines(lambda q, c, a: {"user_input": q, "retrieved_contexts": documents(c)}),
        "",
    ),
    "ragas 0.1": (
        "log.jsonl",
        lines(lambda q, c, a: {"question": q, "contexts": c, "answer": a, "ground_truth": a}),
        "preset: ragas",
    ),
    "semicolons": (
        "log.csv",
        table(lambda q, c, a: {"question": q, "contexts": c}, sep=";"),
        "preset: ragas",
    ),
    "tabs": (
        "log.tsv",
        table(lambda q, c, a: {"question": q, "contexts": c}, sep="\t"),
        "preset: ragas",
    ),
    "nested": (
        "log.jsonl",
        lines(
            lambda q, c, a: {
                "request": {"body": {"query": q}},
                "retrieval": {"documents": [{"text": text} for text in c]},
            }
        ),
        "columns: {user_input: request.body.query, retrieved_contexts: retrieval.documents}",
    ),
    "LlamaIndex": (
        "log.jsonl",
        lines(lambda q, c, a: {"query": q, "response": a, "source_nodes": nodes(c)}),
        "columns: {user_input: query, retrieved_contexts: source_nodes}",
    ),
    "LangChain": (
        "log.jsonl",
        lines(lambda q, c, a: {"input": q, "context": documents(c), "answer": a}),
        "columns: {user_input: input, retrieved_contexts: context, response: answer}",
    ),
    "LangChain, RetrievalQA": (
        "log.jsonl",
        lines(lambda q, c, a: {"query": q, "source_documents": documents(c), "result": a}),
        "columns: {user_input: query, retrieved_contexts: source_documents, response: result}",
    ),
    "DeepEval": (
        "log.jsonl",
        lines(
            lambda q, c, a: {
                "input": q,
                "actual_output": a,
                "expected_output": a,
                "retrieval_context": c,
                "context": ["The ideal context."],
            }
        ),
        "columns: {user_input: input, retrieved_contexts: retrieval_context, "
        "response: actual_output, reference: expected_output}",
    ),
    "messages of OpenAI": (
        "log.jsonl",
        lines(lambda q, c, a: {"messages": asked(q), "retrieved_docs": c, "response": a}),
        "columns: {user_input: messages, retrieved_contexts: retrieved_docs}",
    ),
    "MLflow": (
        "log.jsonl",
        lines(
            lambda q, c, a: {
                "request": q,
                "response": a,
                "retrieved_context": [{"doc_uri": "a.pdf", "content": text} for text in c],
            }
        ),
        "columns: {user_input: request, retrieved_contexts: retrieved_context}",
    ),
    "matches of a vector database": (
        "log.jsonl",
        lines(lambda q, c, a: {"query": q, "matches": hits(c)}),
        "columns: {user_input: query, retrieved_contexts: matches}",
    ),
    "results of Chroma": (
        "log.jsonl",
        lines(lambda q, c, a: {"query": q, "results": {"documents": [c], "ids": [["1"]]}}),
        "columns: {user_input: query, retrieved_contexts: results.documents.0}",
    ),
    "lines of Elasticsearch": (
        "log.jsonl",
        lines(lambda q, c, a: {"_index": "logs", "_source": {"question": q, "passages": c}}),
        "columns: {user_input: _source.question, retrieved_contexts: _source.passages}",
    ),
    "a message of CloudWatch": (
        "log.jsonl",
        lines(lambda q, c, a: {"message": json.dumps({"question": q, "passages": c})}),
        "columns: {user_input: message.question, retrieved_contexts: message.passages}",
    ),
    "passages deep in a list": (
        "log.jsonl",
        lines(
            lambda q, c, a: {
                "query": {"text": q},
                "hits": [
                    {"doc": {"id": f"d{n}", "body": t}, "score": 1 / (n + 1)}
                    for n, t in enumerate(c)
                ],
                "llm_answer": a,
                "kb_version": "v7",
            }
        ),
        'columns: {user_input: query.text, retrieved_contexts: "hits[].doc.body", '
        'retrieved_context_ids: "hits[].doc.id", retrieved_context_scores: "hits[].score", '
        "response: llm_answer, index_build: kb_version}",
    ),
    "lists in lists": (
        "log.jsonl",
        lines(
            lambda q, c, a: {
                "question": q,
                "run": {"stages": [{"items": [{"payload": {"passage": text}}]} for text in c]},
            }
        ),
        "columns: {user_input: question, "
        'retrieved_contexts: "run.stages[].items[].payload.passage"}',
    ),
    "arrays of Postgres": (
        "log.csv",
        table(
            lambda q, c, a: {
                "asked_at": "2026-11-19 08:00:00.25+00",
                "user_question": q,
                "chunks": "{" + ",".join('"' + t.replace('"', '\\"') + '"' for t in c) + "}",
                "chunk_ids": "{" + ",".join(f"d{n}" for n, _ in enumerate(c)) + "}",
            }
        ),
        "columns: {user_input: user_question, retrieved_contexts: chunks, "
        "retrieved_context_ids: chunk_ids, timestamp: asked_at}",
    ),
    "ragas 0.1 with more": (
        "log.jsonl",
        lines(lambda q, c, a: {"question": q, "contexts": c, "ts": 1763280000, "kb_version": "7"}),
        "preset: ragas\ncolumns: {timestamp: ts, index_build: kb_version}",
    ),
    "headers for people": (
        "log.csv",
        table(lambda q, c, a: {"User Question": q, "Retrieved Contexts": c}),
        'columns: {user_input: "User Question", retrieved_contexts: "Retrieved Contexts"}',
    ),
    "camel case": (
        "log.jsonl",
        lines(lambda q, c, a: {"userInput": q, "retrievedContexts": c}),
        "columns: {user_input: userInput, retrieved_contexts: retrievedContexts}",
    ),
}

# Name of the file, its content, and the lines that can be pasted.
REFUSED: dict[str, tuple[str, bytes | str, str]] = {
    "contexts joined by blank lines": (
        "log.csv",
        table(lambda q, c, a: {"question": q, "contexts": "\n\n".join(c)}),
        "columns: {user_input: question, retrieved_contexts: contexts}\n"
        'context_separator: "\\n\\n"',
    ),
    "our names, contexts joined by lines": (
        "log.jsonl",
        lines(lambda q, c, a: {"user_input": q, "retrieved_contexts": "\n".join(c)}),
        'context_separator: "\\n"',
    ),
    "two keys that could be the question": (
        "log.jsonl",
        lines(lambda q, c, a: {"user_query": q, "search_query": q.lower(), "passages": c}),
        "columns: {user_input: user_query, retrieved_contexts: passages}\n"
        "user_input could also be: search_query",
    ),
    "names in another language": (
        "log.jsonl",
        lines(lambda q, c, a: {"frage": q, "fundstellen": c, "antwort": a}),
        "columns: {user_input: frage, retrieved_contexts: fundstellen}",
    ),
    "ids without texts": (
        "log.jsonl",
        lines(lambda q, c, a: {"query": q, "retrieved_ids": ["a", "b"]}),
        "columns: {user_input: query, retrieved_context_ids: retrieved_ids, "
        "retrieved_contexts: KEY_OF_RETRIEVED_CONTEXTS}",
    ),
    "retrieved and reranked": (
        "log.jsonl",
        lines(lambda q, c, a: {"question": q, "retrieved_chunks": c, "reranked_chunks": c[:1]}),
        "columns: {user_input: question, retrieved_contexts: retrieved_chunks}\n"
        "retrieved_contexts could also be: reranked_chunks",
    ),
    "contexts in the prompt of a chat": (
        "log.jsonl",
        lines(lambda q, c, a: {"messages": asked(f"Context: {c}. Question: {q}")}),
        "columns: {user_input: messages, retrieved_contexts: KEY_OF_RETRIEVED_CONTEXTS}",
    ),
    "rows by number": (
        "log.json",
        json.dumps(
            {"0": {"question": "Wo?", "contexts": ["Hier unten."]}, "1": {"question": "W?"}}
        ),
        "python -c \"import json, pandas as pd; pd.DataFrame(json.load(open('IN.json'))).T"
        ".to_json('OUT.jsonl', orient='records', lines=True)\"",
    ),
    "columns of a table": (
        "log.json",
        json.dumps({"question": QUESTIONS, "contexts": CONTEXTS}),
        "python -c \"import json, pandas as pd; pd.DataFrame(json.load(open('IN.json')))"
        ".to_json('OUT.jsonl', orient='records', lines=True)\"",
    ),
    "an answer of Elasticsearch": (
        "log.json",
        json.dumps({"hits": {"hits": records(lambda q, c, a: {"_source": {"question": q}})}}),
        "jq -c '.hits.hits[]' IN.json > OUT.jsonl",
    ),
    "UTF-16": (
        "log.jsonl",
        lines(lambda q, c, a: {"user_input": q, "retrieved_contexts": c}).encode("utf-16"),
        "iconv -f UTF-16 -t UTF-8 FILE",
    ),
    "another encoding": (
        "log.csv",
        'user_input,retrieved_contexts\nWo ist das Büro?,"[""Unten.""]"\n'.encode("latin-1"),
        "iconv -f WINDOWS-1252 -t UTF-8 IN.csv > OUT.csv",
    ),
}


def put(folder: Path, name: str, content: bytes | str) -> str:
    """A log on disk."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(path: str, **settings: Any) -> tuple[list[LogRow], str]:
    """The rows of a log, and the note on its layout."""
    counts = ReadCounts()
    rows = [*log_set(make_settings(settings), path).read(counts)]
    return [row for row in rows if isinstance(row, LogRow)], counts.note


@pytest.mark.parametrize("case", READ)
def test_a_log_that_leaves_no_doubt_is_read(case: str, tmp_path: Path) -> None:
    """Questions and contexts are those of the log, and the note has the line for the settings."""
    name, content, note = READ[case]
    rows, said = read(put(tmp_path, name, content))
    assert [row.user_input for row in rows] == [*QUESTIONS]
    assert [list(row.retrieved_contexts) for row in rows] == [*CONTEXTS]
    assert said.splitlines()[1:] == note.splitlines()


@pytest.mark.parametrize("case", [case for case, (_, _, note) in READ.items() if note])
def test_the_pasted_line_reads_the_same_rows(case: str, tmp_path: Path) -> None:
    """With the line in the settings, there is nothing more to say."""
    name, content, note = READ[case]
    path = put(tmp_path, name, content)
    assert read(path, **yaml.safe_load(note)) == (read(path)[0], "")


@pytest.mark.parametrize("case", REFUSED)
def test_a_log_in_doubt_is_refused_with_a_line_to_paste(case: str, tmp_path: Path) -> None:
    """`check` ends with it, `evaluate` raises it."""
    name, content, paste = REFUSED[case]
    path = put(tmp_path, name, content)
    report = check_logs(make_settings({}), [path])
    assert not report.rows
    assert report.read.note.endswith(paste) or any(one.endswith(paste) for one in report.reasons)
    with pytest.raises(InputError) as error:
        ragmetrics.evaluate(path)
    assert paste in str(error.value) or "iconv" in paste


@pytest.mark.parametrize("case", ["contexts joined by blank lines", "names in another language"])
def test_the_lines_of_a_refusal_read_the_log(case: str, tmp_path: Path) -> None:
    """Pasted as they are."""
    name, content, paste = REFUSED[case]
    rows, note = read(put(tmp_path, name, content), **yaml.safe_load(paste))
    assert [row.user_input for row in rows] == [*QUESTIONS]
    assert [list(row.retrieved_contexts) for row in rows] == [*CONTEXTS]
    assert not note


def test_addresses_are_no_contexts(tmp_path: Path) -> None:
    """A list of sources has no texts to judge."""
    content = lines(lambda q, c, a: {"question": q, "contexts": ["https://example.com/a"]})
    rows, note = read(put(tmp_path, "log.jsonl", content))
    assert not rows
    assert "retrieved_contexts: KEY_OF_RETRIEVED_CONTEXTS" in note


def test_a_key_gives_no_command_and_no_sign_to_the_terminal(tmp_path: Path) -> None:
    """Whoever writes a log chooses its keys, and a person pastes what the note says."""
    rows = [{"frage": "Wo?"}, {"frage": "Wann?"}]
    evil = json.dumps({"'; rm -rf ~; '": rows, "\x1b[2Jx\u202e": 1})
    rows, note = read(put(tmp_path, "log.json", evil))
    assert not rows
    assert "jq" not in note
    assert not {"\x1b", "\u202e"} & set(note)


def test_ids_and_scores_come_with_the_documents(tmp_path: Path) -> None:
    """So that rank metrics work."""
    name, content, _ = READ["LlamaIndex"]
    rows, _ = read(put(tmp_path, name, content))
    assert rows[0].retrieved_context_ids == ("0", "1")
    assert rows[0].retrieved_context_scores == (0.5, 0.5)


def test_two_answers_are_told_apart_by_the_key_above_them(tmp_path: Path) -> None:
    """`gold.answer` is the right answer, so that `output.answer` is the only response."""
    record = {
        "trace": {"at": "2026-11-19T08:00:00Z", "input": {"query": "How high is it?"}},
        "retrieval": {"docs": [{"id": "d1", "text": "It is two metres high."}]},
        "output": {"answer": "Two metres."},
        "gold": {"answer": "2 m"},
    }
    rows, _ = read(put(tmp_path, "log.jsonl", f"{json.dumps(record)}\n" * 3))
    row = rows[0]
    assert (row.response, row.reference) == ("Two metres.", "2 m")
    assert row.timestamp and row.timestamp.isoformat() == "2026-11-19T08:00:00+00:00"


def test_the_id_of_a_user_is_no_id_of_a_row(tmp_path: Path) -> None:
    """Nor is any id that several rows have."""
    content = lines(lambda q, c, a: {"query": q, "passages": c, "user": {"id": "u"}, "id": "u"})
    rows, note = read(put(tmp_path, "log.jsonl", content))
    assert note.endswith("columns: {user_input: query, retrieved_contexts: passages}")
    assert len(rows) == len(QUESTIONS)


def test_python_takes_the_path_of_a_settings_file(tmp_path: Path) -> None:
    """So the line of a note works in Python too."""
    name, content, paste = REFUSED["names in another language"]
    settings = put(tmp_path, "ragmetrics.yaml", paste)
    path = put(tmp_path, name, content)
    result = ragmetrics.evaluate(path, "context_relevance", settings=settings)
    assert result.manifest.source.rows == len(QUESTIONS)


def test_a_wrong_preset_is_named(tmp_path: Path) -> None:
    """Nothing is read against the settings; the note says what would read the records."""
    name, content, _ = READ["ragas 0.1"]
    rows, note = read(put(tmp_path, name, content), preset="langfuse")
    assert not rows
    assert note.endswith("preset: ragas")


@pytest.mark.parametrize("name", PRESETS.bundled_names)
def test_spans_are_recognised(name: str, tmp_path: Path) -> None:
    """Each sample of the docs is read as its preset says."""
    records = [one for one in PRESETS.find(name).sample if "user_input" not in one]
    path = str(write_jsonl(tmp_path / "log.jsonl", records))
    rows, note = read(path)
    assert f"preset: {name}" in note
    assert rows == read(path, **yaml.safe_load(note.partition("\n")[2]))[0]


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"botReply": "It is so."}, {"response": "It is so."}),
        ({"answer_id": "7 8", "response_ms": 12.5, "expected_reply": "It is."}, {}),
        ({"corpus_snapshot": "v1"}, {"index_build": "v1"}),
        ({"model_version": "v1", "index": "v2"}, {}),
        ({"response_time": 0.4, "updated_at": "2026-11-19 08:00:00"}, {}),
    ],
)
def test_words_of_keys_name_a_field(
    keys: Mapping[str, Any], field: Mapping[str, Any], tmp_path: Path
) -> None:
    """Those that no list has; a word of something else, or a value of another kind, names none."""
    rows, _ = read(
        put(tmp_path, "log.jsonl", lines(lambda q, c, a: {"query": q, "passages": c, **keys}))
    )
    optional = ("response", "index_build", "timestamp")
    named = {name: getattr(rows[0], name) for name in optional if getattr(rows[0], name)}
    assert named == field


def test_of_several_texts_of_an_item_the_passage_is_taken(tmp_path: Path) -> None:
    """The one with a usual name; of others the longest is proposed."""
    content = lines(
        lambda q, c, a: {"query": q, "hits": [{"d": {"title": "A b", "body": t}} for t in c]}
    )
    rows, _ = read(put(tmp_path, "log.jsonl", content))
    assert [list(row.retrieved_contexts) for row in rows] == [*CONTEXTS]
    content = content.replace('"body"', '"inhalt"')
    rows, note = read(put(tmp_path, "log.jsonl", content))
    assert not rows
    assert note.startswith("Unknown log format. Which field holds the retrieved passages? Found: ")
    assert note.endswith(
        'retrieved_contexts: "hits[].d.inhalt"}\nretrieved_contexts could also be: hits[].d.title'
    )


def test_a_golden_set_is_recognised(tmp_path: Path) -> None:
    """Its answers are right answers."""
    path = put(tmp_path, "golden.csv", table(lambda q, c, a: {"question": q, "answer": a}))
    golden = GoldenSet(golden_set(make_settings({"golden": path})))
    row, joined = golden.join(LogRow("1", QUESTIONS[0], ()))
    assert joined
    assert row.reference == ANSWERS[0]
    assert golden.counts.note.startswith("Golden set: ")


def test_check_says_what_doctor_says_of_the_log(tmp_path: Path) -> None:
    """What metrics lack, rows without a time, and a log of many days; nothing of a log in order."""
    timeless = put(tmp_path, "a.jsonl", lines(lambda q, c, a: {"question": q, "contexts": c}))
    settings = make_settings({"metrics": ["context_recall"]})
    assert check_logs(settings, [timeless]).remarks == [
        "no row has a time, so a log of another night may go unnoticed",
        "no row has reference for context_recall",
    ]
    rows = [row for day in (18, 19, 20) for row in make_rows(4, night=date(2026, 11, day))]
    place = str(write_jsonl(tmp_path / "b.jsonl", rows))
    assert check_logs(settings, [place]).remarks == [
        "the rows are of 3 days, 2026-11-18 to 2026-11-20: `split_nights: true` makes a night of "
        "each day"
    ]
    split = settings.model_copy(update={"split_nights": True})
    assert check_logs(split, [place]).remarks == []
